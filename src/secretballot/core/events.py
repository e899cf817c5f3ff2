"""Events: what was drawn, in the public parameters of the mechanism that drew it, and its price.

Every event speaks about one teacher's change of vote (see `core.partition` for why one unit touches
one teacher), or about one unit's change of a sum. An event states four things of its outcome: its
exact pure loss, a distribution of privacy losses that dominates it, bounds on its Renyi
divergences, and the probability that falls outside these.

Proofs: `docs/explanation/prices.md`.
"""

import functools
import math
from abc import ABC, abstractmethod
from fractions import Fraction
from typing import Annotated, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, TypeAdapter, model_validator

from secretballot.core import class_games, label_games, sampling, streams
from secretballot.core.errors import ParameterError
from secretballot.core.label_games import Chances, GaussianChances, TableChances
from secretballot.core.losses import (
    FARTHEST,
    FLAT_SIGMA,
    TAIL,
    Losses,
    Profile,
    count_losses,
    one_of_many,
    response_losses,
)
from secretballot.core.renyi import ORDERS, delta_of, response
from secretballot.core.types import (
    Count,
    FloatArray,
    Loss,
    Model,
    Scale,
    Squared,
    Threshold,
    model_in,
)

#: Orders of a table: below, a divergence bounds next to nothing; above, no promise needs them.
MIN_ORDER, MAX_ORDER = 1 + 2.0**-10, 2.0**13
MIN_CHARGE, MAX_CHARGE = 2.0**-44, 64.0  # for one abstention, of the moment of that order
# chance of an answer at a tie; weights of 62 bits keep two digits of the smallest
MIN_ANSWER, MAX_ANSWER = 2.0**-56, 0.5
TableOrder = Annotated[float, Field(ge=MIN_ORDER, le=MAX_ORDER, strict=True)]
TableCharge = Annotated[float, Field(ge=MIN_CHARGE, le=MAX_CHARGE, strict=True)]
FalseAnswer = Annotated[float, Field(ge=MIN_ANSWER, le=MAX_ANSWER, strict=True)]
# nats; outside, a relabelling is a random one or the best one itself
MIN_RELABEL, MAX_RELABEL = 2.0**-20, 100.0
MOST_STAGES = 10_000  # of one event; bounds what a certificate makes a reader compute
#: Variance of the random rounding that makes continuous noise discrete.
ROUNDING_VARIANCE = 4.0
#: How far the sum of exp(-(k - y)^2 / 8) over the integers k may be from its integral, relatively:
#: 2 sum over m of exp(-2 pi^2 4 m^2), rounded up.
SUM_ERROR = 2.1 * math.exp(-2 * math.pi**2 * ROUNDING_VARIANCE)
FEW_ORDERS = 8  # at which the divergences of labels of more than two classes are searched


class Event(Model, ABC):
    """Base of all events."""

    kind: str
    #: Name of the field by which equal events add up, if any.
    counted: ClassVar[str] = ""

    @property
    def times(self) -> int:
        """How often the same step was taken."""
        return int(getattr(self, self.counted)) if self.counted else 1

    def repeated(self, times: int) -> "Event":
        """Return the event with another number of equal steps."""
        return self.model_copy(update={self.counted: times})

    def parts(self) -> tuple["Event", ...]:
        """Return the events that this one is composed of."""
        return (self,)

    def pure(self) -> Fraction | None:
        """Return a pure privacy loss that holds but for the failure; None if there is none."""
        return None

    @abstractmethod
    def losses(self) -> Losses:
        """Return losses that dominate the event's outcome."""

    def charged_losses(self) -> Losses:
        """Return losses by a second bound, that of the divergences, where it is another one."""
        return cached_losses(self)

    @abstractmethod
    def renyi(self, orders: FloatArray) -> FloatArray:
        """Return bounds on the Renyi divergences of some orders, its failures set aside."""

    def failure(self) -> float:
        """Return the probability that falls outside every divergence bound."""
        return 0.0

    def work(self) -> float:
        """Return about how many multiplications the losses take; 0 where it is next to nothing."""
        return 0.0

    def renyi_work(self) -> float:
        """Return about how many numbers the divergences take; 0 where they are few."""
        return 0.0

    def rough(self) -> "Event":
        """Return an event that costs at least as much and takes next to no work."""
        return self


class Counts(Event):
    """Integers released with discrete Gaussian noise, each moved by at most one."""

    kind: Literal["counts"] = "counts"
    sigma: Scale
    shifts: Count
    counted: ClassVar[str] = "shifts"

    def losses(self) -> Losses:
        return count_losses(self.sigma, self.shifts)

    def renyi(self, orders: FloatArray) -> FloatArray:
        return orders * (self.shifts / (2 * self.sigma**2))


class VectorSum(Event):
    """Sums of bounded integer vectors with discrete Gaussian noise on each coordinate.

    `squared_sensitivity` is the largest squared L2 distance of two neighbouring sums; there are
    `count` sums for each of the `sigmas`, adaptively chosen.

    Privacy
    -------
    Unit, relation, sensitivity : those of the squared distance.
    Source : Peikert 2010, Theorem 3.1 (rounding), and Dong, Roth, Su 2019, Corollary 3.3
        (composition); docs/explanation/prices.md, section 10. Canonne, Kamath, Steinke 2020,
        Theorem 14, for the divergences.
    Rounding : upward.
    """

    kind: Literal["vector-sum"] = "vector-sum"
    sigmas: Annotated[tuple[Scale, ...], Field(min_length=1, max_length=MOST_STAGES)]
    squared_sensitivity: Squared
    coordinates: Count
    count: Count = 1
    counted: ClassVar[str] = "count"

    def losses(self) -> Losses:
        if not min(self.sigmas) >= FLAT_SIGMA:
            return _renyi_losses(self)
        squared_mu = self.count * math.fsum(
            self.squared_sensitivity / (sigma**2 - ROUNDING_VARIANCE) for sigma in self.sigmas
        )
        # (1 + e)^D at most 1 + 2 e D, and D log((1 + e) / (1 - 2 e)) at most 4 e D
        error = SUM_ERROR * self.coordinates * self.count * len(self.sigmas)
        line = Losses.of_gaussian(math.sqrt(squared_mu) * (1 + 1e-14), 4 * error)
        return Losses(line.h, line.first, line.chance * (1 + 2 * error), line.certain)

    def renyi(self, orders: FloatArray) -> FloatArray:
        each = math.fsum(self.squared_sensitivity / (2 * sigma**2) for sigma in self.sigmas)
        return orders * (self.count * each)


class BinaryLabels(Event):
    """Labels of two classes released alone, adaptively chosen."""

    kind: Literal["binary-labels"] = "binary-labels"
    chances: Chances
    queries: Count
    counted: ClassVar[str] = "queries"

    def losses(self) -> Losses:
        block = label_games.label_block(self.chances, self.queries)
        if block is None:
            return self.rough().losses()
        return label_games.label_losses(self.chances, self.queries, block)

    def pure(self) -> Fraction | None:
        if isinstance(self.chances, TableChances):
            return self.queries * Fraction(label_games.largest_loss(self.chances))
        return None

    def renyi(self, orders: FloatArray) -> FloatArray:
        each = label_games.label_renyi(self.chances, orders)
        return np.minimum(self.queries * each, self.rough().renyi(orders))

    def work(self) -> float:
        block = label_games.label_block(self.chances, self.queries)
        return 0.0 if block is None else label_games.game_work(self.chances, block)

    def renyi_work(self) -> float:
        return label_games.renyi_work(self.chances)

    def rough(self) -> Event:
        if isinstance(self.chances, TableChances):
            loss = label_games.largest_loss(self.chances)
            return Pure.model_construct(epsilon=loss, count=self.queries)
        return Counts.model_construct(sigma=self.chances.sigma, shifts=self.queries)


class ClassLabels(Event):
    """Labels of more than two classes released alone: the class with the most votes after discrete
    Gaussian noise on each. The number of classes enters no price."""

    kind: Literal["class-labels"] = "class-labels"
    sigma: Scale
    queries: Count
    counted: ClassVar[str] = "queries"

    def losses(self) -> Losses:
        block = class_games.class_block(self.sigma, self.queries)
        found = None
        if block is not None:
            found = class_games.class_losses(self.sigma, self.queries, block)
        return self.rough().losses() if found is None else found

    def renyi(self, orders: FloatArray) -> FloatArray:
        found = self.rough().renyi(orders)
        if len(orders) > FEW_ORDERS:
            return found
        return np.minimum(found, self.queries * class_games.class_renyi(self.sigma, orders))

    def work(self) -> float:
        block = class_games.class_block(self.sigma, self.queries)
        return 0.0 if block is None else class_games.class_work(self.sigma, block)

    def renyi_work(self) -> float:
        return class_games.class_renyi_work(self.sigma)

    def rough(self) -> Event:
        return Counts.model_construct(sigma=self.sigma, shifts=2 * self.queries)


class Confident(Event):
    """Queries that a noisy threshold lets pass or refuses; those that pass get a noisy label.

    A query is refused or answered given all earlier answers, and each kind of answer
    has a number fixed beforehand: an adaptive composition like any other.
    """

    kind: Literal["confident"] = "confident"
    threshold_sigma: Scale
    sigma: Scale
    queries: Count
    answers: Count
    n_classes: Annotated[int, Field(ge=2, le=10**12, strict=True)]

    @model_validator(mode="after")
    def _check_answers(self) -> Self:
        if not self.answers <= self.queries:
            raise ParameterError("No more queries are answered than are asked.")
        return self

    def parts(self) -> tuple[Event, ...]:
        threshold = GaussianChances(sigma=self.threshold_sigma)
        asked = BinaryLabels(chances=threshold, queries=self.queries)
        if self.n_classes > 2:
            return asked, ClassLabels(sigma=self.sigma, queries=self.answers)
        labels = GaussianChances(sigma=self.sigma)
        return asked, BinaryLabels(chances=labels, queries=self.answers)

    def losses(self) -> Losses:
        asked, labels = self.parts()
        return asked.losses() + labels.losses()

    def renyi(self, orders: FloatArray) -> FloatArray:
        asked, labels = self.parts()
        return asked.renyi(orders) + labels.renyi(orders)


class _Parts(Event):
    """Parts that are epsilon-DP each, adaptively composed."""

    epsilon: Loss
    count: Count
    counted: ClassVar[str] = "count"

    def pure(self) -> Fraction:
        return self.count * Fraction(self.epsilon)

    def losses(self) -> Losses:
        return response_losses(self.epsilon, self.count)

    def renyi(self, orders: FloatArray) -> FloatArray:
        return self.count * response(self.epsilon, orders)


class Pure(_Parts):
    """Parts of which nothing more is known."""

    kind: Literal["pure"] = "pure"


class BoundedRange(_Parts):
    """Draws whose privacy loss lies in an interval of length epsilon, which holds 0: those of the
    exponential mechanism (prices.md, section 16)."""

    kind: Literal["bounded-range"] = "bounded-range"

    def charged_losses(self) -> Losses:
        return _renyi_losses(self)

    def renyi(self, orders: FloatArray) -> FloatArray:
        ranged = orders * (self.epsilon**2 / 8)
        return self.count * np.minimum(ranged, response(self.epsilon, orders))


class StableTests(Event):
    """Distance-to-instability tests: the value itself where distance + discrete Laplace noise >
    threshold."""

    kind: Literal["stable-tests"] = "stable-tests"
    scale: Scale
    threshold: Threshold
    count: Count
    counted: ClassVar[str] = "count"

    def pure(self) -> Fraction:
        return self.count / Fraction(self.scale)

    def losses(self) -> Losses:
        return response_losses(1 / self.scale, self.count, self.failure())

    def renyi(self, orders: FloatArray) -> FloatArray:
        return self.count * response(1 / self.scale, orders)

    def failure(self) -> float:
        return one_of_many(streams.laplace_above(self.threshold, self.scale), self.count)


class SparseStream(Event):
    """A stream of such tests under the sparse vector, stopped at the last of its abstentions.

    With `refresh` the threshold's noise is drawn anew after each abstention, else once.
    """

    kind: Literal["sparse-stream"] = "sparse-stream"
    threshold_scale: Scale
    query_scale: Scale
    threshold: Threshold
    abstentions: Count
    refresh: Annotated[bool, Field(strict=True)]

    def pure(self) -> Fraction:
        once = 1 / Fraction(self.threshold_scale)
        each = 2 / Fraction(self.query_scale)
        if self.refresh:
            return self.abstentions * (once + each)
        return once + self.abstentions * each

    def losses(self) -> Losses:
        if self.refresh:
            return response_losses(streams.epoch_loss(self), self.abstentions, self.failure())
        return response_losses(streams.pure_bound(self, self.abstentions), 1, self.failure())

    def charged_losses(self) -> Losses:
        return _renyi_losses(self, self._charges(ORDERS))

    def renyi(self, orders: FloatArray) -> FloatArray:
        if self.refresh:
            parts = self.abstentions * response(streams.epoch_loss(self), orders)
        else:
            parts = response(streams.pure_bound(self, self.abstentions), orders)
        return np.minimum(parts, self._charges(orders))

    def _charges(self, orders: FloatArray) -> FloatArray:
        """Return the bounds that charge each abstention."""
        one_vote = streams.one_vote_charges(self, self.abstentions, orders)
        if self.refresh:
            return one_vote
        return np.minimum(one_vote, streams.hit_charges(self, self.abstentions, orders))

    def failure(self) -> float:
        return one_of_many(streams.false_answer(self), self.abstentions)


class TableStream(Event):
    """A stream of exact pluralities, released or withheld by a table of chances that keeps two
    inequalities of one order (prices.md, section 14), stopped at the last of its abstentions.

    Every table that keeps them, and answers at a tie with a chance of at most `false_answer`, has
    the same price.
    """

    kind: Literal["table-stream"] = "table-stream"
    order: TableOrder
    charge: TableCharge
    false_answer: FalseAnswer
    abstentions: Count

    def losses(self) -> Losses:
        return _renyi_losses(self)

    def renyi(self, orders: FloatArray) -> FloatArray:
        # divergences grow with the order; above the table's own nothing is known
        whole = self.abstentions * self.charge / (self.order - 1)
        return np.where(orders <= self.order, whole, np.inf)

    def failure(self) -> float:
        return one_of_many(self.false_answer, self.abstentions)


#: Streams that stop at the last of their abstentions.
Stream = SparseStream | TableStream


class Sampled(Event):
    """A stream asked of teachers that learned from a secret random sample of the records,
    relabelled. The sample is drawn for this stream alone and never released."""

    kind: Literal["sampled"] = "sampled"
    stream: Annotated[Stream, Field(discriminator="kind")]
    sampled: Count
    out_of: Count
    relation: Literal["add-remove", "replace-one"]
    relabel_epsilon: Annotated[float, Field(ge=MIN_RELABEL, le=MAX_RELABEL, strict=True)]

    @model_validator(mode="after")
    def _check_sample(self) -> Self:
        if not self.sampled <= self.out_of:
            raise ParameterError("A sample holds at most all records.")
        return self

    @property
    def rate(self) -> float:
        """Probability that one record is in the sample."""
        return self.sampled / self.out_of

    @property
    def loss(self) -> float:
        """How far apart the log-ratios of two labellings can lie, in nats."""
        return sampling.relabelling_loss(self.relation, self.relabel_epsilon)

    def pure(self) -> Fraction | None:
        # at this epsilon relabelling and sampling leave the stream no more than its failure
        inner = self.stream.pure()
        if inner is None or not inner < sampling.LARGE:
            return None
        whole = float(inner) * (1 + sampling.SLACK) + self.loss
        return Fraction(math.log1p(self.rate * math.expm1(whole)) * (1 + sampling.SLACK))

    def losses(self) -> Losses:
        stream = self.stream
        by_charges, reach = _renyi_profile(stream)
        if isinstance(stream, TableStream):
            return sampling.sampled_losses(by_charges, reach, self.rate, self.loss)
        parts = cached_losses(stream)

        def profile(at: FloatArray) -> FloatArray:
            return np.minimum(parts.delta(at), by_charges(at))

        return sampling.sampled_losses(profile, max(parts.top, parts.h), self.rate, self.loss)

    def renyi(self, orders: FloatArray) -> FloatArray:
        # of the whole sample: divergences are quasi-convex, so drawing a part of it never adds
        return response(self.loss, orders) + self.stream.renyi(orders)

    def failure(self) -> float:
        return self.rate * self.stream.failure()


AnyEvent = Annotated[
    Counts
    | VectorSum
    | BinaryLabels
    | ClassLabels
    | Confident
    | Pure
    | BoundedRange
    | StableTests
    | SparseStream
    | TableStream
    | Sampled,
    Field(discriminator="kind"),
]
_ANY: TypeAdapter[Event] = TypeAdapter(AnyEvent)


def event_in(content: object) -> Event:
    """Return the event of a JSON object that `Event.model_dump` gave.

    Raises
    ------
    ParameterError
        If the kind is unknown, or a parameter is missing, extra, of another type or out of range.
    """
    return model_in(_ANY, content, "An event")


def _renyi_profile(event: Event, charges: FloatArray | None = None) -> tuple[Profile, float]:
    """Return the profile that an event's divergences and failures give, and an epsilon from which
    on it is hardly more than the failures."""
    own = [event.order] if isinstance(event, TableStream) else []
    orders, failure = np.append(ORDERS, own), event.failure()
    divergences = event.renyi(orders) if charges is None else charges
    held = np.isfinite(divergences)
    orders, divergences = orders[held], divergences[held]
    if not len(orders):
        return np.ones_like, 1.0

    def delta(at: FloatArray) -> FloatArray:
        return np.minimum(1.0, delta_of(divergences, orders, at) + failure)

    # where the best order leaves no more than a tail
    reach = float((divergences - math.log(TAIL) / (orders - 1)).min())
    return delta, min(FARTHEST, max(reach, 2.0**-40))


def _renyi_losses(event: Event, charges: FloatArray | None = None) -> Losses:
    profile, reach = _renyi_profile(event, charges)

    def delta(at: FloatArray) -> FloatArray:
        bound = profile(at)
        # near 0 the bound at -epsilon is smaller: neighbours have no order
        near = at <= 1.0
        back = np.exp(at[near]) * profile(-at[near]) - np.expm1(at[near])
        bound[near] = np.minimum(bound[near], back)
        return bound

    return Losses.of_profile(delta, reach)


@functools.lru_cache(maxsize=1024)
def cached_losses(event: Event) -> Losses:
    """Return `event.losses()`, computed once."""
    return event.losses()


@functools.lru_cache(maxsize=1024)
def charged_losses(event: Event) -> Losses:
    """Return `event.charged_losses()`, computed once."""
    return event.charged_losses()


@functools.lru_cache(maxsize=1024)
def cached_renyi(event: Event) -> FloatArray:
    """Return `event.renyi(ORDERS)`, computed once."""
    return event.renyi(ORDERS)
