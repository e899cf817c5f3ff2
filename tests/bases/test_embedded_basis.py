"""Rows are embedded one by one, by what public points alone have fitted."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import secretballot as sb
from secretballot.bases import EmbeddedBasis, GraphBasis, KernelBasis, TableBasis
from secretballot.exceptions import ParameterError

RNG = np.random.default_rng(0)
POOL, ROWS = RNG.normal(size=(200, 8)), RNG.normal(size=(150, 8))


class Company(TransformerMixin, BaseEstimator):
    """Maps a row by what stands around it, as a normalisation by batch does."""

    def fit(self, X, y=None):  # type: ignore[no-untyped-def]
        return self

    def transform(self, X):  # type: ignore[no-untyped-def]
        return np.asarray(X) + 100 * (len(X) - 1)


@pytest.mark.parametrize("inner", [None, GraphBasis(n_modes=20), TableBasis(n_bins=4)])
def test_it_is_the_basis_of_what_comes_out(inner) -> None:  # type: ignore[no-untyped-def]
    basis = EmbeddedBasis(PCA(3, svd_solver="full"), inner).fit(POOL)
    embedding = PCA(3, svd_solver="full").fit(POOL)
    vectors = [np.vstack([embedding.transform(row[None]) for row in rows]) for rows in (POOL, ROWS)]
    other = clone(KernelBasis(scaled=False) if inner is None else inner).fit(vectors[0])
    assert (basis.integers(ROWS) == other.integers(vectors[1])).all()
    assert (basis.covered(ROWS) == other.covered(vectors[1])).all()
    assert basis.uncovered_share_ == other.uncovered_share_
    described = basis.describe()
    assert described["embedding"] == "sklearn.decomposition._pca.PCA"
    assert described["name"] == f"embedded {other.describe()['name']}"


def test_no_row_hears_of_others_whatever_the_embedding_does() -> None:
    basis = EmbeddedBasis(Company()).fit(POOL)
    whole = basis.integers(ROWS)
    parts = [basis.integers(ROWS[at : at + 7]) for at in range(0, 150, 7)]
    assert (np.concatenate(parts) == whole).all()


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308])
def test_a_row_that_cannot_be_embedded_says_nothing_and_moves_no_other(odd: float) -> None:
    # the scaler refuses infinite cells with a message
    basis = EmbeddedBasis(StandardScaler()).fit(POOL)
    whole, changed = basis.integers(ROWS), ROWS.copy()
    changed[3, 2] = odd
    found = basis.integers(changed)
    others = np.arange(150) != 3
    assert (found[others] == whole[others]).all()


class Counting(Company):
    """Adds up what it has seen."""

    def transform(self, X):  # type: ignore[no-untyped-def]
        self.seen = getattr(self, "seen", 0.0) + float(np.sum(np.asarray(X, dtype=float)))
        return np.asarray(X) + self.seen


class Drawing(Company):
    """Adds noise of its own."""

    def transform(self, X):  # type: ignore[no-untyped-def]
        return np.asarray(X) + np.random.default_rng().normal(size=np.shape(X))


@pytest.mark.parametrize("embedding", [Counting(), Drawing()])
def test_one_that_is_no_function_of_the_row_is_refused(embedding: Company) -> None:
    with pytest.raises(ParameterError, match="makes other numbers of a public point"):
        EmbeddedBasis(embedding).fit(POOL)


def test_a_row_s_place_in_a_frame_is_not_shown() -> None:
    place = FunctionTransformer(lambda rows: rows.to_numpy() + rows.index.to_numpy()[:, None])
    basis = EmbeddedBasis(place).fit(pd.DataFrame(POOL))
    table = pd.DataFrame(ROWS, index=np.arange(1000, 1150))
    whole = basis.integers(table)
    assert (basis.integers(table.iloc[40:60]) == whole[40:60]).all()
    assert (basis.integers(table.iloc[::-1]) == whole[::-1]).all()


def test_one_that_was_fitted_to_other_rows_is_refused_and_one_without_a_count_is_kept() -> None:
    with pytest.raises(ParameterError, match="fitted to 150 rows and there are 200"):
        EmbeddedBasis(FrozenEstimator(PCA(2).fit(ROWS))).fit(POOL)
    # fitted before and not frozen: what it learned is forgotten
    again = EmbeddedBasis(PCA(2).fit(ROWS)).fit(POOL)
    assert np.allclose(again.embedding_.mean_, POOL.mean(axis=0))
    # a map with nothing learned, as of a network trained elsewhere
    kept = EmbeddedBasis(FrozenEstimator(FunctionTransformer(np.tanh).fit(POOL))).fit(POOL)
    assert kept.describe()["embedding"].endswith("FunctionTransformer")
    assert clone(kept).fit(POOL).integers(ROWS).tolist() == kept.integers(ROWS).tolist()


def test_moments_learn_by_it_and_the_certificate_names_it() -> None:
    X = np.random.default_rng(1).normal(size=(4000, 6))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    model = sb.RecordMomentsClassifier(
        EmbeddedBasis(PCA(2, svd_solver="full")), epsilon=3.0, delta=1e-5
    )
    product = FunctionTransformer(lambda X: X[:, :2])
    model.set_params(basis=EmbeddedBasis(product, KernelBasis(60)))
    model.fit(X[:3000], y[:3000], X_public=X[3000:], classes=[0, 1])
    assert model.score(X[3000:], y[3000:]) > 0.9
    assert "FunctionTransformer" in model.certificate_["public"]["basis"]["embedding"]
    sb.verify_certificate(model.certificate_)
