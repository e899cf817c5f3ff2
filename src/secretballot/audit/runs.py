"""Run one command many times, each time in a process and a folder of its own, and keep what could
be seen of each run.

Which of the two worlds a run is in is decided by a fair coin each, tossed before the first run. All
runs see the same names of files and folders, in a private temporary folder.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from secretballot._typing import BoolArray
from secretballot.audit.observation import Fields, observed_files, observed_text
from secretballot.exceptions import DataError, ParameterError

#: What is observed apart: what everybody sees, what the curator sees, and how long it took.
CHANNELS = ("release", "console", "timing")
_LONGEST_S = 600.0  # of one run
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Trial:
    """What could be seen of one run.

    Attributes
    ----------
    exit_code : int
    channels : dict
        For each of `CHANNELS`, the fields.
    certificate : dict or None
        The certificate that was released, if there was one.
    """

    exit_code: int
    channels: dict[str, Fields]
    certificate: dict[str, Any] | None = None


def fair_coins(runs: int, each: int, seed: int | None) -> BoolArray:
    """Return fair coins of all runs, shape (runs, each): which world a run is in, or which of its
    canaries are there.

    Parameters
    ----------
    runs, each : int
    seed : int or None
        None takes fresh coins.
    """
    return np.random.default_rng(seed).integers(2, size=(runs, each)).astype(bool)


def run_trials(
    words: Sequence[str],
    files: Sequence[Mapping[str, Path | bytes]],
    released: str,
    *,
    program: Sequence[str] | None,
    jobs: int,
    progress: Progress | None,
) -> list[Trial]:
    """Run a command once for each of some lists of files.

    Parameters
    ----------
    words : sequence of str
        The command, with names of files relative to the folder that it runs in.
    files : sequence of mappings of str to path or bytes
        Of each run: what is copied, or written, into its folder.
    released : str
        Folder that is observed, relative to the one that the command runs in.
    program : sequence of str, optional
        Words that start the program; this one by default.
    jobs : int
        Runs at the same time, in folders whose names have equal length.
    progress : callable, optional
        Called with the number of finished runs and the number of all.

    Raises
    ------
    DataError
        If the first runs all fail in the same way, or a run takes too long.
    ParameterError
        If the program cannot be started.
    """
    n, tell = len(files), progress or (lambda done, total: None)
    command = [*(program or (sys.executable, "-m", "secretballot")), *words]
    trials: dict[int, Trial] = {}
    tell(0, n)
    with tempfile.TemporaryDirectory(prefix="secretballot-audit-") as folder:
        slots: SimpleQueue[Path] = SimpleQueue()
        for slot in range(jobs):
            slots.put(Path(folder) / f"slot-{slot:03d}")

        def run(number: int) -> Trial:
            slot = slots.get()
            try:
                return _run_once(command, slot, files[number], slot / released)
            finally:
                slots.put(slot)

        with ThreadPoolExecutor(jobs) as pool:
            waiting = {pool.submit(run, number): number for number in range(n)}
            try:
                for future in as_completed(waiting):
                    trials[waiting[future]] = future.result()
                    _refuse_failures(trials)
                    tell(len(trials), n)
            finally:  # after an interruption only the runs that are under way end
                pool.shutdown(wait=True, cancel_futures=True)
    return [trials[number] for number in range(n)]


def _refuse_failures(trials: Mapping[int, Trial]) -> None:
    """Refuse a command that always fails.

    There is nothing to see. Its own sentence may be private and stays unsaid.
    """
    if len(trials) >= 4 and all(trial.exit_code != 0 for trial in trials.values()):
        code = next(iter(trials.values())).exit_code
        raise DataError(
            f"The command ended with exit code {code} in its first {len(trials)} runs; run it by"
            " itself until it works."
        )


def _run_once(
    command: Sequence[str], slot: Path, files: Mapping[str, Path | bytes], released: Path
) -> Trial:
    """Run the command in a fresh folder with the files of one world, observe, and delete the
    folder."""
    # 1. a folder of the same name and the same files, whatever was there before
    shutil.rmtree(slot, ignore_errors=True)
    slot.mkdir(mode=0o700)
    for name, content in files.items():
        if isinstance(content, bytes):
            (slot / name).write_bytes(content)
        else:
            shutil.copyfile(content, slot / name)
    # 2. a process of its own
    environment = {**dict.fromkeys(_THREADS, "1"), **os.environ}
    start = time.perf_counter()
    try:
        ended = subprocess.run(
            command,
            cwd=slot,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise DataError(
            f"A run took more than {_LONGEST_S:g} seconds; attack a smaller table."
        ) from None
    except OSError as error:
        raise ParameterError(
            f"The program {command[0]!r} cannot be started: {error.strerror}."
        ) from None
    seconds = time.perf_counter() - start
    # 3. what everybody sees, what the curator sees, and how long it took, apart from each other
    console: Fields = {}
    for name, output in (("output", ended.stdout), ("error", ended.stderr)):
        console |= observed_text(name, output.decode("utf-8", "replace"))
    trial = Trial(
        ended.returncode,
        {
            "release": {"exit code": ended.returncode, **observed_files(released)},
            "console": console,
            "timing": {"seconds": seconds},
        },
        _certificate_of(released),
    )
    shutil.rmtree(slot, ignore_errors=True)
    return trial


def _certificate_of(released: Path) -> dict[str, Any] | None:
    try:
        document = json.loads((released / "certificate.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) else None
