"""From public numbers and files to a plan, as `secretballot plan` does; and plans on disk, settings
that `learn --config` reads, and pictures.

Nothing here is secret: a plan is made of public numbers and stand-in data.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot._typing import FloatArray, IntArray, Json, JsonView, Values
from secretballot._validation import (
    MissingExtraError,
    check_choice,
    check_count,
    check_instance,
    integers_or_words,
    refusal,
)
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.data.cells import is_missing, texts_of
from secretballot.data.frames import check_named, class_indices
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.data.tally import check_classes
from secretballot.exceptions import DataError, Parameter
from secretballot.learners.moment_stages import checked_weights
from secretballot.planning.best_setting import ImpossibleTaskError, plan_votes
from secretballot.planning.moments_forecast import forecast_moments
from secretballot.planning.plan_model import Plan, Task, plan_picture
from secretballot.planning.stand_in import MOST_CLASSES, checked_stand_in
from secretballot.report.wording import count_text
from secretballot.runs.folder import check_new_folder, check_outside_of_runs, write_files
from secretballot.runs.methods import (
    KINDS,
    Quote,
    Sizes,
    basis_of_columns,
    by_class,
    cautions_of_price,
    method_of,
)
from secretballot.runs.questions import Watch
from secretballot.runs.spec import MOMENTS, PATE, DataSpec, RunSpec, Sources, groups, toml_text
from secretballot.runs.tables import public_table, refuse_nowhere, schema_of
from secretballot.students.fitting import student_by_name

_PLAN_FILE, _JSON_FILE, _SCHEMA_FILE = "plan.toml", "plan.json", "plan.schema.json"
_STAND_IN = "stand-in file"
_LEAST_OF_A_CLASS = 2  # rows, on average; with fewer, labels are a column of numbers


@dataclass(frozen=True)
class _Planned:
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
) -> _Planned:
    """Say what a run would cost, what to choose and what to expect, and write the folder of the
    plan where one is named.

    Parameters
    ----------
    sources : Sources
        Settings of the run to come. `public` is a table, or the number of its points; without a
        stand-in `classes` may be the number of them.
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
        check_outside_of_runs(out)
        check_new_folder(out)
    if spec.data.n_records is None or like is None:
        return _priced(spec, out, watch)
    _check_forecast(sources, spec)
    n_public, schema = _public_points(spec, watch)
    watch.step("Reading the table")
    table, classes, columns = _read_stand_in(like, spec.data, watch)
    watch.step("Evaluating settings")
    method: Any = spec.method
    weight = getattr(method, "weights", None)
    made = plan(
        spec.data.n_records,
        n_public,
        budget=spec.price,
        n_classes=len(classes),
        like=table,
        method=method.name if "method" in sources.given else None,
        teacher=str(getattr(method, "teacher", None) or "logistic"),
        student=str(getattr(method, "student", "auto")),
        # a plan about rare classes has no votes, so it is made where it is asked for
        class_weight=None if weight == "auto" else weight,
        basis=basis_of_columns(getattr(method, "basis", "auto"), columns, table[0]),
        seed=method.random_state,
        reporter=watch,
        names=classes,
    )
    made = replace(made, classes=integers_or_words(classes))
    if out is not None:
        watch.step("Writing the plan")
        # of the run to come beside its method: target, columns, account
        given = {
            name: value
            for name, value in spec.identity().items()
            if name in sources.given and name != "classes" and groups()[name] != "method"
        }
        _write_plan(made, out, schema, watch, given)
    return _Planned(schema, None, made)


def _priced(spec: RunSpec, out: Path | None, watch: Watch) -> _Planned:
    """Return columns and price of a run of which nothing says what to expect."""
    n_public, schema = _public_points(spec, watch)
    if out is not None:
        if schema is None:
            raise refusal(
                "out",
                " is given, and without a public table or a forecast nothing is written; leave it"
                " out.",
            )
        write_files(out, {_SCHEMA_FILE: _json(schema.to_edit())})
    classes = spec.data.classes or (2,)
    if len(classes) == 1 and isinstance(classes[0], int):
        n_classes = check_count("classes", classes[0], minimum=2)
    else:
        n_classes = len(check_classes(classes))
    n_columns = 1 if schema is None else len(schema.feature_names)
    quoted = method_of(spec).quote(Sizes(n_public, n_classes, n_columns))
    asked = (*cautions_of_price(spec.price), *quoted.cautions)
    return _Planned(schema, replace(quoted, cautions=asked), None)


def _check_forecast(sources: Sources, spec: RunSpec) -> None:
    """Refuse a run of which there is no forecast, and settings that a forecast finds itself, before
    anything is read."""
    if not spec.data.target:
        raise refusal("target", " is missing; name the column of the stand-in with the class.")
    own = ("n_teachers", "mechanism", "n_queries", "strategy")
    found = [one for one in own if one in sources.given]
    if spec.method.name not in (MOMENTS, PATE):
        setting = "method"
        why = f"is {spec.method.name}, and a forecast compares {MOMENTS} and {PATE}"
    elif spec.data.kind != "class":
        setting, why = "target", f"is {KINDS[spec.data.kind]}, and a forecast is for one of classes"
    elif found:
        setting, why = found[0], "is given, and a forecast finds it itself"
    else:
        return
    raise refusal(setting, f" {why}; leave it out, or leave ", Parameter("like"), " out.")


def _public_points(spec: RunSpec, watch: Watch) -> tuple[int, Schema | None]:
    """Return the number of public points, and the schema of their table where there is one."""
    public = spec.data.public
    if public is None:
        raise refusal("public", " is missing; give a table, or how many points there are.")
    if str(public).isdigit() and not Path(public).exists():
        return check_count("public", int(str(public))), None
    schema, frame, nowhere = public_table(spec.data, watch)
    refuse_nowhere(nowhere, "no column of the public file")
    return len(frame), replace(schema, classes=spec.data.classes or schema.classes)


def plan(
    n_records: int,
    n_public: int,
    *,
    budget: PrivacyBudget,
    like: tuple[Any, Any],
    n_classes: int | None = None,
    method: str | None = None,
    teacher: str = "logistic",
    student: str = "auto",
    class_weight: str | Mapping[Any, float] | None = None,
    basis: Basis | str = "auto",
    seed: int = 0,
    reporter: Watch | None = None,
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
    method : {"pate", "record-moments"}, optional
        Plan for this one alone.
    teacher, student : str
        Names as for `secretballot learn`.
    class_weight : "balanced" or mapping of class to float, optional
        What decisions count each class for, as for `RecordMomentsClassifier`. Votes take none, so
        record moments alone are planned.
    basis : str or basis of `secretballot.bases`
        As for `RecordMomentsClassifier`.
    seed : int
        Of the simulation; it never touches noise that protects anything.
    reporter : Watch, optional
        Called with each step, and with how far it is.
    names : sequence, optional
        What the classes are called, where `like` numbers them.

    Returns
    -------
    Plan
        Without any setting of votes where `class_weight` is given, or where votes cannot do the
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
    task = Task(n_records, n_public, found, *price, *learners, class_weight)
    if method is not None:
        check_choice("method", method, (MOMENTS, PATE))
    # noisy sums over records need a delta above 0; votes under Laplace noise do not
    of_votes = method == PATE
    of_moments = method == MOMENTS or class_weight is not None
    if of_votes and of_moments:
        raise refusal(
            "class_weight",
            f" is about {MOMENTS}, and method {PATE} about votes; leave one of the two out.",
        )
    of_votes = of_votes or not (of_moments or budget.delta > 0)
    watch, made = reporter or Watch(), None
    progress = watch.progress
    if not of_moments:
        try:
            made = plan_votes(task, X, index, seed=seed, progress=progress)
        except ImpossibleTaskError:
            if of_votes:
                raise
    if made is not None and of_votes:
        return made
    if made is None:
        student_by_name(task.student)
        # what always answering one class reaches
        constant = float(np.bincount(index).max() / len(index))
        made = Plan(task, None, (), constant, (), (), seed)
    watch.step("Trying record moments")
    found_names = np.unique(np.asarray(like[1])).tolist()
    # by themselves where all occur, else by number
    classes = tuple(names or (found_names if len(found_names) == found else range(found)))
    weights = checked_weights(by_class(task.class_weight, classes), classes)
    moments = forecast_moments(
        task, X, index, class_weights=weights, basis=basis, seed=seed, progress=progress
    )
    return replace(made, moments=moments)


def _read_stand_in(
    place: Path | str, data: DataSpec, watch: Watch
) -> tuple[tuple[FloatArray, IntArray], Values, Schema]:
    """Read and encode a labelled public table; return its rows and the place of the class of each,
    its classes, those of the schema or of the file where none are declared, and its schema.

    Raises
    ------
    DataError
        If the file cannot be read, or does not fit the schema or the classes.
    ParameterError
        If the classes are not two or more different ones.
    """
    frame, target = read_table(place, role=_STAND_IN, encoding=data.encoding), data.target[0]
    refuse_nowhere(
        [name for name in data.drop if name not in frame.columns], f"no column of the {_STAND_IN}"
    )
    check_named(frame, target, "its label column with --target", role=_STAND_IN)
    schema, features = schema_of(data, frame, _STAND_IN, watch)
    declared = data.classes or schema.classes
    classes = tuple(check_classes(declared)) if declared else _classes_of(frame, target)
    index = class_indices(frame, target, classes, role=_STAND_IN)
    return (schema.encode(features, role=_STAND_IN), index), classes, schema


def _classes_of(frame: pd.DataFrame, target: str) -> Values:
    """Return the classes, which may be read off a public file, sorted."""
    # too many distinct labels, or too few rows of each, are a column of numbers taken for classes
    found = sorted({text for text in texts_of(frame[target]) if not is_missing(text)})
    if not 2 <= len(found) <= min(MOST_CLASSES, len(frame) // _LEAST_OF_A_CLASS):
        raise DataError(
            f"The {_STAND_IN} has {count_text(len(found), 'different label')} in column {target!r}"
            f" of {count_text(len(frame), 'row')}; name the column of classes with --target, of"
            f" which there are 2 to {MOST_CLASSES:,}, each with {_LEAST_OF_A_CLASS} rows or more."
        )
    return tuple(found)


def _write_plan(
    plan: Plan, folder: Path, schema: Schema | None, watch: Watch, given: JsonView
) -> None:
    """Write a plan as settings of a run, beside others that were given, as JSON and in pictures,
    each file complete or not at all; and the columns of the public table, to be edited.

    Pictures need an optional package; without it they are left out, and the watch is informed.
    """
    contents = {_PLAN_FILE: _plan_toml(plan, given).encode(), _JSON_FILE: _json(plan.to_json())}
    if schema is not None:
        contents[_SCHEMA_FILE] = _json(schema.to_edit())
    try:
        picture = plan_picture(plan)
        contents |= {"frontier.svg": picture.svg(), "frontier.png": picture.png()}
    except MissingExtraError as error:
        watch.note(f"The pictures of the plan are left out: {error}", private=False)
    write_files(folder, contents)


def _plan_toml(plan: Plan, given: JsonView | None = None) -> str:
    """Return a plan as settings of a run that bind, beside others that were given, and its
    forecast."""
    tables: dict[str, Json] = {}
    for name, value in {**(given or {}), **plan.settings()}.items():
        key = "name" if name == "method" else name
        tables.setdefault(groups()[name], {})[key] = value
    return toml_text({**tables, "forecast": plan.forecast()})


def _json(document: JsonView) -> bytes:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    return text.encode("utf-8", "surrogatepass")
