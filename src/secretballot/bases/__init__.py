"""Feature maps made of public points alone, which map every record by itself, in integers."""

from typing import Any

from sklearn.base import clone

from secretballot._points import lie_in_groups
from secretballot._validation import BASES, check_choice, refusal, shown_kind
from secretballot.bases.graph import GraphBasis
from secretballot.bases.images import ImageBasis, are_images
from secretballot.bases.integer_basis import IntegerBasis, numbers_of
from secretballot.bases.kernel import KernelBasis
from secretballot.bases.table import TableBasis
from secretballot.exceptions import DataError
from secretballot.foreign_code import is_exact

__all__ = ["Basis", "GraphBasis", "ImageBasis", "KernelBasis", "TableBasis"]

#: Every kind of basis of this library.
Basis = TableBasis | KernelBasis | GraphBasis


def check_basis(basis: object) -> None:
    """Refuse what is neither a `BasisName` nor a basis of this package: nothing would show that
    another one maps every row by itself.

    Raises
    ------
    ParameterError
        Saying what it is.
    """
    if isinstance(basis, str):
        check_choice("basis", basis, BASES)
    elif not (isinstance(basis, IntegerBasis) and is_exact(basis)):
        raise refusal(
            "basis",
            f" is {shown_kind(basis)}; give {', '.join(BASES)}, or one of secretballot.bases, such"
            " as TableBasis(), which is fitted to the public points here.",
        )


def unfitted_basis(basis: Basis | str, X_public: Any) -> Basis:
    """Return an unfitted basis: a copy of one that is given, or the one of a name.

    Parameters
    ----------
    basis : basis of `secretballot.bases`, or a `BasisName`
        "auto" is "images" for what looks like square grey images, "vectors" for
        other numbers that lie in groups (`lie_in_groups`), and "table" for all else.
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
        Public; nothing else decides.
    """
    if not isinstance(basis, str):
        given: Basis = clone(basis)
        return given
    if basis == "auto":
        basis = _suited_to(X_public)
    if basis == "table":
        return TableBasis.suited_to(X_public)
    if basis == "images":
        return ImageBasis()
    if basis == "kernel":
        # width and ranks were chosen on tables of numbers (benchmarks/record_tables.py)
        return KernelBasis(width=0.6, ranked=True)
    # of the graph the smoothest functions are kept; where all of them would be, likeness serves
    enough = len(numbers_of(X_public)) > GraphBasis.n_modes
    return GraphBasis(scaled=False) if enough else KernelBasis(scaled=False)


def _suited_to(X_public: Any) -> str:
    try:
        numbers = numbers_of(X_public)
    except DataError:
        return "table"
    if are_images(numbers):
        return "images"
    return "vectors" if lie_in_groups(numbers) else "table"
