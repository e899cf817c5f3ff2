"""What goes in, checked before anything is spent, and what is learnt of it: classes, labels or a
number; and digests of public points. Messages name places, never private values."""

import contextlib
import hashlib
import math
import numbers
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from numbers import Number
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.exceptions import DataConversionWarning

from secretballot._typing import AnyArray, FloatArray, IntArray, Names, ObjectArray, Pair, Values
from secretballot._validation import name_columns, name_part, refusal, shown, shown_kind
from secretballot.data.frames import as_arrow, frame_of_arrow
from secretballot.data.stored import StoredTable
from secretballot.data.tally import check_classes
from secretballot.exceptions import DataError, Parameter
from secretballot.foreign_code import result_of
from secretballot.teachers.rows import n_rows, take_rows
from secretballot.teachers.votes import checked_labels, checked_range

# --- private cells in the types that public data have, one cell at a time ---

# The type of a column follows from all of its cells, in lists, numpy and pandas alike: one missing
# or odd cell turns integers into floats and everything into objects. So what a cell becomes here
# depends on the cell and on the public type alone. Cells are numbers, texts and missing values;
# points in time where both columns have such a type. What cannot be read so is refused: every
# function returns None, and the caller says which column.

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating)
_PLAIN = (str, Number, np.bool_, type(pd.NA), type(pd.NaT), type(None))


def _value_or_none(read: Callable[[], Any]) -> Any:
    """Return what a conversion yields, None where it fails at a cell, whatever the error says: it
    may quote the cell."""
    try:
        with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
            return read()
    except (ValueError, TypeError, ArithmeticError, AttributeError, LookupError, RuntimeError):
        return None


def _are_all(cells: ObjectArray, kinds: tuple[type, ...]) -> bool:
    return all(issubclass(kind, kinds) for kind in set(map(type, cells.ravel().tolist())))


def _plain_cells(cells: Any) -> list[Any]:
    """Return cells, of any shape, as Python objects.

    Raises
    ------
    TypeError
        If one is no number, no text and not missing. What can be changed in place would join the
        shards that share it.
    """
    objects = np.asarray(cells.astype(object), dtype=object)
    if not _are_all(objects, _PLAIN):
        raise TypeError("a cell is no single value")
    return list(objects.ravel().tolist())


def _array_as(X: Any, kind: np.dtype[Any]) -> Any:
    """Return a table in the type of public ones: floating point for numbers, else objects.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, n_features)
    kind : dtype
        Of the public data.

    Returns
    -------
    array or sparse matrix, or None
    """
    real = X.dtype.kind in "biuf"
    if not real and not (isinstance(X, np.ndarray) and X.dtype.kind in "OUT"):
        return None
    if kind.kind in "biuf":
        # single precision holds integers of two bytes; everything else gets double. Through double,
        # whatever X has: one cell may have given X another type, and rounding twice differs from
        # rounding once.
        single = kind.itemsize <= 2 or kind == np.float32

        def numbers() -> Any:
            found = X.astype(np.float64) if real else _cells_as_floats(X)
            return found.astype(np.float32) if single else found

        return _value_or_none(numbers)
    if real or kind.kind not in "OUT":
        return None

    def objects() -> Any:
        cells = _plain_cells(X)
        if kind.kind == "U":
            # numpy makes texts of all cells beside one text, and pads with zero characters
            cells = [str(cell).rstrip("\0") for cell in cells]
        return np.array(cells, dtype=object).reshape(X.shape)

    return _value_or_none(objects)


def _cells_as_floats(cells: Any) -> FloatArray:
    numbers = [_cell_as_float(cell) for cell in _plain_cells(cells)]
    return np.array(numbers, dtype=np.float64).reshape(cells.shape)


def _cell_as_float(cell: Any) -> float:
    if isinstance(cell, complex | np.complexfloating) and cell.imag == 0:
        cell = cell.real  # one complex cell makes all others complex
    return math.nan if _is_missing(cell) else float(cell)


def _float_or_nan(cell: Any) -> float:
    found = _value_or_none(partial(_cell_as_float, cell))
    return math.nan if found is None else found


def _is_missing(cell: Any) -> bool:
    no_value = cell is None or cell is pd.NA or cell is pd.NaT
    return no_value or (isinstance(cell, float) and cell != cell)


def _column_in_type(column: "pd.Series[Any]", kind: Any) -> Any:
    """Return a column, of shape (n,), in the type of the public one; None, or an error, where that
    cannot be."""
    own = column.dtype
    if isinstance(kind, pd.CategoricalDtype):
        return _public_categories(column, kind)
    if _is_real(kind):
        if _is_real(own):
            return np.asarray(column.to_numpy(dtype=np.float64, na_value=np.nan))
        return _cells_as_floats(column)
    if pd.api.types.is_datetime64_any_dtype(kind):  # in the public unit
        return column.astype(kind).array if pd.api.types.is_datetime64_any_dtype(own) else None
    if _holds_numbers(own):
        return None
    words = _words(column)
    if pd.api.types.is_object_dtype(kind):
        # a bare array of objects would get a type by its cells
        return pd.Series(np.array(words, dtype=object), dtype=object)
    if pd.api.types.is_string_dtype(kind):
        texts = [None if _is_missing(cell) else str(cell) for cell in words]
        return pd.array(texts, dtype=kind)
    return None


def _holds_numbers(kind: Any) -> bool:
    """Return whether cells are numbers as all of them together made them.

    Of one type, that is, or equal ones as one category.

    pandas makes 1.0 of 1 beside a fraction, and 1 of True beside a 1.
    """
    if isinstance(kind, pd.CategoricalDtype):
        known = kind.categories
        return _holds_numbers(known.dtype) or any(
            isinstance(category, Number) for category in known
        )
    return pd.api.types.is_numeric_dtype(kind) or isinstance(kind, pd.SparseDtype)


def _is_real(kind: Any) -> bool:
    if isinstance(kind, pd.SparseDtype):
        kind = kind.subtype  # pandas takes sparse points in time for numbers, of any unit
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)


def _words(column: "pd.Series[Any]") -> list[Any]:
    """Return the cells as Python objects, each in one form whatever the type of its column."""
    cells = (one.item() if isinstance(one, np.generic) else one for one in _plain_cells(column))
    # a signalling nan of a decimal refuses every comparison, also inside pandas
    cells = (float(one) if isinstance(one, Decimal) else one for one in cells)
    return [math.nan if _is_missing(cell) else cell for cell in cells]


def _public_categories(
    column: "pd.Series[Any]", kind: pd.CategoricalDtype
) -> pd.Categorical | None:
    """Return the public category of every cell, a missing one where there is none."""
    categories = kind.categories
    if _is_real(categories.dtype):
        known = categories.to_numpy(dtype=np.float64).tolist()
        if not all(abs(number) < 2.0**53 for number in known):
            return None  # a gap elsewhere in the column would blur such numbers
        cells = list(map(_float_or_nan, np.asarray(column.astype(object), dtype=object)))
    elif _is_real(column.dtype):
        return None
    else:
        known, cells = _words(pd.Series(categories)), _words(column)
    places = {category: place for place, category in enumerate(known)}
    codes = np.array([places.get(cell, -1) for cell in cells], dtype=np.int64)
    return pd.Categorical.from_codes(codes, dtype=kind)


# --- tables and targets ---


def as_matrix(name: str, X: Any) -> Any:
    """Return a frame as it is, anything else as a two-dimensional array or CSR matrix.

    Lists become arrays cell by cell: floating point where all cells are numbers, else objects, and
    never the one type that numpy finds for all of them.

    Parameters
    ----------
    name : str
        What the caller calls it.
    X : array, sparse matrix, list of rows, or frame (pandas, polars, pyarrow), of shape (n_rows,
        n_features)

    Raises
    ------
    DataError
        If it is missing, empty, not two-dimensional, or of a kind that holds neither numbers nor
        strings.
    """
    table = X
    is_frame = hasattr(X, "iloc")
    if isinstance(X, StoredTable):
        table = None
    elif not is_frame and (hasattr(X, "__dataframe__") or hasattr(X, "to_arrow")):
        table, is_frame = _pandas_frame(name, X), True
    elif isinstance(X, list | tuple):
        table = result_of(partial(_array_of_lists, X))
    elif sparse.issparse(X):
        table = result_of(lambda: _with_plain_sums(X).tocsr())
    elif not is_frame:
        # what converts it may quote values, or compare them
        table = result_of(partial(np.asarray, X))
    shape: tuple[int, ...] = getattr(table, "shape", ())
    kind = "" if is_frame or not shape else table.dtype.kind
    problem = ""
    if X is None:
        problem = " is missing; give an array or a frame of shape (rows, features)."
    elif isinstance(X, StoredTable):
        problem = " is a table on disk, which this learner does not take; give a table in memory."
    elif isinstance(X, np.ma.MaskedArray):
        problem = " is a masked array; fill or drop what is masked."
    elif kind == "c":
        problem = " has complex values. Complex data not supported: give real numbers."
    elif kind in ("M", "m", "V"):
        problem = f" is an array of {table.dtype.name[:40]}; give numbers or strings, or a frame."
    elif len(shape) != 2:
        found = f"has shape {shape}" if shape else f"is {shown_kind(X)} that is no table"
        problem = f" {found}; expected a 2D array or frame. Reshape your data."
    elif 0 in shape:
        what = "feature" if shape[1] == 0 else "sample"
        problem = f" has 0 {what}(s) (shape={shape}) while a minimum of 1 is required; give some."
    elif is_frame and not table.columns.is_unique:
        places = _first_rows(np.flatnonzero(table.columns.duplicated()))
        problem = (
            f" has a column name twice (column number {places}, counted from 0); name each by"
            " itself."
        )
    if problem:
        raise DataError(name_part(name), problem)
    return table


def _pandas_frame(name: str, table: Any) -> pd.DataFrame:
    """Return a frame of polars or an Arrow table as one of pandas, read cell by cell."""
    arrow = result_of(partial(as_arrow, table))
    if arrow is None:
        raise DataError(
            name_part(name),
            f" is {shown_kind(table)} that cannot be read; install secretballot[parquet], or give"
            " a pandas frame.",
        )
    return frame_of_arrow(arrow, name)


def _array_of_lists(rows: Sequence[Any]) -> AnyArray | None:
    """Return rows of plain cells, as floating point where all are numbers; None if they are none.

    As objects first: numpy would choose one type for all of them.
    """
    if not all(isinstance(row, list | tuple) or getattr(row, "ndim", 0) == 1 for row in rows):
        return None
    table = np.array([[*row] for row in rows], dtype=object)
    if table.ndim != 2 or not _are_all(table, _PLAIN):
        return None
    if _are_all(table, _NUMBERS):
        # an integer beyond the floats stays an object, and is refused where the cells get their
        # type
        with contextlib.suppress(OverflowError):
            return table.astype(np.float64)
    return table


def _with_plain_sums(X: Any) -> Any:
    """Return a sparse matrix whose cells are sums with doubles in it: one large integer
    elsewhere widens the sums."""
    plain = X.format in ("csr", "csc") or X.dtype.kind == "O"
    return X if plain else X.astype(np.float64)


def with_public_types(X: Any, X_public: Any, *, known: str = "X_public") -> Any:
    """Return private data with column types that private values did not choose, cell by cell.

    The type of a column (integers or not, the categories of a categorical) depends on all its rows
    and is seen by every shard: one record could reach all teachers through it. Frames and arrays
    take the public one's types, integers become floating point, and kinds that do not match are
    refused rather than guessed. Nothing else of a private frame is kept: neither its index nor its
    attributes.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
    X_public : like X, of shape (n_public, n_features)
    known : str
        What the caller calls the second.

    Returns
    -------
    array, sparse matrix or frame of shape (n_rows, n_features)

    Raises
    ------
    DataError
        Naming the columns that differ, or the one that cannot be read as the public one is, or if
        only one of the two is a frame.
    """
    _check_same_columns(X, X_public, known)
    frames = hasattr(X, "iloc"), hasattr(X_public, "iloc")
    if frames[0] != frames[1]:
        raise DataError(
            f"Of X and {known} one is a frame and the other is not; give both as frames or both as"
            " arrays."
        )
    if not frames[0]:
        typed = _array_as(X, X_public.dtype)
        if typed is None:
            raise DataError(
                f"X cannot be read as {X_public.dtype.name[:40]}, the type of {known}; give"
                " both the same type, or encode them by one schema."
            )
        return typed
    columns = [
        _value_or_none(partial(_column_in_type, X.iloc[:, place], kind))
        for place, kind in enumerate(X_public.dtypes)
    ]
    refused = [place for place, column in enumerate(columns) if column is None]
    if refused:
        name, kind = X_public.columns[refused[0]], X_public.dtypes.iloc[refused[0]]
        raise DataError(
            f"Column {shown(name)} of X cannot be read as {str(kind)[:40]}, its type in"
            f" {known}; give both the same type, or encode them by one public schema."
        )
    # By place: names need not be strings, and a frame made anew has no attributes of the old one.
    typed = pd.DataFrame(dict(enumerate(columns)))
    typed.columns = X_public.columns
    return typed


def n_columns(X: Any) -> int:
    """Return the number of columns of a table of shape (n_rows, n_columns)."""
    return int(X.shape[1])


def random_rows(n: int, wanted: int | None, random_state: int | None) -> IntArray:
    """Return rows of a public pool of n points by a public seed, ascending.

    Parameters
    ----------
    n : int
    wanted : int or None
        How many; all of them where it is None or not below n.
    random_state : int or None
        The seed; None is 0.

    Returns
    -------
    ndarray of int64, shape (min(n, wanted),)
    """
    if wanted is None or wanted >= n:
        return np.arange(n)
    rng = np.random.default_rng(random_state or 0)
    return np.sort(rng.choice(n, wanted, replace=False))


def dummy_rows(X: Any, n: int) -> Any:
    """Return n random rows with the columns of numeric data, which tell nothing of it but their
    number.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
    n : int

    Returns
    -------
    array or sparse matrix of shape (n, n_features)

    Raises
    ------
    DataError
        If the data are not numeric: their types must come from public rows.
    """
    if hasattr(X, "iloc") or (not sparse.issparse(X) and X.dtype.kind not in "iuf"):
        raise DataError(
            Parameter("X_public"),
            " is missing; give a few public rows, which fix the types of the columns.",
        )
    rows = np.random.default_rng(0).standard_normal((n, n_columns(X)))
    return sparse.csr_matrix(rows) if sparse.issparse(X) else rows


def example_rows(X: Any, X_public: Any, n: int) -> Any:
    """Return rows to try models on: the first n public ones, or dummy ones where none are given.

    Parameters
    ----------
    X : StoredTable, or array, sparse matrix, list of rows or frame of shape (n_rows, n_features)
    X_public : like X, of shape (n_public, n_features), or None
    n : int

    Raises
    ------
    DataError
        If there are none and the data are not numeric (`dummy_rows`).
    """
    if X_public is None and not isinstance(X, StoredTable):
        return dummy_rows(as_matrix("X", X), n)
    return as_matrix("X_public", X_public)[:n]


def single_point(x: Any) -> Any:
    """Return one point, of shape (n_features,), cells by their columns, or one row of a table, as a
    table of shape (1, n_features).

    Raises
    ------
    DataError
        If it has several rows.
    """
    x = pd.DataFrame([x]) if isinstance(x, dict) else x
    point = x if hasattr(x, "shape") and len(x.shape) == 2 else np.asarray(x).reshape(1, -1)
    if point.shape[0] != 1:
        raise DataError(
            Parameter("x"), f" has {point.shape[0]} rows; ask one point, or use ask_many."
        )
    return point


def _check_same_columns(X: Any, X_public: Any, known: str) -> None:
    """Refuse data whose columns differ from those it has to go with."""
    if hasattr(X, "columns") and hasattr(X_public, "columns"):
        private, public = list(X.columns), list(X_public.columns)
        if private != public:
            missing = [str(name) for name in public if name not in set(private)]
            misses = f"misses {name_columns(missing)} and " if missing else ""
            # of a table without a header the "names" are the cells of its first record: names that
            # X alone has are not shown
            raise DataError(
                f"X {misses}has columns that {known} does not have, or the same in another order;"
                " give both the same columns in the same order."
            )
    if n_columns(X) != n_columns(X_public):
        raise DataError(
            f"X has {n_columns(X)} columns and {known} {n_columns(X_public)}; they must have"
            " the same."
        )


def refuse_unfit(name: str, X: Any, *, missing_taken: bool) -> None:
    """Refuse rows with missing or infinite values that teachers do not take.

    Parameters
    ----------
    name : str
        What the caller calls them.
    X : array, sparse matrix or frame of shape (n, n_features)
    missing_taken : bool
        Whether teachers take missing values.

    Raises
    ------
    DataError
        Saying how many rows, and which first.
    """
    unfit = np.empty(0, dtype=np.int64)
    if sparse.issparse(X):
        table: Any = X
        cells = table.tocoo()
        unfit = np.unique(cells.row[~np.isfinite(cells.data)])
    elif hasattr(X, "iloc"):
        if not missing_taken:
            unfit = np.flatnonzero(X.isna().any(axis=1))
    elif X.dtype.kind == "f":
        bad = np.isinf(X) if missing_taken else ~np.isfinite(X)
        unfit = np.flatnonzero(bad.any(axis=1))
    if len(unfit):
        raise DataError(
            name_part(name),
            f" has {len(unfit)} rows with missing or infinite values (the first:"
            f" {_first_rows(unfit)}), which the teachers do not take; fill them, or put an imputer"
            " before the teacher.",
        )


def _first_rows(rows: IntArray) -> str:
    return ", ".join(str(int(row)) for row in rows[:5])


def declared_classes(classes: Sequence[Any] | None) -> list[Any]:
    """Return the declared classes as a list of Python values, in the given order.

    Raises
    ------
    ParameterError
        If they are not given, or no list of distinct values, as `check_classes` reads it.
    """
    if classes is None:
        raise refusal(
            "classes",
            " is missing; name all classes beforehand, such as classes=[0, 1]: they are public"
            " and are never inferred from private labels.",
        )
    return check_classes(classes)


def refuse_more_classes(classes: Sequence[Any]) -> None:
    """Refuse more than the two classes that a hypothesis distinguishes.

    Raises
    ------
    ParameterError
        Saying how many there are.
    """
    if len(classes) > 2:
        raise refusal(
            "classes",
            f" has {len(classes)} values; hypotheses distinguish two classes, so name two.",
        )


def object_array(values: Sequence[Any]) -> ObjectArray:
    """Return values as an array of shape (len(values),) that keeps their Python types."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def class_indices(y: ArrayLike | None, classes: Sequence[Any], rows: int) -> IntArray:
    """Return the index into `classes` of every private label.

    Parameters
    ----------
    y : array of shape (rows,)
    classes : sequence
    rows : int
        Number of records.

    Returns
    -------
    ndarray of int64, shape (rows,)

    Raises
    ------
    DataError
        If there is more than one column, the length does not fit, or a label is not one of the
        classes: the message says how many and where.
    """
    # Labels are private: every message says how many and in which rows, never which value.
    labels, places_of_cells = _private_cells(y, rows)
    if len(getattr(y, "shape", ())) == 2:
        text = "A column-vector y was passed when a 1d array was expected."
        warnings.warn(text, DataConversionWarning, stacklevel=2)
    finite = all(isinstance(label, float) and math.isfinite(label) for label in labels)
    if finite and not all(label.is_integer() for label in labels):
        raise DataError(
            "Unknown label type: continuous. The learner needs classes; turn the numbers in y into"
            " classes."
        )
    places = {name: place for place, name in enumerate(classes)}
    # a list is no label, and what an odd object's own comparison says is not to be seen
    found = [result_of(partial(places.get, label, -1)) for label in labels]
    index = np.array([-1 if one is None else one for one in found], np.int64)[places_of_cells]
    bad = np.flatnonzero(index < 0)
    if len(bad):
        raise DataError(
            f"{len(bad)} labels in y are missing or not among the declared classes (the first in"
            f" rows {_first_rows(bad)}); correct them, or declare all classes."
        )
    return index


def _private_cells(y: Any, n_records: int) -> tuple[list[Any], IntArray]:
    """Return private targets, each as it was given, and the place of that of each record among
    them: numpy would find one type for all of a list. Numbers of one type are there once each.

    Parameters
    ----------
    y : sequence, of shape (n_records,) or (n_records, 1)
    n_records : int

    Raises
    ------
    DataError
        If they are none, no single column, or not one for each record.
    """
    if y is None:
        raise DataError(
            "The learner requires y to be passed, but the target y is None; give the private"
            " targets."
        )
    column = y if isinstance(y, list | tuple) else _as_column(y)
    if len(column) != n_records:
        raise DataError(
            Parameter("y"),
            f" has {len(column)} targets; it must have one for each of the {n_records} rows of X.",
        )
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        values, places = np.unique(column, return_inverse=True)
        return values.tolist(), places
    if isinstance(column, np.ndarray) and column.dtype.kind in "Mm":
        column = pd.Series(column).astype(object)  # numpy's own would be plain integers
    cells = column.tolist() if hasattr(column, "tolist") else column
    return list(cells), np.arange(len(cells))


def _as_column(y: Any) -> Any:
    # an error of a conversion may quote a cell
    table = result_of(partial(np.asarray, y))
    shape = () if table is None else table.shape
    if table is None or not (len(shape) == 1 or (len(shape) == 2 and shape[1] == 1)):
        found = f"has {len(shape)} dimensions" if shape else f"is {shown_kind(y)}"
        raise DataError(f"y {found}; give the private targets as one column.")
    return table.ravel()


#: What a truth value becomes beside a text.
_TRUTH_VALUES = {"true": True, "false": False}


@dataclass(frozen=True)
class Target:
    """A kind of target, by what is declared of it; all public.

    Make it with `of_classes`, `of_labels` or `of_number`.

    Attributes
    ----------
    classes : tuple
        What the public points are labelled with; none where they are not.
    labels : tuple of str
        Names of several labels, each of which a record has or not.
    bounds : tuple of two floats, or None
        A number is cut to lie within.
    """

    classes: Values = ()
    labels: Names = ()
    bounds: Pair | None = None

    @classmethod
    def of_classes(cls, declared: Any) -> Self:
        """Return the target of two or more declared classes.

        Raises
        ------
        ParameterError
            If they are not given, fewer than two, or repeated.
        """
        return cls(classes=tuple(declared_classes(declared)))

    @classmethod
    def of_labels(cls, declared: Any) -> Self:
        """Return the target of several named labels.

        Raises
        ------
        ParameterError
            If they are no list of distinct names.
        """
        return cls(labels=checked_labels(declared))

    @classmethod
    def of_number(cls, bounds: Any) -> Self:
        """Return the target of a number within bounds.

        Raises
        ------
        ParameterError
            If they are no two finite numbers, the smaller one first.
        """
        return cls(bounds=checked_range(bounds))

    @property
    def learnt(self) -> list[Any]:
        """Classes that one learner distinguishes: those declared, or whether a label is there; none
        of a number."""
        return list(self.classes) or [0, 1] * bool(self.labels)

    def read(self, y: Any, n_records: int) -> IntArray | FloatArray:
        """Return private targets: of classes their places, int64 of shape (n_records,); of labels
        0 and 1, int64 of shape (n_records, n_labels); numbers cut to the bounds, nan for what is
        none, float64 of shape (n_records,).

        Raises
        ------
        DataError
            If they are not one for each record, a class is none of those declared, or labels are no
            table of 0 and 1; no value is named.
        """
        if self.classes:
            return class_indices(y, self.classes, n_records)
        if self.labels and y is not None:
            if hasattr(y, "iloc") and [*map(str, getattr(y, "columns", ()))] != [*self.labels]:
                raise DataError("The columns of y are not the labels; give them in the same order.")
            table = as_matrix("y", y)
            if n_columns(table) != len(self.labels):
                raise DataError(
                    Parameter("y"),
                    f" has {n_columns(table)} columns; give one for each of the"
                    f" {len(self.labels)} labels.",
                )
            table = table.toarray() if hasattr(table, "toarray") else table
            cells = table.iloc if hasattr(table, "iloc") else table
            columns = [cells[:, place] for place in range(len(self.labels))]
            return np.column_stack([class_indices(one, [0, 1], n_records) for one in columns])
        targets, places = _private_cells(y, n_records)
        assert self.bounds is not None
        numbers = np.array(list(map(number_of, targets)), dtype=np.float64)
        return np.clip(numbers[places], *self.bounds)


def number_of(cell: Any) -> float:
    """Return a private target as floating point, from itself alone; nan for what is no number.

    One odd cell makes texts of all others, in an array and where a file is read, or complex
    numbers; so these are what they were before.
    """
    if isinstance(cell, complex | np.complexfloating) and cell.imag == 0:
        cell = cell.real
    if isinstance(cell, bytes):
        cell = cell.decode(errors="replace")
    if isinstance(cell, str):
        text = cell.strip().casefold()  # pandas makes truth values of TRUE, True and true
        with contextlib.suppress(ValueError):
            return float(_TRUTH_VALUES.get(text, text))
    # a length of time passes for an integer in numpy
    elif isinstance(cell, numbers.Real | Decimal | np.bool_) and not isinstance(
        cell, np.timedelta64
    ):
        number = result_of(partial(_float_or_infinite, cell))
        return math.nan if number is None else number
    return math.nan


def _float_or_infinite(cell: Any) -> float:
    try:
        return float(cell)
    except OverflowError:  # an integer too large, whose text is infinite
        return math.inf if cell > 0 else -math.inf


def labels_at(y: Any, rows: IntArray, n_records: int) -> Any:
    """Return the labels at some rows, without a glance at the others: not their values, not even
    their type.

    Raises
    ------
    DataError
        If there is not one label for each record.
    """
    if y is None:
        return None  # for the sentence that every learner has for it
    if not hasattr(y, "__len__") or len(y) != n_records:
        found = f"has {len(y)} labels" if hasattr(y, "__len__") else f"is a {type(y).__name__}"
        raise DataError(f"y {found}; it must have one label for each of the {n_records} rows of X.")
    if hasattr(y, "iloc"):
        return y.iloc[rows]
    if isinstance(y, np.ndarray):
        return y[rows]
    return [y[row] for row in rows.tolist()]


_BLOCK_ROWS = 4096  # sparse rows made dense at once


def question_digests(X: Any) -> list[bytes]:
    """Return 16 bytes for each row of points of shape (n, n_features), equal for equal rows alone.

    Rows are equal if all values are: 0.0 and -0.0 are, all kinds of nan are, and so are a dense and
    a sparse row.
    """
    if hasattr(X, "iloc"):
        return [_row_digest(b"frame", row) for row in _frame_rows(X)]
    if sparse.issparse(X):
        table: Any = X
        table = table.tocsr()
        # as dense rows, so that a point has the same digest in both forms
        blocks = range(0, table.shape[0], _BLOCK_ROWS)
        return [
            digest
            for at in blocks
            for digest in question_digests(table[at : at + _BLOCK_ROWS].toarray())
        ]
    if X.dtype.kind in "iufb":
        return [_row_digest(b"numbers", row.tobytes()) for row in _canonical_doubles(X)]
    return [_row_digest(b"values", "\0".join(map(_cell_text, row)).encode()) for row in X]


def distinct_points(X: Any, rows: IntArray | None = None) -> dict[bytes, int]:
    """Return the first row of each distinct point, by the question that it is to a ledger.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n, n_features)
    rows : ndarray of int64, shape (m,), optional
        Rows that are looked at, in this order; all by default.
    """
    places, first = np.arange(n_rows(X)) if rows is None else rows, dict[bytes, int]()
    for question, row in zip(question_digests(take_rows(X, places)), places.tolist(), strict=True):
        first.setdefault(question, row)
    return first


def points_digest(X: Any) -> str:
    """Return one SHA-256, in hexadecimal, for all rows of points of shape (n, n_features)."""
    return hashlib.sha256(b"".join(question_digests(X))).hexdigest()


def doubles_digest(points: FloatArray) -> str:
    """Return one SHA-256, in hexadecimal, of points of shape (n, n_features) as rows of doubles.

    With the points at hand, anybody can tell by it which function a certificate speaks of.
    """
    return hashlib.sha256(np.ascontiguousarray(points, dtype="<f8").tobytes()).hexdigest()


def _canonical_doubles(numbers: Any) -> FloatArray:
    """Return numbers as little-endian doubles with one zero and one nan."""
    plain = np.ascontiguousarray(numbers, dtype="<f8") + 0.0
    plain[np.isnan(plain)] = np.nan
    return plain


def _frame_rows(frame: pd.DataFrame) -> list[bytes]:
    """Return the bytes of every row: numeric columns as doubles, the others by type and text."""
    numeric = [pd.api.types.is_numeric_dtype(kind) for kind in frame.dtypes]
    numbers = _canonical_doubles(frame.loc[:, numeric].to_numpy(dtype=np.float64, na_value=np.nan))
    others = [
        column.tolist() for _, column in frame.loc[:, [not known for known in numeric]].items()
    ]
    texts = zip(*others, strict=True) if others else [()] * len(frame)
    return [
        row.tobytes() + "\0".join(map(_cell_text, cells)).encode()
        for row, cells in zip(numbers, texts, strict=True)
    ]


def _cell_text(value: Any) -> str:
    kind, text = type(value).__name__, str(value)
    if value is None or value is pd.NA or value != value:
        kind, text = "missing", ""
    elif isinstance(value, bool | np.bool_ | int | np.integer):
        kind, text = "number", str(int(value))
    elif isinstance(value, float | np.floating):
        # integers pass for what they are: 2.0 equals 2, and -0.0 equals 0
        is_integer = value == np.trunc(value) and np.isfinite(value)
        kind, text = "number", str(int(value)) if is_integer else repr(float(value))
    # the length keeps a value that holds the separator from passing for two
    return f"{kind}:{len(text)}:{text}"


def _row_digest(kind: bytes, content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=16, person=kind).digest()
