"""The events of a certificate: read within what can be priced, and compared with its queries."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

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
from secretballot.exceptions import CertificateError

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


def events_delta(events: Sequence[Event], epsilon: float) -> float:
    """Return the delta that events cost at `epsilon`; exactly 0 where pure ones add up to it.

    `delta_upper` rounds upward and never returns 0, so a pure promise would fail in its seventeenth
    digit.
    """
    total = math.fsum(one.epsilon * one.count for one in events if isinstance(one, Pure))
    if all(isinstance(event, Pure) for event in events) and total <= epsilon * SLACK:
        return 0.0
    return delta_upper(events, epsilon)
