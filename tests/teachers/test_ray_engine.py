"""Ray as the engine, on two processors of a Ray that starts here."""

import os
from pathlib import Path

import pytest
from sklearn.tree import DecisionTreeClassifier

from engine_suite import MARKER, EngineSuite, fitted
from secretballot.exceptions import DataError
from secretballot.teachers import executors

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"  # it reports home otherwise
os.environ["RAY_AUTH_MODE"] = "disabled"  # it writes a token into the home folder otherwise
ray = pytest.importorskip("ray", reason="the extra secretballot[ray]")

# its own code warns of its future, and leaves files open for the collector
pytestmark = [
    pytest.mark.xdist_group("ray"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def running():
    patch = pytest.MonkeyPatch()
    # workers find the learners of the tests
    paths = [str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        log_to_driver=False,
        configure_logging=False,
        object_store_memory=10**8,
    )
    yield Path(ray.get_runtime_context().worker.node.get_session_dir_path())
    ray.shutdown()
    patch.undo()


class TestRay(EngineSuite):
    @pytest.fixture
    def engine(self, running):
        return "ray"

    @pytest.fixture
    def engine_to_break(self, engine, request, monkeypatch):
        # how many workers a task may end: each takes seconds to come back
        again = 0 if "again_and_again" in request.node.name else 1
        monkeypatch.setattr(executors, "_RAY_RETRIES", again)
        return engine

    def test_no_log_holds_a_private_cell(self, engine, running, capfd):
        self.private_marker_fit(engine)
        logs = [path for path in (running / "logs").rglob("*") if path.is_file()]
        assert logs
        assert not any(MARKER.encode() in path.read_bytes() for path in logs)
        assert MARKER not in "".join(capfd.readouterr())

    def test_nodes_of_other_versions_are_refused(self, engine, monkeypatch):
        monkeypatch.setattr(executors, "_versions_here", lambda: (("numpy", "0.1"),))
        with pytest.raises(DataError, match=r"A worker has numpy .* where this program has 0\.1"):
            fitted(DecisionTreeClassifier(), engine=engine)
