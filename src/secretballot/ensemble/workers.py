"""Worker processes end with the process that gave them work, also when that one was killed and
could not tell them."""

import os
import threading
import time
from functools import lru_cache

__all__ = ["end_with"]

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
