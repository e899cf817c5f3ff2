"""Engines: where teachers are trained and vote. Here, or on the workers of a Dask or Ray cluster
that runs already.

Everything in a cluster is on the private side: shards, teachers and votes. The driver alone holds
the ledger, draws noise and releases.
"""

from typing import Any

from secretballot._validation import shown
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.teachers.executors.cluster import Cluster
from secretballot.teachers.executors.dask_cluster import DaskCluster, is_dask_client
from secretballot.teachers.executors.ray_cluster import RayCluster

__all__ = ["LOCAL", "check_engine", "cluster_of"]

LOCAL = "local"
_DASK = ("dask://", "dask+tls://")
_RAY = ("ray://",)


def check_engine(engine: Any, n_jobs: int | None = None, *, send_shards: bool = False) -> None:
    """Refuse what names no engine, before anything is connected.

    Parameters
    ----------
    engine : str or distributed.Client
        "local"; "dask" for this process's client, "dask://HOST:PORT" or a client; "ray" for the
        Ray that runs, or "ray://HOST:PORT".
    n_jobs : int, optional
        Worker processes, which only "local" has.
    send_shards : bool
        Whether workers are sent what lies in files, which only clusters are.

    Raises
    ------
    ParameterError
        If it is none of these, or comes with what it does not have.
    """
    # the engine first: the other settings are read against one that is known
    if not is_dask_client(engine) and not _is_known(engine):
        raise ParameterError(
            Parameter("engine"),
            f" is {shown(engine)}; it must be 'local', 'dask://HOST:PORT', 'dask', 'ray',"
            " 'ray://HOST:PORT', or a distributed.Client.",
        )
    if n_jobs is not None and not (isinstance(engine, str) and engine == LOCAL):
        raise ParameterError(
            Argument("n_jobs", n_jobs),
            " is given beside an engine, whose workers set how many work at once; leave it out, or"
            " use ",
            Argument("engine", LOCAL),
            ".",
        )
    if not isinstance(send_shards, bool):
        raise ParameterError(
            Parameter("send_shards"), f" is {shown(send_shards)}; it must be True or False."
        )
    if send_shards and isinstance(engine, str) and engine == LOCAL:
        raise ParameterError(
            Parameter("send_shards"),
            " is given without a cluster to send to; name one with ",
            Parameter("engine"),
            ", or leave it out.",
        )


def cluster_of(engine: Any, n_jobs: int | None = None) -> Cluster | None:
    """Return the cluster that an engine names, connected and checked, None for this machine.

    Raises
    ------
    ParameterError
        If it names none, or the cluster cannot be reached.
    DataError
        If a worker has other versions of Python, secretballot, numpy or scikit-learn.
    """
    check_engine(engine, n_jobs)
    if isinstance(engine, str) and engine == LOCAL:
        return None
    if isinstance(engine, str) and engine.startswith("ray"):
        return RayCluster.of(engine)
    return DaskCluster.of(engine)


def _is_known(engine: Any) -> bool:
    if not isinstance(engine, str):
        return False
    if engine in (LOCAL, "dask", "ray"):
        return True
    for prefix in (*_DASK, *_RAY):
        host, _, port = engine.removeprefix(prefix).rpartition(":")
        if engine.startswith(prefix) and host and port.isascii() and port.isdigit():
            return 0 < int(port) < 2**16
    return False
