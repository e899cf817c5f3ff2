"""How good a model is on labelled points: shares with their intervals, and what guessing would do;
of numbers and of several labels, beside the best constant answer.

Everything here is computed from the labelled points as they are: publish it only where those are
public.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest
from sklearn.metrics import brier_score_loss, confusion_matrix, roc_auc_score

from secretballot._points import class_shares
from secretballot._typing import AnyArray, BoolArray, FloatArray, IntArray, Json
from secretballot.exceptions import DataError

#: Of all intervals here.
_CONFIDENCE = 0.95
_NORMAL_QUANTILE = 1.959963984540054  # of the normal distribution, for that confidence
_BINS = 10


@dataclass(frozen=True)
class _Interval:
    """From `low` to `high`, with its confidence and the name of its method."""

    low: float
    high: float
    method: str = "Agresti-Min, paired"
    confidence: float = _CONFIDENCE


@dataclass(frozen=True)
class _ClassMetrics:
    """What a model does with one class.

    Attributes
    ----------
    name : object
        The class.
    rows, answers : int
        How often it is true, and how often it is answered.
    recall : float or None
        Share of its rows that are answered so; None without such rows.
    precision : float or None
        Share of such answers that are right; None without such answers.
    """

    name: Any
    rows: int
    answers: int
    recall: float | None
    precision: float | None


@dataclass(frozen=True)
class _Calibration:
    """Whether probabilities mean what they say.

    Attributes
    ----------
    said : float
        Mean probability of the class that was answered; a calibrated model is right so often.
    error : float
        Expected calibration error: mean distance between the share of right answers and the
        probability said, over ten equal bins of that probability, weighted by their rows.
    brier : float
        Brier score: mean squared distance of probabilities from the truth, summed over classes; of
        two classes, of the second one alone.
    """

    said: float
    error: float
    brier: float


@dataclass(frozen=True)
class _Figures:
    rows: int

    def to_json(self) -> Json:
        """Return all of it as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class _Metrics(_Figures):
    """How good a model is on labelled points.

    Attributes
    ----------
    rows : int
    accuracy : float
    accuracy_interval : _Interval
        Wilson's, of 95 %, of the accuracy.
    majority : object
        The class that most of these points have.
    majority_accuracy : float
        Accuracy of answering it always.
    above_majority : _Interval
        Accuracy less that one: the interval of the paired difference, of 95 %.
    beats_majority : bool
        Whether that is above 0: the model is better, beyond chance.
    balanced_accuracy : float
        Mean of the recalls of classes that have rows.
    classes : tuple of _ClassMetrics
    confusion : tuple of tuples of int
        Row: the true class. Column: the answer.
    auc : float or None
        Area under the ROC curve: of the second of two classes, else the mean over classes, one
        against the rest. None without probabilities, or with rows of one class alone.
    calibration : _Calibration or None
        None without probabilities.
    """

    accuracy: float
    accuracy_interval: _Interval
    majority: Any
    majority_accuracy: float
    above_majority: _Interval
    beats_majority: bool
    balanced_accuracy: float
    classes: tuple[_ClassMetrics, ...]
    confusion: tuple[tuple[int, ...], ...]
    auc: float | None
    calibration: _Calibration | None

    @property
    def distinguishes_classes(self) -> bool:
        """Whether classes are distinguished, beyond chance: the balanced accuracy is above that of
        any constant answer, by more than 1.96 standard errors."""
        found = [(one.rows, one.recall) for one in self.classes if one.recall is not None]
        # two rows of either kind are added, or a recall of 0 or 1 would be known for certain
        adjusted = [(rows + 4, (rows * recall + 2) / (rows + 4)) for rows, recall in found]
        variance = sum(recall * (1 - recall) / rows for rows, recall in adjusted)
        error = math.sqrt(variance) / len(found)
        return self.balanced_accuracy - 1.96 * error > 1 / len(found)


@dataclass(frozen=True)
class PairedDifference:
    """How much better one model is than another on the same points.

    Attributes
    ----------
    difference : float
        First less second.
    interval : _Interval
        Of 95 %.
    """

    difference: float
    interval: _Interval


def metrics_of_student(
    student: Any, X: Any, truth: AnyArray, classes: Sequence[Any] = ()
) -> "AnyMetrics":
    """Return the metrics of a fitted student on labelled points.

    Parameters
    ----------
    student : fitted classifier, NumberStudent or LabelsStudent
    X : array or frame of shape (n_rows, n_features)
    truth : ndarray
        Of classes the true one of each row, as an index, shape (n_rows,); of a number floats, shape
        (n_rows,); of several labels 0 and 1, shape (n_rows, n_labels).
    classes : sequence
        Empty where there are none.

    Raises
    ------
    DataError
        If a student of classes answers something that is none.
    """
    shares: Any = None
    if len(classes):
        answers = answers_of_student(student, X, classes)
        if hasattr(student, "predict_proba"):
            shares = class_shares(student, X, classes)
        return _metrics_of(truth, answers, classes, shares)
    said: Any = np.asarray(student.predict(X))
    if truth.ndim == 1:
        return _number_metrics(truth, said)
    if hasattr(student, "predict_proba"):
        shares = np.asarray(student.predict_proba(X))
    return _labels_metrics(truth, said, student.labels, shares)


def answers_of_student(student: Any, X: Any, classes: Sequence[Any]) -> IntArray:
    """Return what a student answers, as indices into the classes, shape (n_rows,).

    Raises
    ------
    DataError
        If it answers something that is no class.
    """
    places = {str(value): place for place, value in enumerate(classes)}
    answers = np.asarray(student.predict(X))
    found = np.array([places.get(str(value), -1) for value in answers.tolist()], dtype=np.int64)
    if (found < 0).any():
        raise DataError(
            "The student answers a class that is not among those of the labelled points; measure it"
            " by the classes of its release."
        )
    return found


def _metrics_of(
    truth: IntArray,
    answers: IntArray,
    classes: Sequence[Any],
    probabilities: FloatArray | None = None,
) -> _Metrics:
    """Return the metrics of answers, and of probabilities where there are any.

    Parameters
    ----------
    truth, answers : ndarray of int64, shape (n_rows,)
        Indices into `classes`.
    classes : sequence of two or more
    probabilities : ndarray of shape (n_rows, n_classes), optional
    """
    # as JSON has them
    classes = [one.item() if isinstance(one, np.generic) else one for one in classes]
    table = confusion_matrix(truth, answers, labels=np.arange(len(classes)))
    right, rows, answered = (one.tolist() for one in (np.diag(table), table.sum(1), table.sum(0)))
    most = int(np.argmax(rows))
    above = paired_difference(answers == truth, truth == most).interval
    each = tuple(
        _ClassMetrics(name, n, said, hits / n if n else None, hits / said if said else None)
        for name, n, said, hits in zip(classes, rows, answered, right, strict=True)
    )
    area, calibration = None, None
    if probabilities is not None:
        area = _area_under_curve(truth, probabilities)
        calibration = _calibration_of(truth, answers, probabilities)
    return _Metrics(
        rows=len(truth),
        accuracy=sum(right) / len(truth),
        accuracy_interval=_wilson_interval(sum(right), len(truth)),
        majority=classes[most],
        majority_accuracy=rows[most] / len(truth),
        above_majority=above,
        beats_majority=above.low > 0,
        # a class without rows has no recall, and is left out
        balanced_accuracy=float(np.mean([one.recall for one in each if one.recall is not None])),
        classes=each,
        confusion=tuple(map(tuple, table.tolist())),
        auc=area,
        calibration=calibration,
    )


def _area_under_curve(truth: IntArray, probabilities: FloatArray) -> float | None:
    """Return the area for the second of two classes, else the mean over classes with and without
    rows."""
    n_classes = probabilities.shape[1]
    there = [k for k in range(n_classes) if 0 < np.count_nonzero(truth == k) < len(truth)]
    if not there:
        return None
    if n_classes == 2:
        return float(roc_auc_score(truth == 1, probabilities[:, 1]))
    areas = [roc_auc_score(truth == k, probabilities[:, k]) for k in there]
    return float(np.mean(areas))


def _calibration_of(truth: IntArray, answers: IntArray, probabilities: FloatArray) -> _Calibration:
    rows, n_classes = probabilities.shape
    said = np.clip(probabilities[np.arange(rows), answers], 0, 1)
    right = answers == truth
    bins = np.minimum((said * _BINS).astype(np.int64), _BINS - 1)
    # of each bin the right answers less those that were promised
    surplus = np.bincount(bins, right - said, minlength=_BINS)
    if n_classes == 2:
        brier = brier_score_loss(truth == 1, np.clip(probabilities[:, 1], 0, 1))
    else:
        brier = np.mean(((probabilities - np.eye(n_classes)[truth]) ** 2).sum(axis=1))
    return _Calibration(float(said.mean()), float(np.abs(surplus).sum() / rows), float(brier))


def _wilson_interval(successes: int, trials: int) -> _Interval:
    """Return Wilson's interval of 95 % for a share.

    Notes
    -----
    Wilson 1927; Brown, Cai and DasGupta 2001 recommend it. It holds for few trials and for shares
    near 0 and 1, too.
    """
    found = binomtest(successes, trials).proportion_ci(_CONFIDENCE, "wilson")
    return _Interval(float(found.low), float(found.high), "Wilson")


def paired_difference(
    first: BoolArray, second: BoolArray, groups: AnyArray | None = None
) -> PairedDifference:
    """Return how much more often the first is right than the second, on the same rows.

    Parameters
    ----------
    first, second : ndarray of bool, shape (n_rows,)
        Whether each is right.
    groups : ndarray of shape (n_rows,), optional
        The true class of each row, say: then it is the mean of the differences within groups, a
        difference of balanced accuracies.

    Notes
    -----
    Agresti and Min 2005: Wald's interval after half a row was added to each of the four cells. The
    variances of groups add.
    """
    differences, centres, halves = [], [], []
    groups = np.zeros(len(first)) if groups is None else groups
    for group in np.unique(groups):
        one, other = first[groups == group], second[groups == group]
        rows = len(one) + 2
        only_one, only_other = (
            int(np.count_nonzero(here & ~there)) + 0.5
            for here, there in ((one, other), (other, one))
        )
        variance = only_one + only_other - (only_one - only_other) ** 2 / rows
        centres.append((only_one - only_other) / rows)
        halves.append(_NORMAL_QUANTILE * math.sqrt(variance) / rows)
        differences.append(float(np.mean(one) - np.mean(other)))
    centre, half = float(np.mean(centres)), math.hypot(*halves) / len(halves)
    return PairedDifference(
        float(np.mean(differences)), _Interval(max(-1.0, centre - half), min(1.0, centre + half))
    )


@dataclass(frozen=True)
class _NumberMetrics(_Figures):
    """How far a model's numbers are off on labelled points.

    Attributes
    ----------
    rows : int
    mean_absolute_error, root_mean_squared_error : float
        Mean absolute error, and root mean squared error, in the unit of the target.
    median, mean : float
        Of these points: the constants with the least absolute and squared error.
    constant_mean_absolute_error, constant_root_mean_squared_error : float
        Mean absolute error of answering the median, root mean squared error of answering the mean.
    squared_error_below_constant : _Interval
        Mean squared error of the mean less that of the model: the interval of the paired
        difference, of 95 %.
    beats_constant : bool
        Whether that is above 0: the model is better, beyond chance.
    """

    mean_absolute_error: float
    root_mean_squared_error: float
    median: float
    mean: float
    constant_mean_absolute_error: float
    constant_root_mean_squared_error: float
    squared_error_below_constant: _Interval
    beats_constant: bool


@dataclass(frozen=True)
class _LabelsMetrics(_Figures):
    """How often a model names the right labels on labelled points.

    Attributes
    ----------
    labels : dict
        Name to `_Metrics` of each label by itself, with the classes 0 and 1.
    exact : float
        Share of points whose whole set of labels is right.
    exact_interval : _Interval
        Wilson's, of 95 %, of that share.
    majority : tuple of str
        The set of labels that most of these points have.
    majority_exact : float
        Share of points that have it.
    above_majority : _Interval
        Exact share less that one: the interval of the paired difference, of 95 %.
    beats_constant : bool
        Whether that is above 0: more sets are right, beyond chance.
    """

    labels: dict[str, _Metrics]
    exact: float
    exact_interval: _Interval
    majority: tuple[str, ...]
    majority_exact: float
    above_majority: _Interval
    beats_constant: bool


#: Of a student, by what it learns.
AnyMetrics = _Metrics | _NumberMetrics | _LabelsMetrics


def _number_metrics(truth: FloatArray, answers: FloatArray) -> _NumberMetrics:
    """Return the metrics of a model's numbers.

    Parameters
    ----------
    truth, answers : ndarray of float, shape (n_rows,)
        Finite.
    """
    mean, median = float(np.mean(truth)), float(np.median(truth))
    squared, constant = (answers - truth) ** 2, (mean - truth) ** 2
    won = constant - squared
    centre = float(np.mean(won))
    half = _NORMAL_QUANTILE * float(np.std(won)) / math.sqrt(max(1, len(won) - 1))
    return _NumberMetrics(
        rows=len(truth),
        mean_absolute_error=float(np.mean(np.abs(answers - truth))),
        root_mean_squared_error=math.sqrt(float(np.mean(squared))),
        median=median,
        mean=mean,
        constant_mean_absolute_error=float(np.mean(np.abs(median - truth))),
        constant_root_mean_squared_error=math.sqrt(float(np.mean(constant))),
        squared_error_below_constant=_Interval(centre - half, centre + half, "normal, paired"),
        beats_constant=centre - half > 0,
    )


def _labels_metrics(
    truth: IntArray,
    answers: IntArray,
    names: Sequence[str],
    probabilities: FloatArray | None = None,
) -> _LabelsMetrics:
    """Return the metrics of a model of several labels.

    Parameters
    ----------
    truth, answers : ndarray of 0 and 1, shape (n_rows, n_labels)
    names : sequence of n_labels str
    probabilities : ndarray of shape (n_rows, n_labels), optional
    """
    sets = [tuple(row) for row in truth.tolist()]
    # of sets that are as frequent, the one that comes first in the order of its labels
    majority, frequency = max(sorted(Counter(sets).items()), key=lambda one: one[1])
    right = (truth == answers).all(axis=1)
    above = paired_difference(right, (truth == np.array(majority)).all(axis=1)).interval
    shares: list[Any] = [None] * len(names)
    if probabilities is not None:
        shares = [np.column_stack([1 - there, there]) for there in probabilities.T]
    columns = zip(names, truth.T, answers.T, shares, strict=True)
    return _LabelsMetrics(
        rows=len(truth),
        labels={
            name: _metrics_of(true, said, (0, 1), share) for name, true, said, share in columns
        },
        exact=float(right.mean()),
        exact_interval=_wilson_interval(int(right.sum()), len(truth)),
        majority=tuple(name for name, there in zip(names, majority, strict=True) if there),
        majority_exact=frequency / len(truth),
        above_majority=above,
        beats_constant=above.low > 0,
    )
