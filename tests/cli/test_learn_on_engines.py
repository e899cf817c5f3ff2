"""`secretballot learn` with an executor: a cluster trains and votes, or adds up records, and the
release has nothing of it."""

import pickle

import pytest

from patients import invoke, words_of_run, write_files

pytestmark = pytest.mark.xdist_group("dask")

VOTES = ["--n-teachers", "40", "--set", "n_queries=30", "--set", "mechanism=labels"]


@pytest.fixture
def address(dask_client):
    place = dask_client.scheduler.address
    return place.replace("tcp://", "dask://")


def learn(folder, *more):
    return invoke(*words_of_run(folder, *VOTES, *more))


def kept_teachers(vault):
    found = {}
    for path in (vault / "teachers").glob("*.teachers"):
        found |= pickle.loads(path.read_bytes().split(b"\n", 1)[1])
    return found


def test_a_run_on_a_cluster_is_the_run_of_one_machine(address, tmp_path):
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
