"""From a linear function to what it predicts: the kinds of targets that released moments fit."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.sparse import diags_array
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, log_softmax, softmax

from secretballot._typing import FloatArray
from secretballot.bases.integer_model import IntegerLabels, IntegerLine, IntegerModel, LinearModel

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
_STEP_PRECISION = 1e-10
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


def _minimum(
    start: FloatArray,
    objective: Callable[[FloatArray], tuple[float, FloatArray]],
    step_from: Callable[[FloatArray, FloatArray], FloatArray],
) -> FloatArray:
    """Return where a convex function is least, by Newton's method with backtracking; to the last
    digits, which would otherwise move with the processor.

    Parameters
    ----------
    start : ndarray of shape (n,)
    objective : callable
        Returns value and gradient at weights.
    step_from : callable
        Returns the gradient times the inverse of the second derivatives, at weights.
    """
    w, (value, gradient) = start, objective(start)
    for _ in range(_NEWTON_STEPS):
        step = step_from(w, gradient)
        decrease, length, last = 1e-4 * float(gradient @ step), 1.0, value
        # half as far, until the objective falls by enough of what its slope promises
        while True:
            moved = w - length * step
            value, gradient = objective(moved)
            if value <= last - length * decrease or not length > 1e-9:
                break
            length /= 2
        w = moved
        if not last - value >= _SETTLED:
            break
    return w


def _binary_weights(asked: MomentEquations, k: int) -> FloatArray:
    """Return the weights of one column."""
    points, penalty, before = asked.points, asked.penalty, asked.before
    counts, w0, aim, before = (
        np.ascontiguousarray(part[:, k])
        for part in (np.broadcast_to(asked.counts, before.shape), asked.start, asked.target, before)
    )

    def objective(w: FloatArray) -> tuple[float, FloatArray]:
        logits, spread = before + points @ w, float(penalty @ (w - w0) ** 2) / 2
        value = float((counts * np.logaddexp(0, logits)).mean() - w @ aim) + spread
        met = points.T @ (counts * expit(logits)) / len(points)
        return value, met - aim + penalty * (w - w0)

    def step_from(w: FloatArray, gradient: FloatArray) -> FloatArray:
        p = expit(before + points @ w)
        hessian = (points * (counts * p * (1 - p))[:, None]).T @ points / len(points)
        return np.linalg.solve(hessian + np.diag(penalty), gradient).astype(np.float64)

    return _minimum(w0, objective, step_from)


def _softmax_weights(asked: MomentEquations) -> FloatArray:
    """Return weights of shape (n_coordinates, n_classes)."""
    points, counts, start = asked.points, asked.counts, asked.start
    penalty = asked.penalty[:, None]
    # about the curvature of each weight, in whose units a step is found in a few products
    curved_by = (points**2).mean(axis=0) / start.shape[1] + asked.penalty
    inverse = diags_array(np.repeat(1 / curved_by, start.shape[1]))

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        w = flat.reshape(start.shape)
        logits = asked.before + points @ w
        logs = log_softmax(logits, axis=1)
        # log sum exp of a row is its first logit less that logit's log share
        normaliser = (counts[:, 0] * (logits[:, 0] - logs[:, 0])).mean()
        moved = w - start
        value = normaliser - np.sum(w * asked.target) + np.sum(penalty * moved**2) / 2
        met = points.T @ (counts * np.exp(logs)) / len(points)
        return float(value), (met - asked.target + penalty * moved).ravel()

    def step_from(flat: FloatArray, gradient: FloatArray) -> FloatArray:
        shares = softmax(asked.before + points @ flat.reshape(start.shape), axis=1)

        def curved(flat: FloatArray) -> FloatArray:
            moved = flat.reshape(start.shape)
            change = points @ moved
            change = shares * (change - (shares * change).sum(axis=1, keepdims=True))
            pulled: FloatArray = points.T @ (counts * change) / len(points) + penalty * moved
            return pulled.ravel()

        hessian = LinearOperator((start.size, start.size), matvec=curved, dtype=np.float64)
        step: FloatArray = cg(hessian, gradient, rtol=_STEP_PRECISION, M=inverse)[0]
        return step

    moved = _minimum(start.ravel(), objective, step_from).reshape(start.shape) - start
    # what moves all classes alike changes no prediction
    level: FloatArray = start + moved - moved.mean(axis=1, keepdims=True)
    return level
