"""Sessions that die.

A session is asked in a child, and the child is killed with signal 9; then the next one goes on.
What a child got back it writes down only after it was returned. What the books say in the end is
returned; the tests beside judge it.
"""

import json
import os
import signal
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import secretballot as sb
from secretballot.core.mechanisms import Mechanism, NoisyVotes
from secretballot.core.noise import ExactNoise
from secretballot.learners.training.inputs import question_digests
from secretballot.released import labels_in
from sessions import session as begun_session
from sessions import sparse

K = 40
NAMES = ["no", "yes"]


def plan_of(kind: str, queries: int) -> tuple[Mechanism, float]:
    """Return what answers, and the delta at which it is priced."""
    if kind == "gaussian":
        return NoisyVotes(scale=9.0 * queries**0.5, release="counts"), 1e-6
    unstable = max(3, queries // 50)
    return sparse(0.5, 12, unstable), 1e-4 * unstable


def pool_of(n: int) -> np.ndarray:
    """Return public points, one in thirty of them where the teachers disagree."""
    rng = np.random.default_rng(1)
    side = np.where(rng.random(n) < 1 / 30, 0.0, rng.choice([-3.0, 3.0], n))
    return np.column_stack([side, np.arange(n) * 1e-7])


def begin(folder: Path, kind: str, queries: int) -> None:
    # what loads slowly is loaded once, before children are born
    ExactNoise().discrete_laplace(1.0, 1)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    teachers = sb.train_teachers(
        "logistic",
        X,
        np.array(NAMES)[(X[:, 0] > 0).astype(int)],
        classes=NAMES,
        n_teachers=K,
        vault=folder / "vault",
    )
    ledger = sb.Ledger(
        folder / "ledger.sqlite", dataset="registry", budget=sb.PrivacyBudget(5000.0, 0.5)
    )
    mechanism, delta = plan_of(kind, queries)
    begun_session(teachers, mechanism, ledger, queries, delta=delta)


def ask_on(folder: Path, events: list[list[int]], points: np.ndarray, start: int, log: int) -> None:
    session = sb.LabelingSession.reopen(folder / "vault")
    for number in range(start, len(events)):
        rows = events[number]
        try:
            answers = session.ask_many(points[rows])
        except sb.BudgetError:
            got: list[Any] = [None] * len(rows)
        else:
            noisy = (
                [None] * len(rows)
                if answers.noisy_counts is None
                else answers.noisy_counts.tolist()
            )
            got = [
                [NAMES.index(label) if label else -1, count] if given else None
                for label, count, given in zip(answers.labels, noisy, answers.given, strict=True)
            ]
        os.write(log, (json.dumps([number, got]) + "\n").encode())


def child_of(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
            os._exit(0)
        finally:
            os._exit(1)
    return child


def logged(path: Path) -> list[tuple[int, list[Any]]]:
    return [tuple(json.loads(line)) for line in path.read_text().splitlines()]


@dataclass
class Books:
    """What is found when all is over."""

    kills: int = 0
    answers: int = 0
    distinct: int = 0
    stored: int = 0
    used: int = 0
    planned: int = 0
    left: int = 0
    wrong: int = 0
    denied_but_stored: int = 0
    abstained: int = 0
    most_abstentions: int | None = None
    ends_with_abstention: bool = False
    entries: int = 0
    spent: float = 0.0
    price: float = 0.0
    other_exits: list[int] = field(default_factory=list)


def closed(
    books: Books,
    folder: Path,
    events: list[list[int]],
    pool: np.ndarray,
    log: list[Any],
    plan: Mechanism,
) -> Books:
    """Hold what was returned against the ledger."""
    ledger = sb.Ledger.open_existing(folder / "ledger.sqlite")
    row_of = {digest: row for row, digest in enumerate(question_digests(pool))}
    session = sb.LabelingSession.reopen(folder / "vault")
    done = session._stream.released()
    labels, counts = labels_in(plan, done.shape, done.values)
    noisy = [None] * len(labels) if counts is None else counts.tolist()
    said = [list(pair) for pair in zip(labels.tolist(), noisy, strict=True)]
    parts = [(row_of[question], one) for question, one in zip(done.questions, said, strict=True)]
    stored = dict(parts)
    got = [
        (row, answer)
        for number, answers in log
        for row, answer in zip(events[number], answers, strict=True)
    ]
    books.answers, books.stored, books.distinct = (
        sum(answer is not None for _, answer in got),
        len(parts),
        len(stored),
    )
    books.wrong = sum(
        answer is not None and (row not in stored or answer != stored[row]) for row, answer in got
    )
    books.denied_but_stored = sum(answer is None and row in stored for row, answer in got)
    books.used, books.planned, books.left = session.used, session.planned, session.left
    books.abstained = sum(answer[0] < 0 for _, answer in parts)
    books.most_abstentions, books.ends_with_abstention = plan.stops_at, parts[-1][1][0] < 0
    books.entries, books.spent, books.price = (
        len(ledger.history()),
        ledger.spent().epsilon,
        session.price.epsilon,
    )
    return books


class Mortal(sqlite3.Connection):
    """A connection that kills its process with signal 9 at a step; before and after each that
    writes are two steps."""

    left = 0

    @classmethod
    def step(cls) -> None:
        if cls.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        cls.left -= 1

    @classmethod
    def possess(cls, steps: int) -> None:
        """Let this process live for `steps` more steps of any connection it opens or file of the
        vault it writes."""
        connect, replace = sqlite3.connect, Path.replace
        sqlite3.connect = lambda *a, **k: connect(*a, **{**k, "factory": cls})
        Path.replace = lambda *a: (cls.step(), replace(*a), cls.step())[1]
        cls.left = steps

    def execute(self, sql: str, *arguments: object) -> sqlite3.Cursor:
        if not sql.startswith(("BEGIN IMMEDIATE", "INSERT", "UPDATE")) and not (
            sql == "COMMIT" and self.total_changes
        ):
            return super().execute(sql, *arguments)
        Mortal.step()
        cursor = super().execute(sql, *arguments)
        Mortal.step()
        return cursor

    def executemany(self, sql: str, rows: Any) -> sqlite3.Cursor:
        Mortal.step()
        cursor = super().executemany(sql, rows)
        Mortal.step()
        return cursor


def statements(folder: Path, kind: str, n_events: int) -> Books:
    """Kill at the first step of an ask, the second, ... until it survives; then the next ask."""
    queries, points = 9, pool_of(100)
    begin(folder, kind, queries)
    uneven = np.flatnonzero(points[:, 0] == 0).tolist()
    events = [[1], [uneven[0], 2], [1, 3], [uneven[1], 4], [5, 6], [uneven[2], 7, 8], [9, 10]][
        :n_events
    ]
    path = folder / "log"
    path.touch()
    books, number, steps = Books(), 0, 0
    while number < len(events):
        log = os.open(path, os.O_WRONLY | os.O_APPEND)

        def work(number: int = number, steps: int = steps, log: int = log) -> None:
            Mortal.possess(steps)
            ask_on(folder, events[: number + 1], points, number, log)

        ended = os.waitstatus_to_exitcode(os.waitpid(child_of(work), 0)[1])
        os.close(log)
        if ended > 0:
            books.other_exits.append(ended)
            break
        books.kills += ended == -9
        number, steps = (number, steps + 1) if ended else (number + 1, 0)
    return closed(books, folder, events, points, logged(path), plan_of(kind, queries)[0])
