"""Run one command many times, each time in a process and a folder of its own, and keep what could
be seen of each run.

Which of the two worlds a run is in is decided by a fair coin each, tossed before the first run. All
runs see the same names of files and folders, in a private temporary folder; one that a killed audit
left goes with the next audit.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from secretballot._typing import BoolArray
from secretballot.audit.observation import Fields, observed_files, observed_text
from secretballot.drafts import draft_folder, sweep_drafts
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


def run_trials(
    words: Sequence[str],
    files_of: Callable[[list[bool]], Mapping[str, bytes]],
    released: str,
    shape: tuple[int, int],
    *,
    program: Sequence[str] | None,
    jobs: int,
    random_state: int | None,
    progress: Progress | None,
) -> tuple[BoolArray, list[Trial]]:
    """Run a command many times, each time with the files that fair coins choose, and return the
    coins and what was seen.

    Parameters
    ----------
    words : sequence of str
        The command, with names of files relative to the folder that it runs in.
    files_of : callable
        From the coins of a run to the files that are written into its folder.
    released : str
        Folder that is observed, relative to the one that the command runs in.
    shape : (int, int)
        Runs, and coins of each.
    program : sequence of str, optional
        Words that start the program; this one by default.
    jobs : int
        Runs at the same time, each in the folder of its thread.
    random_state : int, optional
        Seed of the coins; fresh ones by default.
    progress : callable, optional
        Called with the number of finished runs and the number of all.

    Raises
    ------
    DataError
        If the first runs all fail, or one takes too long.
    ParameterError
        If the program cannot be started.
    """
    n, tell = shape[0], progress or (lambda done, total: None)
    command = [*(program or (sys.executable, "-m", "secretballot")), *words]
    coins = np.random.default_rng(random_state).integers(2, size=shape).astype(bool)
    place = Path(tempfile.gettempdir()), "secretballot-audit"
    sweep_drafts(*place)  # the private files of an audit that was killed
    with draft_folder(*place) as folder:
        trials: dict[int, Trial] = {}
        tell(0, n)

        def run(number: int) -> Trial:
            slot = folder / threading.current_thread().name
            return _run_once(command, slot, files_of(coins[number].tolist()), slot / released)

        with ThreadPoolExecutor(jobs, "slot") as pool:
            waiting = {pool.submit(run, number): number for number in range(n)}
            try:
                for future in as_completed(waiting):
                    trials[waiting[future]] = future.result()
                    _refuse_failures(trials)
                    tell(len(trials), n)
            finally:  # after an interruption only the runs that are under way end
                pool.shutdown(wait=True, cancel_futures=True)
    return coins, [trials[number] for number in range(n)]


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
    command: Sequence[str], slot: Path, files: Mapping[str, bytes], released: Path
) -> Trial:
    """Run the command in a fresh folder with the files of one world, observe, and delete the
    folder."""
    # 1. a folder of the same name and the same files, whatever was there before
    shutil.rmtree(slot, ignore_errors=True)
    slot.mkdir(mode=0o700)
    for name, content in files.items():
        (slot / name).write_bytes(content)
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
