"""Choosing what to look at: no false alarms among many fields, and power against what releases
have told."""

import numpy as np
import pytest

from secretballot.audit.telltale import find_telltale, held_out

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
    audits = 40
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
