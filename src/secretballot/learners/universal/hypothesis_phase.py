"""The second part of a universal labeler: one hypothesis, chosen once by all private records,
that answers for ever."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.door.outcomes import PaidOutcome
from secretballot.door.reserved_outcome import ReservedOutcome
from secretballot.exceptions import ParameterError
from secretballot.hypotheses import Hypothesis, HypothesisClass
from secretballot.hypotheses.finite import check_row_by_row
from secretballot.learners.selection.release import chosen_release
from secretballot.learners.selection.semi_private import private_scores
from secretballot.learners.universal.kept_records import PrivateRecords
from secretballot.released import ReleasedLabels

__all__ = ["EndlessPart", "check_class_size", "cover_rows"]


_MADE_UP_ROWS = 60


class EndlessPart:
    """A hypothesis that left the door, with the public points that made its class finite; all of it
    public.

    Parameters
    ----------
    choice : PaidOutcome
    about : mapping
        As stored beside the choice: ``points``, and ``rows``, those of them that made the class
        finite.
    hypotheses : HypothesisClass

    Attributes
    ----------
    points : ndarray of float64, shape (n, n_features)
        The public points that were known when it was drawn.
    hypothesis : Hypothesis
    n_candidates : int
    """

    def __init__(
        self, choice: PaidOutcome, about: dict[str, Any], hypotheses: HypothesisClass
    ) -> None:
        self.choice, self._hypotheses = choice, hypotheses
        self.points = np.array(about["points"], dtype=np.float64)
        self._rows = np.array(about["rows"], dtype=np.int64)
        # representatives follow from the public points alone, so the number of one is enough to
        # find it again
        self.hypothesis: Hypothesis = hypotheses.dichotomies(self.points[self._rows]).hypothesis(
            choice.outcome
        )
        self.n_candidates = int(choice.mechanism["n_candidates"])

    @classmethod
    def begun(cls, reserved: ReservedOutcome, hypotheses: HypothesisClass) -> "EndlessPart | None":
        """Return the part that was drawn before, or None."""
        found = reserved.drawn()
        return None if found is None else cls(*found, hypotheses)

    @classmethod
    def begin(
        cls,
        reserved: ReservedOutcome,
        hypotheses: HypothesisClass,
        records: Callable[[], PrivateRecords],
        points: FloatArray,
        rows: IntArray,
    ) -> "EndlessPart":
        """Draw, or return what was drawn before.

        Parameters
        ----------
        reserved : ReservedOutcome
            What pays.
        hypotheses : HypothesisClass
        records : callable
            Returns the private records; called only where there was no draw.
        points : ndarray of float64, shape (n, n_features)
            Public.
        rows : ndarray of int64
            Those that make the class finite.

        Privacy
        -------
        Unit, relation, price : those of `reserved`.
        Sensitivity : one record makes at most one mistake under each candidate. The candidates follow from public
            points, which may themselves follow from earlier answers: these are paid for.
        """
        found = reserved.drawn()
        if found is None:
            dichotomies = hypotheses.dichotomies(points[rows])
            scores = private_scores(
                dichotomies, *records().open_for_scores(), reserved.unit, reserved.neighbours
            )
            found = reserved.draw(scores, {"points": points.tolist(), "rows": rows.tolist()})
        return cls(*found, hypotheses)

    def predict(self, points: FloatArray) -> IntArray:
        """Return 0 or 1 for every row of public points."""
        return self.hypothesis.predict(points)

    def released(
        self, points: FloatArray, classes: Sequence[Any], *, about: dict[str, Any], purpose: str
    ) -> ReleasedLabels:
        """Return the labels of all rows of `points`, with the certificate of the choice."""
        cover = hashlib.sha256(
            np.ascontiguousarray(self.points[self._rows], dtype="<f8").tobytes()
        ).hexdigest()
        more = {
            "hypotheses": self._hypotheses.name,
            "hypothesis": self.hypothesis.describe(),
            "points_sha256": cover,
        }
        return chosen_release(
            self.choice,
            self.predict(points),
            np.arange(len(points)),
            classes,
            about={**more, "n_public": len(self._rows), **about},
            unit_column=None,
            purpose=purpose,
        )


def cover_rows(n_points: int, n_public: int | None, random_state: int) -> IntArray:
    """Return which public points make the class finite: all, or so many random ones, by public
    coins."""
    if n_public is None or n_public >= n_points:
        return np.arange(n_points)
    return np.sort(np.random.default_rng(random_state).choice(n_points, n_public, replace=False))


def check_class_size(
    hypotheses: HypothesisClass, n_public: int, n_features: int, neighbours: str
) -> None:
    """Refuse, before anything is bought, a class with too many labellings of so many points: try it
    on made-up ones.

    Raises
    ------
    ParameterError
        If they cannot be listed, or an estimator of a finite class does not predict row by row.
    DataError
        If the class does not take so many columns.
    """
    rng = np.random.default_rng(0)
    check_row_by_row(hypotheses, rng.standard_normal((_MADE_UP_ROWS, n_features)))
    try:
        dichotomies = hypotheses.dichotomies(rng.standard_normal((n_public, n_features)))
        made_up = rng.standard_normal((_MADE_UP_ROWS, n_features))
        private_scores(dichotomies, made_up, np.arange(_MADE_UP_ROWS) % 2, "record", neighbours)
    except ParameterError as error:
        raise ParameterError(
            f"{hypotheses.name} have too many labellings of {n_public} public points ({error}) Set"
            " n_public to less. Nothing was spent."
        ) from None
