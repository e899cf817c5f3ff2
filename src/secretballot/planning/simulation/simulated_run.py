"""One simulated run of a setting: ask, answer by the real mechanism, fit a student, score it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import sklearn

from secretballot._typing import IntArray
from secretballot.accounting.recipes import Terms, deviation_of_counts
from secretballot.core.mechanisms import State
from secretballot.foreign_code import isolated, one_thread
from secretballot.planning.plan.model import Setting
from secretballot.planning.simulation.forecast import queries_at_random, vote_accuracy
from secretballot.planning.simulation.more_teachers import VoteSample
from secretballot.planning.simulation.seeded_noise import SeededNoise
from secretballot.queries import CheckedSelector, PublicPool, strategy_by_name
from secretballot.released import ReleasedLabels, labels_in
from secretballot.students import default_student, fit_student
from secretballot.students.confirmed import StudentInRounds, predicted_votes
from secretballot.teachers.rows import take_rows

ROUNDS = 20  # of a strategy, as with real votes


@dataclass(frozen=True)
class RunOutcome:
    """What came of one simulated run.

    Attributes
    ----------
    student : float
        Accuracy of the student on new points.
    vote : float
        Share of points whose exact plurality is the true class.
    labels : float
        Share of the answers that are the true class; 0 where there are none.
    answered : float
        Queries that got an answer.
    """

    student: float
    vote: float
    labels: float
    answered: float


@dataclass(frozen=True, eq=False)
class SimulatedRun:
    """What a simulated run needs beside its setting: points with votes, and points to score on.

    Attributes
    ----------
    points : array, sparse matrix or frame of shape (n_points, n_features)
        The points of `sample`.
    sample : VoteSample
    X_test : array, sparse matrix or frame of shape (n_test, n_features)
    y_test : ndarray of int64, shape (n_test,)
        Class indices.
    n_public : int
        Public points that the run imitates; the student sees so many of `points`, or all of them.
    student : classifier or None
        None takes what is measured best for the release.
    """

    points: Any
    sample: VoteSample
    X_test: Any
    y_test: IntArray
    n_public: int
    student: Any = None

    def run(self, setting: Setting, terms: Terms, seed: int) -> RunOutcome:
        """Return what comes of one run.

        Parameters
        ----------
        setting : Setting
        terms : Terms
            With the noise of the run.
        seed : int
            Fixes the public points, the noise and the student's randomness.

        Raises
        ------
        DataError
            If the student cannot learn from what would be released.
        """
        rng = np.random.default_rng(seed)
        public = rng.permutation(len(self.sample.truth))[: self.n_public]
        noise = SeededNoise(rng)
        # a learner without a seed of its own draws from the global generators, which are seeded
        # here
        with one_thread(), isolated(seed % 2**32, sklearn.get_config()):
            in_rounds = self._student_in_rounds(public, setting, terms, seed)
            if setting.strategy == "passive":
                released = self._asked_at_random(public, setting, terms, noise, rng)
            else:
                released = self._asked_in_rounds(public, setting, terms, noise, rng, in_rounds)
            taught = released
            if in_rounds is not None:  # what was confirmed teaches too, as with real votes
                taught = replace(released, labels=in_rounds.labels)
            fitted = self._fitted_student(public, taught, seed)
            student_accuracy = float(
                np.mean(np.asarray(fitted.predict(self.X_test)) == self.y_test)
            )
        given = released.answered
        right = self.sample.truth[public[released.queries]] == released.labels
        return RunOutcome(
            student_accuracy,
            vote_accuracy(self.sample),
            float(right[given].mean()) if given.any() else 0.0,
            float(given.sum()),
        )

    def _fitted_student(self, public: IntArray, released: ReleasedLabels, seed: int) -> Any:
        """Return the student of these labels, which sees the whole public pool."""
        student = default_student(released) if self.student is None else self.student
        return fit_student(
            student, take_rows(self.points, public), released, random_state=seed % 2**32
        )

    def _student_in_rounds(
        self, public: IntArray, setting: Setting, terms: Terms, seed: int
    ) -> StudentInRounds | None:
        """Return the student that interactive voting contradicts; None without a confidence."""
        if terms.confidence is None:
            return None
        return StudentInRounds(
            lambda so_far: self._fitted_student(public, so_far, seed),
            take_rows(self.points, public),
            range(self.sample.counts.shape[1]),
            setting.n_teachers,
            terms.confidence,
        )

    def _asked_at_random(
        self,
        public: IntArray,
        setting: Setting,
        terms: Terms,
        noise: Any,
        rng: np.random.Generator,
    ) -> ReleasedLabels:
        """Answer random points; fewer points than queries are asked again, under fresh noise."""
        queries = queries_at_random(rng, len(public), setting.n_queries)
        votes = self.sample.counts[public[queries]].astype(np.int64)
        drawn, _ = terms.mechanism.draw(terms.shape, (votes, np.zeros_like(votes)), noise, State())
        return self._as_released(queries[: len(drawn)], drawn, terms)

    def _asked_in_rounds(
        self,
        public: IntArray,
        setting: Setting,
        terms: Terms,
        noise: Any,
        rng: np.random.Generator,
        student: StudentInRounds | None,
    ) -> ReleasedLabels:
        """Answer what a strategy asks, in rounds; every distinct point is asked once.

        A student learns from each round and predicts the points of the next, for interactive
        voting.
        """
        places = distinct_rows(take_rows(self.points, public))
        # rounds as in a real run: what a strategy asks next depends on what was answered so far
        strategy = strategy_by_name(setting.strategy)
        classes = tuple(range(self.sample.counts.shape[1]))
        pool = PublicPool(
            take_rows(self.points, public[places]),
            classes,
            setting.n_queries,
            int(rng.integers(2**31)),
        )
        selector = CheckedSelector(strategy, pool)
        shape, mechanism = terms.shape, terms.mechanism
        # a stream may stop before its first answer, so there may be nothing to join
        asked = np.empty(0, dtype=np.int64)
        given = np.empty((0, mechanism.answer_shape(shape)[1]), dtype=np.int64)
        state, stops_at = State(), mechanism.stops_at
        size, left = max(1, setting.n_queries // ROUNDS), setting.n_queries
        while left and (stops_at is None or state.used < stops_at):
            proposed = selector.propose(min(size, left))
            if not len(proposed):
                break
            rows = places[proposed]
            votes = self.sample.counts[public[rows]].astype(np.int64)
            against = np.zeros_like(votes)
            if student is not None:
                predictions = student.predictions(rows)
                against = predicted_votes(predictions, votes.shape, setting.n_teachers)
            drawn, state = mechanism.draw(shape, (votes, against), noise, state)
            reached = len(drawn)
            asked = np.concatenate([asked, proposed[:reached]])
            given = np.concatenate([given, drawn])
            if student is not None:
                student.tell(rows[:reached], drawn[:, 0], predictions[:reached])
            left -= reached
            selector.receive(self._as_released(asked, given, terms))
        return self._as_released(places[asked], given, terms)

    def _as_released(self, queries: IntArray, values: IntArray, terms: Terms) -> ReleasedLabels:
        labels, counts = labels_in(terms.mechanism, terms.shape, values)
        return ReleasedLabels(
            queries=queries,
            labels=labels,
            classes=tuple(range(self.sample.counts.shape[1])),
            n_teachers=self.sample.n_teachers,
            sigma=deviation_of_counts(terms.mechanism),
            noisy_counts=counts,
            certificate={"simulated": True},
        )


def distinct_rows(X: Any) -> IntArray:
    """Return the places of the distinct rows of a table, of equal ones the first, in rising order.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n, n_features)
    """
    if hasattr(X, "iloc"):
        return np.flatnonzero(~X.duplicated().to_numpy())
    rows = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    return np.sort(np.unique(rows, axis=0, return_index=True)[1])
