"""Words for engines, and what a task does without a cluster around it."""

import pickle
import sys

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from engine_suite import CannotBePickled, counts_of, fitted
from secretballot.exceptions import DataError, ParameterError, ResourceError
from secretballot.teachers.executors import check_engine, cluster, ray_cluster
from secretballot.teachers.executors.cluster import check_versions
from secretballot.teachers.executors.remote import RemoteTeachers
from secretballot.teachers.executors.tasks import (
    Packed,
    Trouble,
    add_counts,
    train_teacher,
    versions_here,
    vote,
)
from secretballot.teachers.training import OneShard, Recipe, Shards


@pytest.mark.parametrize(
    "engine", ["dask://host:99999", "ray://host", b"local", None, 3, "dask://host"]
)
def test_what_names_no_engine_is_refused(engine):
    with pytest.raises(
        ParameterError, match=r"engine is .*; it must be 'local', 'dask://HOST:PORT'"
    ):
        fitted(DecisionTreeClassifier(), engine=engine)


def test_shards_are_sent_to_a_cluster_alone():
    check_engine("ray", send_shards=True)
    with pytest.raises(ParameterError, match="send_shards is given without a cluster"):
        check_engine("local", send_shards=True)
    with pytest.raises(ParameterError, match="send_shards is 'yes'; it must be True or False"):
        check_engine("ray", send_shards="yes")


class SlowCluster:
    """Finishes one task at a time; notes how many waited at most."""

    n_slots = 2

    def __init__(self):
        self.waiting, self.most = 0, 0

    def submit_training(self, work, *args):
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        return object(), (self.waiting, work, args)

    def some_done(self, refs):
        self.waiting -= 1
        return refs[:1]

    def result(self, ref):
        _, work, args = ref
        return work(*args)[1]

    def cancel(self, refs):
        raise AssertionError("nothing is left")


def test_few_shards_are_read_ahead_of_those_that_are_trained():
    read = []

    class Noted(Shards):
        travels = True

        def sent(self, number):
            read.append(number)
            return super().sent(number)

    parts = Noted(np.arange(400.0)[:, None], np.arange(400) % 2, np.arange(400) // 2, 200)
    cluster = SlowCluster()
    remote = RemoteTeachers(cluster, 200)
    ahead = [
        len(read) - place
        for place, _ in enumerate(
            remote.train(Recipe.of(DecisionTreeClassifier(), 0), parts, range(200), send=True), 1
        )
    ]
    assert sorted(read) == list(range(200))
    assert max(ahead) < cluster.most == 24  # eight for each of two slots, and eight


def test_no_client_of_dask_in_this_process():
    pytest.importorskip("distributed", reason="the extra secretballot[dask]")
    with pytest.raises(ParameterError, match="no client of Dask runs in this program"):
        fitted(DecisionTreeClassifier(), engine="dask")


def test_a_ray_that_nobody_listens_for_is_refused(monkeypatch):
    ray = pytest.importorskip("ray", reason="the extra secretballot[ray]")
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(ParameterError, match=r"engine is 'ray://127\.0\.0\.1:9', where nobody"):
        fitted(DecisionTreeClassifier(), engine="ray://127.0.0.1:9")


def test_no_ray_is_started(monkeypatch):
    ray = pytest.importorskip("ray", reason="the extra secretballot[ray]")
    asked = []

    def init(**options):
        asked.append(options["address"])
        raise ConnectionError("none runs")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray_cluster, "_recorded_address", lambda: "auto")
    with pytest.raises(ParameterError, match=r"no Ray answers .*start one with `ray start --head`"):
        fitted(DecisionTreeClassifier(), engine="ray")
    assert asked == ["auto"]  # an address never starts one
    monkeypatch.setenv("RAY_ADDRESS", "local")
    with pytest.raises(ParameterError, match="RAY_ADDRESS=local, which would start a Ray"):
        fitted(DecisionTreeClassifier(), engine="ray")
    # one that died and is still on record
    monkeypatch.delenv("RAY_ADDRESS")
    monkeypatch.setattr(ray_cluster, "_recorded_address", lambda: "127.0.0.1:9")
    with pytest.raises(ParameterError, match=r"stands for 127\.0\.0\.1:9, where nobody listens"):
        fitted(DecisionTreeClassifier(), engine="ray")
    assert asked == ["auto"]


def test_versions_that_differ_are_named():
    here = (("Python", "3.11.7"), ("numpy", "2.4"))
    check_versions(here, [("w1", here)])
    other = (("Python", "3.12.1"), ("numpy", "2.5"))
    said = "The worker w2 has Python 3.12.1 where this program has 3.11.7 and numpy 2.5 where"
    with pytest.raises(DataError, match=said):
        check_versions(here, [("w1", here), ("w2", other)])
    with pytest.raises(DataError, match="The worker w3 cannot load this version of secretballot"):
        check_versions(here, [("w3", None)])


def task_of(teacher, X, y, number=0):
    return Packed.of((Recipe.of(teacher, 0), OneShard(X, y))), number


X, Y = np.array([[0.0], [1.0]]), np.array([0, 1])


def test_a_task_tells_its_trouble_and_never_raises():
    here = versions_here()
    model, trouble = train_teacher(here, *task_of(DecisionTreeClassifier(), X, Y))
    assert trouble is None
    assert model.value().predict(X).tolist() == [0, 1]
    model, trouble = train_teacher(here, *task_of(CannotBePickled(), X, Y))
    assert model is None
    assert isinstance(trouble.error(), DataError)
    model, trouble = train_teacher((("numpy", "0.1"),), *task_of(DecisionTreeClassifier(), X, Y))
    assert trouble.sentence == (
        f"A worker has numpy {np.__version__} where this program has 0.1; install the same"
        " versions on every worker."
    )
    # what is no pickle: nothing of the error is told but its kind
    model, trouble = train_teacher(here, Packed(b"Ada"), 0)
    assert model is None
    assert isinstance(trouble.error(), ResourceError)
    assert "Ada" not in trouble.sentence


def test_votes_that_cannot_be_counted_are_trouble_and_stay_so_in_a_sum():
    here = versions_here()
    about = Packed.of((2, 10, 0, {}))
    counts = vote(here, about, Packed.of(X), [0, 1], Packed.of(None), (Packed.of(None), None))
    assert counts.tolist() == [[1, 1], [1, 1]]
    trouble = vote(here, about, Packed(b"no points"), [0], Packed.of(None))
    assert isinstance(trouble, Trouble)
    assert add_counts(counts, trouble, counts) is trouble
    assert add_counts(counts, counts).tolist() == [[2, 2], [2, 2]]
    assert counts.tolist() == [[1, 1], [1, 1]]  # an engine may hold it still


def test_what_is_packed_shows_nothing_and_comes_out_writable():
    packed = pickle.loads(pickle.dumps(Packed.of(np.arange(3.0))))
    assert repr(packed) == "Packed(<private>)"
    assert packed.value().flags.writeable
    assert sys.getsizeof(packed) > 100


def test_a_cluster_whose_workers_stay_away_ends_the_run(monkeypatch):
    distributed = pytest.importorskip("distributed", reason="the extra secretballot[dask]")
    from secretballot.teachers.executors import dask_cluster

    monkeypatch.setattr(cluster, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(cluster, "WORKERLESS_SECONDS", 0.5)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        distributed.Client(empty, set_as_default=False) as client,
    ):
        waiting = dask_cluster.DaskCluster(client)
        ref = waiting.submit(versions_here)
        with pytest.raises(ResourceError, match="the Dask cluster has no worker left"):
            waiting.some_done([ref])


def test_the_engine_of_this_machine_is_the_default():
    assert (
        counts_of(fitted(DecisionTreeClassifier()))
        == counts_of(fitted(DecisionTreeClassifier(), engine="local", n_jobs=1))
    ).all()
