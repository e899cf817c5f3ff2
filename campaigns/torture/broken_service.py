"""`secretballot serve` with a defect, so that a campaign can show that it would find one.

`python -m campaigns.torture.broken_service serve ...`; which defect is told by the environment.
Workers import this file, too, and are broken like the first process.
"""

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

#: Variable of the environment that names the defect.
DEFECT = "SECRETBALLOT_CAMPAIGN_DEFECT"
_LATE_S = 0.4
Admit = Callable[[Any, Any, int | None], bool]


def _answer_before_commit() -> None:
    """Store each answer a moment after it was given."""
    from secretballot.core.ledger.account import AnswerPage
    from secretballot.core.releasing import AnswerStream

    find, add, answer = AnswerPage.find, AnswerPage.add, AnswerStream._answer_block
    waiting, asked = dict[bytes, bytes](), threading.local()

    def found(self: AnswerPage, questions: Iterable[bytes]) -> dict[bytes, bytes]:
        listed = list(questions)
        early = {one: waiting[one] for one in listed if one in waiting}
        return {**early, **find(self, listed)}

    def add_late(self: AnswerPage, parts: Sequence[tuple[bytes, bytes]]) -> None:
        waiting.update(parts)
        stream: AnswerStream = asked.stream

        def store() -> None:
            with stream._own.ledger.answering(stream.reservation) as later:
                known = find(later, [question for question, _ in parts])
                new = [one for one in parts if one[0] not in known]
                add(later, new[: stream.planned - later.count])

        threading.Timer(_LATE_S, store).start()

    def answer_block(self: AnswerStream, *given: Any) -> bool:
        asked.stream = self
        return answer(self, *given)

    AnswerPage.find = found  # type: ignore[method-assign]
    AnswerPage.add = add_late  # type: ignore[method-assign]
    AnswerStream._answer_block = answer_block  # type: ignore[method-assign]


def _admitting(change: Callable[[Admit], Admit]) -> None:
    """Have another function decide what is written of a request and who may ask."""
    from secretballot.service.access import Access

    admitting = Access.admitting

    @contextmanager
    def changed(self: Access) -> Iterator[Admit]:
        with admitting(self) as admit:
            yield change(admit)

    Access.admitting = changed  # type: ignore[method-assign]


def _forget_repeated_questions() -> None:
    """Write nothing into the audit log of requests that ask nothing new."""
    _admitting(lambda admit: lambda entry, new, quota: not new or admit(entry, new, quota))


def _count_no_question() -> None:
    """Let every key ask as much as it likes."""
    _admitting(lambda admit: lambda entry, new, quota: admit(entry, new, None))


DEFECTS: dict[str, Callable[[], None]] = {
    "answers before it commits": _answer_before_commit,
    "forgets repeated questions": _forget_repeated_questions,
    "counts no question": _count_no_question,
}

if os.environ.get(DEFECT):
    DEFECTS[os.environ[DEFECT]]()

if __name__ == "__main__":
    from secretballot.cli import main

    main()
