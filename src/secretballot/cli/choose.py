"""`secretballot choose`: from private records and candidates to one model that may be published."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secretballot._validation import HypothesesName
from secretballot.cli.check import print_check
from secretballot.cli.metrics_lines import print_metrics, print_no_better
from secretballot.cli.options import (
    DATA,
    OUT,
    TEACHERS,
    AcceptUnseen,
    AsJson,
    Check,
    Classes,
    Contact,
    Controller,
    Dataset,
    Drop,
    Epsilon,
    Forced,
    LedgerFile,
    Out,
    OwnLedger,
    PrivateFile,
    PublicFile,
    Purpose,
    Relation,
    SchemaFile,
    Seed,
    Target,
    Title,
    UnitColumn,
    Without,
    Yes,
    answers_of,
    classes_of,
    words_of,
)
from secretballot.cli.outcome import print_folders, print_json, release_summary, say

if TYPE_CHECKING:
    from secretballot.runs.choose import ChooseOutcome


def choose(
    private: PrivateFile,
    public: PublicFile,
    target: Target,
    epsilon: Epsilon,
    candidates: Annotated[
        str | None,
        typer.Option(
            "--candidates",
            metavar="A,B",
            help="Saved students to choose from: student.onnx files.",
            rich_help_panel=TEACHERS,
        ),
    ] = None,
    hypotheses: Annotated[
        HypothesesName | None,
        typer.Option(
            "--hypotheses",
            help="In place of candidates: a class, of two classes, on the public points.",
            rich_help_panel=TEACHERS,
        ),
    ] = None,
    points: Annotated[
        int | None,
        typer.Option(
            "--points",
            metavar="N",
            help="How many public points make the class finite; all by default.",
            rich_help_panel=TEACHERS,
        ),
    ] = None,
    unit: UnitColumn = None,
    classes: Classes = None,
    relation: Relation = "add-remove",
    evaluate: Annotated[
        Path | None,
        typer.Option(
            "--evaluate",
            metavar="FILE",
            help="Public labelled records to measure the chosen one on.",
            rich_help_panel=DATA,
        ),
    ] = None,
    schema: SchemaFile = None,
    drop: Drop = None,
    accept_unseen: AcceptUnseen = None,
    check: Check = False,
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
    """Choose the model that is right most often on the private records, or nearly so; delta is 0.

    The candidates must not depend on these records, unless they were paid for from the same ledger.
    Candidates that were saved with a release read the columns of its schema.json: name that with
    --schema.

    \b
    Example: secretballot choose new.csv public.csv --target ill --classes no,yes
             --candidates a/release/student.onnx,b/release/student.onnx
             --schema a/release/schema.json --epsilon 0.5
    """
    from secretballot.cli.console import watching
    from secretballot.publishing.process import start_publishing

    if not check:
        start_publishing()  # before this program's own imports, which take as long
    from secretballot.runs.about import About
    from secretballot.runs.choose import ChooseRun, run_choose, schema_beside
    from secretballot.runs.tables import RunTables

    saved = tuple(Path(word) for word in words_of(candidates))
    tables = RunTables(
        private,
        public,
        target,
        classes_of(classes),
        unit,
        schema,
        words_of(drop),
        evaluate,
        accept_unseen=words_of(accept_unseen),
    )
    if check:
        print_check(replace(tables, schema=schema or schema_beside(saved)), as_json=as_json)
        return
    run = ChooseRun(
        tables,
        epsilon,
        out,
        candidates=saved,
        hypotheses=hypotheses,
        n_cover=points,
        relation=relation,
        ledger=ledger,
        own_ledger=own_ledger,
        force=answers_of(force, yes),
        dataset=dataset,
        seed=seed,
        without=words_of(without),
        about=About(title, purpose, controller, contact),
    )
    with watching() as watch:
        outcome = run_choose(run, watch)
    if as_json:
        print_json(
            {
                "accuracy": outcome.accuracy,
                "metrics": None if outcome.metrics is None else outcome.metrics.to_json(),
                "epsilon": outcome.certificate["epsilon"],
                "delta": outcome.certificate["delta"],
                "chosen": outcome.chosen,
                "candidates": outcome.n_candidates,
                **release_summary(outcome, watch.notes),
            }
        )
    else:
        _print_lines(outcome)


def _print_lines(outcome: "ChooseOutcome") -> None:
    """Print the outcome for a person."""
    certificate = outcome.certificate
    print_no_better(outcome.metrics)
    print_metrics(outcome.metrics, "the chosen model")
    say(f"guarantee    epsilon {certificate['epsilon']:g}, delta 0 for each {certificate['unit']}")
    say(f"chosen       {outcome.chosen}, of {outcome.n_candidates:,} candidates")
    print_folders(outcome)
