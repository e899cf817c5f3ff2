"""Many labels from blocks: above the truth in small worlds and above attacks, hardly above the
game."""

import math

import mpmath
import numpy as np
import pytest

from adaptive_labels import best_attack, both_ways, label_chances
from made_events import label_event
from secretballot.accounting import delta_upper
from secretballot.core import label_games as room
from secretballot.core.label_games import GaussianChances, label_losses
from secretballot.core.losses import CELLS, Losses, fold


def losses_of(sigma: float, queries: int, n_teachers: int | None, block: int) -> Losses:
    return label_losses(GaussianChances(sigma=sigma, n_teachers=n_teachers), queries, block)


def delta_at(losses: Losses, epsilon: float) -> float:
    return float(losses.delta(np.array([epsilon]))[0])


@pytest.mark.parametrize("n_teachers", [2, 3, 5])
@pytest.mark.parametrize(("queries", "block"), [(2, 1), (3, 1), (3, 2), (4, 2)])
@pytest.mark.parametrize("sigma", [0.8, 2.0])
def test_blocks_lie_above_every_strategy(
    n_teachers: int, queries: int, block: int, sigma: float
) -> None:
    losses = losses_of(sigma, queries, n_teachers, block)
    pairs = both_ways(label_chances(n_teachers, sigma))
    for epsilon in (-1.0, -0.2, 0.0, 0.4, 1.0, 2.5):
        truth = best_attack(pairs, queries, math.exp(epsilon))
        assert delta_at(losses, epsilon) >= truth * (1 - 1e-12)


@pytest.mark.parametrize("n_teachers", [250, None])
@pytest.mark.parametrize("block", [100, 150])
def test_blocks_cost_little_more_than_the_game(n_teachers: int | None, block: int) -> None:
    sigma, queries = 58.66, 300
    game = delta_at(losses_of(sigma, queries, n_teachers, queries), 1.0)
    blocks = delta_at(losses_of(sigma, queries, n_teachers, block), 1.0)
    assert game * 0.995 <= blocks <= game * (1 + 12 / block)


def true_profile(losses: np.ndarray, chance: np.ndarray, epsilon: float) -> float:
    return float(chance @ np.maximum(0.0, -np.expm1(epsilon - losses)))


def random_pair(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return losses and chances under P of a pair of distributions on twelve outcomes."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(12))
    q = p * np.exp(rng.normal(0, 10.0 ** rng.uniform(-6, 0.5), 12))
    losses = np.log(p / q * q.sum())
    order = np.argsort(losses)
    return losses[order], p[order]


@pytest.mark.parametrize("seed", range(12))
def test_a_distribution_of_atoms_keeps_the_mass_of_both_sides_and_only_costs(seed: int) -> None:
    losses, chance = random_pair(seed)
    found = Losses.of_atoms(losses, chance)
    for one in (found, found.coarser(4 * found.h), found.coarser(64 * found.h)):
        at = one.h * np.arange(one.first, one.first + len(one.chance))
        assert one.chance.sum() + one.certain == pytest.approx(1, rel=1e-9)
        assert one.chance @ np.exp(-at) == pytest.approx(chance @ np.exp(-losses), rel=1e-9)
        for epsilon in np.linspace(losses[0] - 1, losses[-1], 41).tolist():
            truth, finer = true_profile(losses, chance, epsilon), delta_at(found, epsilon)
            assert delta_at(one, epsilon) >= truth * (1 - 1e-13)
            assert delta_at(one, epsilon) >= finer * (1 - 1e-9)
            # between grid points a chord stands for the profile
            assert delta_at(one, epsilon) <= truth + one.h


@pytest.mark.parametrize("seed", range(6))
def test_folded_losses_are_those_of_both_and_more_never_costs_less(seed: int) -> None:
    pairs = [random_pair(3 * seed + i) for i in range(3)]
    listed = [Losses.of_atoms(*pair) for pair in pairs]
    losses = np.add.outer(np.add.outer(pairs[0][0], pairs[1][0]), pairs[2][0]).ravel()
    chance = np.multiply.outer(np.multiply.outer(pairs[0][1], pairs[1][1]), pairs[2][1]).ravel()
    whole, two = fold((one, 1) for one in listed), fold((one, 1) for one in listed[:2])
    assert len(whole.chance) <= CELLS
    for epsilon in np.linspace(-1, losses.max(), 41).tolist():
        truth = true_profile(losses, chance, epsilon)
        assert truth * (1 - 1e-12) <= delta_at(whole, epsilon) <= truth + 3 * whole.h
        assert delta_at(two, epsilon) <= delta_at(whole, epsilon) * (1 + 1e-12)
    five = fold([(listed[0], 5)])
    plain = listed[0] + listed[0] + listed[0] + listed[0] + listed[0]
    assert delta_at(five, 1.0) == pytest.approx(delta_at(plain, 1.0), rel=1e-2, abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_losses_of_a_profile_lie_on_it_or_above_for_both_orders_of_neighbours(seed: int) -> None:
    losses, chance = random_pair(seed)
    other = np.exp(-losses) * chance

    def delta(at: np.ndarray) -> np.ndarray:
        both = [np.maximum(0, chance - np.exp(e) * other).sum() for e in at]
        back = [np.maximum(0, other - np.exp(e) * chance).sum() for e in at]
        return np.maximum(both, back)

    found = Losses.of_profile(delta, float(np.abs(losses).max()))
    for epsilon in np.linspace(0, np.abs(losses).max(), 37).tolist():
        truth = float(delta(np.array([epsilon]))[0])
        assert truth * (1 - 1e-9) <= delta_at(found, epsilon) <= truth + found.h
        # neighbours have no order: the other side of the profile is its mirror image
        below = 1 - math.exp(-epsilon) * (1 - truth)
        assert delta_at(found, -epsilon) >= below * (1 - 1e-9)


@pytest.mark.parametrize("mu", [1e-9, 0.01, 0.3, 1.0, 4.0, 30.0])
def test_a_normal_loss_is_the_analytic_gaussian_from_above(mu: float) -> None:
    found = Losses.of_gaussian(mu)
    for z in (-3.0, 0.0, 1.0, 3.0, 5.5, 7.0):
        epsilon = mu * mu / 2 + z * mu
        with mpmath.workdps(40):
            a = mpmath.mpf(epsilon) / mu - mpmath.mpf(mu) / 2
            exact = mpmath.ncdf(-a) - mpmath.exp(mpmath.mpf(epsilon)) * mpmath.ncdf(-a - mu)
        assert float(exact) <= delta_at(found, epsilon) <= float(exact) * (1 + 1e-3)


def test_cut_ends_are_charged() -> None:
    chance = np.concatenate([np.full(5, 1e-28), [0.5, 0.5], np.full(5, 1e-28)])
    losses = 0.5 * np.arange(-5, 7)
    cut = Losses.of_atoms(losses, chance)
    assert cut.certain > 0
    assert cut.reach < 1.1
    for epsilon in (-3.0, 0.0, 0.6, 1.0, 3.0):
        assert delta_at(cut, epsilon) >= true_profile(losses, chance, epsilon)


def test_more_labels_never_cost_less_where_blocks_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "BLOCKS", (64,))
    prices = [
        delta_upper([label_event(60.0, n, 250)], 0.5) for n in (63, 64, 65, 66, 128, 129, 640, 641)
    ]
    assert prices == sorted(prices)
