"""Bounds on what an event costs; sections are those of docs/explanation/prices.md."""

import cmath
import math
from collections import namedtuple
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from secretballot_verify import games
from secretballot_verify.games import LOST, ONE, Play, Profile, binomial_delta

#: Bounds on a delta, between which the truth lies, and how the upper one was computed.
_Price = namedtuple("_Price", "lower upper method")
_Bounds = Iterator[_Price]  # the quicker ones first
_Event = dict[str, Any]

# relative error of every closed form; floats, sums and logarithms of factorials stay well below it
ERROR = 1e-6
# events whose losses are bounded: from some epsilon on they cost no delta at all
_MAY_COST_NOTHING = ("pure", "bounded-range", "binary-labels")
# of games, one after the other: how far corners lie above the truth, and times the usual cells
_GAMES = ((8e-4, 1), (1e-4, 2))
_MOST_PLAYED = 20_000  # labels
_MIXTURE_CELLS = 400  # of the log-ratio of two labellings


def price_of(event: _Event, epsilon: float, promised: float | None = None) -> _Price:
    """Return bounds on the delta that an event costs at `epsilon`.

    Parameters
    ----------
    event : dict
        As a certificate lists it, within its ranges.
    epsilon : float
    promised : float, optional
        The delta that is promised: bounds that decide are not made finer. By default they are made
        as fine as can be.
    """
    lower, upper, method = 0.0, 1.0, "nothing is known"
    for found in _BOUNDS[event["kind"]](event, epsilon, promised or 1e-15):
        lower = max(lower, found.lower)
        upper, method = min((upper, method), found[1:])
        if promised is not None and (lower > promised or upper <= promised * (1 + ERROR)):
            break
    # where floats end, a price that is never 0 may have come out as 0
    least = 0.0 if event["kind"] in _MAY_COST_NOTHING else 1e-300
    return _Price(min(lower, upper), max(upper, least), method)


def _exact(value: float, method: str) -> _Price:
    return _Price(value * (1 - ERROR), value, method)


# --- Noisy counts and sums (sections 1, 10) -------------------------------------------------------


def _counts_bounds(event: _Event, epsilon: float, _: float) -> _Bounds:
    yield _gaussian_price(event["sigma"], event["shifts"], epsilon)


def _gaussian_price(sigma: float, n: int, epsilon: float) -> _Price:
    """Return bounds on the price of `n` integers under discrete Gaussian noise, each moved by one
    vote."""
    variance, slope, deviation = n * sigma * sigma, 2 * sigma * sigma, math.sqrt(n) * sigma
    # the first place where a loss is above epsilon
    first, last = math.floor(sigma * sigma * epsilon - n / 2) + 1, math.ceil(12.5 * deviation)
    if sigma < 4 and n <= _MOST_PLAYED:
        return _exact(_tilted_delta(sigma, n, epsilon, first), "a Fourier series")
    off = 2 * math.exp(-(12.5**2) / 2)
    off += 125 * n * deviation * math.exp(-((math.pi * sigma) ** 2) / 2)
    if deviation > _MOST_PLAYED:
        # the sum is nearly the integral
        moved = 1 / (2 * slope**2) + 6.4 / (slope * deviation)
        lower, _ = _continuous_delta(n / sigma**2, epsilon + moved)
        _, upper = _continuous_delta(n / sigma**2, epsilon - moved)
        upper *= 1 + 1 / variance
    else:
        lower = upper = math.fsum(
            math.exp(-s * s / (2 * variance)) * -math.expm1(epsilon - (2 * s + n) / slope)
            for s in range(max(first, -last), last + 1)
        ) / math.sqrt(2 * math.pi * variance)
    return _Price(max(0.0, lower * (1 - ERROR) - off), upper + off, "a sum over the lattice")


def _tilted_delta(sigma: float, n: int, epsilon: float, first: int) -> float:
    """Return delta of counts whose noise is too small for the normal density.

    The sum of the noises has a Fourier series, of what is tilted so that its mean is the first loss
    above epsilon: digits are lost far from it alone.
    """
    variance, far = sigma * sigma, math.ceil(13 * sigma * math.sqrt(n))
    mean = max(first, 1) / n
    reach = range(-math.ceil(13 * sigma), math.ceil(13 * sigma) + 1)
    whole = math.fsum(math.exp(-x * x / (2 * variance)) for x in reach)
    places = [x + math.floor(mean) for x in reach]
    weights = [math.exp(-((x - mean) ** 2) / (2 * variance)) for x in places]
    height = n * (math.log(math.fsum(weights) / whole) + mean * mean / (2 * variance))
    start, period = max(first, -far), 2 * far + 2
    length = math.ceil(n * mean) - start + far
    lost = height + epsilon - n / (2 * variance)

    def series(log: float, step: complex) -> complex:
        """Return the sum of e^(log + step s) over the places s of losses above epsilon."""
        last = cmath.exp(step * length)
        return cmath.exp(log + step * start) * (1 - last) / (1 - cmath.exp(step))

    total = 0.0
    for turn in range(period):
        angle = 2j * math.pi * turn / period
        one = sum(w * cmath.exp(angle * x) for w, x in zip(weights, places, strict=True))
        gain = series(height, -mean / variance - angle)
        gain -= series(lost, -(mean + 1) / variance - angle)
        total += ((one / math.fsum(weights)) ** n * gain).real
    return total / period


def _continuous_delta(squared_mu: float, epsilon: float) -> tuple[float, float]:
    """Return bounds on delta of a continuous Gaussian of this squared mu.

    The rounding of section 10 lies 30 orders below what a float shows.
    """
    mu = math.sqrt(squared_mu)
    first, second = (
        math.erfc(side / math.sqrt(2)) / 2
        for side in (epsilon / mu - mu / 2, epsilon / mu + mu / 2)
    )
    # where the second is nothing to a float, leaving it out only raises the bound
    value = first - (math.exp(epsilon + math.log(second)) if second > 0 else 0.0)
    # of very short vectors the two nearly cancel
    return max(0.0, value - 1e-13 * first), min(1.0, max(0.0, value) + 1e-13 * first)


def _sums_bounds(event: _Event, epsilon: float, _: float) -> _Bounds:
    """Bounds on the price of noisy sums of integer vectors.

    That of continuous noise of variance sigma^2 - 4, but for what the rounding loses.
    """
    sigmas, count = event["sigmas"], event["count"]
    # the rounding's error lies 30 orders below what a float shows, for as many integers
    few = event["coordinates"] * count * len(sigmas) <= 10**12
    if few and min(sigmas) >= 4:
        squared = event["squared_sensitivity"] * count
        squared_mu = math.fsum(squared / (sigma**2 - 4) for sigma in sigmas)
        lower, upper = _continuous_delta(squared_mu, epsilon)
        lower *= max(0.0, 1 - 2000 / min(sigmas) ** 2)
        yield _Price(lower, upper, "a continuous Gaussian, rounded")


# --- Divergences and parts (sections 3, 8, 16) ----------------------------------------------------


def _least_of(function: Callable[[float], float], low: float, high: float) -> float:
    """Return about the least value between two places, of a function that falls and then rises."""
    golden = (math.sqrt(5) - 1) / 2
    for _ in range(50):
        one, other = high - golden * (high - low), low + golden * (high - low)
        low, high = (low, other) if function(one) < function(other) else (one, high)
    return min(map(function, (low, (low + high) / 2, high)))


def _renyi_delta(divergence: Callable[[float], float], epsilon: float) -> float:
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
    least = min(log_delta(best), _least_of(log_delta, best - 0.25, best + 0.25))
    # never 0: a bound below the smallest number is that number
    return max(5e-324, math.exp(min(0.0, least)))


def _response_moment(a: float, e: float) -> float:
    """Return the moment of order `a`, less 1, of randomised response that is e-DP."""
    return 2 * math.sinh(a * e / 2) * math.sinh((a - 1) * e / 2) / math.cosh(e / 2)


def _response_divergence(a: float, e: float) -> float:
    return math.log1p(_response_moment(a, e)) / (a - 1)


def _parts_price(count: int, e0: float, epsilon: float) -> _Price:
    """Return the price of `count` parts that are e0-DP each: randomised response, composed."""
    if count > 200_000:
        value = _renyi_delta(lambda a: count * _response_divergence(a, e0), epsilon)
        return _Price(0.0, value, "randomised response, by its divergence")
    likely = -math.log1p(math.exp(-e0))
    value = binomial_delta((e0, likely), (-e0, likely - e0), count, epsilon)
    return _exact(value, "randomised response, composed")


def _pure_bounds(event: _Event, epsilon: float, _: float) -> _Bounds:
    count, loss = event["count"], event["epsilon"]
    if count * loss <= epsilon * (1 + 1e-9):
        yield _Price(0.0, 0.0, "plain addition")
    else:
        yield _parts_price(count, loss, epsilon)


def _ranged_bounds(event: _Event, epsilon: float, _: float) -> _Bounds:
    """Bounds on the price of draws whose losses lie in intervals of one length.

    From above by a Renyi divergence of a e^2 / 8 each, or as parts, and by chords from there to the
    pure loss of all, since delta is convex in e^epsilon; from below by randomised response of half
    the length, which is such a draw.
    """
    count, length = event["count"], event["epsilon"]
    whole = count * length
    if whole <= epsilon * (1 + 1e-9):
        yield _Price(0.0, 0.0, "plain addition")
        return

    def divergence(a: float) -> float:
        return float(count * min(a * length**2 / 8, _response_divergence(a, length)))

    def chord(start: float) -> float:
        found: float = min(
            _renyi_delta(divergence, start), _parts_price(count, length, start).upper
        )
        return found * (math.expm1(epsilon - whole) / math.expm1(start - whole))

    upper = min(chord(epsilon), _least_of(chord, 0.0, epsilon))
    yield _Price(_parts_price(count, length / 2, epsilon).lower, upper, "draws of bounded range")


# --- Streams and samples (sections 4, 5, 7, 8, 14) ------------------------------------------------


def _failing(count: int, failure: float) -> float:
    """Return the probability that one of `count` parts fails."""
    return -math.expm1(count * math.log1p(-failure)) if failure < 1 else 1.0


def _laplace_tail(scale: float, t: int) -> float:
    """Return P(X >= t) of discrete Laplace noise."""
    far = math.exp(-max(t, 1 - t) / scale) / (1 + math.exp(-1 / scale))
    return far if t > 0 else 1 - far


def _crossing_probability(event: _Event) -> float:
    """Return p0, the probability that the noise alone answers a query of distance 0; 1 where its
    sum is too long."""
    first, second, least = event["threshold_scale"], event["query_scale"], event["threshold"] + 1
    far = 45 * (first + second)
    if not least + far < 3e6:
        return 1.0
    places = range(-least - math.ceil(far), math.ceil(far))
    unlikely = math.tanh(1 / (2 * first))
    return unlikely * math.fsum(
        math.exp(-abs(y) / first) * _laplace_tail(second, least + y) for y in places
    )


def _table_profile(event: _Event) -> Profile:
    """Return delta, at every epsilon of at least 0, of a stream that answers by a table of chances.

    All that the table promises is at one order: each abstention multiplies the moment of that order
    by at most e^charge, and answers do not raise it.
    """
    a, count = event["order"], event["abstentions"]
    divergence, failure = count * event["charge"] / (a - 1), _failing(count, event["false_answer"])
    factor = a * math.log1p(-1 / a) - math.log(a - 1)

    def profile(epsilon: float) -> float:
        log_delta = (a - 1) * (divergence - epsilon) + factor
        # divergences grow with the order, so smaller orders have at most this one
        smaller = _renyi_delta(lambda order: divergence if order <= a else math.inf, epsilon)
        return min(1.0, failure + min(smaller, math.exp(min(0.0, log_delta))))

    return profile


def _sparse_profile(event: _Event) -> Profile:
    """Return the same of a stream that compares noisy distances with noisy thresholds."""
    count, second = event["abstentions"], 1 / event["query_scale"]
    failure = _failing(count, _crossing_probability(event))

    def profile(epsilon: float) -> float:
        pattern = _renyi_delta(lambda a: count * _one_vote_charge(a, second) / (a - 1), epsilon)
        loss = 1 / event["threshold_scale"] + 2 * second
        parts: float = _parts_price(count, loss, epsilon).upper
        return min(1.0, failure + (1 - failure) * parts, failure + pattern)

    return profile


def _one_vote_charge(a: float, e1: float) -> float:
    """Return kappa(a), what one abstention costs where the threshold is not moved (section 5)."""
    larger = math.exp(min(0.0, (a - 1) * e1 - math.log1p(math.exp(-e1))))  # p^a q^(1 - a)
    return math.log1p(_response_moment(a, e1) / (1 - larger)) if larger <= 0.999 else math.inf


def _stream_profile(event: _Event) -> Profile:
    """Return the profile of a stream: delta at every epsilon, negative ones too."""
    known = (_table_profile if event["kind"] == "table-stream" else _sparse_profile)(event)

    def profile(epsilon: float) -> float:
        # both directions of a pair have this profile, so a negative epsilon follows from the
        # positive one
        return known(epsilon) if epsilon >= 0 else 1 - math.exp(epsilon) * (1 - known(-epsilon))

    return profile


def _stream_bounds(event: _Event, epsilon: float, _: float) -> _Bounds:
    yield _Price(0.0, _stream_profile(event)(epsilon), "a charge for each abstention")


def _stable_bounds(event: _Event, epsilon: float, aim: float) -> _Bounds:
    """Bounds on the price of tests of a distance to instability: each may answer where the
    plurality changes, and costs the noise of its distance else."""
    count, scale = event["count"], event["scale"]
    # one test answers at the distance 0
    fails = _failing(count, _laplace_tail(scale, event["threshold"] + 1))
    # which a test of a distance near the threshold is
    lower, parts, _ = _parts_price(count, 1 / scale, epsilon)
    yield _Price(lower, fails + (1 - fails) * parts, "a charge for each test")


def _sampled_bounds(event: _Event, epsilon: float, _: float) -> _Bounds:
    """Bounds on the price of a stream on a relabelled secret sample."""
    rate: float = event["sampled"] / event["out_of"]
    inner = epsilon + math.log(math.exp(-epsilon) - math.expm1(-epsilon) / rate)
    moved = 2 if event["relation"] == "replace-one" else 1
    length = math.log1p(math.exp(event["relabel_epsilon"] / 2)) * moved
    upper = rate * _worst_mixture(_stream_profile(event["stream"]), inner, length)
    yield _Price(0.0, upper, "a stream, relabelled and sampled")


def _worst_mixture(profile: Profile, epsilon: float, length: float) -> float:
    """Return the maximum over t of p_t H(eps - t) + (1 - p_t) H(eps - t + length), from above.

    In u = e^-t the true H(eps - t) and H(eps - t + length) are convex, so chords lie above them. On
    a cell the sum becomes k0 + k1 u + k2 / u, whose maximum is known. A cell is halved where its
    bound is above all that was found.
    """
    c, most, cells = math.exp(length), 0.0, [(0, _MIXTURE_CELLS)]
    profile = cache(profile)
    while cells:
        low, high = cell = cells.pop()
        (u, near, far), (v, near_v, far_v) = (
            (math.exp(-t), profile(epsilon - t), profile(epsilon - t + length))
            for t in (length * place / _MIXTURE_CELLS for place in cell)
        )
        slope, slope_far = (near_v - near) / (v - u), (far_v - far) / (v - u)
        alpha, beta = near - slope * u - far + slope_far * u, slope - slope_far
        k0 = far - slope_far * u + (c * alpha - beta) / (c - 1)
        k1, k2 = slope_far + c * beta / (c - 1), -alpha / (c - 1)
        peak = math.sqrt(k2 / k1) if k1 < 0 and k2 < 0 else u
        bound = max(k0 + k1 * at + k2 / at for at in (u, v, min(max(peak, v), u)))
        if bound > most and high - low > 1:
            middle = (low + high) // 2
            cells += [(low, middle), (middle, high)]
        else:
            most = max(most, bound)
    return most


# --- Labels (sections 2, 12, 13, 15) --------------------------------------------------------------


def _precision_of(aim: float) -> int:
    """Return how many bits a game that is compared with a delta has after the point."""
    return 40 - math.floor(math.log2(max(aim, 1e-30)))


def _binary_bounds(event: _Event, epsilon: float, aim: float) -> _Bounds:
    """Bounds on the price of labels of two classes, under noise or from a table of chances.

    First as the counts that they are read off, or as parts of the largest loss of the table; then
    as ever finer games.
    """
    queries, drawn = event["queries"], event["chances"]
    n_teachers, sigma = drawn["n_teachers"], drawn.get("sigma")
    if sigma:
        counts = _gaussian_price(sigma, queries, epsilon)
        yield _Price(0.0, counts.upper, "as the counts that they are read off")
        if sigma > games.MOST_CURVED:
            return
        curve = games.noise_curve(sigma, n_teachers)
    else:
        weights = (weight << 147 for weight in drawn["weights"])
        curve = games.curve_of(weights, fair=n_teachers % 2 == 0)
        # the other way round are these with both labels exchanged, as the table is symmetric
        ratio = max(max((q - p) / p, (q - p) / (ONE - q)) for p, q in curve)
        loss = math.log1p(ratio) * (1 + 1e-14)
        yield _Price(0.0, _parts_price(queries, loss, epsilon).upper, "parts of the largest loss")
    if queries > _MOST_PLAYED:
        return
    if queries == 1:
        laws = games.both_ways(games.law_of(*point) for point in curve)
        ratio = math.exp(epsilon)
        lower, upper = (
            max(games.excess(law, ratio, lost) for law in laws) for lost in (-LOST, LOST)
        )
        # a chance of 0 stands for smaller ones
        yield _Price(
            max(0.0, lower * (1 - ERROR) - 1e-40),
            upper * (1 + 1e-9) + 1e-300,
            "the worst pair of votes",
        )
        return
    yield _Price(games.attack_delta(curve, queries, epsilon), 1.0, "")
    for fine in _GAMES:
        game = games.votes_profile(curve, fine, Play(queries, epsilon, _precision_of(aim)))
        yield _Price(0.0, game(epsilon), "a game")


def _classes_bounds(event: _Event, epsilon: float, aim: float) -> _Bounds:
    """Bounds on the price of labels of more than two classes.

    First as noisy counts; then by a Renyi divergence that all votes keep, and by a game. The lower
    bound is an even vote between two classes, asked again and again.
    """
    sigma, queries = event["sigma"], event["queries"]
    upper = _gaussian_price(sigma, 2 * queries, epsilon).upper
    yield _Price(_even_votes(sigma, queries, epsilon), upper, "as the counts they are read off")
    laws = games.laws_of_classes(sigma) if queries <= _MOST_PLAYED else []
    if laws:
        one = games.largest_divergence(laws, sigma)
        upper = _renyi_delta(lambda a: queries * one(a), epsilon)
        yield _Price(0.0, upper, "a divergence that all votes keep")
        game = games.class_profile(laws, sigma, Play(queries, epsilon, _precision_of(aim)))
        yield _Price(0.0, game(epsilon), "a game of three outcomes")


def _even_votes(sigma: float, queries: int, epsilon: float) -> float:
    """Return what even votes reach between two of many classes, asked again and again."""
    if not (4 <= sigma <= games.MOST_CURVED and queries <= _MOST_PLAYED):
        return 0.0
    return games.repeated_delta(games.even_vote(sigma), queries, epsilon) * (1 - ERROR)


def _confident_bounds(event: _Event, epsilon: float, aim: float) -> _Bounds:
    """Bounds on the price of queries that a noisy threshold refuses or lets pass.

    First as noisy counts; then the answers about the threshold, and the labels, are games.
    """
    binary, asked, answers = event["n_classes"] == 2, event["queries"], event["answers"]
    first, second, precision = event["threshold_sigma"], event["sigma"], _precision_of(aim)
    # the error of rounding, as for sums
    if not min(first, second) >= 4 or not asked * event["n_classes"] <= 10**12:
        return
    squared_mu = asked / (first**2 - 4) + answers * (1 if binary else 2) / (second**2 - 4)
    yield _Price(0.0, _continuous_delta(squared_mu, epsilon)[1], "as noisy counts, composed")
    if max(first, second) > games.MOST_CURVED or asked > _MOST_PLAYED:
        return
    tops = games.noise_curve(first, None)
    # where a threshold keeps even votes back not all labels of two classes are released
    lower = 0.0 if binary else _even_votes(second, answers, epsilon)
    yield _Price(max(lower, games.attack_delta(tops, asked, epsilon)), 1.0, "")
    inner = Play(answers, epsilon, precision, 4 * games.spread_of(tops, asked))
    if binary:
        # a coarse game first: a finer one takes longer
        for share in (32e-4, 8e-4):
            upper = games.passing_delta(event, epsilon, precision, share)
            yield _Price(0.0, upper, "a game of both")
        votes = games.noise_curve(second, None)
    else:
        laws = games.laws_of_classes(second)
        if not laws or answers > _MOST_PLAYED:
            return
        one = games.largest_divergence(laws, second)
        other = games.largest_divergence(games.both_ways(games.corners_of(tops, 1e-4, 1)))
        upper = _renyi_delta(lambda a: asked * other(a) + answers * one(a), epsilon)
        yield _Price(0.0, upper, "divergences that all votes keep")
        labels = games.class_profile(laws, second, inner)
    for fine in _GAMES:
        # labels first, as far as the answers about the threshold may lead
        if binary:
            labels = games.votes_profile(votes, fine, inner)
        game = games.votes_profile(tops, fine, Play(asked, epsilon, precision))
        upper = games.composed_delta(game, labels, epsilon, 2.0**-precision)
        yield _Price(0.0, upper, "games, composed")


#: What bounds are there for every kind of event, the quicker ones first.
_BOUNDS: dict[str, Callable[[_Event, float, float], _Bounds]] = {
    "counts": _counts_bounds,
    "vector-sum": _sums_bounds,
    "pure": _pure_bounds,
    "bounded-range": _ranged_bounds,
    "stable-tests": _stable_bounds,
    "sparse-stream": _stream_bounds,
    "table-stream": _stream_bounds,
    "sampled": _sampled_bounds,
    "binary-labels": _binary_bounds,
    "class-labels": _classes_bounds,
    "confident": _confident_bounds,
}
