"""From a private table to a dataset of a service: teachers in a vault, a session that is paid for,
and the settings by which it is served."""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from secretballot._validation import shown
from secretballot.accounting import teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.data.columns import VectorColumn
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.pate.estimators import PATEClassifier
from secretballot.learners.pate.mechanisms import choose_terms
from secretballot.learners.training.learner import Learner
from secretballot.learners.training.session import LabelingSession
from secretballot.learners.training.trained import train_teachers
from secretballot.named_learners import teacher_by_name
from secretballot.runs.folder import Account, check_outside_of_runs, write_files
from secretballot.runs.methods import Quote, Sizes, VoteMethod, worker_processes
from secretballot.runs.questions import Caution, Watch
from secretballot.runs.spec import OWN, RunSpec, toml_text
from secretballot.runs.tables import LabelledTable, RunInputs
from secretballot.vault import make_vault

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
_SETTINGS = "service.toml"


def run_prepare(spec: RunSpec, watch: Watch | None = None) -> dict[str, Any]:
    """Train teachers on a private table, and begin a session that a service can answer from.

    Returns what was prepared, as JSON values: where vault, schema, settings and ledger lie; the
    lines of the settings about the dataset, which a person adds to settings that exist, as
    ``settings_written`` says; the price, and the queries of the stream, in all and left.

    Repeated with the same tables and settings it goes on where it broke off: teachers that are
    there are kept, and a session that is paid for is not paid again.

    Parameters
    ----------
    spec : RunSpec
    watch : Watch, optional
        Called with what happens.

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
    Price : the run's (epsilon, delta), for all queries together, however they are chosen.
    Messages : for the curator alone; the schema and the settings hold public words.
    """
    watch = watch or Watch()
    method = Stream(spec)
    method.check()
    # before the long training: a ledger that does not admit the price says so now
    account = Account(spec)
    inputs, quoted = method.quoted_inputs(account, method.settings.stream, watch, None)
    spec = method.settle(quoted, watch)
    given, out, terms = method.settings, spec.output.out, method.terms(len(inputs.classes))
    ledger = account.opened(spec.total)
    watch.step("Training teachers")
    make_vault(method.vault)
    execution = spec.execution
    teachers = train_teachers(
        given.teacher,
        **inputs.for_fit,
        n_teachers=given.n_teachers,
        relation=spec.budget.relation,
        vault=method.vault,
        n_jobs=worker_processes(execution.n_jobs, execution.executor),
        executor=execution.executor,
        random_state=given.random_state,
        progress=watch.progress,
    )
    session = LabelingSession(
        teachers,
        terms.mechanism,
        ledger,
        terms.budget,
        n_queries=terms.shape.n_queries,
        request=given.stream,
        purpose=spec.about.purpose or "queries online",
    )
    schema_file, settings = out / f"{method.name}-schema.json", out / _SETTINGS
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", method.name)
    dataset = {
        "title": spec.about.title or method.name,
        "vault": method.vault.name,
        "schema": schema_file.name,
        "sessions": [given.stream],
    }
    table = toml_text({f"datasets.{method.name if bare else json.dumps(method.name)}": dataset})
    contents = {schema_file.name: json.dumps(inputs.schema.to_json(), indent=1) + "\n"}
    is_new = not os.path.lexists(settings)  # a person's file is not edited by a program
    if is_new:
        contents[_SETTINGS] = f'state = "state"\n\n{table}'
    write_files(out, {name: text.encode() for name, text in contents.items()})
    return {
        "vault": str(method.vault),
        "schema": str(schema_file),
        "settings": str(settings),
        "ledger": str(ledger.place),
        "table": table,
        "settings_written": is_new,
        "epsilon": spec.price.epsilon,
        "delta": spec.price.delta,
        "queries": session.planned,
        "left": session.left,
    }


class Stream(VoteMethod):
    """Teachers that answer over HTTP, paid for beforehand."""

    step = "Training teachers"
    learners: ClassVar[Mapping[str, type[Learner]]] = {"class": PATEClassifier}

    @property
    def name(self) -> str:
        """The name of the dataset in the addresses of the service, and of its files."""
        return self.spec.dataset_name

    @property
    def vault(self) -> Path:
        """The vault of the dataset."""
        return self.spec.output.out / f"{self.name}-vault"

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        for name, value in (("dataset", self.name), ("stream", self.settings.stream)):
            if not _NAME.fullmatch(value):
                raise ParameterError(
                    Parameter(name),
                    f" is {shown(value)}, which cannot be part of an address; use at most 80"
                    " letters, digits, dots, hyphens and underscores, a letter or digit first.",
                )
        if self.spec.budget.ledger == OWN:
            raise ParameterError(
                Parameter("ledger"),
                f" is {OWN!r}, which is the account of one run; a service needs a file or a"
                " database's URL.",
            )
        teacher_by_name(self.settings.teacher)
        check_outside_of_runs(self.spec.output.out)
        super().check()

    def n_teachers(self, inputs: Any) -> int:
        """Return the number of teachers."""
        return int(self.settings.n_teachers)

    def questions(self, inputs: RunInputs, watch: Watch) -> Iterator[Caution]:
        """Refuse tables from which no session can be made, and yield what is to be asked."""
        if not isinstance(inputs.private, LabelledTable):
            raise DataError(
                "The private table is too large to train the teachers of a session from memory;"
                " give fewer columns or rows, or a machine with more memory. Nothing was spent."
            )
        if any(isinstance(column, VectorColumn) for column in inputs.schema.columns):
            raise DataError(
                "The tables have a column of vectors, which cannot be asked by column over HTTP"
                " yet; leave it out with --drop, or prepare the session in Python. Nothing was"
                " spent."
            )
        yield from super().questions(inputs, watch)

    def quote(self, sizes: Sizes) -> Quote:
        """Return what may be asked, at which noise."""
        return self.quoted_votes(self.terms(sizes.n_classes), sizes)

    def terms(self, n_classes: int) -> Terms:
        """Return mechanism and noise of the answers."""
        given = self.settings
        pool = teacher_shape(given.n_queries, n_classes, given.n_teachers)
        return choose_terms(given.mechanism, self.price, pool, n_queries=given.n_queries)
