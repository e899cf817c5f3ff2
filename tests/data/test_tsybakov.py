"""Labels with a known Tsybakov exponent: the exponent is exact, and the excess error of every
threshold is known."""

import numpy as np
import pytest

from secretballot.data import TsybakovThresholds

LAWS = [
    TsybakovThresholds(tau, threshold, scale, noise, left)
    for tau in (0.25, 0.5, 0.8, 1.0)
    for threshold, scale, noise, left in (
        (0.5, 0.5, 0.0, 1.0),
        (0.3, 0.2, 0.1, 0.5),
        (0.6, 2.0, 0.2, 0.25),
    )
]
# middles of a million cells: sums over them are integrals to about six digits
GRID = (np.arange(1_000_000) + 0.5) / 1_000_000


@pytest.mark.parametrize("law", LAWS)
def test_the_best_classifier_is_the_threshold_and_its_error_is_stated(
    law: TsybakovThresholds,
) -> None:
    probability = law.probability(GRID)
    # nearer, one half and a cube of a small number are one float
    told = np.abs(GRID - law.threshold) > 1e-4
    assert ((probability >= 0.5) == (law.threshold <= GRID))[told].all()
    assert law.bayes_error == pytest.approx(
        np.minimum(probability, 1 - probability).mean(), abs=1e-6
    )
    assert law.excess(law.threshold) == 0


@pytest.mark.parametrize("law", LAWS)
def test_excess_error_is_the_integral_of_the_margin(law: TsybakovThresholds) -> None:
    probability = law.probability(GRID)
    for threshold in (-np.inf, 0.0, 0.1, 0.29, 0.31, 0.55, 0.9, 1.0, 7.0):
        says_one = threshold <= GRID
        error = np.where(says_one, 1 - probability, probability).mean()
        assert law.excess(threshold) == pytest.approx(error - law.bayes_error, abs=2e-6)
        assert law.disagreement(threshold) == pytest.approx(
            np.mean(says_one != (law.threshold <= GRID)), abs=2e-6
        )


@pytest.mark.parametrize("law", LAWS)
def test_the_condition_holds_with_its_exponent_and_factor_and_with_no_larger_ones(
    law: TsybakovThresholds,
) -> None:
    thresholds = np.append(
        np.linspace(0, 1, 2001), law.threshold + np.geomspace(1e-9, 1e-3, 100) * [[-1], [1]]
    )
    excess, apart = law.excess(thresholds), law.disagreement(thresholds)
    assert (apart <= law.eta * excess**law.tau * (1 + 1e-6)).all()
    ends = np.array([0.0, 1.0])
    if law.eta > 1:
        assert (law.disagreement(ends) > law.eta * (1 - 1e-6) * law.excess(ends) ** law.tau).any()
    close = np.array([1e-4, 1e-8])
    ratio = law.disagreement(law.threshold - close) / law.excess(law.threshold - close) ** (
        law.tau + 0.01
    )
    assert ratio[1] > 1.09 * ratio[0]  # without bound: a larger exponent needs an infinite factor
