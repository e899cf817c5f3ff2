"""Ray as the engine: tasks whose results stay in Ray's object store."""

import os
import socket
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
from secretballot.teachers.executors.tasks import Packed, Versions, versions_here

_PREFIX = "ray://"
#: How often Ray runs a task again whose worker died, and computes a lost result anew.
_RETRIES = 3


class RayCluster:
    """The Ray that this process is connected to."""

    def __init__(self) -> None:
        self._workerless_since: float | None = None
        self._remote: dict[tuple[Any, int], Any] = {}

    @classmethod
    def of(cls, engine: str) -> "RayCluster":
        """Return the Ray that runs, or the one at an address, once it has answered and its nodes
        have this program's versions.

        Raises
        ------
        ParameterError
            If Ray is not installed, or none can be reached.
        DataError
            If a node has other versions.
        """
        try:
            import ray
        except ImportError:
            raise ParameterError(
                Parameter("engine"),
                f" is {engine!r}, and Ray is not installed; install secretballot[ray].",
            ) from None
        if not ray.is_initialized():
            _connect_to_ray(engine)
        elif engine != "ray":
            raise ParameterError(
                Parameter("engine"),
                f" is {engine!r}, and this program is connected to a Ray already; give 'ray' for"
                " that one, or call ray.shutdown() before. Nothing was spent.",
            )
        found = cls()
        found._check_nodes()
        return found

    @property
    def n_slots(self) -> int:
        """Processors of all nodes."""
        import ray

        return done_by(lambda: max(1, int(ray.cluster_resources().get("CPU", 1))), _cause_of)

    def submit(self, work: Callable[..., Any], *args: Any) -> Ref:
        """Start a task; handles among its arguments stand for their results."""
        return done_by(lambda: self._remote_of(work, 1).remote(*args), _cause_of)

    def submit_training(self, work: Callable[..., Any], *args: Any) -> tuple[Ref, Ref]:
        """Start a task that returns a pair, which Ray keeps apart."""
        trained, trouble = done_by(lambda: self._remote_of(work, 2).remote(*args), _cause_of)
        return trained, trouble

    def _remote_of(self, work: Callable[..., Any], n_results: int) -> Any:
        import ray

        if (work, n_results) not in self._remote:
            settings = ray.remote(num_returns=n_results, max_retries=_RETRIES)
            self._remote[work, n_results] = settings(work)
        return self._remote[work, n_results]

    def shared(self, value: Packed) -> Ref:
        """Put a value into Ray's object store."""
        import ray

        return done_by(lambda: ray.put(value), _cause_of)

    def some_done(self, refs: Sequence[Ref]) -> list[Ref]:
        """Wait until at least one is done and return those that are."""
        return done_by(lambda: self._some_done(refs), _cause_of)

    def _some_done(self, refs: Sequence[Ref]) -> list[Ref]:
        import ray

        while True:
            # nothing is fetched: results stay with the workers, and only their end is asked for
            done, _ = ray.wait(
                list(refs), num_returns=1, timeout=cluster.LOOK_SECONDS, fetch_local=False
            )
            if done:
                self._workerless_since = None
                every, _ = ray.wait(list(refs), num_returns=len(refs), timeout=0, fetch_local=False)
                return list(every) or list(done)
            self._look_for_workers(ray.cluster_resources().get("CPU", 0) > 0)

    def _look_for_workers(self, alive: bool) -> None:
        """End a wait that nobody can end."""
        if alive:
            self._workerless_since = None
            return
        since = self._workerless_since or time.monotonic()
        self._workerless_since = since
        if time.monotonic() - since >= cluster.WORKERLESS_SECONDS:
            raise failed("Ray has no processor left")

    def result(self, ref: Ref) -> Any:
        """Return a result; its arrays may be read-only."""
        import ray

        return done_by(lambda: ray.get(ref), _cause_of)

    def places(self, refs: Sequence[Ref]) -> list[str]:
        """Return the node that holds each result; nodes alone matter, whose workers share
        memory."""
        import ray

        nodes: dict[Any, dict[str, Any]] = {}
        if len(_living_nodes()) > 1:
            with suppress(Exception):  # not offered to clients of ray://
                nodes = ray.experimental.get_object_locations(list(refs))
        return [next(iter(sorted(nodes.get(ref, {}).get("node_ids", ()))), "") for ref in refs]

    def cancel(self, refs: Sequence[Ref]) -> None:
        """Stop what runs and take back what has not begun."""
        import ray

        for ref in refs:
            with suppress(Exception):
                ray.cancel(ref)

    def _check_nodes(self) -> None:
        """Compare versions on every node."""
        import ray
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        # without a processor of its own, so that a busy node answers, too
        asked = ray.remote(num_cpus=0, max_retries=0)(versions_here)
        waiting = {
            node: asked.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)
            ).remote()
            for node in _living_nodes()
        }
        found: list[tuple[str, Versions | None]] = []
        for node, answer in waiting.items():
            versions = None
            try:
                # a worker's first start takes seconds
                versions = ray.get(answer, timeout=4 * cluster.CONNECT_SECONDS)
            except ray.exceptions.GetTimeoutError:
                raise unreachable(
                    "ray", f"whose node {node} does not answer; look at `ray status`."
                ) from None
            except Exception:
                versions = None
            found.append((f"on node {node}", versions))
        check_versions(versions_here(), found)


def _living_nodes() -> list[str]:
    import ray

    return sorted(node["NodeID"] for node in ray.nodes() if node["Alive"])


def _connect_to_ray(engine: str) -> None:
    """Connect to a Ray that runs; never start one."""
    import ray

    address = os.environ.get("RAY_ADDRESS", "") or "auto" if engine == "ray" else engine
    if address == "local":  # the word with which Ray starts one
        raise ParameterError(
            Parameter("engine"),
            " is 'ray' and the environment has RAY_ADDRESS=local, which would start a Ray; unset"
            " it, or call ray.init() before. Nothing was spent.",
        )
    try:
        if address == "auto":
            address = _recorded_address()
        if address != "auto":
            _check_listening(engine, address.removeprefix(_PREFIX))
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except ParameterError:
        raise
    except ImportError:
        raise ParameterError(
            Parameter("engine"),
            f" is {engine!r}, which needs Ray's own client; install ray[client]. Nothing was"
            " spent.",
        ) from None
    except Exception as error:
        raise unreachable(
            engine,
            f"and no Ray answers ({type(error).__name__}); start one with `ray start --head`, or"
            " call ray.init() before.",
        ) from None


def _recorded_address() -> str:
    """Return where the last Ray of this machine is said to be, "auto" where Ray does not tell.

    A Ray that died stays recorded, and Ray would try it for a minute.

    Raises
    ------
    ConnectionError
        If there is none.
    """
    try:
        from ray._private.services import canonicalize_bootstrap_address_or_die
    except ImportError:
        return "auto"
    return str(canonicalize_bootstrap_address_or_die("auto"))


def _check_listening(engine: str, place: str) -> None:
    """Refuse an address at which nobody listens: Ray itself would try for minutes."""
    host, _, port = place.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=cluster.CONNECT_SECONDS):
            return
    except (OSError, ValueError):
        stands_for = "" if place in engine else f"which stands for {place}, "
        raise unreachable(
            engine,
            f"{stands_for}where nobody listens; start Ray there with `ray start --head`, or name"
            " one that runs.",
        ) from None


def _cause_of(error: Exception) -> str:
    import ray

    if isinstance(error, ray.exceptions.OutOfMemoryError):
        return "memory ran out on a node of Ray"
    if isinstance(error, ray.exceptions.WorkerCrashedError):
        return "the same task ended its Ray worker again and again"
    return resource_failure(error) or f"Ray failed with {type(error).__name__}"
