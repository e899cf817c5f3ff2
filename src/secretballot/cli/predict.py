"""`secretballot predict`: what a published student says of the rows of a table."""

from pathlib import Path
from typing import Annotated

import typer


def predict(
    student: Annotated[
        Path,
        typer.Argument(
            metavar="STUDENT", help="A release folder, the folder of a run, or a student.onnx."
        ),
    ],
    table: Annotated[
        Path,
        typer.Argument(
            metavar="TABLE", help="Rows with the columns of the public file, CSV or Parquet."
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            help="Where to write, as Parquet by a suffix .parquet; CSV to standard output by"
            " default.",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            "--schema", metavar="FILE", help="The schema.json of the student, if not beside it."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is there.")
    ] = False,
) -> None:
    """Predict labels and probabilities for the rows of a table, with a published student.

    The schema of the release encodes raw cells; order of columns and further columns do not matter.
    What is counted as missing or as "other" is told on standard error.

    \b
    Example: secretballot predict secretballot-out new.csv --out predictions.csv
    """
    from secretballot.cli.console import watching
    from secretballot.runs.predict import run_predict

    with watching() as watch:
        rows = run_predict(student, table, out, schema=schema, overwrite=overwrite, reporter=watch)
        if out is not None:
            watch.note(f"{rows:,} rows, written to {out}.", private=False)
