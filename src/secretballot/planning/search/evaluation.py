"""Evaluate settings: forecast many, try the best few with students, and say what to expect."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from secretballot._typing import FloatArray
from secretballot.planning.plan.estimates import Estimate
from secretballot.planning.plan.model import (
    INTERACTIVE,
    STREAMS,
    TABLE,
    Candidate,
    Expected,
    Setting,
    Task,
)
from secretballot.planning.search.settings import (
    ACTIVE,
    Noise,
    confident_settings,
    interactive_settings,
    noisy_settings,
    stated_noise,
    stream_settings,
    table_setting,
    teacher_counts,
)
from secretballot.planning.simulation.forecast import (
    Forecast,
    RoughForecast,
    forecast,
    forecast_interactive,
    forecast_stream,
    vote_accuracy,
)
from secretballot.planning.simulation.votes import RunOutcome, VoteModel

# How many right labels bring a student half of its way is unknown before it is tried, so settings
# are ranked for students that learn from few, from some and from many.
HALFWAY_LABELS = (5.0, 50.0, 500.0)
DEVIATIONS = 1.645  # nine runs of ten
LEAST_WIDTH = 0.005
INDIFFERENT = 0.001  # accuracies that differ less are as good as each other
NAIVE_TEACHERS = 250
LEAST_INFORMATION = 1.0  # equivalent right labels
# queries of the active settings that are evaluated, beside the longest that can be simulated
ACTIVE_LENGTHS = (0.15, 0.4, 1.0)
# of interactive ones a single one: each takes two to three times as long to simulate, and none was
# measured to be better than labels asked in rounds
INTERACTIVE_LENGTHS = (0.15,)


@dataclass(frozen=True)
class Tried:
    """A setting with the accuracies of its students, one for each fold that was tried."""

    setting: Setting
    accuracies: FloatArray

    @property
    def mean(self) -> float:
        return float(self.accuracies.mean())


class Evaluation:
    """The settings of one task under one model.

    Votes and their forecasts take most of the time, so they are kept and shared with changed tasks.

    Parameters
    ----------
    task : Task
    model : VoteModel
    n_teachers : int or None
        K where it is given, None where it is to be chosen.
    """

    def __init__(self, task: Task, model: VoteModel, n_teachers: int | None = None) -> None:
        self.task, self.model, self.given = task, model, n_teachers
        self.noise = Noise(task.budget, task.n_classes)
        self._rough: dict[tuple[int, int], RoughForecast] = {}
        self._outcomes: dict[tuple[Setting, int], RunOutcome] = {}

    def changed(self, task: Task, model: VoteModel | None = None) -> "Evaluation":
        """Return the evaluation of a changed task; what is known of the votes is shared."""
        other = Evaluation(task, self.model if model is None else model, self.given)
        other._rough = self._rough
        return other

    @property
    def teachers(self) -> list[int]:
        """Numbers of teachers that are evaluated; none where the given one is out of range."""
        least, most = self.model.teacher_range(self.task.n_records)
        if self.given is not None:
            return [self.given] if least <= self.given <= most else []
        return teacher_counts(least, most, self.task.n_records)

    def rough(self, setting: Setting) -> Forecast:
        """Return the forecast of a setting from one fold's votes, its noise right to some %."""
        key = (setting.n_teachers, self.task.n_records)
        if key not in self._rough:
            self._rough[key] = RoughForecast(self.model.votes(*key, 0))
        if setting.mechanism == "laplace":
            return forecast(self.model.votes(*key, 0), self.noise.laplace(setting))
        if setting.mechanism in (TABLE, "confident"):
            return forecast(self.model.votes(*key, 0), self.noise.terms(setting))
        if setting.mechanism == INTERACTIVE:
            return self._rough_interactive(setting, self._rough[key])
        if setting.max_abstentions is None:
            return self._rough[key].gaussian(
                self.noise.sigma(setting), setting.n_queries, setting.release
            )
        event = self.noise.event_of(setting)
        return forecast_stream(self.model.votes(*key, 0), event, setting.n_queries)

    def _rough_interactive(self, setting: Setting, votes: RoughForecast) -> Forecast:
        """Return the forecast with a student that agrees with the votes as often as one is right
        that learnt from as many labels under noise."""
        answers = setting.max_answers or 1
        like = Setting(setting.n_teachers, "gaussian", "labels", answers)
        labels = votes.gaussian(self.noise.sigma(like), answers, "labels")
        terms = self.noise.terms(setting)
        sample = self.model.votes(setting.n_teachers, self.task.n_records, 0)
        # votes that are worse than chance teach nobody; a student that guesses agrees by chance
        accuracy = self._predicted_accuracy(labels, HALFWAY_LABELS[1])
        agreement = min(1.0, max(1 / self.task.n_classes, accuracy))
        return forecast_interactive(sample, terms, agreement)

    def teaches(self, setting: Setting) -> bool:
        """Return whether the answers carry as much information as one right label.

        What students learn from less is luck.
        """
        return self.rough(setting).information >= LEAST_INFORMATION

    def shortlist(self, stops: tuple[int, ...], most: int) -> list[Setting]:
        """Return up to `most` settings of each kind that teach, for each of `HALFWAY_LABELS`."""
        # each kind has places of its own: a forecast ranks settings but cannot tell how students of
        # labels and of counts compare, so only trying them may rule a kind out
        chosen: dict[Setting, None] = {}
        kinds: dict[str, list[tuple[Setting, Forecast]]] = {
            "labels": [],
            "counts": [],
            **{name: [] for name in STREAMS},
            "confident": [],
            TABLE: [],
            INTERACTIVE: [],
        }
        for k in self.teachers:
            for setting in self._forecast_settings(k, stops):
                answers_all = setting.mechanism in ("gaussian", "laplace")
                kind = setting.release if answers_all else setting.mechanism
                if self.teaches(setting):
                    kinds[kind].append((setting, self.rough(setting)))
        for forecasts in kinds.values():
            for halfway in HALFWAY_LABELS:
                ranked = sorted(
                    forecasts, key=lambda pair: -self._predicted_accuracy(pair[1], halfway)
                )
                chosen.update(dict.fromkeys(setting for setting, _ in ranked[:most]))
        return list(chosen)

    def _forecast_settings(self, n_teachers: int, stops: tuple[int, ...]) -> Iterator[Setting]:
        """Yield the settings that are ranked by a forecast: those of the mechanism that the task
        asks for, else of all that are asked at random and stand for a kind of their own."""
        only = self.task.mechanism
        if only == INTERACTIVE:
            yield from self._interactive_settings([n_teachers])
        elif only == TABLE:
            yield from self.tables(noisy_settings(self.task, n_teachers))
        else:
            for setting in (
                *noisy_settings(self.task, n_teachers),
                *stream_settings(self.task, n_teachers, self.noise, stops),
                *confident_settings(self.task, n_teachers),
            ):
                if only in (None, setting.mechanism):
                    yield setting

    def _predicted_accuracy(self, outlook: Forecast, halfway: float) -> float:
        """Return the accuracy of a student that is halfway after so many right labels.

        Its error falls with the square root of their number.
        """
        guess = 1 / self.task.n_classes
        learnt = 1 - 1 / math.sqrt(1 + outlook.information / halfway)
        return guess + (outlook.vote_accuracy - guess) * learnt

    def outcome(self, setting: Setting, fold: int) -> RunOutcome:
        """Return what came of one simulated run in one fold."""
        key = (setting, fold)
        if key not in self._outcomes:
            noise = self.noise.terms(setting)
            self._outcomes[key] = self.model.simulate(setting, noise, self.task.n_records, fold)
        return self._outcomes[key]

    def tried(self, settings: Iterable[Setting], n_folds: int) -> list[Tried]:
        """Try settings on the first folds; the best student on average comes first."""
        found = [
            Tried(
                setting,
                np.array([self.outcome(setting, fold).student for fold in range(n_folds)]),
            )
            for setting in settings
        ]
        return sorted(found, key=lambda one: -one.mean)

    def candidate(self, tried: Tried, spread: "Spread", *, exact: bool = False) -> Candidate:
        """Return what to expect of a setting, from the forecasts of the folds that were tried.

        Parameters
        ----------
        tried : Tried
        spread : Spread
        exact : bool
            Calibrate as a run would, where that is quick.
        """
        setting = tried.setting
        terms = self.noise.calibrated(setting) if exact else self.noise.terms(setting)
        samples = [
            self.model.votes(setting.n_teachers, self.task.n_records, fold)
            for fold in range(len(tried.accuracies))
        ]
        # the range of a share depends on how many points it was measured on
        known = min(len(sample.truth) for sample in samples)
        if setting.mechanism == INTERACTIVE:  # what it answers follows from its students
            answered = self._counted_answers(setting, len(samples))
            labels = self._counted_accuracies(setting, len(samples))
        else:
            outlooks = [forecast(sample, terms) for sample in samples]
            answered = _answer_estimate(outlooks)
            labels = self._label_accuracies(setting, outlooks)
        votes = np.array([vote_accuracy(sample) for sample in samples])
        expected = Expected(
            answered=answered,
            vote_accuracy=_share_estimate(votes, known, self.task.n_public),
            label_accuracy=_share_estimate(labels, known, answered.value),
            student_accuracy=spread.estimate(tried.accuracies),
        )
        return Candidate(setting, stated_noise(terms), expected)

    def _label_accuracies(self, setting: Setting, outlooks: Sequence[Forecast]) -> FloatArray:
        """Return the share of right labels per fold, computed where points are asked at random."""
        if setting.strategy == "passive":
            return np.array([outlook.label_accuracy for outlook in outlooks])
        # a strategy asks where it is hard to tell, so the labels of its points are worse than those
        # of the pool
        return self._counted_accuracies(setting, len(outlooks))

    def _counted_accuracies(self, setting: Setting, n_folds: int) -> FloatArray:
        """Return the share of right labels of each simulated run, 0 of one without answers."""
        outcomes = (self.outcome(setting, fold).labels for fold in range(n_folds))
        return np.array([0.0 if labels is None else labels for labels in outcomes])

    def _counted_answers(self, setting: Setting, n_folds: int) -> Estimate:
        """Return the answers of simulated runs: their mean, and the range of nine runs of ten."""
        found = np.array([self.outcome(setting, fold).answered or 0.0 for fold in range(n_folds)])
        most = float(setting.max_answers or setting.n_queries)
        value = float(found.mean())
        # runs differ at least as independent answers would
        alone = value * max(0.0, 1 - value / setting.n_queries)
        between = float(found.var(ddof=1)) if n_folds > 1 else 0.0
        width = DEVIATIONS * math.sqrt(max(alone, between) * (1 + 1 / n_folds))
        return Estimate(value, max(0.0, value - width), min(most, value + width))

    def tables(self, settings: Iterable[Setting]) -> list[Setting]:
        """Return the tables of chances that give labels in the place of Gaussian noise."""
        found = (table_setting(setting, self.task) for setting in settings)
        return [setting for setting in found if setting is not None]

    def spread(self, tried: Sequence[Tried]) -> "Spread":
        """Return how students differ between folds and between runs."""
        return Spread.of(tried, self.model.folds_average_out)

    def active(self) -> list[Setting]:
        """Return the most promising settings of labels asked in rounds that can be simulated."""
        found: list[Setting] = []
        if self.task.mechanism in (None, "gaussian", "laplace"):
            # where every point is asked, there is nothing to choose in rounds
            noisy = [
                setting
                for k in self.teachers
                for setting in noisy_settings(self.task, k)
                if setting.release == "labels" and setting.n_queries < self.task.n_public
                if self.model.can_simulate(replace(setting, strategy=ACTIVE))
                and self.teaches(setting)
            ]
            found += [
                replace(setting, strategy=ACTIVE)
                for setting in self._best_by_length(noisy, ACTIVE_LENGTHS)
            ]
        if self.task.mechanism is None:
            interactive = [
                setting
                for setting in self._interactive_settings(self.teachers)
                if self.teaches(setting)
            ]
            found += self._best_by_length(interactive, INTERACTIVE_LENGTHS)
        return found

    def _interactive_settings(self, teachers: Iterable[int]) -> Iterator[Setting]:
        """Yield interactive voting that can be simulated: nothing else says how good a student is
        between rounds."""
        for k in teachers:
            for setting in interactive_settings(self.task, k):
                if self.model.can_simulate(setting):
                    yield setting

    def _best_by_length(
        self, settings: Sequence[Setting], lengths: Iterable[float]
    ) -> list[Setting]:
        """Return the best by their forecasts of those that ask at most each of these shares of the
        longest."""
        # few labels, chosen well, may teach what many at random do; a forecast for random points
        # cannot tell
        longest = max((setting.n_queries for setting in settings), default=0)
        best = [
            max(
                (setting for setting in settings if setting.n_queries <= share * longest),
                key=lambda setting: self._predicted_accuracy(
                    self.rough(setting), HALFWAY_LABELS[1]
                ),
                default=None,
            )
            for share in lengths
        ]
        return [setting for setting in dict.fromkeys(best) if setting is not None]


def naive_settings(evaluation: Evaluation) -> list[Setting]:
    """Return what one would do without a plan: about 250 teachers, all public points.

    None where it is another mechanism's.
    """
    k = min(evaluation.teachers, key=lambda teachers: abs(math.log(teachers / NAIVE_TEACHERS)))
    least, most = evaluation.model.teacher_range(evaluation.task.n_records)
    if len(evaluation.teachers) > 1:
        k = min(max(NAIVE_TEACHERS, least), most)
    only = evaluation.task.mechanism
    kind = "gaussian" if evaluation.task.delta > 0 and only != "laplace" else "laplace"
    if only not in (None, kind):
        return []
    return [Setting(k, kind, release, evaluation.task.n_public) for release in ("labels", "counts")]


def best_of(tried: Sequence[Tried]) -> Tried:
    """Return the plainest of those as good as the best: at random, not interactive, few queries,
    few teachers, no table."""
    best = max(tried, key=lambda one: one.mean)
    as_good = (one for one in tried if best.mean - one.mean <= INDIFFERENT)
    return min(as_good, key=lambda one: _plainness_rank(one.setting))


def _plainness_rank(setting: Setting) -> tuple[bool, bool, int, int, bool]:
    in_rounds, kind = setting.strategy != "passive", setting.mechanism
    sizes = setting.n_queries, setting.n_teachers
    return in_rounds, kind == INTERACTIVE, *sizes, kind == TABLE


@dataclass(frozen=True)
class Spread:
    """How students differ: by the fold, which all settings share, and by the run.

    Attributes
    ----------
    folds : ndarray of shape (n_folds,)
        What each fold adds to every setting's accuracy.
    run : float
        Usual deviation of one run beside it.
    average_out : bool
        Whether the mean over folds is surer than each.
    """

    folds: FloatArray
    run: float
    average_out: bool

    @classmethod
    def of(cls, tried: Sequence[Tried], average_out: bool) -> "Spread":
        """Return the spread of settings that were tried, on some folds or more."""
        least, most = (choose(len(one.accuracies) for one in tried) for choose in (min, max))
        # levels are compared on the folds that all settings have seen; otherwise a setting tried
        # on easy folds alone would make the later folds look hard
        levels = [float(one.accuracies[:least].mean()) for one in tried]
        folds = np.array(
            [
                np.mean(
                    [
                        one.accuracies[f] - level
                        for one, level in zip(tried, levels, strict=True)
                        if _was_tried_on(one, f)
                    ]
                )
                for f in range(most)
            ]
        )
        beside = [float(np.std(one.accuracies[:least] - folds[:least])) for one in tried]
        # one degree of freedom of each setting went into its level, one of each fold into what it
        # adds
        lost = (1 - 1 / least) * (1 - 1 / len(tried)) if least > 1 and len(tried) > 1 else 1.0
        return cls(folds, float(np.median(beside)) / math.sqrt(lost), average_out)

    def estimate(self, accuracies: FloatArray) -> Estimate:
        """Return the mean of a setting's students, and the range of nine further runs of ten.

        Parameters
        ----------
        accuracies : array of shape (n_folds,)
        """
        n, value = len(accuracies), float(np.clip(accuracies.mean(), 0.0, 1.0))
        own = float((accuracies - self.folds[:n]).std(ddof=1)) if n > 1 else 0.0
        fold = float(self.folds[:n].std(ddof=1)) if n > 1 else 0.0
        # a further run has the spread of a run and that of the mean it is compared with; folds
        # that average out are a spread of the mean alone
        return _clipped_estimate(
            value, max(own, self.run) ** 2 * (1 + 1 / n) + fold**2 / (n if self.average_out else 1)
        )


def _was_tried_on(one: Tried, fold: int) -> bool:
    return fold < len(one.accuracies)


def _answer_estimate(outlooks: Sequence[Forecast]) -> Estimate:
    value = float(np.mean([outlook.answered for outlook in outlooks]))
    low = min(outlook.answered_low for outlook in outlooks)
    return Estimate(
        value, min(low, value), max(value, *(outlook.answered_high for outlook in outlooks))
    )


def _share_estimate(values: FloatArray, known: int, drawn: float) -> Estimate:
    """Return a share's mean over folds, and its range among `drawn` points, `known` points wide."""
    n, value = len(values), float(np.clip(values.mean(), 0.0, 1.0))
    between = float(values.var(ddof=1)) if n > 1 else 0.0
    return _clipped_estimate(
        value, between * (1 + 1 / n) + value * (1 - value) * (1 / known + 1 / max(drawn, 1.0))
    )


def _clipped_estimate(value: float, variance: float) -> Estimate:
    width = max(LEAST_WIDTH, DEVIATIONS * math.sqrt(variance))
    return Estimate(value, max(0.0, value - width), min(1.0, value + width))
