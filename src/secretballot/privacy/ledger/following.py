"""How a reader follows the rows of a ledger: from the first one, or only on from where it was.

A row that was followed is one whose SHA-256, and those of all rows before it, are as stored, up to
the row `head`.
"""

import functools
import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from secretballot.exceptions import LedgerError, SecretBallotError
from secretballot.privacy.accounting import Filter, Grant
from secretballot.privacy.ledger.chain import Account, Progress, Reserved, decode_events, link
from secretballot.privacy.ledger.store import Transaction
from secretballot.privacy.ledger.terms import in_brief

# What the chain covers of each kind of row, in this order: n a number, t text, f a float, b bytes.
_COVERED = {
    "reservation": "id n, request t, purpose t, events t, epsilon f, delta f, reserved_at t",
    "part": "reservation n, number n, question b, answer b, answered_at t",
    "closing": "reservation n, state t, released_sha256 t, reason t, used t, closed_at t",
}
# the chain covers the released bytes of a closing through their SHA-256
_READ = {**_COVERED, "closing": f"{_COVERED['closing']}, released b"}
# one column of the whole for each that a kind has of a type, since a union has one type in each
_TYPES = {"n": ("BIGINT", 2), "t": ("TEXT", 5), "f": ("DOUBLE PRECISION", 2), "b": ("BYTEA", 2)}
_SLOTS = [f"{letter}{i}" for letter, (_, most) in _TYPES.items() for i in range(most)]
_AT_ONCE = 500  # rows, of which each may hold an answer of some size


def _columns_of(kind: str) -> dict[str, str]:
    """Return the column of a table that stands in each column of the whole."""
    free = {letter: iter(range(most)) for letter, (_, most) in _TYPES.items()}
    named = [column.split() for column in _READ[kind].split(", ")]
    return {f"{letter}{next(free[letter])}": name for name, letter in named}


def _all_rows() -> str:
    """Return the statement that reads all kinds of rows; `which` says at which positions."""
    selects = []
    for kind in _COVERED:
        own = _columns_of(kind)
        listed = [own.get(slot, f"CAST(NULL AS {_TYPES[slot[0]][0]})") for slot in _SLOTS]
        selects.append(
            f"SELECT position, '{kind}', chain, {', '.join(listed)} FROM {kind}"
            " WHERE position {which}"
        )
    return " UNION ALL ".join(selects)


_ROWS = _all_rows()
_PLACES = {  # of each column that the chain covers, among those of the whole
    kind: [3 + _SLOTS.index(slot) for slot in list(_columns_of(kind))[: len(text.split(", "))]]
    for kind, text in _COVERED.items()
}
_BYTES = frozenset(3 + _SLOTS.index(slot) for slot in _SLOTS if slot[0] == "b")
_RELEASED = 3 + _SLOTS.index("b0")


class Row(NamedTuple):
    """One row of any kind.

    `fields` is what the chain covers of it, after its position and kind.
    """

    position: Any
    kind: str
    chain: Any
    fields: tuple[Any, ...]
    released: Any


def _field_at(found: tuple[Any, ...], place: int) -> Any:
    """Return a field of a row; bytes as digits, and None for bytes that are none."""
    value = found[place]
    if place not in _BYTES:
        return value
    return value.hex().upper() if isinstance(value, bytes) else None


def _row_of(found: tuple[Any, ...]) -> Row:
    kind = found[1]
    fields = tuple(_field_at(found, place) for place in _PLACES[kind])
    return Row(found[0], kind, found[2], fields, found[_RELEASED])


def _rows_after(transaction: Transaction, position: int) -> Iterator[Row]:
    """Give all rows after a position, in order."""
    return map(_row_of, _found_after(transaction, position))


def _found_after(transaction: Transaction, position: int) -> Iterator[tuple[Any, ...]]:
    """Give all rows after a position as they are found, some hundred at a time."""
    statement = f"{_ROWS.format(which='> ?')} ORDER BY position LIMIT {_AT_ONCE}"
    count = _AT_ONCE
    while count == _AT_ONCE:
        count = 0
        for found in transaction.execute(statement, (position,) * len(_COVERED)):
            yield found
            count += 1
        position += count


def catch_up(transaction: Transaction, seen: Progress, rule: Filter, where: str) -> Progress:
    """Check every row after `seen` against the chain and return the new progress.

    Parameters
    ----------
    transaction : Transaction
    seen : Progress
        What was checked before; `Progress(0, account.digest)` for nothing.
    rule : Filter
        Of the account; it says what each grant adds up to.
    where : str
        Name of the ledger, for messages.

    Raises
    ------
    LedgerError
        If a row was edited, removed or added by hand, or the file is an older copy of itself.
    """
    head = transaction.execute("SELECT position, chain FROM head").fetchone()
    if head == (seen.position, seen.chain):
        return seen
    walk = _Walk(transaction, seen, rule, where)
    for row in _rows_after(transaction, seen.position):
        walk.follow(row)
    if head != (walk.position, walk.chain):
        raise LedgerError(
            f"{where} has lost entries, or was replaced by an older copy; restore the newest copy"
            " of it."
        )
    return walk.progress()


class _Walk:
    """A reader on its way along the rows; what it has counted becomes a `Progress` at the end."""

    def __init__(self, transaction: Transaction, seen: Progress, rule: Filter, where: str) -> None:
        self._transaction, self._rule, self._where = transaction, rule, where
        self._take = {
            "reservation": self._add_reservation,
            "part": self._add_part,
            "closing": self._add_closing,
        }
        self.position, self.chain = seen.position, seen.chain
        self._totals, self._parts, self._closings = seen.totals, seen.parts, seen.closings
        self._open_parts = dict(seen.open_parts)

    def follow(self, row: Row) -> None:
        """Take one row more, or refuse it.

        Raises
        ------
        LedgerError
            If the row does not follow from the one before it.
        """
        self.position += 1
        self.chain = _next_link(self.chain, row)
        followed = (row.position, row.chain) == (self.position, self.chain)
        if not followed or not self._take[row.kind](row):
            raise LedgerError(
                f"{self._where} was changed by hand at entry {self.position} or before it; restore"
                " it from a copy."
            )

    def progress(self) -> Progress:
        """Return how far it has come."""
        return Progress(
            self.position,
            self.chain,
            self._totals,
            self._parts,
            self._closings,
            self._open_parts,
        )

    def _add_reservation(self, row: Row) -> bool:
        number, _, _, events, epsilon, delta, _ = row.fields
        if number != self._totals.grants + 1:
            return False
        self._totals = self._totals.plus(
            self._rule.costs(_checked_grant(events, epsilon, delta, self._where))
        )
        return True

    def _add_part(self, row: Row) -> bool:
        reservation, number, *_ = row.fields
        expected = self._open_parts.get(reservation, 0) + 1
        if not (1 <= reservation <= self._totals.grants and number == expected):
            return False
        self._parts += 1
        self._open_parts[reservation] = expected
        return True

    def _add_closing(self, row: Row) -> bool:
        number, _, digest, _, used, _ = row.fields
        if not (1 <= number <= self._totals.grants and is_answer(row.released, digest)):
            return False
        self._closings += 1
        self._open_parts.pop(number, None)
        if used is not None:
            events, epsilon, delta = _purchase_of(self._transaction, number)
            reserved = self._rule.costs(_checked_grant(events, epsilon, delta, self._where))
            self._totals = self._totals.changed(
                reserved, self._rule.costs(_checked_grant(used, epsilon, delta, self._where))
            )
        return True


def _next_link(chain: bytes, row: Row) -> bytes:
    return link(chain, (row.position, row.kind, *row.fields))


def _row_at(transaction: Transaction, position: int) -> Row | None:
    statement = _ROWS.format(which="= ?")
    found = transaction.execute(statement, (position,) * len(_COVERED)).fetchone()
    return None if found is None else _row_of(found)


def contains_row(transaction: Transaction, position: int, chain: str, account: Account) -> bool:
    """Return whether the row at a position has this SHA-256, in hexadecimal.

    That of no row is the account's.
    """
    if not position:
        return chain == account.digest.hex()
    row = _row_at(transaction, position)
    return row is not None and isinstance(row.chain, bytes) and row.chain.hex() == chain


def reserved_of(transaction: Transaction, reservation: int, where: str) -> Reserved:
    """Return what a reservation holds.

    Raises
    ------
    LedgerError
        If this program cannot read it.
    """
    return reserved_in(_purchase_of(transaction, reservation)[0], where)


def _purchase_of(transaction: Transaction, reservation: int) -> tuple[str, float, float]:
    """Return events, epsilon and delta of a reservation.

    What is given back must not exceed what was taken.
    """
    select = "SELECT events, epsilon, delta FROM reservation WHERE id = ?"
    events, epsilon, delta = transaction.execute(select, (reservation,)).fetchone()
    return events, epsilon, delta


def _checked_grant(events: str, epsilon: float, delta: float, where: str) -> Grant:
    return Grant(events=reserved_in(events, where).events, epsilon=epsilon, delta=delta)


def reserved_in(text: str, where: str) -> Reserved:
    """Return what a stored text says was reserved.

    Raises
    ------
    LedgerError
        If this program cannot read it.
    """
    try:
        return _decoded(text)
    except (SecretBallotError, TypeError, ValueError, LookupError, RecursionError) as error:
        raise LedgerError(
            f"{where} holds a reservation that this program cannot read: {in_brief(error)}"
        ) from error


# a ledger holds the same few events many times
_decoded = functools.lru_cache(maxsize=4096)(decode_events)


def is_answer(released: object, digest: object) -> bool:
    """Return whether `released` is what was committed under the stored SHA-256, or both are
    None."""
    if not isinstance(released, bytes):
        return released is None and digest is None
    return hashlib.sha256(released).hexdigest() == digest
