"""Private records that are needed once more: held until then, and then forgotten."""

import contextlib
import io
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import DataError
from secretballot.vault import read_secret, write_secret

FILE = "records.npz"


class PrivateRecords:
    """Points and labels that show neither values nor number, and refuse to be pickled or copied.

    Parameters
    ----------
    points : ndarray of float64, shape (n, n_features)
        Private.
    labels : ndarray of int64, shape (n,)
        Private; 0 and 1.
    """

    __slots__ = ("__labels", "__points")

    def __init__(self, points: FloatArray, labels: IntArray) -> None:
        self.__points, self.__labels = points, labels

    @classmethod
    def load(cls, folder: Path) -> "PrivateRecords":
        """Return the records kept in a folder of the vault.

        Raises
        ------
        DataError
            If there are none, or they cannot be read.
        """
        content = read_secret(folder / FILE)
        if content is None:
            raise DataError(
                f"{folder / FILE} is missing; call fit again, with the records of the first fit."
            )
        found = _records_of(content)
        if found is None:
            raise DataError(
                f"{folder / FILE} is damaged; call fit again, with the records of the first fit."
            )
        return cls(*found)

    def keep(self, folder: Path) -> None:
        """Write the records into a folder of the vault, mode 0600, in place of what was there.

        Raises
        ------
        DataError
            If they cannot be written.
        """
        content = io.BytesIO()
        np.savez(content, points=self.__points, labels=self.__labels)
        write_secret(folder / FILE, content.getvalue())

    @staticmethod
    def forget(folder: Path) -> None:
        """Remove the records from a folder of the vault, if there are any."""
        (folder / FILE).unlink(missing_ok=True)

    def open_for_scores(self) -> tuple[FloatArray, IntArray]:
        """Return points and labels, private, to count mistakes on."""
        return self.__points, self.__labels

    def __repr__(self) -> str:
        return "PrivateRecords(<private>)"

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError("private records refuse to be pickled or copied; keep them in a vault.")


def _records_of(content: bytes) -> tuple[FloatArray, IntArray] | None:
    """Return points and labels in the bytes of a file, None where they are damaged; no error
    carries any of them."""
    points = labels = None
    # numpy parses headers that may say anything, and raises what it likes
    with contextlib.suppress(Exception), np.load(io.BytesIO(content), allow_pickle=False) as kept:
        points, labels = kept["points"], kept["labels"]
    if points is None or labels is None or points.ndim != 2 or labels.shape != points.shape[:1]:
        return None
    if points.dtype != np.float64 or labels.dtype != np.int64 or not np.isin(labels, (0, 1)).all():
        return None
    return points, labels
