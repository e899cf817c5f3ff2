"""`secretballot schema`: what each column of a public file is taken for, to be edited."""

from pathlib import Path
from typing import Annotated

import typer

from secretballot.cli.options import Classes, Drop, UnitColumn, classes_of, words_of
from secretballot.cli.outcome import print_json


def schema(
    public: Annotated[
        Path, typer.Argument(metavar="PUBLIC", help="Public records, CSV or Parquet.")
    ],
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="COL", help="Column with the class, where the file has it."
        ),
    ] = None,
    unit: UnitColumn = None,
    drop: Drop = None,
    classes: Classes = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="A new file; standard output by default."),
    ] = None,
) -> None:
    """Write the schema that a run would take from a public file, with a reason for each column.

    Edit it and give it to `learn`, `choose` or `plan` with --schema. No private file is read.

    \b
    Example: secretballot schema public.csv --target ill --classes no,yes --out schema.json
    """
    from secretballot.cli.console import watching
    from secretballot.runs.schema import SchemaRun, run_schema

    run = SchemaRun(public, target, unit, words_of(drop), classes_of(classes), out)
    with watching() as watch:
        document = run_schema(run, watch)
    if out is None:
        print_json(document)
        return
    with watching() as watch:
        features = sum(column["kind"] != "ignored" for column in document["columns"].values())
        watch.note(
            f"{features} of {len(document['columns'])} columns are features; written to {out}.",
            private=False,
        )
