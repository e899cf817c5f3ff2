"""`learn --dry-run`: what a run would cost and ask, and nothing spent."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest
from patients import document_of, invoke, words_of_run, write_files

from secretballot.report.certificate.models import stated


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_files(tmp_path, 900)


@pytest.mark.parametrize(
    "more",
    [
        (),
        (
            *("--n-teachers", "60", "--set", "n_queries=40", "--student", "tree"),
            *("--set", "mechanism=labels"),
        ),
        ("--n-teachers", "400", "--set", "mechanism=sparse-vector:max_abstentions=2"),
        ("--method", "record-votes", "--set", "votes_per_record=4", "--set", "n_queries=120"),
    ],
    ids=lambda more: " ".join(more) or "moments",
)
def test_what_is_said_before_is_what_the_certificate_says_after(
    files: Path, more: tuple[str, ...]
) -> None:
    words = words_of_run(files, *more, "--set", "exclude=report,student", "--json")
    said = document_of(invoke(*words, "--dry-run"))
    shown = invoke(*words[:-1], "--dry-run")  # for a person
    assert shown.exit_code == 0
    assert f"epsilon {said['epsilon']:g}" in shown.stdout
    assert not (files / "out").exists()
    assert not (files / "private.csv.ledger").exists()
    assert said["account"]["exists"] is False

    done = document_of(invoke(*words))
    certificate = json.loads((files / "out" / "release" / "certificate.json").read_text())
    mechanism = stated(certificate)
    assert (said["epsilon"], said["delta"]) == (certificate["epsilon"], certificate["delta"])
    assert said["method"] == done["method"]
    assert said["account"]["path"] == done["account"]
    if said["method"] == "record-moments":
        multiple = mechanism["sigma"] / mechanism["bound"]
        assert said["sigma"] == pytest.approx(multiple, rel=1e-3)
    elif mechanism["kind"] == "sparse-vector":
        assert said["queries"] == mechanism["n_queries"]
    else:
        assert said["sigma"] == mechanism["sigma"]
        assert said["queries"] == mechanism["n_queries"]
    if not more:  # and after the run, of its account
        after = document_of(invoke(*words, "--out", str(files / "b"), "--dry-run"))
        assert after["account"]["releases"] == 1
        assert after["account"]["left"]["epsilon"] == pytest.approx(18.0)


def test_few_records_are_for_the_curator_alone(files: Path) -> None:
    lines = (files / "private.csv").read_text().splitlines(keepends=True)
    (files / "private.csv").write_text("".join(lines[:21]))
    words = words_of_run(files, "--set", "exclude=report,student", "--json")
    refused = invoke(*words)
    assert refused.exit_code == 2
    assert "--confirm records" in refused.stderr
    dry = invoke(*words, "--dry-run")
    assert json.loads(dry.stdout)["asks"] == []
    plain = invoke(*words[:-1], "--dry-run")
    assert "would ask  curator only, the private records are fewer" in plain.stdout
    done = invoke(*words, "--confirm", "records")
    assert done.exit_code == 0, done.stderr
    assert "curator only: the private records are fewer" in done.stderr
    assert json.loads(done.stdout)["notes"] == []
    assert "confirm" not in (files / "out" / "vault" / "run.json").read_text()


def test_public_labels_say_before_payment_that_noise_hides_a_rare_class(files: Path) -> None:
    table = pd.read_csv(files / "test.csv")
    table.loc[table.index >= 3, "ill"] = "no"
    table["ill"] = table["ill"].mask(table.index < 3, "yes")  # one row in a hundred
    table.to_csv(files / "rare.csv", index=False)
    words = words_of_run(files, "--set", "exclude=report,student")
    worthless = "noise hides fewer than 50: the release would be worthless for it"
    for more, told in (
        (
            ("--evaluate", files / "rare.csv", "--set", "n_records=900"),
            f"About 9 of the .* {worthless}",
        ),
        (("--evaluate", files / "rare.csv"), f"Of fewer than 5,000 records too few .* {worthless}"),
        (("--evaluate", files / "rare.csv", "--set", "n_records=9000"), ""),
        (("--evaluate", files / "test.csv"), ""),
        ((), "whether noise hides a rare class is unknown"),
    ):
        shown = invoke(*words, *more, "--dry-run")
        assert shown.exit_code == 0, shown.stderr
        found = " ".join(re.findall("^forecast +(.*)$", shown.stdout, re.MULTILINE))
        assert re.match(told, found) if told else not found
    done = invoke(*words, "--evaluate", files / "rare.csv", "--json")
    assert worthless in document_of(done)["notes"][0]


def test_an_estimate_is_taken_off_the_price_of_the_answers(files: Path) -> None:
    words = words_of_run(
        files, "--n-teachers", "200", "--student", "tree", "--set", "mechanism=labels"
    )
    words += ["--ledger", "own", "--json"]
    estimate = ["--set", "n_queries=estimate:epsilon=0.4"]
    whole = document_of(invoke(*words, "--dry-run"))
    said = document_of(invoke(*words, *estimate, "--dry-run"))
    assert said["terms"]["estimate"] == 0.4
    assert said["epsilon"] == whole["epsilon"]
    left = ["--epsilon", str(whole["epsilon"] - 0.4)]
    rest = document_of(invoke(*words, *left, "--dry-run"))
    assert (said["queries"], said["sigma"]) == (rest["queries"], pytest.approx(rest["sigma"]))
