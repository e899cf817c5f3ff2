"""`secretballot predict`: what a published student says of the rows of a table."""

from pathlib import Path
from typing import Annotated

import typer

from secretballot.cli.outcome import Answer, lines
from secretballot.cli.screens import argument, option
from secretballot.exceptions import Parameter, ParameterError


def predict(
    student: Annotated[
        Path, argument("STUDENT", "A release folder, the folder of a run, or a student.onnx.")
    ],
    table: Annotated[
        Path, argument("TABLE", "Rows with the columns of the public file, CSV or Parquet.")
    ],
    out: Annotated[
        Path | None,
        option("FILE", "Where to write them, as CSV; by default to standard output."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that exists.")
    ] = False,
    as_json: bool = False,
) -> Answer:
    """Predict the rows of a table.

    The schema of the release encodes raw cells; the order of columns does not matter, and further
    columns are not read. Cells that count as missing or as "other" are counted on standard error.

    Example: secretballot predict secretballot-out new.csv --out predictions.csv
    """
    from secretballot.cli.console import watching
    from secretballot.runs.predict import run_predict

    if as_json and out is None:
        raise ParameterError(Parameter("out"), " is missing: --json prints no predictions.")
    with watching() as watch:
        rows = run_predict(student, table, out, overwrite=overwrite, reporter=watch)
        if out is not None:
            watch.note(f"{rows:,} rows, written to {out}.", private=False)
    return lines({"rows": rows, "out": str(out)})
