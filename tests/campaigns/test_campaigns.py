"""Campaigns in small: whatever they attack works, a broken rule is seen, and killed commands go
on."""

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path

import campaigns.__main__ as driver
import httpx
import pytest
from campaigns.cases import Case
from campaigns.fuzzing.edits import MARKER
from campaigns.fuzzing.parsers import PARSERS
from campaigns.fuzzing.reading import LONGEST_SECONDS, Answer, breach, inputs_read
from campaigns.standing_audit import CASES, RELEASES, words_of, write_tables
from campaigns.torture import analysts, buyers
from campaigns.torture.analysts import Notes, Received, faults_in_books, made_dataset
from campaigns.torture.commands import command, faults_in, folder_races, leftovers, make_files
from typer.testing import CliRunner

import secretballot as sb
from secretballot.cli import app
from secretballot.core.ledger import Ledger
from secretballot.service.app import application
from secretballot.service.settings import read_settings


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


@pytest.fixture
def folder(tmp_path, monkeypatch):
    write_tables(tmp_path)
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


pytestmark = pytest.mark.skipif(
    not Path("/proc/self/cwd").exists(), reason="this system has no /proc"
)


def test_a_crowd_in_one_folder_pays_once(tmp_path):
    _, faults = folder_races("label", 1, 0, tmp_path, crowd=2)
    assert faults == []


def test_an_answer_that_is_not_the_paid_one_is_a_fault(tmp_path, monkeypatch):
    make_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(app, command("label")).exit_code == 0
    assert faults_in(tmp_path, Counter()) == []
    labels = tmp_path / "out" / "release" / "labels.csv"
    labels.write_text(labels.read_text() + "999,no,false\n")
    assert faults_in(tmp_path, Counter())
    (tmp_path / "out" / ".release.draft").mkdir()
    assert leftovers(tmp_path) == ["out/.release.draft"]


def test_a_crowd_at_one_ledger_cannot_overspend(tmp_path):
    counts, faults = buyers.buyers_killed(4, 0, tmp_path, crowd=8)
    assert faults == []
    assert counts["purchases"] == buyers.ROOM * counts["ledgers"]


def test_kills_of_buyers_and_of_the_server_lose_nothing(tmp_path, monkeypatch, postgres_server):
    monkeypatch.setattr(buyers, "ROOM", 40)
    counts, faults = buyers.buyers_killed(4, 3, tmp_path, postgres_server)
    assert faults == []
    assert (counts["kills of buyers"], counts["kills of the server"]) == (3, 1)
    assert counts["purchases"] == 40 * counts["ledgers"]


def test_books_that_differ_from_what_was_noted_are_found(tmp_path):
    ledger = Ledger(tmp_path / "x.ledger", dataset="crowded", budget=buyers.PRICE)
    ledger.reserve(buyers.EVENTS, buyers.PRICE, request="plan", purpose="torture")
    said = ("drawn r1 a", "answered r1 a", "given q1 b", "refused 3 no_such_row", "given q2")
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "3").write_text("\n".join(said))
    faults = buyers._faults_in(str(tmp_path / "x.ledger"), tmp_path / "notes", Counter())
    assert [fault.partition(":")[0] for fault in faults] == [
        "overspent or not used up", "refused", "unpaid", "lost", "lost or different",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A dataset that was asked by two keys through a service, and what they wrote down."""
    dataset = made_dataset(tmp_path_factory.mktemp("asked") / "place", 40)
    notes = Notes()
    app = application(read_settings(dataset.config))

    async def ask():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://service") as client:
            for numbers in ([1], [2, 3, 4], [1, 5], [2]):
                for key, (token, _) in [*dataset.keys.items()][1:3]:
                    found = await client.post(
                        analysts.QUESTIONS,
                        json={"points": [analysts.point_of(number) for number in numbers]},
                        headers={"Authorization": f"Bearer {token}"},
                    )
                    notes.received.append(Received.of(key, numbers, found))
        await app.state.service.close()

    import asyncio

    asyncio.run(ask())
    return dataset, notes


def changed(notes, row, **values):
    """Return notes of which one differs."""
    received = list(notes.received)
    received[row] = replace(received[row], **values)
    return replace(notes, received=received)


def test_books_in_order_have_no_fault_and_every_wrong_note_is_one(asked):
    dataset, notes = asked
    ledger = sb.Ledger.open_existing(dataset.config.with_name("registry.ledger"))
    heads = [ledger.head()]

    def faults(notes=notes, dataset=dataset, **given):
        found = faults_in_books(dataset, notes, given.get("heads", heads), [dataset.state])
        return "; ".join(found)

    assert faults() == ""
    other = notes.received[0].answers[0]
    assert other is not None
    forged = json.dumps({**json.loads(other), "noisy_count": 10**6}, sort_keys=True)
    assert "different answers to question 1" in faults(changed(notes, 0, answers=(forged,)))
    # nobody else has asked question 5: the ledger alone tells
    both = changed(changed(notes, 4, answers=(other, forged)), 5, answers=(other, forged))
    assert faults(both) == "another answer to question 5 is in the ledger"
    assert "unpaid: the answer to question 77" in faults(changed(notes, 0, numbers=(77,)))
    assert "not in the audit log" in faults(changed(notes, 0, request_id="another"))
    assert "not in the audit log" in faults(changed(notes, 0, key=notes.received[1].key))
    assert "lost: a row" in faults(heads=[(1, "00" * 32)])
    assert "overspent" in faults(dataset=replace(dataset, planned=4))
    first = notes.received[0].key
    keys = {**dataset.keys, first: ("", 4)}
    assert "beyond its quota: 5" in faults(dataset=replace(dataset, keys=keys))
    assert "unforeseen" in faults(replace(notes, faults=["unforeseen"]))
