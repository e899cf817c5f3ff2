"""Filters: what may still be spent when parameters are chosen after seeing earlier releases.

Each release is a grant: a list of events, fixed before it started, priced at an (epsilon, delta) it
was checked to fit. Which grant comes next may depend on everything released before; that is what a
filter allows and a plain price does not.

- basic: the grants' epsilons and deltas add up (Rogers, Roth, Ullman, Vadhan 2016, Theorem 3.2).
  Within a grant the tightest price counts, so this is the choice where one or a few releases use
  the budget.
- renyi: Renyi divergences of one order, fixed when the ledger is made, add up (Feldman and Zrnic
  2021, Theorem 3.1). The choice for many releases.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from secretballot._validation import COMPOSITIONS, check_choice, check_positive
from secretballot.core.price import round_up
from secretballot.core.renyi import ORDERS, lost_epsilon
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting.budget import PrivacyBudget
from secretballot.privacy.accounting.events import Event
from secretballot.privacy.accounting.pricing import failure_probability, renyi_divergence

# of delta, kept for events that can fail outright; fixed beforehand, as a filter must
FAILURE_SHARE = 0.1


@dataclass(frozen=True)
class Grant:
    """One release: its events, and the (epsilon, delta) it was priced at.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> grant = accounting.Grant((accounting.PureEvent(0.5, 1),), epsilon=0.5, delta=0.0)
    >>> grant.epsilon
    0.5
    """

    events: tuple[Event, ...]
    epsilon: float
    delta: float


class Costs(NamedTuple):
    """What a grant adds to the sums of a filter.

    Attributes
    ----------
    loss, failure : Fraction
        Of its two sums.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> from fractions import Fraction
    >>> accounting.Costs(Fraction(1, 2)).failure
    Fraction(0, 1)
    """

    loss: Fraction = Fraction(0)
    failure: Fraction = Fraction(0)


@dataclass(frozen=True)
class Totals:
    """Exact sums over grants: all that a filter needs to know of what was spent before.

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
    >>> from secretballot.privacy import accounting
    >>> from fractions import Fraction
    >>> totals = accounting.Totals().plus(accounting.Costs(Fraction(1, 2)))
    >>> totals.grants, totals.loss
    (1, Fraction(1, 2))
    """

    grants: int = 0
    loss: Fraction = Fraction(0)
    failure: Fraction = Fraction(0)

    def plus(self, costs: Costs) -> "Totals":
        """Return the sums with one grant more."""
        return Totals(self.grants + 1, self.loss + costs.loss, self.failure + costs.failure)

    def changed(self, reserved: Costs, used: Costs) -> "Totals":
        """Return the sums where one of the grants has turned out to be another."""
        return Totals(
            self.grants,
            self.loss - reserved.loss + used.loss,
            self.failure - reserved.failure + used.failure,
        )


class Filter(ABC):
    """Admits grants one by one.

    The whole sequence stays within the budget, however each grant was chosen.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> rule = accounting.filter_for("renyi", sb.PrivacyBudget(2.0, 1e-6))
    >>> isinstance(rule, accounting.Filter)
    True
    """

    order: float | None = None

    def __init__(self, budget: PrivacyBudget) -> None:
        self.budget = budget

    def admits(self, spent: Sequence[Grant], new: Grant) -> bool:
        """Return whether `new` may follow `spent`."""
        return self.admits_after(self.totals(spent), new)

    def spent(self, grants: Sequence[Grant]) -> tuple[float, float]:
        """Return the (epsilon, delta) to show for `grants`, rounded up."""
        return self.spent_of(self.totals(grants))

    def remaining(self, grants: Sequence[Grant]) -> tuple[float, float]:
        """Return the (epsilon, delta) to show as left after `grants`, rounded down."""
        return self.left_of(self.totals(grants))

    def totals(self, grants: Sequence[Grant]) -> Totals:
        """Return the sums over `grants`."""
        totals = Totals()
        for grant in grants:
            totals = totals.plus(self.costs(grant))
        return totals

    @abstractmethod
    def costs(self, grant: Grant) -> Costs:
        """Return what a grant adds to the two sums; what has no bound adds more than any budget."""

    @abstractmethod
    def admits_after(self, totals: Totals, new: Grant) -> bool:
        """Return whether `new` may follow grants with these sums."""

    @abstractmethod
    def spent_of(self, totals: Totals) -> tuple[float, float]:
        """Return the (epsilon, delta) to show for grants with these sums, rounded up."""

    @abstractmethod
    def left_of(self, totals: Totals) -> tuple[float, float]:
        """Return the (epsilon, delta) to show as left after grants with these sums, rounded
        down."""


class BasicFilter(Filter):
    """Sum of epsilons, sum of deltas; as decimal fractions, so that ten times 0.1 is 1.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> rule = accounting.BasicFilter(sb.PrivacyBudget(1.0, 0.0))
    >>> grant = accounting.Grant((accounting.PureEvent(0.1, 1),), epsilon=0.1, delta=0.0)
    >>> rule.admits(9 * [grant], grant), rule.admits(10 * [grant], grant)
    (True, False)
    """

    def costs(self, grant: Grant) -> Costs:
        """Return the epsilon and the delta as the decimals that they are written as."""
        return Costs(_decimal_fraction(grant.epsilon), _decimal_fraction(grant.delta))

    def admits_after(self, totals: Totals, new: Grant) -> bool:
        """Return whether both sums, with `new`, stay within the budget."""
        after = totals.plus(self.costs(new))
        return after.loss <= _decimal_fraction(
            self.budget.epsilon
        ) and after.failure <= _decimal_fraction(self.budget.delta)

    def spent_of(self, totals: Totals) -> tuple[float, float]:
        """Return both sums, as the floats nearest to the exact decimals."""
        return float(totals.loss), float(totals.failure)

    def left_of(self, totals: Totals) -> tuple[float, float]:
        """Return the budget less both sums: a grant at exactly this price is admitted."""
        left = (
            _decimal_fraction(self.budget.epsilon) - totals.loss,
            _decimal_fraction(self.budget.delta) - totals.failure,
        )
        return _float_below(left[0]), _float_below(left[1])


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


class RenyiFilter(Filter):
    """Sum of Renyi divergences of one order, and sum of failure probabilities, each within its
    own limit.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> budget = sb.PrivacyBudget(2.0, 1e-6)
    >>> rule = accounting.filter_for("renyi", budget)
    >>> grant = accounting.Grant((accounting.GaussianEvent(400.0, 100),), epsilon=0.3, delta=1e-9)
    >>> rule.admits(7 * [grant], grant)
    True
    >>> accounting.BasicFilter(budget).admits(7 * [grant], grant)
    False
    """

    order: float

    def __init__(self, budget: PrivacyBudget, order: float) -> None:
        super().__init__(budget)
        if not check_positive("order", order) > 1:
            raise ParameterError(
                Parameter("order"), f" is {order}; a Renyi filter needs an order above 1."
            )
        if not budget.delta > 0:
            raise ParameterError(
                Parameter("delta"),
                " is 0; a Renyi filter needs a delta above 0. Choose the basic composition.",
            )
        self.order = order
        self.failure_limit = FAILURE_SHARE * budget.delta
        # the divergence at which the conversion at this one order just keeps the promise
        kept = (1 - FAILURE_SHARE) * budget.delta
        spare = max(0.0, float(lost_epsilon(np.array([order]), kept)[0]))
        self.divergence_limit = budget.epsilon - spare * (1 + 1e-10)
        if not self.divergence_limit > 0:
            raise ParameterError(
                f"order {order} leaves nothing of epsilon {budget.epsilon}; use a larger order."
            )

    def costs(self, grant: Grant) -> Costs:
        """Return the divergences and the failure probabilities of all events of a grant."""
        return _events_costs(grant.events, self.order)

    def admits_after(self, totals: Totals, new: Grant) -> bool:
        """Return whether both sums, with `new`, stay within their limits."""
        after = totals.plus(self.costs(new))
        within = round_up(float(after.loss)) <= self.divergence_limit
        return within and round_up(float(after.failure)) <= self.failure_limit

    def spent_of(self, totals: Totals) -> tuple[float, float]:
        """Return the budget's epsilon and delta in the shares of the limits that are used."""
        if not totals.grants:
            return 0.0, 0.0
        divergence, failure = float(totals.loss), float(totals.failure)
        share = divergence / self.divergence_limit
        used = round_up((1 - FAILURE_SHARE) * self.budget.delta + failure)
        if failure <= self.failure_limit:
            # what was admitted is not rounded beyond the budget
            used = min(used, self.budget.delta)
        return round_up(share * self.budget.epsilon), used

    def left_of(self, totals: Totals) -> tuple[float, float]:
        """Return the unused share of epsilon, and of the delta kept for failures.

        The first grant takes the other.
        """
        if not totals.grants:
            return self.budget.epsilon, self.budget.delta
        share = max(0.0, 1 - float(totals.loss) / self.divergence_limit)
        left = max(0.0, self.failure_limit - float(totals.failure))
        return share * self.budget.epsilon * (1 - 1e-10), left * (1 - 1e-10)


# stands for infinity in exact sums, beyond every limit and within the floats
_BOUNDLESS = Fraction(2) ** 1000


@functools.lru_cache(maxsize=4096)  # a ledger holds the same few events many times
def _events_costs(events: tuple[Event, ...], order: float) -> Costs:
    return Costs(
        sum((_exact_fraction(renyi_divergence(event, order)) for event in events), Fraction(0)),
        sum((_exact_fraction(failure_probability(event)) for event in events), Fraction(0)),
    )


def _exact_fraction(value: float) -> Fraction:
    return Fraction(value) if math.isfinite(value) and value < _BOUNDLESS else _BOUNDLESS


def filter_for(composition: str, budget: PrivacyBudget, order: float | None = None) -> Filter:
    """Return the filter by its name.

    The order of a Renyi filter is the one that suits Gaussian noise, unless given.

    Raises
    ------
    ParameterError
        If the name is unknown, or the budget leaves no room for the filter.
    """
    name = check_choice("composition", composition, COMPOSITIONS)
    if name == "basic":
        return BasicFilter(budget)
    return RenyiFilter(budget, _gaussian_order(budget) if order is None else order)


def _gaussian_order(budget: PrivacyBudget) -> float:
    """Return the order at which the most Gaussian noise fits.

    Divergence a rho, so largest limit / a.
    """
    if not budget.delta > 0:
        raise ParameterError(
            Parameter("delta"),
            " is 0; a Renyi filter needs a delta above 0. Choose the basic composition.",
        )
    target = (1 - FAILURE_SHARE) * budget.delta
    left = (budget.epsilon - np.maximum(0.0, lost_epsilon(ORDERS, target))) / ORDERS
    return float(ORDERS[int(np.argmax(left))])
