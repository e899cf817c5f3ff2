"""What was paid for is never lost: whatever stops the release from being written, the same
command finds the answer."""

import errno
import json

import numpy as np
import pytest

from patients import invoke
from secretballot.core.ledger import Ledger
from secretballot.exceptions import DataError
from secretballot.report.certificate.build import certificate_digest
from secretballot.runs import run as any_run

TROUBLES = {
    "refused": lambda: DataError("The release cannot be written: Permission denied."),
    "full": lambda: OSError(errno.ENOSPC, "No space left on device"),
    "defect": lambda: RuntimeError("a defect of a cell"),
}


CODES = {"refused": 2, "full": 7, "defect": 1}
# methods differ in what is kept alone: one trouble is enough for each
CASES = [*(("label", trouble) for trouble in TROUBLES), ("learn", "refused"), ("choose", "full")]


@pytest.fixture
def world(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "counts.npy", np.tile([2, 38], (30, 1)))
    rows = "\n".join(f"{x:.3f},{'yes' if x > 0.5 else 'no'}" for x in rng.random(240))
    (tmp_path / "private.csv").write_text(f"x,y\n{rows}\n")
    (tmp_path / "public.csv").write_text(
        "x\n" + "\n".join(f"{x:.3f}" for x in rng.random(40)) + "\n"
    )
    return tmp_path


def run(verb, world, *more):
    tables = [str(world / "private.csv"), str(world / "public.csv"), "--target", "y"]
    tables += ["--classes", "no,yes"]
    words = {
        "label": [str(world / "counts.npy"), "--kind", "counts", "--classes", "a,b"],
        "learn": [*tables, "--n-teachers", "12", "--set", "n_queries=10"],
        "choose": [*tables, "--set", "hypotheses=thresholds"],
    }[verb]
    words += ["--epsilon", "1", "--total", "1.5,1.5e-5", "--confirm", "records,noise"]
    words += [] if verb == "choose" else ["--delta", "1e-5"]
    verb = "label" if verb == "label" else "learn"
    return invoke(verb, *words, "--out", str(world / "out"), *more)


def shared_ledger(world):
    """Make a ledger that admits one run and no second one; return the options that name it."""
    words = ["create", str(world / "shared.ledger"), "--dataset", "d", "--total", "1.5,1.5e-5"]
    assert invoke("ledger", *words).exit_code == 0
    return ["--ledger", str(world / "shared.ledger"), "--dataset", "d"]


@pytest.mark.parametrize(("verb", "trouble"), CASES)
def test_a_release_that_could_not_be_written_is_written_by_the_same_command(
    world, monkeypatch, verb, trouble
):
    # one account or the other in turn
    shared = trouble in ("full", "defect")
    more = shared_ledger(world) if shared else []
    beside = "counts.npy.ledger" if verb == "label" else "private.csv.ledger"
    path = world / ("shared.ledger" if shared else beside)

    def stop(*_, **__):
        raise TROUBLES[trouble]()

    with monkeypatch.context() as broken:
        broken.setattr(any_run, "publish", stop)
        failed = run(verb, world, *more)
    assert failed.exit_code == CODES[trouble], failed.stderr
    assert len([one for one in failed.stderr.splitlines() if one.startswith("secretballot: ")]) == 1
    assert "of a cell" not in failed.output
    assert "Traceback" not in failed.output
    [paid] = Ledger.open_existing(path).history()
    assert paid.state == "committed"

    again = run(verb, world, *more, "--json")
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout)["resumed"] is True
    assert Ledger.open_existing(path).history() == [paid]
    assert invoke("verify", str(world / "out")).exit_code == 0


@pytest.mark.parametrize("verb", ["label", "learn"])
def test_a_finished_run_that_is_repeated_does_nothing_and_says_where_its_release_is(world, verb):
    assert run(verb, world).exit_code == 0
    before = {path: path.stat().st_mtime_ns for path in (world / "out").rglob("*")}
    again = run(verb, world, "--json")
    assert again.exit_code == 0, again.stderr
    document = json.loads(again.stdout)
    assert document["certificate"] == str(world / "out" / "release" / "certificate.json")
    assert "finished already: nothing was done and nothing was spent" in document["notes"][0]
    lines = run(verb, world)
    assert lines.exit_code == 0
    assert str(world / "out" / "release") in lines.stdout
    assert {path: path.stat().st_mtime_ns for path in (world / "out").rglob("*")} == before

    other = run(verb, world, "--set", "random_state=1")
    assert other.exit_code == 2
    assert "holds a finished run" in other.stderr


def test_a_finished_run_whose_certificate_was_forged_is_not_done_again(world):
    assert run("learn", world).exit_code == 0
    certificate = world / "out" / "release" / "certificate.json"
    own = {**json.loads(certificate.read_text()), "public": {"chosen": []}}
    for forged in (own, {"released": []}):
        certificate.write_text(json.dumps(forged | {"digest": certificate_digest(forged)}))
        result = run("learn", world)
        assert (result.exit_code, result.stdout) == (4, ""), result.stderr
        assert "finished already" not in result.stderr
    assert len(Ledger.open_existing(world / "private.csv.ledger").history()) == 1
