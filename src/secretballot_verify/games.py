"""Games: what labels that are chosen one after another tell, from above and from below."""

import math
from collections.abc import Callable, Iterable
from contextvars import ContextVar
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import mul
from typing import Any

LOST = 2.0**-48  # what floats may lose of a probability, or of a loss in nats and as a share of it

ONE = 2**53  # chances of a table are whole numbers of 2^-53

MINUTES = 2.0  # that one game may take, about

minutes_allowed = ContextVar("minutes", default=MINUTES)

_CELLS_A_MINUTE = 2.5e9  # of a game, times steps and outcomes; a fast machine does twice as many

_CHORDS = 1500  # of a profile beside a game, on either side of x = 1


Profile = Callable[[float], float]
Pair = tuple[float, float, float, float]
Chances = tuple[float, float, float]


class UndecidedError(Exception):
    """Nothing is known to be wrong, and nothing could be confirmed; the message is one sentence."""


def tails_of(sigma: float) -> list[float]:
    """Return P(N >= t) for t = 0, 1, 2, ... of discrete Gaussian noise, each to its last digits."""
    most = math.ceil(14 * sigma) + 8
    weights = [math.exp(-x * x / (2 * sigma * sigma)) for x in range(most)]
    tails = [0.0] * (most + 1)
    for x in range(most - 1, -1, -1):
        tails[x] = tails[x + 1] + weights[x]
    whole = 2 * tails[1] + weights[0]
    return [tail / whole for tail in tails]


class Pairs:
    """The probabilities of a label 1 under neighbouring votes, as corners of a polygon that
    contains them all.

    A pair is (p, q, 1 - p, 1 - q). Where t = ceil(K / 2) - votes, p = P(N >= t) and q = P(N >= t -
    1). Pairs the other way round are these pairs with both outcomes exchanged, at t' = 2 - t, so
    they need not be listed.
    """

    def __init__(self, sigma: float, n_teachers: int | None) -> None:
        self.sigma, self._tails = sigma, tails_of(sigma)
        self.reach = len(self._tails) - 2
        if n_teachers is not None:
            half = -(-n_teachers // 2)
            self.reach = min(self.reach, max(half, 1 - half + n_teachers))

    def _upper_tail(self, t: int) -> float:
        """Return P(N >= t)."""
        if t >= 0:
            return self._tails[min(t, len(self._tails) - 1)]
        return 1 - self._tails[min(1 - t, len(self._tails) - 1)]

    def at(self, t: int) -> Pair:
        """Return the pair at t; of both numbers the smaller side is kept to its last digits."""
        p, q = self._upper_tail(t), self._upper_tail(t - 1)
        return p, q, self._upper_tail(1 - t), self._upper_tail(2 - t)

    def corners(self, fine: float, queries: int) -> list[Pair]:
        """Return corners; lines lie `fine` deviations apart in the middle, where labels tell
        most, wider outside."""
        wide = 0.35 * min(1.0, queries / 100)  # of few labels the pairs farther out count too
        last = min(self.reach, math.ceil(9 * self.sigma) + 2)
        # the edge from t to t - 1, seen from the middle outward; 2 and 1 meet in the middle
        edges, t = [2], 2
        while t < last:
            away = t / self.sigma
            t = min(last, t + max(1, int(self.sigma * max(fine, wide * (away - 0.6)))))
            edges.append(t)
        found = [self.at(1), *(self._meeting_point(*two) for two in pairwise(edges)), self.at(last)]
        if last < self.reach:  # everything farther lies under this corner
            small = self._upper_tail(last)
            found.append((0.0, small, 1.0, 1 - small))
        return found + [(s, r, q, p) for p, q, r, s in found[1:]]

    def _meeting_point(self, near: int, far: int) -> Pair:
        """Return where the lines through two edges meet; both lie above all pairs."""
        if far == near + 1:
            return self.at(near)
        p1, q1 = self.at(near)[:2]
        p2, q2 = self.at(far - 1)[:2]
        first, second = (math.exp((2 * t - 3) / (2 * self.sigma**2)) for t in (near, far))
        p = (q2 - q1 + first * p1 - second * p2) / (first - second)
        q = q1 + first * (p - p1)
        return p, q, 1 - p, 1 - q


def attack_delta(pairs: Pairs, queries: int, epsilon: float, sigma: float) -> float:
    """Return what is reached by asking one and the same vote again and again.

    No price can be smaller.
    """
    away = (*range(-30, -5, 5), *range(-5, 6), *range(10, 31, 5))
    places = {1 + round(tenths / 10 * sigma) for tenths in away}
    asked = [pairs.at(t) for t in places if 2 - pairs.reach <= t <= pairs.reach]
    # probabilities that vanish in floats have no log; leaving them out only lowers this bound
    return max((repeated_delta(one, queries, epsilon) for one in asked if min(one) > 0), default=0)


def repeated_delta(pair: Pair, queries: int, epsilon: float) -> float:
    """Return what is reached by answers that all have one pair of chances."""
    p, q, r, s = pair
    terms = []
    for ones in range(queries + 1):
        choose = math.lgamma(queries + 1) - math.lgamma(ones + 1) - math.lgamma(queries - ones + 1)
        under_p = choose + ones * math.log(p) + (queries - ones) * math.log(r)
        loss = ones * math.log(p / q) + (queries - ones) * math.log(r / s)
        loss -= LOST * (queries + abs(loss))
        if loss > epsilon and under_p > -700:
            terms.append(math.exp(under_p) * -math.expm1(epsilon - loss))
    return math.fsum(terms)


class Cells:
    """Vectors of fixed-point numbers, packed into one integer each, so that integers do the work
    of arrays."""

    WEIGHT = 30  # bits of a weight: one digit of Python's integers

    def __init__(self, size: int, precision: int) -> None:
        self.bytes = (precision + self.WEIGHT + 4 + 7) // 8
        self.width = 8 * self.bytes
        ones = self.packed([1] * size)
        self.all = (1 << self.width * size) - 1
        self.one = (1 << self.width) - 1
        self.tops = ones << (self.width - 1)
        self.almost = ones * ((1 << self.WEIGHT) - 1)
        self.low = ones * ((1 << (self.width - self.WEIGHT)) - 1)

    def packed(self, values: Iterable[int]) -> int:
        return int.from_bytes(
            b"".join(value.to_bytes(self.bytes, "little") for value in values), "little"
        )

    def larger(self, one: int, other: int) -> int:
        """Return the larger number of every cell."""
        found = ((one | self.tops) - other) & self.tops
        mask = found - (found >> (self.width - 1))
        return other ^ ((one ^ other) & mask)

    def rounded(self, vector: int) -> int:
        """Return every cell over 2**WEIGHT, rounded up."""
        return ((vector + self.almost) >> self.WEIGHT) & self.low


def cells_allowed() -> float:
    """Return how many cells one game may have, counted by steps and outcomes."""
    return _CELLS_A_MINUTE * minutes_allowed.get()


def cells_of(queries: int) -> int:
    """Return how many cells make one step of a game."""
    return min(60, max(12, round(12 * math.sqrt(300 / queries))))


def game_profile(
    corners: list[Pair],
    queries: int,
    reach: tuple[float, float],
    cells: int,
    precision: int,
) -> Profile:
    """Return the value of the game at every epsilon, from above.

    Convexity makes interpolation an upper bound, integers round up.

    Cells are a geometric grid of likelihood ratios x; `cells` of them make one step of the pair in
    the middle, which therefore falls on the grid. Values have `precision` bits after the point.
    Left of the grid the chord to (0, 1) lies above the value, right of it the last value. `reach`
    says how far the grid goes to the left and to the right of x = 1, in nats; what lies outside
    hardly counts, and is bounded from above.

    Raises
    ------
    UndecidedError
        If the game is too long to be played here.
    """
    step, (left, right) = math.log(corners[0][1] / corners[0][0]) / cells, reach
    if not step * cells_allowed() > left + right:
        raise UndecidedError(f"A game of {queries} labels is too fine.")
    start = math.ceil(left / step)  # the cell of x = 1
    size = start + math.ceil(right / step) + 1
    if size * queries * 2 * len(corners) > cells_allowed():
        raise UndecidedError(f"A game of {queries} labels takes too long.")
    space, scale, steps = Cells(size, precision), 1 << precision, []
    for p, q, r, s in corners:
        # of outcomes that the other side never has, x becomes 0, and its value is 1
        never = math.ceil((p * (q <= 0) + r * (s <= 0)) * scale * (1 << Cells.WEIGHT))
        steps.append((space.packed([never] * size), [*moves_of(p, q, step), *moves_of(r, s, step)]))
    shifts = [shift for _, moves in steps for _, shift in moves]
    margin_left, margin_right = 1 + max(0, -min(shifts)), 2 + max(0, *shifts)
    below = [math.exp(-step * k) for k in range(margin_left, 0, -1)]
    silent = (max(0.0, -math.expm1(step * (i - start))) for i in range(size))
    vector = space.packed([min(scale, math.ceil(value * scale)) for value in silent])
    for _ in range(queries):
        first, last = vector & space.one, vector >> space.width * (size - 1)
        chord = [min(scale, scale - int((scale - first) * ratio) + 1) for ratio in below]
        wide = space.packed(chord) | (vector << space.width * margin_left)
        wide |= space.packed([last] * margin_right) << space.width * (margin_left + size)
        best = 0
        for total, moves in steps:
            for weight, shift in moves:
                total += weight * (wide >> space.width * (margin_left + shift))
            total &= space.all
            best = space.larger(total, best) if best else total
        vector = space.rounded(best)
    content = vector.to_bytes(space.bytes * size, "little")
    values = [
        int.from_bytes(content[space.bytes * i : space.bytes * (i + 1)], "little") / scale
        for i in range(size)
    ]

    def profile(epsilon: float) -> float:
        # e^epsilon lies between two cells; the left one is the larger
        epsilon -= LOST * (1 + abs(epsilon))
        place = start + math.floor(epsilon / step)
        if place >= size - 1:
            return values[-1]
        if place < 0:
            return min(1.0, 1 - (1 - values[0]) * math.exp(epsilon + step * start) + 1e-15)
        at = (math.exp(epsilon - step * (place - start)) - 1) / math.expm1(step)
        return (1 - at) * values[place] + at * values[place + 1]

    return profile


def spread_of(corners: list[Pair], queries: int) -> float:
    """Return how far the likelihood ratio of so many labels usually goes, in nats."""
    p, q = corners[0][:2]
    return math.log(q / p) * math.sqrt(queries)


def game_delta(
    corners: list[Pair],
    queries: int,
    epsilon: float,
    cells: int,
    precision: int,
    beside: Profile | None = None,
) -> float:
    """Return the value of the game at one epsilon, as `game_profile` computes it, by itself or with
    another mechanism, whose profile is `beside`.

    Raises
    ------
    UndecidedError
        If the game is too long to be played here.
    """
    spread = spread_of(corners, queries)
    reach = 4 * spread, 4 * spread + epsilon
    game = game_profile(corners, queries, reach, cells, precision)
    if beside is None:
        return game(epsilon)
    return composed_delta(game, beside, epsilon, 2.0**-precision)


def composed_delta(
    game: Profile,
    beside: Profile,
    epsilon: float,
    nothing: float,
) -> float:
    """Return delta of two mechanisms together, in any order, from above.

    The value of the game is averaged over the likelihood ratios of the other one
    (docs/explanation/prices.md, section 12): a game played before the other mechanism would be
    worth less, as its questions could not follow from what the other one told. The ratios are those
    of the other profile's chords in x, which lie above it; where the figures of a profile bend the
    wrong way, by their last digits, a chance is taken for nothing, which only raises the mean.

    Parameters
    ----------
    game, beside : callable
        Profiles, from above.
    epsilon : float
    nothing : float
        What may be left of the other profile where its chords end; it is added.
    """
    far = 0.5
    while nothing < beside(far) > beside(1.25 * far) and far < 300:
        far *= 1.25
    points = [far * (place / _CHORDS - 1) for place in range(2 * _CHORDS + 1)]
    values = [min(1.0, beside(point)) for point in points]
    ratios = [math.exp(point) for point in points]
    slopes = [(values[0] - 1) / ratios[0]]
    slopes += [
        (right - left) / (ratios[i + 1] - ratios[i])
        for i, (left, right) in enumerate(pairwise(values))
    ]
    # the chance of a ratio 1 / x is what the slope changes there, times x
    terms = [
        ratios[i] * max(0.0, after - before) * game(epsilon - points[i])
        for i, (before, after) in enumerate(pairwise([*slopes, 0.0]))
    ]
    return min(1.0, math.fsum(terms) * (1 + 1e-9) + values[-1])


def moves_of(weight: float, other: float, step: float) -> list[tuple[int, int]]:
    """Return, for an outcome of some chance, the neighbour's given, weights over 2**WEIGHT, rounded
    up, and shifts in cells.

    The value falls to the right, so shifts are rounded to the left.
    """
    if weight <= 0 or other <= 0:
        return []
    moved = math.log(other / weight)
    places = (moved - LOST * (1 + abs(moved))) / step
    low = math.floor(places)
    at = min(1.0, math.expm1(step * (places - low)) / math.expm1(step))
    shares = ((1 - at, low), (at, low + 1)) if at > 1e-9 else ((1.0, low),)
    return [(math.ceil(weight * share * (1 << Cells.WEIGHT)), shift) for share, shift in shares]


MOST_SIGMA = 300  # votes, of labels of more classes; beyond, this program takes too long


class ClassLabels:
    """Labels of more than two classes under discrete Gaussian noise on every count.

    The adversary sees the largest noisy count of the classes that are not touched. A label is then
    one of three outcomes, whose chances follow from two integers: u, the noise that the class
    losing a vote needs to win over the others, and w, that of the class gaining one. For a
    neighbour they are u + 1 and w - 1.
    """

    FAR, DEEP = 9, 3  # deviations; of one noise and of both, beyond which all is told

    def __init__(self, sigma: float, order: float) -> None:
        self.sigma, self.order = sigma, order
        self.reach = math.ceil(14 * sigma) + 2
        weights = [
            math.exp(-x * x / (2 * sigma * sigma)) for x in range(-self.reach, self.reach + 1)
        ]
        whole = math.fsum(weights)
        self.pmf = [weight / whole for weight in weights]
        self.sums = [0.0, *accumulate(self.pmf)]

    def below(self, t: int) -> float:
        """Return P(N < t)."""
        return self.sums[min(max(0, t + self.reach), len(self.pmf))]

    def chances(self, points: Iterable[tuple[int, int]]) -> dict[tuple[int, int], Chances]:
        """Return the chances of the three outcomes at each point (u, w): the others, the first
        class, the second."""
        lines: dict[int, list[int]] = {}
        for u, w in points:
            lines.setdefault(w - u, []).append(u)
        found = {}
        size, reach = len(self.pmf), self.reach
        for d, firsts in lines.items():
            start = min(max(0, min(min(firsts), min(firsts) + d) + reach), size - 1)
            pmf = self.pmf[start:]
            one = self._weighted_sums(pmf, start + d + 1)
            two = self._weighted_sums(pmf, start - d)
            for u in firsts:
                found[u, u + d] = (
                    self.below(u) * self.below(u + d),
                    one[len(pmf) - 1 - (u + reach - start)],
                    two[len(pmf) - 1 - (u + d + reach - start)],
                )
        return found

    def _weighted_sums(self, pmf: list[float], first: int) -> list[float]:
        """Return the sums of pmf times P(N < k) from the last k on, where the first k stands at
        place `first` of the sums."""
        most = len(self.sums) - 1
        below = [self.sums[min(max(0, first + i), most)] for i in range(len(pmf))]
        return list(accumulate(map(mul, reversed(pmf), reversed(below))))

    def excesses(self, here: Chances, there: Chances) -> list[tuple[float, float]]:
        """Return, for each outcome, what convex functions of order a of its ratio are."""
        a, found = self.order, []
        for p, q in zip(here, there, strict=True):
            log_r = math.log(q / p)
            change = math.expm1(log_r)
            found.append(
                (
                    math.expm1((1 - a) * log_r) + (a - 1) * change,
                    math.expm1(a * log_r) - a * change,
                )
            )
        return found

    def left_out(self, edge: int, deep: int) -> float:
        """Return what noise beyond the squares adds at most."""
        both, low = range(-self.reach, -deep), range(-self.reach, -edge)
        high, whole = range(edge, self.reach + 1), range(-self.reach, self.reach + 1)
        pairs = [(both, both)]
        pairs += [pair for far in (low, high) for pair in ((far, whole), (whole, far))]
        return math.fsum(self._pointwise_moment(*pair) for pair in pairs)

    def _pointwise_moment(self, one: range, other: range) -> float:
        a, totals = self.order, [1.0, 1.0, 1.0, 1.0]
        for noises, sign in ((one, -1), (other, 1)):
            sums = [0.0, 0.0, 0.0, 0.0]
            for n in noises:
                log_r = (sign * 2 * n - 1) / (2 * self.sigma**2)
                for i, power in enumerate((0.0, 1.0, 1 - a, a)):
                    sums[i] += self.pmf[n + self.reach] * math.exp(power * log_r)
            totals = [total * value for total, value in zip(totals, sums, strict=True)]
        p, q, there, back = totals
        return max(there - p + (a - 1) * (q - p), back - p - a * (q - p))

    def keep(self, most: float) -> bool:
        """Return whether the moment of order a, less 1, is at most `most` for all votes."""
        edge, deep = self.FAR * math.ceil(self.sigma), math.ceil((self.DEEP + 0.25) * self.sigma)
        most = (most - self.left_out(edge, deep)) / (1 + 1e-5)
        side = 1
        while side < self.sigma / 4:
            side *= 2
        starts = range(-edge, edge + 1, side)
        squares = [(u, w) for u in starts for w in starts]
        while squares:
            far = side - 1
            squares = [(u, w) for u, w in squares if max(u, w) + far >= -deep]
            corners = [(u, w + far) for u, w in squares] + [(u + far, w) for u, w in squares]
            values = self.chances({*corners, *((u + 1, w - 1) for u, w in corners)})
            squares = [one for one in squares if self._bound(*one, far, values) > most]
            # a square bounds its points from above: in parts it may fit yet, a point alone may not
            if squares and side == 1:
                return False
            side //= 2
            squares = [(u + i, w + j) for u, w in squares for i in (0, side) for j in (0, side)]
        return True

    def _bound(self, u: int, w: int, far: int, values: dict[tuple[int, int], Chances]) -> float:
        """Return a moment that all points of a square keep."""
        high, low = values[u, w + far], values[u + far, w]
        top = self.below(u + far) * self.below(w + far)
        above = self.excesses(high, values[u + 1, w + far - 1])
        under = self.excesses(low, values[u + far + 1, w - 1])
        terms = [
            [p * max(one[way], two[way]) for way in (0, 1)]
            for p, one, two in zip((top, high[1], low[2]), above, under, strict=True)
        ]
        return max(map(math.fsum, zip(*terms, strict=True)))


def threshold_divergence(sigma: float, a: float) -> float:
    """Return the largest Renyi divergence of order a of an answer about a threshold."""
    pairs, worst = Pairs(sigma, None), 0.0
    for t in range(2 - pairs.reach, pairs.reach + 1):
        p, q, r, s = pairs.at(t)
        if min(p, q, r, s) <= 0:
            continue
        up, down = math.log(q / p), math.log(s / r)
        worst = max(
            worst,
            p * math.expm1((1 - a) * up) + r * math.expm1((1 - a) * down),
            q * math.expm1((a - 1) * up) + s * math.expm1((a - 1) * down),
        )
    return math.log1p(worst * (1 + 1e-9) + 1e-15) / (a - 1)


def classes_delta(
    sigma: float,
    labels: int,
    epsilon: float,
    promised: float | None,
    threshold: tuple[float, int] | None,
) -> float:
    """Return the promised delta where labels of more than two classes, beside answers about a
    threshold, keep it by their Renyi divergence of some order.

    Raises
    ------
    UndecidedError
        If they do not.
    """
    in_range = 1 <= sigma <= MOST_SIGMA and (threshold is None or 4 <= threshold[0] <= 2_000)
    if not in_range or promised is None or not promised > 0:
        raise UndecidedError("No divergence is computed here.")
    found = []
    for a in (1 + 0.25 * 1.1**i for i in range(80)):
        if a > 1 + 2 * sigma or (threshold is not None and a > 1 + threshold[0]):
            break
        factor = a * math.log1p(-1 / a) - math.log(a - 1)
        room = epsilon + (math.log(promised) - factor) / (a - 1)
        # before the answers about the threshold are computed, they are nearly 2 / pi of counts
        likely = labels * a / sigma**2 * (0.64 + 0.015 * (a / sigma) ** 2)
        if threshold is not None:
            likely += threshold[1] * 0.637 * a / (2 * threshold[0] ** 2)
        found.append((room / likely, a, room))
    # with little noise the likely divergence is off by some per cent, and more orders are tried
    for share, a, room in sorted(found, reverse=True)[: 8 if sigma < 20 else 1]:
        if threshold is not None:
            room -= threshold[1] * threshold_divergence(threshold[0], a)
        limit = math.expm1(min(700.0, (a - 1) * room / labels)) * (1 - 1e-9)
        if share > 0.9 and ClassLabels(sigma, a).keep(limit):
            return promised
    raise UndecidedError("No divergence keeps the promise.")


def even_vote(sigma: float) -> Pair:
    """Return the chances of a class that is as high as one other, and far above all the rest.

    The difference of both noises is discrete Gaussian noise, and moves by two votes.
    """
    tails = tails_of(math.sqrt(2) * sigma)
    less, more = tails[1], 1 - tails[2]
    return less, more, 1 - less, 1 - more


def table_points(weights: list[int], n_teachers: int) -> list[tuple[int, int]]:
    """Return the chances of label 1 under v and v + 1 votes, for all v that differ."""
    upper = [ONE - weight for weight in weights]
    if n_teachers % 2 == 0:
        upper = upper[1:]
    chances = [*reversed(weights), *upper]
    return [(p, q) for p, q in pairwise(chances) if p < q]


def turns_right(a: tuple[int, int], b: tuple[int, int], c: tuple[int, int]) -> bool:
    return (b[1] - a[1]) * (c[0] - b[0]) > (c[1] - b[1]) * (b[0] - a[0])


def table_hull(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the points above which no line between two others passes."""
    found: list[tuple[int, int]] = []
    for point in points:
        while len(found) >= 2 and not turns_right(found[-2], found[-1], point):
            found.pop()
        found.append(point)
    return found


def meeting_of(
    a: tuple[int, int], b: tuple[int, int], c: tuple[int, int], d: tuple[int, int]
) -> tuple[Fraction, Fraction]:
    """Return where the line through the first two points meets that through the last two."""
    first, second = Fraction(b[1] - a[1], b[0] - a[0]), Fraction(d[1] - c[1], d[0] - c[0])
    p = (c[1] - a[1] + first * a[0] - second * c[0]) / (first - second)
    return p, a[1] + first * (p - a[0])


def table_corners(weights: list[int], n_teachers: int, lines: int) -> list[Pair]:
    """Return corners of a polygon around all pairs of a table, the one that tells most first.

    Its sides are lines through edges of the hull, about so many and both ends: they lie on or above
    all pairs.
    """
    hull = table_hull(table_points(weights, n_teachers))
    edges = list(pairwise(hull))
    kept = [*edges[: -1 : max(1, len(edges) // lines)], *edges[-1:]]
    corners: list[tuple[Any, Any]] = [
        hull[0],
        *(meeting_of(*a, *b) for a, b in pairwise(kept)),
        hull[-1],
    ]
    found = [
        (float(p / ONE), float(q / ONE), float((ONE - p) / ONE), float((ONE - q) / ONE))
        for p, q in corners
    ]

    def loses(corner: Pair) -> float:
        p, q, r, s = corner
        return p * math.log(q / p) ** 2 + r * math.log(s / r) ** 2

    first = max(found, key=loses)
    return [first, *(corner for corner in found if corner is not first)]
