"""The disagreement coefficient against its definition on small sets, and against what is known
on large ones."""

import math

import numpy as np
import pytest

from secretballot.exceptions import DataError, ParameterError
from secretballot.hypotheses import (
    DecisionStumps,
    FiniteClass,
    Intervals,
    Thresholds,
)
from secretballot.hypotheses.coefficient import disagreement_coefficient
from secretballot.hypotheses.cuts import Cut
from secretballot.hypotheses.interval_spaces import EMPTY, Interval

CLASSES = [
    (Thresholds(), 1),
    (Thresholds("down"), 1),
    (Thresholds("either"), 1),
    (Intervals(), 1),
    (DecisionStumps(2), 2),
]


def by_definition(labellings: np.ndarray, best: np.ndarray, alpha: float) -> float:
    """Return theta(alpha) from all labellings of the points, by trying every radius from alpha
    on."""
    m = len(best)
    distances = (labellings != best).sum(axis=1)
    ratios = [1.0]
    for k in range(m + 1):
        ball = labellings[distances <= k]
        mass = (ball != ball[0]).any(axis=0).mean()
        for r in (k / m, alpha):
            if r >= alpha and r > 0 and k / m <= r:
                ratios.append(mass / r)
    return max(ratios)


@pytest.mark.parametrize(
    ("hypotheses", "d"), CLASSES, ids=lambda value: str(getattr(value, "name", value))
)
def test_it_is_the_definition_on_small_sets(hypotheses, d) -> None:
    rng = np.random.default_rng(0)
    for trial in range(6):
        X = rng.random((9, d)) if trial % 2 else rng.integers(0, 3, size=(9, d)).astype(float)
        labellings = np.array([h.predict(X) for h in hypotheses.dichotomies(X)])
        for y in rng.integers(0, 2, size=(3, 9)):
            best = hypotheses.erm(X, y)
            theta = disagreement_coefficient(hypotheses, best, X)
            for alpha in (0.0, 0.05, 1 / 9, 0.2, 1 / 3, 0.5, 0.77, 1.0):
                expected = by_definition(labellings, best.predict(X), alpha)
                assert theta(alpha) == pytest.approx(expected, rel=1e-12)


class Table:
    """Say for each integer what a row of a table says."""

    def __init__(self, row: np.ndarray) -> None:
        self.row = row

    def predict(self, X: np.ndarray) -> np.ndarray:
        return self.row[np.asarray(X)[:, 0].astype(int)]


def test_a_list_is_tried_member_by_member() -> None:
    rng = np.random.default_rng(1)
    rows = rng.integers(0, 2, size=(12, 10))
    X = np.arange(10.0)
    members = FiniteClass([Table(row) for row in rows])
    for member in members.members:
        theta = disagreement_coefficient(members, member, X)
        for alpha in (0.0, 0.1, 0.25, 0.6):
            assert theta(alpha) == pytest.approx(by_definition(rows, rows[member.place], alpha))


def test_thresholds_have_two() -> None:
    x = np.random.default_rng(2).random(801)
    theta = disagreement_coefficient(Thresholds(), Cut(0.5), x)
    assert [theta(alpha) for alpha in (0.0, 0.01, 0.1, 0.3)] == [2.0] * 4
    edge = disagreement_coefficient(Thresholds(), Cut(-math.inf), x)
    assert edge(0.01) == 1.0
    assert edge.mass(0.25) == math.floor(0.25 * 801) / 801


@pytest.mark.parametrize("width", [0.1, 0.2, 0.5])
def test_intervals_have_four_or_one_over_the_width(width: float) -> None:
    """On an even grid, where a lone point outside is an interval that errs on one point more
    than the empty one."""
    x = (np.arange(400) + 0.5) / 400
    theta = disagreement_coefficient(Intervals(), Interval(0.45 - width / 2, 0.45 + width / 2), x)
    assert theta(0.0) == pytest.approx(max(4.0, 1 / (width + 1 / 400)))
    assert theta.mass(width / 4) == pytest.approx(width)
    assert theta.mass(width + 1 / 400) == 1.0
    empty = disagreement_coefficient(Intervals(), EMPTY, x)
    assert empty(0.05) == pytest.approx(20.0)


def test_floats_that_miss_a_whole_number_of_points_do_not_lose_one() -> None:
    theta = disagreement_coefficient(Thresholds(), Cut(0.5), np.linspace(0, 1, 100))
    assert theta.mass(0.29) == 0.58  # 0.29 * 100 is 28.999999999999996


@pytest.mark.parametrize(
    "call",
    [
        lambda: disagreement_coefficient("thresholds", Cut(0.5), np.arange(3.0)),
        lambda: disagreement_coefficient(Thresholds(), Cut(1.5, "down"), np.arange(3.0)),
        lambda: disagreement_coefficient(Thresholds(), Cut(0.5), np.array([1.0, np.nan])),
        lambda: disagreement_coefficient(Thresholds(), Cut(0.5), np.zeros((0, 1))),
        lambda: disagreement_coefficient(Thresholds(), Cut(0.5), np.arange(3.0))(-0.1),
        lambda: disagreement_coefficient(Thresholds(), Cut(0.5), np.arange(3.0))(math.nan),
        lambda: disagreement_coefficient(Thresholds(), Cut(0.5), np.arange(3.0)).mass(1.1),
    ],
)
def test_what_does_not_fit_is_refused(call) -> None:
    with pytest.raises((DataError, ParameterError)):
        call()
