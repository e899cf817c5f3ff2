"""Columns whose cells are vectors: embeddings, or the pixels of images."""

import json
import math

import numpy as np
import pandas as pd
import pytest

from secretballot.data.cells import texts_of
from secretballot.data.columns import VectorColumn, _vectors_of
from secretballot.data.reading import read_table, table_blocks
from secretballot.data.schema import Schema

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N, WIDTH = 60, 5
RNG = np.random.default_rng(3)
# what single precision holds exactly, so that all types of a file agree
VECTORS = RNG.normal(size=(N, WIDTH)).astype(np.float32).astype(np.float64)


def column_of(cells):
    column = pd.Series([None] * len(cells), dtype=object)
    for row, cell in enumerate(cells):
        column[row] = cell
    return column


def written(path, cells, kind):
    parquet.write_table(pa.table({"scan": pa.array(list(cells), type=kind), "n": range(N)}), path)
    return path


KINDS = {
    "list": pa.list_(pa.float32()),
    "list of doubles": pa.list_(pa.float64()),
    "large list": pa.large_list(pa.float32()),
    "fixed size": pa.list_(pa.float32(), WIDTH),
}


@pytest.mark.parametrize("kind", KINDS)
def test_lists_of_numbers_in_parquet_are_vectors(tmp_path, kind):
    cells = [row.tolist() for row in VECTORS]
    if kind == "fixed size" and int(pa.__version__.partition(".")[0]) < 26:
        pytest.skip("pyarrow before 26 keeps no missing list of a fixed size")
    cells[4], cells[7] = None, [1.0, None, 2.0, 3.0, 4.0]
    path = written(tmp_path / "t.parquet", cells, KINDS[kind])
    schema = Schema.infer(read_table(path))
    (reason,) = [one.reason for one in schema.inferred if one.column.name == "scan"]
    assert reason == f"98.3 % of the public cells are vectors of {WIDTH} numbers"
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


def test_a_tensor_of_fixed_shape_is_a_vector_row_by_row(tmp_path):
    images = RNG.integers(0, 256, size=(N, 2, 3)).astype(np.uint8)
    tensors = pa.FixedShapeTensorArray.from_numpy_ndarray(images)
    path = tmp_path / "t.parquet"
    parquet.write_table(pa.table({"image": tensors}), path)
    assert (_vectors_of(read_table(path)["image"], 6) == images.reshape(N, 6)).all()


def test_csv_and_parquet_and_python_say_the_same(tmp_path):
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
        *([1.0] * (WIDTH + 1), [], "[1, 2, 3, 4, x]", "[1, 2, 3, 4", "abc", 7.5),
        *([[1.0], [2.0, 3.0]], [math.nan] * WIDTH, [1.0, 2.0, 3.0, 4.0, math.inf]),
        *([1.0, 2.0, 3.0, 4.0, 1e31], [10**400] * WIDTH, [{}] * WIDTH, np.full(WIDTH, 1 + 2j)),
    ],
    ids=str,
)
def test_an_odd_cell_changes_no_other(odd):
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


def test_a_vector_as_text_is_whole_and_read_back():
    long = RNG.normal(size=(2, 2000))
    texts = texts_of(column_of(list(long)))
    assert "..." not in texts[0]
    assert (_vectors_of(pd.Series(texts, dtype=object), 2000) == long).all()


def test_the_schema_says_all():
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
