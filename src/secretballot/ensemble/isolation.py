"""Run a black-box learner so that nothing enters but its own part and coins, and nothing escapes but its result."""

import contextlib
import io
import logging
import random
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
    # The learner's draws go through numpy's global state; ours never do.
    numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
    disabled = logging.root.manager.disable
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    logging.disable(logging.CRITICAL)
    sink = io.StringIO()
    try:
        with (
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            contextlib.redirect_stdout(sink),
            contextlib.redirect_stderr(sink),
            sklearn.config_context(**settings),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)


def one_thread() -> Any:
    """Return a context in which BLAS and OpenMP use one thread: small fits lose more than they gain by more."""
    return _controller().limit(limits=1)


@lru_cache(maxsize=1)
def _controller() -> ThreadpoolController:
    # Finding the loaded libraries takes 15 ms, as long as several small fits, so it is done once per process.
    return ThreadpoolController()
