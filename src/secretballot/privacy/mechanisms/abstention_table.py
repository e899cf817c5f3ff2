"""Answer a stream of queries by a table of chances, paying for those that are withheld only."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from secretballot._typing import BoolArray, IntArray
from secretballot._validation import check_count
from secretballot.core.noise import NoiseSource
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import TableStream
from secretballot.privacy.accounting.abstention_table import BITS, MAX_DISTANCE, answer_weights
from secretballot.privacy.mechanisms.mechanism import Mechanism, check_values

_BLOCK = 1 << 12  # queries drawn first; what lies beyond the stop is thrown away unseen
_MAX_BLOCK = 1 << 18


@dataclass(frozen=True)
class AbstentionTable(Mechanism):
    """Tell, query after query, whether it is answered, with a chance that grows with its value.

    Stop at the T-th that is not.

    Parameters
    ----------
    order : float
        Order a of the two inequalities that neighbouring chances keep, above 1.
    charge : float
        What one query that is withheld may add to the logarithm of the moment of that order.
    false_answer : float
        Largest chance of an answer at value 0.
    max_below : int
        Number T of queries that are withheld at which the stream stops, that one included.
    largest : int
        Largest value that can occur, public; larger ones count as this one. At most 32,768.

    Attributes
    ----------
    weights : ndarray of int64, shape (n_values,)
        Chance of an answer at values 0, 1, ..., of 2^62; the last holds for all larger values.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : the caller's values move by at most 1 when one teacher moves one vote.
    Price : `event`, where each answer also releases a function whose value can change at value 0
        only, as the plurality at its `stability`. The length of the stream does not enter.
    Source : docs/explanation/prices.md, section 14.
    Rounding : chances are integers of 2^62; that neighbouring ones keep the inequalities is decided
        with sixty digits.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.AbstentionTable(18.0, 0.14, 1e-9, max_below=2, largest=400)
    >>> mechanism.above_probability(0) < 1.1e-9, mechanism.above_probability(400) > 0.999
    (True, True)
    >>> mechanism.release(np.array([400, 0]), sb.audit.ScriptedNoise([1000, 2**61]))
    array([ True, False])
    """

    order: float
    charge: float
    false_answer: float
    max_below: int
    largest: int
    weights: IntArray = field(init=False, repr=False, compare=False)
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "max_below", check_count("max_below", self.max_below))
        event = TableStream(
            order=self.order,
            charge=self.charge,
            false_answer=self.false_answer,
            abstentions=self.max_below,
        )
        for name in ("order", "charge", "false_answer"):
            object.__setattr__(self, name, getattr(event, name))
        largest = check_count("largest", self.largest, minimum=0)
        if not largest <= MAX_DISTANCE:
            raise ParameterError(
                Parameter("largest"), f" is {largest}; it must be at most {MAX_DISTANCE} votes."
            )
        object.__setattr__(self, "largest", largest)
        object.__setattr__(self, "weights", answer_weights(event, largest))

    def event(self, count: int = 1) -> TableStream:
        """Return what one stream is to the accountant, however many queries (`count`) it
        answers."""
        check_count("count", count)
        return TableStream(
            order=self.order,
            charge=self.charge,
            false_answer=self.false_answer,
            abstentions=self.max_below,
        )

    def above_probability(self, value: int) -> float:
        """Return the probability that a query at `value` is answered."""
        return float(self.weights[min(max(value, 0), len(self.weights) - 1)]) / 2.0**BITS

    def start(self, noise: NoiseSource) -> "AbstentionTableRun":
        """Begin a stream."""
        return AbstentionTableRun(self, noise)

    def resume(self, noise: NoiseSource, state: Mapping[str, int]) -> "AbstentionTableRun":
        """Go on with a stream from the `secret_state` that its last run left.

        Raises
        ------
        ParameterError
            If the state is none of this mechanism's.
        """
        below = state.get("n_below")
        if set(state) != {"n_below"} or not isinstance(below, int) or isinstance(below, bool):
            below = -1
        if not 0 <= below <= self.max_below:
            raise ParameterError(
                "The state is none of this table of abstentions; give the state that its own run"
                " left."
            )
        return AbstentionTableRun(self, noise, below)

    def release(self, values: IntArray, noise: NoiseSource) -> BoolArray:
        """Return whether each value is answered, shape (n_reached,).

        The stream up to where it stopped.

        Parameters
        ----------
        values : ndarray of int64, shape (n_queries,)
        noise : NoiseSource
        """
        return self.start(noise).test(values)


class AbstentionTableRun:
    """Count one stream's abstentions between queries; obtained from `AbstentionTable.start`.

    Attributes
    ----------
    n_below : int
        Queries withheld so far.
    stopped : bool
        Whether the T-th was; nothing is answered after it.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.AbstentionTable(18.0, 0.14, 1e-9, max_below=1, largest=400)
    >>> run = mechanism.start(sb.audit.ScriptedNoise([1000, 2**61, 0]))
    >>> run.test(np.array([400, 0, 400]))
    array([ True, False])
    >>> run.n_below, run.stopped
    (1, True)
    """

    def __init__(self, mechanism: AbstentionTable, noise: NoiseSource, n_below: int = 0) -> None:
        self._mechanism, self._noise, self.n_below = mechanism, noise, n_below

    def __repr__(self) -> str:
        return f"AbstentionTableRun({self._mechanism!r}, n_below={self.n_below})"

    @property
    def stopped(self) -> bool:
        return self.n_below >= self._mechanism.max_below

    @property
    def secret_state(self) -> dict[str, int]:
        """How many queries were withheld: public, but whoever goes on must not count anew."""
        return {"n_below": self.n_below}

    def test(self, values: IntArray) -> BoolArray:
        """Return whether each next value is answered, up to where the stream stops.

        Parameters
        ----------
        values : ndarray of int64, shape (n_queries,)
            Values of the next queries. A repeated query is drawn anew like any other.

        Returns
        -------
        ndarray of bool, shape (n_reached,)
            Shorter than `values` if the stream stopped inside them, empty if it had stopped before.
        """
        checked, weights = check_values(values), self._mechanism.weights
        outcomes: list[BoolArray] = []
        start, size = 0, _BLOCK
        while start < len(checked) and not self.stopped:
            block = np.clip(checked[start : start + size], 0, len(weights) - 1)
            answered = self._noise.uniform_integers(BITS, len(block)) < weights[block]
            left = self._mechanism.max_below - self.n_below
            withheld = np.flatnonzero(~answered)[:left]
            self.n_below += len(withheld)
            # the abstention that stops the stream is told, and nothing after it
            outcomes.append(answered[: int(withheld[-1]) + 1] if self.stopped else answered)
            start, size = start + size, min(2 * size, _MAX_BLOCK)
        return np.concatenate(outcomes) if outcomes else np.zeros(0, dtype=np.bool_)
