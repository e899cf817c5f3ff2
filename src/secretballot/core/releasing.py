"""The one way out: check, price, reserve durably, draw exact noise, commit, return.

Whatever has a variable length (mechanism, shape, price, public settings) is checked and written at
the reservation, before anything is drawn. Afterwards integers alone are stored, as many as those
terms say, so that whether an answer can be stored does not depend on it. A request that was
interrupted anywhere is therefore taken up by the same terms, under the same charge: nobody has seen
what was drawn and not stored, and it is drawn anew.

`release` answers a request as a whole, or stage by stage; `stream` answers question by question.
Both fold `Mechanism.draw`. Nothing else unseals private integers.
"""

import functools
import hashlib
import json
import platform
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from typing import NamedTuple, NoReturn, TypeVar

import numpy as np

from secretballot.core.errors import (
    DataError,
    Json,
    JsonView,
    LedgerError,
    ParameterError,
    UnknownEndError,
)
from secretballot.core.events import Event
from secretballot.core.ledger import Ledger, LedgerEntry
from secretballot.core.ledger.account import AnswerPage
from secretballot.core.ledger.rows import repeated, utc_now
from secretballot.core.mechanisms import (
    Mechanism,
    NoisySums,
    NoisyVotes,
    Shape,
    State,
    TableLabels,
    Terms,
    mechanism_in,
    shape_in,
)
from secretballot.core.noise import ExactNoise, entropy_bytes, ready_sampler
from secretballot.core.price import Price, PrivacyBudget, price
from secretballot.core.private import Scores, Sealed, Votes
from secretballot.core.types import BoolArray, IntArray, Noise, ScoreShape, SecretFiles, VoteShape

#: Ctrl-C, the wish of a system or a queue that the program ends, a terminal that is closed.
_ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Hold back the signals that ask for an end until the block is left.

    Then the first that came does its work.

    Python handles signals in the main thread alone, so in any other one nothing is held back, and
    nothing needs to be where the handler raises. A signal that nobody can catch, such as number 9,
    is not held back.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    with ExitStack() as stack:
        stack.callback(lambda: [*map(signal.raise_signal, came[:1])])
        for number in _ENDING:
            handler = signal.getsignal(number)
            # None: set by a program in C
            if handler is not None and handler is not signal.SIG_IGN:
                stack.callback(signal.signal, number, handler)
                signal.signal(number, lambda seen, _: came.append(seen))
        yield


_BLOCK = 1000  # questions of one transaction, so that others who ask do not wait for long
_MARK_BYTES = 16
_STATE_BYTES = 1024  # of a file of secret states, whatever they are
_MOST_TERMS = 10**7  # bytes
_PACKAGES = ("numpy", "scipy", "scikit-learn", "opendp")
_NO_MARK = bytes(_MARK_BYTES)

_Result = TypeVar("_Result")

#: What a release is drawn from, or what makes it of the stages that were released before.
_Source = Sealed | Callable[[Sequence[IntArray]], Sealed]


@dataclass(frozen=True, eq=False)
class Released:
    """What left, and all that is public about how; a function of the ledger alone.

    Attributes
    ----------
    request, purpose : str
    mechanism : Mechanism
    shape : VoteShape, SumShape or ScoreShape
    event : Event
    budget : PrivacyBudget
        What was promised and spent.
    price : Price
    public : dict
        Settings, as JSON values.
    values : ndarray of int64, shape (n_answers, n_columns)
    questions : tuple of bytes
        Of a stream, one for each answer; else empty.
    noise : dict
        ``exact``, ``description`` of its source and ``software``, of the last draw.
    issued : str
        When it was reserved, UTC, ISO 8601.
    account : dict
        That paid, as it was just after, as a certificate states it.
    about : dict
        What was kept with the end of a stream, as JSON values.

    Examples
    --------
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(1.0, 0.0))
    >>> votes = sb.votes_of_counts([[3, 97], [60, 40]])
    >>> paid = sb.estimate_stability(votes, ledger, fraction=0.5, epsilon=0.5)
    >>> paid.mechanism.kind, paid.values.shape, paid.account["reservation"]
    ('stability-quantile', (1, 1), 1)
    """

    request: str
    purpose: str
    mechanism: Mechanism
    shape: Shape
    event: Event
    budget: PrivacyBudget
    price: Price
    public: Json
    values: IntArray
    questions: tuple[bytes, ...]
    noise: Json
    issued: str
    account: Json
    about: Json = field(default_factory=dict)


class Answers(NamedTuple):
    """Answers to some questions, public as soon as they are returned.

    Attributes
    ----------
    values : ndarray of int64, shape (n_questions, n_columns)
        0 where no answer is given.
    given : ndarray of bool, shape (n_questions,)
        False for what came after the reservation was used up, had stopped or was closed.
    left : int
        Questions that may still be answered.
    """

    values: IntArray
    given: BoolArray
    left: int


def noise_source() -> ExactNoise:
    """Return where all noise comes from, loaded and checked.

    Raises
    ------
    SamplerError
        If the installed sampler is missing, broken or wrong.
    """
    ready_sampler()
    return ExactNoise()


def release(
    terms: Terms,
    private: _Source,
    ledger: Ledger,
    *,
    request: str,
    check: Callable[[Released], object] | None = None,
) -> Released:
    """Release what a mechanism draws from private integers, under differential privacy.

    Parameters
    ----------
    terms : Terms
        What is drawn, of which shape `private` is, and what it is paid with.
    private : Sealed, or callable
        A callable makes it, after the price, the account and a stored answer were looked at. Of
        sums, it is called for each stage, with the sums that the stages before have released.
    ledger : Ledger
    request : str
        Key in the ledger. A request that was answered gets the stored answer, and one that was
        interrupted goes on; both cost nothing more.
    check : callable, optional
        Called before a new reservation with the release as it would be, with zeros for values; what
        it raises refuses the release.

    Raises
    ------
    ParameterError
        If the mechanism does not take such a container, the request was begun with other terms, or
        the container is another one; nothing was spent.
    BudgetError
        If the mechanism costs more than `budget`, or the account does not admit it; nothing was
        spent.
    LedgerError
        If the account is about other units, cannot be used, or the request was forfeited.
    SamplerError
        If the sampler is missing, broken or wrong; nothing was spent.

    Privacy
    -------
    Unit, relation, sensitivity : of the shape.
    Price : of `mechanism.event(shape)` at the budget's epsilon.
    Order : reserve, draw, store, return. Of two processes that draw, one stores, and both return
        what was stored. A draw that fails by itself is not repeated, since that may depend on what
        was drawn: the request is forfeited. Its error is replaced by a fixed sentence; nothing of
        it is attached.
    Rounding : upward.
    """
    own = _Request(terms, ledger, request)
    entry, made = own.entry(), None
    if entry is None:
        own.check_admitted(check)
        made = own.made(private, [])
        # as large as `encoded` makes each stage
        size = _MARK_BYTES + 8 * (2 + own.rows_of_stage * own.n_columns)
        own.reserve(space=own.n_stages * size)
    while (entry := own.reserved()).state == "reserved":
        stages = [own.decoded(body) for _, body in own.look(entry.id, AnswerPage.parts)]
        if made is None or stages:
            made = own.made(private, [stage.rows for stage in stages])
        own.drawing(entry.id, functools.partial(own.draw_stage, entry.id, made, stages))
    return own.released(entry)


def stream(
    terms: Terms,
    ledger: Ledger,
    *,
    request: str,
    vault: SecretFiles | None = None,
    check: Callable[[Released], object] | None = None,
) -> "AnswerStream":
    """Reserve the right to ask `terms.shape.n_queries` questions, one of scores, or go on with a
    reservation.

    Parameters and errors are those of `release`.

    Parameters
    ----------
    terms : Terms
        Of scores, or of votes of teachers, each of which may vote otherwise at every question.
    vault : SecretFiles, optional
        Keeps what the next answer depends on where that is secret, as in `SparseVector`; without
        it, such a reservation ends with this object.

    Privacy
    -------
    Price : that of the whole reservation, however the questions are chosen and whenever one stops:
        stopping early does not make it smaller (errata 5). A question that was asked before gets
        its stored answer.
    Source : Liu et al. 2021, Algorithm 4 and its "labeling service"; Nandi, Bassily 2020, Algorithm
        1.
    """
    own, shape = _Request(terms, ledger, request, streams=True), terms.shape
    votes = isinstance(shape, VoteShape) and shape.n_teachers and shape.moved == shape.n_queries
    if not (isinstance(shape, ScoreShape) or votes):
        # which rows of a table move is private, so that no part of one has a share of its price
        raise ParameterError(
            "A stream asks for scores, or for votes of teachers that may change at every question;"
            " release other votes and sums as a whole. Nothing was spent."
        )
    if own.entry() is None:
        own.check_admitted(check)
        own.reserve(space=0)
    return AnswerStream(own, own.reserved().id, vault)


def terms_of(entry: LedgerEntry) -> Terms:
    """Return the terms of a request that `release` or `stream` has reserved."""
    mechanism = mechanism_in(entry.terms["mechanism"])
    shape = shape_in(mechanism, entry.terms["shape"])
    budget = PrivacyBudget(entry.epsilon, entry.delta)
    return Terms(mechanism, shape, budget, entry.terms["public"], entry.purpose)


def stored(ledger: Ledger, request: str) -> Released | None:
    """Return what a request has released, from the ledger alone; None where it is not closed."""
    entry = ledger.entry(request)
    if entry is None or entry.state != "committed" or not entry.terms:
        return None
    own = _Request(terms_of(entry), ledger, request, streams=entry.terms["streams"])
    return own.released(entry)


class AnswerStream:
    """A reservation that answers question by question, each on the disk before it is returned; as
    `stream` makes it.

    Privacy
    -------
    As for `stream`.
    """

    def __init__(self, own: "_Request", reservation: int, vault: SecretFiles | None) -> None:
        self._own, self.reservation = own, reservation
        self.planned = own.n_answers
        self._states = _SecretStates(vault, own.ledger.account, own.request)

    def __repr__(self) -> str:
        return f"AnswerStream({self._own.request!r}, {self.left} of {self.planned} queries left)"

    @property
    def left(self) -> int:
        """Questions that may still be answered; 0 once it has stopped or is closed."""
        return self._own.look(self.reservation, self._left_on)

    @property
    def used(self) -> int:
        """Questions that were answered, abstentions included."""
        return self._own.look(self.reservation, lambda page: page.count)

    @property
    def closed(self) -> bool:
        """Whether the reservation is settled: stored answers are all that comes."""
        return self._own.look(self.reservation, lambda page: page.closed)

    @property
    def returns(self) -> bool:
        """Whether closing it with the answers so far gives, or gave, questions back."""
        return self._used_event(self.used) is not None

    def find(self, questions: Sequence[bytes]) -> Answers:
        """Return the stored answers; it costs nothing and draws nothing."""
        return self._answers(questions, *self._found(questions))

    def answer(self, private: Votes | Scores, questions: Sequence[bytes]) -> Answers:
        """Answer questions: those asked before from the ledger, new ones with fresh noise as long
        as the reservation lasts.

        New ones are drawn and stored a thousand at a time in one durable transaction; one at a time
        where the mechanism may stop.

        Parameters
        ----------
        private : Votes or Scores
            On every question, one row each, of the guarantee, teachers and classes of `shape`; or
            the scores of the candidates that one question fixes.
        questions : sequence of bytes
            What identifies a question; public. The same bytes get the same answer.

        Raises
        ------
        DataError, ParameterError
            If the votes are others than were paid for; nothing was answered.
        LedgerError
            If the ledger cannot be written, or the vault does not fit it; the next call goes on
            where this one ended. If a draw failed by itself; the stream has then ended.
        """
        self._check(private.shape, len(questions))
        rows = dict[bytes, int]()  # the first of each
        for row, question in enumerate(questions):
            rows.setdefault(question, row)
        # a mechanism that may stop stores as many answers as it drew: were there several at once, a
        # full disk would tell, before anything is stored, that it had not stopped
        size = _BLOCK if self._own.mechanism.stops_at is None else 1
        # of many blocks most may be stored already; one is looked up where it would be drawn
        stored, left = self._found(rows) if len(rows) > size else ({}, 1)
        waiting = [key for key in rows if key not in stored]
        while waiting and left:
            block, waiting = waiting[:size], waiting[size:]
            found, left = self._answer_block(private, {key: rows[key] for key in block})
            stored |= found
        if waiting:
            found, left = self._found(waiting)
            stored |= found
        return self._answers(questions, stored, left)

    @repeated
    def close(self, answered: int | None = None, about: JsonView | None = None) -> None:
        """Settle the reservation; it answers nothing new afterwards.

        Questions that were not used go back into the budget of a ledger that composes by a Renyi
        filter, where the answers given are a release of their own: Gaussian votes and tables of
        chances. Elsewhere all stays spent.

        Parameters
        ----------
        answered : int, optional
            Close it with so many answers alone.
        about : mapping, optional
            Public, as JSON values; kept with the end.

        Raises
        ------
        LedgerError
            If the reservation is settled already, others were answered meanwhile, or the ledger
            cannot be written.
        """
        with self._own.ledger.answering(self.reservation) as page:
            if answered not in (None, page.count):
                raise LedgerError(
                    f"Request {self._own.request!r} has given {page.count} answers, not"
                    f" {answered}; read again."
                )
            facts = {**_facts(noise_source()), "about": dict(about or {})}
            page.commit(facts, self._used_event(page.count))

    def released(self) -> Released:
        """Return every answer so far, in order, also where a failed draw has ended the stream."""
        entry = self._own.ledger.entry(self._own.request)
        assert entry is not None  # rows are never removed
        return self._own.released(entry)

    # --- inside ---

    def _check(self, given: Shape, n_questions: int) -> None:
        paid = self._own.shape
        n_rows = given.n_queries if isinstance(given, VoteShape) else 1
        if n_rows != n_questions:
            raise DataError(f"{n_questions} questions with votes on {n_rows}; give one row each.")
        if isinstance(given, VoteShape) and isinstance(paid, VoteShape):
            # in each new row a teacher moves one vote at most, and it was paid for in all of them
            given = given.model_copy(update={"n_queries": paid.n_queries, "moved": paid.moved})
        if given != paid:
            raise ParameterError(
                "The votes or scores are not those that were paid for: of another shape; ask the"
                " teachers that it began with. Nothing was answered."
            )

    def _found(self, questions: Iterable[bytes]) -> tuple[dict[bytes, bytes], int]:
        return self._own.look(
            self.reservation, lambda page: (page.find(questions), self._left_on(page))
        )

    def _answers(
        self, questions: Sequence[bytes], stored: Mapping[bytes, bytes], left: int
    ) -> Answers:
        given = np.zeros(len(questions), dtype=np.bool_)
        values = np.zeros((len(questions), self._own.n_columns), dtype=np.int64)
        for row, question in enumerate(questions):
            if question in stored:
                values[row], given[row] = self._own.decoded(stored[question]).rows[0], True
        return Answers(values, given, left)

    def _left_on(self, page: AnswerPage) -> int:
        stops_at = self._own.mechanism.stops_at
        if page.closed or (
            stops_at is not None
            and (last := page.last())
            and not self._own.decoded(last).used < stops_at
        ):
            return 0
        return self.planned - page.count

    @repeated  # what was drawn and not stored was seen by nobody
    def _answer_block(
        self, private: Votes | Scores, rows: Mapping[bytes, int]
    ) -> tuple[dict[bytes, bytes], int]:
        """Answer some questions; return what is stored of them, and how many others may follow."""
        noise = noise_source()  # loaded outside of the transaction

        def draw_and_store() -> tuple[dict[bytes, bytes], int]:
            with self._own.ledger.answering(self.reservation) as page:
                known = page.find(rows)
                new = [key for key in rows if key not in known][: self._left_on(page)]
                if new:
                    drawn = self._drawn(page, private, [rows[key] for key in new], noise)
                    added = list(zip(new, drawn, strict=False))
                    page.add(added)
                    known |= dict(added)
                return known, self._left_on(page)

        return self._own.drawing(self.reservation, draw_and_store)

    def _drawn(
        self, page: AnswerPage, private: Votes | Scores, places: list[int], noise: Noise
    ) -> list[bytes]:
        """Return the next answers, and keep the secret state before the answer that names it."""
        own, last = self._own, page.last()
        before = own.decoded(last) if last else _Part(_NO_MARK, 0, np.zeros((0, 0), np.int64))
        state = State(before.used, self._states.load(before.mark))
        # places are in order, each once
        if isinstance(private, Votes) and len(places) < private.shape.n_queries:
            private = private.take(places)
        bodies, secret = own.drawn(private, state, noise)
        mark = _NO_MARK if secret is None else self._states.save(before.mark, secret)
        return [mark + body for body in bodies]

    def _used_event(self, used: int) -> tuple[Event, ...] | None:
        own = self._own
        gaussian = isinstance(own.mechanism, NoisyVotes) and own.mechanism.noise == "gaussian"
        returns = gaussian or isinstance(own.mechanism, TableLabels)
        if not (returns and own.ledger.composition == "renyi" and used < self.planned):
            return None
        assert isinstance(own.shape, VoteShape)
        return (own.mechanism.event(own.shape.first(used)),) if used else ()


class _DrawEndedError(Exception):
    """A draw ended by itself. An error of it would carry private integers along, in its frames."""


class _Part(NamedTuple):
    """What one row of the ledger holds of an answer or a stage.

    mark : bytes
        Names the secret state after it.
    used : int
        Of what the mechanism stops at.
    rows : ndarray of int64, shape (n_reached, n_columns)
    """

    mark: bytes
    used: int
    rows: IntArray


class _Request:
    """One request and its terms: what is written of it before anything is drawn."""

    def __init__(
        self, asked: Terms, ledger: Ledger, request: str, *, streams: bool = False
    ) -> None:
        self.ledger, self.request, self.streams = ledger, request, streams
        self.budget, self.purpose = asked.budget, asked.purpose
        asked.mechanism.event(asked.shape)  # refuses what is of no such shape
        sample = getattr(asked.shape, "sample", None)
        if sample is not None and sample.request != request:
            raise ParameterError(
                "These teachers learned from a secret sample that was drawn for one request, and"
                " this is another; draw a new sample for it. Nothing was spent."
            )
        self.terms = _json_terms(asked, streams=streams)
        # what is priced and drawn is what is stored, whatever class the caller's mechanism has
        self.mechanism = mechanism_in(self.terms["mechanism"])
        self.shape = shape_in(self.mechanism, self.terms["shape"])
        self.event = self.mechanism.event(self.shape)
        self.n_answers, self.n_columns = self.mechanism.answer_shape(self.shape)
        self.n_stages = len(self.mechanism.sigmas) if isinstance(self.mechanism, NoisySums) else 1
        self.rows_of_stage = self.n_answers // self.n_stages

    # --- before the purchase ---

    def entry(self) -> LedgerEntry | None:
        """Return the request's row where it was reserved before, with the same terms."""
        entry = self.ledger.entry(self.request)
        if entry is None:
            return None
        if entry.state == "forfeited":
            raise LedgerError(
                f"Request {self.request!r} was forfeited and stays spent; ask under another key,"
                " which is a new charge."
            )
        other = [name for name in self.terms if entry.terms.get(name) != self.terms[name]]
        # who reserves by hand may have paid for less
        other += ["events"] * (entry.events != (self.event,))
        other += ["budget"] * (self.budget != PrivacyBudget(entry.epsilon, entry.delta))
        if other:
            raise ParameterError(
                f"Request {self.request!r} was begun with other terms ({other[0]}); go on with the"
                " same, or ask under another key, which is a new charge. Nothing was spent."
            )
        return entry

    def reserved(self) -> LedgerEntry:
        """Return the row of a request that was reserved."""
        entry = self.entry()
        assert entry is not None  # rows are never removed
        return entry

    def check_admitted(self, check: Callable[[Released], object] | None) -> None:
        """Refuse what can be refused before anything is spent or made."""
        by_teachers = isinstance(self.shape, VoteShape) and self.shape.n_teachers is not None
        own = self.shape.guarantee
        self.ledger.check_promise(own.unit, own.relation, by_teachers=by_teachers)
        self.priced = price((self.event,), epsilon=self.budget.epsilon)
        noise_source()
        _software()
        self.ledger.check_admits((self.event,), self.budget)
        if check is not None:
            check(self.released(None))

    def made(self, private: _Source, stages: Sequence[IntArray]) -> Sealed:
        """Return the container of the next stage, which must be of the shape that is paid for."""
        sealed = private(stages) if callable(private) else private
        if not isinstance(sealed, Sealed) or sealed.shape != self.shape:
            raise ParameterError("The private values are not of the shape that was declared.")
        return sealed

    def reserve(self, *, space: int) -> None:
        """Spend, unless another process has just done so under the same terms."""
        stored = {**self.terms, "price": asdict(self.priced)}
        about: Json = {"request": self.request, "purpose": self.purpose, "terms": stored}
        try:
            self.ledger.reserve((self.event,), self.budget, **about, space=space)
        except LedgerError as error:
            if isinstance(error, UnknownEndError) or self.entry() is None:
                raise

    # --- draws ---

    def drawing(self, reservation: int, work: Callable[[], _Result]) -> _Result:
        """Do work that draws and stores. An end between the two would draw once more, so signals
        are held back; and where a draw fails by itself, the request is forfeited. What is raised
        lets go of the frames that it came through, whose values a program may print."""
        handled = sys.exception()  # by the caller
        try:
            with _signals_held_back():
                with suppress(_DrawEndedError):
                    return work()
                with suppress(LedgerError):  # in a transaction of its own
                    self.ledger.forfeit(reservation, "The draw ended before it was stored.")
                raise LedgerError(
                    f"The draw of request {self.request!r} failed; it is forfeited and stays spent."
                )
        except BaseException as error:
            chain: list[BaseException | None] = [error]
            while chain:
                one = chain.pop()
                if one is not None and one is not handled:
                    one.__traceback__ = None
                    chain += [one.__cause__, one.__context__]
            raise

    def drawn(self, made: Sealed, before: State, noise: Noise) -> tuple[list[bytes], int | None]:
        """Draw the next answers: of a stream a body for each, else one for the whole stage, each
        without its mark; and the secret state after them."""
        with suppress(BaseException):
            rows, after = self.mechanism.draw(self.shape, made._unseal(), noise, before)
            parts = [row[None] for row in rows] if self.streams else [rows]
            return [self.encoded(after.used, part) for part in parts], after.secret
        raise _DrawEndedError

    def draw_stage(self, reservation: int, made: Sealed, stages: Sequence[_Part]) -> None:
        """Draw one stage and store it; with the last one the request is closed."""
        noise = noise_source()
        (body,), _ = self.drawn(made, State(stages[-1].used if stages else 0), noise)
        last = len(stages) + 1 == self.n_stages

        @repeated  # the same bytes again
        def store() -> None:
            with self.ledger.answering(reservation) as page:
                if page.count == len(stages):  # of two processes the first counts
                    page.add([(b"%d" % len(stages), _NO_MARK + body)])
                    if last:
                        page.commit(_facts(noise), None)

        store()

    def encoded(self, used: int, rows: IntArray) -> bytes:
        """Return what a row of the ledger holds after its mark, with space for all that may be."""
        space = 1 if self.streams else self.rows_of_stage
        numbers = np.zeros(2 + space * self.n_columns, dtype="<i8")
        numbers[:2] = used, len(rows)
        numbers[2 : 2 + rows.size] = rows.ravel()
        return numbers.tobytes()

    def decoded(self, content: bytes) -> _Part:
        """Return the part that is stored."""
        numbers = np.frombuffer(content, dtype="<i8", offset=_MARK_BYTES).astype(np.int64)
        used, reached = numbers[:2].tolist()
        rows = numbers[2 : 2 + reached * self.n_columns].reshape(reached, self.n_columns)
        return _Part(content[:_MARK_BYTES], used, rows)

    # --- what came out ---

    @repeated
    def look(self, reservation: int, work: Callable[[AnswerPage], _Result]) -> _Result:
        """Return what work finds among the answers that were given so far."""
        with self.ledger.reading(reservation) as page:
            return work(page)

    def released(self, entry: LedgerEntry | None) -> Released:
        """Return what is stored under the request; before it is reserved, the release as it would
        be, with zeros for values, on an account that it takes whole."""
        facts = (entry and entry.facts) or _facts(noise_source())
        spent = entry.spent_after if entry else (self.budget.epsilon, self.budget.delta)
        # a view: a stream may reserve more answers than memory holds
        values = np.broadcast_to(np.int64(0), (self.n_answers, self.n_columns))
        questions: tuple[bytes, ...] = ()
        if entry is not None:
            parts = self.look(entry.id, AnswerPage.parts)
            values = np.concatenate([values[:0], *(self.decoded(body).rows for _, body in parts)])
            questions = tuple(key for key, _ in parts)
        return Released(
            request=self.request,
            purpose=entry.purpose if entry else self.purpose,
            mechanism=self.mechanism,
            shape=self.shape,
            event=self.event,
            budget=self.budget,
            price=Price(**entry.terms["price"]) if entry else self.priced,
            public=self.terms["public"],
            values=values,
            questions=questions,
            noise=facts,
            issued=entry.reserved_at if entry else utc_now(),
            account={
                **self.ledger.account_terms(),
                "spent_after": dict(zip(("epsilon", "delta"), spent, strict=True)),
                "durable": self.ledger.durable,
                "reservation": entry.id if entry else 0,
            },
            about=facts.get("about", {}),
        )


class _SecretStates:
    """The secret states that may still be needed: that of the last stored answer, and the one that
    is being drawn.

    Each draw writes the state it left under a new random mark, beside the one it began with, and
    then the answer, which names the mark. So a crash at any moment leaves the state that the last
    stored answer names.
    """

    def __init__(self, files: SecretFiles | None, account: str, request: str) -> None:
        self._files, self._held = files, b""
        stream = hashlib.sha256(f"{account} {request}".encode()).hexdigest()
        self._name = f"streams/{stream}.state"

    def load(self, mark: bytes) -> int | None:
        """Return the state of this mark, None where nothing secret was left.

        Raises
        ------
        LedgerError
            If the vault has lost it, or holds those of another time or stream.
        """
        if mark == _NO_MARK:
            return None
        found = self._states().get(mark.hex())
        if found is None:
            raise LedgerError(
                "The secret state of this stream's last answer is not in the vault, or damaged; put"
                " the vault back as it was, or begin another stream, which is a new charge."
            )
        return found

    def save(self, mark: bytes, secret: int) -> bytes:
        """Keep the state that a draw left, beside the one that it began with; return its mark."""
        new, states = entropy_bytes(_MARK_BYTES), self._states()
        kept = {name: value for name, value in states.items() if name == mark.hex()}
        # its size must not depend on what was drawn
        content = json.dumps(kept | {new.hex(): secret}).ljust(_STATE_BYTES).encode()
        if self._files is None:
            self._held = content
        else:
            self._files.write(self._name, content)
        return new

    def _states(self) -> dict[str, int]:
        content = self._held if self._files is None else self._files.read(self._name)
        with suppress(ValueError, RecursionError):  # which would carry the states along
            states = json.loads(content or b"{}")
            if isinstance(states, dict) and all(type(one) is int for one in states.values()):
                return states
        return {}

    def __reduce__(self) -> NoReturn:
        raise TypeError("A stream holds a secret state; open it again by its request.")


def _json_terms(asked: Terms, *, streams: bool) -> Json:
    """Return what must be the same whenever a request is taken up, as JSON values.

    Raises
    ------
    ParameterError
        If a public setting is no JSON value, or all together are too long.
    """
    terms = {
        "mechanism": asked.mechanism.model_dump(mode="json"),
        "shape": asked.shape.model_dump(mode="json"),
        "public": dict(asked.public),
        # whole and question by question, it would be drawn twice
        "streams": streams,
    }
    with suppress(TypeError, ValueError, RecursionError):
        if len(text := json.dumps(terms, allow_nan=False)) <= _MOST_TERMS:
            return dict(json.loads(text))
    raise ParameterError(
        "A public setting is no text, finite number, list or mapping, or all together have more"
        f" than {_MOST_TERMS:,} bytes; give such values alone, a smaller basis or fewer candidates."
        " Nothing was spent."
    )


def _facts(noise: ExactNoise) -> Json:
    """Return what a certificate says of the noise and of the software that drew it."""
    return {"exact": noise.exact, "description": noise.description, "software": _software()}


@functools.cache  # reading it takes longer than all else
def _software() -> dict[str, str]:
    return {"python": platform.python_version(), **{name: version(name) for name in _PACKAGES}}
