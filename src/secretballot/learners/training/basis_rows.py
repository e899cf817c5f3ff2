"""Private rows in a public basis: each by itself, to the last bit, and by the gateway."""

from functools import partial
from typing import Any

import numpy as np

from secretballot._typing import BoolArray, IntArray
from secretballot.bases import Basis
from secretballot.foreign_code import result_of, rows_alone


def mapped_rows(basis: Basis, rows: Any, width: int) -> tuple[IntArray, BoolArray, BoolArray]:
    """Return the rows of private rows as `basis.rows` does, zeros where it gives none, where it
    does, and which are covered: arrays of shape (n_rows, width), (n_rows,) and (n_rows,).

    Parameters
    ----------
    basis : basis of `secretballot.bases`
        Which maps every row by itself; where an odd cell stops it, one row at a time.
    rows : array, sparse matrix or frame of shape (n_rows, n_features)
    width : int
        Of the rows of the public points.

    Raises
    ------
    ResourceError
        If the machine failed.

    Privacy
    -------
    Sensitivity : every row follows from itself and the basis alone.
    """
    together = result_of(partial(basis.mapped, rows))
    if together is not None:
        integers, covered = together
        return integers, np.ones(len(covered), dtype=np.bool_), covered
    alone = rows_alone(basis.mapped, rows)
    nothing = np.zeros((1, width), dtype=np.int64), np.zeros(1, dtype=np.bool_)
    parts = [nothing if one is None else one for one in alone]
    known = np.array([one is not None for one in alone], dtype=np.bool_)
    integers, covered = (np.concatenate(each) for each in zip(*parts, strict=True))
    return integers, known, covered
