"""Run a black-box learner so that nothing enters but its own part and randomness, and nothing
escapes but its result."""

import contextlib
import io
import logging
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor, CancelledError
from functools import lru_cache
from typing import Any, TypeVar

import joblib
import numpy as np
import sklearn
from threadpoolctl import ThreadpoolController

from secretballot._seeded import own_global_states, seed_of
from secretballot.exceptions import ResourceError

__all__ = [
    "FAILURES",
    "as_sentence",
    "isolated",
    "one_thread",
    "resource_failure",
    "result_of",
    "result_once_seeded",
    "results_of",
    "seed_of",
]

T = TypeVar("T")

# What a learner may raise without ending the run, unless `resource_failure` finds the machine at
# fault: the failure depends on the shard alone and becomes a fixed vote. SystemExit is among them
# since a library's `sys.exit` would otherwise end the program at the data's word.
FAILURES = (Exception, SystemExit)

_OTHER_RESOURCE = "memory, threads or files ran out"
# What all shards together, or other programs, can cause. Some of it one shard can cause too (a huge
# value that asks for much memory): it counts as the machine's all the same, since nothing tells the
# two apart.
_RESOURCES: tuple[tuple[tuple[type[BaseException], ...], str], ...] = (
    ((MemoryError,), "memory ran out"),
    ((ResourceError,), _OTHER_RESOURCE),
    ((OSError, EOFError), "the system refused a file, a process or a connection"),
    ((ImportError,), "a library could not be loaded"),
    ((RecursionError,), "the call stack ran out"),
    (
        (BrokenExecutor, CancelledError, pickle.PickleError),
        "a worker process ended or could not be reached",
    ),
)
# Libraries raise RuntimeError and others of their own for the same; their messages say so.
_RESOURCE_WORDS = (
    "bad alloc",
    "bad_alloc",
    "can't allocate",
    "can't start new",
    "cannot allocate",
    "cannot schedule new futures",
    # a device that failed once fails at everything after
    "cublas_status",
    "cuda error",
    "cudnn_status",
    "memoryerror",
    "no space left",
    "not enough memory",
    "out of memory",
    "resource temporarily unavailable",
    "too many open files",
    "unable to allocate",
)
_LONGEST_READ = 10_000  # characters of a foreign message that are searched


def resource_failure(error: BaseException, outside: BaseException | None = None) -> str | None:
    """Return in a few fixed words what the machine failed at, None where the shard's own content
    raised the error.

    Parameters
    ----------
    error : exception
        Its causes, contexts and members are looked at too.
    outside : exception, optional
        What was being handled before the learner was called; it is none of the learner's.
    """
    waiting, seen = [error], {id(outside)}
    while waiting:
        one = waiting.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        for kinds, words in _RESOURCES:
            if isinstance(one, kinds):
                return words
        if any(word in _error_message(one) for word in _RESOURCE_WORDS):
            return _OTHER_RESOURCE
        members = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        waiting += [
            other for other in (one.__cause__, one.__context__, *members) if other is not None
        ]
    return None


def _error_message(error: BaseException) -> str:
    try:
        return str(error)[:_LONGEST_READ].lower()
    except Exception:  # a foreign exception may fail to say what it is
        return ""


def result_of(work: Callable[[], T]) -> T | None:
    """Return what a learner's work comes to, None where it fails at its own shard.

    Raises
    ------
    ResourceError
        If the machine failed: a fixed vote would then depend on what all other shards took of it.

    Privacy
    -------
    Sensitivity : whether None is returned follows from the learner's own shard. That a run ended is
        not protected.
    """
    outside = sys.exception()
    try:
        return work()
    except FAILURES as error:
        cause = resource_failure(error, outside)
    # Outside of the handler: the learner's exception, which may quote a cell, must not ride along
    # as a context.
    if cause is not None:
        raise _process_ended(cause)
    return None


def result_once_seeded(work: Callable[[], T]) -> T | None:
    """Return `result_of` the work, done anew where it was the first to import torch.

    Torch's generators can be seeded for a step only once torch is there: what a step drew from them
    before would depend on whether it was the first.

    Raises
    ------
    ResourceError
        As `result_of` does.
    """
    imported = "torch" in sys.modules
    result = result_of(work)
    return result if imported or "torch" not in sys.modules else result_of(work)


def results_of(results: Iterator[T]) -> Iterator[T]:
    """Yield what worker processes send back; end with one sentence where the machine fails.

    Raises
    ------
    ResourceError
        If a worker died or could not be reached, or memory, files or processes ran out.
    """
    while True:
        cause = None
        try:
            result = next(results)
        except StopIteration:
            return
        except ResourceError as error:
            cause = error.args[0]  # said in a worker; its remote traceback stays behind
        except Exception as error:
            cause = resource_failure(error)
            if cause is None:
                raise
            cause = as_sentence(cause)
        if cause is not None:
            raise ResourceError(cause)
        yield result


def _process_ended(cause: str) -> ResourceError:
    return ResourceError(as_sentence(cause))


def as_sentence(cause: str) -> str:
    return (
        f"The teachers' work ended because {cause}; no vote is made of that, and nothing was"
        " released. Give it more room, or fewer workers, and repeat."
    )


@contextlib.contextmanager
def isolated(seed: int, settings: Mapping[str, Any]) -> Iterator[None]:
    """Silence a learner, give it global random states of its own, and restore them after.

    Parameters
    ----------
    seed : int
        Seeds the global generators (`own_global_states`): a learner that draws from them would
        otherwise hand its successor a state that depends on its data. A learner that would start
        workers works here, one part after the other: workers outlive it, and their generators are
        beyond reach.
    settings : mapping
        scikit-learn's configuration inside.
    """
    sink = io.StringIO()
    with (
        own_global_states(seed),
        joblib.parallel_config(backend="sequential"),
        _no_logging(),
        np.errstate(all="ignore"),
        contextlib.redirect_stdout(sink),
        contextlib.redirect_stderr(sink),
        sklearn.config_context(**settings),
    ):
        warnings.simplefilter("ignore")
        yield


@contextlib.contextmanager
def _no_logging() -> Iterator[None]:
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def one_thread() -> Any:
    """Return a context in which BLAS and OpenMP use one thread.

    Small fits lose more than they gain by more.
    """
    return _thread_controller(len(sys.modules)).limit(limits=1)


@lru_cache(maxsize=1)
def _thread_controller(n_modules: int) -> ThreadpoolController:
    # Finding the loaded libraries takes 15 ms, as long as several small fits, so it is done again
    # only when more modules, and libraries with them, have been imported.
    return ThreadpoolController()
