"""`secretballot prepare`: from a private table to a dataset of a service."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from secretballot._validation import ReleaseKind
from secretballot.cli.learn import LEARNER_NAMES
from secretballot.cli.options import (
    OUTPUT,
    PRIVACY,
    QUERIES,
    TEACHERS,
    AcceptUnseen,
    AsJson,
    Classes,
    Dataset,
    Delta,
    Drop,
    Engine,
    Epsilon,
    Forced,
    Jobs,
    LedgerFile,
    PrivateFile,
    PublicFile,
    Purpose,
    Relation,
    SchemaFile,
    Seed,
    Target,
    Title,
    UnitColumn,
    Yes,
    answers_of,
    classes_of,
    words_of,
)
from secretballot.cli.outcome import print_json, say
from secretballot.exceptions import ParameterError

if TYPE_CHECKING:
    from secretballot.accounting import PrivacyBudget


def prepare(
    private: PrivateFile,
    public: PublicFile,
    target: Target,
    name: Annotated[
        str,
        typer.Option(
            "--name",
            metavar="NAME",
            help="Of the dataset, in the addresses of the service.",
            rich_help_panel=OUTPUT,
        ),
    ],
    epsilon: Epsilon,
    delta: Delta,
    questions: Annotated[
        int,
        typer.Option(
            "--questions",
            metavar="N",
            help="That may be asked for this price.",
            rich_help_panel=QUERIES,
        ),
    ],
    classes: Classes = None,
    unit: UnitColumn = None,
    schema: SchemaFile = None,
    drop: Drop = None,
    accept_unseen: AcceptUnseen = None,
    relation: Relation = "add-remove",
    teacher: Annotated[
        str,
        typer.Option(
            "--teacher", metavar="NAME", help=f"Teacher: {LEARNER_NAMES}.", rich_help_panel=TEACHERS
        ),
    ] = "logistic",
    teachers: Annotated[
        int,
        typer.Option(
            "--teachers", metavar="K", help="Number of teachers.", rich_help_panel=TEACHERS
        ),
    ] = 250,
    release: Annotated[
        ReleaseKind,
        typer.Option(help="Labels alone, or noisy counts with them.", rich_help_panel=QUERIES),
    ] = "labels",
    session: Annotated[
        str,
        typer.Option(
            "--session", metavar="NAME", help="Name of the session.", rich_help_panel=QUERIES
        ),
    ] = "session",
    total_epsilon: Annotated[
        float | None,
        typer.Option(
            "--total-epsilon",
            metavar="E",
            help="That a new account admits in all; by default this session alone.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    total_delta: Annotated[
        float | None,
        typer.Option("--total-delta", metavar="D", help="Likewise.", rich_help_panel=PRIVACY),
    ] = None,
    ledger: LedgerFile = None,
    dataset: Dataset = None,
    title: Title = None,
    purpose: Purpose = None,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder of the service.", rich_help_panel=OUTPUT),
    ] = Path("service"),
    jobs: Jobs = 1,
    engine: Engine = "local",
    seed: Seed = 0,
    force: Forced = None,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Train teachers on a private table and begin a session that `serve` answers from.

    Writes DIR/NAME-vault, which stays secret, DIR/NAME-schema.json, and DIR/service.toml unless
    it is there. All questions are paid for now. An interrupted run goes on when the same command
    is repeated.

    \b
    Example: secretballot prepare patients.csv public.csv --target ill --classes no,yes
             --name registry --epsilon 1 --delta 1e-6 --questions 200
    """
    from secretballot.cli.console import watching
    from secretballot.cli.local_modules import find_in_this_folder
    from secretballot.runs.prepare import PrepareRun, run_prepare
    from secretballot.runs.tables import RunTables

    find_in_this_folder(teacher)
    total = _total_budget(total_epsilon, total_delta)
    run = PrepareRun(
        RunTables(
            private,
            public,
            target,
            classes=classes_of(classes),
            unit=unit,
            schema=schema,
            drop=words_of(drop),
            accept_unseen=words_of(accept_unseen),
        ),
        name,
        epsilon,
        delta,
        questions,
        out,
        session=session,
        teachers=teachers,
        teacher=teacher,
        release=release,
        relation=relation,
        total=total,
        ledger=ledger,
        dataset=dataset,
        title=title,
        purpose=purpose or "",
        force=answers_of(force, yes),
        jobs=jobs,
        engine=engine,
        seed=seed,
    )
    with watching() as watch:
        outcome = run_prepare(run, watch)
    if as_json:
        print_json(
            {
                "vault": str(outcome.vault),
                "schema": str(outcome.schema),
                "settings": str(outcome.settings),
                "listed": outcome.listed,
                "ledger": outcome.account,
                "epsilon": epsilon,
                "delta": delta,
                "questions": outcome.planned,
                "left": outcome.left,
            }
        )
        return
    say(f"paid         epsilon {epsilon:g}, delta {delta:g}, for {outcome.planned} questions")
    say(f"left         {outcome.left} questions")
    say(f"keep secret  {outcome.vault}")
    say(f"account      {outcome.account}")
    say(f"settings     {outcome.settings}")
    # settings that somebody may have written by hand are not overwritten
    if not outcome.listed:
        say("These settings were there already; have them say:")
        say(outcome.table.rstrip("\n"))


def _total_budget(epsilon: float | None, delta: float | None) -> "PrivacyBudget | None":
    """Return what a new account admits in all, None for the session alone."""
    from secretballot.accounting import PrivacyBudget

    if (epsilon is None) != (delta is None):
        raise ParameterError("--total-epsilon and --total-delta go together; give both or none.")
    if epsilon is None or delta is None:
        return None
    return PrivacyBudget(epsilon, delta)
