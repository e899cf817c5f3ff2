"""Public points that are private records.

Whether they are refused may depend on private records, so the refusal is not for publication
(`docs/explanation/threat-model.md`).
"""

from typing import Any

from secretballot.exceptions import DataError
from secretballot.learners.training.private_rows import PrivateRows
from secretballot.teachers.records import unit_numbers
from secretballot.teachers.rows import n_rows
from secretballot.teachers.stored_table import StoredTable


def refuse_private_points(X: Any, X_public: Any, *, same: bool = False, units: Any = None) -> None:
    """Refuse public points that are private records.

    Parameters
    ----------
    X : StoredTable, or array, sparse matrix or frame of shape (n_records, n_features)
        Private, with public types.
    X_public : array, sparse matrix or frame of shape (n_public, n_features), or None
    same : bool
        Whether both tables were given as one object.
    units : array of shape (n_records,), optional
        Ids of the units, as `KeyedHashPartition.assign` takes them.

    Raises
    ------
    DataError
        If public points are private records, more of them than chance explains.
    """
    if X_public is not None and _are_records(X, X_public, same=same, units=units):
        raise private_points()


def private_points() -> DataError:
    """Return the refusal of public points that are private records."""
    return DataError(
        "X_public holds private records, more of them than chance explains, and public points are"
        " published; give points that are known to everybody, and X with all its equal rows, or,"
        " if the features are public and the labels alone private, give public_features=True and no"
        " X_public. Nothing was spent."
    )


def _are_records(X: Any, X_public: Any, *, same: bool, units: Any) -> bool:
    if same:
        return True
    rows = PrivateRows([X_public])
    if isinstance(X, StoredTable):
        rows.add_stored(X)
    else:
        rows.add(X, None if units is None else unit_numbers(units, n_rows(X)))
    return rows.hold(0)
