"""The power fails before a run says that it ended: all of it is on the disk. What is lost from a
release all the same is made again by the same command, unpaid, to the last byte."""

import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from patients import invoke
from secretballot.core.ledger import Ledger

CLASSES = ["--classes", "no,yes"]
METHODS = {
    "label": [*CLASSES, "--kind", "counts"],
    "votes": [*CLASSES, "--target", "y", "--drop", "z", "--method", "pate"],
    "moments": [*CLASSES, "--target", "y", "--drop", "z", "--method", "record-moments"],
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
    verb = "label" if method == "label" else "learn"
    tables = [str(world / "private.csv"), str(world / "public.csv")]
    words = [str(world / "counts.csv")] if verb == "label" else tables
    words += METHODS[method] + ["--epsilon", "4", "--ledger", str(world / "d.ledger")]
    words += ["--total", "9,1e-4", "--delta", "1e-5"]
    words += ["--n-teachers", "12"] if method == "votes" else []
    out = ["--out", str(world / "deep" / "out"), "--json"]
    return invoke(verb, *words, *out, "--confirm", "records,teachers,noise,target", *more)


def contents(world):
    release = world / "deep" / "out" / "release"
    return {path.name: path.read_bytes() for path in release.iterdir()}


@pytest.mark.parametrize("method", METHODS)
def test_a_power_cut_takes_nothing_and_what_is_lost_all_the_same_is_made_again_unpaid(
    world, monkeypatch, method
):
    lost, more = [], [] if method == "votes" else ["--set", "exclude=report"]
    with monkeypatch.context() as patched:
        disk = Disk(patched)
        screens = sys.modules["secretballot.cli.screens"]
        patched.setattr(screens, "print_json", lambda *_: lost.extend(disk.lost(world / "deep")))
        done = run(method, world, *more)
        top = disk.lost(world)
    assert done.exit_code == 0, done.stderr
    assert (lost, disk.named_too_early) == ([], [])
    assert f"{world / 'deep'}: name" not in top

    before, paid = contents(world), Ledger.open_existing(world / "d.ledger").history()
    release = world / "deep" / "out" / "release"
    for name in before:
        (release / name).write_bytes(b"")
    assert "elsewhere, that folder alone" in run(method, world, *more).stdout
    release.rename(world / "moved")
    again = run(method, world, *more)
    assert again.exit_code == 0, again.stderr
    assert contents(world) == before
    assert Ledger.open_existing(world / "d.ledger").history() == paid
