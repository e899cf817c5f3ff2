"""Check what goes in before anything is spent: shapes, columns, classes. Messages name places, never private values."""

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.multiclass import type_of_target

from secretballot._validation import shown, shown_classes
from secretballot.exceptions import DataError, ParameterError

__all__ = [
    "as_matrix",
    "check_same_columns",
    "class_indices",
    "declared_classes",
    "n_columns",
    "n_rows",
    "refuse_unfit",
    "take_rows",
    "unfit_values",
    "with_public_types",
]

ROWS_NAMED = 5


def as_matrix(name: str, X: Any) -> Any:
    """Return a frame as it is, anything else as a two-dimensional array or CSR matrix.

    Raises
    ------
    DataError
        If it is missing, empty or not two-dimensional.
    """
    if X is None:
        raise DataError(f"{name} is missing; give an array or a frame of shape (rows, features).")
    if hasattr(X, "__dataframe__") and not hasattr(X, "iloc"):
        X = X.to_pandas()
    if hasattr(X, "iloc"):
        if X.ndim != 2 or not X.shape[0] or not X.shape[1]:
            raise DataError(f"{name} has shape {X.shape}; give a frame with rows and columns.")
        return X
    if getattr(getattr(X, "dtype", None), "kind", "") == "c":
        raise DataError(f"{name} has complex values. Complex data not supported: give real numbers.")
    shape = getattr(X, "shape", None)
    if shape is not None and len(shape) == 2 and 0 in shape:
        what = "feature" if shape[1] == 0 else "sample"
        raise DataError(f"{name} has 0 {what}(s) (shape={shape}) while a minimum of 1 is required; give some.")
    try:
        return check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False, input_name=name)
    except (ValueError, TypeError):
        # scikit-learn's own sentence may quote values
        found = f"has shape {shape}" if shape is not None else f"is a {type(X).__name__}"
        raise DataError(f"{name} {found}; expected a 2D array or frame. Reshape your data.") from None


def with_public_types(X: Any, X_public: Any, *, given: str = "X", known: str = "X_public") -> Any:
    """Return private data with column types that private values did not choose, converted cell by cell.

    The type of a column (whole numbers or not, the categories of a categorical) depends on all its rows and is seen by
    every shard: one record could reach all teachers through it. Frames and arrays take the public one's types, whole
    numbers become floating point, and kinds that do not match are refused rather than guessed. `given` and `known` are
    what the caller calls the two.

    Raises
    ------
    DataError
        Naming the column that cannot be read as the public one is, or if only one of the two is a frame.
    """
    frames = hasattr(X, "iloc"), hasattr(X_public, "iloc")
    if frames[0] != frames[1]:
        raise DataError(
            f"Of {given} and {known} one is a frame and the other is not; give both as frames or both as arrays."
        )
    if not frames[0]:
        return _array_as_public(X, X_public.dtype, given, known)
    typed = X.copy(deep=False)
    for name in X.columns:  # names need not be text
        typed[name] = _as_public(name, X[name], X_public[name].dtype, given, known)
    return typed


def _array_as_public(X: Any, kind: np.dtype[Any], given: str, known: str) -> Any:
    numbers = "iubf"
    try:
        if kind.kind in numbers:
            # single precision holds whole numbers of two bytes; everything else gets double
            return X.astype(np.float32 if kind.itemsize <= 2 or kind == np.float32 else np.float64)
        if X.dtype.kind in numbers:
            raise TypeError
        return X.astype(object)
    except (ValueError, TypeError, OverflowError):
        raise DataError(
            f"{given} cannot be read as {kind}, the type of {known}; give both the same type, or encode them by one "
            "schema."
        ) from None


def _as_public(name: str, column: pd.Series, kind: Any, given: str, known: str) -> pd.Series:
    try:
        if isinstance(kind, pd.CategoricalDtype):
            codes = _category_codes(column, kind.categories)
            return pd.Series(pd.Categorical.from_codes(codes, dtype=kind), index=column.index, name=column.name)
        if pd.api.types.is_numeric_dtype(kind):
            values = column.to_numpy(dtype=np.float64, na_value=np.nan)
            return pd.Series(values, index=column.index, name=column.name)
        if pd.api.types.is_numeric_dtype(column.dtype):
            raise TypeError
        return column.astype(kind)
    except (ValueError, TypeError):
        raise DataError(
            f"Column {name!r} of {given} cannot be read as {kind}, its type in {known}; give both the same type, or "
            "encode them by one public schema."
        ) from None


def _category_codes(column: pd.Series, categories: pd.Index) -> NDArray[np.int64]:
    """Return the number of every cell's category, -1 where the public column does not know it."""
    if pd.api.types.is_numeric_dtype(categories.dtype):
        if not (np.abs(categories.to_numpy(dtype=np.float64)) < 2.0**53).all():
            raise TypeError  # a gap elsewhere in the column would blur such numbers
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        return np.asarray(categories.astype(np.float64).get_indexer(pd.Index(values)), dtype=np.int64)
    if pd.api.types.is_numeric_dtype(column.dtype):
        raise TypeError
    return np.asarray(categories.astype(object).get_indexer(pd.Index(column.astype(object))), dtype=np.int64)


def n_rows(X: Any) -> int:
    """Return the number of rows."""
    return int(X.shape[0])


def n_columns(X: Any) -> int:
    """Return the number of columns."""
    return int(X.shape[1])


def take_rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return the given rows of an array, sparse matrix or frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def check_same_columns(X: Any, X_public: Any, *, given: str = "X", known: str = "X_public") -> None:
    """Refuse data whose columns differ from those it has to go with.

    Parameters
    ----------
    X, X_public : array, sparse matrix or frame
        What was given, and what it must be like.
    given, known : str
        What the caller calls the two.

    Raises
    ------
    DataError
        Naming the columns, or their numbers.
    """
    if hasattr(X, "columns") and hasattr(X_public, "columns"):
        private, public = list(X.columns), list(X_public.columns)
        if private != public:
            missing, extra = [c for c in public if c not in private], [c for c in private if c not in public]
            if not missing and not extra and len(private) == len(public):
                raise DataError(
                    f"{given} and {known} have the same columns in another order; give both in the same order."
                )
            raise DataError(
                f"{given} misses the columns {missing} and has the columns {extra} that {known} does not have; "
                "give both the same columns in the same order."
            )
    elif n_columns(X) != n_columns(X_public):
        raise DataError(
            f"{given} has {n_columns(X)} columns and {known} {n_columns(X_public)}; they must have the same."
        )


def unfit_values(name: str, X: Any, X_public: Any) -> tuple[str, NDArray[np.int64]] | None:
    """Return a sentence on missing or infinite values in private or public data and their columns, None without any."""
    for matrix_name, matrix in ((name, X), (f"{name}_public", X_public)):
        rows, columns = _unfit(matrix)
        if len(rows):
            sentence = f"{matrix_name} has {len(rows)} rows with missing or infinite values (the first: {_first(rows)})"
            return sentence, columns
    return None


def refuse_unfit(name: str, X: Any, *, takes_holes: bool) -> None:
    """Refuse public points with values that the teachers would answer by their fixed rule: infinite, or missing ones.

    Raises
    ------
    DataError
        Saying how many rows, and which first.
    """
    rows, _ = _unfit(X)
    if takes_holes and len(rows):
        part: Any = take_rows(X, rows)
        part = part.select_dtypes("number").to_numpy(dtype=np.float64) if hasattr(part, "iloc") else part
        dense: Any = part
        rows = rows[np.isinf(dense.toarray() if sparse.issparse(part) else dense).any(axis=1)]
    if len(rows):
        raise DataError(
            f"{name} has {len(rows)} rows with missing or infinite values (the first: {_first(rows)}), which the "
            "teachers do not take; fill them, or put an imputer before the teacher."
        )


def _unfit(X: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return rows and columns with missing or infinite values."""
    none = np.empty(0, dtype=np.int64)
    if hasattr(X, "iloc"):
        bad = X.isna().to_numpy()
    elif sparse.issparse(X):
        matrix: Any = X
        rows = np.repeat(np.arange(matrix.shape[0], dtype=np.int64), np.diff(matrix.indptr))
        wrong = ~np.isfinite(matrix.data)
        return np.unique(rows[wrong]), np.unique(matrix.indices[wrong]).astype(np.int64)
    elif X.dtype.kind != "f":
        return none, none
    else:
        bad = ~np.isfinite(X)
    return np.flatnonzero(bad.any(axis=1)), np.flatnonzero(bad.any(axis=0))


def _first(rows: NDArray[np.int64]) -> str:
    return ", ".join(str(int(row)) for row in rows[:ROWS_NAMED])


def declared_classes(classes: Sequence[Any] | None) -> list[Any]:
    """Return the declared classes as a list of distinct Python values, in the given order.

    Raises
    ------
    ParameterError
        If they are not given, fewer than two, or repeated.
    """
    if classes is None:
        raise ParameterError(
            "classes is missing; name all classes beforehand, such as classes=[0, 1]: they are public and are never "
            "inferred from private labels."
        )
    if isinstance(classes, str | bytes) or not isinstance(classes, Iterable):
        raise ParameterError(f"classes is {shown(classes)}; give a list of the class values, such as [0, 1].")
    names = [value.item() if isinstance(value, np.generic) else value for value in classes]
    if not all(isinstance(name, Hashable) for name in names):
        raise ParameterError(f"classes is {shown(classes)}; give a list of plain values, such as [0, 1].")
    if len(names) < 2 or len(set(names)) < len(names):
        raise ParameterError(
            f"classes is {shown_classes(names)}; name two or more distinct classes, not one class or a class twice."
        )
    return names


def class_indices(y: ArrayLike | None, classes: Sequence[Any], rows: int) -> NDArray[np.int64]:
    """Return the index into `classes` of every private label.

    Raises
    ------
    DataError
        If there is more than one column, the length does not fit, or a label is not one of the classes: the message
        says how many and where.
    """
    if y is None:
        raise DataError("The learner requires y to be passed, but the target y is None; give the private labels.")
    try:
        labels = column_or_1d(y, warn=True)
    except ValueError:
        raise DataError(f"y has {np.ndim(y)} dimensions; give the private labels as one column.") from None
    if labels.shape != (rows,):
        raise DataError(f"y has {len(labels)} labels; it must have one label for each of the {rows} rows of X.")
    if labels.dtype.kind == "f" and np.isfinite(labels).all() and type_of_target(labels) == "continuous":
        raise DataError(
            "Unknown label type: continuous. The learner needs classes; turn the numbers in y into classes."
        )
    index = np.full(rows, -1, dtype=np.int64)
    for number, value in enumerate(classes):
        index[labels == value] = number
    bad = np.flatnonzero(index < 0)
    if len(bad):
        raise DataError(
            f"{len(bad)} labels in y are missing or not among the declared classes (the first in rows {_first(bad)}); "
            "correct them, or declare all classes."
        )
    return index
