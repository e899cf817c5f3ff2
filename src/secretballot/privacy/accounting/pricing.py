"""Prices of events as they are stored: each is one of the core, which prices it."""

from collections.abc import Sequence

import numpy as np

from secretballot._validation import NEIGHBOURS, check_choice
from secretballot.core import events as core
from secretballot.core import price as core_price
from secretballot.core.label_games import GaussianChances, TableChances
from secretballot.core.price import Price
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting.events import (
    AbstentionTableEvent,
    ArgmaxGaussianEvent,
    BoundedRangeEvent,
    ConfidentEvent,
    Event,
    GaussianEvent,
    LabelGaussianEvent,
    PureEvent,
    RelabelledSampleEvent,
    SparseVectorEvent,
    StabilityEvent,
    StreamEvent,
    VectorSumEvent,
    VoteTableEvent,
)


def core_event(event: Event) -> core.Event:
    """Return what an event is to the core.

    Raises
    ------
    ParameterError
        If the event is of no known kind.
    """
    match event:
        case GaussianEvent(sigma, shifts):
            return core.Counts(sigma=sigma, shifts=shifts)
        case VectorSumEvent(sigma, squared, coordinates, count):
            return core.VectorSum(
                sigmas=(sigma,), squared_sensitivity=squared, coordinates=coordinates, count=count
            )
        case LabelGaussianEvent(sigma, queries, n_teachers):
            noise = GaussianChances(sigma=sigma, n_teachers=n_teachers)
            return core.BinaryLabels(chances=noise, queries=queries)
        case VoteTableEvent(weights, queries, n_teachers):
            table = TableChances(weights=weights, n_teachers=n_teachers)
            return core.BinaryLabels(chances=table, queries=queries)
        case ArgmaxGaussianEvent(sigma, queries):
            return core.ClassLabels(sigma=sigma, queries=queries)
        case ConfidentEvent():
            return core.Confident(
                threshold_sigma=event.threshold_sigma,
                sigma=event.sigma,
                queries=event.queries,
                answers=event.answers,
                n_classes=event.n_classes,
            )
        case PureEvent(epsilon, count):
            return core.Pure(epsilon=epsilon, count=count)
        case BoundedRangeEvent(epsilon, count):
            return core.BoundedRange(epsilon=epsilon, count=count)
        case StabilityEvent(scale, threshold, count):
            return core.StableTests(scale=scale, threshold=threshold, count=count)
        case SparseVectorEvent() | AbstentionTableEvent():
            return _core_stream(event)
        case RelabelledSampleEvent():
            return core.Sampled(
                stream=_core_stream(event.stream),
                sampled=event.sampled,
                out_of=event.out_of,
                relation=check_choice("neighbours", event.neighbours, NEIGHBOURS),
                relabel_epsilon=event.relabel_epsilon,
            )
    raise ParameterError(f"{type(event).__name__} has no price; build it with event_from_json.")


def _core_stream(event: StreamEvent) -> core.SparseStream | core.TableStream:
    if isinstance(event, AbstentionTableEvent):
        return core.TableStream(
            order=event.order,
            charge=event.charge,
            false_answer=event.false_answer,
            abstentions=event.max_unstable,
        )
    return core.SparseStream(
        threshold_scale=event.threshold_scale,
        query_scale=event.query_scale,
        threshold=event.threshold,
        abstentions=event.max_unstable,
        refresh=event.refresh,
    )


def renyi_divergence(event: Event, order: float) -> float:
    """Return an upper bound on the Renyi divergence of `order` that `event` allows, its failures
    set aside.

    Raises
    ------
    ParameterError
        If the event is of no known kind.
    """
    return float(core_event(event).renyi(np.array([order]))[0])


def failure_probability(event: Event) -> float:
    """Return the probability that falls outside every divergence bound of `event`, rounded up."""
    failure = core_event(event).failure()
    return core_price.round_up(failure) if failure > 0 else 0.0


def price(
    events: Sequence[Event], *, epsilon: float | None = None, delta: float | None = None
) -> Price:
    """Price `events` at a given epsilon or at a given delta (exactly one of them).

    Parameters
    ----------
    events : sequence of Event
        Parameters fixed beforehand; queries inside may be adaptive.
    epsilon : float, optional
        Privacy loss, in nats; finite.
    delta : float, optional
        In (0, 1); where all events are pure it may be 0.

    Raises
    ------
    ParameterError
        If `events` is empty or holds something else, or not exactly one of `epsilon` and `delta`
        is given, or it is out of range.
    """
    return core_price.price(list(map(core_event, events)), epsilon=epsilon, delta=delta)


def delta_upper(events: Sequence[Event], epsilon: float) -> float:
    """Return the smallest certified delta, rounded up, at which `events` are (epsilon, delta)-DP.

    Parameters and errors are those of `price`.
    """
    return price(events, epsilon=epsilon).delta


def epsilon_upper(events: Sequence[Event], delta: float) -> float:
    """Return the smallest certified epsilon >= 0, rounded up, at `delta`.

    Infinite where there is none. Parameters and errors are those of `price`.
    """
    return price(events, delta=delta).epsilon
