"""Release a table of counts of which one unit moves a few cells, by one each."""

from dataclasses import dataclass

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.core.noise import NoiseSource, check_scale
from secretballot.exceptions import DataError
from secretballot.privacy.accounting import Counts
from secretballot.privacy.mechanisms.mechanism import MAX_VOTES, Mechanism


@dataclass(frozen=True)
class GaussianNoisyTable(Mechanism):
    """Release a whole table of counts, with discrete Gaussian noise on each cell.

    Parameters
    ----------
    sigma : float
        Scale of the noise on each cell, in votes; positive and finite.
    moved_cells : int
        Most cells that one unit moves, by one vote each, anywhere in the table; public.

    Privacy
    -------
    Unit : one record or user, which votes a bounded number of times.
    Relation : as `moved_cells` was counted: k votes of a unit move k cells where it comes or goes,
        and at most 2 k where it is replaced.
    Sensitivity : L1 `moved_cells`, L2 its root. Which cells move, and up or down, is the
        adversary's choice; a cell that does not move costs nothing.
    Price : `moved_cells` unit shifts of discrete Gaussian noise, however many cells there are.
    Source : Zhu et al. 2022, arXiv:2207.13253, for the votes; Canonne, Kamath, Steinke 2020 for the
        discrete distribution.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If `sigma` is not positive and finite, or `moved_cells` is below 1.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.GaussianNoisyTable(sigma=5.0, moved_cells=3)
    >>> noise = sb.audit.ScriptedNoise([1, -2, 3, 0])
    >>> mechanism.release(np.array([[10, 70], [0, 4]]), noise)
    array([[11, 68],
           [ 3,  4]])
    """

    sigma: float
    moved_cells: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_scale("sigma", self.sigma))
        object.__setattr__(self, "moved_cells", check_count("moved_cells", self.moved_cells))

    @property
    def l1_sensitivity(self) -> int:  # type: ignore[override]  # follows from a parameter here
        """Cells that one unit moves by one each."""
        return self.moved_cells

    @property
    def squared_l2_sensitivity(self) -> int:  # type: ignore[override]
        """Cells that one unit moves by one each."""
        return self.moved_cells

    def event(self, count: int = 1) -> Counts:
        """Return what `count` tables, adaptively chosen, are to the accountant."""
        return Counts(sigma=self.sigma, shifts=self.moved_cells * check_count("count", count))

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Return noisy counts of the shape of `counts`, (n_points, n_classes).

        Raises
        ------
        DataError
            If the counts are no table of integers from 0 to 2^40; no count is named.
        """
        table = np.asarray(counts)
        if table.dtype.kind not in "iu" or table.ndim != 2:
            raise DataError(
                f"counts have dtype {table.dtype} and shape {table.shape}; give integers in two"
                " dimensions."
            )
        if not ((table >= 0) & (table <= MAX_VOTES)).all():
            raise DataError("counts hold a number of votes below 0 or above 2^40.")
        votes = table.astype(np.int64, copy=False)
        return votes + noise.discrete_gaussian(self.sigma, votes.size).reshape(votes.shape)
