"""The price of queries that a noisy threshold lets pass or refuses, threshold and label as one.

One teacher moves the highest count and the label together. A label is uncertain where two counts
are nearly equal, and then neither is far above half of the teachers: a threshold well above that
refuses most such queries, and what it lets pass reveals little by its label. So a step of the game
is a whole query: refused, or one of two labels.

With K teachers, v of them for class 1, the highest count is at most max(v, K - v), and a student's
predictions, which are not negative, only lower it. Let e say how far the vote is from even. Then
the threshold is answered by a pair of chances at some t >= threshold - K // 2 - e, one vote less
for an even vote of an odd K, and no more is known. Votes are grouped by e, from the clearest to
even ones; each t is in the group of the least clear votes that allow it, and may be followed by
a label of that group or of clearer votes. In a group the value of a step is convex in both pairs,
so that corners stand for them.

Proofs: `docs/explanation/prices.md`, section 12.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from secretballot.core.label_games import (
    MIN_SIGMA,
    Grid,
    NoiseTable,
    Pairs,
    Step,
    corners,
    played_losses,
)
from secretballot.core.losses import Losses
from secretballot.core.renyi import LOST, largest_moments
from secretballot.core.types import FloatArray

MAX_SIGMA = 5e3  # votes; beyond, no game is played
DENSITY = 8  # corners per standard deviation near an even vote
GROUPS = 60  # of votes that are equally far from even
FAR = 5.0  # standard deviations of a label's noise, beyond which all votes are one group
BLOCK = 256  # queries of one game; blocks add as losses do
RESOLUTION = 6  # grid points per usual step
# more than the chances of noise that is left out, 14 standard deviations away, add to a step
LEFT_OUT = 1e-30
SHARES = np.linspace(0.0, 1.0, 9)  # of a label's divergence that are charged to answers


@dataclass(frozen=True, eq=False)
class Group:
    """Votes that are about equally far from even.

    Attributes
    ----------
    labels : Pairs
        Corners of the labels of these votes alone, both ways round.
    passing : Pairs
        Corners of the answers about the threshold that these votes allow, and no less clear ones.
    sure : bool
        Whether some of these votes pass the threshold surely.
    """

    labels: Pairs
    passing: Pairs
    sure: bool


def _corners(noise: NoiseTable, first: int, last: int) -> Pairs:
    """Return corners of a polygon around the pairs at first, ..., last, of those that lie within
    the table: none where no pair does."""
    return corners(noise, max(first, 3 - noise.reach), min(last, noise.reach - 1), DENSITY)


@functools.lru_cache(maxsize=64)
def groups_of(
    threshold_sigma: float, sigma: float, threshold: int, n_teachers: int
) -> tuple[Group, ...]:
    """Return the groups of votes, the clearest first; none where no game is played."""
    if not MIN_SIGMA <= min(threshold_sigma, sigma) <= max(threshold_sigma, sigma) <= MAX_SIGMA:
        return ()
    tops, labels = NoiseTable(threshold_sigma), NoiseTable(sigma)
    half = n_teachers // 2
    span = min(half, math.ceil(FAR * sigma))
    ends = [*range(0, span, max(1, math.ceil(span / GROUPS))), half]
    found, before, above = [], -1, tops.reach
    for end in ends:  # from even votes on
        # where an odd vote is even the highest count may stay where it is
        moves = int(end > 0 or n_teachers % 2 == 0)
        first = threshold - min(n_teachers, half + 1 + end) + moves
        there = _corners(labels, 2 + before, 1 + end)
        turned = _corners(labels, 1 - end, min(0, -before))
        of_group = Pairs(*map(np.concatenate, zip(there, turned, strict=True)))
        sure = first < min(above, 3 - tops.reach)
        found.append(Group(of_group, _corners(tops, first, above - 1), sure))
        before, above = end, min(above, first)
    return tuple(found[::-1])


def _both_ways(pairs: Pairs) -> tuple[FloatArray, FloatArray]:
    """Return chances of both outcomes, and the logarithms of the neighbour's over them, of the
    pairs and of the pairs turned round; shapes (2, 2 n)."""
    there, turned = pairs.log_ratio, np.stack([pairs.p + pairs.gap, pairs.over])
    return np.hstack([pairs.chance, turned]), np.hstack([there, -there])


def _usual_step(groups: tuple[Group, ...]) -> float:
    """Return about the largest root mean square of one query's loss, in nats."""
    label, whole = 0.0, 0.0
    for group in groups:
        squares = (group.labels.chance * group.labels.log_ratio**2).sum(axis=0)
        label = max(label, float(np.max(squares, initial=0.0)))
        chances, ratios = _both_ways(group.passing)
        squares = (chances * ratios**2).sum(axis=0) + chances[0] * label
        whole = max(whole, float(np.max(squares, initial=label if group.sure else 0.0)))
    return math.sqrt(whole)


def _step_on(groups: tuple[Group, ...], grid: Grid) -> Callable[[FloatArray], FloatArray]:
    """Return the step of one query on a grid."""
    steps = [
        (
            _some(group.labels.chance, group.labels.log_ratio, grid, apart=False),
            _some(*_both_ways(group.passing), grid, apart=True),
            group.sure,
        )
        for group in groups
    ]

    def further(value: FloatArray) -> FloatArray:
        labelled, best = value, value
        for label, question, sure in steps:
            if label is not None:
                labelled = np.maximum(labelled, label.best(value))
            if question is not None:
                best = np.maximum(best, question.best(labelled, value))
            if sure:
                best = np.maximum(best, labelled)
        return best

    return further


def _some(chance: FloatArray, log_ratio: FloatArray, grid: Grid, *, apart: bool) -> Step | None:
    return Step(chance, log_ratio, grid, apart=apart) if chance.size else None


def is_played(groups: tuple[Group, ...]) -> bool:
    """Return whether a game is played: a query reveals something, and not nearly all."""
    return 1e-6 <= _usual_step(groups) <= 1.0


def joint_losses(groups: tuple[Group, ...], queries: int) -> Losses:
    """Return losses that dominate adaptively chosen queries, each refused or answered by a label of
    two classes.

    Parameters
    ----------
    groups : tuple of Group
        Of which a game is played.
    queries : int

    Privacy
    -------
    Unit, relation : one teacher changes its votes (add/remove or replace); queries adaptive.
    Sensitivity : one vote per query, in the highest count and in the label.
    Source : docs/explanation/prices.md, section 12, on Papernot et al. 2018, Algorithms 1 and 2.
    Rounding : upward (convex interpolation, polygons around the pairs, groups of votes).
    """
    return played_losses(
        functools.partial(_step_on, groups),
        _usual_step(groups),
        queries,
        BLOCK,
        beside=LEFT_OUT,
        resolution=RESOLUTION,
    )


def joint_renyi(
    groups: tuple[Group, ...], queries: int, answers: int, orders: FloatArray
) -> FloatArray:
    """Return bounds on the divergences of such queries, of which at most `answers` are answered.

    An answer is charged for a share of what a label may reveal, and a query for what is left
    of the worst one: (P / Q)^a e^(-(a charge for each)) is a supermartingale under Q.
    """
    power = (1 - orders)[:, None]
    label, kept = np.zeros(len(orders)), []
    for group in groups:
        of_group = largest_moments(group.labels.chance, group.labels.log_ratio, orders)
        label = np.maximum(label, np.log1p(of_group))
        kept.append(label)
    best = np.full(len(orders), np.inf)
    for share in SHARES.tolist():
        charge, worst = share * label, np.zeros(len(orders))
        for group, most in zip(groups, kept, strict=True):
            chances, ratios = _both_ways(group.passing)
            answered = power * ratios[0] + (most - charge)[:, None]
            with np.errstate(over="ignore"):
                refused, passed = np.expm1(power * ratios[1]), np.expm1(answered)
                above = chances[1] * refused + chances[0] * passed
                # what floats lose of two terms that nearly cancel
                lost = (1 + np.abs(power * ratios[1])) * np.abs(chances[1] * refused)
                lost += (1 + np.abs(answered)) * np.abs(chances[0] * passed)
                worst = np.maximum(worst, np.max(above + LOST * lost, axis=1, initial=0.0))
                if group.sure:
                    worst = np.maximum(worst, np.expm1(most - charge))
        best = np.minimum(best, queries * np.log1p(worst) + answers * charge)
    return best / (orders - 1)
