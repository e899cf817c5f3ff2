"""A universal labeler at work: queries go to the first part until its end, then to one hypothesis,
drawn once by all private records.

Until the draw the private records are kept, in memory or in the vault; then they are forgotten.
"""

import contextlib
import io
import json
import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from secretballot._json_files import LARGEST_JSON
from secretballot._typing import FloatArray, ObjectArray
from secretballot.core.ledger import Ledger
from secretballot.core.releasing import Released
from secretballot.core.types import Count, Model
from secretballot.exceptions import BudgetError, DataError, LedgerError, ParameterError
from secretballot.hypotheses import HypothesisClass
from secretballot.hypotheses.finite import check_answers
from secretballot.hypotheses.points import check_points
from secretballot.learners.labelers.algorithms import BudgetSplit
from secretballot.learners.selection.candidates import chosen_release
from secretballot.learners.selection.semi_private import private_scores
from secretballot.learners.training.inputs import object_array, random_rows, single_point
from secretballot.learners.training.point_digests import doubles_digest, question_digests
from secretballot.learners.training.session import LabelingSession, SessionAnswer, SessionAnswers
from secretballot.learners.training.table import Table
from secretballot.released import ReleasedLabels
from secretballot.releasing import reserve_choice
from secretballot.students import HypothesisStudent
from secretballot.teachers.votes import guarantee_of
from secretballot.vault import keep_secret, read_secret, write_secret

_DUMMY_ROWS = 60
_ABOUT, _RECORDS, _QUERIED = "universal.json", "records.npz", "queried.npz"


@dataclass(frozen=True)
class UniversalRelease:
    """All that a universal labeler has released so far, each part with its certificate; public.

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


class UniversalTerms(Model):
    """What a universal labeler was begun with; public, and kept in the vault.

    Attributes
    ----------
    hypotheses : str
        Name and digest of the class: another one has another function under the same number.
    classes : tuple of two values
    n_features : int
    relation : {"add-remove", "replace-one"}
    n_cover : int or None
        How many of the asked points make the class finite; None for all.
    random_state : int
        Draws them.
    split : BudgetSplit
    ledger : str
    """

    hypotheses: str
    classes: tuple[Any, Any]
    n_features: Count
    relation: str
    n_cover: Count | None
    random_state: int
    split: BudgetSplit
    ledger: str

    @classmethod
    def read(cls, folder: Path) -> "UniversalTerms | None":
        """Return what is kept in a folder of the vault, None if nothing is.

        Raises
        ------
        DataError
            If it is damaged.
        """
        content = read_secret(folder / _ABOUT, largest=LARGEST_JSON)
        if content is None:
            return None
        with contextlib.suppress(ValidationError):
            return cls.model_validate_json(content, strict=True)
        raise DataError(
            f"{folder / _ABOUT} is damaged; put the vault back as it was. Nothing was spent."
        )

    def check_same(self, folder: Path) -> None:
        """Refuse to go on, in a folder of the vault, with what was begun with other settings.

        Raises
        ------
        ParameterError, DataError
            If it was, or what is kept is damaged.
        """
        kept = self.read(folder)
        # through JSON, as the kept settings went
        if kept is not None and kept != self.model_validate_json(self.model_dump_json()):
            raise ParameterError(
                f"The vault {folder} holds a reservation of this request with other settings; give"
                " the same, or another request, which is a new charge. Nothing was spent."
            )

    def keep(self, folder: Path) -> None:
        """Write it into a folder of the vault, unless it is there."""
        keep_secret(folder / _ABOUT, self.model_dump_json().encode())


class PrivateRecords(Table):
    """Points, of shape (n, n_features), and labels, 0 and 1, that are held until the switch."""

    _refusal = "private records refuse to {}; keep them in a vault."

    @classmethod
    def load(cls, folder: Path) -> "PrivateRecords":
        """Return the records kept in a folder of the vault.

        Raises
        ------
        DataError
            If there are none, or they are damaged.
        """
        found = _kept_arrays(folder / _RECORDS, points=(np.float64, 2), labels=(np.int64, 1))
        if found is None:
            raise DataError(
                f"{folder / _RECORDS} is missing; call fit again, with the records of the first"
                " fit."
            )
        points, labels = found["points"], found["labels"]
        if len(points) != len(labels) or not np.isin(labels, (0, 1)).all():
            raise _damaged(folder / _RECORDS)
        return cls(points, labels, None, None)

    def keep(self, folder: Path) -> None:
        """Write the records into a folder of the vault, mode 0600, in place of what was there."""
        _keep_arrays(folder / _RECORDS, points=self._X, labels=self._targets)

    @staticmethod
    def forget(folder: Path) -> None:
        """Remove the records from a folder of the vault, if there are any."""
        (folder / _RECORDS).unlink(missing_ok=True)


class QueriedPoints:
    """The distinct public points that were asked, in their order, up to a number of them.

    Parameters
    ----------
    n_features : int
    most : int
        Points after these are not kept.
    folder : Path or None
        Where they are kept, each before it is answered; None for in memory. Two processes that ask
        at the same moment may lose a point of each other: then fewer points are known, which costs
        accuracy and never privacy.

    Raises
    ------
    DataError
        If kept points cannot be read.
    """

    def __init__(self, n_features: int, most: int, folder: Path | None = None) -> None:
        self.most = most
        self._place = None if folder is None else folder / _QUERIED
        self._points: FloatArray = np.empty((0, n_features))
        self.points()

    def points(self) -> FloatArray:
        """Return the points so far, shape (n, n_features).

        Raises
        ------
        DataError
            If kept points cannot be read.
        """
        # Read anew each time, since another process may have asked meanwhile.
        kept = None if self._place is None else _kept_arrays(self._place, points=(np.float64, 2))
        if self._place is not None and kept is not None:
            if kept["points"].shape[1] != self._points.shape[1]:
                raise _damaged(self._place)
            self._points = kept["points"]
        return self._points

    def add(self, points: FloatArray) -> None:
        """Keep those of `points`, of shape (n, n_features), that are new, as far as there is space.

        Raises
        ------
        DataError
            If they cannot be written; no answer may then be asked for.
        """
        known = self.points()
        if len(known) >= self.most:
            return
        seen, new = set(question_digests(known)), list[int]()
        for row, digest in enumerate(question_digests(points)):
            if digest not in seen:
                seen.add(digest)
                new.append(row)
        if not new:
            return
        self._points = np.concatenate([known, points[new[: self.most - len(known)]]])
        if self._place is not None:
            _keep_arrays(self._place, points=self._points)


def _keep_arrays(path: Path, **arrays: Any) -> None:
    content = io.BytesIO()
    np.savez(content, **arrays)
    write_secret(path, content.getvalue())


def _kept_arrays(path: Path, **kinds: tuple[type, int]) -> dict[str, Any] | None:
    """Return arrays of known types and dimensions from a file of the vault, None if there is none.

    Raises
    ------
    DataError
        If it is damaged; no error carries anything of it.
    """
    content = read_secret(path)
    if content is None:
        return None
    found: dict[str, Any] = {}
    # numpy parses headers that may say anything, and raises what it likes
    with contextlib.suppress(Exception), np.load(io.BytesIO(content), allow_pickle=False) as kept:
        found = {name: kept[name] for name in kinds}
    if found and all((found[name].dtype, found[name].ndim) == kinds[name] for name in kinds):
        return found
    raise _damaged(path)


def _damaged(path: Path) -> DataError:
    return DataError(
        f"{path} is damaged; put the vault back as it was, or call fit again with the records of"
        " the first fit."
    )


class Endless:
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
    cover : ndarray of float64, shape (n_cover, n_features)
    hypothesis : Hypothesis
    n_candidates : int
    """

    def __init__(self, choice: Released, hypotheses: HypothesisClass) -> None:
        self.choice, about = choice, json.loads(choice.questions[0])
        self.points = np.array(about["points"], dtype=np.float64)
        self.cover = self.points[np.array(about["rows"], dtype=np.int64)]
        # representatives follow from the public points alone, so the number of one is enough to
        # find it again
        self.hypothesis = hypotheses.dichotomies(self.cover).hypothesis(choice.values.item())
        self.n_candidates = int(about["n_candidates"])


class UniversalSession:
    """Answer queries by a session as long as it lasts, then by one hypothesis, drawn once.

    Parameters
    ----------
    terms : UniversalTerms
    hypotheses : HypothesisClass
    first : LabelingSession or None
        The first part, paid for; None where there is none.
    ledger : Ledger
        In which the second part is reserved, unless it was before.
    records : PrivateRecords or None
        Held until the switch; None where `folder` holds them.
    folder : Path or None
        Of the vault; None where nothing outlives the process.
    request, purpose : str

    Attributes
    ----------
    split : BudgetSplit
        What each part costs; printed.
    endless : Endless or None
        None before the switch.

    Raises
    ------
    BudgetError
        If the second part was not reserved before, and the ledger does not admit it.
    LedgerError
        If the ledger cannot be used.

    Privacy
    -------
    Unit, relation, price : those of the two parts, each reserved before the first query.
    Sensitivity : one record makes at most one mistake under each candidate. The candidates follow
        from public points, which may themselves follow from earlier answers: these are paid for.
    Order : a point is kept before it is answered. The switch draws and commits to the ledger, then
        forgets the records; whatever a crash interrupts, the next query finds either no draw, and
        draws, or the committed one.
    """

    left = math.inf

    def __init__(
        self,
        terms: UniversalTerms,
        hypotheses: HypothesisClass,
        first: LabelingSession | None,
        ledger: Ledger,
        records: PrivateRecords | None,
        folder: Path | None,
        *,
        request: str,
        purpose: str = "",
    ) -> None:
        self.terms, self.split, self.first = terms, terms.split, first
        self._hypotheses = hypotheses
        self._records, self._folder = records, folder
        self._reserved = reserve_choice(
            ledger,
            epsilon=terms.split.endless_epsilon,
            request=endless_request(request),
            guarantee=guarantee_of("record", terms.relation),
            purpose=purpose or f"which of the {hypotheses.name} answers for ever",
            classes=terms.classes,
        )
        self._queried = QueriedPoints(terms.n_features, terms.split.first_questions, folder)
        self._stored: dict[bytes, Any] = {}
        self.endless: Endless | None = None
        # what was drawn under this request before is paid for, and is not drawn anew
        if not self._reserved.left:
            self._take_up()

    def __repr__(self) -> str:
        return f"UniversalSession({self.split})"

    @property
    def used(self) -> int:
        """Queries that the first part has answered, abstentions included; repeated ones count
        once."""
        return 0 if self.first is None else self.first.used

    @property
    def until_switch(self) -> int:
        """Queries that the first part may still answer; 0 when the hypothesis has taken over, or
        will now."""
        return 0 if self.endless is not None or self.first is None else self.first.left

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
            self.endless.hypothesis, self._hypotheses, self.terms.classes, self.terms.n_features
        )

    def describe(self) -> dict[str, Any]:
        """Return split and progress as JSON values; public."""
        hypothesis = None if self.endless is None else self.endless.hypothesis.describe()
        state = {"used": self.used, "until_switch": self.until_switch, "hypothesis": hypothesis}
        return {"split": self.split.model_dump(), **state}

    def ask(self, x: Any) -> SessionAnswer:
        """Return the answer to one public point, of shape (n_features,)."""
        return self.ask_many(single_point(x)).first

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to public points, of shape (n, n_features), every one of them.

        A label that the first part gave stays. What it abstained on is answered when asked after
        the switch.

        Raises
        ------
        DataError
            If the points do not fit; nothing was answered then.
        """
        points = check_points(X, self.terms.n_features)
        labels = self._first_labels(points)
        given = np.ones(len(labels), dtype=np.bool_)
        endless = np.array([label is None for label in labels], dtype=np.bool_)
        if self.endless is None:
            return SessionAnswers(labels, ~endless, given, None, self.left, ~given)
        if endless.any():
            drawn = self.endless.hypothesis.predict(points[endless])
            labels[endless] = object_array(self.terms.classes)[drawn]
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
        points = check_points(X, self.terms.n_features)
        first = None if self.first is None else self.first.released(points)
        if self.endless is None:
            return UniversalRelease(first, None)
        found = self.endless
        # The cover's digest: with it, and the points, anybody finds the function of that number.
        endless = chosen_release(
            found.choice,
            found.hypothesis.predict(points),
            np.arange(len(points)),
            self.terms.classes,
            about={
                "hypotheses": self._hypotheses.name,
                "hypothesis": found.hypothesis.describe(),
                "points_sha256": doubles_digest(found.cover),
                "n_candidates": found.n_candidates,
                "n_public": len(found.cover),
                "universal": {**self.split.model_dump(), "part": "endless"},
            },
            unit_column=None,
        )
        return UniversalRelease(first, endless)

    def draw_at_once(self, known: FloatArray) -> None:
        """Draw by points that are known beforehand, of shape (n, n_features), of which the ledger
        keeps those that make the class finite.

        Raises
        ------
        ParameterError
            If it was drawn by others.
        """
        cover = known[random_rows(len(known), self.terms.n_cover, self.terms.random_state)]
        if self.endless is None:
            self.switch(cover)
        elif not np.array_equal(self.endless.points, cover):
            raise ParameterError(
                "The hypothesis was drawn by other public points; give the same, or another"
                " request, which is a new charge. Nothing was spent."
            )

    def switch(self, points: FloatArray) -> None:
        """Draw the hypothesis by public points, of shape (n, n_features), unless it was drawn.

        The private records are forgotten.
        """
        # the records are opened only where there is something to draw
        if self._reserved.left:
            rows = random_rows(len(points), self.terms.n_cover, self.terms.random_state)
            dichotomies = self._hypotheses.dichotomies(points[rows])
            records = self._records
            if records is None:
                assert self._folder is not None
                records = PrivateRecords.load(self._folder)
            [block] = records.one_of_each_unit(sys.maxsize)
            unit, relation = "record", self.terms.relation
            scores = private_scores(dichotomies, block.rows, block.targets, unit, relation)
            fixed = {"points": points.tolist(), "rows": rows.tolist()}
            question = json.dumps({"n_candidates": len(dichotomies), **fixed})
            self._reserved.answer(scores, [question.encode()])
        self._take_up()

    def _take_up(self) -> None:
        """Go on with the hypothesis that was drawn, here or elsewhere."""
        if not self._reserved.closed:
            # the answer is stored: the end notes what drew it, and another process may have done so
            with contextlib.suppress(LedgerError):
                self._reserved.close()
        self.endless, self._records = Endless(self._reserved.released(), self._hypotheses), None
        if self._folder is not None:
            PrivateRecords.forget(self._folder)
        if self.first is not None:
            with contextlib.suppress(BudgetError):  # raised where it has answered nothing
                labels = self.first.ask_many(self.endless.points).labels
                digests = question_digests(self.endless.points)
                self._stored = dict(zip(digests, labels, strict=True))

    def _first_labels(self, points: FloatArray) -> ObjectArray:
        """Return the labels of the first part, None where it has none; switch at its end."""
        # A point is kept before it is asked: after a crash the cover may hold a point without an
        # answer, but never lack one that was answered.
        labels: ObjectArray = np.full(len(points), None, dtype=object)
        if self.endless is None and self.first is not None:
            self._queried.add(points)
            # raised where it is spent and none of these was asked before: a crash came just before
            # the switch
            with contextlib.suppress(BudgetError):
                labels = self.first.ask_many(points).labels
            if not self.first.left:
                self.switch(self._queried.points())
        elif self._stored:
            for row, digest in enumerate(question_digests(points)):
                labels[row] = self._stored.get(digest)
        return labels


def first_request(request: str) -> str:
    """Return the key of the first part in the ledger."""
    return f"{request}/first"


def endless_request(request: str) -> str:
    """Return the key of the second part in the ledger."""
    return f"{request}/endless"


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
