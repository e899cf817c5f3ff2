"""Release vote counts with discrete Gaussian or discrete Laplace noise."""

from dataclasses import dataclass
from typing import ClassVar

from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.core.noise import NoiseSource, check_scale
from secretballot.privacy.accounting import Counts, Pure
from secretballot.privacy.mechanisms.mechanism import Mechanism, check_counts


@dataclass(frozen=True)
class GaussianNoisyCount(Mechanism):
    """Release the number of votes for class 1 of two, with discrete Gaussian noise.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes; positive and finite.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote: the count by 1. The other class has the rest of a
        public total.
    Price : per query one unit shift of discrete Gaussian noise, mu = 1 / sigma in Gaussian DP up to
        the lattice.
    Source : Liu et al. 2021, Algorithm 1; Canonne, Kamath, Steinke 2020 for the discrete
        distribution.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If `sigma` is not positive and finite.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.GaussianNoisyCount(sigma=5.0)
    >>> mechanism.release(np.array([[10, 90], [51, 49]]), sb.audit.ScriptedNoise([3, -3]))
    array([93, 46])
    """

    sigma: float
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_scale("sigma", self.sigma))

    def event(self, count: int = 1) -> Counts:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return Counts(sigma=self.sigma, shifts=count)

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Return noisy counts of class 1, shape (n_queries,), from counts of shape (n_queries,
        2)."""
        votes = check_counts(counts, 2)
        return votes[:, 1] + noise.discrete_gaussian(self.sigma, len(votes))


@dataclass(frozen=True)
class GaussianNoisyHistogram(Mechanism):
    """Release the votes for every class, with discrete Gaussian noise on each.

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
    Price : per query two unit shifts, mu = sqrt(2) / sigma in Gaussian DP up to the lattice. The
        sigma that Liu et al. print for two classes would break the promise here.
    Source : Papernot et al. 2018, arXiv:1802.08908, section 4.1; Canonne, Kamath, Steinke 2020 for
        the discrete distribution.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If `sigma` is not positive and finite, or `n_classes` is below 2.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.GaussianNoisyHistogram(sigma=5.0, n_classes=3)
    >>> noise = sb.audit.ScriptedNoise([1, -2, 3])
    >>> mechanism.release(np.array([[10, 70, 20]]), noise)
    array([[11, 68, 23]])
    """

    sigma: float
    n_classes: int
    l1_sensitivity: ClassVar[int] = 2
    squared_l2_sensitivity: ClassVar[int] = 2

    def __post_init__(self) -> None:
        object.__setattr__(self, "sigma", check_scale("sigma", self.sigma))
        object.__setattr__(self, "n_classes", check_count("n_classes", self.n_classes, minimum=2))

    def event(self, count: int = 1) -> Counts:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return Counts(sigma=self.sigma, shifts=2 * check_count("count", count))

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Return noisy counts of shape (n_queries, n_classes) from counts of the same shape."""
        votes = check_counts(counts, self.n_classes)
        return votes + noise.discrete_gaussian(self.sigma, votes.size).reshape(votes.shape)


@dataclass(frozen=True)
class LaplaceNoisyCount(Mechanism):
    """Release the number of votes for class 1 of two, with discrete Laplace noise.

    Parameters
    ----------
    scale : float
        Scale of the noise, in votes; positive and finite.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote: the count by 1. The other class has the rest of a
        public total.
    Price : per query one pure part of 1 / scale. It is exact: the loss takes the two values
        +-1 / scale, as that of randomised response does.
    Source : Ghosh, Roughgarden, Sundararajan 2009 for the discrete distribution.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If `scale` is not positive and finite.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.LaplaceNoisyCount(scale=5.0)
    >>> mechanism.release(np.array([[10, 90], [51, 49]]), sb.audit.ScriptedNoise([3, -3]))
    array([93, 46])
    """

    scale: float
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", check_scale("scale", self.scale))

    def event(self, count: int = 1) -> Pure:
        """Return what `count` queries, adaptively chosen, are to the accountant."""
        return Pure(epsilon=1 / self.scale, count=count)

    def release(self, counts: IntArray, noise: NoiseSource) -> IntArray:
        """Return noisy counts of class 1, shape (n_queries,), from counts of shape (n_queries,
        2)."""
        votes = check_counts(counts, 2)
        return votes[:, 1] + noise.discrete_laplace(self.scale, len(votes))


@dataclass(frozen=True)
class LaplaceNoisyHistogram(Mechanism):
    """Release the votes for every class, with discrete Laplace noise on each.

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
    Price : per query two pure parts of 1 / scale each. It is exact: two independent noises move by
        one, and each loses +-1 / scale.
    Source : Papernot et al. 2017, arXiv:1610.05755; Ghosh, Roughgarden, Sundararajan 2009 for the
        discrete distribution.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If `scale` is not positive and finite, or `n_classes` is below 2.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.LaplaceNoisyHistogram(scale=5.0, n_classes=3)
    >>> noise = sb.audit.ScriptedNoise([1, -2, 3])
    >>> mechanism.release(np.array([[10, 70, 20]]), noise)
    array([[11, 68, 23]])
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
        """Return noisy counts of shape (n_queries, n_classes) from counts of the same shape."""
        votes = check_counts(counts, self.n_classes)
        return votes + noise.discrete_laplace(self.scale, votes.size).reshape(votes.shape)
