"""Find the best setting of a task: list what can be set and the noise that each would bring,
forecast many, try the best few with students, and make a plan of it; no private data are read."""

import functools
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.accounting import (
    PrivacyBudget,
    calibrate_abstention_table,
    calibrate_gaussian,
    calibrate_sparse_vector,
    calibrate_stream,
    needed_distance,
    noisy_votes,
    table_labels,
    teacher_shape,
)
from secretballot.accounting.calibration import MANY_LABELS, noise_share
from secretballot.accounting.recipes import THRESHOLD_SHARE, Terms, deviation, stream_mechanism
from secretballot.core.class_games import class_block
from secretballot.core.events import Stream, TableStream
from secretballot.core.mechanisms import (
    AbstentionTable,
    ConfidentLabels,
    Mechanism,
    NoisyVotes,
    SparseVector,
)
from secretballot.exceptions import ParameterError
from secretballot.named_learners import teacher_by_name
from secretballot.planning.plan_model import (
    CONFIDENT,
    STREAMS,
    TABLE,
    Candidate,
    Estimate,
    Plan,
    Setting,
    Task,
)
from secretballot.planning.stand_in import Forecast, RunOutcome, StandInModel, forecast
from secretballot.students.fitting import student_by_name

_ACTIVE = "margin"  # how points are asked in rounds
_TEACHER_STEP = 2.0  # between neighbouring numbers of teachers
_QUERY_STEP = 1.7  # between neighbouring numbers of labels
_LEAST_SHARD = 10  # records that a teacher should have, where that leaves a choice
_LONGEST_STREAM = 20_000  # queries of a stream: longer ones take minutes, and teach hardly more
_LEAST_QUERIES = 5  # labels for each class
_CONFIDENT_SHARE = 0.8  # of the teachers: the threshold of confident voting
_ASKED_PER_ANSWER = 3
_LEAST_ASKED = 1.5  # where fewer may be asked for each answer, a refusal only wastes the answer
_STOPS = (1, 10, 100)  # abstentions of a stream
_HALF = 0.5  # of the unanimous votes should be answered, or a stream is no choice
_USUALLY_ANSWERED = 0.9  # chance at which a candidate's margin is stated
# Labels of more classes, of the squared noise of their counts: of many labels, and over their
# number; where a game is played, and by divergences.
GAME_LABELS, DIVERGENCE_LABELS = (0.658, 0.9), (0.755, 0.5)
_MOST_TABLE_TEACHERS = 2_000  # a longer table takes seconds to find and is hardly sharper


def _teacher_counts(least: int, most: int, n_records: int) -> list[int]:
    """Return numbers of teachers K at even ratios, up to the most that leave each ten records."""
    top = max(least, min(most, n_records // _LEAST_SHARD))
    return _spaced(least, top, _TEACHER_STEP)


def _spaced(least: int, most: int, step: float) -> list[int]:
    """Return numbers between two ends at even ratios of at most `step`, of two leading digits."""
    if not most > least:
        return [least]
    steps = math.ceil(math.log(most / least) / math.log(step))
    return sorted({_two_digits(one, least, most) for one in np.geomspace(least, most, steps + 1)})


def _two_digits(value: float, least: int, most: int) -> int:
    """Return a number with two leading digits, within bounds."""
    digits = max(0, math.floor(math.log10(max(value, 1))) - 1)
    return int(min(max(round(value / 10**digits) * 10**digits, least), most))


def _settings_of(task: Task, n_teachers: int, *, thorough: bool = True) -> Iterator[Setting]:
    """Yield the settings that are ranked by a forecast: those that answer every query and, where it
    should be thorough, those that refuse some."""
    yield from _noisy_settings(task, n_teachers)
    if thorough:
        yield from _stream_settings(task, n_teachers)
        yield from _confident_settings(task, n_teachers)


def _label_counts(task: Task) -> list[int]:
    """Return numbers of labels, from few to all public points."""
    return _spaced(min(task.n_public, _LEAST_QUERIES * task.n_classes), task.n_public, _QUERY_STEP)


def _noisy_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield settings that answer every query: labels of few to all public points, and noisy counts
    of all, a quarter, a sixteenth.

    Under Laplace noise where delta is 0, which keeps no Gaussian noise: then labels and counts cost
    the same, and fewer counts are known better than many.
    """
    labels, m = _label_counts(task), task.n_public
    gaussian = task.delta > 0
    counts = sorted({m, math.ceil(m / 4), math.ceil(m / 16)}) if gaussian else labels
    for release, sizes in (("labels", labels), ("counts", counts)):
        for size in sizes:
            yield Setting(n_teachers, "gaussian" if gaussian else "laplace", release, size)


def _confident_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield confident voting with few to many answers; none without a delta, or where hardly
    anything could be refused."""
    # Gaussian noise needs a delta
    for answers in _label_counts(task)[::2] if task.delta > 0 else ():
        queries = min(task.n_public, _ASKED_PER_ANSWER * answers)
        if queries >= _LEAST_ASKED * answers:
            threshold = max(1, round(_CONFIDENT_SHARE * n_teachers))
            plain = Setting(n_teachers, CONFIDENT, "labels", queries)
            yield replace(plain, threshold=threshold, max_answers=answers)


def _stream_settings(task: Task, n_teachers: int) -> Iterator[Setting]:
    """Yield sparse vectors or tables of abstentions, whichever answers less stable queries, as long
    as can be evaluated, that unanimous teachers would pass."""
    for stop in _STOPS:
        event = _stream(task.budget, None, stop) if stop <= task.n_public else None
        # the distance that is needed grows with T, so no larger T has an event that passes either
        if event is None or needed_distance(event, _HALF) > (n_teachers - 1) // 2:
            return
        name = "abstention-table" if isinstance(event, TableStream) else "sparse-vector"
        longest = min(task.n_public, _LONGEST_STREAM)
        yield Setting(n_teachers, name, "labels", longest, max_abstentions=stop)


def _stream(budget: PrivacyBudget, name: str | None, max_abstentions: int) -> Stream | None:
    """Return the calibrated stream of a name, else the better of both; None where there is none."""
    calibrate: Any = {
        "sparse-vector": calibrate_sparse_vector,
        "abstention-table": calibrate_abstention_table,
    }.get(name or "", calibrate_stream)
    try:
        return calibrate(budget, max_abstentions) if budget.delta > 0 else None
    except ParameterError:
        return None


def _tables_for(settings: Iterable[Setting], task: Task) -> list[Setting]:
    """Return labels by a table of chances in the place of those labels that are under Gaussian
    noise."""
    return [
        replace(setting, mechanism=TABLE)
        for setting in settings
        if (setting.mechanism, setting.release, task.n_classes) == ("gaussian", "labels", 2)
        and setting.n_teachers <= _MOST_TABLE_TEACHERS
    ]


def terms_of(task: Task, setting: Setting) -> Terms | None:
    """Return the mechanism of a setting for simulation; None where no noise keeps the budget.

    Gaussian noise and tables of chances are right to some per cent: a search for the least noise
    plays games for seconds, and no plan waits for it.
    """
    budget, release = task.budget, setting.release
    shape = teacher_shape(setting.n_queries, task.n_classes, setting.n_teachers)
    mechanism: Mechanism
    if setting.mechanism in STREAMS:
        event = _stream(budget, setting.mechanism, setting.max_abstentions or 1)
        if event is None:
            return None
        mechanism = stream_mechanism(event, setting.n_teachers)
    elif setting.mechanism == "laplace":
        mechanism = noisy_votes(budget, shape, release=release, noise="laplace")
    elif setting.mechanism == CONFIDENT:
        mechanism = _confident(task, setting)
    elif setting.mechanism == TABLE:
        mechanism = table_labels(budget, shape, exact=False)
    else:
        counts = release == "counts"
        mechanism = NoisyVotes(
            scale=_sigma(task, setting), release="counts" if counts else "labels"
        )
    return Terms(mechanism, shape, budget)


def _confident(task: Task, setting: Setting) -> ConfidentLabels:
    """Return confident voting with noise that is right to some per cent."""
    answers = setting.max_answers or 1
    shifts, share = (1 if task.n_classes == 2 else 2) * answers, THRESHOLD_SHARE
    # answers about a threshold, and labels, tell less than their counts
    labels = MANY_LABELS**2 if task.n_classes == 2 else GAME_LABELS[0]
    whole = (MANY_LABELS**2 * share + labels * (1 - share)) / (1 - share)
    sigma = _unit_of_counts(task.budget) * math.sqrt(shifts * whole)
    ratio = math.sqrt(setting.n_queries / share / (shifts / (1 - share)))
    return ConfidentLabels(
        threshold=setting.threshold or 1,
        max_answers=answers,
        threshold_sigma=ratio * sigma,
        sigma=sigma,
    )


def _sigma(task: Task, setting: Setting) -> float:
    """Return the sigma of Gaussian voting, in votes; for labels right to 2 %, of two classes where
    teachers are many."""
    n, unit = setting.n_queries, _unit_of_counts(task.budget)
    # one record moves two counts of several classes, and the single count of two
    counts = unit * math.sqrt(n if task.n_classes == 2 else 2 * n)
    if setting.release == "counts":
        return counts
    if task.n_classes == 2:
        return counts * noise_share(n)
    by_game, by_divergence = (
        counts * math.sqrt(min(1.0, many + few / n))
        for many, few in (GAME_LABELS, DIVERGENCE_LABELS)
    )
    return by_game if class_block(by_game, n) is not None else by_divergence


def _unit_of_counts(budget: PrivacyBudget) -> float:
    return calibrate_gaussian(budget, 100) / 10


def stated_noise(terms: Terms) -> float:
    """Return the standard deviation of the noise, of a table that of noise which shows an even vote
    as well, of a stream the margin that it answers nine times in ten, in votes."""
    mechanism = terms.mechanism
    if isinstance(mechanism, SparseVector | AbstentionTable):
        needed = needed_distance(mechanism.stream_event(), _USUALLY_ANSWERED)
        return 2 * math.ceil(needed) + 1.0 if math.isfinite(needed) else math.inf
    return deviation(mechanism, terms.shape.n_teachers or 0)


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
        for k in _teacher_counts(least, greatest, self.task.n_records):
            for setting in _settings_of(self.task, k, thorough=thorough):
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
            and self.model.can_simulate(active := replace(setting, strategy=_ACTIVE))
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
    beside = _tables_for(best_settings, evaluation.task)
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
