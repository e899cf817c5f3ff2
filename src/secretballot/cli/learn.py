"""`secretballot learn` and `secretballot label`: from private records, or votes on public points,
to a release."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from secretballot.cli.metrics_lines import print_metrics_line, print_no_better
from secretballot.cli.outcome import print_json, say
from secretballot.cli.quote_lines import print_quote
from secretballot.cli.settings import LEARNING, AsJson, settings_of
from secretballot.runs.spec import (
    DEFAULT_OUT,
    METHOD_SPECS,
    RUN,
    VOTES,
    BudgetSpec,
    DataSpec,
    ExecutionSpec,
    OutputSpec,
    RunSpec,
    Sources,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from secretballot.runs.questions import Note
    from secretballot.runs.run import Outcome

DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Check everything, print price and noise; spend nothing.",
        rich_help_panel=RUN,
    ),
]


@settings_of(*LEARNING, arguments=("private", "public"))
def learn(sources: Sources, dry_run: DryRun = False, as_json: AsJson = False) -> None:
    """Learn a publishable model from a private labelled table and a public table without labels.

    Tables: CSV, Parquet, a folder of Parquet files, or a URL. Writes OUT/release, to publish, and
    OUT/vault, to keep secret. Repeat the command to resume a run; it is charged once.

    \b
    Example: secretballot learn patients.csv public.csv --target ill
             --classes no,yes --epsilon 1 --delta 1e-6 --total 4,1e-5
    """
    from secretballot.runs.folder import begun_description

    begun = begun_description(sources.given.get("out", DEFAULT_OUT)).get("method")
    _perform(sources, sources.tree(begun), dry_run=dry_run, as_json=as_json)


@settings_of(
    DataSpec.only("private", "classes"),
    BudgetSpec,
    METHOD_SPECS[VOTES],
    OutputSpec.only("out"),
    ExecutionSpec,
    method=VOTES,
    arguments=("private",),
    private="Votes or counts, one row for each query: .npy, .csv or .parquet.",
)
def label(sources: Sources, as_json: AsJson = False) -> None:
    """Release labels for the votes of teachers that were trained elsewhere.

    That each record reached one teacher only is your statement; the certificate says so.

    \b
    Example: secretballot label counts.npy --kind counts --epsilon 1
             --delta 1e-5 --total 4,1e-5
    """
    _perform(sources, sources.tree(), dry_run=False, as_json=as_json)


def _perform(sources: Sources, tree: dict[str, Any], *, dry_run: bool, as_json: bool) -> None:
    """Run, and print what came of it."""
    from secretballot.publishing.process import start_publishing

    spec = RunSpec.of_tree(tree)
    if not dry_run:
        start_publishing()  # before this program's own imports, which take as long
    from secretballot.cli.console import watching
    from secretballot.cli.local_modules import find_in_this_folder
    from secretballot.runs.run import quote, run

    learners = (getattr(spec.method, name, None) for name in ("teacher", "student"))
    find_in_this_folder(*(one for one in learners if one is not None))
    with watching() as watch:
        if dry_run:
            quoted = quote(spec, watch)
        else:
            outcome = run(spec, watch)
    if dry_run:
        print_quote(quoted, sources.why, as_json=as_json)
    elif as_json:
        print_json({**summary(outcome, spec, watch.notes), "method_reason": sources.why})
    else:
        print_outcome(outcome, spec)


def summary(outcome: "Outcome", spec: RunSpec, notes: "Sequence[Note]") -> dict[str, Any]:
    """Return the outcome for machines; notes that depend on private data are left out."""
    # What was paid for an estimate or a choice belongs to the price, too.
    from secretballot.report.certificate.plan_checks import total_price

    certificate, report = outcome.certificate, outcome.release / "report.html"
    epsilon, delta = total_price(certificate)
    document = {
        "method": outcome.method,
        "epsilon": epsilon,
        "delta": delta,
        "queries": outcome.queries,
        "answered": outcome.answered,
        "accuracy": outcome.accuracy,
        "metrics": None if outcome.metrics is None else outcome.metrics.to_json(),
        "plan": certificate.get("plan"),
        "forecast": None if spec.forecast is None else spec.forecast.model_dump(exclude_none=True),
        "chosen": outcome.chosen,
        "candidates": outcome.candidates,
    }
    return {name: value for name, value in document.items() if value is not None} | {
        "resumed": outcome.resumed,
        "release": str(outcome.release),
        "vault": str(outcome.vault),
        "account": str(outcome.account),
        "certificate": str(outcome.release / "certificate.json"),
        "report": str(report) if report.name in outcome.files else None,
        "notes": [note.text for note in notes if not note.private],
    }


def print_outcome(outcome: "Outcome", spec: RunSpec) -> None:
    """Print the outcome for a person: what was released at which price, how good it is, and what to
    publish."""
    from secretballot.report.certificate.plan_checks import total_price

    certificate = outcome.certificate
    print_no_better(outcome.metrics)
    say(f"method     {outcome.method}: {_released_text(outcome)}")
    epsilon, delta = total_price(certificate)
    say(f"price      epsilon {epsilon:g}, delta {delta:g} for each {certificate['unit']}")
    say(f"account    {_account_text(outcome)}")
    if outcome.chosen is not None:
        say(f"chosen     {outcome.chosen}, of {outcome.candidates:,} candidates")
    print_metrics_line(outcome.metrics)
    if "plan" in certificate:
        asked = certificate["plan"]
        left = asked["planned"] - asked["used"]
        rest = f"; {left} left, {asked['left']}" if left else ""
        rounds = f"{len(asked['rounds'])} round{'' if len(asked['rounds']) == 1 else 's'}"
        say(f"reserved   {asked['planned']} queries, {asked['used']} used in {rounds}{rest}")
    if spec.forecast is not None:
        _print_forecast(outcome, spec)
    if "report.html" in outcome.files:
        say(f"report     {outcome.release / 'report.html'}")
    say(f"publish    {outcome.release}   read README.txt first")
    say(f"secret     {outcome.vault}")


def _print_forecast(outcome: "Outcome", spec: RunSpec) -> None:
    """Print what a plan had forecast beside what was observed."""
    forecast = spec.forecast
    names = ("answered", "student_accuracy", "balanced_accuracy", "recall")
    shown = {name: getattr(forecast, name) for name in names}
    observed: dict[str, Any] = {"answered": outcome.answered, "student_accuracy": outcome.accuracy}
    metrics: Any = outcome.metrics
    if metrics is not None and forecast is not None and forecast.rare_class is not None:
        observed["balanced_accuracy"] = metrics.balanced_accuracy
        observed["recall"] = metrics.classes[forecast.rare_class].recall
    for name, expected in shown.items():
        if expected is not None:
            value, low, high = (f"{one:.4g}" for one in expected)
            seen = observed.get(name)
            beside = "" if seen is None else f"; observed {seen:.4g}"
            say(f"forecast   {name.replace('_', ' ')} {value} ({low} to {high}){beside}")


def _released_text(outcome: "Outcome") -> str:
    """Return what was released."""
    from secretballot.report.certificate.terms import stated

    certificate = outcome.certificate
    terms, points = stated(certificate), f"at {outcome.queries:,} public points"
    if outcome.method == "record-moments":
        return f"{terms['n_stages']} noisy sums over all records"
    if outcome.method == "record-votes":
        votes = terms["votes_per_record"]
        nearest = "nearest public point" if votes == 1 else f"{votes:,} nearest public points"
        return f"noisy counts {points}; each {certificate['unit']} votes at the {nearest}"
    if outcome.chosen is not None:
        return "one candidate"
    if "labels" in terms:
        what = "labels" if terms["release"] == "labels" else "noisy counts of labels"
        return f"{what}, {len(terms['labels'])} of them, {points}"
    if "bounds" in terms:
        if "rank" in terms:
            return (
                f"quantiles of the votes, rank {terms['rank']} of {terms['n_teachers']}, {points}"
            )
        return f"noisy means of the votes {points}"
    return f"{outcome.answered:,} of {outcome.queries:,} queries answered"


def _account_text(outcome: "Outcome") -> str:
    """Return where the account is, and how much of it is spent."""
    from pathlib import Path

    place = outcome.account
    if isinstance(place, Path) and place.parent == outcome.vault:
        return "of this run alone; other releases from the same data add to its price"
    if isinstance(place, Path):
        here = Path.cwd()
        where = str(place.relative_to(here) if place.is_relative_to(here) else place)
    else:
        where = place.name
    composition = outcome.certificate["composition"]
    spent, budget = composition["spent_after"], composition["budget"]
    return (
        f"{where}: epsilon {spent['epsilon']:.6g} of {budget['epsilon']:.6g} spent, delta"
        f" {spent['delta']:.6g} of {budget['delta']:.6g}"
    )
