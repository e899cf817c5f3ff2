"""`secretballot learn` with an executor: a cluster trains and votes, or adds up records, and the
release has nothing of it."""

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from patients import invoke, words_of_run, write_files
from typer.testing import Result

from secretballot.teachers import executors

pytestmark = pytest.mark.xdist_group("dask")

VOTES = ["--n-teachers", "40", "--set", "n_queries=30", "--set", "mechanism=labels"]


@pytest.fixture
def address(dask_client: Any) -> str:
    place: str = dask_client.scheduler.address
    return place.replace("tcp://", "dask://")


def learn(folder: Path, *more: str) -> Result:
    return invoke(*words_of_run(folder, *VOTES, *more))


def kept_teachers(vault: Path) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for path in (vault / "teachers").glob("*.teachers"):
        found |= pickle.loads(path.read_bytes().split(b"\n", 1)[1])
    return found


def test_a_run_on_a_cluster_is_the_run_of_one_machine(address: str, tmp_path: Path) -> None:
    folder = write_files(tmp_path, 800)
    there = learn(folder, "--set", f"executor={address}", "--json")
    assert there.exit_code == 0, there.stderr
    certificate = (folder / "out/release/certificate.json").read_bytes()
    assert address.encode() not in b"".join(
        path.read_bytes() for path in (folder / "out/release").rglob("*") if path.is_file()
    )
    # every teacher came back to the vault, for a run that was interrupted
    assert set(kept_teachers(folder / "out/vault")) == set(range(40))
    # the engine is no part of what the run is: the same command elsewhere takes this one up
    again = learn(folder, "--set", "n_jobs=2", "--json")
    assert again.exit_code == 0, again.stderr
    assert (folder / "out/release/certificate.json").read_bytes() == certificate
    assert invoke("verify", str(folder / "out/release")).exit_code == 0


def test_moments_are_added_up_by_the_cluster(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executors, "_CONNECT_SECONDS", 1.0)
    words = words_of_run(write_files(tmp_path, 400), unit=True)
    nobody = invoke(*words, "--set", "executor=dask://127.0.0.1:1")
    assert nobody.exit_code == 2
    assert "no Dask with a worker answers" in nobody.stderr
    there = invoke(*words, "--set", f"executor={address}", "--json")
    assert there.exit_code == 0, there.stderr
    assert json.loads(there.stdout)["method"] == "record-moments"
    assert invoke("verify", str(tmp_path / "out/release")).exit_code == 0
