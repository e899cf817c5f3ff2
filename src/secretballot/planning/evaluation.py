"""Evaluate settings: forecast many, try the best few with students, and say what to expect."""

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from secretballot._typing import FloatArray
from secretballot.accounting.recipes import Terms
from secretballot.planning.plan_model import TABLE, Candidate, Estimate, Setting, Task
from secretballot.planning.settings import (
    ACTIVE,
    settings_of,
    stated_noise,
    teacher_counts,
    terms_of,
)
from secretballot.planning.stand_in import RunOutcome, StandInModel
from secretballot.planning.votes_forecast import Forecast, forecast

# How many right labels bring a student half of its way is unknown before it is tried, so settings
# are ranked for students that learn from few, from some and from many.
FEW, SOME, MANY = 5.0, 50.0, 500.0
DEVIATIONS = 2.0  # to either side for nine runs of ten, of a spread that some six numbers tell
_LEAST_WIDTH = 0.005
_INDIFFERENT = 0.001  # accuracies that differ less are as good as each other
_LEAST_INFORMATION = 1.0  # equivalent right labels; what students learn from less is luck
# queries of the settings that ask in rounds, beside the longest that can be simulated
ACTIVE_LENGTHS = (0.15, 0.4, 1.0)


@dataclass(frozen=True)
class Tried:
    """A setting with what came of its runs, one for each fold that was tried."""

    setting: Setting
    outcomes: tuple[RunOutcome, ...]

    @property
    def students(self) -> FloatArray:
        """Accuracy of the student of every run, shape (n_folds,)."""
        return np.array([one.student for one in self.outcomes])

    @property
    def mean(self) -> float:
        """Mean accuracy of the students."""
        return float(self.students.mean())


class Evaluation:
    """The settings of one task under one model.

    Parameters
    ----------
    task : Task
    model : StandInModel
    """

    def __init__(self, task: Task, model: StandInModel) -> None:
        self.task, self.model = task, model
        self._terms = functools.cache(functools.partial(terms_of, task))
        self.outcome = functools.cache(self._simulated)

    def terms(self, setting: Setting) -> Terms:
        """Return the mechanism of a setting that can be had."""
        terms: Terms | None = self._terms(setting)
        assert terms is not None
        return terms

    def rough(self, setting: Setting) -> Forecast:
        """Return the forecast of a setting from one fold's votes."""
        sample = self.model.votes(setting.n_teachers, self.task.n_records, 0)
        return forecast(sample, self.terms(setting))

    def can_be_had(self, setting: Setting) -> bool:
        """Return whether the task can have a setting that another task had."""
        least, most = self.model.teacher_range(self.task.n_records)
        return (
            least <= setting.n_teachers <= most
            and setting.n_queries <= self.task.n_public
            and self.model.can_simulate(setting)
            and self._terms(setting) is not None
            and self.rough(setting).information >= _LEAST_INFORMATION
        )

    def shortlist(self, most: int, *, thorough: bool = True) -> list[Setting]:
        """Return up to `most` settings of each kind that teach, for students of every sort; where
        it need not be thorough, of those that answer every query at random points, for one sort."""
        # each kind has places of its own: a forecast ranks settings but cannot tell how students of
        # labels and of counts compare, so only trying them may rule a kind out
        kinds: dict[str, list[tuple[Setting, Forecast]]] = {}
        least, greatest = self.model.teacher_range(self.task.n_records)
        for k in teacher_counts(least, greatest, self.task.n_records):
            for setting in settings_of(self.task, k, thorough=thorough):
                outlook = self.rough(setting)
                if outlook.information >= _LEAST_INFORMATION:
                    answers_all = setting.mechanism in ("gaussian", "laplace")
                    kind = setting.release if answers_all else setting.mechanism
                    kinds.setdefault(kind, []).append((setting, outlook))
        chosen = [
            setting
            for found in kinds.values()
            for halfway in ((FEW, SOME, MANY) if thorough else (SOME,))
            for setting in self._best(found, halfway)[:most]
        ]
        if thorough:
            chosen += self._active(kinds.get("labels", []))
        return list(dict.fromkeys(chosen))

    def _best(self, found: Sequence[tuple[Setting, Forecast]], halfway: float) -> list[Setting]:
        """Return settings by the accuracy of a student that is halfway after so many right labels:
        its error falls with the square root of their number."""
        guess = 1 / self.task.n_classes

        def accuracy(pair: tuple[Setting, Forecast]) -> float:
            learnt = 1 - 1 / math.sqrt(1 + pair[1].information / halfway)
            return guess + (pair[1].vote_accuracy - guess) * learnt

        return [setting for setting, _ in sorted(found, key=accuracy, reverse=True)]

    def _active(self, labels: Sequence[tuple[Setting, Forecast]]) -> list[Setting]:
        """Return labels asked in rounds, the best by their forecasts of those that ask at most some
        shares of the longest that can be simulated."""
        # few labels, chosen well, may teach what many at random do; a forecast for random points
        # cannot tell. Where every point is asked there is nothing to choose.
        found = [
            (active, outlook)
            for setting, outlook in labels
            if setting.n_queries < self.task.n_public
            and self.model.can_simulate(active := replace(setting, strategy=ACTIVE))
        ]
        longest = max((setting.n_queries for setting, _ in found), default=0)
        return [
            setting
            for share in ACTIVE_LENGTHS
            for setting in self._best(
                [pair for pair in found if pair[0].n_queries <= share * longest], SOME
            )[:1]
        ]

    def _simulated(self, setting: Setting, fold: int) -> RunOutcome:
        """Return what came of one simulated run in one fold."""
        return self.model.simulate(setting, self.terms(setting), self.task.n_records, fold)

    def tried(self, settings: Iterable[Setting], n_folds: int) -> list[Tried]:
        """Try settings on the first folds; the best student on average comes first."""
        found = [
            Tried(setting, tuple(self.outcome(setting, fold) for fold in range(n_folds)))
            for setting in settings
        ]
        return sorted(found, key=lambda one: -one.mean)

    def candidate(self, tried: Tried, spread: "Spread") -> Candidate:
        """Return what to expect of a setting, from the runs that were tried."""
        setting, n = tried.setting, len(tried.outcomes)
        counts = np.array([one.answered for one in tried.outcomes])
        value = float(counts.mean())
        # runs differ at least as independent answers would
        alone = value * max(0.0, 1 - value / setting.n_queries)
        width = DEVIATIONS * math.sqrt(max(alone, _variance(counts)) * (1 + 1 / n))
        most = max(value, float(setting.max_answers or setting.n_queries))
        answered = Estimate(value, max(0.0, value - width), min(most, value + width))
        accuracy = spread.estimate(tried.students)
        return Candidate(setting, stated_noise(self.terms(setting)), answered, accuracy)


def best_of(tried: Sequence[Tried]) -> Tried:
    """Return the plainest of those as good as the best: at random, few queries, few teachers, no
    table."""
    best = max(tried, key=lambda one: one.mean)
    as_good = (one for one in tried if best.mean - one.mean <= _INDIFFERENT)

    def plainness(one: Tried) -> tuple[bool, int, int, bool]:
        setting = one.setting
        sizes = setting.n_queries, setting.n_teachers
        return setting.strategy != "passive", *sizes, setting.mechanism == TABLE

    return min(as_good, key=plainness)


@dataclass(frozen=True)
class Spread:
    """How students differ: by the fold, which all settings share, and by the run.

    Attributes
    ----------
    folds : ndarray of shape (n_folds,)
        What each fold adds to every setting's accuracy.
    run : float
        Variance of one run beside it.
    """

    folds: FloatArray
    run: float

    @classmethod
    def of(cls, tried: Sequence[Tried]) -> "Spread":
        """Return the spread of settings that were tried on the same folds."""
        found = np.array([one.students for one in tried])
        n_settings, n_folds = found.shape
        if n_settings < 2 or n_folds < 2:  # the two cannot be distinguished
            return cls(np.zeros(n_folds), _variance(found.ravel()))
        folds = found.mean(axis=0) - found.mean()
        beside = found - folds - found.mean(axis=1)[:, None]
        run = float(np.sum(beside**2)) / ((n_settings - 1) * (n_folds - 1))
        return cls(folds, run)

    def estimate(self, accuracies: FloatArray) -> Estimate:
        """Return the mean of a setting's students, and the range of nine further runs of ten.

        Parameters
        ----------
        accuracies : array of shape (n_folds,)
            Of the first folds, or all.
        """
        n, fold = len(accuracies), _variance(self.folds)
        # a further run has the spread of a run and that of the mean it is compared with; folds
        # that average out are a spread of the mean alone
        variance = self.run * (1 + 1 / n) + fold / len(self.folds)
        value = float(np.clip((accuracies - self.folds[:n]).mean(), 0.0, 1.0))
        width = max(_LEAST_WIDTH, DEVIATIONS * math.sqrt(variance))
        return Estimate(value, max(0.0, value - width), min(1.0, value + width))


def _variance(values: FloatArray) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0
