"""Whole `fit`s of this package as programs to attack: two ways in which one private record once
reached everything.

    python real_programs.py WHICH PRIVATE --out DIR

PRIVATE is a JSON list of rows, the class last.

- seeded: the caller seeds numpy, as scripts do, and the student has no seed of its own. A missing
  value in a private record once moved the generator that the student then drew from.
- mixed: rows of numbers and texts, as lists. One null once changed the type of the whole table, and
  every teacher.
"""

import json
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb


def seeded(rows):
    """What a student's file would hold of the coins of a forest."""
    np.random.seed(0)  # noqa: NPY002 - what a script does
    table = np.array(rows, dtype=float)
    teacher = make_pipeline(SimpleImputer(), DecisionTreeClassifier(max_features=1))
    points = np.random.RandomState(5).normal(size=(60, table.shape[1] - 1))
    model = sb.PATEClassifier(
        teacher,
        RandomForestClassifier(n_estimators=3, max_depth=2),
        n_teachers=10,
        epsilon=0.5,
        delta=1e-6,
        n_queries=20,
        mechanism="labels",
        random_state=0,
    )
    model.fit(table[:, :-1], table[:, -1].astype(int), X_public=points, classes=[0, 1])
    forest = model.student_
    trees = getattr(forest, "estimators_", [])
    return model, {"student": {"coins": [tree.random_state for tree in trees]}}


def mixed(rows):
    """The released labels of a table of numbers and texts."""
    teacher = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    points = [[f"{float(number % 4)}", word] for number in range(40) for word in ("north", "south")]
    model = sb.PATEClassifier(
        teacher,
        LogisticRegression(),
        n_teachers=60,
        epsilon=0.5,
        delta=1e-6,
        n_queries=1,
        mechanism="counts",
        random_state=0,
    )
    features, labels = [row[:-1] for row in rows], [row[-1] for row in rows]
    model.fit(features, labels, X_public=points, classes=[0, 1])
    return model, {}


if __name__ == "__main__":
    which, private, folder = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[4]) / "release"
    model, more = {"seeded": seeded, "mixed": mixed}[which](json.loads(private.read_text()))
    folder.mkdir(parents=True)
    released = model.released_
    (folder / "certificate.json").write_text(json.dumps(released.certificate))
    counts = None if released.noisy_counts is None else released.noisy_counts.tolist()
    (folder / "answers.json").write_text(
        json.dumps({"labels": released.labels.tolist(), "counts": counts, **more})
    )
