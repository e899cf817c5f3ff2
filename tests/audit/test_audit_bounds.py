"""Certified bounds on epsilon: exact or valid, and not without power; and what is looked at."""

import math

import numpy as np
import pytest
from scipy.stats import binom, binomtest

from secretballot.audit.bounds import (
    clopper_pearson,
    epsilon_from_guesses,
    group_privacy,
    guess_p_value,
)
from secretballot.audit.telltale import find_telltale, held_out
from secretballot.exceptions import ParameterError

RNG = np.random.default_rng(20240619)


@pytest.mark.parametrize(("successes", "trials"), [(0, 20), (7, 20), (20, 20), (3, 500)])
def test_clopper_pearson_is_the_librarys_exact_interval(successes, trials):
    interval = binomtest(successes, trials).proportion_ci(confidence_level=0.98, method="exact")
    assert clopper_pearson(successes, trials, 0.01) == pytest.approx((interval.low, interval.high))


def test_what_delta_allows_is_not_held_against_the_program():
    assert epsilon_from_guesses(40, 40, 40, delta=0.5, alpha=0.01) == 0


def test_guesses_without_delta_are_a_binomial_tail():
    chance = 1 / (1 + math.exp(-0.7))
    assert guess_p_value(17, 20, 100, 0.7, 0.0) == pytest.approx(binom.sf(16, 20, chance))
    assert guess_p_value(0, 20, 100, 0.7, 1e-5) == 1
    with pytest.raises(ParameterError):
        guess_p_value(21, 20, 100, 0.7, 0.0)


def test_the_term_of_delta_is_the_papers():
    # theorem 5.2 by its own words: 2 m delta max over i of P(v > W >= v - i) / i
    right, guesses, coins, epsilon, delta = 15, 20, 50, 0.4, 1e-3
    chance = 1 / (1 + math.exp(-epsilon))
    tails = [
        (binom.sf(right - i - 1, guesses, chance) - binom.sf(right - 1, guesses, chance)) / i
        for i in range(1, 16)
    ]
    expected = binom.sf(right - 1, guesses, chance) + 2 * coins * delta * max(tails)
    assert guess_p_value(right, guesses, coins, epsilon, delta) == pytest.approx(expected)


def test_a_bound_is_the_epsilon_at_which_the_guesses_become_likely():
    bound = epsilon_from_guesses(38, 40, 60, delta=1e-6, alpha=0.01)
    assert guess_p_value(38, 40, 60, bound, 1e-6) == pytest.approx(0.01, rel=1e-6)
    assert epsilon_from_guesses(20, 40, 60, delta=1e-6, alpha=0.01) == 0
    # all right: (1 / (1 + e^-eps))^40 = alpha
    chance = 0.01 ** (1 / 40)
    assert epsilon_from_guesses(40, 40, 40, delta=0.0, alpha=0.01) == pytest.approx(
        math.log(chance / (1 - chance))
    )


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 2.0])
def test_bounds_exceed_the_truth_at_most_at_the_stated_rate(epsilon):
    # randomised response is the worst case: nobody leaks more at this epsilon
    alpha, n, audits = 0.1, 60, 1000
    right = RNG.binomial(n, 1 / (1 + math.exp(-epsilon)), size=audits).tolist()
    known = {k: epsilon_from_guesses(k, n, n, delta=0.0, alpha=alpha) for k in set(right)}
    bounds = np.array([known[k] for k in right])
    assert np.mean(bounds > epsilon + 1e-9) <= alpha + 4 * math.sqrt(alpha / audits)
    # and it is tight: a bound that is always 0 would be valid as well
    assert np.mean(bounds) >= epsilon - 0.6


def test_groups_pay_for_every_step():
    assert group_privacy(0.5, 1e-6, 1) == (0.5, 1e-6)
    epsilon, delta = group_privacy(0.5, 1e-6, 3)
    assert epsilon == 1.5
    assert delta == pytest.approx(1e-6 * (1 + math.exp(0.5) + math.exp(1.0)))


ALPHA, DELTA = 0.1, 1e-6


def audited(runs, worlds, first=None):
    """A rule from the first third of the runs and its verdict on the others."""
    first = len(runs) // 3 if first is None else first
    rule = find_telltale(runs[:first], worlds[:first], len(runs) - first, alpha=ALPHA)
    return rule, held_out(rule, runs[first:], worlds[first:], delta=DELTA, alpha=ALPHA)


def noise(rng, n, fields=40):
    """Runs whose fields know nothing: small integers, numbers, texts, addresses, and fields that
    come and go."""
    runs = []
    for _ in range(n):
        run = {f"small {i}": int(rng.integers(3)) for i in range(fields // 4)}
        run |= {f"number {i}": float(rng.normal()) for i in range(fields // 4)}
        run |= {f"address {i}": int(rng.integers(2**40)) * 16 for i in range(fields // 4)}
        run |= {f"text {i}": str(rng.integers(2)) for i in range(fields // 4) if rng.random() < 0.8}
        runs.append({"constant": "same", **run})
    return runs


def test_identical_worlds_raise_alarms_at_most_at_the_stated_rate():
    rng = np.random.default_rng(1)
    audits = 20
    bounds = [audited(noise(rng, 45, 24), rng.random(45) < 0.5)[1].bound for _ in range(audits)]
    assert np.mean(np.array(bounds) > 0) <= ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / audits)


def test_nothing_that_varies_is_nothing_found():
    worlds = np.array([True, False] * 15)
    rule, verdict = audited([{"a": 1, "b": "x"}] * 30, worlds)
    assert rule is None
    assert (verdict.bound, verdict.guesses, verdict.coins) == (0.0, 0, 20)
    assert verdict.power > 1


def address(rng, world):
    return {"student:$.__id__": int(rng.integers(2**30)) * 4096 + 1840 + 32 * world}


def coefficient(_, world):
    return {"coefficient": 0.25 if world else 0.375}


def one_file_more(_, world):
    return {"queries.json:size": 10} if world else {}


def count(rng, world):
    return {"count": float(rng.normal(8 * world))}


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("student:$.__id__ mod 4096", address),
        ("coefficient", coefficient),
        ("queries.json:size", one_file_more),
        ("count above or below", count),
    ],
)
def test_what_tells_is_found_and_named(name, planted):
    rng = np.random.default_rng(2)
    worlds = rng.random(60) < 0.5
    runs = [
        {**known, **planted(rng, int(world))}
        for known, world in zip(noise(rng, 60), worlds, strict=True)
    ]
    rule, verdict = audited(runs, worlds)
    assert rule.name.startswith(name)
    assert verdict.bound > 1.5


def test_an_event_of_one_world_only_is_found_though_it_is_rare():
    rng = np.random.default_rng(5)
    worlds = rng.random(900) < 0.5
    runs = [
        {**known, "crash": int(world and rng.random() < 0.2)}
        for known, world in zip(noise(rng, 900, 8), worlds, strict=True)
    ]
    rule, verdict = audited(runs, worlds)
    assert "crash" in rule.name
    assert verdict.bound > 1.5
    assert verdict.guesses < verdict.coins


def test_the_rule_never_sees_the_runs_that_certify():
    # fields that name the world of the first runs only must not certify anything
    rng = np.random.default_rng(6)
    worlds = rng.random(90) < 0.5
    runs = [
        {"a": int(world) if number < 30 else int(rng.integers(2))}
        for number, world in enumerate(worlds)
    ]
    rule, verdict = audited(runs, worlds)
    assert rule.name == "a"
    assert verdict.bound < 0.5
