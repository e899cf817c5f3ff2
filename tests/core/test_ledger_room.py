"""The space that is taken on the disk for an answer when it is paid for."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from ledger_answers import answer, answer_of
from ledger_backends import BUDGET, fill_the_disk
from made_events import pure_event
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.exceptions import LedgerError

PRICE = PrivacyBudget(0.001, 1e-9)


@pytest.mark.parametrize("size", [10, 5_000, 300_000])
def test_an_answer_whose_room_was_claimed_needs_no_more_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)
    number = ledger.reserve([pure_event(0.001, 1)], PRICE, request="one", purpose="", space=size)
    fill_the_disk(monkeypatch)
    answer(Ledger.open_existing(str(ledger.path)), number, bytes(size))
    monkeypatch.undo()
    assert answer_of(ledger, "one") == bytes(size)
    ledger.check()


def test_a_disk_too_full_for_the_answer_sells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)
    fill_the_disk(monkeypatch)
    full = Ledger.open_existing(str(ledger.path))
    with pytest.raises(LedgerError, match=r"the disk is full.*Nothing was changed"):
        full.reserve([pure_event(0.001, 1)], PRICE, request="one", purpose="", space=1_000_000)
    monkeypatch.undo()
    assert ledger.spent().epsilon == 0


def test_the_lock_under_which_room_is_given_back_ends_with_the_answer(tmp_path: Path) -> None:
    kept = Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)
    other = Ledger.open_existing(tmp_path / "ledger.sqlite")
    for number in range(1, 4):
        kept.reserve([pure_event(0.001, 1)], PRICE, request=f"{number}", purpose="", space=5_000)
        answer(kept, number, bytes(5_000))
        assert len(kept._own_book.store._resting._kept) == 1
        # as another process would see it: locks are of connections
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite", timeout=0)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
        assert answer_of(other, f"{number}") == bytes(5_000)
    with pytest.raises(LedgerError, match="closed once"):
        answer(kept, 3, b"x")
    other.reserve([pure_event(0.001, 1)], PRICE, request="last", purpose="")


def test_room_is_given_back_by_every_end(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)

    def rooms() -> int:
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
            return int(
                connection.execute("SELECT count(*) FROM space WHERE reservation > 0").fetchone()[0]
            )

    def claimed(request: str) -> int:
        return ledger.reserve([pure_event(0.001, 1)], PRICE, request=request, purpose="", space=100)

    ledger.forfeit(claimed("one"), "for the test")
    answer(ledger, claimed("two"), b"x")
    assert rooms() == 0


def fill(place: Path) -> None:
    with open(place, "wb", buffering=0) as filler:
        while True:
            filler.write(bytes(4096))


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount a small disk"
)
@pytest.mark.parametrize("left", [0, 4096, 60_000])
def test_an_answer_is_stored_on_a_disk_that_filled_up_after_the_purchase(
    tmp_path: Path, left: int
) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("this place mounts no small disk")
    try:
        ledger = Ledger(disk / "ledger.sqlite", dataset="registry", budget=BUDGET)
        number = ledger.reserve(
            [pure_event(0.001, 1)], PRICE, request="one", purpose="", space=400_000
        )
        with pytest.raises(OSError, match="No space"):
            fill(disk / "filler")
        os.truncate(disk / "filler", max(0, (disk / "filler").stat().st_size - left))
        answer(ledger, number, bytes(400_000))
        assert answer_of(Ledger.open_existing(disk / "ledger.sqlite"), "one") == bytes(400_000)
    finally:
        del ledger  # its connection rests
        subprocess.run(["umount", disk], check=True)
