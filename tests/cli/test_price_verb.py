"""`secretballot price` and `learn --dry-run`: what a run would cost and ask, and nothing spent."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from patients import N_PUBLIC, words_of_run, write_files
from typer.testing import CliRunner, Result

from secretballot.aggregation.laplace import laplace_deviation
from secretballot.cli import app
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.ledger import Ledger

PRICE = ["price", "--epsilon", "1", "--delta", "1e-6", "--public", "500"]


def invoke(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def document_of(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_files(tmp_path, 900)


@pytest.mark.parametrize(
    "more",
    [
        (),
        ("--method", "votes", "--teachers", "60"),
        ("--teachers", "60", "--release", "labels", "--queries", "40", "--student", "tree"),
        ("--teachers", "60", "--strategy", "margin", "--queries", "40"),
        ("--teachers", "400", "--aggregator", "sparse-vector", "--max-unstable", "2"),
        ("--teachers", "60", "--aggregator", "laplace"),
        ("--teachers", "60", "--aggregator", "vote-table", "--queries", "40"),
        *[
            (
                "--teachers",
                "60",
                "--queries",
                "40",
                "--aggregator",
                name,
                "--max-answers",
                "9",
                *more,
            )
            for name, more in (("confident", ()), ("interactive", ("--strategy", "margin")))
        ],
        ("--method", "record-votes", "--votes-per-record", "4", "--queries", "120"),
        ("--neighbours", "replace-one"),
    ],
    ids=lambda more: " ".join(more) or "moments",
)
def test_what_is_said_before_is_what_the_certificate_says_after(
    files: Path, more: tuple[str, ...]
) -> None:
    words = words_of_run(files, *more, "--without", "report,student", "--json")
    said = document_of(invoke(*words, "--dry-run"))
    assert not (files / "out").exists()
    assert not (files / "private.csv.ledger").exists()
    assert said["account"]["exists"] is False

    done = document_of(invoke(*words))
    certificate = json.loads((files / "out" / "release" / "certificate.json").read_text())
    mechanism = certificate["mechanism"]
    assert (said["epsilon"], said["delta"]) == (certificate["epsilon"], certificate["delta"])
    assert said["method"] == done["method"]
    assert said["account"]["path"] == done["account"]
    if said["method"] == "moments":
        multiple = mechanism["sigma"] / mechanism["bound"]
        assert said["sigma"] == pytest.approx(multiple, rel=1e-3)
    elif mechanism["name"] == "sparse-vector":
        assert said["answered_by_margin"]["1"] > 0.5
        assert said["queries"] == mechanism["n_queries"]
    elif mechanism["name"] == "laplace":
        assert said["sigma"] == laplace_deviation(mechanism["scale"])
        assert said["queries"] == mechanism["n_queries"]
    elif mechanism["name"] == "vote-table":
        event = certificate["events"][0]
        assert event["weights"] == mechanism["weights"]
        # for 60 teachers, an even number: the slope at an even vote
        moved = 0.5 - mechanism["weights"][1] / 2**53
        assert said["sigma"] == pytest.approx(1 / (math.sqrt(2 * math.pi) * moved))
        assert said["queries"] == mechanism["n_queries"] == event["queries"] == 40
    else:
        assert said["sigma"] == mechanism["sigma"]
        assert said["queries"] == mechanism["n_queries"]
    after = document_of(invoke(*words, "--out", str(files / "b"), "--dry-run"))
    assert after["account"]["releases"] == 1
    assert after["account"]["left"]["epsilon"] == pytest.approx(8.0)


def test_numbers_alone_say_the_same_as_files(files: Path) -> None:
    options = ["--method", "votes", "--teachers", "60", "--release", "labels", "--queries", "40"]
    by_files = document_of(invoke(*words_of_run(files, *options), "--dry-run", "--json"))
    numbers = ["--epsilon", "2", "--delta", "1e-5", "--public", str(N_PUBLIC)]
    by_numbers = document_of(invoke("price", *numbers, *options, "--json"))
    assert {**by_files, "account": None} == by_numbers


def test_a_person_reads_price_noise_expectation_and_questions() -> None:
    labels = ["--teachers", "200", "--release", "labels", "--queries", "50"]
    result = invoke(*PRICE, "--method", "votes", *labels)
    assert result.exit_code == 0
    for words in (
        "price        epsilon 1, delta 1e-06",
        "released     50 labels",
        "nothing",
    ):
        assert words in result.stdout
    assert "at a margin of 200 of 200 votes" in result.stdout
    poor = invoke(*PRICE, "--method", "votes", "--teachers", "2", "--records", "30")
    assert poor.exit_code == 0
    assert "would ask    --force noise: sigma" in poor.stdout
    assert "would ask    --force records: 30 stated records are fewer than about 106" in poor.stdout


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--max-unstable", "3"), "--max-unstable is 3, and the gaussian aggregator answers every"),
        (("--method", "votes", "--records", "900"), "--columns is missing"),
        (("--public", "0"), "--public is 0"),
        (("--classes", "1"), "--classes is 1"),
        (("--delta", "0", "--method", "moments"), "--delta is 0"),
        (("--teachers", "9", "--votes-per-record", "2"), "leave one of the two out"),
        (("--teachers", "0", "--method", "votes"), "n_teachers"),
    ],
)
def test_bad_numbers_are_one_sentence(more: tuple[str, ...], words: str) -> None:
    result = invoke(*PRICE, *more)
    assert result.exit_code == 2
    assert words.replace("n_teachers", "--teachers") in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_dry_run_says_that_an_account_is_full(files: Path) -> None:
    Ledger(files / "l", dataset="d", budget=PrivacyBudget(1.0, 1e-5))
    shared = ["--ledger", str(files / "l"), "--dataset", "d", "--dry-run"]
    result = invoke(*words_of_run(files, *shared))
    assert result.exit_code == 0, result.stderr
    assert "epsilon 1 and delta 1e-05 left of epsilon 1" in result.stdout
    assert "the run would be refused" in result.stdout


def test_a_dry_run_refuses_what_the_run_would(files: Path) -> None:
    result = invoke(*words_of_run(files, "--classes", "no,maybe"), "--dry-run")
    assert result.exit_code == 2
    assert not (files / "out").exists()


def test_hopeless_settings_stop_and_go_on_by_name(files: Path) -> None:
    words = words_of_run(files, "--epsilon", "50", "--without", "report,student", "--json")
    refused = invoke(*words)
    assert refused.exit_code == 2
    assert json.loads(refused.stdout)["parameter"] == "force"
    assert not (files / "out").exists()
    done = document_of(invoke(*words, "--force", "epsilon"))
    assert any("protects hardly anything" in note for note in done["notes"])
    wrong = invoke(*words, "--force", "speed")
    assert wrong.exit_code == 2
    assert "--force is 'speed'" in wrong.stderr


def test_few_records_are_for_the_curator_alone(files: Path) -> None:
    lines = (files / "private.csv").read_text().splitlines(keepends=True)
    (files / "private.csv").write_text("".join(lines[:21]))
    words = words_of_run(files, "--without", "report,student", "--json")
    refused = invoke(*words)
    assert refused.exit_code == 2
    assert "--force records" in refused.stderr
    dry = invoke(*words, "--dry-run")
    assert json.loads(dry.stdout)["asks"] == []
    plain = invoke(*words[:-1], "--dry-run")
    assert "would ask    curator only, --force records" in plain.stdout
    done = invoke(*words, "--yes")
    assert done.exit_code == 0, done.stderr
    assert "curator only: the private records are fewer" in done.stderr
    assert json.loads(done.stdout)["notes"] == []
    assert "force" not in (files / "out" / "vault" / "run.json").read_text()


def test_a_run_of_its_own_account_says_that_it_counts_nothing_else(files: Path) -> None:
    words = words_of_run(files, "--own-ledger", "--without", "student")
    result = invoke(*words)
    assert result.exit_code == 0, result.stderr
    assert "account      of this run alone" in result.stdout
    assert not (files / "private.csv.ledger").exists()
    assert "by an account of its own" in invoke("verify", str(files / "out")).stdout
    page = " ".join((files / "out" / "release" / "report.html").read_text().split())
    assert "This release has an account of its own: epsilon 2 and delta 1e-5" in page
    shared = invoke(*words_of_run(files, "--out", str(files / "b"), "--without", "student"))
    assert shared.exit_code == 0, shared.stderr
    assert "epsilon 2 of 10 spent" in shared.stdout
    assert "by a durable ledger" in invoke("verify", str(files / "b")).stdout
    page = " ".join((files / "b" / "release" / "report.html").read_text().split())
    assert "Of epsilon 10 for each record of this dataset: earlier releases 0 (grey)" in page


def test_an_estimate_is_taken_off_the_price_of_the_answers(files: Path) -> None:
    words = words_of_run(files, "--teachers", "200", "--release", "labels", "--student", "tree")
    words += ["--own-ledger", "--yes", "--without", "report,student", "--json"]
    estimate = ["--estimate-epsilon", "0.4"]
    whole = document_of(invoke(*words, "--dry-run"))
    said = document_of(invoke(*words, *estimate, "--dry-run"))
    assert "unless an estimate at epsilon 0.4" in said["released"]
    assert said["epsilon"] == whole["epsilon"]
    left = ["--epsilon", str(whole["epsilon"] - 0.4)]
    rest = document_of(invoke(*words, *left, "--dry-run"))
    assert (said["queries"], said["sigma"]) == (rest["queries"], pytest.approx(rest["sigma"]))


@pytest.mark.parametrize(
    "more", [("--release", "counts"), ("--release", "labels", "--queries", "40")]
)
def test_a_dry_run_refuses_an_estimate_that_the_run_would_refuse(
    files: Path, more: tuple[str, ...]
) -> None:
    words = words_of_run(files, "--teachers", "200", "--estimate-epsilon", "0.4", *more)
    said, done = invoke(*words, "--dry-run"), invoke(*words, "--yes")
    assert (said.exit_code, done.exit_code) == (2, 2)
    assert "--estimate-epsilon pays for an estimate" in said.stderr
    assert said.stderr.splitlines()[-1] == done.stderr.splitlines()[-1]
