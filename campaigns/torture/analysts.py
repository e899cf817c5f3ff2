"""Analysts who ask a service all the time and write down what they got, and the books of the
service held against their notes."""

import json
import random
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import numpy as np

import secretballot as sb
from campaigns.sessions import begun
from secretballot.core.mechanisms import NoisyVotes
from secretballot.service.access import Access, AuditEntry

QUESTIONS = "/v1/datasets/registry/sessions/session/questions"
#: What a service under blows may say; anything else is a fault.
EXPECTED = ("ledger-unavailable", "busy", "quota-spent", "budget-spent")
_QUOTAS = (1, 150, None, None)  # new questions of the analysts; the last key is a curator's
_PATIENCE_S = 40.0  # of a client with one request
_LATE_S = 10.0  # a refusal that comes later, on a computer that others use, is a fault
_REST_S = 0.1  # between tries to reach a service that is not there
_SETTINGS = """
state = "state"
[datasets.registry]
vault = "vault"
[listen]
stop_seconds = 2.0
[limits]
answer_seconds = {patience}
"""


@dataclass(frozen=True)
class Dataset:
    """A dataset whose session is begun, and the keys for it.

    Attributes
    ----------
    config : Path
        Settings of a service for it.
    planned : int
        Questions that are paid for.
    budget : PrivacyBudget
        Of the ledger: no more than the session costs.
    keys : dict of str to (str, int or None)
        Token and quota by the id of a key; the last one is a curator's.
    patience : float
        Seconds after which the service refuses.
    """

    config: Path
    planned: int
    budget: sb.PrivacyBudget
    keys: dict[str, tuple[str, int | None]]
    patience: float

    @property
    def vault(self) -> Path:
        """The secret folder of the teachers."""
        return self.config.with_name("vault")

    @property
    def state(self) -> Path:
        """The secret folder of the service."""
        return self.config.with_name("state")


def made_dataset(
    folder: Path, planned: int, ledger_at: str | None = None, patience: float = 10.0
) -> Dataset:
    """Train teachers, begin a session that takes the whole budget, and make keys."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.array(["no", "yes"])[(X[:, 0] > 0).astype(int)]
    teachers = sb.train_teachers(
        "tree", X, y, classes=["no", "yes"], n_teachers=20, vault=folder / "vault"
    )
    # so much noise that a question which is drawn twice has two answers
    counts = NoisyVotes(scale=9.0 * planned**0.5, release="counts")
    event = counts.event(teachers.shape(planned))
    budget = sb.PrivacyBudget(sb.accounting.epsilon_upper((event,), 1e-6), 1e-6)
    ledger = sb.Ledger(ledger_at or folder / "registry.ledger", dataset="registry", budget=budget)
    begun(teachers, counts, ledger, planned)
    config = folder / "service.toml"
    config.write_text(_SETTINGS.format(patience=patience))
    keys = {}
    with Access(folder / "state") as access:
        for quota in (*_QUOTAS, None):
            role = "curator" if len(keys) == len(_QUOTAS) else "analyst"
            key, token = access.add(role, ["registry"], quota=quota)
            keys[key.id] = (token, quota)
    return Dataset(config, planned, budget, keys, patience)


def point_of(number: int) -> list[float]:
    """Return the point of a question."""
    return [number * 0.001 - 1.0, float(number)]


@dataclass(frozen=True)
class Received:
    """What came back from one request.

    Attributes
    ----------
    key, request_id : str
    numbers : tuple of int
        Of the questions.
    answers : tuple of str or None
        Each as it came, None where the budget had ended.
    """

    key: str
    request_id: str
    numbers: tuple[int, ...]
    answers: tuple[str | None, ...]

    @classmethod
    def of(cls, key: str, numbers: Sequence[int], response: httpx.Response) -> "Received":
        """Return what came back from a request that was answered."""
        answers = tuple(
            json.dumps(one, sort_keys=True) if one["given"] else None
            for one in response.json()["answers"]
        )
        return cls(key, response.headers["x-request-id"], tuple(numbers), answers)


@dataclass
class Notes:
    """What all analysts of a dataset got, each adding to it at once.

    Attributes
    ----------
    received : list of Received
    refused : Counter
        Refusals by kind, and connections that broke.
    faults : list of str
        Refusals that nobody expects.
    slowest_refusal : float
        In seconds.
    """

    received: list[Received] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    slowest_refusal: float = 0.0

    @property
    def answers(self) -> dict[int, set[str]]:
        """Everything that was ever said to each question."""
        said: dict[int, set[str]] = defaultdict(set)
        for one in list(self.received):
            for number, answer in zip(one.numbers, one.answers, strict=True):
                if answer is not None:
                    said[number].add(answer)
        return dict(said)


class Analyst:
    """Whoever asks under one key, one request at a time.

    Parameters
    ----------
    notes : Notes
        Shared with the others.
    key, token : str
    url : str
        Of the service.
    """

    def __init__(self, notes: Notes, key: str, token: str, url: str) -> None:
        self.notes, self.key, self.refusal = notes, key, ""
        headers = {"Authorization": f"Bearer {token}"}
        self._line = httpx.Client(base_url=url, headers=headers, timeout=_PATIENCE_S)

    def ask(self, numbers: Sequence[int]) -> tuple[str | None, ...] | None:
        """Ask questions, write down what came and return the answers, None for those that the
        budget had no room for; return None where there was no answer, and keep why in
        `refusal`."""
        began = time.monotonic()
        try:
            points = [point_of(number) for number in numbers]
            response = self._line.post(QUESTIONS, json={"points": points})
        except httpx.TransportError:
            return self._refused("no connection")
        if response.status_code == 200:
            self.refusal = ""
            one = Received.of(self.key, numbers, response)
            self.notes.received.append(one)
            return one.answers
        kind = response.json()["type"].rpartition("/")[2]
        seconds = time.monotonic() - began
        self.notes.slowest_refusal = max(self.notes.slowest_refusal, seconds)
        if kind not in EXPECTED:
            self.notes.faults.append(f"a refusal that nobody expects: {kind}")
        return self._refused(kind)

    def _refused(self, why: str) -> None:
        self.refusal = why
        self.notes.refused[why] += 1

    def ask_all_the_time(
        self, pool: int, seed: int, halt: threading.Event, pause: float = 0.04
    ) -> None:
        """Ask questions of a pool: single ones, batches, and those that anybody had an answer to.

        What got no answer is asked again.
        """
        dice, numbers = random.Random(seed), list[int]()
        while not halt.is_set():
            if not numbers:
                numbers = self._next(pool, dice)
            if self.ask(numbers) is not None or self.refusal in ("quota-spent", "budget-spent"):
                numbers = []
            halt.wait(dice.uniform(0, pause) if self.refusal != "no connection" else _REST_S)

    def _next(self, pool: int, dice: random.Random) -> list[int]:
        turn = dice.random()
        if turn < 0.4 and self.notes.received:
            return list(dice.choice(self.notes.received[-300:]).numbers)
        return [dice.randrange(pool) for _ in range(1 if turn < 0.8 else dice.randrange(2, 20))]


@contextmanager
def asking(
    analysts: Sequence[Analyst], pool: int, dice: random.Random, pause: float = 0.04
) -> Iterator[None]:
    """Have analysts ask all the while."""
    halt = threading.Event()
    threads = [
        threading.Thread(
            target=one.ask_all_the_time, args=(pool, dice.randrange(2**32), halt, pause)
        )
        for one in analysts
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        halt.set()
        for thread in threads:
            thread.join()


def faults_in_books(
    dataset: Dataset, notes: Notes, heads: Sequence[tuple[int, str]], states: Sequence[Path]
) -> list[str]:
    """Hold ledger and audit logs against the notes.

    Parameters
    ----------
    dataset : Dataset
    notes : Notes
    heads : sequence of (int, str)
        Last rows of the ledger, as they were seen meanwhile.
    states : sequence of Path
        State folders of the services that answered.

    Returns
    -------
    list of str
        Overspent ledgers; answers that are not paid for, that were lost, that differ, of which no
        audit log knows; keys beyond their quota.
    """
    session = sb.LabelingSession.reopen(dataset.vault)
    ledger, faults = session.ledger, list(notes.faults)
    try:
        ledger.check()
    except sb.LedgerError as error:
        faults.append(f"damaged: {error}")
    if notes.slowest_refusal > dataset.patience + _LATE_S:
        faults.append(f"late: a refusal after {notes.slowest_refusal:.1f} seconds")
    spent, budget = ledger.spent(), dataset.budget
    within = spent.epsilon <= budget.epsilon and spent.delta <= budget.delta
    if not (within and session.used <= dataset.planned and len(ledger.history()) == 1):
        faults.append(f"overspent: {session.used} answers of {dataset.planned}, {spent}")
    faults += ["lost: a row that was seen" for head in heads if not ledger.contains(*head)]
    faults += _faults_in_answers(session, notes)
    rows = list[AuditEntry]()
    for state in states:
        with Access(state) as log:
            rows += log.rows(None, after=0, most=2**31)
    return faults + _faults_in_audit(dataset, notes, rows, session.used, len(states))


def _faults_in_answers(session: sb.LabelingSession, notes: Notes) -> list[str]:
    said = notes.answers
    faults = [f"different answers to question {one}" for one, all_ in said.items() if len(all_) > 1]
    numbers = sorted(said)
    if not numbers:
        return ["nobody got an answer"]
    stored = session.stored(np.array([point_of(number) for number in numbers]))
    counts = stored.noisy_counts
    for row, number in enumerate(numbers):
        if not stored.given[row]:
            faults.append(f"unpaid: the answer to question {number} is not in the ledger")
            continue
        kept = {
            "label": stored.labels[row],
            "given": True,
            "abstained": not stored.answered[row],
            "noisy_count": None if counts is None else counts[row].tolist(),
        }
        if said[number] != {json.dumps(kept, sort_keys=True, default=bool)}:
            faults.append(f"another answer to question {number} is in the ledger")
    return faults


def _faults_in_audit(
    dataset: Dataset, notes: Notes, rows: Sequence[AuditEntry], used: int, machines: int
) -> list[str]:
    admitted = {
        row.request_id: row for row in rows if (row.action, row.outcome) == ("ask", "admitted")
    }
    faults, asked = list[str](), Counter[str]()
    for row in rows:
        asked[row.key] += row.new
    for one in notes.received:
        row = admitted.get(one.request_id)
        if row is None or (row.key, row.points) != (one.key, len(one.numbers)):
            faults.append("not in the audit log: a request that was answered")
    for key, (_, quota) in dataset.keys.items():
        # each machine counts by itself
        if quota is not None and asked[key] > quota * machines:
            faults.append(f"a key beyond its quota: {asked[key]} new questions of {quota}")
    if sum(asked.values()) < used:
        faults.append(f"{used} answers, and {sum(asked.values())} counted")
    return faults
