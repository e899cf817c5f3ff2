"""How often each interval of public points is right on private records: two sums for each point,
for the door alone."""

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import IntArray
from secretballot._validation import NEIGHBOURS, check_choice
from secretballot.core.private import Private as Sealed
from secretballot.exceptions import DataError, Parameter


class PrivateRangeScores(Sealed):
    """Scores of all ranges of m places, by their ends: private until the door has chosen by them.

    The range from place i to place j >= i has the score ``starts[i] - ends[j]``, no range the score
    0; or all so much less, which no choice sees. There are m (m + 1) / 2 + 1 candidates, numbered
    from 0: no range, then by first place, then by last place.

    Parameters
    ----------
    starts, ends : array of int, shape (m,)
    unit : {"record", "user"}
        What one point of a score stands for.
    neighbours : {"add-remove", "replace-one"}
        Relation under which every score moves by at most 1, under add-remove all of them one way.

    Attributes
    ----------
    n_candidates : int
        The public shape.
    unit, neighbours : str

    Raises
    ------
    DataError
        If there is not one end for each start.

    Privacy
    -------
    Unit : one record; or all records of one id, of which the caller counts one.
    Sensitivity : 1 for every range: a record is a mistake of it or is none.

    Examples
    --------
    >>> from secretballot.ensemble.range_scores import PrivateRangeScores
    >>> scores = PrivateRangeScores([3, 4], [3, 2], unit="record", neighbours="add-remove")
    >>> scores.n_candidates
    4
    """

    __slots__ = ("__ends", "__starts", "neighbours", "unit")
    _refusal = "private scores refuse to {}; choose by them through the door."

    def __init__(self, starts: ArrayLike, ends: ArrayLike, unit: str, neighbours: str) -> None:
        self.__starts, self.__ends = np.asarray(starts), np.asarray(ends)
        shapes = self.__starts.shape, self.__ends.shape
        if shapes[0] != shapes[1] or len(shapes[0]) != 1 or not shapes[0][0]:
            raise DataError(
                Parameter("starts"),
                f" have shape {shapes[0]} and ends {shapes[1]}; give one of each for every place.",
            )
        self.unit = check_choice("unit", unit, ("record", "user"))
        self.neighbours = check_choice("neighbours", neighbours, NEIGHBOURS)

    @property
    def n_candidates(self) -> int:
        """Number of ranges, no range included."""
        m = len(self.__starts)
        return m * (m + 1) // 2 + 1

    def number(self, drawn: tuple[int, int] | None) -> int:
        """Return the number of a range; `IntervalDichotomies` counts in the same order."""
        if drawn is None:
            return 0
        first, last = drawn
        return 1 + first * len(self.__starts) - first * (first - 1) // 2 + last - first

    def open_at_the_door(self) -> tuple[IntArray, IntArray]:
        """Return copies of starts and ends, int64; for the door alone.

        Privacy
        -------
        The returned values are private: whoever calls this must draw by them with noise, and pay
        for it.
        """
        return self.__starts.astype(np.int64), self.__ends.astype(np.int64)

    def __repr__(self) -> str:
        return f"PrivateRangeScores(n_candidates={self.n_candidates}, values=<private>)"
