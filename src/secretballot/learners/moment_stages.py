"""The stages of record moments: where they begin, what each asks, and what the released sums come
to; all public.

A model of a class that one record in a hundred has calls nearly every point by another name, and is
right 99 times in 100. Weights of classes move its decisions after the release; that is
post-processing, and costs nothing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np

from secretballot._typing import BoolArray, FloatArray, IntArray, Json, Names, Values
from secretballot._validation import LARGEST_INTEGER, check_positive, refusal, shown, shown_classes
from secretballot.accounting import PrivacyBudget
from secretballot.accounting.calibration import calibrate_vector_sum
from secretballot.bases.integer_basis import NO_CELLS
from secretballot.bases.integer_model import (
    CONSTANT,
    LARGEST_WEIGHT,
    PROBABILITY_UNIT,
    UNIT,
    WEIGHT_UNIT,
    IntegerModel,
    LinearModel,
)
from secretballot.core.mechanisms import NoisySums
from secretballot.core.types import Guarantee, SumShape
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.inputs import Target, points_digest
from secretballot.learners.moment_vectors import LARGEST_SCALE, SCALE_UNIT, Residuals
from secretballot.released import ReleasedLabels
from secretballot.report.certificate import labels_digest
from secretballot.report.certificate_models import (
    CLASS_WEIGHTS,
    LABELS_MOMENTS,
    MOMENTS,
    RECORDS,
    TARGET_MOMENTS,
    UNCOVERED,
    Coverage,
    counted_by_marks,
    counts_scale,
)
from secretballot.report.verification import verify_certificate
from secretballot.students.moment_fit import (
    Link,
    MomentEquations,
    MomentFit,
    ReleasedMoments,
    classes_link,
    labels_link,
    number_link,
)
from secretballot.teachers.rows import n_rows, take_rows


class ReleasedStart(NamedTuple):
    """A model of labels that were released before.

    Attributes
    ----------
    fit : MomentFit
        What the first stage starts from; its weights are whole numbers of 1 / `WEIGHT_UNIT`.
    stated : dict
        What a certificate says of it, with the digest of that of these labels.
    """

    fit: MomentFit
    stated: Json


def check_start(start: object, classes: Values, X_public: Any) -> None:
    """Refuse a start that is no verified release about these classes and these public points.

    Parameters
    ----------
    start : object
        None, or what should be a `ReleasedLabels`.
    classes : tuple
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
        As their digest is taken.

    Raises
    ------
    ParameterError
        If it is no release, says less than its certificate, or is about something else.
    """
    if start is None:
        return
    if not isinstance(start, ReleasedLabels):
        raise refusal(
            "start",
            f" is a {type(start).__name__}; give the ReleasedLabels of a release, such as"
            " released_ of a learner: anything else may have looked at private data.",
        )
    failures = verify_certificate(start.certificate).failures
    if failures:
        raise ParameterError(
            "The certificate of ",
            Parameter("start"),
            f" does not verify ({failures[0].name}: {failures[0].detail}); give a release as it was"
            " made.",
        )
    stated, rows = start.certificate["released"], start.queries
    own = labels_digest(rows, start.labels, start.classes, start.noisy_counts)
    # 1, 1.0 and True are equal but not the same class
    found, wanted = ([(type(value), value) for value in one] for one in (start.classes, classes))
    # labels are rows of the pool, and in another pool they would belong to wrong points
    inside = rows.min(initial=0) >= 0 and rows.max(initial=0) < n_rows(X_public)
    known = points_digest(take_rows(X_public, rows)) if inside else None
    problems = {
        "has other labels than its certificate; take both from one release": (
            stated["labels_sha256"] != own
        ),
        f"is about the classes {shown_classes(start.classes)}; these are {shown_classes(classes)},"
        " so give a release of the same ones in the same order": found != wanted,
        "is about other public points, or its certificate has no points_sha256; give the X_public"
        " of that release, rows in the same order": known is None
        or stated.get("points_sha256") != known,
        "answers no query; fit without it": not start.answered.any(),
    }
    for problem, is_so in problems.items():
        if is_so:
            raise refusal("start", f" {problem}.")


def released_start(
    start: ReleasedLabels | None, pool: IntArray, link: Link, n_cells: int = 0
) -> ReleasedStart | None:
    """Return the model that a release comes to in a public basis; None where there is no release.

    It is the logistic or softmax one of largest posterior density, with the prior of a fit that
    starts from nothing. Released labels say where weights lie, and not how surely: they follow from
    votes or from another model, and are no draws from what holds of records. So the start replaces
    the mean of the prior, and the prior stays as wide, however many labels there are.

    Parameters
    ----------
    start : ReleasedLabels or None
        Checked by `check_start`.
    pool : ndarray of int64, shape (n_public, n_coordinates + n_cells)
        The public points, as rows of a `LinearModel`.
    link : Link
    n_cells : int
    """
    if start is None:
        return None
    nothing = MomentFit.start(pool, link, n_cells=n_cells)
    weights, shares, noise = _shares_of(start)
    points = nothing.points[start.queries[start.answered]]
    targets = shares[:, -link.n_columns :]
    equations = MomentEquations(
        points,
        weights[:, None],
        points.T @ targets / len(points),
        # noise of votes is added to the variance of a label
        nothing.precision * (1 + noise / link.variance) / len(points),
        nothing.weights,
        np.zeros_like(targets),
    )
    whole = IntegerModel.of(link.weights_of(equations)).weights
    stated = {"certificate": start.certificate["digest"], "weights": whole.ravel().tolist()}
    return ReleasedStart(replace(nothing, weights=whole / WEIGHT_UNIT), stated)


def _shares_of(released: ReleasedLabels) -> tuple[FloatArray, FloatArray, float]:
    """Return what a release reveals at its answered queries: their weights by the number of votes,
    1 in the mean; the shares of the classes times these, of shape (n_answered, n_classes); and the
    variance of what noise adds to a share. Of noisy counts shares are without bias, and may lie
    below 0 or above 1; of labels alone they are all or nothing."""
    n_classes, labels = released.n_classes, released.labels[released.answered]
    if released.noisy_counts is None:
        return np.ones(len(labels)), np.eye(n_classes)[labels], 0.0
    assert released.sigma is not None
    counts, left = released.noisy_counts[released.answered].astype(np.float64), 1.0
    if counts.ndim == 1:
        counts = np.column_stack([released.n_teachers - counts, counts])
    else:
        left = 1 - 1 / n_classes  # what is the same noise in all classes is taken away
    # votes of records are as many at a point as there are records near it
    total = counts.sum(axis=1)
    votes = np.maximum(total, 0) if released.by_record else np.full(len(total), released.n_teachers)
    counts += (votes - total)[:, None] / n_classes
    mean = max(float(votes.mean()), 1.0)
    return votes / mean, counts / mean, left * (released.sigma / mean) ** 2


BALANCED, AUTO = "balanced", "auto"
#: Classes are balanced by themselves where one is more than so many times as frequent as another.
SKEWED = 9.0
#: A class is at least as frequent as this when its weight is set.
_LEAST_SHARE = 1e-4
#: A class with fewer records than so many standard deviations of the noise may have none.
_HIDDEN = 2.5


#: By how much a model's decisions count each class, as on the certificate: a number for each;
#: "balanced", as if classes were equally frequent; or "auto", so where frequencies are `SKEWED`.
ClassWeights = str | list[float]


def weights_of_model(weights: ClassWeights, predicted: FloatArray, noise: float) -> list[float]:
    """Return the weights of a model that predicts these shares of the pool in the mean.

    Balanced is by what the model itself says of the public points: noise makes it say that a rare
    class is rarer than it is, and a stated share would then ask for more than it ever gives. A
    class whose count noise could explain is weighted as if it were as frequent as the noise is
    large, and is no reason for "auto" to balance the others.

    Parameters
    ----------
    weights : ClassWeights
    predicted : ndarray of float64, shape (n_classes,)
        Follows from released values and public points.
    noise : float
        Standard deviation of a released count of a class, over the number of records.
    """
    if not isinstance(weights, str):
        return weights
    least, most = max(_HIDDEN * noise, _LEAST_SHARE), predicted.max()
    shares = np.maximum(predicted, least)
    rarest = predicted.min(where=predicted >= least, initial=most)
    alike = weights == AUTO and not most > SKEWED * rarest
    found: list[float] = (np.ones(len(shares)) if alike else 1 / (len(shares) * shares)).tolist()
    return found


def checked_weights(weight: object, classes: Sequence[Any]) -> ClassWeights | None:
    """Return how decisions count classes; None where all count alike.

    Raises
    ------
    ParameterError
        If it is neither "balanced" nor "auto", nor a positive number for each declared class.
    """
    if weight is None:
        return None
    if isinstance(weight, str) and weight in (BALANCED, AUTO):
        return weight
    if not isinstance(weight, Mapping) or set(weight) != set(classes):
        raise refusal(
            "class_weight",
            f" is {shown(weight)}; it must be {BALANCED!r}, {AUTO!r}, or a positive number for each"
            f" of the {len(classes)} declared classes ({shown_classes(classes)}).",
        )
    return [check_positive("class_weight", weight[name]) for name in classes]


#: Noisy sums of a fit, unless another number is asked for.
N_STAGES = 4
#: Integers for 1.0 in a residual of the first stage, unless a bound were too long for that.
RESIDUAL_UNIT = 2**10
#: Precision of the weights that correct a model smoothed after all stages, over that of the first.
_SMOOTHED_ONCE_MORE = 10.0
#: Share of the pool whose coordinates are longer than the bound of the first stage.
CLIPPED = 0.37
#: The bound of one record's classes, over what CLIPPED says: a shorter one has less noise, and the
#: fit allows for what it cuts.
_SHORTER = 0.8
#: The same share where labels alone are private, of the records.
_LABELS_CLIPPED = 0.37
#: The least count of a class that is believed.
_LEAST_COUNT = 3.0
#: What a mark of a record adds to the coordinate that counts it, over the bound of the rest.
_MARK_SHARE = 0.1


#: A target that a record lacks: it adds nothing but its marks.
_ABSENT = -1


@dataclass(frozen=True)
class MomentTarget(Target):
    """A target, and how its moments are taken."""

    @property
    def name(self) -> str:
        """Of the method, on the certificate."""
        return MOMENTS if self.classes else LABELS_MOMENTS if self.labels else TARGET_MOMENTS

    @cached_property
    def link(self) -> Link:
        """From coordinates to what is predicted."""
        if self.bounds is not None:
            return number_link()
        return classes_link(len(self.classes)) if self.classes else labels_link(len(self.labels))

    @property
    def longest(self) -> float:
        """Bound of a residual of the first stage, over which vectors are cut: it predicts all
        classes alike, one half for each label, and the middle of the range."""
        if len(self.classes) > 2:
            return math.sqrt(1 - 1 / len(self.classes))
        return 0.5 * math.sqrt(max(1, len(self.labels)))

    @property
    def later(self) -> float:
        """Bound of later stages over that of the first: the middle of the range misses much of a
        number, and a model little."""
        return 1.0 if self.bounds is None else 0.3

    @property
    def about(self) -> Json:
        """What the certificate says of the target, beside the classes."""
        if self.labels:
            return {"labels": list(self.labels)}
        return {"bounds": list(self.bounds)} if self.bounds is not None else {}

    def in_units(self, targets: Any) -> IntArray:
        """Return private targets, as `read` returns them, as integers: of one of several classes
        its place, int64 of shape (n_records,); of labels and numbers in units of 1 /
        `PROBABILITY_UNIT`, of the range, int64 of shape (n_records, n_columns)."""
        if self.bounds is None:
            return np.asarray(targets * PROBABILITY_UNIT if self.labels else targets)
        low, high = self.bounds
        shares = np.rint((targets - low) / (high - low) * PROBABILITY_UNIT)
        return np.where(np.isnan(shares), _ABSENT, shares).astype(np.int64)[:, None]


class State(NamedTuple):
    """What some stages led to.

    Attributes
    ----------
    fit : MomentFit
        The model of all sums so far; after the last stage smoothed once more where trees smooth.
    base : MomentFit
        The one that the next stage starts from, whose misses it asks for.
    covered_only : bool
        Whether the next stage leaves out the records that the pool does not cover.
    scales : ndarray of int64, shape (n_coordinates,)
        What the next stage multiplies coordinates by, as for `Residuals`.
    released : tuple of ReleasedMoments
        What the stages released about the same records, for trees to smooth and all to correct.
    """

    fit: MomentFit
    base: MomentFit
    covered_only: bool
    scales: IntArray
    released: tuple[ReleasedMoments, ...] = ()


@dataclass(frozen=True, eq=False)
class MomentStages:
    """Public terms of a release in stages, and what follows from the sums of each.

    Make them with `of_records` or `of_labels`. Sums are arrays of int64 of shape (coordinates,).

    Attributes
    ----------
    pool : ndarray of int64, shape (n_public, n_coordinates + n_cells)
        The public points, as rows of a `LinearModel`.
    target : MomentTarget
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
        Scale of the noise on each integer of a stage.
    guarantee : Guarantee
        Whose vectors are bounded.
    counts : ndarray of float64, shape (n_public,), optional
        Where the public points are those of the records themselves: by how much each is shrunk.
    start : ReleasedStart, optional
        A model of labels that were released before, from which the first stage starts, and every
        one that begins anew.
    class_weights : ClassWeights, optional
        By how much the decisions of the last model count each class.
    levels : ndarray of bool, shape (n_cells,)
        Which of the cells that trees compare are numbers of levels.
    """

    pool: IntArray
    target: MomentTarget
    units: tuple[int, ...]
    bound: int
    mark_weight: int
    marks: Names
    expected_uncovered: float
    n_records: float | None
    sigma: float
    guarantee: Guarantee
    counts: FloatArray | None = None
    start: ReleasedStart | None = None
    class_weights: ClassWeights | None = None
    levels: BoolArray = field(default_factory=NO_CELLS.copy)
    _known: dict[tuple[bytes, ...], State] = field(default_factory=dict, init=False)

    @classmethod
    def of_records(
        cls,
        pool: IntArray,
        target: MomentTarget,
        budget: PrivacyBudget,
        guarantee: Guarantee,
        *,
        n_stages: int,
        n_records: int | None,
        expected_uncovered: float,
        levels: BoolArray = NO_CELLS,
        **more: Any,
    ) -> "MomentStages":
        """Return the stages of a release, with the least noise that keeps the budget; parameters
        are the attributes of these names, and `more` of them."""
        coordinates = pool[:, : pool.shape[1] - len(levels)]
        longest = float(np.quantile(np.linalg.norm(coordinates / UNIT, axis=1), 1 - CLIPPED))
        marks = (UNCOVERED,) if n_records is not None else (RECORDS, UNCOVERED)
        replaced = guarantee.relation == "replace-one"
        longest *= target.longest
        if target.classes and guarantee.unit == "record":
            longest *= _SHORTER
        unit, bound, weight = _unit_and_bounds(longest, len(marks), replaced=replaced)
        # later residuals in finer units: their bound is smaller, and the same in integers
        units = (unit, *[round(unit / target.later)] * (n_stages - 1))
        terms = pool, target, units, bound, weight, marks, expected_uncovered, n_records
        return cls(*terms, math.nan, guarantee, levels=levels, **more)._calibrated(budget)

    @classmethod
    def of_labels(
        cls,
        pool: IntArray,
        target: MomentTarget,
        budget: PrivacyBudget,
        *,
        levels: BoolArray = NO_CELLS,
        class_weights: ClassWeights | None = None,
    ) -> "MomentStages":
        """Return the only stage of a release where labels alone are private, and the pool is that
        of the records; parameters are those of `of_records`.

        A replaced label moves the sum alike whatever is predicted, so a later stage would ask the
        same with more noise.
        """
        lengths = np.linalg.norm(pool[:, : pool.shape[1] - len(levels)].astype(np.float64), axis=1)
        # a label takes its unit from one column and gives it to another; of two classes there is
        # one
        moved = RESIDUAL_UNIT * math.sqrt(min(2, target.link.n_columns))
        bound = max(1, round(moved * np.quantile(lengths, 1 - _LABELS_CLIPPED) / 2))
        counts: FloatArray = np.minimum(1.0, 2 * bound / (moved * lengths))
        about = Guarantee(unit="label", relation="replace-one")
        terms = pool, target, (RESIDUAL_UNIT,), bound, 0, (), 0.0, len(pool), math.nan, about
        made = cls(*terms, counts, class_weights=class_weights, levels=levels)
        return made._calibrated(budget)

    def _calibrated(self, budget: PrivacyBudget) -> "MomentStages":
        terms = self.shape.squared_sensitivity, self.shape.coordinates, len(self.units)
        first = counts_scale(len(self.units)) if self.counts_first else None
        return replace(self, sigma=calibrate_vector_sum(budget, *terms, first=first))

    @property
    def counts_first(self) -> bool:
        """Whether the first sum counts the records of each class or label, and stages begin from
        that."""
        return self.target.bounds is None and self.counts is None and self.start is None

    @property
    def sigmas(self) -> tuple[float, ...]:
        """Scales of the noise of all sums."""
        first = [counts_scale(len(self.units)) * self.sigma] if self.counts_first else []
        return (*first, *[self.sigma] * len(self.units))

    @property
    def mechanism(self) -> NoisySums:
        """What draws the sums."""
        return NoisySums(sigmas=self.sigmas)

    @property
    def _rest(self) -> int:
        """What marks leave of the bound."""
        return math.isqrt(self.bound**2 - len(self.marks) * self.mark_weight**2)

    @property
    def n_coordinates(self) -> int:
        """Coordinates of a row, without the cells."""
        return int(self.pool.shape[1]) - len(self.levels)

    @property
    def shape(self) -> SumShape:
        """The public facts of the sum of each stage."""
        replaced = self.guarantee.relation == "replace-one"
        return SumShape(
            guarantee=self.guarantee,
            coordinates=self.n_coordinates * self.target.link.n_columns + len(self.marks),
            squared_sensitivity=(4 if replaced else 1) * self.bound**2,
        )

    def after(self, sums: Sequence[IntArray]) -> State:
        """Return what follows from some sums, the counts first where there are such."""
        key = tuple(one.tobytes() for one in sums)
        if key not in self._known:
            self._known[key] = self._state_after(sums)
        return self._known[key]

    def _state_after(self, sums: Sequence[IntArray]) -> State:
        if self.start is None:
            terms = self.pool, self.target.link, self.counts
            shares = self._frequencies(sums) if self.counts_first and len(sums) else None
            nothing = MomentFit.start(*terms, n_cells=len(self.levels), frequencies=shares)
        else:
            nothing = self.start.fit
        stages = sums[self.counts_first :]
        # A few records with values that the pool lacks are as good as others in their other
        # columns. Once they are more than chance explains they would move the model for all, and
        # are left out from then on.
        seen = self.counted(sums) if self.marks and len(sums) else None
        poor = seen is not None and seen[0].is_poor
        alike, n_records = np.full(self.n_coordinates, SCALE_UNIT), float(self.n_records or 0)
        before = self.after(sums[:-1]) if len(stages) else State(nothing, nothing, poor, alike)
        only = before.covered_only or poor
        if seen is not None:
            n_records = seen[1] * (1 - before.covered_only * seen[0].uncovered)
        n_records = max(n_records, 1.0)
        if not len(stages):
            scales = self._scales_from(nothing, n_records, 0) if len(sums) else alike
            return State(nothing, nothing, poor, scales)
        shape = self.n_coordinates, self.target.link.n_columns
        moments = sums[-1][: shape[0] * shape[1]].reshape(shape)
        unit, scales = self.units[len(stages) - 1], before.scales / SCALE_UNIT
        # a person's records are shortened together
        alone = self.guarantee.unit == "record"
        bound = self._rest / (UNIT * unit) if alone else None
        own = before.base.predicted
        released = ReleasedMoments(moments, self.sigma, unit, n_records, scales, own, bound)
        fit, known = before.base.after(released), (*before.released, released)
        if only != before.covered_only:
            # sums over other records than from now on would pull the model to where those were
            return State(fit, nothing, only, alike)
        is_last, smooths = len(stages) == len(self.units), len(self.levels) and self.counts is None
        # numbers lose by trees on as many tables as they gain (docs/measurements.md)
        if self.target.bounds is not None or (is_last and not smooths):
            return State(fit, fit, only, alike)
        base = fit.smoothed(self.levels, len(stages))
        if not is_last:
            return State(fit, base, only, self._scales_from(base, n_records, len(stages)), known)
        # what this smoothing changed is corrected by all sums once more
        last = replace(base, precision=_SMOOTHED_ONCE_MORE * nothing.precision, is_start=True)
        return State(reduce(MomentFit.after, known, last), base, only, alike, known)

    def _scales_from(self, base: MomentFit, n_records: float, stage: int) -> IntArray:
        """Return what a stage, by its number from 0, multiplies coordinates by."""
        noise = self.sigma / (UNIT * self.units[stage] * n_records)
        scaled = np.rint(base.scales(n_records, noise, CLIPPED) * SCALE_UNIT)
        return np.clip(scaled, 1, LARGEST_SCALE).astype(np.int64)

    @property
    def _count_weight(self) -> int:
        """What a record adds to a count; it may have all labels."""
        return math.isqrt(self._rest**2 // max(1, len(self.target.labels)))

    def _frequencies(self, sums: Sequence[IntArray]) -> FloatArray:
        """Return the shares of the records that each class or label has, of shape (n_classes,) or
        (n_labels,), as released counts tell."""
        n = len(self.target.classes) or len(self.target.labels)
        found: FloatArray = np.maximum(sums[0][:n] / self._count_weight, _LEAST_COUNT)
        n_records = float(found.sum())
        if self.target.labels:
            n_records = max(self.counted(sums[:1])[1], 2 * _LEAST_COUNT)
            found = np.minimum(found, n_records - _LEAST_COUNT)
        return found / n_records

    def counted(self, sums: Sequence[IntArray]) -> tuple[Coverage, float]:
        """Return how far the public points cover the records, and how many there are, as the marks
        of these sums count them, and as the certificate's readers find it."""
        number = None if self.n_records is None else float(self.n_records)
        # before the first stage only the counts of classes have marks, with noise of their own
        own, sigma = sums[self.counts_first :], self.sigma
        if not len(own):
            own, sigma = sums, self.sigmas[0]
        terms = self.marks, self.mark_weight, sigma, number, self.expected_uncovered
        return counted_by_marks(own, *terms)[:2]

    def asked_after(self, sums: Sequence[IntArray]) -> Residuals:
        """Return what the next stage asks after these sums."""
        state = self.after(sums)
        marks = self.mark_weight, len(self.marks), state.covered_only
        if self.counts_first and not len(sums):
            return Residuals(
                state.base.model, 1, self.bound, *marks, count_weight=self._count_weight
            )
        unit = self.units[len(sums) - self.counts_first]
        return Residuals(state.base.model, unit, self.bound, *marks, state.scales)

    def outcome_of(self, sums: Sequence[IntArray]) -> tuple[Json, IntArray]:
        """Return what the sums come to, for the certificate, and the classes of the pool, of shape
        (n_public,), or none where none are predicted."""
        states = [self.after(sums[:n]) for n in range(self.counts_first, len(sums) + 1)]
        models = [state.fit.model for state in states[1:]]
        before = models[-1].before
        if states[-1].released and before is not None:
            models.insert(-1, before.model)
        outcome: Json = {
            "covered_only": [one.covered_only for one in states[:-1]],
            "scales": [one.scales.tolist() for one in states[:-1]],
        }
        # no stage is asked by the weighted model: it decides, and nothing follows from it
        models[-1], weights = self.deciding_after(sums)
        if weights is not None:
            outcome[CLASS_WEIGHTS] = weights
        outcome["weights"] = [model.weights.ravel().tolist() for model in models]
        last, nothing = models[-1], np.empty(0, dtype=np.int64)
        return outcome, last.labels(self.pool) if isinstance(last, IntegerModel) else nothing

    def deciding_after(self, sums: Sequence[IntArray]) -> tuple[LinearModel, list[float] | None]:
        """Return the model of all sums whose decisions count each class by its weight, and these
        weights; None where all count alike."""
        model = self.after(sums).fit.model
        if self.class_weights is None:
            return model, None
        assert isinstance(model, IntegerModel)
        predicted = model.probabilities(self.pool).mean(axis=0) / PROBABILITY_UNIT
        # what a record adds to the sum that knows its class: the count, or else the constant
        adds = self._count_weight if self.counts_first else CONSTANT * self.units[0]
        noise = self.sigmas[0] / adds / (self.counted(sums)[1] if self.marks else len(self.pool))
        weights = weights_of_model(self.class_weights, predicted, noise)
        return _class_weighted_model(model, weights), weights


def _class_weighted_model(model: IntegerModel, weights: Sequence[float]) -> IntegerModel:
    """Return a model whose level counts each class by its weight."""
    logs = np.log(weights)
    added = logs[1:] - logs[0] if model.weights.shape[1] == 1 else logs - logs.mean()
    levels = model.weights.copy()
    levels[-1] += np.rint(added * WEIGHT_UNIT * UNIT / CONSTANT).astype(np.int64)
    np.clip(levels, -LARGEST_WEIGHT, LARGEST_WEIGHT, out=levels)
    return replace(model, weights=levels)


def _unit_and_bounds(length: float, n_marks: int, *, replaced: bool) -> tuple[int, int, int]:
    """Return the integers for 1.0 in a residual of the first stage, the bound of a record's vector
    with so many marks, and what each mark adds; the vector without marks is cut to `length`.

    The unit is `RESIDUAL_UNIT`, or the largest power of two below it at which the squared
    sensitivity, four bounds squared where a record is replaced, is below `LARGEST_INTEGER`.

    Any unit keeps the bound and exact sums. `vector_sums` rounds each residual to an
    integer first, up or down, then cuts the coordinates until the product of the two, in integers,
    is within what the marks leave of the bound: the rounding decides what a record adds, never
    how much it adds. The bound is rounded up, so vectors and marks fit in. No entry exceeds the
    bound, which is below 2^27: a block of 2^18 rows adds up to less than 2^53, exact in floats, and
    2^36 records to less than 2^63.
    A residual is rounded by half of 1 / unit at most. With 10,000 labels, the most there are, the
    unit is still 16 or more, for points of the lengths that bases give them.
    """
    unit = RESIDUAL_UNIT
    while True:
        rest = max(1, round(length * UNIT * unit))
        weight = max(1, round(_MARK_SHARE * rest))
        bound = 1 + math.isqrt(rest**2 + n_marks * weight**2)
        if unit == 1 or (4 if replaced else 1) * bound**2 < LARGEST_INTEGER:
            return unit, bound, weight
        unit //= 2
