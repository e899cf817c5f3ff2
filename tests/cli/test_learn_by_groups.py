"""`secretballot learn` with budgets of groups: what it writes, what the account says, bad input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from patients import rows, words_of_run, write_files
from typer.testing import CliRunner, Result

from secretballot.cli import app
from secretballot.privacy.ledger import Ledger
from secretballot.verify_release import main as independent_verifier

N_PRIVATE = 900
GROUPS = (
    *("--budget-column", "consent", "--groups-are-public"),
    *("--group-budget", "strict=0.2,1e-5", "--group-budget", "open=2,1e-5"),
)
VOTES = (
    *GROUPS,
    *("--teachers", "30", "--queries", "20"),
    *("--group-share", "strict=1", "--group-share", "open=2"),
)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Files whose private table has a column of consents, the same for all of a patient."""
    folder = write_files(tmp_path, N_PRIVATE)
    table = rows(N_PRIVATE, 1)
    table["consent"] = np.where(table["patient"] % 3 == 0, "strict", "open")
    table.to_csv(folder / "private.csv", index=False)
    return folder


def learn(folder: Path, *more: str, unit: bool = False) -> Result:
    return CliRunner().invoke(app, words_of_run(folder, *more, "--without", "report", unit=unit))


def certificate_in(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "out/release/certificate.json").read_text())
    return found


@pytest.mark.parametrize("unit", [False, True])
def test_every_group_has_its_budget_and_the_column_is_no_feature(files: Path, unit: bool) -> None:
    result = learn(files, *GROUPS, unit=unit)
    assert result.exit_code == 0, result.stderr
    lines = [line for line in result.stdout.splitlines() if line.startswith("group ")]
    noun = "user" if unit else "record"
    assert lines[0].startswith("group        strict: epsilon 0.2, delta 1e-05; a " + noun)
    assert lines[1] == f"group        open: epsilon 2, delta 1e-05; a {noun} weighs 1"
    certificate = certificate_in(files)
    groups = certificate["mechanism"]["groups"]
    assert [(group["name"], group["epsilon"]) for group in groups] == [("strict", 0.2), ("open", 2)]
    assert groups[0]["bound"] < 0.3 * groups[1]["bound"]
    assert (certificate["epsilon"], certificate["unit"]) == (2, noun)
    schema = json.loads((files / "out/release/schema.json").read_text())
    assert "consent" not in json.dumps(schema)
    assert CliRunner().invoke(app, ["verify", str(files / "out")]).exit_code == 0
    assert independent_verifier([str(files / "out/release")]) == 0
    shown = CliRunner().invoke(app, ["ledger", "show", str(files / "private.csv.ledger")]).stdout
    assert "spent on the budget group strict: epsilon 0.2, delta 1e-05" in shown
    # the same command again finds the finished run; other budgets are another run
    assert learn(files, *GROUPS, unit=unit).exit_code == 0
    other = learn(files, *GROUPS[:3], "--group-budget", "strict=1,1e-5", *GROUPS[5:], unit=unit)
    assert other.exit_code == 2
    assert Ledger.open_existing(files / "private.csv.ledger").releases() == 1


@pytest.mark.parametrize("unit", [False, True])
def test_votes_of_every_group_count_for_as_much_as_its_budget_allows(
    files: Path, unit: bool
) -> None:
    quoted = learn(files, *VOTES, "--dry-run", "--json", unit=unit)
    assert quoted.exit_code == 0, quoted.stderr
    expected = json.loads(quoted.stdout)
    assert not (files / "out").exists()
    result = learn(files, *VOTES, unit=unit)
    assert result.exit_code == 0, result.stderr
    certificate = certificate_in(files)
    mechanism = certificate["mechanism"]
    strict, full = mechanism["groups"]
    lines = [line for line in result.stdout.splitlines() if line.startswith("group ")]
    weight = strict["weight"] / 100
    promised = "strict: epsilon 0.2, delta 1e-05"
    assert lines[0] == f"group        {promised}; 10 teachers, whose votes weigh {weight:.3g}"
    assert (strict["teachers"], full["teachers"], full["weight"]) == (10, 20, 100)
    assert expected["groups"][0]["weight"] == weight
    assert (expected["teachers"], expected["queries"]) == (30, 20)
    assert expected["votes"] == certificate["released"]["n_teachers"]
    assert expected["sigma"] == mechanism["sigma"]
    assert certificate["unit"] == ("user" if unit else "record")
    assert "consent" not in (files / "out/release/schema.json").read_text()
    assert CliRunner().invoke(app, ["verify", str(files / "out")]).exit_code == 0
    assert independent_verifier([str(files / "out/release")]) == 0
    shown = CliRunner().invoke(app, ["ledger", "show", str(files / "private.csv.ledger")]).stdout
    assert "spent on the budget group strict: epsilon 0.2, delta 1e-05" in shown
    # the same command again finds the finished run; other shares are another run
    assert learn(files, *VOTES, unit=unit).exit_code == 0
    assert learn(files, *VOTES[:-1], "open=5", unit=unit).exit_code == 2
    assert Ledger.open_existing(files / "private.csv.ledger").releases() == 1


def test_a_dry_run_of_votes_speaks_in_votes_and_public_sizes_divide_the_teachers(
    files: Path,
) -> None:
    words = (*VOTES[:-4], "--neighbours", "replace-one", "--release", "labels", "--dry-run")
    quoted = learn(files, *words, "--own-ledger")
    assert quoted.exit_code == 0, quoted.stderr
    said = quoted.stdout
    assert "open: epsilon 2, delta 1e-05; 20 teachers of weight 1" in said
    assert "strict: epsilon 0.2, delta 1e-05; 10 teachers of weight 0.1" in said
    assert "at a margin of" in said
    assert "of 30 votes" not in said
    stated = (*GROUPS, *VOTES[-4:], "--queries", "20", "--records", str(N_PRIVATE), "--dry-run")
    assert 50 < json.loads(learn(files, *stated, "--json").stdout)["teachers"] <= N_PRIVATE // 10
    counts = learn(files, *VOTES, "--release", "counts", "--dry-run").stdout
    assert "the mean of all 20 counts is off by" in counts


def test_a_dry_run_says_what_each_group_is_promised_and_about_how_much_it_counts(
    files: Path,
) -> None:
    quoted = learn(files, *GROUPS, "--dry-run")
    assert quoted.exit_code == 0, quoted.stderr
    assert not (files / "out").exists()
    lines = [line for line in quoted.stdout.splitlines() if line.startswith("group ")]
    assert lines[1] == "group        open: epsilon 2, delta 1e-05; weight about 1"
    document = json.loads(learn(files, *GROUPS, "--dry-run", "--json").stdout)
    strict = document["groups"][0]
    assert (strict["name"], strict["epsilon"], strict["delta"]) == ("strict", 0.2, 1e-5)
    assert learn(files, *GROUPS).exit_code == 0
    given, largest = certificate_in(files)["mechanism"]["groups"]
    assert strict["weight"] == pytest.approx(given["bound"] / largest["bound"], rel=0.02)
    assert lines[0].endswith(f"weight about {strict['weight']:.3g}")


def test_the_largest_budget_is_the_price_where_none_is_given(files: Path) -> None:
    words = words_of_run(files, *GROUPS, "--without", "report", "--json")
    for option in ("--epsilon", "--delta"):
        place = words.index(option)
        del words[place : place + 2]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["epsilon"], document["delta"]) == (2.0, 1e-5)
    assert document["method_reason"] == "--budget-column is an option of moments"


def test_the_column_stays_out_where_the_public_file_and_the_schema_have_it(files: Path) -> None:
    public = pd.read_csv(files / "public.csv").assign(consent="open")
    public.to_csv(files / "public.csv", index=False)
    schema = files / "schema.json"
    made = CliRunner().invoke(app, ["schema", str(files / "public.csv"), "--out", str(schema)])
    assert made.exit_code == 0, made.stderr
    result = learn(files, *GROUPS, "--schema", str(schema))
    assert result.exit_code == 0, result.stderr
    released = json.loads((files / "out/release/schema.json").read_text())
    assert "dose" in released["columns"]
    assert "consent" not in released["columns"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (GROUPS[:2], "--group-budget is missing"),
        (GROUPS[2:], "--budget-column is missing"),
        (("--groups-are-public",), "--groups-are-public is given without groups"),
        ((*GROUPS[:2], *GROUPS[3:]), "give --groups-are-public."),
        ((*GROUPS, "--group-budget", "gold"), "--group-budget has 'gold'; write NAME="),
        ((*GROUPS, "--group-budget", "gold=1"), "--group-budget has 'gold=1'; write NAME="),
        ((*GROUPS, "--group-budget", "=1,1e-5"), "--group-budget has '=1,1e-5'; write NAME="),
        ((*GROUPS, "--group-budget", "open=1,1e-5"), "each name once"),
        ((*GROUPS, "--group-budget", "gold=-1,1e-5"), "-1"),
        ((*GROUPS, "--group-budget", "gold=nan,1e-5"), "nan"),
        ((*GROUPS, "--group-budget", "gold=1,0"), "delta 0 for the group 'gold'"),
        ((*GROUPS, "--group-budget", "gold=3,1e-5"), "the largest of --group-budget (3, 1e-05)"),
        ((*GROUPS, "--epsilon", "1"), "leave the budget out or give the same"),
        ((*GROUPS, "--budget-column", "ill"), "the column with the class"),
        ((*GROUPS, "--budget-column", "nowhere"), "budget groups with --budget-column"),
        (
            (*GROUPS, "--budget-column", "ward", "--drop", "patient,consent"),
            "no group of --group-budget",
        ),
        ((*GROUPS, "--method", "record-votes"), "goes with --method moments or votes alone"),
        ((*GROUPS, "--method", "votes"), "--group-share is missing"),
        ((*GROUPS, "--teachers", "9"), "--group-share is missing"),
        ((*GROUPS, "--group-share", "strict"), "--group-share has 'strict'; write NAME=SHARE"),
        ((*GROUPS, *2 * ("--group-share", "open=1")), "each name once"),
        ((*GROUPS, "--group-share", "open=1"), "give a positive number for each group"),
        ((*VOTES, "--aggregator", "sparse-vector"), "--aggregator is sparse-vector, and budget"),
        ((*VOTES, "--strategy", "margin"), "--strategy is margin, and budget groups go with"),
        ((*VOTES, "--estimate-epsilon", "0.1"), "for votes that all weigh alike"),
        ((*VOTES, "--queries", "100000"), "fewer with --queries"),
        (VOTES[7:], "without groups"),
        ((*GROUPS, "--votes-per-record", "3"), "leave one of the two out"),
    ],
)
def test_bad_words_about_groups_cost_nothing(
    files: Path, more: tuple[str, ...], words: str
) -> None:
    result = learn(files, *more)
    assert result.exit_code == 2, result.stdout
    assert words in " ".join(result.stderr.split())
    account = files / "private.csv.ledger"
    assert not account.exists() or not Ledger.open_existing(account).history()


def test_a_person_in_two_groups_and_a_group_of_one_record_are_refused(files: Path) -> None:
    table = rows(N_PRIVATE, 1)
    table["consent"] = np.where(np.arange(N_PRIVATE) == 5, "strict", "open")
    table.to_csv(files / "private.csv", index=False)
    result = learn(files, *GROUPS, unit=True)
    assert result.exit_code == 2
    assert "more than one budget group" in result.stderr
    result = learn(files, *GROUPS, "--neighbours", "replace-one", "--own-ledger")
    assert result.exit_code == 2
    assert "'strict' has a single record" in result.stderr


def test_a_table_on_disk_takes_no_groups(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from secretballot.runs import tables

    monkeypatch.setattr(tables, "MOST_IN_MEMORY", 0)
    result = learn(files, *GROUPS)
    assert result.exit_code == 2
    assert "--budget-column goes with private records that fit into memory" in result.stderr
