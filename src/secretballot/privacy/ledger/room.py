"""Room on the disk for an answer that is paid for and not written yet.

A purchase takes as many pages of the file as its answer can need and fills them with zeros; the
commit gives them back and writes the answer into them, so the file need not grow. SQLite's journal
needs a little space of its own at that moment: it keeps the size that it once had (mode "persist"),
and `claim` makes it large enough.
"""

import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

_SPARE = 1 << 14  # bytes for what a commit writes beside the answer: its row, two indices, the head
_BALLAST = 1 << 16  # bytes whose pages a claim rewrites so that the journal grows once
_FORSAKEN = timedelta(days=7)  # a claim this old belongs to a process that died before its answer

BALLAST_STATEMENT = f"INSERT INTO room VALUES (1, NULL, zeroblob({_BALLAST}))"


def claim(connection: sqlite3.Connection, path: Path | None, reservation: int, size: int) -> None:
    """Take room for an answer of `size` bytes, inside the transaction that reserves.

    In memory nothing is taken.

    Raises
    ------
    sqlite3.Error
        If there is not that much; the reservation is then rolled back with it.
    """
    if path is None or not size:
        return
    long_ago = (datetime.now(UTC) - _FORSAKEN).isoformat(timespec="microseconds")
    old = (
        "SELECT reservation.id FROM reservation JOIN room ON reservation.id = reservation AND"
        " reserved_at < ?"
    )
    connection.execute(f"DELETE FROM room WHERE reservation IN ({old})", (long_ago,))
    insert = "INSERT INTO room (reservation, filler) VALUES (?, zeroblob(?))"
    connection.execute(insert, (reservation, size + _SPARE))
    journal = path.with_name(f"{path.name}-journal")
    if not journal.exists() or journal.stat().st_size < _BALLAST:
        # other bytes than before, as SQLite leaves pages alone that do not change
        connection.execute("UPDATE room SET filler = randomblob(?) WHERE id = 1", (_BALLAST,))


def is_claimed(connection: sqlite3.Connection, reservation: int) -> bool:
    """Return whether there is room that was taken for this reservation."""
    row = connection.execute("SELECT 1 FROM room WHERE reservation = ?", (reservation,)).fetchone()
    return row is not None


def give_back(connection: sqlite3.Connection, reservation: int) -> None:
    """Make the room of a reservation free for what is written next."""
    connection.execute("DELETE FROM room WHERE reservation = ?", (reservation,))
