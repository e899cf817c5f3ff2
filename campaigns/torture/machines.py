"""Two machines that serve one session from one database, in networks of their own: links are cut
and healed, services and the database are killed, while analysts ask both.

Each machine is a network namespace with a copy of the vault, a state folder and a service. One link
joins it to the namespace of the database, another one to those who ask; the first is the one that
is cut. Those who make the session and open the books in the end have a link to the database, too.
"""

import itertools
import os
import random
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from campaigns.postgres_server import PostgresServer
from campaigns.torture.analysts import (
    Analyst,
    Dataset,
    Notes,
    asking,
    faults_in_books,
    made_dataset,
)
from campaigns.torture.service import RunningService, asked_again, use_up
from secretballot.core.ledger import Ledger

PLANNED, BLOWS_OF_A_ROUND = 10_000, 12
#: What befalls one of the machines, and how often.
BLOWS = {
    "cuts of a link": 5,
    "cuts of both links": 1,
    "kills of a service": 3,
    "kills of a service behind a cut link": 2,
    "losses of a machine": 2,
    "kills of the database": 1,
}
_DATABASE = "10.77.0.1"
_ANSWER_S = 2.0  # a machine without a database refuses after this
_LATE_S = 5.0  # a refusal that comes later, on a computer that others use, is a fault
_PATIENCE_S, _TRIES = 150.0, 30


def reason_for_no_networks() -> str:
    """Return why no network namespaces can be made here, nothing where they can."""
    if os.geteuid():
        return "no network namespaces: they need root"
    if not all(map(shutil.which, ("ip", "setpriv"))):
        return "no network namespaces: iproute2 and util-linux are not installed"
    name = f"sb{os.getpid()}try"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    if made.returncode:
        return "no network namespaces: this system does not let root make any"
    joined = subprocess.run(
        ["ip", "link", "add", f"{name}0", "netns", name, "type", "veth", "peer", "name", f"{name}1",
         "netns", name],
        capture_output=True, check=False,
    )  # fmt: skip
    subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)
    return "no network namespaces: they cannot be joined here" if joined.returncode else ""


def _ip(*words: str, within: str = "") -> None:
    command = ["ip", *(["-n", within] if within else []), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")


@dataclass(frozen=True)
class Network:
    """The namespaces of two machines and of their database.

    Attributes
    ----------
    name : str
        Begins the names of all of them.
    """

    name: str

    @property
    def database(self) -> str:
        """The namespace of the database."""
        return f"{self.name}d"

    def machine(self, number: int) -> str:
        """Return the namespace of a machine."""
        return f"{self.name}m{number}"

    def address(self, number: int) -> str:
        """Return the address at which those who ask reach a machine."""
        return f"10.77.{10 + number}.1"

    def within(self, namespace: str, *more: str) -> list[str]:
        """Return the words that run a command in a namespace."""
        return ["ip", "netns", "exec", namespace, *more]

    def cut(self, number: int) -> None:
        """Take down the link of a machine to the database."""
        _ip("link", "set", f"{self.name}b{number}", "down", within=self.machine(number))

    def heal(self, number: int) -> None:
        """Put the link of a machine to the database up again."""
        _ip("link", "set", f"{self.name}b{number}", "up", within=self.machine(number))
        # a route goes with the link that it leads over
        _ip(
            "route", "replace", _DATABASE, "via", f"10.77.{number}.254", within=self.machine(number)
        )


@contextmanager
def networks() -> Iterator[Network]:
    """Make the namespaces and their links, and remove them in the end."""
    own = Network(f"sb{os.getpid()}")
    made: list[str] = []
    try:
        for namespace in (own.database, own.machine(1), own.machine(2)):
            _ip("netns", "add", namespace)
            made.append(namespace)
            _ip("link", "set", "lo", "up", within=namespace)
        _ip("address", "add", f"{_DATABASE}/32", "dev", "lo", within=own.database)
        for number in (1, 2):
            machine, name = own.machine(number), own.name
            _ip("link", "add", f"{name}b{number}", "netns", machine, "type", "veth",
                "peer", "name", f"{name}e{number}", "netns", own.database)  # fmt: skip
            _ip("address", "add", f"10.77.{number}.254/24", "dev", f"{name}e{number}",
                within=own.database)  # fmt: skip
            _ip("link", "set", f"{name}e{number}", "up", within=own.database)
            _ip("address", "add", f"10.77.{number}.1/24", "dev", f"{name}b{number}", within=machine)
            own.heal(number)
            _ip("link", "add", f"{name}f{number}", "netns", machine, "type", "veth",
                "peer", "name", f"{name}g{number}")  # fmt: skip
            _ip("address", "add", f"10.77.{10 + number}.1/24", "dev", f"{name}f{number}",
                within=machine)  # fmt: skip
            _ip("link", "set", f"{name}f{number}", "up", within=machine)
            _ip("address", "add", f"10.77.{10 + number}.254/24", "dev", f"{name}g{number}")
            _ip("link", "set", f"{name}g{number}", "up")
        name = own.name
        _ip(
            "link",
            "add",
            f"{name}h",
            "netns",
            own.database,
            "type",
            "veth",
            "peer",
            "name",
            f"{name}i",
        )
        _ip("address", "add", "10.77.9.254/24", "dev", f"{name}h", within=own.database)
        _ip("link", "set", f"{name}h", "up", within=own.database)
        _ip("address", "add", "10.77.9.1/24", "dev", f"{name}i")
        _ip("link", "set", f"{name}i", "up")
        _ip("route", "add", _DATABASE, "via", "10.77.9.254")
        yield own
    finally:
        for namespace in made:  # links go with the namespaces in which one of their ends is
            subprocess.run(["ip", "netns", "delete", namespace], capture_output=True, check=False)


class _Pulse(threading.Thread):
    """Asks one machine a question after the other, and notes how long answers and refusals take.

    Parameters
    ----------
    analyst : Analyst
    first : int
        Number of the first question; each is new.
    """

    def __init__(self, analyst: Analyst, first: int) -> None:
        super().__init__()
        self.analyst, self._number, self._halt = analyst, first, threading.Event()
        self.answered_at, self.slowest_refusal = [time.monotonic()], 0.0

    def run(self) -> None:
        """Ask until told to stop."""
        while not self._halt.wait(0.05):
            began = time.monotonic()
            if self.analyst.ask([self._number]) is not None:
                self._number += 1
                self.answered_at.append(time.monotonic())
            elif self.analyst.refusal != "no connection":
                self.slowest_refusal = max(self.slowest_refusal, time.monotonic() - began)

    def end(self) -> None:
        """Have it stop, and wait until it has."""
        self._halt.set()
        self.join()

    def longest_silence(self) -> float:
        """Return the longest time without an answer, in seconds."""
        at = [*self.answered_at, time.monotonic()]
        return max(later - earlier for earlier, later in itertools.pairwise(at))


@dataclass
class _Machines:
    """What a round has in hand."""

    network: Network
    server: PostgresServer
    services: list[RunningService]
    dataset: Dataset
    notes: Notes
    dice: random.Random
    counts: Counter[str]

    def line(self, key: str, number: int) -> Analyst:
        """Return somebody who asks a machine under a key."""
        port, host = self.services[number - 1].port, self.network.address(number)
        return Analyst(self.notes, key, self.dataset.keys[key][0], port, host)

    def tell(self, what: str, seconds: float) -> None:
        """Keep the longest time of its kind."""
        self.counts[what] = max(self.counts[what], round(1000 * seconds))


def two_machines(blows: int, folder: Path, seed: int = 0) -> tuple[Counter[str], list[str]]:
    """Serve one session from two machines, cut and kill, and hold the books against the notes of
    those who asked.

    Parameters
    ----------
    blows : int
    folder : Path
    seed : int
        Of moments and questions.

    Returns
    -------
    counts : Counter
        Blows by kind, answers, refusals; the longest times in milliseconds.
    faults : list of str
        As `faults_in_books`; refusals that come late, machines that do not come back.
    """
    dice, counts, faults = random.Random(seed), Counter[str](), list[str]()
    with networks() as network:
        as_nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--"]
        server = PostgresServer(
            within=network.within(network.database, *as_nobody), networks=["10.77.0.0/16"]
        )
        try:
            done = 0
            while done < blows:
                now = min(blows - done, BLOWS_OF_A_ROUND)
                place = folder / f"{seed}-{done}"
                faults += _round(network, server, place, now, dice, counts)
                done += now
        finally:
            server.remove()
    return counts, faults


def _round(
    network: Network,
    server: PostgresServer,
    folder: Path,
    blows: int,
    dice: random.Random,
    counts: Counter[str],
) -> list[str]:
    url = server.url(
        schema=f"machines{folder.name.replace('-', '_')}",
        host=_DATABASE,
        more="&connect_timeout=2&tcp_user_timeout=3000",
    )
    first = made_dataset(folder / "1", PLANNED, url, patience=_ANSWER_S)
    shutil.copytree(folder / "1", folder / "2")
    datasets = [first, replace(first, config=folder / "2" / "service.toml")]
    services = [
        RunningService(
            dataset.config,
            workers=1,
            host=network.address(number),
            within=network.within(network.machine(number)),
        )
        for number, dataset in enumerate(datasets, 1)
    ]
    own = _Machines(network, server, services, first, Notes(), dice, counts)
    *others, curator = first.keys
    curators = [own.line(curator, number) for number in (1, 2)]
    pool, heads, faults = PLANNED + PLANNED // 4, list[tuple[int, str]](), list[str]()
    try:
        for service in services:
            service.start()
        ledger = Ledger.open_existing(url)
        askers = [own.line(key, number) for key in others for number in (1, 2)]
        with asking(askers, pool, dice, pause=0.15):
            for turn in range(blows):
                time.sleep(dice.uniform(0.2, 1.5))
                faults += _struck(own, curator, 10 * pool + 100_000 * turn)
                heads.append(ledger.head())
                known = sorted(own.notes.answers)
                asked = dice.sample(known, min(len(known), 100))
                for line in curators:
                    if not asked_again(line, asked):
                        return [*faults, f"a machine does not answer again: {line.refusal}"]
        faults += use_up(curators[0], pool)
        known = sorted(own.notes.answers)
        for line in curators:
            for start in range(0, len(known), 500):
                if not asked_again(line, known[start : start + 500]):
                    faults.append("lost: what was answered is not answered again")
        for service in services:
            if (code := service.stop()) != 0:
                faults.append(f"a stop ends with exit code {code}")
            faults += service.defects()
    finally:
        for line in curators:
            line.close()
        for service in services:
            if service.runs:
                service.kill_all()
    faults += faults_in_books(first, own.notes, heads, [dataset.state for dataset in datasets])
    counts["requests answered"] += len(own.notes.received)
    counts["questions answered"] += len(known)
    for why, times in own.notes.refused.items():
        counts[why] += times
    return faults


def _struck(own: _Machines, curator: str, fresh: int) -> list[str]:
    """Let something befall one of the machines while both are asked new questions; undo it."""
    (blow,) = own.dice.choices(list(BLOWS), list(BLOWS.values()))
    own.counts[blow] += 1
    number = own.dice.choice((1, 2))
    pulses = {one: _Pulse(own.line(curator, one), fresh + 50_000 * one) for one in (1, 2)}
    for pulse in pulses.values():
        pulse.start()
    time.sleep(own.dice.uniform(0.1, 0.5))
    faults = list[str]()
    try:
        _strike(own, blow, number, pulses[3 - number])
        undone = time.monotonic()
        while any(pulse.answered_at[-1] < undone for pulse in pulses.values()):
            if time.monotonic() > undone + _PATIENCE_S:
                return [f"a machine does not answer after {blow}"]
            time.sleep(0.02)
        own.tell(f"ms at most until both answer after {blow}", time.monotonic() - undone)
    finally:
        for pulse in pulses.values():
            pulse.end()
            pulse.analyst.close()
    if "both" not in blow and "database" not in blow:
        silence = pulses[3 - number].longest_silence()
        own.tell(f"ms at most without an answer of the other machine after {blow}", silence)
    slowest = max(pulse.slowest_refusal for pulse in pulses.values())
    own.tell("ms at most until a refusal", slowest)
    if slowest > _ANSWER_S + _LATE_S:
        faults.append(f"a refusal after {slowest:.1f} seconds where {_ANSWER_S} are set")
    return faults


def _strike(own: _Machines, blow: str, number: int, other: _Pulse) -> None:
    network, service, dice = own.network, own.services[number - 1], own.dice
    match blow:
        case "cuts of a link":
            network.cut(number)
            time.sleep(dice.uniform(1.0, 6.0))
            network.heal(number)
        case "cuts of both links":
            network.cut(1)
            network.cut(2)
            time.sleep(dice.uniform(1.0, 6.0))
            network.heal(1)
            network.heal(2)
        case "kills of a service":
            service.kill_all()
            service.start()
        case "kills of a service behind a cut link":
            network.cut(number)
            time.sleep(dice.uniform(0.0, 1.0))
            service.kill_all()
            # the database learns nothing of the end of its connections
            time.sleep(dice.uniform(0.0, 2.0))
            network.heal(number)
            service.start()
        case "losses of a machine":
            for _ in range(_TRIES):
                network.cut(number)
                time.sleep(0.1)
                if _holds_the_account(own.server, number):
                    own.counts["machines lost inside of a transaction"] += 1
                    break
                network.heal(number)
                time.sleep(dice.uniform(0.1, 0.3))
            network.cut(number)
            lost = time.monotonic()
            service.kill_all()
            # it comes back when the other one has answered: in the middle of a transaction it has
            # kept the account to itself, and nobody tells the database that it is gone
            while other.answered_at[-1] < lost and time.monotonic() < lost + _PATIENCE_S:
                time.sleep(0.02)
            network.heal(number)
            service.start()
        case "kills of the database":
            own.server.kill()
            time.sleep(dice.uniform(0.0, 2.0))
            own.server.start()


def _holds_the_account(server: PostgresServer, number: int) -> bool:
    """Return whether a machine is inside of a transaction that writes, and nothing comes."""
    rows = server.run(
        "SELECT 1 FROM pg_stat_activity JOIN pg_locks USING (pid)"
        " JOIN pg_class ON pg_class.oid = relation"
        f" WHERE client_addr = '10.77.{number}.1' AND state = 'idle in transaction'"
        " AND relname = 'head' AND mode IN ('RowShareLock', 'RowExclusiveLock')"
    )
    return bool(rows)
