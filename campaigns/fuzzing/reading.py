"""How hostile inputs are read, and what every answer must obey, whatever was given."""

import contextlib
import faulthandler
import io
import os
import resource
import shutil
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from campaigns.cases import Found
from campaigns.fuzzing.edits import MARKER
from secretballot.cli.outcome import failure_of
from secretballot.exceptions import SecretBallotError

DONE, BAD_INPUT, BUDGET_REFUSED, NOT_VERIFIED, UNDECIDED = 0, 2, 3, 4, 5
LONGEST_SENTENCE, LONGEST_SECONDS, MOST_BYTES = 600, 20.0, 2 << 30
#: Seconds after which a process that hangs is ended.
_HANGS = 60.0


@dataclass(frozen=True)
class Parser:
    """One parser.

    Attributes
    ----------
    prepare : callable
        Makes genuine files in a folder, once, and returns what `change` needs of them.
    change : callable
        ``change(folder, genuine, rng)`` makes files of a copy of that folder hostile.
    read : callable
        ``read(folder)`` reads them as the program would, and returns what was said beside an
        exception, or its exit code.
    allowed : tuple of int
        Exit codes that are in order.
    private : bool
        Whether the files may hold private cells. A published file may be quoted.
    """

    prepare: Callable[[Path], Any]
    change: Callable[[Path, Any, Random], object]
    read: Callable[[Path], str | int | None]
    allowed: tuple[int, ...] = (DONE, BAD_INPUT)
    private: bool = True


@dataclass(frozen=True)
class Answer:
    """How the program answered one input.

    Attributes
    ----------
    code : int
        The exit code that the command line would give.
    said : str
        All that was said: the sentence of a refusal, or every detail of a verification.
    seconds : float
    behind : str
        Texts of other errors that an exception carries, which no traceback shows.
    """

    code: int
    said: str = ""
    seconds: float = 0.0
    behind: str = ""


def breach(answer: Answer, parser: Parser) -> str | None:
    """Return which rule the answer breaks, in words that are the same for the same defect; None if
    it breaks none."""
    said, whole = answer.said, f"{answer.said}{answer.behind}".lower()
    quoted = whole.replace(MARKER.lower(), "<cell>")
    if answer.code not in parser.allowed:
        return f"exit code {answer.code}: {said[:160]}"
    if answer.seconds > LONGEST_SECONDS:
        return f"took more than {LONGEST_SECONDS:.0f} s"
    if parser.private and quoted != whole:
        return f"a private cell was quoted: {quoted[:120]}"
    if any(len(line) > LONGEST_SENTENCE for line in said.split("\n")):
        return f"a sentence of more than {LONGEST_SENTENCE} characters: {said[:80]}"
    if any(unicodedata.category(mark) in ("Cc", "Cs") and mark != "\n" for mark in said):
        return f"control characters in: {said[:80]!a}"
    return None


class Desk:
    """A folder in which the inputs of one parser are read.

    Parameters
    ----------
    name : str
    parser : Parser
    folder : Path
    """

    def __init__(self, name: str, parser: Parser, folder: Path) -> None:
        self._name, self._parser = name, parser
        self._place, self._kept = folder / "place", folder / "genuine"
        shutil.rmtree(self._place, ignore_errors=True)
        self._place.mkdir(parents=True)
        self._genuine = parser.prepare(self._place)
        shutil.copytree(self._place, self._kept, dirs_exist_ok=True)

    def answer(self, which: str) -> Answer:
        """Return how the program answers an input."""
        shutil.rmtree(self._place)
        shutil.copytree(self._kept, self._place)
        self._parser.change(self._place, self._genuine, Random(f"{self._name} {which}"))
        begun, sink, behind = time.monotonic(), io.StringIO(), ""
        try:
            with contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
                found = self._parser.read(self._place)
            code, said = (found, "") if isinstance(found, int) else (DONE, found or "")
            said = f"{sink.getvalue()}{said}"
        except (Exception, SystemExit) as error:
            failure = failure_of(error)
            code, said, behind = failure.exit_code, str(failure.error), _texts_behind(error)
        return Answer(code, said, time.monotonic() - begun, behind)


def _texts_behind(error: BaseException) -> str:
    if not isinstance(error, SecretBallotError):
        return ""
    others = (error.__cause__, error.__context__)
    return "".join(f"\n{other}"[:400] for other in others if other is not None)


def inputs_read(
    name: str,
    parser: Parser,
    amount: int,
    number: int,
    folder: Path,
    note: Callable[[str], object] = id,
) -> tuple[Counter[str], list[str]]:
    """Read hostile inputs in this process, and tell `note` of each before; return how many were
    read and refused, and the first input that breaks each rule."""
    desk, counts, broken = Desk(name, parser, folder), Counter[str](), dict[str, str]()
    for index in range(amount):
        which = f"{number}.{index}"
        note(which)
        answer = desk.answer(which)
        if answer.seconds > LONGEST_SECONDS:
            # a crowded machine stands still at times, and the first input waits for imports
            answer = desk.answer(which)
        counts["refused" if answer.code else "read"] += 1
        if rule := breach(answer, parser):
            broken.setdefault(rule, which)
    return counts, [f"{name} {which}: {rule}" for rule, which in broken.items()]


def reading(name: str, parser: Parser) -> Callable[[int, int, Path], Found]:
    """Return the work of a campaign at a parser, for a process of its own: bounded in memory, and
    ended by an input at which it hangs."""

    def note(which: str) -> None:
        print(which, file=sys.stderr, flush=True)
        faulthandler.dump_traceback_later(_HANGS, exit=True)

    def work(amount: int, number: int, _: Path) -> Found:
        resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
        # in memory, where there is a folder in it: inputs are written and synced all the time
        quick = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        with tempfile.TemporaryDirectory(dir=quick) as folder:
            return inputs_read(name, parser, amount, number, Path(folder), note)

    return work
