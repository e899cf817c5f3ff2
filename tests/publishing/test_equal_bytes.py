"""The bytes of a release follow from released values, public inputs and seeds: nothing else
reaches one of them."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import write_releases

import secretballot as sb
from noisy_plans import noisy

EVERY_KIND = {
    *("student.onnx", "report.html", "README.txt", "labels.csv", "answers.csv", "schema.json"),
    *("certificate.json", "model-card.md"),
}


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def given(tmp_path):
    """Return a folder with released values of every kind, and the public points that they are
    about."""
    folder = tmp_path / "given"
    folder.mkdir()
    points = np.random.default_rng(0).normal(size=(60, 3)).round(2)
    np.save(folder / "points.npy", points)
    yes = np.where(points[:, 0] > 0, 180, 20)
    counts = sb.votes_of_counts(np.column_stack([200 - yes, yes]), ["no", "yes"])
    ledger = sb.Ledger.in_memory(dataset="registry", budget=sb.PrivacyBudget(500.0, 1e-3))
    terms = {kind: noisy(12.0, 60, release=kind, n_teachers=200) for kind in ("counts", "labels")}
    released = {
        kind: sb.release(counts, one.mechanism, ledger, one.budget) for kind, one in terms.items()
    }
    X = np.random.default_rng(1).normal(size=(800, 3))
    y = np.where(X[:, 0] > 0, "yes", "no")
    chosen = sb.SemiPrivateClassifier(epsilon=1.0).fit(X, y, X_public=points, classes=["no", "yes"])
    released["chosen"] = chosen.released_
    price = {"n_teachers": 15, "epsilon": 9.0, "delta": 1e-5}
    rounds = sb.PATEClassifier(
        mechanism="counts", strategy="margin:round_size=5", n_queries=30, **price
    )
    rounds.fit_labels(X, y, X_public=points, classes=["no", "yes"])
    released["rounds"] = rounds.released_
    moments = sb.RecordMomentsClassifier(epsilon=1.0, delta=1e-5).fit(
        X, y, X_public=points, classes=["no", "yes"]
    )
    released["moments"] = moments.released_
    sums = sb.RecordMomentsRegressor(epsilon=1.0, delta=1e-5)
    released["sums"] = sums.fit(X, X[:, 0], X_public=points, bounds=(-3, 3)).released_
    labels = (X > 0).astype(int)
    several = sb.PATEClassifier(n_teachers=15, epsilon=4.0, delta=1e-5)
    several.fit_labels(X, labels, X_public=points, labels=["a", "b", "c"])
    released["several"] = several.released_
    number = sb.PATERegressor(n_teachers=15, epsilon=4.0, delta=1e-5)
    number.fit_labels(X, X[:, 0], X_public=points, bounds=(-3.0, 3.0))
    released["number"] = number.released_
    for name, values in released.items():
        (folder / f"{name}.json").write_text(json.dumps(values.to_json()))
    account = sb.Ledger(folder / "ledger.sqlite", dataset="d", budget=sb.PrivacyBudget(4.0, 1e-5))
    model = sb.PATEClassifier(n_teachers=20, epsilon=4.0, delta=1e-5, ledger=account)
    model.fit(X, y, X_public=points, classes=["no", "yes"], request="once")
    (folder / "account.pickle").write_bytes(pickle.dumps(account))
    return folder


def test_no_byte_depends_on_the_private_side(tmp_path, given):
    """One side is this process, as it happens to be; the other one differs in all that it can."""
    write_releases.write(given, tmp_path / "here", 40)
    odd = {"PYTHONHASHSEED": "3", "PRIVATE": "xxx", "TZ": "UTC3", "LC_ALL": "C"}
    command = [sys.executable, write_releases.__file__, str(given), str(tmp_path / "there"), "3"]
    (tmp_path / "place").mkdir()
    subprocess.run(
        command,
        env={**os.environ, **odd, "OMP_NUM_THREADS": "2"},
        cwd=tmp_path / "place",
        check=True,
    )
    here, there = contents(tmp_path / "here"), contents(tmp_path / "there")
    assert here.keys() == there.keys()
    assert [name for name in here if here[name] != there[name]] == []
    assert {name.rpartition("/")[2] for name in here} >= EVERY_KIND
