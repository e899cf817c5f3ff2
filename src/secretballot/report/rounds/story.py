"""The story of a release in rounds: which public points were asked, where a picture shows them, and
what was learnt from them.

Everything in it is public: public points, released labels, and what strategies and students
computed from those.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import DataError, Parameter
from secretballot.released import ReleasedLabels

PROJECTIONS = ("as is", "principal components")
_MOST_POINTS = 5000
_MOST_FEATURES = 500  # the covariance of so many is quick; of more, those that vary most are taken
_CUT = 5.0  # standard deviations: one extreme value would press all the others into a corner
_LARGEST = 1e100  # squares of larger values would overflow
_GOLDEN = (np.sqrt(5) - 1) / 2
_DIGITS = 6


@dataclass(frozen=True)
class PoolPositions:
    """Positions of some points of a pool.

    Attributes
    ----------
    rows : ndarray of int64, shape (m',)
        Rows of the pool, ascending.
    positions : ndarray of float64, shape (m', 2)
    projected : str
        One of `PROJECTIONS`.
    axes : pair of str
        What the coordinates are; an empty second one for a pool on a line.
    n_points : int
        Number m of points of the pool.
    """

    rows: IntArray
    positions: FloatArray
    projected: str
    axes: tuple[str, str]
    n_points: int

    @property
    def is_line(self) -> bool:
        """Whether the pool has one feature only."""
        return self.axes[1] == ""


@dataclass(frozen=True, eq=False)
class QueryStory:
    """Which points of a public pool were asked, round by round.

    Attributes
    ----------
    strategy : dict
        Name and settings of the strategy, as JSON values.
    rounds : list of dict
        For each round ``asked`` (rows of the pool, in order), ``answered`` (how many got a label)
        and ``agreement``: the share of the public pool on which the student of this round and the
        final one say the same, or None.
    explanation : dict
        What the strategy reports of its rounds, as JSON values.
    pool : PoolPositions
        Where the picture shows the points; all asked ones are among them.
    """

    strategy: dict[str, Any]
    rounds: list[dict[str, Any]]
    explanation: dict[str, Any]
    pool: PoolPositions

    @property
    def asked(self) -> IntArray:
        """Rows that were asked, in order, over all rounds."""
        return np.array([row for entry in self.rounds for row in entry["asked"]], dtype=np.int64)

    @property
    def round_of(self) -> IntArray:
        """Number of the round, from 0, of each of `asked`."""
        sizes = [len(entry["asked"]) for entry in self.rounds]
        return np.repeat(np.arange(len(sizes)), sizes).astype(np.int64)

    def to_json(self) -> dict[str, Any]:
        """Return the story as JSON values, for ``queries.json``."""
        return {
            "format": "secretballot/query-story",
            "version": 2,
            "strategy": self.strategy,
            "rounds": self.rounds,
            "explanation": self.explanation,
            "rows": self.pool.rows.tolist(),
            "positions": self.pool.positions.tolist(),
            "projected": self.pool.projected,
            "axes": list(self.pool.axes),
            "n_points": self.pool.n_points,
        }


def make_story(
    X_public: Any,
    released: ReleasedLabels,
    strategy: Mapping[str, Any],
    rounds: Sequence[int],
    explanation: Mapping[str, Any],
    agreement: Sequence[float | None],
) -> QueryStory:
    """Return the story of a release in rounds.

    Parameters
    ----------
    X_public : array, sparse matrix or frame of shape (m, n_features)
        The public pool; ``released.queries`` are rows of it. At most 5,000 rows get a position:
        every asked one, and of the others every so many-th.
    released : ReleasedLabels
        Everything that was released, all rounds together.
    strategy : mapping
        Name and settings, as in the certificate's plan.
    rounds : sequence of int
        Queries asked in each round, as there.
    explanation : mapping
        From the selector's `explain`.
    agreement : sequence of float or None
        Of each round's student with the final one, from 0 to 1.

    Raises
    ------
    DataError
        If the pool is no table of numbers, or has no such rows.
    """
    edges = np.cumsum([0, *rounds]).tolist()
    history = [
        {
            "asked": released.queries[start:stop].tolist(),
            "answered": int(released.answered[start:stop].sum()),
            "agreement": share,
        }
        for start, stop, share in zip(edges[:-1], edges[1:], agreement, strict=True)
    ]
    # numbers and arrays of numpy's become Python's
    plain = json.loads(
        json.dumps(dict(explanation), allow_nan=False, default=lambda one: one.tolist())
    )
    return QueryStory(dict(strategy), history, plain, project_pool(X_public, released.queries))


def project_pool(X_public: Any, asked: IntArray) -> PoolPositions:
    """Return positions of at most 5,000 points, all asked ones among them.

    The others are every so many-th row: a fixed rule, without randomness. Two numeric features are
    shown as they are. One is shown with its points spread out over a second coordinate that means
    nothing. More are standardised, cut at five standard deviations and projected to their first two
    principal components; of more than 500 features the 500 that vary most are used. Missing values
    are at the mean.

    Parameters
    ----------
    X_public : array, sparse matrix or frame of shape (m, n_features)
        Public points; of a frame, columns that are no numbers are left out.
    asked : ndarray of int64, shape (n_queries,)
        Rows that were asked.

    Raises
    ------
    DataError
        If the pool is no table, holds no numbers, or has no such rows.
    """
    shape = getattr(X_public, "shape", None)
    if shape is None or len(shape) != 2 or not shape[0]:
        raise DataError(
            Parameter("X_public"),
            f" has shape {shape}; give a table of public points, one row each.",
        )
    # of a smaller pool than was asked, the picture would show other points
    if asked.size and not int(asked.max()) < shape[0]:
        raise DataError(
            f"Row {int(asked.max())} was asked of a public pool of {shape[0]} rows; give the pool"
            " asked."
        )
    rows = _rows_shown(shape[0], asked)
    values, names = _numeric_columns(X_public, rows)
    if not names:
        raise DataError(
            Parameter("X_public"),
            " has no numeric column; give public points as numbers, to be drawn.",
        )
    positions, projected, axes = _positions_of(_with_means_for_missing(values), names, rows)
    return PoolPositions(rows, _rounded_positions(positions), projected, axes, int(shape[0]))


def _rows_shown(n_points: int, asked: IntArray) -> IntArray:
    others = np.setdiff1d(np.arange(n_points), asked)
    space = min(len(others), max(0, _MOST_POINTS - len(np.unique(asked))))
    spread = others[np.arange(space) * len(others) // max(1, space)]
    return np.union1d(asked, spread).astype(np.int64)


def _numeric_columns(X: Any, rows: IntArray) -> tuple[FloatArray, list[str]]:
    """Return numeric columns of the rows as floats, with their names."""
    if hasattr(X, "tocsr"):
        part = X.tocsr()[rows].tocsc()
        fullest = np.sort(np.argsort(-np.diff(part.indptr), kind="stable")[:_MOST_FEATURES])
        return part[:, fullest].toarray().astype(np.float64), [
            f"feature {column + 1}" for column in fullest
        ]
    if hasattr(X, "iloc"):
        frame = X.iloc[rows]
    else:
        frame = pd.DataFrame(np.asarray(X)[rows]).infer_objects()
        frame.columns = [f"feature {column + 1}" for column in range(frame.shape[1])]
    frame = frame.select_dtypes(
        include=["number", "bool"], exclude=["timedelta", "complexfloating"]
    )
    names = [str(name) or f"column {place}" for place, name in enumerate(frame.columns, 1)]
    return frame.to_numpy(dtype=np.float64, na_value=np.nan), names


def _with_means_for_missing(values: FloatArray) -> FloatArray:
    """Put the mean of its column, or 0, where a value is missing or beyond all bounds."""
    known = np.abs(values) < _LARGEST
    filled = np.where(known, values, 0.0)
    means = filled.sum(axis=0) / np.maximum(1, known.sum(axis=0))
    return np.where(known, values, means)


def _positions_of(
    values: FloatArray, names: list[str], rows: IntArray
) -> tuple[FloatArray, str, tuple[str, str]]:
    if len(names) == 1:
        # The golden ratio spreads neighbouring rows far apart, by a fixed rule.
        return np.column_stack([values[:, 0], rows * _GOLDEN % 1.0]), PROJECTIONS[0], (names[0], "")
    if len(names) == 2:
        return values, PROJECTIONS[0], (names[0], names[1])
    positions, shares = _principal_components(values)
    first, second = (
        f"component {place} ({100 * share:.0f} % of variance)"
        for place, share in enumerate(shares, 1)
    )
    return positions, PROJECTIONS[1], (first, second)


def _principal_components(values: FloatArray) -> tuple[FloatArray, list[float]]:
    """Return the first two principal components of standardised columns, and their variances."""
    # of very many columns those that vary most are taken, and constant ones tell nothing; cutting
    # moves the means, so columns are centred once more
    spread = values.std(axis=0)
    kept = np.sort(np.argsort(-spread, kind="stable")[:_MOST_FEATURES])
    kept = kept[spread[kept] > 0]
    standard = np.clip((values[:, kept] - values[:, kept].mean(axis=0)) / spread[kept], -_CUT, _CUT)
    standard -= standard.mean(axis=0)
    strengths, directions = np.linalg.eigh(standard.T @ standard)
    positions, shares = np.zeros((len(values), 2)), [0.0, 0.0]
    for place in range(min(2, len(kept))):
        direction = directions[:, -1 - place]
        # A direction is as good as its opposite; the largest weight is made positive, so that
        # pictures can be compared.
        direction = direction * np.sign(direction[np.argmax(np.abs(direction))])
        positions[:, place] = standard @ direction
        shares[place] = float(strengths[-1 - place] / strengths.sum())
    return positions, shares


def _rounded_positions(positions: FloatArray) -> FloatArray:
    """Keep six significant digits of the range: more cannot be seen, and the file stays small."""
    scale = np.abs(positions).max(axis=0, initial=0.0)
    decimals = [_DIGITS - 1 - int(np.floor(np.log10(top))) if top > 0 else 0 for top in scale]
    return np.column_stack([np.round(positions[:, axis], decimals[axis]) for axis in range(2)])
