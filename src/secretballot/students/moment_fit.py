"""The model whose moments on the public pool meet the released ones; everything here is public.

A stage releases the sum over records of phi (t - q), where phi are the coordinates of a record, t
its target (of a class: 1 in its column) and q what the model so far predicts. The next model is the
one whose moments on the pool meet the released ones, with a penalty in each direction that follows
from the known noise: there is no step size, and nothing to tune.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import diags_array
from scipy.sparse.linalg import LinearOperator, cg
from scipy.special import expit, logsumexp, softmax

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.bases.integer_model import (
    PROBABILITY_UNIT,
    UNIT,
    WEIGHT_UNIT,
    IntegerLabels,
    IntegerLine,
    IntegerModel,
    LinearModel,
    Smoothed,
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

    def spreads(self, predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the derivative of each prediction, over the linear function, and the variance of a
        target around it, both in its shape."""
        if self.model_of is IntegerLine:
            return np.full_like(predicted, self.slope), np.full_like(predicted, self.variance)
        spread = predicted * (1 - predicted)
        return spread, spread

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
        normaliser = (counts[:, 0] * logsumexp(logits, axis=1)).mean()
        moved = w - start
        value = normaliser - np.sum(w * asked.target) + np.sum(penalty * moved**2) / 2
        met = points.T @ (counts * softmax(logits, axis=1)) / len(points)
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


#: How much of what records vary as a sample a later stage counts anew: they are the same in all.
_LATER_RECORDS = 0.1
#: Squared change of a prediction by one stage, over the variance of a target: assumed at first.
_CHANGED = 0.25
#: Up to so many classes have the same prior.
_FEW_CLASSES = 4
#: Prior variance of the weight of the constant, once classes were counted.
_COUNTED_PRIOR = 1.0
#: How often a model is fitted once more, with the uncertainty that follows from the model itself.
_REFINEMENTS = 2
#: Least curvature, over the assumed one: a model may be sure of every point.
_FLATTEST = 1e-3
#: Least share of a stage's length that a coordinate has, and least mean of its squares.
LEAST_SHARE, _LEAST_SQUARE = 1e-7, 1e-20


@dataclass(frozen=True, eq=False)
class ReleasedMoments:
    """What one stage released.

    Attributes
    ----------
    sums : ndarray of int64, shape (n_coordinates, n_columns)
        Noisy sums of coordinates times residuals.
    sigma : float
        Scale of their noise.
    unit : int
        Integers for 1.0 in a residual.
    n_records : float
        What stands for the number of records: public, or released with noise.
    scales : ndarray of float64, shape (n_coordinates,)
        What coordinates were multiplied by.
    predicted : ndarray of float64, shape (n_public, n_columns)
        What the stage took off the targets, on the pool.
    bound : float, optional
        To which each record's vector was shortened, in units of a coordinate times a residual;
        none where a record alone was not.
    """

    sums: IntArray
    sigma: float
    unit: int
    n_records: float
    scales: FloatArray
    predicted: FloatArray
    bound: float | None = None


@dataclass(frozen=True, eq=False)
class MomentFit:
    """A model, and how sure its weights are.

    Attributes
    ----------
    pool : ndarray of int64, shape (n_public, n_coordinates + n_cells)
        The public points, as rows of a `LinearModel`.
    link : Link
        What the model predicts.
    weights : ndarray of float64, shape (n_coordinates, n_columns)
    precision : ndarray of float64, shape (n_coordinates,)
        Of each weight around its value here.
    counts : ndarray of float64, shape (n_public,)
        By how much each point is shrunk before its moments are taken; 1 where it is not.
    is_sample : bool
        Whether the points stand for the records. If not they are those of the records themselves.
    is_start : bool
        Whether nothing was released before.
    before : Smoothed, optional
        The prediction that the weights correct.
    """

    pool: IntArray
    link: Link
    weights: FloatArray
    precision: FloatArray
    counts: FloatArray
    is_sample: bool = True
    is_start: bool = False
    before: Smoothed | None = None

    @classmethod
    def start(
        cls,
        pool: IntArray,
        link: Link,
        counts: FloatArray | None = None,
        *,
        n_cells: int = 0,
        frequencies: FloatArray | None = None,
    ) -> "MomentFit":
        """Return the model before anything was released, which predicts the same for all points.

        Parameters
        ----------
        pool : ndarray of int64, shape (n_public, n_coordinates + n_cells)
            The public points, as rows of a `LinearModel`.
        link : Link
        n_cells : int
        counts : ndarray of float64, shape (n_public,), optional
            Given where the points are those of the records themselves: by how much each was shrunk.
        frequencies : ndarray of float64, shape (n_classes,) or (n_labels,), optional
            Of the classes or labels, above 0, where they were released before.
        """
        points = pool[:, : pool.shape[1] - n_cells] / UNIT
        variance = points.var(axis=0)
        explained = link.prior
        if link.competes and counts is None:
            # to be as sure of one of more classes takes logits that lie farther apart
            explained *= max(1.0, math.log(link.n_columns, _FEW_CLASSES))
        # equal for all features before whitening, and a prior of its own for the constant
        prior = explained * variance / max(float(np.sum(variance**2)), np.finfo(float).tiny)
        prior[-1] = link.level_prior / float(points[0, -1]) ** 2
        prior[:-1] = np.maximum(prior[:-1], 1e-12)
        weights = np.zeros((points.shape[1], link.n_columns))
        if frequencies is not None:
            weights[-1] = link.levels(frequencies) / float(points[0, -1])
            prior[-1] = min(prior[-1], _COUNTED_PRIOR)
        own = np.ones(len(pool)) if counts is None else counts
        return cls(pool, link, weights, 1 / prior, own, counts is None, is_start=True)

    @property
    def points(self) -> FloatArray:
        """Coordinates of the public points as numbers, shape (n_public, n_coordinates)."""
        return self.pool[:, : len(self.weights)] / UNIT

    @property
    def model(self) -> LinearModel:
        """The model in integers: what predicts, and what the next stage starts from."""
        return self.link.model_of.of(self.weights, self.before)

    @property
    def predicted(self) -> FloatArray:
        """What the model in integers predicts for the public points, (n_public, n_columns)."""
        return self.model.predictions(self.pool) / PROBABILITY_UNIT

    def smoothed(self, levels: BoolArray, stage: int) -> "MomentFit":
        """Return the mean of the model and of trees that predict it, before any correction; the
        model itself where trees have no cells to compare.

        Parameters
        ----------
        levels : ndarray of bool, shape (n_cells,)
            Which cells are numbers of levels.
        stage : int
            That led to the model, from 1.
        """
        if not len(levels):
            return self
        before = Smoothed.of(self.model, self.pool, levels, stage)
        return replace(self, weights=np.zeros_like(self.weights), before=before)

    def scales(self, n_records: float, noise: float, clipped: float) -> FloatArray:
        """Return what the next stage multiplies coordinates by, shape (n_coordinates,).

        Noise is alike in all coordinates and a unit's length is bounded, so a longer coordinate is
        measured better at the cost of the others. Half of the mean squared length is divided as
        coordinates divide it by themselves; the other half so that the curvature that is still
        uncertain after the stage, over all coordinates, is least (water-filling).

        Parameters
        ----------
        n_records : float
        noise : float
            Scale of what noise adds to a mean of records, in units of a coordinate times a
            residual.
        clipped : float
            Share of the points that are cut; their shortest is as long as it was without scales.
        """
        points, link = self.points, self.link
        squares, longest = points**2, np.linalg.norm(points, axis=1)
        # a coordinate may be 0 at all points
        second = np.maximum(squares.mean(axis=0), _LEAST_SQUARE)
        slopes, variances = link.spreads(self.predicted)
        curvature = np.maximum(_mean_product(squares, slopes), _FLATTEST * link.slope * second)
        sampled = self._sampling_variance(squares, variances, _CHANGED * variances, n_records)
        alike = second / second.sum()
        filled = _filled(curvature, self.precision, alike * noise**2, sampled)
        found: FloatArray = np.sqrt(np.maximum((alike + filled) / 2, LEAST_SHARE) / second)
        # as long at the quantile as points without scales
        lengths = np.linalg.norm(points * found, axis=1)
        found *= np.quantile(longest, 1 - clipped) / np.quantile(lengths, 1 - clipped)
        return found

    def after(self, released: ReleasedMoments) -> "MomentFit":
        """Return the model after one more stage, or once more after one before.

        Its moments on the pool meet the target, which is the released moment plus what the stage
        predicted on the pool; but for the penalties, by which it stays where it was.
        """
        points, predicted = self.points, released.predicted
        link, squares, counts = self.link, points**2, self.counts[:, None]
        # by how much the moments at each point answer to a prediction
        known = counts * predicted
        if released.bound is not None:
            lengths = np.linalg.norm(points * released.scales, axis=1)
            counts, known = link.answers(predicted, lengths, released.bound)
        scale = UNIT * released.unit * released.n_records * released.scales
        moments, noise = released.sums / scale[:, None], (released.sigma / scale) ** 2
        if link.competes:
            # the exact sums over all classes are 0, so the mean over classes is noise alone
            moments = moments - moments.mean(axis=1, keepdims=True)
            noise *= 1 - 1 / link.n_columns
        target = moments + points.T @ known / len(points)
        # from what was predicted first; then from the model that was found
        slopes, variances = link.spreads(predicted)
        changes = _CHANGED * variances
        nothing = np.zeros(predicted.shape, dtype=np.int64)
        before = nothing if self.before is None else self.before.logits(self.pool)
        added = before / (UNIT * WEIGHT_UNIT)
        for _ in range(1 + _REFINEMENTS):
            least = _FLATTEST * link.slope * _mean_product(squares, counts)
            curvature = np.maximum(_mean_product(squares, counts * slopes), least)
            uncertain = noise + self._sampling_variance(
                squares, counts**2 * variances, counts**2 * changes, released.n_records
            )
            penalty = uncertain * self.precision / curvature
            weights = link.weights_of(
                MomentEquations(points, counts, target, penalty, self.weights, added)
            )
            alone = link.model_of.of(weights)
            now = alone.at(alone.logits(self.pool) + before) / PROBABILITY_UNIT
            slopes, variances = link.spreads(now)
            changes = (now - predicted) ** 2
        precision = self.precision + curvature**2 / uncertain
        return replace(self, weights=weights, precision=precision, is_start=False)

    def _sampling_variance(
        self, squares: FloatArray, variances: FloatArray, changes: FloatArray, n_records: float
    ) -> FloatArray:
        """Return the variance of a moment because records and points are samples.

        The points are in it by what the stage changes alone; the records are the same in all
        stages.
        """
        again = 1.0 if self.is_start else _LATER_RECORDS
        found = again * _mean_product(squares, variances) / n_records
        return found + _mean_product(squares, changes) / len(squares) if self.is_sample else found


def _mean_product(squares: FloatArray, factors: FloatArray) -> FloatArray:
    """Return the mean of squares times factors, over points and columns, by coordinates."""
    mean: FloatArray = squares.T @ factors.mean(axis=1) / len(squares)
    return mean


def _filled(
    curvature: FloatArray, precision: FloatArray, noise: FloatArray, sampled: FloatArray
) -> FloatArray:
    """Return shares that add up to 1 and leave the least curvature uncertain, which is the sum of
    `curvature / (precision + curvature^2 / (noise / share + sampled))`.

    All have the shape (n_coordinates,).
    """
    root, known = np.sqrt(curvature**3 * noise), precision * noise
    each = precision * sampled + curvature**2
    # of those that get something the level is that at which they get all, which is the lowest
    order = np.argsort(known / root)
    wanted, granted = np.cumsum((known / each)[order]), np.cumsum((root / each)[order])
    level = np.min((1 + wanted) / granted)
    return np.maximum(0.0, (root * level - known) / each)
