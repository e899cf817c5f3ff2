"""One run of learning, from files to folders: what `secretballot learn` does, from Python too."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from secretballot._places import table_name
from secretballot._validation import (
    ABSTENTIONS,
    MECHANISMS,
    RELATIONS,
    check_choice,
    check_count,
    check_positive,
)
from secretballot.accounting import PrivacyBudget, teacher_shape
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.urls import DatabasePlace
from secretballot.data.sources import source_of
from secretballot.data.stored import forget_table
from secretballot.exceptions import ParameterError
from secretballot.learners.pate.classifier import PATEClassifier
from secretballot.learners.pate.rounds import AskableRows
from secretballot.learners.training.shards import check_positions
from secretballot.named_learners import teacher_by_name
from secretballot.planning.plan.model import Plan
from secretballot.publishing.job import AskedInRounds, NamedStudent, ReleaseJob
from secretballot.publishing.process import start_publishing
from secretballot.publishing.release import ReleaseFolder, check_parts, publish
from secretballot.queries import STRATEGIES
from secretballot.report.certificate.methods import has_moments, is_by_record
from secretballot.report.metrics import Metrics
from secretballot.runs.about import (
    NOTHING_SAID,
    About,
    check_about,
    note_missing_words,
    with_words,
)
from secretballot.runs.account import (
    PaidRun,
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
from secretballot.runs.moments_spread import MomentsSpread
from secretballot.runs.plan_agreement import check_settings, check_tables
from secretballot.runs.progress import Caution, Watch, note_few_answers, public_warnings_noted
from secretballot.runs.promise import (
    check_records_against,
    check_stated_records,
    check_unit_column,
)
from secretballot.runs.student_file import check_converts
from secretballot.runs.tables import (
    RunInputs,
    RunTables,
    TablePlace,
    folder_of_run,
    metrics_on_test,
    read_inputs,
)
from secretballot.runs.voting import (
    PASSIVE,
    number_of_teachers,
    terms_of_run,
    unfitted_learner,
    worker_processes,
)
from secretballot.students.names import student_by_name
from secretballot.teachers.executors import LOCAL, check_engine

VOTES = "votes"
_OF_OTHER_NOISE = ("max_abstentions", "threshold", "max_answers")


class PlannedRun(PaidRun, Protocol):
    """A run that pays, and may follow a plan."""

    @property
    def plan(self) -> Plan | None: ...


@dataclass(frozen=True)
class LearnRun:
    """What to learn, from which files, at which price.

    Attributes
    ----------
    tables : RunTables
        Files, and the columns with a duty.
    epsilon, delta : float
        Price of the release.
    out : Path
        Folder for vault and release.
    teachers : int or None
        Number of teachers K. None follows from the stated number of records, and is 250 where none
        is stated.
    queries : int or None
        Public points to have labelled; None takes the learner's default.
    mechanism : str
        "gaussian", "vote-table", "laplace", "sparse-vector", "confident" or, in rounds,
        "interactive".
    max_abstentions : int or None
        Abstentions at which the sparse vector stops.
    threshold, max_answers : int or None
        Of the confident and the interactive mechanism, as for `PATEClassifier`.
    estimate_epsilon : float or None
        Part of epsilon that pays for a private estimate, which then sets the number of queries or
        of abstentions.
    release : str
        "auto", "labels" or "counts".
    strategy : str
        "passive" asks random public points at once; any other name of `secretballot.queries` asks
        in rounds.
    round_size : int or None
        Queries per round; None takes a twentieth of all.
    teacher, student : str
        Names, or "package.module:Class"; the student "auto" is the one that measured best for what
        is released.
    records : int or None
        Publicly stated number of private records.
    relation : str
        "add-remove" or "replace-one".
    abstentions : str
        "drop", "random" or "majority".
    ledger : Path, DatabasePlace or None
        Account of the private dataset, or the folder that it lies in under the dataset's name; None
        is the account beside the private file.
    dataset : str or None
        Public name of the private dataset; None takes the name of its file.
    seed : int
        Of fits and of the choice of public points, never of noise.
    jobs : int
        Workers.
    engine : str
        Where teachers are trained and vote; no part of what the run is.
    send_shards : bool
        Whether workers of a cluster are sent shards that lie on disk; no part of it, either.
    without : tuple of {"report", "student"}
        Parts of the release that are not wanted.
    plan : Plan or None
        What the settings were taken from (`run_by_plan`); they must agree with it.
    force : tuple of str
        Questions that are answered beforehand, of `runs.caution.CAUTIONS`, or "all".
    own_ledger : bool
        Whether the run has an account of its own, in its vault, that counts nothing else.
    about : About
        Public words of the curator on the release.
    """

    tables: RunTables
    epsilon: float
    delta: float
    out: Path
    teachers: int | None = None
    queries: int | None = None
    mechanism: str = "gaussian"
    max_abstentions: int | None = None
    threshold: int | None = None
    max_answers: int | None = None
    estimate_epsilon: float | None = None
    release: str = "auto"
    strategy: str = PASSIVE
    round_size: int | None = None
    teacher: str = "logistic"
    student: str = "auto"
    records: int | None = None
    relation: str = "add-remove"
    abstentions: str = "drop"
    ledger: Path | DatabasePlace | None = None
    dataset: str | None = None
    seed: int = 0
    jobs: int = 1
    engine: str = LOCAL
    send_shards: bool = False
    without: tuple[str, ...] = ()
    plan: Plan | None = None
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

    def description(self) -> dict[str, Any]:
        """Return, as JSON, all that shapes the result: the settings and the digests of the
        files."""
        settings = with_words(asdict(self), self.about)
        # a plan shapes the result by the settings alone
        for name in ("tables", "out", "jobs", "engine", "send_shards", "without", "plan", "force"):
            settings.pop(name)
        described = {"verb": "learn", "method": VOTES, **settings, **self.tables.description()}
        plain: dict[str, Any] = json.loads(json.dumps(described, default=str))
        return plain


@dataclass(frozen=True)
class LearnOutcome:
    """What a run of learning came to.

    `metrics` is about the test file and is not for publication by itself.

    Attributes
    ----------
    certificate : dict
    metrics : Metrics or None
        How good the student is on the rows of the test file.
    queries, answered : int
        Public points asked, and answered.
    release, vault : Path
    files : tuple of str
        Names of the files in the release.
    account : Path or DatabasePlace
        Ledger that paid.
    resumed : bool
        Whether an interrupted run was taken up.
    plan : Plan or None
        What was forecast, where the run followed a plan.
    spread : MomentsSpread or None
        How far the run might have come out otherwise, where record moments of few records say so.
    """

    certificate: dict[str, Any]
    metrics: Metrics | None
    queries: int
    answered: int
    release: Path
    vault: Path
    files: tuple[str, ...]
    account: Path | DatabasePlace
    resumed: bool
    plan: Plan | None = None
    spread: MomentsSpread | None = None

    @property
    def accuracy(self) -> float | None:
        """Share of the test file's rows that the student got right."""
        return None if self.metrics is None else self.metrics.accuracy

    @property
    def method(self) -> str:
        """How private records became the model: "moments", "votes" or "record-votes"."""
        if has_moments(self.certificate):
            return "moments"
        return "record-votes" if is_by_record(self.certificate) else VOTES


def run_learn(run: LearnRun, watch: Watch | None = None) -> LearnOutcome:
    """Learn from files and write the folders of the run.

    A run that was interrupted goes on when it is repeated: finished teachers are kept in the vault,
    and a release that was paid for is taken from the ledger.

    Parameters
    ----------
    run : LearnRun
    watch : Watch, optional
        Told what happens.

    Returns
    -------
    LearnOutcome

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
    Unit : one record, or all records of one id of the unit column.
    Relation : as the run declares.
    Price : the run's (epsilon, delta), composed in the ledger with everything else released from
        the dataset.
    Messages : checks before the release speak to the curator alone and never show a private value.
    """
    watch = watch or Watch()
    start_publishing()  # which takes seconds to be ready, and is wanted at the end
    # The order is that of cost and of what can be taken back: settings, files, tables, the account;
    # then hours of training; the ledger pays only when votes are there; what is published comes
    # last and can be made again. Within the folder nobody else works on the same run.
    folder = checked_folder(run)
    if folder.finished:
        return outcome_again(folder, watch, run)
    settle_cautions(cautions_of_settings(run), run.force, watch)
    with folder:
        watch.step("Reading tables")
        inputs = read_inputs(run.tables, watch, folder.vault)
        check_against(run, inputs, watch)
        settle_cautions(cautions_of_tables(run, inputs), run.force, watch)
        ledger = ledger_of_run(
            run,
            folder,
            inputs.unit,
            watch,
            # an estimate may be paid already: the learner looks before it trains
            priced=run.estimate_epsilon is None,
        )
        note_missing_words(run.about, run.dataset_name, run.without, watch)
        watch.step("Training teachers")
        model = _learner_of_folder(run, folder, ledger, watch, inputs)
        _fit_labels(run, model, inputs, watch)
        note_few_answers(model.released_, watch)
        job = _release_job(run, model, inputs)
        made = publish(folder.release, job, damaged=folder.damaged, say=watch.step)
        forget_table(folder.vault)
    released = model.released_
    return LearnOutcome(
        certificate=made.certificate,
        metrics=measured_student(made, inputs, watch),
        queries=len(released.queries),
        answered=int(released.answered.sum()),
        release=folder.release,
        vault=folder.vault,
        files=tuple(made.files),
        account=place_of_account(run, folder),
        resumed=folder.resumed,
        plan=run.plan,
    )


def outcome_again(folder: RunFolder, watch: Watch, run: PlannedRun) -> LearnOutcome:
    """Return what a finished run came to; the student is not measured again."""
    again = look_again(folder, watch)
    return LearnOutcome(
        **vars(again),
        metrics=None,
        release=folder.release,
        vault=folder.vault,
        account=place_of_account(run, folder),
        resumed=False,
        plan=run.plan,
    )


def checked_folder(run: LearnRun) -> RunFolder:
    """Return the folder of a run whose settings can be; no table was read.

    Raises
    ------
    ParameterError, DataError
        If something cannot be; nothing was spent.
    """
    _refuse_unfit_settings(run)
    teacher_by_name(run.teacher)  # an unknown name is refused before any file is opened
    student_by_name(run.student)
    check_parts(run.without)
    folder = folder_of_run(run)
    if run.relation == "replace-one":
        check_positions(single=source_of(run.tables.private).single)
    return folder


def cautions_of_settings(run: LearnRun) -> list[Caution]:
    """Return what is to be asked before any table is read."""
    return [*cautions_of_price(run.budget, run.records)]


def cautions_of_tables(run: LearnRun, inputs: RunInputs) -> list[Caution]:
    """Return what is to be asked once the tables are known: of noise, and for the curator alone of
    the number of records."""
    n_teachers = number_of_teachers(run, inputs.n_columns)
    asked = [
        *cautions_of_records(run.budget, run.records, inputs.n_units, n_teachers),
        *cautions_of_ids(inputs.repeating_ids),
    ]
    if run.estimate_epsilon is None:  # which would say itself how many queries make sense
        pool = teacher_shape(n_askable(run, inputs), len(inputs.classes), n_teachers)
        asked += cautions_of_noise(terms_of_run(run, pool))
    return asked


def _refuse_unfit_settings(run: LearnRun) -> None:
    """Refuse settings that cannot be before any file is opened."""
    check_about(run.about)
    # What a plan has set is compared first: that message names the plan, all others the option.
    _ = run.budget
    check_force(run.force)
    check_account(run)
    if run.plan is not None:
        check_settings(run.plan, vars(run))
    if run.teachers is not None:
        check_count("teachers", run.teachers)
    check_choice("mechanism", run.mechanism, MECHANISMS)
    check_choice("release", run.release, ("auto", "labels", "counts"))
    check_choice("relation", run.relation, RELATIONS)
    check_choice("strategy", run.strategy, STRATEGIES)
    if run.round_size is not None:
        check_count("round_size", run.round_size)
        if run.strategy == PASSIVE:
            raise ParameterError(
                "A round size goes with a strategy that asks in rounds; name one with --strategy."
            )
    check_choice("abstentions", run.abstentions, ABSTENTIONS)
    check_count("jobs", run.jobs)
    workers = worker_processes(run.jobs, run.engine)
    check_engine(run.engine, workers, send_shards=run.send_shards)
    check_count("seed", run.seed, minimum=0)
    if run.queries is not None:
        check_count("queries", run.queries)
    for name in _OF_OTHER_NOISE:
        if getattr(run, name) is not None:
            check_count(name, getattr(run, name))
    if run.estimate_epsilon is not None:
        check_positive("estimate_epsilon", run.estimate_epsilon)
    check_unit_column(run.relation, run.tables)
    if run.teachers is not None and run.records is not None and run.teachers > run.records:
        check_count("records", run.records)
        raise ParameterError(
            f"{run.teachers} teachers are more than the {run.records} records stated; use fewer"
            " with --teachers."
        )
    check_stated_records(run.records)


def check_against(run: LearnRun, inputs: RunInputs, watch: Watch) -> None:
    """Check settings against tables: more queries than public points, a false number of records.

    Raises
    ------
    ParameterError
        If the run asks more queries than there are public points.
    DataError
        If the plan cannot be carried out on these tables, or the stated number of records is wrong
        where it is public.
    """
    # The number of private rows is public under replace-one alone; elsewhere what is said of it is
    # for the curator's eyes, and refuses nothing.
    n_public, n_private = len(inputs.X_public), inputs.n_private
    if run.plan is not None:
        check_tables(
            run.plan,
            n_classes=len(inputs.classes),
            n_public=n_public,
            n_private=n_private,
            watch=watch,
        )
    if run.queries is not None and run.queries > n_public:
        raise ParameterError(
            f"{run.queries} queries are more than the {n_public} rows of the public file; ask for"
            " fewer with --queries."
        )
    check_records_against(run.records, run.relation, run.delta, inputs, watch)
    check_converts(
        run.student, inputs.X_public, inputs.schema, classes=inputs.classes, without=run.without
    )


def n_askable(run: LearnRun, inputs: RunInputs) -> int:
    """Return how many public points may be asked: in rounds, each distinct one once."""
    if run.strategy == PASSIVE:
        return len(inputs.X_public)
    return len(AskableRows.of(inputs.X_public).rows)


def _learner_of_folder(
    run: LearnRun, folder: RunFolder, ledger: Ledger, watch: Watch, inputs: RunInputs
) -> PATEClassifier:
    """Return the learner of the run, which keeps its teachers in the folder's vault."""
    n_teachers = number_of_teachers(run, inputs.n_columns)
    if run.teachers is None and run.records is not None:
        watch.note(f"{n_teachers} teachers, by the stated {run.records} records.", private=False)
    # The folder's key in the ledger goes with it: a run that is taken up again is not paid twice.
    return unfitted_learner(
        run,
        len(inputs.classes),
        n_teachers,
        abstentions=run.abstentions,
        ledger=ledger,
        vault=folder.vault,
        request=folder.request,
        purpose=run.about.purpose or "learn",
        n_jobs=worker_processes(run.jobs, run.engine),
        engine=run.engine,
        send_shards=run.send_shards,
        random_state=run.seed,
        progress=watch.progress,
    )


def _release_job(run: LearnRun, model: PATEClassifier, inputs: RunInputs) -> ReleaseJob:
    """Return all that the release is made of: what was released, public inputs, and settings."""
    story = None
    if model.in_rounds:
        story = AskedInRounds(run.strategy, AskableRows.of(inputs.X_public).rows, run.round_size)
    return ReleaseJob(
        model.released_,
        NamedStudent(run.student),
        inputs.X_public,
        replace(inputs.schema, classes=inputs.classes).to_json(),
        story,
        run.abstentions,
        run.seed,
        run.without,
        inputs.raw_rows,
        test=inputs.published_rows,
        about=run.about.on_certificate,
    )


def _fit_labels(run: LearnRun, model: PATEClassifier, inputs: RunInputs, watch: Watch) -> None:
    """Fit all but the student, which is fitted where no private data ever was."""
    with public_warnings_noted(watch):
        model.fit_labels(**inputs.for_fit)


def measured_student(made: ReleaseFolder, inputs: RunInputs, watch: Watch) -> Metrics | None:
    """Return the metrics of the published student, and say so where it cannot be measured."""
    if inputs.test is not None and made.student is None:
        watch.note(
            "The student cannot be handed back by the process that fitted it, so it is not"
            " measured.",
            private=False,
        )
    return metrics_on_test(made.student, inputs)
