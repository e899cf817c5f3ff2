"""The tables of a ledger file, and the triggers that keep them append-only.

Nothing is ever updated or deleted but the one row `head`, which counts forward: a reservation is
one row, each part of an answer that is given in parts another, its closing (committed or forfeited)
the last. Beside this
account, `room` holds places on the disk for answers that are paid for and not written yet; it says
nothing, and comes and goes.
"""

from collections.abc import Iterator

APPLICATION_ID = 0x53424C54  # "SBLT", in the header of the file
SCHEMA_VERSION = 4
DIGEST_VERSION = 2  # part of the digest of an account for ever: vaults know their ledger by it

_TABLES = """
CREATE TABLE account (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    dataset TEXT NOT NULL,
    unit TEXT NOT NULL CHECK (unit IN ('record', 'user', 'label')),
    neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'replace-one')),
    epsilon REAL NOT NULL CHECK (epsilon > 0),
    delta REAL NOT NULL CHECK (delta >= 0 AND delta < 1),
    composition TEXT NOT NULL,
    filter_order REAL,
    created_at TEXT NOT NULL
);
CREATE TABLE head (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position INTEGER NOT NULL,
    chain BLOB NOT NULL CHECK (length(chain) = 32)
);
CREATE TABLE reservation (
    id INTEGER PRIMARY KEY,
    position INTEGER NOT NULL UNIQUE,
    request TEXT NOT NULL UNIQUE,
    purpose TEXT NOT NULL,
    events TEXT NOT NULL,
    epsilon REAL NOT NULL CHECK (epsilon > 0),
    delta REAL NOT NULL CHECK (delta >= 0 AND delta < 1),
    reserved_at TEXT NOT NULL,
    chain BLOB NOT NULL CHECK (length(chain) = 32)
);
CREATE TABLE part (
    reservation INTEGER NOT NULL REFERENCES reservation (id),
    number INTEGER NOT NULL CHECK (number >= 1),
    position INTEGER NOT NULL UNIQUE,
    question BLOB NOT NULL,
    answer BLOB NOT NULL,
    answered_at TEXT NOT NULL,
    chain BLOB NOT NULL CHECK (length(chain) = 32),
    PRIMARY KEY (reservation, number),
    UNIQUE (reservation, question)
);
CREATE TABLE closing (
    reservation INTEGER PRIMARY KEY REFERENCES reservation (id),
    position INTEGER NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('committed', 'forfeited')),
    released BLOB CHECK ((released IS NOT NULL) = (state = 'committed')),
    released_sha256 TEXT CHECK ((released_sha256 IS NOT NULL) = (state = 'committed')),
    reason TEXT CHECK ((reason IS NOT NULL) = (state = 'forfeited')),
    used TEXT,
    closed_at TEXT NOT NULL,
    chain BLOB NOT NULL CHECK (length(chain) = 32)
);
CREATE TABLE room (
    id INTEGER PRIMARY KEY,
    reservation INTEGER UNIQUE REFERENCES reservation (id),
    filler BLOB NOT NULL
)
"""

_GUARDS = """
CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table} {when}
BEGIN SELECT RAISE(ABORT, 'a ledger is append-only: {verb} on {table} is refused'); END
"""

_NOT_ALONE = "WHEN EXISTS (SELECT 1 FROM {table})"
# INSERT OR REPLACE deletes without firing delete triggers, so a row may take no place that is
# taken.
_NOT_NEXT = (
    "WHEN new.position <> (SELECT position FROM head) + 1 OR EXISTS"
    " (SELECT 1 FROM {table} WHERE {taken})"
)
_TAKEN = {
    "reservation": "id = new.id OR request = new.request OR position = new.position",
    "part": (
        "position = new.position OR (reservation = new.reservation AND (number = new.number OR"
        " question = new.question))"
    ),
    "closing": "reservation = new.reservation OR position = new.position",
}
_NO_LATE_PART = """
CREATE TRIGGER part_no_late BEFORE INSERT ON part
WHEN EXISTS (SELECT 1 FROM closing WHERE reservation = new.reservation)
BEGIN SELECT RAISE(ABORT, 'a closed reservation takes no further part'); END
"""


def _trigger_statements() -> Iterator[str]:
    for table in ("account", "head", "reservation", "part", "closing"):
        yield _GUARDS.format(table=table, verb="DELETE", when="")
        step = (
            "WHEN new.position <> old.position + 1 OR new.id <> old.id" if table == "head" else ""
        )
        yield _GUARDS.format(table=table, verb="UPDATE", when=step)
    for table in ("account", "head"):
        yield _GUARDS.format(table=table, verb="INSERT", when=_NOT_ALONE.format(table=table))
    for table, taken in _TAKEN.items():
        yield _GUARDS.format(
            table=table, verb="INSERT", when=_NOT_NEXT.format(table=table, taken=taken)
        )
    yield _NO_LATE_PART


STATEMENTS = tuple(statement.strip() for statement in (*_TABLES.split(";"), *_trigger_statements()))
