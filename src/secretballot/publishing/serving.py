"""The process in which releases are made: imports alone, and one fresh child for every job.

To import all that a release needs takes two seconds of a processor, so one process serves a whole
program. It speaks over its standard input and output: in, one byte and a pickle for each job; out,
pickles. It ends when its input does, hence with the process that started it, whatever ends that.
"""

import importlib
import importlib.abc
import os
import pickle
import random
import signal
import sys
import threading
import traceback
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from secretballot.exceptions import Parameter, ParameterError, ResourceError, SecretBallotError

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
    import secretballot.publishing.work  # noqa: F401
    from secretballot.report.extras import MissingExtraError, require_extra
    from secretballot.report.pictures import Picture
    from secretballot.report.release.page import template

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
    except Exception:  # a defect: everything here is public, so all of it may be shown
        return RuntimeError(f"The process that makes releases failed:\n{traceback.format_exc()}")


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


def _make_in_folder(channel: IO[bytes], job: Any, folder: str) -> Any:
    from secretballot.publishing.work import make_release

    os.chdir(folder)  # files have bare names, so that no message about one says where it lay
    _seed_globals(job.seed)
    return make_release(job, Path(), lambda text: _send_message(channel, ("step", text)))


def _seed_globals(seed: int) -> None:
    """Seed the global generators, from which an estimator without a seed of its own draws."""
    import numpy as np

    # nothing else is disturbed: this process serves one job and ends
    random.seed(seed)
    np.random.seed(seed % 2**32)  # noqa: NPY002  # the global state is the one meant
