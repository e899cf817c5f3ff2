"""Many labels from blocks: above the truth in small worlds and above attacks, hardly above the
game."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from secretballot.privacy.accounting import (
    LabelGaussianEvent,
    delta_upper,
    label_blocks,
    label_game,
    price,
)
from secretballot.privacy.accounting import label_blocks as room
from secretballot.privacy.accounting.gaussian import discrete_gaussian_pmf


def _label_probability(votes: int, n_teachers: int, sigma: float) -> float:
    reach, pmf = discrete_gaussian_pmf(sigma)
    return float(pmf[2 * (votes + np.arange(-reach, reach + 1)) >= n_teachers].sum())


def _brute_force(epsilon: float, sigma: float, queries: int, n_teachers: int) -> float:
    """Largest hockey stick over all adaptive choices of (votes, neighbouring votes)."""
    chance = [_label_probability(v, n_teachers, sigma) for v in range(n_teachers + 1)]
    pairs = [*itertools.pairwise(chance), *itertools.pairwise(reversed(chance))]

    def value(p: float, q: float, left: int) -> float:
        if left == 0:
            return max(0.0, p - math.exp(epsilon) * q)
        return max(
            value(p * a, q * b, left - 1) + value(p * (1 - a), q * (1 - b), left - 1)
            for a, b in pairs
        )

    return value(1.0, 1.0, queries)


@pytest.mark.parametrize("n_teachers", [2, 3, 5])
@pytest.mark.parametrize(("queries", "block"), [(2, 1), (3, 1), (3, 2), (4, 2)])
@pytest.mark.parametrize("sigma", [0.8, 2.0])
def test_blocks_lie_above_every_strategy(
    n_teachers: int, queries: int, block: int, sigma: float
) -> None:
    losses = room.composed_blocks(sigma, queries, n_teachers, block)
    assert losses is not None
    for epsilon in (-1.0, -0.2, 0.0, 0.4, 1.0, 2.5):
        assert losses.delta(epsilon) >= _brute_force(epsilon, sigma, queries, n_teachers) * (
            1 - 1e-12
        )


@pytest.mark.parametrize("n_teachers", [250, None])
@pytest.mark.parametrize("block", [60, 100, 150])
def test_blocks_cost_little_more_than_the_game(n_teachers: int | None, block: int) -> None:
    sigma, queries = 58.66, 300
    game = label_game.label_game_delta(1.0, sigma, queries, n_teachers)
    losses = room.composed_blocks(sigma, queries, n_teachers, block)
    assert losses is not None
    assert game * 0.995 <= losses.delta(1.0) <= game * (1 + 12 / block)


def test_one_block_is_the_game_itself() -> None:
    losses = room.composed_blocks(20.0, 40, 250, 40)
    assert losses is not None
    for epsilon in (0.0, 0.3, 1.0, 2.0):
        profile = label_game.label_profile(20.0, 40, 250, epsilon)
        assert losses.delta(epsilon) == pytest.approx(profile.delta(epsilon), rel=0.01)


def _even_attack(epsilon: float, sigma: float, queries: int) -> float:
    """Ask about an even vote again and again."""
    reach, pmf = discrete_gaussian_pmf(sigma)
    p, q = float(pmf[reach + 1 :].sum()), float(pmf[reach:].sum())
    ones = np.arange(queries + 1)
    return float(
        np.maximum(
            0, binom.pmf(ones, queries, q) - math.exp(epsilon) * binom.pmf(ones, queries, p)
        ).sum()
    )


@pytest.mark.parametrize(
    ("sigma", "queries", "epsilon"),
    [(238.9, 5000, 1.0), (1334.0, 200_000, 1.0), (60.0, 3000, 4.0), (3000.0, 10**6, 1.0)],
)
def test_many_labels_lie_between_an_attack_and_a_little_more(
    sigma: float, queries: int, epsilon: float
) -> None:
    found = price([LabelGaussianEvent(sigma, queries, 250)], epsilon=epsilon)
    assert found.method == "label-game"
    # the attack wins against half a per cent less noise
    assert (
        _even_attack(epsilon, sigma, queries)
        <= found.delta
        <= _even_attack(epsilon, 0.995 * sigma, queries)
    )


def test_coarsening_keeps_the_mass_of_both_sides_and_only_costs() -> None:
    rng = np.random.default_rng(3)
    for first, n in ((-7, 15), (-6, 12), (3, 1), (0, 2)):
        losses = room.LossDistribution(0.1, first, rng.dirichlet(np.ones(n)), 0.0)
        coarse = room._on_coarser_grid(losses)
        at = losses.h * np.arange(first, first + n)
        coarse_at = coarse.h * np.arange(coarse.first, coarse.first + len(coarse.chance))
        assert coarse.h == pytest.approx(0.2)
        assert coarse.chance.sum() == pytest.approx(1, rel=1e-12)
        assert coarse.chance @ np.exp(-coarse_at) == pytest.approx(
            losses.chance @ np.exp(-at), rel=1e-12
        )
        for epsilon in np.linspace(-1, 1, 41):
            assert coarse.delta(float(epsilon)) >= losses.delta(float(epsilon)) - 1e-14


def test_cut_ends_are_charged() -> None:
    chance = np.concatenate([np.full(5, 1e-28), [0.5, 0.5], np.full(5, 1e-28)])
    whole = room.LossDistribution(0.5, -5, chance, 0.0)
    cut = room._without_ends(whole)
    assert len(cut.chance) < len(chance)
    assert cut.certain > 0
    for epsilon in (-3.0, 0.0, 0.6, 1.0, 3.0):
        assert cut.delta(epsilon) >= whole.delta(epsilon)


def test_the_profile_of_losses_lies_on_the_game_at_every_grid_point() -> None:
    grid = label_game.Grid.of(5.0, 12, 0.0, 10, room.REACH)
    value = label_game.game_values(5.0, 21, grid, [12])[0]
    losses = room.loss_distribution(value, grid)
    for i in (0, 1, 5, 40, 111, grid.above):
        above, below = losses.delta(i * grid.h), losses.delta(-i * grid.h)
        assert value[grid.below + i] <= above <= value[grid.below + i] * (1 + 1e-9) + 1e-15
        x = math.exp(-i * grid.h)
        # neighbours have no order: the other side of the profile is its mirror image
        assert 1 - x + x * value[grid.below + i] <= below * (1 + 1e-12)


@pytest.mark.parametrize("sigma", [0.3, 1.0, 20.0, 3000.0, 1.9e5])
@pytest.mark.parametrize("n_teachers", [1, 250, None, 10**12])
def test_no_block_costs_more_than_its_bound(sigma: float, n_teachers: int | None) -> None:
    block = label_blocks.block_size(sigma, n_teachers)
    if block is not None:
        cost = label_game.game_cost(sigma, block, n_teachers, 0.0, reach=label_blocks.REACH)
        assert cost <= label_blocks.BLOCK_COST


def test_more_labels_never_cost_less_where_blocks_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "BLOCKS", (64,))
    prices = [
        delta_upper([LabelGaussianEvent(60.0, n, 250)], 0.5)
        for n in (63, 64, 65, 66, 128, 129, 640, 641)
    ]
    assert prices == sorted(prices)
