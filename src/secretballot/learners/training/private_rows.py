"""Whether rows that are to be public are private ones, more of them than chance explains.

All of it is computed from private rows and is for the curator alone: it decides whether something
is refused before it is paid, and changes no release.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import betainc

from secretballot.data.stored import StoredTable
from secretballot.learners.training.record_digests import Hashes, row_hashes, rows_digest

MOST_SAMPLED = 1 << 17  # values by which chance is estimated: 3 MiB
#: Public rows that exactly one private unit has are refused, and those that two have, since whole
#: private tables are doubled by mistake.
EQUAL_UNITS = (1, 2)
_COUNTED = max(EQUAL_UNITS) + 2  # units of a value: so many or more are all alike
#: So much larger may the share of such rows be than among private rows, since two tables are hardly
#: ever drawn alike.
OF_CHANCE = 1.25
#: Probability of so many equal rows by chance below which they are refused.
LEAST_CHANCE = 1e-4
LEAST_ROWS = 20  # of two tables that hold the same rows


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
        self._digest = (self._digest + rows_digest(values)) % 2**64
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

    def _kept(self, values: Hashes) -> Any:
        return (values <= self._largest) | np.isin(values, self._watched)

    def hold(self, place: int) -> bool:
        """Return whether private rows are in the table at that place, more than chance explains.

        Private, and not protected.
        """
        table = self._tables[place]
        if table is None or not self._n_pairs:
            return False
        same = (len(table), rows_digest(table)) == (self._n_rows, self._digest)
        if same and len(table) >= LEAST_ROWS:
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
            for equal in EQUAL_UNITS
        )


def _beyond_chance(found: int, n_rows: int, usual: int, n_usual: float) -> bool:
    """Return whether a rate of `found` in `n_rows` is beyond that of `usual` in `n_usual`, both of
    Poisson's law: given their sum, one of them is binomial."""
    if not found:
        return False
    part = OF_CHANCE * n_rows / (OF_CHANCE * n_rows + n_usual)
    return not float(betainc(found, usual + 1, part)) >= LEAST_CHANCE


def _none() -> Hashes:
    return np.empty(0, dtype=np.uint64)


def _pairs(values: Hashes, units: Hashes, most: int) -> tuple[Hashes, Hashes]:
    """Return each pair once, by value; of each value no more than `most` of its units, the first
    ones by number."""
    order = np.lexsort((units, values))
    values, units = values[order], units[order]
    new = np.ones(len(values), dtype=np.bool_)
    new[1:] = (values[1:] != values[:-1]) | (units[1:] != units[:-1])
    values, units = values[new], units[new]
    few = np.arange(len(values)) - np.searchsorted(values, values) < most
    return values[few], units[few]
