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
            metavar="FILE",
            help="CSV, or Parquet by the suffix .parquet; CSV to standard output by default.",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The schema.json of the student, if not beside it."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that exists.")
    ] = False,
) -> None:
    """Predict the rows of a table.

    The schema of the release encodes raw cells; the order of columns does not matter, and further
    columns are not read. Cells that count as missing or as "other" are counted on standard error.

    Example: secretballot predict secretballot-out new.csv --out predictions.csv
    """
    from secretballot.cli.console import watching
    from secretballot.runs.predict import run_predict

    with watching() as watch:
        rows = run_predict(student, table, out, schema=schema, overwrite=overwrite, reporter=watch)
        if out is not None:
            watch.note(f"{rows:,} rows, written to {out}.", private=False)
