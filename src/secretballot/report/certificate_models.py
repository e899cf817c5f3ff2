"""A certificate as models, whose dump is the document: its parts, the public settings of each
method, and the whole, which holds mechanism, shape and event as models of the core.
"""

import json
import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    model_validator,
)
from pydantic_core import PydanticCustomError

from secretballot import accounting
from secretballot._typing import IntArray, Json, JsonView
from secretballot._validation import FARTHEST, plain_line, shown
from secretballot.core.errors import Relation, Unit
from secretballot.core.events import AnyEvent, Event
from secretballot.core.mechanisms import (
    AnyMechanism,
    ConfidentLabels,
    Mechanism,
    NoisyMeans,
    NoisyVotes,
    Shape,
    mechanism_in,
    shape_in,
)
from secretballot.core.types import LARGEST, Guarantee, Model, VoteShape
from secretballot.exceptions import CertificateError
from secretballot.report.wording import count_text, number_text

FORMAT = "secretballot/certificate"
VERSION = 3
CERTIFICATE_FILE = "certificate.json"
_MAX_NAME = 255  # characters of a file name


def require(holds: object, words: str) -> None:
    """Refuse a certificate of which something does not hold.

    Raises
    ------
    CertificateError
        If so.
    """
    if not holds:
        raise CertificateError(words)


def _rule(holds: Callable[[Any], object], words: str) -> AfterValidator:
    """Return a check of a value: `words` follow "it must be"."""

    def check(value: Any) -> Any:
        if not holds(value):
            raise PydanticCustomError("rule", "it must be {words}", {"words": words})
        return value

    return AfterValidator(check)


def _missing() -> Any:
    """Return the default of a field that may be missing, but is never null."""
    return Field(default=None)


def class_value(value: object) -> str | int | float | bool:
    """Return a class value as JSON can hold it: string, number or truth value; else its string."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, str | int | float) else str(plain)


def class_text(value: object) -> str:
    """Return the string that stands for a class in ``labels.csv``; strings stay as they are."""
    plain = class_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _is_sentence(value: object) -> bool:
    """Return whether a value is a string of one line that is not blank."""
    return isinstance(value, str) and value.strip() != "" and value.isprintable()


def _is_moment(value: str) -> bool:
    try:
        return datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False


def _are_classes(value: list[Any]) -> bool:
    # 1 and "1" differ in JSON, but not in a CSV file, where no reader could distinguish them
    scalars = all(isinstance(item, str | int | float) for item in value)
    return len(value) != 1 and scalars and len({class_text(item) for item in value}) == len(value)


def _is_file_name(name: str) -> bool:
    plain = name.isprintable() and not set(name) & set("/\\:") and not name.startswith(".")
    return 0 < len(name) <= _MAX_NAME and plain and name != CERTIFICATE_FILE


Sentence = Annotated[str, _rule(_is_sentence, "a string of one line, not blank")]
_Sentences = Annotated[list[Sentence], Field(min_length=1)]
_Names = Annotated[
    _Sentences, _rule(lambda names: len(set(names)) == len(names), "different names")
]
_Filled = Annotated[str, _rule(str.strip, "a string that is not empty")]
_Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_Moment = Annotated[str, _rule(_is_moment, "a moment as ISO 8601 writes it, with its time zone")]
_Natural = Annotated[int, Field(ge=0)]
_Positive = Annotated[int, Field(ge=1)]
_Epsilon = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_Delta = Annotated[float, Field(ge=0, lt=1)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Integer = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
_Integers = list[list[_Integer]]


class Part(Model):
    """A part of a certificate: JSON values of the stated types, and no other fields."""

    model_config = ConfigDict(strict=True)


class Budget(Part):
    """A promise."""

    epsilon: _Epsilon
    delta: _Delta


class Spent(Part):
    """What was spent of a budget."""

    epsilon: _Amount
    delta: _Amount


class StatedPrice(Budget):
    """What the events cost at an epsilon, and how that was computed."""

    delta_recomputed: _Delta
    method: Sentence
    source: Sentence
    library: Sentence
    library_version: Sentence


class Account(Part):
    """The account that paid, as it was just after."""

    kind: Literal["basic", "renyi"]
    dataset: _Filled
    unit: Unit
    relation: Relation
    budget: Budget
    spent_after: Spent
    durable: bool
    reservation: _Natural  # 0 before there is one, which no verifier accepts


class StatedNoise(Part):
    """Where the noise came from."""

    exact: bool
    description: Sentence


class StatedRelease(Part):
    """What was released."""

    queries: _Natural
    answered: _Natural
    classes: Annotated[list[Any], _rule(_are_classes, "two or more different classes, or none")]
    n_teachers: _Natural
    count_columns: _Natural
    labels_sha256: _Digest
    points_sha256: _Digest = _missing()
    rows: list[_Natural] = _missing()
    values: _Integers = _missing()


class Named(Part):
    """Something with a name, that describes itself."""

    model_config = ConfigDict(extra="allow")
    name: Sentence


class Plan(Part):
    """How a release in rounds used its reservation."""

    planned: _Positive
    used: _Natural
    rounds: list[_Positive]
    strategy: Named
    left: Literal["kept", "returned", "forfeited", "none"]


class ListedFile(Part):
    """A file beside the certificate."""

    sha256: _Digest
    bytes: _Natural


_Files = Annotated[
    dict[Annotated[str, _rule(_is_file_name, "the name of a file beside it")], ListedFile],
    Field(min_length=1, max_length=1000),
]


class About(Part):
    """What the curator calls the data, who answers for them, and how to reach somebody."""

    title: Sentence = _missing()
    controller: Sentence = _missing()
    contact: Sentence = _missing()


_VOTES = "votes"
RECORD_VOTES = "record-votes"
MOMENTS = "record-moments"
TARGET_MOMENTS = "record-moments-of-a-number"
LABELS_MOMENTS = "record-moments-of-labels"
LABEL_VOTES = "votes-of-labels"
NUMBER_VOTES = "votes-of-numbers"
EXPONENTIAL = "exponential-choice"
_STABILITY = "stability-quantile"
SUMS = (MOMENTS, TARGET_MOMENTS, LABELS_MOMENTS)
TABLES = (LABEL_VOTES, NUMBER_VOTES)
#: Methods without classes: what they release is in "released".
WITHOUT_CLASSES = (TARGET_MOMENTS, LABELS_MOMENTS, *TABLES)
CLASS_WEIGHTS = "class_weights"
#: Of votes of records, of which those that the public points do not cover are counted apart: the
#: share that chance explains. Their noisy votes, of all their cells together, are the one released
#: value.
EXPECTED_UNCOVERED = "expected_uncovered"
#: The counts of votes of records before the noise are at most this, by rule: how many records there
#: were is private.
LARGEST_COUNT = 10**12
_ANSWERS_SOME = ("confident-labels", "stable-value")
_ABSTAINS = ("sparse-vector", "abstention-table", "relabelled-sample")
_MOST_STAGES = 100
_MOST_LABELS, _MOST_IN_SETS = 10_000, 8

_Share = Annotated[float, Field(ge=0, le=1)]
_Range = Annotated[
    list[Annotated[float, Field(allow_inf_nan=False)]],
    Field(min_length=2, max_length=2),
    # finite bounds may lie further apart than the largest double
    _rule(lambda ends: 0 < ends[1] - ends[0] < math.inf, "two numbers, the smaller one first"),
]


class _Drawable(NamedTuple):
    """Which integers a mechanism can have released: at most so many rows, of so many columns."""

    rows: int
    columns: int
    low: float = -math.inf
    high: float = math.inf


class Settings(Part):
    """Public settings of a method."""

    kinds: ClassVar[tuple[str, ...]] = ()  # of mechanisms; none for any
    method: Sentence

    def check(self, stated: Any) -> None:
        """Refuse settings that contradict the certificate that states them.

        Raises
        ------
        CertificateError
            If they do.
        """

    def drawable(self, stated: Any) -> _Drawable | None:
        """Return which integers, other than labels and their counts, may have been released.

        Raises
        ------
        CertificateError
            If the settings and the shape contradict each other.
        """
        return None


class Votes(Settings):
    """Labels, or noisy counts, of votes of teachers."""

    kinds = ("noisy-votes", "table-labels", *_ANSWERS_SOME, *_ABSTAINS)
    method: Literal["votes"]
    confidence: Annotated[float, Field(gt=0, lt=1)] = _missing()

    def check(self, stated: Any) -> None:
        confident = self.confidence is None or isinstance(stated.mechanism, ConfidentLabels)
        require(confident, "Only confident labels are confirmed with a confidence.")


class RecordVotes(Settings):
    """Noisy counts of votes that records cast for themselves: how many there are is private."""

    kinds = ("noisy-votes",)
    method: Literal["record-votes"]
    expected_uncovered: _Share = _missing()

    def check(self, stated: Any) -> None:
        shape, votes = stated.shape, _votes_of_one(stated.shape)
        # one cell for each vote of an uncovered record
        spare = 0 if self.expected_uncovered is None else -(-votes // shape.n_classes)
        whole = votes * _moves(shape) == shape.moved and shape.spare_rows == spare
        fits = whole and 1 <= votes <= shape.n_queries
        require(fits, "A record votes at more public points than there are, or at none.")

    def drawable(self, stated: Any) -> _Drawable | None:
        if self.expected_uncovered is None:
            return None
        votes, far = _votes_of_one(stated.shape), FARTHEST * (noise_of_counts(stated.mechanism) + 1)
        return _Drawable(1, 1, -votes * far, votes * (LARGEST_COUNT + far))


class _Start(Part):
    certificate: _Digest
    weights: list[_Integer]


class _Sums(Settings):
    """Noisy sums over records, without teachers."""

    kinds = ("noisy-sums",)
    # beyond, the squares by which a vector's length is found would not fit their integers
    residual_units: list[Annotated[int, Field(ge=1, le=2**20)]]
    mark_weight: _Natural
    marks: list[str]
    expected_uncovered: _Share
    n_records: _Positive | None
    basis: Named
    basis_sha256: _Digest
    weights: _Integers
    covered_only: list[bool]
    # by which coordinates are multiplied before a unit's vector is cut to the bound
    scales: list[list[Annotated[int, Field(ge=1, le=2**18)]]]

    @abstractmethod
    def n_columns(self, certificate: Any) -> int:
        """Return the columns of the model."""

    def check(self, stated: Any) -> None:
        shape, of_labels = stated.shape, stated.unit == "label"
        n_stages, n_columns = len(self.residual_units), self.n_columns(stated)
        start: _Start | None = getattr(self, "start", None)
        require(
            (self.method == MOMENTS or not (stated.released.queries or of_labels))
            and (start is None or not of_labels),
            "Sums of labels alone have classes and no start; other sums list no labels.",
        )
        # sums of counts come before those of the stages, and have their share of the price
        sigmas, fresh = stated.mechanism.sigmas, self.method != TARGET_MOMENTS and start is None
        n_counts = int(fresh and not of_labels)
        require(
            0 < n_stages <= _MOST_STAGES
            and len(set(sigmas[-n_stages:])) == 1
            and len(sigmas) == n_counts + n_stages
            and (not n_counts or math.isclose(sigmas[0], counts_scale(n_stages) * sigmas[-1])),
            "The noise is not that of counts of classes and so many stages.",
        )
        # features that are public are the public points: nothing is counted beside
        counted = [] if of_labels else [UNCOVERED]
        if self.n_records is None:
            counted = [RECORDS, UNCOVERED]
        # the longest vector of one unit, whose replacement moves a sum by twice as much
        bound = math.isqrt(shape.squared_sensitivity // _moves(shape) ** 2)
        require(
            (self.n_records is None) == (stated.relation == "add-remove")
            and self.marks == counted
            and (self.mark_weight == 0) == of_labels
            and self.mark_weight <= bound // 4,
            "The sums count other records than may be counted, or by too large marks.",
        )
        n_weights = shape.coordinates - len(self.marks)
        of_each = self.covered_only, self.residual_units, self.scales
        more = [] if start is None else [start.weights]
        require(
            n_weights > 0
            and {len(one) for one in of_each} == {n_stages}
            # there may be one more model, which no stage follows
            and len(self.weights) in (n_stages, n_stages + 1)
            and all(len(one) * n_columns == n_weights for one in self.scales)
            and all(len(one) == n_weights for one in [*self.weights, *more]),
            "The settings are not one for each stage, coordinate and column.",
        )

    def drawable(self, stated: Any) -> _Drawable:
        return _Drawable(*stated.mechanism.answer_shape(stated.shape))


class Moments(_Sums):
    """Of which labels of points follow."""

    method: Literal["record-moments"]
    start: _Start = _missing()
    class_weights: list[Annotated[float, Field(gt=0, allow_inf_nan=False)]] = _missing()

    def n_columns(self, certificate: Any) -> int:
        # of two classes one column says both
        n_classes = len(certificate.released.classes)
        return 1 if n_classes == 2 else n_classes

    def check(self, stated: Any) -> None:
        super().check(stated)
        weights, classes = self.class_weights, stated.released.classes
        whole = weights is None or len(weights) == len(classes)
        require(whole, "The weights of classes are no positive number for each class.")


class TargetMoments(_Sums):
    """Of a number, beside which no labels of points are released."""

    method: Literal["record-moments-of-a-number"]
    bounds: _Range

    def n_columns(self, certificate: Any) -> int:
        return 1


class LabelsMoments(_Sums):
    """Of several labels, beside which no labels of points are released."""

    method: Literal["record-moments-of-labels"]
    labels: _Names

    def n_columns(self, certificate: Any) -> int:
        return len(self.labels)


class _Table(Settings):
    """Answers that are released values, one for each of some rows of the public pool."""

    def drawable(self, stated: Any) -> _Drawable:
        released = stated.released
        labels = released.queries or released.answered or released.count_columns
        require(not labels, "The answers are released values; the certificate lists labels.")
        return self.answers(stated.mechanism, stated.shape)

    @abstractmethod
    def answers(self, mechanism: Any, shape: Any) -> _Drawable:
        """Return how many rows are paid for, and what may answer each."""


class LabelVotes(_Table):
    """Sets of labels that teachers vote for."""

    kinds = ("noisy-votes",)
    method: Literal["votes-of-labels"]
    labels: _Names
    ballot: Literal["labels", "sets"]
    most_named: _Positive | None

    def answers(self, mechanism: NoisyVotes, shape: VoteShape) -> _Drawable:
        n, cap, sets = len(self.labels), self.most_named, self.ballot == "sets"
        least, most = (2, _MOST_IN_SETS) if sets else (1, _MOST_LABELS)
        fits = least <= n <= most and (cap is None or (not sets and cap <= n))
        require(fits, "There are too many labels, too few for sets, or too few named.")
        # a set gives way to another: what is in one of them alone moves
        rows, moved = (1, 1) if sets else (n, n if cap is None else min(n, 2 * cap))
        points = shape.n_queries // rows
        paid = shape.n_queries, shape.moved, shape.n_classes, mechanism.noise
        same = paid == (points * rows, points * moved, 2**n if sets else 2, "gaussian")
        require(same, "The votes are not those of these labels, this ballot and this cap.")
        if mechanism.release == "labels":
            return _Drawable(points, n, 0, 1)
        far = FARTHEST * (mechanism.scale + 1)
        width = mechanism.answer_shape(shape)[1] * rows
        return _Drawable(points, width, -far, (shape.n_teachers or 0) + far)


class NumberVotes(_Table):
    """Numbers that teachers vote for: the positions of a grid are the classes."""

    kinds = ("noisy-means", "vote-quantiles")
    method: Literal["votes-of-numbers"]
    bounds: _Range

    def answers(self, mechanism: Mechanism, shape: VoteShape) -> _Drawable:
        every = shape.moved == shape.n_queries
        require(every, "A teacher may vote for another number at every point.")
        steps = shape.n_classes - 1
        if not isinstance(mechanism, NoisyMeans):
            return _Drawable(shape.n_queries, 1, 0, steps)
        far = FARTHEST * (mechanism.sigma + 1)
        return _Drawable(shape.n_queries, 1, -far, (shape.n_teachers or 0) * steps + far)


class ExponentialSettings(Settings):
    """A choice among candidates, and further words on them."""

    model_config = ConfigDict(extra="allow")
    kinds = (EXPONENTIAL,)
    method: Literal["exponential-choice"]
    n_candidates: _Positive
    candidates: Any = None

    def drawable(self, stated: Any) -> _Drawable:
        names = self.candidates
        each = names is None or (isinstance(names, list) and len(names) == self.n_candidates)
        require(each, "The names of the candidates are not one for each of them.")
        return _Drawable(1, 1, 0, self.n_candidates - 1)


class Quantile(Settings):
    """A quantile of the distances to instability, of choices alone."""

    kinds = (_STABILITY,)
    method: Literal["stability-quantile"]


class MethodAlone(Settings):
    """Of a release that was compared and not chosen, whose certificate is not here."""


_AnySettings = Annotated[
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


def _votes_of_one(shape: VoteShape) -> int:
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


# Mathematical libraries differ in the last digits between machines; no promise is refused for that.
SLACK = 1 + 1e-9
# Beyond any release that could be made, and more than pricing could do in minutes: a trap for the
# verifier.
_MAX_DEVIATION = 1e8  # votes, of the sum of all Gaussian noises of one event
_MAX_LABEL_SIGMA = 1e6  # votes
_MAX_SCALE = 1e5  # votes
_LONGEST_PLACE = 120  # characters of the place of a field in a message


def _read_shape(content: Any, info: ValidationInfo) -> Any:
    mechanism = info.data.get("mechanism")  # none where that was refused already
    return content if mechanism is None else shape_in(mechanism, content)


def _read_event(content: Any) -> Event:
    event = accounting.event_in(content)
    require(not _is_beyond(event), "An event has more noise or queries than can be computed with.")
    return event


class _Drawn(Part):
    """What was drawn, from what, and at which price."""

    mechanism: Annotated[AnyMechanism, BeforeValidator(mechanism_in)]
    shape: Annotated[Shape, BeforeValidator(_read_shape)]
    public: Any
    events: Annotated[
        list[Annotated[AnyEvent, BeforeValidator(_read_event)]], Field(min_length=1, max_length=1)
    ]
    epsilon: _Epsilon
    delta: _Delta

    @property
    def event(self) -> Event:
        """The one event that all of it is."""
        return self.events[0]

    @property
    def by_teachers(self) -> bool:
        """Whether votes of teachers were drawn from."""
        return isinstance(self.shape, VoteShape) and self.shape.n_teachers is not None

    def check_event(self) -> None:
        """Refuse a mechanism that the method has not, and another event than follows from it and
        the shape."""
        shape, method, kind = self.shape, self.public.method, self.mechanism.kind
        every = not isinstance(shape, VoteShape) or shape.moved == shape.n_queries
        require(every or method != _VOTES, "A teacher may vote otherwise at every query.")
        known = not self.public.kinds or kind in self.public.kinds
        require(known, f"The method {shown(method)} has no mechanism {shown(kind)}.")
        same = self.mechanism.event(shape) == self.event
        require(same, "The events are not those of the mechanism, which have another price.")


class Choice(_Drawn):
    """What private data decided beside the release, under a reservation of its own: one number, or
    labels, of which the digest is stated."""

    public: Annotated[
        ExponentialSettings | Quantile | MethodAlone, Field(union_mode="left_to_right")
    ]
    purpose: _Filled
    value: int = _missing()
    labels_sha256: _Digest = _missing()
    reservation: _Positive

    @model_validator(mode="after")
    def _check_outcome(self) -> "Choice":
        if len(self.model_fields_set & {"value", "labels_sha256"}) != 1:
            raise PydanticCustomError("rule", "it must hold one outcome, and nothing else")
        return self


class Certificate(_Drawn):
    """The whole document."""

    format: Literal["secretballot/certificate"]
    version: Literal[3]
    issued: _Moment
    purpose: str
    unit: Unit
    unit_column: _Filled | None
    relation: Relation
    public: _AnySettings
    price: StatedPrice
    composition: Account
    assumptions: _Sentences
    not_protected: _Sentences
    noise: StatedNoise
    software: Annotated[
        dict[str, Sentence], _rule(lambda found: "opendp" in found, "versions, of opendp also")
    ]
    released: StatedRelease
    plan: Plan = _missing()
    choices: Annotated[list[Choice], Field(max_length=100)] = _missing()
    files: _Files = _missing()
    about: Annotated[
        About, _rule(lambda about: about.model_fields_set, "a title, controller or contact")
    ] = _missing()
    digest: _Digest

    @model_validator(mode="after")
    def _check_unit(self) -> "Certificate":
        if (self.unit == "user") != (self.unit_column is not None):
            raise PydanticCustomError(
                "rule", "a promise to users, and no other one, names the column of users"
            )
        return self

    @property
    def guarantee(self) -> Guarantee:
        """Whose data the promise is about.

        Raises
        ------
        ParameterError
            If there is no such promise.
        """
        return Guarantee(unit=self.unit, relation=self.relation)

    @property
    def document(self) -> Json:
        """The JSON object that it was read from."""
        return self.model_dump(mode="json", exclude_unset=True)

    @property
    def count_columns(self) -> int:
        """How many noisy counts for each query the events pay for beside labels."""
        if not isinstance(self.mechanism, NoisyVotes) or self.mechanism.release == "labels":
            return 0
        return self.mechanism.answer_shape(self.shape)[1]

    @property
    def most_abstentions(self) -> int | None:
        """After how many abstentions nothing more is answered, 0 where there are none; None where
        they end nothing."""
        if self.mechanism.kind in _ANSWERS_SOME:
            return None
        return (self.mechanism.stops_at or 0) if self.mechanism.kind in _ABSTAINS else 0

    def check_terms(self) -> None:
        """Refuse mechanism, shape, settings and labels that contradict each other, or the promise.

        Raises
        ------
        CertificateError, ParameterError
            If they do.
        """
        self.check_event()
        shape, method, released = self.shape, self.public.method, self.released
        promised = shape.guarantee == self.guarantee
        require(promised, "The shape is about another unit or relation than the promise.")
        labelled = (not released.classes) == (method in WITHOUT_CLASSES)
        require(labelled, "Labels have two or more classes, and sums or tables alone have none.")
        teachers = shape.n_teachers if isinstance(shape, VoteShape) else None
        voted = released.n_teachers == (teachers or 0)
        require(voted, "The shape states another n_teachers than the certificate.")
        if isinstance(shape, VoteShape):
            by_records = (teachers is None) == (method == RECORD_VOTES)
            require(by_records, "Votes are those of teachers, or of records that are no teachers.")
            whole = self.unit != "label" or method not in (*TABLES, RECORD_VOTES)
            require(whole, "Such votes are about records or users, not about labels.")
            known = method in TABLES or shape.n_classes == len(released.classes)
            require(known, "The shape states another n_classes than the certificate.")
        self.public.check(self)


def certificate_of_json(document: JsonView) -> Certificate:
    """Return the certificate that a JSON object is.

    Raises
    ------
    CertificateError
        Naming the first field that is missing, unknown or out of range.
    """
    try:
        return Certificate.model_validate(dict(document))
    except ValidationError as error:
        raise _refused(error) from None


def _refused(error: ValidationError) -> CertificateError:
    first = error.errors(include_url=False)[0]
    # a stranger chose the names of fields that there are not
    path = ".".join(map(str, first["loc"]))
    field = plain_line(f"The field {path}", longest=_LONGEST_PLACE)
    if first["type"] == "missing":
        return CertificateError(f"{field} is missing.")
    if first["type"] == "extra_forbidden":
        return CertificateError(f"{field} is unknown; that part has no such field.")
    if cause := first.get("ctx", {}).get("error"):
        return CertificateError(f"{field} is refused: {cause}")
    return CertificateError(f"{field} is {shown(first['input'])}: {first['msg']}.")


def _is_beyond(event: Event) -> bool:
    match event:
        case accounting.BinaryLabels(chances=accounting.GaussianChances(sigma=sigma)):
            return not sigma <= _MAX_LABEL_SIGMA
        case accounting.Counts(sigma=sigma, shifts=shifts):
            return not sigma * math.sqrt(shifts) <= _MAX_DEVIATION
        case accounting.ClassLabels():
            return _is_beyond(event.rough())
        case accounting.SparseStream(threshold_scale=first, query_scale=second):
            return not max(first, second) <= _MAX_SCALE
        case accounting.Sampled(stream=stream):
            return _is_beyond(stream)
        case accounting.Confident():
            return any(map(_is_beyond, event.parts()))
    return False


def check_integers(values: Sequence[Sequence[int]] | None, n_rows: int, drawn: _Drawable) -> None:
    """Refuse released values that are not so many rows of so many integers within bounds.

    Raises
    ------
    CertificateError
        If they are not.
    """
    low, high = max(drawn.low, -LARGEST), min(drawn.high, LARGEST)
    rows = values or ()
    fits = len(rows) == n_rows and all(len(row) == drawn.columns for row in rows)
    require(
        fits and all(low <= one <= high for row in rows for one in row),
        f"The released values are not {n_rows} lists of {drawn.columns} integers that the mechanism"
        " could have drawn.",
    )


def stated(certificate: JsonView) -> Json:
    """Return mechanism, shape, public settings and released integers of a certificate in one
    mapping, for those who show them: with ``sigma``, ``bound``, ``n_stages``, ``counts_first`` and
    ``votes_per_record`` where there are such; the values are those of the stages.

    Parameters
    ----------
    certificate : mapping
        That verifies, or was written here.
    """
    mechanism, shape = certificate["mechanism"], certificate["shape"]
    # a stream that a relabelled sample is asked, and the sample
    inner = {**mechanism.get("stream", {}), **(shape.get("sample") or {})}
    found = {**inner, **mechanism, **shape, **certificate["public"]}
    found |= {key: certificate["released"].get(key) for key in ("rows", "values")}
    moves = 2 if shape["guarantee"]["relation"] == "replace-one" else 1
    if "sigmas" in mechanism:
        n_stages = len(found["residual_units"])
        # counts of classes, where there are such, come before the stages, with noise of their own
        found["counts_first"] = len(mechanism["sigmas"]) > n_stages
        found |= {"sigma": mechanism["sigmas"][-1], "n_stages": n_stages}
        found["values"] = found["values"][-n_stages:]
        found["bound"] = math.isqrt(shape["squared_sensitivity"] // moves**2)
    if mechanism["kind"] == "noisy-votes":
        found["sigma"] = mechanism["scale"]
    if certificate["public"]["method"] == RECORD_VOTES:
        found["votes_per_record"] = shape["moved"] // moves
    return found


# --- rounds and choices: do they fit the release, and is every choice paid for? ---

_SLOW_EVENTS = ("binary-labels", "class-labels", "confident", "sampled")
_MAX_SLOW_EVENTS = 10
_MAX_LABELS = 5_000  # in all choices: about the time of one large release


def total_price(certificate: JsonView) -> tuple[float, float]:
    """Return the (epsilon, delta) of the release and all its choices by basic composition."""
    parts = [certificate, *certificate.get("choices", ())]
    return math.fsum(part["epsilon"] for part in parts), math.fsum(part["delta"] for part in parts)


def stands_alone(certificate: JsonView) -> bool:
    """Return whether the account holds this release, with its choices, and holds no other.

    Then it was opened for this release, and knows of no other from the same data.
    """
    composition = certificate["composition"]
    amounts = [composition["budget"], composition["spent_after"]]
    return composition["kind"] == "basic" and all(
        math.isclose(amount[key], price, rel_tol=SLACK - 1)
        for amount in amounts
        for key, price in zip(("epsilon", "delta"), total_price(certificate), strict=True)
    )


def check_plan(certificate: Certificate) -> str:
    """Return a sentence on the plan of a certificate.

    Raises
    ------
    CertificateError
        If plan, mechanism, events and released labels contradict each other.
    """
    # the same number is in several places; each pair is compared, so that a forger who changes
    # one of them contradicts another
    plan, released, shape = certificate.plan, certificate.released, certificate.shape
    require(certificate.public.method == _VOTES, "Votes of teachers alone are released in rounds.")
    planned, used = plan.planned, plan.used
    fits = getattr(shape, "n_queries", None) == planned and used <= planned
    require(fits, f"The plan is of {planned} queries, and the mechanism was set up for others.")
    require(
        used == released.queries == sum(plan.rounds),
        f"The plan says that {used} queries were used; its rounds hold {sum(plan.rounds)}, and"
        f" {released.queries} were released.",
    )
    # only a Renyi ledger takes unused queries back
    require(
        (plan.left == "none") == (used == planned)
        and (plan.left != "returned" or certificate.composition.kind == "renyi"),
        f"The plan says {plan.left!r} of what was left: {planned - used} queries.",
    )
    reserved = count_text(planned, "reserved query")
    turns = count_text(len(plan.rounds), "round")
    return f"{used} of {reserved} used, in {turns}; the price is that of the whole reservation."


def check_choices(certificate: Certificate) -> str:
    """Return a sentence on the choices of a certificate.

    Raises
    ------
    CertificateError
        If a choice costs more than it states, or was not paid for by a reservation of its own.
    """
    # a forger may list choices that take hours to price: their number is bounded before any is
    choices = certificate.choices
    if not choices:
        return "Nothing was chosen with private data."
    _refuse_slow_choices(choices)
    for number, choice in enumerate(choices, 1):
        cost = accounting.delta_upper([choice.event], choice.epsilon)
        require(
            cost <= choice.delta * SLACK,
            f"Choice {number} cost delta {cost:.6g} at epsilon {choice.epsilon:.6g}; it states"
            f" {choice.delta:.6g}.",
        )
        _check_outcome(number, choice, certificate)
    reservations = [certificate.composition.reservation, *(one.reservation for one in choices)]
    apart = len(set(reservations)) == len(reservations)
    require(apart, "Two of the choices, or a choice and the release, name the same reservation.")
    epsilon, delta = total_price(certificate.document)
    return (
        f"{count_text(len(choices), 'choice')} priced again; release and choices together cost"
        f" epsilon {number_text(epsilon)} and delta {number_text(delta)} (sums)."
    )


def _refuse_slow_choices(choices: Sequence[Choice]) -> None:
    """Refuse more slow events than a release ever has: they would hold up the verifier."""
    # the games of labels take the longer the more labels they hold
    slow = [choice.event for choice in choices if choice.event.kind in _SLOW_EVENTS]
    labels = sum(getattr(event, "queries", 0) for event in slow)
    few = len(slow) <= _MAX_SLOW_EVENTS and (len(slow) <= 1 or labels <= _MAX_LABELS)
    require(
        few,
        f"{len(slow)} choices are label games or relabelled samples, of {labels} labels, which take"
        f" seconds each; at most {_MAX_SLOW_EVENTS} are priced, of {_MAX_LABELS} labels.",
    )


def _check_outcome(number: int, choice: Choice, certificate: Certificate) -> None:
    """Refuse a choice that is about another promise, or states more than the one number, or the
    labels, of its event."""
    choice.check_event()
    own, by_teachers = choice.shape.guarantee, choice.by_teachers
    adds = own.adds_to(certificate.guarantee, by_teachers=by_teachers)
    require(adds, f"Choice {number} is about another unit or relation.")
    # labels are named by their digest alone; of a number, everything that is stated must be what
    # one draw of the priced event can tell
    if choice.labels_sha256 is not None:
        return
    known = not isinstance(choice.public, MethodAlone)
    require(known, f"Choice {number} was drawn by no known mechanism; update secretballot.")
    check_integers([[choice.value]], 1, choice.public.drawable(choice) or _Drawable(1, 1))


# --- how far the public points cover the records, as noisy sums have counted it ---

#: What is counted beside the moments: the records, unless their number is public, and those with a
#: cell that the public points do not show.
RECORDS, UNCOVERED = "records", "uncovered"
#: What the counts of classes, which come first, take of the squared signal-to-noise ratio of all
#: sums of a release.
COUNTS_SHARE = 0.02


def counts_scale(n_stages: int) -> float:
    """Return the scale of the noise of the counts of classes over that of a stage."""
    return math.sqrt((1 - COUNTS_SHARE) / (COUNTS_SHARE * n_stages))


#: Share expected to be uncovered, above which uncovered records are not left out from the start.
MOST_EXPECTED = 0.25

#: Share of the records that may be uncovered beyond what is expected.
_LEAST_EXCESS = 0.03


@dataclass(frozen=True)
class Coverage:
    """How far public points cover the records; released with the sums.

    Attributes
    ----------
    uncovered : float
        Share of the records with a cell that the public points do not show, with noise.
    standard_error : float
        Of that share, by the noise.
    expected : float
        Share where records are like the public points, about.
    """

    uncovered: float
    standard_error: float
    expected: float

    @property
    def is_poor(self) -> bool:
        """Whether more records are uncovered than chance and noise explain."""
        beyond = self.uncovered - self.expected
        return beyond > _LEAST_EXCESS + 3 * self.standard_error

    @property
    def warning(self) -> str:
        """What to say aloud where it is poor."""
        return (
            f"About {100 * self.uncovered:.0f} % of the records have values that the public points"
            f" do not show, where {100 * self.expected:.0f} % were to be expected: the model knows"
            " nothing of them. Give public points from all parts of the population. This was paid"
            " for and is on the certificate."
        )


def coverage_on(terms: JsonView) -> tuple[Coverage, float, float] | None:
    """Return what the marks say, as `counted_by_marks`; None where the public points are the
    records' own.

    Parameters
    ----------
    terms : mapping
        What `stated` returns of a certificate of noisy sums.
    """
    stated = ("values", "marks", "mark_weight", "sigma", "n_records", "expected_uncovered")
    return counted_by_marks(*(terms[name] for name in stated)) if terms["marks"] else None


def counted_by_marks(
    sums: Sequence[Any],
    marks: Sequence[str],
    mark_weight: int,
    sigma: float,
    n_records: float | None,
    expected: float,
) -> tuple[Coverage, float, float]:
    """Return the coverage, the number of records, and the standard error of a count.

    Parameters
    ----------
    sums : sequence of sequences of int
        Released; what each mark counts comes last, in the order of `marks`.
    marks : sequence of str
        Of `RECORDS` and `UNCOVERED`.
    mark_weight : int
        What a mark of one record adds.
    sigma : float
        Scale of the noise.
    n_records : float or None
        Where it is public; None where the sums count them.
    expected : float
        Share of uncovered records where they are like the public points.
    """
    error = sigma / mark_weight / math.sqrt(len(sums))
    counted = {
        mark: float(np.mean([one[place - len(marks)] for one in sums])) / mark_weight
        for place, mark in enumerate(marks)
    }
    # fewer than the noise could hide are taken for as many as it could
    number = float(n_records) if n_records is not None else max(counted[RECORDS], error, 1.0)
    share = min(max(counted[UNCOVERED] / number, 0.0), 1.0)
    return Coverage(share, error / number, expected), number, error


def coverage_by_votes(
    terms: JsonView, noisy_counts: IntArray
) -> tuple[Coverage, float, float] | None:
    """Return what the counts of votes of records say; as `counted_by_marks`, but the error is that
    of the number of records. None where uncovered records were not distinguished.

    Parameters
    ----------
    terms : mapping
        What `stated` returns of a certificate of votes of records.
    noisy_counts : ndarray of int64, shape (n_points, n_classes)
        Released.
    """
    if "expected_uncovered" not in terms:
        return None
    k, sigma = terms["votes_per_record"], float(terms["sigma"])
    counts = np.asarray(noisy_counts)
    # every record casts k votes, here or in the cells of the uncovered ones
    error = sigma * math.sqrt(counts.size + k) / k
    uncovered = terms["values"][0][0] / k
    number = max(float(counts.sum()) / k + uncovered, error, 1.0)
    share = min(max(uncovered / number, 0.0), 1.0)
    of_share = math.hypot(sigma / math.sqrt(k), share * error) / number
    return Coverage(share, of_share, terms["expected_uncovered"]), number, error
