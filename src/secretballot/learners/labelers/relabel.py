"""Relabel private records by one hypothesis of a class; by itself this is NOT private.

What comes out holds the private points and labels computed from the private ones: it belongs in the
vault, or into the shards of teachers whose votes are released with noise
(`secretballot.learners.labelers.agnostic`).
"""

from typing import Any

from numpy.typing import ArrayLike

from secretballot._typing import IntArray
from secretballot._validation import check_positive
from secretballot.core.exponential import least_quotient
from secretballot.core.releasing import noise_source
from secretballot.exceptions import Parameter, ParameterError
from secretballot.foreign_code import is_exact
from secretballot.hypotheses import HypothesisClass
from secretballot.hypotheses.intervals import IntervalDichotomies


def relabel(
    X: ArrayLike, y: ArrayLike, hypotheses: HypothesisClass, *, relabel_epsilon: float = 1.0
) -> IntArray:
    """Return new labels for private points, all given by one hypothesis; PRIVATE, as `y` is.

    Among the labellings that the class gives to the points, one is drawn with probability
    proportional to exp(-relabel_epsilon * mistakes / 2), exactly. A learner that meets its records
    relabelled meets them without noise; that is what makes teachers agree.

    Parameters
    ----------
    X : array of shape (n, n_features)
        Private points; equal ones get equal labels.
    y : array of 0 and 1, shape (n,)
        Private labels.
    hypotheses : HypothesisClass
    relabel_epsilon : float
        The epsilon of the exponential mechanism, in nats: the smaller, the more mistakes, about
        (2 / relabel_epsilon) times the logarithm of the number of labellings.

    Returns
    -------
    ndarray of int64, shape (n,)
        0 and 1.

    Raises
    ------
    DataError
        If points or labels do not fit the class.
    ParameterError
        If `hypotheses` is no class of hypotheses, or `relabel_epsilon` is out of its range.

    Privacy
    -------
    None by itself: the candidates depend on private points, so that the labels of all points may
    tell of one. Paid for together with a private algorithm that runs on the relabelled records
    (`Sampled`).

    Notes
    -----
    Cost: O(d n log n) for thresholds, stumps and intervals; else that of the errors of all
    labellings.
    Source: Nandi and Bassily 2020, Algorithm 2; Beimel, Nissim, Stemmer 2015.

    Examples
    --------
    >>> thresholds = sb.hypotheses.Thresholds()
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1]
    >>> labels = sb.relabel(X, y, thresholds, relabel_epsilon=100.0)
    >>> labels.tolist() in ([0, 0, 0, 1], [0, 1, 1, 1])
    True
    """
    check_class(hypotheses)
    # a replaced record moves mistakes both ways
    scale = least_quotient(2, check_positive("relabel_epsilon", relabel_epsilon))
    # Intervals have as many labellings as pairs of points: they are drawn by their two ends, which
    # needs no list of them.
    labellings = hypotheses.dichotomies(X)
    if isinstance(labellings, IntervalDichotomies):
        _, gained = labellings.prefix_mistakes(y)
        ends = noise_source().exponential_range(gained[:-1], gained[1:], scale)
        chosen = 0 if ends is None else labellings.index(*ends)
    else:
        chosen = noise_source().exponential_index(-labellings.errors(y), scale)
    return labellings.hypothesis(chosen).predict(X)


def check_class(hypotheses: Any) -> None:
    """Refuse what is no class of hypotheses, one that was named without being made, and one of
    another package, whose labellings of all points nothing shows to be exact.

    Raises
    ------
    ParameterError
        If it is one of these.
    """
    if isinstance(hypotheses, HypothesisClass):
        if is_exact(hypotheses):
            return
        raise ParameterError(
            Parameter("hypotheses"),
            f" is a {type(hypotheses).__name__} of another package, which would meet all private"
            " points at once; give a class of secretballot.hypotheses, such as a FiniteClass of"
            " its members.",
        )
    if isinstance(hypotheses, type):
        raise ParameterError(
            Parameter("hypotheses"),
            f" is the type {hypotheses.__name__}; give an instance of it, such as Thresholds().",
        )
    raise ParameterError(
        Parameter("hypotheses"),
        f" is a {type(hypotheses).__name__}; give a HypothesisClass, such as Thresholds().",
    )
