"""Students of a stranger's making, which another process imports by name."""

import gc
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression


class Witness(LogisticRegression):
    """Notes what it sees of the process in which it is fitted."""

    def fit(self, X: Any, y: Any) -> Any:
        print("to standard output, where messages go")
        super().fit(X, y)
        self.environment_ = dict(os.environ)
        self.handles_ = sorted(int(name) for name in os.listdir("/proc/self/fd"))
        self.modules_ = sorted(sys.modules)
        self.drawn_ = [random.random(), float(np.random.random()), hash("a word")]  # noqa: NPY002
        self.place_, self.files_ = os.getcwd(), os.listdir()
        self.threads_ = [thread.name for thread in threading.enumerate()]
        return self


class Killed(LogisticRegression):
    """Is taken for the one that needs all memory."""

    def fit(self, X: Any, y: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


class Endless(LogisticRegression):
    """Says who it is, and never comes to an end."""

    def fit(self, X: Any, y: Any) -> Any:
        (Path(os.environ["HOME"]) / "pid").write_text(f"{os.getpid()} {os.getppid()}")
        while True:
            time.sleep(0.1)


class Failing(LogisticRegression):
    """Cannot learn."""

    def fit(self, X: Any, y: Any) -> Any:
        raise RuntimeError("no heart for it")


class Boundless(LogisticRegression):
    """Cannot be handed back."""

    def fit(self, X: Any, y: Any) -> Any:
        super().fit(X, y)
        self.lock_ = threading.Lock()
        gc.collect()
        return self


class Forgetful(LogisticRegression):
    """Finds no memory to say how sure it is."""

    def predict_proba(self, X: Any) -> Any:
        raise MemoryError
