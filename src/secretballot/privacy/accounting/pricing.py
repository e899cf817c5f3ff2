"""The price of a list of events whose parameters were fixed beforehand: the best of several certified routes.

Every route is an upper bound by itself, so the smallest figure is one too.

- Renyi: divergences add up order by order; failure probabilities add up beside them. Always available.
- Profile: one privacy profile (the Gaussian noises of one scale, the label-only game, or one stream on a relabelled
  sample), composed with pure and approximate parts by the binomial mixture.

Queries inside an event may be chosen adaptively; parameters chosen after seeing outputs are the filters' business
(`accounting.filters`).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from secretballot._validation import check_finite, check_probability
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import label_game, sparse_vector
from secretballot.privacy.accounting.budget import Price
from secretballot.privacy.accounting.events import (
    Event,
    GaussianEvent,
    LabelGaussianEvent,
    PureEvent,
    RelabelledSampleEvent,
    SparseVectorEvent,
    StabilityEvent,
)
from secretballot.privacy.accounting.gaussian import discrete_gaussian_delta
from secretballot.privacy.accounting.parts import (
    MAX_COMBINATIONS,
    Part,
    compose_parts,
    one_of_many,
    point_profile,
)
from secretballot.privacy.accounting.relabelled import relabelling_loss, sampled_delta
from secretballot.privacy.accounting.renyi import renyi_delta, response_renyi
from secretballot.privacy.accounting.rounding import bisect_down, round_up

__all__ = ["delta_upper", "epsilon_upper", "failure_probability", "price", "quick_label_delta", "renyi_divergence"]

GAME_LIMIT = 5e10  # multiplications one game may take, a few seconds; beyond, coarser grids and then Renyi
GAME_RESOLUTIONS = (label_game.RESOLUTION, 7, 5, 4)
MAX_EPSILON = 1e4  # nats; no promise is left long before


@dataclass(frozen=True)
class _Route:
    delta: Callable[[float], float]
    method: str
    source: str


def renyi_divergence(event: Event, order: float) -> float:
    """Return an upper bound on the Renyi divergence of `order` that `event` allows, its failures set aside."""
    match event:
        case GaussianEvent():
            return order * event.shifts / (2 * event.sigma**2)
        case LabelGaussianEvent():
            gaussian = order / (2 * event.sigma**2)
            return event.queries * min(gaussian, label_game.label_renyi(order, event.sigma, event.n_teachers))
        case PureEvent():
            return event.count * response_renyi(order, event.epsilon)
        case StabilityEvent():
            return event.count * response_renyi(order, 1 / event.scale)
        case SparseVectorEvent(refresh=True):
            return event.max_unstable * response_renyi(order, sparse_vector.epochs(event).epsilon)
        case SparseVectorEvent():
            pure = response_renyi(order, sparse_vector.pure_bound(event))
            return min(pure, sparse_vector.hit_charge_renyi(event, order))
        case RelabelledSampleEvent():
            # Of the whole sample: divergences are quasi-convex, so drawing a part of it never adds to them.
            loss = relabelling_loss(event.neighbours, event.relabel_epsilon)
            return response_renyi(order, loss) + renyi_divergence(event.stream, order)
    raise ParameterError(f"{type(event).__name__} has no price.")


def failure_probability(event: Event) -> float:
    """Return the probability that falls outside every divergence bound of `event`, rounded up."""
    match event:
        case SparseVectorEvent():
            return round_up(sparse_vector.answer_failure(event))
        case StabilityEvent():
            part = sparse_vector.stability_parts(event)
            return round_up(one_of_many(part.delta, part.count))
        case RelabelledSampleEvent():
            return round_up(event.rate * failure_probability(event.stream))
    return 0.0


def _parts(events: Sequence[Event]) -> list[Part]:
    groups: dict[tuple[float, float], int] = {}
    for event in events:
        match event:
            case PureEvent():
                part = Part(event.epsilon, 0.0, event.count)
            case StabilityEvent():
                part = sparse_vector.stability_parts(event)
            case SparseVectorEvent(refresh=True):
                part = sparse_vector.epochs(event)
            case SparseVectorEvent():
                part = Part(sparse_vector.pure_bound(event), sparse_vector.answer_failure(event), 1)
            case _:
                continue
        groups[part.epsilon, part.delta] = groups.get((part.epsilon, part.delta), 0) + part.count
    return [Part(epsilon, delta, count) for (epsilon, delta), count in groups.items()]


def _renyi_route(events: Sequence[Event]) -> _Route:
    failure = math.fsum(failure_probability(event) for event in events)

    def curve(order: float) -> float:
        return math.fsum(renyi_divergence(event, order) for event in events)

    cache: dict[float, float] = {}

    def stored(order: float) -> float:
        if order not in cache:
            cache[order] = curve(order)
        return cache[order]

    return _Route(
        lambda epsilon: renyi_delta(stored, epsilon) + failure,
        "renyi",
        "Renyi composition (Mironov 2017) and conversion of Canonne, Kamath, Steinke 2020, Proposition 12",
    )


def _profile(events: Sequence[Event], epsilon: float) -> _Route | None:
    """Return the one profile among the events: of Gaussian noise of one scale or of one sample; with none, of silence.

    None where there is more than one of them.
    """
    samples = [e for e in events if isinstance(e, RelabelledSampleEvent)]
    gaussian = [e for e in events if isinstance(e, GaussianEvent | LabelGaussianEvent)]
    if samples:
        return _sample_route(samples[0]) if len(samples) == 1 and not gaussian else None
    if not gaussian:
        return _Route(point_profile, "parts", "optimal composition (Kairouz, Oh, Viswanath 2015, Theorem 3.3)")
    if len({e.sigma for e in gaussian}) > 1:
        return None
    labels = [e for e in gaussian if isinstance(e, LabelGaussianEvent)]
    if len(labels) == len(gaussian) and (route := _game(labels, epsilon)) is not None:
        return route
    sigma = gaussian[0].sigma
    shifts = sum(e.shifts if isinstance(e, GaussianEvent) else e.queries for e in gaussian)
    return _Route(
        lambda at: discrete_gaussian_delta(at, sigma, shifts),
        "discrete-gaussian",
        "exact profile of discrete Gaussian noise; Balle and Wang 2018, Theorem 8, for the continuous case",
    )


def _sample_route(event: RelabelledSampleEvent) -> _Route:
    """Return the profile of a stream on a relabelled sample, read off that of the stream."""
    inner = _routes([event.stream], MAX_EPSILON)
    known: dict[float, float] = {}

    def stream(epsilon: float) -> float:
        if epsilon not in known:
            known[epsilon] = min(1.0, *(round_up(route.delta(epsilon)) for route in inner))
        return known[epsilon]

    return _Route(
        lambda at: sampled_delta(event, stream, at),
        "relabelled-sample",
        "bounded range of the relabelling, then amplification by sampling (Balle, Barthe, Gaboardi 2018); "
        "docs/prices.md",
    )


def _game(
    labels: Sequence[LabelGaussianEvent], epsilon: float, resolutions: Sequence[int] = GAME_RESOLUTIONS
) -> _Route | None:
    sigma, queries = labels[0].sigma, sum(e.queries for e in labels)
    sizes = [e.n_teachers for e in labels if e.n_teachers is not None]
    teachers = max(sizes) if len(sizes) == len(labels) else None
    if not sigma >= label_game.MIN_SIGMA:
        return None
    for resolution in resolutions:
        if label_game.game_cost(sigma, queries, teachers, epsilon, resolution) <= GAME_LIMIT:
            profile = label_game.label_profile(sigma, queries, teachers, epsilon, resolution)
            return _Route(
                profile.delta,
                "label-game",
                "value of the adaptive label-only game, bounded from above (docs/prices.md)",
            )
    return None


def _routes(events: Sequence[Event], epsilon: float) -> list[_Route]:
    """Return the routes open to these events; `epsilon` is the largest at which they will be read."""
    routes = [_renyi_route(events)]
    parts = _parts(events)
    profile = _profile(events, epsilon) if math.prod(p.count + 1 for p in parts) <= MAX_COMBINATIONS else None
    if profile is not None:
        method = profile.method if not parts or profile.method == "parts" else f"{profile.method}+parts"
        routes.append(
            _Route(
                lambda at: compose_parts(parts, at, profile.delta) if parts else profile.delta(at),
                method,
                profile.source,
            )
        )
    return routes


def _checked(events: Sequence[Event]) -> list[Event]:
    listed = list(events)
    if not listed:
        raise ParameterError("The list of events is empty; a price needs at least one event.")
    for event in listed:
        if not isinstance(event, Event):
            raise ParameterError(f"{type(event).__name__} is no event; build it with event_from_json.")
    return listed


def _pure_loss(events: Sequence[Event]) -> float:
    """Return the sum of pure losses, rounded up; infinite if some event is not pure."""
    losses = [event.count * event.epsilon if isinstance(event, PureEvent) else math.inf for event in events]
    return math.fsum(losses) * (1 + 1e-15)


def _best(events: Sequence[Event], epsilon: float) -> Price:
    if _pure_loss(events) <= epsilon:
        return Price(epsilon, 0.0, "pure", "basic composition (Dwork and Roth 2014, Corollary 3.15)")
    found = [(min(1.0, round_up(route.delta(epsilon))), route) for route in _routes(events, epsilon)]
    delta, route = min(found, key=lambda pair: pair[0])
    return Price(epsilon, delta, route.method, route.source)


def delta_upper(events: Sequence[Event], epsilon: float) -> float:
    """Return the smallest certified delta, rounded up, at which `events` are (epsilon, delta)-DP.

    Parameters
    ----------
    events : sequence of Event
        Parameters fixed beforehand; queries inside may be adaptive.
    epsilon : float
        Privacy loss, in nats; finite.

    Raises
    ------
    ParameterError
        If `events` is empty or holds something else, or `epsilon` is not finite.
    """
    return _best(_checked(events), check_finite("epsilon", epsilon)).delta


def quick_label_delta(event: LabelGaussianEvent, epsilon: float) -> float:
    """Return an upper bound on delta like `delta_upper`, from the coarsest game only: for searches."""
    game = _game([event], epsilon, GAME_RESOLUTIONS[-1:])
    routes = [_renyi_route([event])] if game is None else [game]
    gaussian = discrete_gaussian_delta(epsilon, event.sigma, event.queries)
    return min(1.0, gaussian, *(round_up(route.delta(epsilon)) for route in routes))


def epsilon_upper(events: Sequence[Event], delta: float) -> float:
    """Return the smallest certified epsilon >= 0, rounded up, at `delta`; infinite where no route gives one.

    Raises
    ------
    ParameterError
        If `events` is empty or holds something else, or `delta` is not in (0, 1).
    """
    return price(events, delta=delta).epsilon


def price(events: Sequence[Event], *, epsilon: float | None = None, delta: float | None = None) -> Price:
    """Price `events` at a given epsilon or at a given delta (exactly one of them).

    Raises
    ------
    ParameterError
        If not exactly one of `epsilon` and `delta` is given, or it is out of range.
    """
    listed = _checked(events)
    if (epsilon is None) == (delta is None):
        raise ParameterError("A price needs either epsilon or delta, not both and not neither.")
    if epsilon is not None:
        return _best(listed, check_finite("epsilon", epsilon))
    target = check_probability("delta", delta)
    # the Renyi route costs little and says where to look
    ceiling = _first_epsilon(_renyi_route(listed), target, MAX_EPSILON)
    routes = _routes(listed, min(ceiling, MAX_EPSILON))
    found = [(_first_epsilon(route, target, min(ceiling * 1.01 + 1e-6, MAX_EPSILON)), route) for route in routes]
    best, route = min(found, key=lambda pair: pair[0])
    return Price(_confirmed(listed, best, target), target, route.method, route.source)


def _confirmed(events: Sequence[Event], epsilon: float, delta: float) -> float:
    """Return the least epsilon in small steps from `epsilon` on at which `delta_upper` agrees with the price.

    The game's grid follows the epsilon at which it is read, so the two may differ in the last digits; what is bought at
    this price must pass the same accountant at the door.
    """
    step = 1e-6
    while math.isfinite(epsilon) and not _best(events, epsilon).delta <= delta:
        epsilon, step = epsilon * (1 + step), 2 * step
    return epsilon


def _first_epsilon(route: _Route, delta: float, high: float) -> float:
    return bisect_down(lambda at: round_up(route.delta(at)) <= delta, 0.0, high, tolerance=1e-12)
