"""The bytes of a release, and of a pickled learner, follow from released values, public inputs and
seeds: nothing else reaches one of them."""

import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import write_releases
from test_every_release import NAMES, POINTS, TERMS, X, fitted

import secretballot as sb
from noisy_plans import noisy
from secretballot.publishing.release import ChosenHypothesis, ReleaseJob

EVERY_KIND = {
    *("student.onnx", "report.html", "README.txt", "labels.csv", "answers.csv", "schema.json"),
    *("certificate.json", "model-card.md"),
}
LABELS, CLASSES = np.where(X[:, 0] > 0, "yes", "no"), ["no", "yes"]


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def given(tmp_path):
    """Return a file with releases of every kind that are to be written, and an account."""
    yes = np.where(POINTS[:, 0] > 0, 180, 20)
    counts = sb.votes_of_counts(np.column_stack([200 - yes, yes]), CLASSES)
    ledger = sb.Ledger.in_memory(dataset="registry", budget=sb.PrivacyBudget(500.0, 1e-3))
    terms = (
        noisy(12.0, len(POINTS), release=kind, n_teachers=200) for kind in ("counts", "labels")
    )
    of_counts, of_labels = (sb.release(counts, one.mechanism, ledger, one.budget) for one in terms)
    asking = {"mechanism": "counts", "strategy": "margin:round_size=5", "n_queries": 30}
    rounds = sb.PATEClassifier(n_teachers=15, epsilon=9.0, delta=1e-5, **asking)
    rounds.fit_labels(X, LABELS, X_public=POINTS, classes=CLASSES)
    schema, without = {"columns": [{"name": name} for name in NAMES]}, ("report",)
    jobs = {
        "counts": (of_counts, "auto", without),
        "rounds": (rounds.released_, "logistic", ()),
        "chosen": (fitted("stumps").released_, ChosenHypothesis("stumps"), without),
        "moments": (fitted("moments").released_, "auto", ()),
        "sums": (fitted("moments of a number").released_, "auto", without),
        "number": (fitted("number").released_, "tree", without),
        "several": (fitted("several").released_, "auto", without),
    }
    account = sb.Ledger(tmp_path / "ledger", dataset="d", budget=sb.PrivacyBudget(4.0, 1e-5))
    model = sb.PATEClassifier(n_teachers=20, **TERMS, ledger=account)
    model.fit(X, LABELS, X_public=POINTS, classes=CLASSES, request="once")
    made = {
        name: ReleaseJob(
            values,
            student,
            POINTS[:80] if name in ("number", "several") else POINTS,
            schema,
            3,
            parts,
        )
        for name, (values, student, parts) in jobs.items()
    }
    (tmp_path / "given").write_bytes(pickle.dumps((made, of_labels, POINTS, account)))
    return tmp_path / "given"


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
