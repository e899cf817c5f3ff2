"""Mechanisms: every noisy step as one fixed value of public numbers.

A mechanism states the container that it takes, what its whole release is to an accountant, how its
answers are drawn and how many integers they are. Its JSON is written into ledger and certificate,
and is fixed from here on. It knows noise only as an argument, and never a budget.

A stream is a fold: `draw` takes the state that the draw before it returned, and the answers to some
queries are the same whether they were drawn together or one by one. What is drawn are int64, one
row an answer, at most `LARGEST` in size.

Whose votes or sums they are is in the shape: one unit moves one vote of one teacher in each of
`moved` rows (`core.partition` says why one teacher), or as many cells, under either relation. All
comparisons are exact; prices round upward, in `core.events`.
"""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import Field, TypeAdapter

from secretballot.core import events
from secretballot.core.errors import JsonView, ParameterError
from secretballot.core.exponential import least_quotient
from secretballot.core.label_games import CHANCE_BITS, MAX_WEIGHTS, GaussianChances, TableChances
from secretballot.core.price import PrivacyBudget
from secretballot.core.streams import BITS, MAX_DISTANCE, keeps_inequalities
from secretballot.core.types import (
    LARGEST,
    BoolArray,
    Count,
    IntArray,
    Model,
    Noise,
    Scale,
    ScoreShape,
    Squared,
    SumShape,
    Threshold,
    VoteShape,
    model_in,
)

ABSTAINED = -1  # stands for the papers' bottom sign
_MAX_STAGES = 1000
#: Of one draw whose noise has the scale 1 / epsilon or 2 / epsilon, which can be drawn to 2^40.
_DrawLoss = Annotated[float, Field(ge=2.0**-39, le=1e6, allow_inf_nan=False, strict=True)]
#: Weights of an answer, of 2^62, as 16 hexadecimal digits each: JSON readers lose such integers.
_Weights = Annotated[
    str, Field(pattern="^([0-3][0-9a-f]{15})+$", max_length=16 * (MAX_DISTANCE + 1), strict=True)
]
Shape = VoteShape | SumShape | ScoreShape
_Opened = Sequence[IntArray]
_SHIFTED = 2**61  # what sums are cut to before noise is added, so that 64 bits hold both


class State(NamedTuple):
    """What the next draw depends on: how much of what it stops at is used, which is public, and a
    secret integer, for the vault alone."""

    used: int = 0
    secret: int | None = None


_Drawn = tuple[IntArray, State]


class Mechanism(Model, ABC):
    """Base of all mechanisms.

    Attributes
    ----------
    takes : type
        Shape of the container that it is drawn from.
    of_sample, of_records : bool
        Whether votes are those of teachers of a secret sample; whether records may vote.
    stops_by : str
        Field of the number of answers or abstentions after which nothing more is drawn, if any.
    """

    takes: ClassVar[type[Shape]] = VoteShape
    of_sample: ClassVar[bool] = False
    of_records: ClassVar[bool] = False

    stops_by: ClassVar[str] = ""

    @property
    def stops_at(self) -> int | None:
        """Answers, abstentions or stages after which nothing more is drawn."""
        return getattr(self, self.stops_by) if self.stops_by else None

    def event(self, shape: Shape) -> events.Event:
        """Return what the whole release is to an accountant.

        Raises
        ------
        ParameterError, pydantic.ValidationError
            If nothing of this shape can be drawn by this mechanism.
        """
        if not isinstance(shape, self.takes):
            raise ParameterError(f"{type(self).__name__} takes a {self.takes.__name__}.")
        if self.of_sample != (getattr(shape, "sample", None) is not None):
            # a record more or less changes the labels of a whole relabelled sample
            raise ParameterError("RelabelledSample prices a secret sample, and nothing else does.")
        if isinstance(shape, VoteShape) and not self.of_records:
            teachers_of(shape)
        return self._event(shape)

    def draw(self, shape: Shape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        """Draw the next answers, fewer than asked for where the mechanism stops.

        Parameters
        ----------
        shape : VoteShape, SumShape or ScoreShape
            One that `event` has accepted; `opened` may be some of its rows.
        opened : sequence of ndarray of int64
            What a sealed container holds. Votes: counts, and what a student predicts, in votes,
            both of shape (n, n_classes). Sums: one vector. Scores: one vector, or starts and ends.
        noise : Noise
        state : State
            `State()` at the beginning.

        Returns
        -------
        answers : ndarray of int64, shape (n_reached, n_columns)
        state : State
        """
        if self.stops_at is not None and not state.used < self.stops_at:
            return np.zeros((0, self.answer_shape(shape)[1]), dtype=np.int64), state
        return self._draw(shape, opened, noise, state)

    def answer_shape(self, shape: Any) -> tuple[int, int]:
        """Return the most answers of a release, and how many integers each of them is."""
        return shape.n_queries + shape.spare_rows, 1

    @abstractmethod
    def _event(self, shape: Any) -> events.Event: ...

    @abstractmethod
    def _draw(self, shape: Any, opened: _Opened, noise: Noise, state: State) -> _Drawn: ...


class NoisyVotes(Mechanism):
    """Counts with discrete noise, or the labels with the most votes under it.

    Of two classes the votes of teachers for class 1 are noised, since the others are the rest of a
    public number, and the label is 1 if they are at least half; of more classes all counts are, and
    the label is the highest, the lowest class of equal ones. Records' votes are released as counts.

    Privacy
    -------
    Sensitivity : `shape.shifts` counts by one each, twice `moved` where two counts of a row move.
    Price : counts, the discrete Gaussian of that many shifts; labels, the exact game of the label
        alone, for `moved` labels; Laplace noise, 1 / scale for each shift.
    Source : Liu et al. 2021, Algorithm 1 (the sensitivity of more classes is sqrt 2, errata 3);
        Papernot et al. 2017, 2018, arXiv:1802.08908.
    """

    of_records: ClassVar[bool] = True
    kind: Literal["noisy-votes"] = "noisy-votes"
    noise: Literal["gaussian", "laplace"] = "gaussian"
    scale: Scale
    release: Literal["labels", "counts"] = "labels"

    def _event(self, shape: VoteShape) -> events.Event:
        if self.release == "labels":
            teachers_of(shape)
        if self.noise == "laplace":
            return events.Pure(epsilon=least_quotient(1, self.scale), count=shape.shifts)
        if self.release == "counts":
            return events.Counts(sigma=self.scale, shifts=shape.shifts)
        if shape.n_classes > 2:
            return events.ClassLabels(sigma=self.scale, queries=shape.moved)
        chances = GaussianChances(sigma=self.scale, n_teachers=shape.n_teachers)
        return events.BinaryLabels(chances=chances, queries=shape.moved)

    def _draw(self, shape: VoteShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        cells = opened[0][:, 1:] if _one_count(shape) else opened[0]
        draw = noise.discrete_gaussian if self.noise == "gaussian" else noise.discrete_laplace
        noisy = cells + draw(self.scale, cells.size).reshape(cells.shape)
        if self.release == "counts":
            return _released(noisy), state
        if _one_count(shape):
            # not twice the count, which may leave 64 bits
            return (noisy >= (teachers_of(shape) + 1) // 2).astype(np.int64), state
        return noisy.argmax(axis=1)[:, None], state

    def answer_shape(self, shape: Any) -> tuple[int, int]:
        columns = 1 if self.release == "labels" or _one_count(shape) else shape.n_classes
        return shape.n_queries + shape.spare_rows, columns


class TableLabels(Mechanism):
    """One of two labels: the minority's with a chance, of 2^53, that falls with the margin.

    Privacy
    -------
    Sensitivity : one teacher moves one vote: the count by 1, the margin by 2.
    Price : the exact game of the label alone, for `moved` labels.
    Source : docs/explanation/prices.md, section 13.
    """

    kind: Literal["table-labels"] = "table-labels"
    weights: Annotated[tuple[Squared, ...], Field(min_length=1, max_length=MAX_WEIGHTS)]

    def _event(self, shape: VoteShape) -> events.Event:
        if not shape.n_classes == 2:
            raise ParameterError("A table of chances is for two classes; use NoisyVotes for more.")
        chances = TableChances(weights=self.weights, n_teachers=teachers_of(shape))
        return events.BinaryLabels(chances=chances, queries=shape.moved)

    def _draw(self, shape: VoteShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        votes, weights = opened[0], np.array(self.weights, dtype=np.int64)
        chances = weights[np.minimum(margin(votes) // 2, len(weights) - 1)]
        minority = noise.uniform_integers(CHANCE_BITS, len(votes)) < chances
        return np.where(minority, 1 - plurality(votes), plurality(votes))[:, None], state


class ConfidentLabels(Mechanism):
    """Labels where the highest count, less what a public student predicts, reaches a threshold
    under noise; it ends with the last answer that was paid for.

    Privacy
    -------
    Sensitivity : the highest difference by 1, the labels as those of `NoisyVotes`.
    Price : an answer about a threshold for each of `moved` rows, and `max_answers` labels; of two
        classes both as one, from the threshold and the number of teachers.
    Source : Papernot et al. 2018, arXiv:1802.08908, Algorithms 1 and 2; docs/explanation/prices.md,
        section 12.
    """

    kind: Literal["confident-labels"] = "confident-labels"
    threshold: Count
    threshold_sigma: Scale
    sigma: Scale
    max_answers: Count
    stops_by: ClassVar[str] = "max_answers"

    def _event(self, shape: VoteShape) -> events.Event:
        if not self.max_answers <= shape.n_queries:
            raise ParameterError("ConfidentLabels gives at most one answer a query.")
        return events.Confident(
            **self.model_dump(include={"threshold_sigma", "sigma", "threshold"}),
            queries=shape.moved,
            answers=min(self.max_answers, shape.moved),
            n_classes=shape.n_classes,
            n_teachers=shape.n_teachers,
        )

    def _draw(self, shape: VoteShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        votes, predicted = opened
        # the price knows that predictions only lower the highest count
        top = (votes - np.maximum(predicted, 0)).max(axis=1)
        noisy = top + noise.discrete_gaussian(self.threshold_sigma, len(top))
        passed, left = np.flatnonzero(noisy >= self.threshold), self.max_answers - state.used
        given = passed[:left]
        reached = len(top) if len(passed) < left else int(given[-1]) + 1
        labels = np.full((reached, 1), ABSTAINED, dtype=np.int64)
        labels[given], _ = NoisyVotes(scale=self.sigma).draw(shape, [votes[given]], noise, State())
        return labels, State(state.used + len(given))


class _Stream(Mechanism):
    """Exact pluralities, some withheld; it ends with the last abstention that was paid for."""

    max_abstentions: Count
    stops_by: ClassVar[str] = "max_abstentions"

    def _event(self, shape: VoteShape) -> events.Event:
        return self.stream_event()

    def _draw(self, shape: VoteShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        votes = opened[0]
        passed, state = self._passed(stability(votes), noise, state)
        labels = plurality(votes[: len(passed)])
        return np.where(passed, labels, ABSTAINED)[:, None], state

    @abstractmethod
    def stream_event(self) -> events.SparseStream | events.TableStream:
        """Return what a stream of any length is to an accountant."""

    @abstractmethod
    def _passed(self, distances: IntArray, noise: Noise, state: State) -> tuple[BoolArray, State]:
        """Return which distances pass, up to where the stream stops."""


class SparseVector(_Stream):
    """The exact plurality where its distance to instability, with noise, is above a noisy
    threshold. The threshold's noise is drawn anew after each abstention and is never released.

    Privacy
    -------
    Sensitivity : the distance by 1; it is 0 on both sides wherever the plurality changes.
    Price : for abstentions alone, whatever the number of queries.
    Source : Liu et al. 2021, Algorithm 2, stopped at the T-th abstention (errata 1, 2, 11).
    """

    kind: Literal["sparse-vector"] = "sparse-vector"
    threshold_scale: Scale
    query_scale: Scale
    threshold: Threshold

    def stream_event(self) -> events.SparseStream:
        noise = self.model_dump(include={"threshold_scale", "query_scale", "threshold"})
        return events.SparseStream(**noise, abstentions=self.max_abstentions)

    def _passed(self, distances: IntArray, noise: Noise, state: State) -> tuple[BoolArray, State]:
        used, secret = state
        threshold, passed = self._noisy_threshold(noise) if secret is None else secret, []
        noisy = distances + noise.discrete_laplace(self.query_scale, len(distances))
        for distance in noisy.tolist():
            passed.append(distance > threshold)
            if not passed[-1]:
                used += 1
                if used == self.max_abstentions:
                    break
                threshold = self._noisy_threshold(noise)
        return np.array(passed, dtype=np.bool_), State(used, threshold)

    def _noisy_threshold(self, noise: Noise) -> int:
        return self.threshold + int(noise.discrete_laplace(self.threshold_scale, 1)[0])


class AbstentionTable(_Stream):
    """The exact plurality, withheld by a table of chances that grow with its distance to
    instability, the last for all that is beyond.

    Privacy
    -------
    Sensitivity : the distance by 1; it is 0 on both sides wherever the plurality changes.
    Price : for abstentions alone, of any table that keeps the two inequalities of `core.streams`;
        `event` refuses weights that do not.
    Source : docs/explanation/prices.md, section 14.
    """

    kind: Literal["abstention-table"] = "abstention-table"
    order: events.TableOrder
    charge: events.TableCharge
    false_answer: events.FalseAnswer
    weights: _Weights

    def stream_event(self) -> events.TableStream:
        table = self.model_dump(include={"order", "charge", "false_answer"})
        event = events.TableStream(**table, abstentions=self.max_abstentions)
        if not keeps_inequalities(event, tuple(weights_of(self.weights).tolist())):
            raise ParameterError("The weights break an inequality that is stated of their table.")
        return event

    def _passed(self, distances: IntArray, noise: Noise, state: State) -> tuple[BoolArray, State]:
        weights = weights_of(self.weights)
        chances = weights[np.minimum(distances, len(weights) - 1)]
        passed = noise.uniform_integers(BITS, len(chances)) < chances
        left = self.max_abstentions - state.used
        withheld = np.flatnonzero(~passed)[:left]
        # the abstention that ends the stream is released, and nothing after it
        reached = len(passed) if len(withheld) < left else int(withheld[-1]) + 1
        return passed[:reached], State(state.used + len(withheld))


class RelabelledSample(Mechanism):
    """A stream asked of teachers that learned from a secret sample, relabelled.

    Privacy
    -------
    Unit : one record. The sample is drawn for this request alone.
    Price : `Sampled`.
    Source : Nandi and Bassily 2020, Algorithms 2 and 3 (errata 6).
    """

    kind: Literal["relabelled-sample"] = "relabelled-sample"
    stream: Annotated[SparseVector | AbstentionTable, Field(discriminator="kind")]
    of_sample: ClassVar[bool] = True

    @property
    def stops_at(self) -> int | None:
        return self.stream.stops_at

    def _event(self, shape: VoteShape) -> events.Event:
        sample = shape.sample
        if sample is None or shape.n_classes != 2 or shape.guarantee.unit == "user":
            # of one user's records several may be in the sample
            raise ParameterError("A relabelled sample is one of records, of two classes.")
        return events.Sampled(
            stream=self.stream.stream_event(),
            relation=shape.guarantee.relation,
            **sample.model_dump(include={"sampled", "out_of", "relabel_epsilon"}),
        )

    def _draw(self, shape: VoteShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        return self.stream.draw(shape, opened, noise, state)


class StableValue(Mechanism):
    """The exact plurality where its distance to instability, with noise, is above a threshold.

    Privacy
    -------
    Sensitivity : the distance by 1; it is 0 on both sides wherever the plurality changes.
    Price : (1 / scale, P(noise > threshold)) for each of `moved` rows.
    Source : Smith, Thakurta 2013; Bassily, Thakurta, Thakkar 2018, Algorithm 1 (errata 1).
    """

    kind: Literal["stable-value"] = "stable-value"
    scale: Scale
    threshold: Threshold

    def _event(self, shape: VoteShape) -> events.Event:
        return events.StableTests(scale=self.scale, threshold=self.threshold, count=shape.moved)

    def _draw(self, shape: VoteShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        votes = opened[0]
        noisy = stability(votes) + noise.discrete_laplace(self.scale, len(votes))
        return np.where(noisy > self.threshold, plurality(votes), ABSTAINED)[:, None], state


class NoisyMeans(Mechanism):
    """Sums of the positions that teachers vote for, on a grid whose positions are the classes.

    Privacy
    -------
    Sensitivity : each of `moved` sums by at most the number of steps of the grid.
    Price : one vector sum over all queries.
    Source : docs/explanation/prices.md, section 16.
    """

    kind: Literal["noisy-means"] = "noisy-means"
    sigma: Scale

    def _event(self, shape: VoteShape) -> events.Event:
        return events.VectorSum(
            sigmas=(self.sigma,),
            squared_sensitivity=shape.moved * (shape.n_classes - 1) ** 2,
            coordinates=shape.n_queries,
        )

    def _draw(self, shape: VoteShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        sums = opened[0] @ np.arange(shape.n_classes)
        return _released(sums + noise.discrete_gaussian(self.sigma, len(sums)))[:, None], state


class VoteQuantiles(Mechanism):
    """Positions drawn by how many votes must change for them to be the vote of a rank, from 1, the
    smallest vote, to the number of teachers.

    Privacy
    -------
    Sensitivity : every distance by 1, some up while others go down: scale 2 / epsilon.
    Price : a loss in an interval of length epsilon that holds 0, for each of `moved` rows.
    Source : Asi, Duchi 2020, arXiv:2005.10630; Dong, Durfee, Rogers 2020, arXiv:1909.13830;
        docs/explanation/prices.md, section 16.
    """

    kind: Literal["vote-quantiles"] = "vote-quantiles"
    epsilon: _DrawLoss
    rank: Count

    def _event(self, shape: VoteShape) -> events.Event:
        if not self.rank <= teachers_of(shape):
            raise ParameterError("The rank of a quantile is at most the number of teachers.")
        return events.BoundedRange(epsilon=self.epsilon, count=shape.moved)

    def _draw(self, shape: VoteShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        distances, scale = _rank_distances(opened[0], self.rank), least_quotient(2, self.epsilon)
        drawn = [noise.exponential_index(-row, scale) for row in distances]
        return np.array(drawn, dtype=np.int64)[:, None], state


class _OneAnswer(Mechanism):
    """One integer about all that is given."""

    @property
    def stops_at(self) -> int:
        return 1

    def answer_shape(self, shape: Any) -> tuple[int, int]:
        return 1, 1


class StabilityQuantile(_OneAnswer):
    """The smallest distance to instability but floor(fraction * n_rows), in votes, with discrete
    Laplace noise: one integer about all rows, which may be negative.

    Privacy
    -------
    Sensitivity : 1, however many rows move.
    Price : epsilon, pure.
    Source : errata 10.
    """

    kind: Literal["stability-quantile"] = "stability-quantile"
    epsilon: _DrawLoss
    fraction: Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False, strict=True)]

    def _event(self, shape: VoteShape) -> events.Event:
        return events.Pure(epsilon=self.epsilon, count=1)

    def _draw(self, shape: VoteShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        distances = stability(opened[0])
        rank = math.floor(Fraction(self.fraction) * len(distances))
        scale = least_quotient(1, self.epsilon)
        noisy = np.partition(distances, rank)[rank] + noise.discrete_laplace(scale, 1)
        return _released(noisy)[:, None], State(1)


class NoisySums(Mechanism):
    """Sums of bounded integer vectors, one a stage, with discrete Gaussian noise on each integer.
    What a stage sums up may follow from the answers of the stages before it.

    Privacy
    -------
    Sensitivity : the squared distance that the shape states, at every stage.
    Price : the vector sums of all stages.
    Source : Canonne, Kamath, Steinke 2020, arXiv:2004.00010; docs/explanation/prices.md, section
        10.
    """

    kind: Literal["noisy-sums"] = "noisy-sums"
    sigmas: Annotated[tuple[Scale, ...], Field(min_length=1, max_length=_MAX_STAGES)]
    takes: ClassVar[type[Shape]] = SumShape

    @property
    def stops_at(self) -> int:
        return len(self.sigmas)

    def _event(self, shape: SumShape) -> events.Event:
        return events.VectorSum(
            sigmas=self.sigmas,
            squared_sensitivity=shape.squared_sensitivity,
            coordinates=shape.coordinates,
        )

    def _draw(self, shape: SumShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        cut = np.clip(opened[0], -_SHIFTED, _SHIFTED)
        noisy = cut + noise.discrete_gaussian(self.sigmas[state.used], len(cut))
        return _released(noisy)[None], State(state.used + 1)

    def answer_shape(self, shape: Any) -> tuple[int, int]:
        return len(self.sigmas), shape.coordinates


class ExponentialChoice(_OneAnswer):
    """The index of one candidate, drawn with probability proportional to exp(score / scale), or one
    of all ranges of places: 0 for none, then by first place, then by last place.

    By permute-and-flip the expected score of one candidate is never lower, up to half as far from
    the best; but its loss has no bounded range, so that it costs more beside other events. Ranges
    are not listed, and are drawn with exponential weights by either rule.

    Privacy
    -------
    Sensitivity : every score by 1. Under add-remove all move one way: scale 1 / epsilon; else 2 /
        epsilon.
    Price : a loss in an interval of length epsilon that holds 0; by permute-and-flip, epsilon.
    Source : McSherry, Talwar 2007; Dong, Durfee, Rogers 2020, arXiv:1909.13830; McKenna, Sheldon
        2020, arXiv:2010.12603.
    """

    kind: Literal["exponential-choice"] = "exponential-choice"
    epsilon: _DrawLoss
    rule: Literal["exponential", "permute-and-flip"] = "exponential"
    takes: ClassVar[type[Shape]] = ScoreShape

    def _event(self, shape: ScoreShape) -> events.Event:
        if self.rule == "permute-and-flip":
            return events.Pure(epsilon=self.epsilon, count=1)
        return events.BoundedRange(epsilon=self.epsilon, count=1)

    def _draw(self, shape: ScoreShape, opened: _Opened, noise: Noise, state: State) -> _Drawn:
        moved = 1 if shape.guarantee.relation == "add-remove" else 2
        scale = least_quotient(moved, self.epsilon)
        if len(opened) == 1:
            flipped = self.rule == "permute-and-flip"
            draw = noise.flipped_index if flipped else noise.exponential_index
            chosen = draw(opened[0], scale)
        else:
            found = noise.exponential_range(opened[0], opened[1], scale)
            first, last = (0, -1) if found is None else found
            chosen = 1 + first * len(opened[0]) - first * (first - 1) // 2 + last - first
        return np.array([[chosen]], dtype=np.int64), State(1)


@dataclass(frozen=True)
class Terms:
    """What is drawn, from what, and what it is paid with; public, and written at the reservation.

    Attributes
    ----------
    mechanism : Mechanism
        Fixed without looking at private data.
    shape : VoteShape, SumShape or ScoreShape
    budget : PrivacyBudget
        What is promised, and spent.
    public : mapping
        Settings, as JSON values; the same request has the same ones.
    purpose : str
        Why, in a few words.
    """

    mechanism: Mechanism
    shape: Shape
    budget: PrivacyBudget
    public: JsonView
    purpose: str = ""


AnyMechanism = Annotated[
    NoisyVotes
    | TableLabels
    | ConfidentLabels
    | SparseVector
    | AbstentionTable
    | RelabelledSample
    | StableValue
    | NoisyMeans
    | VoteQuantiles
    | StabilityQuantile
    | NoisySums
    | ExponentialChoice,
    Field(discriminator="kind"),
]
_ANY: TypeAdapter[Mechanism] = TypeAdapter(AnyMechanism)
_adapter = functools.cache(TypeAdapter)


def mechanism_in(content: object) -> Mechanism:
    """Return the mechanism of a JSON object that `Mechanism.model_dump` gave.

    Raises
    ------
    ParameterError
        If the kind is unknown, or a parameter is missing, extra, of another type or out of range.
    """
    return model_in(_ANY, content, "A mechanism")


def shape_in(mechanism: Mechanism, content: object) -> Shape:
    """Return the shape of a JSON object that the shape of what `mechanism` takes gave.

    Raises
    ------
    ParameterError
        If it is another one, or a field is missing, extra, of another type or out of range.
    """
    found: Shape = model_in(_adapter(mechanism.takes), content, "A shape")
    return found


def teachers_of(shape: VoteShape) -> int:
    """Return the number of teachers.

    Raises
    ------
    ParameterError
        If records vote for themselves.
    """
    if shape.n_teachers is None:
        raise ParameterError("Votes of records are released as counts, by NoisyVotes.")
    return shape.n_teachers


def weights_text(weights: IntArray) -> str:
    """Return the weights of a table of abstentions as they are in `AbstentionTable`."""
    return np.asarray(weights).astype(">i8").tobytes().hex()


def weights_of(text: str) -> IntArray:
    """Return the weights that `weights_text` has written."""
    return np.frombuffer(bytes.fromhex(text), dtype=">i8").astype(np.int64)


def plurality(votes: IntArray) -> IntArray:
    """Return the class with the most votes, shape (n_queries,): of two equal ones class 1, as in "1
    if at least half" of Liu et al. 2021, and of more the lowest.

    `votes` has shape (n_queries, n_classes), here and below.
    """
    if votes.shape[1] == 2:
        return (votes[:, 1] >= votes[:, 0]).astype(np.int64)
    return np.asarray(votes.argmax(axis=1))


def margin(votes: IntArray) -> IntArray:
    """Return most votes minus second most, shape (n_queries,)."""
    top_two = np.partition(votes, votes.shape[1] - 2, axis=1)[:, -2:]
    return np.asarray(top_two[:, 1] - top_two[:, 0])


def stability(votes: IntArray) -> IntArray:
    """Return max(0, ceil(margin / 2) - 1), shape (n_queries,): how many votes may move before the
    plurality can change.

    One teacher moves the margin by at most 2, hence this by at most 1; and where the plurality
    changes, both margins are at most 2, hence both distances 0. The un-halved margins of Bassily et
    al. 2018 and Nandi and Bassily 2020 have neither property.
    """
    return np.maximum((margin(votes) + 1) // 2 - 1, 0)


def _rank_distances(votes: IntArray, rank: int) -> IntArray:
    """Return how many votes must change for each position to be the vote of a rank, of the shape of
    `votes`."""
    upto = np.cumsum(votes, axis=1)
    distances: IntArray = np.maximum(upto - votes - (rank - 1), rank - upto)
    return np.maximum(distances, 0)


def _one_count(shape: VoteShape) -> bool:
    return shape.n_teachers is not None and shape.n_classes == 2


def _released(noisy: IntArray) -> IntArray:
    """Cut integers to what all programs read alike, after the noise: whatever was drawn can be
    stored."""
    return np.clip(noisy, -LARGEST, LARGEST)
