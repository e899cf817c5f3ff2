"""The torture campaigns in small: killed commands go on, and faults would be seen."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from campaigns.torture import analysts, buyers
from campaigns.torture.analysts import Notes, Received, faults_in_books, made_dataset
from campaigns.torture.commands import (
    command,
    faults_in,
    folder_races,
    leftovers,
    make_files,
)
from typer.testing import CliRunner

import secretballot as sb
from secretballot.cli import app
from secretballot.core.ledger import Ledger
from secretballot.service.app import application
from secretballot.service.settings import read_settings

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
