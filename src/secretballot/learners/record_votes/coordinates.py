"""Coordinates of private records in a public basis, record by record."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from secretballot._typing import BoolArray, IntArray
from secretballot._validation import shown_kind
from secretballot.ensemble.stored_table import StoredTable
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.training.inputs import n_rows, take_rows
from secretballot.learners.training.one_of_each_unit import fresh_key, one_record_each
from secretballot.learners.training.stored_input import blocks_by_unit
from secretballot.report.certificate.coverage import MOST_EXPECTED
from secretballot.students.record_votes import fitted_basis

__all__ = [
    "expected_uncovered",
    "public_basis",
    "record_blocks",
    "stored_record_blocks",
    "voting_record_blocks",
]

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
    tried = np.arange(min(_TRIED_ROWS, n_rows(X_public)))
    # a row that others move would let one record change what all others vote for
    together = _integer_rows(fitted, take_rows(X_public, tried))
    if together is None:
        raise ParameterError(
            f"The basis {type(fitted).__name__} gives no table of integers for public points;"
            " integers(X) must return an array of integers of shape (rows, coordinates)."
        )
    alone = [
        _integer_rows(fitted, take_rows(X_public, tried[row : row + 1])) for row in tried.tolist()
    ]
    if not all(
        one is not None and np.array_equal(one[0], row)
        for one, row in zip(alone, together, strict=True)
    ):
        raise ParameterError(
            f"The basis {type(fitted).__name__} maps a public point to other integers when others"
            " stand around it; integers(X) must map every row by itself."
        )
    if expected_uncovered(fitted) is not None:
        apart = [_covered_rows(fitted, take_rows(X_public, tried[row : row + 1])) for row in tried]
        whole = _covered_rows(fitted, take_rows(X_public, tried))
        if whole is None or not all(
            one is not None and one[0] == row for one, row in zip(apart, whole, strict=True)
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


def record_blocks(
    basis: Any,
    X: Any,
    index: IntArray,
    rows: IntArray,
    *,
    n_coordinates: int,
    told_apart: bool = False,
) -> Iterator[tuple[IntArray, IntArray, BoolArray]]:
    """Yield coordinates, class indices of private records, and whether the public points cover
    them, block by block.

    A record that the basis cannot map is left out, without a word: it votes for nothing. One of
    which it cannot say whether the points cover it is not covered.

    Parameters
    ----------
    basis : transformer with `integers`
        Which maps every row by itself.
    X : array, sparse matrix or frame of shape (n_records, n_features)
    index : ndarray of int64, shape (n_records,)
        Of the classes.
    rows : ndarray of int64
        Records that vote.
    n_coordinates : int
        Of the public points, and so of every record.
    told_apart : bool
        Whether it is asked which are covered; otherwise all are said to be.
    """
    for at in range(0, len(rows), _BLOCK_ROWS):
        block = rows[at : at + _BLOCK_ROWS]
        found = _of_block(basis, take_rows(X, block), n_coordinates, told_apart)
        if found is not None:
            yield found[0], index[block], found[1]
            continue
        # one record was too odd for the basis: the others must not notice
        for row in block.tolist():
            one = take_rows(X, np.array([row]))
            alone = _integer_rows(basis, one)
            if alone is not None and alone.shape[1] == n_coordinates:
                covered = _covered_rows(basis, one) if told_apart else np.ones(1, dtype=np.bool_)
                is_covered = np.zeros(1, dtype=np.bool_) if covered is None else covered
                yield alone, index[[row]], is_covered


def voting_record_blocks(
    basis: Any, X: Any, index: IntArray, units: Any, key: bytes | None = None, **settings: Any
) -> Iterator[tuple[IntArray, IntArray, BoolArray]]:
    """Yield the same of the records that vote: all of them, or one of every unit.

    `X`, `index` and `settings` are those of `record_blocks`; `units` are ids of shape (n_records,)
    or None, `key` as for `one_record_each`.
    """
    rows = np.arange(n_rows(X)) if units is None else one_record_each(units, n_rows(X), key)
    yield from record_blocks(basis, X, index, rows, **settings)


def stored_record_blocks(
    basis: Any, table: StoredTable, **settings: Any
) -> Iterator[tuple[IntArray, IntArray, BoolArray]]:
    """Yield the same of a table on disk."""
    # one key for all blocks: which units stand together then has no say in who votes
    key = fresh_key()
    for block in blocks_by_unit(table):
        # whole hashes stand for the ids: which record of a unit votes follows from its own alone
        halves = None if block.units is None else block.units.astype(object)
        units = None if halves is None else [int(high) << 64 | int(low) for high, low in halves]
        yield from voting_record_blocks(basis, block.X, block.classes, units, key, **settings)


def _of_block(
    basis: Any, rows: Any, n_coordinates: int, told_apart: bool
) -> tuple[IntArray, BoolArray] | None:
    """Return coordinates of some rows and whether they are covered, None where the basis does not
    say one of both."""
    mapped = _integer_rows(basis, rows)
    covered = _covered_rows(basis, rows) if told_apart else np.ones(n_rows(rows), dtype=np.bool_)
    if mapped is None or mapped.shape[1] != n_coordinates or covered is None:
        return None
    return mapped, covered


def _covered_rows(basis: Any, rows: Any) -> BoolArray | None:
    """Return which rows the public points cover, None where the basis does not say."""
    try:
        covered = np.asarray(basis.covered(rows))
    except MemoryError:
        raise
    except Exception:  # as for `_integer_rows`
        return None
    return covered if covered.dtype == np.bool_ and covered.shape == (n_rows(rows),) else None


def _integer_rows(basis: Any, rows: Any) -> IntArray | None:
    """Return the integers of some rows, None where the basis gives none."""
    try:
        table = np.asarray(basis.integers(rows))
    except MemoryError:  # what memory there is, is no property of a record
        raise
    except Exception:  # a basis may be anybody's, and what it raises may quote a record
        return None
    whole = table.dtype.kind in "iu" and table.ndim == 2 and len(table) == n_rows(rows)
    return table.astype(np.int64) if whole and table.shape[1] else None
