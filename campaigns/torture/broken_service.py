"""`secretballot serve` with a defect, so that a campaign can show that it would find one.

`python -m campaigns.torture.broken_service serve ...`; which defect is told by the environment.
Workers import this file, too, and are broken like the first process.
"""

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

#: Variable of the environment that names the defect.
DEFECT = "SECRETBALLOT_CAMPAIGN_DEFECT"
_LATE_S = 0.4


def _answer_before_commit() -> None:
    """Store each answer a moment after it was given."""
    from secretballot.door.stream import ReleaseStream

    from secretballot.core.ledger.account import AnswerPage

    draw = ReleaseStream._draw_and_store

    class Late:
        """A page that only remembers what is added."""

        def __init__(self, page: AnswerPage) -> None:
            self._page, self.parts = page, list[tuple[bytes, bytes]]()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._page, name)

        def add(self, parts: Sequence[tuple[bytes, bytes]]) -> None:
            self.parts += parts

    def draw_alone(self: ReleaseStream, page: AnswerPage, *rest: Any) -> dict[bytes, bytes]:
        late = Late(page)
        found = draw(self, late, *rest)  # type: ignore[arg-type]

        def store() -> None:
            with self.ledger.answering(self.reservation) as later:
                known = later.find([question for question, _ in late.parts])
                new = [one for one in late.parts if one[0] not in known]
                later.add(new[: self.planned - later.count])

        threading.Timer(_LATE_S, store).start()
        return found

    ReleaseStream._draw_and_store = draw_alone  # type: ignore[method-assign]


def _forget_repeated_questions() -> None:
    """Write nothing into the audit log of requests that ask nothing new."""
    from secretballot.service.audit_log import AuditEntry, AuditLog

    admitting = AuditLog.admitting
    Admit = Callable[[AuditEntry, int | None], bool]

    @contextmanager
    def forgetful(self: AuditLog) -> Iterator[Admit]:
        with admitting(self) as admit:
            yield lambda entry, quota: not entry.new or admit(entry, quota)

    AuditLog.admitting = forgetful  # type: ignore[method-assign]


def _count_no_question() -> None:
    """Let every key ask as much as it likes."""
    from secretballot.service import audit_log

    audit_log._COUNT = audit_log._COUNT.replace("new + excluded.new", "new")


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
