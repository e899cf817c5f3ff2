"""Public bases as ONNX: integers in doubles, so that a row has the coordinates it has in Python."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from secretballot._typing import AnyArray, FloatArray, IntArray
from secretballot.bases import GraphBasis, ImageBasis, KernelBasis, TableBasis, images
from secretballot.bases.columns import ONE, LevelColumn, NumberColumn
from secretballot.bases.graph import FINER_BITS
from secretballot.bases.kernel import EXPONENT_STEPS, kernel_table
from secretballot.bases.vectors import MOST_DEVIATIONS, STEPS_PER_DEVIATION
from secretballot.exceptions import DataError
from secretballot.report.student.graph import INTEGER, MISSING_TEXTS, Graph

_LARGEST = np.finfo(np.float64).max


def holds_texts(column: object) -> bool:
    """Return whether a column of a basis has a level that is a text."""
    return isinstance(column, LevelColumn) and any(isinstance(one, str) for one in column.levels)


def add_basis(graph: Graph, basis: Any, points: str | Sequence[str]) -> str:
    """Add the map from points to coordinates, and return its output.

    Parameters
    ----------
    graph : Graph
    basis : fitted TableBasis, KernelBasis or GraphBasis
    points : str or sequence of str
        Doubles of shape (n, n_features); or each column by itself, of shape (n, 1), texts where the
        basis has texts.

    Raises
    ------
    DataError
        If the basis is of another kind, or wants texts of numbers.
    """
    if isinstance(basis, TableBasis):
        features = _add_columns(graph, points, basis)
    elif isinstance(basis, KernelBasis | GraphBasis):
        whole = points if isinstance(points, str) else graph.joined(points)
        if isinstance(basis, GraphBasis):
            vectors = _add_maps(graph, whole, basis) if isinstance(basis, ImageBasis) else whole
            return _add_modes(graph, vectors, basis)
        features = _add_likeness(graph, whole, basis)
    else:
        raise DataError(
            f"the basis {type(basis).__name__} has no ONNX form; use a TableBasis, a KernelBasis"
            " or a GraphBasis"
        )
    return _rotated(graph, features, basis)


def add_cells(graph: Graph, basis: Any, points: str | Sequence[str]) -> str:
    """Add what trees compare, and return it, of shape (n, n_cells).

    Parameters and errors are those of `add_basis`.
    """
    codes = []
    for place, column in enumerate(basis._columns):
        own = _cells_of(graph, points, place, column)
        if not isinstance(column, NumberColumn):
            found = _add_text_places if holds_texts(column) else _add_level_places
            codes.append(found(graph, own, column))
            continue
        absent, values = _plain_values(graph, own)
        ranks = _add_ranks(graph, values, column.sorted_values)
        codes.append(graph.where(absent, graph.constant([[-ONE - 1.0]]), ranks))
    return graph.joined(codes)


def _rotated(graph: Graph, features: str, basis: Any) -> str:
    """Add the rotation of features to coordinates."""
    rotation = basis._rotation
    sums = graph.product(features, rotation.weights)
    half = (1 << (rotation.shift - 1)) - rotation.offset
    return graph.quotient(graph.plus(sums, half), 1 << rotation.shift)


def _add_columns(graph: Graph, points: str | Sequence[str], basis: TableBasis) -> str:
    """Add the features of every column of a table."""
    features = []
    for place, column in enumerate(basis._columns):
        own = _cells_of(graph, points, place, column)
        if isinstance(column, NumberColumn):
            features += _add_numbers(graph, own, column)
        elif not holds_texts(column):
            features += _add_levels(graph, own, column)
        else:
            features += _add_text_levels(graph, own, column)
    return graph.joined(features)


def _cells_of(graph: Graph, points: str | Sequence[str], place: int, column: object) -> str:
    """Return one column of the points."""
    if not isinstance(points, str):
        return points[place]
    if holds_texts(column):
        raise DataError("the basis has texts; give the public points as a frame")
    return graph.columns(points, [place])


def _add_level_places(graph: Graph, cells: str, column: LevelColumn) -> str:
    """Add the place of the level, -1 for one that the basis does not know."""
    if not column.levels:
        return graph.plus(graph.zeros(cells, 1), -1.0)
    shown = graph.joined(_add_levels(graph, cells, column))
    numbers = np.arange(1, len(column.levels) + 1)[:, None] / ONE
    return graph.plus(graph.product(shown, numbers), -1.0)


def _add_levels(graph: Graph, cells: str, column: LevelColumn) -> list[str]:
    """Add the features of levels, which are numbers or missing."""
    found = [
        graph.add("IsNaN", [cells])
        if level is None
        else graph.add("Equal", [cells, graph.constant([[level]])])
        for level in column.levels
    ]
    return [graph.times(graph.as_numbers(one), ONE) for one in found]


def _add_text_levels(graph: Graph, cells: str, column: LevelColumn) -> list[str]:
    """Add the features of levels of which some are texts."""
    places = _add_text_places(graph, cells, column)
    each = graph.add("Equal", [places, graph.constant([range(len(column.levels))])])
    return [graph.times(graph.as_numbers(each), ONE)]


def _add_text_places(graph: Graph, cells: str, column: LevelColumn) -> str:
    """Add the place of a level of which some are texts, -1 for one that the basis does not know."""
    keys = [
        "" if one is None else one if isinstance(one, str) else f"{one:g}" for one in column.levels
    ]
    places = add_places(graph, cells, {key: place for place, key in enumerate(keys)}, -1)
    if None in column.levels:
        missing = graph.add("RegexFullMatch", [cells], pattern=MISSING_TEXTS)
        own = graph.constant([[column.levels.index(None)]], np.int64)
        unknown = graph.add("Equal", [places, graph.constant([[-1]], np.int64)])
        places = graph.where(graph.add("And", [missing, unknown]), own, places)
    return graph.as_numbers(places)


def add_places(graph: Graph, texts: str, places: dict[str, int], other: int) -> str:
    """Add the place of each text, as integers of the shape of the texts."""
    return graph.add(
        "LabelEncoder",
        [texts],
        # the operator wants one text at least; no cell of a table is this one
        keys_strings=[*places] or ["\0"],
        values_int64s=[*places.values()] or [other],
        default_int64=other,
    )


def _add_numbers(graph: Graph, cells: str, column: NumberColumn) -> list[str]:
    """Add bins, rank, spike and missing values of a column of numbers."""
    absent, values = _plain_values(graph, cells)
    missing, plain = graph.as_numbers(absent), graph.as_numbers(graph.add("Not", [absent]))
    spiked = None
    if column.spike is not None:
        equal = graph.as_numbers(graph.add("Equal", [values, graph.constant([[column.spike]])]))
        spiked = graph.add("Mul", [equal, plain])
        plain = graph.add("Sub", [plain, spiked])
    bins = plain
    if len(column.edges):
        reached = _add_reached(graph, values, column.edges)
        before = graph.joined([plain, reached])
        after = graph.joined([reached, graph.times(plain, 0.0)])
        bins = graph.add("Sub", [before, after])
    found = [graph.times(graph.add("Mul", [bins, plain]), ONE)]
    found.append(graph.add("Mul", [_add_ranks(graph, values, column.sorted_values), plain]))
    found += [] if spiked is None else [graph.times(spiked, ONE)]
    return [*found, *([graph.times(missing, ONE)] if column.missing else [])]


def _plain_values(graph: Graph, cells: str) -> tuple[str, str]:
    """Return which cells are missing, and the values of all, 0 for these."""
    absent = graph.add("IsNaN", [cells])
    # a missing cell goes on as 0: NaN would stay NaN in every product
    whole = graph.where(absent, graph.constant([[0.0]]), cells)
    return absent, graph.clipped(whole, [[-_LARGEST]], [[_LARGEST]])


def _add_reached(graph: Graph, values: str, thresholds: FloatArray) -> str:
    """Return, for every threshold, whether the value is at least as large."""
    return graph.as_numbers(
        graph.add("GreaterOrEqual", [values, graph.constant(thresholds[None, :])])
    )


def _add_ranks(graph: Graph, values: str, sorted_values: FloatArray) -> str:
    """Add the rank among the pool's values, a step function, by its steps."""
    thresholds, steps = _rank_steps(sorted_values)
    reached = _add_reached(graph, values, thresholds)
    return graph.plus(graph.product(reached, steps[:, None]), [[-ONE]])


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


def _add_rounded(graph: Graph, cells: str, basis: KernelBasis | GraphBasis) -> str:
    """Add numbers as integers, steps of the public points' deviations."""
    apart = graph.add("Sub", [cells, graph.constant(basis._centre)])
    steps = graph.add("Div", [apart, graph.constant(basis._spread)])
    steps = graph.times(steps, STEPS_PER_DEVIATION)
    known = graph.where(graph.add("IsNaN", [steps]), graph.constant([0.0]), steps)
    end = float(STEPS_PER_DEVIATION * MOST_DEVIATIONS)
    return graph.add("Round", [graph.clipped(known, [-end], [end])])


def add_squared_distances(graph: Graph, points: str, others: AnyArray) -> str:
    """Add squared distances to other points, of shape (n, n_others): exact of integers."""
    lengths = graph.sums(graph.add("Mul", [points, points]))
    products = graph.product(points, -2.0 * others.T)
    squares = (others.astype(np.float64) ** 2).sum(axis=1)
    return graph.plus(graph.add("Add", [lengths, products]), squares)


def _add_likeness(graph: Graph, cells: str, basis: KernelBasis) -> str:
    """Add the kernel of every landmark."""
    if basis.ranked:
        cells = _add_ranked(graph, cells, basis._sorted_values)
    squares = add_squared_distances(graph, _add_rounded(graph, cells, basis), basis._landmarks)
    scaled = graph.times(squares, EXPONENT_STEPS)
    quotient = graph.quotient(scaled, basis._median)
    # a quotient that was rounded up to an integer leaves less than nothing
    rest = graph.add("Sub", [scaled, graph.times(quotient, basis._median)])
    too_many = graph.as_numbers(graph.add("Less", [rest, graph.constant(0.0)]))
    places = graph.add("Sub", [quotient, too_many])
    table = kernel_table()
    places = graph.add("Min", [places, graph.constant(len(table) - 1.0)])
    return graph.add("Gather", [graph.constant(table), graph.add("Cast", [places], to=INTEGER)])


def _add_ranked(graph: Graph, cells: str, sorted_values: Sequence[FloatArray]) -> str:
    """Add the rank of every cell in its column; what is missing stays so."""
    columns = []
    for place, values in enumerate(sorted_values):
        own = graph.columns(cells, [place])
        ranks = _add_ranks(graph, own, values) if len(values) else graph.constant([[0.0]])
        columns.append(graph.where(graph.add("IsNaN", [own]), own, ranks))
    return graph.joined(columns)


def _add_maps(graph: Graph, cells: str, basis: ImageBasis) -> str:
    """Add the roots of the shares of all maps of images."""
    apart = graph.add("Sub", [cells, graph.constant(basis.black_)])
    steps = graph.add("Div", [apart, graph.constant(basis.range_)])
    steps = graph.times(steps, images.BRIGHTEST)
    known = graph.where(graph.add("IsNaN", [steps]), graph.constant([0.0]), steps)
    pixels = graph.add("Round", [graph.clipped(known, 0.0, images.BRIGHTEST)])
    shape = graph.constant([-1, basis.side_, basis.side_], np.int64)
    whole = graph.add("Reshape", [pixels, shape])

    def both(rows: FloatArray, parts: str, columns: FloatArray) -> str:
        return graph.product(graph.add("MatMul", [graph.constant(rows.T), parts]), columns)

    smooth, slope = images.gradients(basis.side_)
    down, across = both(slope, whole, smooth), both(smooth, whole, slope)
    parts = [
        graph.add("Add", [graph.times(across, right), graph.times(down, below)])
        for right, below in images.directions()
    ]
    most = graph.times(graph.add("Max", parts), images.SHARPENED)
    blurred, maps = images.blurring(basis.side_), []
    for part in parts:
        beyond = graph.add("Sub", [graph.times(part, images.WEIGHT), most])
        own = both(blurred, graph.add("Max", [beyond, graph.constant(0.0)]), blurred)
        maps.append(graph.add("Flatten", [own], axis=1))
    table = graph.joined(maps)
    total = graph.add("Max", [graph.sums(table), graph.constant(1.0)])
    return graph.add("Sqrt", [graph.add("Div", [table, total])])


def _add_modes(graph: Graph, cells: str, basis: GraphBasis) -> str:
    """Add the mean values at the nearest public points, itself left out where it is one of them."""
    points = basis._points.astype(np.int64)
    squares = add_squared_distances(graph, _add_rounded(graph, cells, basis), points)
    k = basis.n_nearest
    least, places = graph.add_nearest(squares, k + 1)
    first = graph.add("Equal", [graph.columns(least, [0]), graph.constant([[0.0]])])
    nearest = graph.where(
        first, graph.columns(places, range(1, k + 1)), graph.columns(places, range(k))
    )
    values = graph.add("Gather", [graph.constant(basis._values), nearest])
    sums = graph.sums(values, keep=False)
    half = (1 << (FINER_BITS - 1)) - basis._offset
    return graph.quotient(graph.plus(sums, half), 1 << FINER_BITS)
