"""Recipes that answer all queries at once from sets of labels, or from numbers, that teachers vote
for."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from secretballot._typing import IntArray
from secretballot._validation import STATISTICS, check_choice, check_count, shown
from secretballot.aggregation.base import WeakSignalWarning, budget_or_price, widest_count
from secretballot.core.mechanisms import Mechanism, NoisyMeans, NoisyVotes, VoteQuantiles
from secretballot.core.noise import ExactNoise, check_scale
from secretballot.core.types import Guarantee, VoteShape
from secretballot.ensemble.vote_tables import (
    check_ballot,
    checked_labels,
    checked_positions,
    checked_range,
    from_set_numbers,
    moved_by_query,
)
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import (
    Event,
    PrivacyBudget,
    calibrate_argmax_gaussian,
    calibrate_bounded_range,
    calibrate_gaussian,
    calibrate_label_gaussian,
    calibrate_vector_sum,
)
from secretballot.privacy.mechanisms import GaussianNoisyTable, VoteQuantile, majority

#: Of votes for numbers: what is told of them.
_SURE = 0.95
# of the noise on counts that labels alone need, where they are many; good enough for a default
_LABEL_SHARE = 0.81


class TableVoting(ABC):
    """Base of both recipes: public numbers, fixed before the votes are looked at.

    Attributes
    ----------
    name : str
    n_queries, n_teachers : int
    budget : PrivacyBudget
        Price of one table; the door prices the event again before it draws.

    Examples
    --------
    >>> voting = sb.aggregation.NumberVoting.calibrate(
    ...     sb.PrivacyBudget(1.0, 1e-6), 50, n_teachers=100, target_range=(0.0, 1.0))
    >>> isinstance(voting, sb.aggregation.TableVoting), voting.event.squared_sensitivity
    (True, 1980050)
    """

    name: ClassVar[str]
    n_queries: int
    n_teachers: int
    budget: PrivacyBudget

    @property
    def event(self) -> Event:
        """What one table is to the accountant, under either relation."""
        guarantee = Guarantee(unit="record", relation="add-remove")
        return self.core_mechanism.event(self.shape_of(guarantee))

    @property
    @abstractmethod
    def core_mechanism(self) -> Mechanism:
        """The mechanism of the core that draws the same answers."""

    @abstractmethod
    def shape_of(self, guarantee: Guarantee) -> VoteShape:
        """Return the shape of the votes that this is calibrated for."""

    @property
    @abstractmethod
    def public(self) -> dict[str, Any]:
        """Public settings beside mechanism and shape, as a certificate has them."""

    @abstractmethod
    def asked(self, shape: VoteShape) -> int:
        """Return the number of queries of votes; refuse, with `ParameterError`, votes that this was
        not calibrated for."""

    @abstractmethod
    def check_useful(self) -> None:
        """Warn, from public parameters alone, if the answers would be (nearly) worthless."""

    @abstractmethod
    def draw(self, votes: IntArray, noise: ExactNoise) -> IntArray:
        """Draw the answers, shape (n_asked, n_columns); `votes` as the door opens them."""

    @abstractmethod
    def widest(self, n_asked: int) -> IntArray:
        """Return dummy answers whose text is as long as that of any."""


class LabelSetVoting(TableVoting):
    """Answer which labels the teachers name at each query, all labels at once, by noisy counts.

    Parameters
    ----------
    sigma : float
        Scale of the discrete Gaussian noise on each count, in votes.
    n_queries, n_teachers : int
        Public.
    labels : sequence of distinct str
        Their names, public.
    ballot : {"labels", "sets"}
        Whether labels are counted one by one, or each of the 2^L sets of L labels as a class;
        at most 8 labels have sets.
    most_named : int, optional
        Public cap on the labels that one teacher names at a query; with "labels" alone.
    release : {"labels", "counts"}
        Which labels more than half of the teachers name (of sets: the set that most name), or the
        noisy counts themselves.
    budget : PrivacyBudget, optional
        Price of a table; the door checks it.
    delta : float, optional
        Instead of `budget`: price the noise at this delta.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place: either way one teacher's set gives
        way to another at every query.
    Sensitivity : at each query at most m counts move by one vote each, with m the number of labels
        or twice `most_named`, whichever is less; of sets 2.
    Price : m * n_queries adaptive labels of the label-only game, where labels alone are released
        one by one; of sets alone, n_queries labels of more classes; of counts, as many unit shifts
        of discrete Gaussian noise.
    Source : Dziedzic et al. 2022, arXiv:2211.15410, for the three ballots; the prices are proved in
        docs/explanation/prices.md, section 16.
    Rounding : upward, in the accountant.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> from secretballot.aggregation import LabelSetVoting
    >>> budget, names = sb.PrivacyBudget(1.0, 1e-6), ["a", "b", "c", "d", "e", "f"]
    >>> free = LabelSetVoting.calibrate(budget, 40, n_teachers=250, labels=names)
    >>> capped = LabelSetVoting.calibrate(budget, 40, n_teachers=250, labels=names, most_named=1)
    >>> free.event.queries, capped.event.queries, capped.sigma < free.sigma
    (240, 80, True)
    """

    name: ClassVar[str] = "votes-of-labels"

    def __init__(
        self,
        sigma: float,
        n_queries: int,
        *,
        n_teachers: int,
        labels: Sequence[str],
        ballot: str = "labels",
        most_named: int | None = None,
        release: str = "labels",
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
    ) -> None:
        self.sigma = check_scale("sigma", sigma)
        self.n_queries = check_count("n_queries", n_queries)
        self.n_teachers = check_count("n_teachers", n_teachers)
        self.labels = checked_labels(labels)
        self.most_named = check_ballot(ballot, most_named, len(self.labels))
        self.ballot = ballot
        self.release = check_choice("release", release, ("labels", "counts"))
        # last: the price follows from all that was set above
        self.budget = budget_or_price(budget, delta, (self.event,))

    @classmethod
    def calibrate(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        n_teachers: int,
        labels: Sequence[str],
        ballot: str = "labels",
        most_named: int | None = None,
        release: str = "labels",
    ) -> "LabelSetVoting":
        """Return the recipe with the least noise that keeps the budget; parameters as for the
        class.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no noise keeps the budget.
        """
        names = checked_labels(labels)
        moved = moved_by_query(len(names), ballot, check_ballot(ballot, most_named, len(names)))
        changes = moved * check_count("n_queries", n_queries)
        check_choice("release", release, ("labels", "counts"))
        # as `event` prices it
        if release == "labels" and ballot == "labels":
            sigma = calibrate_label_gaussian(budget, changes, n_teachers)
        elif release == "labels":
            sigma = calibrate_argmax_gaussian(budget, n_queries)
        else:
            sigma = calibrate_gaussian(budget, changes)
        return cls(
            sigma,
            n_queries,
            n_teachers=n_teachers,
            labels=names,
            ballot=ballot,
            most_named=most_named,
            release=release,
            budget=budget,
        )

    @property
    def n_columns(self) -> int:
        """Counts of one query."""
        return 2 ** len(self.labels) if self.ballot == "sets" else len(self.labels)

    @property
    def core_mechanism(self) -> NoisyVotes:
        """The mechanism of the core that draws the same answers."""
        return NoisyVotes.model_validate({"scale": self.sigma, "release": self.release})

    def shape_of(self, guarantee: Guarantee) -> VoteShape:
        """Return the shape of the votes: a row for each label of a query, or one of sets."""
        sets, rows = self.ballot == "sets", len(self.labels)
        moved = 1 if sets else moved_by_query(rows, self.ballot, self.most_named)
        return VoteShape(
            guarantee=guarantee,
            n_queries=self.n_queries * (1 if sets else rows),
            n_classes=self.n_columns if sets else 2,
            n_teachers=self.n_teachers,
            moved=self.n_queries * moved,
        )

    @property
    def public(self) -> dict[str, Any]:
        """Public settings beside mechanism and shape, as a certificate has them."""
        return {
            "method": self.name,
            "labels": list(self.labels),
            "ballot": self.ballot,
            "most_named": self.most_named,
        }

    def asked(self, shape: VoteShape) -> int:
        """Return the number of queries of votes.

        Raises
        ------
        ParameterError
            If they are on other labels, by another ballot or of other teachers.
        """
        own = self.shape_of(shape.guarantee)
        rows, moved = own.n_queries // self.n_queries, own.moved // self.n_queries
        asked = shape.n_queries // rows
        if shape != own.model_copy(update={"n_queries": asked * rows, "moved": asked * moved}):
            raise ParameterError(
                "LabelSetVoting is calibrated for other votes; calibrate it for the labels, the"
                " ballot, the cap and the number of teachers of these votes. Nothing was spent."
            )
        return asked

    def check_useful(self) -> None:
        """Warn where a label that eight teachers in ten name is missed one time in three; of
        counts, where it would be by the mean of all counts.

        Warns
        -----
        WeakSignalWarning
        """
        # a student averages the noise of counts out, so more of them do not make it worse
        noise, fewer = self.sigma, "ask fewer queries, cap"
        if self.release == "counts":
            in_sets = 2 ** ((len(self.labels) - 1) / 2) if self.ballot == "sets" else 1.0
            noise, fewer = self.sigma * in_sets / math.sqrt(self.n_queries), "cap"
        # three tenths of the teachers away from one half; noise goes as far as .43 sigma one time
        # in three
        if not 0.3 * self.n_teachers >= 0.43 * noise:
            mean = " in the mean of all counts" if self.release == "counts" else ""
            warnings.warn(
                f"The noise of {noise:.0f} votes{mean} drowns the votes of {self.n_teachers}"
                f" teachers; {fewer} the labels that a teacher names, or take more teachers or"
                " epsilon.",
                WeakSignalWarning,
                stacklevel=4,
            )

    def draw(self, votes: IntArray, noise: ExactNoise) -> IntArray:
        """Draw the answers: counts, or 1 where a label is named by half of the teachers or more.

        `votes` has a row for each label of each query, or one with a column for each set.
        """
        if self.ballot == "labels":
            votes = votes[:, 1].reshape(-1, self.n_columns)
        changes = moved_by_query(len(self.labels), self.ballot, self.most_named)
        noisy = GaussianNoisyTable(self.sigma, changes).release(votes, noise)
        if self.release == "counts":
            return noisy
        if self.ballot == "sets":
            return from_set_numbers(noisy.argmax(axis=1), len(self.labels))
        return majority(noisy, self.n_teachers)

    def widest(self, n_asked: int) -> IntArray:
        """Return dummy answers whose text is as long as that of any."""
        if self.release == "labels":
            return np.ones((n_asked, len(self.labels)), dtype=np.int64)
        far = widest_count(self.sigma, self.n_teachers)
        return np.full((n_asked, self.n_columns), far, dtype=np.int64)


class NumberVoting(TableVoting):
    """Answer what number the teachers vote for at each query: a noisy mean, or a drawn quantile.

    Parameters
    ----------
    noise : float
        Of a mean: scale sigma of the discrete Gaussian noise on the sum of positions. Of a
        quantile: range of the privacy loss of one query, in nats.
    n_queries, n_teachers : int
        Public.
    target_range : tuple of two floats
        First and last number of the grid, public; votes beyond are cut.
    n_positions : int
        Numbers of the grid, from 2 to 4,096.
    statistic : {"mean", "quantile"}
    rank : int, optional
        Of a quantile: which vote, from 1 to `n_teachers`; by default the middle one, the median.
    budget : PrivacyBudget, optional
        Price of a table; the door checks it.
    delta : float, optional
        Instead of `budget`: price the noise at this delta.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place: either way one teacher's votes
        change.
    Sensitivity : of a mean, the sum of positions moves by at most the number of steps of the grid,
        at every query; of a quantile, the distances in ranks move by at most 1.
    Price : of a mean, one vector sum over all queries; of a quantile, a draw of bounded range for
        each query, which are composed adaptively.
    Source : Dong, Durfee, Rogers 2020, arXiv:1909.13830, for the range; the prices are proved in
        docs/explanation/prices.md, section 16.
    Rounding : upward, in the accountant.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or both or none of `budget` and `delta` are given.

    Examples
    --------
    >>> from secretballot.aggregation import NumberVoting
    >>> terms = {"n_teachers": 1000, "target_range": (0.0, 10.0)}
    >>> median = NumberVoting.calibrate(
    ...     sb.PrivacyBudget(1.0, 1e-6), 40, statistic="quantile", **terms)
    >>> median.rank, type(median.event).__name__
    (500, 'BoundedRange')
    """

    name: ClassVar[str] = "votes-of-numbers"

    def __init__(
        self,
        noise: float,
        n_queries: int,
        *,
        n_teachers: int,
        target_range: tuple[float, float],
        n_positions: int = 200,
        statistic: str = "mean",
        rank: int | None = None,
        budget: PrivacyBudget | None = None,
        delta: float | None = None,
    ) -> None:
        self.n_queries = check_count("n_queries", n_queries)
        self.n_teachers = check_count("n_teachers", n_teachers)
        self.target_range = checked_range(target_range)
        self.n_positions = checked_positions(n_positions)
        self.statistic = check_choice("statistic", statistic, STATISTICS)
        self.rank = _checked_rank(rank, statistic, self.n_teachers)
        if self.rank is None:
            self.noise = check_scale("sigma", noise)
        else:
            self.noise = VoteQuantile(noise, self.rank, self.n_positions).epsilon
        # last: the price follows from all that was set above
        self.budget = budget_or_price(budget, delta, (self.event,))

    @classmethod
    def calibrate(
        cls,
        budget: PrivacyBudget,
        n_queries: int,
        *,
        n_teachers: int,
        target_range: tuple[float, float],
        n_positions: int = 200,
        statistic: str = "mean",
        rank: int | None = None,
    ) -> "NumberVoting":
        """Return the recipe with the least noise that keeps the budget; parameters as for the
        class.

        Raises
        ------
        ParameterError
            If a parameter is out of its range, or no noise keeps the budget.
        """
        queries = check_count("n_queries", n_queries)
        # one teacher moves the sums of all queries, each by at most the whole grid
        steps = checked_positions(n_positions) - 1
        if check_choice("statistic", statistic, STATISTICS) == "mean":
            noise = calibrate_vector_sum(budget, queries * steps**2, queries)
        else:
            noise = calibrate_bounded_range(budget, queries)
        return cls(
            noise,
            queries,
            n_teachers=n_teachers,
            target_range=target_range,
            n_positions=n_positions,
            statistic=statistic,
            rank=rank,
            budget=budget,
        )

    @property
    def core_mechanism(self) -> NoisyMeans | VoteQuantiles:
        """The mechanism of the core that draws the same answers."""
        if self.rank is None:
            return NoisyMeans(sigma=self.noise)
        return VoteQuantiles(epsilon=self.noise, rank=self.rank)

    def shape_of(self, guarantee: Guarantee) -> VoteShape:
        """Return the shape of the votes, whose classes are positions."""
        return VoteShape(
            guarantee=guarantee,
            n_queries=self.n_queries,
            n_classes=self.n_positions,
            n_teachers=self.n_teachers,
            moved=self.n_queries,
        )

    @property
    def public(self) -> dict[str, Any]:
        """Public settings beside mechanism and shape, as a certificate has them."""
        return {"method": self.name, "target_range": list(self.target_range)}

    def asked(self, shape: VoteShape) -> int:
        """Return the number of queries of votes.

        Raises
        ------
        ParameterError
            If they are on another grid, or of another number of teachers.
        """
        facts = (shape.n_classes, shape.n_teachers, shape.moved)
        if facts != (self.n_positions, self.n_teachers, shape.n_queries):
            raise ParameterError(
                "NumberVoting is calibrated for other votes; calibrate it for the grid and the"
                " number of teachers of these votes. Nothing was spent."
            )
        return shape.n_queries

    def check_useful(self) -> None:
        """Warn where the noise on the mean of all means goes beyond a tenth of the range, or a
        unanimous vote is drawn less often than not.

        Warns
        -----
        WeakSignalWarning
        """
        if self.rank is None:
            # a student averages it out, so more queries do not make it worse
            noise = self.noise / math.sqrt(self.n_queries)
            drowned = not noise <= 0.1 * self.n_teachers * (self.n_positions - 1)
            advice = "take more teachers or epsilon"
        else:
            drowned = not self.unanimous_probability() >= 0.5
            advice = "ask fewer queries, or take more teachers or epsilon"
        if drowned:
            warnings.warn(
                f"The noise drowns the votes of {self.n_teachers} teachers; {advice}.",
                WeakSignalWarning,
                stacklevel=4,
            )

    def unanimous_probability(self) -> float:
        """Return the least probability with which a quantile that all teachers agree on is drawn.

        Raises
        ------
        ParameterError
            If a mean is released.
        """
        if self.rank is None:
            raise ParameterError(
                Parameter("statistic"), " is 'mean', which draws no position; this is of quantiles."
            )
        scale = VoteQuantile(self.noise, self.rank, self.n_positions).scale
        nearest = min(self.rank, self.n_teachers - self.rank + 1)
        return 1 / (1 + (self.n_positions - 1) * math.exp(-nearest / scale))

    def draw(self, votes: IntArray, noise: ExactNoise) -> IntArray:
        """Draw the answers, shape (n_asked, 1): positions, or noisy sums of positions.

        `votes` are counts by position, shape (n_asked, n_positions).
        """
        grid = np.arange(self.n_positions)
        if self.rank is not None:
            cast = np.stack([np.repeat(grid, row) for row in votes])
            drawn = VoteQuantile(self.noise, self.rank, self.n_positions).release(cast, noise)
        else:
            drawn = votes @ grid + noise.discrete_gaussian(self.noise, len(votes))
        return drawn[:, None]

    def widest(self, n_asked: int) -> IntArray:
        """Return dummy answers whose text is as long as that of any."""
        far = self.n_positions - 1
        if self.rank is None:
            far = widest_count(self.noise, self.n_teachers * far)
        return np.full((n_asked, 1), far, dtype=np.int64)


def _checked_rank(rank: object, statistic: str, n_teachers: int) -> int | None:
    """Return the rank of a quantile, by default the middle one; None for a mean."""
    if statistic == "mean":
        if rank is not None:
            raise ParameterError(
                Parameter("rank"), f" is {shown(rank)} of a mean; only a quantile has one."
            )
        return None
    middle = (n_teachers + 1) // 2
    found = middle if rank is None else check_count("rank", rank)
    if not found <= n_teachers:
        raise ParameterError(
            Parameter("rank"), f" is {found} of {n_teachers} teachers; it is at most their number."
        )
    return found


def most_sure_queries(budget: PrivacyBudget, most: int, n_teachers: int, **terms: Any) -> int:
    """Return the most queries, at most `most`, at which a vote of eight teachers in ten for a label
    is released right 19 times in 20, or a unanimous quantile is drawn as often; at least 1.

    `terms` are those of `LabelSetVoting.calibrate` or of `NumberVoting.calibrate`.
    """

    def sure(n: int) -> bool:
        if "labels" in terms:
            moved = moved_by_query(len(terms["labels"]), terms["ballot"], terms["most_named"])
            sigma = calibrate_gaussian(budget, n * moved)
            if (terms["ballot"], terms["release"]) == ("labels", "labels"):
                sigma *= _LABEL_SHARE
            return 0.3 * n_teachers >= 1.645 * sigma
        numbers = NumberVoting.calibrate(budget, n, n_teachers=n_teachers, **terms)
        return numbers.unanimous_probability() >= _SURE

    low, high = 1, 2
    while high <= most and sure(high):
        low, high = high, 2 * high
    high = min(high, most + 1)
    while high - low > max(1, low // 50):  # a few queries do not matter
        middle = (low + high) // 2
        low, high = (middle, high) if sure(middle) else (low, middle)
    return min(low, most)
