"""The price of a list of events whose parameters were fixed beforehand: the best of several
certified routes.

Every route is an upper bound by itself, so the smallest figure is one too.

- Renyi: divergences add up order by order; failure probabilities add up beside them. Always
  available.
- Profile: one privacy profile (Gaussian noises, the games of labels, or one stream on a relabelled
  sample), composed with pure and approximate parts by the binomial mixture.

Queries inside an event may be chosen adaptively; parameters chosen after seeing outputs are the
filters' business (`accounting.filters`).

Work is bounded before it is begun, by public numbers alone, so that events from a stranger cannot
keep the program busy: a game is played for a block of labels at most (`label_blocks`), at most
`LABEL_WORK` is spent on divergences of labels, and at most `MAX_READINGS` points of a profile are
read beside parts. Past these limits a larger price holds. Altogether a list of a thousand events
takes some seconds.
"""

import functools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from secretballot._typing import FloatArray
from secretballot._validation import check_finite, check_probability
from secretballot.exceptions import ParameterError
from secretballot.privacy.accounting import (
    class_label_game,
    class_labels,
    label_blocks,
    label_game,
    sparse_vector,
    vote_table,
)
from secretballot.privacy.accounting.budget import Price
from secretballot.privacy.accounting.events import (
    MAX_COUNT,
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
from secretballot.privacy.accounting.gaussian import (
    MAX_FOLDS,
    count_losses,
    discrete_gaussian_delta,
)
from secretballot.privacy.accounting.parts import (
    Part,
    beside_losses,
    beside_parts,
    is_composable,
    one_of_many,
    point_profile,
)
from secretballot.privacy.accounting.relabelled import relabelling_loss, sampled_delta
from secretballot.privacy.accounting.renyi import (
    ORDERS,
    best_order,
    renyi_delta,
    renyi_delta_at_orders,
    response_renyi,
    responses_renyi,
)
from secretballot.privacy.accounting.rounding import bisect_down, round_up
from secretballot.privacy.accounting.vector_sum import (
    LEAST_SIGMA,
    NoisyVectors,
    noisy_vectors_delta,
)

# multiplications that one game may take, some seconds; beyond, it is composed of blocks
GAME_COST = 4e9
# numbers handled for divergences of labels, some seconds; beyond, those of their noisy counts hold
LABEL_WORK = 4e7
CORNER_WORK = 3e5  # numbers handled for one kind of label, however little noise it has
MOST_GAMES = 2  # of labels of several scales in one list; more are priced as counts
LOUD_READINGS = 2048  # of the profile of games, beside counts with a sigma below `LEAST_SIGMA`
MAX_EPSILON = 1e4  # nats; no promise is left long before

_ORDERS = np.array(ORDERS)

_Labels = LabelGaussianEvent | ArgmaxGaussianEvent
_Noisy = GaussianEvent | _Labels
Losses = tuple[FloatArray, FloatArray, float]  # losses, their chances, and that of an infinite one


@dataclass(frozen=True)
class _Route:
    delta: Callable[[float], float]
    method: str
    source: str


def renyi_divergence(event: Event, order: float) -> float:
    """Return an upper bound on the Renyi divergence of `order` that `event` allows, its failures
    set aside.

    Raises
    ------
    ParameterError
        If the event is of no known kind.
    """
    match event:
        case GaussianEvent():
            return order * event.shifts / (2 * event.sigma**2)
        case VectorSumEvent():
            return order * event.count * event.squared_sensitivity / (2 * event.sigma**2)
        case LabelGaussianEvent():
            gaussian = order / (2 * event.sigma**2)
            return event.queries * min(
                gaussian, label_game.label_renyi(order, event.sigma, event.n_teachers)
            )
        case ArgmaxGaussianEvent():
            counts = order / event.sigma**2
            return event.queries * min(counts, class_labels.class_label_renyi(order, event.sigma))
        case VoteTableEvent():
            return event.queries * vote_table.table_renyi(order, event.weights, event.n_teachers)
        case ConfidentEvent():
            return sum(renyi_divergence(part, order) for part in event.parts)
        case PureEvent():
            return event.count * response_renyi(order, event.epsilon)
        case BoundedRangeEvent():
            each = order * event.epsilon**2 / 8
            return event.count * min(each, response_renyi(order, event.epsilon))
        case StabilityEvent():
            return event.count * response_renyi(order, 1 / event.scale)
        case SparseVectorEvent(refresh=True):
            each = response_renyi(order, sparse_vector.epochs(event).epsilon)
            return min(event.max_unstable * each, sparse_vector.one_vote_renyi(event, order))
        case SparseVectorEvent():
            return min(
                response_renyi(order, sparse_vector.pure_bound(event)),
                sparse_vector.hit_charge_renyi(event, order),
                sparse_vector.one_vote_renyi(event, order),
            )
        case AbstentionTableEvent():
            # divergences grow with the order; above the table's own nothing is known
            known = order <= event.order
            return event.max_unstable * event.charge / (event.order - 1) if known else math.inf
        case RelabelledSampleEvent():
            # Of the whole sample: divergences are quasi-convex, so drawing a part of it never adds
            # to them.
            loss = relabelling_loss(event.neighbours, event.relabel_epsilon)
            return response_renyi(order, loss) + renyi_divergence(event.stream, order)
    raise ParameterError(f"{type(event).__name__} has no price.")


def failure_probability(event: Event) -> float:
    """Return the probability that falls outside every divergence bound of `event`, rounded up."""
    match event:
        case SparseVectorEvent():
            return round_up(sparse_vector.answer_failure(event))
        case AbstentionTableEvent():
            return round_up(one_of_many(event.false_answer, event.max_unstable))
        case StabilityEvent():
            part = sparse_vector.stability_parts(event)
            return round_up(one_of_many(part.delta, part.count))
        case RelabelledSampleEvent():
            return round_up(event.rate * failure_probability(event.stream))
    return 0.0


def _parts_of(events: Sequence[Event]) -> list[Part]:
    groups: dict[tuple[float, float], int] = {}
    for event in events:
        match event:
            case PureEvent() | BoundedRangeEvent():
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


def _renyi_route(
    events: Sequence[Event], *, epsilon: float | None = None, delta: float | None = None
) -> _Route:
    """Return the route of Renyi divergences.

    Labels of more than two classes have theirs computed at the few orders that are likely best at
    this epsilon or delta; at others they count as their noisy counts.
    """
    counted = Counter(events)
    failure = sum(count * failure_probability(event) for event, count in counted.items())
    kinds = {(e.sigma, e.n_teachers) for e in counted if isinstance(e, LabelGaussianEvent)}
    of_classes = {e.sigma for e in counted if isinstance(e, ArgmaxGaussianEvent)}
    tables = {(e.weights, e.n_teachers): e for e in counted if isinstance(e, VoteTableEvent)}
    work = sum(CORNER_WORK + label_game.corner_numbers(sigma) for sigma, _ in kinds)
    work += sum(CORNER_WORK + vote_table.table_numbers(table) for table in tables.values())
    work += sum(class_labels.class_label_work(sigma) for sigma in of_classes)
    labels_apart = work <= LABEL_WORK
    divergences = np.zeros(len(ORDERS))
    for event, count in counted.items():
        if not (labels_apart and isinstance(event, ArgmaxGaussianEvent)):
            divergences = divergences + count * _renyi_divergences(event, labels_apart=labels_apart)
    if labels_apart and of_classes:
        divergences = divergences + _class_label_divergences(counted, divergences, epsilon, delta)
    # a table has its price at its own order; beyond the least of them nothing is known of the list
    at_tables = _divergence_at_tables(counted, labels_apart=labels_apart)

    def delta_at(at: float) -> float:
        found = renyi_delta_at_orders(divergences, at)
        if at_tables is not None:
            order, divergence = at_tables
            found = min(found, renyi_delta(lambda _: divergence, at, (order,)))
        return found + failure

    return _Route(
        delta_at,
        "renyi",
        "Renyi composition (Mironov 2017) and conversion of Canonne, Kamath, Steinke 2020,"
        " Proposition 12",
    )


def _divergence_at_tables(
    counted: Mapping[Event, int], *, labels_apart: bool
) -> tuple[float, float] | None:
    """Return the least order of the tables in a list, and the divergence of the list at it.

    None without tables.
    """
    streams = (e.stream if isinstance(e, RelabelledSampleEvent) else e for e in counted)
    orders = [e.order for e in streams if isinstance(e, AbstentionTableEvent)]
    if not orders:
        return None
    order = min(orders)

    def divergence(event: Event) -> float:
        if isinstance(event, LabelGaussianEvent) and not labels_apart:
            return order * event.queries / (2 * event.sigma**2)
        if isinstance(event, ArgmaxGaussianEvent) and not labels_apart:
            event = event.counts
        if isinstance(event, VoteTableEvent) and not labels_apart:
            return event.queries * response_renyi(order, vote_table.largest_loss(event))
        return renyi_divergence(event, order)

    return order, math.fsum(count * divergence(event) for event, count in counted.items())


def _class_label_divergences(
    counted: Counter[Event], others: FloatArray, epsilon: float | None, delta: float | None
) -> FloatArray:
    """Return the divergences of all labels of more than two classes, at all of `ORDERS`."""
    labels = [
        (event, count * event.queries)
        for event, count in counted.items()
        if isinstance(event, ArgmaxGaussianEvent)
    ]
    likely = others + sum(
        number * class_labels.likely_divergences(event.sigma) for event, number in labels
    )
    place = best_order(likely, epsilon=epsilon, delta=delta)
    found = np.zeros(len(ORDERS))
    for event, number in labels:
        at = class_labels.class_label_renyi_at(event.sigma, place)
        found = found + number * np.minimum(_ORDERS / event.sigma**2, at)
    return found


def _renyi_divergences(event: Event, *, labels_apart: bool = True) -> FloatArray:
    """Return `renyi_divergence` at all of `ORDERS`.

    Unless `labels_apart`, labels as their noisy counts, those of tables as randomised response.
    """
    # each bound holds for adaptive composition, so counts multiply; source and proof stand at each
    # event's price
    match event:
        case GaussianEvent():
            return _ORDERS * (event.shifts / (2 * event.sigma**2))
        case VectorSumEvent():
            return _ORDERS * (event.count * event.squared_sensitivity / (2 * event.sigma**2))
        case LabelGaussianEvent():
            each = _ORDERS / (2 * event.sigma**2)
            if labels_apart:
                each = np.minimum(
                    each, label_game.label_renyi_at_orders(event.sigma, event.n_teachers)
                )
            return event.queries * each
        case ArgmaxGaussianEvent():
            return event.queries * _ORDERS / event.sigma**2
        case VoteTableEvent():
            if not labels_apart:
                return event.queries * responses_renyi(vote_table.largest_loss(event))
            return event.queries * vote_table.table_renyi_at_orders(event.weights, event.n_teachers)
        case PureEvent():
            return event.count * responses_renyi(event.epsilon)
        case BoundedRangeEvent():
            # docs/explanation/prices.md, section 16
            ranged = _ORDERS * (event.epsilon**2 / 8)
            return event.count * np.minimum(ranged, responses_renyi(event.epsilon))
        case StabilityEvent():
            return event.count * responses_renyi(1 / event.scale)
        case SparseVectorEvent(refresh=True):
            epochs = event.max_unstable * responses_renyi(sparse_vector.epochs(event).epsilon)
            return np.minimum(epochs, sparse_vector.one_votes_renyi(event))
        case SparseVectorEvent():
            pure = responses_renyi(sparse_vector.pure_bound(event))
            charged = np.minimum(pure, sparse_vector.hit_charges_renyi(event))
            return np.minimum(charged, sparse_vector.one_votes_renyi(event))
        case AbstentionTableEvent():
            whole = event.max_unstable * event.charge / (event.order - 1)
            return np.where(event.order >= _ORDERS, whole, np.inf)
        case RelabelledSampleEvent():
            loss = relabelling_loss(event.neighbours, event.relabel_epsilon)
            return responses_renyi(loss) + _renyi_divergences(event.stream)
    raise ParameterError(f"{type(event).__name__} has no price.")


def _profile_route(events: Sequence[Event], epsilon: float) -> _Route | None:
    """Return the one profile among the events: of Gaussian noise of one scale or of one sample.

    With none, of silence.

    None where there is more than one of them.
    """
    samples = [e for e in events if isinstance(e, RelabelledSampleEvent)]
    gaussian = [e for e in events if isinstance(e, _Noisy)]
    vectors = [e for e in events if isinstance(e, VectorSumEvent)]
    abstentions = [e for e in events if isinstance(e, AbstentionTableEvent)]
    tables = [e for e in events if isinstance(e, VoteTableEvent)]
    if samples:
        alone = len(samples) == 1 and not (gaussian or vectors or abstentions or tables)
        return _sample_route(samples[0]) if alone else None
    if abstentions:
        # beside Gaussian noise and games they are priced by Renyi divergence alone
        return None if gaussian or vectors or tables else _renyi_route(abstentions)
    if tables:
        return _tables_route(tables, gaussian, vectors, epsilon)
    if vectors or len({e.sigma for e in gaussian}) > 1:
        return _least_route(
            [_vectors_route([*gaussian, *vectors]), _composed_route(gaussian, vectors)], epsilon
        )
    if not gaussian:
        return _Route(
            point_profile, "parts", "optimal composition (Kairouz, Oh, Viswanath 2015, Theorem 3.3)"
        )
    sigma = gaussian[0].sigma
    shifts = sum(_as_counts(e).shifts for e in gaussian)
    counts = _Route(
        lambda at: discrete_gaussian_delta(at, sigma, shifts),
        "discrete-gaussian",
        "exact profile of discrete Gaussian noise; Balle and Wang 2018, Theorem 8, for the"
        " continuous case",
    )
    labels = [e for e in gaussian if isinstance(e, _Labels)]
    alone = len(labels) == len(gaussian) and len({type(e) for e in labels}) == 1
    game = _game_profile(labels, epsilon) if alone else None
    if game is None and labels:  # beside counts, and with a game of their own
        return _least_route([counts, _composed_route(gaussian, vectors)], epsilon)
    if game is None:
        return counts

    def least(at: float) -> float:
        # no more than the counts that the labels are read off, which the game's corners can exceed
        # for a few labels
        return min(game(at), counts.delta(at))

    if counts.delta(epsilon) <= game(epsilon):
        return replace(counts, delta=least)
    return _Route(
        least,
        "class-label-game" if isinstance(labels[0], ArgmaxGaussianEvent) else "label-game",
        "value of the adaptive label-only game, bounded from above (docs/explanation/prices.md)",
    )


def _as_counts(event: _Noisy) -> GaussianEvent:
    """Return the noisy counts that an event is, or is read off."""
    match event:
        case GaussianEvent():
            return event
        case LabelGaussianEvent():
            return GaussianEvent(event.sigma, event.queries)
        case ArgmaxGaussianEvent():
            return event.counts


def _vectors_route(
    events: Sequence[_Noisy | VectorSumEvent],
) -> _Route | None:
    """Return the profile of Gaussian noises of several scales; None where one is too small for it.

    Labels are taken for the counts that they are read off.
    """
    released = [_noisy_vectors(event) for event in events]
    if not all(one.sigma >= LEAST_SIGMA for one in released):
        return None
    return _Route(
        lambda at: noisy_vectors_delta(at, released),
        "gaussian-vectors",
        "discrete Gaussian noise as rounded continuous noise (Peikert 2010, Theorem 3.1), composed"
        " as one Gaussian (Dong, Roth, Su 2019); docs/explanation/prices.md, section 10",
    )


def _least_route(routes: Sequence[_Route | None], epsilon: float) -> _Route | None:
    """Return the route that is the least at every epsilon, named after the least at this one."""
    open_ones = [route for route in routes if route is not None]
    if not open_ones:
        return None
    named = min(open_ones, key=lambda route: route.delta(epsilon))
    return replace(named, delta=lambda at: min(route.delta(at) for route in open_ones))


def _tables_route(
    tables: Sequence[VoteTableEvent],
    gaussian: Sequence[_Noisy],
    vectors: Sequence[VectorSumEvent],
    epsilon: float,
) -> _Route | None:
    """Return the profile of labels drawn from tables, beside Gaussian noise of any kind.

    None where more tables differ than games are played, or one is not played: then Renyi
    divergences add up.
    """
    counted: Counter[VoteTableEvent] = Counter()
    for event in tables:
        counted[replace(event, queries=1)] += event.queries
    # beyond, a sum of labels is no event, and costs far more than any promise
    if len(counted) > MOST_GAMES or max(counted.values()) > MAX_COUNT:
        return None
    together = [replace(event, queries=queries) for event, queries in counted.items()]
    if gaussian or vectors or len(together) > 1:
        return _composed_route(gaussian, vectors, together)
    profile = _table_profile(together[0], epsilon)
    if profile is None:
        return None
    return _Route(
        functools.lru_cache(maxsize=1024)(profile),
        "table-game",
        "value of the adaptive game of labels drawn from a table, bounded from above"
        " (docs/explanation/prices.md, section 13)",
    )


def _composed_route(
    gaussian: Sequence[_Noisy],
    vectors: Sequence[VectorSumEvent],
    tables: Sequence[VoteTableEvent] = (),
) -> _Route | None:
    """Return the profile of noises of several kinds, composed of one profile and losses.

    Labels of each of the `tables`, which differ, and of the dearest scales have a game each, and
    counts with too little noise for the others' profile are losses of their own; no order of asking
    is worse (docs/explanation/prices.md, section 12). None where nothing stands beside the profile,
    or too much, or a table has no game.
    """
    losses: list[Losses] = []
    for table in tables:
        found = _table_losses(table)
        if found is None:
            return None  # nothing less than its game stands for a table here
        losses.append((found.losses, found.chance, found.certain))
    counts = [e for e in gaussian if isinstance(e, GaussianEvent)]
    labels: dict[tuple[float, type], list[_Labels]] = {}
    for event in gaussian:
        if isinstance(event, _Labels):
            labels.setdefault((event.sigma, type(event)), []).append(event)
    dearest = sorted(
        (kind for kind, listed in labels.items() if _labels_per_block(listed) is not None),
        key=lambda kind: kind[0] ** 2 / sum(_as_counts(e).shifts for e in labels[kind]),
    )
    played = dearest[: MOST_GAMES - len(tables)]
    for kind, listed in sorted(labels.items(), key=lambda one: one[0][0]):
        one = _label_losses(listed) if kind in played else None
        if one is None:
            counts += [_as_counts(event) for event in listed]
        else:
            losses.append((one.losses, one.chance, one.certain))
    if tables:  # those of few losses first, so that the profile of many is read by chords
        losses.sort(key=lambda kind: len(kind[0]))
    quiet = [e for e in counts if e.sigma >= LEAST_SIGMA]
    scales = sorted({e.sigma for e in counts if e.sigma < LEAST_SIGMA})
    numbers = [sum(e.shifts for e in counts if e.sigma == sigma) for sigma in scales]
    if any(number > MAX_FOLDS for number in numbers):
        return None
    profile = _quiet_profile(quiet, vectors)
    if len(scales) == 2 and profile is point_profile:
        profile = _quiet_profile([GaussianEvent(scales.pop(), numbers.pop())], ())
    # more than one kind of losses that are read one by one would take too long
    if profile is None or len(scales) > 1 or not (losses or scales):
        return None
    beside_noise = profile is not point_profile
    for i, one_kind in enumerate(losses):
        # the losses of few labels come first, so that the profile of many is read by chords, and
        # that of noise is read once for all where it would be for each pair of losses
        once = i == 0 and len(losses) > 1 and beside_noise
        readings = LOUD_READINGS if once else None
        profile = beside_losses(*one_kind, profile, readings=readings)
    for sigma, number in zip(scales, numbers, strict=True):
        readings = LOUD_READINGS if losses else None
        profile = beside_losses(*count_losses(sigma, number), profile, readings=readings)
    named = ("label-games", "values of adaptive label-only games, bounded from above and composed")
    if tables:
        named = ("table-games", named[1])
    if not losses:
        named = ("discrete-gaussians", "exact losses of discrete Gaussian noise, composed")
    sections = "sections 12 and 13" if tables else "section 12"
    return _Route(
        functools.lru_cache(maxsize=1024)(profile),
        named[0],
        f"{named[1]} (docs/explanation/prices.md, {sections})",
    )


def _quiet_profile(
    counts: Sequence[GaussianEvent], vectors: Sequence[VectorSumEvent]
) -> Callable[[float], float] | None:
    """Return the profile of noisy counts and vectors together.

    That of silence without any; None where they need rounding and one has too little noise for it.
    """
    if not counts and not vectors:
        return point_profile
    if vectors or len({event.sigma for event in counts}) > 1:
        route = _vectors_route([*counts, *vectors])
        return None if route is None else route.delta
    sigma, shifts = counts[0].sigma, sum(event.shifts for event in counts)
    return lambda at: discrete_gaussian_delta(at, sigma, shifts)


def _table_profile(table: VoteTableEvent, epsilon: float) -> Callable[[float], float] | None:
    """Return the profile of labels drawn from one table, from one game or from blocks."""
    # blocks cost more of delta than with noise on counts: what is best to ask of a table changes
    # with what was told before
    if vote_table.table_cost(table, table.queries, epsilon) <= GAME_COST:
        return vote_table.table_profile(table, epsilon).delta
    composed = _table_losses(table)
    return None if composed is None else composed.delta


def _table_losses(table: VoteTableEvent) -> label_blocks.LossDistribution | None:
    """Return losses that dominate labels drawn from one table; None where no game is played."""
    block = vote_table.table_block(table)
    return None if block is None else vote_table.table_losses(table, block)


def _labels_per_block(labels: Sequence[_Labels]) -> int | None:
    """Return of how many labels of one kind and scale a block is played; None where no game is."""
    if isinstance(labels[0], ArgmaxGaussianEvent):
        return class_label_game.class_label_block(labels[0].sigma)
    sigma, _, teachers = _labels_together(labels)
    return label_blocks.block_size(sigma, teachers)


def _label_losses(labels: Sequence[_Labels]) -> label_blocks.LossDistribution | None:
    """Return losses that dominate labels of one kind and scale; None where no game is played."""
    sigma, queries, teachers = _labels_together(labels)
    block = _labels_per_block(labels)
    if block is None:
        return None
    if isinstance(labels[0], ArgmaxGaussianEvent):
        return class_label_game.class_label_losses(sigma, queries, min(block, queries))
    return label_blocks.composed_blocks(sigma, queries, teachers, min(block, queries))


def _labels_together(labels: Sequence[_Labels]) -> tuple[float, int, int | None]:
    """Return the scale of labels, how many there are, and of how many teachers at most."""
    sizes = [e.n_teachers for e in labels if isinstance(e, LabelGaussianEvent)]
    known = [size for size in sizes if size is not None]
    teachers = max(known) if len(known) == len(labels) else None
    return labels[0].sigma, sum(e.queries for e in labels), teachers


def _noisy_vectors(event: _Noisy | VectorSumEvent) -> NoisyVectors:
    if isinstance(event, VectorSumEvent):
        squared = event.count * event.squared_sensitivity
        return NoisyVectors(event.sigma, squared, event.count * event.coordinates)
    counts = _as_counts(event)
    return NoisyVectors(event.sigma, counts.shifts, counts.shifts)


@functools.lru_cache(maxsize=64)  # samples of many sizes are weighed for one stream
def _stream_profile(stream: StreamEvent) -> Callable[[float], float]:
    inner = _open_routes([stream], MAX_EPSILON)

    def delta(epsilon: float) -> float:
        return min(1.0, *(round_up(route.delta(epsilon)) for route in inner))

    return functools.lru_cache(maxsize=4096)(delta)


@functools.lru_cache(maxsize=64)  # plans, fits, restarts and certificates price the same one
def _sample_route(event: RelabelledSampleEvent) -> _Route:
    """Return the profile of a stream on a relabelled sample, read off that of the stream."""
    stream = _stream_profile(event.stream)
    return _Route(
        functools.lru_cache(maxsize=1024)(lambda at: sampled_delta(event, stream, at)),
        "relabelled-sample",
        "bounded range of the relabelling, then amplification by sampling (Balle, Barthe, Gaboardi"
        " 2018); docs/explanation/prices.md",
    )


def _game_profile(labels: Sequence[_Labels], epsilon: float) -> Callable[[float], float] | None:
    """Return the profile of labels of one kind and scale alone, from one game or from blocks.

    None where no game is played.
    """
    sigma, queries, teachers = _labels_together(labels)
    block = _labels_per_block(labels)
    if block is None:
        return None
    if isinstance(labels[0], ArgmaxGaussianEvent):
        if class_label_game.class_label_cost(sigma, queries, epsilon) <= GAME_COST:
            game = class_label_game.class_label_profile(sigma, queries, epsilon)
            return None if game is None else game.delta
    elif queries <= block and label_game.game_cost(sigma, queries, teachers, epsilon) <= GAME_COST:
        return label_game.label_profile(sigma, queries, teachers, epsilon).delta
    composed = _label_losses(labels)
    return None if composed is None else composed.delta


def _open_routes(events: Sequence[Event], epsilon: float) -> list[_Route]:
    """Return the routes open to these events; `epsilon` is the largest at which they will be
    read."""
    routes = [_renyi_route(events, epsilon=epsilon)]
    parts = _parts_of(events)
    profile = _profile_route(events, epsilon) if is_composable(parts) else None
    if profile is not None:
        method = (
            profile.method if not parts or profile.method == "parts" else f"{profile.method}+parts"
        )
        routes.append(
            _Route(
                beside_parts(parts, profile.delta) if parts else profile.delta,
                method,
                profile.source,
            )
        )
    return routes


def _checked_events(events: Sequence[Event]) -> list[Event]:
    """Return events that have prices of their own, those of compound events in their place."""
    listed = [part for event in events for part in _parts_in(event)]
    if not listed:
        raise ParameterError("The list of events is empty; a price needs at least one event.")
    for event in listed:
        if not isinstance(event, Event):
            raise ParameterError(
                f"{type(event).__name__} is no event; build it with event_from_json."
            )
    return listed


def _parts_in(event: Event) -> tuple[Event, ...]:
    # a query is refused or answered in the light of all that was told before, and each kind of
    # answer has a number fixed beforehand: an adaptive composition like any other
    return event.parts if isinstance(event, ConfidentEvent) else (event,)


def _pure_loss(events: Sequence[Event]) -> float:
    """Return the sum of pure losses, rounded up; infinite if some event is not pure."""
    losses = [
        event.count * event.epsilon
        if isinstance(event, PureEvent | BoundedRangeEvent)
        else math.inf
        for event in events
    ]
    return math.fsum(losses) * (1 + 1e-15)


def _best_price(events: Sequence[Event], epsilon: float) -> Price:
    if _pure_loss(events) <= epsilon:
        return Price(
            epsilon, 0.0, "pure", "basic composition (Dwork and Roth 2014, Corollary 3.15)"
        )
    found = [
        (min(1.0, round_up(route.delta(epsilon))), route) for route in _open_routes(events, epsilon)
    ]
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
    return _best_price(_checked_events(events), check_finite("epsilon", epsilon)).delta


def epsilon_upper(events: Sequence[Event], delta: float) -> float:
    """Return the smallest certified epsilon >= 0, rounded up, at `delta`.

    Infinite where no route gives one.

    Raises
    ------
    ParameterError
        If `events` is empty or holds something else, or `delta` is not in (0, 1); where all events
        are pure it may be 0.
    """
    return price(events, delta=delta).epsilon


def price(
    events: Sequence[Event], *, epsilon: float | None = None, delta: float | None = None
) -> Price:
    """Price `events` at a given epsilon or at a given delta (exactly one of them).

    Raises
    ------
    ParameterError
        If not exactly one of `epsilon` and `delta` is given, or it is out of range.
    """
    listed = _checked_events(events)
    if (epsilon is None) == (delta is None):
        raise ParameterError("A price needs either epsilon or delta, not both and not neither.")
    if epsilon is not None:
        return _best_price(listed, check_finite("epsilon", epsilon))
    if delta == 0 and math.isfinite(_pure_loss(listed)):
        return _best_price(listed, _pure_loss(listed))
    target = check_probability("delta", delta)
    # the Renyi route costs little and says where to look
    ceiling = _first_epsilon(_renyi_route(listed, delta=target), target, MAX_EPSILON)
    routes = _open_routes(listed, min(ceiling, MAX_EPSILON))
    found = [
        (_first_epsilon(route, target, min(ceiling * 1.01 + 1e-6, MAX_EPSILON)), route)
        for route in routes
    ]
    best, route = min(found, key=lambda pair: pair[0])
    return Price(_confirmed_epsilon(listed, best, target), target, route.method, route.source)


def _confirmed_epsilon(events: Sequence[Event], epsilon: float, delta: float) -> float:
    """Return the least epsilon in small steps from `epsilon` on at which `delta_upper` agrees with
    the price.

    The game's grid follows the epsilon at which it is read, so the two may differ in the last
    digits; what is reserved at this price must pass the same accountant at the door.
    """
    step = 1e-6
    while math.isfinite(epsilon) and not _best_price(events, epsilon).delta <= delta:
        epsilon, step = epsilon * (1 + step), 2 * step
    return epsilon


def _first_epsilon(route: _Route, delta: float, high: float) -> float:
    return bisect_down(lambda at: round_up(route.delta(at)) <= delta, 0.0, high, tolerance=1e-12)
