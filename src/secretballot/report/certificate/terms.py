"""What a certificate states of its release: a mechanism of the core, the shape of what it was drawn
from, the one event that follows from both, and public settings."""

import json
import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from pydantic import ValidationError

from secretballot._validation import shown
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
from secretballot.core.mechanisms import Mechanism, NoisyVotes, Shape, mechanism_in, shape_in
from secretballot.core.types import LARGEST, VoteShape
from secretballot.exceptions import CertificateError
from secretballot.report.certificate.methods import (
    ABSTAINS,
    ANSWERS_SOME,
    RECORD_VOTES,
    SETTINGS,
    TABLES,
    VOTES,
    WITHOUT_CLASSES,
    Drawable,
    Settings,
)
from secretballot.report.certificate.models import Certificate, Drawn, refused

# Mathematical libraries differ in the last digits between machines; no promise is refused for that.
SLACK = 1 + 1e-9
# Beyond any release that could be made, and more than pricing could do in minutes: a trap for the
# verifier.
_MAX_DEVIATION = 1e8  # votes, of the sum of all Gaussian noises of one event
_MAX_LABEL_SIGMA = 1e6  # votes
_MAX_SCALE = 1e5  # votes


class Terms:
    """What a certificate, or one of its choices, states of what was drawn, as models of the core;
    each is read when it is first wanted.

    Raises
    ------
    CertificateError, ParameterError
        By an attribute that is none.
    """

    def __init__(self, part: Drawn) -> None:
        self.part = part

    @cached_property
    def mechanism(self) -> Mechanism:
        return mechanism_in(self.part.mechanism)

    @cached_property
    def shape(self) -> Shape:
        return shape_in(self.mechanism, self.part.shape)

    @cached_property
    def event(self) -> Event:
        return read_event(self.part.events[0])

    @cached_property
    def settings(self) -> Settings:
        method, kind = self.part.public["method"], self.mechanism.kind  # type: ignore[attr-defined]
        try:
            found: Settings = SETTINGS.validate_python(self.part.public)
        except ValidationError as error:
            raise refused(error, "public") from None
        if kind not in found.kinds:
            raise CertificateError(f"The method {shown(method)} has no mechanism {shown(kind)}.")
        return found

    @property
    def by_teachers(self) -> bool:
        """Whether votes of teachers were drawn from."""
        return isinstance(self.shape, VoteShape) and self.shape.n_teachers is not None

    def check_event(self) -> None:
        """Refuse another event than follows from mechanism and shape."""
        shape = self.shape
        every = not isinstance(shape, VoteShape) or shape.moved == shape.n_queries
        if self.part.public["method"] == VOTES and not every:
            raise CertificateError("A teacher may vote otherwise at every query.")
        event = self.mechanism.event(shape).model_dump(mode="json")
        # as text: 2.0 and true are equal to 2 and 1
        if json.dumps(self.part.events, sort_keys=True) != json.dumps([event], sort_keys=True):
            raise CertificateError(
                "The events are not those of the mechanism: its noise, its queries and what it"
                " releases have another price."
            )

    def check_release(self, certificate: Certificate) -> None:
        """Refuse terms that contradict each other, or the certificate that holds them."""
        self.check_event()
        shape, method, released = self.shape, self.part.public["method"], certificate.released
        if shape.guarantee != certificate.guarantee:
            raise CertificateError("The shape is about another unit or relation than the promise.")
        settings = self.settings
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
            if certificate.unit == "label" and method in (*TABLES, RECORD_VOTES):
                raise CertificateError("Such votes are about records or users, not about labels.")
            if method not in TABLES and shape.n_classes != len(released.classes):
                raise CertificateError("The shape states another n_classes than the certificate.")
        for contradiction in settings.contradictions((certificate, self.mechanism, shape)):
            raise CertificateError(contradiction)

    def drawable(self, certificate: Certificate) -> Drawable | None:
        """Return which integers may have been released beside labels and their counts."""
        return self.settings.drawable((certificate, self.mechanism, self.shape))

    @property
    def count_columns(self) -> int:
        """How many noisy counts for each query are released beside labels."""
        if not isinstance(self.mechanism, NoisyVotes) or self.mechanism.release == "labels":
            return 0
        return self.mechanism.answer_shape(self.shape)[1]

    @property
    def most_abstentions(self) -> int | None:
        """After how many abstentions nothing more is answered, 0 where there are none; None where
        they end nothing."""
        kind = self.mechanism.kind  # type: ignore[attr-defined]
        if kind in ANSWERS_SOME:
            return None
        return (self.mechanism.stops_at or 0) if kind in ABSTAINS else 0


def read_event(stated: Mapping[str, Any]) -> Event:
    """Return the event that a JSON object is.

    Raises
    ------
    CertificateError
        If it is beyond what is computed with.
    ParameterError
        If it is of no known kind.
    """
    event = event_in(stated)
    if _is_beyond(event):
        raise CertificateError(
            "An event has more noise or more queries than this program computes with."
        )
    return event


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
