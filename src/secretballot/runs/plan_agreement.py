"""Runs by a plan: the settings that it supplies, and what must agree with it beforehand."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from secretballot._validation import name_part, shown, shown_classes
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.named_learners import imports_a_class
from secretballot.planning.plan.model import Plan
from secretballot.runs.progress import Watch
from secretballot.runs.tables import RunTables

# a share by which a number of rows may differ before a forecast is off by more than its range
FAR = 0.1


def settings_of(plan: Plan) -> dict[str, Any]:
    """Return what a plan fixes of a run, by the names that `LearnRun` and the options give it."""
    task, setting = plan.task, plan.votes.setting
    return {
        "epsilon": task.epsilon,
        "delta": task.delta,
        "teachers": setting.n_teachers,
        "queries": setting.n_queries,
        "mechanism": setting.mechanism,
        "max_abstentions": setting.max_abstentions,
        "threshold": setting.threshold,
        "max_answers": setting.max_answers,
        "release": setting.release,
        "strategy": setting.strategy,
        "records": task.n_records,
        "teacher": task.teacher,
        "student": task.student,
    }


def settings_of_moments(plan: Plan) -> dict[str, Any]:
    """Return what a plan fixes of a run of moments, by the names that `RecordsRun` gives it."""
    task = plan.task
    return {
        "epsilon": task.epsilon,
        "delta": task.delta,
        "records": task.n_records,
        "student": task.student,
        "positive_rate": task.positive_rate,
        "class_weight": task.class_weight,
    }


def tables_of_plan(plan: Plan, tables: RunTables) -> RunTables:
    """Return the tables of a run with the classes of its plan, where the run names none.

    Raises
    ------
    ParameterError
        If both name classes, and other ones.
    """
    if plan.classes is None:
        return tables
    if tables.classes is None:
        return replace(tables, classes=plan.classes)
    if {str(name) for name in tables.classes} != {str(name) for name in plan.classes}:
        raise ParameterError(
            Parameter("classes"),
            f" are {shown_classes(tables.classes)} and the plan says {shown_classes(plan.classes)};"
            " give what the plan says, or leave one of the two out.",
        )
    return tables


def check_settings(
    plan: Plan, settings: Mapping[str, Any], planned: Mapping[str, Any] | None = None
) -> None:
    """Refuse settings of a run that are not those of its plan.

    Parameters
    ----------
    plan : Plan
    settings : mapping
        All settings of the run, by the names of `planned`, and ``estimate_epsilon`` of voting.
    planned : mapping, optional
        What the plan fixes; by default `settings_of`.

    Raises
    ------
    ParameterError
        Naming the first setting that differs, and both values.
    """
    for name, value in (settings_of(plan) if planned is None else planned).items():
        if settings[name] != value:
            says = "has none" if value is None else f"says {shown(value)}"
            raise ParameterError(
                name_part(name),
                f" is {shown(settings[name])} and the plan {says}; give what the plan says, or"
                " leave one of the two out.",
            )
    if settings.get("estimate_epsilon") is not None:
        raise ParameterError(
            Parameter("estimate_epsilon"),
            " pays for an estimate that sets the number of queries, which the plan has set; leave"
            " one of the two out.",
        )


def check_imports(
    plan: Plan, given: Mapping[str, Any], learners: Sequence[str] = ("teacher", "student")
) -> None:
    """Refuse a plan that alone would have a class imported: plans pass from hand to hand.

    Parameters
    ----------
    plan : Plan
    given : mapping
        Settings that were given beside the plan.
    learners : sequence of str
        Which of the plan's learners the run takes.

    Raises
    ------
    ParameterError
        If teacher or student is ``package.module:Class`` and was not given as well.
    """
    for name in learners:
        planned = getattr(plan.task, name)
        if imports_a_class(planned) and name not in given:
            raise ParameterError(
                name_part(name),
                f" is {shown(planned)} by the plan, and a plan alone must not have code imported;"
                f" give the same {name} beside the plan if you trust it.",
            )


def check_tables(
    plan: Plan,
    *,
    n_classes: int,
    n_public: int,
    n_private: int,
    watch: Watch,
    asks: bool = True,
) -> None:
    """Check the tables of a run against the sizes of its plan.

    Parameters
    ----------
    plan : Plan
    n_classes, n_public : int
        Declared classes; rows of the public file.
    n_private : int
        Rows of the private file: what is said of them is for the curator alone.
    watch : Watch
        Told of sizes that are not the planned ones.
    asks : bool
        Whether the run asks the planned number of queries.

    Raises
    ------
    DataError
        If the plan is about another number of classes, or asks more queries than there are public
        rows.
    """
    # Errors where the plan cannot be carried out; notes where it can and its forecast is off. What
    # is said of the private file goes to the curator alone.
    task = plan.task
    queries = plan.votes.setting.n_queries if asks else 0
    if n_classes != task.n_classes:
        raise DataError(
            f"The plan is about {task.n_classes} classes and the run has {n_classes}; plan again"
            f" with --classes {n_classes}, or declare the right ones."
        )
    if queries > n_public:
        raise DataError(
            f"The plan asks {queries} queries and the public file has {n_public} rows; plan again"
            f" with --public {n_public}, or give more public rows."
        )
    if n_public != task.n_public:
        watch.note(
            f"The plan was made for {task.n_public} public points and the public file has"
            f" {n_public}, so what it forecasts of the student may be off.",
            private=False,
        )
    if not abs(n_private - task.n_records) <= FAR * task.n_records:
        watch.note(
            f"The private file has {'fewer' if n_private < task.n_records else 'more'} rows, by"
            f" over a tenth, than the {task.n_records} that the plan was made for, so its forecast"
            " is off; plan again by a number that you may state in public.",
            private=True,
        )
