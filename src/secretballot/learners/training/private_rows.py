"""Whether rows that are to be public are private ones, more of them than chance explains, and
whether private columns say what public ones do.

All of it is computed from private rows and is for the curator alone: it decides whether something
is refused before it is paid, and changes no release. The refusal is not for publication
(`docs/explanation/threat-model.md`).
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import betainc

from secretballot._validation import shown
from secretballot.data.stored import StoredTable
from secretballot.exceptions import DataError
from secretballot.foreign_code import result_of
from secretballot.learners.training.inputs import n_columns
from secretballot.teachers.rows import block_bounds, is_sparse, n_rows, row_block

_Hashes = NDArray[np.uint64]

MOST_SAMPLED = 1 << 17  # values by which chance is estimated: 3 MiB
#: Public rows that exactly one private unit has are refused, and those that two have, since whole
#: private tables are doubled by mistake.
_EQUAL_UNITS = (1, 2)
_COUNTED = max(_EQUAL_UNITS) + 2  # units of a value: so many or more are all alike
#: So much larger may the share of such rows be than among private rows, since two tables are hardly
#: ever drawn alike.
_OF_CHANCE = 1.25
#: Probability of so many equal rows by chance below which they are refused.
_LEAST_CHANCE = 1e-4
_LEAST_ROWS = 20  # of two tables that hold the same rows

#: A fit is refused where more than this share of what a column says is nowhere in the public one:
#: the column then informs the model of fewer records than it leaves out.
STOPS = 0.5
#: So often may the share of public cells be exceeded that no other public row has: where many
#: values are rare, some private ones are new.
_OF_PUBLIC = 2
_FEWEST = 20  # public cells; fewer are examples of what a column holds

_BLOCK_CELLS = 1 << 20  # cells hashed at once


class PrivateRows:
    """Private rows beside tables that are to be public.

    By chance as large a share of public rows have exactly one private unit that equals them as of
    private rows have exactly one *other* one (Good 1953); so for two. Of the private rows are kept
    hashes, and of them those of the tables and a sample.

    Parameters
    ----------
    tables : sequence of arrays, sparse matrices or frames of shape (n_rows, n_features)
    """

    def __init__(self, tables: Sequence[Any]) -> None:
        self._tables = [row_hashes(table) for table in tables]
        known = [table for table in self._tables if table is not None]
        self._watched = np.unique(np.concatenate([*known, _none()]))
        self._values, self._units, self._largest = _none(), _none(), 2**64 - 1
        self._n_rows = self._n_pairs = self._digest = 0

    def add(self, X: Any, units: Any = None) -> None:
        """Add private rows, behind those that are there.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n_rows, n_features)
        units : integers of shape (n_rows,), optional
            Of each row's unit; None makes every row one.
        """
        values = row_hashes(X)
        if values is None:
            return
        if units is None:
            units = np.arange(self._n_rows, self._n_rows + len(values))
        self._n_rows += len(values)
        self._digest = (self._digest + _rows_digest(values)) % 2**64
        # the same row of one unit again is no coincidence
        values, units = _pairs(values, np.asarray(units).astype(np.uint64), len(values))
        self._n_pairs += len(values)
        new = self._kept(values)
        self._values, self._units = _pairs(
            np.concatenate([self._values, values[new]]),
            np.concatenate([self._units, units[new]]),
            _COUNTED,
        )
        sampled = np.unique(self._values[self._values <= self._largest])
        if len(sampled) > MOST_SAMPLED:
            self._largest = int(sampled[MOST_SAMPLED - 1])
            kept = self._kept(self._values)
            self._values, self._units = self._values[kept], self._units[kept]

    def add_stored(self, table: StoredTable) -> None:
        """Add the private rows of a table on disk, block by block."""
        for block in table.blocks():
            self.add(block.X, None if block.units is None else block.units[:, 0])

    def _kept(self, values: _Hashes) -> Any:
        return (values <= self._largest) | np.isin(values, self._watched)

    def hold(self, place: int) -> bool:
        """Return whether private rows are in the table at that place, more than chance explains.

        Private, and not protected.
        """
        table = self._tables[place]
        if table is None or not self._n_pairs:
            return False
        same = (len(table), _rows_digest(table)) == (self._n_rows, self._digest)
        if same and len(table) >= _LEAST_ROWS:
            return True
        values, counts = np.unique(self._values, return_counts=True)
        public, sampled = counts[np.isin(values, table)], counts[values <= self._largest]
        n_sampled = self._n_pairs * (self._largest + 1) / 2**64
        return any(
            _beyond_chance(
                int((public == equal).sum()),
                len(table),
                int((sampled == equal + 1).sum()),
                n_sampled / (equal + 1),
            )
            for equal in _EQUAL_UNITS
        )


def _beyond_chance(found: int, n_rows: int, usual: int, n_usual: float) -> bool:
    """Return whether a rate of `found` in `n_rows` is beyond that of `usual` in `n_usual`, both of
    Poisson's law: given their sum, one of them is binomial."""
    if not found:
        return False
    part = _OF_CHANCE * n_rows / (_OF_CHANCE * n_rows + n_usual)
    return not float(betainc(found, usual + 1, part)) >= _LEAST_CHANCE


def _none() -> _Hashes:
    return np.empty(0, dtype=np.uint64)


def _pairs(values: _Hashes, units: _Hashes, most: int) -> tuple[_Hashes, _Hashes]:
    """Return each pair once, by value; of each value no more than `most` of its units, the first
    ones by number."""
    order = np.lexsort((units, values))
    values, units = values[order], units[order]
    new = np.ones(len(values), dtype=np.bool_)
    new[1:] = (values[1:] != values[:-1]) | (units[1:] != units[:-1])
    values, units = values[new], units[new]
    few = np.arange(len(values)) - np.searchsorted(values, values) < most
    return values[few], units[few]


def refuse_unlike_cells(X: Any, typed: Any, X_public: Any) -> None:
    """Refuse private columns that mostly say what no public point does.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_records, n_features)
        Private, as it was given. Of numbers types alone are compared, elsewhere.
    typed : like X
        The same with the types of the public points; what these have no place for is missing.
    X_public : like X, of shape (n_public, n_features)

    Raises
    ------
    DataError
        Naming the column, and no cell.
    """
    named = getattr(X_public, "columns", None)
    if named is None and isinstance(X, np.ndarray) and X.dtype == object:
        named = range(X.shape[1])
    for place, name in enumerate(() if named is None else named):
        if result_of(partial(_is_unlike, place, X, typed, X_public)):
            raise DataError(
                f"Column {shown(name)} of X does not fit: most of its cells are none of the values"
                " of X_public; write cells alike in both, add public points that have them, or drop"
                " the column. Nothing was spent."
            )


def _is_unlike(place: int, *tables: Any) -> bool:
    given, typed, public = (
        pd.Series(one[:, place]) if isinstance(one, np.ndarray) else one.iloc[:, place]
        for one in tables
    )
    there = given.dropna()
    # pandas reads texts of digits as numbers where no other text is in the column
    if len(there) and _has_text(public) and not _has_text(there):
        return True
    if public.count() < _FEWEST:
        return False
    strange, usual = typed.isna(), 0.0
    if pd.api.types.is_object_dtype(typed) or pd.api.types.is_string_dtype(typed):
        strange |= ~typed.isin(public.unique())
        usual = float((public.value_counts() == 1).sum() / public.count())
    said = given.notna().to_numpy()
    return bool(strange.to_numpy()[said].sum() > max(STOPS, _OF_PUBLIC * usual) * said.sum())


def _has_text(cells: "pd.Series[Any]") -> bool:
    return any(isinstance(cell, str) for cell in cells)


# --- hashes of rows, by which equal rows are found without keeping a row ---


def row_hashes(X: Any) -> _Hashes | None:
    """Return a hash of every row of a table; None where they cannot be hashed.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
    """
    return result_of(partial(_row_hashes, X))


def _rows_digest(hashes: _Hashes) -> int:
    """Return the digest of rows, in any order, by their hashes."""
    return int(np.add.reduce(hashes, dtype=np.uint64))


def _row_hashes(X: Any) -> _Hashes:
    size = max(1, _BLOCK_CELLS // n_columns(X))
    blocks = [_none()]
    for start, stop in block_bounds(n_rows(X), size):
        rows = row_block(X, start, stop)
        rows = _alike(rows.toarray() if is_sparse(rows) else rows)
        blocks.append(np.asarray(pd.util.hash_pandas_object(rows, index=False), dtype=np.uint64))
    return np.concatenate(blocks)


def _alike(rows: Any) -> pd.DataFrame:
    """Return rows in which equal numbers are equal bits, of whatever kind a file made them."""
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
    return pd.DataFrame(
        {
            place: column.to_numpy(np.float64, na_value=np.nan) + 0.0  # -0.0 is 0.0
            if pd.api.types.is_numeric_dtype(column.dtype)
            else column
            for place, (_, column) in enumerate(frame.items())
        }
    )
