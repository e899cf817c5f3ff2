"""Private integers with a public shape: votes, sums over records, scores.

How far one unit moves them is checked here, or follows from how they are made here. They leave by
`_unseal` alone, which `releasing` calls.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot.core.errors import DataError, Parameter, wrong
from secretballot.core.exponential import MAX_SCORE
from secretballot.core.types import (
    LARGEST,
    FloatArray,
    Guarantee,
    IntArray,
    Model,
    Sample,
    ScoreShape,
    SumShape,
    VoteShape,
)

#: No count or score is larger, in size.
MOST = 10**12

#: Integers of three arrays, row by row: see `RecordSums`.
Rows = tuple[IntArray, IntArray, IntArray]
#: ``run(work, tasks, *shared)`` yields ``work(*task, *shared)`` of each task once, in any order.
Runner = Callable[..., Iterable[IntArray]]


def run_here(
    work: Callable[..., IntArray], tasks: Iterable[tuple[Any, ...]], *shared: Any
) -> Iterator[IntArray]:
    """Yield what a function returns for each task, one after the other."""
    return (work(*task, *shared) for task in tasks)


class Private:
    """Refuse every way in which Python, numpy or a notebook would take values out of an object
    unasked.

    A subclass may say in `_refusal` who refuses, and what to do instead; and shows in its repr what
    is public.
    """

    __slots__ = ()
    _refusal: ClassVar[str] = (
        "private values are not shown, taken apart, copied or kept; release them through"
        " secretballot.release."
    )

    def _refuse(self, *args: object, **named: object) -> NoReturn:
        raise TypeError(self._refusal)

    __array__ = __iter__ = __len__ = __getitem__ = __contains__ = __float__ = _refuse
    __reduce_ex__ = __getstate__ = __dataframe__ = _refuse

    def __bool__(self) -> bool:
        return True


class Sealed(Private):
    """A public shape and private integers. Two containers are equal if they are the same object.

    Attributes
    ----------
    shape : VoteShape, SumShape or ScoreShape
    """

    __slots__ = ("__integers", "shape")
    shape: Model

    def __init__(self, shape: Model, *integers: IntArray) -> None:
        self.shape, self.__integers = shape, integers
        for one in integers:
            one.setflags(write=False)

    def _unseal(self) -> tuple[IntArray, ...]:
        """Return the integers, read-only. Whoever calls this adds noise, which was paid for."""
        return self.__integers

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.shape!r}, values=<private>)"


class Votes(Sealed):
    """Votes by query and class.

    Make them with `of_teachers` or `of_records`.

    Attributes
    ----------
    shape : VoteShape
    classes : tuple
        Class values in the order of the columns; public.

    Examples
    --------
    >>> from secretballot.core.types import Guarantee
    >>> votes = sb.Votes.of_teachers([[3, 97]], Guarantee(unit="user", relation="add-remove"))
    >>> votes.shape.n_teachers, repr(votes)[-17:]
    (100, 'values=<private>)')
    """

    __slots__ = ("classes",)
    shape: VoteShape

    def __init__(self, shape: VoteShape, classes: Iterable[Any] | None, *integers: IntArray):
        super().__init__(shape, *integers)
        self.classes = tuple(range(shape.n_classes) if classes is None else classes)
        if len(self.classes) != shape.n_classes:
            raise wrong("classes", self.classes, f"of length {shape.n_classes}, as rows of votes")

    @classmethod
    def of_teachers(
        cls,
        counts: ArrayLike,
        guarantee: Guarantee,
        *,
        moved: int | None = None,
        sample: Sample | None = None,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Take the counts of teachers that have one vote in each row.

        Parameters
        ----------
        counts : array of int, shape (n_queries, n_classes)
        guarantee : Guarantee
            One unit of it reaches one teacher.
        moved : int, optional
            Rows in which one teacher can vote otherwise; all of them by default.
        sample : Sample, optional
            Of the records that the teachers learned from.
        classes : sequence of length n_classes, optional
            0 to n_classes - 1 where none are given.

        Raises
        ------
        DataError
            If the counts are not one vote from each teacher in each row; none is named.

        Privacy
        -------
        Sensitivity : in each of `moved` rows one vote goes from one class to another.
        """
        table = _table(counts)
        k = int(table[0].sum())
        if not k > 0 or not (table.sum(axis=1) == k).all():
            raise DataError(Parameter("counts"), " are not one vote from each teacher in each row.")
        shape = VoteShape(
            guarantee=guarantee,
            n_queries=len(table),
            n_classes=table.shape[1],
            n_teachers=k,
            moved=len(table) if moved is None else moved,
            sample=sample,
        )
        return cls(shape, classes, table, np.broadcast_to(np.int64(0), table.shape))

    def against(self, predicted: ArrayLike) -> Self:
        """Return the same votes of teachers beside what a student of released labels predicts.

        Parameters
        ----------
        predicted : array of int, shape (n_queries, n_classes)
            In votes; public.

        Raises
        ------
        DataError
            If they have another shape.
        """
        table, against = Sealed._unseal(self)[0], np.array(predicted)
        if against.shape != table.shape or against.dtype.kind not in "iu":
            raise DataError(Parameter("predicted"), " have not the shape of the votes.")
        k = self.shape.n_teachers or 0
        return type(self)(self.shape, self.classes, table, np.clip(against, -k, k).astype(np.int64))

    @classmethod
    def of_records(
        cls,
        cells: Iterable[IntArray],
        guarantee: Guarantee,
        *,
        n_queries: int,
        n_classes: int,
        votes_per_record: int,
        spare_rows: int = 0,
        classes: Sequence[Any] | None = None,
    ) -> Self:
        """Count the votes of records.

        Parameters
        ----------
        cells : iterable of arrays of int, shape (n_records, votes_per_record)
            Block by block, where each record votes: the number of a cell of the table of shape
            (n_queries + spare_rows, n_classes), row by row. Of every unit one record, whose cells
            follow from itself and public values alone.
        guarantee : Guarantee
        n_queries, n_classes, votes_per_record, spare_rows : int
            Public.
        classes : sequence of length n_classes, optional

        Raises
        ------
        DataError
            If a record does not vote for so many cells of the table, each once; none is named.

        Privacy
        -------
        Sensitivity : a record that comes or goes moves `votes_per_record` cells by one; one that is
            replaced at most twice as many.
        """
        replaced = guarantee.relation == "replace-one"
        shape = VoteShape(
            guarantee=guarantee,
            n_queries=n_queries,
            n_classes=n_classes,
            n_teachers=None,
            moved=2 * votes_per_record if replaced else votes_per_record,
            spare_rows=spare_rows,
        )
        total = np.zeros((n_queries + spare_rows) * n_classes, dtype=np.int64)
        for block in cells:
            voted = np.array(block)
            fits = voted.shape[1:] == (votes_per_record,) and voted.dtype.kind in "iu"
            if fits:
                voted.sort(axis=1)
                inside = (voted >= 0) & (voted < len(total))
                fits = bool(inside.all() and np.diff(voted).all())
            if not fits:
                raise DataError(f"Records do not name {votes_per_record} cells of the table each.")
            total += np.bincount(voted.ravel().astype(np.int64), minlength=len(total))
        # a bound that no real table meets: it moves no count by more than what it bounds moves
        return cls(shape, classes, np.minimum(total, MOST).reshape(-1, n_classes))

    def take(self, rows: ArrayLike) -> "Votes":
        """Return the votes on some queries, with the spare rows.

        Parameters
        ----------
        rows : array-like of int, shape (l,)
            From 0, at least one, each once: what is there twice would move twice.

        Raises
        ------
        ParameterError
            If they are not.
        """
        chosen, n_queries = np.asarray(rows), self.shape.n_queries
        whole = chosen.ndim == 1 and chosen.dtype.kind in "iu" and chosen.size
        if not whole or len(np.unique(chosen[(chosen >= 0) & (chosen < n_queries)])) < chosen.size:
            wanted = f"whole numbers from 0 to {n_queries - 1}, one or more, each once"
            raise wrong("rows", rows, wanted)
        parts = (np.concatenate([one[chosen], one[n_queries:]]) for one in Sealed._unseal(self))
        return Votes(self.shape.first(len(chosen)), self.classes, *parts)


class RecordSums(Sealed):
    """The sum of one bounded vector for each unit.

    Make it with `of_products` or `of_labels`.

    Attributes
    ----------
    shape : SumShape
    """

    __slots__ = ()
    shape: SumShape

    @classmethod
    def of_products(
        cls,
        parts: Iterable[Any],
        rows_of: Callable[[Any], Iterable[Rows]],
        bound: int,
        guarantee: Guarantee,
        *,
        coordinates: int,
        run: Runner = run_here,
    ) -> Self:
        """Add up products of rows with rows, and what is beside them.

        Parameters
        ----------
        parts : iterable
            Whatever `rows_of` takes. Every unit is in one part as a whole.
        rows_of : callable
            From a part to blocks of (left, right, beside), of shapes (n, a), (n, b) and (n, c).
            Integers; a * b + c is `coordinates`. The vector of row i is the outer product of
            ``left[i]`` and ``right[i]``, and ``beside[i]`` after it. One row for each unit, which
            follows from that unit and public values alone.
        bound : int
            A vector of a larger L2 norm is left out.
        guarantee : Guarantee
        coordinates : int
        run : callable, optional
            Adds up each part, wherever it may be: a task may be tried again, and counts once. Here
            by default.

        Raises
        ------
        DataError
            If the blocks do not fit; no value is named.

        Privacy
        -------
        Sensitivity : `bound` in L2 norm for a unit that comes or goes, twice that for one that is
            replaced. Norms are compared in integers, and the sum is exact, hence the same in any
            order and in any blocks.
        """
        moved = 2 * bound if guarantee.relation == "replace-one" else bound
        shape = SumShape(guarantee=guarantee, coordinates=coordinates, squared_sensitivity=moved**2)
        total = np.zeros(coordinates, dtype=np.int64)
        tasks = ((part,) for part in parts)
        for found in run(_sum_of_part, tasks, rows_of, bound, coordinates):
            total += found
        return cls(shape, total)

    @classmethod
    def of_labels(
        cls,
        blocks: Iterable[tuple[IntArray, IntArray, IntArray]],
        unit: int,
        squared_sensitivity: int,
        *,
        coordinates: int,
    ) -> Self:
        """Add up public rows times what is missed of private labels.

        Parameters
        ----------
        blocks : iterable of (rows, labels, predicted), of shapes (n, a), (n,) and (n, b)
            Integers; a * b is `coordinates`. Rows and predictions are public. Label k is `unit` in
            column k and 0 elsewhere; of one column, which is that of label 1, alike.
        unit : int
        squared_sensitivity : int
            A row that could move the sum by a larger squared L2 norm is left out.
        coordinates : int

        Raises
        ------
        DataError
            If the blocks do not fit; no value is named.

        Privacy
        -------
        Sensitivity : a replaced label moves two columns by `unit` times its row, or the only one.
        """
        guarantee = Guarantee(unit="label", relation="replace-one")
        shape = SumShape(
            guarantee=guarantee, coordinates=coordinates, squared_sensitivity=squared_sensitivity
        )
        total = np.zeros(coordinates, dtype=np.int64)
        bound = math.isqrt(squared_sensitivity)
        for block in blocks:
            rows, labels, predicted = map(np.array, block)
            n_columns = predicted.shape[1]
            whole = labels.dtype.kind in "iu" and predicted.dtype.kind in "iu"
            fits = labels.shape == (len(rows),) and rows.shape[1] * n_columns == coordinates
            if not (whole and fits):
                raise DataError("Blocks of labels are no integers, or do not fit the sum.")
            indicator = labels[:, None] == (np.arange(n_columns) if n_columns > 1 else 1)
            # what of a label moves is kept apart, so that it decides alone which rows are left out
            moved = np.full((len(rows), 1 if n_columns == 1 else 2), unit)
            left, fixed = _floats((rows, moved), bound)
            left *= _fits(left, fixed, squared_sensitivity)[:, None]
            missed = unit * indicator - np.clip(predicted, -unit, unit)
            # products of at most twice the bound
            total += _exact_products(left, missed.astype(np.float64), 2 * bound)
        return cls(shape, total)


class Scores(Sealed):
    """The score of each of some candidates, or of each range of places.

    Make them with `of_candidates` or `of_ranges`.

    Attributes
    ----------
    shape : ScoreShape
    """

    __slots__ = ()
    shape: ScoreShape

    @property
    def n_candidates(self) -> int:
        """Number of candidates; public."""
        first, *last = Sealed._unseal(self)
        m = len(first)
        return m * (m + 1) // 2 + 1 if last else m

    @classmethod
    def of_candidates(cls, scores: ArrayLike, guarantee: Guarantee) -> Self:
        """Take the scores of candidates.

        Parameters
        ----------
        scores : array of int, shape (n_candidates,)
            On how many units each candidate is right; one unit counts once. Or the mistakes below
            0. The candidates do not depend on these units.
        guarantee : Guarantee

        Raises
        ------
        DataError
            If they are no list of integers; none is named.

        Privacy
        -------
        Sensitivity : 1 for every score; under add-remove all move one way.
        """
        return cls(ScoreShape(guarantee=guarantee), _scores(scores))

    @classmethod
    def of_ranges(cls, starts: ArrayLike, ends: ArrayLike, guarantee: Guarantee) -> Self:
        """Take the scores of all ranges of m places by their ends.

        The range from place i to place j >= i has the score ``starts[i] - ends[j]``, no range the
        score 0; or all so much less, which no choice sees. There are m (m + 1) / 2 + 1 candidates:
        no range, then by first place, then by last place.

        Parameters
        ----------
        starts, ends : array of int, shape (m,)
        guarantee : Guarantee

        Raises
        ------
        DataError
            If there is not one end for each start.

        Privacy
        -------
        Sensitivity : 1 for every range: a unit is a mistake of it or is none.
        """
        first, last = _scores(starts), _scores(ends)
        if len(first) != len(last):
            raise DataError(Parameter("ends"), " are not one for each start.")
        return cls(ScoreShape(guarantee=guarantee), first, last)


def _table(values: ArrayLike) -> NDArray[Any]:
    """Return a copy of a table of counts, int64."""
    table = np.array(values)  # first, as another thread may write into what was given
    if table.dtype.kind not in "iu" or table.ndim != 2 or not table.shape[0] or table.shape[1] < 2:
        raise DataError(
            Parameter("counts"),
            " are no integers, a row for each query and a column for each of two or more classes.",
        )
    # before any is added up: sums of larger ones would wrap
    if not ((table >= 0) & (table <= MOST)).all():
        raise DataError(Parameter("counts"), " are below 0 or too large.")
    return np.ascontiguousarray(table, dtype=np.int64)


def _scores(values: ArrayLike) -> IntArray:
    """Return a copy of a list of scores, int64; cut to what can be drawn from, which moves none
    by more."""
    table = np.asarray(values)
    if table.dtype.kind not in "iu" or table.ndim != 1 or not table.size:
        raise DataError(Parameter("scores"), " are no list of integers.")
    return np.asarray(np.clip(table, -MAX_SCORE, MAX_SCORE), dtype=np.int64)


def _floats(parts: tuple[IntArray, ...], bound: int) -> tuple[FloatArray, ...]:
    """Return integers as floats, exactly; rows with one that no short vector has are zero."""
    # copies without a mask or comparisons of their own, which nobody changes after they are checked
    parts = tuple(map(np.array, parts))
    if any(one.ndim != 2 or one.dtype.kind not in "iu" for one in parts):
        raise DataError("Vectors are no tables of integers.")
    short = [((one >= -bound) & (one <= bound)).all(axis=1) for one in parts]
    floats, long = tuple(one.astype(np.float64) for one in parts), ~np.all(short, axis=0)
    for one in floats:
        one[long] = 0
    return floats


def _squares(rows: FloatArray) -> IntArray:
    """Return the squared norm of each row: exact up to 2^53, and above where it is above."""
    found = np.einsum("ij,ij->i", rows, rows)
    return np.asarray(np.minimum(found, 2.0**54), dtype=np.int64)


def _fits(left: FloatArray, right: FloatArray, squared: int | IntArray) -> NDArray[np.bool_]:
    """Return which products of rows have at most a squared norm, without a product of squares."""
    most = squared // np.maximum(_squares(right), 1)
    return _squares(left) <= most


def _sum_of_part(
    part: Any, rows_of: Callable[[Any], Iterable[Rows]], bound: int, coordinates: int
) -> IntArray:
    """Return the sum of the vectors of one part that are within the bound, int64."""
    total = np.zeros(coordinates, dtype=np.int64)
    for block in rows_of(part):
        left, right, beside = _floats(block, bound)
        rest = bound**2 - _squares(beside)
        fits = (rest >= 0) & _fits(left, right, rest)
        left[~fits] = beside[~fits] = 0
        products = _exact_products(left, right, bound)
        found = np.concatenate([products, beside.astype(np.int64).sum(axis=0)])
        if len(found) != coordinates:
            raise DataError("Blocks of vectors do not have the coordinates of the sum.")
        total += found
    return total


def _exact_products(left: FloatArray, right: FloatArray, bound: int) -> IntArray:
    """Return left^T right as a row of int64, of floats without a fraction whose products are at
    most `bound`: float sums of so many are exact."""
    total = np.zeros((left.shape[1], right.shape[1]), dtype=np.int64)
    size = max(1, LARGEST // max(1, bound))
    for start in range(0, len(left), size):
        part = slice(start, start + size)
        total += (left[part].T @ right[part]).astype(np.int64)
    return total.ravel()
