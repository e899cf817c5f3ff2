"""Votes of teachers that were trained elsewhere, given teacher by teacher or counted; votes of
records: each gives its class to the public points nearest to it; and how clearly votes are cast.

Margins are private: one record moves one vote at every query, so that counts of clear queries,
means and curves of margins are as private as the votes. Nothing of this may be published without
noise and a price, and settings of a later run must not be chosen by it. What is stated of the
Tsybakov condition is as public as the regression function that it is given: one that is known, or
estimated on public labelled points."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from secretballot._points import NearestPoints
from secretballot._typing import AnyArray, BoolArray, FloatArray, IntArray, Names, Pair
from secretballot._validation import (
    BALLOTS,
    check_choice,
    check_count,
    check_finite,
    check_probability,
    refusal,
    shown,
)
from secretballot.core.private import Votes
from secretballot.core.types import Guarantee, VoteShape
from secretballot.data.tally import guarantee_of as guarantee_of
from secretballot.exceptions import DataError, Parameter

#: How a set of labels is counted: label by label, or as one of all sets.
_MOST_LABELS, _MOST_IN_SETS = 10_000, 8
_MOST_POSITIONS = 2**12


def checked_labels(labels: Any) -> Names:
    """Return the names of labels.

    Raises
    ------
    ParameterError
        If they are no list of distinct names.
    """
    names = [] if isinstance(labels, str) or not isinstance(labels, Iterable) else [*labels]
    texts = all(isinstance(name, str) and name.strip() and name.isprintable() for name in names)
    if not names or not texts or len(set(names)) < len(names) or len(names) > _MOST_LABELS:
        raise refusal(
            "labels",
            f" is {shown(labels)}; give at most {_MOST_LABELS} distinct names of the columns of y,"
            " such as ['ill', 'old']: they are public.",
        )
    return tuple(str(name) for name in names)


def _check_ballot(ballot: object, most_named: object, n_labels: int) -> int | None:
    """Return the cap on the labels that one teacher names, None where there is none.

    Raises
    ------
    ParameterError
        If the ballot is unknown, has too many labels for sets, or the cap is out of range.
    """
    check_choice("ballot", ballot, BALLOTS)
    if ballot == "sets" and not (2 <= n_labels <= _MOST_IN_SETS and most_named is None):
        raise refusal(
            "ballot",
            f" is 'sets', for 2 to {_MOST_IN_SETS} labels without most_named, and there are"
            f" {n_labels}; use 'labels'.",
        )
    if most_named is None:
        return None
    cap = check_count("most_named", most_named)
    if not cap <= n_labels:
        raise refusal("most_named", f" is {cap} of {n_labels} labels; give at most all of them.")
    return cap


def _as_set_numbers(named: AnyArray) -> IntArray:
    """Return each row of 0 and 1 as the number of its set: label j counts 2^j.

    From shape (..., n_labels) to shape (...).
    """
    return np.asarray(named, dtype=np.int64) @ (1 << np.arange(named.shape[-1]))


def from_set_numbers(numbers: IntArray, n_labels: int) -> IntArray:
    """Return rows of 0 and 1, shape (n, n_labels), from the numbers of sets."""
    return (np.asarray(numbers)[:, None] >> np.arange(n_labels)) & 1


def label_shape(
    n_points: int,
    n_labels: int,
    n_teachers: int,
    guarantee: Guarantee,
    *,
    ballot: str = "labels",
    most_named: int | None = None,
) -> VoteShape:
    """Return the shape of votes for sets of labels, as `counted_labels` counts them."""
    cap, sets = _check_ballot(ballot, most_named, n_labels), ballot == "sets"
    return VoteShape(
        guarantee=guarantee,
        n_queries=n_points * (1 if sets else n_labels),
        n_classes=2**n_labels if sets else 2,
        n_teachers=n_teachers,
        moved=n_points * (1 if sets else _moved_by_point(n_labels, cap)),
    )


def label_votes(
    votes: Any,
    labels: Sequence[str],
    *,
    ballot: str = "labels",
    most_named: int | None = None,
    unit: str = "record",
    relation: str = "add-remove",
) -> Votes:
    """Count votes for sets of labels, given teacher by teacher.

    Parameters
    ----------
    votes : array-like of 0 and 1, shape (n_queries, n_teachers, n_labels)
    labels, ballot, most_named
        As for `counted_labels`.
    unit, relation
        As for `votes_of_teachers`.

    Raises
    ------
    ParameterError
        If a setting is out of its range.
    DataError
        If a vote is neither 0 nor 1, or shapes do not fit; no vote is named.

    Examples
    --------
    >>> votes = np.array([[[1, 0, 1], [1, 0, 0]]])  # one query, two teachers, three labels
    >>> found = sb.teachers.label_votes(votes, ["a", "b", "c"], most_named=1)
    >>> found.shape.n_queries, found.shape.moved  # a row for each label
    (3, 2)
    """
    cast = np.asarray(votes)
    names = checked_labels(labels)
    fits = cast.ndim == 3 and cast.shape[2] == len(names) and 0 not in cast.shape
    if not fits or cast.dtype.kind not in "biuf" or not ((cast == 0) | (cast == 1)).all():
        raise DataError(
            Parameter("votes"),
            f" have shape {cast.shape}; give 0 and 1, (n_queries, n_teachers, {len(names)}).",
        )
    ballots = ((one.astype(bool), None) for one in np.moveaxis(cast, 1, 0))
    promise = guarantee_of(unit, relation)
    return counted_labels(ballots, names, promise, ballot=ballot, most_named=most_named)


def counted_labels(
    ballots: Iterable[tuple[BoolArray, FloatArray | None]],
    labels: Sequence[str],
    guarantee: Guarantee,
    *,
    ballot: str = "labels",
    most_named: int | None = None,
) -> Votes:
    """Count ballots as they come, one for each teacher.

    Parameters
    ----------
    ballots : iterable of (ndarray of bool, ndarray of float or None)
        Which labels a teacher names, and how sure it is of each, shapes (n_queries, n_labels).
        Of more labels than `most_named` the surest count, or the first where it does not say.
    labels : sequence of distinct str
    guarantee : Guarantee
    ballot : {"labels", "sets"}
        A row of two classes for each label of each query; or one row a query, with sets as classes.
    most_named : int, optional
        No teacher names more labels at a query.

    Privacy
    -------
    Sensitivity : one teacher's set gives way to another one at every query: every label that is in
        one of the two sets alone moves one vote. These are at most as many as there are labels,
        and at most twice `most_named`.
    """
    names = checked_labels(labels)
    cap = _check_ballot(ballot, most_named, len(names))
    total, teachers = None, 0
    # added up as they come: memory holds the counts and one ballot
    for named, sure in ballots:
        one = named if cap is None else _capped(named, cap, sure)
        # of sets a teacher names one
        of_set = np.eye(2 ** len(names), dtype=np.int64) if ballot == "sets" else None
        cells = one.astype(np.int64) if of_set is None else of_set[_as_set_numbers(one)]
        total = cells if total is None else total + cells
        teachers += 1
    assert total is not None  # there is a teacher
    if ballot == "sets":
        return Votes.of_teachers(total, guarantee)
    moved = len(total) * _moved_by_point(len(names), cap)
    ones = total.ravel()
    return Votes.of_teachers(np.column_stack([teachers - ones, ones]), guarantee, moved=moved)


def _moved_by_point(n_labels: int, most_named: int | None) -> int:
    """Return for how many labels of one point one teacher can vote otherwise."""
    return n_labels if most_named is None else min(n_labels, 2 * most_named)


def _capped(named: BoolArray, cap: int, scores: FloatArray | None = None) -> BoolArray:
    """Return a ballot that names at most `cap` labels at each query: the surest, or the first.

    `named` and `scores` have shape (n_queries, n_labels). Reads this one teacher's ballot alone.
    """
    order = np.zeros(named.shape) if scores is None else np.nan_to_num(scores)
    # a label that is not named comes after all that are; equal ones in the order of the labels
    ranks = np.where(named, -order, np.inf)
    first = np.argsort(ranks, axis=1, kind="stable")[:, :cap]
    kept = np.zeros(named.shape, dtype=bool)
    np.put_along_axis(kept, first, values=True, axis=1)
    return kept & named


def checked_range(bounds: Any) -> Pair:
    """Return two public bounds, the smaller one first.

    Raises
    ------
    ParameterError
        If they are no two finite numbers, the smaller one first.
    """
    pair = [*bounds] if isinstance(bounds, list | tuple | np.ndarray) else []
    low, high = (check_finite("bounds", one) for one in (pair if len(pair) == 2 else (0, 0)))
    if not low < high or not math.isfinite(high - low):
        raise refusal(
            "bounds",
            f" is {' and '.join(map(shown, pair)) or shown(bounds)}; give two public numbers, the"
            " smaller one first, such as 0 and 100: they are never inferred from private targets.",
        )
    return float(low), float(high)


def number_votes(
    votes: Any,
    bounds: Pair,
    *,
    n_positions: int = 200,
    unit: str = "record",
    relation: str = "add-remove",
) -> Votes:
    """Count votes for numbers as votes for the positions of a grid.

    Parameters
    ----------
    votes : array-like of float, shape (n_queries, n_teachers)
        What is beyond the range is cut to it; what is no number votes for the middle.
    bounds : tuple of two floats
        The grid's first and last number.
    n_positions : int
        Numbers of the grid, evenly spaced.
    unit, relation
        As for `votes_of_teachers`.

    Raises
    ------
    ParameterError
        If a setting is out of its range.
    DataError
        If shapes do not fit; no vote is named.

    Examples
    --------
    >>> votes = np.array([[0.2, 0.4, 9.0]])  # one query, three teachers
    >>> sb.teachers.number_votes(votes, (0.0, 1.0), n_positions=11).shape.n_classes
    11
    """
    cast = np.asarray(votes)
    if cast.ndim != 2 or cast.dtype.kind not in "biuf" or 0 in cast.shape:
        raise DataError(
            Parameter("votes"),
            f" have dtype {cast.dtype} and shape {cast.shape}; give numbers of shape"
            " (n_queries, n_teachers).",
        )
    bounds, n = checked_range(bounds), checked_positions(n_positions)
    places = _on_grid(cast.astype(np.float64), bounds, n) + n * np.arange(len(cast))[:, None]
    counts = np.bincount(places.ravel(), minlength=n * len(cast)).reshape(-1, n)
    return Votes.of_teachers(counts, guarantee_of(unit, relation))


def checked_positions(n_positions: object) -> int:
    """Return how many numbers a grid has.

    Raises
    ------
    ParameterError
        If they are fewer than 2 or more than 4,096.
    """
    number = check_count("n_positions", n_positions, minimum=2)
    if not number <= _MOST_POSITIONS:
        raise refusal(
            "n_positions", f" is {number}; a grid has at most {_MOST_POSITIONS} positions."
        )
    return number


def _on_grid(numbers: FloatArray, bounds: Pair, n_positions: int) -> IntArray:
    """Return the nearest positions of numbers, each from itself alone; nan is in the middle.

    The positions have the shape of the numbers.
    """
    low, high = bounds
    cut = np.clip(np.where(np.isnan(numbers), low + (high - low) / 2, numbers), low, high)
    positions = np.rint((cut - low) / (high - low) * (n_positions - 1)).astype(np.int64)
    return np.clip(positions, 0, n_positions - 1)


def record_votes_shape(
    n_queries: int,
    n_classes: int,
    votes_per_record: int,
    guarantee: Guarantee,
    *,
    counts_uncovered: bool = False,
) -> VoteShape:
    """Return the shape of votes that records cast for themselves, as `votes_of_records` does.

    Raises
    ------
    ParameterError
        If a record would vote for more points than there are.
    """
    if not votes_per_record <= n_queries:
        raise refusal(
            "votes_per_record",
            f" is {votes_per_record}, and {n_queries} public points take votes; let a record vote"
            " for no more points than there are.",
        )
    replaced = guarantee.relation == "replace-one"
    return VoteShape(
        guarantee=guarantee,
        n_queries=n_queries,
        n_classes=n_classes,
        n_teachers=None,
        # one that is replaced takes votes away and brings others
        moved=2 * votes_per_record if replaced else votes_per_record,
        spare_rows=-(-votes_per_record // n_classes) if counts_uncovered else 0,
    )


def votes_of_records(
    records: Iterable[tuple[IntArray, IntArray, BoolArray]],
    nearest: NearestPoints,
    classes: Sequence[Any],
    guarantee: Guarantee,
    *,
    counts_uncovered: bool = False,
) -> Votes:
    """Let every record vote, once at each of the `nearest.k` public points nearest to it.

    Parameters
    ----------
    records : iterable of (coordinates, class index, covered)
        Integers of shape (n, n_coordinates) and (n,), and whether the public points cover each,
        bools of shape (n,), block by block. Of every unit one record.
    nearest : NearestPoints
        The public points.
    classes : sequence of length C
        Every class value, declared and not taken from the records.
    guarantee : Guarantee
    counts_uncovered : bool
        Whether there are uncovered records: such a record votes at no public point, and once in
        each of the first `nearest.k` cells of the spare rows.

    Examples
    --------
    >>> from secretballot._points import NearestPoints
    >>> from secretballot.core.types import Guarantee
    >>> from secretballot.teachers.votes import votes_of_records
    >>> nearest = NearestPoints(np.array([[0], [10], [20]]), k=2)
    >>> records = np.array([[4], [17]]), np.array([0, 1]), np.array([True, True])
    >>> promise = Guarantee(unit="record", relation="add-remove")
    >>> votes_of_records([records], nearest, ["no", "yes"], promise).shape.moved
    2
    """
    n_classes = len(classes)
    spare = nearest.n_points * n_classes + np.arange(nearest.k)

    def cells() -> Iterator[IntArray]:
        for coordinates, index, covered in records:
            named = nearest.of(coordinates) * n_classes + np.asarray(index)[:, None]
            named[~np.asarray(covered, dtype=bool)] = spare
            yield named

    return Votes.of_records(
        cells(),
        guarantee,
        n_queries=nearest.n_points,
        n_classes=n_classes,
        votes_per_record=nearest.k,
        spare_rows=-(-nearest.k // n_classes) if counts_uncovered else 0,
        classes=classes,
    )


# Points of the tail below which no exponent is given: its relative error is about one over the root
# of them.
_LEAST_TAIL = 20
# |r - 1/2| that sums of a few rounded chances leave where r is 1/2.
_ROUNDING = 2.5e-16


def vote_margins(counts: npt.ArrayLike) -> IntArray:
    """Return the votes for the first class less those for the second, at every query, shape (m,).

    From so many votes the distance to instability, max(0, ceil(margin / 2) - 1), follows: as many
    teachers may change and the label stays, whatever the rule for ties (Liu et al. 2021,
    Algorithm 2).

    Parameters
    ----------
    counts : array of shape (m, C), int
        Votes per query and class.

    Privacy
    -------
    Sensitivity : one unit moves one vote, hence every margin by up to 2; and a mean, a share or a
        curve of margins by as much as all of it.

    Examples
    --------
    >>> from secretballot.teachers.votes import vote_margins
    >>> vote_margins([[40, 10], [26, 24]]).tolist()
    [30, 2]
    """
    ranked = np.partition(np.asarray(counts, dtype=np.int64), -2, axis=1)
    return ranked[:, -1] - ranked[:, -2]


@dataclass(frozen=True)
class TsybakovFit:
    """What the tail of |r(x) - 1/2| near 0 says of the Tsybakov condition.

    Attributes
    ----------
    tau : float
        From 0, no condition, to 1, bounded (Massart) noise.
    eta : float
        Constant of Lemma 4 at `tau`: no labelling h that flips as many points as the tail has, or
        more, disagrees with the best on more than eta (error of h - error of the best)^tau. For
        fewer flips the fitted tail has the same ratio, while the points themselves tell nothing but
        their luck. At least 1.
    massart : float
        The least |r(x) - 1/2|: under bounded noise that far from 1/2, tau is 1 with eta = max(1, 1
        / (2 massart)).
    n_tail : int
        Points below the level up to which the tail was fitted, or at it where none is below.
    """

    tau: float
    eta: float
    massart: float
    n_tail: int


def tsybakov_fit(regression: npt.ArrayLike, *, tail: float = 0.1) -> TsybakovFit:
    """Estimate (tau, eta) of the Tsybakov condition P(|r(x) - 1/2| <= t) <= C t^(tau / (1 - tau)).

    Source: Liu et al. 2021, Definition 3 and Lemma 4, r(x) = E[y | x]. The exponent a = tau / (1 -
    tau) is the slope of log P(|r - 1/2| <= t) against log t for small t, fitted by maximum
    likelihood on the tail (Hill 1975): 1 / a is the mean of log(level / |r(x) - 1/2|) over the
    tail. Points with r = 1/2 in it give tau = 0, even if only by rounding, taken to be below
    2.5e-16. The relative error of the exponent is about one over the root of `n_tail`. Where many
    points share the level at which the tail would end, it ends below that level, and may be of few
    points; a tail at one level gives tau = 1.
    Bounded noise whose levels differ gives less than 1, and closer to 1 the smaller the tail: a
    finite sample cannot tell a steep tail from a gap, so look at `massart` as well.

    Parameters
    ----------
    regression : array of shape (m,)
        r at independent points, from 0 to 1.
    tail : float
        Share of the points with the least |r - 1/2| to fit, in (0, 1).

    Raises
    ------
    DataError
        If a value is no probability, or the tail has fewer than 20 points.
    """
    margins = _checked_margins(regression)
    share = check_probability("tail", tail)
    size = math.floor(share * len(margins))
    # an exponent fitted to a handful of points would only show their noise
    if not _LEAST_TAIL <= size < len(margins):
        least = math.ceil(_LEAST_TAIL / share)
        raise DataError(
            f"There are {len(margins)} points, whose tail is too short to fit: give at least"
            f" {least}, or a larger tail."
        )
    exponent, n_tail = _tail_exponent(margins, size)
    tau = 1.0 if math.isinf(exponent) else exponent / (1 + exponent)
    eta = _least_constant(margins, tau, n_tail)
    return TsybakovFit(tau, eta, float(margins.min()), n_tail)


def _checked_margins(regression: npt.ArrayLike) -> FloatArray:
    values = np.asarray(regression, dtype=np.float64)
    if values.ndim != 1 or not values.size or not ((values >= 0) & (values <= 1)).all():
        raise DataError(
            Parameter("regression"),
            " must be one probability, from 0 to 1, for each of at least one point.",
        )
    margins = np.abs(values - 0.5)
    return np.where(margins < _ROUNDING, 0.0, margins)


def _tail_exponent(margins: FloatArray, size: int) -> tuple[float, int]:
    """Return the exponent of the tail of so many points, and the points below its end.

    A level that many points share does not belong to the tail where it cuts through them: then the
    tail ends at the next level below, which may leave none below it. They count as the tail that
    they make up themselves.
    """
    least = np.sort(margins)[: size + 1]
    if not least[0] > 0:
        return 0.0, size
    edge, within = least[-1], size
    below = least[least < edge]
    if 0 < below.size < size:
        edge, within = below[-1], below.size
        below = below[below < edge]
    if not below.size:
        return math.inf, within
    return float(below.size / np.log(edge / below).sum()), int(below.size)


def _least_constant(margins: FloatArray, tau: float, fewest: int) -> float:
    """Return the least constant for all labellings that flip at least so many points."""
    m = len(margins)
    excess = np.cumsum(np.sort(2 * margins))[fewest - 1 :] / m
    if tau > 0 and not excess[0] > 0:
        return math.inf
    return max(1.0, float(np.max(np.arange(fewest, m + 1) / m / excess**tau)))
