"""The event of a certificate: read within what can be priced."""

import math
from collections.abc import Mapping
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
# Beyond any release that could be made, and more than pricing could do in minutes: a trap for the
# verifier.
_MAX_DEVIATION = 1e8  # votes, of the sum of all Gaussian noises of one event
_MAX_LABEL_SIGMA = 1e6  # votes
_MAX_SCALE = 1e5  # votes


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
