"""How good a student of numbers, or of several labels, is on labelled points, beside the best
constant answer.

Everything here is computed from the labelled points as they are: publish it only where those are
public.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from secretballot._typing import AnyArray, FloatArray, IntArray
from secretballot.report.metrics import (
    NORMAL_QUANTILE,
    Interval,
    Metrics,
    check_rows,
    metrics_of,
    paired_difference,
    wilson_interval,
)


@dataclass(frozen=True)
class NumberMetrics:
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
    squared_error_below_constant : Interval
        Mean squared error of the mean less that of the model: the interval of the paired
        difference, of 95 %.
    """

    rows: int
    mean_absolute_error: float
    root_mean_squared_error: float
    median: float
    mean: float
    constant_mean_absolute_error: float
    constant_root_mean_squared_error: float
    squared_error_below_constant: Interval

    @property
    def beats_constant(self) -> bool:
        """Whether the model is better than the best constant, beyond chance."""
        return self.squared_error_below_constant.low > 0

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        return asdict(self) | {"beats_constant": self.beats_constant}


@dataclass(frozen=True)
class LabelsMetrics:
    """How often a model names the right labels on labelled points.

    Attributes
    ----------
    labels : dict
        Name to `Metrics` of each label by itself, with the classes 0 and 1.
    exact : float
        Share of points whose whole set of labels is right.
    exact_interval : Interval
        Wilson's, of 95 %, of that share.
    majority : tuple of str
        The set of labels that most of these points have.
    majority_exact : float
        Share of points that have it.
    above_majority : Interval
        Exact share less that one: the interval of the paired difference, of 95 %.
    """

    rows: int
    labels: dict[str, Metrics]
    exact: float
    exact_interval: Interval
    majority: tuple[str, ...]
    majority_exact: float
    above_majority: Interval

    @property
    def beats_constant(self) -> bool:
        """Whether more sets are right than by answering the most frequent one, beyond chance."""
        return self.above_majority.low > 0

    def to_json(self) -> dict[str, Any]:
        """Return all of it as JSON values."""
        labels = {name: one.to_json() for name, one in self.labels.items()}
        return asdict(self) | {"beats_constant": self.beats_constant, "labels": labels}


TableMetrics = NumberMetrics | LabelsMetrics


def metrics_of_table_student(student: Any, X: Any, truth: AnyArray) -> TableMetrics:
    """Return the metrics of a fitted student of tables on labelled points.

    Parameters
    ----------
    student : NumberStudent or LabelsStudent
    X : array or frame of shape (n_rows, n_features)
    truth : ndarray of float, shape (n_rows,), or of 0 and 1, shape (n_rows, n_labels)
    """
    answers = np.asarray(student.predict(X))
    if truth.ndim == 1:
        return number_metrics(truth, answers)
    probabilities = None
    if all(hasattr(one, "predict_proba") for one in getattr(student, "students", [student])):
        probabilities = np.asarray(student.predict_proba(X))
    return labels_metrics(truth, answers, student.labels, probabilities)


def number_metrics(truth: FloatArray, answers: FloatArray) -> NumberMetrics:
    """Return the metrics of a model's numbers.

    Parameters
    ----------
    truth, answers : ndarray of float, shape (n_rows,)
        Finite.

    Raises
    ------
    ParameterError
        If there are no rows, or not as many of each.
    """
    check_rows(truth, answers)
    mean, median = float(np.mean(truth)), float(np.median(truth))
    squared, constant = (answers - truth) ** 2, (mean - truth) ** 2
    won = constant - squared
    centre, half = (
        float(np.mean(won)),
        NORMAL_QUANTILE * float(np.std(won)) / math.sqrt(max(1, len(won) - 1)),
    )
    return NumberMetrics(
        rows=len(truth),
        mean_absolute_error=float(np.mean(np.abs(answers - truth))),
        root_mean_squared_error=math.sqrt(float(np.mean(squared))),
        median=median,
        mean=mean,
        constant_mean_absolute_error=float(np.mean(np.abs(median - truth))),
        constant_root_mean_squared_error=math.sqrt(float(np.mean(constant))),
        squared_error_below_constant=Interval(centre - half, centre + half, "normal, paired"),
    )


def labels_metrics(
    truth: IntArray,
    answers: IntArray,
    names: Sequence[str],
    probabilities: FloatArray | None = None,
) -> LabelsMetrics:
    """Return the metrics of a model of several labels.

    Parameters
    ----------
    truth, answers : ndarray of 0 and 1, shape (n_rows, n_labels)
    names : sequence of n_labels str
    probabilities : ndarray of shape (n_rows, n_labels), optional

    Raises
    ------
    ParameterError
        If there are no rows, or not as many of each.
    """
    check_rows(truth, answers)
    sets = [tuple(row) for row in truth.tolist()]
    # of sets that are as frequent, the one that comes first in the order of its labels
    majority, frequency = max(sorted(Counter(sets).items()), key=lambda one: one[1])
    right = (truth == answers).all(axis=1)
    above = paired_difference(right, (truth == np.array(majority)).all(axis=1))
    return LabelsMetrics(
        rows=len(truth),
        labels={
            name: metrics_of(
                truth[:, k],
                answers[:, k],
                (0, 1),
                None if probabilities is None else _both_classes(probabilities[:, k]),
            )
            for k, name in enumerate(names)
        },
        exact=float(right.mean()),
        exact_interval=wilson_interval(int(right.sum()), len(truth)),
        majority=tuple(name for name, there in zip(names, majority, strict=True) if there),
        majority_exact=frequency / len(truth),
        above_majority=above.interval,
    )


def _both_classes(shares: FloatArray) -> FloatArray:
    return np.column_stack([1 - shares, shares])
