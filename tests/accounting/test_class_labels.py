"""Labels of more than two classes alone: the certified divergence and the game over a list of laws,
against all votes.

Proofs: `docs/explanation/prices.md`, section 15.
"""

import math
from contextvars import ContextVar

import numpy as np
import pytest

import secretballot_verify as second
from exact_games.distributions import discrete_gaussian_distribution
from exact_games.games import adaptive_delta
from exact_games.worlds import neighbouring_counts
from made_events import class_event, json_of
from secretballot import PrivacyBudget
from secretballot.accounting import RenyiFilter, delta_upper, least_scale, price
from secretballot.core import class_games
from secretballot.core.class_games import (
    _LEFT_OUT,
    MAX_SIGMA,
    MIN_SIGMA,
    _covering_laws,
    _Noise,
    class_losses,
    class_renyi,
)
from secretballot_verify import games


def class_label_renyi(order, sigma):
    return float(class_renyi(sigma, (order,))[0])


def noise_of(sigma):
    """Return the law of the noise, cut where doubles end."""
    return discrete_gaussian_distribution(sigma, 1e-42)


def label_chances(votes, sigma):
    """Return the chance of every label, from the rule for ties alone: the lowest class of those
    with the most noisy votes."""
    noise, most = noise_of(sigma), max(votes)
    told, chances = noise.low + np.arange(len(noise.pmf) + most), []
    for j, n in enumerate(votes):
        rivals = [noise.at_most(told - m - (i < j)) for i, m in enumerate(votes) if i != j]
        chances.append(float(np.pad(noise.pmf, (n, most - n)) @ np.prod(rivals, axis=0)))
    return np.array(chances)


def neighbouring_votes(n_teachers, n_classes, stride=1):
    """Return votes and their neighbours, of votes that are so many apart."""
    here, there = neighbouring_counts(n_teachers, n_classes)
    for one, other in zip(here.tolist(), there.tolist(), strict=True):
        if not any(count % stride for count in one):
            yield tuple(one), tuple(other)


def divergence(p, q, order):
    return math.log(float(p**order @ q ** (1 - order))) / (order - 1)


@pytest.mark.parametrize(
    ("n_teachers", "n_classes", "sigma", "orders"),
    [(7, 3, 1.5, (1.2, 2.0, 2.5)), (5, 4, 1.2, (1.5, 2.2)), (9, 3, 2.5, (1.5, 3.0))],
)
def test_the_divergence_of_all_votes_stays_below_the_bound_and_nearly_reaches_it(
    n_teachers, n_classes, sigma, orders
):
    laws = {}
    for votes, moved in neighbouring_votes(n_teachers, n_classes):
        for one in (votes, moved):
            if one not in laws:
                laws[one] = label_chances(one, sigma)
    for order in orders:
        worst = max(
            divergence(laws[votes], laws[moved], order)
            for votes, moved in neighbouring_votes(n_teachers, n_classes)
        )
        bound = class_label_renyi(order, sigma)
        assert worst <= bound
        assert worst > 0.96 * bound
        # a bound for a tenth more noise would be false
        assert worst > class_label_renyi(order, 1.1 * sigma)
        assert bound < order / sigma**2


@pytest.mark.parametrize("sigma", [1.3, 4.0, 9.0])
def test_three_outcomes_are_those_of_all_noises(sigma):
    noise = _Noise(sigma)
    k, pmf = noise_of(sigma).support, noise_of(sigma).pmf
    for u, w in ((0, 0), (-3, 2), (5, -1), (-4, -7), (2, 9)):
        first, second_one = np.meshgrid(k - u, k - w, indexing="ij")
        both = np.outer(pmf, pmf)
        others = both[(first < 0) & (second_one < 0)].sum()
        one = both[(first >= 0) & (first >= second_one)].sum()
        two = both[(second_one >= 0) & (second_one > first)].sum()
        found = noise.chances(np.array([u]), np.array([w]))[:, 0]
        assert found == pytest.approx([others, one, two], rel=1e-11)
        assert found.sum() == pytest.approx(1, abs=1e-13)


@pytest.mark.parametrize("sigma", [1.3, 4.0])
def test_chances_and_their_ratios_are_monotone_on_the_lattice(sigma):
    noise, far = _Noise(sigma), math.ceil(5 * sigma)
    axis = np.arange(-far, far + 1)
    u, w = (a.ravel() for a in np.meshgrid(axis, axis, indexing="ij"))
    p, log_r = (a.reshape(3, len(axis), len(axis)) for a in noise.losses(u, w))
    slack = 1e-9
    for outcome, (along_u, along_w) in enumerate([(1, 1), (-1, 1), (1, -1)]):
        assert np.all(along_u * np.diff(p[outcome], axis=0) >= -slack)
        assert np.all(along_w * np.diff(p[outcome], axis=1) >= -slack)
    assert np.all(np.diff(log_r, axis=1) <= slack)  # falls with u
    assert np.all(np.diff(log_r, axis=2) >= -slack)  # grows with w


def largest_moment(sigma, order):
    """Return the largest moment, less 1, on the whole lattice."""
    noise, far = _Noise(sigma), math.ceil(10 * sigma)
    axis = np.arange(-far, far + 1)
    u, w = (a.ravel() for a in np.meshgrid(axis, axis, indexing="ij"))
    p, log_r = noise.losses(u, w)
    r = np.exp(log_r)
    there = (p * (np.exp((1 - order) * log_r) - 1 + (order - 1) * (r - 1))).sum(axis=0)
    back = (p * (np.exp(order * log_r) - 1 - order * (r - 1))).sum(axis=0)
    return max(there.max(), back.max())


@pytest.mark.parametrize(
    ("sigma", "order", "most"),
    [
        *((3.0, 3.5, 0.02), (9.0, 2.0, 0.02), (9.0, 9.5, 0.03), (20.0, 1.5, 0.05)),
        *((20.0, 24.0, 0.06), (20.0, 28.0, 0.0015)),
    ],
)
def test_the_bound_hardly_exceeds_the_largest_on_the_whole_lattice(sigma, order, most):
    worst = largest_moment(sigma, order)
    bound = math.expm1((order - 1) * class_label_renyi(order, sigma))
    assert worst <= bound <= (1 + most) * worst


def test_a_list_of_laws_that_lacks_the_worst_ones_is_noticed(monkeypatch):
    laws = class_games._covering_laws(20.0)
    change = np.expm1(laws.log_ratio)
    tame = np.argsort((laws.chance * change**2).sum(axis=0))[: laws.chance.shape[1] // 2]
    few = class_games.Laws(laws.chance[:, tame], laws.log_ratio[:, tame])
    monkeypatch.setattr(class_games, "_covering_laws", lambda *_: few)
    bound = class_games.class_renyi.__wrapped__(20.0, (3.0,))[0]
    assert math.expm1(2 * bound) < largest_moment(20.0, 3.0)


def test_the_second_verifier_refuses_labels_with_far_too_little_noise(monkeypatch):
    # what is surely spent needs no long game
    monkeypatch.setattr(games, "minutes_allowed", ContextVar("minutes", default=1e-3))
    assert 0.9e-6 < delta_upper([class_event(22.5, 20)], 1.0) <= 1e-6
    event = class_event(0.8 * 22.5, 20)
    price = second.price_of(json_of(event), 1.0, 1e-6)
    assert price.lower > 1e-6
    # and what it proves to be spent is no more than what is charged
    assert price.lower <= delta_upper([event], 1.0)


def test_labels_never_cost_more_than_their_counts_and_more_of_them_no_less():
    for sigma in (0.3, 3.0, 12.0, 2500.0):
        for queries in (1, 20):
            event = class_event(sigma, queries)
            # what a price adds for rounding decides below 1e-15
            most = delta_upper([event.rough()], 1.0) * (1 + 1e-9) + 1e-15
            assert delta_upper([event], 1.0) <= most
    costs = [delta_upper([class_event(12.0, n)], 1.0) for n in (1, 2, 20)]
    assert costs == sorted(costs)


def test_divergences_of_a_ledger_hold_at_any_order():
    event = class_event(30.0, 10)
    rule = RenyiFilter(PrivacyBudget(2.0, 1e-6), 14.25)
    cost = rule.costs((event,), PrivacyBudget(1.0, 1e-6)).loss
    assert float(cost) == 10 * class_label_renyi(14.25, 30.0)
    assert float(cost) < 0.68 * float(event.rough().renyi(np.array([14.25]))[0])
    # beyond the orders that are computed, that of the counts holds
    assert float(event.renyi(np.array([5000.0]))[0]) == float(
        event.rough().renyi(np.array([5000.0]))[0]
    )


def game_delta(sigma, labels, epsilon, block=None):
    """Return what a game of all labels at once gives, or of blocks."""
    losses = class_losses(sigma, labels, block or labels)
    return float(losses.delta(np.array([epsilon]))[0])


def mean_value(p, q, x, kinks, weights):
    """Return the mean of V(x q / p) under p, V the sum of weights times (1 - y / kink)+."""
    return np.maximum(p[..., None] - x * q[..., None] / kinks, 0).sum(axis=-2) @ weights


def own_list(sigma):
    """Return the chances of the list's laws on both sides, and what is charged beside it."""
    laws = _covering_laws(sigma)
    p, q = laws.chance.T, (laws.chance * np.exp(laws.log_ratio)).T
    return np.concatenate([p, q]), np.concatenate([q, p]), _LEFT_OUT


def list_of_the_second_verifier(sigma):
    net = games._ThreeOutcomes(sigma, 0.03)
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
    rng, noise = np.random.default_rng(5), _Noise(sigma)
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
def test_a_list_with_no_spread_a_gap_or_near_ends_does_not_pass_its_check(sigma, monkeypatch):
    monkeypatch.setattr(class_games, "_TOLERANCES", (0.03,))
    apart = (0.0, 0.4, 1.0, 2.0, 4.0, 7.0)
    for name, value in (("_SPREADS", np.zeros(1)), ("_APART", apart), ("FAR", 7.0)):
        with monkeypatch.context() as patch:
            patch.setattr(class_games, name, value)
            assert _covering_laws.__wrapped__(sigma) is None
    assert _covering_laws.__wrapped__(sigma) is not None


@pytest.mark.parametrize(
    ("n_teachers", "stride", "labels", "epsilon"), [(3, 1, 3, 0.3), (5, 1, 2, 0.2), (40, 5, 2, 0.2)]
)
def test_no_adaptive_strategy_of_a_small_world_beats_the_price(n_teachers, stride, labels, epsilon):
    sigma, pairs = 10.0, list(neighbouring_votes(n_teachers, 3, stride))
    known = {votes: label_chances(votes, sigma) for votes in {v for pair in pairs for v in pair}}
    steps = [(known[a], known[b]) for pair in pairs for a, b in (pair, pair[::-1])]
    best = adaptive_delta(steps, labels, epsilon)
    assert 0 < best <= game_delta(sigma, labels, epsilon)
    if n_teachers == 40:  # where votes lie as far apart as noise does, an eighth less is caught
        assert best > game_delta(1.125 * sigma, labels, epsilon)


@pytest.mark.slow
@pytest.mark.parametrize(("sigma", "labels"), [(38.0, 60), (84.3, 60)])
def test_an_even_vote_asked_again_and_again_nearly_reaches_the_price(sigma, labels):
    epsilon = 0.5 * 1.13 * math.sqrt(labels) * 4 / sigma
    attack = games.repeated_delta(games.even_vote(sigma), labels, epsilon)
    assert attack <= game_delta(sigma, labels, epsilon)
    assert attack > game_delta(1.03 * sigma, labels, epsilon)


def test_blocks_cost_a_little_more_than_one_game():
    sigma, labels, epsilon = 10.0, 40, 2.0
    whole = game_delta(sigma, labels, epsilon)
    blocks = game_delta(sigma, labels, epsilon, 32)
    assert whole <= blocks * (1 + 1e-9)
    assert blocks < 1.25 * whole


def test_what_far_noise_and_the_list_lack_is_charged():
    noise, order = _Noise(20.0), 6.0
    edge, deep, two = 156, 108, 2 * 20.0**2
    far = 4 * math.exp((2 * order * (order - 1) - (edge - order) ** 2) / two)
    far += math.exp((order * (order - 1) - (deep - order) ** 2 - deep**2) / two)
    found = [
        class_games._divergences(np.zeros(1), noise, np.array([order]), beside)[0]
        for beside in (0.0, 1e-14)
    ]
    assert math.expm1((order - 1) * found[0]) == pytest.approx(order * far, rel=1e-3)
    ratio = np.abs(noise.losses(np.array([edge, -edge]), np.array([-edge, edge]))[1]).max()
    most = far + 1e-14 * math.exp((order - 1) * ratio)
    assert math.expm1((order - 1) * found[1]) == pytest.approx(order * most, rel=1e-3)


def test_the_bound_of_a_square_is_exact_for_one_law_and_no_smaller_for_more():
    p, q = np.random.default_rng(0).dirichlet(np.ones(3), (2, 60))
    ratio, x = q / p, np.tile(np.geomspace(0.1, 10, 41), (60, 1))
    sticks = np.maximum(0.0, p[:, None] - x[..., None] * q[:, None]).sum(axis=2)
    excess = sticks - np.maximum(0.0, 1 - x)
    assert class_games._excess_over_silence(p[:, None], ratio[:, None], x) == pytest.approx(excess)
    assert class_games._largest_excess(p.T, ratio.T, ratio.T, x) == pytest.approx(excess)
    for one in np.eye(3)[:, :, None] / 10:
        wider = class_games._largest_excess(
            p.T * (1 + one), ratio.T * (1 - one), ratio.T * (1 + one), x
        )
        assert (wider >= excess - 1e-12).all()


def test_the_work_of_a_game_is_bounded():
    blocks = [class_games.class_block(*one) for one in ((10.0, 100), (40.0, 5000))]
    assert blocks == [100, 128]


def test_noise_where_no_game_is_played_has_the_price_of_before():
    for sigma in (0.999 * MIN_SIGMA, 1.001 * MAX_SIGMA):
        assert class_games.class_block(sigma, 30) is None
        assert _covering_laws(sigma) is None
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
    assert games._ThreeOutcomes(10.0, 0.03).cover()
    assert not games._ThreeOutcomes(10.0, -0.02).cover()
