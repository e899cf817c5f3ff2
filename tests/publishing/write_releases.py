"""Write releases of every kind; run, in a process with a heap, a private table and global states of
its own."""

import gc
import json
import os
import pickle
import random
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression

import secretballot as sb
from secretballot.publishing.release import ChosenHypothesis, ReleaseJob, publish, write_release
from secretballot.released import ReleasedLabels, ReleasedSums, ReleasedTable

KINDS = {"number": ReleasedTable, "several": ReleasedTable, "sums": ReleasedSums}


def write(given, out, private):
    """Write the releases whose released values and public points are given; a number is private."""
    documents = {path.stem: json.loads(path.read_text()) for path in given.glob("*.json")}
    released = {
        name: KINDS.get(name, ReleasedLabels).from_json(document)
        for name, document in documents.items()
    }
    points = np.load(given / "points.npy")
    if private % 2:  # the same values, lying otherwise in memory
        points = np.asfortranarray(points)
    schema = {"columns": [{"name": name} for name in "abc"]}
    for name, student, more in (
        ("counts", "auto", {"without": ("report",)}),
        ("rounds", "logistic", {}),
        ("chosen", ChosenHypothesis("stumps"), {"without": ("report",)}),
        ("moments", "auto", {}),
        ("sums", "auto", {"without": ("report",)}),
        ("number", "tree", {"seed": 3, "without": ("report",)}),
        ("several", "auto", {"without": ("report",)}),
    ):
        publish(out / name, ReleaseJob(released[name], student, points, schema, **more))
    unseeded = RandomForestClassifier(4)
    write_release(
        out / "python", released["labels"], student=unseeded, X_public=points, without=["report"]
    )
    X, y = _private_records(private)
    account = pickle.loads((given / "account.pickle").read_bytes())
    settings = {
        "epsilon": 4.0,
        "delta": 1e-5,
        "ledger": account,
        "mechanism": "counts",
        "random_state": 0,
    }
    model = sb.PATEClassifier(student=LogisticRegression(), n_teachers=20, **settings)
    about = {"X_public": points, "classes": ["no", "yes"], "request": "once"}
    model.fit(X, y, **about)  # which finds its answers in the ledger
    write_release(
        out / "fitted", model.released_, student=model.student_, X_public=points, without=["report"]
    )


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
