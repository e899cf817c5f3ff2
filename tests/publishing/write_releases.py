"""Write releases of every kind; run, in a process with a heap, a private table and global states of
its own."""

import gc
import os
import pickle
import random
import sys
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

import secretballot as sb
from secretballot.publishing.release import publish, write_release
from secretballot.students import NoisyCountsClassifier, VotingStudent

STUDENTS = (
    VotingStudent(n_estimators=3),
    RandomForestClassifier(3),
    KNeighborsClassifier(algorithm="kd_tree"),
    MLPClassifier((2,), max_iter=300, tol=1.0),
    NoisyCountsClassifier(n_landmarks=10),
    LogisticRegression(),
)


def write(given, out, private):
    """Write the releases whose jobs are given, and fitted learners; a number is private."""
    jobs, labels, points, account = pickle.loads(given.read_bytes())
    # the same values, lying otherwise in memory
    lying = np.asfortranarray if private % 2 else np.asarray
    for name, job in jobs.items():
        publish(out / name, replace(job, X_public=lying(job.X_public)))
    without = ["report"]
    unseeded = RandomForestClassifier(4)
    write_release(out / "python", labels, student=unseeded, X_public=lying(points), without=without)
    X, y = _private_records(private)
    settings = {"epsilon": 4.0, "delta": 1e-5, "mechanism": "counts", "random_state": 0}
    for number, student in enumerate(STUDENTS):
        model = sb.PATEClassifier(student=student, n_teachers=20, ledger=account, **settings)
        # which finds its answers in the ledger
        model.fit(X, y, X_public=points, classes=["no", "yes"], request="once")
        model.predict(X[: 1 + private % 2])
        joblib.dump(model, out / f"{number}.joblib")
        (out / f"{number}.pickle").write_bytes(pickle.dumps(model))
    own = {"student": model.student_, "X_public": points, "without": without}
    write_release(out / "fitted", model.released_, **own)


def _private_records(private):
    """Return a table whose size, type and order follow from a private number."""
    X = np.random.default_rng(private).normal(size=(300 + private, 3))
    y = np.where(X[:, 0] > 0, "yes", "no").astype(object if private % 2 else "U3")
    return X.astype(np.float32 if private % 2 else np.float64), y


def main():
    """Write releases in a process whose memory, global states and mask follow from argv[3]."""
    private = int(sys.argv[3])
    junk = [bytes(1000 * (private % 7) + 17 * index) for index in range(50 * private)]
    random.seed(private)
    np.random.seed(private)  # noqa: NPY002
    os.umask(0o077)
    del junk[::2]
    gc.collect()
    write(Path(sys.argv[1]), Path(sys.argv[2]), private)


if __name__ == "__main__":
    main()
