"""Run a black-box learner so that nothing enters but its own part and coins, and nothing escapes but its result."""

import contextlib
import io
import logging
import random
import sys
import threading
import warnings
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import sklearn
from threadpoolctl import ThreadpoolController

__all__ = ["FAILURES", "isolated", "one_thread", "seed_of"]

# What a learner may raise without ending the run: the failure depends on private data and becomes a fixed vote.
# SystemExit is among them since a library's `sys.exit` would otherwise end the program at the data's word.
FAILURES = (Exception, SystemExit)


def seed_of(*entropy: int) -> int:
    """Return a 32-bit seed mixed from whole numbers that are not negative."""
    return int(np.random.SeedSequence(list(entropy)).generate_state(1)[0])


# Random states, warning filters and the output streams belong to the whole process: two learners in two threads would
# share them, so they take turns. Workers that are processes do not meet here.
_ALONE = threading.RLock()


@contextlib.contextmanager
def isolated(seed: int, settings: Mapping[str, Any]) -> Iterator[None]:
    """Silence a learner, give it global random states of its own, and restore them after.

    Parameters
    ----------
    seed : int
        Seeds numpy's and Python's global states: a learner that draws from them would otherwise hand its successor a
        state that depends on its data.
    settings : mapping
        scikit-learn's configuration inside.
    """
    sink = io.StringIO()
    with (
        _ALONE,
        _own_global_states(seed),
        _no_logging(),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
        sklearn.config_context(**settings),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _own_global_states(seed: int) -> Iterator[None]:
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


@contextlib.contextmanager
def _no_logging() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def one_thread() -> Any:
    """Return a context in which BLAS and OpenMP use one thread: small fits lose more than they gain by more."""
    return _controller(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _controller(n_modules: int) -> ThreadpoolController:
    # Finding the loaded libraries takes 15 ms, as long as several small fits, so it is done again only when more
    # modules, and libraries with them, have been imported.
    return ThreadpoolController()
