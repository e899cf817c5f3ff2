"""The distinct public points that were asked, in their order, as far as they are needed again."""

import contextlib
import io
from pathlib import Path

import numpy as np

from secretballot._typing import FloatArray
from secretballot.exceptions import DataError
from secretballot.learners.training.point_digests import question_digests
from secretballot.vault import read_secret, write_secret

FILE = "asked.npy"


class AskedPoints:
    """Public points, each once, up to a number of them.

    Parameters
    ----------
    n_features : int
    most : int
        Points after these are not kept.
    folder : Path or None
        Where they are kept, each before it is answered; None for in memory. Two processes that ask
        at the same moment may lose a point of each other: then fewer points are known, which costs
        accuracy and never privacy.

    Raises
    ------
    DataError
        If kept points cannot be read.
    """

    def __init__(self, n_features: int, most: int, folder: Path | None = None) -> None:
        self.most = most
        self._place = None if folder is None else folder / FILE
        self._points: FloatArray = np.empty((0, n_features))
        self.points()

    def points(self) -> FloatArray:
        """Return the points so far, shape (n, n_features).

        Raises
        ------
        DataError
            If kept points cannot be read.
        """
        # Read anew each time, since another process may have asked meanwhile.
        content = None if self._place is None else read_secret(self._place)
        if content is not None:
            found = _points_of(content, self._points.shape[1])
            if found is None:
                raise DataError(f"{self._place} is damaged; put the vault back as it was.")
            self._points = found
        return self._points

    def add(self, points: FloatArray) -> None:
        """Keep those of `points`, of shape (n, n_features), that are new, as far as there is room.

        Raises
        ------
        DataError
            If they cannot be written; no answer may then be asked for.
        """
        known = self.points()
        if len(known) >= self.most:
            return
        # Reversed, so that of equal points the first one's row stays.
        seen = set(question_digests(known))
        new = {
            digest: row
            for row, digest in reversed(list(enumerate(question_digests(points))))
            if digest not in seen
        }
        rows = np.sort(np.fromiter(new.values(), dtype=np.int64, count=len(new)))[
            : self.most - len(known)
        ]
        if not len(rows):
            return
        self._points = np.concatenate([known, points[rows]])
        if self._place is not None:
            content = io.BytesIO()
            np.save(content, self._points, allow_pickle=False)
            write_secret(self._place, content.getvalue())


def _points_of(content: bytes, n_features: int) -> FloatArray | None:
    """Return the points in the bytes of a file, None where they are damaged."""
    found: object = None
    # numpy parses a header that may say anything, and raises what it likes
    with contextlib.suppress(Exception):
        found = np.load(io.BytesIO(content), allow_pickle=False)
    if (
        not isinstance(found, np.ndarray)
        or found.dtype != np.float64
        or found.shape[1:] != (n_features,)
    ):
        return None
    return found
