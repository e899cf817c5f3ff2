"""What the neutral encodings of events are today: a few lines for each kind."""

from typing import Any

from golden.lists import NeutralEvent
from secretballot.privacy import accounting as now


def events_of(one: NeutralEvent) -> list[now.Event]:
    """Return the library's events of one neutral one."""
    match one:
        case {"kind": "counts", "sigma": sigma, "shifts": shifts}:
            return [now.GaussianEvent(sigma, shifts)]
        case {"kind": "sums", "sigmas": sigmas, "squared": squared, "coordinates": coordinates}:
            return [now.VectorSumEvent(sigma, squared, coordinates) for sigma in sigmas]
        case {"kind": "binary-labels", "sigma": sigma, "queries": n, "teachers": teachers}:
            return [now.LabelGaussianEvent(sigma, n, teachers)]
        case {"kind": "class-labels", "sigma": sigma, "queries": n}:
            return [now.ArgmaxGaussianEvent(sigma, n)]
        case {"kind": "table-labels", "weights": weights, "queries": n, "teachers": teachers}:
            return [now.VoteTableEvent(tuple(weights), n, teachers)]
        case {"kind": "confident", "queries": n, "answers": answers, "classes": classes}:
            return [now.ConfidentEvent(one["threshold_sigma"], one["sigma"], n, answers, classes)]
        case {"kind": "pure", "epsilon": epsilon, "count": count}:
            return [now.PureEvent(epsilon, count)]
        case {"kind": "bounded-range", "epsilon": epsilon, "count": count}:
            return [now.BoundedRangeEvent(epsilon, count)]
        case {"kind": "stable-tests", "scale": scale, "threshold": threshold, "count": count}:
            return [now.StabilityEvent(scale, threshold, count)]
        case {"kind": "sparse-stream" | "table-stream"}:
            return [_stream_of(one)]
        case {"kind": "sampled", "sampled": m, "out_of": n, "relation": relation}:
            stream, loss = _stream_of(one["stream"]), one["relabel_epsilon"]
            return [now.RelabelledSampleEvent(stream, m, n, relation, loss)]
    raise ValueError(f"No adapter for the kind {one['kind']!r}.")


def _stream_of(one: NeutralEvent) -> now.StreamEvent:
    if one["kind"] == "sparse-stream":
        scales = one["threshold_scale"], one["query_scale"]
        return now.SparseVectorEvent(*scales, one["threshold"], one["abstentions"], refresh=True)
    terms = one["order"], one["charge"], one["false_answer"]
    return now.AbstentionTableEvent(*terms, one["abstentions"])


def prices_of(listed: dict[str, Any]) -> tuple[float, float]:
    """Return the delta at the list's epsilon, and the epsilon at its delta."""
    events = [event for one in listed["events"] for event in events_of(one)]
    at_epsilon = now.price(events, epsilon=listed["epsilon"])
    at_delta = now.price(events, delta=listed["delta"])
    return at_epsilon.delta, at_delta.epsilon


def delta_at(listed: dict[str, Any], epsilon: float) -> float:
    """Return the price of a list at another epsilon."""
    events = [event for one in listed["events"] for event in events_of(one)]
    return now.delta_upper(events, epsilon)
