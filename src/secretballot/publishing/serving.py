"""The process in which releases are made: imports alone, and one fresh child for every job.

It speaks over its standard input and output. In: one byte for each job, then its length and its
bytes. Out: messages, each its length and a pickle. It ends when its input does, hence with the
process that started it, whatever ends that.
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
from collections.abc import Collection
from pathlib import Path
from typing import IO, Any

# Elsewhere a fork after imports is not safe, or there is none: there every job has a process of its
# own.
CAN_FORK = sys.platform == "linux"
_NO_MEMORY = (
    "There was not enough memory to make the release. Nothing paid for is lost; repeat to write it."
)
LENGTH = 8  # bytes that say how many follow


def serve() -> None:
    """Make releases until standard input ends."""
    # Whatever a student prints must not get between the messages.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    # whoever started this process decides, and ends it
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    missing = _missing_parts()
    _send_message(channel, ("ready", missing))
    if CAN_FORK:
        _get_ready(missing)
    while os.read(0, 1):
        if not CAN_FORK:
            _do_one_job(channel)
            return
        child = os.fork()
        if child == 0:
            _do_one_job(channel)
            os._exit(0)  # nothing of this job is to be tidied up in the copy
        _send_message(channel, ("ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])))


def _missing_parts() -> dict[str, str]:
    """Import all that a job needs, so that its child finds it there; return what is missing."""
    import secretballot.publishing.work  # noqa: F401
    from secretballot.report.extras import missing_parts, require_extra

    missing = missing_parts()
    if "report" not in missing:
        # the settings of whoever started this are no input
        require_extra("matplotlib", "report").rcdefaults()
    return missing


def _get_ready(missing: Collection[str]) -> None:
    """Do once, while no job waits, what every job would do anew: load the converter and fonts,
    compile the page."""
    importlib.import_module("skl2onnx")
    if "report" not in missing:
        from secretballot.report.pictures.style import Picture
        from secretballot.report.release.page import page_template

        page_template()
        Picture("none", 1.0, lambda axes: axes.set_title("none")).inline()


def _send_message(channel: IO[bytes], message: tuple[Any, ...]) -> None:
    content = pickle.dumps(message, protocol=5)
    channel.write(len(content).to_bytes(LENGTH, "big") + content)
    channel.flush()


def _do_one_job(channel: IO[bytes]) -> None:
    """Read one job, do it and send what came of it."""
    from secretballot.exceptions import SecretBallotError

    places, folder, content = _receive_job()
    sys.path[:] = places  # before the job is read: a student may be a class of a stranger's module
    try:
        job = pickle.loads(content)
    except Exception as error:  # such as a class of the program that runs, or of a notebook
        _send_message(channel, ("unportable", type(error).__name__))
        return
    try:
        made = _make_in_folder(channel, job, folder)
        _send_message(channel, ("made", made.written, _pickled_or_none(made.student)))
    except SecretBallotError as error:
        _send_message(channel, ("refused", type(error).__name__, error.parts))
    except OSError as error:
        _send_message(channel, ("disk", error.errno, error.strerror or str(error)))
    # private data may fill the memory, so nothing is left out of a release for want of it
    except MemoryError:
        _send_message(channel, ("refused", "ResourceError", (_NO_MEMORY,)))
    except Exception:  # a defect: everything here is public, so all of it may be told
        _send_message(channel, ("defect", traceback.format_exc()))


def _receive_job() -> tuple[list[str], str, bytes]:
    """Return the places of modules, the folder, and the job."""
    size = int.from_bytes(_read_exactly(LENGTH), "big")
    places, folder, job = pickle.loads(_read_exactly(size))
    # watch from now on whether somebody still waits for it: a job may take minutes
    threading.Thread(target=_end_with_input, daemon=True).start()
    return places, folder, job


def _read_exactly(size: int) -> bytes:
    """Return so many bytes of standard input."""
    found = bytearray()
    while len(found) < size:
        part = os.read(0, min(size - len(found), 1 << 20))
        if not part:
            os._exit(1)  # whoever wanted this is gone
        found += part
    return bytes(found)


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


def _pickled_or_none(student: Any) -> bytes | None:
    try:
        return pickle.dumps(student, protocol=5)
    except Exception:  # a student may be anybody's, and refuse in any way
        return None
