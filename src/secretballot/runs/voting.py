"""The learner of a run of voting, by its settings: the same whether anything is paid or not."""

import warnings
from typing import Any, Protocol

from secretballot.accounting import PrivacyBudget, WeakSignalWarning
from secretballot.accounting.recipes import Terms
from secretballot.core.mechanisms import teachers_of
from secretballot.core.types import VoteShape
from secretballot.learners.pate.classifier import PATEClassifier
from secretballot.learners.pate.defaults import choose_teachers
from secretballot.learners.pate.estimated_size import EstimatedSize
from secretballot.named_learners import teacher_by_name
from secretballot.queries import InRounds, strategy_by_name
from secretballot.students.names import student_by_name
from secretballot.teachers.executors import LOCAL

DEFAULT_TEACHERS = 250
PASSIVE = "passive"


class TeacherSettings(Protocol):
    """What the number of teachers of a run follows from."""

    @property
    def budget(self) -> PrivacyBudget: ...

    @property
    def teachers(self) -> int | None: ...

    @property
    def records(self) -> int | None: ...


class VotingSettings(TeacherSettings, Protocol):
    """What noise and queries of a run of voting follow from."""

    @property
    def queries(self) -> int | None: ...

    @property
    def mechanism(self) -> str: ...

    @property
    def max_abstentions(self) -> int | None: ...

    @property
    def threshold(self) -> int | None: ...

    @property
    def max_answers(self) -> int | None: ...

    @property
    def estimate_epsilon(self) -> float | None: ...

    @property
    def release(self) -> str: ...

    @property
    def strategy(self) -> str: ...

    @property
    def round_size(self) -> int | None: ...

    @property
    def teacher(self) -> str: ...

    @property
    def student(self) -> str: ...

    @property
    def relation(self) -> str: ...


def number_of_teachers(run: TeacherSettings, n_columns: int) -> int:
    """Return the number of teachers: as asked, else by the stated records, else the default."""
    if run.teachers is not None:
        return run.teachers
    if run.records is None:
        return DEFAULT_TEACHERS
    return choose_teachers(run.budget, run.records, n_columns)


def terms_of_run(run: VotingSettings, pool: VoteShape) -> Terms:
    """Return mechanism and queries of a run, from public numbers alone; nothing is paid.

    `pool` is the shape of the votes on all points that may be asked.

    Where an estimate is to set them, they are those of one that shows nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", WeakSignalWarning)  # it is asked about
        learner = unfitted_learner(run, pool.n_classes, teachers_of(pool))
        if run.estimate_epsilon is not None:
            return EstimatedSize.of_settings(learner, pool).without_number()
        return learner.planned_terms(pool)


def unfitted_learner(
    run: VotingSettings, n_classes: int, n_teachers: int, **of_a_run: Any
) -> PATEClassifier:
    """Return the learner of these settings, and of what belongs to one run alone."""
    settings: dict[str, Any] = {
        "n_teachers": n_teachers,
        "budget": run.budget,
        "mechanism": run.mechanism,
        "n_queries": run.queries,
        "release": run.release,
        "max_abstentions": run.max_abstentions,
        "threshold": run.threshold,
        "max_answers": run.max_answers,
        "estimate_epsilon": run.estimate_epsilon,
        "relation": run.relation,
        **of_a_run,
    }
    teacher, student = teacher_by_name(run.teacher, n_classes), student_by_name(run.student)
    if run.strategy != PASSIVE:
        settings["strategy"] = InRounds(strategy_by_name(run.strategy), run.round_size)
    return PATEClassifier(teacher, student, **settings)


def worker_processes(jobs: int, engine: str) -> int | None:
    """Return the worker processes of a run: none are asked for where a cluster does the work."""
    return None if jobs == 1 and engine != LOCAL else jobs
