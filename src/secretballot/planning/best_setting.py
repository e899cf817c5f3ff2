"""Find the best setting of a task: forecast many, try the best few with students, and make a plan
of it; no private data are read."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import ParameterError
from secretballot.named_learners import teacher_by_name
from secretballot.planning.plan_model import TABLE, Candidate, Estimate, Plan, Setting, Task
from secretballot.planning.settings import (
    ACTIVE,
    settings_of,
    stated_noise,
    tables_for,
    teacher_counts,
    terms_of,
)
from secretballot.planning.stand_in import Forecast, RunOutcome, StandInModel, forecast
from secretballot.students.fitting import student_by_name

# How many right labels bring a student half of its way is unknown before it is tried, so settings
# are ranked for students that learn from few, from some and from many.
FEW, SOME, MANY = 5.0, 50.0, 500.0
_DEVIATIONS = 2.0  # to either side for nine runs of ten, of a spread that some six numbers tell
_LEAST_WIDTH = 0.005
_INDIFFERENT = 0.001  # accuracies that differ less are as good as each other
_LEAST_INFORMATION = 1.0  # equivalent right labels; what students learn from less is luck
# queries of the settings that ask in rounds, beside the longest that can be simulated
_ACTIVE_LENGTHS = (0.15, 0.4, 1.0)


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


class _Evaluation:
    """The settings of one task under one model.

    Parameters
    ----------
    task : Task
    model : StandInModel
    """

    def __init__(self, task: Task, model: StandInModel) -> None:
        self.task, self.model = task, model
        #: The mechanism of a setting, None where it cannot be had.
        self.terms: Any = functools.cache(functools.partial(terms_of, task))
        self.outcome = functools.cache(self._simulated)

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
            and self.terms(setting) is not None
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
            for share in _ACTIVE_LENGTHS
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

    def candidate(self, tried: Tried, spread: "_Spread") -> Candidate:
        """Return what to expect of a setting, from the runs that were tried."""
        setting, n = tried.setting, len(tried.outcomes)
        counts = np.array([one.answered for one in tried.outcomes])
        value = float(counts.mean())
        # runs differ at least as independent answers would
        alone = value * max(0.0, 1 - value / setting.n_queries)
        width = _DEVIATIONS * math.sqrt(max(alone, _variance(counts)) * (1 + 1 / n))
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
class _Spread:
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
    def of(cls, tried: Sequence[Tried]) -> "_Spread":
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
        width = max(_LEAST_WIDTH, _DEVIATIONS * math.sqrt(variance))
        return Estimate(value, max(0.0, value - width), min(1.0, value + width))


def _variance(values: FloatArray) -> float:
    return float(values.var(ddof=1)) if len(values) > 1 else 0.0


_FOLDS = 4  # of a stand-in, which score on disjoint parts
FRONTIER: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # times the task's epsilon
_FINALISTS = 8
_HALF_OF_FOLDS = 2
_WINNERS = 3
_QUICK_WINNERS = 2  # at other budgets and sizes
_BEYOND_NOISE = 0.005  # by which a student must beat the constant
# and by so much of the range of single runs: about two standard errors of the mean of four folds
_SURELY = 0.6


class ImpossibleTaskError(ParameterError):
    """No setting of votes leads to a student that beats a constant one."""


def plan_votes(
    task: Task,
    X: Any,
    y: IntArray,
    *,
    seed: int = 0,
    progress: Callable[[int, int], object] = lambda done, total: None,
) -> Plan:
    """Say before anything private is touched what votes to choose, what to expect of them, and what
    would be better.

    Settings are forecast by their answers to simulated votes; the best of each kind are tried with
    students on one fold of the stand-in, the best of these on half of the folds, and the winners on
    all of them. Among those as good as the best, the plainest is recommended.

    Parameters
    ----------
    task : Task
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Rows of a stand-in, as `checked_stand_in` returns them with `y`.
    y : ndarray of int64, shape (n_rows,)
    seed : int
        Of the simulation; it never touches noise that protects anything.
    progress : callable, optional
        Takes steps done and steps in all.

    Raises
    ------
    ParameterError
        If a name is unknown, or no setting leads to a student that beats a constant one.

    Privacy
    -------
    Reads no private data: the plan is a function of public numbers and of data that may be shown to
    anyone. It costs nothing.
    """
    # names are looked up before anything is simulated: a typing error should cost no minutes
    model = StandInModel(
        X,
        y,
        n_classes=task.n_classes,
        teacher=teacher_by_name(task.teacher, task.n_classes),
        student=student_by_name(task.student),
        n_public=task.n_public,
        seed=seed,
        n_folds=_FOLDS,
    )
    done, total = itertools.count(1), 3 + len(FRONTIER) + 2

    def step() -> None:
        progress(next(done), total)

    evaluation = _Evaluation(task, model)
    evaluated, spread = _evaluated_candidates(evaluation, step)
    if spread is None or not _beats_constant(evaluated[0], model.constant_accuracy):
        raise ImpossibleTaskError(
            f"epsilon {task.epsilon:g} with {task.n_records} records and {task.n_public} public"
            " points leads by votes to no student that beats the most frequent class, which is"
            f" right on {model.constant_accuracy:.1%}; take more of them, or another method."
        )
    # other budgets and sizes come last: each of their searches begins with the recommended setting
    recommended = evaluated[0]
    frontier = _frontier_points(evaluation, recommended, spread, step)
    improvements = _improvements_of(evaluation, recommended, spread, frontier, step)
    return Plan(
        task=task,
        recommended=recommended,
        evaluated=tuple(sorted(evaluated, key=lambda one: -one.student_accuracy.value)),
        constant_accuracy=float(model.constant_accuracy),
        frontier=frontier,
        improvements=improvements,
        seed=seed,
    )


def _evaluated_candidates(
    evaluation: _Evaluation, step: Callable[[], None]
) -> tuple[list[Candidate], _Spread | None]:
    """Return the candidates that were tried on enough folds, the recommended one first, and how
    far students spread; none if nothing teaches."""
    # students take most of the time: many settings are tried on one fold, fewer on half of them,
    # and the winners on all
    model = evaluation.model
    settings = evaluation.shortlist(3)
    if not settings:
        return [], None
    step()
    first = evaluation.tried(settings, 1)[:_FINALISTS]
    middle = evaluation.tried([one.setting for one in first], _HALF_OF_FOLDS)
    step()
    best_settings = [one.setting for one in middle[:_WINNERS]]
    # a table of chances is sharper than noise or not, as the votes are: tried beside the winners
    # alone, since it ranks settings as noise does
    beside = tables_for(best_settings, evaluation.task)
    winners = evaluation.tried([*best_settings, *beside], model.n_folds)
    # chosen among the winners alone: a mean over fewer folds may be high by luck
    best, spread = best_of(winners), _Spread.of(winners)
    others = [one for one in winners if one is not best] + middle[_WINNERS:]
    step()
    return [evaluation.candidate(one, spread) for one in (best, *others)], spread


def _quick_search(
    evaluation: _Evaluation, warm: Sequence[Setting], spread: _Spread
) -> Candidate | None:
    """Return the best candidate of a shorter search that begins with settings known to be good.

    None if no setting fits.
    """
    known = [setting for setting in warm if evaluation.can_be_had(setting)]
    settings = dict.fromkeys([*known, *evaluation.shortlist(1, thorough=False)])
    if not settings:
        return None
    first = evaluation.tried(settings, 1)[:_QUICK_WINNERS]
    tried = evaluation.tried([one.setting for one in first], evaluation.model.n_folds)
    return evaluation.candidate(best_of(tried), spread)


def _beats_constant(candidate: Candidate, constant: float) -> bool:
    """Return whether its student beats the constant beyond noise."""
    student = candidate.student_accuracy
    return student.value - constant > max(_BEYOND_NOISE, _SURELY * (student.value - student.low))


def _frontier_points(
    evaluation: _Evaluation, recommended: Candidate, spread: _Spread, step: Callable[[], None]
) -> tuple[tuple[float, Estimate | None], ...]:
    """Return the best candidates at other epsilons, in rising order.

    Each search begins with the settings found so far, so that a larger epsilon hardly does worse
    for want of searching.
    """
    points = list[tuple[float, Estimate | None]]()
    warm = [recommended.setting]
    for factor in FRONTIER:
        epsilon = evaluation.task.epsilon * factor
        task = replace(evaluation.task, epsilon=epsilon)
        other = _Evaluation(task, evaluation.model)
        best = recommended if factor == 1 else _quick_search(other, warm, spread)
        useful = best and _beats_constant(best, evaluation.model.constant_accuracy)
        points.append((epsilon, best.student_accuracy if best and useful else None))
        # where the next search starts: the best settings of neighbouring budgets are close
        warm = [recommended.setting] + ([] if best is None else [best.setting])
        step()
    return tuple(points)


def _improvements_of(
    evaluation: _Evaluation,
    recommended: Candidate,
    spread: _Spread,
    frontier: Sequence[tuple[float, Estimate | None]],
    step: Callable[[], None],
) -> tuple[tuple[str, Estimate], ...]:
    """Return what larger numbers would bring, the most helpful first."""
    best = recommended.setting
    # that is on the frontier already, and needs no search
    found = {"twice the epsilon": frontier[FRONTIER.index(2.0)][1]}
    model, task = evaluation.model, evaluation.task
    for change, more, wider in (
        ("twice the private records", replace(task, n_records=2 * task.n_records), model),
        (
            "twice the public points",
            replace(task, n_public=2 * task.n_public),
            model.with_public(2 * task.n_public),
        ),
    ):
        if wider is not None:
            warm = [best, replace(best, n_teachers=2 * best.n_teachers)]
            candidate = _quick_search(_Evaluation(more, wider), warm, spread)
            found[change] = None if candidate is None else candidate.student_accuracy
        step()
    judged = [(change, accuracy) for change, accuracy in found.items() if accuracy is not None]
    return tuple(sorted(judged, key=lambda one: -one[1].value))
