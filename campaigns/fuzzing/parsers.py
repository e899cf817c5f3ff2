"""The parsers of the program: genuine files for each, edits of them, and the call that reads
them."""

import contextlib
import functools
import hashlib
import io
import json
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.made_plans import plan_for

import secretballot as sb
from campaigns.cases import Case
from campaigns.fuzzing import edits
from campaigns.fuzzing.edits import MARKER
from campaigns.fuzzing.reading import (
    BAD_INPUT,
    BUDGET_REFUSED,
    DONE,
    NOT_VERIFIED,
    UNDECIDED,
    Parser,
    reading,
)
from campaigns.sessions import begun
from secretballot.accounting import Pure
from secretballot.core.mechanisms import SparseVector
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.report.certificate import certificate_digest, with_files
from secretballot.runs.folder import RunFolder
from secretballot.runs.plan import _plan_toml
from secretballot.runs.questions import Watch
from secretballot.runs.spec import VOTES, RunSpec, Sources
from secretballot.runs.tables import RunInputs

N_PRIVATE, N_PUBLIC, N_TEACHERS = 60, 20, 12
Rows = list[list[str]]
Change = Callable[[Path, Any, Random], object]


# Files of text


def _change_csv(name: str) -> Change:
    def change(folder: Path, rows: Rows, rng: Random) -> None:
        content = edits.csv_bytes(edits.edited_rows(rows, rng))
        (folder / name).write_bytes(edits.seldom_edited(content, rng))

    return change


def _change_json(name: str) -> Change:
    def change(folder: Path, document: Any, rng: Random) -> None:
        content = edits.json_bytes(edits.edited_document(document, rng), rng)
        (folder / name).write_bytes(content)

    return change


# Tables of records


def _genuine_tables(folder: Path) -> Rows:
    """Write genuine tables and a schema, and return the private rows.

    The marker is in the last of them, so that no edit makes it a header.
    """
    rng = np.random.default_rng(3)
    rows = [["person", "age", "ward", "dose", "ill"]]
    for number in range(N_PRIVATE + N_PUBLIC):
        age, dose = int(rng.integers(20, 90)), round(float(rng.normal(5, 2)), 2)
        ward = MARKER if 0 < N_PRIVATE - number < 5 else str(rng.choice(["north", "south"]))
        ill = "yes" if age + 4 * dose > 75 else "no"
        rows.append([f"p{number // 2}", str(age), ward, str(dose), ill])
    private, public = rows[: N_PRIVATE + 1], [row[1:4] for row in [rows[0], *rows[-N_PUBLIC:]]]
    (folder / "private.csv").write_bytes(edits.csv_bytes(private))
    (folder / "public.csv").write_bytes(edits.csv_bytes(public))
    columns = {"age": "numeric", "ward": ["north", "south"], "dose": "numeric"}
    schema = {"columns": columns, "classes": ["no", "yes"]}
    (folder / "schema.json").write_text(json.dumps(schema))
    return private


def _public_rows(folder: Path) -> Rows:
    _genuine_tables(folder)
    return [line.split(",") for line in (folder / "public.csv").read_text().splitlines()]


def _genuine_schema(folder: Path) -> Any:
    _genuine_tables(folder)
    return json.loads((folder / "schema.json").read_text())


def _read_tables(folder: Path, private: str = "private.csv") -> str:
    names = {"private": private, "public": "public.csv", "schema": "schema.json"}
    paths = {role: folder / name for role, name in names.items()}
    watch = Watch()
    task = {"target": "ill", "classes": ("no", "yes"), "unit": "person"}
    RunInputs(RunSpec.read(**paths, **task, epsilon=1, delta=0), watch)
    return "\n".join(note.text for note in watch.notes)


#: Types of a hostile column, and what each makes of a cell.
_ARROW: dict[str, tuple[Any, Callable[[str], Any]]] = {
    "int64": (pa.int64(), len),
    "float32": (pa.float32(), len),
    "half": (pa.float16(), lambda cell: np.float16(len(cell))),
    "string": (pa.string(), str),
    "large string": (pa.large_string(), str),
    "binary": (pa.binary(), str.encode),
    "bool": (pa.bool_(), lambda cell: len(cell) > 3),
    "null": (pa.null(), lambda cell: None),
    "date": (pa.date32(), len),
    "timestamp": (pa.timestamp("ns", "UTC"), len),
    "duration": (pa.duration("s"), len),
    "decimal": (pa.decimal128(38, 2), len),
    "list": (pa.list_(pa.string()), lambda cell: [cell]),
    "struct": (pa.struct({"cell": pa.string()}), lambda cell: {"cell": cell}),
    "map": (pa.map_(pa.string(), pa.string()), lambda cell: [("key", cell)]),
    "dictionary": (pa.dictionary(pa.int32(), pa.string()), str),
}


def _change_parquet(name: str) -> Change:
    def change(folder: Path, rows: Rows, rng: Random) -> None:
        """Write edited rows, a column or two with a hostile type and a gap in front."""
        edited = edits.edited_rows(rows, rng) or [[]]
        header, *body = [[_clean(cell) for cell in row] for row in edited]
        # names of columns are public in a format that keeps them apart from cells
        header = [text.replace(MARKER, "x") for text in header]
        columns = []
        for at in range(len(header)):
            cells = [(row + [""] * len(header))[at] for row in body]
            if cells and rng.random() < 2 / len(header):
                kind, made = _ARROW[rng.choice([*_ARROW])]
                columns.append(pa.array([None, *map(made, cells[1:])], kind))
            else:
                columns.append(pa.array(cells, pa.string()))
        out = io.BytesIO()
        pq.write_table(pa.Table.from_arrays(columns, names=header), out)
        (folder / name).write_bytes(edits.seldom_edited(out.getvalue(), rng))

    return change


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


# Columns of every kind

#: Columns of each kind that is found or may be declared.
_KINDS = """
when,us,digits,span,flag,code,person_id,note,amount
2019-03-04 07:08:09,03/04/2019,20190304,07:08,true,00005,12,pain and fever on day 1,0.25
2020-11-30 23:59:01,11/30/2020,20201130,23:59,FALSE,00001,19,cough and none of them,-1.50
2021-06-15 00:00:00,06/15/2021,20210615,00:00,true,00008,26,fever and pain on day 3,12.75
"""


def _rows_of_kinds(folder: Path) -> Rows:
    """Return a public table of these columns, whose rows but for one repeat."""
    header, *rows = [line.split(",") for line in _KINDS.split("\n")[1:-1]]
    table = [header, *(row for row in rows for _ in range(N_PUBLIC // len(rows)))]
    for number, row in enumerate(table[1:]):
        table[number + 1] = [*row[:6], str(7 * number + 5), *row[7:]]
    (folder / "kinds.csv").write_bytes(edits.csv_bytes(table))
    return table


def _read_kinds(folder: Path) -> None:
    public = read_table(folder / "kinds.csv")
    schema = Schema.infer(public)
    again = Schema.from_json(schema.to_edit())
    assert again.encode(public).tobytes() == schema.encode(public).tobytes()


def _genuine_kinds(folder: Path) -> Any:
    """Return the schema of that table, with its free text declared."""
    _rows_of_kinds(folder)
    public = read_table(folder / "kinds.csv")
    found = Schema.infer(public).to_json()
    found["columns"] |= {"note": {"kind": "text"}, "us": {"kind": "date", "format": "month-first"}}
    return Schema.from_json(found, public=public).to_json()


def _read_schema_of_kinds(folder: Path) -> None:
    public = read_table(folder / "kinds.csv")
    Schema.read(folder / "kinds.json", public=public).encoding(public)


# Votes


def _vote_rows(_: Path) -> Rows:
    """Return votes as rows of teachers' words, with a header."""
    votes = np.random.default_rng(4).choice(["no", "yes"], size=(N_PUBLIC, N_TEACHERS))
    return [[f"teacher{number}" for number in range(N_TEACHERS)], *votes.tolist()]


def _genuine_counts(_: Path) -> np.ndarray:
    ones = np.random.default_rng(5).integers(0, N_TEACHERS + 1, N_PUBLIC)
    return np.column_stack([N_TEACHERS - ones, ones])


def _count_rows(folder: Path) -> Rows:
    """Return counts as rows of numbers, without a header."""
    return [[str(count) for count in row] for row in _genuine_counts(folder).tolist()]


def _read_votes(name: str, kind: str) -> Callable[[Path], None]:
    def read(folder: Path) -> None:
        sb.read_votes(folder / name, kind=kind, classes=["no", "yes"])

    return read


_DTYPES = "<i8 <i8 >i8 u1 i1 <f8 <f2 <U3 S3 O ? <c16 <M8[D] V8 i4,i4"


def _change_npy(folder: Path, genuine: np.ndarray, rng: Random) -> None:
    values = genuine.copy()
    for _ in range(rng.randrange(4)):
        value = rng.choice((-1, 0, 1, 2, 13, 2**31, -(2**62)))
        values.flat[rng.randrange(values.size)] = value
    with np.errstate(all="ignore"), contextlib.suppress(TypeError, ValueError, OverflowError):
        values = values.astype(rng.choice(_DTYPES.split()))
    values = rng.choice([values, values, values, values.ravel(), values[:0], values[None]])
    out = io.BytesIO()
    np.save(out, values, allow_pickle=True)
    (folder / "votes.npy").write_bytes(edits.seldom_edited(out.getvalue(), rng))


# Releases


def _genuine_release(folder: Path) -> Any:
    """Make a genuine release of votes and return its certificate."""
    np.save(folder / "votes.npy", _genuine_counts(folder))
    fields = {"private": folder / "votes.npy", "kind": "counts", "classes": "no,yes"}
    fields |= {"epsilon": 2.0, "delta": 1e-5, "ledger": "own", "confirm": ("noise",)}
    fields |= {"n_queries": 10, "out": folder / "run"}
    sb.run(RunSpec.of_tree(Sources(fields=fields, method=VOTES).tree()))
    (folder / "run" / "release").rename(folder / "release")
    return json.loads((folder / "release" / "certificate.json").read_text())


def _change_certificate(folder: Path, document: Any, rng: Random) -> None:
    """Write an edited certificate, at times with a fresh digest, as a forger would make one."""
    changed, content = edits.edited_document(document, rng), None
    if rng.random() < 0.5 and isinstance(changed, dict):
        with contextlib.suppress(sb.SecretBallotError, TypeError):
            changed["digest"] = certificate_digest(changed)
            content = edits.json_bytes(changed)
    (folder / "certificate.json").write_bytes(content or edits.json_bytes(changed, rng))


def _change_release(folder: Path, certificate: Any, rng: Random) -> None:
    """Edit the labels and another file, at times with a certificate that states the new files."""
    place = folder / "release"
    rows = [line.split(",") for line in (place / "labels.csv").read_text().splitlines()]
    (place / "labels.csv").write_bytes(edits.csv_bytes(edits.edited_rows(rows, rng)))
    edited = rng.choice(sorted(place.iterdir()))
    edited.write_bytes(edits.edited_bytes(edited.read_bytes(), rng))
    if rng.random() < 0.5 and edited.name != "certificate.json":
        contents = {one.name: one.read_bytes() for one in place.iterdir()}
        listed = {
            name: {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
            for name, content in contents.items()
            if name != "certificate.json"
        }
        released = certificate["released"] | {"labels_sha256": listed["labels.csv"]["sha256"]}
        forged = with_files({**certificate, "released": released}, listed)
        (place / "certificate.json").write_bytes(edits.json_bytes(forged))


def _read_release(name: str) -> Callable[[Path], str]:
    def read(folder: Path) -> str:
        found = sb.verify_certificate(folder / name)
        said = "\n".join(check.detail for check in found.checks)
        if not found.ok:
            raise sb.CertificateError(said)
        return said

    return read


# Plans, runs, sessions, ledgers, students


def _change_plan(folder: Path, content: bytes, rng: Random) -> None:
    (folder / "plan.toml").write_bytes(edits.edited_bytes(content, rng))


def _read_plan(folder: Path) -> None:
    RunSpec.read(folder / "plan.toml")


def _read_run(folder: Path) -> None:
    with RunFolder(folder / "run", {"verb": "learn", "epsilon": 1.0, "classes": ["no", "yes"]}):
        pass


def _run_json(folder: Path) -> Any:
    _read_run(folder)
    return json.loads((folder / "run" / "vault" / "run.json").read_text())


def _genuine_session(folder: Path) -> list[str]:
    """Make a session with answers and return the names of the files of its vault."""
    rng = np.random.default_rng(6)
    X, vault = rng.normal(size=(400, 2)), folder / "vault"
    teachers = sb.train_teachers(
        "logistic", X, (X[:, 0] > 0).astype(int), classes=[0, 1], n_teachers=40, vault=vault
    )
    budget = sb.PrivacyBudget(50.0, 0.5)
    ledger = sb.Ledger(folder / "ledger.sqlite", dataset="registry", budget=budget)
    stream = SparseVector(threshold_scale=0.5, query_scale=0.5, threshold=12, max_abstentions=3)
    begun(teachers, stream, ledger, 20, delta=3e-4).ask_many(rng.normal(size=(3, 2)))
    files = [path for path in vault.rglob("*") if path.is_file() and path.suffix in ("", ".json")]
    return sorted(str(path.relative_to(vault)) for path in files)


def _change_session(folder: Path, files: list[str], rng: Random) -> None:
    file = folder / "vault" / rng.choice(files)
    try:
        document = json.loads(file.read_bytes())
    except ValueError:
        file.write_bytes(edits.edited_bytes(file.read_bytes(), rng))
    else:
        document = document if isinstance(document, dict | list) else [document]
        file.write_bytes(edits.json_bytes(edits.edited_document(document, rng), rng))


def _read_session(folder: Path) -> None:
    sb.LabelingSession.reopen(folder / "vault").ask(np.array([0.25, 0.5]))


_BOUGHT, _PRICE = [Pure(epsilon=0.1, count=1)], sb.PrivacyBudget(0.1, 1e-6)


def _genuine_ledger(folder: Path) -> None:
    budget = sb.PrivacyBudget(5.0, 1e-3)
    ledger = sb.Ledger(folder / "ledger.sqlite", dataset="registry", budget=budget)
    for number in range(3):
        bought = ledger.reserve(_BOUGHT, _PRICE, request=f"r{number}", purpose="a purpose")
        if number:
            with ledger.answering(bought) as page:
                page.add([(b"0", b"an answer")])
                page.commit({})


def _change_ledger(folder: Path, _: None, rng: Random) -> None:
    """Edit cells or bytes of a ledger, as somebody who takes its triggers away and puts them
    back."""
    file = folder / "ledger.sqlite"
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.deserialize(file.read_bytes())
        named = "SELECT name, sql FROM sqlite_master WHERE type = ?"
        triggers = connection.execute(named, ("trigger",)).fetchall()
        tables = [name for name, _ in connection.execute(named, ("table",))]
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        for _ in range(rng.randrange(3)):
            table = rng.choice(tables)
            column = rng.choice(connection.execute(f'PRAGMA table_info("{table}")').fetchall())[1]
            value = edits.hostile_value(rng) if rng.random() < 0.8 else rng.randbytes(5)
            cell = json.dumps(value) if isinstance(value, dict | list) else value
            with contextlib.suppress(sqlite3.Error, OverflowError):
                connection.execute(f'UPDATE "{table}" SET "{column}" = ?', (cell,))
        for _, words in triggers:
            connection.execute(words)
        content = connection.serialize()
    file.write_bytes(edits.seldom_edited(content, rng))


def _read_ledger(folder: Path) -> None:
    ledger = sb.Ledger.open_existing(folder / "ledger.sqlite")
    ledger.history()
    ledger.reserve(_BOUGHT, _PRICE, request="new", purpose="")


def _genuine_students(_: Path) -> list[bytes]:
    """Return saved students of several kinds."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.tree import DecisionTreeClassifier

    from secretballot.report.student_export import converted_student

    X = np.random.default_rng(7).normal(size=(40, 3))
    y = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
    trees = DecisionTreeClassifier(max_depth=4, random_state=0), sb.VotingStudent(random_state=0)
    others = LogisticRegression(), GaussianNB(), KNeighborsClassifier(3)
    return [converted_student(student.fit(X, y)).content for student in (*trees, *others)]


def _change_student(folder: Path, saved: list[bytes], rng: Random) -> None:
    (folder / "student.onnx").write_bytes(edits.edited_bytes(rng.choice(saved), rng))


def _read_student(folder: Path) -> None:
    from secretballot.report.student_load import load_student

    student = load_student(folder / "student.onnx")
    points = np.random.default_rng(8).normal(size=(5, 3))
    # an edited student may refuse points of this shape; it must not crash
    with contextlib.suppress(Exception):
        student.predict(points)


# The command line

_WORDS = """learn label evaluate plan verify ledger nonsense --epsilon --delta --total --classes
--target --n-teachers --set --out --ledger --dataset --kind --like --config --schema --drop --unit
--n-queries --mechanism --student --teacher --json --header --bounds --confirm --x private.csv
public.csv schema.json votes.npy release missing.csv release/certificate.json 1 0 -1 1e-5 1e400 nan
no,yes a,a ill n_queries=5 hypotheses=stumps mechanism=x:y=1 a=b counts show create north=1,1e-5
north=1 /dev/null . out"""
#: Lines that are in order but for one word at most, so that an edited one is understood before it
#: is refused.
_LINES = """
learn private.csv missing.csv --target ill --classes no,yes --epsilon 1 --delta 1e-5 --n-teachers 10
learn private.csv public.csv --target ill --classes no,maybe --epsilon 1 --schema schema.json
learn private.csv public.csv --target ill --classes no,maybe --unit person
learn private.csv public.csv --target ill --classes no,maybe --epsilon 1 --set hypotheses=stumps
label votes.npy --epsilon 1 --delta 1e-5 --kind counts --classes a,b,c --n-queries 5
plan 30 --n-records 1000 --classes no,no --epsilon 1 --delta 1e-5
plan 30 --n-records 1000 --like public.csv --target dose --epsilon 1 --delta 1e-5
verify release
verify release/certificate.json --json
verify --independent release
ledger show ledger.sqlite
ledger show ledger.sqlite --json
ledger create ledger.sqlite --dataset registry --total 1,1e-5
"""


def _word(rng: Random) -> str:
    if rng.random() < 0.7:
        return rng.choice(_WORDS.split())
    # who types a word may see it again
    return edits.hostile_cell(rng).replace(MARKER, "word").replace("\0", "0")


def _command_folder(folder: Path) -> None:
    """Make every file that the lines name."""
    _genuine_tables(folder)
    _genuine_release(folder)
    sb.Ledger(folder / "ledger.sqlite", dataset="registry", budget=sb.PrivacyBudget(5.0, 1e-3))


def _change_command(folder: Path, _: None, rng: Random) -> None:
    words = rng.choice(_LINES.splitlines()).split()
    for _ in range(rng.randrange(4)):
        at, action = rng.randrange(len(words) + 1), rng.choice(("set", "set", "insert", "remove"))
        words[at : at + (action != "insert")] = [] if action == "remove" else [_word(rng)]
    words += [_word(rng) for _ in range(rng.choice((0, 0, 1, 3)))]
    (folder / "words.json").write_text(json.dumps(words))


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
    return 0


@functools.cache
def _command_program() -> Any:
    """Return the program, whose building takes ten times as long as most lines."""
    from typer.main import get_command

    from secretballot.cli import app

    return get_command(app)


_VERIFIED = (DONE, NOT_VERIFIED)
_PAYS = (DONE, BAD_INPUT, BUDGET_REFUSED)

PARSERS: dict[str, Parser] = {
    "private-csv": Parser(_genuine_tables, _change_csv("private.csv"), _read_tables),
    "public-csv": Parser(_public_rows, _change_csv("public.csv"), _read_tables),
    "private-parquet": Parser(
        _genuine_tables,
        _change_parquet("private.parquet"),
        functools.partial(_read_tables, private="private.parquet"),
    ),
    "schema": Parser(_genuine_schema, _change_json("schema.json"), _read_tables),
    "kinds-csv": Parser(_rows_of_kinds, _change_csv("kinds.csv"), _read_kinds),
    "kinds-schema": Parser(_genuine_kinds, _change_json("kinds.json"), _read_schema_of_kinds),
    "votes-csv": Parser(_vote_rows, _change_csv("votes.csv"), _read_votes("votes.csv", "votes")),
    "votes-parquet": Parser(
        _vote_rows, _change_parquet("votes.parquet"), _read_votes("votes.parquet", "votes")
    ),
    "counts-csv": Parser(
        _count_rows, _change_csv("counts.csv"), _read_votes("counts.csv", "counts")
    ),
    "counts-npy": Parser(_genuine_counts, _change_npy, _read_votes("votes.npy", "counts")),
    "certificate": Parser(
        _genuine_release,
        _change_certificate,
        _read_release("certificate.json"),
        _VERIFIED,
        private=False,
    ),
    "release": Parser(_genuine_release, _change_release, _read_release("release"), _VERIFIED),
    "plan": Parser(lambda _: _plan_toml(plan_for()).encode(), _change_plan, _read_plan),
    "run": Parser(_run_json, _change_json("run/vault/run.json"), _read_run),
    "session": Parser(_genuine_session, _change_session, _read_session, _PAYS),
    "ledger": Parser(_genuine_ledger, _change_ledger, _read_ledger, _PAYS),
    "student": Parser(_genuine_students, _change_student, _read_student),
    "command-line": Parser(
        _command_folder, _change_command, _run_command, (*_PAYS, NOT_VERIFIED, UNDECIDED)
    ),
}
CASES = {name: Case(reading(name, one), 100_000, 5_000) for name, one in PARSERS.items()}
