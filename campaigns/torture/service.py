"""A service that is asked all the time while its workers, all its processes and its database are
killed with signal 9, again and again; or two, on copies of one vault, whose links to the database
hang, too.

After each blow it is started again and asked what it was asked before; in the end ledger and audit
logs are held against what every analyst has written down.
"""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

import httpx

from campaigns.cases import Found
from campaigns.postgres_proxy import PostgresProxy
from campaigns.postgres_server import PostgresServer, children_of, is_alive
from campaigns.torture.analysts import (
    Analyst,
    Dataset,
    Notes,
    asking,
    faults_in_books,
    made_dataset,
)
from secretballot.core.ledger import Ledger

#: Questions of one session.
PLANNED = 3000
#: How often each is struck, with the ledger in a file, in a database, and in one that two machines
#: use; a link that hangs closes no connection.
BLOWS = {
    "file": {"a worker": 8, "all processes": 2, "the first process": 1},
    "database": {"the database": 12, "a worker": 6, "all processes": 1, "the first process": 1},
    "machines": {
        "a link": 5,
        "both links": 1,
        "all processes": 3,
        "all processes behind a link": 4,
        "the database": 1,
    },
}
_PATIENCE_S = 120.0  # until a service answers again
_PATIENCE_OF_TWO = 2.0  # a machine without a database refuses after this
_ROOT = Path(__file__).resolve().parents[2]


class RunningService:
    """`secretballot serve` with all its processes, on one port through all its lives.

    Parameters
    ----------
    config : Path
    workers : int
    """

    def __init__(self, config: Path, *, workers: int = 2) -> None:
        self.port = 0
        self.log, self._folder = config.with_name("service.log"), config.parent
        self._command = [sys.executable, "-m", "secretballot", "serve", "start"]
        self._command += ["--config", str(config), "--workers", str(workers), "--port"]
        scratch = self._folder / "scratch"
        scratch.mkdir(exist_ok=True)
        path = os.pathsep.join([str(_ROOT / "src"), os.environ.get("PYTHONPATH", "")])
        self._environment = os.environ | {"TMPDIR": str(scratch), "PYTHONPATH": path}
        self._process: subprocess.Popen[bytes] | None = None

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
        return f"http://127.0.0.1:{self.port}"

    def is_ready(self) -> bool:
        """Return whether it says that it can answer."""
        with suppress(httpx.TransportError):
            # unverified: to read the certificates of the system would take longer than to ask
            found = httpx.get(f"{self.url}/health/ready", timeout=5, verify=False)
            return found.status_code == 200
        return False

    def answering_processes(self) -> list[int]:
        """Return the processes that have begun to answer and are there: the first one alone where
        it has no others."""
        assert self._process is not None
        own = {self._process.pid, *children_of(self._process.pid)}
        began = re.findall(r"\[(\d+)\] Application startup complete", self.log.read_text())
        return [number for number in own & set(map(int, began)) if is_alive(number)]

    def wait_for(self, processes: int) -> None:
        """Wait until so many processes have begun to answer and are there."""
        _wait_until(lambda: len(self.answering_processes()) >= processes)

    def defects(self) -> list[str]:
        """Return what its log tells of errors that nobody foresaw."""
        lines = self.log.read_text().splitlines()
        return [f"the log tells of it: {line}" for line in lines if " defect" in line]

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
        _wait_until(lambda: not any(map(is_alive, workers)))

    def kill_all(self) -> None:
        """Kill all its processes at once."""
        if self._process is None:
            return
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


def service_struck(
    amount: int,
    seed: int,
    folder: Path,
    server: PostgresServer | None = None,
    machines: int = 1,
    workers: int = 2,
) -> Found:
    """Strike services that are asked all the time, and hold their books against the notes of those
    who asked.

    Parameters
    ----------
    amount : int
        Blows.
    seed : int
        Of moments and questions.
    folder : Path
    server : PostgresServer, optional
        Where the ledger is kept; by default in a file.
    machines : int
        Services, each with a link of its own to the server where there are two.
    workers : int
    """
    schema = f"service{seed}_{machines}"
    with ExitStack() as stack:
        links = [PostgresProxy(server) for _ in range(machines)] if server and machines > 1 else []
        for link in links:
            stack.callback(link.close)
        url = links[0].url(schema) if links else server and server.url(schema=schema)
        place = folder / "machine"
        datasets = [made_dataset(place, PLANNED, url, _PATIENCE_OF_TWO if links else 10.0)]
        for number, link in enumerate(links[1:], 1):
            config = folder / f"machine{number}" / "service.toml"
            other = replace(datasets[0], config=config)
            shutil.copytree(place, config.parent)
            file = _session_file(other)
            file.write_text(json.dumps(json.loads(file.read_text()) | {"ledger": link.url(schema)}))
            datasets.append(other)
        running = [RunningService(one.config, workers=workers) for one in datasets]
        for service in running:
            stack.callback(service.kill_all)
            service.start()
        return _round(datasets, running, amount, _Blows(server, links, random.Random(seed)))


def _round(
    datasets: list[Dataset], services: list[RunningService], amount: int, blows: "_Blows"
) -> Found:
    """Ask and strike, let the rest of the budget be used up, ask everything again, and open the
    books."""
    notes, heads, dice = Notes(), list[tuple[int, str]](), blows.dice
    *keys, curator = [(key, token) for key, (token, _) in datasets[0].keys.items()]
    analysts = [Analyst(notes, *key, service.url) for key in keys for service in services]
    curators = [Analyst(notes, *curator, service.url) for service in services]
    ledger = Ledger.open_existing(json.loads(_session_file(datasets[0]).read_text())["ledger"])
    # more questions than are paid for
    pool = PLANNED + PLANNED // 4
    with asking(analysts, pool, dice):
        for _ in range(amount):
            time.sleep(dice.uniform(0.2, 1.5))
            blows.strike(services)
            for service in services:
                service.start()
            heads.append(ledger.head())
            known = sorted(notes.answers)
            asked = dice.sample(known, min(len(known), 100))
            for one in curators:
                if not asked_again(one, asked):
                    return blows.counts, [f"it does not answer again: {one.refusal}"]
    faults = use_up(curators[0], pool)
    known = sorted(notes.answers)
    for one in curators:
        for start in range(0, len(known), 500):
            if not asked_again(one, known[start : start + 500]):
                faults.append("lost: what was answered is not answered again")
    for service in services:
        if (code := service.stop()) != 0:
            faults.append(f"a stop ends with exit code {code}")
        faults += service.defects()
    faults += faults_in_books(datasets[0], notes, heads, [one.state for one in datasets])
    blows.counts["requests answered"] += len(notes.received)
    blows.counts["questions answered"] += len(known)
    blows.counts.update(notes.refused)
    return blows.counts, faults


class _Blows:
    """What may befall services, their links and their database."""

    def __init__(
        self, server: PostgresServer | None, links: list[PostgresProxy], dice: random.Random
    ) -> None:
        self._server, self._links, self.dice = server, links, dice
        self.counts: Counter[str] = Counter()

    def strike(self, services: list[RunningService]) -> None:
        """Let something befall one of the services."""
        kinds = BLOWS["machines" if self._links else "database" if self._server else "file"]
        (blow,) = self.dice.choices(list(kinds), list(kinds.values()))
        self.counts[f"kills of {blow}"] += 1
        number = self.dice.randrange(len(services))
        service = services[number]
        struck: Iterable[PostgresProxy] = ()
        if "link" in blow:
            struck = self._links if blow == "both links" else [self._links[number]]
            for link in struck:
                link.hang()
            time.sleep(self.dice.uniform(0.0, 6.0))
        if blow.startswith("all processes"):
            service.kill_all()
        elif blow == "a worker":
            service.kill_worker(self.dice)
        elif blow == "the first process":
            service.kill_first()
        elif blow == "the database":
            assert self._server is not None
            self._server.kill()
            time.sleep(self.dice.uniform(0.0, 0.5))  # the service is asked meanwhile
            self._server.start()
        for link in struck:
            link.heal()


def _wait_until(holds: Callable[[], object]) -> bool:
    """Wait for a while until something holds, and return whether it does."""
    end = time.monotonic() + _PATIENCE_S
    while not (now := bool(holds())) and time.monotonic() < end:
        time.sleep(0.05)
    return now


def _session_file(dataset: Dataset) -> Path:
    (file,) = (dataset.vault / "sessions").glob("*.json")
    return file


def asked_again(analyst: Analyst, numbers: Sequence[int]) -> bool:
    """Ask questions that have answers until all of them come; return whether they did."""
    answers = list[str | None]()

    def answered() -> bool:
        answers[:] = analyst.ask(numbers) or ()
        return bool(answers)

    return not numbers or (_wait_until(answered) and None not in answers)


def use_up(analyst: Analyst, pool: int) -> list[str]:
    """Ask new questions until the budget is spent."""
    for start in range(pool, 3 * pool, 250):
        numbers = range(start, start + 250)
        if not _wait_until(lambda n=numbers: analyst.ask(n) or analyst.refusal == "budget-spent"):
            return [f"the rest of the budget cannot be used: {analyst.refusal}"]
        if analyst.refusal == "budget-spent":
            return []
    return ["overspent: the budget does not end"]
