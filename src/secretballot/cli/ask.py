"""`secretballot ask`: the rows of a file, asked of a service."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from secretballot.cli.options import AsJson
from secretballot.cli.outcome import print_json, say

#: Holds the key where no file does: on the command line every user of the machine would see it.
KEY_VARIABLE = "SECRETBALLOT_KEY"


def ask(
    url: Annotated[str, typer.Argument(metavar="URL", help="Address of the service.")],
    points: Annotated[
        Path, typer.Argument(metavar="POINTS", help="Public points, CSV with a header or Parquet.")
    ],
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--key-file", metavar="FILE", help=f"File of the API key; by default ${KEY_VARIABLE}."
        ),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Dataset, if there are several.")
    ] = None,
    session: Annotated[
        str | None, typer.Option("--session", metavar="NAME", help="Session, if not the first one.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="Where to write the answers, as CSV."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Ask a service for the labels of the rows of a file, and write them as a table.

    A row that was asked before has its stored answer and costs nothing, so the same command goes
    on where it broke off.

    \b
    Example: secretballot ask https://labels.example.org points.csv --out answers.csv
    """
    from secretballot.service.asked_files import answers_table, points_of_file
    from secretballot.service.remote import connect

    with connect(url, _read_key(key_file), dataset=dataset, session=session) as there:
        answers = there.ask_many(points_of_file(points, there))
        table = answers_table(answers, there.classes)
    given, rows = int(answers.given.sum()), len(table)
    if as_json:
        document: dict[str, Any] = {"points": rows, "given": given, "left": answers.left}
        if out is None:
            document["answers"] = {name: table[name].tolist() for name in table}
        print_json(document)
    if out is not None:
        table.to_csv(out, index=False)
    elif not as_json:
        say(table.to_csv(index=False).rstrip("\n"), keep="\n\t")
    # on the standard error: the standard output may be the table
    if given < rows:
        print(
            f"secretballot: {given} of {rows} points were answered, then the budget or the quota"
            " was spent.",
            file=sys.stderr,
        )


def _read_key(file: Path | None) -> str:
    """Return the key in a file or in the environment.

    Raises
    ------
    ParameterError
        If there is none.
    DataError
        If the file cannot be read.
    """
    from secretballot.exceptions import DataError, ParameterError

    if file is None:
        key = os.environ.get(KEY_VARIABLE, "").strip()
        if not key:
            raise ParameterError(
                f"There is no key; set {KEY_VARIABLE}, or name a file with --key-file."
            )
        return key
    problem = ""
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        problem = getattr(error, "strerror", None) or "it is no text"
    raise DataError(f"The key file {str(file)!r} cannot be read ({problem}); correct the path.")
