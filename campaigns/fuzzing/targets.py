"""The parsers of the program: a genuine input for each, edits of it, and the call that reads it."""

import contextlib
import csv
import functools
import hashlib
import io
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import secretballot as sb
from campaigns.fuzzing import edits
from campaigns.fuzzing.rules import BAD_INPUT, BUDGET_REFUSED, DONE, MARKER, NOT_VERIFIED, UNDECIDED
from campaigns.sessions import begun
from secretballot.core.mechanisms import SparseVector

N_PRIVATE, N_PUBLIC, N_TEACHERS = 60, 20, 12


@dataclass(frozen=True)
class Target:
    """One parser.

    Attributes
    ----------
    prepare : callable
        Makes genuine files in a folder, once, and returns what `write` needs of them.
    inputs : strategy
        Edits.
    write : callable
        ``write(folder, genuine, edits)`` makes the hostile file.
    read : callable
        ``read(folder)`` reads it as the program would, and returns what was said beside an
        exception, or its exit code.
    allowed : collection of int
        Exit codes that are in order.
    private : bool
        Whether the files may hold private cells. A published file may be quoted.
    """

    prepare: Callable[[Path], Any]
    inputs: st.SearchStrategy[Any]
    write: Callable[[Path, Any, Any], object]
    read: Callable[[Path], str | int | None]
    allowed: Collection[int] = (DONE, BAD_INPUT)
    private: bool = True


# Tables of records


def _private_records() -> list[list[str]]:
    """Return private records with a header.

    The marker stands in the last rows, so that no edit makes it a header.
    """
    rng = np.random.default_rng(3)
    rows = [["person", "age", "ward", "dose", "ill"]]
    for number in range(N_PRIVATE):
        age, dose = int(rng.integers(20, 90)), round(float(rng.normal(5, 2)), 2)
        ward = MARKER if number > N_PRIVATE - 5 else str(rng.choice(["north", "south"]))
        rows.append(
            [f"p{number // 2}", str(age), ward, str(dose), "yes" if age + 4 * dose > 75 else "no"]
        )
    return rows


def _csv_bytes(rows: list[list[str]]) -> bytes:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


def _genuine_tables(folder: Path) -> list[list[str]]:
    """Write genuine tables and a schema, and return the private rows."""
    rows = _private_records()
    public = [[row[1], row[2].replace(MARKER, "north"), row[3]] for row in rows[: N_PUBLIC + 1]]
    (folder / "private.csv").write_bytes(_csv_bytes(rows))
    (folder / "public.csv").write_bytes(_csv_bytes(public))
    schema = {
        "columns": {"age": "numeric", "ward": ["north", "south"], "dose": "numeric"},
        "classes": ["no", "yes"],
    }
    (folder / "schema.json").write_text(json.dumps(schema))
    return rows


def _read_tables(folder: Path, **files: str) -> str:
    from secretballot.runs.questions import Watch
    from secretballot.runs.spec import RunSpec
    from secretballot.runs.tables import RunInputs

    names = {"private": "private.csv", "public": "public.csv", "schema": "schema.json"} | files
    paths = {role: folder / name for role, name in names.items()}
    watch = Watch()
    settings = {
        "target": "ill",
        "classes": ("no", "yes"),
        "unit": "person",
        "epsilon": 1,
        "delta": 0,
    }
    RunInputs(RunSpec.read(**paths, **settings), watch)
    return "\n".join(note.text for note in watch.notes)


def _write_csv(name: str) -> Callable[[Path, list[list[str]], Any], object]:
    def write(folder: Path, rows: list[list[str]], found: Any) -> None:
        in_cells, in_bytes = found
        content = _csv_bytes(edits.edited_rows(rows, in_cells))
        (folder / name).write_bytes(edits.edited_bytes(content, in_bytes))

    return write


_csv_edits = st.tuples(edits.cell_edits, edits.few_byte_edits)


def _public_rows(folder: Path) -> list[list[str]]:
    _genuine_tables(folder)
    return [line.split(",") for line in (folder / "public.csv").read_text().splitlines()]


# Columns of a hostile type beside genuine ones.
_ARROW_TYPES = (
    *(
        "int64",
        "float32",
        "string",
        "large_string",
        "binary",
        "bool",
        "null",
        "date32",
        "timestamp",
        "decimal",
    ),
    *("list", "struct", "map", "dictionary", "duration", "half"),
)
_parquet_edits = st.tuples(
    edits.cell_edits,
    st.lists(st.tuples(st.integers(0, 99), st.sampled_from(_ARROW_TYPES)), max_size=2),
    edits.few_byte_edits,
)


def _arrow_column(kind: str, cells: list[str]) -> Any:
    """Return cells as a column of a type, with a gap in front."""
    import pyarrow as pa

    numbers = [None, *(len(cell) for cell in cells[1:])]
    made: dict[str, Callable[[], Any]] = {
        "string": lambda: pa.array([None, *cells[1:]]),
        "large_string": lambda: pa.array(cells, pa.large_string()),
        "binary": lambda: pa.array([cell.encode("utf-8", "replace") for cell in cells]),
        "bool": lambda: pa.array([number is None or number > 3 for number in numbers]),
        "null": lambda: pa.nulls(len(cells)),
        "date32": lambda: pa.array(numbers, pa.int32()).cast(pa.date32()),
        "timestamp": lambda: pa.array(numbers, pa.timestamp("ns", "UTC")),
        "decimal": lambda: pa.array(numbers, pa.int64()).cast(pa.decimal128(38, 2)),
        "list": lambda: pa.array([[cell] for cell in cells]),
        "struct": lambda: pa.array([{"cell": cell} for cell in cells]),
        "map": lambda: pa.array(
            [[("k", cell)] for cell in cells], pa.map_(pa.string(), pa.string())
        ),
        "dictionary": lambda: pa.array(cells).dictionary_encode(),
        "duration": lambda: pa.array(numbers, pa.duration("s")),
        "half": lambda: pa.array([np.float16(number or 0) for number in numbers]),
    }
    return made.get(kind, lambda: pa.array(numbers, getattr(pa, kind)()))()


def _write_parquet(name: str) -> Callable[[Path, list[list[str]], Any], object]:
    def write(folder: Path, rows: list[list[str]], found: Any) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        in_cells, typed, in_bytes = found
        header, *body = edited if (edited := edits.edited_rows(rows, in_cells)) else [[]]
        # The names of columns are public in a format that keeps them apart from cells, so no marker
        # among them.
        header = [text.replace(MARKER, "x").encode("utf-8", "replace").decode() for text in header]
        cells = [[(row + [""] * len(header))[at] for row in body] for at in range(len(header))]
        clean = [[cell.encode("utf-8", "replace").decode() for cell in column] for column in cells]
        kinds = {place % max(len(header), 1): kind for place, kind in typed}
        columns = [
            (
                _arrow_column(kinds[at], column)
                if at in kinds and column
                else pa.array(column, pa.string())
            )
            for at, column in enumerate(clean)
        ]
        out = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(columns, names=header), out)
        (folder / name).write_bytes(edits.edited_bytes(out.getvalue(), in_bytes))

    return write


def _write_json(name: str, damage: bool = True) -> Callable[[Path, Any, Any], object]:
    def write(folder: Path, document: Any, found: Any) -> None:
        in_fields, in_bytes, deep = found
        # These documents are public, and a message may quote them: the marker stands in private
        # cells alone.
        text = edits.text_of(edits.edited_document(document, in_fields))
        content = text.replace(MARKER.encode(), b"word")
        if deep:
            content = content.replace(b": ", b": " + b"[" * deep, 1)
        (folder / name).write_bytes(edits.edited_bytes(content, in_bytes) if damage else content)

    return write


_json_edits = st.tuples(
    edits.field_edits,
    st.one_of(st.just([]), edits.byte_edits),
    st.sampled_from([0] * 20 + [5_000, 200_000]),
)


def _genuine_schema(folder: Path) -> Any:
    _genuine_tables(folder)
    return json.loads((folder / "schema.json").read_text())


# Columns of every kind

_KINDS = ("when", "us", "digits", "span", "flag", "code", "person_id", "note", "amount")


def _rows_of_kinds(folder: Path) -> list[list[str]]:
    """Return a public table with a column of each kind that is found or may be declared."""
    rng = np.random.default_rng(6)
    days = np.datetime64("2019-01-01") + rng.integers(0, 900, N_PUBLIC)
    seconds = rng.integers(0, 86400, N_PUBLIC)
    words = ["pain", "fever", "cough", "none of them"]
    rows = [
        [
            f"{day} {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}",
            f"{day.item():%m/%d/%Y}",
            f"{day.item():%Y%m%d}",
            f"{second // 3600:02}:{second // 60 % 60:02}",
            str(rng.choice(["true", "FALSE"])),
            f"{rng.integers(1, 9):05}",
            str(7 * row + 5),
            f"{rng.choice(words)} and {rng.choice(words)} on day {row}",
            f"{rng.normal():.2f}",
        ]
        for row, (day, second) in enumerate(zip(days, seconds.tolist(), strict=True))
    ]
    (folder / "kinds.csv").write_bytes(_csv_bytes([[*_KINDS], *rows]))
    return [[*_KINDS], *rows]


def _read_kinds(folder: Path) -> None:
    from secretballot.data.reading import read_table
    from secretballot.data.schema import Schema

    public = read_table(folder / "kinds.csv")
    schema = Schema.infer(public)
    again = Schema.from_json(schema.to_edit())
    assert again.encode(public).tobytes() == schema.encode(public).tobytes()


def _genuine_kinds(folder: Path) -> Any:
    """Return the schema of that table, with its free text declared."""
    from secretballot.data.reading import read_table
    from secretballot.data.schema import Schema

    _rows_of_kinds(folder)
    public = read_table(folder / "kinds.csv")
    found = Schema.infer(public).to_json()
    found["columns"] |= {"note": {"kind": "text"}, "us": {"kind": "date", "format": "month-first"}}
    return Schema.from_json(found, public=public).to_json()


def _read_schema_of_kinds(folder: Path) -> None:
    from secretballot.data.reading import read_table
    from secretballot.data.schema import Schema

    public = read_table(folder / "kinds.csv")
    Schema.read(folder / "kinds.json", public=public).encoding(public)


# Votes


def _vote_rows(folder: Path) -> list[list[str]]:
    """Return votes as rows of teachers' words, without a header."""
    rng = np.random.default_rng(4)
    return [[str(rng.choice(["no", "yes"])) for _ in range(N_TEACHERS)] for _ in range(N_PUBLIC)]


def _read_votes(name: str, kind: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        sb.read_votes(folder / name, kind=kind, classes=["no", "yes"])

    return read


def _count_rows(folder: Path) -> list[list[str]]:
    """Return counts as rows of numbers, without a header."""
    return [[str(count) for count in row] for row in _genuine_counts(folder).tolist()]


_DTYPES = (
    "<i8",
    ">i8",
    "u1",
    "i1",
    "<f8",
    "<f2",
    "<U3",
    "S3",
    "O",
    "?",
    "<c16",
    "<M8[D]",
    "V8",
    "i4,i4",
    "<i8",
)
_npy_edits = st.tuples(
    st.sampled_from(_DTYPES),
    st.lists(
        st.tuples(st.integers(0, 10**6), st.sampled_from((-1, 0, 1, 2, 13, 2**31, -(2**62)))),
        max_size=3,
    ),
    st.sampled_from([(), (), (), (0,), (1, 1, 1), (-1,)]),
    edits.few_byte_edits,
)


def _genuine_counts(folder: Path) -> np.ndarray:
    ones = np.random.default_rng(5).integers(0, N_TEACHERS + 1, N_PUBLIC)
    return np.column_stack([N_TEACHERS - ones, ones])


def _write_npy(folder: Path, genuine: np.ndarray, found: Any) -> None:
    kind, changes, shape, in_bytes = found
    values = genuine.copy()
    for place, value in changes:
        values.flat[place % values.size] = value
    with np.errstate(all="ignore"), contextlib.suppress(TypeError, ValueError, OverflowError):
        values = values.astype(kind)
    if shape == ():
        pass
    elif shape == (-1,):
        values = values.ravel()
    elif shape == (0,):
        values = values[:0]
    else:
        values = values[None, :, :]
    out = io.BytesIO()
    np.save(out, values, allow_pickle=True)
    (folder / "votes.npy").write_bytes(edits.edited_bytes(out.getvalue(), in_bytes))


# Releases, plans, runs, sessions, ledgers, students


def _genuine_release(folder: Path) -> Any:
    """Make a genuine release of votes and return its certificate."""
    from secretballot.runs.run import run
    from secretballot.runs.spec import VOTES, RunSpec, Sources

    np.save(folder / "votes.npy", _genuine_counts(folder))
    fields = {"private": folder / "votes.npy", "kind": "counts", "classes": "no,yes"}
    fields |= {"epsilon": 2.0, "delta": 1e-5, "ledger": "own", "confirm": ("noise",)}
    fields |= {"n_queries": 10, "out": folder / "run"}
    run(RunSpec.of_tree(Sources(fields=fields, method=VOTES).tree()))
    shutil.copytree(folder / "run" / "release", folder / "genuine")
    return json.loads((folder / "genuine" / "certificate.json").read_text())


_certificate_edits = st.tuples(_json_edits, st.booleans())


def _write_certificate(folder: Path, document: Any, found: Any) -> None:
    """Write an edited certificate, with a fresh digest where a forger would have made one."""
    from secretballot.report.certificate.build import certificate_digest

    (in_fields, in_bytes, deep), forged = found
    changed = edits.edited_document(document, in_fields)
    if forged and isinstance(changed, dict):
        with contextlib.suppress(sb.SecretBallotError, TypeError):
            changed["digest"] = certificate_digest(changed)
        deep, in_bytes = 0, []
    _write_json("certificate.json")(folder, changed, ([], in_bytes, deep))


def _words_of_verifier(place: Path) -> str:
    """Return what the verifier says of a certificate or a release that is in order.

    Raises
    ------
    CertificateError
        With all that it says, if it is not.
    """
    found = sb.verify_certificate(place)
    said = "\n".join(check.detail for check in found.checks)
    if not found.ok:
        raise sb.CertificateError(said)
    return said


def _read_certificate(folder: Path) -> str:
    return _words_of_verifier(folder / "certificate.json")


_folder_edits = st.tuples(edits.cell_edits, edits.few_byte_edits, st.integers(0, 20), st.booleans())


def _write_release(folder: Path, certificate: Any, found: Any) -> None:
    """Write a release whose labels are edited and, sometimes, whose other files are.

    A forger lists them anew.
    """
    in_cells, in_bytes, which, forged = found
    place = folder / "release"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(folder / "genuine", place)
    rows = [line.split(",") for line in (place / "labels.csv").read_text().splitlines()]
    names = sorted(path.name for path in place.iterdir())
    name = names[which % len(names)]
    (place / "labels.csv").write_bytes(_csv_bytes(edits.edited_rows(rows, in_cells)))
    (place / name).write_bytes(edits.edited_bytes((place / name).read_bytes(), in_bytes))
    if forged and name != "certificate.json":
        (place / "certificate.json").write_bytes(edits.text_of(_listed_anew(certificate, place)))


def _listed_anew(certificate: Any, place: Path) -> Any:
    """Return a certificate that states the files of a folder as they are now."""
    from secretballot.report.certificate.build import with_files

    contents = {
        path.name: path.read_bytes() for path in place.iterdir() if path.name != "certificate.json"
    }
    listed = {
        name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        for name, content in contents.items()
    }
    released = {**certificate["released"], "labels_sha256": listed["labels.csv"]["sha256"]}
    return with_files({**certificate, "released": released}, listed)


def _read_release(folder: Path) -> str:
    return _words_of_verifier(folder / "release")


def _genuine_plan(folder: Path) -> bytes:
    from tests.planning.made_plan import made_plan

    from secretballot.runs.plan import plan_toml

    return plan_toml(made_plan()).encode()


def _write_plan(folder: Path, content: bytes, found: Any) -> None:
    (folder / "plan.toml").write_bytes(edits.edited_bytes(content, found))


def _read_plan(folder: Path) -> None:
    sb.RunSpec.read(folder / "plan.toml")


def _run_json(folder: Path) -> Any:
    from secretballot.runs.folder import RunFolder

    with RunFolder(folder / "run", {"verb": "learn", "epsilon": 1.0, "classes": ["no", "yes"]}):
        pass
    return json.loads((folder / "run" / "vault" / "run.json").read_text())


def _read_run(folder: Path) -> None:
    from secretballot.runs.folder import RunFolder

    with RunFolder(folder / "run", {"verb": "learn", "epsilon": 1.0, "classes": ["no", "yes"]}):
        pass


def _genuine_session(folder: Path) -> list[Path]:
    """Make a session with answers and return the JSON files of its vault."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 2))
    vault = folder / "vault"
    teachers = sb.train_teachers(
        "logistic", X, (X[:, 0] > 0).astype(int), classes=[0, 1], n_teachers=40, vault=vault
    )
    ledger = sb.Ledger(
        folder / "ledger.sqlite", dataset="registry", budget=sb.PrivacyBudget(50.0, 0.5)
    )
    stream = SparseVector(threshold_scale=0.5, query_scale=0.5, threshold=12, max_abstentions=3)
    session = begun(teachers, stream, ledger, 20, delta=3e-4)
    session.ask_many(rng.normal(size=(3, 2)))
    # a copy of the vault while the session lives: what the edits start from
    shutil.copytree(vault, folder / "kept")
    files = [
        path
        for path in (folder / "kept").rglob("*")
        if path.is_file() and path.suffix in ("", ".json")
    ]
    return sorted(path.relative_to(folder / "kept") for path in files)


_session_edits = st.tuples(st.integers(0, 50), _json_edits)


def _write_session(folder: Path, files: list[Path], found: Any) -> None:
    which, (in_fields, in_bytes, deep) = found
    shutil.rmtree(folder / "vault")
    shutil.copytree(folder / "kept", folder / "vault")
    file = files[which % len(files)]
    content = (folder / "kept" / file).read_bytes()
    try:
        document = json.loads(content)
    except ValueError:
        (folder / "vault" / file).write_bytes(
            edits.edited_bytes(content, in_bytes or [(which, "flip", b"\x01")])
        )
    else:
        document = document if isinstance(document, dict | list) else [document]
        _write_json(str(file))(folder / "vault", document, (in_fields, in_bytes, deep))


def _read_session(folder: Path) -> None:
    session = sb.LabelingSession.reopen(folder / "vault")
    session.ask(np.array([0.25, 0.5]))


def _genuine_ledger(folder: Path) -> bytes:
    place = folder / "genuine.sqlite"
    ledger = sb.Ledger(place, dataset="registry", budget=sb.PrivacyBudget(5.0, 1e-3))
    from secretballot.accounting import Pure

    for number in range(3):
        bought = ledger.reserve(
            [Pure(epsilon=0.1, count=1)],
            sb.PrivacyBudget(0.1, 1e-6),
            request=f"r{number}",
            purpose="a purpose",
        )
        if number:
            with ledger.answering(bought, closes=True) as page:
                page.add([(b"0", b"an answer")])
                page.commit({})
    return place.read_bytes()


_sql_edits = st.lists(
    st.tuples(st.integers(0, 99), st.integers(0, 99), edits.hostile_values | st.binary(max_size=5)),
    max_size=2,
)


def _write_ledger(folder: Path, content: bytes, found: Any) -> None:
    """Write a ledger whose cells or bytes are edited, as by somebody who takes its triggers away
    and puts them back."""
    in_cells, in_bytes = found
    for name in ("ledger.sqlite", "ledger.sqlite-journal", "ledger.sqlite-wal"):
        (folder / name).unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(content)
        with contextlib.suppress(sqlite3.Error, OverflowError):
            _edit_cells(connection, in_cells)
        changed = connection.serialize() if in_cells else content
    (folder / "ledger.sqlite").write_bytes(edits.edited_bytes(changed, in_bytes))


def _edit_cells(connection: sqlite3.Connection, in_cells: list[tuple[int, int, Any]]) -> None:
    triggers = connection.execute(
        "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
    ).fetchall()
    # without the triggers any cell can be changed, as by somebody who knows SQLite
    for name, _ in triggers:
        connection.execute(f'DROP TRIGGER "{name}"')
    tables = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    try:
        for table, column, value in in_cells:
            name = tables[table % len(tables)]
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
            cell = (
                value if isinstance(value, str | int | float | bytes | None) else json.dumps(value)
            )
            connection.execute(
                f'UPDATE "{name}" SET "{columns[column % len(columns)]}" = ?', (cell,)
            )
    finally:
        for _, words in triggers:
            connection.execute(words)


def _read_ledger(folder: Path) -> None:
    from secretballot.accounting import Pure

    ledger = sb.Ledger.open_existing(folder / "ledger.sqlite")
    ledger.history()
    ledger.reserve(
        [Pure(epsilon=0.1, count=1)], sb.PrivacyBudget(0.1, 1e-6), request="new", purpose=""
    )


def _genuine_students(folder: Path) -> list[bytes]:
    """Return saved students of several kinds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    from secretballot.report.student.export import converted_student

    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 3))
    y = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
    saved = []
    for student in (
        *(LogisticRegression(), DecisionTreeClassifier(max_depth=4, random_state=0), GaussianNB()),
        *(KNeighborsClassifier(3), sb.VotingStudent(random_state=0)),
    ):
        saved.append(converted_student(student.fit(X, y)).content)
    return saved


_student_edits = st.tuples(st.integers(0, 99), edits.byte_edits)


def _write_student(folder: Path, saved: list[bytes], found: Any) -> None:
    """Write a student whose bytes are edited."""
    which, in_bytes = found
    content = edits.edited_bytes(saved[which % len(saved)], in_bytes)
    (folder / "student.onnx").write_bytes(content)


def _read_student(folder: Path) -> None:
    from secretballot.report.student.load import load_student

    student = load_student(folder / "student.onnx")
    points = np.random.default_rng(8).normal(size=(5, 3))
    # an edited student may refuse points of this shape; it must not crash
    with contextlib.suppress(Exception):
        student.predict(points)


# The command line

_VERBS = ("learn", "label", "evaluate", "plan", "verify", "ledger", "nonsense")
_OPTIONS = (
    *("--epsilon", "--delta", "--total", "--classes", "--target", "--n-teachers", "--set"),
    *("--out", "--ledger", "--dataset", "--kind", "--like", "--config", "--schema", "--drop"),
    *("--unit", "--n-queries", "--mechanism", "--student", "--teacher", "--json", "--header"),
    *("--bounds", "--confirm", "--x"),
)
_WORDS = (
    *("private.csv", "public.csv", "schema.json", "votes.npy", "genuine", "missing.csv"),
    *("genuine/certificate.json", "1", "0", "-1", "1e-5", "1e400", "nan", "no,yes", "a,a", "ill"),
    *("n_queries=5", "hypotheses=stumps", "mechanism=x:y=1", "a=b", "counts", "show", "create"),
    *("north=1,1e-5", "north=1", "/dev/null", ".", "", "out"),
)
_TABLES = ("private.csv", "public.csv", "--target", "ill")
_PRICE = ("--epsilon", "1", "--delta", "1e-5")
#: Lines that are in order but for one word at most, so that an edited one is understood before it
#: is refused.
_LINES = (
    (
        *("learn", "private.csv", "missing.csv", *_TABLES[2:], "--classes", "no,yes", *_PRICE),
        *("--n-teachers", "10"),
    ),
    (
        *("learn", *_TABLES, "--classes", "no,maybe", *_PRICE, "--schema", "schema.json"),
        *("--unit", "person"),
    ),
    ("learn", *_TABLES, "--classes", "no,maybe"),
    ("label", "votes.npy", *_PRICE, "--kind", "counts", "--classes", "a,b,c", "--n-queries", "5"),
    ("learn", *_TABLES, "--classes", "no,maybe", *_PRICE[:2], "--set", "hypotheses=stumps"),
    ("plan", "30", "--n-records", "1000", "--classes", "no,no", *_PRICE),
    ("plan", "30", "--n-records", "1000", "--like", "public.csv", "--target", "dose", *_PRICE),
    ("verify", "genuine"),
    ("verify", "genuine/certificate.json", "--json"),
    ("verify", "--independent", "genuine"),
    ("ledger", "show", "ledger.sqlite"),
    ("ledger", "show", "ledger.sqlite", "--json"),
    ("ledger", "create", "ledger.sqlite", "--dataset", "registry", "--total", "1,1e-5"),
)
_words = st.one_of(
    st.sampled_from(_VERBS),
    st.sampled_from(_OPTIONS),
    st.sampled_from(_WORDS),
    # who types a word may see it again
    edits.hostile_cells.map(lambda word: word.replace(MARKER, "word")),
)
_command_lines = st.tuples(
    st.sampled_from((*_LINES, ())).map(list),
    st.lists(
        st.tuples(st.integers(0, 99), st.sampled_from(("set", "set", "insert", "remove")), _words),
        max_size=4,
    ),
    st.lists(_words, max_size=5),
)


def _edited_words(found: Any) -> list[str]:
    line, changes, more = found
    words = list(line)
    for place, action, word in changes:
        at = place % (len(words) + 1)
        words[at : at + (action != "insert")] = [] if action == "remove" else [word]
    return [word.replace("\0", "0") for word in [*words, *more]]


def _command_folder(folder: Path) -> None:
    """Make every file that the lines name."""
    _genuine_tables(folder)
    _genuine_release(folder)
    sb.Ledger(folder / "ledger.sqlite", dataset="registry", budget=sb.PrivacyBudget(5.0, 1e-3))


def _write_command(folder: Path, _: Any, found: Any) -> None:
    (folder / "words.json").write_text(json.dumps(_edited_words(found)))


def _run_command(folder: Path) -> int:
    """Run a command line in this process and return its exit code; what it prints counts as
    said."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        _command_program()(json.loads((folder / "words.json").read_text()))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    finally:
        os.chdir(before)
        shutil.rmtree(folder / "out", ignore_errors=True)
        shutil.rmtree(folder / "secretballot-out", ignore_errors=True)
    return 0


@functools.cache
def _command_program() -> Any:
    """Return the program, whose building takes ten times as long as most lines."""
    from typer.main import get_command

    from secretballot.cli import app

    return get_command(app)


TARGETS: dict[str, Target] = {
    "private-csv": Target(_genuine_tables, _csv_edits, _write_csv("private.csv"), _read_tables),
    "public-csv": Target(_public_rows, _csv_edits, _write_csv("public.csv"), _read_tables),
    "private-parquet": Target(
        _genuine_tables,
        _parquet_edits,
        _write_parquet("private.parquet"),
        lambda folder: _read_tables(folder, private="private.parquet"),
    ),
    "schema": Target(_genuine_schema, _json_edits, _write_json("schema.json"), _read_tables),
    "kinds-csv": Target(_rows_of_kinds, _csv_edits, _write_csv("kinds.csv"), _read_kinds),
    "kinds-schema": Target(
        _genuine_kinds, _json_edits, _write_json("kinds.json"), _read_schema_of_kinds
    ),
    "votes-csv": Target(
        _vote_rows, _csv_edits, _write_csv("votes.csv"), _read_votes("votes.csv", "votes")
    ),
    "counts-csv": Target(
        _count_rows, _csv_edits, _write_csv("counts.csv"), _read_votes("counts.csv", "counts")
    ),
    "counts-npy": Target(
        _genuine_counts, _npy_edits, _write_npy, _read_votes("votes.npy", "counts")
    ),
    "votes-parquet": Target(
        _vote_rows,
        _parquet_edits,
        _write_parquet("votes.parquet"),
        _read_votes("votes.parquet", "votes"),
    ),
    "certificate": Target(
        _genuine_release,
        _certificate_edits,
        _write_certificate,
        _read_certificate,
        (DONE, NOT_VERIFIED),
        private=False,
    ),
    "release": Target(
        _genuine_release, _folder_edits, _write_release, _read_release, (DONE, NOT_VERIFIED)
    ),
    "plan": Target(_genuine_plan, edits.byte_edits, _write_plan, _read_plan),
    "run": Target(_run_json, _json_edits, _write_json("run/vault/run.json"), _read_run),
    "session": Target(
        _genuine_session,
        _session_edits,
        _write_session,
        _read_session,
        (DONE, BAD_INPUT, BUDGET_REFUSED),
    ),
    "ledger": Target(
        _genuine_ledger,
        st.tuples(_sql_edits, edits.few_byte_edits),
        _write_ledger,
        _read_ledger,
        (0, 2, 3),
    ),
    "student": Target(_genuine_students, _student_edits, _write_student, _read_student),
    "command-line": Target(
        _command_folder,
        _command_lines,
        _write_command,
        _run_command,
        (DONE, BAD_INPUT, BUDGET_REFUSED, NOT_VERIFIED, UNDECIDED),
    ),
}
