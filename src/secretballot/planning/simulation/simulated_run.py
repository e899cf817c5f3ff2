"""One simulated run of a setting: ask, answer by the real mechanism, fit a student, score it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn

from secretballot._typing import IntArray
from secretballot.accounting.recipes import Terms, deviation_of_counts
from secretballot.foreign_code import isolated, one_thread
from secretballot.planning.plan.model import Setting
from secretballot.planning.simulation.forecast import answers, queries_at_random
from secretballot.planning.simulation.more_teachers import VoteSample
from secretballot.planning.simulation.seeded_noise import SeededNoise
from secretballot.queries import CheckedSelector, PublicPool, strategy_by_name
from secretballot.released import ReleasedLabels, labels_in
from secretballot.students import default_student, fit_student
from secretballot.teachers.rows import take_rows

ROUNDS = 20  # of a strategy, as with real votes


@dataclass(frozen=True)
class RunOutcome:
    """What came of one simulated run.

    Attributes
    ----------
    student : float
        Accuracy of the student on new points.
    answered : float
        Queries that got an answer.
    """

    student: float
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
            released = self._asked(public, setting, terms, noise, rng)
            student = default_student(released) if self.student is None else self.student
            points = take_rows(self.points, public)
            fitted = fit_student(student, points, released, random_state=seed % 2**32)
            student_accuracy = float(
                np.mean(np.asarray(fitted.predict(self.X_test)) == self.y_test)
            )
        return RunOutcome(student_accuracy, float(released.answered.sum()))

    def _asked(
        self,
        public: IntArray,
        setting: Setting,
        terms: Terms,
        noise: Any,
        rng: np.random.Generator,
    ) -> ReleasedLabels:
        """Answer random points, of which too few are asked again, under fresh noise; or what a
        strategy asks in rounds, every distinct point once, by a mechanism that answers everything.
        """

        def answered(queries: IntArray) -> IntArray:
            return answers(terms, self.sample.counts[public[queries]].astype(np.int64), noise)

        if setting.strategy == "passive":
            asked = queries_at_random(rng, len(public), setting.n_queries)
            given = answered(asked)
            return self._as_released(asked[: len(given)], given, terms)
        places = distinct_rows(take_rows(self.points, public))
        # rounds as in a real run: what a strategy asks next depends on what was answered so far
        classes = tuple(range(self.sample.counts.shape[1]))
        points, seed = take_rows(self.points, public[places]), int(rng.integers(2**31))
        pool = PublicPool(points, classes, setting.n_queries, seed)
        selector = CheckedSelector(strategy_by_name(setting.strategy), pool)
        asked = np.empty(0, dtype=np.int64)
        given = np.empty((0, terms.mechanism.answer_shape(terms.shape)[1]), dtype=np.int64)
        size = max(1, setting.n_queries // ROUNDS)
        while len(asked) < setting.n_queries:
            proposed = selector.propose(min(size, setting.n_queries - len(asked)))
            if not len(proposed):
                break
            given = np.concatenate([given, answered(places[proposed])])
            asked = np.concatenate([asked, proposed])
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
