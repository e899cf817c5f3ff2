"""Group commit: what arrives while a group is answered is the next group.

The order inside a group, and which questions make one, follow from when they arrived alone. How
long a group takes follows from private data too (the guide says which switch hides it); who waits
for it does not.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from secretballot.service.problems import ProblemError, problem_of
from secretballot.service.settings import Limits

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
        loop = asyncio.get_running_loop()
        mine: asyncio.Future[Any] = loop.create_future()
        self._waiting[mine] = (asked, size)
        self._points += size
        if self._began is None:
            self._begin_group()
        late = loop.call_later(self._limits.answer_seconds, _give_up, mine)
        try:
            return await mine
        finally:
            late.cancel()
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
            self._thread.submit(self._work, asyncio.get_running_loop(), group)

    def _work(self, loop: asyncio.AbstractEventLoop, group: dict[asyncio.Future[Any], Any]) -> None:
        try:
            replies = self._answer(list(group.values()))
        except BaseException as error:
            replies = [problem_of(error) for _ in group]
        loop.call_soon_threadsafe(self._end_group, group, replies)

    def _end_group(self, group: dict[asyncio.Future[Any], Any], replies: Sequence[Any]) -> None:
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


def _give_up(reply: "asyncio.Future[Any]") -> None:
    if not reply.done():
        reply.set_exception(_late_problem())


def _late_problem() -> ProblemError:
    return ProblemError(
        "ledger-unavailable",
        "No answer came in time: the ledger is locked or busy. A question that was answered all the"
        " same has its stored answer, for nothing.",
    )
