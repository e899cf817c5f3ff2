"""One run of a choice, from files to a release: what `secretballot choose` does."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from secretballot._places import table_name
from secretballot._validation import HYPOTHESES, RELATIONS, check_choice, check_count, shown
from secretballot.accounting import PrivacyBudget
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.urls import DatabasePlace
from secretballot.data.reading import is_local_file
from secretballot.data.schema import Schema
from secretballot.data.stored import StoredTable, forget_table
from secretballot.exceptions import CertificateError, DataError, ParameterError
from secretballot.hypotheses import HypothesisClass
from secretballot.learners.selection.semi_private import SemiPrivateClassifier
from secretballot.publishing.job import ChosenHypothesis, ReleaseJob, SavedStudent
from secretballot.publishing.process import start_publishing
from secretballot.publishing.release import check_parts, publish
from secretballot.publishing.work import hypotheses_by_name
from secretballot.report.certificate.fields import read_certificate
from secretballot.report.metrics import Metrics
from secretballot.report.student.load import load_student
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
    cautions_of_price,
    check_force,
    settle_cautions,
)
from secretballot.runs.finished_run import look_again
from secretballot.runs.folder import RunFolder, file_digest
from secretballot.runs.progress import Watch
from secretballot.runs.student_file import check_converts
from secretballot.runs.tables import (
    RunInputs,
    RunTables,
    TablePlace,
    folder_of_run,
    metrics_on_test,
    read_inputs,
)

_DIGITS = 12  # of a candidate's digest in its name: enough to tell files apart


@dataclass(frozen=True)
class ChooseRun:
    """What to choose from, by which records, at which price.

    Attributes
    ----------
    tables : RunTables
    epsilon : float
        Price; delta is 0.
    out : Path
        Folder for vault and release.
    candidates : tuple of Path
        Saved students; or none, with `hypotheses`.
    hypotheses : str or None
        One of `HYPOTHESES`: a class, on the public points.
    n_cover : int or None
        How many public points make a class finite, chosen at random by `seed`; None takes all.
    relation : str
    ledger : Path, DatabasePlace or None
        As for `LearnRun`.
    dataset : str or None
        Public name of the private dataset; None takes the name of its file.
    seed : int
        Of the choice of public points, never of noise.
    without : tuple of {"report", "student"}
        Parts of the release that are not wanted.
    force, own_ledger
        As for `LearnRun`.
    about : About
        Public words of the curator on the release.
    """

    tables: RunTables
    epsilon: float
    out: Path
    candidates: tuple[Path, ...] = ()
    hypotheses: str | None = None
    n_cover: int | None = None
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
        """The price of the choice."""
        return PrivacyBudget(self.epsilon, 0.0)

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
        for name in ("tables", "out", "candidates", "without", "force"):
            settings.pop(name)
        described = {"verb": "choose", **settings, **self.tables.description()}
        plain: dict[str, Any] = json.loads(json.dumps(described, default=str))
        return {**plain, "candidates": [file_digest(path) for path in self.candidates]}


@dataclass(frozen=True)
class ChooseOutcome:
    """What a run of a choice came to.

    `metrics` is about the test file and is not for publication by itself.

    Attributes
    ----------
    certificate : dict
    chosen : str
        The candidate's name, or the hypothesis in words.
    n_candidates : int
    metrics : Metrics or None
        How good the chosen one is on the rows of the test file.
    release, vault : Path
    files : tuple of str
        Names of the files in the release.
    account : Path or DatabasePlace
        Ledger that paid.
    resumed : bool
        Whether an interrupted run was taken up.
    """

    certificate: dict[str, Any]
    chosen: str
    n_candidates: int
    metrics: Metrics | None
    release: Path
    vault: Path
    files: tuple[str, ...]
    account: Path | DatabasePlace
    resumed: bool

    @property
    def accuracy(self) -> float | None:
        """Share of the test file's rows that the chosen one got right."""
        return None if self.metrics is None else self.metrics.accuracy


def run_choose(run: ChooseRun, watch: Watch | None = None) -> ChooseOutcome:
    """Choose a model by private records and write the folders of the run.

    Parameters
    ----------
    run : ChooseRun
    watch : Watch, optional
        Told what happens.

    Returns
    -------
    ChooseOutcome

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
    Price : (epsilon, 0), composed in the ledger with everything else released from the dataset. The
        candidates may depend on these records by what the same ledger paid for only: the caller's
        word, written on the certificate.
    Messages : checks before the choice speak to the curator alone and never show a private value.
    """
    watch = watch or Watch()
    start_publishing()  # which takes seconds to be ready, and is wanted at the end
    # As in a run of learning: whatever can be refused comes before anything is paid, and what is
    # published comes last, since it can be made again.
    _refuse_unfit_settings(run)
    schema = run.tables.schema or schema_beside(run.candidates)
    run = replace(run, tables=replace(run.tables, schema=schema))
    folder = folder_of_run(run)
    if run.hypotheses is not None and not is_local_file(run.tables.private):
        raise _hypotheses_from_disk()
    if folder.finished:
        return _outcome_again(folder, watch, run)
    settle_cautions([*cautions_of_price(run.budget, None)], run.force, watch)
    check_parts(run.without)
    candidates = _saved_students(run)
    with folder:
        watch.step("Reading tables")
        inputs = read_inputs(run.tables, watch, folder.vault)
        settle_cautions([*cautions_of_ids(inputs.repeating_ids)], run.force, watch)
        check_converts("auto", inputs.X_public, inputs.schema, without=run.without)
        hypotheses = None
        if run.hypotheses is not None:
            if isinstance(inputs.private, StoredTable):
                raise _hypotheses_from_disk()
            hypotheses = _class_by_name(run.hypotheses, inputs.X_public.shape[1])
        ledger = ledger_of_run(run, folder, inputs.unit, watch)
        _note_other_accounts(run.candidates, ledger, watch)
        note_missing_words(run.about, run.dataset_name, run.without, watch)
        watch.step("Choosing")
        model = SemiPrivateClassifier(
            candidates or hypotheses,
            budget=run.budget,
            n_cover=run.n_cover,
            relation=run.relation,
            ledger=ledger,
            request=folder.request,
            purpose=run.about.purpose or "choose",
            random_state=run.seed,
        )
        model.fit(**inputs.for_fit)
        job = _release_job(run, model, inputs)
        made = publish(folder.release, job, damaged=folder.damaged, say=watch.step)
        forget_table(folder.vault)
    public = model.certificate_["public"]
    return ChooseOutcome(
        certificate=made.certificate,
        chosen=_chosen_words(public, inputs.schema, inputs.classes),
        n_candidates=model.n_candidates_,
        metrics=metrics_on_test(made.student, inputs),
        release=folder.release,
        vault=folder.vault,
        files=tuple(made.files),
        account=place_of_account(run, folder),
        resumed=folder.resumed,
    )


def _hypotheses_from_disk() -> DataError:
    return DataError(
        "The private file is read from disk, block by block, since it is a folder, at a URL or too"
        " large for memory, and a class of hypotheses is chosen from in memory; give one smaller"
        " file, or --candidates. Nothing was spent."
    )


def _refuse_unfit_settings(run: ChooseRun) -> None:
    """Refuse settings that cannot be before any file is opened."""
    check_about(run.about)
    _ = run.budget
    check_force(run.force)
    check_account(run)
    if bool(run.candidates) == (run.hypotheses is not None):
        raise ParameterError(
            "Name either saved students with --candidates, or a class with --hypotheses."
        )
    if run.hypotheses is not None:
        check_choice("hypotheses", run.hypotheses, HYPOTHESES)
    check_choice("relation", run.relation, RELATIONS)
    if run.relation == "replace-one" and run.tables.unit is not None:
        raise ParameterError(
            "A unit column goes with relation add-remove only; leave --unit or --relation out."
        )
    if run.n_cover is not None:
        check_count("n_cover", run.n_cover)
    check_count("seed", run.seed, minimum=0)


def _saved_students(run: ChooseRun) -> list[tuple[str, Any]]:
    """Return the saved students, each named by its file or folder and the beginning of its
    digest."""
    # The digest ties the name on the certificate to this very file.
    digests = [file_digest(path) for path in run.candidates]
    if len(set(digests)) < len(digests):
        raise ParameterError("Two of the candidates are the same file; name each once.")
    names = _names_of_files(run.candidates)
    return [
        (f"{name} {digest[:_DIGITS]}", load_student(path))
        for name, path, digest in zip(names, run.candidates, digests, strict=True)
    ]


def _names_of_files(paths: Sequence[Path]) -> list[str]:
    """Return how people call files: by their own names, or by the folders that tell them apart.

    Of `a/release/student.onnx` and `b/release/student.onnx` these are a and b.
    """
    stems = [path.stem for path in paths]
    if len(set(stems)) == len(stems):
        return stems
    folders = [Path(os.path.abspath(path)).parent.parts for path in paths]
    for level in range(1, max(map(len, folders)) + 1):
        # the root of a drive is no name
        named = [parts[-level] if level < len(parts) else "" for parts in folders]
        if "" not in named and len(set(named)) == len(named):
            return named
    return stems


def schema_beside(candidates: Sequence[Path]) -> Path | None:
    """Return the schema that the saved students were released with, by which they read columns.

    Raises
    ------
    DataError
        If they were released with different ones.
    """
    beside = [path.parent / "schema.json" for path in candidates]
    found = [path for path in beside if path.is_file()]
    if found and (len(found) < len(beside) or len({file_digest(path) for path in found}) > 1):
        raise DataError(
            "The candidates were released with different columns, or some without a schema.json"
            " beside them; choose among students of one schema, or name it with --schema."
        )
    return found[0] if found else None


def _note_other_accounts(candidates: Sequence[Path], ledger: Ledger, watch: Watch) -> None:
    """Say so where a student was released under another account: its price is not part of this."""
    own = (ledger.dataset, ledger.unit, ledger.relation, ledger.budget.to_json())
    for path in candidates:
        certificate = path.parent / "certificate.json"
        if not certificate.is_file():
            continue
        paid = read_certificate(certificate).get("composition", {})
        if tuple(paid.get(term) for term in ("dataset", "unit", "relation", "budget")) != own:
            watch.note(
                f"{path} was released under another account; if it is about the same people, its"
                " price adds to this one and the certificate does not say so. Give both the same"
                " --ledger and --dataset.",
                private=False,
            )


def _outcome_again(folder: RunFolder, watch: Watch, run: ChooseRun) -> ChooseOutcome:
    """Return what the finished run came to; the chosen model is not measured again.

    Raises
    ------
    CertificateError
        If its release is damaged.
    """
    # The release may have been changed since, so whatever is read from it may be missing.
    again = look_again(folder, watch)
    certificate = again.certificate
    chosen, problem = "", False
    try:
        public = certificate["public"]
        n_candidates = int(public["n_candidates"])
        chosen = _chosen_words(
            public,
            Schema.read(folder.release / "schema.json"),
            certificate["released"]["classes"],
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        problem = True
    if problem:
        raise CertificateError(
            f"{shown(folder.release)} is damaged; see what `secretballot verify` says of it."
        )
    return ChooseOutcome(
        certificate=certificate,
        chosen=chosen,
        n_candidates=n_candidates,
        metrics=None,
        release=folder.release,
        vault=folder.vault,
        account=place_of_account(run, folder),
        files=again.files,
        resumed=False,
    )


def _chosen_words(public: Mapping[str, Any], schema: Schema, classes: Sequence[Any]) -> str:
    """Return the name of the chosen candidate; of a hypothesis, a cut in words, any other as JSON.

    Numbers are those of the encoded column.
    """
    if "chosen" in public:
        return str(public["chosen"])
    hypothesis = public["hypothesis"]
    if "direction" not in hypothesis:
        return json.dumps(hypothesis)
    column = schema.feature_names[hypothesis.get("feature", 0)]
    sign = ">=" if hypothesis["direction"] == "up" else "<"
    return (
        f"{classes[1]} where {column} {sign} {hypothesis['threshold']} (encoded), else {classes[0]}"
    )


def _class_by_name(name: str, n_features: int) -> HypothesisClass:
    """Return the class of that name on so many columns."""
    if name != "stumps" and n_features != 1:
        raise DataError(
            f"The public file makes {n_features} feature columns, and {name} need exactly one; drop"
            " the others with --drop, or use --hypotheses stumps."
        )
    return hypotheses_by_name(name, n_features)


def _release_job(run: ChooseRun, model: SemiPrivateClassifier, inputs: RunInputs) -> ReleaseJob:
    """Return all that the release is made of: what was released, public inputs, and settings."""
    return ReleaseJob(
        model.released_,
        _chosen_file(run, model) if run.hypotheses is None else ChosenHypothesis(run.hypotheses),
        inputs.X_public,
        replace(inputs.schema, classes=inputs.classes).to_json(),
        seed=run.seed,
        without=run.without,
        raw_rows=inputs.raw_rows,
        test=inputs.published_rows,
        about=run.about.on_certificate,
    )


def _chosen_file(run: ChooseRun, model: SemiPrivateClassifier) -> SavedStudent:
    """Return the file of the chosen candidate, as it was when it was chosen."""
    path = run.candidates[model.choice_.values.item()]
    content = path.read_bytes()
    if not model.certificate_["public"]["chosen"].endswith(sha256(content).hexdigest()[:_DIGITS]):
        raise DataError(
            f"The file {str(path)!r} was changed while the run was at work; put it back, and"
            " repeat."
        )
    return SavedStudent(content)
