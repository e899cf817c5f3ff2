"""What one column of a table becomes in the matrix.

Every column is fixed by public cells or by what the user declares. Encoding looks at one cell at a
time.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from secretballot._typing import FloatArray, IntArray, ObjectArray
from secretballot._validation import shown
from secretballot.datasets.cells import (
    LARGEST_NUMBER,
    coded,
    is_missing,
    numbers_of,
    texts_of,
    whole,
)
from secretballot.exceptions import DataError

__all__ = [
    "CategoricalColumn",
    "Column",
    "IgnoredColumn",
    "NumericColumn",
    "OddCells",
    "declared_column",
    "inferred_column",
]

#: A column is numeric where at least this share of its public cells are numbers; the others count
#: as missing.
_NUMERIC_SHARE = 0.95
#: Categories kept per column, the most frequent ones; the rest fall into "other".
_MOST_CATEGORIES = 200
_KINDS = ("numeric", "categorical", "ignored")


class OddCells(NamedTuple):
    """The cells of a column that could not be read as what the column holds.

    Attributes
    ----------
    strange : ndarray of int64
        Rows whose cell says something that the column has no place for.
    missing : int
        How many rows say nothing.
    """

    strange: IntArray
    missing: int


@dataclass(frozen=True)
class NumericColumn:
    """A column of numbers: the public median where nothing is known, then centred and scaled.

    Parameters
    ----------
    name : str
        Name of the column.
    median : float
        Stands in for a missing number.
    center, scale : float
        The encoded value is ``(number - center) / scale``; `scale` is positive.
    indicator : bool
        Whether a second encoded column says 1 where the number was missing.
    """

    name: str
    median: float
    center: float = 0.0
    scale: float = 1.0
    indicator: bool = False

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (self.name, f"{self.name}=missing") if self.indicator else (self.name,)

    def encode(self, cells: "pd.Series[Any]", out: FloatArray) -> OddCells:
        """Fill `out`, shape (n_rows, 1 or 2); what is no number is missing or strange."""
        numbers = numbers_of(cells)
        unknown = np.isnan(numbers)
        encoded = (np.where(unknown, self.median, numbers) - self.center) / self.scale
        np.clip(encoded, -LARGEST_NUMBER, LARGEST_NUMBER, out=out[:, 0])
        if self.indicator:
            out[:, 1] = unknown
        rows: IntArray = np.flatnonzero(unknown).astype(np.int64)
        unread = np.array([not is_missing(text) for text in texts_of(cells.iloc[rows])], dtype=bool)
        return OddCells(rows[unread], int(rows.size - unread.sum()))

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {
            "kind": "numeric",
            "median": self.median,
            "center": self.center,
            "scale": self.scale,
            "indicator": self.indicator,
        }


@dataclass(frozen=True)
class CategoricalColumn:
    """A column of categories: one encoded column for each, and one for "other" (unseen and missing
    ones).

    Parameters
    ----------
    name : str
        Name of the column.
    categories : tuple of str
        Public categories, without "other".
    """

    name: str
    categories: tuple[str, ...]

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        return (
            *(f"{self.name}={category}" for category in self.categories),
            f"{self.name}=(other)",
        )

    def encode(self, cells: "pd.Series[Any]", out: FloatArray) -> OddCells:
        """Fill `out`, shape (n_rows, n_categories + 1); what falls into "other" is missing or
        strange."""
        places = {category: place for place, category in enumerate(self.categories)}
        other = len(places)
        codes, distinct = coded(texts_of(cells))
        place = np.array([places.get(text, other) for text in distinct], dtype=np.int64)
        out[:] = 0.0
        out[np.arange(len(cells)), place[codes]] = 1.0
        unseen = place == other
        nothing = np.array([is_missing(text) for text in distinct], dtype=bool)
        strange: IntArray = np.flatnonzero((unseen & ~nothing)[codes]).astype(np.int64)
        return OddCells(strange, int((unseen & nothing)[codes].sum()))

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {"kind": "categorical", "categories": list(self.categories)}


@dataclass(frozen=True)
class IgnoredColumn:
    """A column that is no feature; `reason` says why, for the person who runs the program."""

    name: str
    reason: str = "declared so"

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded columns: none."""
        return ()

    def encode(self, cells: "pd.Series[Any]", out: FloatArray) -> OddCells:
        """Do nothing; there is no encoded column."""
        return OddCells(np.empty(0, dtype=np.int64), 0)

    def to_json(self) -> dict[str, Any]:
        """Return the column as JSON."""
        return {"kind": "ignored", "reason": self.reason}


Column = NumericColumn | CategoricalColumn | IgnoredColumn


def inferred_column(name: str, cells: "pd.Series[Any]") -> Column:
    """Decide by public cells what a column is.

    Parameters
    ----------
    name : str
        Name of the column.
    cells : pandas.Series, shape (n_rows,)
        Public cells.

    Returns
    -------
    Column
        Numeric where nearly all known cells are numbers, else categorical with the most frequent
        texts; ignored where nothing is known or nearly every text is its own.
    """
    texts = texts_of(cells)
    known = ~np.array([is_missing(text) for text in texts], dtype=bool)
    if not known.any():
        return IgnoredColumn(name, "no public row has a value in it")
    numbers = numbers_of(cells)
    truths = set(texts[known]) <= {"True", "False"}  # float would take them for 1 and 0
    if not truths and np.isfinite(numbers[known]).mean() >= _NUMERIC_SHARE:
        return _numeric_column(name, numbers)
    return _categorical_column(name, texts[known])


def _numeric_column(name: str, numbers: FloatArray) -> NumericColumn:
    finite = numbers[np.isfinite(numbers)]
    spread = float(finite.std())
    # A spread within rounding of zero is a constant column: dividing by it would blow up other
    # values.
    scale = spread if spread > 1e-9 * float(np.abs(finite).max()) else 1.0
    return NumericColumn(
        name,
        float(np.median(finite)),
        float(finite.mean()),
        scale,
        indicator=bool(finite.size < numbers.size),
    )


def _categorical_column(name: str, texts: ObjectArray) -> Column:
    counts = pd.Series(texts).value_counts()
    if len(counts) > _MOST_CATEGORIES and len(counts) > len(texts) / 2:
        return IgnoredColumn(
            name, f"{len(counts)} different strings in {len(texts)} public rows: an id or free text"
        )
    frequent = sorted(counts.index, key=lambda text: (-counts[text], text))[:_MOST_CATEGORIES]
    return CategoricalColumn(name, tuple(sorted(frequent)))


def declared_column(name: str, spec: object, public: pd.DataFrame | None) -> Column:
    """Build one column from its JSON, with public cells for what the JSON leaves open.

    Parameters
    ----------
    name : str
        Name of the column.
    spec : object
        "numeric", "categorical", "ignored", a list of categories, or an object as `to_json` writes
        it.
    public : pandas.DataFrame or None
        Public table.

    Raises
    ------
    DataError
        If the JSON is no column, or leaves open what no public table is there to say.
    """
    if isinstance(spec, str):
        spec = {"kind": spec}
    elif isinstance(spec, list):
        spec = {"kind": "categorical", "categories": spec}
    if not isinstance(spec, Mapping) or spec.get("kind") not in _KINDS:
        raise DataError(
            f"The schema says nothing usable about column {shown(name)}; "
            f"say one of {', '.join(_KINDS)}, or list its categories."
        )
    if spec["kind"] == "ignored":
        return IgnoredColumn(name, str(spec.get("reason", "declared so")))
    if spec["kind"] == "numeric":
        return _declared_numeric(name, spec, public)
    return _declared_categorical(name, spec, public)


def _declared_numeric(
    name: str, spec: Mapping[str, Any], public: pd.DataFrame | None
) -> NumericColumn:
    parts = {key: spec[key] for key in ("median", "center", "scale", "indicator") if key in spec}
    for key in ("median", "center", "scale"):
        number = parts.get(key, 1)
        usable = (
            isinstance(number, int | float)
            and not isinstance(number, bool)
            and abs(number) <= LARGEST_NUMBER
        )
        if not usable or (key == "scale" and not number > 0):
            raise DataError(
                f"The schema's {key} of column {shown(name)} is {shown(number)}; it must be a"
                " number (scale: positive)."
            )
    # what the schema leaves open comes from public rows alone; with all four given none is read
    if len(parts) < 4:
        numbers = numbers_of(_public_cells(name, public))
        if not np.isfinite(numbers).any():
            raise DataError(
                f"No public row has a number in column {shown(name)}; give its median and scale in"
                " the schema."
            )
        found = _numeric_column(name, numbers)
        parts = {
            key: parts.get(key, getattr(found, key))
            for key in ("median", "center", "scale", "indicator")
        }
    return NumericColumn(
        name,
        float(parts["median"]),
        float(parts["center"]),
        float(parts["scale"]),
        bool(parts["indicator"]),
    )


def _declared_categorical(
    name: str, spec: Mapping[str, Any], public: pd.DataFrame | None
) -> CategoricalColumn:
    listed = spec.get("categories")
    if listed is None:
        texts = texts_of(_public_cells(name, public))
        return CategoricalColumn(
            name, tuple(sorted({text for text in texts if not is_missing(text)}))
        )
    if not isinstance(listed, list) or not all(
        isinstance(entry, str | int | float | bool) for entry in listed
    ):
        raise DataError(
            f"The schema's categories of column {shown(name)} must be a list of strings or numbers."
        )
    categories = tuple(dict.fromkeys(whole(str(entry).strip()) for entry in listed))
    return CategoricalColumn(name, categories)


def _public_cells(name: str, public: pd.DataFrame | None) -> "pd.Series[Any]":
    if public is None:
        raise DataError(
            f"The schema leaves column {shown(name)} open and there is no public table to say the"
            " rest."
        )
    if name not in public.columns:
        raise DataError(
            f"The schema has a column {shown(name)} that the public file lacks; add it or declare"
            " it ignored."
        )
    return public[name]
