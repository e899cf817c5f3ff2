"""One run on a number, or on several labels, by votes of teachers, from files to folders:
`secretballot learn --target COL --bounds LOW,HIGH` and `--target A,B,C`."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from secretballot._places import table_name
from secretballot._validation import RELATIONS, check_choice, check_count, shown
from secretballot.accounting import PrivacyBudget
from secretballot.accounting.recipes import Terms
from secretballot.core.ledger.urls import DatabasePlace
from secretballot.datasets.table_source import source_of
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.pate.tables import PATEMultiLabelClassifier, PATERegressor
from secretballot.learners.training.shards import check_positions
from secretballot.named_learners import regressor_by_name, teacher_by_name
from secretballot.publishing.job import NamedStudent, ReleaseJob
from secretballot.publishing.process import start_publishing
from secretballot.publishing.release import ReleaseFolder, check_parts, publish
from secretballot.report.table_metrics import TableMetrics, metrics_of_table_student
from secretballot.runs.about import (
    NOTHING_SAID,
    About,
    check_about,
    note_missing_words,
    with_words,
)
from secretballot.runs.account import (
    check_account,
    ledger_of_run,
    place_of_account,
)
from secretballot.runs.caution import (
    cautions_of_ids,
    cautions_of_noise,
    cautions_of_price,
    cautions_of_records,
    check_force,
    settle_cautions,
)
from secretballot.runs.finished_run import look_again
from secretballot.runs.folder import RunFolder
from secretballot.runs.progress import Caution, Watch, public_warnings_noted
from secretballot.runs.promise import (
    check_records_against,
    check_stated_records,
    check_unit_column,
)
from secretballot.runs.student_file import check_converts
from secretballot.runs.table_inputs import TableInputs, cautions_of_targets, read_table_inputs
from secretballot.runs.tables import RunTables, TablePlace, folder_of_run
from secretballot.runs.voting import number_of_teachers
from secretballot.students.names import student_by_name, student_of_numbers
from secretballot.teachers.votes import check_ballot, checked_labels, checked_range

#: Settings that a number has, and several labels have not; and the other way round.
_OF_A_NUMBER = ("statistic", "rank")
_OF_LABELS = ("ballot", "most_named", "release")
_TEACHERS = {"number": "ridge", "labels": "logistic"}


@dataclass(frozen=True)
class TableRun:
    """What to learn, from which files, at which price.

    Attributes
    ----------
    tables : RunTables
        Files, and the columns with a duty; with `bounds` of a number, or several `labels`.
    epsilon, delta : float
        Price of the release.
    out : Path
        Folder for vault and release.
    teachers, queries : int or None
        As for `LearnRun`.
    statistic, rank
        Of a number, as for `PATERegressor`; None is "mean".
    ballot, most_named, release
        Of labels, as for `PATEMultiLabelClassifier`; None is "labels" and "auto".
    teacher : str or None
        Name, or "package.module:Class"; None is "ridge" for a number, "logistic" for labels.
    student : str
        The same, or "auto", the one that measured best.
    records, relation, ledger, dataset, seed, without, force, own_ledger, about
        As for `LearnRun`.
    """

    tables: RunTables
    epsilon: float
    delta: float
    out: Path
    teachers: int | None = None
    queries: int | None = None
    statistic: str | None = None
    rank: int | None = None
    ballot: str | None = None
    most_named: int | None = None
    release: str | None = None
    teacher: str | None = None
    student: str = "auto"
    records: int | None = None
    relation: str = "add-remove"
    ledger: Path | DatabasePlace | None = None
    dataset: str | None = None
    seed: int = 0
    without: tuple[str, ...] = ()
    force: tuple[str, ...] = ()
    own_ledger: bool = False
    about: About = NOTHING_SAID

    @property
    def budget(self) -> PrivacyBudget:
        """The price of the release."""
        return PrivacyBudget(self.epsilon, self.delta)

    @property
    def dataset_name(self) -> str:
        """The public name of the private dataset."""
        return self.dataset or table_name(self.tables.private)

    @property
    def private_file(self) -> TablePlace:
        """The table that the account is about."""
        return self.tables.private

    @property
    def target_kind(self) -> str:
        """What is learnt: "number" or "labels"."""
        return "labels" if self.tables.bounds is None else "number"

    @property
    def teacher_name(self) -> str:
        """The name of the teacher."""
        return _TEACHERS[self.target_kind] if self.teacher is None else self.teacher

    def description(self) -> dict[str, Any]:
        """Return, as JSON, all that shapes the result: the settings and the digests of the
        files."""
        settings = with_words(asdict(self), self.about)
        for name in ("tables", "out", "without", "force"):
            settings.pop(name)
        described = {
            "verb": "learn",
            "method": "votes",
            **settings,
            "teacher": self.teacher_name,
            **self.tables.description(),
        }
        plain: dict[str, Any] = json.loads(json.dumps(described, default=str))
        return plain


@dataclass(frozen=True)
class TableOutcome:
    """What a run came to; `metrics` is about the test file and is not for publication by itself.

    Attributes
    ----------
    certificate : dict
    metrics : TableMetrics or None
    queries : int
        Public points asked, which were all answered.
    release, vault : Path
    files : tuple of str
        Names of the files in the release.
    account : Path or DatabasePlace
        Ledger that paid.
    resumed : bool
        Whether an interrupted run was taken up.
    """

    certificate: dict[str, Any]
    metrics: TableMetrics | None
    queries: int
    release: Path
    vault: Path
    files: tuple[str, ...]
    account: Path | DatabasePlace
    resumed: bool


def run_table(run: TableRun, watch: Watch | None = None) -> TableOutcome:
    """Learn a number, or several labels, from files and write the folders of the run.

    A run that was interrupted goes on when it is repeated: a release that was paid for is taken
    from the ledger. Teachers are not kept; before anything was paid they are trained again.

    Parameters
    ----------
    run : TableRun
    watch : Watch, optional
        Told what happens.

    Returns
    -------
    TableOutcome

    Raises
    ------
    ParameterError, DataError
        If something does not fit; nothing was spent.
    BudgetError
        If the ledger does not admit the price; nothing was spent.
    LedgerError
        If the ledger cannot be used.

    Privacy
    -------
    Unit : one record with all its labels, or all records of one id of the unit column.
    Relation : as the run declares.
    Price : the run's (epsilon, delta), composed in the ledger with everything else released from
        the dataset.
    Messages : checks before the release speak to the curator alone and never show a private value.
    """
    watch = watch or Watch()
    start_publishing()  # which takes seconds to be ready, and is wanted at the end
    # As in every run: what can be refused comes before anything is paid, and what is published
    # comes last, since it can be made again.
    folder = checked_folder_of_table(run)
    if folder.finished:
        return _outcome_again(folder, watch, run)
    settle_cautions([*cautions_of_price(run.budget, run.records)], run.force, watch)
    with folder:
        watch.step("Reading tables")
        inputs = read_table_inputs(run.tables, watch)
        check_table_run(run, inputs, watch)
        settle_cautions(cautions_of_table_run(run, inputs, watch), run.force, watch)
        ledger = ledger_of_run(run, folder, inputs.unit, watch)
        note_missing_words(run.about, run.dataset_name, run.without, watch)
        watch.step("Training teachers")
        # The folder's key in the ledger goes with it: a run taken up again is not paid twice.
        model = _learner_of_run(
            run,
            number_of_teachers(run, inputs.X_public.shape[1]),
            ledger=ledger,
            request=folder.request,
            purpose=run.about.purpose or "learn",
            progress=watch.progress,
        )
        with public_warnings_noted(watch):
            if isinstance(model, PATERegressor):
                model.fit_labels(**inputs.for_fit, bounds=run.tables.bounds)
            else:
                model.fit_labels(**inputs.for_fit, labels=run.tables.labels)
        job = _release_job(run, model, inputs)
        made = publish(folder.release, job, damaged=folder.damaged, say=watch.step)
    return TableOutcome(
        certificate=made.certificate,
        metrics=_measured_student(made, inputs, watch),
        queries=len(model.released_.rows),
        release=folder.release,
        vault=folder.vault,
        files=tuple(made.files),
        account=place_of_account(run, folder),
        resumed=folder.resumed,
    )


def _outcome_again(folder: RunFolder, watch: Watch, run: TableRun) -> TableOutcome:
    """Return what a finished run came to; the student is not measured again."""
    again = look_again(folder, watch)
    return TableOutcome(
        certificate=again.certificate,
        metrics=None,
        queries=again.queries,
        release=folder.release,
        vault=folder.vault,
        files=again.files,
        account=place_of_account(run, folder),
        resumed=False,
    )


def checked_folder_of_table(run: TableRun) -> RunFolder:
    """Return the folder of a run whose settings can be; no table was read.

    Raises
    ------
    ParameterError, DataError
        If something cannot be; nothing was spent.
    """
    _refuse_unfit_settings(run)
    # unknown names are refused before any file is opened
    _named_learners(run)
    check_parts(run.without)
    folder = folder_of_run(run)
    if run.relation == "replace-one":
        check_positions(single=source_of(run.tables.private).single)
    return folder


def _refuse_unfit_settings(run: TableRun) -> None:
    """Refuse settings that cannot be before any file is opened."""
    check_about(run.about)
    # made for its errors alone
    _ = run.budget
    check_force(run.force)
    check_account(run)
    check_choice("relation", run.relation, RELATIONS)
    check_count("seed", run.seed, minimum=0)
    for name in ("teachers", "queries", "rank", "most_named"):
        if getattr(run, name) is not None:
            check_count(name, getattr(run, name))
    of_numbers = run.tables.bounds is not None
    if of_numbers:
        checked_range(run.tables.bounds)
    else:
        names = run.tables.labels
        if len(set(names)) < len(names) or not all(name.strip() for name in names):
            raise ParameterError(
                Parameter("target"),
                f" is {shown(','.join(names))}; name each column of a label once, with commas"
                " between them.",
            )
        labels = checked_labels(names)
        check_ballot(run.ballot or "labels", run.most_named, len(labels))
    if of_numbers and run.tables.labels:
        raise ParameterError(
            Parameter("bounds"), " are of one number, and several labels are named; give one."
        )
    if of_numbers and run.tables.classes is not None:
        raise ParameterError(
            Parameter("classes"), " are of a class, and the target is a number; leave them out."
        )
    for name in _OF_LABELS if of_numbers else _OF_A_NUMBER:
        if getattr(run, name) is not None:
            goes_with = "several labels" if of_numbers else "a number (--bounds)"
            raise ParameterError(Parameter(name), f" goes with {goes_with} alone; leave it out.")
    check_unit_column(run.relation, run.tables)
    check_stated_records(run.records)


def _named_learners(run: TableRun) -> tuple[Any, Any]:
    """Return new learners for teachers and student; None is the default student."""
    if run.target_kind == "number":
        return regressor_by_name(run.teacher_name), student_of_numbers(run.student)
    return teacher_by_name(run.teacher_name), student_by_name(run.student)


def _learner_of_run(
    run: TableRun, n_teachers: int, **of_a_run: Any
) -> PATERegressor | PATEMultiLabelClassifier:
    """Return the learner of a run, and of what belongs to one run alone."""
    teacher, student = _named_learners(run)
    settings: dict[str, Any] = {
        "n_teachers": n_teachers,
        "budget": run.budget,
        "n_queries": run.queries,
        "relation": run.relation,
        "random_state": run.seed,
        **of_a_run,
    }
    own = _OF_A_NUMBER if run.tables.bounds is not None else _OF_LABELS
    settings |= {name: getattr(run, name) for name in own if getattr(run, name) is not None}
    if run.tables.bounds is not None:
        return PATERegressor(teacher, student, **settings)
    return PATEMultiLabelClassifier(teacher, student, **settings)


def voting_of_run(run: TableRun, inputs: TableInputs) -> Terms:
    """Return recipe and noise of a run, from public numbers alone; nothing is paid.

    Raises
    ------
    ParameterError
        If a setting cannot be.
    """
    n_public, n_columns = inputs.X_public.shape
    learner = _learner_of_run(run, number_of_teachers(run, n_columns))
    if run.tables.bounds is not None:
        assert isinstance(learner, PATERegressor)
        return learner.planned_terms(n_public, run.tables.bounds)
    assert isinstance(learner, PATEMultiLabelClassifier)
    return learner.planned_terms(n_public, run.tables.labels)


def check_table_run(run: TableRun, inputs: TableInputs, watch: Watch) -> None:
    """Check settings against tables: more queries than public points, a false number of records.

    Raises
    ------
    ParameterError
        If the run asks more queries than there are public points.
    DataError
        If the stated number of records is wrong where it is public.
    """
    n_public = len(inputs.X_public)
    if run.queries is not None and run.queries > n_public:
        raise ParameterError(
            f"{run.queries} queries are more than the {n_public} rows of the public file; ask for"
            " fewer with --queries."
        )
    check_records_against(run.records, run.relation, run.delta, inputs, watch)
    classes = () if run.tables.bounds is not None else (0, 1)
    check_converts(
        run.student, inputs.X_public, inputs.schema, classes=classes, without=run.without
    )


def cautions_of_table_run(
    run: TableRun, inputs: TableInputs, watch: Watch | None = None
) -> list[Caution]:
    """Return what is to be asked once the tables are known: of noise, and for the curator alone of
    records and targets."""
    n_teachers = number_of_teachers(run, inputs.X_public.shape[1])
    return [
        *cautions_of_records(run.budget, run.records, inputs.n_units, n_teachers),
        *cautions_of_ids(inputs.repeating_ids),
        *cautions_of_targets(run.tables, inputs, watch),
        *cautions_of_noise(voting_of_run(run, inputs)),
    ]


def _release_job(
    run: TableRun, model: PATERegressor | PATEMultiLabelClassifier, inputs: TableInputs
) -> ReleaseJob:
    """Return all that the release is made of: what was released, public inputs, and settings."""
    return ReleaseJob(
        model.released_,
        NamedStudent(run.student),
        inputs.X_public,
        replace(inputs.schema, classes=None).to_json(),
        seed=run.seed,
        without=run.without,
        raw_rows=inputs.raw_rows,
        test=inputs.test if run.tables.publish_metrics else None,
        about=run.about.on_certificate,
    )


def _measured_student(
    made: ReleaseFolder, inputs: TableInputs, watch: Watch
) -> TableMetrics | None:
    """Return how good the published student is on the test rows, None where there are none."""
    if inputs.test is None:
        return None
    if made.student is None:
        watch.note(
            "The student cannot be handed back by the process that fitted it, so it is not"
            " measured.",
            private=False,
        )
        return None
    return metrics_of_table_student(made.student, *inputs.test)
