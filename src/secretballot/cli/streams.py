"""Standard output and error that break no verb: what could not be written is told at the end."""

import errno
import io
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from secretballot._validation import without_controls

__all__ = ["Streams", "lasting_streams"]

_WAIT_SECONDS = 0.01
_READER_LEFT = (errno.EPIPE, errno.ECONNRESET)


class _Sink(io.RawIOBase):
    """Pass bytes on until that fails; from then on take them for written, and remember why."""

    def __init__(self, below: Any) -> None:
        self._below = below
        self.problem: OSError | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        rest = bytes(data)
        size = len(rest)
        while rest and self.problem is None:
            try:
                written = self._below.write(rest)
            except OSError as error:
                self.problem = error
                break
            # a terminal or pipe that is full for the moment and was set not to wait
            if written is None:
                time.sleep(_WAIT_SECONDS)
            rest = rest[written or 0 :]
        return size

    def isatty(self) -> bool:
        return bool(self._below.isatty())

    def fileno(self) -> int:
        return int(self._below.fileno())


class _PlainText(io.TextIOWrapper):
    """Text without control characters but for ends of lines: names may come from any file."""

    def write(self, text: str, /) -> int:
        super().write(without_controls(text, keep="\n\t"))
        return len(text)


class Streams:
    """The two streams of a verb, and what became of its output.

    Parameters
    ----------
    output : _Sink or None
        None where standard output is no stream of bytes, as in a test.
    """

    def __init__(self, output: _Sink | None) -> None:
        self._output = output

    def trouble(self) -> str | None:
        """Return why the output could not be written, None where its reader has all it wanted."""
        sys.stdout.flush()
        problem = None if self._output is None else self._output.problem
        if problem is None or problem.errno in _READER_LEFT:
            return None
        return problem.strerror or type(problem).__name__


@contextmanager
def lasting_streams() -> Iterator[Streams]:
    """Put streams that last in the place of standard output and error while a verb works."""
    _fill_closed_places()
    before = sys.stdout, sys.stderr
    output, sys.stdout = _lasting_stream(sys.stdout, _PlainText)
    _, sys.stderr = _lasting_stream(sys.stderr, io.TextIOWrapper)
    try:
        yield Streams(output)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        sys.stdout, sys.stderr = before


def _lasting_stream(stream: TextIO, kind: type[io.TextIOWrapper]) -> tuple[_Sink | None, TextIO]:
    """Return a sink below a new stream of text; no sink and the same stream without bytes below."""
    below = getattr(stream, "buffer", None)
    if below is None:
        return None, stream
    # past the buffer of the old stream: what that holds when a write fails would be tried again at
    # the very end
    sink = _Sink(getattr(below, "raw", below))
    text = kind(
        io.BufferedWriter(sink),
        encoding=stream.encoding or "utf-8",
        errors="backslashreplace",
        line_buffering=stream.isatty() or stream is sys.stderr,
    )
    return sink, text


def _fill_closed_places() -> None:
    """Put nothing in the place of standard streams that were closed.

    Else the next file that is opened, maybe a ledger, gets the number of standard error, and
    messages of libraries are written into it.
    """
    for place in range(3):
        try:
            os.fstat(place)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # not closed: it lasts as long as we do
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
