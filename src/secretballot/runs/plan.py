"""From public numbers and files to a plan, as `secretballot plan` does; from a plan to a run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._naming import integers_or_words, name_columns, named
from secretballot._typing import IntArray
from secretballot._validation import check_count, check_instance
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.moments.class_weights import checked_weights
from secretballot.learners.pate.estimators import PATEClassifier
from secretballot.learners.pate.mechanisms import OF_CLASSES, noise_of
from secretballot.planning.plan.model import Plan, Task, check_weighted_names
from secretballot.planning.plan.rare_text import no_figure_parts
from secretballot.planning.plan.wording import share_range
from secretballot.planning.planner import MOST_CLASSES, checked_stand_in
from secretballot.planning.planner import plan as plan_votes
from secretballot.planning.search.best_setting import ImpossibleTaskError
from secretballot.planning.simulation.curve import LearningCurve
from secretballot.runs.basis import basis_of_schema
from secretballot.runs.caution import cautions_of_price
from secretballot.runs.methods import Sizes, method_of
from secretballot.runs.moments_forecast import forecast_moments
from secretballot.runs.plan_files import (
    SCHEMA_FILE,
    check_plan_folder,
    schema_bytes,
    write_plan,
    write_plan_files,
)
from secretballot.runs.progress import Watch
from secretballot.runs.quote import Quote
from secretballot.runs.spec import MomentsSpec, PateSpec, RunSpec, Sources
from secretballot.runs.stand_in_table import StandInTable, read_stand_in
from secretballot.runs.tables import RunTables, check_classes, public_table
from secretballot.students.names import student_by_name


@dataclass(frozen=True)
class Planned:
    """What is known of a run to come, before any private file is touched.

    Attributes
    ----------
    schema : Schema or None
        Columns of the public table, where one was given.
    quote : Quote or None
        What a run of these settings would release, where no number of records was stated.
    plan : Plan or None
        What to choose and to expect, where one was.
    """

    schema: Schema | None
    quote: Quote | None
    plan: Plan | None


def run_plan(
    sources: Sources,
    *,
    like: Path | str | None = None,
    curve: Mapping[int, float] | None = None,
    out: Path | None = None,
    reporter: Watch | None = None,
) -> Planned:
    """Say what a run would cost, what to choose and what to expect, and write the folder of the
    plan where one is named.

    Parameters
    ----------
    sources : Sources
        Settings of the run to come. `public` is a table, or the number of its points; `classes` may
        be the number of them.
    like : path or URL, optional
        A labelled public table that stands in for the private one.
    curve : mapping of int to float, optional
        Accuracy of one teacher on new points, by the number of records that it learnt from.
    out : Path, optional
        Folder for the plan.
    reporter : Watch, optional
        Told what happens.

    Raises
    ------
    ParameterError
        If something does not fit, or no setting answers anything; the message then says what would.
    DataError
        If a table cannot be used, or the folder is not free.

    Privacy
    -------
    Reads no private data and spends nothing. That the tables are public is the caller's word.
    """
    watch, spec = reporter or Watch(), RunSpec.of_tree(sources.tree())
    if out is not None:
        check_plan_folder(out)
    if like is not None and curve is not None:
        raise ParameterError("like and curve both say how teachers learn; give one of the two.")
    n_public, schema = _public_points(spec, watch)
    declared = spec.data.classes
    classes: tuple[Any, ...] | int | None = declared
    if declared is not None and len(declared) == 1 and isinstance(declared[0], int):
        classes = declared[0]
    if isinstance(classes, tuple):
        check_classes(classes)
    elif classes is not None and check_count("classes", classes, minimum=2) > MOST_CLASSES:
        raise ParameterError(
            Parameter("classes"),
            f" is {classes}; plans are made for at most {MOST_CLASSES:,} classes.",
        )
    if spec.data.n_records is None:
        n_classes = 2 if classes is None else _number_of(classes) or 2
        n_columns = 1 if schema is None else len(schema.feature_names)
        quoted = method_of(spec).quote(Sizes(n_public, n_classes, n_columns))
        asked = tuple(cautions_of_price(spec.price, None))
        if out is not None and schema is not None:
            write_plan_files(out, {SCHEMA_FILE: schema_bytes(schema)})
        return Planned(schema, replace(quoted, cautions=asked), None)
    made = _plan_of_spec(sources, spec, n_public, classes, like, curve, watch)
    if out is not None:
        watch.step("Writing the plan")
        write_plan(made, out, schema, watch)
    return Planned(schema, None, made)


def _public_points(spec: RunSpec, watch: Watch) -> tuple[int, Schema | None]:
    """Return the number of public points, and the schema of their table where there is one."""
    public = spec.data.public
    if public is None:
        raise ParameterError(
            Parameter("public"), " is missing; give a table, or how many points there are."
        )
    if str(public).isdigit() and not Path(public).exists():
        return check_count("public", int(str(public))), None
    tables = RunTables(
        public,
        public,
        spec.data.target[0] if spec.data.target else "",
        unit=spec.data.unit,
        schema=spec.data.schema_file,
        drop=spec.data.drop,
        labels=spec.data.target if len(spec.data.target) > 1 else (),
    )
    schema, frame, nowhere = public_table(tables, watch)
    if nowhere:
        raise DataError(
            f"The public file lacks {name_columns(nowhere)}, to be dropped; spell columns as the"
            " file does."
        )
    if spec.data.classes is not None and len(spec.data.classes) > 1:
        schema = replace(schema, classes=check_classes(spec.data.classes))
    return len(frame), schema


def _plan_of_spec(
    sources: Sources,
    spec: RunSpec,
    n_public: int,
    classes: tuple[Any, ...] | int | None,
    like: Path | str | None,
    curve: Mapping[int, float] | None,
    watch: Watch,
) -> Plan:
    """Return the plan of a run with a stated number of records."""
    method, given = spec.method, sources.given
    stand_in, n_classes, basis = None, _number_of(classes), None
    names: tuple[Any, ...] | None = classes if isinstance(classes, tuple) else None
    if like is not None:
        if not spec.data.target:
            raise ParameterError(
                Parameter("target"), " is missing; name the column of the stand-in with the class."
            )
        watch.step("Reading the table")
        place = StandInTable(like, spec.data.target[0], spec.data.schema_file, spec.data.drop)
        table, names, schema = read_stand_in(place, classes, watch)
        stand_in, n_classes = (table.X, table.targets), len(names)
        basis = basis_of_schema(schema)
    elif n_classes is None:
        raise ParameterError(
            Parameter("classes"), " is missing; list the classes, or say how many there are."
        )
    mechanism, rate = None, getattr(method, "positive_rate", None)
    if isinstance(method, PateSpec) and "mechanism" in given:
        mechanism = noise_of(named("mechanism", method.mechanism, OF_CLASSES)[0])
    weight: Any = None
    if isinstance(method, MomentsSpec) and method.class_weight != "none":
        auto = None if rate is None else "balanced"
        weight = auto if method.class_weight == "auto" else method.class_weight
    watch.step("Evaluating settings")
    made = plan(
        spec.data.n_records or 1,
        n_public,
        budget=spec.price,
        n_classes=n_classes,
        like=stand_in,
        curve=curve,
        n_teachers=getattr(method, "n_teachers", None),
        teacher=str(getattr(method, "teacher", None) or "logistic"),
        student=str(getattr(method, "student", "auto")),
        mechanism=mechanism,
        positive_rate=rate,
        class_weight=weight,
        basis=basis,
        seed=method.random_state,
        progress=watch.progress,
        say=watch.step,
        names=names,
    )
    return made if names is None else replace(made, classes=integers_or_words(names))


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
    names: Sequence[Any] | None = None,
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
    names : sequence, optional
        What the classes are called, where `like` numbers them.

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
        n_found = 2 if n_classes is None else n_classes
        if like is not None:
            X, index, n_found = checked_stand_in(like, n_classes)
            names, like = names or _names_of(like[1], n_found), (X, index)
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
        f"{problem} Record moments would reach {reached} (record-moments).", *no_figure
    )


def _plan_of_rare_classes(
    task: Task,
    like: tuple[Any, IntArray] | None,
    names: Sequence[Any] | None,
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
        weights = checked_weights(_by_class(task.class_weight, numbers), tuple(numbers))
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


def _by_class(weight: Any, classes: Sequence[Any]) -> Any:
    """Return weights by the classes themselves, where they are given by name."""
    if not isinstance(weight, Mapping):
        return weight
    return {one: weight[str(one)] for one in classes if str(one) in weight}


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


def _number_of(classes: tuple[Any, ...] | int | None) -> int | None:
    return len(classes) if isinstance(classes, tuple) else classes


def classifier_by_plan(plan: Plan, **more: Any) -> PATEClassifier:
    """Return the learner that a plan recommends, not yet fitted.

    Parameters
    ----------
    plan : Plan
    **more
        Parameters of `PATEClassifier` that a plan leaves open, such as `ledger` or
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
    check_instance("plan", plan, Plan, hint="give one that secretballot.plan made")
    # A parameter that the plan has set may not be given again, even with the same value: whoever
    # changes one later would believe in a forecast that is about another.
    task, setting = plan.task, plan.votes.setting
    planned: dict[str, Any] = {
        "n_teachers": setting.n_teachers,
        "epsilon": task.epsilon,
        "delta": task.delta,
        "mechanism": setting.named,
        "n_queries": setting.n_queries,
        "strategy": setting.strategy,
    }
    twice = sorted({*planned} & set(more))
    if twice:
        raise ParameterError(
            f"{', '.join(twice)} follows from the plan; leave it out, or make the learner without"
            " one."
        )
    learners = {"teacher": task.teacher, "student": task.student}
    unknown = sorted(set(more) - set(PATEClassifier._get_param_names()))
    if unknown:
        raise ParameterError(
            f"{', '.join(unknown)} is no parameter of PATEClassifier; see its documentation."
        )
    return PATEClassifier(**{**planned, **learners, **more})
