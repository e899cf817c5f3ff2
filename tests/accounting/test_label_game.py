"""The label-only game: brute force over all adaptive strategies, attacks from below, and the
reference table."""

import functools
import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import binom

from adaptive_labels import best_attack, both_ways, label_chances
from made_events import counts_event
from secretballot.accounting import (
    PrivacyBudget,
    calibrate_gaussian,
    calibrate_label_gaussian,
    delta_upper,
)
from secretballot.core import label_games as room
from secretballot.core.label_games import GaussianChances, label_losses, label_renyi
from secretballot.core.losses import ORDERS, delta_of, discrete_gaussian_pmf


def game_delta(
    epsilon: float, sigma: float, queries: int, n_teachers: int | None, resolution: float = 10
) -> float:
    """Return what a game of all labels at once gives."""
    chances = GaussianChances(sigma=sigma, n_teachers=n_teachers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(room, "RESOLUTION", resolution)
        losses = label_losses.__wrapped__(chances, queries, queries)
    return float(losses.delta(np.array([epsilon]))[0])


@pytest.mark.parametrize("n_teachers", [2, 3, 4, 5])
@pytest.mark.parametrize("queries", [1, 2, 3])
@pytest.mark.parametrize("sigma", [0.8, 2.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.4, 1.0])
def test_game_is_the_brute_force_optimum_from_above(
    n_teachers: int, queries: int, sigma: float, epsilon: float
) -> None:
    pairs = both_ways(label_chances(n_teachers, sigma))
    exact = best_attack(pairs, queries, math.exp(epsilon))
    found = game_delta(epsilon, sigma, queries, n_teachers, 40)
    assert found >= exact * (1 - 1e-12)
    # for an even K the set of pairs is closed under symmetry, which adds one vote count at the far
    # end
    assert found <= exact * (1.02 if n_teachers % 2 else 1.6) + 1e-4


def test_one_label_costs_exactly_a_threshold_test() -> None:
    sigma, k = 3.0, 9
    exact = best_attack(both_ways(label_chances(k, sigma)), 1, math.exp(0.2))
    found = [game_delta(0.2, sigma, 1, k, resolution) for resolution in (10, 300)]
    assert exact * (1 - 1e-11) <= found[1] <= found[0] <= exact * (1 + 1e-3)
    assert found[1] <= exact * (1 + 1e-5)


@functools.cache
def _best_even_attack(epsilon: float, sigma: float, queries: int) -> float:
    """Ask the most informative single vote count again and again: no accountant may certify
    less."""
    best = 0.0
    for t in range(-3, 6):
        reach, pmf = discrete_gaussian_pmf(sigma)
        p = float(pmf[reach + t :].sum())
        q = float(pmf[reach + t - 1 :].sum())
        ones = np.arange(queries + 1)
        law_p, law_q = binom.pmf(ones, queries, p), binom.pmf(ones, queries, q)
        best = max(best, float(np.maximum(0, law_p - math.exp(epsilon) * law_q).sum()))
        best = max(best, float(np.maximum(0, law_q - math.exp(epsilon) * law_p).sum()))
    return best


@pytest.mark.parametrize(("queries", "sigma"), [(50, 24.27), (89, 32.24), (300, 58.5)])
def test_game_lies_between_an_attack_and_the_other_prices(queries: int, sigma: float) -> None:
    game = game_delta(1.0, sigma, queries, 250)
    assert _best_even_attack(1.0, sigma, queries) <= game
    assert game < 0.05 * delta_upper([counts_event(sigma, queries)], 1.0)
    divergences = queries * label_renyi(GaussianChances(sigma=sigma, n_teachers=250), tuple(ORDERS))
    assert game < float(delta_of(divergences, ORDERS, np.array(1.0)))


@pytest.mark.parametrize(("error", "labels"), [(0.10, 299), (0.05, 180), (0.01, 89), (0.001, 50)])
def test_label_only_table(error: float, labels: int) -> None:
    """Errata 11: labels at (1, 1e-6), K = 250, when a vote of 200 to 50 may come out wrong with
    the given chance."""
    sigma = 75 / -ndtri(error)
    assert game_delta(1.0, sigma, labels, 250, 20) <= 1e-6
    # the errata's upper limit for any accountant, by the repeated-query attack: 303 / 185 / 93 / 54
    limit = {299: 304, 180: 186, 89: 94, 50: 55}[labels]
    assert _best_even_attack(1.0, sigma, limit) > 1e-6


@pytest.mark.parametrize(("error", "labels"), [(0.10, 191), (0.05, 116), (0.01, 58), (0.001, 33)])
def test_counts_table(error: float, labels: int) -> None:
    sigma = 75 / -ndtri(error)
    budget = PrivacyBudget(1.0, 1e-6)
    assert calibrate_gaussian(budget, labels) <= sigma < calibrate_gaussian(budget, labels + 1)


def test_every_pair_lies_under_the_corners() -> None:
    sigma = 100.0
    reach, pmf = discrete_gaussian_pmf(sigma)
    pairs, beside = room.vote_pairs(GaussianChances(sigma=sigma), 950)
    above = np.cumsum(pmf[::-1])[::-1]
    t = np.arange(-20, 1201)  # the other half is its mirror image
    p, gap = above[t + reach], pmf[t - 1 + reach]
    x = np.concatenate([[0.0], pairs.p, [1.0]])
    y = np.concatenate([[beside], pairs.gap, [beside]])
    assert np.all(gap <= np.interp(p, x, y) * (1 + 1e-9) + 1e-18)


def test_seven_tenths_of_the_noise_is_caught() -> None:
    sigma = 0.7 * calibrate_label_gaussian(PrivacyBudget(1.0, 1e-6), 180, 250)
    assert _best_even_attack(1.0, sigma, 180) > 1e-5


def test_renyi_of_one_label_is_its_supremum() -> None:
    sigma, order, k = 4.0, 8.0, 21
    worst = 0.0
    for a, b in both_ways(label_chances(k, sigma)):
        moment = a**order * b ** (1 - order) + (1 - a) ** order * (1 - b) ** (1 - order)
        worst = max(worst, math.log(moment) / (order - 1))
    found = [
        float(label_renyi(GaussianChances(sigma=sigma, n_teachers=n), (order,))[0])
        for n in (k, None)
    ]
    assert found[0] == pytest.approx(worst, rel=1e-8)
    assert found[1] >= worst * (1 - 1e-12)
