"""The game of labels of more than two classes: the list of laws, and what is played over it.

Proofs: `docs/explanation/prices.md`, section 15.
"""

import math

import numpy as np
import pytest
from test_class_labels import label_chances, neighbouring_votes

import secretballot_verify as second
from exact_games.games import adaptive_delta
from made_events import class_event, json_of
from secretballot import PrivacyBudget
from secretballot.accounting import delta_upper, least_scale, price
from secretballot.core import class_games
from secretballot.core.class_games import (
    LEFT_OUT,
    MAX_SIGMA,
    MIN_SIGMA,
    Noise,
    class_losses,
    covering_laws,
)
from secretballot_verify import games


def game_delta(sigma, labels, epsilon, block=None):
    """Return what a game of all labels at once gives, or of blocks."""
    losses = class_losses(sigma, labels, block or labels)
    return float(losses.delta(np.array([epsilon]))[0])


def mean_value(p, q, x, kinks, weights):
    """Return the mean of V(x q / p) under p, V the sum of weights times (1 - y / kink)+."""
    return np.maximum(p[..., None] - x * q[..., None] / kinks, 0).sum(axis=-2) @ weights


def own_list(sigma):
    """Return the chances of the list's laws on both sides, and what is charged beside it."""
    laws = covering_laws(sigma)
    p, q = laws.chance.T, (laws.chance * np.exp(laws.log_ratio)).T
    return np.concatenate([p, q]), np.concatenate([q, p]), LEFT_OUT


def list_of_the_second_verifier(sigma):
    net = games.ThreeOutcomes(sigma, 0.03)
    laws = np.array([law for row in net.knots for law in row])
    p, q = laws[:, :, 0], laws[:, :, 1]
    return np.concatenate([p, q]), np.concatenate([q, p]), net.CHARGE


@pytest.mark.parametrize(
    ("listed", "sigma"),
    [
        *((own_list, 10.0), (own_list, 40.0), (list_of_the_second_verifier, 12.0)),
        pytest.param(own_list, 101.3, marks=pytest.mark.slow),
        pytest.param(list_of_the_second_verifier, 250.0, marks=pytest.mark.slow),
    ],
)
def test_all_votes_near_and_far_are_dominated_by_the_list(listed, sigma):
    list_p, list_q, charge = listed(sigma)
    rng, noise = np.random.default_rng(5), Noise(sigma)
    near = rng.integers(-2 * sigma, 2 * sigma, (300, 2))
    # where chances are tiny, and where nothing but the difference counts; the table ends at 14
    far = rng.integers(-13 * sigma, 13 * sigma, (300, 2))
    deep = rng.integers(-2 * sigma, 2 * sigma, (100, 1)) * [0, 1] - math.ceil(8 * sigma)
    u, w = np.concatenate([near, far, deep]).T
    there, here = noise.chances(u, w).T, noise.chances(u + 1, w - 1).T
    p, q = np.concatenate([there, here]), np.concatenate([here, there])
    tightest = math.inf
    for scale in (0.3, 1, 3, 10):
        for _ in range(8):
            kinks = np.exp(rng.normal(0, scale / sigma, 4))
            weights = rng.dirichlet(np.full(4, 0.5))
            most = mean_value(list_p, list_q, 1.0, kinks, weights).max()
            found = mean_value(p, q, 1.0, kinks, weights).max()
            silent = np.maximum(1 - 1 / kinks, 0) @ weights
            assert found <= most + charge
            tightest = min(tightest, (most - silent) / (found - silent))
    assert tightest < 1.05


@pytest.mark.parametrize("sigma", [10.0, pytest.param(40.0, marks=pytest.mark.slow)])
def test_a_list_without_spread_or_with_a_gap_does_not_pass_its_check(sigma, monkeypatch):
    monkeypatch.setattr(class_games, "TOLERANCES", (0.03,))
    with monkeypatch.context() as patch:
        patch.setattr(class_games, "SPREADS", np.zeros(1))
        assert covering_laws.__wrapped__(sigma) is None
    with monkeypatch.context() as patch:
        patch.setattr(class_games, "APART", (0.0, 0.4, 1.0, 2.0, 4.0, 7.0))
        assert covering_laws.__wrapped__(sigma) is None
    assert covering_laws.__wrapped__(sigma) is not None


@pytest.mark.parametrize(
    ("n_teachers", "stride", "labels", "epsilon"), [(3, 1, 3, 0.3), (5, 1, 2, 0.2), (40, 5, 2, 0.2)]
)
def test_no_adaptive_strategy_of_a_small_world_beats_the_price(n_teachers, stride, labels, epsilon):
    sigma, pairs = 10.0, list(neighbouring_votes(n_teachers, 3, stride))
    known = {votes: label_chances(votes, sigma) for votes in {v for pair in pairs for v in pair}}
    steps = [(known[a], known[b]) for pair in pairs for a, b in (pair, pair[::-1])]
    best = adaptive_delta(steps, labels, epsilon)
    bound = game_delta(sigma, labels, epsilon)
    assert 0 < best <= bound
    if n_teachers == 40:  # where votes lie as far apart as noise does, an eighth less is caught
        assert best > game_delta(1.125 * sigma, labels, epsilon)


@pytest.mark.parametrize(
    ("sigma", "labels"), [(38.0, 60), pytest.param(84.3, 60, marks=pytest.mark.slow)]
)
def test_an_even_vote_asked_again_and_again_nearly_reaches_the_price(sigma, labels):
    epsilon = 0.5 * 1.13 * math.sqrt(labels) * 4 / sigma
    attack = games.repeated_delta(games.even_vote(sigma), labels, epsilon)
    assert attack <= game_delta(sigma, labels, epsilon)
    assert attack > game_delta(1.03 * sigma, labels, epsilon)


def test_an_independent_library_finds_no_vote_that_costs_more():
    accounting = pytest.importorskip("dp_accounting")
    pld = accounting.pld.privacy_loss_distribution
    sigma, labels, epsilon = 38.0, 60, 1.0
    bound = delta_upper([class_event(sigma, labels)], epsilon)
    noise = Noise(sigma)
    places = np.array([(-100, -100), (-27, -27), (-46, -12), (-12, -46), (-30, 0), (10, 10)])
    u, w = places.T
    found = []
    for p, q in zip(noise.chances(u, w).T, noise.chances(u + 1, w - 1).T, strict=True):
        names = range(3)
        one = pld.from_two_probability_mass_functions(
            dict(zip(names, np.log(p), strict=True)),
            dict(zip(names, np.log(q), strict=True)),
            pessimistic_estimate=False,
            value_discretization_interval=1e-4,
        )
        found.append(one.self_compose(labels).get_delta_for_epsilon(epsilon))
    assert max(found) <= bound < 2 * max(found)


def test_blocks_cost_a_little_more_than_one_game():
    sigma, labels, epsilon = 38.0, 80, 1.0
    whole = game_delta(sigma, labels, epsilon)
    blocks = game_delta(sigma, labels, epsilon, 64)
    assert whole <= blocks * (1 + 1e-9)
    assert blocks < 1.25 * whole


def test_noise_where_no_game_is_played_has_the_price_of_before():
    for sigma in (0.999 * MIN_SIGMA, 1.001 * MAX_SIGMA):
        assert class_games.class_block(sigma, 30) is None
        assert covering_laws(sigma) is None
        assert class_losses(sigma, 3, 3) is None
        event = class_event(sigma, 30)
        assert 0 < delta_upper([event], 1.0) <= delta_upper([event.rough()], 1.0)


@pytest.mark.slow
@pytest.mark.usefixtures("games_of_classes")
@pytest.mark.parametrize("labels", [14, 250])  # the longer one takes a minute
def test_the_second_verifier_confirms_a_game_by_a_list_of_its_own(labels):
    sigma = least_scale(PrivacyBudget(1.0, 1e-6), class_event(1.0, labels))
    event = class_event(sigma, labels)
    assert price([event], epsilon=1.0).method == "losses"
    found = second.price_of(json_of(event), 1.0, 1e-6)
    assert found.lower <= found.upper <= 1e-6
    assert found.method == "a game of three outcomes"
    assert found.upper > 0.9 * delta_upper([event], 1.0)


def test_the_second_verifiers_list_has_teeth():
    assert games.ThreeOutcomes(10.0, 0.03).cover()
    assert not games.ThreeOutcomes(10.0, -0.02).cover()
