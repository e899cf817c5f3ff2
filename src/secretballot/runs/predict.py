"""What a published student says of the rows of a table: block by block, from file to file."""

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot._typing import FloatArray
from secretballot.data.reading import table_blocks
from secretballot.drafts import draft_file, put_in_place
from secretballot.exceptions import DataError
from secretballot.runs.folder import check_outside_of_runs
from secretballot.runs.questions import Watch
from secretballot.runs.student_file import StudentFile, read_student_file
from secretballot.runs.table_match import TableCells, misfits, note_odd_cells

ROLE = "table"


def run_predict(
    student: Path,
    table: Path,
    out: Path | None = None,
    *,
    overwrite: bool = False,
    reporter: Watch | None = None,
) -> int:
    """Write what a published student says of every row of a table, and return how many there are.

    The columns are ``row``, from 0; ``label`` (``prediction`` of a student of numbers, and
    ``label[NAME]``, 0 or 1, for each of several labels); and ``probability[CLASS]`` of each class,
    or label, where the student has probabilities. Rows are read,
    encoded and written in blocks, so a table may be larger than the memory. A file appears complete
    or not at all.

    Parameters
    ----------
    student : Path
        A release folder, the folder of a run, or a student.onnx.
    table : Path
        Raw rows, CSV or Parquet, with the columns of the public file of the release.
    out : Path, optional
        A CSV file; by default standard output.
    overwrite : bool
        Whether a file in that place may be replaced.
    reporter : Watch, optional
        Called with what was counted as missing or as "other".

    Raises
    ------
    DataError
        If a file cannot be read or written, columns are missing, or one that holds numbers for the
        student holds none in the first block of rows.
    """
    watch, cells = reporter or Watch(), TableCells()
    found = read_student_file(student)
    if out is not None:
        _check_place(out, {"table": table, "student": student}, overwrite)
    watch.step("Predicting")
    with _block_writer(out) as write:
        for frame in table_blocks(table, role=ROLE):
            encoding, first = found.encoding(frame, role=ROLE), cells.n_rows
            cells.add(frame, encoding.odd)
            if not first:
                # the first rows speak for the rest, and a person sees it before the table ends
                _note_surplus(found, frame, watch)
                _settle_first_rows(found, cells, watch)
            write(_predicted(found.model, encoding.matrix, first))
    note_odd_cells(found.schema, cells, watch, role=ROLE, private=False)
    return cells.n_rows


def _check_place(out: Path, read: Mapping[str, Path], overwrite: bool) -> None:
    """Refuse a place that would put predictions over what they are made of, or into a run."""
    # a device or a link would be replaced by the file
    if out.is_symlink() or (out.exists() and not out.is_file()):
        raise DataError(f"{str(out)!r} is no regular file; give another place with --out.")
    if not out.parent.is_dir():
        raise DataError(
            f"There is no folder {str(out.parent)!r} for the predictions; make it, or give another"
            " place with --out."
        )
    check_outside_of_runs(out.parent)
    if not out.exists():
        return
    if not overwrite:
        raise DataError(f"{str(out)!r} exists; give another name, or add --overwrite.")
    for name, place in read.items():
        # a table that is not there is refused where it is read
        if place.exists() and out.samefile(place):
            raise DataError(f"{str(out)!r} is the {name} itself; give another file with --out.")


def _note_surplus(found: StudentFile, frame: pd.DataFrame, watch: Watch) -> None:
    known = {*found.schema.names, *found.schema.ignored}
    surplus = sum(name not in known for name in frame.columns)
    if surplus:
        noun = "column is" if surplus == 1 else "columns are"
        watch.note(f"{surplus} {noun} not read by the student.", private=False)


def _settle_first_rows(found: StudentFile, cells: TableCells, watch: Watch) -> None:
    """Tell of columns that mostly do not fit; refuse those in which numbers are due and no cell
    that says anything has one.

    Raises
    ------
    DataError
        Naming the worst of them.
    """
    for one in misfits(found.schema, cells):
        if one.share == 1 and not one.of_categories:
            raise DataError(
                f"Column {one.name!r} of the {ROLE} does not fit: {one.words} in its first"
                f" {cells.n_rows:,} rows; write them as the public file of the release does, or"
                " leave the cells empty."
            )
        if one.stops:
            watch.note(f"Column {one.name!r}: {one.words}.", private=False)


def _predicted(model: Any, X: FloatArray, first: int) -> pd.DataFrame:
    """Return a block of predictions."""
    labels, names = np.asarray(model.predict(X)), getattr(model, "labels", None)
    found = pd.DataFrame({"row": np.arange(first, first + len(X))})
    if labels.ndim == 2 and names is not None:
        names = list(map(str, names))
        found[[f"label[{name}]" for name in names]] = labels
    elif labels.ndim == 1:
        names = getattr(model, "classes_", None)
        found["prediction" if names is None else "label"] = labels
    else:
        raise DataError(
            f"The student predicts {labels.shape[-1]} labels for each row, and a table of"
            " predictions has one; use it in Python."
        )
    if names is not None and hasattr(model, "predict_proba"):
        shares = np.asarray(model.predict_proba(X), dtype=np.float64)
        found[[f"probability[{name}]" for name in np.asarray(names).tolist()]] = shares
    return found


@contextmanager
def _block_writer(out: Path | None) -> Iterator[Callable[[pd.DataFrame], None]]:
    """Give what writes blocks, to a file that appears complete or not at all, or to standard
    output."""
    if out is None:
        yield partial(_write_csv, sys.stdout)
        return
    problem = ""
    try:
        with draft_file(out) as (file, draft):
            yield partial(_write_csv, file)
            put_in_place(file, draft, out)
    except OSError as error:
        problem = error.strerror or type(error).__name__
    # outside of the handler, so that the message appears without the library's own
    if problem:
        raise DataError(
            f"The predictions cannot be written to {str(out)!r}: {problem}; nothing was left there."
        )


def _write_csv(file: Any, block: pd.DataFrame) -> None:
    """Write a block as CSV, the first one with a header."""
    first = bool(block["row"].iloc[0] == 0)
    block.to_csv(file, index=False, header=first, lineterminator="\n")
