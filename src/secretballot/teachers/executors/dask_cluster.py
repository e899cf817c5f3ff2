"""Dask as the engine: tasks by a client of `distributed`.

Dask computes what a lost worker held anew, from the task and its arguments, which the scheduler
keeps. That is why public points are the result of a task here and not scattered: what is scattered
is lost with the workers that hold it.
"""

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from secretballot.exceptions import Parameter, ParameterError
from secretballot.foreign_code import resource_failure
from secretballot.teachers.executors import cluster
from secretballot.teachers.executors.cluster import (
    Ref,
    check_versions,
    done_by,
    failed,
    unreachable,
)
from secretballot.teachers.executors.tasks import (
    Packed,
    Versions,
    about_teacher,
    keep_value,
    versions_here,
)

_PREFIXES = {"dask://": "tcp://", "dask+tls://": "tls://"}


def is_dask_client(engine: object) -> bool:
    """Return whether this is a client of Dask, without importing Dask to find out."""
    distributed = sys.modules.get("distributed")
    return distributed is not None and isinstance(engine, distributed.Client)


class DaskCluster:
    """Workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
    """

    def __init__(self, client: Any) -> None:
        self._client = client
        self._workerless_since: float | None = None

    @classmethod
    def of(cls, engine: Any) -> "DaskCluster":
        """Return the cluster of an address, of the word "dask" or of a client, once it has answered
        and its workers have this program's versions.

        Raises
        ------
        ParameterError
            If Dask is not installed, or the cluster cannot be reached or has no worker.
        DataError
            If a worker has other versions.
        """
        try:
            import distributed
        except ImportError:
            raise ParameterError(
                Parameter("engine"),
                f" is {engine!r}, and Dask is not installed; install secretballot[dask].",
            ) from None
        if isinstance(engine, distributed.Client):
            client = engine
            if client.asynchronous:
                raise ParameterError(
                    Parameter("engine"),
                    " is an asynchronous client of Dask; give one that is not, or an address.",
                )
        elif engine == "dask":
            client = _client_of_this_process()
        else:
            client = _client_of_address(engine)
        if client.status != "running":
            raise ParameterError(
                Parameter("engine"),
                f" is a client of Dask whose status is {client.status!r}; give one that is"
                " connected. Nothing was spent.",
            )
        found = cls(client)
        # a worker of other versions would train other teachers: refused before it is sent a shard
        found._check_workers()
        return found

    @property
    def n_slots(self) -> int:
        """Threads of all workers."""
        return done_by(lambda: max(1, int(sum(self._client.nthreads().values()))), _cause_of)

    def submit(self, work: Callable[..., Any], *args: Any) -> Ref:
        """Start a task; its key names the function and nothing of its arguments."""
        return self._submitted_work(work, *args)

    def _submitted_work(self, work: Callable[..., Any], *args: Any, priority: int = 0) -> Ref:
        import dask

        # a shard is as large as it is: no warning of large arguments
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TiB"}):
            return done_by(
                lambda: self._client.submit(work, *args, pure=False, priority=priority), _cause_of
            )

    def submit_training(self, work: Callable[..., Any], *args: Any) -> tuple[Ref, Ref]:
        """Start a task that returns a pair, and one that looks at what it says of itself."""
        trained = self._submitted_work(work, *args)
        # before the shards that wait, so that a run that must end does not train them first
        return trained, self._submitted_work(about_teacher, trained, priority=1)

    def shared(self, value: Packed) -> Ref:
        """Put a value into the cluster; workers pass it on to each other."""
        return self._submitted_work(keep_value, value, priority=1)

    def some_done(self, refs: Sequence[Ref]) -> list[Ref]:
        """Wait until at least one is done and return those that are."""
        return done_by(lambda: self._some_done(refs), _cause_of)

    def _some_done(self, refs: Sequence[Ref]) -> list[Ref]:
        import distributed

        while True:
            done = [ref for ref in refs if ref.status != "pending"]
            if done:
                self._workerless_since = None
                return done
            # a future that was cancelled is no longer pending, which the next look finds
            # `wait` asks the current client, which need not be this one
            with suppress(TimeoutError, distributed.CancelledError), self._client.as_current():
                distributed.wait(refs, timeout=cluster.LOOK_SECONDS, return_when="FIRST_COMPLETED")
                continue
            self._look_for_workers()

    def _look_for_workers(self) -> None:
        """End a wait that nobody can end: without a scheduler, or for a minute without workers."""
        try:
            alive = self._client.status == "running" and bool(self._client.nthreads())
        except Exception:  # whatever a connection that broke says
            alive = False
        if alive:
            self._workerless_since = None
            return
        since = self._workerless_since or time.monotonic()
        self._workerless_since = since
        if time.monotonic() - since >= cluster.WORKERLESS_SECONDS:
            raise failed("the Dask cluster has no worker left")

    def result(self, ref: Ref) -> Any:
        """Return a result."""
        return done_by(ref.result, _cause_of)

    def places(self, refs: Sequence[Ref]) -> list[str]:
        """Return the worker that holds each result."""
        held: Any = done_by(lambda: self._client.who_has(list(refs)), _cause_of)
        return [next(iter(sorted(held.get(ref.key, ()))), "") for ref in refs]

    def cancel(self, refs: Sequence[Ref]) -> None:
        """Take back what has not begun; what runs ends by itself, and its result is dropped."""
        with suppress(Exception):
            self._client.cancel(list(refs))

    def _check_workers(self) -> None:
        """Compare versions on every worker."""
        try:
            # that no worker came in time shows below, where none answers
            with suppress(TimeoutError):
                self._client.wait_for_workers(1, timeout=cluster.CONNECT_SECONDS)
            answers = self._client.run(versions_here, on_error="return")
        except Exception as error:
            raise unreachable(
                _shown_address(self._client),
                f"which does not answer ({type(error).__name__});"
                " start it, or give another address.",
            ) from None
        if not answers:
            raise unreachable(
                _shown_address(self._client),
                f"which has no worker after {cluster.CONNECT_SECONDS:g} seconds; start some.",
            )
        found: list[tuple[str, Versions | None]] = [
            (str(worker), answer if isinstance(answer, tuple) else None)
            for worker, answer in sorted(answers.items())
        ]
        check_versions(versions_here(), found)


def _client_of_this_process() -> Any:
    import distributed

    try:
        return distributed.default_client()
    except ValueError:
        raise ParameterError(
            Parameter("engine"),
            " is 'dask', and no client of Dask runs in this program; make one with"
            " distributed.Client(ADDRESS), or give 'dask://HOST:PORT'. Nothing was spent.",
        ) from None


def _client_of_address(engine: str) -> Any:
    import distributed

    prefix = next(known for known in _PREFIXES if engine.startswith(known))
    address = _PREFIXES[prefix] + engine.removeprefix(prefix)
    try:
        return distributed.Client(address, timeout=cluster.CONNECT_SECONDS, set_as_default=False)
    except Exception as error:
        raise unreachable(
            engine,
            f"where no scheduler of Dask answers ({type(error).__name__}); start it with `dask"
            " scheduler`, or give another address.",
        ) from None


def _shown_address(client: Any) -> str:
    scheduler = getattr(client, "scheduler", None)
    return str(getattr(scheduler, "address", "a client of Dask"))


def _cause_of(error: Exception) -> str:
    import distributed

    if isinstance(error, distributed.scheduler.KilledWorker):
        return "the same task ended its Dask worker again and again"
    return resource_failure(error) or f"the Dask cluster failed with {type(error).__name__}"
