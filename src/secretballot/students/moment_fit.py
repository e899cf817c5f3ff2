"""The model whose moments on the public pool meet the released ones; everything here is public.

A stage releases the sum over records of phi (t - q), where phi are the coordinates of a record, t
its target (of a class: 1 in its column) and q what the model so far predicts. The next model is the
one whose moments on the pool meet the released ones, with a penalty in each direction that follows
from the known noise: there is no step size, and nothing to tune.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot.bases.integer_model import (
    PROBABILITY_UNIT,
    UNIT,
    WEIGHT_UNIT,
    LinearModel,
    Smoothed,
)
from secretballot.students.moment_links import Link, MomentEquations

#: How much of what records vary as a sample a later stage counts anew: they are the same in all.
_LATER_RECORDS = 0.1
#: Squared change of a prediction by one stage, over the variance of a target: assumed at first.
_CHANGED = 0.25
#: Where trees smooth, up to so many classes have the same prior.
_FEW_CLASSES = 4
#: Prior variance of the weight of the constant, once classes were counted.
_COUNTED_PRIOR = 1.0
#: How often a model is fitted once more, with the uncertainty that follows from the model itself.
_REFINEMENTS = 2
#: Least curvature, over the assumed one: a model may be sure of every point.
_FLATTEST = 1e-3
#: How often shares of a stage's length are divided anew, and the least share of a coordinate.
SHARED_AGAIN, LEAST_SHARE = 2, 1e-7


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
    bound : float, optional
        To which each record's vector was shortened, in units of a coordinate times a residual;
        none where a record alone was not.
    """

    sums: IntArray
    sigma: float
    unit: int
    n_records: float
    scales: FloatArray
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
        if link.competes and n_cells and counts is None:
            # to be as sure of one of more classes takes logits that lie farther apart; without
            # trees, which take noise away again, more would be lost by noise than is gained
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
        points = self.points
        squares, predicted = points**2, self.predicted
        second, longest = squares.mean(axis=0), np.linalg.norm(points, axis=1)
        slopes, variances = self.link.slopes(predicted), self.link.variances(predicted)
        least = _FLATTEST * self.link.slope * second
        curvature = np.maximum(_mean_product(squares, slopes), least)
        sampled = self._sampling_variance(squares, variances, _CHANGED * variances, n_records)
        alike = shares = second / second.sum()

        def scaled(shares: FloatArray) -> tuple[FloatArray, float]:
            """Return scales of these shares, as long at the quantile as points without scales, and
            what they were multiplied by for that."""
            # a coordinate may be 0 at all points
            found = np.sqrt(shares / np.maximum(second, np.finfo(float).tiny))
            lengths = np.linalg.norm(points * found, axis=1)
            factor = np.quantile(longest, 1 - clipped) / np.quantile(lengths, 1 - clipped)
            return found * factor, float(factor)

        for _ in range(SHARED_AGAIN):
            factor = scaled(shares)[1]
            filled = _filled(curvature, self.precision, second * (noise / factor) ** 2, sampled)
            shares = np.maximum((alike + filled) / 2, LEAST_SHARE)
            shares /= shares.sum()
        return scaled(shares)[0]

    def after(self, released: ReleasedMoments) -> "MomentFit":
        """Return the model after one more stage.

        Its moments on the pool meet the target, which is the released moment plus what the model so
        far has on the pool; but for the penalties, by which it stays where it was.
        """
        points, predicted = self.points, self.predicted
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
        # from assumed figures first; then from the model that was found
        slopes = np.full(predicted.shape, link.slope)
        variances = np.full(predicted.shape, link.variance)
        changes = _CHANGED * variances
        added = np.zeros_like(predicted)
        if self.before is not None:
            added = self.before.logits(self.pool) / (UNIT * WEIGHT_UNIT)
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
            now = replace(self, weights=weights).predicted
            slopes, variances = link.slopes(now), link.variances(now)
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
    root = np.sqrt(curvature**3 * noise)
    known = precision * noise
    each = precision * sampled + curvature**2
    low, high = 1e-30, 1e30
    while high > low * (1 + 1e-9):
        middle = np.sqrt(low * high)
        shares: FloatArray = np.maximum(0.0, (root / middle - known) / each)
        low, high = (middle, high) if shares.sum() > 1 else (low, middle)
    return shares / max(float(shares.sum()), np.finfo(float).tiny)
