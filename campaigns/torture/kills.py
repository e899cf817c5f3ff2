"""Kill -9 at random moments, then repeat the command until it ends by itself."""

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

from campaigns.torture.commands import (
    clear,
    command,
    leftovers,
    open_books,
    processes_that_stay,
    run_forked,
)

_STRUCK = 0.7  # share of the starts that are killed; the others may run to their end
_LONGEST = 120.0  # seconds


def _exit_code_of(child: int) -> int | None:
    """Return the exit code of a child that has ended, None of one that has not."""
    number, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if number else None


def kills_of_commands(
    verb: str, kills: int, folder: Path, *more: str, seed: int = 0
) -> tuple[Counter[str], list[str]]:
    """Kill command lines at random moments and check the books after each that finished.

    Parameters
    ----------
    verb : str
        One of `commands.VERBS`.
    kills : int
    folder : Path
        Emptied.
    *more : str
        More words of the command.
    seed : int
        Of the moments.

    Returns
    -------
    counts : Counter
        Kills, runs that finished, answers that were paid, purchases without an answer.
    faults : list of str
    """
    rng, counts, faults = random.Random(seed), Counter[str](), list[str]()
    clear(folder)
    begun = time.monotonic()
    os.waitpid(run_forked(command(verb, *more), folder), 0)
    # kills fall anywhere in an undisturbed run, and a little after it
    whole = 1.1 * (time.monotonic() - begun)
    clear(folder)
    since = 0
    while counts["kills"] < kills or since:
        child = run_forked(command(verb, *more), folder)
        wait = time.monotonic() + (rng.uniform(0, whole) if rng.random() < _STRUCK else _LONGEST)
        code = None
        while code is None and time.monotonic() < wait:
            time.sleep(0.002)
            code = _exit_code_of(child)
        if code is None:
            # the program alone: its workers must see that it is gone
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            counts["kills"] += 1
            since += 1
            continue
        _settle_run(verb, code, since, folder, counts, faults)
        since = 0
        clear(folder)
    return counts, faults


def _settle_run(
    verb: str, code: int, kills: int, folder: Path, counts: Counter[str], faults: list[str]
) -> None:
    """Check the books of a run that ended by itself after some kills."""
    if code != 0:
        faults.append(
            f"{verb}: exit code {code} after {kills} kills:"
            f" {(folder / 'said.txt').read_text()[-300:]}"
        )
        return
    left = processes_that_stay(folder)
    books = open_books(folder)
    counts["finished"] += 1
    counts["answers"] += books.committed
    counts["purchases without an answer"] += books.unanswered
    if books.unanswered > kills:
        books.faults.append(f"{books.unanswered} purchases without an answer after {kills} kills")
    books.faults += [f"left behind: {name}" for name in leftovers(folder)]
    books.faults += [f"still alive: {number}" for number in left]
    faults += [f"{verb}: {fault}" for fault in books.faults]
