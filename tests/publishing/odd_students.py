"""Students of a stranger's making, which another process imports by name."""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LogisticRegression


class Witness(LogisticRegression):
    """Notes what it sees of the process in which it is fitted."""

    def fit(self, X, y):
        print("to standard output, where messages go")
        seen = {
            "environment": dict(os.environ),
            "handles": sorted(int(name) for name in os.listdir("/proc/self/fd")),
            "modules": sorted(sys.modules),
            "drawn": [random.random(), float(np.random.random()), hash("a word")],  # noqa: NPY002
            "files": os.listdir(),
        }
        (Path(os.environ["HOME"]) / f"{os.getpid()}.json").write_text(json.dumps(seen))
        return super().fit(X, y)


class Plain(LogisticRegression):
    """Has nothing odd."""


class Killed(LogisticRegression):
    """Is taken for the one that needs all memory."""

    def fit(self, X, y):
        os.kill(os.getpid(), signal.SIGKILL)


class Endless(LogisticRegression):
    """Says who it is, and never comes to an end."""

    def fit(self, X, y):
        (Path(os.environ["HOME"]) / "pid").write_text(f"{os.getpid()} {os.getppid()}")
        while True:
            time.sleep(0.1)


class Failing(LogisticRegression):
    """Cannot learn."""

    def fit(self, X, y):
        raise RuntimeError("no heart for it")


class Forgetful(LogisticRegression):
    """Finds no memory to say how sure it is."""

    def predict_proba(self, X):
        raise MemoryError
