"""Sparse public points make sparse shards of a table on disk, whose rows are those of arrays."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin

import secretballot as sb
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError
from secretballot.learners.training import trained
from secretballot.learners.training.table import assign_stored_shards

WARDS = [f"w{number}" for number in range(1200)]
K = 8


def people(n, seed):
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, len(WARDS), n)
    ill = np.where(ward % 2 == 1, "yes", "no")
    return pd.DataFrame({"age": rng.normal(50, 9, n), "ward": np.array(WARDS)[ward], "ill": ill})


SCHEMA = Schema.from_json({"columns": {"age": "numeric", "ward": WARDS}}, public=people(50, 0))
PRIVATE, PUBLIC = people(1200, 1), people(150, 2)


class Noting(ClassifierMixin, BaseEstimator):
    """Notes what it is given, in a list that all copies share."""

    seen: list[Any] = []  # noqa: RUF012

    def fit(self, X, y):
        self.seen.append(X)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        self.seen.append(X)
        return np.zeros(X.shape[0], dtype=int)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@pytest.mark.parametrize("narrow", [False, True])
def test_shards_on_disk_have_the_form_of_sparse_points(tmp_path, monkeypatch, narrow):
    private, points = PRIVATE[["age", "ill"]], PUBLIC[["age"]]
    schema = Schema.infer(points) if narrow else SCHEMA
    (private if narrow else PRIVATE).to_csv(tmp_path / "private.csv", index=False)
    about = {"schema": schema, "target": "ill", "classes": ["no", "yes"]}
    table = sb.store_table(tmp_path / "private.csv", tmp_path / "v", **about)
    monkeypatch.setattr(Noting, "seen", [])
    model = sb.PATEClassifier(Noting(), n_teachers=K, epsilon=8.0, delta=1e-5)
    model.fit_labels(table, None, X_public=schema.encode_sparse(PUBLIC), classes=["no", "yes"])
    of_teachers = [X for X in Noting.seen if X.shape[0] != trained.ROWS]
    assert len(of_teachers) == 2 * K
    assert all(sparse.issparse(one) for one in of_teachers)


def test_sparse_rows_are_those_of_the_array_to_the_last_bit():
    cells = ["some pain", "no pain; fever", None, "", "!", "pain"] * 20
    frame = pd.DataFrame(
        {
            "a": cells,
            "b": cells,
            "c": cells,
            "n": [0, 1.5, None, "x", -2, 0] * 20,
            "d": "2020-02-29",
        }
    )
    kinds = {
        "a": "text",
        "b": {"kind": "text", "width": 3},
        "c": {"kind": "text", "encoding": "hashed", "width": 20},
        "n": {"kind": "numeric", "center": 0, "scale": 1},
        "d": "date",
    }
    schema = Schema.from_json({"columns": kinds}, public=frame)
    rows, _ = schema.compact(frame)
    made = schema.widen_sparse(rows)
    wanted = sparse.csr_matrix(schema.widen(rows))
    for name in ("data", "indices", "indptr"):
        assert getattr(made, name).tobytes() == getattr(wanted, name).tobytes()
    assert (schema.encode_sparse(frame) != made).nnz == 0
    with pytest.raises(DataError, match="lacks"):
        schema.encode_sparse(frame[["a"]])
    assert schema.widen_sparse(rows[:0]).shape == (0, schema.widen(rows).shape[1])


def test_an_empty_stored_shard_has_its_width(tmp_path):
    PRIVATE[:2].to_csv(tmp_path / "private.csv", index=False)
    table = sb.store_table(
        tmp_path / "private.csv", tmp_path / "v", schema=SCHEMA, target="ill", classes=["no", "yes"]
    )
    shards = assign_stored_shards(table, 3, "add-remove", tmp_path / "v")
    sizes = [replace(shards, sparse=True).part(number)[0].shape for number in range(3)]
    assert {width for _, width in sizes} == {SCHEMA.encode(PUBLIC).shape[1]}
    assert sum(rows for rows, _ in sizes) == 2
