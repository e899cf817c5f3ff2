"""The process in which releases are made, and how this program starts it, hands it jobs, and never
leaves it behind.

It holds imports alone, and one fresh child for every job. To import all that a release needs takes
two seconds of a processor, so one process serves a whole program. It speaks over its standard input
and output: in, one byte and a pickle for each job; out, pickles. It ends when its input does, hence
with the process that started it, whatever ends that.
"""

import atexit
import importlib
import importlib.abc
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, cast

from secretballot.exceptions import (
    DataError,
    Parameter,
    ParameterError,
    ResourceError,
    SecretBallotError,
)

# What the process may see of the environment: where programs, libraries and caches lie, and nothing
# else.
_KEPT = (
    *("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV"),
    *("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "MPLCONFIGDIR"),
    *("TMPDIR", "TEMP", "TMP"),
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


class _PublishingProcess:
    """A process that makes releases, and holds nothing but imports.

    Raises
    ------
    DataError
        If it cannot be started.
    """

    def __init__(self) -> None:
        self.owner = os.getpid()
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        found = os.pathsep.join(_places_of_modules())
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", f"from {__name__} import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**kept, **_FIXED, "PYTHONPATH": found},
                cwd=os.path.abspath(os.sep),
                # a Ctrl-C reaches the program alone, which then ends this process
                start_new_session=True,
            )
        # TypeError and ValueError: Python does not know its own program
        except (OSError, TypeError, ValueError) as error:
            problem = getattr(error, "strerror", None) or type(error).__name__
            raise DataError(
                f"The process that makes releases cannot be started ({problem})."
            ) from None
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
            os.killpg(self._process.pid, signal.SIGKILL)  # its group is its own
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


def _places_of_modules() -> list[str]:
    """Return where this process finds modules, with the folder that holds it by its name."""
    return [os.path.abspath(place) for place in sys.path]


_lock = threading.RLock()
_started: _PublishingProcess | None = None


def start_publishing() -> _PublishingProcess:
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
            _started = _PublishingProcess()
        return _started


@contextmanager
def publishing_process() -> Iterator[_PublishingProcess]:
    """Give the process of this program, to one thread at a time."""
    with _lock:
        yield start_publishing()


def _stop_at_exit() -> None:
    if _started is not None:
        _started.stop()


# --- the other end ---

# Elsewhere a fork after imports is not safe, or there is none: there every job has a process of its
# own.
_CAN_FORK = sys.platform == "linux"
_NO_MEMORY = (
    "There was not enough memory to make the release. Nothing paid for is lost; repeat to write it."
)


def not_portable(error: Exception) -> ParameterError:
    """Return what a student is refused with that cannot be taken to another process."""
    return ParameterError(
        Parameter("student"),
        f" cannot be taken to the process that makes releases ({type(error).__name__}); its class"
        " must be in a module that can be imported there.",
    )


def serve() -> None:
    """Make releases until standard input ends."""
    # Whatever a student prints must not get between the messages.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # whoever started this process decides, and ends it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _get_ready()
    while os.read(0, 1):
        if not _CAN_FORK:
            _do_one_job(channel)
            _send_message(channel, ("ended", 0))
            return
        child = os.fork()
        if child == 0:
            _do_one_job(channel)
            os._exit(0)  # nothing of this job is to be tidied up in the copy
        _send_message(channel, ("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


def _get_ready() -> None:
    """Do once, while no job waits, what every job would do anew: import all that it needs, load
    fonts, compile the page."""
    import secretballot.publishing.release  # noqa: F401
    from secretballot._validation import MissingExtraError, require_extra
    from secretballot.publishing.page import template
    from secretballot.report.pictures import Picture

    importlib.import_module("skl2onnx")
    for name in ("page.html.j2", "words.txt.j2"):
        template(name)
    with suppress(MissingExtraError):  # without matplotlib there are no pictures
        # the settings of whoever started this are no input
        require_extra("matplotlib", "report").rcdefaults()
        Picture("none", 1.0, lambda axes: axes.set_title("none")).inline()


def _send_message(channel: IO[bytes], message: Any) -> None:
    pickle.dump(message, channel, protocol=5)
    channel.flush()


def _do_one_job(channel: IO[bytes]) -> None:
    """Read one job, do it and send what came of it, or the error."""
    places, folder, content = pickle.load(os.fdopen(0, "rb", closefd=False))
    # watch from now on whether somebody still waits for it: a job may take minutes
    threading.Thread(target=_end_with_input, daemon=True).start()
    sys.path[:] = places  # before the job is read: a student may be a class of a stranger's module
    _send_message(channel, ("done", _done_or_error(channel, content, folder)))


def _done_or_error(channel: IO[bytes], content: bytes, folder: str) -> Any:
    try:
        job = pickle.loads(content)
    except Exception as error:  # such as a class of the program that runs, or of a notebook
        return not_portable(error)
    try:
        return _make_in_folder(channel, job, folder)
    except SecretBallotError as error:
        return type(error)(*error.parts)
    except OSError as error:
        return OSError(error.errno, error.strerror or str(error))
    # private data may fill the memory, so nothing is left out of a release for want of it
    except MemoryError:
        return ResourceError(_NO_MEMORY)
    except (Exception, SystemExit):
        # a defect: everything here is public, so all of it may be shown
        return RuntimeError(f"The process that makes releases failed:\n{traceback.format_exc()}")


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def _make_in_folder(channel: IO[bytes], job: Any, folder: str) -> Any:
    import numpy as np

    from secretballot.publishing.release import make_release

    os.chdir(folder)  # files have bare names, so that no message about one says where it lay
    # an estimator without a seed of its own draws from these; this process serves one job and ends
    random.seed(job.seed)
    np.random.seed(job.seed % 2**32)  # noqa: NPY002  # the global state is the one meant
    return make_release(job, Path(), lambda text: _send_message(channel, ("step", text)))
