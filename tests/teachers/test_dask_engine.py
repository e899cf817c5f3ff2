"""Dask as the engine, on a cluster of two worker processes that starts here."""

import re

import pytest
from sklearn.tree import DecisionTreeClassifier

from engine_suite import MARKER, EngineSuite, TellsWhereItWorks, counts_of, fitted
from secretballot.exceptions import ParameterError, ResourceError
from secretballot.teachers import executors

pytestmark = pytest.mark.xdist_group("dask")

dask = pytest.importorskip("dask", reason="the extra secretballot[dask]")
distributed = pytest.importorskip("distributed", reason="the extra secretballot[dask]")


class TestDask(EngineSuite):
    @pytest.fixture
    def engine(self, dask_client):
        # a nanny whose worker dies while it starts gives up
        dask_client.wait_for_workers(2, timeout=300)
        return dask_client

    @pytest.fixture
    def engine_to_break(self, engine, request, monkeypatch):
        # how many workers a task may end: each takes seconds to come back
        again = 0 if "again_and_again" in request.node.name else 1
        monkeypatch.setattr(engine.cluster.scheduler, "allowed_failures", again)
        return engine

    def test_no_log_holds_a_private_cell(self, engine, capfd):
        self.private_marker_fit(engine)
        said = "".join(capfd.readouterr()) + str(engine.get_worker_logs())
        assert MARKER not in said

    def test_an_address_and_the_client_of_the_process(self, engine):
        address = engine.scheduler.address.replace("tcp://", "dask://")
        wanted = counts_of(fitted(DecisionTreeClassifier()))
        assert (counts_of(fitted(DecisionTreeClassifier(), engine=address)) == wanted).all()
        with engine.as_current():
            there = fitted(DecisionTreeClassifier(), engine="dask")
        assert (counts_of(there) == wanted).all()
        with engine.get_executor() as executor:
            there = fitted(DecisionTreeClassifier(), engine=executor)
        assert (counts_of(there) == wanted).all()

    def test_keys_name_no_content(self, engine):
        keys = set()
        fitted(
            DecisionTreeClassifier(), engine=engine, progress=lambda *_: keys.update(engine.futures)
        )
        assert keys
        assert all(re.fullmatch("_run_task-[0-9a-f-]+", key) for key in keys)


def test_a_cluster_that_is_gone_ends_the_run(tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        teacher = TellsWhereItWorks(str(tmp_path))

        def leave(done, total):
            cluster.close()

        with pytest.raises(ResourceError, match="work on private rows ended because") as told:
            fitted(teacher, engine=client, progress=leave)
        assert told.value.__context__ is None


def test_a_cluster_without_workers_is_refused(monkeypatch):
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        distributed.Client(empty, set_as_default=False) as client,
        pytest.raises(ParameterError, match=r"no Dask with a worker answers .*TimeoutError"),
    ):
        fitted(DecisionTreeClassifier(), engine=client)
