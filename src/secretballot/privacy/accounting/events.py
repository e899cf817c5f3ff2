"""Events as data: what was drawn, in the parameters of the mechanism that drew it.

An event holds public parameters only, serialises to JSON under a name and a version, and knows no
price: the rooms beside this one read it. Every event speaks about one teacher's change of vote (see
`ensemble.partition` for why one unit touches one teacher).
"""

import math
from abc import ABC
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from typing import Any, ClassVar

from secretballot._validation import (
    NEIGHBOURS,
    check_choice,
    check_count,
    check_positive,
    name_part,
    shown,
)
from secretballot.exceptions import Parameter, ParameterError

__all__ = [
    "ConfidentEvent",
    "Event",
    "GaussianEvent",
    "LabelGaussianEvent",
    "PureEvent",
    "RelabelledSampleEvent",
    "SparseVectorEvent",
    "StabilityEvent",
    "VectorSumEvent",
    "event_from_json",
]

MIN_SCALE, MAX_SCALE = 1e-6, 1e12  # less noise promises nothing; more cannot be drawn
MAX_LOSS = 1e12  # nats; of one pure part, far beyond any promise
MAX_THRESHOLD = 10**15  # votes; a thousand of the largest scales
MAX_SQUARED = 10**18  # units of the grid, squared; norms are computed in 64-bit integers
MAX_COUNT = 10**12  # beyond any real stream; keeps sums exact in float arithmetic
# nats; outside, a relabelling is a random one or the best one itself
MIN_RELABEL, MAX_RELABEL = 2.0**-20, 100.0


def _checked_count(name: str, value: object) -> int:
    number = check_count(name, value)
    if not number <= MAX_COUNT:
        raise ParameterError(
            name_part(name), f" is {shown(number)}; it must be at most {MAX_COUNT}."
        )
    return number


def _checked_threshold(value: object) -> int:
    number = check_count("threshold", value, minimum=0)
    if not number <= MAX_THRESHOLD:
        raise ParameterError(
            Parameter("threshold"),
            f" is {shown(number)}; it must be at most {MAX_THRESHOLD} votes.",
        )
    return number


def _checked_scale(name: str, value: object) -> float:
    number = check_positive(name, value)
    if not MIN_SCALE <= number <= MAX_SCALE:
        raise ParameterError(
            name_part(name), f" is {number}; it must lie between {MIN_SCALE} and {MAX_SCALE} votes."
        )
    return number


@dataclass(frozen=True)
class Event(ABC):
    """Base of all events.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> event = accounting.PureEvent(epsilon=0.5, count=2)
    >>> accounting.event_from_json(event.to_json()) == event
    True
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1

    def to_json(self) -> dict[str, Any]:
        """Return the event as a JSON object with its name and version."""
        return {"event": self.name, "version": self.version, **asdict(self)}


@dataclass(frozen=True)
class GaussianEvent(Event):
    """Integers released with discrete Gaussian noise.

    Parameters
    ----------
    sigma : float
        Scale of the discrete Gaussian, P(x) proportional to exp(-x^2 / (2 sigma^2)), in votes.
    shifts : int
        Number of released integers that one teacher can move, by one vote each: one per binary
        query, two per histogram of more than two classes.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> event = accounting.GaussianEvent(sigma=40.0, shifts=100)
    >>> event.to_json()
    {'event': 'gaussian', 'version': 1, 'sigma': 40.0, 'shifts': 100}
    """

    sigma: float
    shifts: int
    name: ClassVar[str] = "gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _checked_scale("sigma", self.sigma))
        object.__setattr__(self, "shifts", _checked_count("shifts", self.shifts))


@dataclass(frozen=True)
class LabelGaussianEvent(Event):
    """Binary labels released alone: 1 if 2 * (count + discrete Gaussian noise) >= K.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes.
    queries : int
        Number of labels, adaptively asked.
    n_teachers : int or None
        Number K of teachers; None prices the event for every K at once.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> label = accounting.LabelGaussianEvent(sigma=40.0, queries=20)
    >>> count = accounting.GaussianEvent(sigma=40.0, shifts=20)
    >>> accounting.delta_upper([label], 1.0) < accounting.delta_upper([count], 1.0)
    True
    """

    sigma: float
    queries: int
    n_teachers: int | None = None
    name: ClassVar[str] = "label-gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _checked_scale("sigma", self.sigma))
        object.__setattr__(self, "queries", _checked_count("queries", self.queries))
        if self.n_teachers is not None:
            object.__setattr__(self, "n_teachers", _checked_count("n_teachers", self.n_teachers))


@dataclass(frozen=True)
class ConfidentEvent(Event):
    """Queries that a noisy threshold lets pass or refuses; those that pass get a noisy label.

    Whether the highest count (less a public number) and discrete Gaussian noise reach a public
    threshold is told for every query. Where they do, the label that has the most votes under fresh
    noise is told too, until a fixed number of queries were answered.

    Parameters
    ----------
    threshold_sigma : float
        Scale of the noise on the highest count, in votes.
    sigma : float
        Scale of the noise on the counts that a label is read off, in votes.
    queries : int
        Most queries that are asked, adaptively chosen.
    answers : int
        Most of them that are answered; nothing is told after that many.
    n_classes : int
        Number of classes.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> event = accounting.ConfidentEvent(150.0, 40.0, queries=640, answers=286, n_classes=10)
    >>> [type(part).__name__ for part in event.parts]
    ['LabelGaussianEvent', 'GaussianEvent']
    >>> accounting.epsilon_upper([event], 1e-5) < 2.543
    True
    """

    threshold_sigma: float
    sigma: float
    queries: int
    answers: int
    n_classes: int
    name: ClassVar[str] = "confident"

    def __post_init__(self) -> None:
        for scale in ("threshold_sigma", "sigma"):
            object.__setattr__(self, scale, _checked_scale(scale, getattr(self, scale)))
        for count in ("queries", "answers"):
            object.__setattr__(self, count, _checked_count(count, getattr(self, count)))
        classes = check_count("n_classes", self.n_classes, minimum=2)
        if not classes <= MAX_COUNT:
            raise ParameterError(
                Parameter("n_classes"), f" is {shown(classes)}; it must be at most {MAX_COUNT}."
            )
        object.__setattr__(self, "n_classes", classes)
        if not self.answers <= self.queries:
            raise ParameterError(
                Parameter("answers"),
                f" is {self.answers} of {self.queries} queries; it must be at most all of them.",
            )
        _ = self.parts  # refuses more shifts than are counted

    @property
    def parts(self) -> tuple[LabelGaussianEvent, GaussianEvent | LabelGaussianEvent]:
        """What it is composed of: answers about the threshold, and labels."""
        # a label of two classes is priced by itself; that of more as the counts it is read off
        labels: GaussianEvent | LabelGaussianEvent
        if self.n_classes == 2:
            labels = LabelGaussianEvent(self.sigma, self.answers)
        else:
            labels = GaussianEvent(self.sigma, 2 * self.answers)
        return LabelGaussianEvent(self.threshold_sigma, self.queries), labels


@dataclass(frozen=True)
class VectorSumEvent(Event):
    """Sums of bounded integer vectors, one vector a unit, with discrete Gaussian noise on each
    coordinate.

    Parameters
    ----------
    sigma : float
        Scale of the discrete Gaussian on each coordinate, in units of the grid.
    squared_sensitivity : int
        Largest squared L2 distance of two neighbouring sums, in units of the grid: b where each
        unit's vector has a squared norm of at most b and a unit comes or goes, 4 b where one is
        replaced.
    coordinates : int
        Number of integers in one sum.
    count : int
        Number of sums, adaptively chosen.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> event = accounting.VectorSumEvent(sigma=80.0, squared_sensitivity=4, coordinates=10)
    >>> accounting.delta_upper([event], 1.0) < 1e-6
    True
    """

    sigma: float
    squared_sensitivity: int
    coordinates: int
    count: int = 1
    name: ClassVar[str] = "vector-sum"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _checked_scale("sigma", self.sigma))
        squared = check_count("squared_sensitivity", self.squared_sensitivity)
        if not squared <= MAX_SQUARED:
            raise ParameterError(
                Parameter("squared_sensitivity"),
                f" is {shown(squared)}; it must be at most {MAX_SQUARED}, the square of a norm"
                " that 64-bit integers hold. Take a coarser grid.",
            )
        object.__setattr__(self, "squared_sensitivity", squared)
        object.__setattr__(self, "coordinates", _checked_count("coordinates", self.coordinates))
        object.__setattr__(self, "count", _checked_count("count", self.count))


@dataclass(frozen=True)
class PureEvent(Event):
    """Parts that are epsilon-DP each, adaptively composed.

    Parameters
    ----------
    epsilon : float
        Pure privacy loss of one part, in nats.
    count : int
        Number of parts.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> event = accounting.PureEvent(epsilon=0.5, count=2)
    >>> accounting.delta_upper([event], 1.0) < 1e-12
    True
    """

    epsilon: float
    count: int
    name: ClassVar[str] = "pure"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))
        if not self.epsilon <= MAX_LOSS:
            raise ParameterError(
                Parameter("epsilon"), f" is {self.epsilon}; it must be at most {MAX_LOSS:g}."
            )
        object.__setattr__(self, "count", _checked_count("count", self.count))


@dataclass(frozen=True)
class StabilityEvent(Event):
    """Distance-to-instability tests: the value itself where dist + discrete Laplace noise >
    threshold.

    Parameters
    ----------
    scale : float
        Scale of the discrete Laplace noise, P(x) proportional to exp(-|x| / scale), in votes.
    threshold : int
        The noisy distance must exceed it, in votes; at least 0.
    count : int
        Number of tests, adaptively chosen.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> event = accounting.StabilityEvent(scale=4.0, threshold=60, count=1)
    >>> accounting.delta_upper([event], 0.5) < 1e-6
    True
    """

    scale: float
    threshold: int
    count: int
    name: ClassVar[str] = "stability"

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", _checked_scale("scale", self.scale))
        object.__setattr__(self, "threshold", _checked_threshold(self.threshold))
        object.__setattr__(self, "count", _checked_count("count", self.count))


@dataclass(frozen=True)
class SparseVectorEvent(Event):
    """A stream of distance-to-instability tests under the sparse vector, stopped at the T-th
    abstention.

    Parameters
    ----------
    threshold_scale, query_scale : float
        Scales of the discrete Laplace noise on the threshold and on every query's distance, in
        votes.
    threshold : int
        Public threshold w, in votes; at least 0. A query is answered if dist + noise > w +
        threshold noise.
    max_unstable : int
        Number T of abstentions at which the stream stops.
    refresh : bool
        True: fresh threshold noise after each abstention. False: threshold noise drawn once.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> event = accounting.SparseVectorEvent(20.0, 40.0, 800, max_unstable=2, refresh=True)
    >>> accounting.delta_upper([event], 1.0) < 1e-6
    True
    """

    threshold_scale: float
    query_scale: float
    threshold: int
    max_unstable: int
    refresh: bool
    name: ClassVar[str] = "sparse-vector"

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "threshold_scale", _checked_scale("threshold_scale", self.threshold_scale)
        )
        object.__setattr__(self, "query_scale", _checked_scale("query_scale", self.query_scale))
        object.__setattr__(self, "threshold", _checked_threshold(self.threshold))
        object.__setattr__(self, "max_unstable", _checked_count("max_unstable", self.max_unstable))
        if not isinstance(self.refresh, bool):
            raise ParameterError(
                Parameter("refresh"), f" is {shown(self.refresh)}; it must be true or false."
            )


@dataclass(frozen=True)
class RelabelledSampleEvent(Event):
    """A stream asked of teachers that learned from a secret random sample of the records,
    relabelled.

    The sample is drawn for this stream alone and never told; a labelling of its points is chosen
    with probability proportional to exp(-relabel_epsilon * mistakes / 2) among those that a class
    of hypotheses gives; one record of the relabelled sample reaches one teacher.

    Parameters
    ----------
    stream : SparseVectorEvent
        What the teachers are asked by.
    sampled, out_of : int
        Under "replace-one" `sampled` of `out_of` records are drawn without replacement, in random
        order. Under "add-remove" each record is taken by itself with probability `sampled` /
        `out_of`.
    neighbours : {"replace-one", "add-remove"}
        Relation that the promise is about.
    relabel_epsilon : float
        Parameter of the choice of a labelling, in nats.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> stream = accounting.SparseVectorEvent(20.0, 40.0, 800, max_unstable=1, refresh=True)
    >>> event = accounting.RelabelledSampleEvent(stream, 10, 1000, neighbours="replace-one")
    >>> event.rate
    0.01
    """

    stream: SparseVectorEvent
    sampled: int
    out_of: int
    neighbours: str
    relabel_epsilon: float = 1.0
    name: ClassVar[str] = "relabelled-sample"

    def __post_init__(self) -> None:
        if not isinstance(self.stream, SparseVectorEvent):
            raise ParameterError(
                Parameter("stream"),
                f" is a {type(self.stream).__name__}; it must be a SparseVectorEvent.",
            )
        object.__setattr__(self, "sampled", _checked_count("sampled", self.sampled))
        object.__setattr__(self, "out_of", _checked_count("out_of", self.out_of))
        if not self.sampled <= self.out_of:
            raise ParameterError(
                Parameter("sampled"),
                f" is {self.sampled} out of {self.out_of}; it must be at most all of them.",
            )
        check_choice("neighbours", self.neighbours, NEIGHBOURS)
        object.__setattr__(
            self, "relabel_epsilon", check_positive("relabel_epsilon", self.relabel_epsilon)
        )
        # outside, a relabelling is a random one or the best one itself
        if not MIN_RELABEL <= self.relabel_epsilon <= MAX_RELABEL:
            raise ParameterError(
                Parameter("relabel_epsilon"),
                f" is {self.relabel_epsilon}; it must lie between 2^-20 and {MAX_RELABEL:g}.",
            )

    @property
    def rate(self) -> float:
        """Probability that one record is in the sample."""
        return self.sampled / self.out_of

    def to_json(self) -> dict[str, Any]:
        """Return the event as a JSON object with its name and version, and the stream as one
        inside."""
        return super().to_json() | {"stream": self.stream.to_json()}


_KINDS: dict[str, type[Event]] = {
    kind.name: kind
    for kind in (
        GaussianEvent,
        LabelGaussianEvent,
        ConfidentEvent,
        PureEvent,
        StabilityEvent,
        SparseVectorEvent,
        RelabelledSampleEvent,
        VectorSumEvent,
    )
}


def event_from_json(data: Mapping[str, Any]) -> Event:
    """Rebuild an event from the object that `Event.to_json` made.

    Raises
    ------
    ParameterError
        If the name or the version is unknown, a field is missing, extra or out of range.
    """
    if not isinstance(data, Mapping):
        raise ParameterError(
            "An event must be a JSON object with the fields 'event' and 'version'."
        )
    fields = dict(data)
    name, version = fields.pop("event", None), fields.pop("version", None)
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        raise ParameterError(
            f"Event {name!r} is unknown; the known ones are {', '.join(sorted(_KINDS))}."
        )
    if (
        type(version) is not int or version != kind.version
    ):  # 1.0 and true are equal to 1, and no program writes them
        raise ParameterError(
            f"Event {name!r} has version {version!r}; this program reads {kind.version}. Update"
            " secretballot."
        )
    wanted = {field.name for field in dataclass_fields(kind)}
    if set(fields) != wanted:
        raise ParameterError(
            f"Event {name!r} has fields {sorted(fields)}; it needs exactly {sorted(wanted)}."
        )
    _refuse_text_numbers(name, fields)
    if kind is RelabelledSampleEvent:
        fields["stream"] = _stream_from_json(fields["stream"])
    return kind(**fields)


def _stream_from_json(data: Any) -> Event:
    """Rebuild the stream inside an event, which has none inside itself."""
    if isinstance(data, Mapping) and data.get("event") == SparseVectorEvent.name:
        return event_from_json(data)
    raise ParameterError(f"The stream inside an event must be an event {SparseVectorEvent.name!r}.")


def _refuse_text_numbers(name: object, fields: Mapping[str, Any]) -> None:
    for field, value in fields.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ParameterError(
                f"Field {field!r} of event {name!r} is {shown(value)}; it must be finite."
            )
