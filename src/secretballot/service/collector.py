"""Group commit: what arrives while a group is answered is the next group.

The order inside a group, and which questions make one, follow from when they arrived alone. How
long a group takes follows from private data too (the guide says which switch hides it); who waits
for it does not.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

from secretballot.service.problems import ProblemError, problem_of

Asked = TypeVar("Asked")
Reply = TypeVar("Reply")


@dataclass(eq=False)
class _Waiting(Generic[Asked, Reply]):
    asked: Asked
    size: int
    reply: "asyncio.Future[Reply]"


class Collector(Generic[Asked, Reply]):
    """Gather requests and have them answered together, by one thread.

    Parameters
    ----------
    answer : callable
        Takes requests in the order of their arrival, returns for each of them a reply or a
        `ProblemError`; called in one thread, one group at a time.
    most_points : int
        Points of a group; a single request may have more.
    most_waiting : int
        Points that may wait.
    patience_s : float
        How long a request waits, in seconds. While a group takes longer, others are refused at
        once: nothing queues behind a ledger that is locked.
    """

    def __init__(
        self,
        answer: Callable[[Sequence[Asked]], Sequence[Reply | ProblemError]],
        *,
        most_points: int,
        most_waiting: int,
        patience_s: float,
    ) -> None:
        self._answer = answer
        self._most_points, self._most_waiting = most_points, most_waiting
        self._patience = patience_s
        self._waiting: deque[_Waiting[Asked, Reply]] = deque()
        self._points = 0
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="secretballot-answers")
        self._worker: asyncio.Task[None] | None = None
        self._began: float | None = None
        self._closing = False

    @property
    def stuck(self) -> bool:
        """Whether the group at work takes longer than anybody waits."""
        return self._began is not None and time.monotonic() - self._began > self._patience

    async def ask(self, asked: Asked, size: int) -> Reply:
        """Return the reply to a request of so many points.

        Raises
        ------
        ProblemError
            If it is refused, or there was no answer in time.
        """
        if self._closing:
            raise ProblemError("busy", "The service is stopping; nothing was asked.", retry_after=5)
        if self.stuck:
            raise _late_problem()
        if self._points and self._points + size > self._most_waiting:
            raise ProblemError("busy", "Too many questions wait; nothing was asked.", retry_after=1)
        mine = _Waiting(asked, size, asyncio.get_running_loop().create_future())
        self._waiting.append(mine)
        self._points += size
        if self._worker is None:
            self._worker = asyncio.create_task(self._answer_waiting())
        try:
            # who leaves or is late gives up its reply, and is asked no more unless that has begun
            async with asyncio.timeout(self._patience):
                reply: Reply = await mine.reply
                return reply
        except TimeoutError:
            raise _late_problem() from None

    async def close(self) -> None:
        """Refuse what comes, answer what waits, and end."""
        self._closing = True
        if self._worker is not None:
            await self._worker
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _answer_waiting(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                group = self._next_group()
                if not group:
                    continue
                self._began = time.monotonic()
                replies: Sequence[Reply | ProblemError]
                try:
                    # in the one thread for answers: the loop goes on taking requests
                    replies = await loop.run_in_executor(
                        self._thread, self._answer, [one.asked for one in group]
                    )
                except Exception as error:
                    replies = [problem_of(error) for _ in group]
                finally:
                    self._began = None
                for one, reply in zip(group, replies, strict=True):
                    # whoever was late or left has no use for a reply
                    if one.reply.done():
                        continue
                    if isinstance(reply, ProblemError):
                        one.reply.set_exception(reply)
                    else:
                        one.reply.set_result(reply)
        finally:
            self._worker = None

    def _next_group(self) -> "list[_Waiting[Asked, Reply]]":
        group, points = list[_Waiting[Asked, Reply]](), 0
        while self._waiting and (not group or points + self._waiting[0].size <= self._most_points):
            one = self._waiting.popleft()
            self._points -= one.size
            if not one.reply.done():  # whoever was late or left is not asked
                group.append(one)
                points += one.size
        return group


def _late_problem() -> ProblemError:
    return ProblemError(
        "ledger-unavailable",
        "No answer came in time: the ledger is locked or busy. A question that was answered all the"
        " same has its stored answer, for nothing.",
        retry_after=5,
    )
