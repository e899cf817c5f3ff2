"""Dask as the engine, on a cluster of two worker processes that starts here."""

import joblib
import pytest
from sklearn.tree import DecisionTreeClassifier

from dask_clusters import dask_client_of_two_workers
from engine_suite import CASES, MARKER, EngineSuite, K, TellsWhereItWorks, counts_of, fitted
from secretballot.exceptions import DataError, ParameterError, ResourceError

dask = pytest.importorskip("dask", reason="the extra secretballot[dask]")
distributed = pytest.importorskip("distributed", reason="the extra secretballot[dask]")


@pytest.fixture(scope="module")
def cluster_to_break():
    with (
        # a task is given up after its second worker: each takes seconds to come back
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        dask_client_of_two_workers() as client,
    ):
        yield client


class TestDask(EngineSuite):
    @pytest.fixture
    def engine(self, dask_client):
        return dask_client

    @pytest.fixture
    def engine_to_break(self, cluster_to_break):
        # a nanny whose worker dies while it starts gives up
        cluster_to_break.wait_for_workers(2, timeout=300)
        return cluster_to_break

    def test_no_log_holds_a_private_cell(self, engine, capfd):
        self.private_marker_fit(engine)
        said = "".join(capfd.readouterr()) + str(engine.get_worker_logs())
        assert MARKER not in said

    def test_a_task_that_raised_would_be_in_the_log(self, engine, capfd):
        """Why the tasks of a run never raise."""
        with pytest.raises(ValueError, match="plain"):
            engine.submit(raise_plainly, MARKER, pure=False).result()
        assert MARKER in "".join(capfd.readouterr()) + str(engine.get_worker_logs())

    def test_an_address_and_the_client_of_the_process(self, engine):
        address = engine.scheduler.address.replace("tcp://", "dask://")
        wanted = counts_of(fitted(DecisionTreeClassifier()))
        assert (counts_of(fitted(DecisionTreeClassifier(), engine=address)) == wanted).all()
        with engine.as_current():
            there = fitted(DecisionTreeClassifier(), engine="dask")
        assert (counts_of(there) == wanted).all()

    def test_joblib_on_dask_is_refused_and_no_hindrance_to_the_engine(self, engine):
        teacher = DecisionTreeClassifier()
        here = fitted(teacher)
        with engine.as_current(), joblib.parallel_config(backend="dask"):
            with pytest.raises(ParameterError, match=r"joblib's backend is 'dask'.* give engine="):
                fitted(teacher, n_jobs=2)
            with pytest.raises(ParameterError, match=r"joblib's backend is 'dask'.* give engine="):
                counts_of(here)
            there = counts_of(fitted(teacher, engine=engine))
        assert (there == counts_of(here)).all()

    def test_keys_name_no_content(self, engine):
        there = fitted(DecisionTreeClassifier(), engine=engine)
        names = [str(key).rsplit("-", 5)[0] for key in engine.who_has()]
        assert names.count("train_teacher") >= there.n_teachers
        assert {name for name in names if "teacher" in name} <= {"train_teacher", "about_teacher"}


def raise_plainly(cell):
    raise ValueError(f"plain {cell}")


def test_workers_of_other_versions_are_refused(dask_client, monkeypatch):
    client = dask_client
    from secretballot.teachers.executors import dask_cluster

    other = (("Python", "3.99.1"), ("numpy", "0.1"))
    monkeypatch.setattr(dask_cluster, "versions_here", lambda: other)
    answers = {"tcp://a:1": other, "tcp://b:2": (("Python", "3.99.1"), ("numpy", "7.0"))}
    monkeypatch.setattr(client, "run", lambda *args, **options: answers)
    said = "The worker tcp://b:2 has numpy 7.0 where this program has 0.1; install the same"
    with pytest.raises(DataError, match=said):
        fitted(DecisionTreeClassifier(), engine=client)
    answers["tcp://a:1"] = ModuleNotFoundError("No module named 'secretballot'")
    with pytest.raises(DataError, match="The worker tcp://a:1 cannot load this version"):
        fitted(DecisionTreeClassifier(), engine=client)


def test_two_threads_of_one_worker_do_not_meet():
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        for case in ("generators", "forest"):
            teacher, private, public = CASES[case]
            there = fitted(teacher, private, engine=client)
            assert (counts_of(there, public) == counts_of(fitted(teacher, private), public)).all()


@pytest.mark.parametrize("moment", ["training", "voting"])
def test_a_cluster_that_is_gone_ends_the_run(tmp_path, moment):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        teacher = TellsWhereItWorks(str(tmp_path))

        def leave(done, total):
            cluster.close()

        def run():
            there = fitted(teacher, engine=client, progress=leave if moment == "training" else None)
            leave(K, K)
            return counts_of(there)

        with pytest.raises(ResourceError, match="work on private rows ended because") as told:
            run()
        assert told.value.__context__ is None


def test_a_cluster_without_workers_is_refused(monkeypatch):
    from secretballot.teachers.executors import cluster

    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 1.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        distributed.Client(empty, set_as_default=False) as client,
        pytest.raises(ParameterError, match="has no worker after 1 seconds"),
    ):
        fitted(DecisionTreeClassifier(), engine=client)
