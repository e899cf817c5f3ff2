"""From a private table to a dataset of a service: teachers in a vault, a session that is paid for,
and the settings by which it is served."""

import json
import os
from typing import Any

from secretballot.learners.training.session import LabelingSession
from secretballot.learners.training.trained import train_teachers
from secretballot.runs.folder import Account, write_files
from secretballot.runs.methods import Stream
from secretballot.runs.questions import Watch
from secretballot.runs.spec import RunSpec, toml_text

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
    execution = spec.execution
    teachers = train_teachers(
        given.teacher,
        **inputs.for_fit,
        n_teachers=given.n_teachers,
        relation=spec.budget.relation,
        vault=method.vault,
        n_jobs=execution.n_jobs,
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
    dataset = {
        "title": spec.about.title or method.name,
        "vault": method.vault.name,
        "schema": schema_file.name,
        "sessions": [given.stream],
    }
    table = toml_text({f"datasets.{json.dumps(method.name)}": dataset})
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
