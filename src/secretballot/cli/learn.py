"""`secretballot learn`: from a private and a public file to a student that may be published."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from secretballot._places import place_of
from secretballot._validation import Abstentions, LearnMethod
from secretballot.cli.check import print_check
from secretballot.cli.metrics_lines import print_metrics, print_no_better
from secretballot.cli.options import (
    DATA,
    OUT,
    OUTPUT,
    PRIVACY,
    QUERIES,
    TEACHERS,
    AcceptUnseen,
    AsJson,
    Ballot,
    Bounds,
    Check,
    Classes,
    ClassWeight,
    Contact,
    Controller,
    Dataset,
    Drop,
    Engine,
    Forced,
    HowAnswered,
    HowAsked,
    Jobs,
    LedgerFile,
    MaxAbstentions,
    MaxAnswers,
    MostNamed,
    Out,
    OwnLedger,
    PositiveRate,
    PrivateFile,
    PublicFile,
    Purpose,
    Queries,
    Rank,
    Relation,
    SchemaFile,
    Seed,
    SendShards,
    StatedRecords,
    Statistic,
    Targets,
    Teachers,
    Threshold,
    Title,
    UnitColumn,
    VotesPerRecord,
    WhatReleased,
    Without,
    Yes,
    answers_of,
    bounds_of,
    class_weight_of,
    classes_of,
    need_price,
    was_given,
    words_of,
)
from secretballot.cli.outcome import print_folders, print_json, release_summary, say
from secretballot.cli.price import print_dry_run
from secretballot.cli.table_lines import print_table_lines, table_summary
from secretballot.exceptions import Parameter, ParameterError

if TYPE_CHECKING:
    from secretballot.planning.plan.estimates import RareForecast
    from secretballot.planning.plan.model import Plan
    from secretballot.runs.learn import LearnOutcome, LearnRun
    from secretballot.runs.progress import Note
    from secretballot.runs.records import RecordsRun
    from secretballot.runs.table_votes import TableRun
    from secretballot.runs.tables import RunTables


LEARNER_NAMES = (
    "logistic, tree, forest, boosting, naive-bayes, knn, each with settings where wanted"
    " (tree:max_depth=3,class_weight=balanced), or module:Class"
)


def learn(
    ctx: typer.Context,
    private: PrivateFile,
    public: PublicFile,
    target: Targets,
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            help="Privacy budget epsilon of this release, in nats; needed without a plan.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            "--delta",
            help="Privacy budget delta, well below one over the records; needed without a plan.",
            rich_help_panel=PRIVACY,
        ),
    ] = None,
    method: Annotated[
        LearnMethod,
        typer.Option(
            help="Noisy sums over all records (moments), votes of teachers on shards, or votes of"
            " all records at their nearest public points; auto takes moments unless an option of"
            " another method is given.",
            rich_help_panel=TEACHERS,
        ),
    ] = "auto",
    plan: Annotated[
        Path | None,
        typer.Option(
            "--plan",
            metavar="FILE",
            help="A plan, from `secretballot plan --json`: it supplies price and settings.",
            rich_help_panel=TEACHERS,
        ),
    ] = None,
    teachers: Teachers = None,
    queries: Queries = None,
    mechanism: HowAnswered = "gaussian",
    max_abstentions: MaxAbstentions = None,
    threshold: Threshold = None,
    max_answers: MaxAnswers = None,
    estimate_epsilon: Annotated[
        float | None,
        typer.Option(
            "--estimate-epsilon",
            metavar="E",
            help="Part of epsilon for a private estimate that sets how many labels to ask for.",
            rich_help_panel=QUERIES,
        ),
    ] = None,
    release: WhatReleased = "auto",
    strategy: HowAsked = "passive",
    round_size: Annotated[
        int | None,
        typer.Option(
            "--round-size",
            metavar="N",
            help="Queries per round; by default a twentieth of --queries.",
            rich_help_panel=QUERIES,
        ),
    ] = None,
    teacher: Annotated[
        str,
        typer.Option(
            "--teacher", metavar="NAME", help=f"Teacher: {LEARNER_NAMES}.", rich_help_panel=TEACHERS
        ),
    ] = "logistic",
    student: Annotated[
        str,
        typer.Option(
            "--student",
            metavar="NAME",
            help=f"Student: auto, boosted (stumps), {LEARNER_NAMES}.",
            rich_help_panel=TEACHERS,
        ),
    ] = "auto",
    bounds: Bounds = None,
    statistic: Statistic = None,
    rank: Rank = None,
    ballot: Ballot = None,
    most_named: MostNamed = None,
    unit: UnitColumn = None,
    classes: Classes = None,
    records: StatedRecords = None,
    relation: Relation = "add-remove",
    evaluate: Annotated[
        Path | None,
        typer.Option(
            "--evaluate",
            metavar="FILE",
            parser=place_of,
            help="Public labelled records to measure the student on.",
            rich_help_panel=DATA,
        ),
    ] = None,
    publish_metrics: Annotated[
        bool,
        typer.Option(
            "--publish-metrics",
            help="Write these metrics into the report and the model card: the file is public.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    schema: SchemaFile = None,
    drop: Drop = None,
    accept_unseen: AcceptUnseen = None,
    check: Check = False,
    votes_per_record: VotesPerRecord = None,
    positive_rate: PositiveRate = None,
    class_weight: ClassWeight = None,
    abstentions: Annotated[
        Abstentions,
        typer.Option(
            help="What the student makes of queries without an answer.", rich_help_panel=TEACHERS
        ),
    ] = "drop",
    jobs: Jobs = 1,
    engine: Engine = "local",
    send_shards: SendShards = False,
    seed: Seed = 0,
    out: Out = OUT,
    ledger: LedgerFile = None,
    own_ledger: OwnLedger = False,
    dataset: Dataset = None,
    without: Without = None,
    force: Forced = None,
    yes: Yes = False,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Say what the run would cost, ask and release, and what to expect; spend nothing.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    title: Title = None,
    purpose: Purpose = None,
    controller: Controller = None,
    contact: Contact = None,
    as_json: AsJson = False,
) -> None:
    """Learn a publishable student from private records and public points.

    Writes two folders: DIR/release, which may be published once you have read its README.txt, and
    DIR/vault, which must stay secret. An interrupted run goes on when the same command is repeated.

    \b
    Example: secretballot learn patients.csv public.csv --target ill
             --classes no,yes --epsilon 1 --delta 1e-6
    A number: secretballot learn patients.csv public.csv --target dose
              --bounds 0,40 --epsilon 1 --delta 1e-6
    Labels: secretballot learn patients.csv public.csv --target fever,cough
            --epsilon 1 --delta 1e-6
    """
    from secretballot.publishing.process import start_publishing

    if not check:
        start_publishing()  # before this program's own imports, which take as long
    from secretballot.cli.local_modules import find_in_this_folder
    from secretballot.runs.about import About
    from secretballot.runs.methods import method_of_run, refuse_options_of_classes
    from secretballot.runs.plan_files import read_plan
    from secretballot.runs.table_votes import TableRun
    from secretballot.runs.tables import RunTables

    find_in_this_folder(teacher, student)
    columns = words_of(target) if set(target) & {",", '"'} else (target,)
    tables = RunTables(
        private,
        public,
        columns[0],
        classes_of(classes),
        unit,
        schema,
        words_of(drop),
        evaluate,
        publish_metrics,
        words_of(accept_unseen),
        bounds_of(bounds),
        columns if len(columns) > 1 else (),
    )
    kind = _kind_of_target(tables, bounds)
    if check and kind != "class":
        raise ParameterError(
            Parameter("check"), " goes with a target of classes; take --dry-run instead."
        )
    if check:
        print_check(tables, as_json=as_json)
        return
    common: dict[str, Any] = {
        "epsilon": epsilon,
        "delta": delta,
        "student": student,
        "records": records,
        "relation": relation,
        "ledger": ledger,
        "dataset": dataset,
        "seed": seed,
        "without": words_of(without),
        "own_ledger": own_ledger,
        "force": answers_of(force, yes),
        "about": About(title, purpose, controller, contact),
    }
    of_record_votes: dict[str, Any] = {"votes_per_record": votes_per_record, "queries": queries}
    of_moments: dict[str, Any] = {
        "positive_rate": positive_rate,
        "class_weight": class_weight_of(class_weight, positive_rate),
    }
    of_voting: dict[str, Any] = {
        "teachers": teachers,
        "queries": queries,
        "mechanism": mechanism,
        "max_abstentions": max_abstentions,
        "threshold": threshold,
        "max_answers": max_answers,
        "estimate_epsilon": estimate_epsilon,
        "release": release,
        "strategy": strategy,
        "round_size": round_size,
        "teacher": teacher,
        "abstentions": abstentions,
        "jobs": jobs,
        "engine": engine,
        "send_shards": send_shards,
    }
    of_tables: dict[str, Any] = {
        "statistic": statistic,
        "rank": rank,
        "ballot": ballot,
        "most_named": most_named,
    }
    options = (
        *(*common, *of_voting, *of_record_votes, *of_moments, *of_tables),
        "plan",
    )
    given = {name for name in options if was_given(ctx, name)}
    given |= set() if positive_rate is None else {"class_weight"}
    given |= {"force"} if yes else set()
    given.add("about")
    refuse_options_of_classes(method, given, kind)
    if kind != "class":
        need_price(epsilon, delta)
        # what has a default of its own for classes is taken where it was given alone
        taken = ["teachers", "queries", *sorted({"teacher", "release"} & given)]
        of_tables |= {name: of_voting[name] for name in taken}
        table_run = TableRun(tables, out=out, **common, **of_tables)
        why = f"the target is {'a number' if kind == 'number' else 'several labels'}"
        if dry_run:
            print_dry_run(table_run, why, as_json=as_json)
        else:
            perform_table(table_run, why, as_json=as_json)
        return
    planned = None
    if plan is not None:
        planned = read_plan(plan)
    else:
        need_price(epsilon, delta, ", a plan with --plan")
    recommended = None if planned is None else planned.method
    chosen, why = method_of_run(method, given, delta, out, recommended)
    run: LearnRun | RecordsRun
    if chosen == "votes":
        run = _voting_run(tables, out, common | of_voting, planned, given)
    else:
        own = of_record_votes if chosen == "record-votes" else of_moments
        settings = {**common, **own, "method": chosen}
        run = _records_run(tables, out, settings, planned, given)
    if dry_run:
        print_dry_run(run, why, as_json=as_json)
    else:
        perform(run, why, as_json=as_json)


def perform_table(run: "TableRun", why: str, *, as_json: bool) -> None:
    """Run on a number or several labels, and say what came of it."""
    from secretballot.cli.console import watching
    from secretballot.runs.table_votes import run_table

    with watching() as watch:
        outcome = run_table(run, watch)
    if as_json:
        print_json({**table_summary(outcome, watch.notes), "method_reason": why})
        return
    say(f"method       votes: {why}")
    print_table_lines(outcome)


def _kind_of_target(tables: "RunTables", bounds: str | None) -> str:
    """Return whether the target is a number, several labels or a class."""
    if bounds is not None:
        return "number"
    return "labels" if tables.labels else "class"


def _records_run(
    tables: "RunTables",
    out: Path,
    settings: dict[str, Any],
    plan: "Plan | None",
    given: set[str],
) -> "RecordsRun":
    """Return a run without teachers, by its settings or by a plan."""
    from secretballot.runs.plan import records_run_by_plan
    from secretballot.runs.records import RecordsRun

    if plan is None:
        return RecordsRun(tables, out=out, **settings)
    own = {name: value for name, value in settings.items() if name in given}
    return records_run_by_plan(plan, tables, out, **own)


def _voting_run(
    tables: "RunTables",
    out: Path,
    settings: dict[str, Any],
    plan: "Plan | None",
    given: set[str],
) -> "LearnRun":
    """Return a run of voting, by its settings or by a plan."""
    from secretballot.runs.learn import LearnRun
    from secretballot.runs.plan import run_by_plan

    if plan is None:
        return LearnRun(tables, out=out, **settings)
    own = {name: value for name, value in settings.items() if name in given}
    return run_by_plan(plan, tables, out, **own)


def perform(run: "LearnRun | RecordsRun", why: str, *, as_json: bool) -> None:
    """Run, and say what came of it, and why by this method."""
    outcome, notes = run_and_watch(run)
    if as_json:
        print_json({**summary(outcome, notes), "method_reason": why})
    else:
        print_no_better(outcome.metrics)
        say(f"method       {outcome.method}: {why}")
        print_lines(outcome)


def run_and_watch(run: "LearnRun | RecordsRun") -> tuple["LearnOutcome", list["Note"]]:
    """Run under the eyes of the curator, and return the outcome with all notes."""
    from secretballot.cli.console import watching
    from secretballot.runs.learn import LearnRun, run_learn
    from secretballot.runs.records import run_records

    with watching() as watch:
        outcome = run_learn(run, watch) if isinstance(run, LearnRun) else run_records(run, watch)
    return outcome, watch.notes


def summary(outcome: "LearnOutcome", notes: list["Note"]) -> dict[str, Any]:
    """Return the outcome for machines; notes that depend on private data are left out."""
    # What was paid for an estimate or a choice belongs to the price, too.
    from secretballot.report.certificate.plan_checks import total_price

    certificate = outcome.certificate
    epsilon, delta = total_price(certificate)
    return {
        "method": outcome.method,
        "accuracy": outcome.accuracy,
        "metrics": None if outcome.metrics is None else outcome.metrics.to_json(),
        "epsilon": epsilon,
        "delta": delta,
        "queries": outcome.queries,
        "answered": outcome.answered,
        "plan": certificate.get("plan"),
        "forecast": forecast_of(outcome),
        "spread": None if outcome.spread is None else outcome.spread.to_json(),
        **release_summary(outcome, notes),
    }


def forecast_of(outcome: "LearnOutcome") -> dict[str, Any] | None:
    """Return what the plan of a run had forecast, for machines; None without a plan."""
    if outcome.plan is None:
        return None
    if outcome.method == "moments":
        forecast = outcome.plan.moments
        if forecast is None:
            return None
        found = {"student_accuracy": asdict(forecast.student_accuracy)}
        if forecast.rare is not None:
            found |= {
                name: asdict(getattr(forecast.rare, name))
                for name in ("balanced_accuracy", "recall")
            }
        return found
    expected = outcome.plan.votes.expected
    return {name: asdict(getattr(expected, name)) for name in ("answered", "student_accuracy")}


def print_forecast(outcome: "LearnOutcome", plan: "Plan") -> None:
    """Print what a plan had forecast beside what was observed."""
    from secretballot.planning.plan.wording import number_range, share_range

    observed = ""
    if outcome.accuracy is not None:
        observed = f"; {outcome.accuracy:.4f} on the labelled test file"
    if outcome.method == "moments":
        if plan.moments is not None and plan.moments.rare is not None:
            _print_forecast_of_rare(outcome, plan.moments.rare)
        elif plan.moments is not None:
            expected_of_moments = share_range(plan.moments.student_accuracy)
            say(f"forecast     accuracy {expected_of_moments}{observed}")
        return
    expected = plan.votes.expected
    say(f"forecast     {number_range(expected.answered)} answers; {outcome.answered:,} observed")
    say(f"             accuracy {share_range(expected.student_accuracy)}{observed}")


def _print_forecast_of_rare(outcome: "LearnOutcome", forecast: "RareForecast") -> None:
    """Print balanced accuracy and recall as they were forecast, and as they are on a test file."""
    from secretballot.planning.plan.wording import share_range

    balanced = recall = ""
    name = outcome.certificate["released"]["classes"][forecast.place]
    if outcome.metrics is not None:
        balanced = f"; {outcome.metrics.balanced_accuracy:.4f} on the labelled test file"
        found = outcome.metrics.classes[forecast.place].recall
        recall = "" if found is None else f"; {found:.4f} on the labelled test file"
    say(f"forecast     balanced accuracy {share_range(forecast.balanced_accuracy)}{balanced}")
    say(f"             recall of {name!r} {share_range(forecast.recall)}{recall}")


def print_lines(outcome: "LearnOutcome") -> None:
    """Print the outcome for a person."""
    from secretballot.report.certificate.plan_checks import total_price
    from secretballot.report.certificate.terms import stated

    # First what a person wants to know, last what there is to do.
    certificate = outcome.certificate
    print_metrics(outcome.metrics, "the student")
    epsilon, delta = total_price(certificate)
    price = f"epsilon {epsilon:g}, delta {delta:g}"
    say(f"guarantee    {price} for each {certificate['unit']}")
    if outcome.method == "moments":
        n_stages, coordinates = (stated(certificate)[name] for name in ("n_stages", "coordinates"))
        say(f"released     {n_stages} noisy sums of {coordinates:,} numbers, over all records")
        say(f"labels       {outcome.queries:,} public points, by the model that the sums fix")
        if outcome.spread is not None:
            say(f"spread       {outcome.spread.words}")
    elif outcome.method == "record-votes":
        votes, n_classes = (stated(certificate)[name] for name in ("votes_per_record", "n_classes"))
        say(f"released     {outcome.queries:,} times {n_classes} noisy counts of votes")
        points = "public point" if votes == 1 else f"{votes:,} public points"
        say(f"votes        of each {certificate['unit']} at the {points} nearest to it")
    else:
        say(f"answers      {outcome.answered} of {outcome.queries} queries")
    if "plan" in certificate:
        asked = certificate["plan"]
        left = asked["planned"] - asked["used"]
        rest = f"; {left} left, {asked['left']}" if left else ""
        rounds = f"{len(asked['rounds'])} round{'' if len(asked['rounds']) == 1 else 's'}"
        say(f"reserved     {asked['planned']} queries, {asked['used']} used in {rounds}{rest}")
    if outcome.plan is not None:
        print_forecast(outcome, outcome.plan)
    print_folders(outcome)
