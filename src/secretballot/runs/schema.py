"""The schema that a run would take from a public file, with a reason for each column, to be
edited."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from secretballot._naming import name_columns
from secretballot.core.drafts import draft_file, put_in_place
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError
from secretballot.runs.folder import check_outside_of_runs
from secretballot.runs.progress import Watch
from secretballot.runs.tables import check_classes, note_columns

ROLE = "public file"


@dataclass(frozen=True)
class SchemaRun:
    """Which public file to look at, and where to write.

    Attributes
    ----------
    public : Path
    target, unit : str or None
        Columns with a duty, which are no features, whether there or not.
    drop : tuple of str
        Columns to leave out.
    classes : tuple or None
        Classes of the target, to be written into the schema.
    out : Path or None
        A new file; None writes none.
    """

    public: Path
    target: str | None = None
    unit: str | None = None
    drop: tuple[str, ...] = ()
    classes: tuple[Any, ...] | None = None
    out: Path | None = None


def run_schema(run: SchemaRun, watch: Watch | None = None) -> dict[str, Any]:
    """Return the schema of a public file as JSON, and write it where that was asked for.

    Parameters
    ----------
    run : SchemaRun
    watch : Watch, optional
        Told of columns that are no features, or could as well be something else.

    Returns
    -------
    dict
        As `Schema.to_edit` gives it: with it as ``--schema``, a run encodes as it would without.

    Raises
    ------
    DataError
        If the public file cannot be read or has no feature, a column to drop is not there, or the
        place to write is taken.
    ParameterError
        If the classes are not two or more different ones.
    """
    watch = watch or Watch()
    # before a table is read, which may take long
    if run.out is not None:
        _check_place(run.out)
    public = read_table(run.public, role=ROLE)
    nowhere = [name for name in run.drop if name not in public.columns]
    if nowhere:
        raise DataError(
            f"The {ROLE} lacks {name_columns(nowhere)}, to be dropped; spell columns as the file"
            " does."
        )
    aside = [name for name in (run.target, run.unit, *run.drop) if name is not None]
    schema = Schema.infer(public, ignore=aside)
    if run.classes is not None:
        schema = replace(schema, classes=check_classes(run.classes))
    note_columns(schema, watch)
    document = schema.to_edit()
    if run.out is not None:
        _write_schema(document, run.out)
    return document


def _check_place(out: Path) -> None:
    """Refuse a place where something is, so that nobody's edits are lost, or a run's folder."""
    if out.exists():
        raise DataError(f"There is something at {str(out)!r} already; give a new file with --out.")
    if not out.parent.is_dir():
        raise DataError(f"There is no folder {str(out.parent)!r}; make it, or give another --out.")
    check_outside_of_runs(out.parent)


def _write_schema(document: dict[str, Any], out: Path) -> None:
    text = json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    problem = ""
    try:
        with draft_file(out) as (file, draft):
            file.write(text.encode("utf-8", "surrogatepass"))
            put_in_place(file, draft, out)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    if problem:
        raise DataError(f"The schema cannot be written to {str(out)!r}: {problem}.")
