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
    frame = read_table(path, role="file of points").replace("", None)
    columns = session.columns
    if columns["kind"] == "frame":
        kinds = {str(name): kind for name, kind, _ in columns["columns"]}
        missing = [name for name in kinds if name not in frame.columns]
        if missing:
            said = f"lacks {name_columns(missing)}; add what the session asks."
            raise DataError(f"{shown(path)} {said}")
        frame = frame[[*kinds]]
    elif frame.shape[1] == columns["columns"]:
        kinds = dict.fromkeys(frame.columns, columns["dtype"])
    else:
        raise DataError(
            f"{shown(path)} has {frame.shape[1]} columns, and a point of {session.request!r} has"
            f" {columns['columns']} values; give these columns alone, under a header."
        )
    for name, kind in kinds.items():
        if pd.api.types.is_numeric_dtype(kind):
            frame[name] = _numbers_in(frame[name], path)
    return frame if columns["kind"] == "frame" else frame.to_numpy()


def _numbers_in(cells: pd.Series, path: Path) -> pd.Series:
    with contextlib.suppress(TypeError, ValueError):
        return pd.to_numeric(cells).astype(np.float64)
    raise DataError(
        f"Column {shown(cells.name)} of {shown(path)} has cells that are no numbers; correct them."
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
        names = [f"noisy_count_{name}" for name in classes[-counts.shape[1] :]]
        cells = pd.DataFrame(counts, columns=names).astype(object)
        table = table.join(cells.where(answers.given[:, None], None))
    return table
