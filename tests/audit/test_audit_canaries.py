"""Canaries: the tables do what they should, the bound is valid and has power, and one teacher's
vote is what moves."""

import json
import sys

import numpy as np
import pytest

from secretballot.accounting import PrivacyBudget, calibrate_gaussian
from secretballot.audit import audit_canaries, canary_bound
from secretballot.audit.canaries import CanaryTask
from secretballot.exceptions import DataError

RNG = np.random.default_rng(20240209)
DELTA, QUERIES = 1e-6, 40


def counted(sigma, coins):
    """Scores of one canary a run from noisy counts of its vote, as `learn` would release them."""
    shifts = coins[:, None] * np.ones(QUERIES)
    return (shifts + RNG.normal(0, sigma, shifts.shape)).sum(axis=1) - QUERIES / 2


def bound(sigma, runs, *, share=1.0, alpha=0.01):
    coins = RNG.random(runs) < 0.5
    return canary_bound(counted(sigma, coins), coins, delta=DELTA, alpha=alpha, share=share)[2]


@pytest.mark.parametrize(
    ("epsilon", "noise", "runs", "share", "promise", "least"),
    [
        (4.0, 1.0, 1000, 1.0, 0.2, 20),  # true noise certifies something
        (8.0, 1.0, 500, 1.0, 0.8, 17),  # a promise of a tenth of the truth is refuted
        (2.0, 0.3, 2000, 0.15, 2.0, 17),  # three tenths of the noise are caught
    ],
)
def test_more_than_is_promised_is_caught(epsilon, noise, runs, share, promise, least):
    sigma = calibrate_gaussian(PrivacyBudget(epsilon, DELTA), QUERIES)
    found = [bound(noise * sigma, runs, share=share) for _ in range(20)]
    assert sum(one > promise for one in found) >= least
    # and true noise passes
    assert all(bound(sigma, runs, share=share) <= epsilon for _ in range(20))


def rows_of(table):
    return [line.split(",") for line in table.decode().splitlines()]


def test_tables_differ_by_the_canaries_that_are_there():
    task = CanaryTask(3, 4, 20, "counts", "add-remove")
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


def test_under_replace_one_the_number_of_records_is_the_same():
    task = CanaryTask(2, 4, 20, "labels", "replace-one")
    lengths = {
        len(rows_of(task.private_table(present))) for present in ([False, False], [True, False])
    }
    assert len(lengths) == 1


def test_scores_are_read_in_the_order_of_the_points():
    task = CanaryTask(2, 4, 5, "counts", "add-remove")
    answers = {3: 9, 0: 1, 4: 0, 1: 1, 2: 0}
    fields = {}
    for number, (point, count) in enumerate(answers.items()):
        fields |= {
            f"labels.csv:query[{number}]": point,
            f"labels.csv:noisy_count[yes][{number}]": count,
        }
    assert task.scores(fields, 1.0).tolist() == [1.0, 8.0]
    del fields["labels.csv:query[4]"]
    with pytest.raises(DataError, match="no answers to all queries"):
        task.scores(fields, 1.0)


PROGRAM = """
import csv, json, pathlib, random, sys
rows = list(csv.reader(open("private.csv")))[1:]
votes = sum(row[0] == "1" for row in rows)
points = list(csv.reader(open("public.csv")))[1:]
sigma = 0.1
out = pathlib.Path("out/release")
out.mkdir(parents=True)
counts = [votes * (point[0] == "1") + random.gauss(0, sigma) for point in points]
lines = [f"{i},{count}" for i, count in enumerate(counts)]
(out / "labels.csv").write_text("query,noisy_count[yes]\\n" + "\\n".join(lines) + "\\n")
(out / "certificate.json").write_text(json.dumps({"mechanism": {"scale": sigma}}))
"""


def test_a_whole_audit_runs_the_program():
    program = (sys.executable, "-S", "-c", PROGRAM)
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
    assert found.right == 16
    assert not found.passed
    assert found.bound <= found.power
    assert "1 canary a run, 2 teachers, 26 queries" in found.text()
    assert "FAILED" in found.text()
    assert "cannot fail" not in found.text()
    assert json.loads(json.dumps(found.to_json()))["task"]["canaries"] == 1
