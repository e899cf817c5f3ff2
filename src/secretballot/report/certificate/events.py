"""The events of a certificate: read within what can be priced, and compared with its queries."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from secretballot.exceptions import CertificateError
from secretballot.privacy.accounting import (
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

# Mathematical libraries differ in the last digits between machines; no promise is refused for that.
SLACK = 1 + 1e-9
_MAX_EVENTS = 10
# Beyond any release the door could have made, and more than pricing could do in minutes: a trap for
# the verifier.
_MAX_DEVIATION = 1e8  # votes, of the sum of all Gaussian noises of one event
_MAX_LABEL_SIGMA = 1e6  # votes
_MAX_SCALE = 1e5  # votes


def read_events(listed: Sequence[Mapping[str, Any]]) -> list[Event]:
    """Return the events of a list of JSON objects.

    Raises
    ------
    CertificateError
        If there are more than ten, or one is beyond what is computed with.
    ParameterError
        If one is of no known kind.
    """
    if len(listed) > _MAX_EVENTS:
        raise CertificateError(f"The certificate lists more than {_MAX_EVENTS} events.")
    events = [event_in(event) for event in listed]
    if any(_is_beyond(event) for event in events):
        raise CertificateError(
            "An event has more noise or more queries than this program computes with."
        )
    return events


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


def check_relation_of(event: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    """Refuse an event that was priced under another relation than its certificate states.

    Raises
    ------
    CertificateError
        If it was, or is about records where the certificate promises something to users.
    """
    if event.get("relation", document["neighbours"]) != document["neighbours"]:
        raise CertificateError(
            "The event was priced under another relation than the release states."
        )
    if "relation" in event and document["unit"] == "user":
        raise CertificateError(
            "The event speaks of single records, and the release promises something to users."
        )


def events_delta(events: Sequence[Event], epsilon: float) -> float:
    """Return the delta that events cost at `epsilon`; exactly 0 where pure ones add up to it.

    `delta_upper` rounds upward and never returns 0, so a pure promise would fail in its seventeenth
    digit.
    """
    total = math.fsum(one.epsilon * one.count for one in events if isinstance(one, Pure))
    if all(isinstance(event, Pure) for event in events) and total <= epsilon * SLACK:
        return 0.0
    return delta_upper(events, epsilon)


def paid_queries(events: Sequence[Event], n_classes: int, columns: int) -> int | None:
    """Return for how many queries Gaussian events pay; None where another mechanism answered.

    Parameters
    ----------
    events : sequence of Event
    n_classes : int
        Number of classes.
    columns : int
        Noisy counts released for each query; 0 for labels alone.
    """
    shifts_per_query = 1 if n_classes == 2 and columns < 2 else 2
    # labels alone cover no count, and those of two classes no third class
    alone = columns == 0
    paid = 0
    for event in events:
        if isinstance(event, Counts):
            paid += event.shifts // shifts_per_query
        elif isinstance(event, BinaryLabels):
            paid += event.queries if alone and shifts_per_query == 1 else 0
        elif isinstance(event, ClassLabels):
            paid += event.queries if alone and shifts_per_query == 2 else 0
        else:
            return None
    return paid
