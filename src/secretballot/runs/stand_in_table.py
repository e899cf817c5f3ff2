"""A labelled public table in the place of the private one, read like the tables of a run."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot.data.cells import is_missing, texts_of
from secretballot.data.frames import check_named, class_indices
from secretballot.data.reading import (
    as_texts,
    estimated_rows,
    read_table,
    table_blocks,
)
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError
from secretballot.report.wording import count_text
from secretballot.runs.progress import Watch
from secretballot.runs.spec import DataSpec
from secretballot.runs.tables import LabelledTable, check_classes, refuse_nowhere, schema_of

ROLE = "stand-in file"
MOST_ROWS = 500_000  # of a larger table so many, about, are drawn
MOST_CLASSES = 1000  # more distinct labels than this are a column of numbers
# rows, on average; with fewer, labels are a column of numbers too, or nothing can be learnt
LEAST_OF_A_CLASS = 2


def read_stand_in(
    place: Path | str, data: DataSpec, classes: tuple[Any, ...] | int | None, watch: Watch
) -> tuple[LabelledTable, tuple[Any, ...], Schema]:
    """Read and encode a labelled public table; return it with its classes and its schema.

    Parameters
    ----------
    place : Path, or str where it is a URL
    data : DataSpec
        Its target, schema file and columns to drop are those of the table.
    classes : tuple, int or None
        Declared classes; how many there are, to be found in the file; or those of the schema or the
        file.
    watch : Watch
        Told of columns that are no features.

    Raises
    ------
    DataError
        If the file cannot be read, or does not fit the schema or the classes.
    ParameterError
        If the classes are not two or more different ones.
    """
    frame, target = _rows_of_stand_in(place, watch), data.target[0]
    refuse_nowhere(
        [name for name in data.drop if name not in frame.columns], f"no column of the {ROLE}"
    )
    check_named(frame, target, "its label column with --target", role=ROLE)
    schema, features = schema_of(data, frame, ROLE, watch)
    names = _classes_of_stand_in(frame, target, schema.classes if classes is None else classes)
    index = class_indices(frame, target, names, role=ROLE)
    return LabelledTable(schema.encode(features, role=ROLE), index), names, schema


def _rows_of_stand_in(place: Path | str, watch: Watch) -> pd.DataFrame:
    """Return the rows of a public table, of a large one a part that is drawn at random."""
    expected = estimated_rows(place, role=ROLE)
    if expected <= MOST_ROWS:
        return read_table(place, role=ROLE)
    # by a public seed: the table is public, and so is what is drawn of it
    rng, kept = np.random.default_rng(0), []
    for frame in table_blocks(place, role=ROLE):
        kept.append(frame[rng.random(len(frame)) < MOST_ROWS / expected])
    watch.note(
        f"The {ROLE} has about {expected:,} rows, of which {sum(map(len, kept)):,} were drawn at"
        " random.",
        private=False,
    )
    return as_texts(kept)


def _classes_of_stand_in(
    frame: pd.DataFrame, target: str, declared: tuple[Any, ...] | int | None
) -> tuple[Any, ...]:
    """Return the classes; those of a public file may be read off it, sorted."""
    # Too many distinct labels, or too few rows of each, are a column of numbers taken for classes.
    if isinstance(declared, tuple):
        return check_classes(declared)
    found = sorted({text for text in texts_of(frame[target]) if not is_missing(text)})
    if not 2 <= len(found) <= MOST_CLASSES:
        raise DataError(
            f"The {ROLE} has {count_text(len(found), 'different label')} in column {target!r}; name"
            f" the column of classes with --target, of which there are 2 to {MOST_CLASSES:,}."
        )
    if len(found) * LEAST_OF_A_CLASS > len(frame):
        raise DataError(
            f"The {ROLE} has {len(found)} different labels in column {target!r} of"
            f" {count_text(len(frame), 'row')}; name the column of classes with --target, or give"
            f" {LEAST_OF_A_CLASS} rows of each class or more."
        )
    if declared is not None and declared != len(found):
        raise DataError(
            f"The {ROLE} has {len(found)} classes in column {target!r}, not {declared}; list them"
            " by name with --classes, also those that the file lacks."
        )
    return tuple(found)
