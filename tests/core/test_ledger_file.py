"""The ledger as a file: places, damage, edits by hand, other programs. Nothing is lost and one
sentence is said."""

import json
import os
import shutil
import sqlite3
import traceback
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ledger_answers import answer, answer_of
from ledger_answers import answer as give
from ledger_backends import BUDGET, FileLedgers, buy, fill_the_disk, make_three, refusal
from secretballot.core.ledger import Ledger, rows, sqlite
from secretballot.core.ledger.rows import VERSION
from secretballot.exceptions import LedgerError


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("original") / "ledger.sqlite"
    make_three(place)
    return place


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    """A copy of the original, with its journal."""
    for item in original.parent.iterdir():
        shutil.copy(item, tmp_path)
    return tmp_path / original.name


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match=r"the folder .*vault does not exist; make it"):
        Ledger(tmp_path / "vault" / "ledger.sqlite", dataset="registry", budget=BUDGET)
    assert os.listdir(tmp_path) == []


def test_a_ledger_is_not_made_in_a_release_nor_through_a_link_to_one(tmp_path: Path) -> None:
    release = tmp_path / "release"
    (release / "inside").mkdir(parents=True)
    (release / "certificate.json").touch()
    (tmp_path / "link").symlink_to(release / "inside")
    for folder in (release, release / "inside", tmp_path / "link"):
        with pytest.raises(LedgerError, match="would lie in a release"):
            Ledger(folder / "ledger.sqlite", dataset="registry", budget=BUDGET)
    assert sorted(item.name for item in release.iterdir()) == ["certificate.json", "inside"]
    assert list((release / "inside").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "damaged"),
    [
        (b"CREATE TRIGGER head_no_UPDATE", b"CREATE TRIGG\xff\x1b head_no_UPDATE"),
        (b"append-only: UPDATE on head is", b"append-only\xff\x1bUPDATE on head is"),
        (b"CREATE TABLE entry", b"CREATE TABLE\x1bentry"),
    ],
)
def test_a_bad_byte_in_the_description_of_a_table_is_one_sentence_even_in_a_traceback(
    path: Path, text: bytes, damaged: bytes
) -> None:
    content = path.read_bytes()
    assert text in content
    path.write_bytes(content.replace(text, damaged))
    assert len(refusal(path)) < 600
    with pytest.raises(LedgerError) as caught:
        Ledger.open_existing(path)
    printed = "".join(traceback.format_exception(caught.value)).replace("\n", "")
    assert printed.isprintable()


def test_a_damaged_page_is_noticed_at_once_and_in_a_large_file_by_a_check(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = bytearray(path.read_bytes())
    content[39] ^= 1  # how many pages are free
    path.write_bytes(content)
    assert "is damaged" in refusal(path)
    monkeypatch.setattr(sqlite, "_FEW_PAGES", 0)
    ledger = Ledger.open_existing(path)
    with pytest.raises(LedgerError, match="is damaged"):
        ledger.check()


@pytest.mark.parametrize("name", ["dataset", "composition", "created_at", "\x1b[31m"])
def test_hostile_text_in_the_terms_is_one_bounded_sentence(path: Path, name: str) -> None:
    with FileLedgers(path.parent).edited(str(path)) as run:
        ((text,),) = run("SELECT terms FROM account")
        terms = {**json.loads(text), name: "\x1b[31m\n" + "x" * 100_000}
        run(f"UPDATE account SET terms = '{json.dumps(terms)}'")
    said = refusal(path)
    assert said.isprintable()
    assert len(said) < 600


def test_dangling_link_is_refused_and_its_target_not_made(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    assert "There is no ledger at" in refusal(tmp_path / "link")
    assert os.listdir(tmp_path) == ["link"]


def test_link_and_target_are_one_account(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    buy(Ledger(link, dataset="registry"), "by link")
    assert Ledger.open_existing(path).spent().epsilon == 0.4


def test_lost_ledger_is_not_replaced_by_a_fresh_one(path: Path) -> None:
    path.unlink()
    with pytest.raises(LedgerError, match=r"gone and its journal ledger\.sqlite-journal is left"):
        Ledger(path, dataset="registry", budget=BUDGET)
    assert not path.exists()


def test_failed_creation_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(LedgerError, match=r"reached, read or written \(Operation not supported\)"):
        Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)
    assert os.listdir(tmp_path) == []


def test_what_is_no_ledger_is_refused_and_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "ledger.sqlite"
    binary, header = bytes(range(256)) * 80, b"SQLite format 3\0" + b"\xff" * 9000
    for content in (b"", b"hello, this is text", binary, header):
        place.write_bytes(content)
        assert "cannot be reached, read or written" in refusal(place)
        assert place.read_bytes() == content
    assert "cannot be reached, read or written" in refusal(Path("/dev/null"))
    assert "is a folder, and a ledger is a file" in refusal(tmp_path)


@pytest.mark.parametrize("version", [VERSION + 1, VERSION - 1, 0])
def test_another_version_is_refused(path: Path, version: int) -> None:
    with FileLedgers(path.parent).edited(str(path)) as run:
        old, new = (f'"format":{number}' for number in (VERSION, version))
        run(f"UPDATE account SET terms = replace(terms, '{old}', '{new}')")
    assert f"is of format {version}, and this program reads format {VERSION}" in refusal(path)


def test_one_changed_byte_is_noticed_or_changes_nothing(path: Path) -> None:
    whole = bytearray(path.read_bytes())
    before = Ledger.open_existing(path).history()
    places = [*range(100), *np.random.default_rng(0).integers(100, len(whole), 120)]
    noticed = 0
    for place in places:
        whole[place] ^= 0x15
        path.write_bytes(whole)
        try:
            ledger = Ledger.open_existing(path)
        except LedgerError:
            noticed += 1
        else:
            assert (ledger.dataset, ledger.budget, ledger.history()) == ("registry", BUDGET, before)
        whole[place] ^= 0x15
    assert noticed > 20


def test_truncated_file_is_noticed(path: Path) -> None:
    whole = path.read_bytes()
    # the very last page is room, and empty
    for size in (1, 100, 4096, len(whole) // 2, len(whole) - 4096):
        path.write_bytes(whole[:size])
        assert "ledger.sqlite" in refusal(path)


def test_lost_trigger_is_noticed(path: Path) -> None:
    run_sql(path, "DROP TRIGGER entry_no_DELETE")
    assert "tables or triggers that were changed by hand" in refusal(path)


def test_reservation_that_this_version_cannot_read_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # one whose fields are others
    monkeypatch.setattr(rows, "purchase_in", rows.Closing.model_validate_json)
    assert "holds a reservation that this program cannot read" in refusal(path)


@pytest.mark.parametrize("others", [0, 1, 2])
def test_older_copy_put_back_is_noticed_by_a_living_handle(path: Path, others: int) -> None:
    copy = path.with_suffix(".copy")
    shutil.copy(path, copy)
    living = Ledger(path, dataset="registry")
    buy(living, "new")
    assert living.spent().epsilon == 0.4
    shutil.copy(copy, path)
    for number in range(others):  # after one, SQLite's counter of commits is the one it knows
        buy(Ledger(path, dataset="registry"), f"other {number}")
    for use in (living.spent, living.history, lambda: buy(living, "newer")):
        with pytest.raises(LedgerError, match="lost entries, or was replaced by an older copy"):
            use()


def test_a_file_that_is_taken_away_or_replaced_is_noticed_by_a_living_handle(path: Path) -> None:
    living, other = Ledger(path, dataset="registry"), path.with_name("other.sqlite")
    Ledger(other, dataset="registry", budget=BUDGET)
    path.unlink()
    with pytest.raises(LedgerError, match="There is no ledger at"):
        buy(living, "new")
    assert not path.exists()
    os.replace(other, path)
    with pytest.raises(LedgerError, match="replaced"):
        buy(living, "new")


@pytest.mark.parametrize("lock", ["IMMEDIATE", "EXCLUSIVE", "DEFERRED"])
def test_locked_ledger_says_so_after_the_wait(
    path: Path, monkeypatch: pytest.MonkeyPatch, lock: str
) -> None:
    monkeypatch.setattr(sqlite, "_WAIT_S", 0.05)
    ledger = Ledger(path, dataset="registry")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute(f"BEGIN {lock}")
        # an open reader lets a writer insert but not commit: the worst moment to be refused
        other.execute("SELECT * FROM account").fetchall()
        for write in (lambda: buy(ledger, "new"), lambda: answer(ledger, 3)):
            with pytest.raises(LedgerError, match=r"database is locked.*Nothing was changed"):
                write()
        if lock == "EXCLUSIVE":
            assert "is locked" in refusal(path)
        other.execute("ROLLBACK")
    assert [entry.state for entry in ledger.history()][2:] == ["reserved"]
    assert buy(ledger, "new") == 4


def test_full_disk_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(path, dataset="registry")
    before = ledger.history()
    with monkeypatch.context() as full:
        fill_the_disk(full)
        small = Ledger.open_existing(path)
        with pytest.raises(LedgerError, match=r"disk is full.*Nothing was changed"):
            answer(small, 3, bytes(100_000))
        with pytest.raises(LedgerError, match=r"disk is full.*Nothing was changed"):
            buy(small, "new", 100_000)
    assert ledger.history() == before
    answer(ledger, 3, bytes(100_000))
    assert answer_of(Ledger.open_existing(path), "open") == bytes(100_000)


def test_journal_mode_left_by_another_program_is_taken_back(path: Path) -> None:
    run_sql(path, "PRAGMA journal_mode = WAL")
    ledger = Ledger(path, dataset="registry")
    buy(ledger, "new")
    assert not path.with_name("ledger.sqlite-wal").exists()


def test_a_journal_that_stays_as_it_was_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stubborn(sqlite3.Connection):
        def execute(self, statement: str) -> sqlite3.Cursor:  # type: ignore[override]
            return super().execute("SELECT 'wal'" if "journal" in statement else statement)

    connect = partial(sqlite3.connect, factory=Stubborn)
    monkeypatch.setattr(sqlite3, "connect", connect)
    with pytest.raises(LedgerError, match="keeps its journal in mode 'wal'; close"):
        sqlite._connect(path)


def test_connection_is_as_durable_as_sqlite_can_be(path: Path) -> None:
    with closing(sqlite._connect(path)) as connection:
        settings = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "fullfsync", "busy_timeout")
        }
    expected = {"journal_mode": "persist", "synchronous": 3, "fullfsync": 1, "busy_timeout": 30_000}
    assert settings == expected


class FailingConnection:
    """A connection whose commits fail as at the last write to the disk, done or not."""

    def __init__(self, connection: sqlite3.Connection, failures: list[bool]) -> None:
        self._connection, self._failures, self._writes = connection, failures, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def executemany(self, statement: str, rows: Any) -> Any:
        self._writes = True
        return self._connection.executemany(statement, rows)

    def execute(self, statement: str, *values: Any) -> Any:
        self._writes = not statement.startswith("BEGIN") and (
            self._writes or statement.startswith(("INSERT", "PRAGMA user_version ="))
        )
        if statement != "COMMIT" or not self._writes or not self._failures:
            return self._connection.execute(statement, *values)
        self._connection.execute("COMMIT" if self._failures.pop(0) else "ROLLBACK")
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
        raise error


@pytest.fixture
def failures(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each of the next commits that fails is done all the same."""
    coming: list[bool] = []
    connect = sqlite._connect
    monkeypatch.setattr(sqlite, "_connect", lambda path: FailingConnection(connect(path), coming))
    return coming


@pytest.mark.parametrize("done", [True, False])
def test_what_failed_at_its_end_is_looked_up_and_paid_once(
    tmp_path: Path, failures: list[bool], done: bool
) -> None:
    ledger = Ledger(tmp_path / "l.sqlite", dataset="d", budget=BUDGET)
    failures[:] = [done]
    number = buy(ledger, "a")
    assert ledger.head()[0] == 1
    failures[:] = [done]
    answer(ledger, number, b"answer")
    assert failures == []
    assert answer_of(ledger, "a") == b"answer"
    assert (ledger.releases(), ledger.spent().epsilon) == (1, 0.1)
    ledger.check()


@pytest.mark.parametrize("answer", [True, False])
def test_a_disk_that_goes_on_failing_leaves_the_end_unknown_or_says_that_nothing_was_stored(
    tmp_path: Path, failures: list[bool], answer: bool
) -> None:
    ledger = Ledger(tmp_path / "l.sqlite", dataset="d", budget=BUDGET)
    number = buy(ledger, "a")

    def store() -> None:
        if answer:
            give(ledger, number, b"answer")
        else:
            buy(ledger, "b")

    failures[:] = [False] * 2
    with pytest.raises(LedgerError, match="Nothing was changed"):
        store()
    failures[:] = [True] * 2
    with pytest.raises(LedgerError, match=r"it is unknown whether that was stored.*charged once"):
        store()
    assert ledger.spent().epsilon == (0.1 if answer else 0.2)
    assert answer_of(ledger, "a") == (b"answer" if answer else None)


def test_an_answer_of_another_handle_is_made_durable_before_it_is_given_out(tmp_path: Path) -> None:
    """Who wrote it may have been killed before the last write to the disk was done."""
    path = tmp_path / "l.sqlite"
    ledger = Ledger(path, dataset="d", budget=BUDGET)
    answer(ledger, buy(ledger, "a"), b"answer")

    def writes() -> int:
        return int.from_bytes(path.read_bytes()[24:28], "big")  # SQLite's counter of commits

    before, other = writes(), Ledger(path, dataset="d", budget=BUDGET)
    assert answer_of(ledger, "a") == b"answer"
    assert answer_of(other, "b") is None
    assert writes() == before
    assert answer_of(other, "a") == answer_of(other, "a") == b"answer"
    assert writes() == before + 1
    number = buy(ledger, "stream")
    with ledger.answering(number) as page:
        page.add([(b"question", b"1")])
    before = writes()
    for _ in range(2):
        with other.answering(number) as page:
            assert page.find([b"question"]) == {b"question": b"1"}
        assert writes() == before + 1
