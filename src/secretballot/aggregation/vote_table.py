"""Voting by a table of chances: labels of two classes that tell less than noisy counts do."""

import math
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_choice, check_count, shown
from secretballot.aggregation.base import WeakSignalWarning, budget_or_price, check_fields
from secretballot.aggregation.noisy_voting import NoisyVoting, is_drowned
from secretballot.core.mechanisms import TableLabels
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.privacy.accounting import (
    CHANCE_BITS,
    BinaryLabels,
    PrivacyBudget,
    TableChances,
    calibrate_vote_table,
    estimated_vote_table,
)
from secretballot.privacy.mechanisms import VoteTableMajority

_FIELDS = ("weights", "n_queries", "n_classes", "n_teachers", "calibration", "budget")


class VoteTableAggregator(NoisyVoting):
    """Answer every query of two classes with the minority's label by a chance that falls with the
    margin.

    The chances are those of a public table. A table found for the budget answers some per cent more
    queries than Gaussian noise that errs as often, and more where fewer are asked.

    Parameters
    ----------
    weights : sequence of int
        Chances of the minority's label, in units of 2^-53, margin by margin; see `BinaryLabels`.
    n_queries : int
        Most queries that one release answers.
    n_teachers : int
        Number K of teachers, which the table is for.
    n_classes : int
        Two.
    budget : PrivacyBudget, optional
        Price of a release; the door checks it.
    delta : float, optional
        Instead of `budget`: price the table at this delta.
    calibration : str
        How the table was found, for the record.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : one teacher moves one vote per query: the count of one class by 1.
    Price : the exact adaptive game over the table's neighbouring chances. Queries may be chosen
        adaptively.
    Source : docs/explanation/prices.md, section 13; the mechanism is Warner's (1965) randomised
        response with a chance for every number of votes.
    Rounding : chances are integers over 2^53, drawn exactly; upward in the accountant.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> table = sb.VoteTableAggregator.calibrate(budget, 20, n_teachers=100)
    >>> noise = sb.GaussianAggregator.calibrate(budget, 20, n_teachers=100)
    >>> table.right_probability(margin=60) > noise.right_probability(margin=60)
    True
    """

    name: ClassVar[str] = "vote-table"
    release = "labels"

    def __init__(
        self,
        weights: Sequence[int],
        n_queries: int,
        *,
        n_teachers: int,
        n_classes: int = 2,
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
        calibration: str = "given",
    ) -> None:
        # the event refuses what is no table, whatever a description from elsewhere holds
        table = TableChances(weights=weights, n_teachers=n_teachers)  # type: ignore[arg-type]
        self.weights, self.n_teachers = table.weights, table.n_teachers
        self.n_queries = check_count("n_queries", n_queries)
        self.n_classes = _two_classes(n_classes)
        self.calibration = check_choice("calibration", calibration, ("given", "tight"))
        self.budget = budget_or_price(budget, delta, self.events(n_teachers))

    @classmethod
    def calibrate(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        n_teachers: int,
        n_classes: int = 2,
    ) -> "VoteTableAggregator":
        """Return the aggregator whose table is as sharp as the budget allows.

        Parameters
        ----------
        budget : PrivacyBudget
            For all `n_queries` queries together, with delta above 0.
        n_queries, n_teachers, n_classes
            As for the class.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no table keeps the budget.
        """
        _two_classes(n_classes)
        weights = calibrate_vote_table(budget, n_queries, n_teachers).weights
        return cls(weights, n_queries, n_teachers=n_teachers, budget=budget, calibration="tight")

    @classmethod
    def estimated(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        n_teachers: int,
        n_classes: int = 2,
    ) -> "VoteTableAggregator":
        """Return an aggregator about as sharp as a calibrated one, found without its price.

        For forecasts alone: the door prices every table, and may refuse this one.

        Parameters
        ----------
        budget, n_queries, n_teachers, n_classes
            As for `calibrate`.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no table keeps the budget.
        """
        _two_classes(n_classes)
        table = estimated_vote_table(budget, n_queries, n_teachers)
        return cls(table.weights, n_queries, n_teachers=n_teachers, budget=budget)

    @property
    def sigma_of_counts(self) -> None:
        """None: no counts are released."""
        return None

    def _mechanism_for(self, n_teachers: int) -> VoteTableMajority:
        return VoteTableMajority(self.weights, n_teachers)

    def core_mechanism(self, n_teachers: int) -> TableLabels:
        """Return the mechanism of the core that draws the same labels."""
        return TableLabels(weights=self.weights)

    def events(self, n_teachers: int) -> tuple[BinaryLabels]:
        """Return what one release of `n_queries` queries is to the accountant.

        Raises
        ------
        ParameterError
            If the table is for another number of teachers.
        """
        self._check_teachers(n_teachers)
        # of the chances that are drawn with, whatever was set since
        return (
            BinaryLabels(
                chances=TableChances(weights=self.weights, n_teachers=self.n_teachers),
                queries=self.n_queries,
            ),
        )

    def _check_teachers(self, n_teachers: int) -> int:
        k = check_count("n_teachers", n_teachers)
        if k != self.n_teachers:
            raise ParameterError(
                Parameter("n_teachers"),
                f" is {k}; this table is for {self.n_teachers}. Calibrate it again.",
            )
        return k

    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object from which `aggregator_from_description`
        rebuilds it."""
        fields = {field: getattr(self, field) for field in _FIELDS if field != "budget"}
        fields["weights"] = list(self.weights)
        return {"name": self.name, **fields, "budget": self.budget.to_json()}

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(<{len(self.weights)} chances>, n_queries={self.n_queries},"
            f" n_teachers={self.n_teachers}, budget={self.budget!r})"
        )

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> "VoteTableAggregator":
        """Rebuild the aggregator that `describe` describes.

        Raises
        ------
        ParameterError
            If a field is missing, unknown or out of its range.
        """
        return cls(**check_fields(description, cls.name, _FIELDS))

    @property
    def like_sigma(self) -> float:
        """Scale of the Gaussian noise, in votes, that tells as much of an even vote; infinite where
        the table tells nothing of it."""
        even = self.n_teachers % 2 == 0
        # how far one vote moves the chance there: to the next margin, or to the mirror image
        above = self.weights[1] if even else 2**CHANCE_BITS - self.weights[0]
        moved = abs(0.5 - above / 2.0**CHANCE_BITS) * (1 if even else 2)
        return 1 / (math.sqrt(2 * math.pi) * moved) if moved else math.inf

    def right_chances(self, margins: IntArray) -> FloatArray:
        """Return the probabilities that queries of these margins keep their labels.

        `margins` are of votes that can be, of any shape; of an even vote it is one half.
        """
        places = np.minimum(np.abs(margins) // 2, len(self.weights) - 1)
        return np.asarray(1 - np.array(self.weights)[places] / 2**CHANCE_BITS, dtype=np.float64)

    def right_probability(self, margin: float) -> float:
        """Return the probability that a query of this margin keeps its label.

        Parameters
        ----------
        margin : float
            Most votes minus fewest, in votes; between two margins that votes can have, the chance
            is read off a line.
        """
        odd = self.n_teachers % 2
        chances = np.array(self.weights) / 2**CHANCE_BITS
        # an odd number of teachers has no even vote, where a line to the mirror image is at a half
        margins = np.append(np.zeros(odd), odd + 2.0 * np.arange(len(chances)))
        wrong = np.interp([margin], margins, np.append(np.full(odd, 0.5), chances))
        return 1 - float(wrong[0])

    def check_useful(self, n_teachers: int) -> None:
        """Warn if even a unanimous vote is right hardly more often than a guess: less than 60 %."""
        k = self._check_teachers(n_teachers)
        right = self.right_probability(k)
        if is_drowned(right, self.n_classes):
            warnings.warn(
                f"a table of chances for {k} teachers and {self.n_queries} queries: even a"
                f" unanimous vote is right with probability {right:.2f} only; use more teachers,"
                " fewer queries or a larger epsilon.",
                WeakSignalWarning,
                stacklevel=2,
            )


def _two_classes(n_classes: int) -> int:
    """Return 2, or refuse another number of classes."""
    if check_count("n_classes", n_classes, minimum=2) != 2:
        raise ParameterError(
            Parameter("n_classes"),
            f" is {shown(n_classes)}, and a table of chances is for two; use ",
            Argument("aggregator", "gaussian"),
            ".",
        )
    return 2
