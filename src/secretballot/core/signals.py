"""Signals that end a program, held back for a moment in which an end would cost something."""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

#: Ctrl-C, the wish of a system or a queue that the program ends, a terminal that is closed.
_ENDING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)


@contextmanager
def signals_held_back() -> Iterator[None]:
    """Hold back the signals that ask for an end until the block is left.

    Then the first that came does its work.

    Python handles signals in the main thread alone, so in any other one nothing is held back, and
    nothing needs to be where the handler raises. A signal that nobody can catch, such as number 9,
    is not held back.
    """
    came: list[int] = []
    with ExitStack() as stack:
        if threading.current_thread() is threading.main_thread():
            stack.callback(lambda: [*map(signal.raise_signal, came[:1])])
            for number in _ENDING:
                handler = signal.getsignal(number)
                # None: set by a program in C
                if handler is not None and handler is not signal.SIG_IGN:
                    stack.callback(signal.signal, number, handler)
                    signal.signal(number, lambda seen, _: came.append(seen))
        yield
