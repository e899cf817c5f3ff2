"""What every mechanism states about itself, and the guards on what it is given."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from secretballot._typing import IntArray
from secretballot.exceptions import DataError, Parameter
from secretballot.privacy.accounting import Event

# with noise of at most 2^40 in scale, every sum and difference stays inside 64 bits
MAX_VOTES = 2**40


@dataclass(frozen=True)
class Mechanism(ABC):
    """Base of all mechanisms: one noisy step on integers, its sensitivity and its event.

    Attributes
    ----------
    l1_sensitivity, squared_l2_sensitivity : int
        How far the integers that are noised for one query can move when one teacher moves one vote.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.StabilityQuantile(fraction=0.5, epsilon=0.25)
    >>> isinstance(mechanism, mechanisms.Mechanism)
    True
    >>> mechanism.l1_sensitivity, mechanism.event()
    (1, Pure(epsilon=0.25, count=1))
    """

    l1_sensitivity: ClassVar[int]
    squared_l2_sensitivity: ClassVar[int]

    @abstractmethod
    def event(self, count: int = 1) -> Event:
        """Return what `count` queries, adaptively chosen, are to the accountant."""


def check_counts(counts: IntArray, n_classes: int) -> IntArray:
    """Return vote counts as int64 of shape (n_queries, n_classes).

    Raises
    ------
    DataError
        If they do not fit; no count is named.
    """
    array = np.asarray(counts)
    if array.dtype.kind not in "iu" or array.ndim != 2 or array.shape[1] != n_classes:
        raise DataError(
            Parameter("counts"),
            f" have dtype {array.dtype} and shape {array.shape}; give integers of shape"
            f" (n_queries, {n_classes}).",
        )
    if not ((array >= 0) & (array <= MAX_VOTES)).all():
        raise DataError(
            "counts hold a number of votes below 0 or above 2^40; give the number of teachers per"
            " class."
        )
    return array.astype(np.int64, copy=False)


def check_values(values: IntArray) -> IntArray:
    """Return one integer of sensitivity 1 per query as int64.

    `values` has shape (n_queries,).

    Raises
    ------
    DataError
        If they do not fit; no value is named.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise DataError(
            Parameter("values"),
            f" have dtype {array.dtype} and shape {array.shape}; give integers of shape"
            " (n_queries,).",
        )
    if not ((array >= -MAX_VOTES) & (array <= MAX_VOTES)).all():
        raise DataError("values hold a number beyond 2^40 in size; give numbers of votes.")
    return array.astype(np.int64, copy=False)
