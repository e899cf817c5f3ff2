"""`secretballot check`: the tables of a run side by side, for the curator alone."""

from typing import TYPE_CHECKING, Annotated

import typer

from secretballot.cli.outcome import BAD_INPUT, as_options, print_json, say
from secretballot.cli.settings import AsJson, settings_of
from secretballot.exceptions import DataError
from secretballot.runs.spec import DATA, DataSpec, RunSpec, Sources, groups

if TYPE_CHECKING:
    from secretballot.runs.check import CheckedColumn, TableCheck

Evaluated = Annotated[
    str | None,
    typer.Option("--evaluate", metavar="FILE", help="Public labelled table.", rich_help_panel=DATA),
]
_WIDEST = 30  # characters of a column's name


@settings_of(DataSpec, arguments=("private", "public"))
def check(sources: Sources, evaluate: Evaluated = None, as_json: AsJson = False) -> None:
    """Compare a private with a public table, for the curator alone.

    Nothing is trained, written or spent.

    \b
    Example: secretballot check patients.csv public.csv --target ill --classes no,yes
    """
    from secretballot.cli.console import watching
    from secretballot.runs.check import TableCheck

    fields = {name: one for name, one in sources.given.items() if groups()[name] == "data"}
    fields |= {"epsilon": 1, "delta": 1e-6}  # which are not looked at
    fields |= {} if evaluate is None else {"evaluate": evaluate}
    spec = RunSpec.of_tree(Sources(fields=fields).tree())
    with watching() as watch:
        found = TableCheck(spec, watch)
    if as_json:
        notes = [note.text for note in watch.notes]
        print_json(found.to_private_json(as_options) | {"notes": notes})
        if found.stopping:  # the one object says it all
            raise typer.Exit(BAD_INPUT)
        return
    _print_lines(found)
    if found.problem is not None:
        raise DataError(found.problem)


def _print_lines(found: "TableCheck") -> None:
    """Print the findings for the curator, under a warning."""
    # The warning comes first: whoever copies the beginning of the output copies it too.
    print("NOT RELEASABLE: computed from private data without noise, for the curator's eyes alone.")
    say(f"rows         {', '.join(f'{count:,} {role}' for role, count in found.rows.items())}")
    if found.units is not None:
        say(f"units        {found.units:,}")
    if found.class_counts:
        counts = ", ".join(f"{name} {count:,}" for name, count in found.class_counts.items())
        say(f"classes      {counts}")
    if found.columns:
        _print_columns(found.columns)
    for error in found.stopping:
        say(f"stops        {as_options(error)}")
    if not found.stopping:
        say("tables       fit; nothing was trained, written or spent")


def _print_columns(columns: "list[CheckedColumn]") -> None:
    """Print a line for each column: what is nowhere in its encoding, and what is empty."""
    width = min(_WIDEST, max(len("column"), *(len(column.name) for column in columns)))
    say(
        f"{'column':{width}}  {'kind':11}  {'no place':>8}  {'(public)':>8}  {'empty':>8}"
        f"  {'(public)':>8}  {'out of range':>12}"
    )
    for one in columns:
        shares = (one.strange, one.public_strange, one.missing, one.public_missing)
        cells = "  ".join(f"{_percent_text(share):>8}" for share in shares)
        beyond = "" if one.beyond is None else f"  {_percent_text(one.beyond):>12}"
        say(f"{one.name[:width]:{width}}  {one.kind:11}  {cells}{beyond}")


def _percent_text(share: float) -> str:
    from secretballot.runs.table_match import percent

    return percent(share)
