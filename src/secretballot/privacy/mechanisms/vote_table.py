"""Release one of two labels with a chance that a public table gives for the votes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from secretballot._typing import IntArray
from secretballot.core.noise import NoiseSource
from secretballot.exceptions import DataError, Parameter
from secretballot.privacy.accounting import CHANCE_BITS, BinaryLabels, TableChances
from secretballot.privacy.mechanisms.mechanism import Mechanism, check_counts


@dataclass(frozen=True)
class VoteTableMajority(Mechanism):
    """Release one of two labels: the minority's with a chance that falls with the margin.

    Parameters
    ----------
    weights : sequence of int
        Chances of the minority's label, in units of 2^-53, margin by margin; see `BinaryLabels`.
    n_teachers : int
        Number K of teachers, public.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote: the count by 1, the margin by 2.
    Price : the exact adaptive game on the label alone.
    Source : docs/explanation/prices.md, section 13, for the table and the game.
    Rounding : none here: the label is drawn with one uniform integer below 2^53, so its chance is
        the table's to the last bit. The accountant rounds upward.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.VoteTableMajority([2**52, 2**51, 2**50], n_teachers=10)
    >>> noise = sb.audit.ScriptedNoise([2**51, 2**50])
    >>> mechanism.release(np.array([[4, 6], [4, 6]]), noise)
    array([1, 0])
    """

    weights: tuple[int, ...]
    n_teachers: int
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        table = TableChances(weights=self.weights, n_teachers=self.n_teachers)
        object.__setattr__(self, "weights", table.weights)

    def event(self, count: int = 1) -> BinaryLabels:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return BinaryLabels(
            chances=TableChances(weights=self.weights, n_teachers=self.n_teachers), queries=count
        )

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Return labels 0 or 1, shape (n_queries,), from counts of shape (n_queries, 2).

        Raises
        ------
        DataError
            If the counts do not fit, or are not of one vote from each teacher; no count is named.
        """
        votes = check_counts(counts, 2)
        if not (votes.sum(axis=1) == self.n_teachers).all():
            raise DataError(
                Parameter("counts"),
                f" must hold one vote from each of {self.n_teachers} teachers per query.",
            )
        places = np.abs(votes[:, 1] - votes[:, 0]) // 2
        weights = np.array(self.weights, dtype=np.int64)[np.minimum(places, len(self.weights) - 1)]
        leading = (votes[:, 1] >= votes[:, 0]).astype(np.int64)
        minority = noise.uniform_integers(CHANCE_BITS, len(votes)) < weights
        return np.where(minority, 1 - leading, leading)
