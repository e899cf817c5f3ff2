"""A universal labeler at work: questions go to the first part until its end, then to the second."""

import contextlib
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._typing import BoolArray, FloatArray, ObjectArray
from secretballot.core.ledger import Ledger
from secretballot.exceptions import BudgetError
from secretballot.hypotheses import HypothesisClass
from secretballot.learners.labelers.session import LabelingSession
from secretballot.learners.training.inputs import object_array, random_rows
from secretballot.learners.training.point_digests import question_digests
from secretballot.learners.universal.asked_points import AskedPoints
from secretballot.learners.universal.budget_split import BudgetSplit
from secretballot.learners.universal.hypothesis_phase import EndlessPart
from secretballot.learners.universal.kept_records import PrivateRecords
from secretballot.released import ReleasedLabels
from secretballot.releasing import reserve_choice
from secretballot.teachers.votes import guarantee_of


@dataclass(frozen=True)
class UniversalAnswer:
    """The answer to one question; public.

    Attributes
    ----------
    label : class value or None
        None where the first part abstained.
    endless : bool
        Whether the hypothesis gave it, for nothing.
    left : float
        Questions that may still be asked: infinity.
    """

    label: Any
    endless: bool
    left: float = math.inf

    @property
    def abstained(self) -> bool:
        """Whether there is no label."""
        return self.label is None


@dataclass(frozen=True, eq=False)
class UniversalAnswers:
    """The answers to many questions; public.

    Attributes
    ----------
    labels : ndarray of object, shape (n,)
        Class values; None where the first part abstained.
    answered : ndarray of bool, shape (n,)
        Where there is a label.
    endless : ndarray of bool, shape (n,)
        Where the hypothesis gave it.
    left : float
        Questions that may still be asked: infinity.
    """

    labels: ObjectArray
    answered: BoolArray
    endless: BoolArray
    left: float = math.inf


@dataclass(frozen=True)
class UniversalRelease:
    """All that left the house so far, each part with its certificate; public.

    Attributes
    ----------
    first : ReleasedLabels or None
        Answers of the first part; None where all public points were known beforehand.
    endless : ReleasedLabels or None
        The labels of all points by the hypothesis; None before the switch, though it is paid for.
    """

    first: ReleasedLabels | None
    endless: ReleasedLabels | None

    @property
    def certificates(self) -> tuple[dict[str, Any], ...]:
        """Those of the parts that there are; their prices add up to at most the budget."""
        return tuple(part.certificate for part in (self.first, self.endless) if part is not None)


@dataclass(frozen=True, eq=False)
class UniversalTerms:
    """What a universal labeler was begun with; public.

    Attributes
    ----------
    hypotheses : HypothesisClass
    classes : list
        Of two values.
    n_features : int
    split : BudgetSplit
    n_cover : int or None
        How many of the asked points make the class finite; None for all.
    random_state : int
        Draws them.
    relation, request, purpose : str
    """

    hypotheses: HypothesisClass
    classes: list[Any]
    n_features: int
    split: BudgetSplit
    n_cover: int | None
    random_state: int
    relation: str
    request: str
    purpose: str


class UniversalRun:
    """Answer questions by a session as long as it lasts, then by one hypothesis, drawn once.

    Parameters
    ----------
    terms : UniversalTerms
    session : LabelingSession or None
        The first part, paid for; None where there is none.
    ledger : Ledger
        In which the second part is reserved, unless it was before.
    records : PrivateRecords or None
        Held until the switch; None where `folder` holds them.
    folder : Path or None
        Of the vault; None where nothing outlives the process.

    Raises
    ------
    BudgetError
        If the second part was not reserved before, and the ledger does not admit it.
    LedgerError
        If the ledger cannot be used.

    Privacy
    -------
    Unit, relation, price : those of the two parts, each reserved before the first question.
    Order : a point is kept before it is answered. The switch draws and commits to the ledger, then
        forgets the records; whatever a crash interrupts, the next question finds either no draw,
        and draws, or the committed one.
    """

    def __init__(
        self,
        terms: UniversalTerms,
        session: LabelingSession | None,
        ledger: Ledger,
        records: PrivateRecords | None,
        folder: Path | None,
    ) -> None:
        self.terms, self.session = terms, session
        self._records, self._folder = records, folder
        self._reserved = reserve_choice(
            ledger,
            epsilon=terms.split.endless,
            request=endless_request(terms.request),
            guarantee=guarantee_of("record", terms.relation),
            purpose=terms.purpose or f"which of the {terms.hypotheses.name} answers for ever",
            classes=terms.classes,
        )
        self._asked = AskedPoints(terms.n_features, terms.split.n_first, folder)
        self._stored: dict[bytes, Any] = {}
        self.endless: EndlessPart | None = None
        # what was drawn under this request before is paid for, and is not drawn anew
        drawn = EndlessPart.begun(self._reserved, terms.hypotheses)
        if drawn is not None:
            self._take_up(drawn)

    @property
    def used(self) -> int:
        """Questions that the first part has answered, abstentions included."""
        return 0 if self.session is None else self.session.used

    @property
    def until_switch(self) -> int:
        """Questions that the first part may still answer."""
        return 0 if self.endless is not None or self.session is None else self.session.left

    def ask_many(self, points: FloatArray) -> UniversalAnswers:
        """Return the answers to all of the public points, of shape (n, n_features)."""
        labels = self._first_labels(points)
        missing = np.array([label is None for label in labels], dtype=np.bool_)
        if self.endless is None:
            return UniversalAnswers(labels, ~missing, np.zeros(len(labels), dtype=np.bool_))
        if missing.any():
            said = self.endless.predict(points[missing])
            labels[missing] = object_array(self.terms.classes)[said]
        return UniversalAnswers(labels, np.ones(len(labels), dtype=np.bool_), missing)

    def switch(self, points: FloatArray) -> None:
        """Draw the hypothesis by public points, of shape (n, n_features), unless it was drawn.

        The private records are forgotten.
        """
        rows = random_rows(len(points), self.terms.n_cover, self.terms.random_state)
        endless = EndlessPart.begin(
            self._reserved,
            self.terms.hypotheses,
            self._open_records,
            points,
            rows,
            self.terms.relation,
        )
        self._take_up(endless)

    def released(self, points: FloatArray) -> UniversalRelease:
        """Return what left the house so far, as rows of `points`, of shape (n, n_features)."""
        first = None if self.session is None else self.session.released(points)
        if self.endless is None:
            return UniversalRelease(first, None)
        about = {"universal": {**self.terms.split.describe(), "part": "endless"}}
        endless = self.endless.released(
            points, self.terms.classes, about=about, purpose=self.terms.purpose
        )
        return UniversalRelease(first, endless)

    def _first_labels(self, points: FloatArray) -> ObjectArray:
        """Return the labels of the first part, None where it has none; switch at its end."""
        # A point is kept before it is asked: after a crash the cover may hold a point without an
        # answer, but never lack one that was answered.
        labels: ObjectArray = np.full(len(points), None, dtype=object)
        if self.endless is None and self.session is not None:
            self._asked.add(points)
            # raised where it is spent and none of these was asked before: a crash came just before
            # the switch
            with contextlib.suppress(BudgetError):
                labels = self.session.ask_many(points).labels
            if not self.session.left:
                self.switch(self._asked.points())
        elif self._stored:
            for row, digest in enumerate(question_digests(points)):
                labels[row] = self._stored.get(digest)
        return labels

    def _take_up(self, endless: EndlessPart) -> None:
        self.endless, self._records = endless, None
        if self._folder is not None:
            PrivateRecords.forget(self._folder)
        if self.session is not None:
            with contextlib.suppress(BudgetError):  # raised where it has answered nothing
                labels = self.session.ask_many(endless.points).labels
                self._stored = dict(zip(question_digests(endless.points), labels, strict=True))

    def _open_records(self) -> PrivateRecords:
        if self._records is not None:
            return self._records
        assert self._folder is not None
        return PrivateRecords.load(self._folder)


def first_request(request: str) -> str:
    """Return the key of the first part in the ledger."""
    return f"{request}/first"


def endless_request(request: str) -> str:
    """Return the key of the second part in the ledger."""
    return f"{request}/endless"
