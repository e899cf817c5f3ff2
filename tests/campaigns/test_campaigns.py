"""Campaigns in small: whatever they attack works, and a broken rule is seen."""

import shutil

import campaigns.__main__ as driver
import pytest
from campaigns.cases import Case
from campaigns.fuzzing.edits import MARKER
from campaigns.fuzzing.parsers import PARSERS
from campaigns.fuzzing.reading import LONGEST_SECONDS, Answer, breach, inputs_read
from campaigns.standing_audit import CASES, RELEASES, words_of, write_tables

from secretballot.cli import app


def test_finished_blocks_are_kept_and_a_process_that_died_is_a_fault(tmp_path, monkeypatch):
    def work(amount, number, folder):
        assert [*folder.iterdir()] == []
        return {"inputs": amount, "blocks": 1}, [] if number else ["a fault"]

    case = Case(work, 100, 40)
    monkeypatch.setattr(driver, "cases_of", lambda _: {"a, case": case})
    blocks = list(driver.blocks_of(case, 0.9))
    assert blocks == [(40, 0), (40, 1), (10, 2)]
    (tmp_path / "a-case-0-40").mkdir()
    (tmp_path / "a-case-0-40" / "left").touch()
    for amount, number in blocks:
        driver.do_block("fuzz", "a, case", amount, number, tmp_path)
        found = driver.done("fuzz", "a, case", amount, number, tmp_path)
        assert found["counts"] == {"inputs": amount, "blocks": 1}
        assert found["faults"] == ([] if number else ["a fault"])
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json"] * 3
    monkeypatch.setattr(driver.sys, "executable", shutil.which("false"))
    found = driver.done("fuzz", "a, case", 40, 3, tmp_path)
    assert found["counts"] == {}
    assert "the process ended with 1" in found["faults"][0]


@pytest.mark.parametrize("campaign", driver.CAMPAIGNS)
def test_every_campaign_has_cases(campaign):
    cases = driver.cases_of(campaign)
    assert cases
    assert all(case.amount >= 1 for case in cases.values())


#: So that all but a few inputs would be refused, if even genuine ones were.
OFTEN_READ = ("private-csv", "counts-csv", "kinds-csv", "session", "ledger")


@pytest.mark.parametrize("name", PARSERS)
def test_hostile_inputs_are_read_or_refused_in_one_sentence(tmp_path, name):
    amount = 40 if name in OFTEN_READ else 6
    counts, faults = inputs_read(name, PARSERS[name], amount, 0, tmp_path)
    assert faults == []
    assert counts.total() == amount
    assert counts["read"] > 2 or name not in OFTEN_READ


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (Answer(1, "a defect"), "exit code 1"),
        (Answer(2, f"the cell {MARKER} is no number"), "quoted"),
        (Answer(2, f"the cell {MARKER.lower()} is no number"), "quoted"),
        (Answer(2, "a sentence", 0.0, MARKER), "quoted"),
        (Answer(2, "a \x1b[31mred\x1b[0m sentence"), "control"),
        (Answer(2, "a name with \ud800"), "control"),
        (Answer(2, "long " * 200), "more than"),
        (Answer(0, "", LONGEST_SECONDS + 1), "took more"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_broken_rule_is_seen(answer, word):
    assert word in str(breach(answer, PARSERS["schema"]))


def test_an_answer_in_order_breaks_no_rule_and_a_published_file_may_be_quoted():
    assert breach(Answer(2, "The file is empty.\nGive another."), PARSERS["schema"]) is None
    said = Answer(4, f"The field price is {MARKER!r}; it must be a JSON object.")
    assert breach(said, PARSERS["release"]) is not None
    assert breach(said, PARSERS["certificate"]) is None


VERBS = {name: words for name, (_, words) in RELEASES.items()}


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    write_tables(folder)
    return folder


@pytest.fixture
def folder(tables, tmp_path, monkeypatch):
    for path in tables.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", VERBS)
def test_every_command_that_is_attacked_ends_well(folder, name):
    with pytest.raises(SystemExit) as ended:
        app([*VERBS[name], "--out", "out"])
    assert ended.value.code == 0
    release = folder / "out" / "release"
    assert (release / "certificate.json").exists()
    if "choose" not in name:  # a sparse vector that answers nothing would be attacked for nothing
        assert (release / "labels.csv").read_text().count("false") > 0


def test_every_line_names_files_that_are_written(folder):
    for name in CASES:
        words = words_of(name, 30)
        named = [word for word in words if word.endswith(".csv")]
        assert [word for word in named if not (folder / word).is_file()] == []
