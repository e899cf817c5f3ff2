"""Points in a file, asked of a service, and the answers as a table."""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from secretballot._naming import name_columns
from secretballot._validation import shown
from secretballot.data.reading import read_table
from secretballot.exceptions import DataError
from secretballot.learners.training.session import SessionAnswers
from secretballot.service.remote import RemoteSession


def points_of_file(path: Path, session: RemoteSession) -> Any:
    """Return the rows of a CSV or Parquet file as points of a session.

    Teachers of frames take their columns by name, and others are left out; teachers of arrays take
    all columns of the file, in its order.

    Raises
    ------
    DataError
        If the file cannot be read, columns are missing, or a cell is no number where the teachers
        take numbers.
    """
    frame = read_table(path, role="file of points")
    columns = session.columns
    if columns["kind"] != "frame":
        if frame.shape[1] != columns["columns"]:
            raise DataError(
                f"{shown(path)} has {frame.shape[1]} columns, and a point of {session.request!r}"
                f" has {columns['columns']} values; give these columns alone, under a header."
            )
        number = np.dtype(columns["dtype"]).kind in "biuf"
        return np.column_stack([_cells(frame, name, number, path) for name in frame.columns])
    missing = [str(name) for name, _, _ in columns["columns"] if name not in frame.columns]
    if missing:
        raise DataError(f"{shown(path)} lacks {name_columns(missing)}; add what the session asks.")
    return pd.DataFrame(
        {
            name: _cells(frame, name, pd.api.types.is_numeric_dtype(kind), path)
            for name, kind, _ in columns["columns"]
        }
    )


def _cells(frame: pd.DataFrame, name: Any, number: bool, path: Path) -> Any:
    """Return the cells of a column as numbers or texts, empty ones as missing."""
    cells = frame[name].replace("", None)
    if not number:
        return cells.to_numpy(dtype=object)
    with contextlib.suppress(TypeError, ValueError):
        return pd.to_numeric(cells).to_numpy(dtype=np.float64)
    raise DataError(
        f"Column {shown(name)} of {shown(path)} has cells that are no numbers; correct them."
    )


def answers_table(answers: SessionAnswers, classes: Sequence[Any]) -> pd.DataFrame:
    """Return answers as a table with one row for each point, in their order."""
    table = pd.DataFrame(
        {
            "row": np.arange(len(answers.labels)),
            "label": pd.Series(answers.labels, dtype=object),
            "abstained": answers.given & ~answers.answered,
            "given": answers.given,
        }
    )
    if answers.noisy_counts is not None:
        counts = answers.noisy_counts.reshape(len(table), -1)
        # of two classes the count of the second alone is released
        names = [classes[1]] if counts.shape[1] == 1 else list(classes)
        for place, name in enumerate(names):
            cells = counts[:, place].astype(object)
            cells[~answers.given] = None
            table[f"noisy_count_{name}"] = pd.Series(cells, dtype=object)
    return table
