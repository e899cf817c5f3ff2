"""The stages of record moments: what each asks, and what the released sums come to; all public."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import LARGEST_INTEGER
from secretballot.accounting import (
    PrivacyBudget,
    calibrate_vector_sum,
)
from secretballot.bases.integer_model import (
    CONSTANT,
    LARGEST_WEIGHT,
    PROBABILITY_UNIT,
    WEIGHT_UNIT,
    IntegerModel,
)
from secretballot.bases.integer_targets import TargetModel
from secretballot.bases.rotation import UNIT
from secretballot.core.mechanisms import NoisySums
from secretballot.core.types import Guarantee, SumShape
from secretballot.learners.moments.class_weights import ClassWeights
from secretballot.learners.moments.start import ReleasedStart
from secretballot.learners.moments.targets import ClassTarget, Target
from secretballot.records import Residuals
from secretballot.report.certificate.coverage import (
    MOST_EXPECTED,
    RECORDS,
    UNCOVERED,
    Coverage,
    counted_by_marks,
)
from secretballot.report.certificate.methods import CLASS_WEIGHTS
from secretballot.students.moment_fit import MomentFit, ReleasedMoments

#: Integers for 1.0 in a residual of the first stage, unless a bound were too long for that.
RESIDUAL_UNIT = 2**10
#: Share of the pool whose coordinates are longer than the bound of the first stage.
CLIPPED = 0.37
#: The same where labels alone are private, of the records.
LABELS_CLIPPED = 0.37
#: What a mark of a record adds to the coordinate that counts it, over the bound of the rest.
MARK_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class MomentStages:
    """Public terms of a release in stages.

    Attributes
    ----------
    pool : ndarray of int64, shape (n_public, n_coordinates)
        Coordinates of the public points, the constant's last.
    target : Target
    units : tuple of int
        Integers for 1.0 in a residual, of each stage; the bound in integers is the same in all.
    bound, mark_weight : int
        As for `Residuals`.
    marks : tuple of str
        What is counted beside, of `RECORDS` and `UNCOVERED`.
    expected_uncovered : float
        Share of uncovered records where they are like the public points.
    n_records : int or None
        Public under replace-one; None where the sums count them.
    sigma : float
        Scale of the noise on each integer.
    guarantee : Guarantee
        Whose vectors are bounded.
    counts : ndarray of float64, shape (n_public,), optional
        Where the public points are those of the records themselves: by how much each is shrunk.
    start : ReleasedStart, optional
        A model of labels that were released before, from which the first stage starts, and every
        one that begins anew.
    class_weights : ClassWeights, optional
        By how much the decisions of the last model count each class.
    """

    pool: IntArray
    target: Target
    units: tuple[int, ...]
    bound: int
    mark_weight: int
    marks: tuple[str, ...]
    expected_uncovered: float
    n_records: float | None
    sigma: float
    guarantee: Guarantee
    counts: FloatArray | None = None
    start: ReleasedStart | None = None
    class_weights: ClassWeights | None = None
    _fits: dict[tuple[bytes, ...], MomentFit] = field(default_factory=dict)

    @property
    def mechanism(self) -> NoisySums:
        """What draws the sums."""
        return NoisySums(sigmas=(self.sigma,) * len(self.units))

    @property
    def shape(self) -> SumShape:
        """The public facts of the sum of each stage."""
        coordinates = self.pool.shape[1] * self.target.link.n_columns + len(self.marks)
        return _shape_of(self.guarantee, coordinates, self.bound)

    def fit_after(self, sums: Sequence[IntArray]) -> MomentFit:
        """Return the model that follows from the sums of the first stages, each of shape
        (coordinates,)."""
        if not len(sums):
            if self.start is not None:
                return self.start.fit
            return MomentFit.start(self.pool, self.target.link, self.counts)
        key = tuple(total.tobytes() for total in sums)
        if key not in self._fits:
            self._fits[key] = self._base_after(sums[:-1]).after(self._last_moments(sums))
        return self._fits[key]

    def _base_after(self, sums: Sequence[IntArray]) -> MomentFit:
        """Return the model that the next stage starts from, whose misses it asks for."""
        # sums over other records than from now on would pull the model to where those were
        changed = len(sums) and self._covered_only_after(sums) != self._covered_only_after(
            sums[:-1]
        )
        return self.fit_after([] if changed else sums)

    def _last_moments(self, sums: Sequence[IntArray]) -> ReleasedMoments:
        """Return what the last stage released, as moments of so many records."""
        shape = self.pool.shape[1], self.target.link.n_columns
        n_records = self.records_of(sums)
        if self._covered_only_after(sums[:-1]):
            n_records *= 1 - self.coverage_of(sums).uncovered
        moments = sums[-1][: shape[0] * shape[1]].reshape(shape)
        unit = self.units[len(sums) - 1]
        return ReleasedMoments(moments, self.sigma, unit, max(n_records, 1.0))

    def _covered_only_after(self, sums: Sequence[IntArray]) -> bool:
        """Return whether the next stage leaves out the records that the pool does not cover.

        A basis knows nothing of what the pool does not show, and such records would move the model
        for all. A pool so small that many records are uncovered by chance keeps them until more are
        than chance explains.
        """
        if self.counts is not None:
            return False  # they are the public points
        if self.expected_uncovered <= MOST_EXPECTED:
            return True
        return bool(sums) and self.coverage_of(sums).is_poor

    def records_of(self, sums: Sequence[IntArray]) -> float:
        """Return the number of records, public or counted with noise in sums of shape
        (coordinates,)."""
        number = self._public_number
        if number is not None:
            return number
        return self._counts_by_marks(sums)[1]

    @property
    def _public_number(self) -> float | None:
        if self.n_records is None:
            return None
        return float(self.n_records)

    def coverage_of(self, sums: Sequence[IntArray]) -> Coverage:
        """Return how far the public points cover the records, by the sums so far, each of shape
        (coordinates,)."""
        return self._counts_by_marks(sums)[0]

    def _counts_by_marks(self, sums: Sequence[IntArray]) -> tuple[Coverage, float, float]:
        """Return what the marks of the sums so far say, as the certificate's readers find it."""
        return counted_by_marks(
            sums,
            self.marks,
            self.mark_weight,
            self.sigma,
            self._public_number,
            self.expected_uncovered,
        )

    def asked_after(self, sums: Sequence[IntArray]) -> Residuals:
        """Return what the next stage asks after these sums, each of shape (coordinates,)."""
        model = self._base_after(sums).model
        unit = self.units[len(sums)]
        return Residuals(
            model,
            unit,
            self.bound,
            self.mark_weight,
            len(self.marks),
            self._covered_only_after(sums),
        )

    def outcome_of(self, sums: Sequence[IntArray]) -> tuple[dict[str, Any], IntArray]:
        """Return what the sums, each of shape (coordinates,), come to, for the certificate, and the
        classes of the pool, of shape (n_public,), or none where none are predicted."""
        models = [self.fit_after(sums[: n + 1]).model for n in range(len(sums))]
        covered_only = [self._covered_only_after(sums[:n]) for n in range(len(sums))]
        outcome: dict[str, Any] = {"covered_only": covered_only}
        # no stage is asked by the weighted model: it decides, and nothing follows from it
        weights = self.class_weights_after(sums)
        if weights is not None:
            models[-1], outcome[CLASS_WEIGHTS] = self.deciding_after(sums), weights
        outcome["weights"] = [model.weights.ravel().tolist() for model in models]
        last = models[-1]
        if not isinstance(last, IntegerModel):
            return outcome, np.empty(0, dtype=np.int64)
        return outcome, last.labels(self.pool)

    def deciding_after(self, sums: Sequence[IntArray]) -> IntegerModel | TargetModel:
        """Return the model of all sums, each of shape (coordinates,), whose decisions count each
        class by its weight."""
        model, weights = self.fit_after(sums).model, self.class_weights_after(sums)
        return model if weights is None else _class_weighted_model(model, weights)

    def class_weights_after(self, sums: Sequence[IntArray]) -> list[float] | None:
        """Return by how much the decisions of the model of all sums, each of shape (coordinates,),
        count each class, None where all count alike."""
        if self.class_weights is None:
            return None
        model = self.fit_after(sums).model
        assert isinstance(model, IntegerModel)
        predicted = model.probabilities(self.pool).mean(axis=0) / PROBABILITY_UNIT
        weights: list[float] = self.class_weights.of_model(predicted).tolist()
        return weights


def _class_weighted_model(
    model: IntegerModel | TargetModel, weights: Sequence[float]
) -> IntegerModel:
    """Return a model whose level counts each class by its weight."""
    assert isinstance(model, IntegerModel)
    logs = np.log(weights)
    added = logs[1:] - logs[0] if model.weights.shape[1] == 1 else logs - logs.mean()
    levels = model.weights.copy()
    levels[-1] += np.rint(added * WEIGHT_UNIT * UNIT / CONSTANT).astype(np.int64)
    np.clip(levels, -LARGEST_WEIGHT, LARGEST_WEIGHT, out=levels)
    return IntegerModel(levels)


def staged_sums(
    pool: IntArray,
    target: Target,
    budget: PrivacyBudget,
    *,
    n_stages: int,
    n_records: int | None,
    guarantee: Guarantee,
    expected_uncovered: float,
    start: ReleasedStart | None = None,
    class_weights: ClassWeights | None = None,
) -> MomentStages:
    """Return the public terms of a release.

    Parameters
    ----------
    pool : ndarray of int64, shape (n_public, n_coordinates)
        Coordinates of the public points, the constant's last.
    target : Target
    budget : PrivacyBudget
    n_stages : int
    n_records : int or None
        Public number of records; None lets the sums count them.
    guarantee : Guarantee
        Whose vectors are bounded.
    expected_uncovered : float
        Share of records that the basis does not cover where they are like the public points.
    start : ReleasedStart, optional
        What the first stage starts from; of classes alone.
    class_weights : ClassWeights, optional
        By how much the decisions of the last model count each class.

    Raises
    ------
    ParameterError
        If a group's budget is too small for its records to add anything.
    """
    longest = float(np.quantile(np.linalg.norm(pool / UNIT, axis=1), 1 - CLIPPED))
    marks = (UNCOVERED,) if n_records is not None else (RECORDS, UNCOVERED)
    replaced = guarantee.relation == "replace-one"
    unit, bound, weight = _unit_and_bounds(target.longest * longest, len(marks), replaced=replaced)
    # later residuals in finer units: their bound is smaller, and the same in integers
    units = (unit, *[round(unit / target.later)] * (n_stages - 1))
    shape = _shape_of(guarantee, pool.shape[1] * target.link.n_columns + len(marks), bound)
    return MomentStages(
        pool,
        target,
        units,
        bound,
        weight,
        marks,
        expected_uncovered,
        n_records,
        calibrate_vector_sum(budget, shape.squared_sensitivity, shape.coordinates, n_stages),
        guarantee,
        start=start,
        class_weights=class_weights,
    )


def _shape_of(guarantee: Guarantee, coordinates: int, bound: int) -> SumShape:
    replaced = guarantee.relation == "replace-one"
    return SumShape(
        guarantee=guarantee,
        coordinates=coordinates,
        squared_sensitivity=(4 if replaced else 1) * bound**2,
    )


def _unit_and_bounds(length: float, n_marks: int, *, replaced: bool) -> tuple[int, int, int]:
    """Return the integers for 1.0 in a residual of the first stage, the bound of a record's vector
    with so many marks, and what each mark adds; the vector without marks is cut to `length`.

    The unit is `RESIDUAL_UNIT`, or the largest power of two below it at which the squared
    sensitivity, four bounds squared where a record is replaced, is below `LARGEST_INTEGER`.

    Any unit keeps the bound and exact sums. `records.vector_sums` rounds each residual to an
    integer first, up or down, then cuts the coordinates until the product of the two, in integers,
    is within what the marks leave of the bound: the rounding decides what a record tells, never
    how much it adds. The bound is rounded up, so vectors and marks fit in. No entry exceeds the
    bound, which is below 2^27: a block of 2^18 rows adds up to less than 2^53, exact in floats, and
    2^36 records to less than 2^63.
    A residual is rounded by half of 1 / unit at most. With 10,000 labels, the most there are, the
    unit is still 16 or more, for points of the lengths that bases give them.
    """
    unit = RESIDUAL_UNIT
    while True:
        rest = max(1, round(length * UNIT * unit))
        weight = max(1, round(MARK_SHARE * rest))
        bound = 1 + math.isqrt(rest**2 + n_marks * weight**2)
        if unit == 1 or (4 if replaced else 1) * bound**2 < LARGEST_INTEGER:
            return unit, bound, weight
        unit //= 2


def label_sums(pool: IntArray, target: ClassTarget, budget: PrivacyBudget) -> MomentStages:
    """Return the public terms of a release where labels alone are private.

    There is one stage: a replaced label moves the sum alike whatever is predicted, so a later stage
    would ask the same with more noise.

    Parameters
    ----------
    pool : ndarray of int64, shape (n_records, n_coordinates)
        Coordinates of the records, which are public, the constant's last.
    target : ClassTarget
    budget : PrivacyBudget
    """
    lengths = np.linalg.norm(pool.astype(np.float64), axis=1)
    # a label takes its unit from one column and gives it to another; of two classes there is one
    moved = RESIDUAL_UNIT * math.sqrt(min(2, target.link.n_columns))
    bound = max(1, round(moved * np.quantile(lengths, 1 - LABELS_CLIPPED) / 2))
    counts: FloatArray = np.minimum(1.0, 2 * bound / (moved * lengths))
    guarantee = Guarantee(unit="label", relation="replace-one")
    shape = _shape_of(guarantee, pool.shape[1] * target.link.n_columns, bound)
    sigma = calibrate_vector_sum(budget, shape.squared_sensitivity, shape.coordinates, 1)
    units, n_records = (RESIDUAL_UNIT,), len(pool)
    return MomentStages(pool, target, units, bound, 0, (), 0.0, n_records, sigma, guarantee, counts)
