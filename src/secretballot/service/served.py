"""What a service serves: datasets with their sessions, opened once, asked in groups.

What arrives while a group is answered is the next group. The order inside a group, and which
questions make one, follow from when they arrived alone. How long a group takes follows from private
data too (the guide says which switch hides it); who waits for it does not."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from secretballot._typing import BoolArray, Json
from secretballot._validation import shown
from secretballot.data.columns import NumericColumn, OneHotColumn
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError, SecretBallotError
from secretballot.learners.inputs import question_digests
from secretballot.learners.session import LabelingSession, SessionAnswers
from secretballot.report.verification import verify_certificate
from secretballot.service.access import Access, AuditEntry
from secretballot.service.points import points_in
from secretballot.service.problems import ProblemError, log_trouble, points_at_fault, problem_of
from secretballot.service.settings import DatasetSettings, Limits

_MOMENT_S = 0.005  # after which an end is looked for again


class Collector:
    """Gather requests and have them answered together, by one thread.

    While a group takes longer than a request waits, others are refused at once: nothing queues
    behind a ledger that is locked.

    Parameters
    ----------
    answer : callable
        Takes requests in the order of their arrival, returns for each of them a reply or a
        `ProblemError`; called in one thread, one group at a time.
    limits : Limits
        Points of a group (a single request may have more), points that wait, and seconds.
    """

    def __init__(self, answer: Callable[[Sequence[Any]], Sequence[Any]], limits: Limits) -> None:
        self._answer, self._limits = answer, limits
        # who waits for a reply, with what they ask and how many points that is; and all points
        self._waiting = dict[asyncio.Future[Any], tuple[Any, int]]()
        self._points = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="secretballot-answers")
        self._began: float | None = None  # when the group at work did, if there is one
        self._closing = False

    @property
    def stuck(self) -> bool:
        """Whether the group at work takes longer than anybody waits."""
        patience = self._limits.answer_seconds
        return self._began is not None and time.monotonic() - self._began > patience

    async def ask(self, asked: Any, size: int) -> Any:
        """Return the reply to a request of so many points.

        Raises
        ------
        ProblemError
            If it is refused, or there was no answer in time.
        """
        if self._closing:
            raise ProblemError("busy", "The service is stopping; nothing was asked.")
        if self.stuck:
            raise _late_problem()
        if self._points and self._points + size > self._limits.waiting:
            raise ProblemError("busy", "Too many questions wait; nothing was asked.")
        mine: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[mine] = (asked, size)
        self._points += size
        if self._began is None:
            self._begin_group()
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                return await mine
        except TimeoutError:
            raise _late_problem() from None
        finally:
            # who leaves or is late gives up its reply and its place, and is asked no more unless
            # that has begun
            self._take(mine)

    async def close(self) -> None:
        """Refuse what comes, answer what waits, and end."""
        self._closing = True
        while self._began is not None:
            await asyncio.sleep(_MOMENT_S)
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _begin_group(self) -> None:
        group, points = dict[asyncio.Future[Any], Any](), 0
        for waiting, (asked, size) in [*self._waiting.items()]:
            if group and points + size > self._limits.group_points:
                break
            group[waiting] = asked
            self._take(waiting)
            points += size
        self._began = time.monotonic() if group else None
        if group:
            # in the one thread for answers: the loop goes on taking requests
            loop, asked = asyncio.get_running_loop(), list(group.values())
            work = loop.run_in_executor(self._thread, self._answer, asked)
            work.add_done_callback(partial(self._end_group, group))

    def _end_group(self, group: dict[asyncio.Future[Any], Any], done: Any) -> None:
        error = done.exception()
        replies = done.result() if error is None else [problem_of(error) for _ in group]
        for waiting, reply in zip(group, replies, strict=True):
            # whoever was late or left has no use for a reply
            if waiting.done():
                continue
            if isinstance(reply, ProblemError):
                waiting.set_exception(reply)
            else:
                waiting.set_result(reply)
        self._begin_group()

    def _take(self, reply: "asyncio.Future[Any]") -> None:
        """Take from those who wait one that does."""
        if reply in self._waiting:
            self._points -= self._waiting.pop(reply)[1]


def _late_problem() -> ProblemError:
    return ProblemError(
        "ledger-unavailable",
        "No answer came in time: the ledger is locked or busy. A question that was answered all the"
        " same has its stored answer, for nothing.",
    )


_MOST_FAILURES = 2  # requests of a group that fail by themselves, one after the other


class AskedPoints(NamedTuple):
    """The points of one request.

    Attributes
    ----------
    points : array, sparse matrix or frame of shape (n, n_features)
        As the teachers take them.
    questions : list of bytes
        What the ledger knows each of them by.
    entry : AuditEntry
        What the audit log will hold of it.
    quota : int or None
        Of the key that asks.
    """

    points: Any
    questions: list[bytes]
    entry: AuditEntry
    quota: int | None


class ServedSession:
    """A session of a dataset.

    Parameters
    ----------
    dataset : str
        In addresses; the session goes by its request.
    session : LabelingSession
    access : Access
    limits : Limits
    schema : Schema, optional
        By which points are encoded before they are asked.

    Attributes
    ----------
    collector : Collector
        Gathers what is asked.
    """

    def __init__(
        self,
        dataset: str,
        session: LabelingSession,
        access: Access,
        limits: Limits,
        schema: Schema | None = None,
    ) -> None:
        self.dataset, self.name, self.session = dataset, session.request, session
        self._access, self._limits, self.schema = access, limits, schema
        self.columns = session.columns
        if schema is not None:
            columns = [_kind_of(one) for one in schema.columns if one.feature_names]
            self.columns = {"kind": "frame", "columns": columns}
        self.collector = Collector(self.answer, limits)
        self._transcript: tuple[tuple[int, bool], Json] | None = None
        self._verified: tuple[str, Json] | None = None

    def table(self, content: bytes, media_type: str) -> Any:
        """Return the points in a body as the teachers take them.

        Raises
        ------
        ProblemError
            If they cannot be read or do not fit.
        """
        given = points_in(content, media_type, self.columns, self._limits.points)
        if self.schema is not None:
            given = _encoded_points(given, self.schema)
        # what is in the teachers' own type already: a closer look would take as long as all the
        # rest of a small request
        elif (
            isinstance(given, np.ndarray)
            and np.float64 == given.dtype == np.dtype(self.columns["dtype"])
            and np.isfinite(given).all()
        ):
            return given
        with points_at_fault():
            return self.session.points(given)

    def answer(self, group: Sequence[AskedPoints]) -> list[SessionAnswers | ProblemError]:
        """Return the answers to a group of requests, in one durable transaction as far as it goes.

        In this order: what was asked before is looked up; the new questions of each request are
        counted against its key's quota and written into the audit log, where one that two requests
        share counts for the first; the session answers. Where that fails for all together, each is
        asked by itself: one question may be at fault for all, and what was stored before stays.
        """
        try:
            return self._answered_together(group)
        except Exception as error:
            problem = problem_of(error)
            first = f"request {group[0].entry.request_id} and {len(group) - 1} more"
            log_trouble(error, f"{problem.kind}, {self.dataset}/{self.name}, {first}")
        replies: list[SessionAnswers | ProblemError] = []
        in_a_row = 0
        for asked in group if len(group) > 1 else ():
            if in_a_row == _MOST_FAILURES:  # all would fail
                break
            replies += self.answer([asked])
            in_a_row = in_a_row + 1 if isinstance(replies[-1], ProblemError) else 0
        return replies + [problem] * (len(group) - len(replies))

    def _answered_together(
        self, group: Sequence[AskedPoints]
    ) -> list[SessionAnswers | ProblemError]:
        questions = [question for asked in group for question in asked.questions]
        ends = np.cumsum([0, *(len(asked.questions) for asked in group)]).tolist()
        parts = [slice(*bounds) for bounds in itertools.pairwise(ends)]
        refused = dict[int, ProblemError]()

        def admit(new: BoolArray, left: int) -> BoolArray:
            counted = set[bytes]()
            with self._access.admitting() as fits:
                for place, (asked, rows) in enumerate(zip(group, parts, strict=True)):
                    own = dict.fromkeys(itertools.compress(asked.questions, new[rows].tolist()))
                    # no more than have an answer left
                    taken = [one for one in own if one not in counted][: left - len(counted)]
                    if fits(asked.entry, taken, asked.quota):
                        counted.update(taken)
                    else:
                        refused[place] = ProblemError(
                            "quota-spent",
                            f"The key may ask {asked.quota} new questions of this dataset, and"
                            f" these {len(taken)} are more than are left of them; ask fewer. Stored"
                            " answers stay free.",
                        )
            return new & np.array([question in counted for question in questions], dtype=np.bool_)

        joined = _joined_tables([asked.points for asked in group])
        answers = self.session.answer(joined, questions, admit=admit)
        spent = ProblemError(
            "budget-spent",
            f"All {self.session.planned} questions of the session {self.name!r} are answered, or it"
            " is closed; stored answers stay free.",
        )
        found = [answers.where(rows) for rows in parts]
        return [
            refused.get(place) or (part if part.given.any() else spent)
            for place, part in enumerate(found)
        ]

    def preview(self, points: Any) -> dict[str, int]:
        """Return how many of some points were asked before, how many new questions the others are,
        and how many are left; nothing is asked."""
        given = self.session.stored(points).given
        asked = zip(question_digests(points), given.tolist(), strict=True)
        return {
            "stored": int(given.sum()),
            "new": len({question for question, stored in asked if not stored}),
            "left": self.session.left,
        }

    def transcript(self) -> Json:
        """Return all answers so far with the certificate, and the digests of their questions."""
        # looked at before: what is asked or closed meanwhile is seen the next time; a certificate
        # says whether its session is closed
        state = (self.session.used, self.session.closed)
        if self._transcript is None or self._transcript[0] != state:
            self._transcript = (state, self.session.transcript().to_json())
        return self._transcript[1]

    def verification(self) -> Json:
        """Return the checks of the certificate of all answers so far."""
        certificate = self.transcript()["certificate"]
        # pricing takes seconds, and the same certificate is asked about again and again
        if self._verified is None or self._verified[0] != certificate["digest"]:
            self._verified = certificate["digest"], verify_certificate(certificate).to_json()
        return self._verified[1]

    def released(self, points: Any) -> Json:
        """Return all answers so far as rows of `points`, of shape (n, n_features).

        Raises
        ------
        ProblemError
            If a point was asked that is not among them.
        """
        with points_at_fault():
            return self.session.released(points).to_json()

    def describe(self) -> Json:
        """Return the terms of the session and how far it has come; public."""
        names = ("classes", "n_teachers", "sigma", "planned", "used", "left", "closed")
        return {
            "dataset": self.dataset,
            "session": self.name,
            "columns": self.columns,
            "mechanism": self.session.terms,
            "price": self.session.price.to_json(),
            "most_points": self._limits.points,
            **{name: getattr(self.session, name) for name in names},
        }


class ServedDataset:
    """A dataset with its sessions.

    Parameters
    ----------
    name : str
        In addresses.
    settings : DatasetSettings
    access : Access
    limits : Limits

    Raises
    ------
    DataError
        If a vault cannot be read.
    LedgerError
        If the ledger cannot be used.
    """

    def __init__(
        self, name: str, settings: DatasetSettings, access: Access, limits: Limits
    ) -> None:
        self.name, self.title = name, settings.title or name
        schema = None if settings.encoding is None else Schema.read(settings.encoding)
        self.sessions: dict[str, ServedSession] = {}
        for request in settings.sessions:
            session = LabelingSession.reopen(settings.vault, request=request)
            self.sessions[request] = ServedSession(name, session, access, limits, schema)
        self.ledger = next(iter(self.sessions.values())).session.ledger
        others = {served.session.ledger.account for served in self.sessions.values()}
        if len(others) > 1:
            raise DataError(
                f"The sessions of {name!r} are paid from {len(others)} ledgers; serve them"
                " as datasets of their own."
            )

    def describe(self) -> Json:
        """Return what may be asked; public."""
        return {"name": self.name, "title": self.title, "sessions": list(self.sessions)}

    def budget(self) -> Json:
        """Return what may be spent, what is spent and what is left; public."""
        ledger = self.ledger
        return {
            "dataset": self.name,
            "account": ledger.account,
            "unit": ledger.unit,
            "relation": ledger.relation,
            "composition": ledger.composition,
            "releases": ledger.releases(),
            "budget": ledger.budget.to_json(),
            "spent": ledger.spent()._asdict(),
            "remaining": ledger.remaining()._asdict(),
        }

    def account(self) -> Json:
        """Return every reservation of the ledger, after checking every row."""
        entries = [entry.to_json() for entry in self.ledger.history()]
        position, chain = self.ledger.head()
        return {"dataset": self.name, "rows": position, "chain": chain, "entries": entries}

    def ready(self) -> bool:
        """Return whether the ledger can be read now."""
        with suppress(SecretBallotError):
            self.ledger.head()
            return True
        return False


def _kind_of(column: Any) -> list[Any]:
    if isinstance(column, OneHotColumn):
        return [column.name, "category", [list(column.categories), False]]
    return [column.name, "float64" if type(column) is NumericColumn else "object", None]


def _encoded_points(points: Any, schema: Schema) -> Any:
    """Return points as the teachers take them; a cell that cannot be read is refused.

    Raises
    ------
    ProblemError
        Naming the column and the point.
    """
    with points_at_fault():
        found = schema.encoding(points, role="table of points")
    for column in schema.features:
        # categories, truth values and words have "other" for such cells
        if (rows := found.odd[column.name].strange).size and not column.has_other:
            raise ProblemError(
                "wrong-points",
                f"The column {shown(column.name)} of point {rows[0] + 1} cannot be read; give what"
                " the schema says, or null.",
            )
    return found.matrix


def _joined_tables(tables: Sequence[Any]) -> Any:
    """Return tables of the same columns and types as one."""
    if len(tables) == 1:
        return tables[0]
    if hasattr(tables[0], "iloc"):
        return pd.concat(list(tables), ignore_index=True)
    if sparse.issparse(tables[0]):
        return sparse.vstack(list(tables), format="csr")
    return np.concatenate(list(tables))
