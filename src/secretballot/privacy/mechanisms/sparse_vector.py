"""Answer a stream of threshold queries, paying for those below only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import numpy as np

from secretballot._typing import BoolArray, IntArray
from secretballot._validation import check_count
from secretballot.core.noise import NoiseSource, check_scale
from secretballot.core.streams import false_answer
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import Pure, SparseStream
from secretballot.privacy.mechanisms.mechanism import Mechanism, check_values
from secretballot.privacy.mechanisms.noisy_threshold import check_threshold

_BLOCK = 1 << 12  # query noises drawn first; what lies beyond the stop is thrown away unseen
_MAX_BLOCK = 1 << 18  # doubled up to here, where drawing in threads pays
_FIRST_LOOK = 64  # queries examined first after new threshold noise; doubled while none is below


@dataclass(frozen=True)
class SparseVector(Mechanism):
    """Tell, query after query, whether value + noise > threshold + its noise.

    Stop at the T-th that is not.

    Parameters
    ----------
    threshold_scale : float
        Scale of the discrete Laplace noise on the threshold, in votes.
    query_scale : float
        Scale of the discrete Laplace noise on every value, in votes.
    threshold : int
        Public threshold w, in votes; at least 0. The comparison is strict.
    max_below : int
        Number T of "below" outcomes at which the stream stops, that one included.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : the caller's values move by at most 1 when one teacher moves one vote.
    Price : `event`, where each "above" also releases a function whose value can change at distance
        0 only, as the plurality at its `stability`; `pattern_event` for the outcomes alone. The
        length of the stream does not enter.
    Source : Liu et al. 2021, Algorithms 2 and 5; Bassily, Thakurta, Thakkar 2018, Algorithm 2,
        stopped at the T-th instead of the (T + 1)-st; proofs of both prices in
        docs/explanation/prices.md.
    Rounding : none here; the accountant rounds upward.

    Raises
    ------
    ParameterError
        If a parameter is out of its range.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.SparseVector(4.0, 8.0, threshold=20, max_below=1)
    >>> noise = sb.audit.ScriptedNoise([0, 1, -1, 0])  # first the noise on the threshold
    >>> mechanism.release(np.array([45, 3, 45]), noise)
    array([ True, False])
    """

    threshold_scale: float
    query_scale: float
    threshold: int
    max_below: int
    l1_sensitivity: ClassVar[int] = 1
    squared_l2_sensitivity: ClassVar[int] = 1

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "threshold_scale", check_scale("threshold_scale", self.threshold_scale)
        )
        object.__setattr__(self, "query_scale", check_scale("query_scale", self.query_scale))
        if not check_threshold(self.threshold) >= 0:
            raise ParameterError(
                Parameter("threshold"), f" is {self.threshold}; it must be at least 0 votes."
            )
        object.__setattr__(self, "threshold", check_threshold(self.threshold))
        object.__setattr__(self, "max_below", check_count("max_below", self.max_below))

    def event(self, count: int = 1) -> SparseStream:
        """Return what one stream is to the accountant, however many queries (`count`) it
        answers."""
        check_count("count", count)
        return SparseStream(
            threshold_scale=self.threshold_scale,
            query_scale=self.query_scale,
            threshold=self.threshold,
            abstentions=self.max_below,
        )

    def pattern_event(self) -> Pure:
        """Return what one stream of above and below is to the accountant when nothing else is
        released."""
        epoch = 1 / self.threshold_scale + 2 / self.query_scale
        return Pure(epsilon=epoch, count=self.max_below)

    def above_probability(self, value: int) -> float:
        """Return the probability that the first query, at `value`, is above."""
        return false_answer(self.event(), value)

    def start(self, noise: NoiseSource) -> "SparseVectorRun":
        """Begin a stream: draw the threshold noise and return the object that holds it."""
        return SparseVectorRun(self, noise)

    def resume(self, noise: NoiseSource, state: Mapping[str, int]) -> "SparseVectorRun":
        """Go on with a stream from the `secret_state` that its last run left.

        Raises
        ------
        ParameterError
            If the state is none of this mechanism's.
        """
        below, threshold = state.get("n_below"), state.get("noisy_threshold")
        if (
            not isinstance(below, int)
            or not isinstance(threshold, int)
            or not 0 <= below <= self.max_below
        ):
            raise ParameterError(
                "The state is none of this sparse vector; give the state that its own run left."
            )
        return SparseVectorRun(self, noise, below, threshold)

    def release(self, values: IntArray, noise: NoiseSource) -> BoolArray:
        """Return whether each value is above, shape (n_reached,).

        The stream up to where it stopped.

        Parameters
        ----------
        values : ndarray of int64, shape (n_queries,)
        noise : NoiseSource
        """
        return self.start(noise).test(values)


class SparseVectorRun:
    """Hold one stream's secret state, the noisy threshold, between queries.

    Obtained from `SparseVector.start`. It refuses pickling: a copied run would answer twice with
    one threshold, and the noisy threshold must not leave the process but for the vault
    (`secret_state`).

    Attributes
    ----------
    n_below : int
        "Below" outcomes so far.
    stopped : bool
        Whether the T-th has happened; nothing is answered after it.

    Examples
    --------
    >>> from secretballot.privacy import mechanisms
    >>> mechanism = mechanisms.SparseVector(4.0, 8.0, threshold=20, max_below=2)
    >>> run = mechanism.start(sb.audit.ScriptedNoise([0, 1, -1, 2]))
    >>> run.test(np.array([45, 3]))
    array([ True, False])
    >>> run.n_below, run.stopped
    (1, False)
    """

    def __init__(
        self,
        mechanism: SparseVector,
        noise: NoiseSource,
        n_below: int = 0,
        noisy_threshold: int | None = None,
    ) -> None:
        self._mechanism = mechanism
        self._noise = noise
        self._noisy_threshold = (
            self._draw_threshold() if noisy_threshold is None else noisy_threshold
        )
        self.n_below = n_below

    def __repr__(self) -> str:
        return f"SparseVectorRun({self._mechanism!r}, n_below={self.n_below})"

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "A sparse vector run holds a secret noisy threshold; it is neither pickled nor copied."
        )

    @property
    def stopped(self) -> bool:
        return self.n_below >= self._mechanism.max_below

    @property
    def secret_state(self) -> dict[str, int]:
        """What the next outcome depends on besides its value.

        For the vault, and for `SparseVector.resume`.
        """
        return {"n_below": self.n_below, "noisy_threshold": self._noisy_threshold}

    def test(self, values: IntArray) -> BoolArray:
        """Return whether each next value is above, up to where the stream stops.

        Parameters
        ----------
        values : ndarray of int64, shape (n_queries,)
            Values of the next queries. A repeated query gets fresh noise like any other.

        Returns
        -------
        ndarray of bool, shape (n_reached,)
            Shorter than `values` if the stream stopped inside them, empty if it had stopped before.
        """
        checked = check_values(values)
        outcomes = []
        start, size = 0, _BLOCK
        while start < len(checked) and not self.stopped:
            block = checked[start : start + size]
            noise = self._noise.discrete_laplace(self._mechanism.query_scale, len(block))
            outcomes.append(self._above_threshold(block + noise))
            start, size = start + size, min(2 * size, _MAX_BLOCK)
        return np.concatenate(outcomes) if outcomes else np.zeros(0, dtype=np.bool_)

    def _above_threshold(self, noisy: IntArray) -> BoolArray:
        """Compare noisy values with the noisy threshold, from one "below" to the next."""
        above = np.ones(len(noisy), dtype=np.bool_)
        done, look = 0, _FIRST_LOOK
        while done < len(noisy) and not self.stopped:
            below = np.flatnonzero(~(noisy[done : done + look] > self._noisy_threshold))[:1]
            above[done + below] = False
            self.n_below += len(below)
            if not len(below):
                done, look = done + look, 2 * look
                continue
            done, look = done + int(below[0]) + 1, _FIRST_LOOK
            if not self.stopped:
                self._noisy_threshold = self._draw_threshold()
        return above[:done]

    def _draw_threshold(self) -> int:
        drawn = self._noise.discrete_laplace(self._mechanism.threshold_scale, 1)
        return self._mechanism.threshold + int(drawn[0])
