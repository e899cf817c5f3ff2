"""The story of a release in rounds: which public points were asked, and what was learnt from them.

Everything in it is public: public points, released labels, and what strategies and students
computed from those.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.released import ReleasedLabels
from secretballot.report.rounds.positions import PoolPositions, project_pool


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
        What the strategy tells of its rounds, as JSON values.
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
    told = [
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
    return QueryStory(dict(strategy), told, plain, project_pool(X_public, released.queries))
