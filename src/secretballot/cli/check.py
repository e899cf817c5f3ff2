"""What `--check` prints: the tables of a run side by side, for the curator's eyes."""

from typing import TYPE_CHECKING

import typer

from secretballot.cli.outcome import BAD_INPUT, print_json, say
from secretballot.cli.spelling import as_options
from secretballot.exceptions import DataError

if TYPE_CHECKING:
    from secretballot.runs.check import CheckedColumn, TableCheck
    from secretballot.runs.tables import RunTables


_WIDEST = 30  # characters of a column's name


def print_check(
    tables: "RunTables",
    *,
    as_json: bool,
) -> None:
    """Compare the tables and print what was found.

    Raises
    ------
    DataError
        If anything would stop a run, after all of it was printed; of JSON the exit code alone
        says so.
    """
    from secretballot.cli.console import watching
    from secretballot.runs.check import check_tables_of_run

    with watching() as watch:
        found = check_tables_of_run(tables, watch)
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
    if found.classes:
        counts = ", ".join(f"{name} {count:,}" for name, count in found.classes.items())
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
