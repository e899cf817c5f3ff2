import hashlib
import os
import pickle
import stat

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin

from ensembles import ensemble_of
from secretballot import vault
from secretballot.exceptions import DataError
from secretballot.teachers.ensemble import _TeacherStore

K = 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 3))
Y = (X[:, 0] > 0).astype(int)
SHARDS = np.arange(90) % K

fits = []


class Counted(ClassifierMixin, BaseEstimator):
    """Counts its fits, and is interrupted at the one it is told."""

    def __init__(self, stop_at=None):
        self.stop_at = stop_at

    def fit(self, X, y):
        if STOP and len(fits) == STOP[0]:
            raise KeyboardInterrupt
        fits.append(len(y))
        self.mean_ = X.mean()
        return self

    def predict(self, X):
        return (X[:, 0] > self.mean_).astype(int)


STOP = []


@pytest.fixture(autouse=True)
def no_fits():
    fits.clear()
    STOP.clear()


def run(folder, teacher=None, fingerprint="data of May", labels=Y, **options):
    settings = {"n_teachers": K, "n_classes": 2, **options}
    ensemble = ensemble_of(
        teacher or Counted(), X, labels, SHARDS, kept=(folder, fingerprint), **settings
    )
    return ensemble.vote_counts(X)._unseal()[0]


def files(folder):
    return sorted((folder / "teachers").iterdir())


def test_finished_teachers_are_reused_also_one_that_cannot_be_trained(tmp_path):
    (tmp_path / "vault").mkdir(mode=0o755)
    labels = np.where(SHARDS == 2, 1, Y)
    first = run(tmp_path / "vault", labels=labels)
    assert len(fits) == K - 1
    np.testing.assert_array_equal(run(tmp_path / "vault", labels=labels), first)
    assert len(fits) == K - 1
    (path,) = files(tmp_path / "vault")
    modes = [stat.S_IMODE(one.stat().st_mode) for one in (tmp_path / "vault", path.parent, path)]
    assert modes == [0o700, 0o700, 0o600]


def test_interrupted_run_resumes_where_it_stopped(tmp_path):
    STOP.append(4)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "vault")
    STOP.clear()
    assert len(fits) == 4
    resumed = run(tmp_path / "vault")
    assert len(fits) == K
    np.testing.assert_array_equal(resumed, run(tmp_path / "other"))


@pytest.mark.parametrize(
    "other",
    [
        {"fingerprint": "data of June"},
        {"n_teachers": K + 1},
        {"n_classes": 3},
        {"random_state": 1},
        {"teacher": Counted(stop_at=3)},
    ],
)
def test_teachers_of_another_run_are_left_alone(tmp_path, other):
    run(tmp_path / "vault")
    run(tmp_path / "vault", **other)
    assert len(fits) == 2 * K


@pytest.mark.parametrize(
    "change",
    [
        lambda content: b"",
        lambda content: content[:-7],
        lambda content: content[: len(content) // 2] + b"x" + content[len(content) // 2 + 1 :],
        lambda content: b"garbage\n" + content,
        lambda content: b"[]\n" + content.partition(b"\n")[2],
    ],
)
def test_damaged_file_counts_as_absent(tmp_path, change):
    first = run(tmp_path / "vault")
    (path,) = files(tmp_path / "vault")
    path.write_bytes(change(path.read_bytes()))
    np.testing.assert_array_equal(run(tmp_path / "vault"), first)
    assert len(fits) == 2 * K


class Trap:
    """Runs when unpickled."""

    def __reduce__(self):
        return os.mkdir, ("sprung",)


def _plant(path):
    """Replace the teachers by a trap whose digest agrees, as someone with write access could."""
    header, _, _ = path.read_bytes().partition(b"\n")
    payload = pickle.dumps(Trap())
    binding, _ = header.split()
    digest = hashlib.sha256(payload).hexdigest().encode()
    path.write_bytes(binding + b" " + digest + b"\n" + payload)


@pytest.mark.parametrize("unfit", ["others could write it", "a link", "another user's"])
def test_file_that_others_could_have_written_is_never_unpickled(tmp_path, monkeypatch, unfit):
    monkeypatch.chdir(tmp_path)
    run(tmp_path / "vault")
    path = files(tmp_path / "vault")[0]
    _plant(path)
    if unfit == "another user's":
        kept, mine = _TeacherStore(tmp_path / "vault", "binding"), os.geteuid()
        with monkeypatch.context() as patch:
            patch.setattr(os, "geteuid", lambda: mine + 1)
            assert kept.load() == {}
            with pytest.raises(DataError, match="others own it"):
                vault.read_secret(path, own=True)
        assert not (tmp_path / "sprung").exists()
        return
    if unfit == "a link":
        path.rename(tmp_path / "elsewhere")
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.chmod(0o622)
    run(tmp_path / "vault")
    assert not (tmp_path / "sprung").exists()
    _plant(files(tmp_path / "vault")[0])
    run(tmp_path / "vault")
    assert (tmp_path / "sprung").exists()  # the trap works; only that held it


def test_learner_that_cannot_be_pickled_is_trained_again(tmp_path):
    class Local(Counted):
        pass

    first = run(tmp_path / "vault", teacher=Local())
    np.testing.assert_array_equal(run(tmp_path / "vault", teacher=Local()), first)
    assert len(fits) == 2 * K


def test_disk_trouble_is_one_sentence(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    vault.make_vault(tmp_path / "vault" / "teachers")
    monkeypatch.setattr(vault.os, "fsync", full)
    with pytest.raises(DataError, match="No space left on device"):
        run(tmp_path / "vault")
    assert files(tmp_path / "vault") == []
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be used"):
        run(tmp_path / "file" / "vault")
