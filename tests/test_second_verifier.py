"""The second verifier: alone, quick, never above the first one's price by more than its error,
and never fooled."""

import ast
import hashlib
import json
import math
import os
import random
import shutil
import subprocess
import sys
import time
import tracemalloc
from contextlib import suppress
from contextvars import ContextVar
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

import secretballot as sb
import secretballot_verify as second
from adaptive_labels import best_attack, both_ways, label_chances
from made_certificates import reseal
from made_events import (
    abstention_event,
    confident_event,
    counts_event,
    json_of,
    label_event,
    pure_event,
    ranged_event,
    sampled_event,
    sparse_event,
    stable_event,
    sums_event,
    table_event,
)
from noisy_plans import calibrated
from secretballot.accounting import PrivacyBudget, calibrate_vote_table, delta_upper, least_scale
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import mechanism_in, shape_in
from secretballot.exceptions import ParameterError
from secretballot.publishing.release import write_release
from secretballot_verify import certificate, games, prices
from secretballot_verify.__main__ import main as command_line

PACKAGE = Path(second.__file__).parent
PACK = PACKAGE.parent.parent / "tools" / "one_file_verifier.py"
TABLE = abstention_event(18.157973366762054, 0.1434538901929139, 8e-10, 50)
STREAM = sparse_event(8.0, 11.5, 176, 5)


def test_it_imports_the_standard_library_alone():
    files = sorted(PACKAGE.glob("*.py"))
    assert len(files) == 5
    for node in (node for file in files for node in ast.walk(ast.parse(file.read_text()))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or "."] if isinstance(node, ast.ImportFrom) else []
        known = {*sys.stdlib_module_names, "secretballot_verify"}
        assert all(name.partition(".")[0] in known for name in names), names


@pytest.mark.parametrize(
    ("event", "epsilon"),
    [
        (counts_event(32.0, 60), 1.0),
        (counts_event(3.9, 7), 2.0),
        (counts_event(1e4, 10**6), 0.5),
        (counts_event(1e6, 10**10), 0.2),
        (counts_event(3.0, 20_000), 50.0),
        (STREAM, 1.0),
        (sparse_event(26.0, 73.0, 1304, 50), 1.0),
        (TABLE, 1.0),
        (abstention_event(3.7, 0.5, 1e-7, 10), 6.0),
        (sampled_event(TABLE, 10, 100, "replace-one"), 0.3),
        (sampled_event(TABLE, 10, 100, "add-remove"), 0.3),
        (sampled_event(STREAM, 10, 100, "replace-one"), 0.3),
        (sampled_event(STREAM, 10, 100, "add-remove"), 0.3),
        (sampled_event(STREAM, 100, 100, "replace-one"), 2.0),
        (pure_event(0.1, 3), 0.2),
        (pure_event(0.05, 100), 2.0),
        (ranged_event(0.1, 3), 0.2),
        (ranged_event(0.05, 400), 1.0),
    ],
    ids=lambda value: str(value)[:40],
)
def test_it_agrees_with_the_first_verifier_and_is_never_above_it(event, epsilon):
    theirs, own = delta_upper([event], epsilon), second.price_of(json_of(event), epsilon)
    assert 0.97 * theirs <= own.upper <= theirs * (1 + second.ERROR)
    assert own.lower <= own.upper


@pytest.mark.parametrize(
    ("epsilon", "delta", "queries", "n_teachers"),
    [(1.0, 1e-6, 20, 250), (1.0, 1e-5, 12, None), (4.0, 1e-6, 5, 9)],
)
def test_it_confirms_labels_that_were_calibrated_to_the_promise(
    epsilon, delta, queries, n_teachers
):
    sigma = least_scale(PrivacyBudget(epsilon, delta), label_event(1.0, queries, n_teachers))
    event = json_of(label_event(sigma, queries, n_teachers))
    own = second.price_of(event, epsilon, delta)
    assert 0.95 * delta <= own.upper <= delta * (1 + second.ERROR)
    assert own.lower >= 0.3 * delta
    assert own.method.startswith("a game")
    assert (
        second.price_of(
            json_of(label_event(0.9 * sigma, queries, n_teachers)), epsilon, delta
        ).lower
        > delta
    )


@pytest.mark.parametrize(
    ("epsilon", "delta", "queries", "n_teachers"),
    [(1.0, 1e-6, 20, 114), (4.0, 1e-6, 5, 9), (1.0, 1e-6, 1, 30)],
)
def test_it_confirms_labels_of_a_table_that_was_calibrated_to_the_promise(
    epsilon, delta, queries, n_teachers
):
    table = calibrate_vote_table(PrivacyBudget(epsilon, delta), queries, n_teachers)
    event = table_event(table.weights, queries, n_teachers)
    own = second.price_of(json_of(event), epsilon, delta)
    assert 0.9 * delta <= own.upper <= delta * (1 + second.ERROR)
    assert own.lower <= own.upper
    assert own.method.startswith("a game") or queries == 1
    # the table read one vote too far out tells more than was promised, by the simplest attack
    weights = table.weights
    sharper = [*weights[: 1 - n_teachers % 2], *weights[2 - n_teachers % 2 :]]
    broken = json_of(table_event(sharper, 2 * queries, n_teachers))
    assert second.price_of(broken, epsilon, delta).lower > delta


@pytest.mark.parametrize(
    ("queries", "size"),
    [(100, 800), *(pytest.param(n, 10_000, marks=pytest.mark.slow) for n in (3, 100, 10**12))],
)
def test_long_tables_are_decided_or_left_in_seconds(queries, size):
    roots = (1 - 0.999999 * ((k + 1) / size) ** 0.5 for k in range(size))
    weights = tuple(max(1, int(2**52 * root) - k) for k, root in enumerate(roots))
    event = table_event(weights, queries, 2 * size - 1)
    charged = max(delta_upper([event], 1.0), 1e-300)
    start = time.process_time()
    own = second.price_of(json_of(event), 1.0, charged)
    assert time.process_time() - start < 25
    assert own.lower <= min(own.upper, charged * (1 + second.ERROR))


def test_corners_of_a_table_lie_on_or_above_all_its_pairs():
    event = calibrate_vote_table(PrivacyBudget(1.0, 1e-6), 30, 140)
    curve = games.curve_of((weight << 147 for weight in event.weights), fair=True)
    pairs = [(p / games.ONE, q / games.ONE) for p, q in curve]
    for share in (0.0, 0.003, 0.05):
        corners = sorted(law[0] for law in games.corners_of(curve, share, 1))
        for p, q in pairs:
            low = max((c for c in corners if c[0] <= p), default=corners[0])
            high = min((c for c in corners if c[0] >= p), default=corners[-1])
            part = 0.0 if low == high else (p - low[0]) / (high[0] - low[0])
            assert (low[1] + part * (high[1] - low[1])) * (1 + 1e-12) >= q
    assert len(corners) < len(pairs) / 3


def test_long_runs_past_a_threshold_are_confirmed_as_noisy_counts_alone():
    event = confident_event(200.0, 40.0, 8500, 3098, 10)
    own = second.price_of(json_of(event), 12.0, 1e-6)
    assert own.method == "as noisy counts, composed"
    assert delta_upper([event], 12.0) <= own.upper * (1 + second.ERROR)
    assert second.price_of(json_of(confident_event(3.0, 40.0, 8, 3, 10)), 1.0, 1e-6).upper == 1


@pytest.mark.parametrize(
    ("sigma", "n_teachers", "queries", "epsilon"), [(1.3, 3, 2, 0.5), (2.0, 4, 3, 0.3)]
)
def test_the_truth_of_a_small_game_lies_between_its_bounds(sigma, n_teachers, queries, epsilon):
    pairs = both_ways(label_chances(n_teachers, sigma))
    truth = best_attack(pairs, queries, math.exp(epsilon))
    own = second.price_of(json_of(label_event(sigma, queries, n_teachers)), epsilon)
    assert own.lower <= truth * (1 + 1e-9)
    assert truth * (1 - 1e-9) <= own.upper <= 1.02 * truth


def test_very_short_vectors_keep_their_digits():
    for sigma, squared, count, epsilon, truth in (
        (9861221.496624833, 3, 3, 2.6919317655029185e-06, 1.4871344778135123e-26),
        (800474195.682787, 252, 5, 3.5242258200321626e-07, 5.15690148511744e-24),
        (128476004.50199561, 1, 2, 4.459718132576537e-08, 6.252740790117919e-14),
    ):
        event = sums_event(sigma, squared, 50, count)
        found = second.price_of(json_of(event), epsilon)
        charged = delta_upper([event], epsilon)
        # the truth is that of continuous noise, found with sixty digits
        assert found.lower <= truth <= charged
        assert truth <= found.upper * (1 + 1e-7)


def test_the_probability_of_a_crossing_is_a_sum_over_both_noises():
    def pmf(scale, x):
        return math.tanh(1 / (2 * scale)) * math.exp(-abs(x) / scale)

    for first, other, threshold in ((2.0, 3.5, 4), (3.0, 3.0, 6), (5.0, 1.0, 0)):
        event = json_of(sparse_event(first, other, threshold, 1))
        pairs = product(range(-150, 151), repeat=2)
        truth = math.fsum(pmf(other, x) * pmf(first, y) for x, y in pairs if x - y > threshold)
        assert prices._crossing_probability(event) == pytest.approx(truth, rel=1e-9)


RECORD = {"unit": "record", "relation": "add-remove"}
VOTES = {"guarantee": RECORD, "n_queries": 4, "n_classes": 2, "n_teachers": 9, "moved": 4}
VOTES |= {"spare_rows": 0, "sample": None}
SAMPLE = {"sampled": 10, "out_of": 100, "relabel_epsilon": 1.0, "request": "a", "serial": "b"}
SUMS = {"guarantee": RECORD, "coordinates": 3, "squared_sensitivity": 4}
LABELS = {"kind": "noisy-votes", "noise": "gaussian", "scale": 3.0, "release": "labels"}
TABLE_LABELS = {"kind": "table-labels", "weights": [2**52, 2**51]}
SPARSE = {"kind": "sparse-vector", "threshold_scale": 8.0, "query_scale": 11.5, "threshold": 176}
SPARSE |= {"max_abstentions": 5}


def hexadecimal(weights):
    return "".join(f"{one:016x}" for one in weights)


#: Chances of an answer, of 2^62, that rise as fast as order and charge allow.
WEIGHTS = [46116860176891904, 177648939741216768, 449582252205015040, 862528358750093312]
ABSTAINS = {"kind": "abstention-table", "order": 3.0, "charge": 0.75, "false_answer": 0.01}
ABSTAINS |= {"weights": hexadecimal(WEIGHTS), "max_abstentions": 2}
PASSING = {"kind": "confident-labels", "threshold": 7, "threshold_sigma": 9.0, "sigma": 9.0}
PASSING |= {"max_answers": 3}
NOISY_SUMS = {"kind": "noisy-sums", "sigmas": [80.0, 80.0]}
#: Mechanisms and shapes that fit each other.
SOUND = [
    *((LABELS | {"noise": noise}, VOTES) for noise in ("gaussian", "laplace")),
    (LABELS | {"release": "counts"}, VOTES | {"n_teachers": None, "moved": 7, "spare_rows": 2}),
    *(
        (LABELS | change, VOTES | {"n_classes": 5, "moved": 3})
        for change in ({}, {"release": "counts"}, {"noise": "laplace"})
    ),
    (TABLE_LABELS, VOTES | {"n_teachers": 6}),
    (PASSING, VOTES | {"n_classes": 3}),
    (SPARSE, VOTES),
    (ABSTAINS, VOTES | {"n_classes": 3}),
    *(
        ({"kind": "relabelled-sample", "stream": stream}, VOTES | {"sample": SAMPLE})
        for stream in (SPARSE, ABSTAINS)
    ),
    ({"kind": "noisy-means", "sigma": 9.0}, VOTES | {"n_classes": 50}),
    ({"kind": "vote-quantiles", "epsilon": 0.5, "rank": 4}, VOTES | {"n_classes": 50}),
    ({"kind": "stability-quantile", "epsilon": 0.5, "fraction": 0.5}, VOTES),
    (NOISY_SUMS, SUMS),
    ({"kind": "exponential-choice", "epsilon": 0.5, "rule": "exponential"}, {"guarantee": RECORD}),
]


def check_terms(mechanism, shape):
    """Let the second verifier read terms whose event is stated as it takes it to be."""
    stated = {}
    with suppress(Exception):
        stated = certificate._event_of(mechanism, shape)
    public = {"method": "any but votes"}
    part = {"mechanism": mechanism, "shape": shape, "public": public, "events": [stated]}
    certificate._check_part(json.loads(json.dumps(part)))


def event_of_terms(mechanism, shape):
    """Return what the first program reads."""
    read = mechanism_in(mechanism)
    return read.event(shape_in(read, shape))


@pytest.mark.parametrize(
    ("mechanism", "shape"),
    [
        ({"kind": "noisy-votes", "scale": 3.0}, VOTES),
        (LABELS | {"more": 1}, VOTES),
        (LABELS, VOTES | {"n_classes": 1}),
        (LABELS | {"noise": "laplace"}, VOTES | {"n_queries": 10**12 + 1, "moved": 10**12 + 1}),
        (PASSING | {"threshold": 10}, VOTES),
        (PASSING | {"max_answers": 5}, VOTES),
        ({"kind": "relabelled-sample", "stream": LABELS}, VOTES | {"sample": SAMPLE}),
        (
            {"kind": "relabelled-sample", "stream": SPARSE},
            VOTES | {"sample": SAMPLE | {"sampled": 101}},
        ),
        # teachers, and no records, learn from a sample
        (
            {"kind": "relabelled-sample", "stream": SPARSE},
            VOTES | {"sample": SAMPLE, "n_teachers": None},
        ),
        *(
            (mechanism, shape)
            for change in (
                # chances rise too fast, at all distances, or at one; or a charge is too low
                {"weights": hexadecimal([one + 2**32 for one in WEIGHTS])},
                *(
                    {"weights": hexadecimal([*WEIGHTS[:k], WEIGHTS[k] + 2**32, *WEIGHTS[k + 1 :]])}
                    for k in range(len(WEIGHTS))
                ),
                *({"weights": hexadecimal([WEIGHTS[0], end])} for end in (0, 2**62 - 1)),
                {"weights": hexadecimal([2**61])},
                {"charge": 0.75 - 1e-8},
                {"order": 3.0 + 1e-8},
                {"false_answer": 0.00999999},
            )
            for mechanism, shape in (
                (ABSTAINS | change, VOTES),
                (
                    {"kind": "relabelled-sample", "stream": ABSTAINS | change},
                    VOTES | {"sample": SAMPLE},
                ),
            )
        ),
        *(
            (TABLE_LABELS | {"weights": weights}, VOTES | {"n_teachers": 6})
            for weights in (
                *([], [2**52], [2**52 - 1, 2**50], [2**52, 0], [2**52, True], [2**52, 2.0**50]),
                *([2**52, 2**50, 2**51], [2**52, 4, 3, 2, 1], {"0": 1}),
            )
        ),
    ],
)
def test_terms_out_of_range_are_refused(mechanism, shape):
    with pytest.raises(second.WrongError):
        check_terms(mechanism, shape)
    with pytest.raises((ParameterError, ValidationError)):
        event_of_terms(mechanism, shape)


BOUNDS = (10**12, 10**12 + 1, 10**15, 10**15 + 1, 2**53 - 1, 2**53, 1e12, 1.1e12, 1e-7)
OTHERS = (0, -1, True, None, "x", 2.5, [], [2**52], [1.0], {}, {"sigma": 3}, SPARSE)


def test_both_programs_read_the_same_terms():
    rng, read = random.Random(5), 0
    for _ in range(2000):
        terms = json.loads(json.dumps(rng.choice(SOUND)))
        inner = [value for term in terms for value in term.values() if isinstance(value, dict)]
        place = rng.choice([*terms, *inner])
        place[rng.choice(list(place))] = rng.choice(BOUNDS + OTHERS)
        with suppress(ParameterError, ValidationError):
            event = json_of(event_of_terms(*terms))
            assert certificate._event_of(*terms) == event
            check_terms(*terms)
            read += 1
            continue
        with pytest.raises(second.WrongError):
            check_terms(*terms)
    assert read > 30


@pytest.mark.parametrize(
    ("event", "may"),
    [
        (sums_event(1000.0, 1, 2), False),
        (confident_event(1000.0, 1000.0, 3, 2, 3), False),
        (counts_event(1000.0, 1), False),
        (stable_event(4.0, 10**6, 1), False),
        (sparse_event(20.0, 40.0, 10**6, 2), False),
        (sampled_event(sparse_event(20.0, 40.0, 10**6, 2), 10, 1000, "replace-one"), False),
        (label_event(1e6, 10**6), False),
        (pure_event(0.01, 3), True),
        (table_event((2**52, 2**52 - 5), 10, 4), True),
    ],
)
@pytest.mark.parametrize("epsilon", [1.0, 700.0])
def test_no_delta_of_zero_is_confirmed_where_floats_end(event, may, epsilon):
    part = {"events": [json_of(event)], "epsilon": epsilon, "delta": 0.0}
    assert (second._priced("price", part).verdict == second.CONFIRMED) == may


def test_a_line_says_that_a_game_follows(release, monkeypatch):
    verdicts = [found.verdict for found in second.check_release(str(release))]
    monkeypatch.setattr(certificate, "SLOW", ("counts", "binary-labels"))
    told = [found.verdict for found in second.each_finding(str(release))]
    assert told == [*verdicts[:-1], second.WAIT, verdicts[-1]]
    assert [found.verdict for found in second.check_release(str(release))] == verdicts


def test_a_game_that_takes_too_long_is_left_out_and_minutes_play_it(monkeypatch):
    weights = calibrate_vote_table(PrivacyBudget(1.0, 1e-6), 50, 60).weights
    event = table_event(weights, 50, 60)
    part = {"events": [json_of(event)], "epsilon": 1.0, "delta": 1e-6}
    assert second._priced("price", part).verdict == second.CONFIRMED
    monkeypatch.setattr(games, "minutes_allowed", ContextVar("minutes", default=1e-4))
    left = second._priced("price", part)
    assert left.verdict == second.UNDECIDED
    assert left.detail.endswith(
        "Games of more than 0.0001 minutes (--minutes gives it more) were not played."
    )


def test_a_promise_within_the_error_is_neither_confirmed_nor_refused():
    event = label_event(13.0, 2, 250)
    bounds = second.price_of(json_of(event), 0.5)
    middle = (bounds.lower + bounds.upper) / 2
    part = {"events": [json_of(event)], "epsilon": 0.5, "delta": middle}
    assert second._priced("price", part).verdict == second.UNDECIDED
    assert second._priced("price", part | {"delta": bounds.upper}).verdict == second.CONFIRMED
    assert second._priced("price", part | {"delta": bounds.lower / 2}).verdict == second.REFUSED


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    budget, rng = PrivacyBudget(2.0, 1e-6), np.random.default_rng(0)
    ones = rng.integers(0, 101, 20)
    counts = sb.votes_of_counts(np.column_stack([100 - ones, ones]), classes=["no", "yes"])
    terms = calibrated(budget, 20, release="counts", n_teachers=100)
    ledger = Ledger.in_memory(dataset="registry", budget=budget)
    released = sb.release(counts, terms.mechanism, ledger, budget)
    return write_release(tmp_path_factory.mktemp("original") / "release", released).path


@pytest.fixture
def release(original, tmp_path):
    return Path(shutil.copytree(original, tmp_path / "release"))


def test_it_refuses_less_noise_and_what_is_no_file(release):
    assert second.exit_code(second.check_release(str(release))) == 0

    def less_noise(document):
        document["mechanism"]["scale"] *= 0.99
        document["events"][0]["sigma"] = document["mechanism"]["scale"]

    reseal(release, less_noise)
    assert {one.name for one in second.check_release(str(release)) if one.verdict == "FAILED"} == {
        "price"
    }
    labels = release / "labels.csv"
    labels.unlink()
    os.mkfifo(labels)
    assert second.exit_code(second.check_release(str(release))) == 4


def alone(program, *arguments):
    return subprocess.run(
        [sys.executable, "-I", "-S", str(program), *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_one_file_runs_alone_without_any_package(release, tmp_path):
    one, again = tmp_path / "one.pyz", tmp_path / "again.pyz"
    for target in (one, again):
        subprocess.run([sys.executable, str(PACK), str(target)], check=True)
    assert one.read_bytes() == again.read_bytes()
    done = alone(one, str(release))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1] == "The release is confirmed."
    (release / "votes.csv").write_text("201,49\n")
    refused = alone(one, str(release))
    assert refused.returncode == 4
    assert "'votes.csv' is not listed" in refused.stdout


def test_other_words_than_a_folder_and_minutes_are_refused(release, capsys):
    given = str(release)
    wrong = ((given, "--minutes"), *((given, "--minutes", n) for n in ("two", "0", "nan", "inf")))
    for arguments in ((), (str(release / "none"),), (given, "more"), *wrong):
        with pytest.raises(SystemExit) as ended:
            command_line([*arguments])
        assert ended.value.code == 2
        assert "usage: secretballot_verify [-h] [--minutes" in capsys.readouterr().err
    (release / "votes.csv").write_text("201,49\n")
    assert command_line(["--minutes", "5", given]) == 4  # what is refused stays so


@pytest.mark.parametrize(
    ("n_teachers", "sigma", "epsilon"),
    [(20, 3.3177, 1.0), (7, 0.8, 0.1), (11, 30.0, 0.01), (250, 40.0, 0.05)],
)
def test_a_single_label_is_priced_exactly(n_teachers, sigma, epsilon):
    event = label_event(sigma, 1, n_teachers)
    price = second.price_of(json_of(event), epsilon)
    # the first program reads it off a grid, which costs most near the largest loss
    assert price.upper * (1 - 1e-5) <= delta_upper([event], epsilon) <= 1.1 * price.upper
    assert price.lower == pytest.approx(price.upper, rel=2e-6)


def labels_document(folder, text, classes, rows):
    """Write labels.csv, and return what a certificate says that its check looks at."""
    content = ("query,label,abstained\n" + text).encode()
    (folder / "labels.csv").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    released = {"queries": rows, "answered": rows, "classes": classes, "n_teachers": 250}
    return {
        "released": released | {"count_columns": 0, "labels_sha256": digest},
        "mechanism": {"kind": "noisy-votes", "scale": 20.0},
        "shape": {"n_teachers": 250},
    }


def peak_of(work):
    """Return the most bytes that Python held at once while `work` ran."""
    tracemalloc.start()
    try:
        work()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("text", "classes", "rows", "most"),
    [
        # a block of 16 kB, as bytes, as text and as its lines
        ("".join(f"{k},{'a' * 1000},false\n" for k in range(2000)), ["a" * 1000, "b"], 2000, 2e5),
        # a bit for each query: numbers would take a quarter of a megabyte more
        ("".join(f"{k},a,false\n" for k in range(5000)), ["a", "b"], 5000, 4e5),
        ('0,"a\nb\r",false\n1,"""",false\n', ["a\nb\r", '"'], 2, 4e5),
    ],
    ids=["long", "many", "several lines"],
)
def test_labels_are_checked_in_little_memory(tmp_path, text, classes, rows, most):
    document, said = labels_document(tmp_path, text, classes, rows), list[str]()
    assert peak_of(lambda: said.append(second._check_labels(document, str(tmp_path)))) < most
    assert said[0].startswith(f"labels.csv holds {rows} rows, {rows} answered")


def test_a_line_without_end_is_refused_before_it_fills_memory(tmp_path):
    document = labels_document(tmp_path, "0," + "a" * 30_000_000, ["a", "b"], 1)

    def look():
        with pytest.raises(second.WrongError, match="a line that is longer"):
            second._check_labels(document, str(tmp_path))

    assert peak_of(look) < 6_000_000
