"""Events as data: what was drawn, in the parameters of the mechanism that drew it.

An event holds public parameters only, serialises to JSON under a name and a version, and knows no
price: the rooms beside this one read it. Every event speaks about one teacher's change of vote (see
`core.partition` for why one unit touches one teacher).
"""

import math
from abc import ABC
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from dataclasses import fields as dataclass_fields
from itertools import islice, pairwise
from typing import Any, ClassVar

from secretballot._validation import (
    LARGEST_INTEGER,
    NEIGHBOURS,
    check_choice,
    check_count,
    check_positive,
    name_part,
    shown,
)
from secretballot.exceptions import Parameter, ParameterError

MIN_SCALE, MAX_SCALE = 1e-6, 1e12  # less noise promises nothing; more cannot be drawn
MAX_LOSS = 1e12  # nats; of one pure part, far beyond any promise
MAX_THRESHOLD = 10**15  # votes; a thousand of the largest scales
FARTHEST = 40  # standard deviations and votes; noise lies beyond with chances below 1e-24
MAX_COUNT = 10**12  # beyond any real stream; keeps sums exact in float arithmetic
# orders of a table: below, a divergence says next to nothing; above, no promise needs them
MIN_ORDER, MAX_ORDER = 1 + 2.0**-10, 2.0**13
MIN_CHARGE, MAX_CHARGE = 2.0**-44, 64.0  # for one abstention, of the moment of that order
# chance of an answer at a tie; weights of 62 bits keep two digits of the smallest
MIN_ANSWER, MAX_ANSWER = 2.0**-56, 0.5
CHANCE_BITS = 53  # chances are multiples of 2^-53, which floats hold exactly
MAX_WEIGHTS = 10_000  # of one table; bounds what a certificate makes a reader compute
# nats; outside, a relabelling is a random one or the best one itself
MIN_RELABEL, MAX_RELABEL = 2.0**-20, 100.0


def _checked_count(name: str, value: object) -> int:
    number = check_count(name, value)
    if not number <= MAX_COUNT:
        raise ParameterError(
            name_part(name), f" is {shown(number)}; it must be at most {MAX_COUNT}."
        )
    return number


def _checked_squared(value: object) -> int:
    number = check_count("squared_sensitivity", value)
    if not number <= LARGEST_INTEGER:
        raise ParameterError(
            Parameter("squared_sensitivity"),
            f" is {shown(number)}; it must be at most {LARGEST_INTEGER}, the largest integer that"
            " a certificate states. Take a coarser grid.",
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


def _checked_between(name: str, value: object, least: float, most: float) -> float:
    number = check_positive(name, value)
    if not least <= number <= most:
        raise ParameterError(
            name_part(name), f" is {number}; it must lie between {least:.6g} and {most:.6g}."
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
class ArgmaxGaussianEvent(Event):
    """Labels released alone: the class with the most votes after discrete Gaussian noise on each.

    Parameters
    ----------
    sigma : float
        Scale of the noise on every class's count, in votes.
    queries : int
        Number of labels, adaptively asked. The number of classes enters no price.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> labels = accounting.ArgmaxGaussianEvent(sigma=40.0, queries=60)
    >>> counts = accounting.GaussianEvent(sigma=40.0, shifts=120)
    >>> accounting.delta_upper([labels], 1.0) < accounting.delta_upper([counts], 1.0)
    True
    """

    sigma: float
    queries: int
    name: ClassVar[str] = "argmax-gaussian"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", _checked_scale("sigma", self.sigma))
        object.__setattr__(self, "queries", _checked_count("queries", self.queries))
        _ = self.counts  # refuses more shifts than are counted

    @property
    def counts(self) -> GaussianEvent:
        """The noisy counts that the labels are read off: two of them move at every query."""
        return GaussianEvent(self.sigma, 2 * self.queries)


@dataclass(frozen=True)
class VoteTableEvent(Event):
    """Binary labels released alone, each drawn with a chance that a public table gives.

    Where one class has the majority of K votes by the margin m, the other one is told with
    probability weights[m // 2] / 2^53, the last weight standing for all larger margins.

    Parameters
    ----------
    weights : sequence of int
        Chances of the minority's label, in units of 2^-53, for margins from the smallest on: 0, 2,
        4, ... for an even number of teachers, 1, 3, 5, ... for an odd one. None is larger than the
        one before or below 1, and the last is below 2^52. An even vote is a fair coin: its weight
        is 2^52.
    queries : int
        Number of labels, adaptively asked.
    n_teachers : int
        Number K of teachers.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> event = accounting.VoteTableEvent([2**52, 2**51, 2**50], queries=1, n_teachers=10)
    >>> [chance / 2**53 for chance in event.chances]
    [0.125, 0.25, 0.5, 0.75, 0.875]
    """

    weights: tuple[int, ...]
    queries: int
    n_teachers: int
    name: ClassVar[str] = "vote-table"

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", _checked_count("queries", self.queries))
        object.__setattr__(self, "n_teachers", _checked_count("n_teachers", self.n_teachers))
        object.__setattr__(self, "weights", _checked_weights(self.weights, self.n_teachers))

    @property
    def chances(self) -> tuple[int, ...]:
        """Chances of label 1, in units of 2^-53, vote by vote; all others equal the first or the
        last."""
        above = tuple(2**CHANCE_BITS - weight for weight in self.weights)
        below = self.weights[::-1]
        return below + (above[1:] if self.n_teachers % 2 == 0 else above)

    def to_json(self) -> dict[str, Any]:
        """Return the event as a JSON object with its name and version."""
        return super().to_json() | {"weights": list(self.weights)}


def _checked_weights(value: object, n_teachers: int) -> tuple[int, ...]:
    """Return the weights of a table, within its rules."""
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
        raise ParameterError(
            Parameter("weights"), f" are a {type(value).__name__}; give integers, one a margin."
        )
    half, most = 2 ** (CHANCE_BITS - 1), min(MAX_WEIGHTS, n_teachers // 2 + 1)
    # one more than allowed is enough to refuse, even where the weights never end
    given = tuple(islice(value, most + 1))
    if not 1 <= len(given) <= most:
        raise ParameterError(
            Parameter("weights"),
            f" hold no chance or more than {most}; give at most one for each margin that"
            f" {n_teachers} teachers can have.",
        )
    weights = tuple(check_count("weights", weight) for weight in given)
    if any(later > earlier for earlier, later in pairwise(weights)):
        raise ParameterError(
            Parameter("weights"), " grow with the margin; none may be larger than the one before."
        )
    if not (weights[0] <= half and weights[-1] < half):
        raise ParameterError(
            Parameter("weights"),
            " are more than one half, or none is below; the minority's label is the rarer one.",
        )
    if n_teachers % 2 == 0 and weights[0] != half:
        raise ParameterError(
            Parameter("weights"),
            f" begin with {weights[0]} for an even vote of {n_teachers} teachers; neither class is"
            f" the minority, so it must be 2^{CHANCE_BITS - 1}.",
        )
    return weights


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
    ['LabelGaussianEvent', 'ArgmaxGaussianEvent']
    >>> accounting.epsilon_upper([event], 1e-5) < 2.4
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
    def parts(self) -> tuple[LabelGaussianEvent, ArgmaxGaussianEvent | LabelGaussianEvent]:
        """What it is composed of: answers about the threshold, and labels."""
        labels: ArgmaxGaussianEvent | LabelGaussianEvent
        if self.n_classes == 2:
            labels = LabelGaussianEvent(self.sigma, self.answers)
        else:
            labels = ArgmaxGaussianEvent(self.sigma, self.answers)
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
        squared = _checked_squared(self.squared_sensitivity)
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
class BoundedRangeEvent(Event):
    """Draws whose privacy loss lies in an interval of a fixed length, adaptively composed.

    So are draws of the exponential mechanism: the logarithm of the ratio of two neighbours'
    probabilities takes values in an interval of length epsilon, which holds 0.

    Parameters
    ----------
    epsilon : float
        Length of the interval, in nats.
    count : int
        Number of draws.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> draws = accounting.BoundedRangeEvent(epsilon=0.1, count=40)
    >>> parts = accounting.PureEvent(epsilon=0.1, count=40)
    >>> accounting.epsilon_upper([draws], 1e-6) < 0.6 * accounting.epsilon_upper([parts], 1e-6)
    True
    """

    epsilon: float
    count: int
    name: ClassVar[str] = "bounded-range"

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
class AbstentionTableEvent(Event):
    """A stream of exact pluralities, told or withheld by a table of chances, stopped at the T-th
    abstention.

    A query whose plurality is `d` votes from changing is withheld with probability f(d) and else
    answered. For d = 0, 1, 2, ... the table keeps two inequalities between neighbours f = f(d), g =
    f(d + 1), with s = 1 - f, t = 1 - g:

        f^a g^(1-a) e^-charge + s^a t^(1-a) <= 1, and the same with f, s and g, t exchanged,

    at the order a, and answers at d = 0 with probability at most `false_answer`. Every such table
    has the same price.

    Parameters
    ----------
    order : float
        Order a of the inequalities, above 1.
    charge : float
        What one abstention may add to the logarithm of the moment of that order.
    false_answer : float
        Largest chance of an answer at distance 0, where a vote decides which answer it is.
    max_unstable : int
        Number T of abstentions at which the stream stops.

    Examples
    --------
    >>> from secretballot.privacy import accounting
    >>> event = accounting.AbstentionTableEvent(27.0, 0.25, 4e-9, max_unstable=50)
    >>> accounting.delta_upper([event], 1.0) < 1e-6
    True
    """

    order: float
    charge: float
    false_answer: float
    max_unstable: int
    name: ClassVar[str] = "abstention-table"

    def __post_init__(self) -> None:
        bounds = {
            "order": (MIN_ORDER, MAX_ORDER),
            "charge": (MIN_CHARGE, MAX_CHARGE),
            "false_answer": (MIN_ANSWER, MAX_ANSWER),
        }
        for name, (least, most) in bounds.items():
            value = _checked_between(name, getattr(self, name), least, most)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "max_unstable", _checked_count("max_unstable", self.max_unstable))


#: Streams that stop at the T-th abstention.
StreamEvent = SparseVectorEvent | AbstentionTableEvent


@dataclass(frozen=True)
class RelabelledSampleEvent(Event):
    """A stream asked of teachers that learned from a secret random sample of the records,
    relabelled.

    The sample is drawn for this stream alone and never told; a labelling of its points is chosen
    with probability proportional to exp(-relabel_epsilon * mistakes / 2) among those that a class
    of hypotheses gives; one record of the relabelled sample reaches one teacher.

    Parameters
    ----------
    stream : SparseVectorEvent or AbstentionTableEvent
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

    stream: StreamEvent
    sampled: int
    out_of: int
    neighbours: str
    relabel_epsilon: float = 1.0
    name: ClassVar[str] = "relabelled-sample"

    def __post_init__(self) -> None:
        if not isinstance(self.stream, StreamEvent):
            raise ParameterError(
                Parameter("stream"),
                f" is a {type(self.stream).__name__}; it must be a SparseVectorEvent or an"
                " AbstentionTableEvent.",
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
        ArgmaxGaussianEvent,
        VoteTableEvent,
        ConfidentEvent,
        PureEvent,
        BoundedRangeEvent,
        StabilityEvent,
        SparseVectorEvent,
        AbstentionTableEvent,
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
    names = (SparseVectorEvent.name, AbstentionTableEvent.name)
    if isinstance(data, Mapping) and data.get("event") in names:
        return event_from_json(data)
    raise ParameterError(f"The stream inside an event must be an event {' or '.join(names)}.")


def _refuse_text_numbers(name: object, fields: Mapping[str, Any]) -> None:
    for field, value in fields.items():
        if isinstance(value, float) and not math.isfinite(value):
            raise ParameterError(
                f"Field {field!r} of event {name!r} is {shown(value)}; it must be finite."
            )
