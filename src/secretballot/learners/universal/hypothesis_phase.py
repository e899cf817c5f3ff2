"""The second part of a universal labeler: one hypothesis, chosen once by all private records,
that answers for ever."""

import contextlib
import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.core.releasing import AnswerStream, Released
from secretballot.exceptions import LedgerError
from secretballot.hypotheses import Hypothesis, HypothesisClass
from secretballot.hypotheses.finite import check_answers
from secretballot.learners.selection.release import chosen_release
from secretballot.learners.selection.semi_private import private_scores
from secretballot.learners.training.point_digests import doubles_digest
from secretballot.learners.universal.kept_records import PrivateRecords
from secretballot.released import ReleasedLabels

_DUMMY_ROWS = 60


class EndlessPart:
    """A hypothesis that was released, with the public points that made its class finite; all of it
    public.

    Parameters
    ----------
    choice : Released
        Its question holds ``n_candidates``, the public ``points``, and ``rows``, those of them that
        made the class finite.
    hypotheses : HypothesisClass

    Attributes
    ----------
    points : ndarray of float64, shape (n, n_features)
        The public points that were known when it was drawn.
    hypothesis : Hypothesis
    n_candidates : int
    """

    def __init__(self, choice: Released, hypotheses: HypothesisClass) -> None:
        self.choice, self._hypotheses = choice, hypotheses
        about = json.loads(choice.questions[0])
        self.points = np.array(about["points"], dtype=np.float64)
        self._rows = np.array(about["rows"], dtype=np.int64)
        # representatives follow from the public points alone, so the number of one is enough to
        # find it again
        self.hypothesis: Hypothesis = hypotheses.dichotomies(self.points[self._rows]).hypothesis(
            choice.values.item()
        )
        self.n_candidates = int(about["n_candidates"])

    @classmethod
    def begun(cls, reserved: AnswerStream, hypotheses: HypothesisClass) -> "EndlessPart | None":
        """Return the part that was drawn before, or None."""
        if reserved.left:
            return None
        if not reserved.closed:
            # the answer is stored: the end notes what drew it, and another process may have done so
            with contextlib.suppress(LedgerError):
                reserved.close()
        return cls(reserved.released(), hypotheses)

    @classmethod
    def begin(
        cls,
        reserved: AnswerStream,
        hypotheses: HypothesisClass,
        records: Callable[[], PrivateRecords],
        points: FloatArray,
        rows: IntArray,
        relation: str,
    ) -> "EndlessPart":
        """Draw, or return what was drawn before.

        Parameters
        ----------
        reserved : AnswerStream
            What pays, as `reserve_choice` makes it.
        hypotheses : HypothesisClass
        records : callable
            Returns the private records; called only where there was no draw.
        points : ndarray of float64, shape (n, n_features)
            Public.
        rows : ndarray of int64
            Those that make the class finite.
        relation : {"add-remove", "replace-one"}

        Privacy
        -------
        Unit, relation, price : those of `reserved`.
        Sensitivity : one record makes at most one mistake under each candidate. The candidates
            follow from public points, which may themselves follow from earlier answers: these are
            paid for.
        """
        # the records are opened only where there is something to draw
        if reserved.left:
            dichotomies = hypotheses.dichotomies(points[rows])
            scores = private_scores(dichotomies, *records().open_for_scores(), "record", relation)
            fixed = {"points": points.tolist(), "rows": rows.tolist()}
            question = json.dumps({"n_candidates": len(dichotomies), **fixed})
            reserved.answer(scores, [question.encode()])
        found = cls.begun(reserved, hypotheses)
        assert found is not None  # it was drawn, here or elsewhere
        return found

    def predict(self, points: FloatArray) -> IntArray:
        """Return 0 or 1 for every row of public points, shape (n,)."""
        return self.hypothesis.predict(points)

    def released(
        self, points: FloatArray, classes: Sequence[Any], *, about: dict[str, Any], purpose: str
    ) -> ReleasedLabels:
        """Return labels of `points`, shape (n, n_features), with the certificate of the draw."""
        # The cover's digest: with it, and the points, anybody finds the function of that number.
        more = {
            "hypotheses": self._hypotheses.name,
            "hypothesis": self.hypothesis.describe(),
            "points_sha256": doubles_digest(self.points[self._rows]),
        }
        return chosen_release(
            self.choice,
            self.predict(points),
            np.arange(len(points)),
            classes,
            about={
                **more,
                "n_candidates": self.n_candidates,
                "n_public": len(self._rows),
                **about,
            },
            unit_column=None,
            purpose=purpose,
        )


def check_class_size(
    hypotheses: HypothesisClass, n_cover: int, n_features: int, relation: str
) -> None:
    """Try a class on dummy points before anything is reserved.

    Raises
    ------
    ParameterError
        If it has too many labellings of so many points.
    DataError
        If the class does not take so many columns, or an estimator of a finite class does not
        answer to points of so many.
    """
    rng = np.random.default_rng(0)
    check_answers(hypotheses, rng.standard_normal((_DUMMY_ROWS, n_features)))
    dichotomies = hypotheses.dichotomies(rng.standard_normal((n_cover, n_features)))
    dummies = rng.standard_normal((_DUMMY_ROWS, n_features))
    private_scores(dichotomies, dummies, np.arange(_DUMMY_ROWS) % 2, "record", relation)
