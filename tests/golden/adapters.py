"""What the neutral encodings of events are today: a few lines for each kind."""

from typing import Any

from golden.lists import NeutralEvent
from secretballot import accounting as now
from secretballot.core.events import Event


def events_of(one: NeutralEvent) -> list[Event]:
    """Return the library's events of one neutral one."""
    if one["kind"] == "sums":
        squared, coordinates = one["squared"], one["coordinates"]
        terms = {"squared_sensitivity": squared, "coordinates": coordinates, "count": 1}
        return [now.VectorSum(sigmas=(sigma,), **terms) for sigma in one["sigmas"]]
    return [_event_of(one)]


def _event_of(one: NeutralEvent) -> Event:
    fields = {key: value for key, value in one.items() if key != "teachers"}
    match one["kind"]:
        case "binary-labels":
            drawn = {"sigma": fields.pop("sigma"), "n_teachers": one["teachers"]}
            fields["chances"] = drawn
        case "table-labels":
            drawn = {"weights": fields.pop("weights"), "n_teachers": one["teachers"]}
            fields |= {"kind": "binary-labels", "chances": drawn}
        case "confident":
            fields |= {"n_classes": fields.pop("classes"), "threshold": None, "n_teachers": None}
        case "sampled":
            fields["stream"] = _event_of(one["stream"]).model_dump(mode="json")
    return now.event_in(fields)


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
