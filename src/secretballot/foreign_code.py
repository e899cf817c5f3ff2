"""The one gateway for foreign code on private rows: teachers, transformers, bases, candidates,
members of a finite class, cells that are objects.

Such code meets one unit, or one shard, at a time. Where it fails at the content of that part, the
result is None, which depends on nothing else, and the caller has a fixed answer for it. Where the
machine fails, the run ends with a `ResourceError`: a fixed answer would then depend on what all
other parts took of the machine. Nobody else calls foreign code on private rows;
`tests/test_gates.py` holds that.
"""

import contextlib
import io
import logging
import pickle
import re
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from functools import lru_cache, partial
from typing import Any, TypeVar

import joblib
import numpy as np
import sklearn
from threadpoolctl import ThreadpoolController

from secretballot._points import take_rows
from secretballot._seeded import is_of_handler, own_global_states, seed_generators
from secretballot._typing import BoolArray, IntArray, JsonView
from secretballot.exceptions import ResourceError

_S = TypeVar("_S")
_T = TypeVar("_T")

_BROKEN = "code that failed once fails at everything since"
_OTHER_RESOURCE = "memory, threads or files ran out"
# What all parts together, or other programs, can cause. Some of it one part can cause too (a huge
# value that asks for much memory): it counts as the machine's all the same, since nothing
# distinguishes the two. KeyboardInterrupt is the user's and passes through.
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
# Libraries raise RuntimeError and others of their own for the same; the names of these classes, or
# their messages, say so. A device that failed once fails at everything after.
_RESOURCE_WORDS = re.compile(
    "bad[ _]alloc|memoryerror|(not enough|out of) memory"
    "|(can't|cannot|unable to|failed to) allocate|can't start new|cannot schedule new futures"
    "|no space left|too many open files"
    "|resource temporarily unavailable|resource_exhausted"
    "|acceleratorerror|cuda[ _]?(driver|error)|no cuda gpus|cu(blas|dnn|rand|solver|sparse)_status"
    "|cufft_|(hip|nccl) error|mps backend|xlaruntimeerror"
)
_EXACT = ("secretballot.bases.", "secretballot.hypotheses.")


def resource_failure(error: BaseException, outside: BaseException | None = None) -> str | None:
    """Return in a few fixed words what the machine failed at, None where the content of the part
    raised the error.

    Parameters
    ----------
    error : exception
        Its causes, contexts and members are looked at too.
    outside : exception, optional
        What was being handled before the foreign code was called; it is none of its own.
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
        if _RESOURCE_WORDS.search(_error_message(one)):
            return _OTHER_RESOURCE
        members = one.exceptions if isinstance(one, BaseExceptionGroup) else ()
        waiting += [
            other for other in (one.__cause__, one.__context__, *members) if other is not None
        ]
    return None


def _error_message(error: BaseException) -> str:
    name = type(error).__name__.lower()
    try:
        # characters of a foreign message that are searched
        return f"{name}: {str(error)[:10_000].lower()}"
    except KeyboardInterrupt:
        raise
    except BaseException:  # a foreign exception may fail to say what it is
        return name


def result_of(work: Callable[[], _T]) -> _T | None:
    """Return what foreign code makes of one unit or shard, None where it fails at its content.

    Raises
    ------
    ResourceError
        If the machine failed.
    SystemExit
        If a handler of a signal raised one, with code 1: the handler may be foreign code, too.

    Privacy
    -------
    Sensitivity : whether None is returned follows from that unit or shard alone. That a run ended
        is not protected.
    """
    outside = sys.exception()
    try:
        return work()
    except KeyboardInterrupt:
        raise
    # whatever else it is, depends on this part: `sys.exit` of a library, a panic of compiled code
    except BaseException as error:
        ends = isinstance(error, SystemExit) and is_of_handler(error)
        trace = error.__traceback__ if ends else None
        cause = resource_failure(error, outside)
    # Outside of the handler: the foreign exception, which may quote a cell, must not be attached
    # as a context.
    if trace is not None:
        raise SystemExit(1).with_traceback(trace)
    if cause is not None:
        raise ResourceError(as_sentence(cause))
    return None


def each_alone(ask: Callable[[_S], _T], parts: Iterable[_S]) -> list[_T | None]:
    """Return what foreign code makes of each part by itself; None where it fails at its content.

    Parameters
    ----------
    ask : callable
        Calls the foreign code with one part.
    parts : iterable
        One for each unit.

    Raises
    ------
    ResourceError
        If the machine failed. So it did where, after a failure at one part, the code fails at a
        part that it answered before, or where it fails at every one of several parts: something
        that stays broken would silence all other units.

    Privacy
    -------
    Sensitivity : every result follows from its own part, if the code keeps nothing from one part
        to the next.
    """
    found: list[_T | None] = []
    answered: list[_S] = []
    for part in parts:
        found.append(result_of(partial(ask, part)))
        if found[-1] is not None:
            answered = [part]
        elif answered and result_of(partial(ask, *answered)) is None:
            raise ResourceError(as_sentence(_BROKEN))
    if not answered and len(found) > 1:  # it may have broken at the first one
        raise ResourceError(as_sentence(_BROKEN))
    return found


def rows_alone(ask: Callable[[Any], _T], table: Any) -> list[_T | None]:
    """Return the same of each row of a table.

    Parameters
    ----------
    ask : callable
        Gets a table of one row, a copy, which does not show the row's place.
    table : array, sparse matrix or frame of shape (n_rows, n_features)

    Raises
    ------
    ResourceError
        As `each_alone` does.
    """
    table = table.tocsr() if hasattr(table, "tocsr") else table

    def ask_afresh(row: int) -> _T:
        seed_generators(0)  # else what one row draws would move the draws of all others
        return ask(_single_row(table, row))

    with own_global_states(0):
        return each_alone(ask_afresh, range(table.shape[0]))


def mapped_rows(basis: Any, rows: Any, width: int) -> tuple[IntArray, BoolArray, BoolArray]:
    """Return the rows of private rows as `basis.rows` does, zeros where it gives none, where it
    does, and which are covered: arrays of shape (n_rows, width), (n_rows,) and (n_rows,).

    Parameters
    ----------
    basis : basis of `secretballot.bases`
        Which maps every row by itself; where an odd cell stops it, one row at a time.
    rows : array, sparse matrix or frame of shape (n_rows, n_features)
    width : int
        Of the rows of the public points.

    Raises
    ------
    ResourceError
        If the machine failed.

    Privacy
    -------
    Sensitivity : every row follows from itself and the basis alone.
    """
    together = result_of(partial(basis.mapped, rows))
    if together is not None:
        integers, covered = together
        return integers, np.ones(len(covered), dtype=np.bool_), covered
    alone = rows_alone(basis.mapped, rows)
    nothing = np.zeros((1, width), dtype=np.int64), np.zeros(1, dtype=np.bool_)
    parts = [nothing if one is None else one for one in alone]
    known = np.array([one is not None for one in alone], dtype=np.bool_)
    integers, covered = (np.concatenate(each) for each in zip(*parts, strict=True))
    return integers, known, covered


def _single_row(table: Any, row: int) -> Any:
    found = take_rows(table, np.array([row]))
    return found.reset_index(drop=True) if hasattr(found, "iloc") else found


def is_exact(thing: object) -> bool:
    """Return whether an object is a basis, a hypothesis or a class of them of this package: these
    treat every row by itself, exactly, so that many rows may be given at once."""
    return f"{type(thing).__module__}.".startswith(_EXACT)


def as_sentence(cause: str) -> str:
    return (
        f"The work on private rows ended because {cause}; no answer is made of that, and nothing"
        " was released. Give it more memory, or fewer workers, and repeat."
    )


@contextlib.contextmanager
def isolated(seed: int, settings: JsonView) -> Iterator[None]:
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
