"""Release the label with the most votes after noise, and nothing else."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.core.mechanisms import plurality
from secretballot.core.noise import NoiseSource, check_scale
from secretballot.privacy.accounting import BinaryLabels, ClassLabels, GaussianChances, Pure
from secretballot.privacy.mechanisms.mechanism import Mechanism, check_counts


def majority(noisy_counts: IntArray, n_teachers: int) -> IntArray:
    """Return 1 where twice the (noisy) count of class 1 is at least the number of teachers, else 0.

    `noisy_counts` has shape (n_queries,), as has the result.

    Integers throughout: for an even number of teachers the tie goes to class 1.
    """
    return (2 * noisy_counts >= n_teachers).astype(np.int64)


@dataclass(frozen=True)
class GaussianNoisyMajority(Mechanism):
    """Release one of two labels.

    1 if the count of class 1, with discrete Gaussian noise, is at least half.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes; positive and finite.
    n_teachers : int
        Number K of teachers, public.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote: the count by 1.
    Price : the exact adaptive game on the label alone; the noisy count must not be shown.
    Source : Liu et al. 2021, Algorithm 1, for the mechanism; the game is proved in
        docs/explanation/prices.md.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.GaussianNoisyMajority(sigma=5.0, n_teachers=100)
    >>> noise = sb.audit.ScriptedNoise([3, -3])
    >>> mechanism.release(np.array([[10, 90], [51, 49]]), noise)
    array([1, 0])
    """

    sigma: float
    n_teachers: int
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_scale("sigma", self.sigma))
        object.__setattr__(self, "n_teachers", check_count("n_teachers", self.n_teachers))

    def event(self, count: int = 1) -> BinaryLabels:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return BinaryLabels(
            chances=GaussianChances(sigma=self.sigma, n_teachers=self.n_teachers), queries=count
        )

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Return labels 0 or 1, shape (n_queries,), from counts of shape (n_queries, 2)."""
        votes = check_counts(counts, 2)
        return majority(
            votes[:, 1] + noise.discrete_gaussian(self.sigma, len(votes)), self.n_teachers
        )


@dataclass(frozen=True)
class GaussianNoisyArgmax(Mechanism):
    """Release the class with the most votes after discrete Gaussian noise on every count (GNMax).

    Parameters
    ----------
    sigma : float
        Scale of the noise on each count, in votes; positive and finite.
    n_classes : int
        Number of classes, at least 2.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote between two classes: L1 2, L2 sqrt(2).
    Price : that of labels alone: a certified bound on the Renyi divergence of a label, about .65 of
        that of the noisy histogram, whose price holds as well.
    Source : Papernot et al. 2018, arXiv:1802.08908, section 4.1; docs/explanation/prices.md,
        section 15.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.GaussianNoisyArgmax(sigma=5.0, n_classes=3)
    >>> noise = sb.audit.ScriptedNoise([1, -2, 3])
    >>> mechanism.release(np.array([[10, 70, 20]]), noise)
    array([1])
    """

    sigma: float
    n_classes: int
    l1_sensitivity: ClassVar[int] = 2
    squared_l2_sensitivity: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_scale("sigma", self.sigma))
        object.__setattr__(self, "n_classes", check_count("n_classes", self.n_classes, minimum=2))

    def event(self, count: int = 1) -> ClassLabels:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return ClassLabels(sigma=self.sigma, queries=count)

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Return class indices, shape (n_queries,), from counts of shape (n_queries, n_classes)."""
        votes = check_counts(counts, self.n_classes)
        return plurality(
            votes + noise.discrete_gaussian(self.sigma, votes.size).reshape(votes.shape)
        )


@dataclass(frozen=True)
class LaplaceNoisyMajority(Mechanism):
    """Release one of two labels.

    1 if the count of class 1, with discrete Laplace noise, is at least half.

    Parameters
    ----------
    scale : float
        Scale of the noise, in votes; positive and finite.
    n_teachers : int
        Number of teachers, public.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote: the count by 1.
    Price : pure, 1 / scale per query: half of what the arg max over two noisy counts costs.
    Source : Ghosh, Roughgarden, Sundararajan 2009 for the discrete distribution.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.LaplaceNoisyMajority(scale=5.0, n_teachers=100)
    >>> noise = sb.audit.ScriptedNoise([3, -3])
    >>> mechanism.release(np.array([[10, 90], [51, 49]]), noise)
    array([1, 0])
    """

    scale: float
    n_teachers: int
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_scale("scale", self.scale))
        object.__setattr__(self, "n_teachers", check_count("n_teachers", self.n_teachers))

    def event(self, count: int = 1) -> Pure:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return Pure(epsilon=1 / self.scale, count=count)

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Return labels 0 or 1, shape (n_queries,), from counts of shape (n_queries, 2)."""
        votes = check_counts(counts, 2)
        return majority(
            votes[:, 1] + noise.discrete_laplace(self.scale, len(votes)), self.n_teachers
        )


@dataclass(frozen=True)
class LaplaceNoisyArgmax(Mechanism):
    """Release the class with the most votes after discrete Laplace noise on every count (LNMax).

    Parameters
    ----------
    scale : float
        Scale of the noise on each count, in votes; positive and finite.
    n_classes : int
        Number of classes, at least 2.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote between two classes: L1 2, L2 sqrt(2).
    Price : per query two pure parts of 1 / scale each, the exact price of the noisy counts that the
        class is read off: one count moves up and one down, and discrete Laplace noise that moves by
        one loses 1 / scale one way or the other. Alone a query is (2 / scale, 0)-DP, and no less:
        at some counts the arg max nearly attains it, whatever the rule for ties
        (docs/explanation/prices.md, section 11).
    Source : Papernot et al. 2017, arXiv:1610.05755, for the mechanism.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.LaplaceNoisyArgmax(scale=5.0, n_classes=3)
    >>> noise = sb.audit.ScriptedNoise([1, -2, 3])
    >>> mechanism.release(np.array([[10, 70, 20]]), noise)
    array([1])
    """

    scale: float
    n_classes: int
    l1_sensitivity: ClassVar[int] = 2
    squared_l2_sensitivity: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_scale("scale", self.scale))
        object.__setattr__(self, "n_classes", check_count("n_classes", self.n_classes, minimum=2))

    def event(self, count: int = 1) -> Pure:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return Pure(epsilon=1 / self.scale, count=2 * check_count("count", count))

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Return class indices, shape (n_queries,), from counts of shape (n_queries, n_classes)."""
        votes = check_counts(counts, self.n_classes)
        return plurality(
            votes + noise.discrete_laplace(self.scale, votes.size).reshape(votes.shape)
        )
