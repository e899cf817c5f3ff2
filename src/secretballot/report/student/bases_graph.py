"""Public bases as ONNX: integers in doubles, so that a row has the coordinates it has in Python."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from secretballot._typing import AnyArray, FloatArray, IntArray
from secretballot.bases import GraphBasis, ImageBasis, KernelBasis, TableBasis, images
from secretballot.bases.columns import BENDS, ONE, LevelColumn, NumberColumn
from secretballot.bases.graph import FINER_BITS
from secretballot.bases.kernel import EXPONENT_STEPS, kernel_table
from secretballot.bases.vectors import MOST_DEVIATIONS, STEPS_PER_DEVIATION
from secretballot.exceptions import DataError
from secretballot.report.student.graph import MISSING_TEXTS, Value

Points = Value | Sequence[Value]  # one matrix, or its columns by themselves
_LARGEST = np.finfo(np.float64).max


def holds_texts(column: object) -> bool:
    """Return whether a column of a basis has a level that is a text."""
    return isinstance(column, LevelColumn) and any(isinstance(one, str) for one in column.levels)


def joined_points(points: Points) -> Value:
    """Return points as one matrix."""
    return points if isinstance(points, Value) else points[0].graph.joined(points)


def add_basis(basis: Any, points: Points) -> Value:
    """Add the map from points to coordinates, and return its output.

    Parameters
    ----------
    basis : fitted TableBasis, KernelBasis or GraphBasis
    points : Value or sequence of Value
        Doubles of shape (n, n_features); or each column by itself, of shape (n, 1), texts where the
        basis has texts.

    Raises
    ------
    DataError
        If the basis is of another kind, or wants texts of numbers.
    """
    if isinstance(basis, GraphBasis):
        vectors = joined_points(points)
        if isinstance(basis, ImageBasis):
            vectors = _add_maps(vectors, basis)
        return _add_modes(vectors, basis)
    if isinstance(basis, TableBasis):
        features = _add_columns(points, basis)
    elif isinstance(basis, KernelBasis):
        features = _add_likeness(joined_points(points), basis)
    else:
        raise DataError(
            f"the basis {type(basis).__name__} has no ONNX form; use a TableBasis, a KernelBasis"
            " or a GraphBasis"
        )
    rotation = basis._rotation
    half: IntArray = (1 << (rotation.shift - 1)) - rotation.offset
    coordinates: Value = (features @ rotation.weights + half) // (1 << rotation.shift)
    return coordinates


def add_cells(basis: Any, points: Points) -> Value:
    """Add what trees compare, and return it, of shape (n, n_cells).

    Parameters and errors are those of `add_basis`.
    """
    codes = []
    for place, column in enumerate(basis._columns):
        own = _cells_of(points, place, column)
        if isinstance(column, NumberColumn):
            absent, values = _plain_values(own)
            codes.append(absent.where([[-ONE - 1.0]], _add_ranks(values, column.sorted_values)))
        else:
            codes.append(_level_places(own, column))
    return codes[0].graph.joined(codes)


def _add_columns(points: Points, basis: TableBasis) -> Value:
    """Add the features of every column of a table."""
    features = []
    for place, column in enumerate(basis._columns):
        own = _cells_of(points, place, column)
        if isinstance(column, NumberColumn):
            features += _add_numbers(own, column)
        elif holds_texts(column):
            each = _level_places(own, column).equals([range(len(column.levels))])
            features.append(each.as_numbers() * ONE)
        else:
            features += _add_levels(own, column)
    return features[0].graph.joined(features)


def _cells_of(points: Points, place: int, column: object) -> Value:
    """Return one column of the points."""
    if not isinstance(points, Value):
        return points[place]
    if holds_texts(column):
        raise DataError("the basis has texts; give the public points as a frame")
    return points.columns([place])


def _add_levels(cells: Value, column: LevelColumn) -> list[Value]:
    """Add the features of levels, which are numbers or missing."""
    found = [
        cells.is_nan() if level is None else cells.equals([[level]]) for level in column.levels
    ]
    return [one.as_numbers() * ONE for one in found]


def _level_places(cells: Value, column: LevelColumn) -> Value:
    """Add the place of the level, -1 for one that the basis does not know."""
    levels = column.levels
    if not holds_texts(column):
        if not levels:
            return cells.zeros(1) + -1.0
        numbers = np.arange(1, len(levels) + 1)[:, None] / ONE
        return cells.graph.joined(_add_levels(cells, column)) @ numbers + -1.0
    keys = ["" if one is None else one if isinstance(one, str) else f"{one:g}" for one in levels]
    places = cells.places_among({key: place for place, key in enumerate(keys)}, -1)
    if None in levels:
        missing, integers = cells.matches(MISSING_TEXTS), cells.graph.integers
        unknown = places.equals(integers([[-1]]))
        places = (missing & unknown).where(integers([[levels.index(None)]]), places)
    return places.as_numbers()


def _add_numbers(cells: Value, column: NumberColumn) -> list[Value]:
    """Add bins, rank, its bend, spike and missing values of a column of numbers."""
    absent, values = _plain_values(cells)
    plain, joined = (~absent).as_numbers(), cells.graph.joined
    spiked = []
    if column.spike is not None:
        spiked = [values.equals([[column.spike]]).as_numbers() * plain]
        plain -= spiked[0]
    bins = plain
    if len(column.edges):
        reached = _reached(values, column.edges)
        bins = joined([plain, reached]) - joined([reached, plain * 0.0])
    ranks = _add_ranks(values, column.sorted_values) * plain
    bends = (ranks + float(ONE)).as_integers().rows_of(BENDS)
    found = [bins * plain * ONE, ranks, bends]
    missing = [absent.as_numbers()] if column.missing else []
    return [*found, *(one * ONE for one in (*spiked, *missing))]


def _plain_values(cells: Value) -> tuple[Value, Value]:
    """Return which cells are missing, and the values of all, 0 for these."""
    absent = cells.is_nan()
    # a missing cell goes on as 0: NaN would stay NaN in every product
    return absent, absent.where([[0.0]], cells).clipped([[-_LARGEST]], [[_LARGEST]])


def _reached(values: Value, thresholds: FloatArray) -> Value:
    """Return, for every threshold, whether the value is at least as large."""
    return (values >= thresholds[None, :]).as_numbers()


def _add_ranks(values: Value, sorted_values: FloatArray) -> Value:
    """Add the rank among the pool's values, a step function, by its steps."""
    thresholds, steps = _rank_steps(sorted_values)
    return _reached(values, thresholds) @ steps[:, None] + [[-ONE]]


def _rank_steps(sorted_values: FloatArray) -> tuple[FloatArray, IntArray]:
    """Return where the rank climbs from -`ONE`, and how far: at a value, and right behind it."""
    distinct, below = np.unique(sorted_values, return_index=True)
    upto = np.append(below[1:], len(sorted_values))
    at = (below + upto) * ONE // len(sorted_values)
    behind = 2 * upto * ONE // len(sorted_values)
    thresholds = np.column_stack([distinct, np.nextafter(distinct, np.inf)]).ravel()
    steps = np.diff(np.column_stack([at, behind]).ravel(), prepend=0)
    # a value beyond the largest double is cut to it, and nothing is behind it
    climbs = (steps > 0) & np.isfinite(thresholds)
    return thresholds[climbs], steps[climbs]


def _rounded(cells: Value, basis: KernelBasis | GraphBasis) -> Value:
    """Add numbers as integers, steps of the public points' deviations."""
    steps = (cells - basis._centre) / basis._spread * STEPS_PER_DEVIATION
    end = float(STEPS_PER_DEVIATION * MOST_DEVIATIONS)
    return steps.is_nan().where([0.0], steps).clipped([-end], [end]).rounded()


def squared_distances(points: Value, others: AnyArray) -> Value:
    """Add squared distances to other points, of shape (n, n_others): exact of integers."""
    squares: FloatArray = (others.astype(np.float64) ** 2).sum(axis=1)
    return (points * points).sums() + points @ (-2.0 * others.T) + squares


def _add_likeness(cells: Value, basis: KernelBasis) -> Value:
    """Add the kernel of every landmark."""
    if basis.ranked:
        cells = _ranked(cells, basis._sorted_values)
    scaled = squared_distances(_rounded(cells, basis), basis._landmarks) * EXPONENT_STEPS
    quotient = scaled // basis._median
    # a quotient that was rounded up to an integer leaves less than nothing
    too_many = (scaled - quotient * basis._median < 0.0).as_numbers()
    table = kernel_table()
    return (quotient - too_many).at_most(len(table) - 1.0).as_integers().rows_of(table)


def _ranked(cells: Value, sorted_values: Sequence[FloatArray]) -> Value:
    """Add the rank of every cell in its column; what is missing stays so."""
    columns = []
    for place, values in enumerate(sorted_values):
        own = cells.columns([place])
        ranks = _add_ranks(own, values) if len(values) else [[0.0]]
        columns.append(own.is_nan().where(own, ranks))
    return cells.graph.joined(columns)


def _add_maps(cells: Value, basis: ImageBasis) -> Value:
    """Add the roots of the shares of all maps of images."""
    graph = cells.graph
    steps = (cells - basis.black_) / basis.range_ * images.BRIGHTEST
    pixels = steps.is_nan().where([0.0], steps).clipped(0.0, images.BRIGHTEST).rounded()
    shape = graph.integers([-1, basis.side_, basis.side_])
    whole = graph.add("Reshape", pixels, shape)

    def both(rows: FloatArray, parts: Value, columns: FloatArray) -> Value:
        return graph.constant(rows.T) @ parts @ columns

    smooth, slope = images.gradients(basis.side_)
    down, across = both(slope, whole, smooth), both(smooth, whole, slope)
    parts = [across * right + down * below for right, below in images.directions()]
    most = graph.add("Max", *parts) * images.SHARPENED
    blurred = images.blurring(basis.side_)
    kept = [(part * images.WEIGHT - most).at_least(0.0) for part in parts]
    maps = [graph.add("Flatten", both(blurred, part, blurred), axis=1) for part in kept]
    table = graph.joined(maps)
    return (table / table.sums().at_least(1.0)).root()


def _add_modes(cells: Value, basis: GraphBasis) -> Value:
    """Add the mean values at the nearest public points, itself left out where it is one of them."""
    points, k = basis._points.astype(np.int64), basis.n_nearest
    least, places = squared_distances(_rounded(cells, basis), points).nearest(k + 1)
    first = least.columns([0]).equals([[0.0]])
    nearest = first.where(places.columns(range(1, k + 1)), places.columns(range(k)))
    sums = nearest.rows_of(basis._values).sums(keep=False)
    half: IntArray = (1 << (FINER_BITS - 1)) - basis._offset
    return (sums + half) // (1 << FINER_BITS)
