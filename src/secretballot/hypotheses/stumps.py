"""Decision stumps: one feature of several, one threshold, either direction."""

from math import comb
from typing import ClassVar

from numpy.typing import ArrayLike

from secretballot._validation import check_count
from secretballot.hypotheses.base import HypothesisClass
from secretballot.hypotheses.cut_spaces import CutDichotomies, CutSpace, best_cut
from secretballot.hypotheses.cuts import Cut
from secretballot.hypotheses.points import check_points

_DIRECTIONS = ("up", "down")


class DecisionStumps(HypothesisClass):
    """Functions 1[x_f >= t] and 1[x_f < t] of any one feature f, with t real or infinite.

    Parameters
    ----------
    n_features : int
        Number d of features.

    Notes
    -----
    On m distinct points there are at most 2 d (m - 1) + 2 labellings; fewer where two features
    separate the points alike. Cost with n points: O(d n log n) for `erm` and `restrict`, O(d n log
    n + d^2 n) for `dichotomies`, O(d n) for errors of all labellings and for the disagreement
    region.

    Raises
    ------
    ParameterError
        If `n_features` is not an integer of at least 1.

    Examples
    --------
    >>> X, y = [[0.0, 5.0], [1.0, 5.0], [0.0, 9.0]], [0, 0, 1]
    >>> best = sb.hypotheses.DecisionStumps(n_features=2).erm(X, y)
    >>> best.feature, best.threshold
    (1, 7.0)
    """

    name: ClassVar[str] = "decision stumps"

    def __init__(self, n_features: int) -> None:
        self.n_features = check_count("n_features", n_features)

    @property
    def vc_dimension(self) -> int:
        """The largest v with binomial(v, floor(v / 2)) <= 2 d, about log2(d). Exact.

        A feature orders v points, so that it cuts off two sets of each size, one at either end; all
        sets of half the points are needed. Leboeuf, LeBlanc and Marchand 2020, arXiv:2010.07374,
        show that this suffices.
        """
        dimension = 2
        while comb(dimension + 1, (dimension + 1) // 2) <= 2 * self.n_features:
            dimension += 1
        return dimension

    def erm(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Cut:
        """Return the stump with the least weighted mistakes, the first of equal ones.

        Parameters
        ----------
        X : array of shape (n, n_features)
        y : array of 0 and 1, shape (n,)
        sample_weight : array of shape (n,), optional
            What a mistake on each row counts, at least 0; 1 by default.
        """
        return best_cut(X, y, sample_weight, self.n_features, _DIRECTIONS)

    def dichotomies(self, X: ArrayLike) -> CutDichotomies:
        """Return the labellings, by feature, direction and ascending threshold.

        Parameters
        ----------
        X : array of shape (m, n_features)
        """
        return CutDichotomies(check_points(X, self.n_features), _DIRECTIONS)

    def version_space(self) -> CutSpace:
        """Return the whole class as a version space."""
        return CutSpace.whole(self.name, self.n_features, _DIRECTIONS)
