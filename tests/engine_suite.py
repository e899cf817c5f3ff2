"""What holds for every executor: the votes of one process, whatever dies on the way.

Learners are defined in this module, which workers import as the tests do.
"""

import os
import signal
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from ensembles import ensemble_of
from secretballot.exceptions import DataError, ResourceError
from secretballot.teachers import ensemble

K, C = 12, 3
RNG = np.random.default_rng(7)
X, X_PUBLIC = RNG.normal(size=(360, 4)), RNG.normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(np.int64) + (X[:, 1] > 0.8)
SHARDS = np.arange(len(X)) % K
MARKER = "cell-of-Ada-Lovelace"


def frame(table: np.ndarray) -> pd.DataFrame:
    words = np.where(table[:, 0] > 0, "up", "down")
    return pd.DataFrame({"word": words, "number": table[:, 1]})


def fitted(teacher, private=X, **options):
    shape = {"n_teachers": K, "n_classes": C, "random_state": 3}
    return ensemble_of(teacher, private, Y, SHARDS, **{**shape, **options})


def counts_of(ensemble, public=X_PUBLIC):
    return ensemble.vote_counts(public)._unseal()[0]


class Learner(ClassifierMixin, BaseEstimator):
    """Votes by the sign of the first feature; the classes below bend it."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)


class TakesTheGlobalGenerator(Learner):
    """Its votes follow from the global generators, which must be its own."""

    def fit(self, X, y):
        self.drawn_ = np.random.randint(C)  # noqa: NPY002
        return super().fit(X, y)

    def predict(self, X):
        return (self.drawn_ + np.random.randint(C, size=len(X))) % C  # noqa: NPY002


class WritesIntoItsData(Learner):
    """Works in place, as some learners do; read-only memory would make it fail."""

    def fit(self, X, y):
        X *= 2.0
        self.mean_ = X.mean(axis=0)
        return super().fit(X, y)

    def predict(self, X):
        self.mean_ += 0.0
        X -= self.mean_
        return (X[:, 0] > -1).astype(int)


class QuotesACell(Learner):
    """Fails on some shards with a sentence that quotes a record."""

    def fit(self, X, y):
        cells = np.asarray(X)
        print(f"seen {cells[0, 0]}")
        if cells[0, 1] == "bad":
            raise ValueError(f"cannot read {cells[0, 0]}")
        return super().fit(X, y)

    def predict(self, X):
        return np.ones(len(X), dtype=int)


class FailsOnSomeShards(Learner):
    """A shard whose first number is positive is no shard for it."""

    def fit(self, X, y):
        if X[0, 0] > 0:
            raise ValueError("not on this shard")
        return super().fit(X, y)


class RunsOutOfMemory(FailsOnSomeShards):
    """The machine fails on some shards."""

    def fit(self, X, y):
        if X[0, 0] > 0:
            raise MemoryError
        return super().fit(X, y)


class DiesOnSomeShards(Learner):
    """Ends its process whenever it is tried on one shard."""

    def fit(self, X, y):
        if X[0, 0] == X_OF_SHARD_4:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y)


X_OF_SHARD_4 = X[SHARDS == 4][0, 0]


class CannotBePickled(Learner):
    def fit(self, X, y):
        self.own_ = (one for one in range(3))
        return super().fit(X, y)


class CannotBeUnpickled(Learner):
    """Once fitted."""

    def __setstate__(self, state):
        if len(state) > len(vars(Learner())):
            raise ValueError("a record says 77")
        vars(self).update(state)


class TellsWhereItWorks(DecisionTreeClassifier):
    """Leaves the number of its process in a folder, and takes its time."""

    def __init__(self, folder=None, random_state=None):
        super().__init__(random_state=random_state)
        self.folder = folder

    def fit(self, X, y):
        (Path(self.folder) / str(os.getpid())).touch()
        time.sleep(0.05)
        return super().fit(X, y)


#: A worker gets a shard and gives a model, whatever they are: cases are those that a copy of a
#: table, or the state of a process, could make other ones of.
CASES = {
    "forest": (RandomForestClassifier(5, n_jobs=2), X, X_PUBLIC),
    "sparse logistic": (LogisticRegression(), sp.csr_matrix(X), sp.csr_matrix(X_PUBLIC)),
    "frame": (
        make_pipeline(OneHotEncoder(handle_unknown="ignore"), DecisionTreeClassifier()),
        frame(X),
        frame(X_PUBLIC),
    ),
    "generators": (TakesTheGlobalGenerator(), X, X_PUBLIC),
    "in place": (WritesIntoItsData(), X, X_PUBLIC),
    "failing shards": (FailsOnSomeShards(), X, X_PUBLIC),
}


def votes_are_those_of_one_machine(case, engine):
    """Demand it of teachers that are trained there, all at once and in blocks."""
    teacher, private, public = CASES[case]
    seen = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ensemble, "_VOTES_HERE", -1)
        there = fitted(teacher, private, engine=engine, progress=lambda *done: seen.append(done))
        counts = counts_of(there, public)
        assert (counts == counts_of(fitted(teacher, private), public)).all()
        assert seen == [(done, K) for done in range(1, K + 1)]
        patch.setattr("secretballot.teachers.ensemble._BLOCK_CELLS", 1)
        patch.setattr("secretballot.teachers.ensemble._LEAST_ROWS", 20)
        assert (counts_of(there, public) == counts).all()
    assert "private" in repr(there)


class EngineSuite:
    """Collected by the engines' own files, which say what `engine` is, and `engine_to_break`, whose
    workers a test may kill. What does not depend on how tasks travel is in `test_engines` alone."""

    def test_the_votes_are_those_of_one_machine(self, engine):
        votes_are_those_of_one_machine("generators", engine)

    def test_what_the_machine_fails_at_is_no_vote(self, engine):
        with pytest.raises(ResourceError, match="because memory ran out; no answer") as told:
            fitted(RunsOutOfMemory(), engine=engine)
        assert told.value.__cause__ is None
        assert told.value.__context__ is None

    def test_a_task_that_ends_its_worker_again_and_again_ends_the_run(self, engine_to_break):
        # on a busy machine a nanny may give its worker up first
        with pytest.raises(
            ResourceError, match=r"again and again|no worker left|worker process ended"
        ):
            fitted(DiesOnSomeShards(), engine=engine_to_break)

    def test_a_killed_worker_costs_its_own_work_alone(self, engine_to_break, tmp_path, monkeypatch):
        killed = []
        tells, vault = tmp_path / "tells", tmp_path / "vault"
        tells.mkdir()
        monkeypatch.setattr(ensemble, "_VOTES_HERE", -1)

        def kill(done, total):
            if not killed and done >= total // 3:
                killed.append(min(int(path.name) for path in tells.iterdir()))
                os.kill(killed[0], signal.SIGKILL)

        there = fitted(
            TellsWhereItWorks(str(tells)),
            engine=engine_to_break,
            progress=kill,
            kept=(vault, "these"),
        )
        counts = counts_of(there)
        assert killed
        assert (counts == counts_of(fitted(DecisionTreeClassifier()))).all()

    def test_an_interrupt_takes_back_what_was_submitted(self, engine, tmp_path):
        def interrupt(done, total):
            raise KeyboardInterrupt

        teacher = TellsWhereItWorks(str(tmp_path))
        with pytest.raises(KeyboardInterrupt):
            fitted(teacher, engine=engine, progress=interrupt)
        # the cluster is free for others, and none of the rest is trained for nobody
        assert (counts_of(fitted(DecisionTreeClassifier(), engine=engine)) >= 0).all()

    def private_marker_fit(self, engine):
        """Fit on records whose cells learners quote in what they print and raise."""
        cells = np.empty((len(X), 2), dtype=object)
        cells[:, 0] = MARKER
        cells[:, 1] = np.where(SHARDS % 2, "bad", "good")
        ensemble = fitted(QuotesACell(), cells, engine=engine)
        points = np.full((5, 2), "public", dtype=object)
        counts = counts_of(ensemble, points)
        assert (counts == counts_of(fitted(QuotesACell(), cells), points)).all()
        with pytest.raises(DataError, match="cannot be pickled"):
            fitted(CannotBePickled(), cells, engine=engine)
        with pytest.raises(ResourceError):
            fitted(QuotesAndRunsOut(), cells, engine=engine)


class QuotesAndRunsOut(Learner):
    def fit(self, X, y):
        raise MemoryError(f"cannot hold {X[0, 0]}")
