"""The whole certificate: what was drawn, by which mechanism, from what, as models of the core; and
what its parts must say of each other."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo, model_validator
from pydantic_core import PydanticCustomError

from secretballot._validation import plain_line, shown
from secretballot.accounting import (
    BinaryLabels,
    ClassLabels,
    Confident,
    Counts,
    Event,
    GaussianChances,
    Pure,
    Sampled,
    SparseStream,
    delta_upper,
    event_in,
)
from secretballot.core.errors import Relation, Unit
from secretballot.core.events import AnyEvent
from secretballot.core.mechanisms import (
    AnyMechanism,
    NoisyVotes,
    Shape,
    mechanism_in,
    shape_in,
)
from secretballot.core.types import LARGEST, Guarantee, VoteShape
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.methods import (
    ABSTAINS,
    ANSWERS_SOME,
    RECORD_VOTES,
    TABLES,
    VOTES,
    WITHOUT_CLASSES,
    AnySettings,
    Drawable,
    ExponentialSettings,
    MethodAlone,
    Quantile,
)
from secretballot.report.certificate.models import (
    About,
    Account,
    Delta,
    Digest,
    Epsilon,
    Files,
    Filled,
    Moment,
    Part,
    Plan,
    Positive,
    Sentence,
    Sentences,
    StatedNoise,
    StatedPrice,
    StatedRelease,
    missing,
    rule,
)

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
    event = event_in(content)
    if _is_beyond(event):
        raise CertificateError(
            "An event has more noise or more queries than this program computes with."
        )
    return event


class Drawn(Part):
    """What was drawn, from what, and at which price."""

    mechanism: Annotated[AnyMechanism, BeforeValidator(mechanism_in)]
    shape: Annotated[Shape, BeforeValidator(_read_shape)]
    public: Any
    events: Annotated[
        list[Annotated[AnyEvent, BeforeValidator(_read_event)]],
        Field(min_length=1, max_length=1),
    ]
    epsilon: Epsilon
    delta: Delta

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
        shape = self.shape
        every = not isinstance(shape, VoteShape) or shape.moved == shape.n_queries
        if self.public.method == VOTES and not every:
            raise CertificateError("A teacher may vote otherwise at every query.")
        kind, kinds = self.mechanism.kind, self.public.kinds
        if kinds and kind not in kinds:
            raise CertificateError(
                f"The method {shown(self.public.method)} has no mechanism {shown(kind)}."
            )
        if self.mechanism.event(shape) != self.event:
            raise CertificateError(
                "The events are not those of the mechanism: its noise, its queries and what it"
                " releases have another price."
            )


class Choice(Drawn):
    """What private data decided beside the release, under a reservation of its own: one number, or
    labels, of which the digest is stated."""

    public: Annotated[
        ExponentialSettings | Quantile | MethodAlone, Field(union_mode="left_to_right")
    ]
    purpose: Filled
    value: int = missing()
    labels_sha256: Digest = missing()
    reservation: Positive

    @model_validator(mode="after")
    def _check_outcome(self) -> "Choice":
        if len(self.model_fields_set & {"value", "labels_sha256"}) != 1:
            raise PydanticCustomError("rule", "it must hold one outcome, and nothing else")
        return self


class Certificate(Drawn):
    """The whole document."""

    format: Literal["secretballot/certificate"]
    version: Literal[3]
    issued: Moment
    purpose: str
    unit: Unit
    unit_column: Filled | None
    relation: Relation
    public: AnySettings
    price: StatedPrice
    composition: Account
    assumptions: Sentences
    not_protected: Sentences
    noise: StatedNoise
    software: Annotated[
        dict[str, Sentence], rule(lambda found: "opendp" in found, "versions, of opendp also")
    ]
    released: StatedRelease
    plan: Plan = missing()
    choices: Annotated[list[Choice], Field(max_length=100)] = missing()
    files: Files = missing()
    about: Annotated[
        About, rule(lambda about: about.model_fields_set, "a title, controller or contact")
    ] = missing()
    digest: Digest

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
    def document(self) -> dict[str, Any]:
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
        if self.mechanism.kind in ANSWERS_SOME:
            return None
        return (self.mechanism.stops_at or 0) if self.mechanism.kind in ABSTAINS else 0

    def check_terms(self) -> None:
        """Refuse mechanism, shape, settings and labels that contradict each other, or the promise.

        Raises
        ------
        CertificateError, ParameterError
            If they do.
        """
        self.check_event()
        shape, method, released = self.shape, self.public.method, self.released
        if shape.guarantee != self.guarantee:
            raise CertificateError("The shape is about another unit or relation than the promise.")
        if (not released.classes) != (method in WITHOUT_CLASSES):
            raise CertificateError(
                "Labels have two or more classes, and sums or tables alone have none; the"
                " certificate says otherwise."
            )
        teachers = shape.n_teachers if isinstance(shape, VoteShape) else None
        if released.n_teachers != (teachers or 0):
            raise CertificateError("The shape states another n_teachers than the certificate.")
        if isinstance(shape, VoteShape):
            if (teachers is None) != (method == RECORD_VOTES):
                raise CertificateError(
                    "Votes are those of teachers, or of records that are no teachers."
                )
            if self.unit == "label" and method in (*TABLES, RECORD_VOTES):
                raise CertificateError("Such votes are about records or users, not about labels.")
            if method not in TABLES and shape.n_classes != len(released.classes):
                raise CertificateError("The shape states another n_classes than the certificate.")
        for contradiction in self.public.contradictions(self):
            raise CertificateError(contradiction)


def certificate_of_json(document: Mapping[str, Any]) -> Certificate:
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
        case BinaryLabels(chances=GaussianChances(sigma=sigma)):
            return not sigma <= _MAX_LABEL_SIGMA
        case Counts(sigma=sigma, shifts=shifts):
            return not sigma * math.sqrt(shifts) <= _MAX_DEVIATION
        case ClassLabels():
            return _is_beyond(event.rough())
        case SparseStream(threshold_scale=first, query_scale=second):
            return not max(first, second) <= _MAX_SCALE
        case Sampled(stream=stream):
            return _is_beyond(stream)
        case Confident():
            return any(map(_is_beyond, event.parts()))
    return False


def event_delta(event: Event, epsilon: float) -> float:
    """Return the delta that an event costs at `epsilon`; exactly 0 where it is a pure one.

    `delta_upper` rounds upward and never returns 0, so a pure promise would fail in its seventeenth
    digit.
    """
    if isinstance(event, Pure) and event.epsilon * event.count <= epsilon * SLACK:
        return 0.0
    return delta_upper([event], epsilon)


def check_integers(values: Sequence[Sequence[int]] | None, n_rows: int, drawn: Drawable) -> None:
    """Refuse released values that are not so many rows of so many integers within bounds.

    Raises
    ------
    CertificateError
        If they are not.
    """
    low, high = max(drawn.low, -LARGEST), min(drawn.high, LARGEST)
    rows = values or ()
    fits = len(rows) == n_rows and all(len(row) == drawn.columns for row in rows)
    if not fits or not all(low <= one <= high for row in rows for one in row):
        raise CertificateError(
            f"The released values are not {n_rows} lists of {drawn.columns} integers that the"
            " mechanism could have drawn."
        )


def stated(certificate: Mapping[str, Any]) -> dict[str, Any]:
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
