"""`secretballot price` and `learn --dry-run`: what a run would cost and ask, before it is paid."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from secretballot._validation import LearnMethod
from secretballot.cli.options import (
    DATA,
    TEACHERS,
    AsJson,
    Delta,
    Epsilon,
    HowAnswered,
    HowAsked,
    MaxAbstentions,
    MaxAnswers,
    Queries,
    Relation,
    StatedRecords,
    Teachers,
    Threshold,
    VotesPerRecord,
    WhatReleased,
    was_given,
)
from secretballot.cli.outcome import print_json, say

if TYPE_CHECKING:
    from secretballot.runs.account import AccountState
    from secretballot.runs.learn import LearnRun
    from secretballot.runs.quote import Quote
    from secretballot.runs.records import RecordsRun
    from secretballot.runs.table_votes import TableRun


def price(
    ctx: typer.Context,
    epsilon: Epsilon,
    delta: Delta,
    public: Annotated[
        int,
        typer.Option(
            "--public", metavar="M", help="Number of public points.", rich_help_panel=DATA
        ),
    ],
    classes: Annotated[
        int,
        typer.Option("--classes", metavar="C", help="Number of classes.", rich_help_panel=DATA),
    ] = 2,
    columns: Annotated[
        int | None,
        typer.Option(
            "--columns",
            metavar="D",
            help="Columns of the tables once encoded; with --records it sets the teachers.",
            rich_help_panel=DATA,
        ),
    ] = None,
    records: StatedRecords = None,
    relation: Relation = "add-remove",
    method: Annotated[
        LearnMethod,
        typer.Option(help="As for learn: moments unless told.", rich_help_panel=TEACHERS),
    ] = "auto",
    teachers: Teachers = None,
    student: Annotated[
        str,
        typer.Option(
            "--student",
            metavar="NAME",
            help="Student; by default the one that learns from counts.",
            rich_help_panel=TEACHERS,
        ),
    ] = "auto",
    votes_per_record: VotesPerRecord = None,
    queries: Queries = None,
    mechanism: HowAnswered = "gaussian",
    max_abstentions: MaxAbstentions = None,
    threshold: Threshold = None,
    max_answers: MaxAnswers = None,
    release: WhatReleased = "auto",
    strategy: HowAsked = "passive",
    as_json: AsJson = False,
) -> None:
    """Say what a run of `learn` would release at which noise, from public numbers alone.

    Nothing is read, trained or spent. `learn --dry-run` says the same of files; `plan` says which
    settings to choose, and with --like how accurate the student would be.

    \b
    Example: secretballot price --epsilon 1 --delta 1e-6 --public 2000
             --method votes --teachers 250
    """
    from secretballot.cli.local_modules import find_in_this_folder
    from secretballot.runs.methods import method_of_run
    from secretballot.runs.quote import PriceRun, quote_of_numbers

    find_in_this_folder(student)
    settings: dict[str, Any] = {
        "teachers": teachers,
        "queries": queries,
        "mechanism": mechanism,
        "max_abstentions": max_abstentions,
        "threshold": threshold,
        "max_answers": max_answers,
        "release": release,
        "strategy": strategy,
        "votes_per_record": votes_per_record,
    }
    # options that were given choose the method, their defaults do not
    given = {name for name in settings if was_given(ctx, name)}
    chosen, why = method_of_run(method, given, delta)
    quote = quote_of_numbers(
        PriceRun(
            public,
            classes,
            epsilon,
            delta,
            method=chosen,
            columns=columns,
            records=records,
            relation=relation,
            student=student,
            **settings,
        )
    )
    _print_quote(quote, why, as_json=as_json)


def print_dry_run(run: "LearnRun | RecordsRun | TableRun", why: str, *, as_json: bool) -> None:
    """Print what a run would cost and ask, by its files; nothing is made, trained or spent."""
    from secretballot.cli.console import watching
    from secretballot.runs.quote import quote_of_run

    with watching() as watch:
        quote = quote_of_run(run, watch)
    _print_quote(quote, why, as_json=as_json)


def _print_quote(quote: "Quote", why: str, *, as_json: bool) -> None:
    if as_json:
        print_json({**quote.to_json(), "method_reason": why})
        return
    say(f"method       {quote.method}: {why}")
    say(f"price        epsilon {quote.epsilon:g}, delta {quote.delta:g}, under {quote.relation}")
    say(f"released     {quote.released}")
    if quote.unanimous is None:
        say(f"noise        {_noise_words(quote)}")
    else:
        say(
            "expect       a number that all teachers agree on is drawn with probability"
            f" {quote.unanimous:.3f} or more"
        )
    cast = quote.teachers or 0
    for margin, share in (quote.right or quote.answered).items():
        votes = f"{margin * cast:,.0f} of {cast:,} votes"
        verb = "a label is right" if quote.right else "a query is answered"
        say(f"expect       {verb} with probability {share:.3f} at a margin of {votes}")
    if quote.off_in_the_mean is not None:
        off, count = f"{quote.off_in_the_mean:.3g} of {cast:,} votes", quote.queries or 0
        say(f"expect       the mean of all {count:,} counts is off by {off}")
    if quote.can_be_planned:
        say("             secretballot plan --like TABLE says how accurate the student would be")
    if quote.account is not None:
        say(f"account      {_account_words(quote.account)}")
    for caution in quote.cautions:
        # what follows from private records is for the curator, and says so
        who = "curator only, " if caution.private else ""
        say(f"would ask    {who}--force {caution.name}: {caution.text}")
    say("spent        nothing")


def _noise_words(quote: "Quote") -> str:
    if quote.method == "moments":
        return f"on each sum {quote.sigma:.3g} times what one record can move"
    return f"scale {quote.sigma:.4g} {quote.noise_unit}"


def _account_words(account: "AccountState") -> str:
    place = str(account.path)
    if account.own:
        return f"{place}: of this run alone, counting no other release"
    if account.budget is None or account.left is None:
        return f"{place}: would be opened"
    verdict = "" if account.admits else "; the run would be refused"
    left = f"epsilon {account.left.epsilon:g} and delta {account.left.delta:g}"
    of = f"epsilon {account.budget.epsilon:g} and delta {account.budget.delta:g}"
    return f"{place}: {left} left of {of}, {account.releases} releases before{verdict}"
