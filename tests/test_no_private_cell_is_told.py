"""A mark is planted in the cells of every private input; no message, log, warning or file outside
of a vault may hold it."""

import csv
import io
import itertools
import json
import logging
import traceback
import warnings
import zipfile

import numpy as np
import pytest
from typer.testing import CliRunner

from secretballot.cli import app

MARK = "Zq4711Zq"
NUMBER = 471147114711
N, TEACHERS = 120, 4
HEADER = ["id", "age", "ward", "ill"]
INPUTS = {"private.csv", "private.parquet", "public.csv", "schema.json", "test.csv", "votes.npy"}
INPUTS |= {"votes.csv", "votes.parquet", "like.csv"}


def records():
    rng = np.random.default_rng(11)
    ages = rng.integers(20, 90, N)
    wards = rng.choice(["north", "south"], N)
    rows = zip(range(N), ages, wards, strict=True)
    return [
        [f"p{row // 2}", str(age), ward, "yes" if age > 55 else "no"] for row, age, ward in rows
    ]


def with_cells(cells):
    """Return records with other cells at some places."""
    rows = records()
    for (row, column), cell in cells.items():
        rows[row][HEADER.index(column)] = cell
    return rows


# What is planted where, and whether a run may go on with it.
CELLS = {
    "a class that was not declared": ({(7, "ill"): MARK}, (2,)),
    "a class that is a number": ({(7, "ill"): str(NUMBER)}, (2,)),
    "a class with another mark behind it": ({(7, "ill"): f"yes\u202e{MARK}"}, (2,)),
    "no unit beside marks": ({(7, "id"): "", (7, "ward"): MARK, (8, "id"): MARK}, (2,)),
    "text in a column of numbers": ({(7, "age"): MARK}, (0, 2)),
    "a number beyond all others, unknown categories, a long cell, a unit": (
        {(7, "age"): str(NUMBER), (8, "ward"): MARK, (9, "ward"): MARK * 1000, (10, "id"): MARK},
        (0,),
    ),
    "other categories": ({(row, "ward"): f"{MARK}{row % 3}." for row in range(N)}, (2,)),
    "other numbers": ({(row, "age"): f"{NUMBER},{row % 3}" for row in range(N)}, (2,)),
}
# These need the text of a file, not cells.
LINES = {
    "a cell too many": lambda text: text + f"p1,30,north,no,{MARK}\n".encode(),
    "a cell too few": lambda text: text + f"{MARK},{NUMBER}\n".encode(),
    "a quotation mark that stays open": lambda text: (
        text + f'p1,30,"{MARK},no\np2,9,x,no\n'.encode()
    ),
    "text after a quotation": lambda text: text + f'p1,30,"{MARK}"{MARK},no\n'.encode(),
    "bytes that are no text": lambda text: text + MARK.encode() + b"\xff,30,north,no\n",
    "a byte of nothing": lambda text: MARK.encode() + b"\0" + text,
    "no header": lambda text: f"{MARK},{NUMBER},{MARK},no\n".encode() + text.split(b"\n", 1)[1],
    "a cell twice in the place of a header": lambda text: f"{MARK},{MARK}\n".encode() + text,
}


def table(header, rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue().encode()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = records()
    (tmp_path / "public.csv").write_bytes(table(["age", "ward"], [row[1:3] for row in rows[:60]]))
    (tmp_path / "private.csv").write_bytes(table(HEADER, rows))
    (tmp_path / "test.csv").write_bytes(table(HEADER[1:], [row[1:] for row in rows[:30]]))
    (tmp_path / "like.csv").write_bytes(table(HEADER[1:], [row[1:] for row in rows]))
    columns = {"age": "numeric", "ward": ["north", "south"]}
    (tmp_path / "schema.json").write_text(
        json.dumps({"columns": columns, "classes": ["no", "yes"]})
    )
    return tmp_path


TABLES = ("private.csv", "public.csv", "--target", "ill", "--classes", "no,yes")
PRICE = ("--epsilon", "4", "--delta", "1e-4", "--total", "20,1e-2")
ANYWAY = ("--confirm", "records,teachers,noise")
MOMENTS = ("learn", *TABLES, *PRICE, *ANYWAY, "--unit", "id", "--set", "exclude=report")
MOMENTS += ("--out", "out")
LEARN = (*MOMENTS, "--n-teachers", str(TEACHERS), "--set", "n_queries=20", "--student", "tree")
CHOOSE = ("learn", *TABLES, "--epsilon", "4", "--total", "20,1e-2", "--drop", "id,ward")
CHOOSE += ("--set", "hypotheses=stumps", "--out", "out")
PLAN = ("plan", "200", "--n-records", "1000", "--epsilon", "1", "--delta", "1e-5")
PLAN += ("--like", "like.csv", "--target", "ill", "--classes", "no,yes", "--out", "out")


def told(words, folder, caplog):
    """Run a command and return its exit code, and all that can be seen of it outside of a vault."""
    caplog.set_level(logging.INFO)
    caplog.clear()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        result = CliRunner().invoke(app, list(words))
    seen = [result.stdout, result.stderr, caplog.text, *(str(one.message) for one in warned)]
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        seen += traceback.format_exception(result.exception)
    for path in folder.rglob("*"):
        place = path.relative_to(folder)
        if "vault" not in place.parts[:-1] and str(place) not in INPUTS:
            seen += [str(place), *(contents(path) if path.is_file() else ())]
    return result.exit_code, "\n".join(seen)


def contents(path):
    """Return what a file holds, and what the members of an archive hold."""
    found = [path.read_bytes()]
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            found += [archive.read(name) for name in archive.namelist()]
    return [content.decode("latin-1") for content in found]


def refuse_marks(seen):
    for mark in (MARK, MARK.lower(), str(NUMBER), f"{NUMBER:,}", f"{NUMBER:.6g}"):
        assert mark not in seen, seen[max(0, seen.index(mark) - 200) :][:400]


READERS = ("csv", "moments", "schema", "parquet", "typed parquet")
#: All plants in one reader; in each other one that is refused and one that is released.
READ = [*itertools.product(CELLS, ["csv"]), *itertools.product([*CELLS][::5], READERS[1:])]


@pytest.mark.parametrize(("name", "reader"), READ)
def test_a_run_tells_no_cell_of_its_private_table(reader, name, folder, caplog):
    cells, codes = CELLS[name]
    rows, words = with_cells(cells), MOMENTS if reader == "moments" else LEARN
    (folder / "private.csv").write_bytes(table(HEADER, rows))
    if "parquet" in reader:
        write_parquet(folder, rows, typed=reader == "typed parquet")
        words = ("learn", "private.parquet", *LEARN[2:])
    if reader == "schema":
        words = (*words, "--schema", "schema.json")
    code, seen = told((*words, "--json"), folder, caplog)
    assert code in codes, seen[:2000]
    refuse_marks(seen)


@pytest.mark.parametrize("name", CELLS)
def test_a_check_tells_no_cell_and_writes_nothing(name, folder, caplog):
    rows = with_cells(CELLS[name][0])
    (folder / "private.csv").write_bytes(table(HEADER, rows))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    for more in (("--json",), ("--set", "accept_unseen=age,ward")):
        code, seen = told(("check", *TABLES, "--unit", "id", *more), folder, caplog)
        assert code in (0, 2)
        refuse_marks(seen)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def write_parquet(folder, rows, *, typed):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = dict(zip(HEADER, map(list, zip(*rows, strict=True)), strict=True))
    made = {name: pa.array(cells) for name, cells in columns.items()}
    if typed:
        made["ward"] = made["ward"].dictionary_encode()
        if all(cell.isdigit() for cell in columns["age"]):
            made["age"] = pa.array([int(cell) for cell in columns["age"]])
    parquet.write_table(pa.table(made), folder / "private.parquet")


ROLES = ("test", "like", "private of a choice")


@pytest.mark.parametrize(
    ("role", "name"),
    [*itertools.product(["private"], LINES), *itertools.product(ROLES, [*LINES][::4])],
)
def test_a_broken_file_is_refused_without_its_cells(role, name, folder, caplog):
    place, words = {
        "private": ("private.csv", LEARN),
        "test": ("test.csv", (*LEARN, "--evaluate", "test.csv")),
        "private of a choice": ("private.csv", CHOOSE),
        "like": ("like.csv", PLAN),
    }[role]
    (folder / place).write_bytes(LINES[name]((folder / place).read_bytes()))
    code, seen = told(words, folder, caplog)
    assert code == 2, seen[:2000]
    refuse_marks(seen)


@pytest.mark.parametrize("name", ["a class that was not declared", "a class that is a number"])
def test_a_stand_in_tells_no_cell(name, folder, caplog):
    rows = with_cells(CELLS[name][0])
    (folder / "like.csv").write_bytes(table(HEADER[1:], [row[1:] for row in rows]))
    code, seen = told(PLAN, folder, caplog)
    assert code == 2, seen[:2000]
    refuse_marks(seen)


def vote_file(folder, form, cells):
    if form == "csv":
        (folder / "votes.csv").write_text("\n".join(",".join(map(str, row)) for row in cells))
    elif form == "npy":
        np.save(folder / "votes.npy", np.array(cells))
    else:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        names = [f"t{place}" for place in range(len(cells[0]))]
        columns = [pa.array(list(column)) for column in zip(*cells, strict=True)]
        parquet.write_table(pa.table(columns, names=names), folder / "votes.parquet")
    return f"votes.{form}"


def votes():
    return [["no" if (row + place) % 3 else "yes" for place in range(9)] for row in range(30)]


def counts():
    return [[row % 10, 9 - row % 10] for row in range(30)]


@pytest.mark.parametrize(
    ("form", "place"), [("csv", (0, 0)), ("csv", (29, 1)), ("npy", (0, 0)), ("parquet", (29, 1))]
)
@pytest.mark.parametrize("kind", ["votes", "counts"])
def test_no_vote_is_told(kind, form, place, folder, caplog):
    cells = votes() if kind == "votes" else counts()
    words = ("--kind", kind, "--classes", "no,yes", *PRICE, *ANYWAY, "--out", "out")
    odd = [MARK, str(NUMBER)] if kind == "votes" else [NUMBER, NUMBER + 0.5]
    for mark in odd:
        cells[place[0]][place[1]] = mark
        if form == "parquet" and kind == "counts":
            cells = [[float(cell) for cell in row] for row in cells]
        name = vote_file(folder, form, cells)
        code, seen = told(("label", name, *words), folder, caplog)
        assert code == 2, seen[:2000]
        refuse_marks(seen)


def test_the_walk_sees_a_mark_wherever_it_is(folder, caplog):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("schema.json", f'{{"x": "{MARK}"}}' * 100)
    (folder / "out" / "vault").mkdir(parents=True)
    for place, content in (
        ("report.html", f"<p>{MARK}</p>".encode()),
        ("table.zip", packed.getvalue()),
        (f"{MARK}.txt", b""),
        ("plan.json", f"{NUMBER:,}".encode()),
    ):
        (folder / "out" / place).write_bytes(content)
        with pytest.raises(AssertionError):
            refuse_marks(told(("verify", "out"), folder, caplog)[1])
        (folder / "out" / place).unlink()
    with pytest.raises(AssertionError):  # a sentence that names its argument
        refuse_marks(told(("verify", MARK), folder, caplog)[1])
    (folder / "out" / "vault" / "run.json").write_text(MARK)
    refuse_marks(told(("verify", "out"), folder, caplog)[1])
