"""One run of record moments, from files to folders: `secretballot learn --method moments`."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from secretballot._validation import NEIGHBOURS, check_choice, check_count, shown
from secretballot.exceptions import Parameter, ParameterError
from secretballot.learners.moments import RecordMomentsClassifier
from secretballot.learners.training.account import refuse_beyond
from secretballot.learners.training.inputs import object_array
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.ledger import Ledger
from secretballot.publishing.job import NamedStudent, ReleasedWeights, ReleaseJob
from secretballot.publishing.process import start_publishing
from secretballot.publishing.release import check_parts, publish
from secretballot.runs.account import open_ledger, settle_request
from secretballot.runs.folder import RunFolder
from secretballot.runs.learn import TAKEN_UP, LearnOutcome, measured_accuracy, outcome_again
from secretballot.runs.progress import Watch, public_warnings_noted
from secretballot.runs.promise import check_records_against, check_stated_records, check_unit_column
from secretballot.runs.tables import (
    RunInputs,
    RunTables,
    check_files,
    read_inputs,
    refuse_private_as_public,
)
from secretballot.students.names import student_by_name

__all__ = ["MOMENTS", "MomentsRun", "run_moments"]

MOMENTS = "moments"


@dataclass(frozen=True)
class MomentsRun:
    """What to learn by noisy sums over records, from which files, at which price.

    Attributes
    ----------
    tables : RunTables
        Files, and the columns with a duty.
    epsilon, delta : float
        Price of the release; delta above 0.
    out : Path
        Folder for vault and release.
    student : str
        "auto" is the model that the sums fix; any other name learns from its labels of the public
        points.
    records : int or None
        Publicly stated number of private records, to warn of a careless delta; the sums count them.
    neighbours : str
        "add-remove" or "replace-one".
    ledger : Path or None
        Account of the private dataset; None makes one in the vault.
    dataset : str or None
        Public name of the private dataset; None takes the name of its file.
    seed : int
        Of a named student, never of noise.
    without : tuple of {"report", "student"}
        Parts of the release that are not wanted.
    """

    tables: RunTables
    epsilon: float
    delta: float
    out: Path
    student: str = "auto"
    records: int | None = None
    neighbours: str = "add-remove"
    ledger: Path | None = None
    dataset: str | None = None
    seed: int = 0
    without: tuple[str, ...] = ()

    @property
    def budget(self) -> PrivacyBudget:
        """The price of the release."""
        return PrivacyBudget(self.epsilon, self.delta)

    @property
    def dataset_name(self) -> str:
        """The public name of the private dataset."""
        return self.dataset or self.tables.private.stem

    def description(self) -> dict[str, Any]:
        """Return, as JSON, all that shapes the result: the settings and the digests of the
        files."""
        settings = asdict(self)
        for name in ("tables", "out", "without"):
            settings.pop(name)
        described = {"verb": "learn", "method": MOMENTS, **settings, **self.tables.description()}
        plain: dict[str, Any] = json.loads(json.dumps(described, default=str))
        return plain


def run_moments(run: MomentsRun, watch: Watch | None = None) -> LearnOutcome:
    """Learn from files by noisy sums over all records, and write the folders of the run.

    A run that was interrupted goes on when it is repeated: stages that were drawn are kept in the
    ledger, and what was paid for is not paid again.

    Parameters
    ----------
    run : MomentsRun
    watch : Watch, optional
        Told what happens.

    Returns
    -------
    LearnOutcome
        Its queries are all public points.

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
    _refuse_unfit_settings(run, watch)
    check_files(run.tables)
    description = run.description()
    refuse_private_as_public(description)
    folder = RunFolder(run.out, description)
    if folder.finished:
        return outcome_again(folder, watch)
    watch.step("Reading tables")
    inputs = read_inputs(run.tables, watch)
    check_records_against(run.records, run.neighbours, run.delta, inputs, watch)
    check_parts(run.without)
    with folder:
        if folder.resumed:
            watch.note(TAKEN_UP, private=False)
        ledger = open_ledger(
            run.ledger or folder.ledger,
            dataset=run.dataset_name,
            budget=run.budget,
            unit="record" if inputs.units is None else "user",
            neighbours=run.neighbours,
        )
        settle_request(folder, ledger, watch, goes_on=True)
        refuse_beyond(ledger, run.budget, folder.request, goes_on=True)
        watch.step("Adding up records")
        model = _fitted_model(run, folder, ledger, inputs, watch)
        made = publish(folder.release, _release_job(run, model, inputs), say=watch.step)
    released = model.released_labels_
    return LearnOutcome(
        certificate=made.certificate,
        accuracy=measured_accuracy(made, inputs, watch),
        queries=len(released.queries),
        answered=int(released.answered.sum()),
        release=folder.release,
        vault=folder.vault,
        files=tuple(made.files),
        resumed=folder.resumed,
    )


def _refuse_unfit_settings(run: MomentsRun, watch: Watch) -> None:
    """Refuse settings that cannot be, and warn of a careless one, before any file is opened."""
    if not run.budget.delta > 0:
        raise ParameterError(
            Parameter("delta"),
            f" is {shown(run.delta)}, and the noise on sums needs more than 0, such as 1e-6; give"
            " one, or --method votes.",
        )
    check_choice("neighbours", run.neighbours, NEIGHBOURS)
    check_count("seed", run.seed, minimum=0)
    check_unit_column(run.neighbours, run.tables)
    check_stated_records(run.records, run.delta, watch)
    student_by_name(run.student)


def _fitted_model(
    run: MomentsRun, folder: RunFolder, ledger: Ledger, inputs: RunInputs, watch: Watch
) -> RecordMomentsClassifier:
    """Return the fitted learner, without a student, which is fitted where no private data ever
    was."""
    # The folder's key in the ledger goes with it: a run that is taken up again is not paid twice.
    model = RecordMomentsClassifier(
        budget=run.budget,
        neighbours=run.neighbours,
        ledger=ledger,
        request=folder.request,
        purpose="learn",
    )
    with public_warnings_noted(watch):
        model.fit_labels(
            inputs.private.X,
            object_array(inputs.classes)[inputs.private.index],
            X_public=inputs.X_public,
            classes=list(inputs.classes),
            units=inputs.units,
            unit_name=run.tables.unit,
        )
    if model.coverage_.is_poor:
        watch.note(model.coverage_.warning, private=False)
    return model


def _release_job(run: MomentsRun, model: RecordMomentsClassifier, inputs: RunInputs) -> ReleaseJob:
    """Return all that the release is made of: what left the door, public inputs, and settings."""
    return ReleaseJob(
        model.released_labels_,
        ReleasedWeights() if run.student == "auto" else NamedStudent(run.student),
        inputs.X_public,
        replace(inputs.schema, classes=inputs.classes).to_json(),
        seed=run.seed,
        without=run.without,
    )
