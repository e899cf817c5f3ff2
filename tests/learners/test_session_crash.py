"""A labelling session under kill -9: paid once, every returned answer on the books, none beyond
the plan.

A session is asked in a child, and the child is killed with signal 9; then the next one goes on.
What a child got back it writes down only after it was returned.
"""

import json
import os
import signal
import sqlite3
from pathlib import Path

import numpy as np
import pytest

import secretballot as sb
from secretballot.core.noise import ExactNoise
from secretballot.learners.inputs import question_digests
from secretballot.released import labels_in
from sessions import session as begun_session
from sessions import sparse

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

NAMES = ["no", "yes"]
PLAN, MOST = sparse(0.5, 12, 3), 3
# one in thirty where the teachers disagree
SIDES = np.where(np.arange(100) % 30 == 29, 0.0, np.where(np.arange(100) % 2, 3.0, -3.0))
POOL = np.column_stack([SIDES, np.arange(100) * 1e-7])
EVENTS = [[1], [29, 2], [1, 3], [59, 4], [5, 6], [89, 7, 8], [9, 10]]


def begin(folder):
    # what loads slowly is loaded once, before children are born
    ExactNoise().discrete_laplace(1.0, 1)
    X = np.random.default_rng(0).normal(size=(1200, 2))
    labels, vault = np.array(NAMES)[(X[:, 0] > 0).astype(int)], folder / "vault"
    teachers = sb.train_teachers("logistic", X, labels, classes=NAMES, n_teachers=40, vault=vault)
    budget = sb.PrivacyBudget(5000.0, 0.5)
    ledger = sb.Ledger(folder / "ledger.sqlite", dataset="registry", budget=budget)
    begun_session(teachers, PLAN, ledger, 9, delta=3e-4)


def ask_on(folder, events, start, log):
    session = sb.LabelingSession.reopen(folder / "vault")
    for number in range(start, len(events)):
        rows = events[number]
        try:
            answers = session.ask_many(POOL[rows])
        except sb.BudgetError:
            got = [None] * len(rows)
        else:
            got = [
                (NAMES.index(label) if label else -1) if given else None
                for label, given in zip(answers.labels, answers.given, strict=True)
            ]
        os.write(log, (json.dumps([number, got]) + "\n").encode())


class Mortal(sqlite3.Connection):
    """A connection that kills its process with signal 9 at a step; before and after each that
    writes are two steps."""

    left = 0

    @classmethod
    def step(cls):
        if cls.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        cls.left -= 1

    @classmethod
    def possess(cls, steps):
        """Let this process live for `steps` more steps of any connection it opens or file of the
        vault it writes."""
        connect, replace = sqlite3.connect, Path.replace
        sqlite3.connect = lambda *a, **k: connect(*a, **{**k, "factory": cls})
        Path.replace = lambda *a: (cls.step(), replace(*a), cls.step())[1]
        cls.left = steps

    def execute(self, sql, *arguments):
        if not sql.startswith(("BEGIN IMMEDIATE", "INSERT", "UPDATE")) and not (
            sql == "COMMIT" and self.total_changes
        ):
            return super().execute(sql, *arguments)
        Mortal.step()
        cursor = super().execute(sql, *arguments)
        Mortal.step()
        return cursor

    def executemany(self, sql, rows):
        Mortal.step()
        cursor = super().executemany(sql, rows)
        Mortal.step()
        return cursor


def killed_at_every_step(folder, events, path):
    """Kill at the first step of an ask, the second, ... until it survives; then the next ask."""
    kills = number = steps = 0
    while number < len(events):
        log = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        child = os.fork()
        if child == 0:
            try:
                Mortal.possess(steps)
                ask_on(folder, events[: number + 1], number, log)
                os._exit(0)
            finally:
                os._exit(1)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        os.close(log)
        assert ended in (0, -signal.SIGKILL)
        kills += ended != 0
        number, steps = (number, steps + 1) if ended else (number + 1, 0)
    return kills


@pytest.mark.parametrize("n_events", [2, pytest.param(7, marks=pytest.mark.slow)])
def test_kill_at_every_write_of_an_ask_loses_nothing(tmp_path, n_events):
    begin(tmp_path)
    kills = killed_at_every_step(tmp_path, EVENTS[:n_events], tmp_path / "log")
    assert kills >= 12 * n_events or n_events == 7  # as many steps whatever the noise says
    session = sb.LabelingSession.reopen(tmp_path / "vault")
    done = session._stream.released()
    row_of = {digest: row for row, digest in enumerate(question_digests(POOL))}
    labels = labels_in(PLAN, done.shape, done.values)[0].tolist()
    stored = {row_of[asked]: label for asked, label in zip(done.questions, labels, strict=True)}
    assert session.used == len(labels) == len(stored) <= session.planned
    # what left the house is on the books, word for word
    told = 0
    for line in (tmp_path / "log").read_text().splitlines():
        number, answers = json.loads(line)
        for row, answer in zip(EVENTS[number], answers, strict=True):
            assert answer == stored.get(row)
            told += answer is not None
    assert told >= len(stored)
    stopped = labels.count(-1) == MOST
    assert labels.count(-1) <= MOST
    assert labels[-1] == -1 or not stopped
    assert session.left == (0 if stopped else session.planned - session.used)
    assert session.left == 0 or n_events == 2
    assert session.used == 3 or n_events == 7
    ledger = sb.Ledger.open_existing(tmp_path / "ledger.sqlite")
    assert len(ledger.history()) == 1
    assert ledger.spent().epsilon == session.price.epsilon
