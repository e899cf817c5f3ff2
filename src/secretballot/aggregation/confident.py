"""Confident and interactive voting: a noisy threshold refuses what is not worth an answer.

Confident-GNMax and Interactive-GNMax of Papernot et al. 2018 (arXiv:1802.08908, Algorithms 1 and
2). A query that is refused costs the threshold alone; one that is answered costs its label too. The
number of queries that are asked and the number of those that are answered are bounded beforehand,
and both bounds are kept while answers are drawn: nothing is told past either.
"""

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from scipy.special import ndtr

from secretballot._validation import check_choice, check_count, check_probability
from secretballot.accounting import (
    Confident,
    Event,
    PrivacyBudget,
    WeakSignalWarning,
    calibrate_confident,
)
from secretballot.accounting.recipes import gaussian_right, is_drowned
from secretballot.accounting.stream_recipes import THRESHOLD_SHARE
from secretballot.aggregation.base import (
    Aggregator,
    budget_or_price,
    check_fields,
)
from secretballot.core.mechanisms import ConfidentLabels
from secretballot.core.noise import check_scale
from secretballot.exceptions import Parameter, ParameterError

_FIELDS = (
    *("threshold", "threshold_sigma", "sigma", "n_queries", "max_answers", "n_classes"),
    *("calibration", "budget"),
)


class ConfidentAggregator(Aggregator):
    """Answer queries on which many teachers agree, refuse the others, and count what was answered.

    Whether the highest count, with Gaussian noise, reaches a public threshold is told for every
    query. If it does, the plurality under fresh and smaller noise is told (Confident-GNMax).

    Parameters
    ----------
    threshold : int
        Public threshold T for the highest count, in votes; at most the number of teachers.
    threshold_sigma : float
        Scale of the noise on the highest count, in votes.
    sigma : float
        Scale of the noise on the counts that a label is read off, in votes.
    n_queries : int
        Most queries that one release asks.
    max_answers : int, optional
        Most queries that one release answers; it stops there. All by default.
    n_classes : int
        Number of classes, public.
    budget : PrivacyBudget, optional
        Price of a release; the door checks it.
    delta : float, optional
        Instead of `budget`: price the noise at this delta.
    calibration : str
        How the noise was found, for the record.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote per query: the highest count by at most 1, and for the
        label one count by 1 (two classes) or two counts by 1 each (more).
    Price : `n_queries` answers about a threshold, each priced as a label, and `max_answers` labels,
        as those of Gaussian voting are; composed adaptively. Which queries are answered, and how
        many, is itself told, so both numbers are bounds that are kept, never expectations.
    Source : Papernot et al. 2018, arXiv:1802.08908, Algorithm 1; proofs in
        docs/explanation/prices.md, section 12. The epsilons of that paper depend on the votes and
        cannot be published; this one does not.
    Rounding : upward, in the accountant.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> aggregator = sb.ConfidentAggregator(
    ...     threshold=200, threshold_sigma=150.0, sigma=40.0, n_queries=640, max_answers=286,
    ...     n_classes=10, delta=1e-5)
    >>> 2.0 < aggregator.budget.epsilon < 2.01
    True
    >>> aggregator.answer_probability(top=250) > 0.6
    True
    """

    name: ClassVar[str] = "confident"

    def __init__(
        self,
        threshold: int,
        threshold_sigma: float,
        sigma: float,
        n_queries: int,
        *,
        max_answers: int | None = None,
        n_classes: int = 2,
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
        calibration: str = "given",
    ) -> None:
        self.threshold = check_count("threshold", threshold)
        self.threshold_sigma = check_scale("threshold_sigma", threshold_sigma)
        self.sigma = check_scale("sigma", sigma)
        self.n_queries = check_count("n_queries", n_queries)
        self.max_answers = (
            self.n_queries if max_answers is None else check_count("max_answers", max_answers)
        )
        if not self.max_answers <= self.n_queries:
            raise ParameterError(
                Parameter("max_answers"),
                f" is {self.max_answers}, more than the {self.n_queries} queries that are asked;"
                " use at most as many.",
            )
        self.n_classes = check_count("n_classes", n_classes, minimum=2)
        self.release = "labels"
        self.calibration = check_choice("calibration", calibration, ("given", "tight"))
        # last: the price follows from all that was set above
        self.budget = budget_or_price(budget, delta, self._all_events())

    @classmethod
    def calibrate(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        threshold: int,
        max_answers: int | None = None,
        n_classes: int = 2,
        threshold_share: float = THRESHOLD_SHARE,
        **more: Any,
    ) -> Self:
        """Return the aggregator with the least noise that keeps the budget.

        Parameters
        ----------
        budget : PrivacyBudget
            For the whole release; delta above 0.
        n_queries, threshold, max_answers, n_classes
            As for the class.
        threshold_share : float
            Share of the squared signal-to-noise ratio that the threshold gets.
        **more
            Further parameters of the class, such as `confidence`.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no noise keeps the budget.
        """
        # checked here too: the noise is found before the class sees the numbers
        queries = check_count("n_queries", n_queries)
        answers = queries if max_answers is None else check_count("max_answers", max_answers)
        if not answers <= queries:
            raise ParameterError(
                Parameter("max_answers"),
                f" is {answers}, more than the {queries} queries that are asked; use at most as"
                " many.",
            )
        event = calibrate_confident(budget, queries, answers, n_classes, threshold_share)
        return cls(
            threshold,
            event.threshold_sigma,
            event.sigma,
            queries,
            max_answers=answers,
            n_classes=n_classes,
            budget=budget,
            calibration="tight",
            **more,
        )

    @property
    def sigma_of_counts(self) -> float | None:
        """None: no counts are released."""
        return None

    def core_mechanism(self, n_teachers: int) -> ConfidentLabels:
        """Return the mechanism of the core that draws the same answers."""
        return ConfidentLabels(
            threshold=self.threshold,
            threshold_sigma=self.threshold_sigma,
            sigma=self.sigma,
            max_answers=self.max_answers,
        )

    def _all_events(self) -> tuple[Event, ...]:
        event = Confident(
            threshold_sigma=self.threshold_sigma,
            sigma=self.sigma,
            queries=self.n_queries,
            answers=self.max_answers,
            n_classes=self.n_classes,
        )
        return (event,)

    def events(self, n_teachers: int) -> tuple[Event, ...]:
        """Return what one release is to the accountant.

        Raises
        ------
        ParameterError
            If the threshold is above the number of teachers.
        """
        known = {"threshold": self.threshold, "n_teachers": self._check_teachers(n_teachers)}
        return tuple(event.model_copy(update=known) for event in self._all_events())

    def _check_teachers(self, n_teachers: int) -> int:
        k = check_count("n_teachers", n_teachers)
        if not self.threshold <= k:
            raise ParameterError(
                Parameter("threshold"),
                f" is {self.threshold}, more votes than {k} teachers have, so that even a unanimous"
                f" vote would be refused more often than answered; use at most {k}.",
            )
        return k

    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object from which `aggregator_from_description`
        rebuilds it."""
        fields = {field: getattr(self, field) for field in self._field_names() if field != "budget"}
        return {"name": self.name, **fields, "budget": self.budget.to_json()}

    @classmethod
    def _field_names(cls) -> tuple[str, ...]:
        return _FIELDS

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Self:
        """Rebuild the aggregator that `describe` describes.

        Raises
        ------
        ParameterError
            If a field is missing, unknown or out of its range.
        """
        return cls(**check_fields(description, cls.name, cls._field_names()))

    def answer_probability(self, top: float) -> float:
        """Return the probability that a query is answered whose highest count is `top` votes.

        Notes
        -----
        The continuous distribution stands in for the discrete one: for planning, not for privacy.
        """
        return float(ndtr((top - self.threshold + 0.5) / self.threshold_sigma))

    def right_probability(self, margin: float) -> float:
        """Return the probability that an answered query of this margin keeps its label.

        Parameters
        ----------
        margin : float
            Most votes minus second most, in votes; the other classes are taken to tie for second.
        """
        return gaussian_right(margin / self.sigma, self.n_classes)

    def check_useful(self, n_teachers: int) -> None:
        """Refuse a threshold that no vote reaches, and warn if the noise drowns unanimous votes.

        Raises
        ------
        ParameterError
            If the threshold is above the number of teachers.
        """
        k = self._check_teachers(n_teachers)
        right = self.right_probability(k)
        if is_drowned(right, self.n_classes):
            message = (
                f"sigma {self.sigma:.4g} with {k} teachers: even a unanimous vote that is answered"
                f" is right with probability {right:.2f} only; use more teachers, fewer answers or"
                " a larger epsilon."
            )
            warnings.warn(message, WeakSignalWarning, stacklevel=2)


class InteractiveAggregator(ConfidentAggregator):
    """Answer only where many teachers contradict a student, and confirm or refuse elsewhere.

    The student learned from released values. Whether the highest count, each less the votes that
    the student predicts, reaches a public threshold under noise is told for every query. If it
    does, the student is corrected: the plurality under fresh noise is told. If not, the student's
    own prediction stands where it is confident, and the query is refused elsewhere; both are read
    off what was released, and cost nothing more (Interactive-GNMax).

    Parameters
    ----------
    threshold, threshold_sigma, sigma, n_queries, max_answers, n_classes
        As for `ConfidentAggregator`; the threshold is for the highest difference.
    confidence : float
        Probability from which on the student's prediction is taken for confirmed where it was not
        corrected, in (0, 1).
    budget, delta, calibration
        As for `ConfidentAggregator`.

    Privacy
    -------
    Unit, relation, sensitivity, price, rounding : as for `ConfidentAggregator`. A prediction is a
        function of released and public values, so the difference moves by at most 1 when one
        teacher moves one vote.
    Source : Papernot et al. 2018, arXiv:1802.08908, Algorithm 2; docs/explanation/prices.md,
        section 12.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(2.0, 1e-6)
    >>> aggregator = sb.InteractiveAggregator.calibrate(
    ...     budget, 100, threshold=60, max_answers=20, confidence=0.9)
    >>> guarantee = sb.votes_of_counts([[1, 1]]).shape.guarantee
    >>> votes = sb.Votes.of_teachers(
    ...     [[95, 5], [3, 97]], guarantee, predicted=[[10, 90], [0, 100]])
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=budget)
    >>> sb.release(votes, aggregator, ledger).labels.shape
    (2,)
    """

    name: ClassVar[str] = "interactive"

    def __init__(
        self,
        threshold: int,
        threshold_sigma: float,
        sigma: float,
        n_queries: int,
        *,
        max_answers: int | None = None,
        n_classes: int = 2,
        confidence: float = 0.9,
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
        calibration: str = "given",
    ) -> None:
        self.confidence = check_probability("confidence", confidence)
        super().__init__(
            threshold,
            threshold_sigma,
            sigma,
            n_queries,
            max_answers=max_answers,
            n_classes=n_classes,
            budget=budget,
            delta=delta,
            calibration=calibration,
        )

    @property
    def public(self) -> dict[str, Any]:
        """Public settings beside the mechanism, as a certificate has them."""
        return {**super().public, "confidence": self.confidence}

    @classmethod
    def _field_names(cls) -> tuple[str, ...]:
        return (*_FIELDS, "confidence")
