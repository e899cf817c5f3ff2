"""A stored table in the place of X: what else a fit is given must fit it."""

from collections.abc import Iterator, Sequence
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from secretballot._typing import IntArray, UnsignedArray
from secretballot._validation import shown_classes
from secretballot.data.stored import PERSONS, RowBlock, StoredTable
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.training.inputs import n_columns
from secretballot.learners.training.shards import persons_together


def blocks_by_unit(table: StoredTable) -> Iterator[RowBlock]:
    """Yield a stored table block by block, all records of a unit of privacy in one of them."""
    if table.unit == "record":
        yield from table.blocks()
        return
    # what counts a person once must have all of the person's records at hand
    with TemporaryDirectory(dir=table.vault, prefix=PERSONS) as folder:
        shards = persons_together(table, folder)
        for number in range(shards.n_teachers):
            yield shards.block(number)


def numbers_of_units(units: UnsignedArray) -> IntArray:
    """Return a number for the unit of every row, int64 of shape (n_rows,), from the hashes of
    units, uint64 of shape (n_rows, 2)."""
    _, numbers = np.unique(units, axis=0, return_inverse=True)
    return np.asarray(numbers, dtype=np.int64).reshape(-1)


def check_stored_table(
    table: StoredTable, y: Any, units: Any, X_public: Any, classes: Sequence[Any]
) -> None:
    """Refuse what does not go with a stored table: it holds classes and units itself.

    Parameters
    ----------
    table : StoredTable
    y, units
        As they were given to a fit; both None.
    X_public : array or sparse matrix of shape (n_public, n_features)
        Encoded by the schema that the table was stored by.
    classes : sequence
        Declared for the fit, or empty where the learner predicts no class.

    Raises
    ------
    ParameterError
        If labels or units are given, or the classes are others.
    DataError
        If the public points are a frame, or have another number of columns.
    """
    for name, given in (("y", y), ("units", units)):
        if given is not None:
            raise ParameterError(
                Parameter(name),
                " is given beside a stored table, which holds its own; leave it out.",
            )
    if not classes:
        raise ParameterError(
            Parameter("X"),
            " is a stored table, which holds classes; this learner predicts something else, so"
            " give it a table in memory.",
        )
    # the table holds places among these classes, which mean others in another order
    if list(classes) != list(table.classes):
        raise ParameterError(
            Parameter("classes"),
            f" is {shown_classes(classes)}, and the table was stored with"
            f" {shown_classes(table.classes)}; give the same in the same order.",
        )
    if hasattr(X_public, "iloc") or n_columns(X_public) != table.n_columns:
        kind = "a frame" if hasattr(X_public, "iloc") else f"of {n_columns(X_public)} columns"
        raise DataError(
            Parameter("X_public"),
            f" is {kind}, and the stored table has {table.n_columns}"
            " encoded columns; encode the public rows by the same schema: schema.encode(rows).",
        )
