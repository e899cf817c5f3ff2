"""`secretballot learn` and `secretballot label`: from private records, or votes on public points,
to a release."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from secretballot.cli.outcome import Answer
from secretballot.cli.settings import LEARNING, settings_of
from secretballot.cli.texts import show
from secretballot.runs.spec import (
    DEFAULT_OUT,
    METHOD_SPECS,
    RUN,
    VOTES,
    AboutSpec,
    BudgetSpec,
    DataSpec,
    ExecutionSpec,
    OutputSpec,
    RunSpec,
    Sources,
)

if TYPE_CHECKING:
    from secretballot.runs.run import Outcome

DryRun = Annotated[
    bool,
    typer.Option(
        "--dry-run",
        help="Check everything, print price and noise; spend nothing.",
        rich_help_panel=RUN,
    ),
]


@settings_of(
    *LEARNING,
    arguments=("private", "public"),
    required=("target", "epsilon", "delta"),
)
def learn(sources: Sources, dry_run: DryRun = False) -> Answer:
    """Learn a publishable model from a private labelled table and a public unlabelled one.

    Tables: CSV, Parquet, a folder of Parquet files, or a URL. Writes OUT/release, to publish, and
    OUT/vault, to keep secret. Repeat the command to resume a run; it is charged once.

    Example: secretballot learn patients.csv public.csv --target ill --classes no,yes --epsilon 1
    --delta 1e-6 --total 4,1e-5
    """
    from secretballot.runs.folder import begun_description

    begun = begun_description(sources.given.get("out", DEFAULT_OUT)).get("method")
    return _performed(sources, sources.tree(begun), dry_run=dry_run)


@settings_of(
    DataSpec.only("private", "classes"),
    BudgetSpec,
    METHOD_SPECS[VOTES],
    OutputSpec.only("out", "format"),
    ExecutionSpec.only("confirm"),
    AboutSpec,
    method=VOTES,
    arguments=("private",),
    required=("epsilon", "delta"),
    private="Votes or counts, one row for each query: .npy, .csv or .parquet.",
)
def label(sources: Sources, dry_run: DryRun = False) -> Answer:
    """Release labels from votes of teachers trained elsewhere.

    That each record reached one teacher only is your statement; the certificate says so.

    Example: secretballot label counts.npy --kind counts --classes no,yes --epsilon 1 --delta 1e-5
    --total 4,1e-5
    """
    return _performed(sources, sources.tree(), dry_run=dry_run)


def _performed(sources: Sources, tree: dict[str, Any], *, dry_run: bool) -> Answer:
    """Run, or say what a run would cost and ask, and return what came of it."""
    from secretballot.publishing.process import start_publishing

    spec = RunSpec.of_tree(tree)
    if not dry_run:
        start_publishing()  # before this program's own imports, which take as long
    from secretballot.cli.console import watching
    from secretballot.cli.local_modules import find_in_this_folder
    from secretballot.runs.run import quote, run

    learners = (getattr(spec.method, name, None) for name in ("teacher", "student"))
    find_in_this_folder(*(one for one in learners if one is not None))
    forecast = None if spec.forecast is None else spec.forecast.model_dump(exclude_none=True)
    with watching() as watch:
        if dry_run:
            quoted = quote(spec, watch)
            said = quoted.to_json() | {"forecast": forecast}
            return Answer(said, lambda: show("quote", quoted, forecast))
        outcome = run(spec, watch)
    document = _summary(outcome) | {"forecast": forecast}
    return Answer(document, lambda: show("outcome", outcome, _terms(outcome), forecast))


def _terms(outcome: "Outcome") -> dict[str, Any]:
    """Return what a certificate states of its release, and the price of all of it: an estimate or a
    choice that was paid for, too."""
    from secretballot.report.certificate.plan_checks import total_price
    from secretballot.report.certificate.terms import stated

    epsilon, delta = total_price(outcome.certificate)
    return {**stated(outcome.certificate), "epsilon": epsilon, "delta": delta}


def _summary(outcome: "Outcome") -> dict[str, Any]:
    """Return the outcome for machines."""
    certificate, report, terms = outcome.certificate, "report.html", _terms(outcome)
    document = {
        "method": outcome.method,
        "epsilon": terms["epsilon"],
        "delta": terms["delta"],
        "queries": outcome.queries,
        "answered": outcome.answered,
        "accuracy": outcome.accuracy,
        "metrics": None if outcome.metrics is None else outcome.metrics.to_json(),
        "plan": certificate.get("plan"),
        "chosen": outcome.chosen,
        "candidates": outcome.candidates,
    }
    return {name: value for name, value in document.items() if value is not None} | {
        "resumed": outcome.resumed,
        "release": str(outcome.release),
        "vault": str(outcome.vault),
        "account": str(outcome.account),
        "certificate": str(outcome.release / "certificate.json"),
        "report": str(outcome.release / report) if report in outcome.files else None,
    }
