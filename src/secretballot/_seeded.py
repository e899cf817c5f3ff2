"""Global states of the process, lent to one step and put back after it.

Learners draw from numpy's, Python's and torch's global generators where they have no seed of their
own, and some of them change settings of the whole process. What one step leaves behind would reach
the next: the state after a fit on private records tells of them, and a student that drew from it
would carry that into the release. So every step, on either side of the door, gets generators seeded
for it alone and leaves everything as it was.
"""

import contextlib
import locale
import os
import random
import sys
import threading
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import sklearn

from secretballot._validation import shown
from secretballot.exceptions import Parameter, ParameterError

__all__ = ["ALONE", "own_global_states", "public_seed", "seed_of", "with_own_seeds"]

# All that is lent here belongs to the whole process: two steps in two threads would share it, so
# they take turns. Workers that are processes do not meet here.
ALONE = threading.RLock()
# As the system keeps it, where it keeps bytes.
_ENVIRONMENT: Any = os.environb if os.supports_bytes_environ else os.environ
# With which torch begins in every process.
_TORCH_SEED = 67280421310721


def seed_of(*entropy: int) -> int:
    """Return a 32-bit seed mixed from integers that are not negative."""
    return int(np.random.SeedSequence(list(entropy)).generate_state(1)[0])


def public_seed(random_state: Any, step: str) -> int:
    """Return a 32-bit seed for one public step, from the public `random_state` or from entropy
    drawn for it alone.

    Parameters
    ----------
    random_state : int, RandomState or None
        None and numpy's global generator stand for fresh entropy of the system: the state of the
        global generator may depend on what was done with private records.
    step : str
        Names the step, so that no two of them use the same numbers.

    Raises
    ------
    ParameterError
        If it is none of these.
    """
    if random_state is None or random_state is np.random or random_state is _numpy_global():
        return int(np.random.SeedSequence().generate_state(1)[0])
    name = zlib.crc32(step.encode())
    if isinstance(random_state, np.random.RandomState):
        return seed_of(int(random_state.randint(2**31)), name)
    if isinstance(random_state, np.random.Generator):
        return seed_of(int(random_state.integers(2**31)), name)
    if (
        isinstance(random_state, int | np.integer)
        and not isinstance(random_state, bool)
        and random_state >= 0
    ):
        return seed_of(int(random_state), name)
    raise ParameterError(
        Parameter("random_state"),
        f" is {shown(random_state)}; it must be None or an integer of at least 0.",
    )


def with_own_seeds(learner: Any, seed: int) -> Any:
    """Set every open random state of an unfitted learner, in place, and return it.

    A learner that has no seed keeps, once fitted, numpy's global generator itself, and with it
    whatever that generator does later.
    """
    parameters = learner.get_params(deep=True)
    open_states = [
        name
        for name, value in sorted(parameters.items())
        if name.split("__")[-1] == "random_state" and (value is None or value is _numpy_global())
    ]
    seeds = {name: seed_of(seed, place) for place, name in enumerate(open_states)}
    return learner.set_params(**seeds) if seeds else learner


@contextlib.contextmanager
def own_global_states(seed: int) -> Iterator[None]:
    """Seed the global generators for one step, and put back after it what belongs to the whole
    process.

    That is: the global generators of numpy, Python and, once it is imported, torch; filters of
    warnings; numpy's handling of floating-point errors; scikit-learn's configuration; the
    environment, the locale and the working directory.

    Parameters
    ----------
    seed : int
        From 0 to 2**32 - 1.
    """
    with (
        ALONE,
        _seeded_generators(seed),
        _fixed_surroundings(),
        warnings.catch_warnings(),
        np.errstate(),
        sklearn.config_context(),
    ):
        yield


@contextlib.contextmanager
def _seeded_generators(seed: int) -> Iterator[None]:
    numpy_state, python_state = _numpy_state(), random.getstate()
    torch_state = _torch_state()
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    if torch_state is not None:
        sys.modules["torch"].manual_seed(seed)
    try:
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        random.setstate(python_state)
        _restore_torch(torch_state)


def _numpy_state() -> Any:
    """Return the state of numpy's generator with its words in a list, which numpy takes back in a
    tenth of the time that it needs for an array."""
    state = np.random.get_state()  # noqa: NPY002
    if not isinstance(state, tuple):  # somebody put another kind of generator in its place
        return state
    name, words, *rest = state
    return name, words.tolist(), *rest


def _torch_state() -> tuple[Any, Any] | None:
    """Return the states of torch's generators, on the processor and on the devices in use.

    None if not imported.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    return torch.get_rng_state(), devices


def _restore_torch(state: tuple[Any, Any] | None) -> None:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if state is None:  # the step imported it: as if it had been imported now
        torch.manual_seed(_TORCH_SEED)
        return
    own, devices = state
    torch.set_rng_state(own)
    if devices is not None:
        torch.cuda.set_rng_state_all(devices)
    elif torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(_TORCH_SEED)


@contextlib.contextmanager
def _fixed_surroundings() -> Iterator[None]:
    environment, language, folder = _environment(), locale.setlocale(locale.LC_ALL), os.getcwd()
    try:
        yield
    finally:
        if _environment() != environment:
            _ENVIRONMENT.clear()
            _ENVIRONMENT.update(environment)
        if locale.setlocale(locale.LC_ALL) != language:
            locale.setlocale(locale.LC_ALL, language)
        if os.getcwd() != folder:
            os.chdir(folder)


def _environment() -> dict[Any, Any]:
    """Return a copy of the environment."""
    # by way of what it keeps its names in: turning every one of them into text takes longer than
    # all else that is done around a small fit
    return dict(getattr(_ENVIRONMENT, "_data", _ENVIRONMENT))


def _numpy_global() -> Any:
    """Return the generator behind numpy's functions, such as `numpy.random.rand`."""
    return np.random.mtrand._rand
