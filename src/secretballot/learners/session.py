"""Labels that are asked for one by one, under one reservation, as long as it lasts: a stream of the
core with the certificate of all its answers, and the session of teachers that uses it."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy import sparse

from secretballot._files import LARGEST_JSON, json_fields
from secretballot._typing import BoolArray, IntArray, ObjectArray
from secretballot._validation import check_count, check_instance, check_name, check_path
from secretballot.accounting import PrivacyBudget, check_useful
from secretballot.accounting.recipes import Terms, deviation_of_counts
from secretballot.core import releasing
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import ConfidentLabels, Mechanism
from secretballot.core.private import Votes
from secretballot.core.releasing import Released, terms_of
from secretballot.core.types import VoteShape
from secretballot.exceptions import BudgetError, DataError, LedgerError, ParameterError
from secretballot.learners.inputs import n_columns, question_digests, single_point
from secretballot.learners.trained import TrainedTeachers
from secretballot.released import ReleasedLabels, labels_in
from secretballot.releasing import (
    ASKED,
    check_declared,
    check_paid_by,
    check_readable,
    labels_released,
)
from secretballot.report.certificate_models import class_value
from secretballot.students.confirmed import predicted_votes
from secretballot.teachers.rows import take_rows
from secretballot.vault import VaultFiles, is_other_ledger, keep_in_step, read_secret, write_secret


@dataclass(frozen=True, eq=False)
class SessionAnswers:
    """The answers to questions; public.

    Attributes
    ----------
    labels : ndarray of object, shape (n,)
        Class values; None where the session abstained or the reservation was spent.
    answered : ndarray of bool, shape (n,)
        Where there is a label.
    given : ndarray of bool, shape (n,)
        False where the reservation was spent before the question came.
    noisy_counts : ndarray of int64, shape (n,) or (n, n_classes), or None
        Where counts are released.
    left : float
        Questions that are still paid for: an integer, or infinity of a universal labeler.
    """

    labels: ObjectArray
    answered: BoolArray
    given: BoolArray
    noisy_counts: IntArray | None
    left: float

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def label(self) -> Any:
        """The label of the first question; None where the session abstained."""
        return self.labels[0]


class LabelStream:
    """Reserve the right to ask teachers, or take up a reservation.

    Parameters
    ----------
    terms : Terms
        Of all questions together.
    votes : callable
        What is asked, in rows, to the votes on it; secret.
    ledger : Ledger
    classes : sequence
        Class values; public.
    request : str
        Key of the reservation in the ledger.
    teachers : str
        Names the teachers: a reservation goes on only with those it began with. Not computed from
        private data.
    vault : Path, optional
        Refuses older copies of the ledger, and keeps what the next answer depends on.
    purpose : str
    declaration
        As for `secretballot.release`.
    plan : mapping, optional
        What the certificate will say of a run that asks all questions.

    Attributes
    ----------
    price : PrivacyBudget
        What all questions cost together.
    sigma : float or None
        Standard deviation of the noise on released counts, in votes; None for labels alone.
    resumable : bool
        Whether the reservation outlives this process: its vault and its ledger do.

    Raises
    ------
    ParameterError
        If the mechanism does not fit the votes, hardly answers even unanimous ones, or the request
        was reserved with other terms.
    BudgetError
        If the mechanism costs more than the budget, or the ledger does not admit it; nothing was
        spent.
    LedgerError
        If the ledger cannot be used, is about another unit or relation, or is older than what the
        vault has seen of it.

    Privacy
    -------
    As for `core.releasing.stream`.
    """

    def __init__(
        self,
        terms: Terms,
        votes: Callable[[Any], Votes],
        ledger: Ledger,
        *,
        classes: Sequence[Any],
        request: str,
        teachers: str = "",
        vault: Path | None = None,
        purpose: str = "",
        declaration: Mapping[str, object] | None = None,
        plan: Mapping[str, object] | None = None,
    ) -> None:
        check_declared(declaration, terms.shape.guarantee)
        check_useful(terms.mechanism, terms.shape)
        asked = {
            "classes": [class_value(value) for value in classes],
            "teachers": teachers,
            "declaration": None if declaration is None else dict(declaration),
            "choices": [],
        }
        if vault is not None:
            # an older copy of the ledger has lost answers, and would give them anew
            keep_in_step(vault, ledger)
        self._stream = releasing.stream(
            replace(terms, public={**terms.public, ASKED: asked}, purpose=purpose),
            ledger,
            request=request,
            vault=None if vault is None else VaultFiles(vault),
            check=lambda planned: check_readable(_certificate_of_one(planned, plan)),
        )
        self._terms, self._votes, self.price = terms, votes, terms.budget
        self.sigma = deviation_of_counts(terms.mechanism)
        self.ledger, self.request, self.classes = ledger, request, tuple(classes)
        self.resumable = vault is not None and ledger.durable

    @property
    def closed(self) -> bool:
        """Whether the reservation was settled: stored answers are all that comes."""
        return self._stream.closed

    @property
    def planned(self) -> int:
        """Questions paid for."""
        return self._stream.planned

    @property
    def used(self) -> int:
        """Questions answered so far, abstentions included; repeated ones count once."""
        return self._stream.used

    @property
    def left(self) -> int:
        """Questions still to be had."""
        return self._stream.left

    def left_over(self, *, ends: bool = False) -> str:
        """Return what becomes of unused questions, where the stream is settled now if `ends` is
        true: a reservation stays open unless it returns its rest or cannot be resumed."""
        if self._stream.returns and (ends or self.closed):
            return "returned"
        return "kept" if self.left and (self.resumable or not ends) else "forfeited"

    def answer(
        self,
        asked: Any,
        questions: Sequence[bytes],
        predictions: ArrayLike | None = None,
        admit: Callable[[BoolArray, int], BoolArray] | None = None,
    ) -> SessionAnswers:
        """Return the answers to questions, stored ones and new ones, while any are left.

        Parameters
        ----------
        asked : array, sparse matrix or frame of shape (n, ...)
            What the teachers vote on, outside of the ledger's lock; of new questions alone.
        questions : sequence of bytes
            One for each row of it.
        predictions : array of shape (n, n_classes), optional
            Class probabilities of a student of released labels, which confident labels contradict.
        admit : callable, optional
            A mask of shape (n,) of the questions that are new, and how many are left, to a mask of
            those that may be asked.

        Raises
        ------
        ParameterError, DataError, LedgerError
            As for `AnswerStream.answer`, or if predictions have another shape.
        """
        shape, against = self._terms.shape, None
        if predictions is not None:
            against = predicted_votes(predictions, shape.n_teachers or 0)
        found = self._stream.find(questions)
        fresh = ~found.given
        (new,) = (fresh if admit is None else admit(fresh, found.left) & fresh).nonzero()
        if len(new) and found.left:
            votes = self._votes(take_rows(asked, new))
            if against is not None:
                votes = votes.against(against[new])
            drawn = self._stream.answer(votes, [questions[place] for place in new.tolist()])
            found.values[new], found.given[new] = drawn.values, drawn.given
            found = found._replace(left=drawn.left)
        return self._read(found)

    def _read(self, answers: releasing.Answers) -> SessionAnswers:
        index, counts = labels_in(self._terms.mechanism, self._terms.shape, answers.values)
        answered = answers.given & (index >= 0)
        labels = np.full(len(index), None, dtype=object)
        for row in np.flatnonzero(answered):
            labels[row] = self.classes[index[row]]
        return SessionAnswers(labels, answered, answers.given, counts, answers.left)


def plan_of(
    planned: int, rounds: Sequence[int], strategy: Mapping[str, Any], left: str
) -> dict[str, Any]:
    """Return what a certificate says of the questions that were paid for and those that were
    asked, in their rounds, by a strategy; `left` is what becomes of the others, if any."""
    used = sum(rounds)
    return {
        "planned": planned,
        "used": used,
        "rounds": list(rounds),
        "strategy": dict(strategy),
        "left": "none" if used == planned else left,
    }


def certified_labels(
    done: Released,
    rows: Mapping[bytes, int] | None = None,
    plan: Mapping[str, object] | None = None,
) -> ReleasedLabels:
    """Return what a stream has released, with its certificate.

    Parameters
    ----------
    done : Released
    rows : mapping of bytes to int, optional
        The row of the public pool that each question stands for; by default each for itself.
    plan : mapping, optional
        What was planned and what was used, for the certificate.

    Raises
    ------
    DataError
        If a question was answered that `rows` does not know.
    """
    # questions are digests of the points' values, and so tie the labels to them
    points = hashlib.sha256(b"".join(done.questions)).hexdigest()
    if rows is None:
        return labels_released(done, np.arange(len(done.questions)), points, plan)
    # a certificate lists every answer that was given, never a part of them
    unknown = sum(question not in rows for question in done.questions)
    if unknown:
        raise DataError(
            f"{unknown} of the {len(done.questions)} answers of {done.request!r} are to other"
            " points; give all the points that were asked."
        )
    queries = np.array([rows[one] for one in done.questions], dtype=np.int64)
    return labels_released(done, queries, points, plan)


def _certificate_of_one(planned: Released, plan: Mapping[str, object] | None) -> dict[str, Any]:
    """Return the certificate of a stream that gave all its answers; of them the digest alone
    is there, so one is enough."""
    assert isinstance(planned.shape, VoteShape)
    mechanism, n = planned.mechanism, planned.shape.n_queries
    given = min(mechanism.stops_at or n, n) if isinstance(mechanism, ConfidentLabels) else n
    one = replace(planned, values=planned.values[:1])
    sizes = {"queries": n, "answered": given}
    return labels_released(one, np.zeros(1, np.int64), "0" * 64, plan, sizes).certificate


class LabelingSession(LabelStream):
    """Answer questions that nobody knew beforehand, each with a private label, under one price.

    The price of all questions is reserved when the session begins. A question that was asked before
    gets its stored answer and costs nothing. Every answer is on the disk before it is returned, so
    that a session that dies at any moment goes on where it was: nothing is answered unpaid, and
    nothing is paid twice. Threads may share a session, and processes may each open it under its
    name.

    Parameters
    ----------
    teachers : TrainedTeachers
        From `train_teachers`; with a vault if the session is to outlive the process.
    mechanism : Mechanism
        Fixed without looking at the votes.
    ledger : Ledger
        Account of the private dataset.
    budget : PrivacyBudget
        What all questions cost together.
    n_queries : int
        Questions that are paid for.
    request : str
        Key of the session in the ledger: opening it again under its key goes on with the same
        reservation.
    purpose : str
        Why, in a few words; public.

    Attributes
    ----------
    planned, used, left : int
        Questions paid for, answered so far (abstentions included), and still to be had.

    Raises
    ------
    ParameterError
        If the mechanism does not fit the teachers, or the session was begun with other terms.
    BudgetError
        If the mechanism costs more than `budget`, or the ledger does not admit it; nothing was
        spent.
    LedgerError
        If the ledger cannot be used, or is older than what the vault has seen of it.

    Privacy
    -------
    Unit, relation : those of the teachers' shards.
    Sensitivity : one unit touches one teacher, hence one vote for every question.
    Price : that of all questions, however they are chosen in the light of earlier answers.
    Source : Nandi and Bassily 2020, Algorithm 1 and Definition 2.2 (private classification-query
        release); Liu et al. 2021, Algorithms 1, 2 and 4.
    Rounding : upward.

    Examples
    --------
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> teachers = sb.train_teachers(
    ...     "tree", X, (X[:, 0] > 0).astype(int), classes=[0, 1], n_teachers=20)
    >>> budget = sb.PrivacyBudget(epsilon=2.0, delta=1e-6)
    >>> ledger = sb.Ledger.in_memory(dataset="example", budget=budget)
    >>> labels = sb.accounting.noisy_votes(budget, teachers.shape(10))
    >>> session = sb.LabelingSession(teachers, labels, ledger, budget, n_queries=10)
    >>> session.ask([1.0, 0.0]).label in (0, 1)
    True
    >>> _ = session.ask([1.0, 0.0])  # asked before: the stored answer, for nothing
    >>> session.planned, session.used, session.left
    (10, 1, 9)
    """

    def __init__(
        self,
        teachers: TrainedTeachers,
        mechanism: Mechanism,
        ledger: Ledger,
        budget: PrivacyBudget,
        *,
        n_queries: int,
        request: str = "session",
        purpose: str = "",
    ) -> None:
        check_instance(
            "teachers", teachers, TrainedTeachers, hint="give what train_teachers returned"
        )
        check_paid_by(mechanism, ledger, budget)
        check_name("request", request)
        self._teachers = teachers
        durable = teachers.vault if ledger.durable else None
        kept = None if teachers.sample is None else teachers.vault
        if kept is not None and (durable is None or is_other_ledger(kept, ledger)):
            raise ParameterError(
                "These teachers were kept for the one reservation of a secret sample, and this"
                " ledger does not hold it; give the ledger of that reservation. Nothing was spent."
            )
        shape = teachers.shape(check_count("n_queries", n_queries))
        super().__init__(
            Terms(mechanism, shape, budget),
            lambda points: teachers.vote(points, request=request),
            ledger,
            classes=teachers.classes,
            request=request,
            teachers=teachers.serial,
            vault=durable,
            purpose=purpose,
            declaration=teachers.declaration,
        )
        # Only after the stream has reserved: a crash in between leaves a session that is begun
        # again under its key, without a second charge.
        if durable is not None and ledger.place is not None:
            about = {"ledger": ledger.place, "name": request}
            write_secret(_session_file(durable, request), json.dumps(about).encode())

    @classmethod
    def reopen(cls, vault: str | Path, *, request: str = "session") -> Self:
        """Go on with a session after a restart, from its vault and its ledger alone.

        Raises
        ------
        DataError
            If the vault holds no such session, or its teachers cannot be read.
        LedgerError
            If the ledger is not where it was, or does not fit the vault.
        """
        check_path("vault", vault)
        check_name("request", request)
        folder = Path(vault)
        place = _session_file(folder, request)
        # A folder that is missing is no vault: reading would be refused as damage, not as absence.
        content = read_secret(place, largest=LARGEST_JSON) if folder.is_dir() else None
        if content is None:
            raise DataError(
                f"The vault {folder} holds no session {request!r}; give the vault and the request"
                " it began with."
            )
        about = json_fields(content, {"ledger": str})
        if about is None:
            raise DataError(f"{place} is damaged; put the vault back as it was.")
        account = Ledger.open_existing(about["ledger"])
        entry = account.entry(request)
        if entry is None or not entry.terms:
            raise LedgerError(
                f"The ledger {about['ledger']!r} does not hold the session {request!r}; restore its"
                " newest copy. Nothing was spent."
            )
        terms = terms_of(entry)
        return cls(
            TrainedTeachers.load(folder),
            terms.mechanism,
            account,
            terms.budget,
            n_queries=terms.shape.n_queries,  # type: ignore[union-attr]  # a session asks teachers
            request=request,
            purpose=terms.purpose,
        )

    def __repr__(self) -> str:
        return (
            f"LabelingSession({self.request!r}, {self.used} of {self.planned} answered, {self.left}"
            " left)"
        )

    @property
    def n_teachers(self) -> int:
        """Number of teachers."""
        return self._teachers.n_teachers

    @property
    def terms(self) -> dict[str, Any]:
        """The mechanism, as on certificates."""
        return self._terms.mechanism.model_dump(mode="json")

    @property
    def columns(self) -> dict[str, Any]:
        """The columns and types of points, as JSON values."""
        template = self._teachers.template
        if hasattr(template, "iloc"):
            kinds = [(name, template[name].dtype) for name in template.columns]
            return {"kind": "frame", "columns": [_column_fields(*column) for column in kinds]}
        kind = "sparse" if sparse.issparse(template) else "array"
        return {"kind": kind, "dtype": template.dtype.str, "columns": n_columns(template)}

    def ask(self, x: Any) -> SessionAnswers:
        """Return the answer to one point.

        Parameters
        ----------
        x : array of shape (n_features,), dict of cells, or a frame or matrix of one row
            A public point.

        Raises
        ------
        DataError
            If the point does not fit the teachers.
        BudgetError
            If the point was never asked and the reservation is spent.
        """
        return self.ask_many(single_point(x))

    def ask_many(self, X: Any) -> SessionAnswers:
        """Return the answers to the rows of `X`, in their order, while questions are left.

        New ones are drawn and stored in one durable transaction, up to a thousand at a time; with
        a mechanism that stops at some answer, in one each.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Public points.

        Raises
        ------
        DataError
            If the points do not fit; nothing was answered then.
        BudgetError
            If none of them was asked before and the reservation is spent.
        """
        answers = self.ask_admitted(X)
        if not answers.given.any():
            raise BudgetError(
                f"All {self.planned} questions of the session {self.request!r} are spent; stored"
                " answers stay free, and another session, under another request, is a new charge."
            )
        return answers

    def ask_admitted(
        self, X: Any, admit: Callable[[BoolArray, int], BoolArray] | None = None
    ) -> SessionAnswers:
        """Return the answers to the rows of `X`, as `ask_many`, after somebody else has decided
        which new ones may be asked.

        For those who answer for several people: a quota is counted before anything is drawn.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Public points.
        admit : callable, optional
            Called once, with a mask of shape (n,) of the rows that have no answer yet, and how many
            questions are left; returns a mask of those that may be asked. The others stay without
            an answer.

        Returns
        -------
        SessionAnswers
            Perhaps without any answer given: nothing is raised where the reservation is spent.

        Raises
        ------
        DataError
            If the points do not fit; nothing was answered then.
        """
        points = self._teachers.points(X)
        return self.answer(points, question_digests(points), admit=admit)

    def points(self, X: Any) -> Any:
        """Return points, of shape (n, n_features), as the teachers take them; nothing is asked.

        Raises
        ------
        DataError
            If they do not fit.
        """
        return self._teachers.points(X)

    def stored(self, X: Any) -> SessionAnswers:
        """Return the answers to those rows of `X` that were asked before; nothing is drawn.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Public points.

        Raises
        ------
        DataError
            If the points do not fit the teachers.
        """
        return self._read(self._stream.find(question_digests(self._teachers.points(X))))

    def transcript(self) -> ReleasedLabels:
        """Return all answers so far with the certificate of the reservation, in the order in which
        they were asked: row i is the i-th question.

        For those who do not hold the points. The certificate binds labels to the points by the
        digest of all of them.
        """
        return self._certified(None)

    def released(self, X: Any) -> ReleasedLabels:
        """Return all answers so far with the certificate of the reservation, as rows of `X`.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Public points, with all that were asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        """
        return self._certified(self._rows_of_questions(X))

    def close(self, X: Any) -> ReleasedLabels:
        """Settle the session and return `released(X)`, for ever.

        Unused questions go back into a Renyi ledger.

        Parameters
        ----------
        X : array, sparse matrix or frame of shape (n, n_features)
            Public points, with all that were asked among them.

        Raises
        ------
        DataError
            If a point that was asked is not in `X`.
        LedgerError
            If the session is closed already, or the ledger cannot be written.
        """
        # what has another point among it is refused before it is too late
        self._stream.close(len(self.released(X).queries))
        return self.released(X)

    def _rows_of_questions(self, X: Any) -> dict[bytes, int]:
        """Return the first row of each question."""
        questions = question_digests(self._teachers.points(X))
        return {question: row for row, question in reversed(list(enumerate(questions)))}

    def _certified(self, rows: dict[bytes, int] | None) -> ReleasedLabels:
        """Return all answers so far; without rows, each question stands for itself."""
        # looked at first: what is settled stays as it is, whoever asks meanwhile
        left, done = self.left_over(), self._stream.released()
        used = len(done.questions)
        rounds = [1] * used if used <= 100 else [used]
        return certified_labels(
            done, rows, plan_of(self.planned, rounds, {"name": "session"}, left)
        )


def _column_fields(name: Any, kind: Any) -> list[Any]:
    # the name of a categorical type does not say its categories
    if isinstance(kind, pd.CategoricalDtype):
        return [name, "category", [kind.categories.tolist(), bool(kind.ordered)]]
    return [name, str(kind), None]


def _session_file(vault: Path, request: str) -> Path:
    """Return the file that names what a session was begun with."""
    digest = question_digests(np.array([[request]], dtype=object))[0]
    return vault / "sessions" / f"{digest.hex()}.json"
