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
from secretballot.core.errors import ParameterError, Relation
from secretballot.core.label_games import Chances, GaussianChances, TableChances
from secretballot.core.losses import (
    FARTHEST,
    FLAT_SIGMA,
    ORDERS,
    TAIL,
    Losses,
    Profile,
    count_losses,
    delta_of,
    fold,
    least_losses,
    one_of_many,
    response,
    response_losses,
)
from secretballot.core.types import (
    Count,
    FloatArray,
    Loss,
    Model,
    Relabel,
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
_MOST_STAGES = 10_000  # of one event; bounds what a certificate makes a reader compute
_TAIL_OF_FAILURE = 1e-6  # of the failure, which a profile need not tell apart
#: Variance of the random rounding that makes continuous noise discrete.
_ROUNDING_VARIANCE = 4.0
#: How far the sum of exp(-(k - y)^2 / 8) over the integers k may be from its integral, relatively:
#: 2 sum over m of exp(-2 pi^2 4 m^2), rounded up.
_SUM_ERROR = 2.1 * math.exp(-2 * math.pi**2 * _ROUNDING_VARIANCE)


class Event(Model, ABC):
    """Base of all events.

    Examples
    --------
    >>> from secretballot import accounting
    >>> event = accounting.Pure(epsilon=0.5, count=2)
    >>> event.model_dump()
    {'kind': 'pure', 'epsilon': 0.5, 'count': 2}
    >>> accounting.event_in(event.model_dump()) == event
    True
    """

    kind: str
    #: Name of the field by which equal events add up, if any.
    counted: ClassVar[str] = ""

    def repeated(self, times: int) -> "Event":
        """Return the event with another number of equal steps."""
        return self.model_copy(update={self.counted: times})

    def parts(self) -> tuple["Event", ...]:
        """Return the events that this one is composed of."""
        return (self,)

    def priced(self) -> tuple["Event", ...]:
        """Return what stands for this event in a list: its parts where it costs no less whole."""
        return self.parts()

    def pure(self) -> Fraction | float:
        """Return a pure privacy loss that holds but for the failure; infinite if there is none."""
        return math.inf

    def losses(self) -> Losses:
        """Return losses that dominate the event's outcome."""
        return Losses.of_profile(*cached_profile(self))

    def profile(self) -> tuple[Profile, float]:
        """Return bounds on delta at each epsilon, and an epsilon from which on they are hardly more
        than the failure; by default those that divergences give."""
        orders, failure = np.append(ORDERS, self.own_orders()), self.failure()
        divergences = self.renyi(orders)
        held = np.isfinite(divergences)
        orders, divergences = orders[held], divergences[held]

        def delta(at: FloatArray) -> FloatArray:
            return np.minimum(1.0, delta_of(divergences, orders, at) + failure)

        # where the best order leaves no more than a tail, or than a share of what fails anyhow
        tail = max(TAIL, _TAIL_OF_FAILURE * failure)
        reach = float((divergences - math.log(tail) / (orders - 1)).min())
        return delta, min(FARTHEST, max(reach, 2.0**-40))

    def own_orders(self) -> list[float]:
        """Return orders at which divergences are known best, beside those of the grid."""
        return []

    @abstractmethod
    def renyi(self, orders: FloatArray) -> FloatArray:
        """Return bounds on the Renyi divergences of some orders, its failures set aside."""

    def failure(self) -> float:
        """Return the probability that falls outside every divergence bound."""
        return 0.0


class Counts(Event):
    """Integers released with discrete Gaussian noise, each moved by at most one.

    Attributes
    ----------
    sigma : float
        Scale of the discrete Gaussian, P(x) proportional to exp(-x^2 / (2 sigma^2)), in votes.
    shifts : int
        Number of released integers that one teacher can move: one per binary query, two per
        histogram of more than two classes.

    Examples
    --------
    >>> from secretballot import accounting
    >>> accounting.delta_upper([accounting.Counts(sigma=40.0, shifts=100)], 1.0) < 1e-3
    True
    """

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

    Attributes
    ----------
    sigmas : sequence of float
        Scales of the noise on each coordinate, in units of the grid.
    squared_sensitivity : int
        Largest squared L2 distance of two neighbouring sums, in units of the grid: b where each
        unit's vector has a squared norm of at most b and a unit comes or goes, 4 b where one is
        replaced.
    coordinates : int
        Number of integers in one sum.
    count : int
        Number of sums for each of the scales, adaptively chosen.

    Privacy
    -------
    Unit, relation, sensitivity : those of the squared distance.
    Source : Peikert 2010, Theorem 3.1 (rounding), and Dong, Roth, Su 2019, Corollary 3.3
        (composition); docs/explanation/prices.md, section 10. Canonne, Kamath, Steinke 2020,
        Theorem 14, for the divergences.
    Rounding : upward.

    Examples
    --------
    >>> from secretballot import accounting
    >>> event = accounting.VectorSum(sigmas=[80.0], squared_sensitivity=4, coordinates=10)
    >>> accounting.delta_upper([event], 1.0) < 1e-6
    True
    """

    kind: Literal["vector-sum"] = "vector-sum"
    sigmas: Annotated[tuple[Scale, ...], Field(min_length=1, max_length=_MOST_STAGES)]
    squared_sensitivity: Squared
    coordinates: Count
    count: Count = 1
    counted: ClassVar[str] = "count"

    def losses(self) -> Losses:
        if not min(self.sigmas) >= FLAT_SIGMA:
            return super().losses()
        squared_mu = self.count * math.fsum(
            self.squared_sensitivity / (sigma**2 - _ROUNDING_VARIANCE) for sigma in self.sigmas
        )
        # (1 + e)^D at most 1 + 2 e D, and D log((1 + e) / (1 - 2 e)) at most 4 e D
        error = _SUM_ERROR * self.coordinates * self.count * len(self.sigmas)
        line = Losses.of_gaussian(math.sqrt(squared_mu) * (1 + 1e-14), 4 * error)
        return Losses(line.h, line.first, line.chance * (1 + 2 * error), line.certain)

    def renyi(self, orders: FloatArray) -> FloatArray:
        each = math.fsum(self.squared_sensitivity / (2 * sigma**2) for sigma in self.sigmas)
        return orders * (self.count * each)


class BinaryLabels(Event):
    """Labels of two classes released alone, adaptively chosen.

    Attributes
    ----------
    chances : GaussianChances or TableChances
        How each label is drawn from the votes.
    queries : int
        Number of labels.

    Examples
    --------
    >>> from secretballot import accounting
    >>> chances = accounting.GaussianChances(sigma=40.0)
    >>> labels = accounting.BinaryLabels(chances=chances, queries=20)
    >>> counts = accounting.Counts(sigma=40.0, shifts=20)
    >>> accounting.delta_upper([labels], 1.0) < accounting.delta_upper([counts], 1.0)
    True
    """

    kind: Literal["binary-labels"] = "binary-labels"
    chances: Chances
    queries: Count
    counted: ClassVar[str] = "queries"

    def losses(self) -> Losses:
        block = label_games.label_block(self.chances, self.queries)
        if block is None:
            return self.rough().losses()
        return label_games.label_losses(self.chances, self.queries, block)

    def pure(self) -> Fraction | float:
        return self.rough().pure()

    def renyi(self, orders: FloatArray) -> FloatArray:
        each = label_games.label_renyi(self.chances, tuple(orders.tolist()))
        return np.minimum(self.queries * each, self.rough().renyi(orders))

    def rough(self) -> Event:
        """Return an event that costs at least as much and takes next to no work."""
        if isinstance(self.chances, TableChances):
            loss = label_games.largest_loss(self.chances)
            return Pure.model_construct(epsilon=loss, count=self.queries)
        return Counts.model_construct(sigma=self.chances.sigma, shifts=self.queries)


class ClassLabels(Event):
    """Labels of more than two classes released alone: the class with the most votes after discrete
    Gaussian noise on each.

    Attributes
    ----------
    sigma : float
        Scale of the noise on every class's count, in votes.
    queries : int
        Number of labels, adaptively asked. The number of classes enters no price.

    Examples
    --------
    >>> from secretballot import accounting
    >>> labels = accounting.ClassLabels(sigma=40.0, queries=60)
    >>> counts = accounting.Counts(sigma=40.0, shifts=120)
    >>> accounting.delta_upper([labels], 1.0) < accounting.delta_upper([counts], 1.0)
    True
    """

    kind: Literal["class-labels"] = "class-labels"
    sigma: Scale
    queries: Count
    counted: ClassVar[str] = "queries"

    def losses(self) -> Losses:
        block = class_games.class_block(self.sigma, self.queries)
        found = None if block is None else class_games.class_losses(self.sigma, self.queries, block)
        return self.rough().losses() if found is None else found

    def renyi(self, orders: FloatArray) -> FloatArray:
        each = class_games.class_renyi(self.sigma, tuple(orders.tolist()))
        return np.minimum(self.queries * each, self.rough().renyi(orders))

    def rough(self) -> Event:
        """Return the noisy counts that the labels are read off."""
        return Counts.model_construct(sigma=self.sigma, shifts=2 * self.queries)


class Confident(Event):
    """Queries that a noisy threshold lets pass or refuses; those that pass get a noisy label.

    A query is refused or answered given all earlier answers, and each kind of answer has a number
    fixed beforehand: an adaptive composition of its `parts`. Of two classes a query is a step of a
    game by itself as well, which is cheaper where a threshold keeps uncertain labels back.

    Attributes
    ----------
    threshold_sigma, sigma : float
        Scales of the noise on the highest count, and on the counts that a label is read off, in
        votes.
    queries, answers : int
        Most queries that are asked, and most of them that are answered.
    n_classes : int
    threshold, n_teachers : int, optional
        Votes that the highest count must reach, of how many; predictions may only lower it.

    Examples
    --------
    >>> from secretballot import accounting
    >>> noise = {"threshold_sigma": 150.0, "sigma": 40.0}
    >>> event = accounting.Confident(**noise, queries=640, answers=286, n_classes=10)
    >>> accounting.epsilon_upper([event], 1e-5) < 2.4
    True
    """

    kind: Literal["confident"] = "confident"
    threshold_sigma: Scale
    sigma: Scale
    queries: Count
    answers: Count
    n_classes: Annotated[int, Field(ge=2, le=10**12, strict=True)]
    threshold: Count | None = None
    n_teachers: Count | None = None

    @model_validator(mode="after")
    def _check_answers(self) -> Self:
        if not self.answers <= self.queries:
            raise ParameterError("No more queries are answered than are asked.")
        if not (self.threshold or 0) <= (self.n_teachers or math.inf):
            raise ParameterError("A threshold is at most the number of teachers.")
        return self

    def parts(self) -> tuple[Event, ...]:
        threshold = GaussianChances(sigma=self.threshold_sigma)
        asked = BinaryLabels(chances=threshold, queries=self.queries)
        if self.n_classes > 2:
            return asked, ClassLabels(sigma=self.sigma, queries=self.answers)
        labels = GaussianChances(sigma=self.sigma)
        return asked, BinaryLabels(chances=labels, queries=self.answers)

    def groups(self) -> label_games.Groups:
        """Return the votes that a query may have, empty where it is no step of a game."""
        if self.n_classes > 2 or self.threshold is None or self.n_teachers is None:
            return ()
        return label_games.groups_of(
            self.threshold_sigma, self.sigma, self.threshold, self.n_teachers
        )

    def priced(self) -> tuple[Event, ...]:
        return (self,) if label_games.is_played(self.groups()) else self.parts()

    def losses(self) -> Losses:
        apart = fold((cached_losses(part), 1) for part in self.parts())
        whole = label_games.joint_losses(self.groups(), self.queries)
        return least_losses(apart, whole)

    def renyi(self, orders: FloatArray) -> FloatArray:
        asked, labels = self.parts()
        found = asked.renyi(orders) + labels.renyi(orders)
        # noise farther out than the groups reach reveals nothing at such orders
        held = orders <= 1 + 4 * min(self.threshold_sigma, self.sigma)
        if groups := self.groups():
            at = self.queries, self.answers, orders[held]
            found[held] = np.minimum(found[held], label_games.joint_renyi(groups, *at))
        return found


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
    """Parts of which nothing more is known than that each is epsilon-DP.

    Attributes
    ----------
    epsilon : float
        Pure privacy loss of one part, in nats.
    count : int
        Number of parts, adaptively chosen.

    Examples
    --------
    >>> from secretballot import accounting
    >>> accounting.delta_upper([accounting.Pure(epsilon=0.5, count=2)], 1.0)
    0.0
    """

    kind: Literal["pure"] = "pure"


class BoundedRange(_Parts):
    """Draws whose privacy loss lies in an interval of length epsilon, which holds 0: those of the
    exponential mechanism (prices.md, section 16).

    Attributes
    ----------
    epsilon : float
        Length of the interval, in nats.
    count : int
        Number of draws, adaptively chosen.

    Examples
    --------
    >>> from secretballot import accounting
    >>> draws = accounting.BoundedRange(epsilon=0.1, count=40)
    >>> parts = accounting.Pure(epsilon=0.1, count=40)
    >>> accounting.epsilon_upper([draws], 1e-6) < 0.6 * accounting.epsilon_upper([parts], 1e-6)
    True
    """

    kind: Literal["bounded-range"] = "bounded-range"

    def losses(self) -> Losses:
        return least_losses(super().losses(), Event.losses(self))

    def renyi(self, orders: FloatArray) -> FloatArray:
        ranged = orders * (self.epsilon**2 / 8)
        return self.count * np.minimum(ranged, response(self.epsilon, orders))


class StableTests(Event):
    """Distance-to-instability tests: the value itself where distance + discrete Laplace noise >
    threshold.

    Attributes
    ----------
    scale : float
        Scale of the discrete Laplace noise, P(x) proportional to exp(-|x| / scale), in votes.
    threshold : int
        In votes; at least 0.
    count : int
        Number of tests, adaptively chosen.

    Examples
    --------
    >>> from secretballot import accounting
    >>> event = accounting.StableTests(scale=4.0, threshold=60, count=1)
    >>> accounting.delta_upper([event], 0.5) < 1e-6
    True
    """

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

    Attributes
    ----------
    threshold_scale, query_scale : float
        Scales of the discrete Laplace noise on the threshold and on every query's distance, in
        votes.
    threshold : int
        Public threshold, in votes; at least 0.
    abstentions : int
        Number T of abstentions at which the stream stops.

    Examples
    --------
    >>> from secretballot import accounting
    >>> noise = {"threshold_scale": 20.0, "query_scale": 40.0, "threshold": 800}
    >>> event = accounting.SparseStream(**noise, abstentions=2)
    >>> accounting.delta_upper([event], 1.0) < 1e-6
    True
    """

    kind: Literal["sparse-stream"] = "sparse-stream"
    threshold_scale: Scale
    query_scale: Scale
    threshold: Threshold
    abstentions: Count

    def pure(self) -> Fraction:
        epoch = 1 / Fraction(self.threshold_scale) + 2 / Fraction(self.query_scale)
        return self.abstentions * epoch

    def profile(self) -> tuple[Profile, float]:
        by_charges, reach = super().profile()
        parts = response_losses(streams.epoch_loss(self), self.abstentions, self.failure())

        def delta(at: FloatArray) -> FloatArray:
            return np.minimum(parts.delta(at), by_charges(at))

        return delta, min(reach, parts.reach)

    def renyi(self, orders: FloatArray) -> FloatArray:
        parts = self.abstentions * response(streams.epoch_loss(self), orders)
        return np.minimum(parts, streams.one_vote_charges(self, self.abstentions, orders))

    def failure(self) -> float:
        return one_of_many(streams.false_answer(self), self.abstentions)


class TableStream(Event):
    """A stream of exact pluralities, released or withheld by a table of chances that keeps two
    inequalities of one order (prices.md, section 14), stopped at the last of its abstentions.

    A query whose plurality is d votes from changing is withheld with probability f(d). Between
    neighbours f = f(d), g = f(d + 1), with s = 1 - f, t = 1 - g,

        f^a g^(1-a) e^-charge + s^a t^(1-a) <= 1, and the same with f, s and g, t exchanged,

    at the order a. Every table that keeps them, and answers at d = 0 with a chance of at most
    `false_answer`, has the same price.

    Attributes
    ----------
    order : float
        Order a of the inequalities, above 1.
    charge : float
        What one abstention may add to the logarithm of the moment of that order.
    false_answer : float
        Largest chance of an answer at distance 0, where a vote decides which answer it is.
    abstentions : int
        Number T of abstentions at which the stream stops.

    Examples
    --------
    >>> from secretballot import accounting
    >>> chances = {"order": 27.0, "charge": 0.25, "false_answer": 4e-9}
    >>> event = accounting.TableStream(**chances, abstentions=50)
    >>> accounting.delta_upper([event], 1.0) < 1e-6
    True
    """

    kind: Literal["table-stream"] = "table-stream"
    order: TableOrder
    charge: TableCharge
    false_answer: FalseAnswer
    abstentions: Count

    def own_orders(self) -> list[float]:
        return [self.order]

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
    relabelled. The sample is drawn for this stream alone and never released.

    A labelling of its points is chosen with probability proportional to exp(-relabel_epsilon *
    mistakes / 2) among those that a class of hypotheses gives; one record of the relabelled sample
    reaches one teacher.

    Attributes
    ----------
    stream : SparseStream or TableStream
        What the teachers are asked by.
    sampled, out_of : int
        Under "replace-one" `sampled` of `out_of` records are drawn without replacement, in random
        order. Under "add-remove" each record is taken by itself with probability `sampled` /
        `out_of`.
    relation : {"replace-one", "add-remove"}
        That the promise is about.
    relabel_epsilon : float
        Parameter of the choice of a labelling, in nats.

    Examples
    --------
    >>> from secretballot import accounting
    >>> stream = accounting.calibrate_stream(sb.PrivacyBudget(1.0, 1e-6), 1)
    >>> drawn = {"sampled": 10, "out_of": 1000, "relation": "replace-one"}
    >>> accounting.Sampled(stream=stream, **drawn, relabel_epsilon=1.0).rate
    0.01
    """

    kind: Literal["sampled"] = "sampled"
    stream: Annotated[Stream, Field(discriminator="kind")]
    sampled: Count
    out_of: Count
    relation: Relation
    relabel_epsilon: Relabel

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

    def pure(self) -> Fraction | float:
        # at this epsilon relabelling and sampling leave the stream no more than its failure
        inner = self.stream.pure()
        if not inner < sampling.LARGE:
            return math.inf
        whole = float(inner) * (1 + sampling.SLACK) + self.loss
        return Fraction(math.log1p(self.rate * math.expm1(whole)) * (1 + sampling.SLACK))

    def profile(self) -> tuple[Profile, float]:
        return sampling.sampled_profile(*cached_profile(self.stream), self.rate, self.loss)

    def own_orders(self) -> list[float]:
        return self.stream.own_orders()

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


@functools.lru_cache(maxsize=1024)
def cached_losses(event: Event) -> Losses:
    """Return `event.losses()`, computed once."""
    return event.losses()


@functools.lru_cache(maxsize=64)
def cached_profile(event: Event) -> tuple[Profile, float]:
    """Return `event.profile()`, computed once."""
    return event.profile()
