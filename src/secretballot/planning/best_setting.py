"""Find the best setting of a task, and make a plan of it; no private data are read."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from secretballot._typing import IntArray
from secretballot.exceptions import ParameterError
from secretballot.named_learners import teacher_by_name
from secretballot.planning.evaluation import Evaluation, Spread, best_of
from secretballot.planning.plan_model import Candidate, Estimate, Plan, Setting, Task
from secretballot.planning.settings import tables_for
from secretballot.planning.stand_in import StandInModel
from secretballot.students.fitting import student_by_name

Progress = Callable[[int, int], None]

FOLDS = 4  # of a stand-in, which score on disjoint parts
FRONTIER: tuple[float, ...] = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)  # times the task's epsilon
FINALISTS = 8
_HALF_OF_FOLDS = 2
_WINNERS = 3
_QUICK_WINNERS = 2  # at other budgets and sizes
_BEYOND_NOISE = 0.005  # by which a student must beat the constant
# and by so much of the range of single runs: about two standard errors of the mean of four folds
_SURELY = 0.6


class ImpossibleTaskError(ParameterError):
    """No setting of votes leads to a student that beats a constant one."""


def plan_votes(
    task: Task, X: Any, y: IntArray, *, seed: int = 0, progress: Progress | None = None
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
        n_folds=FOLDS,
    )
    done, total = itertools.count(1), 3 + len(FRONTIER) + 2

    def step() -> None:
        if progress is not None:
            progress(next(done), total)

    evaluation = Evaluation(task, model)
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
    evaluation: Evaluation, step: Callable[[], None]
) -> tuple[list[Candidate], Spread | None]:
    """Return the candidates that were tried on enough folds, the recommended one first, and how
    far students spread; none if nothing teaches."""
    # students take most of the time: many settings are tried on one fold, fewer on half of them,
    # and the winners on all
    model = evaluation.model
    settings = evaluation.shortlist(3)
    if not settings:
        return [], None
    step()
    first = evaluation.tried(settings, 1)[:FINALISTS]
    middle = evaluation.tried([one.setting for one in first], _HALF_OF_FOLDS)
    step()
    best_settings = [one.setting for one in middle[:_WINNERS]]
    # a table of chances is sharper than noise or not, as the votes are: tried beside the winners
    # alone, since it ranks settings as noise does
    beside = tables_for(best_settings, evaluation.task)
    winners = evaluation.tried([*best_settings, *beside], model.n_folds)
    # chosen among the winners alone: a mean over fewer folds may be high by luck
    best, spread = best_of(winners), Spread.of(winners)
    others = [one for one in winners if one is not best] + middle[_WINNERS:]
    step()
    return [evaluation.candidate(one, spread) for one in (best, *others)], spread


def _quick_search(
    evaluation: Evaluation, warm: Sequence[Setting], spread: Spread
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
    evaluation: Evaluation, recommended: Candidate, spread: Spread, step: Callable[[], None]
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
        other = Evaluation(task, evaluation.model)
        best = recommended if factor == 1 else _quick_search(other, warm, spread)
        useful = best and _beats_constant(best, evaluation.model.constant_accuracy)
        points.append((epsilon, best.student_accuracy if best and useful else None))
        # where the next search starts: the best settings of neighbouring budgets are close
        warm = [recommended.setting] + ([] if best is None else [best.setting])
        step()
    return tuple(points)


def _improvements_of(
    evaluation: Evaluation,
    recommended: Candidate,
    spread: Spread,
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
            candidate = _quick_search(Evaluation(more, wider), warm, spread)
            found[change] = None if candidate is None else candidate.student_accuracy
        step()
    judged = [(change, accuracy) for change, accuracy in found.items() if accuracy is not None]
    return tuple(sorted(judged, key=lambda one: -one[1].value))
