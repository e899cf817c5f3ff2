"""One noisy table of votes, where every record votes for itself."""

from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import NEIGHBOURS, check_choice, check_count, check_finite, shown
from secretballot.aggregation.base import (
    Aggregator,
    Answers,
    budget_or_price,
    check_fields,
)
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.noise import NoiseSource, check_scale
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import Counts, Event, PrivacyBudget, calibrate_gaussian
from secretballot.privacy.mechanisms import GaussianNoisyTable

#: What `Answers.outcome` calls the noisy number of votes of uncovered records.
UNCOVERED_VOTES = "uncovered_votes"

_FIELDS = (
    "sigma",
    "n_queries",
    "n_classes",
    "votes_per_record",
    "neighbours",
    "calibration",
    "budget",
)


def moved_cells(votes_per_record: int, neighbours: str) -> int:
    """Return how many counts one record moves, by one each, at most.

    A record that comes or goes brings its votes or takes them away. One that is replaced does both.
    """
    return votes_per_record if neighbours == "add-remove" else 2 * votes_per_record


class RecordVotesAggregator(Aggregator):
    """Release how many records vote for each class at each public point, with discrete Gaussian
    noise.

    Every record votes at `votes_per_record` points, once at each, and how many records there are is
    private: rows of the table do not sum to a public number.

    Parameters
    ----------
    sigma : float
        Scale of the noise on each count, in votes.
    n_queries : int
        Most points of one release.
    votes_per_record : int
        At most `n_queries`; public.
    n_classes : int
        Number of classes, public.
    neighbours : {"add-remove", "replace-one"}
        Relation that the price is about.
    budget : PrivacyBudget, optional
        Price of a release; the door checks it.
    delta : float, optional
        Instead of `budget`: price the noise at this delta.
    calibration : str
        How sigma was found, for the record.
    expected_uncovered : float, optional
        Share of records that the public points do not cover where they are like these, public.
        Given, votes of uncovered records are counted apart, for nothing: such a record votes in
        cells of its own, and at no public point.

    Privacy
    -------
    Unit : one record, or one user of whom one record votes.
    Relation : `neighbours`.
    Sensitivity : under add-remove `votes_per_record` counts by 1 each, under replace-one at most
        twice as many; cells of uncovered records among them.
    Price : one release of that many unit shifts of discrete Gaussian noise, however many points and
        classes there are.
    Source : Zhu et al. 2022, arXiv:2207.13253.
    Rounding : upward, in the accountant.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> from secretballot.aggregation import RecordVotesAggregator
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> aggregator = RecordVotesAggregator.calibrate(budget, 1000, votes_per_record=5)
    >>> print(f"{aggregator.sigma:.1f} votes, {aggregator.events(0)[0].shifts} counts moved")
    9.4 votes, 5 counts moved
    """

    name: ClassVar[str] = "record-votes"
    release = "counts"

    def __init__(
        self,
        sigma: float,
        n_queries: int,
        *,
        votes_per_record: int,
        n_classes: int = 2,
        neighbours: str = "add-remove",
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
        calibration: str = "given",
        expected_uncovered: float | None = None,
    ) -> None:
        self.sigma = check_scale("sigma", sigma)
        self.n_queries = check_count("n_queries", n_queries)
        self.n_classes = check_count("n_classes", n_classes, minimum=2)
        self.votes_per_record = check_count("votes_per_record", votes_per_record)
        if not self.votes_per_record <= self.n_queries:
            raise ParameterError(
                Parameter("votes_per_record"),
                f" is {self.votes_per_record}, and {self.n_queries} public points take votes; let a"
                " record vote for no more points than there are.",
            )
        self.neighbours = check_choice("neighbours", neighbours, NEIGHBOURS)
        self.expected_uncovered = expected_uncovered
        if expected_uncovered is not None:
            share = check_finite("expected_uncovered", expected_uncovered)
            if not 0 <= share <= 1:
                raise ParameterError(
                    Parameter("expected_uncovered"),
                    f" is {shown(share)}; it is a share from 0 to 1.",
                )
            self.expected_uncovered = share
        self.calibration = check_choice("calibration", calibration, ("given", "tight"))
        # last: the price follows from all that was set above
        self.budget = budget_or_price(budget, delta, self.events(0))

    @classmethod
    def calibrate(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        votes_per_record: int,
        n_classes: int = 2,
        neighbours: str = "add-remove",
        expected_uncovered: float | None = None,
    ) -> "RecordVotesAggregator":
        """Return the aggregator with the least noise that keeps the budget; parameters as for the
        class.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no noise keeps the budget.
        """
        k = check_count("votes_per_record", votes_per_record)
        # one record moves so many cells however many queries there are
        cells = moved_cells(k, check_choice("neighbours", neighbours, NEIGHBOURS))
        return cls(
            calibrate_gaussian(budget, cells),
            n_queries,
            votes_per_record=k,
            n_classes=n_classes,
            neighbours=neighbours,
            budget=budget,
            calibration="tight",
            expected_uncovered=expected_uncovered,
        )

    @property
    def sigma_of_counts(self) -> float:
        """Scale of the noise on every count, in votes."""
        return self.sigma

    @property
    def rows_of_uncovered(self) -> int:
        """Rows of the table that hold the votes of uncovered records."""
        if self.expected_uncovered is None:
            return 0
        return -(-self.votes_per_record // self.n_classes)

    def core_mechanism(self, n_teachers: int) -> NoisyVotes:
        """Return the mechanism of the core that draws the same counts."""
        return NoisyVotes(scale=self.sigma, release="counts")

    @property
    def public(self) -> dict[str, Any]:
        """Public settings beside the mechanism, as a certificate has them."""
        counted = self.expected_uncovered is not None
        share = {"expected_uncovered": self.expected_uncovered} if counted else {}
        return {"method": "record-votes", **share}

    def events(self, n_teachers: int) -> tuple[Event, ...]:
        """Return what one release is to the accountant; the number of records has no say in it."""
        return (
            Counts(sigma=self.sigma, shifts=moved_cells(self.votes_per_record, self.neighbours)),
        )

    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object."""
        described = {field: getattr(self, field) for field in _FIELDS}
        if self.expected_uncovered is not None:
            described["expected_uncovered"] = self.expected_uncovered
        return {"name": self.name, **described, "budget": self.budget.to_json()}

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "RecordVotesAggregator":
        """Rebuild the aggregator that `describe` describes.

        Raises
        ------
        ParameterError
            If a field is missing, unknown or out of its range.
        """
        counted = ("expected_uncovered",) if "expected_uncovered" in description else ()
        return cls(**check_fields(description, cls.name, (*_FIELDS, *counted)))

    def check_useful(self, n_teachers: int) -> None:
        """Refuse a number of teachers: records vote for themselves, and how many is private.

        Raises
        ------
        ParameterError
            If it is not 0.
        """
        if n_teachers != 0:
            raise ParameterError(
                "RecordVotesAggregator prices votes of records, and these are votes of teachers;"
                " use GaussianAggregator or SparseVectorAggregator for them. Nothing was spent."
            )

    def answer(self, counts: IntArray, n_teachers: int, noise: NoiseSource) -> Answers:
        """Draw the noisy table.

        Parameters
        ----------
        counts : ndarray of int64, shape (l, n_classes)
            Votes of records for at most `n_queries` points; below them the votes of uncovered
            records, as `Votes` has them in its spare rows, where these are counted.
        n_teachers : int
            0.
        noise : NoiseSource

        Returns
        -------
        Answers
            The noisy counts, and the class with the largest at each point, the first of ties; the
            votes of uncovered records, of all their cells together, under `UNCOVERED_VOTES`.
        """
        self.check_useful(n_teachers)
        cells = moved_cells(self.votes_per_record, self.neighbours)
        whole = GaussianNoisyTable(self.sigma, cells).release(counts, noise)
        drawn, beyond = np.split(whole, [len(whole) - self.rows_of_uncovered])
        outcome = {}
        if self.expected_uncovered is not None:
            outcome[UNCOVERED_VOTES] = int(beyond.ravel()[: self.votes_per_record].sum())
        labels = drawn.argmax(axis=1).astype(np.int64)  # the first of ties, as verifiers read it
        return Answers(labels, drawn, len(drawn), outcome)

    def start(
        self, n_teachers: int, noise: NoiseSource, state: Mapping[str, int] | None = None
    ) -> NoReturn:
        """Refuse: the table is one answer, and has no part that may be asked by itself.

        Raises
        ------
        ParameterError
            Always.
        """
        raise ParameterError(
            "Votes of records are released as one table, not query by query; use"
            " RecordVotesClassifier, or teachers for a stream. Nothing was spent."
        )
