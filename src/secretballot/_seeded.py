"""Global states of the process, lent to one step and put back after it.

Learners draw from numpy's, Python's and torch's global generators where they have no seed of their
own, and some of them change settings of the whole process. What one step leaves behind would reach
the next: the state after a fit on private records depends on them, and a student that drew from it
would carry that into the release. So every step, before and after the release, gets generators
seeded for it alone and leaves everything as it was.
"""

import contextlib
import locale
import os
import random
import signal
import sys
import threading
import traceback
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sklearn

from secretballot._validation import shown
from secretballot.exceptions import Parameter, ParameterError

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
    random_state : int or None
        None means fresh entropy of the system: the state of numpy's global generator may
        depend on what was done with private records.
    step : str
        Names the step, so that no two of them use the same numbers.

    Raises
    ------
    ParameterError
        If it is none of these.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    is_integer = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool)
    if is_integer and random_state >= 0:
        return seed_of(int(random_state), zlib.crc32(step.encode()))
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

    That is: the global generators of numpy, Python and, once it is imported, torch; torch's
    settings of the process; filters of warnings; numpy's handling of floating-point errors;
    scikit-learn's configuration; the environment, the locale and the working directory.

    Parameters
    ----------
    seed : int
        From 0 to 2**32 - 1.

    Raises
    ------
    RuntimeError
        In the place of a `SystemExit` that no handler of a signal raised: foreign code that would
        end the program has failed.
    """
    with (
        ALONE,
        _restored_generators(),
        _fixed_surroundings(),
        warnings.catch_warnings(),
        np.errstate(),
        sklearn.config_context(),
    ):
        seed_generators(seed)
        try:
            yield
        except SystemExit as error:
            if is_of_handler(error):
                raise
            raise RuntimeError("it would end the program by sys.exit") from error


def is_of_handler(error: BaseException) -> bool:
    """Return whether a handler of a signal raised an error: whoever sent the signal ends the
    program, and no foreign code has failed."""
    handlers = map(signal.getsignal, signal.valid_signals())
    codes = [getattr(handler, "__code__", None) for handler in handlers]
    return any(frame.f_code in codes for frame, _ in traceback.walk_tb(error.__traceback__))


def seed_generators(seed: int) -> None:
    """Seed the global generators within `own_global_states`, as for a part of a step."""
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    if "torch" in sys.modules:
        _seed_torch(sys.modules["torch"], seed)


@contextlib.contextmanager
def _restored_generators() -> Iterator[None]:
    numpy_state, python_state = _numpy_state(), random.getstate()
    torch_state = _torch_state()
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


_TorchState = tuple[Any, Any, dict[str, Any]] | None


def _torch_state() -> _TorchState:
    """Return the states of torch's generators, on the processor and on the devices in use, and its
    settings of the process.

    None if not imported.
    """
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    devices = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None
    return torch.get_rng_state(), devices, _torch_settings(torch)


def _seed_torch(torch: Any, seed: int) -> None:
    """Seed torch's generators, on the processor and on devices that it may come to use."""
    generator = getattr(torch, "default_generator", None)
    if generator is None or _is_built_for_devices(torch):
        torch.manual_seed(seed)
    else:
        # what notes the seed for devices notes the stack, too, and takes longer than small fits
        generator.manual_seed(seed)


def _is_built_for_devices(torch: Any) -> bool:
    """Return whether this build of torch knows other devices than the processor."""
    version, backends = getattr(torch, "version", None), getattr(torch, "backends", None)
    if any(getattr(version, name, None) for name in ("cuda", "hip", "xpu")):
        return True
    mps = getattr(backends, "mps", None)
    return mps is not None and bool(mps.is_built())


def _restore_torch(state: _TorchState) -> None:
    torch = sys.modules.get("torch")
    if torch is None:
        return
    if state is None:  # the step imported it: as if it had been imported now
        _set_torch(torch, _fresh_torch_settings(torch))
        torch.manual_seed(_TORCH_SEED)
        return
    own, devices, settings = state
    _set_torch(torch, settings)
    torch.set_rng_state(own)
    if devices is not None:
        torch.cuda.set_rng_state_all(devices)
    elif hasattr(torch, "initial_seed") and _is_built_for_devices(torch):
        # Devices that are not in use yet get, when they are, the seed that was given last: the
        # caller's and not the step's.
        torch.cuda.manual_seed_all(torch.initial_seed())


def _torch_settings(torch: Any) -> dict[str, Any]:
    """Return what a step can set for the whole process, by name."""
    settings = {}
    for name, read in _TORCH_READERS.items():
        # a torch that is being imported, or of another age, has not all of it
        with contextlib.suppress(AttributeError, RuntimeError):
            settings[name] = read(torch)
    return settings


def _set_torch(torch: Any, wanted: dict[str, Any]) -> None:
    for name, value in wanted.items():
        # only what differs: some setters slow torch down, or warn, whatever they are given
        with contextlib.suppress(AttributeError, RuntimeError):
            if _TORCH_READERS[name](torch) != value:
                _TORCH_WRITERS[name](torch, value)


def _fresh_torch_settings(torch: Any) -> dict[str, Any]:
    """Return the settings with which torch begins."""
    threads = os.environ.get("OMP_NUM_THREADS", "")
    return {
        "dtype": getattr(torch, "float32", None),
        "grad": True,
        # after a fit that set it, nobody knows what it was: a number that no data can have chosen
        "threads": int(threads) if threads.isdecimal() and int(threads) else os.cpu_count() or 1,
        "deterministic": (False, False),
        "precision": "highest",
        "device": "cpu",
        "anomaly": False,
        "cudnn": (True, False, False, True),
    }


def _set_cudnn(torch: Any, values: tuple[bool, ...]) -> None:
    for name, value in zip(_CUDNN, values, strict=True):
        setattr(torch.backends.cudnn, name, value)


_CUDNN = ("enabled", "benchmark", "deterministic", "allow_tf32")
_TORCH_READERS: dict[str, Callable[[Any], Any]] = {
    "dtype": lambda torch: torch.get_default_dtype(),
    "grad": lambda torch: torch.is_grad_enabled(),
    "threads": lambda torch: torch.get_num_threads(),
    "deterministic": lambda torch: (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    ),
    "precision": lambda torch: torch.get_float32_matmul_precision(),
    "device": lambda torch: str(torch.get_default_device()),
    "anomaly": lambda torch: torch.is_anomaly_enabled(),
    "cudnn": lambda torch: tuple(getattr(torch.backends.cudnn, name) for name in _CUDNN),
}
_TORCH_WRITERS: dict[str, Callable[[Any, Any], Any]] = {
    "dtype": lambda torch, value: torch.set_default_dtype(value),
    "grad": lambda torch, value: torch.set_grad_enabled(value),
    "threads": lambda torch, value: torch.set_num_threads(value),
    "deterministic": lambda torch, value: torch.use_deterministic_algorithms(
        value[0], warn_only=value[1]
    ),
    "precision": lambda torch, value: torch.set_float32_matmul_precision(value),
    # no device at all is the processor too, and slows nothing down
    "device": lambda torch, value: torch.set_default_device(None if value == "cpu" else value),
    "anomaly": lambda torch, value: torch.autograd.set_detect_anomaly(value),
    "cudnn": lambda torch, value: _set_cudnn(torch, value),
}


@contextlib.contextmanager
def _fixed_surroundings() -> Iterator[None]:
    environment, language, folder = _environ_copy(), locale.setlocale(locale.LC_ALL), os.getcwd()
    try:
        yield
    finally:
        if _environ_copy() != environment:
            _ENVIRONMENT.clear()
            _ENVIRONMENT.update(environment)
        if locale.setlocale(locale.LC_ALL) != language:
            locale.setlocale(locale.LC_ALL, language)
        if os.getcwd() != folder:
            os.chdir(folder)


def _environ_copy() -> dict[Any, Any]:
    """Return a copy of the environment."""
    # by way of what it keeps its names in: turning every one of them into text takes longer than
    # all else that is done around a small fit
    return dict(getattr(_ENVIRONMENT, "_data", _ENVIRONMENT))


def _numpy_global() -> Any:
    """Return the generator behind numpy's functions, such as `numpy.random.rand`."""
    return np.random.mtrand._rand
