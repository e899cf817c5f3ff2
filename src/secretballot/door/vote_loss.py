"""What a run lost by its votes, published with noise: a number of its own, and no promise."""

import contextlib
import json
import math
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from secretballot._signals import signals_held_back
from secretballot._validation import check_instance, check_probability
from secretballot.aggregation import Aggregator, GaussianAggregator
from secretballot.aggregation.vote_loss import UNITS_PER_NAT, VoteLoss
from secretballot.door import purchase
from secretballot.ensemble.votes import VoteCounts
from secretballot.exceptions import LedgerError, Parameter, ParameterError
from secretballot.privacy.accounting import (
    PrivacyBudget,
    SmoothGaussianEvent,
    calibrate_smooth_gaussian,
    event_from_json,
)
from secretballot.privacy.accounting.events import MAX_SCALE
from secretballot.privacy.accounting.smooth_gaussian import LOG_STEP
from secretballot.privacy.ledger import Ledger
from secretballot.privacy.noise import ExactNoise
from secretballot.report.certificate.build import check_declaration

__all__ = ["PublishedLoss", "publish_vote_loss"]

_STORED = ("terms", "outcome", "scale_number", "unit", "neighbours", "composition")
_WIDEST = -(2**63)  # no outcome has more digits
_NAME = "vote-loss"
_LARGEST_LOG = 600.0  # whatever it is multiplied by stays finite


@dataclass(frozen=True)
class PublishedLoss:
    """What a run lost by its votes, with noise; public.

    It is no promise, and no certificate takes it: it is about these votes, not about any; it bounds
    the divergence of what these votes release from what a neighbour's would, and not the reverse;
    it holds at one order; and it is known up to its noise.

    Attributes
    ----------
    terms : dict
        Public parameters, as JSON values.
    outcome, scale_number : int
        What was drawn: the loss in units of 2^-20 nats, and the number of its noise's scale.
    event : SmoothGaussianEvent
    budget : PrivacyBudget
        What was paid for knowing it, beside what the run itself cost.
    unit, neighbours : str
    composition : dict
        The ledger that paid, as a certificate states it.

    Examples
    --------
    >>> votes = sb.VoteCounts.from_counts([[240, 10]] * 200)
    >>> run = sb.GaussianAggregator(40.0, n_queries=200, n_teachers=250, delta=1e-6)
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=budget)
    >>> told = sb.door.publish_vote_loss(votes, run, ledger, order=10.0, budget=budget)
    >>> told.order, told.spread > 0, "no promise" in told.words()
    (10.0, True, True)
    """

    terms: dict[str, Any]
    outcome: int
    scale_number: int
    event: SmoothGaussianEvent
    budget: PrivacyBudget
    unit: str
    neighbours: str
    composition: dict[str, Any]

    @property
    def order(self) -> float:
        """Order of the divergence."""
        return float(self.terms["order"])

    @property
    def value(self) -> float:
        """The noisy divergence, in nats; it may be negative."""
        return self.outcome / UNITS_PER_NAT

    @property
    def spread(self) -> float:
        """Standard deviation of that noise, in nats: itself a noisy number, within some ten per
        cent to a third."""
        # so much noise on the number that no float holds the scale says nothing but that
        log_scale = min(self.scale_number * LOG_STEP, _LARGEST_LOG)
        return self.event.noise_ratio * math.exp(log_scale) / UNITS_PER_NAT

    def epsilon_at(self, delta: float, deviations: float = 0.0) -> float:
        """Return the epsilon that the divergence would give at a delta; `deviations` of the spread
        are added first.

        Raises
        ------
        ParameterError
            If `delta` is not in (0, 1).
        """
        # Canonne, Kamath, Steinke 2020, Proposition 12
        a, target = self.order, check_probability("delta", delta)
        spare = (a * math.log1p(-1 / a) - math.log(a - 1) - math.log(target)) / (a - 1)
        return self.value + deviations * self.spread + spare

    def words(self) -> str:
        """Return what may be told of it, in one paragraph."""
        return (
            f"By its votes, the run had a Renyi divergence of order {self.order:g} of about"
            f" {self.value:.3g} nats, give or take {self.spread:.2g}, from these votes to any"
            f" neighbour's. That number was itself published with noise, at epsilon"
            f" {self.budget.epsilon:g} and delta {self.budget.delta:g} beside the run's own price."
            " It is no promise: it is about these votes alone, in one direction, at one order. The"
            " promise is the price on the certificate, which holds for any votes."
        )


def publish_vote_loss(
    counts: VoteCounts,
    aggregator: Aggregator,
    ledger: Ledger,
    *,
    order: float,
    budget: PrivacyBudget,
    steps: int = 20,
    scale_sigma: float | None = None,
    request: str | None = None,
    purpose: str = "",
    declaration: Mapping[str, object] | None = None,
) -> PublishedLoss:
    """Publish, with noise, what a run of Gaussian labels lost by its votes.

    Parameters
    ----------
    counts : VoteCounts
        Votes on the queries of the run, of shape (n_queries, n_classes), all of them and no other,
        fixed beforehand; secret.
    aggregator : GaussianAggregator
        Which answered them with labels alone.
    ledger : Ledger
        Account of the private dataset, which pays for this beside the run.
    order : float
        Of the Renyi divergence, above 1; chosen before the votes are looked at.
    budget : PrivacyBudget
        What the publication may cost, with delta above 0.
    steps : int
        How far the noise's scale moves at most when one unit changes, in thousandths of its
        logarithm: more of them follow the votes better and need more noise.
    scale_sigma : float, optional
        Noise on the number of the scale; by default 20 times `steps`.
    request, purpose, declaration
        As for `secretballot.release`.

    Returns
    -------
    PublishedLoss

    Raises
    ------
    ParameterError
        If the aggregator is another one, the votes do not fit it, or no noise fits the budget.
    BudgetError, LedgerError, SamplerError
        As for `secretballot.release`; nothing was spent.

    Privacy
    -------
    Unit, relation : as declared; one teacher's votes at all queries.
    Sensitivity : the noise's scale is at least `noise_ratio` times what one unit can move the value
        by, at these votes and at any neighbour's, and moves by at most `steps` thousandths.
    Price : one `SmoothGaussianEvent`.
    Source : Papernot et al. 2018, arXiv:1802.08908, appendix B, for the idea; proved for what is
        drawn in docs/explanation/prices.md, section 17.
    Rounding : upward.
    """
    purchase.check_types(aggregator, ledger, counts)
    purchase.check_counts(counts)
    check_instance("budget", budget, PrivacyBudget)
    declaration = purchase.declaration_of(counts, declaration)
    declared = check_declaration(declaration)
    if not isinstance(aggregator, GaussianAggregator):
        raise ParameterError(
            Parameter("aggregator"),
            f" is {aggregator.name}, and what is told here is proved for Gaussian labels alone:"
            " which queries pass a threshold follows from the votes, and no fixed order bounds"
            " that. The aggregator's own price holds for any votes. Nothing was spent.",
        )
    # public numbers alone decide what is refused
    loss = VoteLoss(aggregator, counts.n_teachers, order, steps)
    if counts.n_classes != aggregator.n_classes or counts.n_queries > aggregator.n_queries:
        raise ParameterError(
            f"The votes are on {counts.n_queries} queries of {counts.n_classes} classes, and the"
            f" aggregator is for {aggregator.n_queries} of {aggregator.n_classes}; give those that"
            " it answered. Nothing was spent."
        )
    event = calibrate_smooth_gaussian(
        budget, steps, 20.0 * steps if scale_sigma is None else scale_sigma
    )
    largest = loss.largest_scale_number(event.noise_ratio, counts.n_queries)
    if not math.log(event.noise_ratio) + largest * LOG_STEP < math.log(MAX_SCALE):
        raise ParameterError(
            "The noise would be larger than can be drawn; take fewer steps, a larger budget or a"
            " smaller order. Nothing was spent."
        )
    terms = {
        "name": _NAME,
        "aggregator": aggregator.describe(),
        "n_queries": counts.n_queries,
        "n_teachers": counts.n_teachers,
        "order": loss.order,
        "event": event.to_json(),
        "budget": budget.to_json(),
    }
    key = uuid.uuid4().hex if request is None else request
    unit, neighbours = str(declared["unit"]), str(declared["neighbours"])
    stored = ledger.released(key)
    if stored is not None:
        return _same_question(stored, terms, unit, neighbours, key)
    ledger.check_promise(unit, neighbours)
    purchase.check_sample(None, declaration, key)
    purchase.priced((event,), budget)
    # before the purchase: an installation that cannot draw must cost nothing
    noise = purchase.exact_noise()

    def told(outcome: int, scale_number: int, reservation: int) -> PublishedLoss:
        composition = purchase.composition_of(ledger, reservation)
        return PublishedLoss(
            terms, outcome, scale_number, event, budget, unit, neighbours, composition
        )

    room = purchase.room_for(_stored_fields(told(_WIDEST, _WIDEST, 0)))
    reason = purpose or "what the run lost by its votes"
    with signals_held_back():  # an end between purchase and outcome costs the budget for nothing
        reservation = purchase.reserve(
            ledger, (event,), budget, None, request=key, purpose=reason, room=room
        )
        try:
            published = told(*_noisy_numbers(loss, event, counts, noise), reservation)
            ledger.commit(reservation, purchase.encoded(_stored_fields(published), room))
        except BaseException:
            # the noise may have been drawn: the reservation stays spent, whatever went wrong
            with contextlib.suppress(LedgerError):
                ledger.forfeit(reservation, "The draw ended before it was committed.")
            raise
    return published


def _noisy_numbers(
    loss: VoteLoss, event: SmoothGaussianEvent, counts: VoteCounts, noise: ExactNoise
) -> tuple[int, int]:
    """Return the noisy value, and the noisy number of its scale."""
    positions = loss.positions(counts.open_at_the_door())
    number = loss.scale_number(positions, event.noise_ratio)
    sigma = event.noise_ratio * math.exp(number * LOG_STEP)
    value = loss.value(positions) + int(noise.discrete_gaussian(sigma, 1)[0])
    return value, number + int(noise.discrete_gaussian(event.scale_sigma, 1)[0])


def _stored_fields(published: PublishedLoss) -> dict[str, Any]:
    return {name: getattr(published, name) for name in _STORED}


def _same_question(
    content: bytes, terms: Mapping[str, Any], unit: str, neighbours: str, request: str
) -> PublishedLoss:
    """Return the stored answer if it answers this very question."""
    stored = json.loads(content)
    asked = json.loads(json.dumps(dict(terms)))
    same = isinstance(stored, dict) and set(stored) == set(_STORED) and stored["terms"] == asked
    if not (same and (stored["unit"], stored["neighbours"]) == (unit, neighbours)):
        raise ParameterError(
            f"The request {request!r} was answered before, with another question; ask the same"
            " again, or use a new request."
        )
    event, budget = event_from_json(asked["event"]), PrivacyBudget(**asked["budget"])
    assert isinstance(event, SmoothGaussianEvent)
    return PublishedLoss(event=event, budget=budget, **stored)
