"""One run, from settings to folders: read, check, quote, confirm, fit, publish.

What can be refused comes before anything is paid, and what is published comes last, since it can be
made again. A run that was interrupted goes on when it is repeated: what was drawn is kept in the
ledger, and what was paid for is not paid again.
"""

import json
import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from secretballot._typing import Json, Names
from secretballot.core.ledger.urls import DatabasePlace
from secretballot.data.schema import Schema
from secretballot.data.stored import forget_table
from secretballot.exceptions import CertificateError, DataError
from secretballot.learners.session import LabelingSession, train_teachers
from secretballot.publishing.process import start_publishing
from secretballot.publishing.release import ReleaseJob, check_parts, publish
from secretballot.released import ReleasedLabels
from secretballot.report.metrics import AnyMetrics
from secretballot.runs.folder import (
    SPEC_FILE,
    Account,
    RunFolder,
    place_of_account,
    settle_request,
    write_files,
)
from secretballot.runs.methods import Fitted, Method, Quote, Stream, chosen_words, method_of
from secretballot.runs.questions import Watch
from secretballot.runs.spec import VOTES, RunSpec, toml_text
from secretballot.runs.use import STUDENT, evaluate, verified_certificate
from secretballot.vault import write_secret

_FINISHED = (
    "This very run is finished already: nothing was done and nothing was spent. For another one,"
    " give another folder."
)


@dataclass(frozen=True)
class Outcome:
    """What a run came to; `metrics` is about the evaluation table, not for publication by itself.

    Attributes
    ----------
    method : str
    certificate : dict
    metrics : AnyMetrics or None
        How good the student is on the rows of the evaluation table.
    release, vault : Path
    account : Path or DatabasePlace
        Ledger that paid.
    resumed : bool
        Whether an interrupted run was taken up.
    again : bool
        Whether the run was finished before, so that its account may have changed since.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_breast_cancer
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> rows = load_breast_cancer(as_frame=True).frame.sample(frac=1, random_state=0)
    >>> rows[:400].to_csv(folder / "private.csv", index=False)
    >>> rows[400:].drop(columns="target").to_csv(folder / "public.csv", index=False)
    >>> made = sb.run(sb.RunSpec.read(
    ...     private=folder / "private.csv", public=folder / "public.csv", target="target",
    ...     classes="0,1", epsilon=4, delta=1e-5, total="4,1e-5", out=folder / "run"))
    >>> made.method, made.queries, made.release.name, "student.onnx" in made.files
    ('record-moments', 169, 'release', True)
    """

    method: str
    certificate: Json
    metrics: AnyMetrics | None
    release: Path
    vault: Path
    account: Path | DatabasePlace
    resumed: bool = False
    again: bool = False

    @property
    def files(self) -> Names:
        """Names of the files in the release."""
        return tuple(sorted(found.name for found in self.release.iterdir()))

    @property
    def accuracy(self) -> float | None:
        """Share of the evaluation table's rows that the student got right."""
        return getattr(self.metrics, "accuracy", None)

    @property
    def queries(self) -> int:
        """Public points asked, or labelled; 0 where sums alone were released."""
        return int(self._counted("queries"))

    @property
    def answered(self) -> int:
        """How many of these were answered."""
        return int(self._counted("answered"))

    def _counted(self, name: str) -> int:
        released = self.certificate["released"]
        # the answers of a table are on the certificate
        return len(released["rows"]) if "rows" in released else released[name]

    @property
    def chosen(self) -> str | None:
        """Candidate, or hypothesis in words, of a choice."""
        public = self.certificate["public"]
        if "n_candidates" not in public:
            return None
        schema = Schema.read(self.release / "schema.json")
        return chosen_words(public, schema, self.certificate["released"]["classes"])


def run(spec: RunSpec, reporter: Watch | None = None) -> Outcome:
    """Learn, choose or label, and write the folders of the run.

    Parameters
    ----------
    spec : RunSpec
    reporter : Watch, optional
        Called with what happens, and with questions that were not confirmed.

    Returns
    -------
    Outcome

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
    Relation : as the settings declare.
    Price : the (epsilon, delta) of the settings, composed in the ledger with everything else
        released from the dataset. Candidates of a choice may depend on these records by what the
        same ledger paid for only: the caller's word, written on the certificate.
    Messages : checks before the release are for the curator alone and never show a private value.
    """
    watch = reporter or Watch()
    start_publishing()  # which takes seconds to be ready, and is wanted at the end
    method, folder = _checked(spec, watch)
    if folder.finished:
        return _outcome_again(method.spec, folder, watch)
    with folder:
        account = Account(spec, folder)
        inputs, quoted = method.quoted_inputs(account, folder.request, watch, folder.vault)
        spec = method.settle(quoted, watch)
        ledger = account.opened(spec.total)
        settle_request(folder, ledger, watch)
        # all that a person needs to repeat the run, and what `evaluate` asks where its records lie
        write_secret(folder.vault / SPEC_FILE, spec.to_toml(absolute=True).encode())
        watch.step(method.step)
        fitted = method.fit(inputs, folder, ledger, watch)
        made = publish(folder.release, _job(method, inputs, fitted), say=watch.step)
        forget_table(folder.vault)
    metrics = _measured(spec, folder, watch, just_made=True)
    places = folder.release, folder.vault, account.place
    return Outcome(spec.method.name, made.certificate, metrics, *places, folder.resumed)


def quote(spec: RunSpec, reporter: Watch | None = None) -> Quote:
    """Return what a run would cost and ask; it is checked as the run would be, and nothing is made,
    trained or spent.

    Raises
    ------
    ParameterError, DataError, LedgerError
        As the run itself would raise them.
    """
    watch = reporter or Watch()
    method, folder = _checked(spec, watch)
    if folder.finished:
        watch.note(_FINISHED, private=False)
    return method.quoted_inputs(Account(method.spec, folder), folder.request, watch, None)[1]


def _checked(spec: RunSpec, watch: Watch) -> tuple[Method, RunFolder]:
    """Return the method and the folder of a run whose settings can be; no table was read."""
    check_parts(spec.output.exclude, parquet=spec.output.file_format == "parquet")
    method = method_of(spec)
    method.check()
    described = {**spec.identity(), **method.description()}
    description = json.loads(json.dumps(described, default=str))
    return method, RunFolder(spec.output.out, description)


def _job(method: Method, inputs: Any, fitted: Fitted) -> ReleaseJob:
    """Return all that the release is made of: what was released, public inputs, and settings."""
    spec, (released, student) = method.spec, fitted
    job = ReleaseJob(
        released,
        student,
        without=spec.output.exclude,
        parquet=spec.output.file_format == "parquet",
        # the purpose is there since the payment
        about=spec.about.model_dump(exclude={"purpose"}, exclude_none=True),
        seed=spec.method.random_state,
    )
    if spec.method.name == VOTES:  # which have no public points
        return job
    classes = inputs.classes if isinstance(released, ReleasedLabels) else None
    test = inputs.test if spec.output.publish_metrics else None
    return replace(
        job,
        X_public=inputs.X_public,
        schema=replace(inputs.schema, classes=classes, target=spec.data.target).to_json(),
        raw_rows=inputs.raw_rows,
        test=None if test is None else (test.rows, test.targets),
    )


def _measured(
    spec: RunSpec, folder: RunFolder, watch: Watch, *, just_made: bool
) -> AnyMetrics | None:
    """Return the metrics of the published student, and say so where it cannot be measured."""
    table = spec.output.evaluate
    if table is None:
        return None
    if not (folder.release / STUDENT).is_file():
        watch.note("No student was published, so none is measured.", private=False)
        return None
    found, _ = evaluate(
        [folder.root], table, spec.data.target, encoding=spec.data.encoding, just_made=just_made
    )
    return found[0].metrics


def _outcome_again(spec: RunSpec, folder: RunFolder, watch: Watch) -> Outcome:
    """Return what is in the release of a finished run.

    Raises
    ------
    CertificateError
        If the release is damaged.
    """
    # the files are as anybody may have changed them since, so they are checked like a stranger's
    try:
        certificate = verified_certificate(folder.root)
    except (CertificateError, DataError) as error:
        raise CertificateError(
            f"{error} Move {str(folder.release)!r} elsewhere, that folder alone, and repeat the"
            " command, which makes it again from what was paid for. Nothing was spent."
        ) from None
    watch.note(_FINISHED, private=False)
    # a crash may have come between the release and this
    forget_table(folder.vault)
    metrics = _measured(spec, folder, watch, just_made=False)
    places = folder.release, folder.vault, place_of_account(spec, folder)
    return Outcome(spec.method.name, certificate, metrics, *places, again=True)


_SETTINGS = "service.toml"


def run_prepare(spec: RunSpec, watch: Watch | None = None) -> Json:
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
