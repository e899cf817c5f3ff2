"""Long ledgers: what a new reader follows, what it takes from a checkpoint, and which edits are
noticed when."""

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from ledger_backends import FileLedgers, Ledgers
from secretballot.exceptions import LedgerError
from secretballot.privacy.accounting import (
    GaussianEvent,
    LabelGaussianEvent,
    PrivacyBudget,
    PureEvent,
    filters,
    label_game,
)
from secretballot.privacy.ledger import Ledger, book, checkpoints, file

BUDGET = PrivacyBudget(1.0, 1e-5)
PRICE = PrivacyBudget(0.001, 1e-9)
VERSION_2 = Path(__file__).with_name("ledger_version_2.sql")


def buy(ledger: Ledger, request: str) -> int:
    return ledger.reserve([PureEvent(0.001, 1)], PRICE, request=request, purpose="test")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A ledger with a checkpoint every ten rows, an open plan from the beginning, and many
    answers."""
    place = tmp_path_factory.mktemp("original") / "ledger.sqlite"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(book, "EVERY", 10)
        ledger = Ledger(place, dataset="registry", budget=BUDGET)
        for request in ("plan", "other plan"):
            buy(ledger, request)
        for number in (1, 2):
            with ledger.answering(number) as page:
                page.add([(b"first", b"0"), (b"second", b"1")])
        for number in range(20):
            ledger.commit(buy(ledger, f"r{number}"), b"answer")
        yield place


@pytest.fixture
def place(original: Path, ledgers: Ledgers) -> str:
    """A copy of the original: of the file, and in a database."""
    return ledgers.copy_of(original)


def test_a_new_reader_follows_the_newest_rows_and_comes_to_the_same_account(place: str) -> None:
    ledger = Ledger.open_existing(place)
    start = ledger._own_book._seen.start
    assert 20 < start < ledger.head()[0] - 10
    taken = (ledger.spent(), ledger.remaining(), ledger.releases(), ledger.head())
    ledger.check()
    assert ledger._own_book._seen.start == 0
    assert taken == (ledger.spent(), ledger.remaining(), ledger.releases(), ledger.head())
    assert ledger.spent().epsilon == 0.022
    assert len(ledger.history()) == 22


def test_a_new_reader_goes_on_with_an_old_plan(place: str) -> None:
    ledger = Ledger.open_existing(place)
    with ledger.answering(1) as page:
        assert (page.count, page.last(), page.find([b"first"])) == (2, b"1", {b"first": b"0"})
        page.add([(b"third", b"1")])
    ledger.commit(1, b"all", parts=3)
    assert Ledger.open_existing(place).released("plan") == b"all"


@pytest.mark.parametrize(
    "edit",
    [
        "DELETE FROM reservation WHERE id = 3",
        "DELETE FROM closing WHERE reservation = 3",
        "DELETE FROM part WHERE reservation = 1 AND number = 2",
        "DELETE FROM part",
        "DELETE FROM checkpoint WHERE position = (SELECT min(position) FROM checkpoint)",
        "DELETE FROM checkpoint",
        "UPDATE part SET reservation = 5, number = 1 WHERE reservation = 1 AND number = 2",
        "UPDATE part SET number = 9 WHERE reservation = 1 AND number = 2",
        'UPDATE checkpoint SET totals = \'[5, "0", "0"]\'',
        "UPDATE checkpoint SET totals = 'x'",
        "UPDATE checkpoint SET reservations = reservations - 1",
        "UPDATE checkpoint SET parts = 0",
        "UPDATE checkpoint SET open_parts = '[]'",
        "UPDATE checkpoint SET open_parts = '[[1, 1], [2, 2]]'",
        "UPDATE checkpoint SET chain = {link}",
        "UPDATE head SET position = position - 1",
        "UPDATE reservation SET epsilon = 1e-9 WHERE id = (SELECT max(id) FROM reservation)",
        (
            "INSERT INTO closing SELECT 1, position + 1, 'forfeited', NULL, NULL, 'x', NULL,"
            " closed_at, chain FROM closing WHERE reservation = 22"
        ),
    ],
)
def test_an_edit_that_could_sell_or_answer_anew_is_noticed_at_once(
    place: str, ledgers: Ledgers, edit: str
) -> None:
    with ledgers.edited(place) as run:
        run(edit.format(byte=ledgers.literal(b"1"), link=ledgers.literal(bytes(32))))
    with pytest.raises(LedgerError, match="restore"):
        Ledger.open_existing(place)


def test_a_checkpoint_whose_bytes_are_no_text_is_noticed_at_once(
    original: Path, tmp_path: Path
) -> None:
    places = FileLedgers(tmp_path)
    place = places.copy_of(original)
    with places.edited(place) as run:
        run("UPDATE checkpoint SET totals = CAST(x'ff' AS TEXT)")
    with pytest.raises(LedgerError, match=r"no text|decode"):
        Ledger.open_existing(place)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE reservation SET epsilon = 1e-9, delta = 0 WHERE id = 3",
        "UPDATE reservation SET events = '[]' WHERE id = 3",
        "UPDATE reservation SET purpose = 'another' WHERE id = 3",
        "UPDATE closing SET closed_at = '2000' WHERE reservation = 3",
        "UPDATE part SET answer = {byte} WHERE reservation = 1 AND number = 1",
    ],
)
def test_an_edit_of_what_a_checkpoint_stands_for_lowers_nothing_and_is_found_by_a_check(
    place: str, ledgers: Ledgers, edit: str
) -> None:
    with ledgers.edited(place) as run:
        run(edit.format(byte=ledgers.literal(b"1"), link=ledgers.literal(bytes(32))))
    ledger = Ledger.open_existing(place)
    assert ledger.spent().epsilon == 0.022
    for look in (ledger.check, ledger.history):
        with pytest.raises(LedgerError, match="changed by hand at entry"):
            look()
    with ledger.reading(1) as page, pytest.raises(LedgerError, match="changed by hand at entry"):
        page.find([b"first"]) if "part" in edit else ledger.entry("r0")


def test_an_old_answer_changed_by_hand_is_not_given(place: str, ledgers: Ledgers) -> None:
    with ledgers.edited(place) as run:
        run(f"UPDATE closing SET released = {ledgers.literal(b'0')} WHERE reservation = 3")
    with pytest.raises(LedgerError, match="answer changed by hand"):
        Ledger.open_existing(place).released("r0")


def test_the_answer_of_another_old_request_is_not_given(place: str, ledgers: Ledgers) -> None:
    with ledgers.edited(place) as run:
        run("UPDATE reservation SET request = 'gone' WHERE id = 4")
        run("UPDATE reservation SET request = 'r1' WHERE id = 3")
    with pytest.raises(LedgerError, match="changed by hand at entry"):
        Ledger.open_existing(place).released("r1")


def test_an_old_purchase_made_larger_by_hand_gives_nothing_back(
    ledgers: Ledgers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "EVERY", 5)
    place = ledgers.place()
    ledger = Ledger(place, dataset="registry", budget=BUDGET, composition="renyi")
    small, dear = [GaussianEvent(900.0, 1)], PrivacyBudget(0.1, 1e-5)
    for number in range(20):
        ledger.reserve(small, dear, request=f"r{number}", purpose="", queries=1)
    with ledgers.edited(place) as run:
        run(
            "UPDATE reservation SET events = replace(events, '\"shifts\": 1', '\"shifts\": 9')"
            " WHERE id = 1"
        )
    late = Ledger.open_existing(place)
    assert late._own_book._seen.start > 1
    with pytest.raises(LedgerError, match="changed by hand at entry 1;"):
        late.commit(1, b"", parts=0, used=())
    assert late.spent() == ledger.spent()


def test_a_machine_whose_functions_end_in_other_digits_prices_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "EVERY", 5)
    place = tmp_path / "ledger.sqlite"
    ledger = Ledger(place, dataset="registry", budget=BUDGET, composition="renyi")
    for number in range(20):
        ledger.reserve(
            [LabelGaussianEvent(900.0, 1, 40)],
            PrivacyBudget(0.1, 1e-5),
            request=f"r{number}",
            purpose="",
        )
    expm1 = np.expm1
    monkeypatch.setattr(np, "expm1", lambda x: np.nextafter(expm1(x), 1.0))
    cached = (checkpoints._pricing_program, label_game.label_renyi, filters._events_costs)
    for function in cached:
        function.cache_clear()
    anew = Ledger.open_existing(place)
    assert anew._own_book._seen.start == 0
    assert anew.spent() != ledger.spent()
    for function in cached:
        function.cache_clear()


def test_sums_of_another_program_are_not_taken_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(book, "EVERY", 5)
    place = tmp_path / "ledger.sqlite"
    terms = {"dataset": "registry", "budget": BUDGET, "composition": "renyi"}
    ledger = Ledger(place, **terms)
    for number in range(20):
        ledger.reserve(
            [GaussianEvent(900.0, 1)], PrivacyBudget(0.01, 1e-5), request=f"r{number}", purpose=""
        )
    assert Ledger.open_existing(place)._own_book._seen.start > 0
    checkpoints._pricing_program.cache_clear()
    monkeypatch.setattr(checkpoints, "_pricing_program", lambda: "a program with other prices")
    anew = Ledger.open_existing(place)
    assert anew._own_book._seen.start == 0
    assert anew.spent() == ledger.spent()


def test_a_ledger_of_the_version_before_is_upgraded_with_all_its_rows(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(place)) as connection:
        connection.executescript(VERSION_2.read_text(encoding="utf-8"))
        rows = connection.execute("SELECT * FROM reservation, head").fetchall()
    with pytest.raises(LedgerError, match="secretballot ledger upgrade"):
        Ledger.open_existing(place)
    assert Ledger.upgrade(place)
    assert not Ledger.upgrade(place)
    ledger = Ledger.open_existing(place)
    # vaults know their ledger by this number, which the program that wrote the file gave it
    assert ledger.account == "d7bd4f6e599f0e4c268611a3237296c6e574c4cee811d6d7792f531b3c6c6fda"
    assert [entry.state for entry in ledger.history()] == ["committed", "forfeited", "reserved"]
    assert (ledger.spent().epsilon, ledger.released("answered")) == (0.3, b"answer")
    with ledger.answering(3) as page:
        assert page.count == 2
    with closing(sqlite3.connect(place)) as connection:
        assert connection.execute("SELECT * FROM reservation, head").fetchall() == rows


def test_an_edited_ledger_of_the_version_before_is_not_upgraded(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    with closing(sqlite3.connect(place)) as connection:
        connection.executescript(
            VERSION_2.read_text(encoding="utf-8").replace("broken off", "broken up")
        )
    before = place.read_bytes()
    with pytest.raises(LedgerError, match="changed by hand"):
        Ledger.upgrade(place)
    assert place.read_bytes() == before


def test_other_files_are_not_upgraded(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other")) as connection:
        connection.executescript("PRAGMA user_version = 2; CREATE TABLE account (id)")
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.upgrade(tmp_path / "other")


# --- room for answers ---


@pytest.mark.parametrize("size", [10, 5_000, 300_000])
def test_an_answer_whose_room_was_claimed_needs_no_more_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)
    number = ledger.reserve([PureEvent(0.001, 1)], PRICE, request="one", purpose="", room=size)
    connect = file.connect

    def connect_to_full_disk(place: Path | None) -> sqlite3.Connection:
        connection = connect(place)
        connection.execute("PRAGMA max_page_count = 1")  # SQLite takes the present size for it
        return connection

    monkeypatch.setattr(file, "connect", connect_to_full_disk)
    ledger.commit(number, bytes(size))
    monkeypatch.undo()
    assert Ledger.open_existing(str(ledger.path)).released("one") == bytes(size)
    ledger.check()


def test_a_disk_too_full_for_the_answer_sells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)
    connect = file.connect

    def connect_to_full_disk(place: Path | None) -> sqlite3.Connection:
        connection = connect(place)
        connection.execute("PRAGMA max_page_count = 1")
        return connection

    monkeypatch.setattr(file, "connect", connect_to_full_disk)
    with pytest.raises(LedgerError, match="the disk is full; nothing was changed"):
        ledger.reserve([PureEvent(0.001, 1)], PRICE, request="one", purpose="", room=1_000_000)
    monkeypatch.undo()
    assert ledger.spent().epsilon == 0


def test_room_is_given_back_by_every_end_and_in_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)

    def rooms() -> int:
        with closing(sqlite3.connect(tmp_path / "ledger.sqlite")) as connection:
            return int(
                connection.execute(
                    "SELECT count(*) FROM room WHERE reservation IS NOT NULL"
                ).fetchone()[0]
            )

    def claimed(request: str) -> int:
        return ledger.reserve([PureEvent(0.001, 1)], PRICE, request=request, purpose="", room=100)

    ledger.forfeit(claimed("one"), "for the test")
    ledger.commit(claimed("two"), b"x")
    assert rooms() == 0
    with monkeypatch.context() as long_ago:
        long_ago.setattr(
            "secretballot.privacy.ledger.handle.utc_now", lambda: "2001-01-01T00:00:00.000000+00:00"
        )
        claimed("its process died")
    assert rooms() == 1
    claimed("three")
    assert rooms() == 1


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
            [PureEvent(0.001, 1)], PRICE, request="one", purpose="", room=400_000
        )
        with pytest.raises(OSError, match="No space"):
            fill(disk / "filler")
        os.truncate(disk / "filler", max(0, (disk / "filler").stat().st_size - left))
        ledger.commit(number, bytes(400_000))
        assert Ledger.open_existing(disk / "ledger.sqlite").released("one") == bytes(400_000)
    finally:
        subprocess.run(["umount", disk], check=True)
