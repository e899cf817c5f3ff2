"""A number of answers that is reserved as a whole and given query by query, each on the disk
before it is returned."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from secretballot._typing import BoolArray, IntArray
from secretballot._validation import check_count
from secretballot.aggregation import Aggregator
from secretballot.core.ledger import Ledger, LedgerEntry
from secretballot.core.ledger.account import AnswerPage
from secretballot.core.ledger.rows import repeated
from secretballot.core.mechanisms import NoisyVotes, TableLabels
from secretballot.core.noise import NoiseSource
from secretballot.core.private import Votes
from secretballot.door import purchase
from secretballot.door.known_ledger import keep_in_step
from secretballot.door.outcomes import PaidOutcome, check_outcomes
from secretballot.door.reservation_terms import ReservationFiles
from secretballot.door.secret_state import StateStore
from secretballot.door.stored_answers import StoredAnswer
from secretballot.exceptions import DataError, LedgerError
from secretballot.privacy.accounting import Event
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.build import (
    build_certificate,
    check_declaration,
    describe_released,
)

# answers drawn in one transaction at most, so that others who ask do not wait for long
BLOCK = 1000


@dataclass(frozen=True, eq=False)
class StreamAnswers:
    """Answers to a few questions, public as soon as they are returned.

    Attributes
    ----------
    labels : ndarray of int64, shape (n,)
        Class index, -1 where the aggregator abstained or gave no answer.
    noisy_counts : ndarray of int64, shape (n,) or (n, n_classes), or None
        Where counts are released; 0 where no answer was given.
    given : ndarray of bool, shape (n,)
        False for questions that came after the reservation was used up or the stream had stopped.

    Examples
    --------
    >>> answers = sb.door.StreamAnswers(np.array([1, -1]), None, np.array([True, False]))
    >>> int(answers.given.sum())
    1
    """

    labels: IntArray
    noisy_counts: IntArray | None
    given: BoolArray


class ReleaseStream:
    """Reserve the right to ask, or take up a reservation, and answer query by query.

    Parameters
    ----------
    aggregator : Aggregator
        The terms: recipe, noise and number of queries, fixed without looking at the votes.
    ledger : Ledger
        Account of the private dataset. The price of all queries is reserved here before anything
        is answered, and every answer is stored here before it is returned.
    classes : sequence
        Class values that the teachers vote on; public.
    n_teachers : int
        Number of teachers; public.
    request : str
        Key of the reservation in the ledger.
    teachers : str
        Names the teachers, and through them everything that was fixed before: a reservation goes on
        only with the teachers it began with. Not computed from private data.
    vault : path, optional
        Secret folder that ties the reservation to its teachers and keeps what the next answer
        depends on. Without one the reservation ends with this object, and what is left of it stays
        spent.
    purpose : str
        Why, in a few words; public.
    declaration, choices
        As for `secretballot.release`.
    plan : mapping, optional
        What the certificate will say of the run, where it says something: that of a run which asks
        all queries.

    Attributes
    ----------
    planned : int
        Queries that were paid for.
    reservation : int
        Number of the reservation in the ledger.
    resumable : bool
        Whether the reservation outlives this process: its vault and its ledger do.

    Raises
    ------
    ParameterError
        If the aggregator does not fit the votes, or the request was reserved with other terms.
    BudgetError
        If the ledger's budget does not admit the price; nothing was spent.
    LedgerError
        If the ledger cannot be used, is about another unit or relation, has the request but the
        vault has not, or is older than what the vault has seen of it.

    Privacy
    -------
    Unit, relation, sensitivity : as for `secretballot.release`.
    Price : that of the whole reservation, whoever asks and however the questions are chosen, and
        whenever one stops: stopping early does not make it smaller (differences 5). A question that
        was asked before gets its stored answer.
    Order : within one transaction of the ledger: look for a stored answer, draw, keep the secret
        state in the vault, store the answer; it returns only once it is on the disk. What a crash
        interrupts was neither given nor counted.
    Source : Liu et al. 2021, Algorithm 4 and its "labeling service"; Nandi, Bassily 2020, Algorithm
        1.
    Rounding : upward.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=budget)
    >>> aggregator = sb.aggregation.NoisyVoting.calibrate(budget, 10, n_teachers=100)
    >>> stream = sb.door.ReleaseStream(
    ...     aggregator, ledger, classes=[0, 1], n_teachers=100, request="first", teachers="of today"
    ... )
    >>> stream.planned, stream.left, ledger.spent().epsilon
    (10, 10, 1.0)
    """

    def __init__(
        self,
        aggregator: Aggregator,
        ledger: Ledger,
        *,
        classes: Sequence[Any],
        n_teachers: int,
        request: str,
        teachers: str = "",
        vault: str | Path | None = None,
        purpose: str = "",
        declaration: Mapping[str, object] | None = None,
        choices: Sequence[PaidOutcome] = (),
        plan: Mapping[str, object] | None = None,
    ) -> None:
        purchase.check_types(aggregator, ledger)
        self.aggregator, self.ledger, self.request, self.purpose = (
            aggregator,
            ledger,
            request,
            purpose,
        )
        self.classes, self.n_teachers = tuple(classes), check_count("n_teachers", n_teachers)
        self.planned = aggregator.n_queries
        self._declaration, self._choices = declaration, tuple(choices)
        self._declared = declared = check_declaration(declaration)
        # all that can be refused is refused before anything is reserved
        ledger.check_promise(str(declared["unit"]), str(declared["neighbours"]))
        check_outcomes(choices, ledger, declared)
        purchase.check_sample(aggregator.sample, declaration, request)
        self._mechanism, self._shape = purchase.terms_of(
            aggregator, len(self.classes), self.n_teachers, declared, request
        )
        self._events = (purchase.event_of(aggregator, self._mechanism, self._shape),)
        self._paid = purchase.priced(self._events, aggregator.budget)
        # an older copy of the ledger has lost answers, and would give them anew with fresh noise
        if vault is not None:
            keep_in_step(Path(vault), ledger)
        files = ReservationFiles(None if vault is None else Path(vault), request)
        terms, kept = self._lasting_terms(teachers, declared), files.kept()
        # other terms under a known key are refused here, as after the purchase the refusal would
        # have cost the budget
        if kept is not None:
            files.check(kept, terms, reserved=ledger.entry(request) is not None)
        entry, reserved_now = self._reserved_entry(plan)
        self._origin = files.tie(terms, entry, self._events, reserved_now=reserved_now)
        self.reservation = entry.id
        self.resumable = files.state is not None and ledger.durable
        self._states = StateStore(files.state, f"{ledger.account} {entry.id}")

    def __repr__(self) -> str:
        return f"ReleaseStream({self.request!r}, {self.used} of {self.planned} queries answered)"

    # --- what is left ---

    @property
    def used(self) -> int:
        """Number of queries answered so far, abstentions included."""
        return self._own_entry().parts

    @property
    @repeated
    def left(self) -> int:
        """Number of queries that may still be answered; 0 once the stream has stopped or is
        closed."""
        with self.ledger.reading(self.reservation) as page:
            return self._left_on(page)

    def _left_on(self, page: AnswerPage) -> int:
        used, abstained = page.count, _last_answer(page.last())[0]
        if page.closed or self._has_stopped(used, abstained):
            return 0
        return self.planned - used

    def _has_stopped(self, used: int, abstained: int) -> bool:
        """Return whether the last abstention or the last answer of the aggregator was given."""
        silent, answers = self.aggregator.most_abstentions, self.aggregator.most_answers
        return (silent is not None and abstained >= silent) or (
            answers is not None and used - abstained >= answers
        )

    @property
    @repeated
    def closed(self) -> bool:
        """Whether the reservation was settled: stored answers are all that comes."""
        with self.ledger.reading(self.reservation) as page:
            return page.closed

    # --- asking ---

    @repeated
    def find(self, questions: Sequence[bytes]) -> StreamAnswers:
        """Return the stored answers to `questions`; it costs nothing and draws nothing."""
        with self.ledger.reading(self.reservation) as page:
            return self._answers_of(questions, page.find(questions))

    @repeated
    def find_with_left(self, questions: Sequence[bytes]) -> tuple[StreamAnswers, int]:
        """Return what `find` does, and how many queries were left then: one look at the ledger."""
        with self.ledger.reading(self.reservation) as page:
            return self._answers_of(questions, page.find(questions)), self._left_on(page)

    def answer(
        self,
        counts: Votes,
        questions: Sequence[bytes],
        predictions: ArrayLike | None = None,
    ) -> StreamAnswers:
        """Answer questions, those asked before from the store, new ones with fresh noise as long as
        the reservation lasts.

        The new ones are drawn and stored in one durable transaction, up to a thousand at a time, so
        that questions that come together cost one flush of the disk. Only an aggregator that may
        stop (`most_abstentions`) takes one transaction for each.

        Parameters
        ----------
        counts : Votes
            Votes of the reservation's teachers on every question; secret.
        questions : sequence of bytes, one for each row of `counts`
            What tells one question from another; public. The same bytes get the same answer.
        predictions : array of shape (n, n_classes), optional
            Of a student of released labels, as for `secretballot.release`.

        Raises
        ------
        DataError
            If there is not one question for each row, or the votes are of other teachers or
            classes.
        LedgerError
            If the ledger cannot be written, or the vault does not fit it; the next call goes on
            where this one ended.
        """
        self._check_votes(counts, questions)
        self.check_predictions(predictions, len(questions))
        stored: dict[bytes, bytes] = {}
        rows = {question: row for row, question in reversed(list(enumerate(questions)))}
        asked = list(dict.fromkeys(questions))
        # A stream that may stop stores as many answers as it drew: were there several at once, a
        # disk too full for the later ones would say, before anything is stored, that it had not
        # stopped, and draw anew.
        stops = (self.aggregator.most_abstentions, self.aggregator.most_answers) != (None, None)
        size = 1 if stops else BLOCK
        for start in range(0, len(asked), size):
            block = asked[start : start + size]
            stored |= self._answer_block(
                counts, {question: rows[question] for question in block}, predictions
            )
            if any(question not in stored for question in block):
                # the reservation is spent, stopped or closed, for ever: of all others those alone
                # have answers that were asked before
                stored |= self._stored_answers(asked[start + size :])
                break
        return self._answers_of(questions, stored)

    def check_predictions(self, predictions: ArrayLike | None, n_questions: int) -> None:
        """Refuse predictions that are not of shape (n_questions, n_classes), are no probabilities,
        or are not asked for.

        Raises
        ------
        ParameterError, DataError
            If that is the case.
        """
        purchase.check_predictions(self.aggregator, predictions, n_questions, self.n_teachers)

    @repeated  # what was drawn and not stored was seen by nobody
    def _answer_block(
        self, counts: Votes, rows: Mapping[bytes, int], predictions: ArrayLike | None
    ) -> dict[bytes, bytes]:
        if self.closed:
            return self._stored_answers(list(rows))
        noise = purchase.noise_source()  # outside the transaction: loading it takes long
        with self.ledger.answering(self.reservation) as page:
            stored = page.find(rows)
            new = [question for question in rows if question not in stored][
                : self.planned - page.count
            ]
            if new:
                places = [rows[question] for question in new]
                against = None if predictions is None else np.asarray(predictions)[places]
                stored |= self._draw_and_store(page, counts.take(places), new, noise, against)
        return stored

    @repeated
    def _stored_answers(self, questions: Sequence[bytes]) -> dict[bytes, bytes]:
        with self.ledger.reading(self.reservation) as page:
            return page.find(questions)

    def _draw_and_store(
        self,
        page: AnswerPage,
        counts: Votes,
        questions: Sequence[bytes],
        noise: NoiseSource,
        predictions: ArrayLike | None,
    ) -> dict[bytes, bytes]:
        """Draw, keep the secret state, store.

        Inside the transaction that makes it all hold or nothing.
        """
        abstained, mark = _last_answer(page.last())
        before = self._state_after(mark, page.count - abstained)
        run = self.aggregator.start(self.n_teachers, noise, before)
        if run.stopped:
            return {}
        answers = purchase.next_answers(run, counts._unseal()[0], predictions)
        state = run.secret_state
        # the state is kept before the answers that name it
        mark = self._origin if state is None else self._states.save(mark, state)
        parts = []
        for row, question in enumerate(questions[: answers.n_reached]):
            label = int(answers.labels[row])
            abstained += int(label < 0)
            noisy = None if answers.noisy_counts is None else answers.noisy_counts[row].tolist()
            parts.append((question, StoredAnswer(label, noisy, abstained, mark).encode()))
        page.add(parts)
        return dict(parts)

    def _state_after(self, mark: str | None, answered: int) -> dict[str, int] | None:
        """Return what the next answer depends on besides its votes, if the last one was given by
        this very reservation."""
        if self.aggregator.most_abstentions is not None:
            return self._states.load(mark)
        if mark is not None and mark != self._origin:
            raise LedgerError(
                f"Request {self.request!r} is answered from another vault; go on with that one, or"
                " ask under another key, which is a new charge."
            )
        # how many were answered is told by the answers, so the ledger keeps it and no vault
        return None if self.aggregator.most_answers is None else {"n_answered": answered}

    # --- what came out ---

    def order(self) -> list[bytes]:
        """Return every question that was answered, in order."""
        return [question for question, _ in self._parts()]

    def released(
        self,
        rows: Mapping[bytes, int],
        plan: Mapping[str, object] | None = None,
        *,
        by_value: bool = True,
    ) -> ReleasedLabels:
        """Return every answer so far with the certificate of the whole reservation.

        Parameters
        ----------
        rows : mapping of bytes to int
            The row of the public pool that each question stands for.
        plan : mapping, optional
            What was planned and what was used, for the certificate.
        by_value : bool
            Whether questions are digests of the points' values, which then tie the labels to them
            on the certificate.

        Raises
        ------
        DataError
            If a question was answered that `rows` does not know.
        """
        parts = self._parts()
        # a certificate lists every answer that was given, never a part of them
        unknown = sum(question not in rows for question, _ in parts)
        if unknown:
            raise DataError(
                f"{unknown} of the {len(parts)} answers of {self.request!r} are to other points;"
                " give all the points that were asked."
            )
        values = [StoredAnswer.decode(answer) for _, answer in parts]
        queries = np.array([rows[question] for question, _ in parts], dtype=np.int64)
        labels = np.array([value.label for value in values], dtype=np.int64)
        noisy = self._counts_of([value.noisy for value in values])
        points = (
            hashlib.sha256(b"".join(question for question, _ in parts)).hexdigest()
            if by_value
            else None
        )
        certificate = self._certificate_of(
            describe_released(queries, labels, self.classes, self.n_teachers, noisy, points),
            plan,
            self.reservation,
        )
        return ReleasedLabels(
            queries=queries,
            labels=labels,
            classes=self.classes,
            n_teachers=self.n_teachers,
            sigma=self.aggregator.sigma_of_counts,
            noisy_counts=noisy,
            certificate=certificate,
        )

    def _certificate_of(
        self,
        released: Mapping[str, object],
        plan: Mapping[str, object] | None,
        reservation: int,
    ) -> dict[str, Any]:
        """Return the certificate of the whole reservation, with what was released."""
        noise = purchase.noise_source()
        return build_certificate(
            mechanism=self._mechanism,
            shape=self._shape,
            public=self.aggregator.public,
            budget=self.aggregator.budget,
            price=self._paid,
            composition=purchase.composition_of(self.ledger, reservation),
            noise={"exact": noise.exact, "description": noise.description},
            released=released,
            declaration=self._declaration,
            purpose=self.purpose,
            plan=plan,
            choices=[choice.to_certificate() for choice in self._choices] or None,
        )

    @property
    def returns(self) -> bool:
        """Whether closing the reservation now would give unused queries back."""
        unused = self.used < self.planned
        return (
            unused
            and self.ledger.composition == "renyi"
            and self._used_events(self.used) is not None
        )

    @property
    def returned(self) -> bool:
        """Whether the reservation was closed with unused queries that went back."""
        return self.returns and self._own_entry().state == "committed"

    def close(self, released: ReleasedLabels) -> None:
        """Settle the reservation with what was released; it answers nothing new afterwards.

        Unused queries go back into the budget of a ledger that composes by a Renyi filter, which
        adds up the steps that were taken. Elsewhere the whole reservation is spent.

        Raises
        ------
        LedgerError
            If the reservation is settled already, or the ledger cannot be written.
        """
        asked = len(released.queries)
        used = self._used_events(asked) if self.ledger.composition == "renyi" else None
        self.ledger.commit(
            self.reservation, json.dumps(released.to_json()).encode(), parts=asked, used=used
        )

    # --- inside ---

    @repeated
    def _parts(self) -> list[tuple[bytes, bytes]]:
        with self.ledger.reading(self.reservation) as page:
            return page.parts()

    def _used_events(self, asked: int) -> tuple[Event, ...] | None:
        mechanism = self._mechanism
        gaussian = isinstance(mechanism, NoisyVotes) and mechanism.noise == "gaussian"
        if not (gaussian or isinstance(mechanism, TableLabels)):
            return None
        return (self._mechanism.event(self._shape.first(asked)),) if asked else ()

    def _own_entry(self) -> LedgerEntry:
        entry = self.ledger.entry(self.request)
        assert entry is not None  # entries are never removed
        return entry

    def _check_votes(self, counts: Votes, questions: Sequence[bytes]) -> None:
        purchase.check_counts(counts)
        shape = counts.shape
        purchase.check_declared(shape.guarantee, self._declared, by_teachers=True)
        if shape.n_queries != len(questions):
            raise DataError(
                f"{len(questions)} questions with votes on {shape.n_queries}; give one row of"
                " votes each."
            )
        if shape.n_teachers != self.n_teachers or counts.classes != self.classes:
            raise DataError(
                f"The votes are of {shape.n_teachers} teachers on {list(counts.classes)}, and the"
                f" reservation is for {self.n_teachers} on {list(self.classes)}; ask the teachers"
                " that it began with."
            )

    def _answers_of(
        self, questions: Sequence[bytes], stored: Mapping[bytes, bytes]
    ) -> StreamAnswers:
        values = [
            StoredAnswer.decode(stored[question]) if question in stored else None
            for question in questions
        ]
        labels = np.array(
            [-1 if value is None else value.label for value in values], dtype=np.int64
        )
        nothing = self._no_answer()
        noisy = self._counts_of([nothing if value is None else value.noisy for value in values])
        return StreamAnswers(
            labels, noisy, np.array([value is not None for value in values], dtype=np.bool_)
        )

    def _no_answer(self) -> int | list[int]:
        return 0 if len(self.classes) == 2 else [0] * len(self.classes)

    def _counts_of(self, noisy: Sequence[Any]) -> IntArray | None:
        if self.aggregator.sigma_of_counts is None:
            return None
        shape = (len(noisy),) if len(self.classes) == 2 else (len(noisy), len(self.classes))
        return np.array(noisy, dtype=np.int64).reshape(shape)

    def _lasting_terms(self, teachers: str, declared: Mapping[str, object]) -> dict[str, Any]:
        """Return what must be the same whenever the reservation is taken up."""
        terms = {
            "ledger": self.ledger.account,
            "teachers": teachers,
            "number of teachers": self.n_teachers,
            "classes": [[type(value).__name__, str(value)] for value in self.classes],
            "aggregator": self.aggregator.describe(),
            "unit": [declared["unit"], declared["unit_column"], declared["neighbours"]],
        }
        plain: dict[str, Any] = json.loads(json.dumps(terms))
        return plain

    def _dummy_certificate(self, plan: Mapping[str, object] | None) -> dict[str, Any]:
        """Return the certificate of a stream that gave all its answers; of them the digest alone
        stands there, so one is enough."""
        one = np.zeros(1, dtype=np.int64)
        noisy = self._counts_of([self._no_answer()])
        described = describe_released(one, one, self.classes, self.n_teachers, noisy, "0" * 64)
        most = self.aggregator.most_answers
        answered = self.planned if most is None else min(most, self.planned)
        released = {**described, "queries": self.planned, "answered": answered}
        return self._certificate_of(released, plan, 0)

    def _reserved_entry(self, plan: Mapping[str, object] | None) -> tuple[LedgerEntry, bool]:
        """Return the entry in the ledger, and whether it was reserved just now."""
        entry, now, budget = self.ledger.entry(self.request), False, self.aggregator.budget
        if entry is None:
            # before the purchase: an installation that cannot draw must cost nothing
            purchase.noise_source()
            _, now = purchase.reserved(
                self.ledger,
                self._events,
                budget,
                self._dummy_certificate(plan),
                request=self.request,
                purpose=self.purpose,
                queries=self.planned,
            )
            entry = self._own_entry()
        return purchase.checked_entry(entry, self._events, budget), now


def _last_answer(answer: bytes | None) -> tuple[int, str | None]:
    """Return how many answers up to the last one were abstentions, and what the next draw must
    go on from."""
    if answer is None:
        return 0, None
    stored = StoredAnswer.decode(answer)
    return stored.abstained, stored.mark
