"""A cluster of Dask for tests, whose workers are processes of this machine."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def dask_client_of_two_workers() -> Generator[Any, None, None]:
    """Start two workers of one thread each, and a client of theirs."""
    distributed = pytest.importorskip("distributed", reason="the extra secretballot[dask]")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=False
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client
