"""Games: what labels that are chosen one after another tell, from above and from below."""

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
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
Law = tuple[tuple[float, float], ...]  # chances of all outcomes, and the neighbour's
Chances = tuple[float, float, float]
Point = tuple[int, int]


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
        self.all_within = False  # whether there are no pairs beyond the reach
        if n_teachers is not None:
            half = -(-n_teachers // 2)
            farthest = max(half, 2 - (half - n_teachers + 1))
            self.all_within = farthest <= self.reach
            self.reach = min(self.reach, farthest)

    def _upper_tail(self, t: int) -> float:
        """Return P(N >= t)."""
        if t >= 0:
            return self._tails[min(t, len(self._tails) - 1)]
        return 1 - self._tails[min(1 - t, len(self._tails) - 1)]

    def at(self, t: int) -> Pair:
        """Return the pair at t; of both numbers the smaller side is kept to its last digits."""
        p, q = self._upper_tail(t), self._upper_tail(t - 1)
        return p, q, self._upper_tail(1 - t), self._upper_tail(2 - t)

    def corners(self, queries: int, fine: float) -> list[Pair]:
        """Return corners of a polygon around all pairs, the most informative one first; lines lie
        `fine` deviations apart in the middle, where labels tell most, wider outside."""
        wide = 0.35 * min(1.0, queries / 100)  # of few labels the pairs farther out count too
        return self.arc(2 - self.reach, self.reach, fine, wide)

    def arc(self, first: int, last: int, fine: float, wide: float = 0.0) -> list[Pair]:
        """Return corners of a polygon that, with equal chances, contains the pairs at first, ...,
        last. Lines lie `fine` deviations apart, or more outside the middle where `wide` says so."""
        found = []
        for low, high, far in ((max(first, 1), last, False), (max(2 - last, 2), 2 - first, True)):
            end, corners = min(high, self.reach, math.ceil(9 * self.sigma) + 2), []
            if low <= end:
                edges = [low + 1]
                while edges[-1] < end:
                    away = max(fine, wide * (edges[-1] / self.sigma - 0.6))
                    edges.append(min(end, edges[-1] + max(1, int(self.sigma * away))))
                corners = [self.at(low)]
                corners += [self._meeting_point(*two) for two in pairwise(edges)]
                corners.append(self.at(end))
            if end < high:  # everything farther lies under this corner
                small = self._upper_tail(max(end, low - 1))
                corners.append((0.0, small, 1.0, 1 - small))
            found += [(s, r, q, p) if far else (p, q, r, s) for p, q, r, s in corners]
        return found

    def _meeting_point(self, near: int, far: int) -> Pair:
        """Return where the lines through two edges meet; both lie above all pairs."""
        if far == near + 1:
            return self.at(near)
        p1, q1 = self.at(near)[:2]
        p2, q2 = self.at(far - 1)[:2]
        first, second = (
            math.exp((2 * (edge - 1) - 1) / (2 * self.sigma**2)) for edge in (near, far)
        )
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


def excess(one: float, other: float, lost: float) -> float:
    """Return by how much a number is above another, with what floats may lose of both for it."""
    return max(0.0, one * (1 + lost) - other * (1 - lost))


class Cells:
    """Vectors of fixed-point numbers, packed into one integer each, so that integers do the work
    of arrays."""

    WEIGHT = 30  # bits of a weight: one digit of Python's integers

    def __init__(self, size: int, precision: int) -> None:
        self.size, self.precision = size, precision
        self.bytes = (precision + self.WEIGHT + 4 + 7) // 8
        self.width = 8 * self.bytes
        ones = self.packed([1] * size)
        self.all = (1 << self.width * size) - 1
        self.tops = ones << (self.width - 1)
        self.almost = ones * ((1 << self.WEIGHT) - 1)
        self.low = ones * ((1 << (self.width - self.WEIGHT)) - 1)

    def packed(self, values: Iterable[int]) -> int:
        return int.from_bytes(
            b"".join(value.to_bytes(self.bytes, "little") for value in values), "little"
        )

    def value(self, vector: int, place: int) -> int:
        return (vector >> (self.width * place)) & ((1 << self.width) - 1)

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


def cells_of(queries: int, usual: int = 12) -> int:
    """Return how many cells make one step of a game."""
    return min(60, max(12, round(usual * math.sqrt(300 / queries))))


def profile_of_steps(
    laws: Sequence[Law],
    step: float,
    queries: int,
    reach: tuple[float, float],
    precision: int,
    passing: Sequence[tuple[int, Sequence[Law]]] = (),
) -> Profile:
    """Return the value of the game at every epsilon, from above.

    A step is any of some pairs of distributions. Convexity makes interpolation an upper bound,
    integers round up.

    Cells are a geometric grid of likelihood ratios x, `step` nats wide; a few of them should make
    one step of the best pair, so that it falls on the grid. Values have `precision` bits
    after the point. Left of the grid the chord to (0, 1) lies above the value, right of it the last
    value. `reach` says how far the grid goes to the left and to the right of x = 1, in nats; what
    lies outside hardly counts, and is bounded from above.

    With `passing` a step is a question with two outcomes, and the first one is followed by one of
    the pairs: each entry says how many of `laws`, from the first on, may follow, and what pairs
    the question may be then.

    Raises
    ------
    UndecidedError
        If the game would take longer than it may.
    """
    left, right = reach
    if not step * cells_allowed() > left + right:
        raise UndecidedError(f"A game of {queries} labels is too fine.")
    start = math.ceil(left / step)  # the cell of x = 1
    size = start + math.ceil(right / step) + 1
    asked = [law for _, questions in passing for law in questions]
    if size * queries * sum(map(len, [*laws, *asked])) > cells_allowed():
        raise UndecidedError(f"A game of {queries} labels takes too long.")
    space, scale = Cells(size, precision), 1 << precision
    ready = {law: weights_of(law, step) for law in {*laws, *asked}}
    sure = {
        # outcomes that the other side never has: there x becomes 0, and its value is 1
        law: space.packed(
            [math.ceil(math.fsum(p for p, q in law if q <= 0) * scale * (1 << Cells.WEIGHT))] * size
        )
        for law in ready
    }
    places = [shift for move in ready.values() for part in move for _, shift in part]
    margin_left, margin_right = 1 + max(0, -min(places)), 2 + max(0, *places)
    below = [math.exp(-step * k) for k in range(margin_left, 0, -1)]
    vector = space.packed(
        [math.ceil(-math.expm1(min(0.0, step * (i - start))) * scale) for i in range(size)]
    )

    def padded(values: int) -> int:
        first, last = space.value(values, 0), space.value(values, size - 1)
        chord = [min(scale, scale - int((scale - first) * ratio) + 1) for ratio in below]
        pads = space.packed(chord), space.packed([last] * margin_right)
        return (
            pads[0]
            | (values << space.width * margin_left)
            | (pads[1] << space.width * (margin_left + size))
        )

    def best_of(listed: Sequence[Law], first: int, others: int) -> int:
        """Return the best value of some pairs; the first outcome leads to other values."""
        best = 0
        for law in listed:
            total = sure[law]
            for i, part in enumerate(ready[law]):
                for weight, shift in part:
                    wide = others if i else first
                    total += weight * (wide >> space.width * (margin_left + shift))
            total &= space.all
            best = space.larger(total, best) if best else total
        return space.rounded(best)

    for _ in range(queries):
        wide = padded(vector)
        if not passing:
            vector = best_of(laws, wide, wide)
            continue
        labelled, found, known = vector, vector, 0
        for followed, questions in passing:
            labelled = space.larger(labelled, best_of(laws[known:followed], wide, wide))
            found = space.larger(found, best_of(questions, padded(labelled), wide))
            known = followed
        vector = found
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


def game_profile(
    corners: list[Pair], queries: int, reach: tuple[float, float], cells: int, precision: int
) -> Profile:
    """Return the value of the game of some pairs at every epsilon, as `profile_of_steps` does;
    `cells` make one step of the pair in the middle."""
    laws = [((a, b), (c, d)) for a, b, c, d in corners]
    return profile_of_steps(laws, spread_of(corners, 1) / cells, queries, reach, precision)


def game_delta(
    corners: list[Pair],
    queries: int,
    epsilon: float,
    cells: int,
    precision: int,
    beside: Profile | None = None,
) -> float:
    """Return the value of the game at one epsilon, by itself or with another mechanism, whose
    profile is `beside`; `cells` make one step of the pair in the middle.

    Raises
    ------
    UndecidedError
        If the game is too long to be played here.
    """
    far = 4 * spread_of(corners, queries)
    game = game_profile(corners, queries, (far, far + epsilon), cells, precision)
    if beside is None:
        return game(epsilon)
    return composed_delta(game, beside, epsilon, 2.0**-precision)


def composed_delta(game: Profile, beside: Profile, epsilon: float, nothing: float) -> float:
    """Return delta of two mechanisms together, in any order, from above.

    The value of the game is averaged over the likelihood ratios of the other one
    (docs/explanation/prices.md, section 12): a game played before the other mechanism would be
    less useful, as its questions could not follow the other's answers. The ratios are those
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


def weights_of(law: Law, step: float) -> list[list[tuple[int, int]]]:
    """Return, for each outcome of a pair of distributions, weights over 2**WEIGHT, rounded up,
    and shifts in cells.

    The value falls to the right, so shifts are rounded to the left.
    """
    found = []
    for weight, other in law:
        shares: tuple[tuple[float, int], ...] = ()
        if weight > 0 and other > 0:
            moved = math.log(other / weight)
            places = (moved - LOST * (1 + abs(moved))) / step
            low = math.floor(places)
            at = min(1.0, math.expm1(step * (places - low)) / math.expm1(step))
            shares = ((1 - at, low), (at, low + 1)) if at > 1e-9 else ((1.0, low),)
        found.append(
            [(math.ceil(weight * share * (1 << Cells.WEIGHT)), shift) for share, shift in shares]
        )
    return found


MOST_SIGMA = 300  # votes, of labels of more classes; beyond, this program takes too long
CLASS_LAWS = 1400  # of a game's list, about


class ClassLabels:
    """Labels of more than two classes under discrete Gaussian noise on every count.

    The adversary sees the largest noisy count of the classes that are not touched. A label is then
    one of three outcomes, whose chances follow from two integers: u, the noise that the class
    losing a vote needs to win over the others, and w, that of the class gaining one. For a
    neighbour they are u + 1 and w - 1.
    """

    FAR, DEEP = 9, 3  # deviations; of one noise and of both, beyond which all is revealed

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
        """Return the sums of pmf times P(N < k) from the last k on, where the first k is at
        place `first` of the sums."""
        most = len(self.sums) - 1
        below = [self.sums[min(max(0, first + i), most)] for i in range(len(pmf))]
        return list(accumulate(map(mul, reversed(pmf), reversed(below))))

    def laws_at(self, points: Sequence[Point]) -> dict[Point, Law]:
        """Return the chances at points, and a neighbour's."""
        values = self.chances({*points, *((u + 1, w - 1) for u, w in points)})
        return {
            (u, w): tuple(zip(values[u, w], values[u + 1, w - 1], strict=True)) for u, w in points
        }

    def all_squares_pass(
        self, edge: int, deep: int, passes: Callable[[int, int, int, Law, Law], bool]
    ) -> bool:
        """Return whether all points of the lattice of two noises pass a test.

        The test takes a square: its first point, how far the last one lies from it, and the laws
        with its largest and its smallest ratios. What does not pass as a whole is cut in four.
        """
        side = 1
        while side < self.sigma / 5:
            side *= 2
        starts = range(-edge, edge + 1, side)
        squares = [(u, w) for u in starts for w in starts]
        while squares:
            far = side - 1
            squares = [(u, w) for u, w in squares if max(u, w) + far >= -deep and max(u, w) <= edge]
            corners = [(u, w + far) for u, w in squares] + [(u + far, w) for u, w in squares]
            laws = self.laws_at(corners)
            squares = [
                (u, w)
                for u, w in squares
                if not passes(u, w, far, laws[u, w + far], laws[u + far, w])
            ]
            # a square bounds its points from above: in parts it may pass yet, a point alone may not
            if squares and side == 1:
                return False
            side //= 2
            squares = [(u + i, w + j) for u, w in squares for i in (0, side) for j in (0, side)]
        return True

    def excesses(self, law: Law) -> list[tuple[float, float]]:
        """Return, for each outcome, what convex functions of order a of its ratio are."""
        a, found = self.order, []
        for p, q in law:
            log_r = math.log(q / p)
            change = math.expm1(log_r)
            there = math.expm1((1 - a) * log_r) + (a - 1) * change
            found.append((there, math.expm1(a * log_r) - a * change))
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

        def passes(u: int, w: int, far: int, high: Law, low: Law) -> bool:
            here = [p for p, _ in high]
            if far:
                here = [self.below(u + far) * self.below(w + far), here[1], low[2][0]]
            terms = [
                [p * max(one[way], two[way]) for way in (0, 1)]
                for p, one, two in zip(here, self.excesses(high), self.excesses(low), strict=True)
            ]
            return max(map(math.fsum, zip(*terms, strict=True))) <= most

        return self.all_squares_pass(edge, deep, passes)


class ThreeOutcomes:
    """A list of pairs of distributions on three outcomes that dominates what a label of more than
    two classes reveals (section 15).

    The list holds what labels tell at the knots of a net over the lattice of `ClassLabels`, both
    ways round, with their ratios spread. Each point of the lattice has to lie below the mixture of
    the four knots around it: its hockey stick nowhere above theirs.
    """

    FAR, DEEP = 7.8, 5.4  # deviations; of one noise and of both, beyond which all is revealed
    CHARGE = 5e-14  # a label, for noises farther out and for what the comparison lets pass
    PASSED = 5e-15
    OFF = 1e-11  # what floats lose of a chance, and of a ratio of two, at most
    MOST_SPREAD = 0.4
    STEPS = (
        *(0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.35, 1.5, 1.8, 2.2, 2.7),
        *(3.4, 4.4, 5.4, 6.5, 7.5, 8.5),
    )
    SUMS = (
        *(-3.6, -1.7, -1.3, -1.1, -0.9, -0.7, -0.5, -0.25, 0, 0.25, 0.6, 1.1, 1.9, 2.9, 3.8, 4.7),
        *(5.4, 6.1, 7.2, 8.8),
    )

    def __init__(self, sigma: float, excess: float) -> None:
        self.sigma, self.labels = sigma, ClassLabels(sigma, 2.0)
        root = math.sqrt(2) * sigma
        steps = sorted({max(1, round(at * root)) for at in self.STEPS})
        self.steps = [1 - d for d in reversed(steps)] + steps
        self.sums = sorted({2 * round(at * root / 2) for at in self.SUMS})
        self.edge, self.deep = math.ceil(self.FAR * sigma), math.ceil(self.DEEP * sigma)
        self.most = [value * (1 + excess) for value in self._largest_moments()]
        self.knots = self._spread_laws()
        self.cells: dict[tuple[int, int], list[tuple[float, list[float]]]] = {}

    def _ratio_moments(self, law: Law) -> list[float]:
        """Return moments of the ratios less 1: of order 2, and of two more in both directions."""
        sums = [0.0] * 7
        for p, q in law:
            ratio = q / p
            sums[0] += p * (ratio - 1) ** 2
            log_r, place = math.log(ratio), 1
            for tilt in (0.4, 0.8, 1.2):
                for a in (tilt * self.sigma, 1 - tilt * self.sigma):
                    sums[place] += p * (math.exp(a * log_r) - 1 - a * (ratio - 1))
                    place += 1
        return sums

    def _largest_moments(self) -> list[float]:
        stride = max(1, round(self.sigma / 9))
        axis = range(-math.ceil(4 * self.sigma), math.ceil(2 * self.sigma), stride)
        laws = self.labels.laws_at([(u, w) for u in axis for w in axis]).values()
        largest = [max(column) for column in zip(*map(self._ratio_moments, laws), strict=True)]
        for i in range(1, len(largest), 2):  # both directions have the same
            largest[i] = largest[i + 1] = max(largest[i : i + 2])
        return largest

    def _spread_laws(self) -> list[list[Law]]:
        """Return the spread laws of all knots, sum by sum."""
        rim = self.edge + math.ceil(self.sigma)
        places = []
        for row, total in enumerate(self.sums):
            for d in self.steps:
                u = (total + d % 2 - d) // 2
                if row == 0:  # stands for all that lies deeper
                    top = max(-self.deep, abs(d) - self.edge)
                    u = min(top, top - d)
                w = u + d
                places.append((min(max(u, -rim), rim), min(max(w, -rim), rim)))
        values = self.labels.laws_at(places)
        laws = [self._spread_law(values[place]) for place in places]
        n = len(self.steps)
        return [laws[n * row : n * (row + 1)] for row in range(len(self.sums))]

    def _spread_law(self, law: Law) -> Law:
        """Return the law with its ratios as far from 1 as the moments allow, and sums of 1."""
        low, high = 0.0, self.MOST_SPREAD
        for _ in range(10):
            middle = (low + high) / 2
            wide = tuple((p, p + (1 + middle) * (q - p)) for p, q in law)
            if min(q / p for p, q in wide) >= 0.1 and all(
                value <= most
                for value, most in zip(self._ratio_moments(wide), self.most, strict=True)
            ):
                low = middle
            else:
                high = middle
        found = [(p, p + (1 + low) * (q - p)) for p, q in law]
        largest = max(range(3), key=lambda i: found[i][0])
        others = [found[i] for i in range(3) if i != largest]
        found[largest] = 1 - math.fsum(p for p, _ in others), 1 - math.fsum(q for _, q in others)
        return tuple(found)

    def laws(self) -> list[Law]:
        """Return the list, without laws that another one of it dominates."""
        every = [law for row in self.knots for law in row]
        every += [tuple((q, p) for p, q in law) for law in every]
        every.sort(key=lambda law: -math.fsum((q - p) ** 2 / p for p, q in law))
        kept: list[Law] = []
        tests: list[list[tuple[float, float]]] = []
        for law in every:
            for test in tests:
                if all(above_silence(law, x) <= height for x, height in test):
                    break
            else:
                kept.append(law)
                points = [1.0, *(p / q for p, q in law)]
                tests.append([(x, above_silence(law, x) + 1e-15 * min(1.0, x)) for x in points])
        return kept

    def _cell_sticks(self, column: int, row: int) -> list[tuple[float, list[float]]]:
        """Return where the slopes of four knots' hockey sticks change, and the sticks there."""
        found = self.cells.get((column, row))
        if found is None:
            four = [self.knots[j][i] for j in (row, row + 1) for i in (column, column + 1)]
            points = sorted({1.0, *(p / q for law in four for p, q in law)})
            found = [(x, [above_silence(law, x) for law in four]) for x in points]
            self.cells[column, row] = found
        return found

    def cover(self) -> bool:
        """Return whether each point of the lattice lies below the mixture around it."""
        return self.labels.all_squares_pass(self.edge, self.deep, self._square_below)

    def _square_below(self, u: int, w: int, far: int, high: Law, low: Law) -> bool:
        """Return whether all points of a square lie below the mixture at its middle.

        `high` and `low` are its laws with the largest and with the smallest ratios.
        """
        most = (self.labels.below(u + far) * self.labels.below(w + far), high[1][0], low[2][0])
        terms = [
            (p * (1 + self.OFF), b / a * (1 - self.OFF), d / c * (1 + self.OFF))
            for p, (a, b), (c, d) in zip(most, low, high, strict=True)
        ]
        column, across = share_between(self.steps, w - u)
        row, along = share_between(self.sums, u + w + far)
        shares = (
            *((1 - along) * (1 - across), (1 - along) * across),
            *(along * (1 - across), along * across),
        )
        for x, heights in self._cell_sticks(column, row):
            found = sum(map(mul, shares, heights)) + self.PASSED * min(1.0, x)
            down = [p * (1 - x * least) if x * least < 1 else 0.0 for p, least, _ in terms]
            up = [p * (x * greatest - 1) if x * greatest > 1 else 0.0 for p, _, greatest in terms]
            here, there = (down, up) if x >= 1 else (up, down)
            if here[0] + here[1] + here[2] <= found:
                continue
            # any outcome is what the two others leave
            between = -abs(1 - x)
            if not any(
                max(here[i] + here[j], between + there[i] + there[j]) <= found
                for i, j in ((0, 1), (0, 2), (1, 2))
            ):
                return False
        return True


def share_between(knots: Sequence[int], at: float) -> tuple[int, float]:
    """Return between which two knots a number lies, and how far along; beyond an end, that end."""
    place = min(max(bisect_right(knots, at) - 1, 0), len(knots) - 2)
    return place, min(max((at - knots[place]) / (knots[place + 1] - knots[place]), 0.0), 1.0)


def above_silence(law: Law, x: float) -> float:
    """Return by how much a hockey stick exceeds that of silence; the largest outcome is what the
    others leave."""
    largest = max(range(len(law)), key=lambda i: law[i][0])
    down = up = 0.0
    for i, (p, q) in enumerate(law):
        if i != largest:
            gap = p - x * q
            if gap > 0:
                down += gap
            else:
                up -= gap
    return max(down, 1 - x + up) if x >= 1 else max(up, down - 1 + x)


def spread_of_classes(sigma: float, queries: int) -> float:
    """Return about how far the losses of labels of more than two classes spread."""
    return 1.135 / sigma * math.sqrt(queries)


def class_game_profile(
    sigma: float, queries: int, reach: tuple[float, float], precision: int
) -> Profile:
    """Return the value of the game of labels of more than two classes at every epsilon, from above.

    `reach` is as for `profile_of_steps`.

    Raises
    ------
    UndecidedError
        If the game is too long for this program, or it finds no list of pairs.
    """
    step = 1.135 / sigma / cells_of(queries, 10)
    size = (reach[0] + reach[1]) / step
    # the list takes about as long as a game of so many cells
    work = 1e7 * sigma + size * queries * 3 * CLASS_LAWS
    if not 10 <= sigma <= MOST_SIGMA or work > cells_allowed():
        raise UndecidedError("Such a game of three outcomes is not played here.")
    nets = (ThreeOutcomes(sigma, spread) for spread in (0.01, 0.013, 0.017, 0.022, 0.03))
    net = next((net for net in nets if net.cover()), None)
    if net is None:
        raise UndecidedError("No list of pairs was found.")
    game = profile_of_steps(net.laws(), step, queries, reach, precision)
    return lambda epsilon: game(epsilon) + queries * ThreeOutcomes.CHARGE


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
        slack = epsilon + (math.log(promised) - factor) / (a - 1)
        # before the answers about the threshold are computed, they are nearly 2 / pi of counts
        likely = labels * a / sigma**2 * (0.64 + 0.015 * (a / sigma) ** 2)
        if threshold is not None:
            likely += threshold[1] * 0.637 * a / (2 * threshold[0] ** 2)
        found.append((slack / likely, a, slack))
    # with little noise the likely divergence is off by some per cent, and more orders are tried
    for share, a, slack in sorted(found, reverse=True)[: 8 if sigma < 20 else 1]:
        if threshold is not None:
            slack -= threshold[1] * threshold_divergence(threshold[0], a)
        limit = math.expm1(min(700.0, (a - 1) * slack / labels)) * (1 - 1e-9)
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


def table_hull(points: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the points above which no line between two others passes."""
    found: list[tuple[int, int]] = []
    for point in points:
        while len(found) >= 2:
            (a, b), (c, d) = found[-2:]
            if (d - b) * (point[0] - c) > (point[1] - d) * (c - a):  # it turns right
                break
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


def table_corners(weights: list[int], n_teachers: int, share: float) -> list[Pair]:
    """Return corners of a polygon around all pairs of a table, the most informative one first.

    Lines through edges of the hull lie on or above all pairs. Edges between two are left out as
    long as the two meet at most `share` above the hull, as a share of the gap that is there.
    """
    hull = table_hull(table_points(weights, n_teachers))
    across, gaps = [float(p) for p, _ in hull], [float(q - p) for p, q in hull]
    slopes = [(gaps[k + 1] - gaps[k]) / (across[k + 1] - across[k]) for k in range(len(hull) - 1)]
    edges, last = [0], len(hull) - 2
    while edges[-1] < last:
        edge, ahead = edges[-1], edges[-1] + 1
        # Two lines meet above the chord between their edges by at most a quarter of how much they
        # turn times how far these lie apart, of which the hull makes up about half. Floats say
        # which edges to leave out; where two lines meet is exact.
        while ahead < last and (
            (slopes[edge] - slopes[ahead + 1]) * (across[ahead + 1] - across[edge + 1])
            <= 8 * share * min(gaps[edge + 1], gaps[ahead + 1])
        ):
            ahead += 1
        edges.append(ahead)
    meetings: list[tuple[Any, Any]] = [
        hull[b] if b == a + 1 else meeting_of(*hull[a : a + 2], *hull[b : b + 2])
        for a, b in pairwise(edges)
    ]
    found = [
        (float(p / ONE), float(q / ONE), float((ONE - p) / ONE), float((ONE - q) / ONE))
        for p, q in (hull[0], *meetings, *hull[1:][-1:])
    ]

    def loses(corner: Pair) -> float:
        p, q, r, s = corner
        return p * math.log(q / p) ** 2 + r * math.log(s / r) ** 2

    first = max(found, key=loses)
    return [first, *(corner for corner in found if corner is not first)]


def both_ways(pairs: Iterable[Pair]) -> list[Law]:
    """Return pairs as distributions on two outcomes, and turned round."""
    found: list[Law] = [((p, q), (r, s)) for p, q, r, s in pairs]
    return found + [tuple((q, p) for p, q in law) for law in found]


def passing_delta(event: dict[str, Any], epsilon: float, precision: int, fine: float) -> float:
    """Return delta of queries of two classes, each a question about the highest count that a label
    may follow, from above.

    The highest count is at most that of the larger class. So with e votes from an even vote the
    question's t is at least threshold - K // 2 - e, one less at an even vote of an odd K. What may
    follow are labels of votes that are far enough from even.

    Raises
    ------
    UndecidedError
        If the game is too long to be played here.
    """
    asked, n_teachers, half = event["queries"], event["n_teachers"], event["n_teachers"] // 2
    tops, labels = Pairs(event["threshold_sigma"], None), Pairs(event["sigma"], None)
    if max(tops.sigma, labels.sigma) > 1e4:
        raise UndecidedError("Such noise is not played here.")
    width = max(1, int(labels.sigma * fine))
    starts = [0, *range(1, min(half + 1, math.ceil(5 * labels.sigma)), width)]
    groups, above = [], tops.reach + math.ceil(20 * tops.sigma)
    for start, end in pairwise([*starts, half + 1]):
        least = event["threshold"] - min(n_teachers, half + end)
        if start or n_teachers % 2 == 0:
            least += 1
        questions = tops.arc(least, above, fine) if least <= above else []
        groups.append((labels.arc(1 + start, end, fine), questions))
        above = min(above, least - 1)
    laws: list[Law] = []
    passing = []
    for labelled, questions in reversed(groups):
        laws += both_ways(labelled)
        passing.append((len(laws), both_ways(questions)))
    usual = spread_of([labels.at(1)], 1)
    spread = math.sqrt(asked * (usual**2 + spread_of([tops.at(1)], 1) ** 2))
    reach = 4 * spread, 4 * spread + epsilon
    return profile_of_steps(laws, usual / cells_of(asked), asked, reach, precision, passing)(
        epsilon
    )
