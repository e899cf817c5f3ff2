"""The tables of an account in PostgreSQL, and who may do what to them.

The tables are those of a file, column by column, so that the same rows have the same hash chain.
Two roles stand over them. The owner makes them and spends nothing. A writer may read,
and add rows to the three tables of the chain; it has no right to change or remove any, nor to touch
`head`. What moves `head` is a trigger with the owner's rights, which lets a row in only where it is
the next one: whatever programs believe, no two rows ever have one place.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

VERSION = 2  # of the tables
CHAIN_TABLES = ("reservation", "part", "closing")

_TABLES = {
    "migration": """
    number INTEGER PRIMARY KEY CHECK (number >= 1),
    made_at TEXT NOT NULL
""",
    "account": """
    id INTEGER PRIMARY KEY CHECK (id = 1),
    dataset TEXT NOT NULL,
    unit TEXT NOT NULL CHECK (unit IN ('record', 'user', 'label')),
    neighbours TEXT NOT NULL CHECK (neighbours IN ('add-remove', 'replace-one')),
    epsilon DOUBLE PRECISION NOT NULL CHECK (epsilon > 0 AND epsilon < 'Infinity'),
    delta DOUBLE PRECISION NOT NULL CHECK (delta >= 0 AND delta < 1),
    composition TEXT NOT NULL,
    filter_order DOUBLE PRECISION,
    created_at TEXT NOT NULL
""",
    "head": """
    id INTEGER PRIMARY KEY CHECK (id = 1),
    position BIGINT NOT NULL,
    chain BYTEA NOT NULL CHECK (octet_length(chain) = 32)
""",
    "reservation": """
    id BIGINT PRIMARY KEY,
    position BIGINT NOT NULL UNIQUE,
    request TEXT NOT NULL UNIQUE,
    purpose TEXT NOT NULL,
    events TEXT NOT NULL,
    epsilon DOUBLE PRECISION NOT NULL CHECK (epsilon > 0 AND epsilon < 'Infinity'),
    delta DOUBLE PRECISION NOT NULL CHECK (delta >= 0 AND delta < 1),
    reserved_at TEXT NOT NULL,
    chain BYTEA NOT NULL CHECK (octet_length(chain) = 32)
""",
    "part": """
    reservation BIGINT NOT NULL REFERENCES reservation (id),
    number BIGINT NOT NULL CHECK (number >= 1),
    position BIGINT NOT NULL UNIQUE,
    question BYTEA NOT NULL,
    answer BYTEA NOT NULL,
    answered_at TEXT NOT NULL,
    chain BYTEA NOT NULL CHECK (octet_length(chain) = 32),
    PRIMARY KEY (reservation, number),
    UNIQUE (reservation, question)
""",
    "closing": """
    reservation BIGINT PRIMARY KEY REFERENCES reservation (id),
    position BIGINT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('committed', 'forfeited')),
    released BYTEA CHECK ((released IS NOT NULL) = (state = 'committed')),
    released_sha256 TEXT CHECK ((released_sha256 IS NOT NULL) = (state = 'committed')),
    reason TEXT CHECK ((reason IS NOT NULL) = (state = 'forfeited')),
    used TEXT,
    closed_at TEXT NOT NULL,
    chain BYTEA NOT NULL CHECK (octet_length(chain) = 32)
""",
}
_KEYS = (  # unique ones, as `FOUND` names them
    ("account", "id"),
    ("closing", "position"),
    ("closing", "reservation"),
    ("head", "id"),
    ("migration", "number"),
    ("part", "position"),
    ("part", "reservation number"),
    ("part", "reservation question"),
    ("reservation", "id"),
    ("reservation", "position"),
    ("reservation", "request"),
)


@dataclass(frozen=True)
class _Function:
    """A function in PL/pgSQL.

    `returns` is what stands after RETURNS, `of_owner` whether it has the owner's rights.
    """

    name: str
    returns: str
    of_owner: bool
    body: str

    def statement(self, schema: str) -> str:
        rights = "SECURITY DEFINER" if self.of_owner else "SECURITY INVOKER"
        # names inside mean these tables, whoever calls it
        return (
            f"CREATE FUNCTION {self.name}() RETURNS {self.returns} LANGUAGE plpgsql {rights}"
            f' SET search_path = "{schema}", pg_temp AS $body${self.body}$body$'
        )


_FUNCTIONS = (
    _Function(
        "take_head",
        "TABLE (place BIGINT, link BYTEA)",
        True,
        """
BEGIN
    -- waits for whoever holds it, and then has what that one left
    RETURN QUERY SELECT head.position, head.chain FROM head FOR UPDATE;
END
""",
    ),
    _Function(
        "move_head",
        "trigger",
        True,
        """
DECLARE
    first BIGINT;
    last BIGINT;
    many BIGINT;
BEGIN
    SELECT min(fresh.position), max(fresh.position), count(*) INTO first, last, many FROM fresh;
    IF many = 0 THEN
        RETURN NULL;
    END IF;
    UPDATE head SET position = last,
        chain = (SELECT fresh.chain FROM fresh WHERE fresh.position = last)
        WHERE head.position = first - 1 AND last - first + 1 = many;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'a ledger is append-only: a row comes after the last one'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END
""",
    ),
    _Function(
        "refuse_late_part",
        "trigger",
        False,
        """
BEGIN
    IF EXISTS (SELECT 1 FROM fresh JOIN closing USING (reservation)) THEN
        RAISE EXCEPTION 'a closed reservation takes no further part'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN NULL;
END
""",
    ),
    _Function(
        "refuse_step",
        "trigger",
        False,
        """
BEGIN
    IF pg_trigger_depth() < 2 OR new.id <> old.id OR new.position <= old.position THEN
        RAISE EXCEPTION 'a ledger is append-only: its head moves with its rows'
            USING ERRCODE = 'integrity_constraint_violation';
    END IF;
    RETURN new;
END
""",
    ),
    _Function(
        "refuse_change",
        "trigger",
        False,
        """
BEGIN
    RAISE EXCEPTION 'a ledger is append-only: % on % is refused', TG_OP, TG_TABLE_NAME
        USING ERRCODE = 'integrity_constraint_violation';
END
""",
    ),
)


@dataclass(frozen=True)
class _Trigger:
    """A trigger; `when` is what stands before ON, `kind` the number by which PostgreSQL knows
    that."""

    table: str
    name: str
    when: str
    kind: int
    function: str
    rows: str

    def statement(self) -> str:
        return (
            f"CREATE TRIGGER {self.name} {self.when} ON {self.table} {self.rows}"
            f" EXECUTE FUNCTION {self.function}()"
        )


_FRESH = "REFERENCING NEW TABLE AS fresh FOR EACH STATEMENT"


def _account_triggers() -> Iterator[_Trigger]:
    for table in _TABLES:
        changes = "DELETE OR TRUNCATE" if table == "head" else "UPDATE OR DELETE OR TRUNCATE"
        yield _Trigger(
            table,
            f"{table}_no_change",
            f"BEFORE {changes}",
            42 if table == "head" else 58,
            "refuse_change",
            "FOR EACH STATEMENT",
        )
    for table in CHAIN_TABLES:
        yield _Trigger(table, f"{table}_next", "AFTER INSERT", 4, "move_head", _FRESH)
    yield _Trigger("part", "part_no_late", "AFTER INSERT", 4, "refuse_late_part", _FRESH)
    yield _Trigger("head", "head_step", "BEFORE UPDATE", 19, "refuse_step", "FOR EACH ROW")


def statements_of(schema: str) -> Iterator[str]:
    """Give the statements that make all tables, functions and triggers in a schema of that name."""
    for table, columns in _TABLES.items():
        yield f"CREATE TABLE {table} ({columns})"
    for function in _FUNCTIONS:
        yield function.statement(schema)
        yield f"REVOKE ALL ON FUNCTION {function.name}() FROM PUBLIC"
    for trigger in _account_triggers():
        yield trigger.statement()


#: Everything in a schema that a promise rests on, one line each; `expected_parts` is what it should
#: find.
FOUND = """
SELECT 'table ' || relname || ' ' || relkind::text || relpersistence::text || relrowsecurity::text
FROM pg_class WHERE relnamespace = current_schema()::regnamespace AND relkind NOT IN ('i', 'c')
UNION ALL
SELECT 'key ' || relname || ' ' || (
    SELECT string_agg(attname, ' ' ORDER BY place) FROM unnest(conkey) WITH ORDINALITY
        AS keyed (number, place) JOIN pg_attribute ON attrelid = conrelid AND attnum = number)
FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
WHERE connamespace = current_schema()::regnamespace AND contype IN ('p', 'u')
UNION ALL
SELECT 'trigger ' || relname || ' ' || tgname || ' ' || tgtype::text || tgenabled::text || ' '
    || proname
FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid JOIN pg_proc ON pg_proc.oid = tgfoid
WHERE relnamespace = current_schema()::regnamespace AND NOT tgisinternal
UNION ALL
SELECT 'rule ' || relname || ' ' || rulename
FROM pg_rewrite JOIN pg_class ON pg_class.oid = ev_class
WHERE relnamespace = current_schema()::regnamespace
UNION ALL
SELECT 'function ' || proname || ' ' || prosecdef::text || ' ' || md5(prosrc)
FROM pg_proc WHERE pronamespace = current_schema()::regnamespace
"""


def expected_parts() -> set[str]:
    """Return the lines that `FOUND` gives where nothing was changed."""
    tables = {f"table {name} rpfalse" for name in _TABLES}
    keys = {f"key {table} {columns}" for table, columns in _KEYS}
    triggers = {
        f"trigger {trigger.table} {trigger.name} {trigger.kind}O {trigger.function}"
        for trigger in _account_triggers()
    }
    functions = {
        f"function {function.name} {'true' if function.of_owner else 'false'}"
        f" {hashlib.md5(function.body.encode(), usedforsecurity=False).hexdigest()}"
        for function in _FUNCTIONS
    }
    return tables | keys | triggers | functions


def rights_of_writer(schema: str, role: str) -> Iterator[str]:
    """Give the statements that let a role read everything and add rows, and nothing else; both
    names are quoted already."""
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {schema} FROM {role}"
    yield f"REVOKE ALL ON SCHEMA {schema} FROM {role}"
    yield f"GRANT USAGE ON SCHEMA {schema} TO {role}"
    yield f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
    for table in CHAIN_TABLES:
        yield f"GRANT INSERT ON {schema}.{table} TO {role}"
    yield f"GRANT EXECUTE ON FUNCTION {schema}.take_head() TO {role}"
