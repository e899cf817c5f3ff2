"""Thresholds of one feature, upward, downward or either: the last are halfspaces of the line."""

from typing import ClassVar

from numpy.typing import ArrayLike

from secretballot._validation import check_choice
from secretballot.hypotheses.base import HypothesisClass
from secretballot.hypotheses.cut_spaces import CutDichotomies, CutSpace, best_cut
from secretballot.hypotheses.cuts import Cut
from secretballot.hypotheses.points import check_points


class Thresholds(HypothesisClass):
    """Functions 1[x >= t] of one feature, with t a real number or an infinity.

    Parameters
    ----------
    direction : {"up", "down", "either"}, default="up"
        "down" has the complements 1[x < t]; "either" has both, the halfspaces of the line.

    Notes
    -----
    On m distinct points there are m + 1 labellings, 2 m for "either". Cost with n points: O(n log
    n) for `erm`, `dichotomies` and `restrict`; O(n) for errors of all labellings and for the
    disagreement region.

    Raises
    ------
    ParameterError
        If `direction` is another word.

    Examples
    --------
    >>> best = sb.hypotheses.Thresholds("down").erm([[1.0], [2.0], [3.0]], [1, 1, 0])
    >>> best.threshold, best.direction
    (2.5, 'down')
    """

    name: ClassVar[str] = "thresholds"

    def __init__(self, direction: str = "up") -> None:
        self.direction = check_choice("direction", direction, ("up", "down", "either"))
        self._directions = ("up", "down") if direction == "either" else (direction,)

    @property
    def vc_dimension(self) -> int:
        """1; 2 for "either". Exact."""
        return len(self._directions)

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Cut:
        """Return the threshold with the least weighted mistakes, the first of equal ones.

        Parameters
        ----------
        X : array of shape (n, 1)
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        return best_cut(X, y, sample_weight, 1, self._directions)

    def dichotomies(self, X: ArrayLike) -> CutDichotomies:
        """Return the labellings, by ascending threshold: up, then down.

        Parameters
        ----------
        X : array of shape (m, 1)
        """
        return CutDichotomies(check_points(X, 1), self._directions)

    def version_space(self) -> CutSpace:
        """Return the whole class as a version space."""
        return CutSpace.whole(self.name, 1, self._directions)
