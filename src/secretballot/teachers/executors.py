"""Where work on private rows is done: here, in processes, or on a Dask or Ray cluster that runs.

Whatever has the face of `concurrent.futures.Executor` serves. All of it is on the private side:
shards, teachers and votes. This process alone holds the ledger, draws noise and releases.

A task never raises: an executor would write the exception, and with it what a learner quotes of its
records, into logs and tracebacks, and might try the task again until a machine's failure looked
like something else. It returns an error of ours, without traceback or cause, in place of its
result. Everything private that goes in and out is packed, with a repr, which executors do print,
that shows nothing. A cluster runs a task whose worker died again, from the same arguments and
seeds, so that its result is the same.
"""

import os
import pickle
import platform
import re
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import Any, TypeVar

import joblib
import numpy as np
from joblib.executor import get_memmapping_executor
from joblib.externals.loky.cloudpickle_wrapper import dumps

from secretballot import __version__
from secretballot._seeded import ALONE
from secretballot._typing import Values
from secretballot._validation import refusal, shown
from secretballot.exceptions import DataError, ResourceError, SecretBallotError
from secretballot.foreign_code import as_sentence, one_thread, resource_failure

_T = TypeVar("_T")

LOCAL = "local"
_ENGINES = r"local|dask|ray|dask(?:\+tls)?://\S+:([0-9]{1,5})"
_CONNECT_SECONDS = 15.0  # that a cluster may take to answer at first
_LOOK_SECONDS = 60.0  # how often one that waits looks whether there is anybody to wait for
_RAY_RETRIES = 3  # how often Ray runs a task again whose worker died

#: Names and versions that must be the same on every worker.
_Versions = tuple[tuple[str, str], ...]


class _Packed:
    """A pickled value that shows nothing of itself.

    Executors pass their own pickles of arrays on as read-only memory, in which some learners cannot
    work; what this holds comes out as it went in. Classes of a script are packed with it.
    """

    __slots__ = ("_content",)

    def __init__(self, content: bytes) -> None:
        self._content = content

    @classmethod
    def of(cls, value: Any) -> "_Packed":
        """Return the value packed.

        Raises
        ------
        DataError
            If it cannot be pickled.
        """
        try:
            return cls(dumps(value))
        except MemoryError:
            raise
        except Exception:
            unpicklable = True
        # outside of the handler, whose exception may quote what the value holds
        assert unpicklable
        raise DataError(
            "A learner or its data cannot be pickled, so they cannot travel between processes;"
            " use another learner, or work in one process of this machine."
        )

    def value(self) -> Any:
        """Return a new copy of what was packed."""
        return pickle.loads(self._content)

    def __sizeof__(self) -> int:
        return len(self._content)  # executors place tasks by it

    def __repr__(self) -> str:
        return "Packed(<private>)"


def _versions_here() -> _Versions:
    """Return the versions in this process that decide what a teacher, or a record's vector,
    becomes."""
    found = {"Python": platform.python_version(), "secretballot": __version__}
    for name in ("numpy", "scikit-learn", "pandas", "scipy", "torch"):
        with suppress(PackageNotFoundError):  # torch is an extra
            found[name] = version(name).partition("+")[0]  # whatever it was built for
    return tuple(found.items())


def _run_task(versions: _Versions, own: _Packed, shared: _Packed) -> _Packed | SecretBallotError:
    """Return the packed result of a task, or what ends the run.

    Parameters
    ----------
    versions : tuple
        Of the process that hands out the work. A worker of others would train other teachers.
    own, shared : _Packed
        (function, its first arguments), and its last arguments, which all tasks share.
    """
    found = dict(_versions_here())
    other = [
        f"{name} {found.get(name, 'missing')} where this program has {version}"
        for name, version in versions
        if found.get(name) != version
    ]
    if other:
        return DataError(
            f"A worker has {' and '.join(other)}; install the same versions on every worker."
        )
    try:
        work, arguments = own.value()
        # alone: threads of one worker would put back each other's number of threads
        with ALONE, one_thread():
            return _Packed.of(work(*arguments, *shared.value()))
    except (DataError, ResourceError) as error:
        # a new one: it has no traceback, and no cause
        return type(error)(str(error))
    except (Exception, SystemExit) as error:
        # a name of a class, nothing that the error says
        cause = resource_failure(error) or f"a task failed with {type(error).__name__}"
    return ResourceError(as_sentence(cause))


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C until the block is left, here and in every process that starts within it.

    Ctrl-C in a terminal goes to the program and to its workers alike. The program decides what it
    means; a worker that took it too would print a traceback of its own. A program that finds Ctrl-C
    ignored when it begins goes on ignoring it: so a worker is deaf from its first moment, before
    any line of ours runs in it. A Ctrl-C within the block is lost and must be repeated. Signals are
    set in the main thread alone; from another, and where the handler is not Python's, nothing
    changes.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _cancel_all(executor: Executor, tasks: Iterable[Future[Any]]) -> None:
    for task in tasks:
        task.cancel()


@dataclass(frozen=True)
class Workers:
    """An executor, and how to wait for it.

    Attributes
    ----------
    opened : callable
        Returns the executor, once there is work for it.
    n_slots : int
        Tasks that can run at once.
    alive : callable
        Whether anybody is left to work.
    stop : callable
        Called with an executor, and its tasks that nobody wants any more.
    """

    opened: Callable[[], Executor]
    n_slots: int
    alive: Callable[[], bool] = lambda: True
    stop: Callable[[Any, set[Future[Any]]], None] = _cancel_all

    def results(
        self, work: Callable[..., _T], tasks: Iterable[Values], *shared: Any
    ) -> Generator[_T, None, None]:
        """Yield what a function returns for each task, in any order.

        Parameters
        ----------
        work : callable
            Found by its name in a module.
        tasks : iterable of tuple
            Its first arguments. So many are taken ahead as keep the workers busy.
        *shared
            Its last arguments, packed once.

        Raises
        ------
        ResourceError
            If the machine failed, here or where a task ran.
        DataError
            If something does not fit, or cannot be pickled.
        """
        executor = _done_by(self.opened)
        waiting, running = iter(tasks), set[Future[Any]]()
        # eight tasks wait or run for each that can run: enough to keep every worker busy
        common, most = _Packed.of(shared), 8 * (self.n_slots + 1)
        versions = _versions_here()
        try:
            while True:
                for task in islice(waiting, most - len(running)):
                    given = versions, _Packed.of((work, task)), common
                    with _interrupts_ignored():
                        running.add(_done_by(partial(executor.submit, _run_task, *given)))
                if not running:
                    return
                for future in self._done_of(running):
                    running.remove(future)
                    found = _done_by(future.result)
                    if isinstance(found, SecretBallotError):
                        raise found
                    # what a model says while it is unpickled may quote records
                    yield _done_by(found.value)
        finally:
            # an error, Ctrl-C, or a caller that wants no more
            if running:
                self.stop(executor, running)

    def _done_of(self, running: set[Future[Any]]) -> set[Future[Any]]:
        """Wait until at least one is done and return those that are."""
        while True:
            done, _ = wait(running, timeout=_LOOK_SECONDS, return_when=FIRST_COMPLETED)
            if done:
                return done
            if not self.alive():
                raise ResourceError(as_sentence("the cluster has no worker left"))


def _done_by(call: Callable[[], _T]) -> _T:
    """Return what a call of the executor comes to; end the run with one sentence where it fails.

    Raises
    ------
    ResourceError
        In the place of any exception that is none of this package's own.
    """
    try:
        return call()
    except SecretBallotError:
        raise
    except Exception as error:
        name = type(error).__name__
        cause = resource_failure(error) or f"the executor failed with {name}"
        # of Dask and of Ray, whose modules need not be here
        if name in ("KilledWorker", "WorkerCrashedError"):
            cause = "the same task ended its worker again and again"
    # outside of the handler: the error of a library may show what a task was given
    raise ResourceError(as_sentence(cause))


def check_engine(engine: Any, n_jobs: int | None = None) -> None:
    """Refuse what names no engine, before anything is connected.

    Parameters
    ----------
    engine : str, distributed.Client or concurrent.futures.Executor
        "local"; "dask" for this process's client, "dask://HOST:PORT" or a client; "ray" for the
        Ray that runs; or any executor.
    n_jobs : int, optional
        Worker processes, which only "local" has.

    Raises
    ------
    ParameterError
        If it is none of these, or comes with what it does not have.
    """
    # the engine first: the number is read against one that is known
    named = isinstance(engine, str) and re.fullmatch(_ENGINES, engine)
    if not (isinstance(engine, Executor) or _is_dask_client(engine)) and not (
        named and 0 < int(named[1] or 1) < 2**16
    ):
        raise refusal(
            "executor",
            f" is {shown(engine)}; it must be 'local', 'dask://HOST:PORT', 'dask', 'ray', a"
            " distributed.Client, or an executor of concurrent.futures.",
        )
    if n_jobs is None:
        return
    is_number = isinstance(n_jobs, (int, np.integer)) and not isinstance(n_jobs, bool)
    if not is_number or n_jobs == 0 or not isinstance(engine, str) or engine != LOCAL:
        raise refusal(
            "n_jobs",
            f" is {shown(n_jobs)}; give an integer other than 0, and none beside an engine, whose"
            " workers set how many work at once.",
        )


def workers_of(engine: Any, n_jobs: int | None = None) -> Workers | None:
    """Return the workers that an engine names, connected; None for this process alone.

    Raises
    ------
    ParameterError
        If it names none, or a cluster cannot be reached or has no worker.
    """
    check_engine(engine, n_jobs)
    if isinstance(engine, Executor):
        n_slots = getattr(engine, "_max_workers", None) or os.cpu_count() or 1
        return Workers(lambda: engine, n_slots)
    if not isinstance(engine, str) or engine.startswith("dask"):
        return _dask_workers(engine)
    if engine == "ray":
        return _ray_workers()
    n_workers = joblib.effective_n_jobs(n_jobs)
    if n_workers == 1:
        return None
    # Processes that are spawned, and that take what a script or a notebook defines: joblib's own,
    # so that others who use joblib here find them as they expect. No array is written to a file.
    # a process that has nothing to do for a minute ends
    return Workers(
        partial(get_memmapping_executor, n_workers, timeout=60, max_nbytes=None),
        n_workers,
        # at once: cancelled tasks would be in its way
        stop=lambda pool, tasks: pool.shutdown(wait=True, kill_workers=True),
    )


def _is_dask_client(engine: object) -> bool:
    distributed = sys.modules.get("distributed")  # not imported to find out
    return distributed is not None and isinstance(engine, distributed.Client)


@contextmanager
def _connecting(engine: Any, library: str, start: str) -> Iterator[None]:
    """Refuse an engine that cannot be reached from the block, in one sentence.

    Raises
    ------
    ParameterError
    """
    try:
        yield
        return
    except ImportError:
        problem = f"and {library} is not installed; install secretballot[{library.lower()}]."
    except Exception as error:
        problem = f"and no {library} with a worker answers ({type(error).__name__}); {start}."
    shown_engine = engine if isinstance(engine, str) else f"a client of {library}"
    raise refusal("executor", f" is {shown_engine!r}, {problem}")


def _dask_workers(engine: Any) -> Workers:
    start = "start `dask scheduler` and workers, or make a distributed.Client(ADDRESS) here"
    with _connecting(engine, "Dask", start):
        import dask
        import distributed

        client = engine
        if engine == "dask":
            client = distributed.default_client()
        elif isinstance(engine, str):
            scheme, _, place = engine.partition("://")
            address = f"{'tls' if 'tls' in scheme else 'tcp'}://{place}"
            client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
        client.wait_for_workers(1, timeout=_CONNECT_SECONDS)
        n_slots = max(1, sum(client.nthreads().values()))

    def alive() -> bool:
        with suppress(Exception):  # whatever a connection that broke says
            return client.status == "running" and bool(client.nthreads())
        return False

    # a shard is as large as it is: no warning of large arguments
    dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"})
    executor = client.get_executor(pure=False)
    return Workers(lambda: executor, n_slots, alive)


def _ray_workers() -> Workers:
    start = "start one with `ray start --head`, or call ray.init() before"
    with _connecting("ray", "Ray", start):
        import ray

        if not ray.is_initialized():
            # "auto" starts none
            address = os.environ.get("RAY_ADDRESS") or "auto"
            ray.init(address=address, log_to_driver=False, configure_logging=False)

    def n_processors() -> int:
        return int(_done_by(ray.cluster_resources).get("CPU", 0))

    # the same object for all tasks of a function: Ray sends each such object to every node
    remote = lru_cache(ray.remote(max_retries=_RAY_RETRIES))

    class RayExecutor(Executor):
        """Tasks of Ray as futures."""

        def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
            task = remote(work).remote(*args, **kwargs)
            future: Future[Any] = task.future()
            future.add_done_callback(lambda own: own.cancelled() and ray.cancel(task))
            return future

    executor = RayExecutor()
    return Workers(lambda: executor, max(1, n_processors()), lambda: n_processors() > 0)
