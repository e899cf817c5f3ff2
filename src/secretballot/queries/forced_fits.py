"""Fits that are forced to label a point in a given way: one by one, or logistic ones together."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from scipy.special import expit

from secretballot._rows import take_rows
from secretballot._typing import FloatArray, IntArray
from secretballot.queries.fitting import PoolLearner
from secretballot.queries.labelled import LabelledRows
from secretballot.queries.points import is_sparse

# Newton's method stops at steps below this, in units of a scaled column's coefficient, or after so
# many of them.
_STEP = 1e-4
_STEPS = 40


class ForcedFits(ABC):
    """Models of what is known, and of what is known plus one more label of a chosen weight.

    Attributes
    ----------
    name : str
        Of the learner, for messages.
    batch : int
        Fits that are worth doing together.
    """

    name: str
    batch: int

    @abstractmethod
    def fit(self, known: LabelledRows) -> Any:
        """Return a model of what is known, which holds labels of two classes."""

    @abstractmethod
    def force(
        self, known: LabelledRows, rows: IntArray, labels: IntArray, weights: FloatArray
    ) -> list[Any]:
        """Return one model for each row: of what is known, and that label of it at that weight.

        Parameters
        ----------
        known : LabelledRows
        rows, labels, weights : array of shape (n,)
        """

    @abstractmethod
    def predict(self, model: Any, rows: IntArray) -> IntArray:
        """Return the labels that a model gives to rows of the pool, shape (n,)."""


class LearnerFits(ForcedFits):
    """Forced fits of any learner that takes sample weights.

    Parameters
    ----------
    learner : PoolLearner
    """

    batch = 1  # each model that is found may decide the next points for free

    def __init__(self, learner: PoolLearner) -> None:
        self._learner = learner
        self.name = learner.name

    def fit(self, known: LabelledRows) -> Any:
        """Fit the learner."""
        return self._learner.fit(known.rows, known.labels, known.weights)

    def force(
        self, known: LabelledRows, rows: IntArray, labels: IntArray, weights: FloatArray
    ) -> list[Any]:
        """Fit the learner once for each of `rows`, shape (n,)."""
        return [
            self._learner.fit(
                np.append(known.rows, row),
                np.append(known.labels, label),
                np.append(known.weights, weight),
            )
            for row, label, weight in zip(rows, labels, weights, strict=True)
        ]

    def predict(self, model: Any, rows: IntArray) -> IntArray:
        """Ask the model for labels of `rows`, shape (n,)."""
        return self._learner.predict(model, rows)


class LogisticFits(ForcedFits):
    """Forced fits of a logistic regression with an intercept, many at once.

    Each starts at the fit without a forced label.

    The objective is scikit-learn's, half the squared coefficients plus `C` times the weighted
    losses, solved by Newton's method with step halving.

    Parameters
    ----------
    X : array or CSR matrix of shape (m, n_features)
        Scaled points.
    C : float
        Inverse strength of the penalty on coefficients.
    """

    name = "LogisticRegression"
    batch = 32

    def __init__(self, X: Any, C: float) -> None:
        self._X = X
        self._penalty = np.full(X.shape[1] + 1, 1 / C)
        self._penalty[0] = 1e-8  # the intercept is free; a trace keeps Newton's matrix regular

    def fit(self, known: LabelledRows) -> FloatArray:
        """Return intercept and coefficients, shape (n_features + 1,)."""
        Z = self._with_intercept(known.rows)
        start = np.zeros((1, Z.shape[1]))
        theta: FloatArray = self._minimising_parameters(
            Z, known, np.zeros_like(start), np.zeros(1), np.zeros(1), start
        )[0]
        return theta

    def force(
        self, known: LabelledRows, rows: IntArray, labels: IntArray, weights: FloatArray
    ) -> list[Any]:
        """Return intercept and coefficients of every fit, each of shape (n_features + 1,)."""
        start = np.repeat(self.fit(known)[None, :], len(rows), axis=0)
        Z, forced = self._with_intercept(known.rows), self._with_intercept(rows)
        return list(
            self._minimising_parameters(Z, known, forced, labels.astype(np.float64), weights, start)
        )

    def predict(self, model: Any, rows: IntArray) -> IntArray:
        """Return 1 where the linear form is positive, shape (n,)."""
        return np.asarray(self._with_intercept(rows) @ model > 0, dtype=np.int64)

    def _with_intercept(self, rows: IntArray) -> FloatArray:
        points = take_rows(self._X, rows)
        points = points.toarray() if is_sparse(points) else points
        return np.column_stack([np.ones(len(rows)), points])

    def _minimising_parameters(
        self,
        Z: FloatArray,
        known: LabelledRows,
        forced: FloatArray,
        labels: FloatArray,
        weights: FloatArray,
        theta: FloatArray,
    ) -> FloatArray:
        """Return where all objectives are least, starting at `theta`, (n_fits, n_features + 1)."""
        # All fits take Newton's step together, since one call on stacked matrices costs hardly more
        # than one on a single one; a fit whose objective would rise halves its own step.
        signs = np.where(known.labels == 1, 1.0, -1.0)
        sign = np.where(labels == 1, 1.0, -1.0)

        def objective(theta: FloatArray) -> FloatArray:
            losses = np.logaddexp(0.0, -signs * (theta @ Z.T)) @ known.weights
            loss = weights * np.logaddexp(0.0, -sign * np.einsum("bd,bd->b", forced, theta))
            return np.asarray(losses + loss + 0.5 * theta**2 @ self._penalty)

        value = objective(theta)
        for _ in range(_STEPS):
            step = self._newton_step(Z, known.weights, signs, forced, weights, sign, theta)
            scale = np.ones(len(theta))
            trial = theta - step
            worse = objective(trial) > value + 1e-12 * np.abs(value)
            for _ in range(_STEPS):
                if not worse.any():
                    break
                scale[worse] /= 2
                trial = theta - scale[:, None] * step
                worse = objective(trial) > value + 1e-12 * np.abs(value)
            theta, value = (
                np.where(worse[:, None], theta, trial),
                np.where(worse, value, objective(trial)),
            )
            if not (np.abs(scale[:, None] * step).max(axis=1) > _STEP).any():
                break
        return theta

    def _newton_step(
        self,
        Z: FloatArray,
        known_weights: FloatArray,
        signs: FloatArray,
        forced: FloatArray,
        weights: FloatArray,
        sign: FloatArray,
        theta: FloatArray,
    ) -> FloatArray:
        wrong = expit(-signs * (theta @ Z.T))  # (n_fits, n)
        own = expit(-sign * np.einsum("bd,bd->b", forced, theta))
        gradient = (
            theta * self._penalty
            - (wrong * known_weights * signs) @ Z
            - (weights * own * sign)[:, None] * forced
        )
        curved = wrong * (1 - wrong) * known_weights
        hessian = np.stack([(Z * row[:, None]).T @ Z for row in curved])
        hessian += (
            (weights * own * (1 - own))[:, None, None] * forced[:, :, None] * forced[:, None, :]
        )
        hessian += np.diag(self._penalty)
        return np.asarray(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0])
