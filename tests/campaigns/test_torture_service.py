"""The campaign against a service, in small; and that its rules find what they are for."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from campaigns.torture import analysts
from campaigns.torture.analysts import Dataset, Notes, Received, faults_in_books, made_dataset
from campaigns.torture.service import service_struck

import secretballot as sb
from secretballot.service.app import application
from secretballot.service.settings import read_settings

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/cwd").exists(), reason="this system has no /proc"
)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> tuple[Dataset, Notes]:
    """A dataset that was asked by two keys through a service, and what they wrote down."""
    dataset = made_dataset(tmp_path_factory.mktemp("asked") / "place", 40)
    notes = Notes()
    app = application(read_settings(dataset.config))

    async def ask() -> None:
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


def changed(notes: Notes, row: int, **values: Any) -> Notes:
    """Return notes of which one differs."""
    received = list(notes.received)
    received[row] = replace(received[row], **values)
    return replace(notes, received=received)


def test_books_in_order_have_no_fault_and_every_wrong_note_is_one(
    asked: tuple[Dataset, Notes],
) -> None:
    dataset, notes = asked
    ledger = sb.Ledger.open_existing(dataset.config.with_name("registry.ledger"))
    heads = [ledger.head()]

    def faults(notes: Notes = notes, dataset: Dataset = dataset, **given: Any) -> str:
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


@pytest.mark.slow
def test_a_service_that_is_killed_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("campaigns.torture.service.PLANNED", 300)
    counts, faults = service_struck(2, 0, tmp_path, workers=1)
    assert faults == []
    assert sum(times for what, times in counts.items() if what.startswith("kills of")) == 2
    assert counts["questions answered"] == 300
