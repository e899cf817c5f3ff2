"""Worker processes end with the process that gave them work: when it says so, or when it is gone.

Ctrl-C in a terminal goes to the program and to its workers alike. The program decides what it
means; a worker that took it too would print a traceback of its own.
"""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

_LOOK_SECONDS = 0.5
_PARENT_GONE = 1  # exit code, which nobody is left to read


def end_with(giver: int) -> None:
    """End this process soon after the process `giver` ended.

    Does nothing unless that one is its parent.

    Workers on other machines, and threads of the giver itself, are left to their own masters.

    Parameters
    ----------
    giver : int
        Number of the process that hands out the work.
    """
    if os.getpid() != giver and os.getppid() == giver:
        _watcher_of(giver)


@contextmanager
def interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C until the block is left, here and in every process that starts within it.

    A program that finds Ctrl-C ignored when it begins goes on ignoring it: so a worker is deaf from
    its first moment, before any line of ours runs in it. (A mask would not do: joblib takes it off
    when it starts its tracker of resources.) A Ctrl-C within the block, some hundredths of a
    second, is lost and must be repeated. Signals are set in the main thread alone; from another,
    and where the handler is not Python's, nothing changes.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@lru_cache
def _watcher_of(parent: int) -> threading.Thread:
    """Return the thread that watches over this parent, begun once."""
    watcher = threading.Thread(target=_end_without, args=(parent,), daemon=True)
    watcher.start()
    return watcher


def _end_without(parent: int) -> None:
    while os.getppid() == parent:  # orphans get another parent
        time.sleep(_LOOK_SECONDS)
    os._exit(_PARENT_GONE)  # nothing to tidy up: what a worker learnt is lost with who asked for it
