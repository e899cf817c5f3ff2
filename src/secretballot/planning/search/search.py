"""From a task and what is known of it to a plan. Made-up votes and stand-in data are all that is
read."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from secretballot._validation import check_count, check_instance
from secretballot.exceptions import ParameterError
from secretballot.planning.plan.model import (
    Candidate,
    FrontierPoint,
    Improvement,
    Plan,
    Setting,
    Task,
)
from secretballot.planning.search.evaluation import Weighing, best_of, naive_settings
from secretballot.planning.search.settings import FEWER_STOPS, STOPS
from secretballot.planning.simulation.votes import VoteModel

__all__ = ["make_plan"]

Progress = Callable[[int, int], None]

FRONTIER = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # times the task's epsilon
FIRST_FOLDS = 2
FINALISTS = 8
WINNERS = 3
FEW_TEACHERS = 10  # fewer would hardly be recommended anyhow
MOST_EPSILON = 64.0  # beyond, hardly a promise is left
MOST_RECORDS = 2.0**14  # times those of the task
BEYOND_NOISE = 0.005  # by which a student must beat the constant
# and by so much of the range of single runs: about two standard errors of the mean of eight folds
SURELY = 0.4


def make_plan(
    task: Task,
    model: VoteModel,
    *,
    n_teachers: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Plan:
    """Return what to choose for a task, what to expect of it, and what would be better.

    Settings are forecast from the law of their noise; the best of each kind are tried with
    students, on half of the model's folds, and the best of these on all of them. Among those as
    good as the best, the plainest is recommended.

    Parameters
    ----------
    task : Task
    model : VoteModel
        What is known of the task.
    n_teachers : int, optional
        K, where it is given already.
    seed : int
        Recorded in the plan; the model has its own copy.
    progress : callable, optional
        Takes steps done and steps in all.

    Raises
    ------
    ParameterError
        If nothing can be recommended: no setting leads to a student that beats a constant one; the
        message says what would do. Also if the numbers do not fit the model.

    Privacy
    -------
    Reads no private data: the plan is a function of public numbers and of the model, which was made of data that may be
    shown to anyone. It costs nothing.
    """
    check_instance("task", task, Task)
    check_instance("model", model, VoteModel)
    check_count("seed", seed, minimum=0)
    _check(task, model, n_teachers)
    step = _Steps(progress, 3 + len(FRONTIER) + 4)
    weighing = Weighing(task, model, n_teachers)
    weighed = _weigh(weighing, step)
    if not weighed or not _useful(weighed[0], model.constant_accuracy):
        raise ParameterError(_impossible(weighing))
    recommended = weighed[0]
    frontier = _frontier(weighing, recommended, step)
    improvements = _improvements(weighing, recommended, frontier, step)
    return Plan(
        task=task,
        source=model.source,
        assumptions=(*model.assumptions, *_unweighed(weighing)),
        recommended=recommended,
        weighed=tuple(sorted(weighed, key=lambda one: -one.expected.student_accuracy.value)),
        constant_accuracy=float(model.constant_accuracy),
        frontier=frontier,
        improvements=improvements,
        seed=seed,
    )


class _Steps:
    """Tell how far the work is."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._done, self._total = progress, 0, total

    def __call__(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._total)


def _check(task: Task, model: VoteModel, n_teachers: int | None) -> None:
    if task.n_classes != model.n_classes:
        raise ParameterError(
            f"the task has {task.n_classes} classes and what is known is about {model.n_classes};"
            " give the same number."
        )
    if not task.delta > 0:
        raise ParameterError(
            "delta is 0, and no voting that is weighed here keeps that; give one, such as 1e-6."
        )
    if n_teachers is None:
        return
    if check_count("n_teachers", n_teachers) > task.n_records:
        raise ParameterError(
            f"{n_teachers} teachers are more than the {task.n_records} records; each needs one, so"
            " use fewer."
        )
    least, most = model.teacher_range(task.n_records)
    if not least <= n_teachers <= most:
        raise ParameterError(
            f"n_teachers is {n_teachers}, which cannot be forecast for {task.n_records} records"
            f" from what is known; give {least} to {most}."
        )


def _unweighed(weighing: Weighing) -> tuple[str, ...]:
    """Return what was left out because too little is known, in a sentence."""
    n, least = weighing.task.n_records, min(weighing.teachers)
    if weighing.given is not None or least < FEW_TEACHERS:
        return ()
    return (
        (
            f"Fewer than {least} teachers were not weighed: too little is known to tell of more"
            f" than {n // least} records each."
        ),
    )


def _half(model: VoteModel) -> int:
    return max(min(2, model.n_folds), (model.n_folds + 1) // 2)


def _weigh(weighing: Weighing, step: _Steps) -> list[Candidate]:
    """Return all candidates that were tried on enough folds, the recommended one first; none if
    nothing teaches."""
    model = weighing.model
    settings = weighing.shortlist(STOPS, 3)
    if not settings:
        return []
    step()
    first = weighing.tried([*settings, *weighing.active()], min(FIRST_FOLDS, model.n_folds))
    kept = dict.fromkeys([one.setting for one in first[:FINALISTS]] + naive_settings(weighing))
    middle = weighing.tried(kept, _half(model))
    step()
    winners = weighing.tried([one.setting for one in middle[:WINNERS]], model.n_folds)
    best = best_of(winners)
    tried = winners + [
        one for one in middle if one.setting not in {winner.setting for winner in winners}
    ]
    spread = weighing.spread(tried)
    candidates = [weighing.candidate(one, spread) for one in tried if one is not best]
    step()
    return [weighing.candidate(best, spread, exact=True), *candidates]


def _quick(weighing: Weighing, warm: Sequence[Setting]) -> Candidate | None:
    """Return the best candidate of a shorter search that begins with settings known to be good,
    None if none fits."""
    settings = dict.fromkeys([*_fitting(warm, weighing), *weighing.shortlist(FEWER_STOPS, 1)])
    if not settings:
        return None
    first = weighing.tried(settings, 1)
    tried = weighing.tried([one.setting for one in first[:WINNERS]], _half(weighing.model))
    return weighing.candidate(best_of(tried), weighing.spread(tried))


def _fitting(settings: Sequence[Setting], weighing: Weighing) -> list[Setting]:
    """Return those settings that the task can have."""
    least, most = weighing.model.teacher_range(weighing.task.n_records)
    return [
        setting
        for setting in settings
        if weighing.given in (None, setting.n_teachers)
        and least <= setting.n_teachers <= most
        and setting.n_queries <= weighing.task.n_public
        and (setting.max_unstable is None or weighing.noise.event(setting.max_unstable) is not None)
        and weighing.teaches(setting)
    ]


def _useful(candidate: Candidate | None, constant: float) -> bool:
    """Return whether there is a student that beats the constant beyond noise."""
    if candidate is None:
        return False
    student = candidate.expected.student_accuracy
    return student.value - constant > max(BEYOND_NOISE, SURELY * (student.value - student.low))


def _frontier(
    weighing: Weighing, recommended: Candidate, step: _Steps
) -> tuple[FrontierPoint, ...]:
    """Return the best candidates at other epsilons, each search beginning with the setting of
    the next smaller one."""
    points: list[FrontierPoint] = []
    warm = [recommended.setting]
    for factor in FRONTIER:
        epsilon = weighing.task.epsilon * factor
        other = weighing.changed(replace(weighing.task, epsilon=epsilon))
        best = recommended if factor == 1 else _quick(other, warm)
        useful = _useful(best, weighing.model.constant_accuracy)
        points.append(FrontierPoint(epsilon, best if useful else None))
        warm = [recommended.setting] + ([] if best is None else [best.setting])
        step()
    return tuple(points)


def _improvements(
    weighing: Weighing, recommended: Candidate, frontier: Sequence[FrontierPoint], step: _Steps
) -> tuple[Improvement, ...]:
    """Return what larger numbers would bring, the most helpful first."""
    task, best = weighing.task, recommended.setting
    found: list[tuple[str, Candidate | None]] = []
    for words, factor in (("twice", 2), ("four times", 4)):
        more = weighing.changed(replace(task, n_records=factor * task.n_records))
        found.append(
            (
                f"{words} the private records",
                _quick(more, [best, replace(best, n_teachers=factor * best.n_teachers)]),
            )
        )
        step()
    wider = weighing.model.with_public(2 * task.n_public)
    if wider is not None:
        more = weighing.changed(replace(task, n_public=2 * task.n_public), wider)
        found.append(("twice the public points", _quick(more, [best])))
    step()
    doubled = next(
        point.candidate for point in frontier if math.isclose(point.epsilon, 2 * task.epsilon)
    )
    found.append(("twice the epsilon", doubled))
    step()
    told = [
        Improvement(words, one.expected.student_accuracy) for words, one in found if one is not None
    ]
    return tuple(sorted(told, key=lambda one: -one.student_accuracy.value))


def _impossible(weighing: Weighing) -> str:
    """Return the sentence for a task that nothing can be done for, with the numbers that would
    do."""
    task, constant = weighing.task, weighing.model.constant_accuracy
    most = MOST_EPSILON / task.epsilon
    epsilon = _least_factor(
        weighing, lambda factor: replace(task, epsilon=factor * task.epsilon), most
    )
    more = _least_factor(
        weighing, lambda factor: replace(task, n_records=math.ceil(factor * task.n_records))
    )
    ways = [] if epsilon is None else [f"an epsilon of about {epsilon * task.epsilon:.2g}"]
    ways += [] if more is None else [f"about {float(f'{more * task.n_records:.2g}'):,.0f} records"]
    mend = (
        f"{' or '.join(ways)} would do"
        if ways
        else "no larger epsilon or number of records alone would do"
    )
    return (
        f"epsilon {task.epsilon:g} with {task.n_records} records and {task.n_public} public points"
        " leads to no student that beats the most frequent class, which is right on"
        f" {constant:.1%}; {mend}."
    )


def _least_factor(
    weighing: Weighing, changed: Callable[[float], Task], most: float = MOST_RECORDS
) -> float | None:
    """Return about the least factor at which a changed task is possible, None if none up to
    `most` is."""

    def possible(factor: float) -> bool:
        return _useful(
            _quick(weighing.changed(changed(factor)), []), weighing.model.constant_accuracy
        )

    doubling = 1
    while 2.0**doubling <= most and not possible(2.0**doubling):
        doubling += 2
    if 2.0**doubling > most:
        return None
    low, high = doubling - 2.0, float(doubling)
    while high - low > 0.5:
        middle = (low + high) / 2
        low, high = (low, middle) if possible(2.0**middle) else (middle, high)
    return float(2.0**high)
