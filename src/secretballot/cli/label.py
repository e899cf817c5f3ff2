"""`secretballot label`: from a file of votes, made anywhere, to released labels."""

from pathlib import Path
from typing import Annotated

import typer

from secretballot._validation import HeaderLine, ReleaseKind, VotesKind
from secretballot.cli.options import (
    DATA,
    OUT,
    PRIVACY,
    QUERIES,
    TEACHERS,
    AsJson,
    AskedRelease,
    Classes,
    Contact,
    Controller,
    Dataset,
    Forced,
    HowAnswered,
    LedgerFile,
    MaxAbstentions,
    MaxAnswers,
    Out,
    OwnLedger,
    Purpose,
    Queries,
    Seed,
    Threshold,
    Title,
    Without,
    Yes,
    answers_of,
    classes_of,
    need_price,
    words_of,
)
from secretballot.cli.outcome import print_folders, print_json, release_summary, say


def label(
    votes: Annotated[
        Path,
        typer.Option(
            "--votes",
            metavar="FILE",
            help="Votes or counts: .npy, .csv or .parquet.",
            rich_help_panel=DATA,
        ),
    ],
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            help="Privacy budget epsilon of this release, in nats.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            help="Privacy budget delta, well below one over the records; as --epsilon.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    kind: Annotated[
        VotesKind | None,
        typer.Option(
            help="Columns are teachers (votes) or classes (counts of votes).", rich_help_panel=DATA
        ),
    ] = None,
    header: Annotated[
        HeaderLine | None,
        typer.Option(
            "--header",
            help="Whether the first line of a CSV file names its columns.",
            rich_help_panel=DATA,
        ),
    ] = None,
    classes: Classes = None,
    teachers: Annotated[
        int | None,
        typer.Option(
            "--teachers",
            metavar="K",
            help="Number of teachers; checked against the file.",
            rich_help_panel=TEACHERS,
        ),
    ] = None,
    queries: Queries = None,
    mechanism: HowAnswered = "gaussian",
    max_abstentions: MaxAbstentions = None,
    threshold: Threshold = None,
    max_answers: MaxAnswers = None,
    release: Annotated[
        AskedRelease,
        typer.Option(help="Labels alone (auto), or noisy counts.", rich_help_panel=QUERIES),
    ] = "labels",
    seed: Seed = 0,
    out: Out = OUT,
    ledger: LedgerFile = None,
    own_ledger: OwnLedger = False,
    force: Forced = None,
    yes: Yes = False,
    dataset: Dataset = None,
    without: Without = None,
    title: Title = None,
    purpose: Purpose = None,
    controller: Controller = None,
    contact: Contact = None,
    as_json: AsJson = False,
) -> None:
    """Release labels for the votes of teachers that were trained elsewhere.

    One row of the file is one query. That each record reached one teacher only is your word; the
    certificate says so.

    \b
    Example: secretballot label --votes counts.npy --kind counts --epsilon 1
             --delta 1e-5 --queries 300
    """
    from secretballot.cli.console import watching
    from secretballot.publishing.process import start_publishing

    start_publishing()  # before this program's own imports, which take as long
    from secretballot.runs.about import About
    from secretballot.runs.label import LabelRun, run_label

    declared = classes_of(classes)
    kind_of_release: ReleaseKind = "labels" if release == "auto" else release
    priced_at = need_price(epsilon, delta)
    run = LabelRun(
        votes,
        *priced_at,
        out,
        kind=kind,
        header=header,
        classes=declared,
        teachers=teachers,
        queries=queries,
        mechanism=mechanism,
        max_abstentions=max_abstentions,
        threshold=threshold,
        max_answers=max_answers,
        release=kind_of_release,
        ledger=ledger,
        own_ledger=own_ledger,
        force=answers_of(force, yes),
        dataset=dataset,
        seed=seed,
        without=words_of(without),
        about=About(title, purpose, controller, contact),
    )
    with watching() as watch:
        outcome = run_label(run, watch)
    certificate, folder = outcome.certificate, outcome.release
    if as_json:
        print_json(
            {
                "epsilon": certificate["epsilon"],
                "delta": certificate["delta"],
                "queries": outcome.queries,
                "answered": outcome.answered,
                "labels": str(folder / "labels.csv"),
                **release_summary(outcome, watch.notes),
            }
        )
        return
    say(f"guarantee    epsilon {certificate['epsilon']:g}, delta {certificate['delta']:g}")
    say(f"answers      {outcome.answered} of {outcome.queries} queries")
    say(f"labels       {folder / 'labels.csv'}")
    print_folders(outcome, to_publish=False)
