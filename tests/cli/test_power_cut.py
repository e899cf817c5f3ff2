"""What was paid for is never lost: whatever stops the release from being written, the same
command finds the answer. Where the power fails before a run says that it ended, all of it is on the
disk; what is lost from a release all the same is made again, unpaid, to the last byte."""

import errno
import json
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from patients import invoke
from secretballot.core.ledger import Ledger
from secretballot.exceptions import DataError
from secretballot.report.certificate import certificate_digest
from secretballot.runs import run as any_run

CLASSES = ["--classes", "no,yes"]
METHODS = {
    "label": [*CLASSES, "--kind", "counts"],
    "votes": [*CLASSES, "--target", "y", "--drop", "z", "--method", "pate"],
    "moments": [*CLASSES, "--target", "y", "--drop", "z", "--method", "record-moments"],
    "choose": [*CLASSES, "--target", "y", "--drop", "b,z", "--set", "hypotheses=thresholds"],
}
#: Nothing is ever read from it.
EMPTY_BY_RULE = {"run.lock"}


class Disk:
    """What is on the disk: contents of files and names in folders, as they were when synced.

    A ledger's file is synced by SQLite, which is not seen here.
    """

    def __init__(self, monkeypatch):
        self._contents = {}
        self._names = {}
        self.named_too_early = []
        for name in ("fsync", "fdatasync"):
            monkeypatch.setattr(os, name, self._noted(getattr(os, name)))
        for name in ("rename", "replace", "link"):
            monkeypatch.setattr(os, name, self._looked_at(getattr(os, name)))

    def _noted(self, sync):
        def note(handle):
            sync(handle)
            found = os.fstat(handle)
            if os.path.isdir(handle):
                with os.scandir(handle) as entries:
                    self._names[found.st_ino] = {entry.name: entry.inode() for entry in entries}
            else:
                self._contents[found.st_ino] = (found.st_size, found.st_mtime_ns)

        return note

    def _looked_at(self, give_name):
        def look(place, name, **more):
            if "__pycache__" not in Path(place).parts:  # of an import that comes first here
                self.named_too_early += [*self.lost(Path(place))]
            give_name(place, name, **more)

        return look

    def lost(self, place):
        """Return what a power cut would take of a file or a folder."""
        found = place.stat()
        if place.is_dir():
            names = self._names.get(found.st_ino, {})
            lost = [f"{one}: name" for one in place.iterdir() if names.get(one.name) != inode(one)]
            return lost + [part for one in place.iterdir() for part in self.lost(one)]
        kept = self._contents.get(found.st_ino) == (found.st_size, found.st_mtime_ns)
        by_sqlite = ".ledger" in place.name and place.parent.name != "ledgers"
        return [] if kept or by_sqlite or place.name in EMPTY_BY_RULE else [f"{place}: content"]


def inode(place):
    return place.stat().st_ino


@pytest.fixture
def world(tmp_path):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 900)).round(3)
    yes = np.where(a + b > 0, "yes", "no")
    table = pd.DataFrame({"a": a, "b": b, "y": yes, "z": np.where(a > 0, "yes", "no")})
    table[:800].to_csv(tmp_path / "private.csv", index=False)
    table[800:][["a", "b"]].to_csv(tmp_path / "public.csv", index=False)
    np.savetxt(tmp_path / "counts.csv", np.tile([2, 38], (30, 1)), fmt="%d", delimiter=",")
    return tmp_path


def run(method, world, *more):
    """Run a command that an account admits once."""
    verb = "label" if method == "label" else "learn"
    tables = [str(world / "private.csv"), str(world / "public.csv")]
    words = [str(world / "counts.csv")] if verb == "label" else tables
    words += METHODS[method] + ["--epsilon", "4", "--ledger", str(world / "d.ledger")]
    words += ["--total", "6,1.5e-5"] + ([] if method == "choose" else ["--delta", "1e-5"])
    words += ["--n-teachers", "12"] if method == "votes" else []
    out = ["--out", str(world / "deep" / "out")]
    return invoke(verb, *words, *out, "--confirm", "records,teachers,noise,target", *more)


def paid(world):
    return Ledger.open_existing(world / "d.ledger").history()


def contents(world):
    release = world / "deep" / "out" / "release"
    return {path.name: path.read_bytes() for path in release.iterdir()}


@pytest.mark.parametrize("method", ["label", "votes", "moments"])
def test_a_power_cut_takes_nothing_and_what_is_lost_all_the_same_is_made_again_unpaid(
    world, monkeypatch, method
):
    lost, more = [], ["--json", *([] if method == "votes" else ["--set", "exclude=report"])]
    with monkeypatch.context() as patched:
        disk = Disk(patched)
        screens = sys.modules["secretballot.cli.screens"]
        patched.setattr(screens, "print_json", lambda *_: lost.extend(disk.lost(world / "deep")))
        done = run(method, world, *more)
        top = disk.lost(world)
    assert done.exit_code == 0, done.stderr
    assert (lost, disk.named_too_early) == ([], [])
    assert f"{world / 'deep'}: name" not in top

    before, bought = contents(world), paid(world)
    release = world / "deep" / "out" / "release"
    for name in before:
        (release / name).write_bytes(b"")
    assert "elsewhere, that folder alone" in run(method, world, *more).stdout
    release.rename(world / "moved")
    again = run(method, world, *more)
    assert again.exit_code == 0, again.stderr
    assert contents(world) == before
    assert paid(world) == bought


TROUBLES = {
    "refused": (2, DataError("The release cannot be written: Permission denied.")),
    "full": (7, OSError(errno.ENOSPC, "No space left on device")),
    "defect": (1, RuntimeError("a defect of a cell")),
}
# methods differ in what is kept alone: one trouble is enough for each
CASES = [*(("label", trouble) for trouble in TROUBLES), ("votes", "refused"), ("choose", "full")]


@pytest.mark.parametrize(("method", "trouble"), CASES)
def test_a_release_that_could_not_be_written_is_written_by_the_same_command(
    world, monkeypatch, method, trouble
):
    code, error = TROUBLES[trouble]

    def stop(*_, **__):
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(any_run, "publish", stop)
        failed = run(method, world)
    assert failed.exit_code == code, failed.stderr
    assert len([one for one in failed.stderr.splitlines() if one.startswith("secretballot: ")]) == 1
    assert "of a cell" not in failed.output
    assert "Traceback" not in failed.output
    [bought] = paid(world)
    assert bought.state == "committed"
    again = run(method, world, "--json")
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout)["resumed"] is True
    assert paid(world) == [bought]
    assert invoke("verify", world / "deep" / "out").exit_code == 0


def test_a_finished_run_that_is_repeated_does_nothing_unless_its_certificate_was_forged(world):
    out = world / "deep" / "out"
    assert run("label", world).exit_code == 0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    again = run("label", world, "--json")
    assert again.exit_code == 0, again.stderr
    document, certificate = json.loads(again.stdout), out / "release" / "certificate.json"
    assert document["certificate"] == str(certificate)
    assert "finished already: nothing was done and nothing was spent" in document["notes"][0]
    assert str(out / "release") in run("label", world).stdout
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    other = run("label", world, "--set", "random_state=1")
    assert other.exit_code == 2
    assert "holds a finished run" in other.stderr

    own = {**json.loads(certificate.read_text()), "public": {"chosen": []}}
    for forged in (own, {"released": []}):
        certificate.write_text(json.dumps(forged | {"digest": certificate_digest(forged)}))
        result = run("label", world)
        assert (result.exit_code, result.stdout) == (4, ""), result.stderr
        assert "finished already" not in result.stderr
    assert len(paid(world)) == 1
