"""A service that is asked all the time while its workers, all its processes and its database are
killed with signal 9, again and again.

After each blow it is started again and asked what it was asked before; in the end ledger and audit
log are held against what every analyst has written down.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any, Self

from campaigns.postgres_server import PostgresServer, children_of, is_alive
from campaigns.torture.analysts import (
    Analyst,
    Dataset,
    Notes,
    asking,
    faults_in_books,
    made_dataset,
)
from campaigns.torture.broken_service import DEFECT
from secretballot.core.ledger import Ledger

#: Questions of one session, and kills of one round at most.
PLANNED, KILLS_OF_A_ROUND = 3000, 40
#: How often each is killed, with the ledger in a file and in a database.
BLOWS = {
    "file": {"a worker": 8, "all processes": 2, "the first process": 1},
    "database": {"the database": 12, "a worker": 6, "all processes": 1, "the first process": 1},
}
_PATIENCE_S = 120.0  # until a service answers again
_ROOT = Path(__file__).resolve().parents[2]


class RunningService:
    """`secretballot serve` with all its processes, on one port through all its lives.

    Parameters
    ----------
    config : Path
    workers : int
    host : str
    defect : str
        What is wrong with it, of `broken_service`; nothing by default.
    within : sequence of str
        Words before the command.
    """

    def __init__(
        self,
        config: Path,
        *,
        workers: int = 2,
        host: str = "127.0.0.1",
        defect: str = "",
        within: Sequence[str] = (),
    ) -> None:
        self.port, self._host = 0, host
        self.log, self._folder = config.with_name("service.log"), config.parent
        module = "campaigns.torture.broken_service" if defect else "secretballot"
        self._command = [*within, sys.executable, "-m", module, "serve", "start"]
        self._command += ["--config", str(config)]
        self._command += ["--host", host, "--workers", str(workers), "--port"]
        scratch = self._folder / "scratch"
        scratch.mkdir(exist_ok=True)
        path = os.pathsep.join([str(_ROOT), str(_ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        self._environment = {
            **os.environ, DEFECT: defect, "TMPDIR": str(scratch), "PYTHONPATH": path,
        }  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self._read, self._noted = 0, list[dict[str, Any]]()

    @property
    def runs(self) -> bool:
        """Whether its first process is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it if it is gone, and wait until it says that it can answer.

        Raises
        ------
        RuntimeError
            If it does not.
        """
        end = time.monotonic() + _PATIENCE_S
        while not (self.runs and self.is_ready()):
            if time.monotonic() > end:
                raise RuntimeError(f"no service: {self.log.read_text()[-3000:]}")
            if not self.runs:  # workers that outlive the first process keep the port for a moment
                self._begin()
            time.sleep(0.05)

    def _begin(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._command, str(self.port)], stdout=subprocess.PIPE, stderr=log,
                cwd=self._folder, env=self._environment, start_new_session=True,
            )  # fmt: skip
        assert self._process.stdout is not None
        with self._process.stdout as output:
            said = output.readline().decode()  # the system has chosen the first port
        if said:
            self.port = int(said.rpartition(":")[2])

    @property
    def url(self) -> str:
        """Where it is asked."""
        return f"http://{self._host}:{self.port}"

    def is_ready(self) -> bool:
        """Return whether it says that it can answer."""
        line = HTTPConnection(self._host, self.port, timeout=5)
        try:
            line.request("GET", "/health/ready")
            return line.getresponse().status == 200
        except (OSError, HTTPException):
            return False
        finally:
            line.close()

    def answering_processes(self) -> list[int]:
        """Return the processes that have begun to answer and are there: the first one alone where
        it has no others."""
        assert self._process is not None
        own = {self._process.pid, *children_of(self._process.pid)}
        began = {line["process"] for line in self._lines_of_note() if line["event"] == "started"}
        return [number for number in own & began if is_alive(number)]

    def wait_for(self, processes: int) -> None:
        """Wait until so many processes have begun to answer and are there."""
        end = time.monotonic() + _PATIENCE_S
        while len(self.answering_processes()) < processes and time.monotonic() < end:
            time.sleep(0.05)

    def defects(self) -> list[str]:
        """Return what its log tells of errors that nobody foresaw."""
        return [
            f"the log tells of a defect: {line.get('error')} at {line.get('place')}"
            for line in self._lines_of_note()
            if line["event"] == "defect" or line.get("problem") == "defect"
        ]

    def _lines_of_note(self) -> list[dict[str, Any]]:
        """Return the lines of its log that are not about one request in good order."""
        with self.log.open("rb") as log:
            log.seek(self._read)
            content = log.read()
        whole = content.rpartition(b"\n")[0]
        self._read += len(whole) + bool(whole)
        for line in whole.splitlines():
            if b'"started"' in line or b'"defect"' in line:
                with suppress(ValueError):  # two processes wrote at once, or one was killed
                    self._noted.append(json.loads(line))
        return self._noted

    def kill_worker(self, dice: random.Random) -> None:
        """Kill a process that answers, chosen at random."""
        self.wait_for(1)
        with suppress(ProcessLookupError):
            os.kill(dice.choice(sorted(self.answering_processes())), signal.SIGKILL)

    def kill_first(self) -> None:
        """Kill the first process alone: its workers must see that it is gone."""
        assert self._process is not None
        workers = children_of(self._process.pid)
        self._process.kill()
        self._process.wait()
        end = time.monotonic() + _PATIENCE_S
        while any(map(is_alive, workers)) and time.monotonic() < end:
            time.sleep(0.05)

    def kill_all(self) -> None:
        """Kill all its processes at once."""
        assert self._process is not None
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self, within: float = _PATIENCE_S) -> int:
        """Stop it as a system does, and return its exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(within)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()


def service_kills(
    kills: int,
    folder: Path,
    *,
    server: PostgresServer | None = None,
    defect: str = "",
    workers: int = 2,
    seed: int = 0,
) -> tuple[Counter[str], list[str]]:
    """Kill a service that is asked all the time, and hold its books against the notes of those who
    asked.

    Parameters
    ----------
    kills : int
    folder : Path
    server : PostgresServer, optional
        Where the ledger is kept; by default in a file.
    defect : str
        Of the service, for the campaign to find.
    workers : int
    seed : int
        Of moments and questions.

    Returns
    -------
    counts : Counter
        Kills by what was killed, requests and questions that were answered, refusals.
    faults : list of str
        As `faults_in_books`; services that do not come back, or whose log tells of a defect.
    """
    dice, counts, faults = random.Random(seed), Counter[str](), list[str]()
    done, number = 0, 0
    while done < kills:
        counts["ledgers"] += 1
        place = None if server is None else server.url(schema=f"service{seed}_{number}")
        dataset = made_dataset(folder / f"{seed}-{number}", PLANNED, place)
        now = min(kills - done, KILLS_OF_A_ROUND)
        running = RunningService(dataset.config, workers=workers, defect=defect)
        try:
            faults += _round(dataset, running, now, server, dice, counts)
        finally:
            if running.runs:
                running.kill_all()
        done, number = done + now, number + 1
    return counts, faults


def _round(
    dataset: Dataset,
    service: RunningService,
    kills: int,
    server: PostgresServer | None,
    dice: random.Random,
    counts: Counter[str],
) -> list[str]:
    """Ask and kill, let the rest of the budget be used up, ask everything again, and open the
    books."""
    notes, heads = Notes(), list[tuple[int, str]]()
    analysts = [
        Analyst(notes, key, token, service.port) for key, (token, _) in dataset.keys.items()
    ]
    service.start()
    ledger = Ledger.open_existing(_place_of(dataset))
    # more questions than are paid for
    pool = dataset.planned + dataset.planned // 4
    with asking(analysts[:-1], pool, dice):
        for _ in range(kills):
            time.sleep(dice.uniform(0.2, 1.5))
            _strike(service, server, dice, counts)
            service.start()
            heads.append(ledger.head())
            known = sorted(notes.answers)
            if not asked_again(analysts[-1], dice.sample(known, min(len(known), 100))):
                analysts[-1].close()
                return [f"it does not answer again: {analysts[-1].refusal}"]
    faults = use_up(analysts[-1], pool)
    known = sorted(notes.answers)
    for start in range(0, len(known), 500):
        if not asked_again(analysts[-1], known[start : start + 500]):
            faults.append("lost: what was answered is not answered again")
    analysts[-1].close()
    if (code := service.stop()) != 0:
        faults.append(f"a stop ends with exit code {code}")
    faults += service.defects()
    faults += faults_in_books(dataset, notes, heads, [dataset.state])
    counts["requests answered"] += len(notes.received)
    counts["questions answered"] += len(known)
    for why, times in notes.refused.items():
        counts[why] += times
    return faults


def _strike(
    service: RunningService,
    server: PostgresServer | None,
    dice: random.Random,
    counts: Counter[str],
) -> None:
    blows = BLOWS["file" if server is None else "database"]
    (blow,) = dice.choices(list(blows), list(blows.values()))
    counts[f"kills of {blow}"] += 1
    match blow:
        case "a worker":
            service.kill_worker(dice)
        case "all processes":
            service.kill_all()
        case "the first process":
            service.kill_first()
        case "the database":
            assert server is not None
            server.kill()
            time.sleep(dice.uniform(0.0, 0.5))  # the service is asked meanwhile
            server.start()


def asked_again(analyst: Analyst, numbers: Sequence[int]) -> bool:
    """Ask questions that have answers until all of them come; return whether they did."""
    end = time.monotonic() + _PATIENCE_S
    while numbers and time.monotonic() < end:
        found = analyst.ask(numbers)
        if found is not None:
            return None not in found.answers
        time.sleep(0.05)
    return not numbers


def use_up(analyst: Analyst, pool: int) -> list[str]:
    """Ask new questions until the budget is spent."""
    end = time.monotonic() + _PATIENCE_S
    for start in range(pool, 3 * pool, 250):
        numbers = range(start, start + 250)
        while (found := analyst.ask(numbers)) is None and analyst.refusal != "budget-spent":
            if time.monotonic() > end:
                return [f"the rest of the budget cannot be used: {analyst.refusal}"]
            time.sleep(0.05)
        if found is None:
            return []
    return ["overspent: the budget does not end"]


def _place_of(dataset: Dataset) -> str:
    (file,) = (dataset.vault / "sessions").glob("*.json")
    return str(json.loads(file.read_text())["ledger"])
