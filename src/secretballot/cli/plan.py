"""`secretballot plan`: what a budget will buy, before any private file is touched."""

import shlex
from pathlib import Path
from typing import Annotated, Any

from secretballot._places import place_of, shown_place
from secretballot.cli.outcome import Answer, say
from secretballot.cli.screens import option
from secretballot.cli.settings import settings_of
from secretballot.cli.texts import show
from secretballot.runs.spec import (
    DATA,
    METHOD_SPECS,
    METHODS,
    RUN,
    BudgetSpec,
    DataSpec,
    Sources,
)


@settings_of(
    DataSpec,
    BudgetSpec.only("epsilon", "delta", "relation"),
    *(METHOD_SPECS[one] for one in METHODS),
    arguments=("public",),
    required=("epsilon", "delta"),
    more=("n_records",),
    public="Public table, or how many points there are.",
)
def plan(
    sources: Sources,
    like: Annotated[
        Path | None,
        option(
            "FILE",
            "Public labelled table that resembles the private one.",
            parser=place_of,
            rich_help_panel=DATA,
        ),
    ] = None,
    out: Annotated[
        Path | None,
        option(
            "DIR",
            "Folder for the plan: settings, columns, text and pictures.",
            rich_help_panel=RUN,
        ),
    ] = None,
) -> Answer:
    """Recommend settings and forecast accuracy; reads public data only.

    Without --n-records and --like only columns, price and noise are printed.

    Example: secretballot plan public.csv --n-records 20000 --like cohort.csv --target ill
    --epsilon 1 --delta 1e-6 --out plan
    """
    # Imported here, so that help and usage errors of all verbs come at once.
    from secretballot.cli.console import watching
    from secretballot.cli.local_modules import find_in_this_folder
    from secretballot.planning.plan.text import plan_text
    from secretballot.runs.plan import run_plan

    given = sources.given
    find_in_this_folder(*(str(given[name]) for name in ("teacher", "student") if name in given))
    with watching() as watch:
        found = run_plan(sources, like=like, out=out, reporter=watch)
    columns: dict[str, Any] = {} if found.schema is None else found.schema.to_edit()
    made = {} if found.plan is None else found.plan.to_json()
    quoted = {} if found.quote is None else found.quote.to_json()

    def show_it() -> None:
        if columns:
            _print_columns(columns["columns"], 11 if found.plan is None else 13)
        if found.quote is not None:
            show("quote", found.quote)
        if found.plan is None:
            return
        say(plan_text(found.plan).rstrip("\n"), keep="\n")
        public = "PUBLIC" if found.schema is None else shlex.quote(shown_place(given["public"]))
        folder = "DIR" if out is None else shlex.quote(str(out))
        first = "repeat with --out DIR, and " if out is None else ""
        words = [f"secretballot learn PRIVATE {public}", f"--config {folder}/plan.toml"]
        say(f"{'next':<13}{first}{' '.join(words)}")

    return Answer({**made, **quoted, **({"schema": columns} if columns else {})}, show_it)


def _print_columns(columns: dict[str, Any], start: int) -> None:
    kinds: dict[str, list[str]] = {}
    for name, column in columns.items():
        kinds.setdefault(column["kind"], []).append(name)
    listed = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in kinds.items())
    say(f"{'columns':<{start}}{listed}")
