"""Signals that a system or a person sends: the command ends with its documented code, and goes
on when repeated."""

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

#: Exit codes that are in order: done before the signal came, interrupted, or ended by the signal
#: itself.
_ALLOWED = {signal.SIGINT: (0, 130), signal.SIGTERM: (0, 130, -15), signal.SIGHUP: (0, 130, -1)}


def signals_of(
    verb: str, rounds: int, folder: Path, seed: int = 0
) -> tuple[Counter[str], list[str]]:
    """Send each signal at random moments to a command and its workers, then repeat the command.

    Parameters
    ----------
    verb : str
        One of `commands.VERBS`.
    rounds : int
        Signals of each kind.
    folder : Path
        Emptied.
    seed : int
        Of the moments.

    Returns
    -------
    counts : Counter
    faults : list of str
    """
    rng, counts, faults = random.Random(seed), Counter[str](), list[str]()
    for number in [*_ALLOWED] * rounds:
        clear(folder)
        child = run_forked(command(verb), folder)
        while os.getpgid(child) != child:  # it has not come to the line that gives it its group
            time.sleep(0.001)
        time.sleep(rng.uniform(0.05, 1.0))
        os.killpg(child, number)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        counts[f"{number.name}"] += 1
        if code not in _ALLOWED[number]:
            faults.append(
                f"{verb}: exit code {code} after {number.name}:"
                f" {(folder / 'said.txt').read_text()[-300:]}"
            )
        # what the signal ended must be taken up by the same command, without paying again
        again = os.waitstatus_to_exitcode(os.waitpid(run_forked(command(verb), folder), 0)[1])
        if again != 0:
            faults.append(f"{verb}: the repeat after {number.name} ends with {again}")
            continue
        books = open_books(folder)
        if books.committed != 1 or books.unanswered > 1:
            faults.append(
                f"{verb}: {books.committed} answers and {books.unanswered} purchases without one"
            )
        faults += [f"{verb}: {fault}" for fault in books.faults]
        faults += [f"{verb}: left behind: {name}" for name in leftovers(folder)]
        faults += [f"{verb}: still alive: {left}" for left in processes_that_stay(folder)]
    return counts, faults
