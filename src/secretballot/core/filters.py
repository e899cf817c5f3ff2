"""Filters: what may still be spent when parameters are chosen after seeing earlier releases.

Each release is a list of events, fixed before it started, priced at an (epsilon, delta) that it was
checked to fit. Which release comes next may depend on everything released before; that is what a
filter allows and a plain price does not.

- basic: epsilons and deltas add up (Rogers, Roth, Ullman, Vadhan 2016, Theorem 3.2). Within a
  release the tightest price counts, so this is the choice where one or a few of them use the
  budget.
- renyi: Renyi divergences of one order, fixed when the ledger is made, add up (Feldman and Zrnic
  2021, Theorem 3.1). The choice for many releases.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from secretballot.core.errors import wrong
from secretballot.core.events import Event
from secretballot.core.losses import ORDERS, lost_epsilon
from secretballot.core.price import PrivacyBudget, round_up

# of delta, kept for events that can fail outright; fixed beforehand, as a filter must
_FAILURE_SHARE = 0.1
# stands for infinity in exact sums, beyond every limit and within the floats
_BOUNDLESS = Fraction(2) ** 1000


@dataclass(frozen=True)
class Totals:
    """Exact sums over releases: all that a filter needs to know of what was spent before.

    Parameters
    ----------
    grants : int
        How many there are.
    loss : Fraction
        Sum of their epsilons, or of their divergences.
    failure : Fraction
        Sum of their deltas, or of their failure probabilities.

    Examples
    --------
    >>> from secretballot import accounting
    >>> accounting.Totals(1).plus(accounting.Totals(2)).grants
    3
    """

    grants: int = 0
    loss: Fraction = Fraction(0)
    failure: Fraction = Fraction(0)

    def plus(self, more: "Totals") -> "Totals":
        """Return the sums over the releases of both."""
        return Totals(self.grants + more.grants, self.loss + more.loss, self.failure + more.failure)

    def minus(self, less: "Totals") -> "Totals":
        """Return the sums without those of some of the releases."""
        return Totals(self.grants - less.grants, self.loss - less.loss, self.failure - less.failure)


class BasicFilter:
    """Sum of epsilons, sum of deltas; as decimal fractions, so that ten times 0.1 is 1.

    Examples
    --------
    >>> from secretballot import accounting
    >>> rule = accounting.BasicFilter(sb.PrivacyBudget(1.0, 0.0))
    >>> release = (accounting.Pure(epsilon=0.1, count=1),), sb.PrivacyBudget(0.1, 0.0)
    >>> spent = accounting.Totals()
    >>> for _ in range(10):
    ...     spent = spent.plus(rule.costs(*release))
    >>> rule.spent(spent), rule.admits(spent, *release)
    ((1.0, 0.0), False)
    """

    order: float | None = None

    def __init__(self, budget: PrivacyBudget) -> None:
        self.budget = budget

    def costs(self, events: Sequence[Event], price: PrivacyBudget) -> Totals:
        """Return the sums over one release."""
        return Totals(1, _decimal_fraction(price.epsilon), _decimal_fraction(price.delta))

    def admits(self, totals: Totals, events: Sequence[Event], price: PrivacyBudget) -> bool:
        """Return whether a release may follow others with these sums."""
        after, limit = totals.plus(self.costs(events, price)), self.costs((), self.budget)
        return after.loss <= limit.loss and after.failure <= limit.failure

    def spent(self, totals: Totals) -> tuple[float, float]:
        """Return both sums, as the floats nearest to the exact decimals."""
        return float(totals.loss), float(totals.failure)

    def left(self, totals: Totals) -> tuple[float, float]:
        """Return the budget less both sums: a release at exactly this price is admitted."""
        left = self.costs((), self.budget).minus(totals)
        return _float_below(left.loss), _float_below(left.failure)


@functools.lru_cache(maxsize=4096)
def _decimal_fraction(value: float) -> Fraction:
    # a promise is written in decimals: 0.1 means one tenth, not the float nearest to it
    return Fraction(repr(value))


def _float_below(value: Fraction) -> float:
    """Return the largest float whose decimal reading is at most `value`, and at least 0."""
    nearest = max(0.0, float(value))
    while nearest > 0 and _decimal_fraction(nearest) > value:
        nearest = math.nextafter(nearest, 0.0)
    return nearest


class RenyiFilter:
    """Sum of Renyi divergences of one order, and sum of failure probabilities, each within its
    own limit.

    Without an order it is the one at which the most Gaussian noise fits.

    Raises
    ------
    ParameterError
        If the order is not above 1, delta is 0, or the order leaves nothing of epsilon.

    Examples
    --------
    >>> from secretballot import accounting
    >>> rule = accounting.RenyiFilter(sb.PrivacyBudget(2.0, 1e-6))
    >>> release = (accounting.Counts(sigma=400.0, shifts=100),), sb.PrivacyBudget(0.3, 1e-9)
    >>> rule.spent(rule.costs(*release))[0] < 0.2
    True
    """

    def __init__(self, budget: PrivacyBudget, order: float | None = None) -> None:
        self.budget = budget
        if not budget.delta > 0:
            raise wrong("delta", budget.delta, "above 0 for the composition renyi; basic takes 0")
        kept = (1 - _FAILURE_SHARE) * budget.delta
        if order is None:
            # the divergence of Gaussian noise grows with the order
            left = (budget.epsilon - np.maximum(0.0, lost_epsilon(ORDERS, kept))) / ORDERS
            order = float(ORDERS[int(np.argmax(left))])
        self.order, self.failure_limit = order, _FAILURE_SHARE * budget.delta
        # the divergence at which the conversion at this one order just keeps the promise
        usable = 1 < order < math.inf
        spare = float(lost_epsilon(np.array([order]), kept)[0]) if usable else math.inf
        self.divergence_limit = budget.epsilon - max(0.0, spare) * (1 + 1e-10)
        if not self.divergence_limit > 0:
            wanted = f"above 1, and large enough to leave something of epsilon {budget.epsilon}"
            raise wrong("order", order, wanted)

    def costs(self, events: Sequence[Event], price: PrivacyBudget) -> Totals:
        """Return the sums over one release; what has no bound adds more than any budget."""
        return _divergence_costs(tuple(events), self.order)

    def admits(self, totals: Totals, events: Sequence[Event], price: PrivacyBudget) -> bool:
        """Return whether a release may follow others with these sums."""
        after = totals.plus(self.costs(events, price))
        within = round_up(float(after.loss)) <= self.divergence_limit
        return within and round_up(float(after.failure)) <= self.failure_limit

    def spent(self, totals: Totals) -> tuple[float, float]:
        """Return the budget's epsilon and delta in the shares of the limits that are used."""
        if not totals.grants:
            return 0.0, 0.0
        divergence, failure = float(totals.loss), float(totals.failure)
        share = divergence / self.divergence_limit
        used = round_up((1 - _FAILURE_SHARE) * self.budget.delta + failure)
        if failure <= self.failure_limit:
            # what was admitted is not rounded beyond the budget
            used = min(used, self.budget.delta)
        return round_up(share * self.budget.epsilon), used

    def left(self, totals: Totals) -> tuple[float, float]:
        """Return the unused share of epsilon, and of the delta kept for failures.

        The first release takes the other.
        """
        if not totals.grants:
            return self.budget.epsilon, self.budget.delta
        share = max(0.0, 1 - float(totals.loss) / self.divergence_limit)
        left = max(0.0, self.failure_limit - float(totals.failure))
        return share * self.budget.epsilon * (1 - 1e-10), left * (1 - 1e-10)


@functools.lru_cache(maxsize=4096)  # a ledger holds the same few events many times
def _divergence_costs(events: tuple[Event, ...], order: float) -> Totals:
    at = np.array([order])
    losses = [_exact_fraction(float(event.renyi(at)[0])) for event in events]
    failed = [event.failure() for event in events]
    failures = [_exact_fraction(0.0 if each == 0 else round_up(each)) for each in failed]
    return Totals(1, sum(losses, Fraction(0)), sum(failures, Fraction(0)))


def _exact_fraction(value: float) -> Fraction:
    """Return a float exactly; what is no bound, nan too, beyond every limit."""
    return Fraction(value) if math.isfinite(value) and value < _BOUNDLESS else _BOUNDLESS


#: Admits releases one by one: the whole sequence stays within the budget, however each release was
#: chosen.
Filter = BasicFilter | RenyiFilter
