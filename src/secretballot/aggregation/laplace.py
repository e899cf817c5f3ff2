"""Laplace voting: LNMax of Papernot et al. 2017, a promise that needs no delta."""

import math
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from secretballot._validation import check_choice, check_count
from secretballot.aggregation.base import (
    WeakSignalWarning,
    budget_or_price,
    check_fields,
)
from secretballot.aggregation.noisy_voting import NoisyVoting, is_drowned
from secretballot.core.exponential import least_quotient
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.noise import check_scale
from secretballot.privacy.accounting import (
    Event,
    PrivacyBudget,
    Pure,
    calibrate_pure,
    delta_upper,
)
from secretballot.privacy.mechanisms import (
    LaplaceNoisyArgmax,
    LaplaceNoisyCount,
    LaplaceNoisyHistogram,
    LaplaceNoisyMajority,
)

_FIELDS = ("scale", "n_queries", "n_classes", "release", "calibration", "budget")
_NODES = 4000  # quantiles of the noise at which chances of more than two classes are averaged


def laplace_deviation(scale: float) -> float:
    """Return the standard deviation of discrete Laplace noise of this scale, in votes."""
    return math.sqrt(2 * math.exp(-1 / scale)) / -math.expm1(-1 / scale)


class LaplaceAggregator(NoisyVoting):
    """Answer every query with the plurality of counts under discrete Laplace noise (LNMax).

    The promise may have a delta of 0. Two classes: noise on the number of votes for class 1, label
    1 if it is at least half. More: noise on every count and the arg max, ties to the lowest class.

    Parameters
    ----------
    scale : float
        Scale of the noise, in votes: P(x) is proportional to exp(-abs(x) / scale).
    n_queries : int
        Most queries that one release answers.
    n_classes : int
        Number of classes, public.
    release : {"labels", "counts"}
        Labels alone, or the noisy counts with the labels read off them, at the same price.
    budget : PrivacyBudget, optional
        Price of a release; the door checks it.
    delta : float, optional
        Instead of `budget`: price the noise at this delta, which may be 0.
    calibration : str
        How the scale was found, for the record.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote per query: one count by 1 (two classes), two counts by
        1 each (more).
    Price : per query one pure part of 1 / scale (two classes) or two (more); their sum where delta
        is 0, and their optimal composition where it is not. Both are exact for counts; for labels
        of two classes too, where a query may be an even vote. Queries may be chosen adaptively.
    Source : Papernot et al. 2017, arXiv:1610.05755, for the mechanism; Kairouz, Oh, Viswanath 2015,
        Theorem 3.3, for the composition; proofs in docs/explanation/prices.md, section 11.
    Rounding : upward, in the accountant.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(1.0, 0.0)
    >>> aggregator = sb.LaplaceAggregator.calibrate(budget, 20)
    >>> round(aggregator.scale, 6), aggregator.budget.delta
    (20.0, 0.0)
    >>> aggregator.right_probability(margin=150) > 0.98
    True
    """

    name: ClassVar[str] = "laplace"

    def __init__(
        self,
        scale: float,
        n_queries: int,
        *,
        n_classes: int = 2,
        release: str = "labels",
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
        calibration: str = "given",
    ) -> None:
        self.scale = check_scale("scale", scale)
        self.n_queries = check_count("n_queries", n_queries)
        self.n_classes = check_count("n_classes", n_classes, minimum=2)
        self.release = check_choice("release", release, ("labels", "counts"))
        self.calibration = check_choice("calibration", calibration, ("given", "tight"))
        self.budget = budget_or_price(budget, delta, self._all_events())

    @classmethod
    def calibrate(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        n_classes: int = 2,
        release: str = "labels",
    ) -> "LaplaceAggregator":
        """Return the aggregator with the least noise that keeps the budget.

        Parameters
        ----------
        budget : PrivacyBudget
            For all `n_queries` queries together; delta may be 0.
        n_queries, n_classes, release
            As for the class.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        """
        queries = check_count("n_queries", n_queries)
        parts = queries * _parts_per_query(check_count("n_classes", n_classes, minimum=2))
        scale = 1 / calibrate_pure(budget, parts)

        def keeps(scale: float) -> bool:
            part = Pure(epsilon=least_quotient(1, scale), count=parts)
            return delta_upper([part], budget.epsilon) <= budget.delta

        # a quotient of floats: it is priced before it is used
        while not keeps(scale):
            scale *= 1 + 1e-12
        return cls(
            scale,
            queries,
            n_classes=n_classes,
            release=release,
            budget=budget,
            calibration="tight",
        )

    @property
    def sigma_of_counts(self) -> float | None:
        """Standard deviation of the noise on released counts, in votes; None for labels alone."""
        return laplace_deviation(self.scale) if self.release == "counts" else None

    def _mechanism_for(
        self, n_teachers: int
    ) -> LaplaceNoisyCount | LaplaceNoisyHistogram | LaplaceNoisyMajority | LaplaceNoisyArgmax:
        if self.n_classes == 2 and self.release == "labels":
            return LaplaceNoisyMajority(self.scale, n_teachers)
        if self.n_classes == 2:
            return LaplaceNoisyCount(self.scale)
        if self.release == "counts":
            return LaplaceNoisyHistogram(self.scale, self.n_classes)
        return LaplaceNoisyArgmax(self.scale, self.n_classes)

    def core_mechanism(self, n_teachers: int) -> NoisyVotes:
        """Return the mechanism of the core that draws the same answers."""
        terms = {"noise": "laplace", "scale": self.scale, "release": self.release}
        return NoisyVotes.model_validate(terms)

    def _all_events(self) -> tuple[Event, ...]:
        parts = _parts_per_query(self.n_classes) * self.n_queries
        return (Pure(epsilon=least_quotient(1, self.scale), count=parts),)

    def events(self, n_teachers: int) -> tuple[Event, ...]:
        """Return what one release is to the accountant; the number of teachers does not enter."""
        check_count("n_teachers", n_teachers)
        return self._all_events()

    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object from which `aggregator_from_description`
        rebuilds it."""
        fields = {field: getattr(self, field) for field in _FIELDS if field != "budget"}
        return {"name": self.name, **fields, "budget": self.budget.to_json()}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "LaplaceAggregator":
        """Rebuild the aggregator that `describe` describes.

        Raises
        ------
        ParameterError
            If a field is missing, unknown or out of its range.
        """
        return cls(**check_fields(description, cls.name, _FIELDS))

    def right_probability(self, margin: float) -> float:
        """Return the probability that a query of this margin keeps its label.

        Parameters
        ----------
        margin : float
            Most votes minus second most, in votes; the other classes are taken to tie for second.

        Notes
        -----
        The continuous distribution stands in for the discrete one: for planning, not for privacy.
        """
        if self.n_classes == 2:
            return float(_laplace_cdf(np.array([margin / (2 * self.scale)]))[0])
        # the noise of the leading class at equally likely quantiles
        level = (np.arange(_NODES) + 0.5) / _NODES
        noise = np.where(level < 0.5, np.log(2 * level), -np.log(2 * (1 - level)))
        others = _laplace_cdf(noise + margin / self.scale) ** (self.n_classes - 1)
        return float(others.mean())

    def check_useful(self, n_teachers: int) -> None:
        """Warn if the noise drowns even unanimous votes.

        Labels: a unanimous vote is right hardly more often than a guess (two classes: less than 60
        %). Counts: even the mean of all counts, asked about one and the same point, is known no
        better than to all the teachers.
        """
        k = check_count("n_teachers", n_teachers)
        if self.release == "counts":
            # a mean of so many independent draws
            error = laplace_deviation(self.scale) / math.sqrt(self.n_queries)
            useless = error >= k
            message = (
                f"scale {self.scale:.4g} with {k} teachers: even the mean of all {self.n_queries}"
                f" noisy counts is off by {error:.3g} votes; use more teachers, fewer queries or a"
                " larger epsilon."
            )
        else:
            right = self.right_probability(k)
            useless = is_drowned(right, self.n_classes)
            message = (
                f"scale {self.scale:.4g} with {k} teachers: even a unanimous vote is right with"
                f" probability {right:.2f} only; use more teachers, fewer queries or a larger"
                " epsilon."
            )
        if useless:
            warnings.warn(message, WeakSignalWarning, stacklevel=2)


def _parts_per_query(n_classes: int) -> int:
    """Return how many counts one teacher moves by a vote: the only one of two classes, or two."""
    return 1 if n_classes == 2 else 2


def _laplace_cdf(value: "np.ndarray[Any, np.dtype[np.float64]]") -> Any:
    """Return the chance that continuous Laplace noise of scale 1 is at most these values."""
    tail = np.exp(-np.abs(value)) / 2
    return np.where(value < 0, tail, 1 - tail)
