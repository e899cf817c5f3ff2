"""Labels that are asked for one by one: a stream of the core, and the certificate of all its
answers."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import BoolArray, IntArray
from secretballot.accounting import PrivacyBudget, check_useful
from secretballot.accounting.recipes import deviation_of_counts
from secretballot.core import releasing
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import ConfidentLabels, Mechanism
from secretballot.core.private import Votes
from secretballot.core.releasing import Released
from secretballot.core.types import VoteShape
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.released import ReleasedLabels, labels_in
from secretballot.releasing import (
    ASKED,
    check_choices,
    check_declared,
    check_readable,
    labels_released,
)
from secretballot.report.certificate.build import choice_fields
from secretballot.report.certificate.labels_file import class_value
from secretballot.report.certificate.methods import CONFIDENCE, VOTES
from secretballot.students.confirmed import predicted_votes
from secretballot.vault import VaultFiles, keep_in_step


class LabelAnswers(NamedTuple):
    """Answers to a few questions, public as soon as they are returned.

    Attributes
    ----------
    labels : ndarray of int64, shape (n,)
        Class index, -1 for an abstention or where no answer is given.
    noisy_counts : ndarray of int64, shape (n,) or (n, n_classes), or None
        Where counts are released; 0 where no answer is given.
    given : ndarray of bool, shape (n,)
        False for questions that came after the reservation was used up or had stopped.
    left : int
        Questions that may still be answered.
    """

    labels: IntArray
    noisy_counts: IntArray | None
    given: BoolArray
    left: int


class LabelStream:
    """Reserve the right to ask teachers, or take up a reservation.

    Parameters
    ----------
    mechanism : Mechanism
    shape : VoteShape
        Of all questions together.
    ledger : Ledger
    budget : PrivacyBudget
        What all questions cost.
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
    declaration, choices
        As for `secretballot.release`.
    confidence : float, optional
        Of interactive voting: from which probability on a prediction that was not corrected counts
        as confirmed.
    plan : mapping, optional
        What the certificate will say of a run that asks all questions.

    Attributes
    ----------
    stream : AnswerStream
    price : PrivacyBudget
        What all questions cost together.
    resumable : bool
        Whether the reservation outlives this process: its vault and its ledger do.

    Raises
    ------
    ParameterError
        If the mechanism does not fit the votes, hardly answers even unanimous ones, or the request
        was reserved with other terms.
    BudgetError
        If the mechanism costs more than `budget`, or the ledger does not admit it; nothing was
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
        mechanism: Mechanism,
        shape: VoteShape,
        ledger: Ledger,
        budget: PrivacyBudget,
        *,
        classes: Sequence[Any],
        request: str,
        teachers: str = "",
        vault: Path | None = None,
        purpose: str = "",
        declaration: Mapping[str, object] | None = None,
        choices: Sequence[Released] = (),
        confidence: float | None = None,
        plan: Mapping[str, object] | None = None,
    ) -> None:
        check_declared(declaration, shape.guarantee)
        check_choices(choices, ledger, shape.guarantee)
        check_useful(mechanism, shape)
        self.ledger, self.request = ledger, request
        public: dict[str, Any] = {"method": VOTES}
        if confidence is not None:
            public[CONFIDENCE] = confidence
        asked = {
            "classes": [class_value(value) for value in classes],
            "teachers": teachers,
            "declaration": None if declaration is None else dict(declaration),
            "choices": [choice_fields(choice) for choice in choices],
        }
        if vault is not None:
            # an older copy of the ledger has lost answers, and would give them anew
            keep_in_step(vault, ledger)
        self.stream = releasing.stream(
            shape,
            mechanism,
            ledger,
            budget,
            request=request,
            public={**public, ASKED: asked},
            vault=None if vault is None else VaultFiles(vault),
            purpose=purpose,
            check=lambda planned: check_readable(_certificate_of_one(planned, plan)),
        )
        self.mechanism, self.shape, self.price = mechanism, shape, budget
        self.classes, self.confidence = tuple(classes), confidence
        self.resumable = vault is not None and ledger.durable

    @property
    def sigma(self) -> float | None:
        """Standard deviation of the noise on released counts, in votes; None for labels alone."""
        return deviation_of_counts(self.mechanism)

    @property
    def closed(self) -> bool:
        """Whether the reservation was settled: stored answers are all that comes."""
        return self.stream.closed

    @property
    def planned(self) -> int:
        """Questions paid for."""
        return self.stream.planned

    @property
    def used(self) -> int:
        """Questions answered so far, abstentions included; repeated ones count once."""
        return self.stream.used

    @property
    def left(self) -> int:
        """Questions still to be had."""
        return self.stream.left

    def find(self, questions: Sequence[bytes]) -> LabelAnswers:
        """Return the stored answers; it costs nothing and draws nothing."""
        return self._read(self.stream.find(questions))

    def answer(
        self,
        votes: Votes | Callable[[IntArray], Votes],
        questions: Sequence[bytes],
        predictions: ArrayLike | None = None,
        admit: Callable[[BoolArray], BoolArray] | None = None,
    ) -> LabelAnswers:
        """Return the answers to questions, stored ones and new ones, while any are left.

        Parameters
        ----------
        votes : Votes, or callable
            Secret; one row for each question. A callable makes those of new questions from their
            places, shape (k,), outside of the ledger's lock.
        questions : sequence of bytes
        predictions : array of shape (n, n_classes), optional
            Class probabilities of a student of released labels.
        admit : callable, optional
            A mask of shape (n,) of the questions that are new to one of those that may be asked.

        Raises
        ------
        ParameterError, DataError, LedgerError
            As for `AnswerStream.answer` and `check_predictions`.
        """
        against = self.check_predictions(predictions, len(questions))
        found = self.stream.find(questions)
        new = np.flatnonzero(~found.given if admit is None else admit(~found.given) & ~found.given)
        if len(new) and found.left:
            asked = votes.take(new) if isinstance(votes, Votes) else votes(new)
            if against is not None:
                asked = asked.against(against[new])
            drawn = self.stream.answer(asked, [questions[place] for place in new.tolist()])
            found.values[new], found.given[new] = drawn.values, drawn.given
            found = found._replace(left=drawn.left)
        return self._read(found)

    def check_predictions(self, predictions: ArrayLike | None, n_questions: int) -> IntArray | None:
        """Return predictions in votes, shape (n_questions, n_classes), None where there are none.

        Raises
        ------
        ParameterError, DataError
            If they are no probabilities of this shape, or the stream takes none.
        """
        if predictions is None:
            return None
        if self.confidence is None:
            raise ParameterError(
                Parameter("predictions"),
                " are given, and these answers contradict no student; leave them out, or use"
                " confident labels with a confidence. Nothing was spent.",
            )
        shape = n_questions, self.shape.n_classes
        return predicted_votes(predictions, shape, self.shape.n_teachers or 0)

    def _read(self, answers: releasing.Answers) -> LabelAnswers:
        labels, counts = labels_in(self.mechanism, self.shape, answers.values)
        labels = np.where(answers.given, labels, -1)
        return LabelAnswers(labels, counts, answers.given, answers.left)


def plan_of(
    planned: int, rounds: Sequence[int], strategy: Mapping[str, Any], left: str
) -> dict[str, Any]:
    """Return what a certificate says of the questions that were paid for and those that were
    asked, in their rounds, by a strategy; `left` is what becomes of the others."""
    return {
        "planned": planned,
        "used": sum(rounds),
        "rounds": list(rounds),
        "strategy": dict(strategy),
        "left": left,
    }


def certified_labels(
    done: Released,
    rows: Mapping[bytes, int] | None = None,
    plan: Mapping[str, object] | None = None,
    *,
    by_value: bool = True,
) -> ReleasedLabels:
    """Return what a stream has released, with its certificate.

    Parameters
    ----------
    done : Released
    rows : mapping of bytes to int, optional
        The row of the public pool that each question stands for; by default each for itself.
    plan : mapping, optional
        What was planned and what was used, for the certificate.
    by_value : bool
        Whether questions are digests of the points' values, which then tie the labels to them on
        the certificate.

    Raises
    ------
    DataError
        If a question was answered that `rows` does not know.
    """
    row_of = {one: row for row, one in enumerate(done.questions)} if rows is None else rows
    # a certificate lists every answer that was given, never a part of them
    unknown = sum(question not in row_of for question in done.questions)
    if unknown:
        raise DataError(
            f"{unknown} of the {len(done.questions)} answers of {done.request!r} are to other"
            " points; give all the points that were asked."
        )
    queries = np.array([row_of[one] for one in done.questions], dtype=np.int64)
    points = hashlib.sha256(b"".join(done.questions)).hexdigest() if by_value else None
    return labels_released(done, queries, points, plan)


def _certificate_of_one(planned: Released, plan: Mapping[str, object] | None) -> dict[str, Any]:
    """Return the certificate of a stream that gave all its answers; of them the digest alone
    stands there, so one is enough."""
    assert isinstance(planned.shape, VoteShape)
    mechanism, n = planned.mechanism, planned.shape.n_queries
    given = min(mechanism.stops_at or n, n) if isinstance(mechanism, ConfidentLabels) else n
    one = replace(planned, values=planned.values[:1])
    sizes = {"queries": n, "answered": given}
    return labels_released(one, np.zeros(1, np.int64), "0" * 64, plan, sizes).certificate
