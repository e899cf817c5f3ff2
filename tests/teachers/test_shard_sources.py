"""Teachers are trained from whatever hands out shards one at a time."""

import os
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from secretballot.teachers import TeacherEnsemble, training
from secretballot.teachers.training import held_part

K, C = 7, 2
RNG = np.random.default_rng(3)
X, X_PUBLIC = RNG.normal(size=(140, 3)), RNG.normal(size=(30, 3))
Y = (X[:, 0] > 0).astype(np.int64)
SHARDS = np.arange(len(X)) % K


@dataclass(frozen=True)
class Files:
    """One file per shard; notes who read it."""

    folder: Path
    n_teachers: int
    travels: bool

    @classmethod
    def written(cls, folder: Path, travels: bool) -> "Files":
        for number in range(K):
            rows = number == SHARDS
            np.savez(folder / f"{number}.npz", X=X[rows], y=Y[rows])
        return cls(folder, K, travels)

    def part(self, number):
        (self.folder / f"read-{number}-by-{os.getpid()}").touch()
        with np.load(self.folder / f"{number}.npz") as file:
            return file["X"], file["y"]

    def loader(self, number, *, send):
        if self.travels and not send:
            return partial(self.part, number)
        return partial(held_part, *self.part(number))

    def readers(self) -> set[int]:
        return {int(path.name.split("-")[-1]) for path in self.folder.glob("read-*")}


def counts_of(ensemble):
    return ensemble.vote_counts(X_PUBLIC)._unseal()[0]


def in_memory():
    return TeacherEnsemble.fit(
        DecisionTreeClassifier(), X, Y, SHARDS, n_teachers=K, n_classes=C, random_state=5
    )


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("travels", [True, False])
def test_stored_shards_train_the_same_teachers(tmp_path, monkeypatch, travels, n_jobs):
    monkeypatch.setattr(training, "_WORTH_WORKERS", 0.0)
    monkeypatch.setattr(training, "_PILOT_SECONDS", 0.0)
    files = Files.written(tmp_path, travels)
    found = TeacherEnsemble.of_shards(
        DecisionTreeClassifier(), files, n_classes=C, random_state=5, n_jobs=n_jobs
    )
    assert (counts_of(found) == counts_of(in_memory())).all()
    # where the source travels the workers read; else nobody but this process does
    assert (files.readers() == {os.getpid()}) == (n_jobs == 1 or not travels)


def test_a_shard_that_cannot_be_read_is_no_vote(tmp_path):
    files = Files.written(tmp_path, True)
    (tmp_path / "4.npz").unlink()
    with pytest.raises(OSError, match=r"4\.npz"):
        TeacherEnsemble.of_shards(DecisionTreeClassifier(), files, n_classes=C)
