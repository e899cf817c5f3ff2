"""From public numbers and files to a plan, as `secretballot plan` does: votes are simulated on a
labelled stand-in, and so are record moments; and plans on disk, settings that `learn --config`
reads, and pictures.

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
from sklearn.base import clone

from secretballot._naming import integers_or_words, named
from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_choice, check_count, check_instance, name_part
from secretballot.accounting import PrivacyBudget
from secretballot.bases import Basis
from secretballot.bases.named import unfitted_basis
from secretballot.core.types import Guarantee
from secretballot.data.cells import is_missing, texts_of
from secretballot.data.frames import check_named, class_indices
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.foreign_code import one_thread
from secretballot.learners.moments.class_weights import ClassWeights, checked_weights
from secretballot.learners.moments.estimators import RecordMomentsClassifier
from secretballot.learners.moments.stages import MomentStages, MomentTarget
from secretballot.learners.moments.vectors import Records, vector_sums
from secretballot.learners.pate.mechanisms import OF_CLASSES
from secretballot.planning.plan.estimates import Estimate, MomentsForecast
from secretballot.planning.plan.model import PLANNED, Plan, Task
from secretballot.planning.plan.pictures import draw_plan_pictures
from secretballot.planning.planner import MOST_CLASSES, checked_stand_in, plan_votes
from secretballot.planning.search.best_setting import FRONTIER, ImpossibleTaskError
from secretballot.planning.simulation.seeded_noise import SeededNoise
from secretballot.report.extras import MissingExtraError
from secretballot.report.wording import count_text
from secretballot.runs.folder import check_outside_of_runs, write_files
from secretballot.runs.methods import KINDS, Quote, Sizes, basis_of_columns, by_class, method_of
from secretballot.runs.questions import Watch, cautions_of_price
from secretballot.runs.spec import MOMENTS, PATE, DataSpec, RunSpec, Sources, groups, toml_text
from secretballot.runs.tables import (
    LabelledTable,
    check_classes,
    public_table,
    refuse_nowhere,
    schema_of,
)
from secretballot.students.names import student_by_name
from secretballot.teachers.rows import as_table, n_rows, take_rows

TURNS = 4  # at each epsilon, on rows that are divided anew
HERE = FRONTIER.index(1.0)
HALVED = (HERE, len(FRONTIER) - 1)  # where half of the stand-in is tried, too
TEST_PART = 4  # one row in so many is kept for scoring
POOL_PART = 3  # of the others one in so many is a public point
LEAST_HALVED = 40  # rows of a kind, below which half of them tell nothing
#: A class is rare up to this share.
RARE = 0.05
POINT_SHARE = 0.25  # what one over the public points counts beside one over the records
MOST_POOL, MOST_PRIVATE, MOST_TEST = 2000, 6000, 10_000
RECORD = Guarantee(unit="record", relation="add-remove")
DEVIATIONS = 1.8  # to either side for nine runs of ten, of a spread that some 15 runs tell


def forecast_moments(
    task: Task,
    X: Any,
    y: IntArray,
    *,
    class_weights: ClassWeights | None = None,
    basis: Basis | str = "auto",
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> MomentsForecast:
    """Return what record moments would reach at the task's epsilon and at others.

    Rows of the stand-in are divided at random into private records, public points and rows to
    score on, several times. Where they are fewer than the records of the task, the noise is as much
    smaller, so that it is to them what it would be to all.

    Parameters
    ----------
    task : Task
        Its delta above 0.
    X : array, sparse matrix or frame of shape (n_rows, n_features)
        Public.
    y : ndarray of int64, shape (n_rows,)
        Class indices.
    class_weights : ClassWeights, optional
        The weights of the task, by the order of the classes.
    basis : str or basis of `secretballot.bases`
        As for `RecordMomentsClassifier`.
    seed : int
        Of rows and noise; it protects nothing.
    progress : callable, optional
        Takes steps done and steps in all.

    Raises
    ------
    DataError
        If the public points among the rows are all alike.

    Privacy
    -------
    Takes no private data and spends nothing.
    """
    rows, n_test = as_table(X), len(y) // TEST_PART
    n_pool = max(2, min(task.n_public, MOST_POOL, (len(y) - n_test) // POOL_PART))
    n_private = min(len(y) - n_test - n_pool, task.n_records, MOST_PRIVATE)
    beyond = _steps_beyond(task, n_private, n_pool)
    # the whole stand-in at every budget, and half of it where that says something of more rows
    parts = [tuple(range(len(FRONTIER))), *([HALVED] if beyond > 0 else [])]
    done, total = 0, TURNS * sum(map(len, parts))
    reached = np.zeros((2, len(FRONTIER), TURNS))
    for turn in range(TURNS):
        # the same rows at every epsilon, so that these can be compared
        order = np.random.default_rng([seed, turn]).permutation(len(y))
        ends = [n_pool, n_pool + n_private, len(order) - n_test]
        pool, private, _, test = np.split(order, ends)
        test = test[:MOST_TEST]
        for part, places in enumerate(parts):
            some = (pool[: n_pool // 2], private[: n_private // 2]) if part else (pool, private)
            stand_in = _StandIn(task, class_weights, basis, rows, y, *some, test)
            for place in places:
                budget = PrivacyBudget(task.epsilon * FRONTIER[place], task.delta)
                rng = np.random.default_rng([seed, turn, place])
                reached[part, place, turn] = np.mean(stand_in.said_by_run(budget, rng) == y[test])
        done += sum(map(len, parts))
        if progress is not None:
            progress(done, total)
    # nothing, where half of the stand-in was not tried
    gain = float((reached[0] - reached[1])[list(HALVED)].mean())
    accuracy = _estimates_of(reached[0], beyond * max(0.0, gain))
    least = float(np.bincount(y, minlength=task.n_classes).min() / len(y))
    return MomentsForecast(
        accuracy[HERE],
        tuple(zip((task.epsilon * factor for factor in FRONTIER), accuracy, strict=True)),
        n_private,
        n_pool,
        rare_share=least if 0 < least <= RARE else None,
    )


class _StandIn:
    """A stand-in divided into public points, rows in the place of private records, and rows to
    score on; mapped into the basis of these points."""

    def __init__(
        self,
        task: Task,
        class_weights: ClassWeights | None,
        basis: Basis | str,
        X: Any,
        y: IntArray,
        pool: IntArray,
        private: IntArray,
        test: IntArray,
    ) -> None:
        self._task, self._points, self._n_private = task, take_rows(X, pool), len(private)
        self._class_weights = class_weights
        records, self._scored = take_rows(X, private), take_rows(X, test)
        with one_thread():
            self._basis = unfitted_basis(basis, self._points).fit(self._points)
            self._pool, mapped, self._test = (
                self._basis.rows(rows) for rows in (self._points, records, self._scored)
            )
            beyond = ~self._basis.covered(records)
        # the marks of a record: that it is there, and that the public points do not cover it
        marks = np.column_stack([np.ones(len(beyond)), beyond]).astype(np.int64)
        self._records = Records(mapped, y[private], marks)

    def said_by_run(self, budget: PrivacyBudget, rng: np.random.Generator) -> IntArray:
        """Return what the student of one simulated run says of the scored rows."""
        with one_thread():
            stages = MomentStages.of_records(
                self._pool,
                MomentTarget.of_classes(range(self._task.n_classes)),
                budget,
                RECORD,
                n_stages=RecordMomentsClassifier().n_stages,
                n_records=None,
                expected_uncovered=self._basis.uncovered_share_,
                class_weights=self._class_weights,
                levels=self._basis.levels_,
            )
            # to these rows it is what the real noise will be to all records
            sigma = stages.sigma * self._n_private / self._task.n_records
            fewer = replace(stages, sigma=sigma)
            sums = noisy_sums(self._records, fewer, rng)
            model: Any = fewer.deciding_after(sums)[0]
            if self._task.student == "auto":
                return np.asarray(model.labels(self._test))
            labels = model.labels(self._pool)
            return _labels_of_student(self._task.student, self._points, labels, self._scored)


def _steps_beyond(task: Task, n_private: int, n_pool: int) -> float:
    """Return how far the real sizes lie beyond those of the stand-in, in steps from half of it to
    it.

    What a model misses by having few rows goes down about as the variance of its moments does: as
    one over the records, and a quarter over the public points. A line through the stand-in and its
    half shows what the rest will bring.
    """
    tried, real = (
        1 / n + POINT_SHARE / m for n, m in ((n_private, n_pool), (task.n_records, task.n_public))
    )
    enough = n_pool >= LEAST_HALVED and n_private >= LEAST_HALVED
    return max(0.0, 1 - real / tried) if enough else 0.0


def noisy_sums(records: Records, stages: MomentStages, rng: np.random.Generator) -> list[IntArray]:
    """Return the sums of all stages. The rows are public; private ones go into a release alone."""
    noise, sums = SeededNoise(rng), list[IntArray]()
    for sigma in stages.sigmas:
        exact = vector_sums([[records]], stages.asked_after(sums), RECORD)._unseal()[0]
        sums.append(exact + noise.discrete_gaussian(sigma, exact.size))
    return sums


def _labels_of_student(name: str, points: Any, labels: IntArray, test: Any) -> IntArray:
    """Return what a student that learns from the model's labels says."""
    if len(set(labels.tolist())) == 1:
        return np.full(n_rows(test), labels[0])
    try:
        fitted = clone(student_by_name(name)).fit(points, labels)
        return np.asarray(fitted.predict(test), dtype=np.int64)
    except Exception as error:  # any learner may raise anything; all that it sees is public
        raise DataError(
            f"the student {name!r} cannot learn from labels of a model ({type(error).__name__});"
            " plan with another one."
        ) from None


def _estimates_of(reached: FloatArray, more: float) -> list[Estimate]:
    """Return the mean of the runs at each epsilon and what larger numbers bring, with the range in
    which nine of ten others should fall.

    Runs differ alike at all epsilons but for the noise, so that each spread leans on all of them;
    half of what is added is uncertain, too.
    """
    own = reached.var(axis=1, ddof=1)
    spread = np.sqrt((own + 2 * own.mean()) / 3 * (1 + 1 / reached.shape[1]))
    halves = DEVIATIONS * spread + more / 2
    means = np.minimum(reached.mean(axis=1) + more, 1.0)
    return [
        Estimate(float(mean), float(max(0.0, mean - half)), float(min(1.0, mean + half)))
        for mean, half in zip(means, halves, strict=True)
    ]


PLAN_FILE, JSON_FILE, SCHEMA_FILE = "plan.toml", "plan.json", "plan.schema.json"
STAND_IN = "stand-in file"
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
        check_plan_folder(out)
    if spec.data.n_records is None or like is None:
        return _priced(spec, out, watch)
    check_forecast(sources, spec)
    n_public, schema = _public_points(spec, watch)
    watch.step("Reading the table")
    table, classes, columns = read_stand_in(like, spec.data, watch)
    watch.step("Evaluating settings")
    method: Any = spec.method
    weight, mechanism = getattr(method, "weights", None), sources.given.get("mechanism")
    made = plan(
        spec.data.n_records,
        n_public,
        budget=spec.price,
        n_classes=len(classes),
        like=(table.X, table.targets),
        method=method.name if "method" in sources.given else None,
        n_teachers=getattr(method, "n_teachers", None),
        teacher=str(getattr(method, "teacher", None) or "logistic"),
        student=str(getattr(method, "student", "auto")),
        mechanism="gaussian" if mechanism == "auto" else mechanism,  # labels or counts
        # a plan about rare classes has no votes, so it is made where it is asked for
        class_weight=None if weight == "auto" else weight,
        basis=basis_of_columns(getattr(method, "basis", "auto"), columns, table.X),
        seed=method.random_state,
        progress=watch.progress,
        say=watch.step,
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
        write_plan(made, out, schema, watch, given=given)
    return Planned(schema, None, made)


def _priced(spec: RunSpec, out: Path | None, watch: Watch) -> Planned:
    """Return columns and price of a run of which nothing says what to expect."""
    n_public, schema = _public_points(spec, watch)
    if out is not None:
        if schema is None:
            raise ParameterError(
                Parameter("out"),
                " is given, and without a public table or a forecast nothing is written; leave it"
                " out.",
            )
        write_files(out, {SCHEMA_FILE: _json(schema.to_edit())})
    classes = spec.data.classes or (2,)
    if len(classes) == 1 and isinstance(classes[0], int):
        n_classes = check_count("classes", classes[0], minimum=2)
    else:
        n_classes = len(check_classes(classes))
    n_columns = 1 if schema is None else len(schema.feature_names)
    quoted = method_of(spec).quote(Sizes(n_public, n_classes, n_columns))
    asked = (*cautions_of_price(spec.price), *quoted.cautions)
    return Planned(schema, replace(quoted, cautions=asked), None)


def check_forecast(sources: Sources, spec: RunSpec) -> None:
    """Refuse a run of which there is no forecast, and settings that a forecast finds itself, before
    anything is read."""
    if not spec.data.target:
        raise ParameterError(
            Parameter("target"), " is missing; name the column of the stand-in with the class."
        )
    name, own = named("mechanism", getattr(spec.method, "mechanism", "auto"), OF_CLASSES)
    found = [one for one in ("n_queries", "strategy") if one in sources.given]
    if spec.method.name not in (MOMENTS, PATE):
        setting = "method"
        why = f"is {spec.method.name}, and a forecast compares {MOMENTS} and {PATE}"
    elif spec.data.kind != "class":
        setting, why = "target", f"is {KINDS[spec.data.kind]}, and a forecast is for one of classes"
    elif name not in ("auto", *PLANNED):
        setting, why = "mechanism", f"is {name}, which has no forecast"
    elif own:
        setting, why = "mechanism", "has settings, which a forecast finds itself"
    elif found:
        setting, why = found[0], "is given, and a forecast finds it itself"
    else:
        return
    raise ParameterError(
        name_part(setting), f" {why}; leave it out, or leave ", Parameter("like"), " out."
    )


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
    classes = spec.data.classes or schema.classes
    return len(frame), replace(schema, classes=classes)


def plan(
    n_records: int,
    n_public: int,
    *,
    budget: PrivacyBudget,
    like: tuple[Any, Any],
    n_classes: int | None = None,
    method: str | None = None,
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
    method : {"pate", "record-moments"}, optional
        Plan for this one alone.
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
    if method is not None:
        check_choice("method", method, (MOMENTS, PATE))
    # noisy sums over records need a delta above 0; votes under Laplace noise do not
    of_votes = method == PATE or n_teachers is not None or mechanism is not None
    of_moments = method == MOMENTS or class_weight is not None
    if of_votes and of_moments:
        raise ParameterError(
            Parameter("class_weight"),
            f" and method {MOMENTS} are about record moments, and teachers and mechanisms about"
            " votes; leave one of the two out.",
        )
    of_votes = of_votes or not (of_moments or budget.delta > 0)
    made = None
    if not of_moments:
        try:
            made = plan_votes(task, X, index, n_teachers=n_teachers, seed=seed, progress=progress)
        except ImpossibleTaskError:
            if of_votes:
                raise
    if made is not None and of_votes:
        return made
    made = made or _plan_without_votes(task, index, seed)
    if say is not None:
        say("Trying record moments")
    found_names = np.unique(np.asarray(like[1])).tolist()
    # by themselves where all occur, else by number
    classes = tuple(names or (found_names if len(found_names) == found else range(found)))
    weights = checked_weights(by_class(task.class_weight, classes), classes)
    moments = forecast_moments(
        task, X, index, class_weights=weights, basis=basis, seed=seed, progress=progress
    )
    return replace(made, moments=moments)


def _plan_without_votes(task: Task, index: IntArray, seed: int) -> Plan:
    """Return a plan of record moments alone, whose forecast is still to come; `index` are the
    classes of a stand-in, of shape (n_rows,)."""
    student_by_name(task.student)
    assumptions = (
        "One record is one unit, under add-remove.",
        "Private records and public points are distributed like the rows of the stand-in of each"
        " class.",
    )
    # what always answering one class reaches
    constant = float(np.bincount(index).max() / len(index))
    return Plan(task, assumptions, None, (), constant, (), (), seed)


def read_stand_in(
    place: Path | str, data: DataSpec, watch: Watch
) -> tuple[LabelledTable, tuple[Any, ...], Schema]:
    """Read and encode a labelled public table; return it with its classes, those of the schema or
    of the file where none are declared, and its schema.

    Raises
    ------
    DataError
        If the file cannot be read, or does not fit the schema or the classes.
    ParameterError
        If the classes are not two or more different ones.
    """
    frame, target = read_table(place, role=STAND_IN, encoding=data.encoding), data.target[0]
    refuse_nowhere(
        [name for name in data.drop if name not in frame.columns], f"no column of the {STAND_IN}"
    )
    check_named(frame, target, "its label column with --target", role=STAND_IN)
    schema, features = schema_of(data, frame, STAND_IN, watch)
    declared = data.classes or schema.classes
    classes = check_classes(declared) if declared else _classes_of(frame, target)
    index = class_indices(frame, target, classes, role=STAND_IN)
    return LabelledTable(schema.encode(features, role=STAND_IN), index), classes, schema


def _classes_of(frame: pd.DataFrame, target: str) -> tuple[Any, ...]:
    """Return the classes, which may be read off a public file, sorted."""
    # too many distinct labels, or too few rows of each, are a column of numbers taken for classes
    found = sorted({text for text in texts_of(frame[target]) if not is_missing(text)})
    if not 2 <= len(found) <= min(MOST_CLASSES, len(frame) // LEAST_OF_A_CLASS):
        raise DataError(
            f"The {STAND_IN} has {count_text(len(found), 'different label')} in column {target!r}"
            f" of {count_text(len(frame), 'row')}; name the column of classes with --target, of"
            f" which there are 2 to {MOST_CLASSES:,}, with {LEAST_OF_A_CLASS} rows of each or more."
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
    """Write a plan as settings of a run, as JSON and in pictures, each file complete or not at all.

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
    contents = {PLAN_FILE: plan_toml(plan, given).encode(), JSON_FILE: _json(plan.to_json())}
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
