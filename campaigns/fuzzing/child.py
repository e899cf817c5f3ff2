"""The process that reads hostile inputs of one target; it may be killed by any of them.

What it is about to read is written down first, so that the parent knows what a dead child was
reading.
"""

import contextlib
import io
import json
import os
import pickle
import random
import resource
import signal
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from hypothesis import HealthCheck, Phase, find, given, seed, settings
from hypothesis.errors import NoSuchExample

from campaigns.fuzzing.edits import moved
from campaigns.fuzzing.rules import LONGEST_SECONDS, Answer, breach
from campaigns.fuzzing.targets import TARGETS, Target
from secretballot.cli.outcome import failure_of

MOST_BYTES = 2 << 30
#: Places at which each drawn set of edits is carried out: drawing takes longer than reading most
#: files. (Lists of sets would be no way to save that time: Hypothesis copies parts of what it drew,
#: and three of four sets came twice.)
_PLACES = 4
_SMALLEST = settings(
    max_examples=300, deadline=None, database=None, suppress_health_check=list(HealthCheck)
)


class _Enough(BaseException):
    """All inputs were read.

    Hypothesis lets go of a test that raises this without looking for a smaller one.
    """


class _TimeOut(BaseException):
    """Reading took too long; no library catches it by accident."""


def _time_out(_: int, __: FrameType | None) -> None:
    raise _TimeOut


@contextlib.contextmanager
def _bounded_in_time() -> Iterator[None]:
    """Interrupt what takes longer than the rules allow, with a margin in which it may still end
    by itself."""
    signal.signal(signal.SIGALRM, _time_out)
    signal.setitimer(signal.ITIMER_REAL, LONGEST_SECONDS + 5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def answer_of(target: Target, folder: Path) -> Answer:
    """Read the hostile input in a folder and return how the program answered."""
    begun, sink = time.monotonic(), io.StringIO()
    try:
        with _bounded_in_time(), contextlib.redirect_stdout(sink), contextlib.redirect_stderr(sink):
            said = target.read(folder)
        answer = (
            Answer(said, sink.getvalue())
            if isinstance(said, int)
            else Answer(0, f"{sink.getvalue()}{said or ''}")
        )
    except _TimeOut:
        answer = Answer(0, sink.getvalue())
    except (Exception, SystemExit) as error:
        failure = failure_of(error)
        answer = Answer(failure.exit_code, f"{failure.error}{_other_texts(error)}")
    return replace(answer, seconds=time.monotonic() - begun)


def _other_texts(error: BaseException) -> str:
    """Return what else an exception of ours carries: a traceback would print it."""
    from secretballot.exceptions import SecretBallotError

    if not isinstance(error, SecretBallotError):
        return ""
    others = (error.__cause__, error.__context__)
    return "".join(f"\n{other}"[:400] for other in others if other is not None)


def inputs_read(
    name: str, examples: int, number: int, folder: Path, note: Callable[[Any], object] = id
) -> tuple[Counter[str], dict[str, Any]]:
    """Read hostile inputs of one target in this process.

    Parameters
    ----------
    name : str
        Of the target.
    examples : int
        How many inputs.
    number : int
        Random seed.
    folder : Path
        Empty; for the files.
    note : callable
        Told of every input before it is read.

    Returns
    -------
    codes : Counter
        How often each exit code came.
    breaches : dict
        The smallest input that was found for each broken rule.
    """
    target, codes, breaches = TARGETS[name], Counter[str](), dict[str, Any]()
    genuine = target.prepare(folder)

    def broken_rule(found: Any) -> str | None:
        note(found)
        target.write(folder, genuine, found)
        answer = answer_of(target, folder)
        if answer.seconds > LONGEST_SECONDS:
            # a crowded machine stands still at times, and the first input waits for imports
            target.write(folder, genuine, found)
            answer = min(answer, answer_of(target, folder), key=lambda one: one.seconds)
        codes[str(answer.code)] += 1
        return breach(answer, target.allowed, private=target.private)

    rng = random.Random(number)

    @seed(number)
    @settings(_SMALLEST, max_examples=examples, phases=(Phase.generate,))
    @given(target.inputs)
    def look(drawn: Any) -> None:
        places = (
            [drawn, *(moved(drawn, rng) for _ in range(_PLACES - 1))]
            if moved(drawn, rng) != drawn
            else [drawn]
        )
        for found in places[: examples - codes.total()]:
            rule = broken_rule(found)
            if rule is not None and rule not in breaches:
                breaches[rule] = found
        if codes.total() >= examples:
            raise _Enough

    with contextlib.suppress(_Enough):
        look()
    counted = Counter(codes)  # the search for small inputs reads many more
    for rule in breaches:
        with contextlib.suppress(NoSuchExample):
            breaches[rule] = find(
                target.inputs, lambda f, rule=rule: broken_rule(f) == rule, settings=_SMALLEST
            )
    return counted, breaches


def _quick_place() -> str | None:
    """Return a folder in memory, where there is one: inputs are written and synced all the time."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main(name: str, examples: int, number: int, out: Path) -> None:
    """Read `examples` hostile inputs; write counts and breaches to ``out/NAME-NUMBER.json``."""
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_BYTES, MOST_BYTES))
    warnings.simplefilter("ignore")
    case = out / f"{name}-{number}.case"
    with tempfile.TemporaryDirectory(dir=_quick_place()) as folder:
        codes, breaches = inputs_read(
            name,
            examples,
            number,
            Path(folder),
            lambda found: case.write_bytes(pickle.dumps(found)),
        )
    smallest = {rule: repr(found)[:2000] for rule, found in breaches.items()}
    report = {"inputs": codes.total(), "codes": dict(codes), "breaches": smallest}
    draft = out / f".{name}-{number}.json"
    draft.write_text(json.dumps(report, indent=1))
    draft.replace(out / f"{name}-{number}.json")
    case.unlink()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4]))
    sys.stdout.flush()
    os._exit(0)  # a hostile input may have left threads behind
