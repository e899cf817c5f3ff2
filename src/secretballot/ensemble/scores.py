"""How often each of some candidates is right on private records: counts by unit that only the door may read."""

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from secretballot._validation import check_choice
from secretballot.exceptions import DataError

__all__ = ["PrivateScores"]

IntArray = npt.NDArray[np.int64]


class PrivateScores:
    """The number of units on which each candidate is right: private until the door has chosen by it.

    Make one with `of`. Its shape is public and shown, its values are not.

    Attributes
    ----------
    n_candidates : int
        The public shape.
    neighbours : {"add-remove", "replace-one"}
        Relation under which every score moves by at most 1.

    Privacy
    -------
    Unit : one record, or all records of one id.
    Sensitivity : 1 for every candidate, whatever the number of a unit's records: a unit counts once, if the candidate
        is right on more than half of its records. Under add-remove all scores rise together; under replace-one they
        may move both ways.
    """

    __slots__ = ("__scores", "neighbours")

    def __init__(self, scores: npt.NDArray[Any], neighbours: str) -> None:
        self.__scores = np.asarray(scores, dtype=np.int64)
        self.neighbours = check_choice("neighbours", neighbours, ("add-remove", "replace-one"))

    @classmethod
    def of(cls, right: Any, units: Any = None, neighbours: str = "add-remove") -> "PrivateScores":
        """Count units.

        Parameters
        ----------
        right : array of bool, shape (n_records, n_candidates)
            Whether each candidate is right on each private record.
        units : array of shape (n_records,), optional
            Ids; without them every record is a unit.
        neighbours : {"add-remove", "replace-one"}
            Units go with add-remove alone.

        Raises
        ------
        DataError
            If shapes do not fit, or units are given under replace-one.
        """
        table = np.asarray(right)
        if table.ndim != 2 or table.dtype.kind != "b" or not table.shape[1]:
            raise DataError(
                f"right has shape {table.shape} and dtype {table.dtype}; give true or false, (n_records, n_candidates)."
            )
        if units is None:
            return cls(table.sum(axis=0), neighbours)
        if neighbours != "add-remove":
            raise DataError("units are given under replace-one, which is about single records; use add-remove.")
        if len(units) != len(table):
            raise DataError(f"units has {len(units)} ids for {len(table)} records; give one id for each record.")
        _, owner = np.unique(np.asarray(units), return_inverse=True)
        hits = np.zeros((int(owner.max(initial=-1)) + 1, table.shape[1]), dtype=np.int64)
        np.add.at(hits, owner, table)
        return cls((2 * hits > np.bincount(owner, minlength=len(hits))[:, None]).sum(axis=0), neighbours)

    @property
    def n_candidates(self) -> int:
        """Number of candidates."""
        return len(self.__scores)

    def open_at_the_door(self) -> IntArray:
        """Return a copy of the scores, shape (n_candidates,), int64; for the door alone.

        Privacy
        -------
        The returned values are private: whoever calls this must draw by them with noise, and pay for it.
        """
        return self.__scores.copy()

    def __repr__(self) -> str:
        return f"PrivateScores(n_candidates={self.n_candidates}, values=<private>)"

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise TypeError("private scores refuse to become an array; choose by them through the door.")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("private scores refuse to be pickled or copied; choose by them through the door.")
