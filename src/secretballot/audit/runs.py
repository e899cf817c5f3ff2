"""Run one command many times, each time in a process and a folder of its own, and keep what could
be seen of each run.

Which of the two worlds a run is in is decided by a fair coin each, tossed before the first run and
kept in the work folder, so that an interrupted audit goes on where it was. All runs see the same
names of files and folders.
"""

import gzip
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import numpy as np

from secretballot._typing import BoolArray
from secretballot.audit.observation import Fields, observed_files, observed_text
from secretballot.drafts import write_file
from secretballot.exceptions import DataError, ParameterError

#: What is observed apart: what everybody sees, what the curator sees, and how long it took.
CHANNELS = ("release", "console", "timing")
_LONGEST_S = 600.0  # of one run
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Experiment:
    """A command, and the files that it finds in each run.

    Attributes
    ----------
    program : tuple of str
        Words that start the program, before those of the command.
    words : tuple of str
        The command, with names of files relative to the folder that it runs in.
    files_of : callable
        From the number of a run to its files, name to path.
    released : str
        Folder that is observed, relative to the folder that the command runs in.
    """

    program: tuple[str, ...]
    words: tuple[str, ...]
    files_of: Callable[[int], Mapping[str, Path]]
    released: str


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


class WorkFolder:
    """The private folder of an audit: coins, finished runs, and the folders that runs live in.

    Parameters
    ----------
    path : Path
        New, or holding the same audit, interrupted.
    description : dict
        What makes it the same audit.
    n_runs : int
    seed : int or None
        Of the random draws; None takes fresh ones.
    coins_per_run : int
        More than one where a run has several canaries.

    Attributes
    ----------
    coins : ndarray of bool, shape (n_runs, coins_per_run)

    Raises
    ------
    DataError
        If the folder holds something else.
    """

    def __init__(
        self,
        path: Path,
        description: Mapping[str, Any],
        n_runs: int,
        seed: int | None = None,
        *,
        coins_per_run: int = 1,
    ) -> None:
        self.path = path
        stated = path / "audit.json"
        wanted = {**description, "runs": n_runs}
        if path.exists() and not stated.is_file() and any(path.iterdir()):
            raise DataError(
                f"{str(path)!r} holds something else than an audit; name another folder with"
                " --work."
            )
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        # a folder that was there may be open to others; what is observed of private runs is not
        path.chmod(0o700)
        (path / "runs").mkdir(exist_ok=True)
        # an interrupted audit goes on with the draws it began with: new ones would be chosen after
        # seeing results
        if stated.is_file():
            found = json.loads(stated.read_text(encoding="utf-8"))
            coins = found.pop("coins", None)
            if found != json.loads(json.dumps(wanted)):
                raise DataError(
                    f"{str(path)!r} holds another audit; delete it, or name another folder with"
                    " --work."
                )
        else:
            rng = np.random.default_rng(seed)
            coins = rng.integers(2, size=(n_runs, coins_per_run)).astype(bool).tolist()
            write_file(stated, json.dumps({**wanted, "coins": coins}).encode())
        self.coins: BoolArray = np.array(coins, dtype=bool)

    def finished(self, number: int) -> Trial | None:
        """Return the run of this number, None if it has not been finished."""
        try:
            return Trial(**json.loads(gzip.decompress(self._run_place(number).read_bytes())))
        except FileNotFoundError:
            return None

    def keep(self, number: int, trial: Trial) -> None:
        """Keep a finished run."""
        write_file(self._run_place(number), gzip.compress(json.dumps(asdict(trial)).encode(), 3))

    def remove(self) -> None:
        """Delete the folder."""
        shutil.rmtree(self.path)

    def _run_place(self, number: int) -> Path:
        return self.path / "runs" / f"{number:06d}.json.gz"


def run_trials(
    experiment: Experiment, folder: WorkFolder, *, jobs: int, progress: Progress | None = None
) -> list[Trial]:
    """Run what is not finished yet and return all runs, in the order of their coins.

    Parameters
    ----------
    experiment : Experiment
    folder : WorkFolder
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
    n, tell = len(folder.coins), progress or (lambda done, total: None)
    trials = {
        number: trial for number in range(n) if (trial := folder.finished(number)) is not None
    }
    tell(len(trials), n)
    slots: SimpleQueue[str] = SimpleQueue()
    for slot in range(jobs):
        slots.put(f"slot-{slot:03d}")

    def run(number: int) -> Trial:
        slot = slots.get()
        try:
            return _run_once(experiment, folder.path / slot, experiment.files_of(number))
        finally:
            slots.put(slot)

    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(run, number): number for number in range(n) if number not in trials}
        try:
            for future in as_completed(waiting):
                number = waiting[future]
                trials[number] = future.result()
                folder.keep(number, trials[number])
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


def _run_once(experiment: Experiment, slot: Path, files: Mapping[str, Path]) -> Trial:
    """Run the command in a fresh folder with the files of one world, observe, and delete the
    folder."""
    # 1. a folder of the same name and the same files, whatever was there before
    shutil.rmtree(slot, ignore_errors=True)
    slot.mkdir(mode=0o700)
    for name, path in files.items():
        shutil.copyfile(path, slot / name)
    # 2. a process of its own
    environment = {**dict.fromkeys(_THREADS, "1"), **os.environ}
    start = time.perf_counter()
    try:
        ended = subprocess.run(
            [*experiment.program, *experiment.words],
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
            f"The program {experiment.program[0]!r} cannot be started: {error.strerror}."
        ) from None
    seconds = time.perf_counter() - start
    # 3. what everybody sees, what the curator sees, and how long it took, apart from each other
    released = slot / experiment.released
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


def unique_name(path: Path, taken: Sequence[str]) -> str:
    """Return the name of a file, with a number before it if another file has that name."""
    name, number = path.name, 2
    while name in taken:
        name, number = f"{number}-{path.name}", number + 1
    return name
