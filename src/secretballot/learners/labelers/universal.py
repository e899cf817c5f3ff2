"""A universal labeler at work: queries go to the first part until its end, then to one hypothesis,
drawn once by all private records.

Until the draw the private records are held in memory; then they are forgotten.
"""

import contextlib
import json
import math
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from secretballot._files import LARGEST_JSON
from secretballot._typing import FloatArray
from secretballot.exceptions import DataError, LedgerError
from secretballot.hypotheses import HypothesisClass
from secretballot.hypotheses.base import Hypothesis
from secretballot.hypotheses.points import check_points
from secretballot.learners.labelers.algorithms import BudgetSplit
from secretballot.learners.selection import chosen_release, private_scores
from secretballot.learners.training.inputs import object_array, random_rows
from secretballot.learners.training.learner import Task
from secretballot.learners.training.point_digests import doubles_digest
from secretballot.learners.training.session import LabelingSession, SessionAnswers
from secretballot.learners.training.table import Table
from secretballot.released import ReleasedLabels
from secretballot.releasing import reserve_choice
from secretballot.students import HypothesisStudent
from secretballot.vault import read_secret, write_secret

_QUERIED = "queried.doubles"  # the points as rows of numbers


@dataclass(frozen=True)
class UniversalRelease:
    """All that a universal labeler has released so far, each part with its certificate; public.

    Attributes
    ----------
    first : ReleasedLabels
        Answers of the first part.
    endless : ReleasedLabels or None
        The labels of all points by the hypothesis; None before the switch, though it is paid for.
    """

    first: ReleasedLabels
    endless: ReleasedLabels | None

    @property
    def certificates(self) -> tuple[dict[str, Any], ...]:
        """Those of the parts that there are; their prices add up to at most the budget."""
        return tuple(part.certificate for part in (self.first, self.endless) if part is not None)


class Endless(NamedTuple):
    """A hypothesis that was released, with the public points that made its class finite; all of it
    public.

    Attributes
    ----------
    hypothesis : Hypothesis
    n_candidates : int
    points : ndarray of float64, shape (n, n_features)
        The public points that were known when it was drawn.
    cover : ndarray of float64, shape (n_cover, n_features)
        Those of them that made the class finite.
    """

    hypothesis: Hypothesis
    n_candidates: int
    points: FloatArray
    cover: FloatArray


class UniversalSession:
    """Answer queries by a session as long as it lasts, then by one hypothesis, drawn once.

    Parameters
    ----------
    split : BudgetSplit
        What each part costs; printed.
    hypotheses : HypothesisClass
    first : LabelingSession
        The first part, paid for.
    task : Task
        The fit. Its account reserves the second part, unless it did before; its records are held
        until the switch.
    n_cover : int or None
        How many of the asked points make the class finite; None for all.
    random_state : int or None
        Draws them.
    folder : Path or None
        Of the vault; None where nothing outlives the process.

    Attributes
    ----------
    endless : Endless or None
        None before the switch.

    Raises
    ------
    BudgetError
        If it was not reserved before, and the ledger does not admit it.
    LedgerError
        If the ledger cannot be used.

    Privacy
    -------
    Unit, relation, price : those of the two parts, each reserved before the first query.
    Sensitivity : one record makes at most one mistake under each candidate. The candidates follow
        from public points, which may themselves follow from earlier answers: these are paid for.
    Order : a point is kept before it is answered. The switch draws and commits to the ledger, then
        forgets the records; whatever a crash interrupts, the next fit finds either no draw, and
        draws, or the committed one.
    """

    left = math.inf

    def __init__(
        self,
        split: BudgetSplit,
        hypotheses: HypothesisClass,
        first: LabelingSession,
        task: Task,
        *,
        n_cover: int | None,
        random_state: int | None,
        folder: Path | None,
    ) -> None:
        self.split, self.first, self.classes = split, first, task.target.classes
        self._hypotheses, self._relation = hypotheses, task.guarantee.relation
        self._n_cover, self._random_state = n_cover, random_state
        self._width = task.given.X.shape[1]
        self._table: Table | None = task.table
        self._place = None if folder is None else folder / _QUERIED
        self._points: FloatArray = np.empty((0, self._width))
        self._queried()  # damage is refused before more is reserved
        self._reserved = reserve_choice(
            task.account,
            epsilon=split.endless_epsilon,
            request=f"{task.given.request}/endless",
            guarantee=task.guarantee,
            purpose=task.given.purpose or f"which of the {hypotheses.name} answers for ever",
            classes=self.classes,
        )
        self.endless: Endless | None = None
        # what was drawn under this request before is paid for, and is not drawn anew
        if not self._reserved.left:
            self._take_up()

    @property
    def student(self) -> HypothesisStudent:
        """The hypothesis that answers from now on, as a fitted classifier, to be published.

        Raises
        ------
        AttributeError
            If it was not drawn yet.
        """
        if self.endless is None:
            raise AttributeError("There is no student yet: the first part still answers.")
        return HypothesisStudent.of(
            self.endless.hypothesis, self._hypotheses, self.classes, self._width
        )

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to public points, of shape (n, n_features), every one of them.

        A label that the first part gave stays. What it abstained on is answered when asked after
        the switch.

        Raises
        ------
        DataError
            If the points do not fit; nothing was answered then.
        """
        points = check_points(X, self._width)
        if self.endless is None:
            # A point is kept before it is asked: after a crash the cover may hold a point without
            # an answer, but never lack one that was answered.
            self._keep(points)
            labels = self.first.ask_admitted(points).labels
            if not self.first.left:
                self.switch(self._queried())
        else:
            labels = self.first.stored(points).labels
        given = np.ones(len(labels), dtype=np.bool_)
        endless = np.array([label is None for label in labels], dtype=np.bool_)
        if self.endless is None:
            return SessionAnswers(labels, ~endless, given, None, self.left, ~given)
        if endless.any():
            drawn = self.endless.hypothesis.predict(points[endless])
            labels[endless] = object_array(self.classes)[drawn]
        return SessionAnswers(labels, given, given, None, self.left, endless)

    def released(self, X: Any) -> UniversalRelease:
        """Return what was released so far: all answers of the first part, and the labels of `X` by
        the hypothesis.

        Parameters
        ----------
        X : array of shape (n, n_features)
            Public points, with all that the first part was asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        """
        points = check_points(X, self._width)
        first, found = self.first.released(points), self.endless
        if found is None:
            return UniversalRelease(first, None)
        # The cover's digest: with it, and the points, anybody finds the function of that number.
        endless = chosen_release(
            self._reserved.released(),
            found.hypothesis.predict(points),
            np.arange(len(points)),
            self.classes,
            about={
                "hypotheses": self._hypotheses.name,
                "hypothesis": found.hypothesis.describe(),
                "points_sha256": doubles_digest(found.cover),
                "n_candidates": found.n_candidates,
                "n_public": len(found.cover),
                "universal": {**asdict(self.split), "part": "endless"},
            },
            unit_column=None,
        )
        return UniversalRelease(first, endless)

    def switch(self, points: FloatArray) -> None:
        """Draw the hypothesis by public points, of shape (n, n_features), unless it was drawn.

        The private records are forgotten.
        """
        # the records are opened only where there is something to draw
        if self._reserved.left:
            assert self._table is not None
            rows = random_rows(len(points), self._n_cover, self._random_state)
            dichotomies = self._hypotheses.dichotomies(points[rows])
            [block] = self._table.one_of_each_unit(sys.maxsize)
            scores = private_scores(
                dichotomies, block.rows, block.targets, "record", self._relation
            )
            about = {"points": points.tolist(), "rows": rows.tolist()}
            self._reserved.answer(scores, [json.dumps(about).encode()])
        self._take_up()

    def _take_up(self) -> None:
        """Go on with the hypothesis that was drawn, here or elsewhere."""
        choice = self._reserved.released()
        about = json.loads(choice.questions[0])
        if not self._reserved.closed:
            # the answer is stored: the end notes what drew it, and another process may have done so
            with contextlib.suppress(LedgerError):
                self._reserved.close()
        points = np.array(about["points"], dtype=np.float64)
        cover = points[np.array(about["rows"], dtype=np.int64)]
        # Representatives follow from the public points alone, so the number of one is enough to
        # find it again. Under this request the teachers of the first part are there for the same
        # hypotheses and classes only.
        dichotomies = self._hypotheses.dichotomies(cover)
        chosen = dichotomies.hypothesis(choice.values.item())
        self.endless = Endless(chosen, len(dichotomies), points, cover)
        self._table = None

    def _queried(self) -> FloatArray:
        """Return the distinct points that were asked, in their order, shape (n, n_features), as far
        as the first part answers; of other processes too.

        Raises
        ------
        DataError
            If kept points cannot be read.
        """
        content = None
        if self._place is not None:
            content = read_secret(self._place, largest=LARGEST_JSON)
        if content is not None:
            if len(content) % (8 * self._width) or not np.isfinite(np.frombuffer(content)).all():
                raise DataError(f"{self._place} is damaged; put the vault back as it was.")
            self._points = np.frombuffer(content).reshape(-1, self._width)
        return self._points

    def _keep(self, points: FloatArray) -> None:
        """Keep those of `points`, of shape (n, n_features), that are new, as far as there is space.

        Two processes that ask at the same moment may lose a point of each other: then fewer points
        are known, which costs accuracy and never privacy.

        Raises
        ------
        DataError
            If they cannot be written; no answer may then be asked for.
        """
        known, most = self._queried(), self.split.first_questions
        if len(known) >= most:
            return
        both = np.concatenate([known, points])
        first = np.sort(np.unique(both, axis=0, return_index=True)[1])[:most]
        if len(first) > len(known):
            self._points = both[first]
            if self._place is not None:
                write_secret(self._place, self._points.tobytes())
