"""The other end of `publishing.serving`: start the process, hand it jobs, never leave it behind."""

import atexit
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

from secretballot.exceptions import DataError

# What the process may see of the environment: where programs, libraries and caches lie, and nothing
# else.
_KEPT = (
    *("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV"),
    *("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR"),
    *("SYSTEMROOT", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "TMPDIR", "TEMP", "TMP"),
    # What chooses the routines of numeric libraries. The basis of sums over records is made in both
    # processes and must agree to the last bit; where public columns are symmetric, its directions
    # follow how a library rounds.
    *("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_BLOCK_FACTOR", "BLIS_ARCH_TYPE"),
    *("NPY_DISABLE_CPU_FEATURES", "NPY_ENABLE_CPU_FEATURES", "GLIBC_TUNABLES"),
    *("MKL_CBWR", "MKL_ENABLE_INSTRUCTIONS", "MKL_DEBUG_CPU_TYPE", "NVPL_BLAS_DEBUG_CPU_TYPE"),
)
# One order of every set, one thread in every sum, one language in every message.
_FIXED = {
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "MPLBACKEND": "Agg",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    **dict.fromkeys(
        (
            *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
            *("BLIS_NUM_THREADS", "NUMEXPR_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
        ),
        "1",
    ),
}
_ENDED = (
    "The process that makes releases ended too early (exit code {}), perhaps because there was not"
    " enough memory. Nothing paid for is lost, and no release was written; repeat the same command"
    " or call to write it."
)


class PublishingProcess:
    """A process that makes releases, and holds nothing but imports.

    Raises
    ------
    DataError
        If it cannot be started.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        problem = ""
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "secretballot.publishing"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_clean_environment(),
                cwd=os.path.abspath(os.sep),
                # a Ctrl-C reaches the program alone, which then ends this process
                start_new_session=True,
            )
        # TypeError and ValueError: Python does not know its own program
        except (OSError, TypeError, ValueError) as error:
            problem = getattr(error, "strerror", None) or type(error).__name__
        if problem:
            raise DataError(f"The process that makes releases cannot be started ({problem}).")
        self._input, self._output = cast(Any, self._process.stdin), cast(Any, self._process.stdout)

    @property
    def alive(self) -> bool:
        """Whether it can take a job from this process."""
        return self.owner == os.getpid() and self._process.poll() is None

    def perform(self, job: bytes, folder: str, say: Callable[[str], None]) -> Any:
        """Have a release made in an empty folder.

        Parameters
        ----------
        job : bytes
            Of `ReleaseJob.to_bytes`.
        folder : str
        say : callable of str
            Called with the name of each step before it begins.

        Returns
        -------
        ReleaseFolder

        Raises
        ------
        SecretBallotError
            What the job was refused with.
        OSError
            If the disk failed.
        DataError
            If the process ended.
        """
        outcome: Any = None
        try:
            with suppress(BrokenPipeError):  # the answer, or its end, gives the reason
                self._input.write(b"+" + pickle.dumps((_places_of_modules(), folder, job), 5))
                self._input.flush()
            while (message := self._next_message())[0] != "ended":
                if message[0] == "step":
                    say(message[1])
                else:
                    outcome = message[1]
        except BaseException:
            # such as Ctrl-C: the rest of this exchange would be taken for the next one's answer
            self.stop()
            raise
        # the end comes after the outcome; alone, it says that the job's process was killed
        if outcome is None:
            raise DataError(_ENDED.format(message[1]))
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    def stop(self) -> None:
        """End it, with all that it started."""
        if self.owner != os.getpid():
            return
        with suppress(OSError):
            if os.name == "posix":
                os.killpg(self._process.pid, signal.SIGKILL)  # its group is its own
            else:
                self._process.kill()
        self._process.wait()
        for pipe in (self._input, self._output):
            with suppress(OSError):
                pipe.close()

    def _next_message(self) -> tuple[Any, ...]:
        try:
            message: tuple[Any, ...] = pickle.load(self._output)
            return message
        except EOFError:
            pass
        except Exception:  # a job was killed while it wrote a message
            self.stop()
        raise DataError(_ENDED.format(self._process.wait()))


def _clean_environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, **_FIXED, "PYTHONPATH": os.pathsep.join(_places_of_modules())}


def _places_of_modules() -> list[str]:
    """Return where this process finds modules, with the folder that holds it by its name."""
    return [os.path.abspath(place) for place in sys.path]


_lock = threading.RLock()
_started: PublishingProcess | None = None


def start_publishing() -> PublishingProcess:
    """Start the process of this program unless it runs already.

    It takes seconds to be ready, so start it early.

    Raises
    ------
    DataError
        If it cannot be started.
    """
    global _started
    with _lock:
        if _started is None or not _started.alive:
            # registered once; what ended, or belongs to a parent of this process, is replaced
            if _started is None:
                atexit.register(_stop_at_exit)
            else:
                _started.stop()
            _started = PublishingProcess()
        return _started


@contextmanager
def publishing_process() -> Iterator[PublishingProcess]:
    """Give the process of this program, to one thread at a time."""
    with _lock:
        yield start_publishing()


def _stop_at_exit() -> None:
    if _started is not None:
        _started.stop()
