"""From public numbers and files to a plan, as `secretballot plan` does; from a plan to a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._naming import integers_or_words
from secretballot._typing import IntArray
from secretballot._validation import check_count, check_instance, check_positive_rate
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.moments.class_weights import checked_weights
from secretballot.learners.pate.classifier import PATEClassifier
from secretballot.named_learners import teacher_by_name
from secretballot.planning.plan.model import Plan, Task, check_weighted_names
from secretballot.planning.plan.rare_text import no_figure_parts
from secretballot.planning.plan.wording import share_range
from secretballot.planning.planner import MOST_CLASSES, checked_stand_in
from secretballot.planning.planner import plan as plan_votes
from secretballot.planning.search.best_setting import ImpossibleTaskError
from secretballot.planning.simulation.curve import LearningCurve
from secretballot.queries import strategy_by_name
from secretballot.runs.basis import basis_of_schema
from secretballot.runs.learn import LearnRun
from secretballot.runs.moments_forecast import forecast_moments
from secretballot.runs.plan_agreement import (
    check_imports,
    settings_of,
    settings_of_moments,
    tables_of_plan,
)
from secretballot.runs.plan_files import check_plan_folder, write_plan
from secretballot.runs.progress import Watch
from secretballot.runs.records import RecordsRun, weights_of_classes
from secretballot.runs.stand_in_table import StandInTable, read_stand_in
from secretballot.runs.tables import RunTables, check_classes
from secretballot.runs.voting import PASSIVE
from secretballot.students.names import student_by_name


@dataclass(frozen=True)
class PlanRun:
    """What to plan for, in public numbers.

    Attributes
    ----------
    records, public : int
        Publicly stated number of private records; number of public points.
    epsilon, delta : float
        Price of the release to come.
    classes : tuple, int or None
        The classes, or how many there are; None takes those of the stand-in table or its schema.
    teacher, student : str
        Names, or "package.module:Class".
    like : StandInTable or None
        A labelled public table that stands in for the private one.
    curve : mapping of int to float, or None
        Accuracy of one teacher on new points, by the number of records that it learnt from.
    teachers : int or None
        Number of teachers K where it is given beforehand, by silos or votes that exist; None
        chooses one.
    seed : int
        Of the simulation.
    out : Path or None
        Folder for the plan.
    positive_rate, class_weight, mechanism
        As for `plan`.
    """

    records: int
    public: int
    epsilon: float
    delta: float
    classes: tuple[Any, ...] | int | None = None
    teacher: str = "logistic"
    student: str = "auto"
    like: StandInTable | None = None
    curve: Mapping[int, float] | None = None
    teachers: int | None = None
    seed: int = 0
    out: Path | None = None
    positive_rate: float | None = None
    class_weight: str | Mapping[Any, float] | None = None
    mechanism: str | None = None


def run_plan(run: PlanRun, watch: Watch | None = None) -> Plan:
    """Plan, and write the folder of the plan where one is named.

    Parameters
    ----------
    run : PlanRun
    watch : Watch, optional
        Told what happens.

    Returns
    -------
    Plan

    Raises
    ------
    ParameterError
        If something does not fit, or no setting answers anything; the message then says what would.
    DataError
        If the stand-in table cannot be used, or the folder is not free.

    Privacy
    -------
    Reads no private data and spends nothing. That the stand-in table is public is the caller's
    word.
    """
    watch = watch or Watch()
    _refuse_unfit_settings(run)
    if run.out is not None:
        check_plan_folder(run.out)
    like, n_classes, basis = None, _number_of(run.classes), None
    names: tuple[Any, ...] | None = run.classes if isinstance(run.classes, tuple) else None
    if run.like is not None:
        watch.step("Reading the table")
        table, names, schema = read_stand_in(run.like, run.classes, watch)
        like, n_classes = (table.X, table.targets), len(names)
        basis = basis_of_schema(schema)
    elif n_classes is None:
        raise ParameterError(
            Parameter("classes"),
            " is missing; say how many there are, or list them, with --classes.",
        )
    # refuses public numbers that cannot be, before any teacher is trained
    task = Task(
        run.records,
        run.public,
        n_classes,
        run.epsilon,
        run.delta,
        run.teacher,
        run.student,
        run.positive_rate,
        run.class_weight,
        run.mechanism,
    )
    watch.step("Evaluating settings")
    if task.about_rare_classes:
        _refuse_voting_settings(run.teacher, run.curve, run.teachers, run.mechanism)
        made = _plan_of_rare_classes(task, like, names, basis, run.seed, watch.progress, watch.step)
    else:
        made = plan(
            task.n_records,
            task.n_public,
            budget=task.budget,
            n_classes=n_classes,
            like=like,
            curve=run.curve,
            n_teachers=run.teachers,
            teacher=run.teacher,
            student=run.student,
            mechanism=run.mechanism,
            basis=basis,
            seed=run.seed,
            progress=watch.progress,
            say=watch.step,
        )
    if names is not None:
        made = replace(made, classes=integers_or_words(names))
    if run.out is not None:
        watch.step("Writing the plan")
        write_plan(made, run.out, watch)
    return made


def plan(
    n_records: int,
    n_public: int,
    *,
    budget: PrivacyBudget,
    n_classes: int | None = None,
    like: tuple[Any, Any] | None = None,
    curve: LearningCurve | Mapping[int, float] | None = None,
    n_teachers: int | None = None,
    teacher: str = "logistic",
    student: str = "auto",
    mechanism: str | None = None,
    positive_rate: float | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    basis: Basis | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> Plan:
    """Say before anything private is touched what to choose, and what to expect of it.

    Parameters
    ----------
    n_records : int
        Publicly stated number n of private records.
    n_public : int
        Number m of public points.
    budget : PrivacyBudget
        Of the release; with a delta of 0 votes under Laplace noise are planned, and nothing else.
    n_classes : int, optional
        By default as many as occur in `like`, else two.
    like : (X, y), optional
        Labelled rows that may be shown to anyone, encoded as the private ones will be: another
        year's data, or synthetic ones; X of shape (n_rows, n_features), y of shape (n_rows,).
        Teachers and students are tried on them, and record moments.
    curve : LearningCurve or mapping of int to float, optional
        Instead: accuracy of one learner after so many records, measured elsewhere or believed; one
        figure is enough. With neither, a guess is made and stated.
    n_teachers : int, optional
        K, where votes or silos exist already; then votes alone are planned.
    teacher, student : str
        Names as for `secretballot learn`.
    mechanism : str, optional
        Plan for votes by this mechanism alone, by its name for `PATEClassifier`; by default all
        are weighed. Interactive voting can be planned with `like` alone.
    positive_rate : float, optional
        A public statement of how frequent the second of two classes is. The stand-in is brought to
        it, and the forecast is of balanced accuracy and of the recall of the rarest class.
    class_weight : "balanced" or mapping of class to float, optional
        What decisions count each class for, as for `RecordMomentsClassifier`, which takes both;
        votes take neither, so record moments alone are planned.
    basis : basis of `secretballot.bases`, optional
        Of record moments, where it will not be the default.
    seed : int
        Of the simulation; it never touches noise that protects anything.
    progress : callable, optional
        Takes steps done and steps in all, of each part of the work.
    say : callable of str, optional
        Told what comes next.

    Returns
    -------
    Plan
        With a forecast of record moments where `like` is given, and neither `n_teachers` nor
        `mechanism`; without any setting of votes where `positive_rate` or `class_weight` is given.

    Raises
    ------
    ParameterError
        If a number is out of its range, both `like` and `curve` are given, a name is unknown, or
        no votes can do the task; then the message says about which epsilon or number of records
        would do, and what record moments would reach.
    DataError
        If the stand-in is not a table with one class for each of at least 100 rows, or too few rows
        of a rare class are left of it.

    Privacy
    -------
    Takes no private data and spends nothing. Give no private rows as `like`: the plan would tell of
    them.
    """
    if positive_rate is not None or class_weight is not None:
        names: tuple[Any, ...] | None = None
        n_found = 2 if n_classes is None else n_classes
        if like is not None:
            X, index, n_found = checked_stand_in(like, n_classes)
            names, like = _names_of(like[1], n_found), (X, index)
        elif isinstance(class_weight, Mapping) and n_classes is None:
            n_found = max(2, len(class_weight))
        check_instance("budget", budget, PrivacyBudget)
        task = Task(
            n_records,
            n_public,
            n_found,
            budget.epsilon,
            budget.delta,
            teacher,
            student,
            positive_rate,
            class_weight,
        )
        _refuse_voting_settings(teacher, curve, n_teachers, mechanism)
        return _plan_of_rare_classes(task, like, names, basis, seed, progress, say)
    common: dict[str, Any] = {
        "budget": budget,
        "n_classes": n_classes,
        "like": like,
        "curve": curve,
        "n_teachers": n_teachers,
        "teacher": teacher,
        "student": student,
        "mechanism": mechanism,
        "seed": seed,
    }
    problem, made = None, None
    try:
        made = plan_votes(n_records, n_public, **common, progress=progress)
    except ImpossibleTaskError as error:
        problem = error
    # noisy sums over records need a delta above 0; votes under Laplace noise do not
    asked_for = n_teachers is not None or mechanism is not None
    only_votes = like is None or asked_for or not budget.delta > 0
    if only_votes and problem is not None:
        raise problem
    if only_votes and made is not None:
        return made
    if say is not None:
        say("Trying record moments")
    X, y, classes = checked_stand_in(like, n_classes)
    task = Task(n_records, n_public, classes, budget.epsilon, budget.delta, teacher, student)
    moments = forecast_moments(task, X, y, basis=basis, seed=seed, progress=progress)
    if made is not None:
        return replace(made, moments=moments)
    reached = share_range(moments.student_accuracy)
    no_figure: tuple[str | Parameter, ...] = ()
    if moments.rare_share is not None:
        no_figure = (" ", *no_figure_parts(moments.rare_share, classes))
    raise ImpossibleTaskError(
        f"{problem} Record moments would reach {reached} (learn --method moments).", *no_figure
    )


def _plan_of_rare_classes(
    task: Task,
    like: tuple[Any, IntArray] | None,
    names: tuple[Any, ...] | None,
    basis: Basis | None,
    seed: int,
    progress: Callable[[int, int], None] | None,
    say: Callable[[str], None] | None,
) -> Plan:
    """Return a plan of record moments alone, by a stand-in where there is one."""
    student_by_name(task.student)
    if not task.delta > 0:
        raise ParameterError(
            Parameter("delta"),
            " is 0, and the noise of record moments needs more; give one, such as 1e-6.",
        )
    if names is not None:
        check_weighted_names(task.class_weight, names)
    # what always answering one class reaches: by chance, by the stated rate, or by the stand-in
    constant, moments = 1 / task.n_classes, None
    if task.positive_rate is not None:
        constant = max(task.positive_rate, 1 - task.positive_rate)
    assumptions = ["One record is one unit, under add-remove."]
    if like is not None:
        if say is not None:
            say("Trying record moments")
        X, y = like
        if task.positive_rate is None:
            constant = float(np.bincount(y).max() / len(y))
        numbers = tuple(range(task.n_classes)) if names is None else names
        weights = checked_weights(weights_of_classes(task.class_weight, numbers), numbers)
        moments = forecast_moments(
            task, X, y, class_weights=weights, basis=basis, seed=seed, progress=progress
        )
        assumptions.append(
            "Private records and public points are distributed like the rows of the stand-in of"
            " each class."
        )
        if task.positive_rate is not None:
            assumptions.append(
                f"Among records and public points {100 * task.positive_rate:g} % are of the second"
                " class, and so are they of the rows that were drawn of the stand-in."
            )
    source = "guess" if like is None else "stand-in"
    return Plan(task, source, tuple(assumptions), None, (), constant, (), (), seed, moments)


def _names_of(y: Any, n_classes: int) -> tuple[Any, ...]:
    """Return what the labels of a stand-in call its classes: by themselves where all occur, else by
    number."""
    found = np.unique(np.asarray(y)).tolist()
    return tuple(found) if len(found) == n_classes else tuple(range(n_classes))


def _refuse_voting_settings(
    teacher: str, curve: object, n_teachers: int | None, mechanism: str | None
) -> None:
    """Refuse settings of votes beside those of rare classes, which votes do not take."""
    for name, given in (
        ("teacher", teacher != "logistic"),
        ("curve", curve is not None),
        ("teachers", n_teachers is not None),
        ("mechanism", mechanism is not None),
    ):
        if given:
            raise ParameterError(
                Parameter(name),
                " is about votes, and ",
                Parameter("positive_rate"),
                " and ",
                Parameter("class_weight"),
                " are about record moments; leave one of the two out.",
            )


def _refuse_unfit_settings(run: PlanRun) -> None:
    """Refuse what cannot be before any file is opened."""
    check_count("records", run.records)
    check_count("public", run.public)
    if run.teachers is not None:
        check_count("teachers", run.teachers)
    check_count("seed", run.seed, minimum=0)
    if isinstance(run.classes, tuple):
        check_classes(run.classes)
    elif run.classes is not None and check_count("classes", run.classes, minimum=2) > MOST_CLASSES:
        raise ParameterError(
            Parameter("classes"),
            f" is {run.classes}; plans are made for at most {MOST_CLASSES:,} classes.",
        )
    if run.like is not None and run.curve is not None:
        raise ParameterError("like and curve both say how teachers learn; give one of the two.")
    if run.positive_rate is not None:
        check_positive_rate(run.positive_rate, _number_of(run.classes))
    # resolved now, so that a misspelt name costs no waiting
    teacher_by_name(run.teacher)
    student_by_name(run.student)


def _number_of(classes: tuple[Any, ...] | int | None) -> int | None:
    return len(classes) if isinstance(classes, tuple) else classes


def run_by_plan(plan: Plan, tables: RunTables, out: Path, **given: Any) -> LearnRun:
    """Return the run that a plan recommends.

    Parameters
    ----------
    plan : Plan
    tables : RunTables
    out : Path
        Folder for vault and release.
    **given
        Further settings of `LearnRun`; one that the plan has too must be the same.

    Raises
    ------
    ParameterError
        If teacher or student of the plan is a class to be imported that was not given as well.

    Notes
    -----
    A setting that contradicts the plan is refused by `run_learn`, before any file is opened.
    """
    check_instance(
        "plan", plan, Plan, hint="give one that secretballot.plan made, or read_plan read"
    )
    check_imports(plan, given)
    tables = tables_of_plan(plan, tables)
    return LearnRun(tables, out=out, plan=plan, **{**settings_of(plan), **given})


def records_run_by_plan(plan: Plan, tables: RunTables, out: Path, **given: Any) -> RecordsRun:
    """Return the run of record moments that a plan was made for.

    Parameters
    ----------
    plan : Plan
    tables : RunTables
    out : Path
        Folder for vault and release.
    **given
        Further settings of `RecordsRun`; one that the plan has too must be the same.

    Raises
    ------
    ParameterError
        If the student of the plan is a class to be imported that was not given as well.
    """
    check_instance(
        "plan", plan, Plan, hint="give one that secretballot.plan made, or read_plan read"
    )
    check_imports(plan, given, ("student",))
    tables = tables_of_plan(plan, tables)
    return RecordsRun(tables, out=out, plan=plan, **{**settings_of_moments(plan), **given})


def classifier_by_plan(plan: Plan, **more: Any) -> PATEClassifier:
    """Return the learner that a plan recommends, not yet fitted.

    Parameters
    ----------
    plan : Plan
    **more
        Parameters of `PATEClassifier` that a plan leaves open, such as `ledger`, `vault`,
        `random_state`; `teacher` and `student` where others than the plan's shall learn.

    Returns
    -------
    PATEClassifier
        With a strategy where the plan asks in rounds.

    Raises
    ------
    ParameterError
        If a parameter is given that the plan has set, or is unknown.

    Privacy
    -------
    Unit, relation, sensitivity, price : as for `PATEClassifier`, at the budget of the plan.
    """
    check_instance(
        "plan", plan, Plan, hint="give one that secretballot.plan made, or read_plan read"
    )
    # A parameter that the plan has set may not be given again, even with the same value: whoever
    # changes one later would believe in a forecast that is about another.
    check_imports(plan, more)
    task, setting = plan.task, plan.votes.setting
    planned: dict[str, Any] = {
        "n_teachers": setting.n_teachers,
        "budget": task.budget,
        "mechanism": setting.mechanism,
        "n_queries": setting.n_queries,
        "release": setting.release,
        "max_abstentions": setting.max_abstentions,
        "threshold": setting.threshold,
        "max_answers": setting.max_answers,
    }
    twice = sorted({*planned, "strategy", "estimate_epsilon"} & set(more))
    if twice:
        raise ParameterError(
            f"{', '.join(twice)} follows from the plan; leave it out, or make the learner without"
            " one."
        )
    if setting.strategy != PASSIVE:
        planned["strategy"] = strategy_by_name(setting.strategy)
    learners = {
        "teacher": (
            more["teacher"] if "teacher" in more else teacher_by_name(task.teacher, task.n_classes)
        ),
        "student": more["student"] if "student" in more else student_by_name(task.student),
    }
    unknown = sorted(set(more) - set(PATEClassifier._get_param_names()))
    if unknown:
        raise ParameterError(
            f"{', '.join(unknown)} is no parameter of PATEClassifier; see its documentation."
        )
    return PATEClassifier(**{**planned, **more, **learners})
