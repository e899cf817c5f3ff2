"""Audits of programs: planted faults are found, sound programs pass, and canaries bound epsilon;
bounds are exact or valid, and not without power."""

import json
import math
import os
import stat
import sys
import tempfile
from pathlib import Path

import numpy as np
import pytest
from planted_faults import release
from scipy.stats import binom, binomtest

from secretballot.accounting import PrivacyBudget, calibrate_gaussian
from secretballot.audit import audit_canaries, audit_release, observation
from secretballot.audit.bounds import (
    canary_bound,
    clopper_pearson,
    epsilon_from_guesses,
    group_privacy,
    guess_p_value,
)
from secretballot.audit.canaries import CanaryTask
from secretballot.audit.observation import Trial, observed_files, run_trials, text_fields
from secretballot.audit.release_audit import (
    Promise,
    _find_telltale,
    _held_out,
    _prepared_command,
    _runs_to_choose_on,
    audit_trials,
)
from secretballot.cli.outcome import show
from secretballot.exceptions import DataError

PROGRAM = (sys.executable, "-S", str(Path(__file__).with_name("planted_faults.py")))
RUNS = 24
RNG = np.random.default_rng(20261122)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Forty records, and neighbours: one record more, with a missing value, or with a text where
    numbers are."""
    monkeypatch.chdir(tmp_path)
    rows = [[age, 0.5 + age] for age in range(100, 140)]
    tables = {
        "private": rows,
        "more": [*rows, [60, 1.0]],
        "missing": [*rows, [None, 1.0]],
        "text": [*rows, ["?", 1.0]],
    }
    for name, table in tables.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(table))
    return tmp_path


def text_of(name, found, capsys):
    """Return what the command line prints of a result."""
    show(name, found)
    return capsys.readouterr().out


def attacked(fault, neighbour, **settings):
    settings = {"runs": RUNS, "random_state": 7, "confidence": 0.95, **settings}
    return audit_release(
        [fault, "private.json", "--out", "x"],
        "private.json",
        neighbour=neighbour,
        program=PROGRAM,
        **settings,
    )


def test_a_planted_fault_is_certified_and_named(folder, capsys):
    """Addresses differ by whole pages from process to process."""
    found = attacked("address", "more.json", n_jobs=2)
    assert not found.passed
    # the program promises 0.5
    assert found.channels[0].verdict.bound > 1
    assert found.channels[0].detected_in.startswith("student.json:")
    assert " mod " in found.channels[0].detected_in
    assert "FAILED" in text_of("release_audit", found, capsys)


@pytest.mark.parametrize(
    ("fault", "neighbour", "detected_in"),
    [
        ("coin", "missing.json", "student.json:"),
        ("whole-table", "text.json", "labels.csv:noisy_count"),
        ("name", "more.json", "(folder):names"),
        ("order", "more.json", "labels.csv:"),
        ("message", "more.json", "output:"),
    ],
)
def test_a_fault_that_shows_in_any_process_is_certified_and_named(
    folder, capsys, fault, neighbour, detected_in
):
    """The draws after a seed do not differ. Where 39 votes move, the noise has deviation .5: the
    rule cuts the gap in its middle, and a count is beyond it with probability 1e-300."""
    coins, trials = np.random.default_rng(7).random(RUNS) < 0.5, []
    for number, coin in enumerate(coins):
        out = folder / f"{number:02d}"
        release(fault, folder / (neighbour if coin else "private.json"), out)
        console = dict(text_fields("output", capsys.readouterr().out))
        seen = {"release": observed_files(out), "console": console, "timing": {}}
        trials.append(Trial(0, seen))
    promise = Promise(0.5, 1e-15, 1, "add-remove")
    found = audit_trials(fault, trials, coins, promise, alpha=0.05)
    # what the curator reads is reported, and not judged
    channel = found.channels[fault == "message"]
    assert channel.verdict.bound > 1
    assert channel.detected_in.startswith(detected_in)
    assert detected_in in text_of("release_audit", found, capsys)
    assert found.passed == (fault == "message")


def test_a_sound_program_passes_and_leaves_nothing_behind(folder):
    seen, n = [], 50
    found = attacked(
        "none",
        "more.json",
        runs=n,
        confidence=1 - 1e-6,  # a sound program fails with probability 1e-6
        progress=lambda done, total: seen.append((done, total)),
    )
    assert found.passed
    assert found.channels[0].verdict.bound <= 0.5 < found.channels[0].verdict.power
    assert found.exit_codes == {0: n}
    assert seen[0] == (0, n)
    assert seen[-1] == (n, n)
    assert json.loads(json.dumps(found.to_json()))["passed"] is True


def test_every_run_is_in_one_private_folder_and_sees_its_own_world_alone(folder, monkeypatch):
    scratch = folder / "scratch"
    # what an audit that was killed left
    (scratch / ".secretballot-audit-abcdefgh" / "slot_0").mkdir(parents=True, mode=0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    seen = []

    def look(done, total):
        seen.extend(stat.S_IMODE(path.stat().st_mode) for path in scratch.iterdir())
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        attacked("none", "more.json", runs=8, progress=look)
    assert set(seen) == {0o700}
    assert not list(scratch.iterdir())


def test_a_command_that_always_fails_is_refused_in_one_sentence(folder):
    with pytest.raises(DataError, match="exit code 1 in its first 4 runs"):
        audit_release(
            ["unknown", "no.json", "private.json"],
            "private.json",
            neighbour="more.json",
            program=PROGRAM,
        )


def test_files_of_a_command_get_plain_names_and_its_out_is_replaced(folder):
    (folder / "deep").mkdir()
    for name in ("private.json", "a.ledger", "a.ledger-journal"):
        (folder / "deep" / name).write_text("{}")
    words = ["learn", "private.json", "deep/private.json", "--ledger=deep/a.ledger"]
    words += ["--classes", "0,1", "--out", "o"]
    prepared, inputs, name = _prepared_command(words, Path("private.json"))
    assert prepared == [
        *("learn", "private.json", "2-private.json", "--ledger=a.ledger"),
        *("--classes", "0,1", "--out", "o", "--out", "out"),
    ]
    assert name == "private.json"
    assert set(inputs) == {"2-private.json", "a.ledger", "a.ledger-journal"}


def test_more_runs_choose_where_the_coins_begin_with_one_world():
    # only the first coins decide, so that the coins held out stay fair
    assert _runs_to_choose_on(np.array([True, False] * 15)) == 10
    assert _runs_to_choose_on(np.array([True] * 8 + [False] * 22)) == 12
    assert _runs_to_choose_on(np.array([True] * 30)) == 15
    tail = RNG.random((20, 16)) < 0.5
    starts = {_runs_to_choose_on(np.array([True] * 8 + [False] * 6 + row.tolist())) for row in tail}
    assert starts == {12}


def test_coins_are_fair_and_a_new_audit_tosses_them_anew(monkeypatch):
    monkeypatch.setattr(observation, "_run_once", lambda *run: Trial(0, {}))
    settings = {"program": None, "jobs": 1, "progress": None}
    coins = [
        run_trials([], lambda _: {}, "out", (1, 400), random_state=None, **settings)[0]
        for _ in range(2)
    ]
    assert not np.array_equal(*coins)
    # of 400 fair coins 120 at most, or 280 at least, with probability 8e-16
    assert all(120 < coin.sum() < 280 for coin in coins)


def seen(folder, name, content):
    """The fields of a folder with one file."""
    (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return observed_files(folder)


def test_names_sizes_modes_links_and_order_are_fields(tmp_path):
    (tmp_path / "b.txt").write_text("x")
    os.utime(tmp_path / "b.txt", (1, 1))
    first = seen(tmp_path, "a.txt", "y")
    assert first["(folder):names"] == "a.txt\nb.txt"
    assert first["(folder):order written"] == "b.txt\na.txt"
    assert (first["a.txt:size"], first["a.txt:links"]) == (1, 1)
    (tmp_path / "a.txt").chmod(0o600)
    os.link(tmp_path / "a.txt", tmp_path.parent / "elsewhere")
    (tmp_path / "link").symlink_to("a.txt")
    second = observed_files(tmp_path)
    assert second["a.txt:links"] == 2
    assert second["a.txt:mode"] != first["a.txt:mode"]
    assert second["link:target"].endswith("a.txt")
    assert "link:digest" not in second  # it is not followed
    assert observed_files(tmp_path / "none") == {"(folder)": "missing"}


def test_json_leaves_keep_their_place_and_their_type(tmp_path):
    document = {"x": [1, 2.5, "id 140573549004720"], "y": {"z": None, "t": True}}
    fields = seen(tmp_path, "a.json", json.dumps(document))
    leaves = {"x[0]": 1, "x[1]": 2.5, "y.z": "None", "y.t": "True"}
    leaves["x[2]:number 0"] = 140573549004720
    assert leaves == {place: fields[f"a.json:$.{place}"] for place in leaves}


@pytest.mark.parametrize("content", [b"{ no json", b"\xff\xfe\x00", b""])
def test_what_is_not_what_it_looks_like_still_shows(tmp_path, content):
    first = seen(tmp_path, "file.csv", content)
    second = seen(tmp_path, "file.csv", content + b"!")
    assert first["file.csv:digest"] != second["file.csv:digest"]
    assert first["file.csv:size"] + 1 == second["file.csv:size"]


def test_a_change_anywhere_in_a_large_binary_moves_one_block(tmp_path):
    content = bytearray(np.random.default_rng(0).bytes(5000))
    first = seen(tmp_path, "model.onnx", bytes(content))
    content[1000] ^= 1
    second = seen(tmp_path, "model.onnx", bytes(content))
    assert {name for name in first if first[name] != second[name]} >= {
        "model.onnx:digest",
        "model.onnx:bytes from 960",
    }
    assert first["model.onnx:bytes from 0"] == second["model.onnx:bytes from 0"]


NOISE = np.random.default_rng(20240209)
DELTA, QUERIES = 1e-6, 40


def counted(sigma, coins):
    """Scores of one canary a run from noisy counts of its vote, as `learn` would release them."""
    shifts = coins[:, None] * np.ones(QUERIES)
    return (shifts + NOISE.normal(0, sigma, shifts.shape)).sum(axis=1) - QUERIES / 2


def bound(sigma, runs, *, share=1.0, alpha=0.01):
    coins = NOISE.random(runs) < 0.5
    return canary_bound(counted(sigma, coins), coins, delta=DELTA, alpha=alpha, share=share).bound


@pytest.mark.parametrize(
    ("epsilon", "noise", "runs", "share", "promise", "least"),
    [
        (4.0, 1.0, 1000, 1.0, 0.2, 6),  # true noise certifies something
        (8.0, 1.0, 500, 1.0, 0.8, 5),  # a promise of a tenth of the truth is refuted
        (2.0, 0.3, 2000, 0.15, 2.0, 5),  # three tenths of the noise are caught
    ],
)
def test_more_than_is_promised_is_caught(epsilon, noise, runs, share, promise, least):
    sigma = calibrate_gaussian(PrivacyBudget(epsilon, DELTA), QUERIES)
    found = [bound(noise * sigma, runs, share=share) for _ in range(6)]
    assert sum(one > promise for one in found) >= least
    # and true noise passes
    assert all(bound(sigma, runs, share=share) <= epsilon for _ in range(6))


def rows_of(table):
    return [line.split(",") for line in table.decode().splitlines()]


def test_tables_differ_by_the_canaries_that_are_there():
    task = CanaryTask(3, 4, 20)
    none, two = (
        rows_of(task.private_table(present)) for present in ([False] * 3, [True, False, True])
    )
    assert two[: len(none)] == none
    assert two[len(none) :] == [["1", "0", "0", "yes"], ["0", "0", "1", "yes"]]
    points = rows_of(task.public_table())[1:]
    assert len(points) == 20
    assert [
        points.count(point) for point in (["1", "0", "0"], ["0", "0", "1"], ["0", "0", "0"])
    ] == [6, 6, 2]


def test_scores_are_read_in_the_order_of_the_points():
    task = CanaryTask(2, 4, 5)
    answers = {3: 9, 0: 1, 4: 0, 1: 1, 2: 0}
    fields = {}
    for number, (point, count) in enumerate(answers.items()):
        fields |= {
            f"labels.csv:query[{number}]": point,
            f"labels.csv:noisy_count[yes][{number}]": count,
        }
    assert task.scores(fields).tolist() == [1.0, 8.0]
    del fields["labels.csv:query[4]"]
    with pytest.raises(DataError, match="no counts of all queries"):
        task.scores(fields)


VOTING = """
import csv, pathlib, random, sys
rows = list(csv.reader(open("private.csv")))[1:]
votes = sum(row[0] == "1" for row in rows)
points = list(csv.reader(open("public.csv")))[1:]
sigma = 0.1
out = pathlib.Path("out/release")
out.mkdir(parents=True)
counts = [votes * (point[0] == "1") + random.gauss(0, sigma) for point in points]
lines = [f"{i},{count}" for i, count in enumerate(counts)]
(out / "labels.csv").write_text("query,noisy_count[yes]\\n" + "\\n".join(lines) + "\\n")
"""


def test_a_whole_audit_runs_the_program(capsys):
    program = (sys.executable, "-S", "-c", VOTING)
    settings = {
        "epsilon": 0.5,
        "delta": 1e-6,
        "runs": 16,
        "n_queries": 26,
        "n_teachers": 2,
        "program": program,
    }
    found = audit_canaries(**settings)
    # 25 counts of noise .1 are a mean of noise .02, and .5 parts the two worlds: one of 16 is
    # guessed wrong with probability 16 P(Z > 25) < 1e-135
    assert found.verdict.right == 16
    assert not found.passed
    assert found.verdict.bound <= found.verdict.power
    text = text_of("canary_audit", found, capsys)
    assert "1 canary a run, 2 teachers, 26 queries" in text
    assert "FAILED" in text
    assert "cannot fail" not in text
    assert json.loads(json.dumps(found.to_json()))["task"]["canaries"] == 1


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


ALPHA = 0.1


def audited(runs, worlds, first=None):
    """A rule from the first third of the runs and its verdict on the others."""
    first = len(runs) // 3 if first is None else first
    rule = _find_telltale(runs[:first], worlds[:first], len(runs) - first, alpha=ALPHA)
    return rule, _held_out(rule, runs[first:], worlds[first:], delta=DELTA, alpha=ALPHA)


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
        ("count above", count),
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
    assert rule.reading.name.startswith(name)
    assert verdict.bound > 1.5


def test_an_event_of_one_world_only_is_found_though_it_is_rare():
    rng = np.random.default_rng(5)
    worlds = rng.random(900) < 0.5
    runs = [
        {**known, "crash": int(world and rng.random() < 0.2)}
        for known, world in zip(noise(rng, 900, 8), worlds, strict=True)
    ]
    rule, verdict = audited(runs, worlds)
    assert "crash" in rule.reading.name
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
    assert rule.reading.name == "a"
    assert verdict.bound < 0.5
