"""One run of labelling, from votes to a release: what `secretballot label` does."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from secretballot._validation import MECHANISMS, check_choice, check_count
from secretballot.accounting import PrivacyBudget
from secretballot.accounting.recipes import Terms
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.urls import DatabasePlace
from secretballot.core.private import Votes
from secretballot.core.types import VoteShape
from secretballot.data.vote_files import read_votes
from secretballot.exceptions import ParameterError
from secretballot.learners.pate.defaults import WITHOUT_COUNTS, choose_terms
from secretballot.learners.training.inputs import random_rows
from secretballot.publishing.job import ReleaseJob
from secretballot.publishing.process import start_publishing
from secretballot.publishing.release import check_parts, publish
from secretballot.released import ReleasedLabels
from secretballot.releasing import release
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
    cautions_of_noise,
    cautions_of_price,
    check_force,
    settle_cautions,
)
from secretballot.runs.finished_run import look_again
from secretballot.runs.folder import RunFolder, file_digest
from secretballot.runs.progress import Watch, note_few_answers, public_warnings_noted


@dataclass(frozen=True)
class LabelRun:
    """Which votes to turn into released labels, at which price.

    Attributes
    ----------
    votes : Path
        Votes (n_queries x n_teachers) or counts (n_queries x n_classes), as .npy, .csv or .parquet.
    epsilon, delta : float
        Price of the release.
    out : Path
        Folder for vault and release.
    kind : str or None
        "votes" or "counts"; None lets the reader of the file decide or refuse.
    classes : tuple or None
        Declared classes.
    teachers : int or None
        Number of teachers, where the file does not say it.
    queries : int or None
        How many rows to ask, chosen at random by `seed`; None takes as many as the budget carries,
        at most all.
    mechanism : str
        "gaussian", "vote-table", "laplace", "sparse-vector" or "confident".
    max_abstentions : int or None
        Abstentions at which the sparse vector stops.
    threshold, max_answers : int or None
        Of the confident mechanism, as for `PATEClassifier`.
    release : str
        "labels" or "counts".
    ledger : Path, DatabasePlace or None
        As for `LearnRun`; None is the account beside the file of votes.
    dataset : str or None
        Public name of the private dataset; None takes the name of the vote file.
    seed : int
        Of the choice of rows, never of noise.
    without : tuple of {"report", "student"}
        Parts of the release that are not wanted.
    about : About
        Public words of the curator on the release.
    header : str or None
        "yes" or "no": whether the first line of a CSV file names its columns.
    force, own_ledger
        As for `LearnRun`.
    """

    votes: Path
    epsilon: float
    delta: float
    out: Path
    kind: str | None = None
    classes: tuple[Any, ...] | None = None
    teachers: int | None = None
    queries: int | None = None
    mechanism: str = "gaussian"
    max_abstentions: int | None = None
    threshold: int | None = None
    max_answers: int | None = None
    release: str = "labels"
    ledger: Path | DatabasePlace | None = None
    dataset: str | None = None
    seed: int = 0
    header: str | None = None
    without: tuple[str, ...] = ()
    force: tuple[str, ...] = ()
    own_ledger: bool = False
    relation: ClassVar[str] = "add-remove"  # what votes are taken for that nobody declared
    about: About = NOTHING_SAID

    @property
    def budget(self) -> PrivacyBudget:
        """The price of the release."""
        return PrivacyBudget(self.epsilon, self.delta)

    @property
    def dataset_name(self) -> str:
        """The public name of the private dataset."""
        return self.dataset or self.private_file.stem

    @property
    def private_file(self) -> Path:
        """The file that the account is about."""
        return self.votes

    def description(self) -> dict[str, Any]:
        """Return, as JSON, all that shapes the result: the settings and the digest of the file."""
        settings = with_words(asdict(self), self.about)
        for name in ("out", "without", "force"):
            settings.pop(name)
        path = settings.pop("votes")
        plain: dict[str, Any] = json.loads(json.dumps({"verb": "label", **settings}, default=str))
        return {**plain, "vote file": file_digest(path)}


@dataclass(frozen=True)
class LabelOutcome:
    """What a run of labelling came to.

    Attributes
    ----------
    certificate : dict
    queries, answered : int
        Rows asked, and answered.
    release, vault : Path
    files : tuple of str
        Names of the files in the release.
    account : Path or DatabasePlace
        Ledger that paid.
    resumed : bool
        Whether an interrupted run was taken up.
    """

    certificate: dict[str, Any]
    queries: int
    answered: int
    release: Path
    vault: Path
    files: tuple[str, ...]
    account: Path | DatabasePlace
    resumed: bool


def run_label(run: LabelRun, watch: Watch | None = None) -> LabelOutcome:
    """Release labels for a file of votes and write the folders of the run.

    Parameters
    ----------
    run : LabelRun
    watch : Watch, optional
        Told what happens.

    Returns
    -------
    LabelOutcome

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
    Unit : one record under "add-remove", if the votes came about so; the certificate says that
        nobody checked it.
    Price : the run's (epsilon, delta), composed in the ledger with everything else released from
        the dataset.
    """
    watch = watch or Watch()
    start_publishing()  # which takes seconds to be ready, and is wanted at the end
    _refuse_unfit_settings(run)
    folder = RunFolder(run.out, run.description())
    if folder.finished:
        again = look_again(folder, watch)
        return LabelOutcome(
            **vars(again),
            release=folder.release,
            vault=folder.vault,
            account=place_of_account(run, folder),
            resumed=False,
        )
    settle_cautions([*cautions_of_price(run.budget, None)], run.force, watch)
    watch.step("Reading votes")
    counts = read_votes(
        run.votes,
        kind=run.kind,
        classes=None if run.classes is None else list(run.classes),
        n_teachers=run.teachers,
        header=run.header,
    )
    # a file of votes has no public points, so there is no student
    check_parts({*run.without, "student"})
    terms = _terms_of(run, counts.shape)
    settle_cautions([*cautions_of_noise(terms)], run.force, watch)
    # What is paid is drawn, and stored in the ledger, before anything is written for publication.
    with folder:
        ledger = ledger_of_run(run, folder, "record", watch)
        note_missing_words(run.about, run.dataset_name, run.without, watch)
        watch.step("Drawing noise")
        released = _released_labels(run, counts, terms, ledger, folder, watch)
        note_few_answers(released, watch)
        job = ReleaseJob(released, without=run.without, about=run.about.on_certificate)
        made = publish(folder.release, job, damaged=folder.damaged, say=watch.step)
    return LabelOutcome(
        certificate=made.certificate,
        queries=len(released.queries),
        answered=int(released.answered.sum()),
        release=folder.release,
        vault=folder.vault,
        files=tuple(made.files),
        account=place_of_account(run, folder),
        resumed=folder.resumed,
    )


def _refuse_unfit_settings(run: LabelRun) -> None:
    """Refuse settings that cannot be before any file is opened."""
    check_about(run.about)
    # made for its errors alone
    _ = run.budget
    check_force(run.force)
    check_account(run)
    check_choice("mechanism", run.mechanism, MECHANISMS)
    check_choice("release", run.release, ("labels", "counts"))
    if run.release == "counts" and run.mechanism in WITHOUT_COUNTS:
        raise ParameterError(
            "Counts come from the gaussian and the laplace mechanism only; leave --release or"
            " --mechanism out."
        )
    if run.mechanism == "interactive":
        raise ParameterError(
            "The interactive mechanism contradicts a student, and votes from a file have none;"
            " use --mechanism confident."
        )
    for name in ("teachers", "queries", "max_abstentions", "threshold", "max_answers"):
        if getattr(run, name) is not None:
            check_count(name, getattr(run, name))
    check_count("seed", run.seed, minimum=0)


def _terms_of(run: LabelRun, shape: VoteShape) -> Terms:
    """Return mechanism and number of queries, by the shape of the votes alone."""
    return choose_terms(
        run.mechanism,
        run.budget,
        shape,
        n_queries=run.queries,
        max_abstentions=run.max_abstentions,
        threshold=run.threshold,
        max_answers=run.max_answers,
        release=run.release,
    )


def _released_labels(
    run: LabelRun,
    counts: Votes,
    terms: Terms,
    ledger: Ledger,
    folder: RunFolder,
    watch: Watch,
) -> ReleasedLabels:
    # Rows are chosen by the public seed alone: how clear the votes are is private.
    rows = random_rows(counts.shape.n_queries, terms.shape.n_queries, run.seed)
    with public_warnings_noted(watch):
        return release(
            counts,
            terms.mechanism,
            ledger,
            terms.budget,
            queries=rows,
            request=folder.request,
            purpose=run.about.purpose or "label",
        )
