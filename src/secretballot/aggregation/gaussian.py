"""Gaussian voting: Algorithm 1 of Liu et al. 2021, and GNMax for more than two classes."""

import math
import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.special import ndtr

from secretballot._validation import check_choice, check_count
from secretballot.aggregation.base import (
    WeakSignalWarning,
    budget_or_price,
    check_fields,
)
from secretballot.aggregation.noisy_voting import NoisyVoting, is_drowned
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.noise import check_scale
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import (
    BinaryLabels,
    ClassLabels,
    Counts,
    Event,
    GaussianChances,
    PrivacyBudget,
    calibrate_argmax_gaussian,
    calibrate_gaussian,
    calibrate_label_gaussian,
    delta_upper,
)
from secretballot.privacy.mechanisms import (
    GaussianNoisyArgmax,
    GaussianNoisyCount,
    GaussianNoisyHistogram,
    GaussianNoisyMajority,
)

_FIELDS = ("sigma", "n_queries", "n_classes", "release", "n_teachers", "calibration", "budget")


def right_chance(margin: float, sigma: float, n_classes: int) -> float:
    """Return the probability that a vote of this margin, in votes, keeps its label under noise.

    The continuous distribution stands in for the discrete one, and the other classes tie.
    """
    if n_classes == 2:
        return float(ndtr(margin / (2 * sigma)))
    nodes, weights = np.polynomial.hermite_e.hermegauss(64)
    others = ndtr(nodes + margin / sigma) ** (n_classes - 1)
    return float(weights @ others / math.sqrt(2 * math.pi))


def paper_sigma(budget: PrivacyBudget, shifts: int) -> float:
    """Return the sigma that Liu et al. 2021 print in Algorithm 1, for `shifts` unit shifts.

    Parameters
    ----------
    budget : PrivacyBudget
        With delta above 0.
    shifts : int
        The paper's number of queries; twice as many for a histogram, whose sensitivity is sqrt(2).

    Raises
    ------
    ParameterError
        If delta is 0.

    Notes
    -----
    (sqrt(2 l (epsilon + log(1 / delta))) + sqrt(2 l log(1 / delta))) / (2 epsilon), in votes.
    """
    if not budget.delta > 0:
        raise ParameterError(
            Parameter("delta"), " is 0; Gaussian noise needs a delta above 0, such as 1e-6."
        )
    log = -math.log(budget.delta)
    return (
        math.sqrt(shifts / 2) * (math.sqrt(budget.epsilon + log) + math.sqrt(log)) / budget.epsilon
    )


class GaussianAggregator(NoisyVoting):
    """Answer every query with the plurality of counts under discrete Gaussian noise.

    Two classes: noise on the number of votes for class 1, label 1 if it is at least half. More:
    noise on every count and the arg max, ties to the lowest class.

    Parameters
    ----------
    sigma : float
        Scale of the noise, in votes.
    n_queries : int
        Most queries that one release answers.
    n_classes : int
        Number of classes, public.
    release : {"labels", "counts"}
        Labels alone, or the noisy counts with the labels read off them. Two classes: labels alone
        are cheaper.
    n_teachers : int, optional
        Price labels for this number of teachers only; by default for every number.
    budget : PrivacyBudget, optional
        Price of a release; the door checks it.
    delta : float, optional
        Instead of `budget`: price the noise at this delta.
    calibration : str
        How sigma was found, for the record.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote per query: one count by 1 (two classes), two counts by
        1 each (more).
    Price : two classes, labels alone: the exact adaptive game. More, labels alone: a certified
        Renyi divergence, or the counts where they cost less. Counts: the discrete Gaussian with one
        unit shift per query (two classes) or two (more). Queries may be chosen adaptively.
    Source : Liu et al. 2021, Algorithm 1; Papernot et al. 2018, arXiv:1802.08908, for more classes.
    Rounding : upward, in the accountant.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> aggregator = sb.GaussianAggregator.calibrate(budget, 100, release="counts")
    >>> print(f"{aggregator.sigma:.0f} votes, {aggregator.release}")
    42 votes, counts
    >>> aggregator.check_useful(n_teachers=500)
    """

    name: ClassVar[str] = "gaussian"

    def __init__(
        self,
        sigma: float,
        n_queries: int,
        *,
        n_classes: int = 2,
        release: str = "labels",
        n_teachers: int | None = None,
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
        calibration: str = "given",
    ) -> None:
        self.sigma = check_scale("sigma", sigma)
        self.n_queries = check_count("n_queries", n_queries)
        self.n_classes = check_count("n_classes", n_classes, minimum=2)
        self.release = check_choice("release", release, ("labels", "counts"))
        self.n_teachers = None if n_teachers is None else check_count("n_teachers", n_teachers)
        self.calibration = check_choice("calibration", calibration, ("given", "tight", "paper"))
        self.budget = budget_or_price(budget, delta, self._all_events())

    @classmethod
    def calibrate(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        n_classes: int = 2,
        n_teachers: int | None = None,
        release: str = "labels",
        calibration: str = "tight",
    ) -> "GaussianAggregator":
        """Return the aggregator with the least noise that keeps the budget.

        Parameters
        ----------
        budget : PrivacyBudget
            For all `n_queries` queries together.
        n_queries, n_classes, n_teachers, release
            As for the class.
        calibration : {"tight", "paper"}
            "tight": the exact price. "paper": the closed form of Liu et al. 2021, Algorithm 1,
            times sqrt(2) for more than two classes; more noise for the same promise.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no noise keeps the budget.
        """
        check_choice("calibration", calibration, ("tight", "paper"))
        check_choice("release", release, ("labels", "counts"))
        queries, classes = (
            check_count("n_queries", n_queries),
            check_count("n_classes", n_classes, minimum=2),
        )
        shifts = queries if classes == 2 else 2 * queries
        if calibration == "paper":
            sigma = paper_sigma(budget, shifts)
            # labels alone cost less than the counts they are read off, whose price is quick to
            # compute
            if (
                not delta_upper([Counts(sigma=sigma, shifts=shifts)], budget.epsilon)
                <= budget.delta
            ):
                raise ParameterError(
                    f"The printed sigma {sigma:.6g} does not keep epsilon {budget.epsilon}, delta"
                    f" {budget.delta} with the discrete noise that is drawn; use calibration"
                    " 'tight'."
                )
        elif classes == 2 and release == "labels":
            sigma = calibrate_label_gaussian(budget, queries, n_teachers)
        elif release == "labels":
            sigma = calibrate_argmax_gaussian(budget, queries)
        else:
            sigma = calibrate_gaussian(budget, shifts)
        return cls(
            sigma,
            queries,
            n_classes=classes,
            release=release,
            n_teachers=n_teachers,
            budget=budget,
            calibration=calibration,
        )

    @property
    def sigma_of_counts(self) -> float | None:
        """Scale of the noise on released counts, in votes; None where labels alone are released."""
        return self.sigma if self.release == "counts" else None

    def _mechanism_for(
        self, n_teachers: int
    ) -> GaussianNoisyCount | GaussianNoisyHistogram | GaussianNoisyMajority | GaussianNoisyArgmax:
        if self.n_classes == 2 and self.release == "labels":
            return GaussianNoisyMajority(self.sigma, n_teachers)
        if self.n_classes == 2:
            return GaussianNoisyCount(self.sigma)
        if self.release == "counts":
            return GaussianNoisyHistogram(self.sigma, self.n_classes)
        return GaussianNoisyArgmax(self.sigma, self.n_classes)

    def core_mechanism(self, n_teachers: int) -> NoisyVotes:
        """Return the mechanism of the core that draws the same answers."""
        return NoisyVotes.model_validate({"scale": self.sigma, "release": self.release})

    def _all_events(self) -> tuple[Event, ...]:
        if self.n_classes == 2 and self.release == "labels":
            return (
                BinaryLabels(
                    chances=GaussianChances(sigma=self.sigma, n_teachers=self.n_teachers),
                    queries=self.n_queries,
                ),
            )
        if self.release == "labels":
            return (ClassLabels(sigma=self.sigma, queries=self.n_queries),)
        shifts_per_query = 1 if self.n_classes == 2 else 2
        return (Counts(sigma=self.sigma, shifts=shifts_per_query * self.n_queries),)

    def events(self, n_teachers: int) -> tuple[Event, ...]:
        """Return what one release of `n_queries` queries is to the accountant.

        Raises
        ------
        ParameterError
            If the noise was priced for another number of teachers.
        """
        self._check_teachers(n_teachers)
        return self._all_events()

    def _check_teachers(self, n_teachers: int) -> int:
        k = check_count("n_teachers", n_teachers)
        if self.n_teachers is not None and k != self.n_teachers:
            raise ParameterError(
                Parameter("n_teachers"),
                f" is {k}; this aggregator is priced for {self.n_teachers}. Calibrate it again.",
            )
        return k

    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object from which `aggregator_from_description`
        rebuilds it."""
        fields = {field: getattr(self, field) for field in _FIELDS if field != "budget"}
        return {"name": self.name, **fields, "budget": self.budget.to_json()}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "GaussianAggregator":
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
        return right_chance(margin, self.sigma, self.n_classes)

    def check_useful(self, n_teachers: int) -> None:
        """Warn if the noise drowns even unanimous votes.

        Labels: a unanimous vote is right hardly more often than a guess (two classes: less than 60
        %). Counts: even the mean of all counts, asked about one and the same point, is known no
        better than to all the teachers.
        """
        k = self._check_teachers(n_teachers)
        warn_if_drowned(self, k, f"{k} teachers")


class _GaussianTerms(Protocol):
    """What says how far the noise of an aggregator reaches."""

    sigma: float
    n_queries: int
    n_classes: int
    release: str


def warn_if_drowned(terms: _GaussianTerms, votes: int, voters: str) -> None:
    """Warn if Gaussian noise drowns even unanimous votes.

    Parameters
    ----------
    terms : Aggregator
        With its `sigma`.
    votes : int
        All votes at one query.
    voters : str
        Who casts them, in words.
    """
    if terms.release == "counts":
        # a mean of so many independent draws
        error = terms.sigma / math.sqrt(terms.n_queries)
        useless = error >= votes
        message = (
            f"sigma {terms.sigma:.4g} with {voters}: even the mean of all {terms.n_queries}"
            f" noisy counts is off by {error:.3g} votes; use more teachers or a larger epsilon."
        )
    else:
        right = right_chance(votes, terms.sigma, terms.n_classes)
        useless = is_drowned(right, terms.n_classes)
        message = (
            f"sigma {terms.sigma:.4g} with {voters}: even a unanimous vote is right with"
            f" probability {right:.2f} only; use more teachers, fewer queries, a larger"
            " epsilon, or release='counts' with a student that averages."
        )
    if useless:
        warnings.warn(message, WeakSignalWarning, stacklevel=3)
