"""The disagreement coefficient against its definition on small sets, and against what is known
on large ones."""

import numpy as np
import pytest

from secretballot.hypotheses import DecisionStumps, Intervals, Thresholds
from secretballot.hypotheses.coefficient import disagreement_coefficient
from secretballot.hypotheses.cuts import Cut

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


def test_floats_that_miss_a_whole_number_of_points_do_not_lose_one() -> None:
    theta = disagreement_coefficient(Thresholds(), Cut(0.5), np.linspace(0, 1, 100))
    assert theta.mass(0.29) == 0.58  # 0.29 * 100 is 28.999999999999996
