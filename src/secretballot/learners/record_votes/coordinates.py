"""Coordinates of private records in a public basis, record by record."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from secretballot._typing import BoolArray, IntArray
from secretballot._validation import shown_kind
from secretballot.exceptions import Parameter, ParameterError
from secretballot.foreign_code import result_of
from secretballot.learners.training.basis_rows import covered_rows, integer_rows
from secretballot.learners.training.table import Table
from secretballot.report.certificate.coverage import MOST_EXPECTED
from secretballot.students.record_votes import fitted_basis
from secretballot.teachers.rows import n_rows, take_rows

_BLOCK_ROWS = 8192
_TRIED_ROWS = 20


def public_basis(basis: Any, X_public: Any) -> Any:
    """Return a basis that public points alone have fixed, tried on some of them.

    Parameters
    ----------
    basis : transformer with `integers`, or None
        Cloned and fitted on the pool, so that what it may have learned before is forgotten. What
        has no `fit` is taken as it is.
    X_public : array, sparse matrix or frame of shape (n_public, n_features)

    Raises
    ------
    ParameterError
        If it gives no integers, or maps a row differently when others stand around it; or if it
        says so of which rows are covered.
    """
    if basis is not None and (isinstance(basis, type) or not hasattr(basis, "integers")):
        raise ParameterError(
            Parameter("basis"),
            f" is {shown_kind(basis)}; give an object with a method integers(X), such as"
            " secretballot.bases.TableBasis().",
        )
    fitted = fitted_basis(basis, X_public)
    points = take_rows(X_public, np.arange(min(_TRIED_ROWS, n_rows(X_public))))
    # the public points are mapped together, and the records alone: both must come to the same
    together = result_of(lambda: np.asarray(fitted.integers(points)))
    if (
        together is None
        or together.dtype.kind not in "iu"
        or together.ndim != 2
        or together.shape[0] != n_rows(points)
        or not together.shape[1]
    ):
        raise ParameterError(
            f"The basis {type(fitted).__name__} gives no table of integers for public points;"
            " integers(X) must return an array of integers of shape (rows, coordinates)."
        )
    alone, known = integer_rows(fitted, points, together.shape[1])
    if not known.all() or not np.array_equal(alone, together):
        raise ParameterError(
            f"The basis {type(fitted).__name__} maps a public point to other integers when others"
            " stand around it; integers(X) must map every row by itself."
        )
    if expected_uncovered(fitted) is not None:
        whole = result_of(lambda: np.asarray(fitted.covered(points)))
        if (
            whole is None
            or whole.dtype != np.bool_
            or not np.array_equal(covered_rows(fitted, points), whole)
        ):
            raise ParameterError(
                f"The basis {type(fitted).__name__} does not say of every public point by itself"
                " whether it is covered; covered(X) must return an array of bools of shape (rows,)."
            )
    return fitted


def expected_uncovered(basis: Any) -> float | None:
    """Return the share of records that chance leaves uncovered by the public points of a basis.

    None where the basis does not say which rows they cover, or so many are uncovered by chance that
    they cannot be left out.
    """
    share = getattr(basis, "uncovered_share_", None) if hasattr(basis, "covered") else None
    return None if share is None or share > MOST_EXPECTED else float(share)


def voting_records(
    basis: Any, table: Table, n_coordinates: int, *, told_apart: bool
) -> Iterator[tuple[IntArray, IntArray, BoolArray]]:
    """Yield coordinates, class indices of the records that vote, one of every unit, and whether the
    public points cover them, block by block.

    A record that the basis cannot map is left out, without a word: it votes for nothing. One of
    which it cannot say whether the points cover it is not covered. Both are as `integer_rows` says.

    Parameters
    ----------
    basis : transformer with `integers`
        Which maps every row by itself.
    table : Table
    n_coordinates : int
        Of the public points, and so of every record.
    told_apart : bool
        Whether it is asked which are covered; otherwise all are said to be.
    """
    for block in table.one_of_each_unit(_BLOCK_ROWS):
        integers, known = integer_rows(basis, block.rows, n_coordinates)
        covered = covered_rows(basis, block.rows) if told_apart else known
        yield integers[known], block.targets[known], covered[known]
