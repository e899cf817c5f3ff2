"""What aggregators have in common whose queries are each answered by themselves, under fresh
noise."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.aggregation.base import Aggregator, AnswerRun, Answers, check_votes
from secretballot.core.noise import NoiseSource
from secretballot.exceptions import ParameterError
from secretballot.privacy.mechanisms import majority, plurality

# A unanimous vote that is right less often than this share of the way from guessing to certainty is
# drowned in noise.
_WORTHWHILE = 0.2


def is_drowned(right: float, n_classes: int) -> bool:
    """Return whether a unanimous vote that is right so often is right hardly more often than a
    guess; of two classes less than 60 %."""
    guess = 1 / n_classes
    return right < guess + _WORTHWHILE * (1 - guess)


class NoisyVoting(Aggregator):
    """Noise on counts of votes; labels are read off them, or told without them.

    Every query is answered by itself, so there is no state.
    """

    @abstractmethod
    def _mechanism_for(self, n_teachers: int) -> Any:
        """Return the mechanism that draws counts or labels from votes of so many teachers."""

    def _check_teachers(self, n_teachers: int) -> int:
        """Return a number of teachers that the noise was priced for."""
        return check_count("n_teachers", n_teachers)

    def answer(self, counts: IntArray, n_teachers: int, noise: NoiseSource) -> Answers:
        """Draw the answers to at most `n_queries` queries.

        Parameters
        ----------
        counts : ndarray of int64, shape (l, n_classes)
            Votes; every row sums to `n_teachers`.
        n_teachers : int
            Number of teachers.
        noise : NoiseSource

        Returns
        -------
        Answers
            With noisy counts if `release` is "counts"; every query is reached.

        Raises
        ------
        DataError
            If the counts do not fit; no count is named.
        ParameterError
            If the noise was priced for another number of teachers.
        """
        votes = check_votes(counts, self, self._check_teachers(n_teachers))
        drawn = self._mechanism_for(n_teachers).release(votes, noise)
        if self.release == "labels":
            return Answers(drawn, None, len(votes))
        labels = majority(drawn, n_teachers) if self.n_classes == 2 else plurality(drawn)
        return Answers(labels, drawn, len(votes))

    def start(
        self, n_teachers: int, noise: NoiseSource, state: Mapping[str, int] | None = None
    ) -> "NoisyVotingRun":
        """Begin or go on; every query is answered by itself, so there is no state.

        Raises
        ------
        ParameterError
            If a state is given.
        """
        if state is not None:
            raise ParameterError(
                f"A state is given, and {self.name.capitalize()} voting has none; give None."
            )
        return NoisyVotingRun(self, n_teachers, noise)


class NoisyVotingRun(AnswerRun):
    """Noisy voting a few queries at a time; obtained from `NoisyVoting.start`."""

    def __init__(self, aggregator: NoisyVoting, n_teachers: int, noise: NoiseSource) -> None:
        self._aggregator, self._n_teachers, self._noise = aggregator, n_teachers, noise

    def answer(self, counts: IntArray) -> Answers:
        """Draw the answers to the next queries; all of them are reached.

        `counts` has shape (n_queries, n_classes).
        """
        return self._aggregator.answer(counts, self._n_teachers, self._noise)

    @property
    def secret_state(self) -> None:
        """None: no answer depends on another one's noise."""
        return None

    @property
    def stopped(self) -> bool:
        """False: only the priced number of queries ends it."""
        return False
