"""Bounds on what an event costs; sections are those of docs/explanation/prices.md."""

import math
from collections import namedtuple
from collections.abc import Callable, Iterable
from contextlib import suppress
from decimal import Decimal, localcontext
from functools import partial
from typing import Any

from secretballot_verify import games
from secretballot_verify.games import (
    LOST,
    ONE,
    Chances,
    Pairs,
    Profile,
    UndecidedError,
    cells_of,
    even_vote,
    excess,
    game_delta,
    repeated_delta,
)

#: Bounds on a delta, and how it was computed. The truth, or what the documented rule charges, lies
#: between them.
Price = namedtuple("Price", "lower upper method")

# relative error of every closed form; floats, sums and logarithms of factorials stay well below it
ERROR = 1e-6
# events whose losses are bounded: from some epsilon on they cost no delta at all
_MAY_COST_NOTHING = ("pure", "bounded-range", "binary-labels")


def price_of(event: dict[str, Any], epsilon: float, promised: float | None = None) -> Price:
    """Return bounds on the delta that an event costs at `epsilon`.

    Parameters
    ----------
    event : dict
        As a certificate lists it, within its ranges.
    epsilon : float
    promised : float, optional
        The delta that is promised: bounds that decide are not made finer. By default they are made
        as fine as can be.

    Raises
    ------
    UndecidedError
        If this program does not price it.
    """
    match event["kind"]:
        case "counts":
            value = gaussian_delta(event["sigma"], event["shifts"], epsilon)
            price = exact(value, "a sum over the lattice")
        case "vector-sum":
            price = vector_sum_price(event, epsilon)
        case "pure":
            count, loss = event["count"], event["epsilon"]
            added = count * loss <= epsilon * (1 + 1e-9)
            value = 0.0 if added else parts_delta(count, loss, epsilon)
            price = exact(value, "plain addition" if added else "randomised response, composed")
        case "bounded-range":
            price = ranged_price(event, epsilon)
        case "stable-tests":
            price = exact(stable_delta(event, epsilon), "a charge for each test")
        case "sparse-stream" | "table-stream":
            price = exact(stream_profile(event)(epsilon), "a charge for each abstention")
        case "sampled":
            price = exact(relabelled_delta(event, epsilon), "a stream, relabelled and sampled")
        case "class-labels":
            price = class_labels_price(event, epsilon, promised)
        case "confident":
            price = confident_price(event, epsilon, promised)
        case "binary-labels" if "weights" in event["chances"]:
            price = table_price(event, epsilon, promised)
        case "binary-labels":
            drawn = event["chances"]
            terms = drawn["sigma"], event["queries"], drawn["n_teachers"]
            price = label_price(*terms, epsilon, promised)
        case _:
            raise UndecidedError("This event is not priced by this program.")
    # where floats end, a price that is never 0 may have come out as 0
    least = 0.0 if event["kind"] in _MAY_COST_NOTHING else 1e-300
    return price._replace(upper=max(price.upper, least))


def exact(value: float, method: str) -> Price:
    return Price(value * (1 - ERROR), value, method)


# --- Noisy counts and sums (sections 1, 10) -------------------------------------------------------


def above(value: float) -> float:
    """Return the chance that a standard normal variable is larger."""
    return 0.5 * math.erfc(value / math.sqrt(2))


def gaussian_delta(sigma: float, n: int, epsilon: float) -> float:
    """Return delta of `n` integers under discrete Gaussian noise, each moved by one.

    At least the truth.
    """
    variance = n * sigma * sigma
    reach = 12.5 * math.sqrt(variance)
    kink = sigma * sigma * epsilon - n / 2  # below it the hockey stick is 0
    outside = 2 * math.exp(-(12.5**2) / 2)
    if kink >= reach:
        return min(outside, renyi_delta(lambda a: a * n / (2 * sigma * sigma), epsilon))
    if sigma < 4:
        return small_gaussian_delta(sigma, n, epsilon)
    first, last = max(math.floor(kink) + 1, -math.ceil(reach)), math.ceil(reach)
    fourier = 5 * n * (last - first + 1) * math.exp(-(math.pi**2) * sigma * sigma / 2)
    if last - first > 2_000_000:
        return wide_gaussian_delta(sigma, n, epsilon, kink) + outside + fourier

    # a million terms are no rarity: nothing is computed in them that is the same in all
    spread, slope, exp, expm1 = 2 * variance, 2 * sigma * sigma, math.exp, math.expm1
    terms = (
        exp(-s * s / spread) * -expm1(epsilon - (2 * s + n) / slope) for s in range(first, last + 1)
    )
    return math.fsum(terms) / math.sqrt(2 * math.pi * variance) + outside + fourier


def wide_gaussian_delta(sigma: float, n: int, epsilon: float, kink: float) -> float:
    """Return the integral in place of the sum over very many lattice points, plus a bound on
    what lies between."""
    deviation, variance = math.sqrt(n) * sigma, n * sigma * sigma
    integral = above(kink / deviation) - math.exp(epsilon) * above((kink + n) / deviation)
    if kink >= deviation:
        density = math.exp(-kink * kink / (2 * variance)) / math.sqrt(2 * math.pi * variance)
        return integral + density * (4 * kink + 2 * n) / variance / 4
    return integral + (1 + math.exp(epsilon)) / variance


def small_gaussian_delta(sigma: float, n: int, epsilon: float) -> float:
    """Return delta where the noise is too small for the normal density.

    Its distribution is convolved, in integers.
    """
    if n > 16_384:
        return renyi_delta(lambda a: a * n / (2 * sigma * sigma), epsilon)
    reach, bits = math.ceil(12.5 * sigma * math.sqrt(n)) + 1, 200
    single = [math.exp(-x * x / (2 * sigma * sigma)) for x in range(math.ceil(40 * sigma) + 2)]
    mass = single[0] + 2 * math.fsum(single[1:])
    width = min(reach, len(single) - 1)
    power = [math.ceil(single[abs(x)] / mass * 2**bits) for x in range(-width, width + 1)]
    result, left = [1 << bits], n
    while left:
        if left & 1:
            result = convolved(result, power, reach, bits)
        power = convolved(power, power, reach, bits) if left > 1 else power
        left >>= 1
    centre = len(result) // 2
    losses = ((2 * (place - centre) + n) / (2 * sigma * sigma) for place in range(len(result)))
    kept = math.fsum(
        value / 2**bits * -math.expm1(epsilon - loss)
        for value, loss in zip(result, losses, strict=True)
        if loss > epsilon
    )
    # each of at most n convolutions lets fall what lies beyond the reach
    return kept + 2 * n * math.exp(-(12.5**2) / 2)


def convolved(one: list[int], other: list[int], reach: int, bits: int) -> list[int]:
    """Return the convolution of two distributions on integers around 0, as integers over 2**bits,
    rounded up and cut."""
    size = (2 * bits + max(len(one), len(other)).bit_length() + 15) // 8
    packed = [
        int.from_bytes(b"".join(v.to_bytes(size, "little") for v in distribution), "little")
        for distribution in (one, other)
    ]
    length = len(one) + len(other) - 1
    whole = (packed[0] * packed[1]).to_bytes(size * (length + 1), "little")
    values = [int.from_bytes(whole[size * i : size * (i + 1)], "little") for i in range(length)]
    cut = max(0, length // 2 - reach)
    return [-(-value >> bits) for value in values[cut : length - cut]]


def continuous_delta(squared_mu: float, epsilon: float) -> tuple[float, float]:
    """Return bounds on delta of a continuous Gaussian of this squared mu.

    The rounding of section 10 lies 30 orders below what a float shows.
    """
    mu = math.sqrt(squared_mu)
    first, second = above(epsilon / mu - mu / 2), above(epsilon / mu + mu / 2)
    # where the second is nothing to a float, leaving it out only raises the bound
    value = first - (math.exp(epsilon + math.log(second)) if second > 0 else 0.0)
    # of very short vectors the two nearly cancel
    return max(0.0, value - 1e-13 * first), min(1.0, max(0.0, value) + 1e-13 * first)


def vector_sum_price(event: dict[str, Any], epsilon: float) -> Price:
    """Return bounds on the price of noisy sums of integer vectors.

    That of continuous noise of variance sigma^2 - 4, but for what the rounding loses.

    Raises
    ------
    UndecidedError
        If the noise is too small for that.
    """
    sigmas, count = event["sigmas"], event["count"]
    if not min(sigmas) >= 4:
        raise UndecidedError("Sums with a sigma below 4 are not priced by this program.")
    squared = event["squared_sensitivity"] * count
    squared_mu = math.fsum(squared / (sigma**2 - 4) for sigma in sigmas)
    # the rounding's error lies 30 orders below what a float shows, for as many integers
    if not event["coordinates"] * count * len(sigmas) <= 10**12 or not squared_mu <= 900:
        raise UndecidedError("So many sums, or so little noise, is not priced by this program.")
    lower, upper = continuous_delta(squared_mu, epsilon)
    lower *= max(0.0, 1 - 2000 / min(sigmas) ** 2)
    return Price(lower, upper, "a continuous Gaussian, rounded")


# --- Divergences and parts (sections 3, 8, 16) ----------------------------------------------------


def renyi_delta(divergence: Callable[[float], float], epsilon: float) -> float:
    """Return the least delta that a Renyi divergence of some order gives; every order is a
    bound."""

    def log_delta(step: float) -> float:
        a = 1 + math.exp(step)
        try:
            value = (a - 1) * (divergence(a) - epsilon) + a * math.log1p(-1 / a) - math.log(a - 1)
        except OverflowError:
            return math.inf
        return value if value == value else math.inf

    best = min((step / 4 for step in range(-48, 57)), key=log_delta)
    low, high = best - 0.25, best + 0.25
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(60):
        one, other = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, other) if log_delta(one) < log_delta(other) else (one, high)
    # never 0: a bound below the smallest number is that number
    return max(5e-324, math.exp(min(0.0, log_delta(best), log_delta((low + high) / 2))))


def randomised_response_divergence(a: float, e: float) -> float:
    """Return the Renyi divergence of order `a` of randomised response that is e-DP."""
    return (log_cosh((2 * a - 1) * e / 2) - log_cosh(e / 2)) / (a - 1)


def log_cosh(value: float) -> float:
    size = abs(value)
    if size < 1e-3:
        return size * size / 2  # from above: the next term is negative
    return size + math.log1p(math.exp(-2 * size)) - math.log(2)


def parts_delta(count: int, e0: float, epsilon: float) -> float:
    """Return delta of `count` parts that are e0-DP each: randomised response, composed."""
    if count * e0 <= epsilon:
        return 0.0
    if count > 200_000:
        return renyi_delta(lambda a: count * randomised_response_divergence(a, e0), epsilon)
    log_one = e0 + math.log1p(math.exp(-e0))  # log(1 + e^e0)
    terms = []
    for i in range(count + 1):
        loss = (count - 2 * i) * e0
        if loss <= epsilon:
            break
        choose = math.lgamma(count + 1) - math.lgamma(i + 1) - math.lgamma(count - i + 1)
        log_weight = choose + (count - i) * e0 - count * log_one
        terms.append(math.exp(log_weight) * -math.expm1(epsilon - loss))
    return math.fsum(terms)


def ranged_price(event: dict[str, Any], epsilon: float) -> Price:
    """Return bounds on the price of draws whose losses lie in intervals of one length.

    From above by a Renyi divergence of a e^2 / 8 each, or as parts, and by chords from there to the
    pure loss of all, since delta is convex in e^epsilon; from below by randomised response of half
    the length, which is such a draw.
    """
    count, length = event["count"], event["epsilon"]
    whole = count * length
    if whole <= epsilon * (1 + 1e-9):
        return Price(0.0, 0.0, "plain addition")

    def divergence(a: float) -> float:
        return float(count * min(a * length**2 / 8, randomised_response_divergence(a, length)))

    def chord(start: float) -> float:
        found = min(renyi_delta(divergence, start), parts_delta(count, length, start))
        return found * (math.expm1(epsilon - whole) / math.expm1(start - whole))

    upper = chord(epsilon)
    low, high = 0.0, epsilon
    while upper > 0 and high - low > 1e-9 * (1 + epsilon):
        third = (high - low) / 3
        one, two = chord(low + third), chord(high - third)
        upper = min(upper, one, two)
        low, high = (low, high - third) if one < two else (low + third, high)
    least = parts_delta(count, length / 2, epsilon) if count <= 200_000 else 0.0
    return Price(least * (1 - ERROR), upper, "draws of bounded range")


# --- Streams and samples (sections 4, 5, 7, 8, 14) ------------------------------------------------


def failing(count: int, failure: float) -> float:
    """Return the probability that one of `count` parts fails."""
    return -math.expm1(count * math.log1p(-failure)) if failure < 1 else 1.0


def crossing_probability(event: dict[str, Any]) -> float:
    """Return p0, the probability that the noise alone answers a query of distance 0.

    Fifty digits: the formula holds the difference of two nearly equal numbers.
    """
    with localcontext() as context:
        context.prec = 60
        larger, smaller = sorted(
            (Decimal(event["threshold_scale"]), Decimal(event["query_scale"])), reverse=True
        )
        a, b, n = (-1 / larger).exp(), (-1 / smaller).exp(), event["threshold"] + 1
        if larger - smaller <= larger * Decimal("1e-20"):
            return float(a**n * ((n + 1) * (1 - a) + 2 * a * a / (1 + a) + a) / (1 + a) ** 2)

        def f(u: Decimal) -> Decimal:
            power: Decimal = u ** (n + 1)
            return power / ((1 - u * u) * (1 - u))

        return float((1 - a) ** 2 * (1 - b) ** 2 * (f(a) - f(b)) / ((a - b) * (1 - a * b)))


def table_delta(event: dict[str, Any], epsilon: float) -> float:
    """Return delta of a stream that answers by a table of chances.

    All that the table promises is at one order: each abstention multiplies the moment of that order
    by at most e^charge, and answers do not raise it.
    """
    a, count = event["order"], event["abstentions"]
    divergence = count * event["charge"] / (a - 1)
    log_delta = (a - 1) * (divergence - epsilon) + a * math.log1p(-1 / a) - math.log(a - 1)
    # divergences grow with the order, so smaller orders have at most this one
    smaller = renyi_delta(lambda order: divergence if order <= a else math.inf, epsilon)
    pattern = min(smaller, math.exp(min(0.0, log_delta)))
    return min(1.0, failing(count, event["false_answer"]) + pattern)


def sparse_delta(event: dict[str, Any], epsilon: float) -> float:
    """Return delta of a stream that compares noisy distances with noisy thresholds."""
    count, second = event["abstentions"], 1 / event["query_scale"]
    failure = failing(count, crossing_probability(event))
    pattern = renyi_delta(lambda a: count * one_vote_charge(a, second) / (a - 1), epsilon)
    parts = parts_delta(count, 1 / event["threshold_scale"] + 2 * second, epsilon)
    return min(1.0, failure + (1 - failure) * parts, failure + pattern)


def stable_delta(event: dict[str, Any], epsilon: float) -> float:
    """Return delta of tests of a distance to instability: each may answer where the plurality
    changes, and costs the noise of its distance else."""
    rate, count = 1 / event["scale"], event["count"]
    # one test answers at the distance 0
    log_chance = -(event["threshold"] + 1) * rate - math.log1p(math.exp(-rate))
    fails = -math.expm1(count * math.log1p(-math.exp(log_chance)))
    return fails + (1 - fails) * parts_delta(count, rate, epsilon)


def stream_profile(event: dict[str, Any]) -> Profile:
    """Return the profile of a stream: delta at every epsilon, negative ones too."""
    at_least_zero = partial(table_delta if event["kind"] == "table-stream" else sparse_delta, event)

    def profile(epsilon: float) -> float:
        # both directions of a pair have this profile, so a negative epsilon follows from the
        # positive one
        if epsilon >= 0:
            return at_least_zero(epsilon)
        return 1 - math.exp(epsilon) * (1 - at_least_zero(-epsilon))

    return profile


def one_vote_charge(a: float, e1: float) -> float:
    """Return kappa(a), what one abstention costs where the threshold is not moved (section 5)."""
    log_sum = e1 + math.log1p(math.exp(-e1))  # log(1 + e^e1)
    larger = math.exp(min(0.0, a * e1 - log_sum))  # p^a q^(1 - a)
    if larger > 0.999:
        return math.inf
    smaller = math.exp((1 - a) * e1 - log_sum)  # q^a p^(1 - a)
    gain = larger + smaller - 1
    if gain < 1e-6:
        # of a difference of nearly equal numbers: the exact form, a product
        gain = 2 * math.sinh(a * e1 / 2) * math.sinh((a - 1) * e1 / 2) / math.cosh(e1 / 2)
    return math.log1p(gain / (1 - larger))


def relabelled_delta(event: dict[str, Any], epsilon: float) -> float:
    """Return delta of a stream on a relabelled secret sample."""
    rate: float = event["sampled"] / event["out_of"]
    inner = epsilon if rate == 1 else math.log1p(math.expm1(epsilon) / rate)
    moved = 2 if event["relation"] == "replace-one" else 1
    length = math.log1p(math.exp(event["relabel_epsilon"] / 2)) * moved
    return rate * worst_mixture(stream_profile(event["stream"]), inner, length)


def worst_mixture(profile: Profile, epsilon: float, length: float) -> float:
    """Return the maximum over t of p_t H(eps - t) + (1 - p_t) H(eps - t + length), from above.

    In u = e^-t the true H(eps - t) and H(eps - t + length) are convex, so chords lie above them. On
    a cell the sum becomes k0 + k1 u + k2 / u, whose maximum is known. The cells that may hold the
    maximum are halved until nothing is gained.
    """
    c = math.exp(length)

    def ends(t: float) -> tuple[float, float, float]:
        return math.exp(-t), profile(epsilon - t), profile(epsilon - t + length)

    def cell(low: float, high: float, one: Chances, other: Chances) -> tuple[Any, ...]:
        (u, near, far), (v, near_v, far_v) = one, other
        slope, slope_far = (near_v - near) / (v - u), (far_v - far) / (v - u)
        alpha, beta = near - slope * u - far + slope_far * u, slope - slope_far
        k0 = far - slope_far * u + (c * alpha - beta) / (c - 1)
        k1, k2 = slope_far + c * beta / (c - 1), -alpha / (c - 1)
        places = [u, v]
        if k1 < 0 and k2 < 0 and v < math.sqrt(k2 / k1) < u:
            places.append(math.sqrt(k2 / k1))
        return max(k0 + k1 * place + k2 / place for place in places), low, high, one, other

    times = [length * step / 64 for step in range(65)]
    points = list(map(ends, times))
    cells = [cell(times[i], times[i + 1], points[i], points[i + 1]) for i in range(64)]
    for _ in range(200):
        # the cell with the largest bound is split; wherever this stops, the bound holds
        cells.sort(key=lambda found: found[0])
        top, low, high, one, other = cells.pop()
        if high - low < length * 1e-6:
            return float(top)
        middle = (low + high) / 2
        between = ends(middle)
        cells += [cell(low, middle, one, between), cell(middle, high, between, other)]
    return float(max(found[0] for found in cells))


# --- Labels (sections 2, 12, 13, 15) --------------------------------------------------------------


def precision_of(target: float) -> int:
    """Return how many bits a game that is compared with a delta has after the point."""
    return 40 - math.floor(math.log2(max(target, 1e-30)))


def refined(
    price: Price, promised: float | None, finer: Iterable[tuple[str, Callable[[], float]]]
) -> Price:
    """Return a price whose upper bound is the least of some, each with a word for it; none is
    computed where those before decide, or where it would take longer than it may."""
    lower, upper, method = price
    for word, bound in finer:
        if promised is not None and (lower > promised or upper <= promised * (1 + ERROR)):
            break
        with suppress(UndecidedError):
            value = bound()
            upper, method = min((upper, method), (value, word))
    return Price(min(lower, upper), upper, method)


def one_label_price(pairs: Iterable[tuple[float, ...]], epsilon: float) -> Price:
    """Return bounds on what a single label costs that has one of these pairs, either way round."""
    ratio, lower, upper = math.exp(epsilon), 0.0, 0.0
    for p, q, r, s in pairs:
        for a, b, c, d in ((p, q, r, s), (q, p, s, r)):
            lower = max(lower, excess(a, ratio * b, -LOST) + excess(c, ratio * d, -LOST))
            upper = max(upper, excess(a, ratio * b, LOST) + excess(c, ratio * d, LOST))
    return Price(lower, upper * (1 + 1e-9) + 1e-300, "the worst pair of votes")


def label_price(
    sigma: float, queries: int, n_teachers: int | None, epsilon: float, promised: float | None
) -> Price:
    """Return bounds on the price of labels alone; finer ones while the promise lies between
    them."""
    upper, method = gaussian_delta(sigma, queries, epsilon), "as the counts that they are read off"
    if sigma > 1e5 or queries > 20_000:
        return Price(0.0, upper, method)
    pairs = Pairs(sigma, n_teachers)
    if queries == 1 and pairs.all_within and pairs.reach <= 20_000:
        votes = range(2 - pairs.reach, pairs.reach + 1)
        one = one_label_price(map(pairs.at, votes), epsilon)
        return one._replace(lower=min(one.lower, upper) * (1 - ERROR), upper=min(one.upper, upper))
    lower = min(upper, games.attack_delta(pairs, queries, epsilon, sigma))
    first, sizes = Price(lower, upper, method), ((0.08, 1), (0.04, 2), (0.02, 2))
    corners = partial(pairs.corners, queries)
    return played(corners, sizes, first, queries, epsilon, promised)


def played(
    corners: Callable[[float], list[games.Pair]],
    sizes: Iterable[tuple[float, int]],
    price: Price,
    queries: int,
    epsilon: float,
    promised: float | None,
) -> Price:
    """Return a price of labels of two classes that ever finer games refine: of corners as fine as
    the first number of a size says, and of so many times the usual cells."""
    precision = precision_of(price.upper if promised is None else promised)

    def game(fine: float, finer: int) -> float:
        return game_delta(corners(fine), queries, epsilon, finer * cells_of(queries), precision)

    return refined(price, promised, [("a game", partial(game, *size)) for size in sizes])


def class_labels_price(event: dict[str, Any], epsilon: float, promised: float | None) -> Price:
    """Return bounds on the price of labels of more than two classes.

    First as noisy counts; while the promise is less, by a Renyi divergence that all votes keep, and
    by a game. The lower bound is an even vote between two classes, asked again and again.
    """
    sigma, queries = event["sigma"], event["queries"]
    upper, lower = gaussian_delta(sigma, 2 * queries, epsilon), 0.0
    if 4 <= sigma <= 1e4 and queries <= 20_000:
        lower = repeated_delta(even_vote(sigma), queries, epsilon) * (1 - ERROR)

    precision = precision_of(upper if promised is None else promised)

    def game() -> float:
        far = 5 * games.spread_of_classes(sigma, queries)
        return games.class_game_profile(sigma, queries, (far, far + epsilon), precision)(epsilon)

    kept = partial(games.classes_delta, sigma, queries, epsilon, promised, None)
    # the game takes longest: only where all else leaves the promise open
    finer_ones: list[tuple[str, Callable[[], float]]] = [
        ("a divergence that all votes keep", kept),
        ("a game of three outcomes", game),
    ]
    return refined(Price(lower, upper, "as the counts they are read off"), promised, finer_ones)


def table_price(event: dict[str, Any], epsilon: float, promised: float | None) -> Price:
    """Return bounds on the price of labels drawn from a table of chances.

    First as parts of its largest loss; while the promise is less, as a game.
    """
    queries, drawn = event["queries"], event["chances"]
    weights, teachers = drawn["weights"], drawn["n_teachers"]
    points = games.table_points(weights, teachers)
    pairs = [(p / ONE, q / ONE, (ONE - p) / ONE, (ONE - q) / ONE) for p, q in points]
    # the other way round are these with both labels exchanged, as the table is symmetric
    ratio = max(max((q - p) / p, (q - p) / (ONE - q)) for p, q in points)
    loss = math.log1p(ratio) * (1 + 1e-14)
    upper, method = parts_delta(queries, loss, epsilon), "parts of the largest loss"
    if queries == 1:
        return one_label_price(pairs, epsilon)
    if queries > 20_000:
        return Price(0.0, upper, method)
    middle, step = len(pairs) // 2, max(1, len(pairs) // 30)
    asked = [*range(max(0, middle - 3), middle), *range(middle, len(pairs), step)]
    lower = min(upper, max(repeated_delta(pairs[i], queries, epsilon) for i in asked))
    corners, sizes = partial(games.table_corners, weights, teachers), ((3e-4, 1), (1e-4, 2))
    return played(corners, sizes, Price(lower, upper, method), queries, epsilon, promised)


def confident_price(event: dict[str, Any], epsilon: float, promised: float | None) -> Price:
    """Return bounds on the price of queries that a noisy threshold refuses or lets pass.

    First as noisy counts; while the promise is less, the answers about the threshold, and the
    labels, are games.

    Raises
    ------
    UndecidedError
        If the noise is too small to be priced here.
    """
    binary, asked, answers = event["n_classes"] == 2, event["queries"], event["answers"]
    first, second = event["threshold_sigma"], event["sigma"]
    if not min(first, second) >= 4:
        raise UndecidedError("Thresholds and labels with a sigma below 4 are not priced here.")
    squared_mu = asked / (first**2 - 4) + answers * (1 if binary else 2) / (second**2 - 4)
    if not squared_mu <= 900 or not asked * event["n_classes"] <= 10**12:
        raise UndecidedError("So many queries, or so little noise, is not priced by this program.")
    upper, lower = continuous_delta(squared_mu, epsilon)[1], 0.0
    # where a threshold keeps even votes back not all labels of two classes are released
    if first <= 1e5 and asked <= 20_000:
        lower = games.attack_delta(Pairs(first, None), asked, epsilon, first)
    if not binary and second <= 1e4 and answers <= 20_000:
        lower = max(lower, repeated_delta(even_vote(second), answers, epsilon) * (1 - ERROR))
    precision = precision_of(upper if promised is None else promised)

    def composed(fine: float, finer: int) -> float:
        # labels first, as far as the answers about the threshold may lead
        if max(first, second) > 1e5 or asked > 20_000:
            raise UndecidedError("Such games are not played here.")
        outer = Pairs(first, None).corners(asked, fine)
        far = 4 * games.spread_of(outer, asked)
        if binary:
            inner = Pairs(second, None).corners(answers, fine)
            far += 4 * games.spread_of(inner, answers)
            cells = finer * cells_of(answers)
            labels = games.game_profile(inner, answers, (far, far + epsilon), cells, precision)
        else:
            far += 5 * games.spread_of_classes(second, answers)
            labels = games.class_game_profile(second, answers, (far, far + epsilon), precision)
        return game_delta(outer, asked, epsilon, finer * cells_of(asked), precision, labels)

    both = partial(games.passing_delta, event, epsilon, precision)
    kept = partial(games.classes_delta, second, answers, epsilon, promised, (first, asked))
    # a coarse game first: a finer one takes longer
    finer_ones = [("divergences that all votes keep", kept)]
    if binary:
        finer_ones = [("a game of both", partial(both, fine)) for fine in (0.16, 0.08)]
    finer_ones += [("games, composed", partial(composed, *at)) for at in ((0.08, 1), (0.04, 2))]
    return refined(Price(lower, upper, "as noisy counts, composed"), promised, finer_ones)
