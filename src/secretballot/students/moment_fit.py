"""The model whose moments on the public pool meet the released ones; everything here is public.

A stage releases the sum over records of phi (e_y - q), where phi are the coordinates of a record,
e_y its class and q what the model so far predicts. The next model is the softmax one whose moments
on the pool meet the released ones, with a penalty in each direction that follows from the known
noise: there is no step size, and nothing to tune (`docs/decisions/0019-record-moments.md`).
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from secretballot._typing import FloatArray, IntArray
from secretballot.bases.integer_model import PROBABILITY_UNIT, IntegerModel
from secretballot.bases.rotation import UNIT

__all__ = ["MomentFit", "ReleasedMoments"]

#: Prior variance of the logit that the basis explains, and of the intercept.
PRIOR = 4.0
#: What the mean of p (1 - p) is assumed to be, over its largest value.
CURVATURE = 0.48
#: Variance of a moment around its expectation, over that of the coordinate and the mean of
#: p (1 - p): for one record, and for one public point. Both are samples.
RECORD_VARIANCE, POINT_VARIANCE = 1.0, 0.25
#: How much of both a later stage counts anew. The records are the same in all stages, and the
#: points stand in a later moment by what the model still changes alone, which is little.
LATER_RECORDS, LATER_POINTS = 0.1, 0.08
_NEWTON_STEPS = 100
_SETTLED = 1e-12  # gain of the objective, below which a search ends


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
    """

    sums: IntArray
    sigma: float
    unit: int
    n_records: float


@dataclass(frozen=True, eq=False)
class MomentFit:
    """A model, and how sure its weights are.

    Attributes
    ----------
    pool : ndarray of int64, shape (n_public, n_coordinates)
        Coordinates of the public points, the intercept's last.
    weights : ndarray of float64, shape (n_coordinates, n_columns)
        One column for two classes.
    precision : ndarray of float64, shape (n_coordinates,)
        Of each weight around its value here.
    is_start : bool
        Whether nothing was released before.
    """

    pool: IntArray
    weights: FloatArray
    precision: FloatArray
    is_start: bool = False

    @classmethod
    def start(cls, pool: IntArray, n_classes: int) -> "MomentFit":
        """Return the model before anything was released: all classes alike."""
        points = pool / UNIT
        variance = points.var(axis=0)
        # equal for all features before whitening, and as much for the constant
        prior = PRIOR * variance / max(float(np.sum(variance**2)), np.finfo(float).tiny)
        prior[-1] = PRIOR / float(points[0, -1]) ** 2
        prior[:-1] = np.maximum(prior[:-1], 1e-12)
        n_columns = 1 if n_classes == 2 else n_classes
        return cls(pool, np.zeros((pool.shape[1], n_columns)), 1 / prior, is_start=True)

    @property
    def model(self) -> IntegerModel:
        """The model in integers: what predicts, and what the next stage starts from."""
        return IntegerModel.of(self.weights)

    def after(self, released: ReleasedMoments) -> "MomentFit":
        """Return the model after one more stage.

        Minimises mean over the pool of log sum exp(w phi) - <w, target> + penalties, which is
        convex; target is the released moment plus what the model so far has on the pool.
        """
        points, n_public = self.pool / UNIT, len(self.pool)
        n_columns = self.weights.shape[1]
        shares = self.model.probabilities(self.pool) / PROBABILITY_UNIT
        shares = shares[:, 1:] if n_columns == 1 else shares
        scale = UNIT * released.unit * released.n_records
        moments = released.sums / scale
        noise = (released.sigma / scale) ** 2
        if n_columns > 1:
            # the exact sums over all classes are 0, so the mean over classes is noise alone
            moments = moments - moments.mean(axis=1, keepdims=True)
            noise *= 1 - 1 / n_columns
        target = moments + points.T @ shares / n_public
        spread = _curvature(n_columns)
        records, pool = RECORD_VARIANCE / released.n_records, POINT_VARIANCE / n_public
        if not self.is_start:
            records, pool = LATER_RECORDS * records, LATER_POINTS * pool
        sampling = spread * (records + pool)
        uncertain = noise + sampling * points.var(axis=0)
        curvature = spread * (points**2).mean(axis=0)
        penalty = uncertain * self.precision / curvature
        search = _binary_weights if n_columns == 1 else _softmax_weights
        weights = search(points, target, penalty, self.weights)
        precision = self.precision + curvature**2 / uncertain
        return replace(self, weights=weights, precision=precision, is_start=False)


def _curvature(n_columns: int) -> float:
    """Return the assumed mean of p (1 - p)."""
    n_classes = max(2, n_columns)
    return CURVATURE * (1 / n_classes) * (1 - 1 / n_classes)


def _binary_weights(
    points: FloatArray, target: FloatArray, penalty: FloatArray, start: FloatArray
) -> FloatArray:
    """Return weights of shape (n_coordinates, 1), by Newton's method with backtracking."""
    w0, aim = start[:, 0], target[:, 0]

    def objective(w: FloatArray) -> float:
        spread = float(penalty @ (w - w0) ** 2) / 2
        return float(np.logaddexp(0, points @ w).mean() - w @ aim) + spread

    w, value = w0.copy(), objective(w0)
    for _ in range(_NEWTON_STEPS):
        p = expit(points @ w)
        gradient = points.T @ p / len(points) - aim + penalty * (w - w0)
        hessian = (points * (p * (1 - p))[:, None]).T @ points / len(points)
        step = np.linalg.solve(hessian + np.diag(penalty), gradient)
        decrease, length = 1e-4 * float(gradient @ step), 1.0
        while length > 1e-9 and not objective(w - length * step) <= value - length * decrease:
            length /= 2
        w = w - length * step
        before, value = value, objective(w)
        if not before - value >= _SETTLED:
            break
    return w[:, None]


def _softmax_weights(
    points: FloatArray, target: FloatArray, penalty: FloatArray, start: FloatArray
) -> FloatArray:
    """Return weights of shape (n_coordinates, n_classes), by L-BFGS."""

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        w = flat.reshape(start.shape)
        logs = log_softmax(points @ w, axis=1)
        # log sum exp of a row is its first logit less that logit's log share
        normaliser = (points @ w[:, 0] - logs[:, 0]).mean()
        moved = w - start
        value = normaliser - np.sum(w * target) + np.sum(penalty[:, None] * moved**2) / 2
        gradient = points.T @ np.exp(logs) / len(points) - target + penalty[:, None] * moved
        return float(value), gradient.ravel()

    found = minimize(
        objective,
        start.ravel(),
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 500, "ftol": 1e-10, "gtol": 1e-7},
    )
    weights: FloatArray = found.x.reshape(start.shape)
    return weights
