"""Weigh settings: forecast many from the noise's law, try the few best with students, and say what to expect."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from secretballot.planning.forecast import Forecast, RoughForecast, forecast, forecast_stream
from secretballot.planning.plan import Candidate, Estimate, Expected, Setting, Task
from secretballot.planning.settings import Noise, gaussian_settings, stated_noise, stream_settings, teacher_counts
from secretballot.planning.votes import VoteModel

__all__ = ["Weighing", "best_of", "naive_settings", "rehearsed"]

FloatArray = NDArray[np.float64]

# How many right labels bring a student half of its way is unknown before it is tried, so settings are ranked for
# students that learn from few, from some and from many.
APPETITES = (5.0, 50.0, 500.0)
DEVIATIONS = 1.645  # nine runs of ten
LEAST_WIDTH = 0.005
INDIFFERENT = 0.0025  # accuracies that differ less are as good as each other
NAIVE_TEACHERS = 250
ACTIVE = "margin"


@dataclass(frozen=True)
class _Tried:
    """A setting with the accuracies of its students, one for each fold that was tried."""

    setting: Setting
    accuracies: FloatArray

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean())


class Weighing:
    """The settings of one task under one model; votes and their forecasts are kept and shared with changed tasks.

    Parameters
    ----------
    task : Task
    model : VoteModel
    n_teachers : int or None
        K where it is given, None where it is to be chosen.
    """

    def __init__(self, task: Task, model: VoteModel, n_teachers: int | None = None) -> None:
        self.task, self.model, self._given = task, model, n_teachers
        self.noise = Noise(task.budget, task.n_classes)
        self._rough: dict[tuple[int, int], RoughForecast] = {}
        self._students: dict[tuple[Setting, int], float] = {}

    def changed(self, task: Task, model: VoteModel | None = None) -> "Weighing":
        """Return a weighing of a task that differs; what is known of the votes is shared."""
        other = Weighing(task, self.model if model is None else model, self._given)
        other._rough = self._rough
        return other

    @property
    def teachers(self) -> list[int]:
        """Numbers of teachers that are weighed."""
        if self._given is not None:
            return [self._given]
        return teacher_counts(*self.model.teacher_range(self.task.n_records), self.task.n_records)

    def rough(self, setting: Setting) -> Forecast:
        """Return the forecast of a setting from one fold's votes and noise that is right to about 2 %."""
        key = (setting.n_teachers, self.task.n_records)
        if key not in self._rough:
            self._rough[key] = RoughForecast(self.model.votes(*key, 0))
        if setting.max_unstable is None:
            sigma = self.noise.rough_sigma(setting.n_queries, setting.release)
            return self._rough[key].gaussian(sigma, setting.n_queries, setting.release)
        event = self.noise.event(setting.max_unstable)
        assert event is not None
        return forecast_stream(self.model.votes(*key, 0), event, setting.n_queries)

    def shortlist(self, stops: tuple[int, ...], most: int) -> list[Setting]:
        """Return up to `most` settings of each kind and appetite, by what the noise's law promises."""
        chosen: dict[Setting, None] = {}
        kinds: dict[str, list[tuple[Setting, Forecast]]] = {"labels": [], "counts": [], "sparse-vector": []}
        for k in self.teachers:
            for setting in (*gaussian_settings(self.task, k), *stream_settings(self.task, k, self.noise, stops)):
                kind = setting.release if setting.max_unstable is None else setting.aggregator
                kinds[kind].append((setting, self.rough(setting)))
        for forecasts in kinds.values():
            for appetite in APPETITES:
                ranked = sorted(forecasts, key=lambda pair: -self._promise(pair[1], appetite))
                chosen.update(dict.fromkeys(setting for setting, _ in ranked[:most]))
        return list(chosen)

    def _promise(self, outlook: Forecast, appetite: float) -> float:
        """Return the accuracy of a student that such an appetite would have, error falling with the square root."""
        guess = 1 / self.task.n_classes
        learnt = 1 - 1 / math.sqrt(1 + outlook.information / appetite)
        return guess + (outlook.vote_accuracy - guess) * learnt

    def student(self, setting: Setting, fold: int) -> float:
        """Return the accuracy of one student of one fold."""
        key = (setting, fold)
        if key not in self._students:
            noise = self.noise.aggregator(setting)
            self._students[key] = self.model.student_accuracy(setting, noise, self.task.n_records, fold)
        return self._students[key]

    def tried(self, settings: Iterable[Setting], n_folds: int) -> list[_Tried]:
        """Try settings on the first folds; the best student on average comes first."""
        found = [
            _Tried(setting, np.array([self.student(setting, fold) for fold in range(n_folds)])) for setting in settings
        ]
        return sorted(found, key=lambda one: -one.mean)

    def candidate(self, tried: _Tried, *, exact: bool = False, spread: float = 0.0) -> Candidate:
        """Return what to expect of a setting, from the forecasts of the folds that were tried.

        Parameters
        ----------
        tried : _Tried
        exact : bool
            Calibrate as a run would, rather than to about 2 %.
        spread : float
            Least deviation of one student, where few folds say little of it.
        """
        setting = tried.setting
        aggregator = self.noise.exact(setting) if exact else self.noise.aggregator(setting)
        outlooks = [
            forecast(self.model.votes(setting.n_teachers, self.task.n_records, fold), aggregator)
            for fold in range(len(tried.accuracies))
        ]
        answered = _answered(outlooks)
        labels = np.array([outlook.label_accuracy for outlook in outlooks])
        drawn = float(labels.mean() * (1 - labels.mean())) / max(answered.value, 1.0)
        votes = np.array([outlook.vote_accuracy for outlook in outlooks])
        pool = float(votes.mean() * (1 - votes.mean())) / self.task.n_public
        expected = Expected(
            answered=answered,
            vote_accuracy=_estimate(votes, extra=pool),
            label_accuracy=_estimate(labels, extra=drawn),
            student_accuracy=_estimate(tried.accuracies, least=spread),
        )
        return Candidate(setting, stated_noise(aggregator), expected)

    def active(self, tried: Sequence[_Tried], most: int) -> list[Setting]:
        """Return the best settings of labels as they would be asked in rounds, where the model can simulate that."""
        asked = [replace(one.setting, strategy=ACTIVE) for one in tried if _asks_part(one.setting, self.task)]
        return [setting for setting in asked if self.model.can_walk(setting)][:most]


def _asks_part(setting: Setting, task: Task) -> bool:
    return setting.aggregator == "gaussian" and setting.release == "labels" and setting.n_queries < task.n_public


def naive_settings(weighing: Weighing) -> list[Setting]:
    """Return what one would do without a plan: 250 teachers or as near as can be, all public points."""
    k = min(weighing.teachers, key=lambda teachers: abs(math.log(teachers / NAIVE_TEACHERS)))
    least, most = weighing.model.teacher_range(weighing.task.n_records)
    if len(weighing.teachers) > 1:
        k = min(max(NAIVE_TEACHERS, least), most)
    return [Setting(k, "gaussian", release, weighing.task.n_public) for release in ("labels", "counts")]


def best_of(tried: Sequence[_Tried]) -> _Tried:
    """Return the best, or the plainest of those as good: asked at random, then fewer queries, then fewer teachers."""
    best = max(tried, key=lambda one: one.mean)

    def as_good(one: _Tried) -> bool:
        n = min(len(one.accuracies), len(best.accuracies))
        behind = best.accuracies[:n] - one.accuracies[:n]
        error = float(behind.std(ddof=1)) / math.sqrt(n) if n > 1 else 0.0
        return float(behind.mean()) <= max(INDIFFERENT, min(error, 2 * INDIFFERENT))

    return min(filter(as_good, tried), key=lambda one: _plainness(one.setting))


def _plainness(setting: Setting) -> tuple[bool, int, int]:
    return setting.strategy != "passive", setting.n_queries, setting.n_teachers


def rehearsed(tried: Sequence[_Tried]) -> float:
    """Return the usual deviation of one student between folds."""
    return float(np.median([one.accuracies.std(ddof=1) for one in tried if len(one.accuracies) > 1] or [0.0]))


def _answered(outlooks: Sequence[Forecast]) -> Estimate:
    value = float(np.mean([outlook.answered for outlook in outlooks]))
    low = min(outlook.answered_low for outlook in outlooks)
    return Estimate(value, min(low, value), max(value, *(outlook.answered_high for outlook in outlooks)))


def _estimate(values: FloatArray, *, extra: float = 0.0, least: float = 0.0) -> Estimate:
    """Return the mean and the range of nine further values of ten, of which `extra` is a variance of their own."""
    n, value = len(values), float(np.clip(values.mean(), 0.0, 1.0))
    deviation = max(float(values.std(ddof=1)) if n > 1 else 0.0, least)
    width = max(LEAST_WIDTH, DEVIATIONS * math.sqrt(deviation**2 * (1 + 1 / n) + extra))
    return Estimate(value, max(0.0, value - width), min(1.0, value + width))
