"""A public basis for what an embedding makes of rows: any transformer, asked row by row."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from secretballot._rows import take_rows
from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.bases.graph import GraphBasis
from secretballot.bases.integer_basis import IntegerBasis
from secretballot.bases.kernel import KernelBasis
from secretballot.bases.table import TableBasis
from secretballot.bases.vectors import numbers_of
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.foreign_code import rows_alone

#: Where transformers of scikit-learn note how many rows they were fitted to.
_SEEN = ("n_samples_seen_", "n_samples_", "n_samples_fit_")
#: Public points that are embedded twice, in another order, to find out what is no function of them.
_TRIED_ROWS = 20


class EmbeddedBasis(IntegerBasis):
    """Embed rows by a transformer, and map what comes out by another basis.

    A transformer may compute a row's numbers differently in the last digit when other rows are
    around it, so it is asked for one row at a time. A row that it cannot transform counts as one
    whose numbers are all missing; where the machine fails, the run ends. Vectors that were embedded
    before need no such basis: give them as `X` and `X_public`.

    Parameters
    ----------
    embedding : transformer with `transform`
        Cloned and fitted to the public points. One that was fitted before keeps what it learned if
        it is wrapped in `sklearn.frozen.FrozenEstimator`; it must have learned from public data
        alone, and is refused if it says that it saw another number of rows than the public points
        are. Its `transform` must draw nothing at random and keep nothing from row to row; what
        public points show of that is refused.
    basis : KernelBasis, GraphBasis or TableBasis, optional
        Of what comes out; a `KernelBasis` of unscaled columns by default.

    Attributes
    ----------
    n_directions_ : int
        Directions kept.
    uncovered_share_ : float
        Share of further points like the public ones that `covered` denies, about.

    Examples
    --------
    >>> from sklearn.decomposition import PCA
    >>> pool = np.random.default_rng(0).normal(size=(200, 30))
    >>> basis = sb.bases.EmbeddedBasis(PCA(5)).fit(pool)
    >>> basis.transform(pool[:3]).shape == (3, basis.n_directions_)
    True
    """

    def __init__(
        self, embedding: Any = None, basis: KernelBasis | GraphBasis | TableBasis | None = None
    ) -> None:
        self.embedding = embedding
        self.basis = basis

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn the map from public points.

        Parameters
        ----------
        X : array, sparse matrix, list of rows or frame of shape (n_public, n_features)
            Public.
        y : None
            Ignored.

        Raises
        ------
        DataError
            If the embedding makes no numbers of the public points.
        ParameterError
            If a setting is none, or the embedding has seen other rows.
        ResourceError
            If the machine failed.
        """
        if isinstance(self.embedding, type) or not hasattr(self.embedding, "transform"):
            raise ParameterError(
                Parameter("embedding"),
                f" is a {type(self.embedding).__name__}; give an object with a method transform(X),"
                " such as sklearn.decomposition.PCA(50).",
            )
        inner = KernelBasis(scaled=False) if self.basis is None else self.basis
        if not isinstance(inner, KernelBasis | GraphBasis | TableBasis):
            raise ParameterError(
                Parameter("basis"),
                f" is a {type(inner).__name__}; give a KernelBasis, a GraphBasis or a TableBasis.",
            )
        # a copy, so that the caller's object stays as it was given
        embedding = clone(self.embedding, safe=False)
        if hasattr(embedding, "fit") and not isinstance(embedding, FrozenEstimator):
            embedding.fit(X)
        _refuse_other_rows(embedding, _n_rows(X))
        self.embedding_ = embedding
        self._width = numbers_of(embedding.transform(take_rows(X, np.arange(1)))).shape[1]
        self.n_features_in_ = _n_columns(X)
        vectors = self._row_vectors(X)
        if not np.isfinite(vectors).any():
            raise DataError("The embedding makes no numbers of single public points.")
        self._refuse_other_vectors(X, vectors)
        self.basis_ = clone(inner).fit(vectors)
        self.n_directions_ = self.basis_.n_directions_
        self.uncovered_share_ = self.basis_.uncovered_share_
        self.levels_ = self.basis_.levels_
        return self

    def integers(self, X: Any) -> IntArray:
        """Return coordinates in units of 1 / 2^14, an array of int64 of shape (n_rows,
        n_directions).

        Raises
        ------
        DataError
            If the columns are not as many as those of the public points.
        ResourceError
            If the machine failed.
        """
        found: IntArray = self.basis_.integers(self._checked_vectors(X))
        return found

    def rows(self, X: Any) -> IntArray:
        found: IntArray = self.basis_.rows(self._checked_vectors(X))
        return found

    def covered(self, X: Any) -> BoolArray:
        """Return which rows the other basis covers once they are embedded, shape (n_rows,)."""
        found: BoolArray = self.basis_.covered(self._checked_vectors(X))
        return found

    def describe(self) -> dict[str, Any]:
        """Return names and settings as JSON values, for a certificate."""
        kind = type(getattr(self.embedding, "estimator", self.embedding))
        inner = KernelBasis(scaled=False) if self.basis is None else self.basis
        described = inner.describe()
        return {
            **described,
            "name": f"embedded {described['name']}",
            "embedding": f"{kind.__module__}.{kind.__qualname__}",
        }

    def _checked_vectors(self, X: Any) -> FloatArray:
        check_is_fitted(self, "n_directions_")
        if _n_columns(X) != self.n_features_in_:
            raise DataError(
                Parameter("X"),
                f" has {_n_columns(X)} columns and the public points had {self.n_features_in_};"
                " give the same columns.",
            )
        return self._row_vectors(X)

    def _refuse_other_vectors(self, X: Any, vectors: FloatArray) -> None:
        """Refuse an embedding that makes other numbers of a public point later, after others.

        It draws at random, or keeps something from one row to the next: then one record would move
        the vectors of all that come after it.
        """
        backwards = np.arange(min(_TRIED_ROWS, len(vectors)))[::-1]
        again = self._row_vectors(take_rows(X, backwards))
        if not np.array_equal(again, vectors[backwards], equal_nan=True):
            raise ParameterError(
                Parameter("embedding"),
                " makes other numbers of a public point when it is asked again; give one whose"
                " transform(X) draws nothing at random and keeps nothing from row to row.",
            )

    def _row_vectors(self, X: Any) -> FloatArray:
        """Return what the embedding makes of every row by itself; nan where it makes nothing."""

        def vector(row: Any) -> FloatArray:
            return numbers_of(self.embedding_.transform(row)).reshape(self._width)

        found = rows_alone(vector, X if hasattr(X, "shape") else np.asarray(X))
        missing = np.full(self._width, np.nan)
        return np.array([missing if one is None else one for one in found])


def _refuse_other_rows(embedding: Any, n_public: int) -> None:
    """Refuse a transformer that says that it was fitted to other rows than the public points."""
    inner = getattr(embedding, "estimator", embedding)
    for name in _SEEN:
        seen = np.max(getattr(inner, name, n_public))
        if seen != n_public:
            raise ParameterError(
                Parameter("embedding"),
                f" was fitted to {seen} rows and there are {n_public} public points; give it"
                " unfitted, so that it is fitted to the public points here.",
            )


def _n_rows(X: Any) -> int:
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _n_columns(X: Any) -> int:
    return int(X.shape[1]) if hasattr(X, "shape") else len(X[0])
