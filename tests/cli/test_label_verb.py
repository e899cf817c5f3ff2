"""`secretballot label`: votes from anywhere in, released labels out."""

import json
import re

import numpy as np
import pytest

from patients import invoke

N_QUERIES, N_TEACHERS = 200, 100


@pytest.fixture
def counts(tmp_path):
    """Write counts of two classes, nearly unanimous, and return the file."""
    ones = np.where(np.random.default_rng(0).random(N_QUERIES) < 0.5, 2, N_TEACHERS - 2)
    np.save(tmp_path / "counts.npy", np.column_stack([N_TEACHERS - ones, ones]))
    return tmp_path / "counts.npy"


def label(votes, *more):
    words = ["label", str(votes), "--kind", "counts", "--classes", "a,b"]
    words += ["--epsilon", "3", "--delta", "1e-5", "--ledger", "own", "--set", "exclude=report"]
    return invoke(*words, "--out", str(votes.parent / "out"), *more)


def test_counts_become_labels_with_a_certificate(counts):
    dry = json.loads(label(counts, "--n-queries", "40", "--dry-run", "--json").stdout)
    assert (dry["verb"], dry["queries"], dry["epsilon"]) == ("label", 40, 3)
    assert not (counts.parent / "out").exists()
    result = label(counts, "--n-queries", "40", "--format", "parquet", "--json")
    assert result.exit_code == 0, result.stderr
    assert (counts.parent / "out" / "release" / "labels.parquet").is_file()
    document = json.loads(result.stdout)
    assert (document["queries"], document["answered"]) == (40, 40)
    lines = (counts.parent / "out" / "release" / "labels.csv").read_text().splitlines()
    assert lines[0] == "query,label,abstained"
    truth = np.load(counts).argmax(axis=1)
    answers = [line.split(",") for line in lines[1:]]
    right = [name == "ab"[truth[int(row)]] for row, name, _ in answers]
    assert np.mean(right) > 0.8
    assert len({row for row, _, _ in answers}) == 40
    assert invoke("verify", str(counts.parent / "out")).exit_code == 0
    refused = invoke("predict", str(counts.parent / "out"), str(counts))
    assert "labels alone have none" in refused.stderr


def test_laplace_labels_need_no_delta(counts):
    result = label(counts, "--delta", "0", "--epsilon", "4", "--mechanism", "laplace")
    assert result.exit_code == 0, result.stderr
    assert re.search(r"note: \d+ of 200 public points are asked, as many as", result.stderr)
    found = json.loads((counts.parent / "out" / "release" / "certificate.json").read_text())
    assert (found["delta"], found["events"][0]["kind"]) == (0, "pure")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--delta", "0"), "--delta is 0.*Laplace noise"),
        (("--n-queries", "201"), "is 201"),
        (("--n-teachers", "99"), "a sum that is not the number of teachers"),
        (("--mechanism", "sparse-vector:release=counts"), "sparse-vector has no setting 'release'"),
        (("--mechanism", "confident:threshold=500"), "threshold is 500, more votes than"),
        (("--mechanism", "interactive"), "contradicts a student"),
        (("--mechanism", "auto:threshold"), "write NAME:key=value"),
        (("--epsilon", "0.1", "--mechanism", "sparse-vector"), "at least|smaller max_abstentions"),
        (("--kind", "ballots"), "--kind is 'ballots'; it must be 'votes' or 'counts'"),
        (("--epsilon", "0.001"), r"1 question before .* \[--confirm noise\]"),
    ],
)
def test_bad_input_is_one_sentence_that_costs_nothing(counts, more, message):
    result = label(counts, *more, "--json")
    assert result.exit_code == 2, (result.stdout, result.stderr)
    sentence = result.stderr.strip().splitlines()[-1]
    assert re.search(message, sentence)
    assert json.loads(result.stdout)["error"] == sentence.removeprefix("secretballot: ")
    assert [path.name for path in counts.parent.iterdir()] == [counts.name]
