"""From a linear function to what it predicts: the kinds of targets that released moments fit."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import diags_array
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, log_softmax, softmax

from secretballot._typing import FloatArray
from secretballot.bases.integer_model import (
    IntegerLabels,
    IntegerLine,
    IntegerModel,
    LinearModel,
)

#: What the mean of p (1 - p) is assumed to be, over its largest value.
_CURVATURE = 0.48
#: Prior variance of a logit that the basis explains, and of its intercept.
_LOGIT_PRIOR = 4.0
#: Prior variance of a number between 0 and 1 that the basis explains, and of its mean.
LINE_PRIOR, LEVEL_PRIOR = 0.01, 1 / 12
#: Variance that a linear model is assumed to leave.
_LINE_VARIANCE = 0.02
#: Least answer of a moment to a prediction.
_LEAST_ANSWER = 0.01
_NEWTON_STEPS = 100
_LAST_STEPS = 3
_SETTLED = 1e-12  # gain of the objective, below which a search ends


@dataclass(frozen=True, eq=False)
class MomentEquations:
    """The moments of a model on points are to meet a target, but for penalties.

    Attributes
    ----------
    points : ndarray of shape (n_public, n_coordinates)
    counts : ndarray of shape (n_public, n_columns or 1)
        How much each point counts; 1 in the mean where all count alike.
    target : ndarray of shape (n_coordinates, n_columns)
    penalty : ndarray of shape (n_coordinates,)
        On half the squared distance from `start`.
    start : ndarray of shape (n_coordinates, n_columns)
    before : ndarray of shape (n_public, n_columns)
        What the linear functions of the points are added to.
    """

    points: FloatArray
    counts: FloatArray
    target: FloatArray
    penalty: FloatArray
    start: FloatArray
    before: FloatArray


@dataclass(frozen=True)
class Link:
    """A kind of model over a basis; made by `classes_link`, `labels_link` or `number_link`.

    Attributes
    ----------
    model_of : type of LinearModel
    n_columns : int
        Columns of weights.
    prior, level_prior : float
        Variance that the basis explains of the linear function, and variance of its level, before
        anything is released.
    slope : float
        Assumed mean derivative of the prediction, over the linear function.
    variance : float
        Assumed variance of a target around its prediction.
    weights_of : callable
        Returns the weights that solve equations, of the shape of their start.
    """

    model_of: type[LinearModel]
    n_columns: int
    prior: float
    level_prior: float
    slope: float
    variance: float
    weights_of: Callable[[MomentEquations], FloatArray]

    @property
    def competes(self) -> bool:
        """Whether only differences between columns mean something."""
        return self.model_of is IntegerModel and self.n_columns > 1

    def levels(self, frequencies: FloatArray) -> FloatArray:
        """Return the logits of the frequencies of classes or labels, shape (n_columns,)."""
        logs: FloatArray = np.log(frequencies)
        if self.model_of is IntegerLabels:
            logs -= np.log1p(-frequencies)
        elif self.competes:
            logs -= logs.mean()
        else:
            logs = logs[1:] - logs[0]
        return logs

    def slopes(self, predicted: FloatArray) -> FloatArray:
        """Return the derivative of each prediction, over the linear function, in its shape."""
        if self.model_of is IntegerLine:
            return np.full_like(predicted, self.slope)
        return predicted * (1 - predicted)

    def answers(
        self, predicted: FloatArray, lengths: FloatArray, bound: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return by how much moments of vectors that are shortened answer to a prediction, of the
        shape (n_public, n_columns or 1), and what they are at a point where the records are as
        predicted, beyond the sum of what they miss: (n_public, n_columns).

        What is unlikely is missed by more, and shortened by more. Of two classes the answer is
        exact; of more classes it is that of small changes, and of labels it takes the others as
        they are predicted.

        Parameters
        ----------
        predicted : ndarray of shape (n_public, n_columns)
        lengths : ndarray of shape (n_public,)
            Of the coordinates.
        bound : float
            To which their products with residuals are shortened.
        """
        if self.model_of is IntegerLine:
            return np.ones((len(predicted), 1)), predicted

        def kept(squares: FloatArray) -> FloatArray:
            """Return what is left of vectors whose residuals have these squared lengths."""
            longest = np.maximum(lengths[:, None] * np.sqrt(squares), np.finfo(float).tiny)
            return np.minimum(1.0, bound / longest)

        spread = predicted * (1 - predicted)
        if not self.competes:
            others = spread.sum(axis=1, keepdims=True) - spread
            absent, present = kept(predicted**2 + others), kept((1 - predicted) ** 2 + others)
            return present * (1 - predicted) + absent * predicted, absent * predicted
        own = kept(np.maximum(1 - 2 * predicted + np.sum(predicted**2, axis=1, keepdims=True), 0))
        mean = np.sum(predicted * own, axis=1, keepdims=True)
        changed = np.sum(predicted * (own * (1 - 2 * predicted) + predicted * mean), axis=1)
        whole = np.maximum(spread.sum(axis=1), np.finfo(float).tiny)
        counts = np.clip(changed / whole, _LEAST_ANSWER, 1)[:, None]
        return counts, predicted * (counts - own + mean)

    def variances(self, predicted: FloatArray) -> FloatArray:
        """Return the variance of a target around each prediction, in its shape."""
        if self.model_of is IntegerLine:
            return np.full_like(predicted, self.variance)
        return predicted * (1 - predicted)


def classes_link(n_classes: int) -> Link:
    """Return the link to one of several classes: softmax, or one logistic function for two."""
    # of a share p slope and variance are p (1 - p)
    spread = _CURVATURE * (1 / n_classes) * (1 - 1 / n_classes)
    terms = _LOGIT_PRIOR, _LOGIT_PRIOR, spread, spread
    if n_classes == 2:
        return Link(IntegerModel, 1, *terms, _logistic_weights)
    return Link(IntegerModel, n_classes, *terms, _softmax_weights)


def labels_link(n_labels: int) -> Link:
    """Return the link to several labels, each there or not: a logistic function for each."""
    terms = _LOGIT_PRIOR, _LOGIT_PRIOR, _CURVATURE / 4, _CURVATURE / 4
    return Link(IntegerLabels, n_labels, *terms, _logistic_weights)


def number_link() -> Link:
    """Return the link to a number between 0 and 1: a linear function around one half."""
    return Link(IntegerLine, 1, LINE_PRIOR, LEVEL_PRIOR, 1.0, _LINE_VARIANCE, _line_weights)


def _line_weights(asked: MomentEquations) -> FloatArray:
    """Return weights of shape (n_coordinates, 1), by penalised least squares."""
    points, penalty = asked.points, asked.penalty
    weighted = points * asked.counts
    second = weighted.T @ points / len(points)  # of the public points alone
    meant = asked.target - weighted.sum(axis=0)[:, None] / (2 * len(points))
    found: FloatArray = np.linalg.solve(
        second + np.diag(penalty), meant + penalty[:, None] * asked.start
    )
    return found


def _logistic_weights(asked: MomentEquations) -> FloatArray:
    """Return weights of shape (n_coordinates, n_columns), where each column is by itself."""
    columns = range(asked.target.shape[1])
    return np.column_stack([_binary_weights(asked, k) for k in columns])


def _binary_weights(asked: MomentEquations, k: int) -> FloatArray:
    """Return the weights of one column, by Newton's method with backtracking."""
    points, penalty, before = asked.points, asked.penalty, asked.before
    counts, w0, aim, before = (
        np.ascontiguousarray(part[:, k])
        for part in (np.broadcast_to(asked.counts, before.shape), asked.start, asked.target, before)
    )

    def objective(w: FloatArray, logits: FloatArray) -> float:
        spread = float(penalty @ (w - w0) ** 2) / 2
        return float((counts * np.logaddexp(0, logits)).mean() - w @ aim) + spread

    w, logits = w0.copy(), before + points @ w0
    value = objective(w, logits)
    for _ in range(_NEWTON_STEPS):
        p = expit(logits)
        gradient = points.T @ (counts * p) / len(points) - aim + penalty * (w - w0)
        hessian = (points * (counts * p * (1 - p))[:, None]).T @ points / len(points)
        step = np.linalg.solve(hessian + np.diag(penalty), gradient)
        decrease, length, last = 1e-4 * float(gradient @ step), 1.0, value
        # half as far, until the objective falls by enough of what its slope promises
        while True:
            moved = w - length * step
            logits = before + points @ moved
            value = objective(moved, logits)
            if value <= last - length * decrease or not length > 1e-9:
                break
            length /= 2
        w = moved
        if not last - value >= _SETTLED:
            break
    return w


def _softmax_weights(asked: MomentEquations) -> FloatArray:
    """Return weights of shape (n_coordinates, n_classes), by L-BFGS."""
    points, counts, penalty, start = asked.points, asked.counts, asked.penalty, asked.start
    # in units of each weight's own curvature, about, in which a search is several times as short
    curved_by = (points**2).mean(axis=0) / start.shape[1] + penalty
    units = np.repeat(1 / np.sqrt(curved_by), start.shape[1])

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        w = flat.reshape(start.shape)
        logits = asked.before + points @ w
        logs = log_softmax(logits, axis=1)
        # log sum exp of a row is its first logit less that logit's log share
        normaliser = (counts[:, 0] * (logits[:, 0] - logs[:, 0])).mean()
        moved = w - start
        value = normaliser - np.sum(w * asked.target) + np.sum(penalty[:, None] * moved**2) / 2
        shares = counts * np.exp(logs)
        gradient = points.T @ shares / len(points) - asked.target + penalty[:, None] * moved
        return float(value), gradient.ravel()

    def in_units(flat: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective(flat * units)
        return value, gradient * units

    found = minimize(
        in_units,
        start.ravel() / units,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-10, "gtol": 1e-7},
    )
    weights: FloatArray = found.x * units

    def curved(flat: FloatArray) -> FloatArray:
        shares = softmax(asked.before + points @ weights.reshape(start.shape), axis=1)
        moved = flat.reshape(start.shape)
        change = points @ moved
        change = shares * (change - (shares * change).sum(axis=1, keepdims=True))
        pulled = points.T @ (counts * change) / len(points)
        found: FloatArray = (pulled + penalty[:, None] * moved).ravel()
        return found

    # Newton's steps to the last digits, which would otherwise move with the processor
    hessian = LinearOperator((start.size, start.size), matvec=curved, dtype=np.float64)
    inverse = diags_array(units**2)
    for _ in range(_LAST_STEPS):
        weights = weights - cg(hessian, objective(weights)[1], rtol=1e-10, M=inverse)[0]
    moved = weights.reshape(start.shape) - start
    # what moves all classes alike changes no prediction
    level: FloatArray = start + moved - moved.mean(axis=1, keepdims=True)
    return level
