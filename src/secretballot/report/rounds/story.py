"""The story of a release in rounds: which public points were asked, and what was learnt from them.

Everything in it is public: public points, released labels, and what strategies and students
computed from those.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from secretballot._typing import BoolArray, FloatArray, IntArray
from secretballot._validation import check_choice, check_count
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.released import ReleasedLabels
from secretballot.report.rounds.positions import PROJECTIONS, project_pool

_FORMAT = "secretballot/query-story"
_VERSION = 1
_FIELDS = (
    "strategy",
    "rounds",
    "explanation",
    "rows",
    "positions",
    "projected",
    "axes",
    "n_points",
    "region",
)
_ROUND_FIELDS = ("asked", "answered", "agreement")


@dataclass(frozen=True, eq=False)
class QueryStory:
    """Hold which points of a public pool were asked, round by round.

    It is safe to publish; its arrays are read-only.

    Parameters
    ----------
    strategy : dict
        Name and settings of the strategy, as JSON values.
    rounds : sequence of dict
        For each round ``asked`` (rows of the pool, in order), ``answered`` (how many got a label)
        and ``agreement``: the share of the public pool on which the student of this round and the
        final one say the same, or None.
    explanation : dict
        What the strategy tells of its rounds, as JSON values. Drawn are ``version_space``, if it
        holds ``segments`` (pairs [low, high], None for an open end), and ``updates``, a list of
        objects with ``j`` (points seen) and ``region`` (size of the region of disagreement: a share
        of the pool if none exceeds 1, else points).
    rows : array of int, shape (m',)
        Rows of the pool that have a position, ascending; all asked ones among them.
    positions : array of float, shape (m', 2)
        Where the picture shows them.
    projected : str
        ``"as is"``, or ``"principal components"`` of standardised numeric features.
    axes : pair of str
        What the two coordinates are; an empty second one says that the pool is a line, spread out
        to be seen.
    n_points : int
        Number m of points of the pool.
    region : array of bool, shape (m',), optional
        Which of `rows` are in the region of disagreement at the end.

    Raises
    ------
    DataError
        If something has the wrong shape or range, or cannot be written as JSON.
    """

    strategy: dict[str, Any]
    rounds: tuple[dict[str, Any], ...]
    explanation: dict[str, Any]
    rows: IntArray
    positions: FloatArray
    projected: str
    axes: tuple[str, str]
    n_points: int
    region: BoolArray | None = None

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # the dataclass is frozen; fields are normalised once, here
        set_field(self, "strategy", _json_object("strategy", self.strategy))
        if not isinstance(self.strategy.get("name"), str):
            raise DataError(
                Parameter("strategy"),
                " has no name; give name and settings, as QueryStrategy.describe() returns them.",
            )
        set_field(self, "explanation", _json_object("explanation", self.explanation))
        set_field(self, "n_points", check_count("n_points", self.n_points))
        check_choice("projected", self.projected, PROJECTIONS)
        set_field(self, "axes", _checked_axes(self.axes))
        set_field(self, "rows", _checked_rows(self.rows, self.n_points))
        set_field(
            self,
            "positions",
            _read_only_array("positions", self.positions, np.float64, (len(self.rows), 2)),
        )
        if not np.isfinite(self.positions).all():
            raise DataError(
                "positions holds nan or infinity; every point needs a place in the picture."
            )
        if self.region is not None:
            set_field(
                self, "region", _read_only_array("region", self.region, np.bool_, (len(self.rows),))
            )
        set_field(
            self,
            "rounds",
            tuple(_checked_round(index, entry) for index, entry in enumerate(self.rounds, 1)),
        )
        # what the rounds ask is checked last, against rows that are known to be sound
        asked = self.asked
        if len(np.unique(asked)) < len(asked):
            raise DataError(
                "rounds ask a row twice; a repeated query gets its stored answer and is no new one."
            )
        if not np.isin(asked, self.rows).all():
            raise DataError(
                "rounds ask a row that has no position; give positions of all asked rows."
            )

    @property
    def asked(self) -> IntArray:
        """Rows that were asked, in order, over all rounds."""
        return np.array([row for entry in self.rounds for row in entry["asked"]], dtype=np.int64)

    @property
    def round_of(self) -> IntArray:
        """Number of the round, from 0, of each of `asked`."""
        return np.repeat(
            np.arange(len(self.rounds)), [len(entry["asked"]) for entry in self.rounds]
        ).astype(np.int64)

    @property
    def is_line(self) -> bool:
        """Whether the pool has one feature only."""
        return self.axes[1] == ""

    def to_json(self) -> dict[str, Any]:
        """Return the story as a dict of JSON values, which `from_json` reads back."""
        return {
            "format": _FORMAT,
            "version": _VERSION,
            "strategy": self.strategy,
            "rounds": [dict(entry) for entry in self.rounds],
            "explanation": self.explanation,
            "rows": self.rows.tolist(),
            "positions": self.positions.tolist(),
            "projected": self.projected,
            "axes": list(self.axes),
            "n_points": self.n_points,
            "region": None if self.region is None else self.region.tolist(),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "QueryStory":
        """Return the story that `to_json` wrote.

        Raises
        ------
        DataError
            If the document is of another format or version, or its fields do not fit.
        """
        if not isinstance(document, Mapping) or document.get("format") != _FORMAT:
            raise DataError(
                f"the document is not of the format {_FORMAT}; give the queries.json of a release."
            )
        if document.get("version") != _VERSION:
            raise DataError(
                f"the document has version {document.get('version')!r}; this package reads"
                f" {_VERSION}."
            )
        odd = set(document) ^ {"format", "version", *_FIELDS}
        if odd:
            raise DataError(
                f"the document misses or adds fields: {', '.join(sorted(map(str, odd)))}."
            )
        if not isinstance(document["rounds"], list):
            raise DataError("rounds is no list; give the queries.json of a release.")
        return cls(**{name: document[name] for name in _FIELDS})

    def __eq__(self, other: object) -> bool:
        return (
            self.to_json() == other.to_json() if isinstance(other, QueryStory) else NotImplemented
        )

    __hash__ = None  # type: ignore[assignment]  # equal by value, and it holds dicts

    def __repr__(self) -> str:
        return (
            f"QueryStory({self.strategy['name']}, {len(self.asked)} queries in {len(self.rounds)}"
            f" rounds, of {self.n_points} public points)"
        )


def _json_object(name: str, value: object) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise DataError(f"{name} is a {type(value).__name__}; it must be a dict of JSON values.")
    try:
        copy: dict[str, Any] = json.loads(
            json.dumps(dict(value), allow_nan=False, default=_numpy_as_python)
        )
    except (TypeError, ValueError, RecursionError):
        raise DataError(
            f"{name} holds a value that JSON cannot carry; use strings, finite numbers and lists."
        ) from None
    return copy


def _numpy_as_python(value: object) -> object:
    """Return numpy's numbers and arrays as Python's."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    raise TypeError


def _checked_axes(value: Any) -> tuple[str, str]:
    if (
        not isinstance(value, list | tuple)
        or len(value) != 2
        or not all(isinstance(name, str) for name in value)
    ):
        raise DataError(
            "axes is no pair of strings; say what the two coordinates of positions are."
        )
    return (value[0], value[1])


def _read_only_array(name: str, value: object, dtype: type, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return a read-only copy of that type and shape."""
    try:
        given = np.asarray(value)
        if given.dtype.kind not in {np.float64: "fiu", np.bool_: "b"}[dtype] and given.size:
            raise TypeError
        array: NDArray[Any] = given.astype(dtype).reshape(shape)
    except (TypeError, ValueError):
        raise DataError(
            f"{name} does not fit: it must be an array of {dtype.__name__} of shape {shape}."
        ) from None
    array.setflags(write=False)
    return array


def _checked_rows(value: object, n_points: int) -> IntArray:
    rows = np.asarray(value)
    if rows.ndim != 1 or (rows.size and rows.dtype.kind not in "iu"):
        raise DataError("rows is no list of integers; give rows of the public pool.")
    rows = rows.astype(np.int64)
    if rows.size and not (rows[0] >= 0 and rows[-1] < n_points and (np.diff(rows) > 0).all()):
        raise DataError(f"rows must ascend, without repeats, and lie between 0 and {n_points - 1}.")
    rows.setflags(write=False)
    return rows


def _checked_round(index: int, entry: object) -> dict[str, Any]:
    """Return one round with plain numbers, or raise."""
    if not isinstance(entry, Mapping) or set(entry) != set(_ROUND_FIELDS):
        raise DataError(f"Round {index} must hold {', '.join(_ROUND_FIELDS)}, and nothing else.")
    try:
        asked = [check_count("A row", row, minimum=0) for row in entry["asked"]]
        answered = check_count("answered", entry["answered"], minimum=0)
        agreement = None if entry["agreement"] is None else float(entry["agreement"])
    except (TypeError, ValueError) as error:
        raise DataError(f"Round {index} holds something that is no number: {error}") from None
    if not answered <= len(asked):
        raise DataError(
            f"Round {index} has {answered} answers to {len(asked)} queries; give at most as many."
        )
    if agreement is not None and not 0 <= agreement <= 1:
        raise DataError(
            f"Round {index} has agreement {agreement}; it is a share of the pool, from 0 to 1, or"
            " None."
        )
    return {"asked": asked, "answered": answered, "agreement": agreement}


def make_story(
    X_public: Any,
    released: ReleasedLabels,
    strategy: Mapping[str, Any],
    rounds: Sequence[int],
    explanation: Mapping[str, Any] | None = None,
    *,
    agreement: Sequence[float | None] | None = None,
    students_by_round: Sequence[Any] | None = None,
    region: ArrayLike | None = None,
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
        Name and settings, from the strategy's `describe`.
    rounds : sequence of int
        Queries asked in each round, as in the certificate's plan.
    explanation : mapping, optional
        From the selector's `explain`; see `QueryStory`.
    agreement : sequence of float or None, optional
        Agreement of each round's student with the final one, from 0 to 1.
    students_by_round : sequence of fitted classifiers or None, optional
        Instead of `agreement`: the student after each round, None where there was none yet. The
        last one is the final student; the agreement is counted on the whole pool.
    region : array of bool, shape (m,), optional
        Which points of the pool are in the region of disagreement at the end.

    Raises
    ------
    ParameterError
        If something else than released labels is given, or both `agreement` and
        `students_by_round`.
    DataError
        If pool, release, rounds, students or region do not fit together.
    """
    if not isinstance(released, ReleasedLabels):
        raise ParameterError(
            Parameter("released"),
            f" is a {type(released).__name__}; a story is told of ReleasedLabels only.",
        )
    if agreement is not None and students_by_round is not None:
        raise ParameterError("agreement and students_by_round are both given; give one of them.")
    sizes = [check_count("A round", size) for size in rounds]
    if sum(sizes) != len(released.queries):
        raise DataError(
            f"The rounds hold {sum(sizes)} queries; {len(released.queries)} were released."
        )
    # answers are counted from the release and not taken from the caller, so that they are those of
    # the certificate
    pool = project_pool(X_public, released.queries)
    if students_by_round is not None:
        agreement = _agreement_shares(students_by_round, X_public)
    shares = [None] * len(sizes) if agreement is None else list(agreement)
    if len(shares) != len(sizes):
        raise DataError(
            f"There are {len(sizes)} rounds, and students or agreements of {len(shares)}; give one"
            " each."
        )
    edges = np.cumsum([0, *sizes]).tolist()
    return QueryStory(
        strategy=dict(strategy),
        rounds=tuple(
            {
                "asked": released.queries[start:stop].tolist(),
                "answered": int(released.answered[start:stop].sum()),
                "agreement": share,
            }
            for start, stop, share in zip(edges[:-1], edges[1:], shares, strict=True)
        ),
        explanation=dict(explanation or {}),
        rows=pool.rows,
        positions=pool.positions,
        projected=pool.projected,
        axes=pool.axes,
        n_points=pool.n_points,
        region=(
            None
            if region is None
            else _read_only_array("region", region, np.bool_, (pool.n_points,))[pool.rows]
        ),
    )


def _agreement_shares(students: Sequence[Any], X_public: Any) -> list[float | None]:
    """Return the share of the pool on which each student agrees with the last one, or None."""
    if not students or students[-1] is None:
        raise DataError(
            "students_by_round has no final student; give the student of every round, the last one"
            " too."
        )
    final = _predicted_labels(students[-1], X_public)
    return [
        None if one is None else float(np.mean(_predicted_labels(one, X_public) == final))
        for one in students
    ]


def _predicted_labels(student: Any, X_public: Any) -> NDArray[Any]:
    try:
        labels = np.asarray(student.predict(X_public))
    except Exception as error:  # the student may be anybody's
        raise DataError(
            f"{type(student).__name__} cannot predict on X_public ({type(error).__name__}); give"
            " students of this pool."
        ) from None
    if labels.shape != (X_public.shape[0],):
        raise DataError(
            f"{type(student).__name__} gave labels of shape {labels.shape}; one for each point is"
            " needed."
        )
    return labels


def check_story(story: QueryStory, released: ReleasedLabels) -> None:
    """Refuse a story that is not the one of these released labels.

    Raises
    ------
    ParameterError
        If it is no story.
    DataError
        If it tells of other queries, answers, rounds or another strategy than release and
        certificate.
    """
    if not isinstance(story, QueryStory):
        raise ParameterError(
            Parameter("story"), f" is a {type(story).__name__}; give a QueryStory, from make_story."
        )
    sizes = [len(entry["asked"]) for entry in story.rounds]
    told = [entry["answered"] for entry in story.rounds]
    same = np.array_equal(story.asked, released.queries)
    if not same or np.bincount(story.round_of, released.answered, len(sizes)).tolist() != told:
        raise DataError(
            "The story tells of other queries or answers than were released; take both from one"
            " run."
        )
    plan = released.certificate.get("plan")
    if plan is not None and (plan["rounds"] != sizes or plan["strategy"] != story.strategy):
        raise DataError(
            "The story tells of other rounds or another strategy than the certificate; take both"
            " from one."
        )
