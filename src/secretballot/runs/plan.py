"""From public numbers and files to a plan, as `secretballot plan` does; and plans on disk: settings
that `learn --config` reads, the plan as text and its pictures.

Nothing here is secret: a plan is made of public numbers and stand-in data.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot._naming import integers_or_words, named
from secretballot._typing import IntArray
from secretballot._validation import check_count, check_instance, shown
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.data.cells import is_missing, texts_of
from secretballot.data.frames import check_named, class_indices
from secretballot.data.reading import as_texts, estimated_rows, read_table, table_blocks
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.moments.class_weights import checked_weights
from secretballot.learners.pate.estimators import PATEClassifier
from secretballot.learners.pate.mechanisms import OF_CLASSES
from secretballot.planning.plan.model import PLANNED, Plan, Task
from secretballot.planning.plan.pictures import draw_plan_pictures
from secretballot.planning.plan.text import plan_text
from secretballot.planning.planner import MOST_CLASSES, checked_stand_in, plan_votes
from secretballot.planning.search.best_setting import ImpossibleTaskError
from secretballot.report.extras import MissingExtraError
from secretballot.report.wording import count_text
from secretballot.runs.folder import check_outside_of_runs, write_files
from secretballot.runs.method import KINDS, Quote, Sizes
from secretballot.runs.methods import basis_of_columns, by_class, method_of
from secretballot.runs.moments_forecast import forecast_moments
from secretballot.runs.questions import Watch, cautions_of_price
from secretballot.runs.spec import (
    MOMENTS,
    PATE,
    DataSpec,
    PateSpec,
    RunSpec,
    Sources,
    groups,
    toml_text,
)
from secretballot.runs.tables import (
    LabelledTable,
    check_classes,
    public_table,
    refuse_nowhere,
    schema_of,
)
from secretballot.students.names import student_by_name

PLAN_FILE, JSON_FILE, TEXT_FILE = "plan.toml", "plan.json", "plan.txt"
SCHEMA_FILE = "plan.schema.json"
_NEXT = f"next         secretballot learn PRIVATE PUBLIC --config {PLAN_FILE}\n"
STAND_IN = "stand-in file"
MOST_ROWS = 500_000  # of a larger stand-in so many, about, are drawn
LEAST_OF_A_CLASS = 2  # rows, on average; with fewer, labels are a column of numbers


@dataclass(frozen=True)
class Planned:
    """What is known of a run to come, before any private file is touched.

    Attributes
    ----------
    schema : Schema or None
        Columns of the public table, where one was given.
    quote : Quote or None
        What a run of these settings would release, where nothing says what to expect of it.
    plan : Plan or None
        What to choose and to expect, where a number of records was stated and a stand-in given.
    """

    schema: Schema | None
    quote: Quote | None
    plan: Plan | None


def run_plan(
    sources: Sources,
    *,
    like: Path | str | None = None,
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
        A labelled public table in place of the private one.
    out : Path, optional
        Folder for the plan.
    reporter : Watch, optional
        Called with what happens.

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
    mechanism = None
    if spec.data.n_records is not None and like is not None:
        mechanism = _mechanism_to_forecast(sources, spec)
    n_public, schema = _public_points(spec, watch)
    names, n_classes = _declared_classes(spec.data)
    if spec.data.n_records is None or like is None:
        if out is not None and schema is None:
            raise ParameterError(
                Parameter("out"),
                " is given, and without a public table or a forecast nothing is written; leave it"
                " out, or give ",
                Parameter("n_records"),
                " and ",
                Parameter("like"),
                ".",
            )
        n_columns = 1 if schema is None else len(schema.feature_names)
        quoted = method_of(spec).quote(Sizes(n_public, n_classes or 2, n_columns))
        asked = (*cautions_of_price(spec.price, None), *quoted.cautions)
        if out is not None and schema is not None:
            write_files(out, {SCHEMA_FILE: _json(schema.to_edit())})
        return Planned(schema, replace(quoted, cautions=asked), None)
    made = _plan_of_spec(spec, mechanism, n_public, names, n_classes, like, watch)
    if out is not None:
        watch.step("Writing the plan")
        write_plan(made, out, schema, watch, given=_given_of_run(sources, spec))
    return Planned(schema, None, made)


def _mechanism_to_forecast(sources: Sources, spec: RunSpec) -> str | None:
    """Return the mechanism that alone is planned for, None where all are weighed; refuse a run of
    which there is no forecast, before anything is read."""
    method, kind = spec.method, spec.data.kind
    if method.name not in (MOMENTS, PATE):
        raise ParameterError(
            Parameter("method"),
            f" is {method.name}, and a forecast compares {MOMENTS} and {PATE}; take one of these,"
            " or leave ",
            Parameter("like"),
            " out.",
        )
    if kind != "class":
        raise ParameterError(
            Parameter("target"),
            f" is {KINDS[kind]}, and a forecast is for one target of classes; leave ",
            Parameter("like"),
            " out.",
        )
    if not isinstance(method, PateSpec) or "mechanism" not in sources.given:
        return None
    name, own = named("mechanism", method.mechanism, OF_CLASSES)
    name = "gaussian" if name == "auto" else name  # labels or counts, whichever is better
    if name not in PLANNED:
        raise ParameterError(
            Parameter("mechanism"),
            f" is {name}, which has no forecast; leave it out, or leave ",
            Parameter("like"),
            " out.",
        )
    if own:
        raise ParameterError(
            Parameter("mechanism"),
            f" is {shown(method.mechanism)}, and a forecast finds {' and '.join(own)} itself; give"
            f" {name} alone.",
        )
    return name


def _given_of_run(sources: Sources, spec: RunSpec) -> dict[str, Any]:
    """Return what was given of the run to come beside its method: target, columns, account."""
    return {
        name: value
        for name, value in spec.identity().items()
        if name in sources.given and name != "classes" and groups()[name] != "method"
    }


def _declared_classes(data: DataSpec) -> tuple[tuple[Any, ...] | None, int | None]:
    """Return the classes by name, where they are declared so, and how many there are."""
    if data.classes is None:
        return None, None
    if len(data.classes) > 1 or not isinstance(data.classes[0], int):
        return check_classes(data.classes), len(data.classes)
    return None, check_count("classes", data.classes[0], minimum=2)


def _public_points(spec: RunSpec, watch: Watch) -> tuple[int, Schema | None]:
    """Return the number of public points, and the schema of their table where there is one."""
    public = spec.data.public
    if public is None:
        raise ParameterError(
            Parameter("public"), " is missing; give a table, or how many points there are."
        )
    if str(public).isdigit() and not Path(public).exists():
        return check_count("public", int(str(public))), None
    schema, frame, nowhere = public_table(spec.data, watch)
    refuse_nowhere(nowhere, "no column of the public file")
    names = _declared_classes(spec.data)[0]
    return len(frame), schema if names is None else replace(schema, classes=names)


def _plan_of_spec(
    spec: RunSpec,
    mechanism: str | None,
    n_public: int,
    names: tuple[Any, ...] | None,
    n_classes: int | None,
    like: Path | str,
    watch: Watch,
) -> Plan:
    """Return the plan of a run with a stated number of records."""
    method: Any = spec.method
    weight = getattr(method, "weights", None)
    if not spec.data.target:
        raise ParameterError(
            Parameter("target"), " is missing; name the column of the stand-in with the class."
        )
    watch.step("Reading the table")
    table, names, schema = read_stand_in(like, spec.data, names, n_classes, watch)
    basis = basis_of_columns(getattr(method, "basis", "auto"), schema, table.X)
    watch.step("Evaluating settings")
    made = plan(
        spec.data.n_records or 1,
        n_public,
        budget=spec.price,
        n_classes=len(names),
        like=(table.X, table.targets),
        n_teachers=getattr(method, "n_teachers", None),
        teacher=str(getattr(method, "teacher", None) or "logistic"),
        student=str(getattr(method, "student", "auto")),
        mechanism=mechanism,
        # a plan about rare classes has no votes, so it is made where it is asked for
        class_weight=None if weight == "auto" else weight,
        basis=basis,
        seed=method.random_state,
        progress=watch.progress,
        say=watch.step,
        names=names,
    )
    return replace(made, classes=integers_or_words(names))


def plan(
    n_records: int,
    n_public: int,
    *,
    budget: PrivacyBudget,
    like: tuple[Any, Any],
    n_classes: int | None = None,
    n_teachers: int | None = None,
    teacher: str = "logistic",
    student: str = "auto",
    mechanism: str | None = None,
    class_weight: str | Mapping[Any, float] | None = None,
    basis: Basis | str = "auto",
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
    like : (X, y)
        Labelled rows that may be shown to anyone, encoded as the private ones will be: another
        year's data, or synthetic ones; X of shape (n_rows, n_features), y of shape (n_rows,).
        Teachers and students are tried on them, and record moments.
    n_classes : int, optional
        By default as many as occur in `like`.
    n_teachers : int, optional
        K, where votes or silos exist already; then votes alone are planned.
    teacher, student : str
        Names as for `secretballot learn`.
    mechanism : str, optional
        Plan for votes by this mechanism alone, by its name for `PATEClassifier`; by default all
        are weighed.
    class_weight : "balanced" or mapping of class to float, optional
        What decisions count each class for, as for `RecordMomentsClassifier`. Votes take none, so
        record moments alone are planned.
    basis : str or basis of `secretballot.bases`
        As for `RecordMomentsClassifier`.
    seed : int
        Of the simulation; it never touches noise that protects anything.
    progress : callable, optional
        Takes steps done and steps in all, of each part of the work.
    say : callable of str, optional
        Called with the name of each step before it begins.
    names : sequence, optional
        What the classes are called, where `like` numbers them.

    Returns
    -------
    Plan
        With a forecast of record moments where neither `n_teachers` nor `mechanism` is given;
        without any setting of votes where `class_weight` is given, or where votes cannot do the
        task.

    Raises
    ------
    ParameterError
        If a number is out of its range, a name is unknown, or no votes can do the task and record
        moments are not tried.
    DataError
        If the stand-in is not a table with one class for each of at least 100 rows.

    Privacy
    -------
    Takes no private data and spends nothing. Give no private rows as `like`: the plan would tell of
    them.
    """
    check_instance("budget", budget, PrivacyBudget)
    X, index, found = checked_stand_in(like, n_classes)
    price, learners = (budget.epsilon, budget.delta), (teacher, student)
    task = Task(n_records, n_public, found, *price, *learners, class_weight, mechanism)
    # noisy sums over records need a delta above 0; votes under Laplace noise do not
    only_votes = n_teachers is not None or mechanism is not None or not budget.delta > 0
    if class_weight is not None:
        if n_teachers is not None or mechanism is not None:
            raise ParameterError(
                Parameter("class_weight"),
                " is about record moments, and teachers and mechanisms are about votes; leave one"
                " of the two out.",
            )
        made = _plan_without_votes(task, index, seed)
    else:
        try:
            made = plan_votes(task, X, index, n_teachers=n_teachers, seed=seed, progress=progress)
        except ImpossibleTaskError:
            if only_votes:
                raise
            made = _plan_without_votes(task, index, seed)
        if only_votes:
            return made
    if say is not None:
        say("Trying record moments")
    classes = tuple(names or _names_of(like[1], found))
    weights = checked_weights(by_class(task.class_weight, classes), classes)
    moments = forecast_moments(
        task, X, index, class_weights=weights, basis=basis, seed=seed, progress=progress
    )
    return replace(made, moments=moments)


def _plan_without_votes(task: Task, index: IntArray, seed: int) -> Plan:
    """Return a plan of record moments alone, whose forecast is still to come; `index` are the
    classes of a stand-in, of shape (n_rows,)."""
    student_by_name(task.student)
    if not task.delta > 0:
        raise ParameterError(
            Parameter("delta"),
            " is 0, and the noise of record moments needs more; give one, such as 1e-6.",
        )
    assumptions = (
        "One record is one unit, under add-remove.",
        "Private records and public points are distributed like the rows of the stand-in of each"
        " class.",
    )
    # what always answering one class reaches
    constant = float(np.bincount(index).max() / len(index))
    return Plan(task, assumptions, None, (), constant, (), (), seed)


def _names_of(y: Any, n_classes: int) -> tuple[Any, ...]:
    """Return what the labels of a stand-in call its classes: by themselves where all occur, else by
    number."""
    found = np.unique(np.asarray(y)).tolist()
    return tuple(found) if len(found) == n_classes else tuple(range(n_classes))


def classifier_by_plan(plan: Plan) -> PATEClassifier:
    """Return the learner that a plan recommends, not yet fitted.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    PATEClassifier
        With a strategy where the plan asks in rounds. What a plan leaves open, such as `ledger`
        and `random_state`, is set by `set_params`.

    Raises
    ------
    ParameterError
        If the plan has no setting of votes.

    Privacy
    -------
    Unit, relation, sensitivity, price : as for `PATEClassifier`, at the budget of the plan.
    """
    check_instance("plan", plan, Plan, hint="give one that secretballot.plan made")
    task, setting = plan.task, plan.votes.setting
    return PATEClassifier(
        task.teacher,
        task.student,
        epsilon=task.epsilon,
        delta=task.delta,
        n_teachers=setting.n_teachers,
        mechanism=setting.named,
        n_queries=setting.n_queries,
        strategy=setting.strategy,
    )


def read_stand_in(
    place: Path | str,
    data: DataSpec,
    names: tuple[Any, ...] | None,
    n_classes: int | None,
    watch: Watch,
) -> tuple[LabelledTable, tuple[Any, ...], Schema]:
    """Read and encode a labelled public table; return it with its classes and its schema.

    Parameters
    ----------
    place : Path, or str where it is a URL
    data : DataSpec
        Its target, schema file and columns to drop are those of the table.
    names : tuple or None
        Declared classes; by default those of the schema, or of the file.
    n_classes : int or None
        How many there are.
    watch : Watch
        Called with columns that are no features.

    Raises
    ------
    DataError
        If the file cannot be read, or does not fit the schema or the classes.
    ParameterError
        If the classes are not two or more different ones.
    """
    frame, target = _rows_of_stand_in(place, watch), data.target[0]
    refuse_nowhere(
        [name for name in data.drop if name not in frame.columns], f"no column of the {STAND_IN}"
    )
    check_named(frame, target, "its label column with --target", role=STAND_IN)
    schema, features = schema_of(data, frame, STAND_IN, watch)
    names = names or (schema.classes if n_classes is None else None)
    classes = check_classes(names) if names else _classes_of(frame, target, n_classes)
    index = class_indices(frame, target, classes, role=STAND_IN)
    return LabelledTable(schema.encode(features, role=STAND_IN), index), classes, schema


def _rows_of_stand_in(place: Path | str, watch: Watch) -> pd.DataFrame:
    """Return the rows of a public table, of a large one a part that is drawn at random."""
    expected = estimated_rows(place, role=STAND_IN)
    if expected <= MOST_ROWS:
        return read_table(place, role=STAND_IN)
    # by a public seed: the table is public, and so is what is drawn of it
    rng, kept = np.random.default_rng(0), []
    for frame in table_blocks(place, role=STAND_IN):
        kept.append(frame[rng.random(len(frame)) < MOST_ROWS / expected])
    watch.note(
        f"The {STAND_IN} has about {expected:,} rows, of which {sum(map(len, kept)):,} were drawn"
        " at random.",
        private=False,
    )
    return as_texts(kept)


def _classes_of(frame: pd.DataFrame, target: str, expected: int | None) -> tuple[Any, ...]:
    """Return the classes, which may be read off a public file, sorted."""
    # too many distinct labels, or too few rows of each, are a column of numbers taken for classes
    found = sorted({text for text in texts_of(frame[target]) if not is_missing(text)})
    most = min(MOST_CLASSES, len(frame) // LEAST_OF_A_CLASS)
    if not 2 <= len(found) <= most:
        raise DataError(
            f"The {STAND_IN} has {count_text(len(found), 'different label')} in column {target!r}"
            f" of {count_text(len(frame), 'row')}; name the column of classes with --target, of"
            f" which there are 2 to {MOST_CLASSES:,}, with {LEAST_OF_A_CLASS} rows of each or more."
        )
    if expected not in (None, len(found)):
        raise DataError(
            f"The {STAND_IN} has {len(found)} classes in column {target!r}, not {expected}; list"
            " them by name with --classes, also those that the file lacks."
        )
    return tuple(found)


def check_plan_folder(folder: Path) -> None:
    """Refuse a folder that is not new or empty, or lies in the vault or the release of a run:
    before planning and again with the plan.

    Raises
    ------
    DataError
        If it is such a one.
    """
    check_outside_of_runs(folder)
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise DataError(f"{str(folder)!r} exists; give a new folder with --out.")


def write_plan(
    plan: Plan,
    folder: Path,
    schema: Schema | None = None,
    watch: Watch | None = None,
    *,
    given: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write a plan as settings of a run, as JSON, as text and in pictures, each file complete or
    not at all.

    Pictures need an optional package; without it they are left out, and the watch is informed.

    Parameters
    ----------
    plan : Plan
    folder : Path
        New or empty.
    schema : Schema, optional
        Columns of the public table, to be edited.
    watch : Watch, optional
    given : mapping, optional
        Further settings of the run to come, by their names.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    DataError
        If the folder is refused (`check_plan_folder`) or cannot be written.
    """
    check_plan_folder(folder)
    contents = {
        PLAN_FILE: plan_toml(plan, given).encode(),
        JSON_FILE: _json(plan.to_json()),
        TEXT_FILE: f"{plan_text(plan)}{_NEXT}".encode(),
    }
    if schema is not None:
        contents[SCHEMA_FILE] = _json(schema.to_edit())
    try:
        for name, picture in draw_plan_pictures(plan).items():
            contents |= {f"{name}.svg": picture.svg(), f"{name}.png": picture.png()}
    except MissingExtraError as error:
        (watch or Watch()).note(f"The pictures of the plan are left out: {error}", private=False)
    write_files(folder, contents)
    return [folder / name for name in contents]


def plan_toml(plan: Plan, given: Mapping[str, Any] | None = None) -> str:
    """Return a plan as settings of a run that bind, beside others that were given, and its
    forecast."""
    tables: dict[str, dict[str, Any]] = {}
    for name, value in {**(given or {}), **plan.settings()}.items():
        key = "name" if name == "method" else name
        tables.setdefault(groups()[name], {})[key] = value
    return toml_text({**tables, "forecast": plan.forecast()})


def _json(document: Mapping[str, Any]) -> bytes:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "surrogatepass")
