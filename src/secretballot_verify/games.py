"""Games: what labels that are chosen one after another tell, from above and from below.

Votes are curves: chances of a label 1, vote by vote. A label is a law: the chances of its outcomes
under some votes, and under neighbouring ones. A game has steps, each of them one of some laws; its
value at every epsilon is a profile, from above. Of a game that takes too long nothing is known.
"""

import math
from bisect import bisect_right
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from contextvars import ContextVar
from fractions import Fraction
from functools import cache, lru_cache
from itertools import accumulate, pairwise, product
from operator import ge, mul
from typing import Any

LOST = 2.0**-48  # what floats may lose of a probability, or of a loss in nats and as a share of it

ONE = 2**200  # chances of a curve are whole numbers of its inverse, as floats down to 2^-147 are

MOST_CURVED = 1e4  # deviations of noise whose curve is drawn

MINUTES = 2.0  # that one game may take, about

minutes_allowed = ContextVar("minutes", default=MINUTES)

_CELLS_A_MINUTE = 2.5e9  # of a game, times steps and outcomes; a fast machine does twice as many

_CHORDS = 1500  # of a profile beside a game, on either side of x = 1

Profile = Callable[[float], float]  # of epsilons, or of orders
_Law = tuple[tuple[float, float], ...]  # chances of all outcomes, and the neighbour's
_Point = tuple[Any, Any]  # chances of a label 1, and the neighbour's, over ONE
_Curve = list[_Point]


def _cells_allowed() -> float:
    """Return how many cells one game may have, counted by steps and outcomes."""
    return _CELLS_A_MINUTE * minutes_allowed.get()


# --- Votes on two classes -------------------------------------------------------------------------


def _tails_of(sigma: float) -> list[float]:
    """Return P(N >= t) for t = 0, 1, 2, ... of discrete Gaussian noise, each to its last digits;
    the last one, of what is never seen, is 0."""
    most = math.ceil(14 * sigma) + 8
    weights = [math.exp(-x * x / (2 * sigma * sigma)) for x in range(most)]
    tails = [0.0, *accumulate(reversed(weights))][::-1]
    return [tail / (2 * tails[1] + weights[0]) for tail in tails]


def curve_of(minority: Iterable[int], fair: bool) -> _Curve:
    """Return the chances of label 1 under v and v + 1 votes, for all v that differ, where the label
    of a minority has these chances, margin by margin; `fair` says that the first is of an even
    vote.

    Pairs the other way round are these with both labels exchanged, so they need not be listed.
    """
    lower = list(minority)
    upper = [ONE - chance for chance in lower]
    return [(p, q) for p, q in pairwise([*reversed(lower), *upper[fair:]]) if p < q]


def noise_curve(sigma: float, n_teachers: int | None) -> _Curve:
    """Return the curve of labels under discrete Gaussian noise on a count.

    Its middle is t = ceil(K / 2) - v = 1, and p = P(N >= t). All pairs beyond nine deviations lie
    under the first pair, whose p is 0, or under the last one.
    """
    far = math.ceil(9 * sigma) + 2
    tails = [*_tails_of(sigma)[1:far], 0.0]
    end = far if n_teachers is None else n_teachers // 2 + 1
    return curve_of((int(math.ldexp(tail, 200)) for tail in tails[:end]), False)


def _arc_of(curve: _Curve, first: int, last: int) -> _Curve:
    """Return the pairs at t = first, ..., last of a curve of noise for every number of teachers, or
    those that they lie under."""
    middle, most = len(curve) // 2 + 1, len(curve) - 1
    start, end = (min(max(middle - t, 0), most) for t in (last, first))
    return curve[start : end + 1]


def law_of(p: Any, q: Any) -> _Law:
    return (float(p / ONE), float(q / ONE)), (float((ONE - p) / ONE), float((ONE - q) / ONE))


def _weight_of(point: _Point) -> float:
    """Return about the square of the information in one label, in nats."""
    p, q = point
    return float((q - p) ** 2 / (q * (ONE - p)))


def _hull_of(points: _Curve) -> _Curve:
    """Return the points above which no line between two others passes."""
    found: _Curve = []
    for point in points:
        while len(found) >= 2:
            (a, b), (c, d) = found[-2:]
            if (d - b) * (point[0] - c) > (point[1] - d) * (c - a):  # it turns right
                break
            found.pop()
        found.append(point)
    return found


def _meeting_of(a: _Point, b: _Point, c: _Point, d: _Point) -> _Point:
    """Return where the line through the first two points meets that through the last two."""
    first, second = Fraction(b[1] - a[1], b[0] - a[0]), Fraction(d[1] - c[1], d[0] - c[0])
    p = (c[1] - a[1] + first * a[0] - second * c[0]) / (first - second)
    return p, a[1] + first * (p - a[0])


def corners_of(points: _Curve, share: float, queries: int) -> list[_Law]:
    """Return corners of a polygon around all pairs, the most informative one first.

    Lines through edges of the hull lie on or above all pairs. Edges between two are left out as
    long as the two meet at most `share` above the hull, as a share of the gap that is there: of a
    hundred labels more where they say less, as few of these are asked for.
    """
    hull = _hull_of(points)
    gaps, weights = [q - p for p, q in hull], [_weight_of(point) for point in hull]
    few, most = 2 * min(1.0, queries / 100), max(weights)
    away = [min(15.0, most / one) ** few for one in weights]
    wide = [gap * one / ONE for gap, one in zip(gaps, away, strict=True)]
    slopes = [(d - b - c + a) / (c - a) for (a, b), (c, d) in pairwise(hull)]
    edges, last = [0], len(hull) - 2
    while edges[-1] < last:
        edge, ahead = edges[-1], edges[-1] + 1
        # Two lines meet above the chord between their edges by at most a quarter of how much they
        # turn times how far these lie apart, of which the hull makes up about half. Floats say
        # which edges to leave out; where two lines meet is exact.
        while ahead < last and (
            (slopes[edge] - slopes[ahead + 1]) * ((hull[ahead + 1][0] - hull[edge + 1][0]) / ONE)
            <= 8 * share * min(wide[edge + 1], wide[ahead + 1])
        ):
            ahead += 1
        edges.append(ahead)
    meetings = [
        hull[b] if b == a + 1 else _meeting_of(*hull[a : a + 2], *hull[b : b + 2])
        for a, b in pairwise(edges)
    ]
    found = [hull[0], *meetings, *hull[1:][-1:]]
    found.sort(key=_weight_of, reverse=True)
    return [law_of(*point) for point in found]


def both_ways(laws: Iterable[_Law]) -> list[_Law]:
    """Return laws, and the same ones turned round."""
    return [turned for law in laws for turned in (law, tuple((q, p) for p, q in law))]


def even_vote(sigma: float) -> _Law:
    """Return the chances of a class that is as high as one other, and far above all the rest.

    The difference of both noises is discrete Gaussian noise, and moves by two votes.
    """
    less, more = _tails_of(math.sqrt(2) * sigma)[1:3]
    return (less, 1 - more), (1 - less, more)


# --- Attacks --------------------------------------------------------------------------------------


def attack_delta(curve: _Curve, queries: int, epsilon: float) -> float:
    """Return what is reached by asking one and the same vote again and again.

    No price can be smaller.
    """
    # probabilities that vanish in floats have no log; leaving them out only lowers this bound
    weights = [_weight_of(point) if point[0] else 0.0 for point in curve]
    likely = [point for point, one in zip(curve, weights, strict=True) if one > max(weights) / 2000]
    asked = [max(likely, key=_weight_of), *likely[:: max(1, len(likely) // 60)]]
    return max(repeated_delta(law_of(*point), queries, epsilon) for point in asked)


def repeated_delta(law: _Law, queries: int, epsilon: float) -> float:
    """Return what is reached by answers that all have one law of two outcomes, from below."""
    one, other = sorted(((math.log(p / q), math.log(p)) for p, q in law), reverse=True)
    return binomial_delta(one, other, queries, epsilon, LOST)


def binomial_delta(
    one: tuple[float, float], other: tuple[float, float], n: int, epsilon: float, lost: float = 0.0
) -> float:
    """Return delta of `n` answers of two outcomes, by the loss of each and the logarithm of its
    chance; the first one loses. Floats may have `lost` a part of losses."""
    terms = []
    for ones in range(n, -1, -1):
        loss = ones * one[0] + (n - ones) * other[0]
        loss -= lost * (n + abs(loss))
        if loss <= epsilon:
            break
        choose = math.lgamma(n + 1) - math.lgamma(ones + 1) - math.lgamma(n - ones + 1)
        chance = choose + ones * one[1] + (n - ones) * other[1]
        terms.append(math.exp(chance) * -math.expm1(epsilon - loss))
    return math.fsum(terms)


def excess(law: _Law, ratio: float, lost: float) -> float:
    """Return the hockey stick of a law at a ratio, with what floats may lose of it."""
    return math.fsum(max(0.0, p * (1 + lost) - ratio * q * (1 - lost)) for p, q in law)


# --- Games ----------------------------------------------------------------------------------------


class _Cells:
    """Vectors of fixed-point numbers, packed into one integer each, so that integers do the work
    of arrays."""

    WEIGHT = 30  # bits of a weight: one digit of Python's integers

    def __init__(self, size: int, precision: int) -> None:
        self.size = size
        self.bytes = (precision + self.WEIGHT + 4 + 7) // 8
        self.width = 8 * self.bytes
        self.ones = self.packed([1] * size)
        self.all = (1 << self.width * size) - 1
        self.tops = self.ones << (self.width - 1)
        self.almost = self.ones * ((1 << self.WEIGHT) - 1)
        self.low = self.ones * ((1 << (self.width - self.WEIGHT)) - 1)

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


def _profile_of_steps(
    groups: Sequence[tuple[Sequence[_Law], Sequence[_Law]]],
    step: float,
    queries: int,
    reach: tuple[float, float],
    precision: int,
) -> Profile:
    """Return the value of the game at every epsilon, from above; 1 where the game would take longer
    than it may.

    A step is any of some laws. Convexity makes interpolation an upper bound, integers round up.

    Cells are a geometric grid of likelihood ratios x, `step` nats wide; a few of them should make
    one step of the best law, so that it falls on the grid. Values have `precision` bits
    after the point. Left of the grid the chord to (0, 1) lies above the value, right of it the last
    value. `reach` says how far the grid goes to the left and to the right of x = 1, in nats; what
    lies outside hardly counts, and is bounded from above.

    Each group is of labels and of questions. A step is a question of any group, and its first
    outcome may be followed by a label of this group, or of those before.
    """
    left, right = reach
    every = [law for group in groups for laws in group for law in laws]
    # a game without laws is none
    if not 0 < (left + right) / step * queries * sum(map(len, every)) < _cells_allowed():
        return lambda _: 1.0
    start = math.ceil(left / step)  # the cell of x = 1
    size = start + math.ceil(right / step) + 1
    space, scale = _Cells(size, precision), 1 << precision
    ready = {law: _weights_of(law, step) for law in every}
    sure = {
        # outcomes that the other side never has: there x becomes 0, and its value is 1
        law: space.ones
        * math.ceil(math.fsum(p for p, q in law if q <= 0) * (scale << _Cells.WEIGHT))
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

    def best_of(laws: Sequence[_Law], first: int, others: int) -> int:
        """Return the best value of some laws; the first outcome leads to other values."""
        best = 0
        for law in laws:
            total = sure[law]
            for i, part in enumerate(ready[law]):
                for weight, shift in part:
                    wide = others if i else first
                    total += weight * (wide >> space.width * (margin_left + shift))
            total &= space.all
            best = space.larger(total, best) if best else total
        return space.rounded(best)

    for _ in range(queries):
        wide, labelled = padded(vector), vector
        for labels, questions in groups:
            labelled = space.larger(labelled, best_of(labels, wide, wide))
            vector = space.larger(vector, best_of(questions, padded(labelled), wide))
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


def _weights_of(law: _Law, step: float) -> list[list[tuple[int, int]]]:
    """Return, for each outcome of a law, weights over 2**WEIGHT, rounded up, and shifts in cells.

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
            [(math.ceil(weight * share * (1 << _Cells.WEIGHT)), shift) for share, shift in shares]
        )
    return found


def _cells_of(queries: int) -> int:
    """Return how many cells make one step of a game."""
    return min(60, max(12, round(12 * math.sqrt(300 / queries))))


#: So many labels, read up to an epsilon in so many bits after the point; what is played beside
#: them, which loses so many nats at most.
Play = namedtuple("Play", "queries epsilon precision beside", defaults=[0.0])


def _game_profile(laws: Sequence[_Law], usual: float, finer: int, play: Play) -> Profile:
    """Return the value of the game of some laws, one step of which usually loses so many nats; made
    of `finer` times the usual cells."""
    far = 4 * usual * math.sqrt(play.queries) + play.beside
    step, reach = usual / (finer * _cells_of(play.queries)), (far, far + play.epsilon)
    return _profile_of_steps([((), laws)], step, play.queries, reach, play.precision)


def _usual_loss(law: _Law) -> float:
    """Return how many nats the likelier of two outcomes under the neighbour loses."""
    return math.log(law[0][1] / law[0][0])


def spread_of(curve: _Curve, queries: int) -> float:
    """Return how many nats so many labels of nearly even votes usually lose."""
    return _usual_loss(law_of(*curve[len(curve) // 2])) * math.sqrt(queries)


def votes_profile(curve: _Curve, fine: tuple[float, int], play: Play) -> Profile:
    """Return the value of the game of labels of two classes, as `_game_profile` does; `fine` is how
    far corners may lie above the hull, and how many times the usual cells there are."""
    laws = corners_of(curve, fine[0], play.queries)
    return _game_profile(laws, _usual_loss(laws[0]), fine[1], play)


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


def passing_delta(event: dict[str, Any], epsilon: float, precision: int, share: float) -> float:
    """Return delta of queries of two classes, each a question about the highest count that a label
    may follow, from above.

    The highest count is at most that of the larger class. So with e votes from an even vote the
    question's t is at least threshold - K // 2 - e, one less at an even vote of an odd K. What may
    follow are labels of votes that are far enough from even.
    """
    asked, n_teachers, half = event["queries"], event["n_teachers"], event["n_teachers"] // 2
    tops, labels = (noise_curve(event[name], None) for name in ("threshold_sigma", "sigma"))
    width = max(1, int(event["sigma"] * math.sqrt(8 * share)))
    starts = [0, *range(1, min(half + 1, math.ceil(5 * event["sigma"])), width), half + 1]
    groups, above = [], len(tops)  # farther than any noise
    for start, end in pairwise(starts):
        least = event["threshold"] - min(n_teachers, half + end)
        if start or n_teachers % 2 == 0:
            least += 1
        said = corners_of(_arc_of(labels, 1 + start, end), share, asked)
        asks = corners_of(_arc_of(tops, least, above), share, asked) if least <= above else []
        groups.append((both_ways(said), both_ways(asks)))
        above = min(above, least - 1)
    groups.reverse()
    far = 4 * math.hypot(spread_of(labels, asked), spread_of(tops, asked))
    step = spread_of(labels, 1) / _cells_of(asked)
    return _profile_of_steps(groups, step, asked, (far, far + epsilon), precision)(epsilon)


# --- Labels of more than two classes --------------------------------------------------------------

_MOST_SIGMA = 300  # votes; beyond, this program takes too long


def _edges_of(sigma: float) -> tuple[int, int]:
    """Return beyond which noises, of one and of both, all is taken for revealed."""
    spare = 6 if sigma < 10 else 0
    return math.ceil(7.8 * sigma) + spare, math.ceil(5.4 * sigma) + spare


class _ThreeOutcomes:
    """A list of laws of three outcomes that dominates what a label of more than two classes reveals
    under discrete Gaussian noise on every count (section 15).

    The adversary sees the largest noisy count of the classes that are not touched. A label is then
    one of three outcomes, whose chances follow from two integers: u, the noise that the class
    losing a vote needs to win over the others, and w, that of the class gaining one. For a
    neighbour they are u + 1 and w - 1.

    The list holds what labels tell at the knots of a net over the lattice of u and w, both
    ways round, with their ratios spread. Each point of the lattice has to lie below the mixture of
    the four knots around it: its hockey stick nowhere above theirs.
    """

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
        self.sigma = sigma
        self.edge, self.deep = _edges_of(sigma)
        self.reach = math.ceil(14 * sigma) + 2
        noises = range(-self.reach, self.reach + 1)
        weights = [math.exp(-x * x / (2 * sigma * sigma)) for x in noises]
        whole = math.fsum(weights)
        self._pmf = [weight / whole for weight in weights]
        known = list(accumulate(self._pmf))
        # P(N < t), and where t lies farther out than any noise
        self._below = [0.0] * (2 * self.reach + 1) + known + known[-1:] * (2 * self.reach)
        self._wins = lru_cache(16)(self._chances_to_win)
        root = math.sqrt(2) * sigma
        steps = sorted({max(1, round(at * root)) for at in self.STEPS})
        self.steps = [1 - d for d in reversed(steps)] + steps
        self.sums = sorted({2 * round(at * root / 2) for at in self.SUMS})
        self.most = [value * (1 + excess) for value in self._largest_moments()]
        places = [[self._knot(total, d) for d in self.steps] for total in self.sums]
        laws = self.laws_at([place for row in places for place in row])
        self.knots = [[self._spread_law(laws[place]) for place in row] for row in places]
        self._sticks = cache(self._cell_sticks)

    def _chances_to_win(self, ahead: int) -> list[float]:
        """Return, for each noise, the chance that it is at least so high, and that a rival's noise
        is at most `ahead` above it."""
        first = 2 * self.reach + ahead + 1
        below = self._below[first : first + len(self._pmf)]
        return list(accumulate(map(mul, reversed(self._pmf), reversed(below))))[::-1]

    def below(self, t: int) -> float:
        """Return P(N < t)."""
        return self._below[3 * self.reach + t]

    def chances(self, u: int, w: int) -> tuple[float, float, float]:
        """Return the chances of the three outcomes: the others, the first class, the second."""
        first, second = self._wins(w - u)[u + self.reach], self._wins(u - w - 1)[w + self.reach]
        return self.below(u) * self.below(w), first, second

    def laws_at(self, points: Iterable[tuple[int, int]]) -> dict[tuple[int, int], _Law]:
        """Return the chances at points, and a neighbour's."""
        return {
            (u, w): tuple(zip(self.chances(u, w), self.chances(u + 1, w - 1), strict=True))
            for u, w in sorted(points, key=lambda point: point[1] - point[0])
        }

    def _ratio_moments(self, law: _Law) -> list[float]:
        """Return moments of the ratios less 1: of order 2, and of more, the larger direction."""
        found = [math.fsum(p * (q / p - 1) ** 2 for p, q in law)]
        for tilt in (0.4, 0.8, 1.2):
            orders = tilt * self.sigma, 1 - tilt * self.sigma
            found.append(
                max(sum(p * ((q / p) ** a - 1 - a * (q / p - 1)) for p, q in law) for a in orders)
            )
        return found

    def _largest_moments(self) -> list[float]:
        stride = max(1, round(self.sigma / 9))
        axis = range(-math.ceil(4 * self.sigma), math.ceil(2 * self.sigma), stride)
        laws = self.laws_at(product(axis, axis)).values()
        return [max(column) for column in zip(*map(self._ratio_moments, laws), strict=True)]

    def _knot(self, total: int, d: int) -> tuple[int, int]:
        """Return the knot where about u + w = `total` and w - u = `d`."""
        rim = self.edge + math.ceil(self.sigma)
        u = (total + d % 2 - d) // 2
        if total == self.sums[0]:  # stands for all that lies deeper
            top = max(-self.deep, abs(d) - self.edge)
            u = min(top, top - d)
        return min(max(u, -rim), rim), min(max(u + d, -rim), rim)

    def _spread_law(self, law: _Law) -> _Law:
        """Return the law with its ratios as far from 1 as the moments allow, and sums of 1."""
        low, high = 0.0, self.MOST_SPREAD
        for _ in range(10):
            middle = (low + high) / 2
            wide = tuple((p, p + (1 + middle) * (q - p)) for p, q in law)
            if min(q / p for p, q in wide) >= 0.1 and all(
                map(ge, self.most, self._ratio_moments(wide))
            ):
                low = middle
            else:
                high = middle
        found = [(p, p + (1 + low) * (q - p)) for p, q in law]
        largest = found.index(max(found))
        others = found[:largest] + found[largest + 1 :]
        found[largest] = 1 - math.fsum(p for p, _ in others), 1 - math.fsum(q for _, q in others)
        return tuple(found)

    def _cell_sticks(self, column: int, row: int) -> list[tuple[float, list[float]]]:
        """Return where the slopes of four knots' hockey sticks change, and the sticks there."""
        four = [self.knots[j][i] for j in (row, row + 1) for i in (column, column + 1)]
        points = sorted({1.0, *(p / q for law in four for p, q in law)})
        return [(x, [_above_silence(law, x) for law in four]) for x in points]

    def cover(self) -> bool:
        """Return whether each point of the lattice lies below the mixture around it.

        What does not pass as a square is cut in four.
        """
        side, edge = 1, self.edge
        while side < self.sigma / 5:
            side *= 2
        squares = list(product(range(-edge, edge + 1, side), repeat=2))
        while squares:
            far = side - 1
            squares = [
                (u, w) for u, w in squares if max(u, w) + far >= -self.deep and max(u, w) <= edge
            ]
            # its laws with the largest ratios, and with the smallest ones
            high = self.laws_at((u, w + far) for u, w in squares)
            low = self.laws_at((u + far, w) for u, w in squares)
            squares = [
                (u, w)
                for u, w in squares
                if not self._square_below(u, w, far, high[u, w + far], low[u + far, w])
            ]
            # a square bounds its points from above: in parts it may pass yet, a point alone may not
            if squares and side == 1:
                return False
            side //= 2
            squares = [(u + i, w + j) for u, w in squares for i in (0, side) for j in (0, side)]
        return True

    def _square_below(self, u: int, w: int, far: int, high: _Law, low: _Law) -> bool:
        """Return whether all points of a square lie below the mixture at its middle.

        `high` and `low` are its laws with the largest and with the smallest ratios.
        """
        most = (self.below(u + far) * self.below(w + far), high[1][0], low[2][0])
        terms = [
            (p * (1 + self.OFF), b / a * (1 - self.OFF), d / c * (1 + self.OFF))
            for p, (a, b), (c, d) in zip(most, low, high, strict=True)
        ]
        column, across = _share_between(self.steps, w - u)
        row, along = _share_between(self.sums, u + w + far)
        shares = (
            *((1 - along) * (1 - across), (1 - along) * across),
            *(along * (1 - across), along * across),
        )
        for x, heights in self._sticks(column, row):
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


def _share_between(knots: Sequence[int], at: float) -> tuple[int, float]:
    """Return between which two knots a number lies, and how far along; beyond an end, that end."""
    place = min(max(bisect_right(knots, at) - 1, 0), len(knots) - 2)
    return place, min(max((at - knots[place]) / (knots[place + 1] - knots[place]), 0.0), 1.0)


def _above_silence(law: _Law, x: float) -> float:
    """Return by how much a hockey stick exceeds that of silence; the largest outcome is what the
    others leave."""
    gaps = [p - x * q for p, q in sorted(law)[:-1]]
    down, up = sum(max(gap, 0.0) for gap in gaps), sum(max(-gap, 0.0) for gap in gaps)
    return max(down, 1 - x + up) if x >= 1 else max(up, down - 1 + x)


def laws_of_classes(sigma: float) -> list[_Law]:
    """Return laws that dominate a label of more than two classes, but for a `CHARGE`; none where
    they are not found, or would take too long.

    With little noise they are those of the lattice itself.
    """
    # the list takes about as long as a game of so many cells
    if not 1 <= sigma <= _MOST_SIGMA or 1e7 * sigma > _cells_allowed():
        return []
    if sigma < 10:
        net = _ThreeOutcomes(sigma, 0.0)
        noises = range(-net.edge, net.edge + 1)
        laws = net.laws_at(at for at in product(noises, noises) if max(at) >= -net.deep)
        return both_ways(laws.values())
    nets = (_ThreeOutcomes(sigma, spread) for spread in (0.01, 0.013, 0.017, 0.022, 0.03))
    found = next((net for net in nets if net.cover()), None)
    return both_ways(law for row in found.knots for law in row) if found else []


def class_profile(laws: list[_Law], sigma: float, play: Play) -> Profile:
    """Return the value of the game of labels of more than two classes, as `_game_profile` does."""
    usual, queries = 1.135 / sigma, play.queries
    far = play.beside + usual * math.sqrt(queries)
    game = _game_profile(laws, usual, 1, play._replace(beside=far))
    return lambda at: min(1.0, game(at) + queries * _ThreeOutcomes.CHARGE)


def largest_divergence(laws: Iterable[_Law], sigma: float | None = None) -> Profile:
    """Return the largest Renyi divergence of some laws at every order; of labels of more than two
    classes with what lies farther out than the list, and below it (section 15)."""
    logs = [[(p, math.log(p / q)) for p, q in law] for law in laws if min(map(min, law)) > 0]
    widest = max(loss for law in logs for _, loss in law)

    def divergence(a: float) -> float:
        more = 1e-15
        if sigma is not None:
            edge, deep = _edges_of(sigma)
            if a > deep:
                return math.inf
            variance, tilt = 2 * sigma * sigma, a * (a - 1)
            more += 4 * a * math.exp((2 * tilt - (edge - a) ** 2) / variance)
            more += a * math.exp((tilt - (deep - a) ** 2 - deep**2) / variance)
            more += _ThreeOutcomes.CHARGE * a * math.exp((a - 1) * widest) * (sigma >= 10)
        moment = max(sum(p * math.expm1((a - 1) * loss) for p, loss in law) for law in logs)
        return math.log1p(moment * (1 + 1e-5) + more) / (a - 1)

    return divergence
