"""One run of a method without teachers, from files to folders: `secretballot learn --method
moments` and `--method record-votes`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from secretballot._places import table_name
from secretballot._validation import (
    RELATIONS,
    check_choice,
    check_count,
    check_positive_rate,
    shown,
)
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.urls import DatabasePlace
from secretballot.data.stored import forget_table
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.moments.estimators import RecordMomentsClassifier
from secretballot.learners.record_votes import RecordVotesClassifier
from secretballot.planning.plan.model import Plan, check_weighted_names
from secretballot.publishing.job import NamedStudent, ReleasedWeights, ReleaseJob
from secretballot.publishing.process import start_publishing
from secretballot.publishing.release import check_parts, publish
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
from secretballot.runs.basis import basis_of_schema
from secretballot.runs.caution import (
    cautions_of_ids,
    cautions_of_price,
    cautions_of_records,
    check_force,
    settle_cautions,
)
from secretballot.runs.folder import RunFolder
from secretballot.runs.learn import LearnOutcome, measured_student, outcome_again
from secretballot.runs.moments_spread import MomentsSpread, moments_spread
from secretballot.runs.plan_agreement import check_settings, check_tables, settings_of_moments
from secretballot.runs.progress import Caution, Watch, public_warnings_noted
from secretballot.runs.promise import check_records_against, check_stated_records, check_unit_column
from secretballot.runs.student_file import check_converts
from secretballot.runs.tables import RunInputs, RunTables, TablePlace, folder_of_run, read_inputs
from secretballot.students.names import student_by_name

MOMENTS, RECORD_VOTES = "moments", "record-votes"
#: Settings that votes of records alone have.
_OF_VOTES = ("queries", "votes_per_record")
#: Settings that moments alone have.
_OF_MOMENTS = ("class_weight", "positive_rate")

Learner = RecordMomentsClassifier | RecordVotesClassifier


@dataclass(frozen=True)
class RecordsRun:
    """What to learn from all records at once, from which files, at which price.

    Attributes
    ----------
    tables : RunTables
        Files, and the columns with a duty.
    epsilon, delta : float
        Price of the release; delta above 0.
    out : Path
        Folder for vault and release.
    method : {"moments", "record-votes"}
        Noisy sums over all records, or votes of all records at their nearest public points.
    votes_per_record : int or None
        Of votes of records: public points that a record votes for; None takes the learner's
        default.
    queries : int or None
        Of votes of records: public points that take votes; None takes all.
    class_weight : str, mapping of class to float, or None
        Of moments: what decisions count each class for; "balanced" or a weight for each.
    positive_rate : float or None
        Of moments: publicly stated share of the second of two classes.
    student : str
        "auto" is the model that the sums fix, or the student of shares of votes; any other name
        learns from its labels of the public points.
    records : int or None
        Publicly stated number of private records, to warn of a careless delta; the release counts
        them.
    relation : str
        "add-remove" or "replace-one".
    ledger : Path, DatabasePlace or None
        As for `LearnRun`.
    dataset : str or None
        Public name of the private dataset; None takes the name of its file.
    seed : int
        Of a named student and of the choice of public points, never of noise.
    without : tuple of {"report", "student"}
        Parts of the release that are not wanted.
    plan : Plan or None
        What the settings were taken from (`records_run_by_plan`); they must agree with it.
    force, own_ledger
        As for `LearnRun`.
    about : About
        Public words of the curator on the release.
    """

    tables: RunTables
    epsilon: float
    delta: float
    out: Path
    method: str = MOMENTS
    votes_per_record: int | None = None
    queries: int | None = None
    class_weight: str | Mapping[Any, float] | None = None
    positive_rate: float | None = None
    student: str = "auto"
    records: int | None = None
    relation: str = "add-remove"
    ledger: Path | DatabasePlace | None = None
    dataset: str | None = None
    seed: int = 0
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
        foreign = _OF_VOTES if self.method == MOMENTS else ()
        # a plan shapes the result by the settings alone
        for name in ("tables", "out", "without", "plan", "force", *foreign):
            settings.pop(name)
        described = {"verb": "learn", **settings, **self.tables.description()}
        plain: dict[str, Any] = json.loads(json.dumps(described, default=str))
        return plain


def run_records(run: RecordsRun, watch: Watch | None = None) -> LearnOutcome:
    """Learn from files by a release about all records at once, and write the folders of the run.

    A run that was interrupted goes on when it is repeated: what was drawn is kept in the ledger,
    and what was paid for is not paid again.

    Parameters
    ----------
    run : RecordsRun
    watch : Watch, optional
        Told what happens.

    Returns
    -------
    LearnOutcome
        Its queries are the public points that were labelled, or took votes.

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
    # As in a run of voting: what can be refused comes before anything is paid, and what is
    # published comes last, since it can be made again.
    folder = checked_folder_of_records(run)
    if folder.finished:
        return outcome_again(folder, watch, run)
    settle_cautions([*cautions_of_price(run.budget, run.records)], run.force, watch)
    with folder:
        watch.step("Reading tables")
        inputs = read_inputs(run.tables, watch, folder.vault)
        check_records_run(run, inputs, watch)
        settle_cautions(cautions_of_records_run(run, inputs), run.force, watch)
        # a table of votes is one answer; sums come stage by stage
        ledger = ledger_of_run(run, folder, inputs.unit, watch)
        note_missing_words(run.about, run.dataset_name, run.without, watch)
        watch.step("Adding up records" if run.method == MOMENTS else "Letting records vote")
        model = _fitted_learner(run, folder, ledger, inputs, watch)
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
        spread=_spread_of(model, inputs.X_public, run.seed),
    )


def _spread_of(model: Learner, X_public: Any, seed: int) -> MomentsSpread | None:
    """Return how far the run might have come out otherwise, of moments alone."""
    if not isinstance(model, RecordMomentsClassifier):
        return None
    return moments_spread(model.student_, model.released_, X_public, seed=seed)


def checked_folder_of_records(run: RecordsRun) -> RunFolder:
    """Return the folder of a run whose settings can be; no table was read.

    Raises
    ------
    ParameterError, DataError
        If something cannot be; nothing was spent.
    """
    _refuse_unfit_settings(run)
    check_parts(run.without)
    return folder_of_run(run)


def cautions_of_records_run(run: RecordsRun, inputs: RunInputs) -> list[Caution]:
    """Return what is to be asked of the curator alone once the tables are known."""
    return [
        *cautions_of_records(run.budget, run.records, inputs.n_units, None),
        *cautions_of_ids(inputs.repeating_ids),
    ]


def _refuse_unfit_settings(run: RecordsRun) -> None:
    """Refuse settings that cannot be before any file is opened."""
    check_about(run.about)
    check_force(run.force)
    check_account(run)
    check_choice("method", run.method, (MOMENTS, RECORD_VOTES))
    if run.plan is not None:
        check_settings(run.plan, vars(run), settings_of_moments(run.plan))
    if not run.budget.delta > 0:
        raise ParameterError(
            Parameter("delta"),
            f" is {shown(run.delta)}, and the noise of --method {run.method} needs more than 0,"
            " such as 1e-6; give one, or take --method votes.",
        )
    check_choice("relation", run.relation, RELATIONS)
    check_count("seed", run.seed, minimum=0)
    for name in _OF_VOTES:
        if getattr(run, name) is not None:
            check_count(name, getattr(run, name))
    if run.method != MOMENTS:
        for name in _OF_MOMENTS:
            if getattr(run, name) is not None:
                raise ParameterError(Parameter(name), f" goes with --method {MOMENTS} alone.")
    if run.positive_rate is not None:
        check_positive_rate(run.positive_rate)
    check_unit_column(run.relation, run.tables)
    check_stated_records(run.records)
    student_by_name(run.student)


def check_records_run(run: RecordsRun, inputs: RunInputs, watch: Watch) -> None:
    """Check settings against tables: more points or votes than there are, a false number of
    records.

    Raises
    ------
    ParameterError
        If the run asks more queries, or more votes of a record, than there are public points, or
        its positive rate does not go with the classes.
    DataError
        If the plan cannot be carried out on these tables, or the stated number of records is wrong
        where it is public.
    """
    n_public = len(inputs.X_public)
    if run.plan is not None:
        check_tables(
            run.plan,
            n_classes=len(inputs.classes),
            n_public=n_public,
            n_private=inputs.n_private,
            watch=watch,
            # sums are over all records and ask no queries
            asks=run.method != MOMENTS,
        )
    if run.queries is not None and run.queries > n_public:
        raise ParameterError(
            f"{run.queries} queries are more than the {n_public} rows of the public file; ask for"
            " fewer with --queries."
        )
    n_points = n_public if run.queries is None else run.queries
    if run.votes_per_record is not None and run.votes_per_record > n_points:
        raise ParameterError(
            f"{run.votes_per_record} votes of a record are more than the {n_points} public points"
            " that take votes; give fewer with --votes-per-record."
        )
    if run.positive_rate is not None:
        check_positive_rate(run.positive_rate, len(inputs.classes))
    check_records_against(run.records, run.relation, run.delta, inputs, watch)
    check_converts(
        run.student, inputs.X_public, inputs.schema, classes=inputs.classes, without=run.without
    )


def _fitted_learner(
    run: RecordsRun, folder: RunFolder, ledger: Ledger, inputs: RunInputs, watch: Watch
) -> Learner:
    """Return the fitted learner, without a student, which is fitted where no private data ever
    was."""
    # The folder's key in the ledger goes with it: a run that is taken up again is not paid twice.
    settings: dict[str, Any] = {
        "budget": run.budget,
        "relation": run.relation,
        "ledger": ledger,
        "request": folder.request,
        "purpose": run.about.purpose or "learn",
        "random_state": run.seed,
        # tried before anything is paid, with the classes that it will get
        "student": student_by_name(run.student),
    }
    model: Learner
    if run.method == MOMENTS:
        model = RecordMomentsClassifier(
            basis_of_schema(inputs.schema),
            class_weight=weights_of_classes(run.class_weight, inputs.classes),
            class_shares=class_shares_of(run, inputs),
            **settings,
        )
    else:
        model = RecordVotesClassifier(
            votes_per_record=run.votes_per_record, n_queries=run.queries, **settings
        )
    with public_warnings_noted(watch):
        model.fit_labels(**inputs.for_fit)
    coverage = getattr(model, "coverage_", None)
    if coverage is not None and coverage.is_poor:
        watch.note(coverage.warning, private=False)
    return model


def weights_of_classes(
    weight: str | Mapping[Any, float] | None, classes: Sequence[Any]
) -> str | dict[Any, float] | None:
    """Return the weights of the classes by name, where they were given by the names' texts.

    Raises
    ------
    ParameterError
        If a weight is of no class.
    """
    if not isinstance(weight, Mapping):
        return weight
    check_weighted_names(weight, classes)
    names = {str(name): name for name in classes}
    return {names[str(name)]: value for name, value in weight.items()}


def class_shares_of(run: RecordsRun, inputs: RunInputs) -> dict[Any, float] | None:
    """Return the stated shares of the classes by name."""
    if run.positive_rate is None:
        return None
    return {inputs.classes[1]: run.positive_rate}


def _release_job(run: RecordsRun, model: Learner, inputs: RunInputs) -> ReleaseJob:
    """Return all that the release is made of: what was released, public inputs, and settings."""
    of_certificate = run.student == "auto" and run.method == MOMENTS
    return ReleaseJob(
        model.released_,
        ReleasedWeights() if of_certificate else NamedStudent(run.student),
        inputs.X_public,
        replace(inputs.schema, classes=inputs.classes).to_json(),
        seed=run.seed,
        without=run.without,
        raw_rows=inputs.raw_rows,
        test=inputs.published_rows,
        about=run.about.on_certificate,
    )
