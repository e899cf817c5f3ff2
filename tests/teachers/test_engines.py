"""Words for engines, executors of this machine, and what a task does by itself."""

import pickle
import signal
import sys
import warnings
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from importlib.util import find_spec
from multiprocessing import get_context

import joblib
import numpy as np
import pytest
from joblib.externals.loky import get_reusable_executor
from sklearn.tree import DecisionTreeClassifier

from engine_suite import (
    CASES,
    CannotBePickled,
    CannotBeUnpickled,
    DiesOnSomeShards,
    EngineSuite,
    K,
    RunsOutOfMemory,
    counts_of,
    fitted,
    votes_are_those_of_one_machine,
)
from secretballot.exceptions import DataError, ParameterError, ResourceError
from secretballot.teachers import ensemble, executors
from secretballot.teachers.executors import (
    Workers,
    _Packed,
    _run_task,
    _versions_here,
    check_engine,
    workers_of,
)


@pytest.fixture(scope="module")
def pool():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as spawned:
        yield spawned


class TestProcesses(EngineSuite):
    """Processes that the standard library spawns."""

    @pytest.fixture
    def engine(self, pool):
        return pool

    @pytest.fixture
    def engine_to_break(self, request):
        if "costs_its_own_work" in request.node.name:
            pytest.skip("a pool that lost a process is given up: the run ends, and is repeated")
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as spawned:
            yield spawned

    @pytest.mark.parametrize("case", [case for case in CASES if case != "generators"])
    def test_the_votes_of_any_learner_are_those_of_one_machine(self, engine, case):
        votes_are_those_of_one_machine(case, engine)

    def test_a_vault_keeps_what_the_cluster_trained(self, engine, tmp_path):
        teacher, vault = DecisionTreeClassifier(), {"kept": (tmp_path, "these")}
        counts = counts_of(fitted(teacher, engine=engine, **vault))
        seen = []
        again = fitted(teacher, progress=lambda *done: seen.append(done), **vault)
        assert seen == [(K, K)]  # found, none trained
        there = fitted(teacher, engine=engine, **vault)
        assert (counts_of(again) == counts).all()
        assert (counts_of(there) == counts).all()

    def test_no_output_holds_a_private_cell(self, engine, capfd):
        self.private_marker_fit(engine)
        assert "Ada" not in "".join(capfd.readouterr())


def test_processes_of_this_machine_are_deaf_to_ctrl_c_serve_joblib_too_and_end_the_run_with_one(
    monkeypatch,
):
    monkeypatch.setattr(ensemble, "_VOTES_HERE", -1)
    powers = partial(
        joblib.Parallel(n_jobs=2), [joblib.delayed(pow)(number, 2) for number in range(3)]
    )
    assert powers() == [0, 1, 4]
    get_reusable_executor().shutdown(wait=True)  # joblib's own processes listen
    workers = workers_of("local", 2)
    # from their first moment
    assert list(workers.results(ctrl_c_is_ignored, [()] * 4)) == [True] * 4
    assert not ctrl_c_is_ignored()
    teacher, private, public = CASES["generators"]
    there = fitted(teacher, private, n_jobs=2)
    assert (counts_of(there, public) == counts_of(fitted(teacher, private), public)).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the pool's
        with pytest.raises(ResourceError, match="a worker process ended") as told:
            fitted(DiesOnSomeShards(), n_jobs=2)
    assert told.value.__cause__ is told.value.__context__ is None
    with pytest.raises(ResourceError, match="failed with ValueError") as told:
        fitted(CannotBeUnpickled(), n_jobs=2)
    assert "77" not in f"{told.value} {told.value.__cause__} {told.value.__context__}"
    assert powers() == [0, 1, 4]


@pytest.mark.parametrize("case", ["generators", "forest"])
def test_threads_of_one_process_do_not_meet(monkeypatch, case):
    monkeypatch.setattr(ensemble, "_VOTES_HERE", -1)
    teacher, private, public = CASES[case]
    with ThreadPoolExecutor(3) as pool:
        there = fitted(teacher, private, engine=pool)
        assert (counts_of(there, public) == counts_of(fitted(teacher, private), public)).all()
        with pytest.raises(ResourceError, match="because memory ran out"):
            fitted(RunsOutOfMemory(), engine=pool)


@pytest.mark.parametrize("engine", ["dask://host:99999", "ray://host:1", b"local", None, "spark"])
def test_what_names_no_engine_is_refused(engine):
    with pytest.raises(
        ParameterError, match=r"executor is .*; it must be 'local', 'dask://HOST:PORT'"
    ):
        fitted(DecisionTreeClassifier(), engine=engine)
    with pytest.raises(ParameterError, match=r"n_jobs is 2; .* none beside an engine"):
        check_engine("ray", n_jobs=2)


def test_no_ray_is_started(monkeypatch):
    ray = pytest.importorskip("ray", reason="the extra secretballot[ray]")
    addresses = []

    def init(**options):
        addresses.append(options["address"])
        raise ConnectionError("none runs")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(ParameterError, match=r"no Ray with a worker answers .*`ray start --head`"):
        fitted(DecisionTreeClassifier(), engine="ray")
    assert addresses == ["auto"]  # an address never starts one


def task_of(*call):
    return _Packed.of((call[0], call[1:]))


def fail(kind):
    raise {"data": DataError, "memory": MemoryError, "else": KeyError, "exit": SystemExit}[kind](
        "Ada" if kind != "data" else "It does not fit."
    )


def test_a_task_returns_its_trouble_and_never_raises():
    here, nothing = _versions_here(), _Packed.of(())
    assert _run_task(here, task_of(divmod, 7, 2), nothing).value() == (3, 1)
    assert _run_task(here, task_of(divmod, 7), _Packed.of((2,))).value() == (3, 1)
    assert ("torch" in dict(here)) == (find_spec("torch") is not None)
    found = _run_task((("numpy", "0.1"),), task_of(divmod, 7, 2), nothing)
    assert str(found) == (
        f"A worker has numpy {np.__version__} where this program has 0.1; install the same"
        " versions on every worker."
    )
    assert repr(_run_task(here, task_of(fail, "data"), nothing)) == "DataError('It does not fit.')"
    for kind in ("memory", "else", "exit"):
        found = _run_task(here, task_of(fail, kind), nothing)
        assert type(found) is ResourceError
        assert "Ada" not in str(found)
    # what is no pickle, and what cannot become one
    found = _run_task(here, _Packed(b"Ada"), nothing)
    assert "Ada" not in str(found)
    found = _run_task(here, task_of(iter_of_nothing), nothing)
    assert type(found) is DataError


def iter_of_nothing():
    return (one for one in ())


def test_what_is_packed_shows_nothing_and_comes_out_writable():
    packed = pickle.loads(pickle.dumps(_Packed.of(np.arange(3.0))))
    assert repr(packed) == "Packed(<private>)"
    assert packed.value().flags.writeable
    assert sys.getsizeof(packed) > 100
    with pytest.raises(DataError, match="cannot be pickled") as caught:
        _Packed.of(CannotBePickled().fit(None, [0]))
    assert caught.value.__context__ is None


def test_workers_that_stay_away_end_the_run(monkeypatch):
    monkeypatch.setattr(executors, "_LOOK_SECONDS", 0.05)

    class Nobody(ThreadPoolExecutor):
        def submit(self, *args):
            return Future()

    waiting = Workers(Nobody, 1, alive=lambda: False)
    with pytest.raises(ResourceError, match="the cluster has no worker left"):
        list(waiting.results(divmod, [(7, 2)]))


def test_an_executor_that_fails_ends_the_run_without_its_words():
    class KilledWorker(Exception):  # noqa: N818 - as Dask's is called
        pass

    class Broken(ThreadPoolExecutor):
        def submit(self, *args):
            raise KilledWorker("Ada")

    with pytest.raises(ResourceError, match="ended its worker again and again") as caught:
        fitted(DecisionTreeClassifier(), engine=Broken(1))
    assert caught.value.__context__ is None
    assert "Ada" not in str(caught.value)


def ctrl_c_is_ignored():
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN
