"""The methods of releases: the public settings of each, and what settings, mechanism, shape and
released values must say of each other."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

from pydantic import ConfigDict, Field

from secretballot._validation import FARTHEST
from secretballot.core.mechanisms import ConfidentLabels, Mechanism, NoisyMeans, NoisyVotes
from secretballot.core.types import SumShape, VoteShape
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.coverage import RECORDS, UNCOVERED, counts_scale
from secretballot.report.certificate.models import (
    Digest,
    Integers,
    Named,
    Names,
    Natural,
    Part,
    Positive,
    Sentence,
    missing,
    rule,
)

VOTES = "votes"
RECORD_VOTES = "record-votes"
MOMENTS = "record-moments"
TARGET_MOMENTS = "record-moments-of-a-number"
LABELS_MOMENTS = "record-moments-of-labels"
LABEL_VOTES = "votes-of-labels"
NUMBER_VOTES = "votes-of-numbers"
EXPONENTIAL = "exponential-choice"
STABILITY = "stability-quantile"
SUMS = (MOMENTS, TARGET_MOMENTS, LABELS_MOMENTS)
TABLES = (LABEL_VOTES, NUMBER_VOTES)
#: Methods without classes: what they release is in "released".
WITHOUT_CLASSES = (TARGET_MOMENTS, LABELS_MOMENTS, *TABLES)
CONFIDENCE = "confidence"
CLASS_WEIGHTS = "class_weights"
#: Of votes of records, of which those that the public points do not cover are counted apart: the
#: share that chance explains. Their noisy votes, of all their cells together, are the one released
#: value.
EXPECTED_UNCOVERED = "expected_uncovered"
#: The counts of votes of records before the noise are at most this, by rule: how many records there
#: were is private.
LARGEST_COUNT = 10**12
ANSWERS_SOME = ("confident-labels", "stable-value")
ABSTAINS = ("sparse-vector", "abstention-table", "relabelled-sample")
_MOST_STAGES = 100
_MOST_LABELS, _MOST_IN_SETS = 10_000, 8

Share = Annotated[float, Field(ge=0, le=1)]
Range = Annotated[
    list[Annotated[float, Field(allow_inf_nan=False)]],
    Field(min_length=2, max_length=2),
    # finite bounds may lie further apart than the largest double
    rule(lambda ends: 0 < ends[1] - ends[0] < math.inf, "two numbers, the smaller one first"),
]


class Drawable(NamedTuple):
    """Which integers a mechanism can have released: at most so many rows, of so many columns."""

    rows: int
    columns: int
    low: float = -math.inf
    high: float = math.inf


class Settings(Part):
    """Public settings of a method."""

    kinds: ClassVar[tuple[str, ...]] = ()  # of mechanisms; none for any
    method: Sentence

    def contradictions(self, stated: Any) -> Iterator[str]:
        """Yield how the settings contradict the certificate that states them, the first one first:
        later ones may not be looked at after it."""
        yield from ()

    def drawable(self, stated: Any) -> Drawable | None:
        """Return which integers, other than labels and their counts, may have been released.

        Raises
        ------
        CertificateError
            If the settings and the shape contradict each other.
        """
        return None


class Votes(Settings):
    """Labels, or noisy counts, of votes of teachers."""

    kinds = ("noisy-votes", "table-labels", *ANSWERS_SOME, *ABSTAINS)
    method: Literal["votes"]
    confidence: Annotated[float, Field(gt=0, lt=1)] = missing()

    def contradictions(self, stated: Any) -> Iterator[str]:
        if self.confidence is not None and not isinstance(stated.mechanism, ConfidentLabels):
            yield "Only confident labels are confirmed with a confidence."


class RecordVotes(Settings):
    """Noisy counts of votes that records cast for themselves: how many there are is private."""

    kinds = ("noisy-votes",)
    method: Literal["record-votes"]
    expected_uncovered: Share = missing()

    def contradictions(self, stated: Any) -> Iterator[str]:
        shape, votes = stated.shape, votes_of_one(stated.shape)
        # one cell for each vote of an uncovered record
        spare = 0 if self.expected_uncovered is None else -(-votes // shape.n_classes)
        whole = votes * _moves(shape) == shape.moved and shape.spare_rows == spare
        if not whole or not 1 <= votes <= shape.n_queries:
            yield "A record votes at more public points than there are, or at none."

    def drawable(self, stated: Any) -> Drawable | None:
        if self.expected_uncovered is None:
            return None
        votes, far = votes_of_one(stated.shape), FARTHEST * (noise_of_counts(stated.mechanism) + 1)
        return Drawable(1, 1, -votes * far, votes * (LARGEST_COUNT + far))


class _Start(Part):
    certificate: Digest
    weights: list[int]


class _Sums(Settings):
    """Noisy sums over records, without teachers."""

    kinds = ("noisy-sums",)
    # beyond, the squares by which a vector's length is found would not fit their integers
    residual_units: list[Annotated[int, Field(ge=1, le=2**20)]]
    mark_weight: Natural
    marks: list[str]
    expected_uncovered: Share
    n_records: Positive | None
    basis: Named
    basis_sha256: Digest
    weights: Integers
    covered_only: list[bool]
    # by which coordinates are multiplied before a unit's vector is cut to the bound
    scales: list[list[Annotated[int, Field(ge=1, le=2**18)]]]

    @abstractmethod
    def n_columns(self, certificate: Any) -> int:
        """Return the columns of the model."""

    def n_counts(self, certificate: Any) -> int:
        """Return how many sums of counts come before those of the stages."""
        return 0

    def more_weights(self) -> Integers:
        """Return weights beside those of the stages."""
        return []

    def contradictions(self, stated: Any) -> Iterator[str]:
        shape, of_labels = stated.shape, stated.unit == "label"
        n_stages, n_columns = len(self.residual_units), self.n_columns(stated)
        n_counts, sigmas = self.n_counts(stated), stated.mechanism.sigmas
        if not 0 < n_stages <= _MOST_STAGES or len(set(sigmas[-n_stages:])) > 1:
            yield f"There are more than {_MOST_STAGES} stages, or noise of several sizes."
        if len(sigmas) != n_counts + n_stages:
            yield "The sums are not one for each stage, after counts of classes or labels."
        elif n_counts and not math.isclose(sigmas[0], counts_scale(n_stages) * sigmas[-1]):
            yield "The noise of the counts is not that of their share of the price."
        if not self.mark_weight <= bound_of(shape) // 4:
            yield "A mark adds more than a quarter of the bound."
        # features that are public are the public points: nothing is counted beside
        counted = [] if of_labels else [UNCOVERED]
        if self.n_records is None:
            counted = [RECORDS, UNCOVERED]
        private = stated.relation == "add-remove"
        if (self.n_records is None) != private or self.marks != counted:
            yield "The sums do not count records where their number is private, and only there."
        if (self.mark_weight == 0) != of_labels:
            yield "Sums of labels alone, and no others, count no records beside."
        n_weights = shape.coordinates - len(self.marks)
        if n_weights <= 0 or n_weights % n_columns:
            yield "The coordinates are no whole number for each column of the model."
        of_each = self.covered_only, self.residual_units, self.weights, self.scales
        if {len(one) for one in of_each} != {n_stages}:
            yield "The settings are not one of each for each stage."
        if any(len(one) != n_weights for one in [*self.weights, *self.more_weights()]):
            yield f"A list of weights has not {n_weights} of them."
        if any(len(one) * n_columns != n_weights for one in self.scales):
            yield "The scales are not one for each coordinate."

    def drawable(self, stated: Any) -> Drawable:
        return Drawable(*stated.mechanism.answer_shape(stated.shape))


class Moments(_Sums):
    """Of which labels of points follow."""

    method: Literal["record-moments"]
    start: _Start = missing()
    class_weights: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = missing()

    def n_columns(self, certificate: Any) -> int:
        # of two classes one column says both
        n_classes = len(certificate.released.classes)
        return 1 if n_classes == 2 else n_classes

    def n_counts(self, certificate: Any) -> int:
        return int(self.start is None and certificate.unit != "label")

    def more_weights(self) -> Integers:
        return [] if self.start is None else [self.start.weights]

    def contradictions(self, stated: Any) -> Iterator[str]:
        yield from super().contradictions(stated)
        weights = self.class_weights
        if self.start is not None and stated.unit == "label":
            yield "Sums of labels alone start from nothing; the certificate differs."
        if weights is not None and len(weights) != len(stated.released.classes):
            yield "The weights of classes are no positive number for each class."


class _SumsAlone(_Sums):
    """Beside which no labels of points are released."""

    def contradictions(self, stated: Any) -> Iterator[str]:
        yield from super().contradictions(stated)
        if stated.released.queries or stated.unit == "label":
            yield "Sums were paid for, and no labels; the certificate lists some."


class TargetMoments(_SumsAlone):
    """Of a number."""

    method: Literal["record-moments-of-a-number"]
    bounds: Range

    def n_columns(self, certificate: Any) -> int:
        return 1


class LabelsMoments(_SumsAlone):
    """Of several labels."""

    method: Literal["record-moments-of-labels"]
    labels: Names

    def n_columns(self, certificate: Any) -> int:
        return len(self.labels)

    def n_counts(self, certificate: Any) -> int:
        return 1


class _Table(Settings):
    """Answers that are released values, one for each of some rows of the public pool."""

    def drawable(self, stated: Any) -> Drawable:
        released = stated.released
        if released.queries or released.answered or released.count_columns:
            raise CertificateError("The answers are released values; the certificate lists labels.")
        return self.answers(stated.mechanism, stated.shape)

    @abstractmethod
    def answers(self, mechanism: Any, shape: Any) -> Drawable:
        """Return how many rows are paid for, and what may answer each."""


class LabelVotes(_Table):
    """Sets of labels that teachers vote for."""

    kinds = ("noisy-votes",)
    method: Literal["votes-of-labels"]
    labels: Names
    ballot: Literal["labels", "sets"]
    most_named: Positive | None

    def answers(self, mechanism: NoisyVotes, shape: VoteShape) -> Drawable:
        n, cap, sets = len(self.labels), self.most_named, self.ballot == "sets"
        least, most = (2, _MOST_IN_SETS) if sets else (1, _MOST_LABELS)
        if not least <= n <= most or (cap is not None and (sets or cap > n)):
            raise CertificateError("There are too many labels, too few for sets, or too few named.")
        # a set gives way to another: what is in one of them alone moves
        rows, moved = (1, 1) if sets else (n, n if cap is None else min(n, 2 * cap))
        points = shape.n_queries // rows
        paid = shape.n_queries, shape.moved, shape.n_classes, mechanism.noise
        if paid != (points * rows, points * moved, 2**n if sets else 2, "gaussian"):
            raise CertificateError(
                "The votes are not those of these labels, this ballot and this cap."
            )
        if mechanism.release == "labels":
            return Drawable(points, n, 0, 1)
        far = FARTHEST * (mechanism.scale + 1)
        width = mechanism.answer_shape(shape)[1] * rows
        return Drawable(points, width, -far, (shape.n_teachers or 0) + far)


class NumberVotes(_Table):
    """Numbers that teachers vote for: the positions of a grid are the classes."""

    kinds = ("noisy-means", "vote-quantiles")
    method: Literal["votes-of-numbers"]
    bounds: Range

    def answers(self, mechanism: Mechanism, shape: VoteShape) -> Drawable:
        if shape.moved != shape.n_queries:
            raise CertificateError("A teacher may vote for another number at every point.")
        steps = shape.n_classes - 1
        if not isinstance(mechanism, NoisyMeans):
            return Drawable(shape.n_queries, 1, 0, steps)
        far = FARTHEST * (mechanism.sigma + 1)
        return Drawable(shape.n_queries, 1, -far, (shape.n_teachers or 0) * steps + far)


class ExponentialSettings(Settings):
    """A choice among candidates, and further words on them."""

    model_config = ConfigDict(extra="allow")
    kinds = (EXPONENTIAL,)
    method: Literal["exponential-choice"]
    n_candidates: Positive
    candidates: Any = None

    def drawable(self, stated: Any) -> Drawable:
        names = self.candidates
        if names is not None and not (isinstance(names, list) and len(names) == self.n_candidates):
            raise CertificateError("The names of the candidates are not one for each of them.")
        return Drawable(1, 1, 0, self.n_candidates - 1)


class Quantile(Settings):
    """A quantile of the distances to instability, of choices alone."""

    kinds = (STABILITY,)
    method: Literal["stability-quantile"]


class MethodAlone(Settings):
    """Of a release that was compared and not chosen, whose certificate is not here."""


AnySettings = Annotated[
    Votes
    | RecordVotes
    | Moments
    | TargetMoments
    | LabelsMoments
    | LabelVotes
    | NumberVotes
    | ExponentialSettings
    | Quantile,
    Field(discriminator="method"),
]


def bound_of(shape: SumShape) -> int:
    """Return the longest vector of one unit, whose replacement moves a sum by twice as much."""
    return math.isqrt(shape.squared_sensitivity // _moves(shape) ** 2)


def votes_of_one(shape: VoteShape) -> int:
    """Return how many votes a record casts, whose replacement moves twice as many."""
    return shape.moved // _moves(shape)


def _moves(shape: Any) -> int:
    return 2 if shape.guarantee.relation == "replace-one" else 1


def noise_of_counts(mechanism: Mechanism) -> float:
    """Return how far noise on counts reaches usually, in votes."""
    if not isinstance(mechanism, NoisyVotes):
        return 0.0
    # above the standard deviation of Laplace noise
    return mechanism.scale if mechanism.noise == "gaussian" else 1.5 * mechanism.scale
