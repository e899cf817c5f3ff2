"""Settings that are worth weighing, and the noise that each would bring."""

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from secretballot.aggregation import Aggregator, GaussianAggregator, SparseVectorAggregator
from secretballot.exceptions import ParameterError
from secretballot.planning.plan import Setting, Task
from secretballot.privacy.accounting import (
    PrivacyBudget,
    SparseVectorEvent,
    calibrate_gaussian,
    calibrate_label_gaussian,
    calibrate_sparse_vector,
    needed_distance,
)

__all__ = ["FEWER_STOPS", "STOPS", "Noise", "gaussian_settings", "stated_noise", "stream_settings", "teacher_counts"]

TEACHER_STEP = 1.6  # between neighbouring numbers of teachers
QUERY_STEP = 1.7  # between neighbouring numbers of labels
LEAST_SHARD = 10  # records that a teacher should have, where that leaves a choice
LEAST_QUERIES = 5  # labels for each class
STOPS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)  # T of a sparse vector
FEWER_STOPS = (1, 10, 100)
ANCHORS = (1, 4, 30)  # queries at which the noise of labels is calibrated for a rough figure
USUALLY_ANSWERED = 0.9  # chance at which a candidate's margin is stated
# Noise of n labels grows slower than the square root of n at first, and as it from some hundred on; measured between 30
# and 1,000 labels at epsilon 0.1 to 4.
SETTLED = 0.98


def teacher_counts(least: int, most: int, n_records: int) -> list[int]:
    """Return numbers of teachers K at even ratios, from the least to the most that leave each ten records."""
    top = max(least, min(most, n_records // LEAST_SHARD))
    steps = max(1, math.ceil(math.log(top / least) / math.log(TEACHER_STEP))) if top > least else 0
    return sorted({_tidy(k, least, top) for k in np.geomspace(least, top, steps + 1)})


def _tidy(value: float, least: int, most: int) -> int:
    """Return a number with two leading digits, within bounds."""
    digits = max(0, math.floor(math.log10(max(value, 1))) - 1)
    return int(min(max(round(value / 10**digits) * 10**digits, least), most))


def gaussian_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield labels of few to all public points, and noisy counts of all, a quarter and a sixteenth of them."""
    m, start = task.n_public, min(task.n_public, LEAST_QUERIES * task.n_classes)
    steps = math.ceil(math.log(m / start) / math.log(QUERY_STEP)) if m > start else 0
    for queries in sorted({_tidy(q, start, m) for q in np.geomspace(start, m, steps + 1)}):
        yield Setting(n_teachers, "gaussian", "labels", queries)
    for queries in sorted({m, math.ceil(m / 4), math.ceil(m / 16)}):
        yield Setting(n_teachers, "gaussian", "counts", queries)


def stream_settings(task: Task, n_teachers: int, noise: "Noise", stops: tuple[int, ...]) -> Iterator[Setting]:
    """Yield sparse vectors over all public points whose threshold unanimous teachers would pass."""
    for stop in stops:
        event = noise.event(stop) if stop <= task.n_public else None
        if event is None or event.threshold >= (n_teachers - 1) // 2:
            return
        yield Setting(n_teachers, "sparse-vector", "labels", task.n_public, max_unstable=stop)


class Noise:
    """The noise of settings at one budget; calibrations are kept.

    Parameters
    ----------
    budget : PrivacyBudget
    n_classes : int
    """

    def __init__(self, budget: PrivacyBudget, n_classes: int) -> None:
        self.budget, self._n_classes = budget, n_classes

    def aggregator(self, setting: Setting) -> Aggregator:
        """Return the aggregator of a setting with its noise right to about 2 %, at once; for simulation."""
        if setting.max_unstable is not None:
            return self.exact(setting)
        sigma = self.rough_sigma(setting.n_queries, setting.release)
        return GaussianAggregator(
            sigma, setting.n_queries, n_classes=self._n_classes, release=setting.release, budget=self.budget
        )

    def exact(self, setting: Setting) -> Aggregator:
        """Return the aggregator that a run of the setting would use; may take seconds for many labels.

        Raises
        ------
        ParameterError
            If no noise keeps the budget.
        """
        if setting.max_unstable is None:
            return GaussianAggregator.calibrate(
                self.budget,
                setting.n_queries,
                n_classes=self._n_classes,
                n_teachers=setting.n_teachers,
                release=setting.release,
            )
        event = _event(self.budget, setting.max_unstable)
        if event is None:
            raise ParameterError(f"No sparse vector with max_unstable {setting.max_unstable} keeps the budget.")
        return SparseVectorAggregator(
            event.threshold_scale,
            event.query_scale,
            event.threshold,
            event.max_unstable,
            refresh=event.refresh,
            n_queries=setting.n_queries,
            n_classes=self._n_classes,
            budget=self.budget,
            calibration="tight",
        )

    def event(self, max_unstable: int) -> SparseVectorEvent | None:
        """Return the calibrated sparse vector, None where there is none."""
        return _event(self.budget, max_unstable)

    def rough_sigma(self, n_queries: int, release: str) -> float:
        """Return the sigma of Gaussian voting, in votes, to about 2 %."""
        if self._n_classes > 2 or release == "counts":
            shifts = n_queries if self._n_classes == 2 else 2 * n_queries
            return _unit_of_counts(self.budget) * math.sqrt(shifts)
        units = [_unit_of_labels(self.budget, anchor) for anchor in ANCHORS]
        unit = float(np.interp(math.log(n_queries), np.log(ANCHORS), units))
        return unit * math.sqrt(n_queries) * (SETTLED if n_queries >= 3 * ANCHORS[-1] else 1.0)


def stated_noise(aggregator: Aggregator) -> float:
    """Return sigma, or the margin that a sparse vector answers nine times in ten, in votes."""
    if isinstance(aggregator, GaussianAggregator):
        return aggregator.sigma
    assert isinstance(aggregator, SparseVectorAggregator)
    return 2 * math.ceil(needed_distance(aggregator.mechanism.event(), USUALLY_ANSWERED)) + 1.0


@lru_cache(1024)
def _event(budget: PrivacyBudget, max_unstable: int) -> SparseVectorEvent | None:
    try:
        return calibrate_sparse_vector(budget, max_unstable)
    except ParameterError:
        return None


@lru_cache(1024)
def _unit_of_counts(budget: PrivacyBudget) -> float:
    return calibrate_gaussian(budget, 100) / 10


@lru_cache(1024)
def _unit_of_labels(budget: PrivacyBudget, n_queries: int) -> float:
    return calibrate_label_gaussian(budget, n_queries) / math.sqrt(n_queries)
