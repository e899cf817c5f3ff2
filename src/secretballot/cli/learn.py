"""`secretballot plan`, `check`, `learn` and `label`: from public words and private records,
or votes on public points, to a release."""

import shlex
from pathlib import Path
from typing import Any

from secretballot._files import place_of, shown_place
from secretballot.cli.outcome import BAD_INPUT, DONE, Answer
from secretballot.cli.settings import settings_of
from secretballot.runs.spec import DEFAULT_OUT, VOTES, RunSpec, Sources

LEARNING = ("data", "budget", "method", "output", "execution", "about")


@settings_of(
    *("data", "budget.epsilon", "budget.delta", "budget.relation", "method"),
    without="private",
    required=("epsilon", "delta"),
    more=("n_records",),
    public="Public table, or how many points there are.",
)
def plan(
    sources: Sources, *, watch: Any, like: str | None = None, out: Path | None = None
) -> Answer:
    """Recommend settings and forecast accuracy; reads public data only.

    Without --n-records and --like only columns, price and noise are printed.

    Example: secretballot plan public.csv --n-records 20000 --like cohort.csv --target ill
    --epsilon 1 --delta 1e-6 --out plan

    Parameters
    ----------
    like : FILE
        Public labelled table that resembles the private one.
    out : DIR
        Folder for the plan: settings, columns and pictures.
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.planning.plan_text import plan_text
    from secretballot.runs.plan import run_plan

    stand_in = None if like is None else place_of(like)
    found = run_plan(sources, like=stand_in, out=out, reporter=watch)
    columns: dict[str, Any] = {} if found.schema is None else found.schema.to_edit()
    made = {} if found.plan is None else found.plan.to_json()
    quoted = {} if found.quote is None else found.quote.to_json()

    text = "" if found.plan is None else plan_text(found.plan).rstrip("\n")
    public = "PUBLIC" if found.schema is None else shown_place(sources.given["public"])
    places = [shlex.quote(one) for one in (public, str(out or "DIR"))]
    facts = found, columns.get("columns", {}), text, *places
    return Answer({**made, **quoted, **({"schema": columns} if columns else {})}, "plan", facts)


@settings_of("data", "output.evaluate", required=("target",))
def check(sources: Sources, *, watch: Any) -> Answer:
    """Compare a private with a public table, for the curator's eyes.

    Nothing is trained, written or spent.

    Example: secretballot check patients.csv public.csv --target ill --classes no,yes
    """
    from secretballot.runs.tables import check_tables, percent

    # what a run needs, and is not looked at
    sources.given |= {"epsilon": 1, "delta": 0, "total": None}
    found = check_tables(RunSpec.of_tree(sources.tree()), watch)
    # all of it is for the curator alone, and so are all notes
    document = {"notes": [note.text for note in watch.notes], **found}
    code = BAD_INPUT if found["stopping"] else DONE
    return Answer(document, "check", (found, percent), code)


@settings_of(*LEARNING, required=("target", "epsilon", "delta"))
def learn(sources: Sources, *, watch: Any, dry_run: bool = False) -> Answer:
    """Learn a publishable model from a private labelled table and a public unlabelled one.

    Tables: CSV, Parquet, a folder of Parquet files, or a URL. Writes OUT/release, to publish, and
    OUT/vault, to keep secret. Repeat the command to resume a run; it is charged once.

    Example: secretballot learn patients.csv public.csv --target ill --classes no,yes --epsilon 1
    --delta 1e-6 --total 4,1e-5

    Parameters
    ----------
    dry_run
        Check everything, print price and noise; spend nothing.
    """
    from secretballot.runs.folder import begun_description

    begun = begun_description(sources.given.get("out", DEFAULT_OUT)).get("method")
    return _performed(sources.tree(begun), watch, dry_run=dry_run)


@settings_of(
    *("data.private", "data.classes", "budget", VOTES, "output.out", "output.format"),
    *("execution.confirm", "about"),
    method=VOTES,
    required=("epsilon", "delta"),
    private="Votes or counts, one row for each query: .npy, .csv or .parquet.",
)
def label(sources: Sources, *, watch: Any, dry_run: bool = False) -> Answer:
    """Release labels from votes of teachers trained elsewhere.

    That each record reached one teacher only is your statement; the certificate says so.

    Example: secretballot label counts.npy --kind counts --classes no,yes --epsilon 1 --delta 1e-5
    --total 4,1e-5

    Parameters
    ----------
    dry_run
        Check everything, print price and noise; spend nothing.
    """
    return _performed(sources.tree(), watch, dry_run=dry_run)


def _performed(tree: dict[str, Any], watch: Any, *, dry_run: bool) -> Answer:
    """Run, or say what a run would cost and ask, and return what came of it."""
    from secretballot.publishing.process import start_publishing

    spec = RunSpec.of_tree(tree)
    if not dry_run:
        start_publishing()  # before this program's own imports, which take as long
    from secretballot.runs.run import quote, run

    if dry_run:
        quoted = quote(spec, watch)
        said = quoted.to_json() | {"forecast": spec.forecast}
        return Answer(said, "quote", (quoted, spec.forecast))
    from secretballot.report.certificate.models import stated, total_price

    outcome = run(spec, watch)
    certificate, report = outcome.certificate, outcome.release / "report.html"
    # of all that was paid for: an estimate or a choice, too
    price = dict(zip(("epsilon", "delta"), total_price(certificate), strict=True))
    named = ("method", "queries", "answered", "accuracy", "chosen", "resumed")
    places = ("release", "vault", "account")
    document = {
        **price,
        **{name: getattr(outcome, name) for name in named},
        **{name: str(getattr(outcome, name)) for name in places},
        "metrics": None if outcome.metrics is None else outcome.metrics.to_json(),
        "plan": certificate.get("plan"),
        "candidates": certificate["public"].get("n_candidates"),
        "certificate": str(outcome.release / "certificate.json"),
        "report": str(report) if report.is_file() else None,
        "forecast": spec.forecast,
    }
    facts = outcome, {**stated(certificate), **price}, spec.forecast
    return Answer(document, "outcome", facts)
