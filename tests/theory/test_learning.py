"""Learning bounds against exact laws and classes for which everything is known."""

import math
from itertools import product

import numpy as np
import pytest
from scipy.stats import binom

from secretballot import theory
from secretballot.exceptions import ParameterError
from secretballot.theory.learning import capacity


@pytest.mark.parametrize(("d", "n"), [(1, 5), (2, 2), (3, 9), (5, 3), (4, 50)])
def test_growth_is_sauers_sum(d: int, n: int) -> None:
    assert math.exp(theory.log_growth(d, n)) == pytest.approx(
        sum(math.comb(n, i) for i in range(d + 1))
    )


def test_growth_is_attained_by_sets_of_at_most_d_points() -> None:
    labellings = {bits for bits in product((0, 1), repeat=8) if sum(bits) <= 3}
    assert math.log(len(labellings)) == pytest.approx(theory.log_growth(3, 8))


def test_growth_keeps_its_digits_at_large_n() -> None:
    assert theory.log_growth(1, 10**14) == pytest.approx(math.log(10**14 + 1), abs=1e-12)


@pytest.mark.parametrize("n", [5, 40, 300])
def test_disagreement_of_one_classifier_lies_below_its_bound(n: int) -> None:
    """Exact: for every true share p, the chance that the bound falls short is at most beta."""
    beta, seen = 0.05, np.arange(n + 1)
    bounds = np.array([theory.disagreement_bound(k / n, n, beta).value for k in seen])
    shares = np.linspace(0.001, 0.999, 200)
    missed = [binom.pmf(seen[bounds < p], n, p).sum() for p in shares]
    assert max(missed) <= beta
    assert np.all(np.diff(bounds) > 0)


def test_disagreement_bound_solves_the_printed_inequality() -> None:
    n, beta, share = 70, 0.1, 0.2
    dis, log = theory.disagreement_bound(share, n, beta).value, math.log(1 / beta)
    assert dis == pytest.approx(share + math.sqrt(2 * dis * log / n) + 2 * log / (3 * n))


def _unseen(size: int, n: int, runs: int) -> np.ndarray:
    rng = np.random.default_rng(7)
    return np.array([size - np.unique(rng.integers(size, size=n)).size for _ in range(runs)])


def test_the_printed_uniform_bound_is_broken_by_small_sets_and_ours_is_not() -> None:
    """Sets of at most d of N points, truth empty: a member on d unseen points makes no mistake
    and errs d / N."""
    d, size, n, beta = 100, 11_000, 47_000, 0.05
    broken = np.mean(_unseen(size, n, 60) >= d)
    assert d / size > theory.uniform_bound(0.0, n, d, beta, form="paper").value
    assert broken > 0.9
    assert d / size <= theory.uniform_bound(0.0, n, d, beta).value


def _interval_gap(points: np.ndarray, labels: np.ndarray, error: float) -> float:
    """Return the largest gap of true and empirical error over thresholds; labels are 1[x >=
    1/2], some flipped."""
    cuts = np.linspace(0, 1, 301)
    order = np.argsort(points)
    x, y = points[order], labels[order]
    below = np.searchsorted(x, cuts)
    ones = np.concatenate([[0], np.cumsum(y)])
    empirical = (ones[below] + (len(x) - below) - (ones[-1] - ones[below])) / len(x)
    true = error + (1 - 2 * error) * np.abs(cuts - 0.5)
    return float(np.abs(true - empirical).max())


def test_uniform_deviation_holds_for_thresholds() -> None:
    rng, beta, n, noise = np.random.default_rng(3), 0.2, 400, 0.2
    gaps = []
    for _ in range(200):
        x = rng.random(n)
        gaps.append(_interval_gap(x, (x >= 0.5) ^ (rng.random(n) < noise), noise))
    assert np.quantile(gaps, 1 - beta) <= theory.uniform_deviation(n, 1, beta).value


def test_consistent_thresholds_are_accurate_at_their_sample_size() -> None:
    alpha, beta, rng = 0.1, 0.1, np.random.default_rng(5)
    for form in ("growth", "paper"):
        n = theory.consistent_records(alpha, beta, 1, form)
        x = rng.random((2000, n)) - 0.5
        worst = np.maximum(np.where(x > 0, x, 1).min(axis=1), -np.where(x < 0, x, -1).max(axis=1))
        assert np.mean(worst > alpha) <= beta


def test_sample_sizes_are_the_smallest() -> None:
    n = theory.consistent_records(0.05, 0.01, 4)

    def failure(n: int) -> float:
        return math.log(2 / 0.01) + theory.log_growth(4, 2 * n) - 0.05 * n / 2 * math.log(2)

    assert failure(n) <= 0 < failure(n - 1)
    n = theory.agnostic_records(0.1, 0.05, 3)
    assert (
        theory.uniform_deviation(n, 3, 0.05).value
        <= 0.05
        < theory.uniform_deviation(n - 1, 3, 0.05).value
    )


def test_pairs_that_agree_on_enough_points_are_near() -> None:
    """Thresholds: two of them agree on the points iff no point lies between; the widest gap is
    the worst pair."""
    alpha, beta, rng = 0.1, 0.1, np.random.default_rng(11)
    n = theory.pair_cover_records(alpha, beta, 1)
    x = np.sort(rng.random((2000, n)), axis=1)
    gaps = np.diff(
        np.concatenate([np.zeros((2000, 1)), x, np.ones((2000, 1))], axis=1), axis=1
    ).max(axis=1)
    assert np.mean(gaps > alpha) <= theory.pair_cover_failure(n, alpha, 1) <= beta
    assert theory.pair_cover_failure(5, alpha, 1) == 1


def test_tsybakov_excess_interpolates() -> None:
    slow, fast = (theory.tsybakov_excess(10**6, 1, 0.05, tau).value for tau in (0.0, 1.0))
    assert fast == pytest.approx(slow**2)
    steps = [theory.tsybakov_excess(10**6, 1, 0.05, tau).value for tau in np.linspace(0, 1, 11)]
    assert np.all(np.diff(steps) < 0)
    assert theory.tsybakov_excess(10, 5, 0.05, 0.5, eta=2.0).vacuous


def test_bounds_shrink_with_records_and_grow_with_dimension() -> None:
    for bound in (
        lambda n, d: theory.uniform_bound(0.1, n, d, 0.05).value,
        lambda n, d: theory.uniform_deviation(n, d, 0.05).value,
        lambda n, d: theory.tsybakov_excess(n, d, 0.05, 0.5).value,
    ):
        assert bound(10**4, 3) > bound(10**5, 3) > 0
        assert bound(10**5, 3) < bound(10**5, 5)


def test_capacity_forms() -> None:
    assert capacity(3, 100, 0.04, "paper") == pytest.approx(3 + math.log(100))
    assert capacity(3, 100, 0.04) == pytest.approx(theory.log_growth(3, 200) + math.log(100))


@pytest.mark.parametrize(
    "call",
    [
        lambda: theory.tsybakov_excess(100, 1, 0.05, 1.5),
        lambda: theory.tsybakov_excess(100, 1, 0.05, math.nan),
        lambda: theory.tsybakov_excess(2, 5, 0.05, 0.5),
        lambda: theory.tsybakov_excess(100, 1, 0.05, 0.5, eta=0.5),
        lambda: theory.consistent_records(0.0, 0.05, 1),
        lambda: theory.agnostic_records(0.1, 1.0, 1),
        lambda: theory.uniform_bound(1.2, 100, 1, 0.05),
        lambda: theory.log_growth(0, 5),
    ],
)
def test_out_of_range_is_refused(call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(ParameterError):
        call()
