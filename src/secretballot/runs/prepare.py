"""From a private table to a dataset of a service: teachers in a vault, a session that is paid for,
and the settings by which it is served."""

import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from secretballot._validation import check_choice, check_count, check_name, shown
from secretballot.accounting import PrivacyBudget, teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.core.drafts import release_above, write_file
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.urls import DatabasePlace
from secretballot.data.columns import VectorColumn
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.labelers.session import LabelingSession
from secretballot.learners.pate.defaults import choose_terms
from secretballot.learners.training.account import refuse_beyond
from secretballot.learners.training.trained import TrainedTeachers, train_teachers
from secretballot.named_learners import teacher_by_name
from secretballot.runs.account import named_account, open_ledger
from secretballot.runs.caution import (
    cautions_of_ids,
    cautions_of_noise,
    cautions_of_price,
    cautions_of_records,
    check_force,
    settle_cautions,
)
from secretballot.runs.folder import check_outside_of_runs
from secretballot.runs.progress import Watch
from secretballot.runs.tables import LabelledTable, RunInputs, RunTables, check_tables, read_inputs
from secretballot.vault import make_vault

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_SETTINGS = "service.toml"


@dataclass(frozen=True)
class PrepareRun:
    """Which dataset to prepare, and what a session of it may cost.

    Attributes
    ----------
    tables : RunTables
    name : str
        Of the dataset in the addresses of the service, and of its files.
    epsilon, delta : float
        Price of all questions of the session together.
    questions : int
        That the session may be asked.
    out : Path
        Folder of the service; made if it is not there.
    session : str
        Name of the session, in addresses and in the ledger.
    teachers : int
    teacher : str
        As for `LearnRun`.
    release : {"labels", "counts"}
        What an answer tells.
    relation : str
    total : PrivacyBudget or None
        That a new account admits in all; None is the price of the session, and nothing more.
    ledger : Path, DatabasePlace or None
        As for `LearnRun`.
    dataset : str or None
        Public name of the private dataset in its account.
    title, purpose : str
        For people; public.
    force, jobs, engine, seed
        As for `LearnRun`.
    """

    tables: RunTables
    name: str
    epsilon: float
    delta: float
    questions: int
    out: Path
    session: str = "session"
    teachers: int = 250
    teacher: str = "logistic"
    release: str = "labels"
    relation: str = "add-remove"
    total: PrivacyBudget | None = None
    ledger: Path | DatabasePlace | None = None
    dataset: str | None = None
    title: str | None = None
    purpose: str = ""
    force: tuple[str, ...] = ()
    jobs: int | None = 1
    engine: str = "local"
    seed: int = 0
    own_ledger: bool = field(default=False, init=False)

    @property
    def budget(self) -> PrivacyBudget:
        """The price of the session."""
        return PrivacyBudget(self.epsilon, self.delta)

    @property
    def dataset_name(self) -> str:
        """The public name of the private dataset."""
        return self.dataset or self.name

    @property
    def private_file(self) -> Path | str:
        """The file that the account is about."""
        return self.tables.private

    @property
    def vault(self) -> Path:
        """The vault of the dataset."""
        return self.out / f"{self.name}-vault"

    @property
    def schema(self) -> Path:
        """The public file by which points are encoded."""
        return self.out / f"{self.name}-schema.json"


@dataclass(frozen=True)
class PrepareOutcome:
    """What was prepared.

    Attributes
    ----------
    vault, schema : Path
    settings : Path
        The settings of the service.
    account : str
        Where the ledger lies.
    table : str
        The lines of the settings about the dataset.
    listed : bool
        Whether they stand in the settings; where these were there already, a person adds them.
    planned, left : int
        Questions of the session, and those that were not asked yet.
    """

    vault: Path
    schema: Path
    settings: Path
    account: str
    table: str
    listed: bool
    planned: int
    left: int


def run_prepare(run: PrepareRun, watch: Watch | None = None) -> PrepareOutcome:
    """Train teachers on a private table, and begin a session that a service can answer from.

    Repeated with the same tables and settings it goes on where it broke off: teachers that are
    there are kept, and a session that is paid for is not paid again.

    Parameters
    ----------
    run : PrepareRun
    watch : Watch, optional
        Told what happens.

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
    Price : the run's (epsilon, delta), for all questions together, however they are chosen.
    Messages : for the curator alone; the schema and the settings hold public words.
    """
    watch = watch or Watch()
    _refuse_unfit(run)
    check_tables(run.tables)
    settle_cautions([*cautions_of_price(run.budget, None)], run.force, watch)
    watch.step("Reading tables")
    inputs = read_inputs(run.tables, watch)
    private = _in_memory(inputs)
    schema = _schema_of_points(inputs.schema)
    terms = _terms_of_run(run, len(inputs.classes))
    cautions = [
        *cautions_of_records(run.budget, None, inputs.n_units, run.teachers),
        *cautions_of_ids(inputs.repeating_ids),
        *cautions_of_noise(terms),
    ]
    settle_cautions(cautions, run.force, watch)
    # before the long training: a ledger that does not admit the price says so now
    ledger = _account_of_run(run, inputs.unit)
    refuse_beyond(ledger, run.budget, run.session)
    watch.step("Training teachers")
    teachers = _trained_teachers(run, inputs, private, watch)
    session = LabelingSession(
        teachers,
        terms.mechanism,
        ledger,
        terms.budget,
        n_queries=terms.shape.n_queries,
        request=run.session,
        purpose=run.purpose or "questions online",
    )
    _write_public(run.schema, json.dumps(schema.to_json(), indent=1) + "\n")
    table = _table_of_settings(run)
    settings = run.out / _SETTINGS
    listed = not os.path.lexists(settings)
    if listed:
        _write_public(settings, f'state = "state"\n\n{table}')
    else:
        # a person's file is not edited by a program
        listed = table in settings.read_text(encoding="utf-8")
    return PrepareOutcome(
        run.vault,
        run.schema,
        settings,
        str(ledger.place),
        table,
        listed,
        session.planned,
        session.left,
    )


def _refuse_unfit(run: PrepareRun) -> None:
    """Refuse settings that cannot be before any file is opened."""
    for name, value in (("name", run.name), ("session", run.session)):
        if not _NAME.fullmatch(value):
            raise ParameterError(
                Parameter(name),
                f" is {shown(value)}, which cannot stand in an address; use at most 80 letters,"
                " digits, dots, hyphens and underscores, a letter or digit first.",
            )
    # made for its errors alone
    _ = run.budget
    check_force(run.force)
    teacher_by_name(run.teacher)
    check_count("teachers", run.teachers)
    check_count("questions", run.questions)
    check_count("seed", run.seed, minimum=0)
    check_choice("release", run.release, ("labels", "counts"))
    for name, words in (("title", run.title), ("purpose", run.purpose)):
        if words:
            check_name(name, words)
    check_outside_of_runs(run.out)
    if release_above(run.out) is not None:
        raise DataError(f"{str(run.out)!r} lies in a release, which is complete; name another.")


def _in_memory(inputs: RunInputs) -> LabelledTable:
    if not isinstance(inputs.private, LabelledTable):
        raise DataError(
            "The private table is too large to train the teachers of a session from memory; give"
            " fewer columns or rows, or a machine with more memory. Nothing was spent."
        )
    return inputs.private


def _schema_of_points(schema: Schema) -> Schema:
    if any(isinstance(column, VectorColumn) for column in schema.columns):
        raise DataError(
            "The tables have a column of vectors, which cannot be asked by column over HTTP yet;"
            " leave it out with --drop, or prepare the session in Python. Nothing was spent."
        )
    return schema


def _terms_of_run(run: PrepareRun, n_classes: int) -> Terms:
    pool = teacher_shape(run.questions, n_classes, run.teachers)
    return choose_terms("gaussian", run.budget, pool, n_queries=run.questions, release=run.release)


def _account_of_run(run: PrepareRun, unit: str) -> Ledger:
    ledger = open_ledger(
        named_account(run),
        dataset=run.dataset_name,
        budget=run.total or run.budget,
        unit=unit,
        relation=run.relation,
    )
    if run.total is not None and ledger.budget != run.total:
        raise ParameterError(
            f"The account at {ledger.place} is there already and admits epsilon"
            f" {ledger.budget.epsilon:g} and delta {ledger.budget.delta:g} in all; leave"
            " --total-epsilon and --total-delta out, or name another account with --ledger."
        )
    return ledger


def _trained_teachers(
    run: PrepareRun, inputs: RunInputs, private: LabelledTable, watch: Watch
) -> TrainedTeachers:
    make_vault(run.vault)
    given: dict[str, Any] = inputs.for_fit
    return train_teachers(
        run.teacher,
        given.pop("X"),
        given.pop("y"),
        **given,
        n_teachers=run.teachers,
        relation=run.relation,
        vault=run.vault,
        n_jobs=run.jobs,
        engine=run.engine,
        random_state=run.seed,
        progress=watch.progress,
    )


def _table_of_settings(run: PrepareRun) -> str:
    """Return the dataset's lines of the settings. A string of JSON is one of TOML."""
    lines = {
        "title": run.title or run.name,
        "vault": run.vault.name,
        "schema": run.schema.name,
        "sessions": [run.session],
    }
    text = "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())
    key = run.name if re.fullmatch(r"[A-Za-z0-9_-]+", run.name) else json.dumps(run.name)
    return f"[datasets.{key}]\n{text}"


def _write_public(path: Path, text: str) -> None:
    problem = ""
    try:
        write_file(path, text.encode())
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise DataError(
            f"{path} cannot be written ({problem}); free the place, and repeat the command: nothing"
            " is paid twice."
        )
