"""Columns whose cells are vectors: embeddings, or the pixels of images."""

import hashlib
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from secretballot.data.cells import texts_of, vectors_of
from secretballot.data.columns import VectorColumn
from secretballot.data.reading import read_table, table_blocks
from secretballot.data.schema import Schema
from secretballot.data.sources import source_of
from secretballot.exceptions import DataError

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N, WIDTH = 60, 5
RNG = np.random.default_rng(3)
# what single precision holds exactly, so that all types of a file agree
VECTORS = RNG.normal(size=(N, WIDTH)).astype(np.float32).astype(np.float64)


def column_of(cells: Any) -> "pd.Series[Any]":
    column = pd.Series([None] * len(cells), dtype=object)
    for row, cell in enumerate(cells):
        column[row] = cell
    return column


def written(path: Path, cells: Any, kind: Any) -> Path:
    parquet.write_table(pa.table({"scan": pa.array(list(cells), type=kind), "n": range(N)}), path)
    return path


KINDS = {
    "list": pa.list_(pa.float32()),
    "list of doubles": pa.list_(pa.float64()),
    "large list": pa.large_list(pa.float32()),
    "fixed size": pa.list_(pa.float32(), WIDTH),
}


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_numbers_in_parquet_are_vectors(tmp_path: Path, kind: str) -> None:
    cells: list[Any] = [row.tolist() for row in VECTORS]
    if kind == "fixed size" and int(pa.__version__.partition(".")[0]) < 26:
        pytest.skip("pyarrow before 26 keeps no missing list of a fixed size")
    cells[4], cells[7] = None, [1.0, None, 2.0, 3.0, 4.0]
    path = written(tmp_path / "t.parquet", cells, KINDS[kind])
    schema = Schema.infer(read_table(path))
    assert schema.reasons["scan"] == f"98.3 % of the public cells are vectors of {WIDTH} numbers"
    encoding = schema.encoding(read_table(path))
    known = np.delete(np.arange(N), [4, 7])
    center = VECTORS[known].mean(axis=0)
    spread = math.sqrt(VECTORS[known].var(axis=0).mean())
    assert encoding.matrix[known, :WIDTH] == pytest.approx((VECTORS[known] - center) / spread)
    assert (encoding.matrix[[4, 7], :WIDTH] == 0).all()
    assert encoding.odd["scan"].strange.tolist() == [7]
    assert encoding.odd["scan"].missing == 1
    # block by block, and sliced within a chunk, it is the same
    blocks = [schema.encode(block) for block in table_blocks(path, rows=7)]
    assert (np.concatenate(blocks) == encoding.matrix).all()


def test_a_tensor_of_fixed_shape_is_a_vector_row_by_row(tmp_path: Path) -> None:
    images = RNG.integers(0, 256, size=(N, 2, 3)).astype(np.uint8)
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(images)
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"image": tensors}), path)
    cells = read_table(path)["image"]
    assert (vectors_of(cells, 6) == images.reshape(N, 6)).all()


def test_csv_and_parquet_and_python_say_the_same(tmp_path: Path) -> None:
    there = read_table(written(tmp_path / "t.parquet", VECTORS.tolist(), KINDS["list"]))
    table = pd.DataFrame({"scan": [str(row.tolist()) for row in VECTORS], "n": range(N)})
    table.to_csv(tmp_path / "t.csv", index=False)
    schema = Schema.infer(there)
    wanted = schema.encode(there)
    assert (schema.encode(read_table(tmp_path / "t.csv")) == wanted).all()
    assert Schema.infer(read_table(tmp_path / "t.csv")).to_json() == schema.to_json()
    for make in (list, tuple, np.array, str):
        frame = pd.DataFrame({"scan": column_of([make(row.tolist()) for row in VECTORS])})
        assert (schema.encode(frame.assign(n=range(N))) == wanted).all()


@pytest.mark.parametrize(
    "odd",
    [
        [1.0] * (WIDTH + 1),
        [],
        "[1, 2, 3, 4, x]",
        "[1, 2, 3, 4",
        "abc",
        7.5,
        [[1.0], [2.0, 3.0]],
        [math.nan] * WIDTH,
        [1.0, 2.0, 3.0, 4.0, math.inf],
        [1.0, 2.0, 3.0, 4.0, 1e31],
        [10**400] * WIDTH,
        [{}] * WIDTH,
        np.full(WIDTH, 1 + 2j),
    ],
    ids=str,
)
def test_an_odd_cell_changes_no_other(odd: Any) -> None:
    column = VectorColumn(name="scan", center=(0.0,) * WIDTH, scale=1.0)
    cells = column_of(list(VECTORS))
    plain, _ = column.compact(cells)
    cells[3] = odd
    kept, found = column.compact(cells)
    others = np.delete(np.arange(N), 3)
    assert (kept[others] == plain[others]).all()
    assert np.isnan(kept[3]).all()
    assert found.strange.tolist() == [3]
    assert found.missing == 0


def test_a_vector_as_text_is_whole_and_read_back() -> None:
    long = RNG.normal(size=(2, 2000))
    texts = texts_of(column_of(list(long)))
    assert "..." not in texts[0]
    assert (vectors_of(pd.Series(texts, dtype=object), 2000) == long).all()


def test_the_schema_says_all() -> None:
    frame = pd.DataFrame({"scan": column_of(list(VECTORS)), "n": range(N)})
    schema = Schema.infer(frame)
    assert schema.feature_names[:2] == ("scan[0]", "scan[1]")
    declared = {"columns": {"scan": "vector", "n": "ignored"}}
    for document in (json.loads(json.dumps(schema.to_json())), declared):
        again = Schema.from_json(document, public=frame)
        assert (again.encode(frame) == schema.encode(frame)).all()
    rows, _ = schema.compact(frame)
    assert rows.dtype.itemsize == 4 * WIDTH  # the other column counts the rows
    assert (schema.widen(rows) == schema.encode(frame)).all()


def table_with_array(folder: Path, array: Any, name: str = "scan") -> Path:
    """Return a CSV file of numbers, with an array beside it."""
    path = folder / "patients.csv"
    pd.DataFrame({"n": range(N), "age": RNG.integers(20, 90, N)}).to_csv(path, index=False)
    np.save(folder / f"patients.{name}.npy", array)
    return path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_rows_of_an_array_beside_a_table_are_a_column(tmp_path: Path, kind: str) -> None:
    images = RNG.integers(0, 256, size=(N, 3, 4), dtype=np.uint8)
    path = table_with_array(tmp_path, images)
    np.save(tmp_path / "patients.2020.scan.npy", images[:3])  # of another table
    if kind == "parquet":
        pd.read_csv(path).to_parquet(tmp_path / "patients.parquet")
        path.unlink()
        path = tmp_path / "patients.parquet"
    frame = read_table(path)
    assert frame.columns.tolist() == ["n", "age", "scan"]
    assert (vectors_of(frame["scan"], 12) == images.reshape(N, 12)).all()
    blocks = list(table_blocks(path, rows=7))
    assert (vectors_of(pd.concat(blocks)["scan"], 12) == images.reshape(N, 12)).all()
    assert Schema.infer(frame).reasons["scan"] == "all public cells are vectors of 12 numbers"


def test_an_array_is_part_of_the_table_by_digest_size_and_time(tmp_path: Path) -> None:
    path = table_with_array(tmp_path, VECTORS)
    before = source_of(path)
    digest, signatures = before.digest(), before.signatures()
    other = tmp_path / "other"
    other.mkdir()
    # a public table whose vectors are the private ones
    pd.DataFrame({"age": range(N)}).to_csv(other / "pool.csv", index=False)
    np.save(other / "pool.scan.npy", VECTORS)
    assert source_of(other / "pool.csv").shares_file(before)
    np.save(tmp_path / "patients.scan.npy", VECTORS + 1.0)
    assert source_of(path).digest() != digest
    assert not source_of(other / "pool.csv").shares_file(source_of(path))
    (tmp_path / "patients.scan.npy").unlink()
    assert source_of(path).digest() == hashlib.sha256(path.read_bytes()).hexdigest()
    assert source_of(path).signatures() != signatures


@pytest.mark.parametrize(
    ("array", "said"),
    [
        (VECTORS[:-1], "has another number of rows than the table"),
        (np.concatenate([VECTORS, VECTORS]), "has another number of rows than the table"),
        (VECTORS[:, 0], r"no \.npy file of numbers with two dimensions"),
        (VECTORS.astype(str), r"no \.npy file of numbers with two dimensions"),
        (np.array([[{"a": "s3cr3t"}]] * N), r"no \.npy file of numbers with two dimensions"),
    ],
)
def test_an_array_that_does_not_fit_is_refused(tmp_path: Path, array: Any, said: str) -> None:
    path = table_with_array(tmp_path, array)
    for read in (read_table, lambda place: list(table_blocks(place, rows=7))):
        with pytest.raises(DataError, match=said) as told:
            read(path)
        assert told.value.__context__ is None


def test_an_array_of_the_name_of_a_column_and_a_damaged_one_are_refused(tmp_path: Path) -> None:
    path = table_with_array(tmp_path, VECTORS, "age")
    with pytest.raises(DataError, match=r"has a column 'age', and so says the array '.*age.npy'"):
        read_table(path)
    whole = (tmp_path / "patients.age.npy").read_bytes()
    (tmp_path / "patients.age.npy").unlink()
    for damaged in (b"", whole[:50], b"text", whole[:-8]):
        (tmp_path / "patients.scan.npy").write_bytes(damaged)
        with pytest.raises(DataError, match=r"no \.npy file of numbers"):
            read_table(path)
