"""Wide tables of mostly zeros reach teachers as sparse matrices, by public points alone."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import BernoulliNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError
from secretballot.learners.training import trial_fit
from secretballot.learners.training.shards import assign_stored_shards
from secretballot.learners.training.trial_fit import reads_sparse
from secretballot.teachers.rows import as_csr
from sessions import in_rounds, of_fit

WARDS = [f"w{number}" for number in range(1200)]
K = 8


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    ward = rng.integers(0, len(WARDS), n)
    ill = np.where(ward % 2 == 1, "yes", "no")
    return pd.DataFrame({"age": rng.normal(50, 9, n), "ward": np.array(WARDS)[ward], "ill": ill})


SCHEMA = Schema.from_json({"columns": {"age": "numeric", "ward": WARDS}}, public=people(50, 0))
PRIVATE, PUBLIC = people(1200, 1), people(150, 2)
X, X_PUBLIC = SCHEMA.encode(PRIVATE), SCHEMA.encode(PUBLIC)
Y = PRIVATE["ill"].to_numpy()


class Noting(ClassifierMixin, BaseEstimator):
    """Notes what it is given, in a list that all copies share."""

    seen: list[Any] = []  # noqa: RUF012

    def fit(self, X: Any, y: Any) -> "Noting":
        self.seen.append(X)
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        self.seen.append(X)
        return np.zeros(X.shape[0], dtype=int)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


def fitted(
    teacher: Any, private: Any = X, y: Any = Y, points: Any = X_PUBLIC, **more: Any
) -> sb.PATEClassifier:
    given = {"X_public": points, "classes": ["no", "yes"], **of_fit(more)}
    model = sb.PATEClassifier(
        teacher, n_teachers=K, epsilon=8.0, delta=1e-5, random_state=0, **more
    )
    model.fit_labels(private, y, **given)
    return model


@pytest.mark.parametrize(
    ("teacher", "taken"),
    [
        (LogisticRegression(), True),
        (BernoulliNB(), True),
        (make_pipeline(StandardScaler(with_mean=False), LogisticRegression()), True),
        (make_pipeline(StandardScaler(), LogisticRegression()), False),  # centred, it is dense
        (GaussianNB(), False),
        (HistGradientBoostingClassifier(max_iter=2), False),
        # missing values are taken of arrays alone, and private rows may have some
        (DecisionTreeClassifier(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_who_reads_sparse_matrices_follows_from_tag_and_trial(teacher: Any, taken: bool) -> None:
    assert reads_sparse(teacher, X_PUBLIC, 2) is taken


def test_teachers_get_sparse_shards_and_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Noting, "seen", [])
    fitted(Noting())
    of_teachers = [X for X in Noting.seen if X.shape[0] != trial_fit.ROWS]
    assert len(of_teachers) == 2 * K
    assert all(isinstance(one, sparse.csr_matrix) for one in of_teachers)
    assert sorted(np.concatenate([one.toarray()[:, 0] for one in of_teachers[:K]])) == sorted(
        X[:, 0]
    )


def test_a_table_on_disk_gives_the_same_sparse_shards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PRIVATE.to_csv(tmp_path / "private.csv", index=False)
    table = sb.store_table(
        tmp_path / "private.csv", tmp_path / "v", schema=SCHEMA, target="ill", classes=["no", "yes"]
    )
    shards = assign_stored_shards(table, 3, "replace-one", tmp_path / "v")
    for number in range(3):
        plain, labels = shards.part(number)
        thin, same = replace(shards, sparse=True).part(number)
        assert isinstance(thin, sparse.csr_matrix)
        assert thin.indices.dtype == np.int32
        assert (thin.toarray() == plain).all()
        assert (labels == same).all()
    monkeypatch.setattr(Noting, "seen", [])
    fitted(Noting(), table, None, vault=tmp_path / "kept")
    of_teachers = [X for X in Noting.seen if X.shape[0] != trial_fit.ROWS]
    assert all(isinstance(one, sparse.csr_matrix) for one in of_teachers)
    assert sum(one.shape[0] for one in of_teachers[:K]) == len(X)


@pytest.mark.parametrize("narrow", [False, True])
def test_shards_on_disk_have_the_form_of_sparse_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, narrow: bool
) -> None:
    private, points = PRIVATE[["age", "ill"]], PUBLIC[["age"]]
    schema = Schema.infer(points) if narrow else SCHEMA
    (private if narrow else PRIVATE).to_csv(tmp_path / "private.csv", index=False)
    about = {"schema": schema, "target": "ill", "classes": ["no", "yes"]}
    table = sb.store_table(tmp_path / "private.csv", tmp_path / "v", **about)
    monkeypatch.setattr(Noting, "seen", [])
    fitted(Noting(), table, None, schema.encode_sparse(PUBLIC))
    of_teachers = [X for X in Noting.seen if X.shape[0] != trial_fit.ROWS]
    assert len(of_teachers) == 2 * K
    assert all(sparse.issparse(one) for one in of_teachers)


def test_sparse_rows_are_those_of_the_array_to_the_last_bit() -> None:
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
    kinds: dict[str, Any] = {
        "a": "text",
        "b": {"kind": "text", "encoding": "tfidf", "width": 3},
        "c": {"kind": "text", "encoding": "hashed", "width": 20},
        "n": {"kind": "numeric", "center": 0, "scale": 1},
        "d": "date",
    }
    schema = Schema.from_json({"columns": kinds}, public=frame)
    rows, _ = schema.compact(frame)
    made = schema.widen_sparse(rows)
    wanted = as_csr(schema.widen(rows))
    for name in ("data", "indices", "indptr"):
        assert getattr(made, name).tobytes() == getattr(wanted, name).tobytes()
    assert (schema.encode_sparse(frame) != made).nnz == 0
    with pytest.raises(DataError, match="lacks"):
        schema.encode_sparse(frame[["a"]])
    assert schema.widen_sparse(rows[:0]).shape == (0, schema.widen(rows).shape[1])


def test_an_empty_stored_shard_has_its_width(tmp_path: Path) -> None:
    PRIVATE[:2].to_csv(tmp_path / "private.csv", index=False)
    table = sb.store_table(
        tmp_path / "private.csv", tmp_path / "v", schema=SCHEMA, target="ill", classes=["no", "yes"]
    )
    shards = assign_stored_shards(table, 3, "add-remove", tmp_path / "v")
    sizes = [replace(shards, sparse=True).part(number)[0].shape for number in range(3)]
    assert {width for _, width in sizes} == {X.shape[1]}
    assert sum(rows for rows, _ in sizes) == 2


def test_rounds_are_asked_in_the_form_that_teachers_learned_from(tmp_path: Path) -> None:
    ledger = sb.Ledger.in_memory(dataset="d", budget=sb.PrivacyBudget(epsilon=20.0, delta=1e-4))
    terms: dict[str, Any] = {
        "n_teachers": K, "epsilon": 8.0, "delta": 1e-5, "n_queries": 10,
        "ledger": ledger, "random_state": 0,
    }  # fmt: skip
    given: dict[str, Any] = {"X_public": X_PUBLIC, "classes": ["no", "yes"]}
    given |= {"vault": tmp_path / "v", "request": "one"}
    first = in_rounds(BernoulliNB(), BernoulliNB(), **terms).fit(X, Y, **given)
    again = in_rounds(BernoulliNB(), BernoulliNB(), **terms).fit(X, Y, **given)
    assert (first.predict(X_PUBLIC) == again.predict(X_PUBLIC)).all()
