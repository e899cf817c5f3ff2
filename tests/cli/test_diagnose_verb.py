"""`secretballot diagnose`: a warning first, private files only, and one sentence for whatever
does not fit."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from secretballot.cli import app
from secretballot.privacy.ledger import Ledger


def table(count: int, seed: int, *, labels: bool = True) -> str:
    rng = np.random.default_rng(seed)
    a = rng.normal(size=count).round(3)
    ill = np.where(a + rng.normal(0, 0.5, size=count) > 0, "yes", "no")
    rows = [f"{x},{label}" if labels else f"{x}" for x, label in zip(a, ill, strict=True)]
    return "\n".join(["a,ill" if labels else "a", *rows]) + "\n"


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a finished study, its files and labelled points."""
    folder = tmp_path_factory.mktemp("study")
    for name, text in (
        ("private", table(600, 1)),
        ("public", table(80, 2, labels=False)),
        ("labelled", table(240, 3)),
    ):
        (folder / f"{name}.csv").write_text(text)
    words = [
        "learn",
        str(folder / "private.csv"),
        str(folder / "public.csv"),
        "--target",
        "ill",
        "--classes",
        "no,yes",
    ]
    words += ["--epsilon", "2", "--delta", "1e-5", "--teachers", "20", "--out", str(folder / "out")]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.stderr
    return folder


def diagnose(study: Path, *more: str) -> Result:
    words = [
        "diagnose",
        str(study / "out"),
        "--public",
        str(study / "public.csv"),
        "--max-unstable",
        "2",
    ]
    return CliRunner().invoke(app, [*words, *more])


def files(study: Path) -> list[str]:
    return [
        "--private",
        str(study / "private.csv"),
        "--labelled",
        str(study / "labelled.csv"),
        "--ensembles",
        "2",
    ]


def test_a_person_reads_a_warning_first(study: Path) -> None:
    result = diagnose(study, *files(study))
    assert result.exit_code == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0].startswith("NOT RELEASABLE")
    assert lines[1] == "votes        of 20 teachers kept in the vault, on 80 public points"
    for pattern in (
        r"^margins +median \d+ of 20 votes",
        r"^expected +margin: median 0\.\d{3} of 1/2, standard error 0\.\d{3}, from 2 ensembles$",
        r"^  at most 0\.05 at +\d+\.\d % of the points \(\d+\.\d to \d+\.\d %\)$",
        r"^agreement +with one model of all records: the vote \d+\.\d %",
        r"^agreement +with the labelled file: the vote \d+\.\d %",
        r"^stability +for a sparse vector of epsilon 2, delta 1e-05:$",
        r"^  T +2: needs a margin of \d+, +\d+\.\d % unstable, answers \d+\.\d of \d+\.\d asked$",
        r"^noise +tau 0\.\d\d",
    ):
        assert re.search(pattern, result.stdout, re.MULTILINE), pattern
    assert lines[-1] == f"keep secret  {study / 'out' / 'vault' / 'diagnostics'}/"


def test_a_machine_reads_it_in_a_field(study: Path) -> None:
    result = diagnose(study, "--epsilon", "3", "--json", "--out", str(study / "elsewhere"))
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["releasable"] is False
    assert document["notice"].startswith("NOT RELEASABLE")
    assert document["budget"] == {"epsilon": 3.0, "delta": 1e-5}
    assert str(study / "elsewhere" / "diagnostics.json") in document["files"]


def test_nothing_is_charged_and_the_release_still_verifies(study: Path) -> None:
    account = study / "private.csv.ledger"
    before = account.read_bytes()
    assert diagnose(study).exit_code == 0
    assert account.read_bytes() == before
    assert len(Ledger.open_existing(account).history()) == 1
    assert CliRunner().invoke(app, ["verify", str(study / "out")]).exit_code == 0


def test_an_interrupted_run_goes_on_after_a_look_was_refused(study: Path, tmp_path: Path) -> None:
    words = [
        "learn",
        str(study / "private.csv"),
        str(study / "public.csv"),
        "--target",
        "ill",
        "--classes",
        "no,yes",
    ]
    words += [
        "--epsilon",
        "2",
        "--delta",
        "1e-5",
        "--teachers",
        "20",
        "--out",
        str(tmp_path / "out"),
    ]
    assert CliRunner().invoke(app, words).exit_code == 0
    (tmp_path / "out" / "release").rename(tmp_path / "gone")
    refused = CliRunner().invoke(
        app, ["diagnose", str(tmp_path / "out"), "--public", str(study / "public.csv")]
    )
    assert (refused.exit_code, "finish the run first" in refused.stderr) == (2, True)
    seen = ["--schema", str(tmp_path / "gone" / "schema.json"), "--max-unstable", "2"]
    looked = CliRunner().invoke(
        app, ["diagnose", str(tmp_path / "out"), "--public", str(study / "public.csv"), *seen]
    )
    assert looked.exit_code == 0, looked.stderr
    again = CliRunner().invoke(app, words)
    assert again.exit_code == 0, again.stderr
    first, second = (
        json.loads((at / "certificate.json").read_text())
        for at in (tmp_path / "gone", tmp_path / "out" / "release")
    )
    assert first["released"] == second["released"]
    assert len(Ledger.open_existing(study / "private.csv.ledger").history()) == 2


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--out", "{}/out/release"], "lies in the release"),
        (["--out", "{}/out/release/new"], "NOT RELEASABLE"),
        (["--out", "{}"], "something else than diagnoses"),
        (["--max-unstable", "1,x"], "--max-unstable"),
        (["--max-unstable", ""], "--max-unstable"),
        (["--max-unstable", "0"], "--max-unstable"),
        (["--max-unstable", "9" * 5000], "--max-unstable"),
        (["--max-unstable", "10001"], "at most 10,000"),
        (["--max-unstable", ",".join("1" * 21)], "--max-unstable has 21 numbers"),
        (["--epsilon", "1e-5"], "takes noise of"),
        (["--epsilon", "1e9"], "--epsilon is 1000000000.0"),
        (["--epsilon", "nan"], "--epsilon is nan"),
        (["--ensembles", "0"], "ensembles"),
        (["--resampling", "jackknife"], "jackknife"),
        (["--epsilon", "-1"], "epsilon"),
        (
            ["--public", "{}/private.csv", "--private", "{}/public.csv"],
            "is not the one that this run learned from",
        ),
        (["--labelled", "{}/public.csv"], "'ill'"),
        (["--schema", "{}/public.csv"], "no JSON"),
    ],
)
def test_bad_input_is_one_sentence_and_code_two(study: Path, more: list[str], words: str) -> None:
    result = diagnose(study, *[word.format(study) for word in more])
    assert result.exit_code == 2
    assert words in result.stderr
    assert len(result.stderr) < 400
    assert result.stdout == ""


def test_any_seed_will_do(study: Path) -> None:
    result = diagnose(study, "--labelled", str(study / "labelled.csv"), "--seed", str(2**40))
    assert result.exit_code == 0, result.stderr
    assert "noise" in result.stdout


def test_other_folders_are_no_vaults(study: Path, tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere", study / "out" / "release"):
        result = CliRunner().invoke(
            app, ["diagnose", str(place), "--public", str(study / "public.csv")]
        )
        assert result.exit_code == 2
        assert "no vault of a run of `learn`" in result.stderr
