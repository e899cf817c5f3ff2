"""`secretballot learn`: files in, folders out; and every bad input refused in one sentence
before anything is spent."""

import json
import os
import re
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from patients import invoke, words_of_run, write_files
from typer.testing import Result

from secretballot.core.ledger import Ledger
from secretballot.core.ledger.account import AnswerPage

SECRET = "s3cr3t-cell"
N_PRIVATE = 600
PRICE = ["--epsilon", "4", "--delta", "1e-5", "--n-teachers", "20"]
WORDS = {"title": "Stays in the wards", "controller": "The trust", "contact": "office@example.org"}
WORDS |= {"purpose": "To plan beds"}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return write_files(tmp_path, N_PRIVATE)


def learn(folder: Path, *more: str) -> Result:
    """Run a small, complete command; later options override earlier ones."""
    return invoke(*words_of_run(folder, *PRICE, *more))


def test_the_outcome_is_printed_in_lines_and_the_curator_s_words_are_on_every_page(
    files: Path,
) -> None:
    words = [word for name, text in WORDS.items() for word in ("--set", f"{name}={text}")]
    result = learn(files, "--evaluate", str(files / "test.csv"), *words)
    assert result.exit_code == 0, result.stderr
    release = files / "out" / "release"
    certificate = json.loads((release / "certificate.json").read_text())
    assert {**certificate["about"], "purpose": certificate["purpose"]} == WORDS
    (entry,) = Ledger.open_existing(files / "private.csv.ledger").history()
    assert entry.purpose == WORDS["purpose"]
    for name in ("report.html", "README.txt"):
        text = " ".join((release / name).read_text().split())
        assert all(said in text for said in WORDS.values())
    accuracy = re.search(r"^accuracy +([01]\.\d{3}) \(", result.stdout, re.MULTILINE)
    assert accuracy is not None
    # 0.86 at least in 25 trial runs; the mean is 6.6 standard deviations above
    assert float(accuracy[1]) > 0.75
    assert f"publish    {files / 'out' / 'release'}   read README.txt first" in result.stdout
    assert f"secret     {files / 'out' / 'vault'}" in result.stdout
    assert stat.S_IMODE((files / "out" / "vault").stat().st_mode) == 0o700
    assert invoke("verify", str(files / "out"), "--independent").exit_code == 0
    # a finished run is measured again, and nothing else is done
    again = learn(files, "--evaluate", str(files / "test.csv"), *words)
    assert "finished already" in again.stderr
    assert accuracy[0] in again.stdout


def account_of(folder: Path, total: str, dataset: str = "registry") -> list[str]:
    """Make an account, and return the options that pay from it."""
    place = str(folder / "registry.ledger")
    made = ["ledger", "create", place, "--dataset", dataset, "--total", total]
    assert invoke(*made).exit_code == 0
    return ["--ledger", place, "--dataset", "registry", "--total", total]


def test_a_total_below_the_price_makes_no_account(files: Path) -> None:
    result = learn(files, "--total", "0.5,1e-2", "--json")
    assert (result.exit_code, json.loads(result.stdout)["kind"]) == (3, "budget")
    assert not list(files.glob("*.ledger"))
    assert learn(files, "--dry-run", "--total", "0.5,1e-2").exit_code == 3
    assert learn(files).exit_code == 0


def edit(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    """Return a step that rewrites one file."""

    def apply(folder: Path) -> None:
        path = folder / name
        path.write_text(change(path.read_text()))

    return apply


def out_in_use(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "thesis.tex").write_text("years of work")


def other_ledger(folder: Path) -> None:
    account_of(folder, "9,1e-4", "other")


def corrupt_ledger(folder: Path) -> None:
    (folder / "registry.ledger").write_bytes(b"SQLite format 3\x00" + os.urandom(5000))


def label(row: int, value: str) -> Callable[[Path], None]:
    """Return a step that gives one private row another label."""

    def change(text: str) -> str:
        lines = text.splitlines()
        lines[row + 1] = lines[row + 1].rsplit(",", 1)[0] + "," + value
        return "\n".join(lines) + "\n"

    return edit("private.csv", change)


BAD: dict[str, tuple[Callable[[Path], None], tuple[str, ...], str]] = {
    "missing column": (
        edit("private.csv", lambda text: text.replace("dose", SECRET, 1)),
        (),
        "lacks column 'dose' of the public file",
    ),
    "class not declared": (label(7, SECRET), (), r"none of the 2 declared classes \(row 7\)"),
    "unit ids missing": (
        edit("private.csv", lambda text: f"person,{text}".replace("\n", "\n,").rstrip(",")),
        ("--unit", "person"),
        "600 rows without a unit in column 'person'",
    ),
    "folder in use": (out_in_use, (), "holds no run"),
    "ledger of another dataset": (
        other_ledger,
        ("--ledger", "{folder}/registry.ledger"),
        "account of the dataset 'other'",
    ),
    "ledger corrupt": (corrupt_ledger, ("--ledger", "{folder}/registry.ledger"), "edger"),
}


@pytest.mark.parametrize(("prepare", "more", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_sentence_that_costs_nothing(
    files: Path, prepare: Callable[[Path], None], more: tuple[str, ...], message: str
) -> None:
    prepare(files)
    before = sorted(path.name for path in files.iterdir())
    result = learn(files, *(word.format(folder=files) for word in more), "--json")
    assert result.exit_code == 2, (result.stdout, result.stderr)
    sentence = result.stderr.strip().splitlines()[-1]
    assert re.search(message, sentence)
    assert json.loads(result.stdout)["error"] == sentence.removeprefix("secretballot: ")
    assert SECRET not in result.output + result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in files.iterdir()) == before


def failing(error: BaseException) -> Callable[..., Any]:
    def fail(*_: object, **__: object) -> None:
        raise error

    return fail


def test_a_run_broken_off_between_paying_and_answering_goes_on_and_is_paid_once(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    account, shared = files / "registry.ledger", account_of(files, "8,1e-4")
    with monkeypatch.context() as patched:
        patched.setattr(AnswerPage, "commit", failing(KeyboardInterrupt()))
        assert learn(files, *shared).exit_code == 130
    ledger = Ledger.open_existing(account)
    assert [entry.state for entry in ledger.history()] == ["reserved"]
    result = learn(files, *shared, "--json")
    assert result.exit_code == 0, result.stderr
    assert [entry.state for entry in ledger.history()] == ["committed"]
    assert ledger.spent().epsilon == pytest.approx(4.0)


def test_how_many_private_rows_there_are_is_told_to_nobody_but_the_curator(files: Path) -> None:
    """Under add-remove the number is private."""
    result = learn(files, "--json", "--set", "n_records=700")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["notes"] == []
    # a number of its own: the digits may well stand inside a digest
    assert not re.search(
        rf"\b{N_PRIVATE}\b", (files / "out" / "release" / "certificate.json").read_text()
    )
