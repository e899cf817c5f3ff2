"""Every student that the program offers by name, and every kind that converts."""

import hashlib
import random
import warnings
from dataclasses import replace
from functools import cache

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    RidgeClassifier,
    SGDClassifier,
)
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

from secretballot.bases import GraphBasis, KernelBasis, TableBasis
from secretballot.hypotheses import DecisionStumps, FiniteClass, Intervals, Thresholds
from secretballot.named_learners import CLASSIFIERS, REGRESSORS, teacher_by_name
from secretballot.released import ReleasedLabels
from secretballot.report.student_export import converted_student
from secretballot.students import (
    GraphCountsClassifier,
    HypothesisStudent,
    LabelsStudent,
    MomentsStudent,
    NoisyCountsClassifier,
    NumberedClassesClassifier,
    NumberStudent,
    RecordVotesStudent,
    VotingStudent,
    fit_student,
)
from secretballot.students.fitting import student_by_name

POINTS = np.random.default_rng(1).normal(size=(150, 4)).astype(np.float32).astype(float)
NAMES = ("auto", "boosted", *CLASSIFIERS)


def released(n_classes, counts=False, n_columns=4):
    """Return public points and what was released about some of them."""
    X = POINTS[:, :n_columns]
    votes = np.round(
        25 + 15 * np.tanh(X @ np.ones((n_columns, n_classes)) + POINTS[:, :n_classes])
    ).astype(int)
    votes = votes[:100, 0] if n_classes == 2 else votes[:100]
    labels = (2 * votes >= 50).astype(int) if n_classes == 2 else votes.argmax(axis=1)
    classes = ("no", "yes", "maybe")[:n_classes]
    more = (4.0, votes) if counts else ()
    return X, ReleasedLabels(np.arange(100), labels, classes, 50, *more)


def named():
    """Yield every student that a command line can name, fitted to what can be released."""
    for name in NAMES:
        for n_classes in (2, 3):
            X, labels = released(n_classes)
            yield (
                f"{name} {n_classes}",
                fit_student(_small(student_by_name(name)), X, labels, random_state=0),
                X,
            )
    for n_classes in (2, 3):
        X, counts = released(n_classes, counts=True)
        linear = replace(counts, noisy_counts=np.rint(25 + 8 * X[:100, :n_classes]).astype(int))
        for kernel, release in (("gaussian", counts), ("linear", linear)):
            fitted = fit_student(NoisyCountsClassifier(n_landmarks=20, random_state=0), X, release)
            assert bool(len(fitted.model_.landmarks)) == (kernel == "gaussian")
            yield f"{kernel} counts {n_classes}", fitted, X
    yield "constant", fit_student(LogisticRegression(), POINTS, _unanimous()), POINTS


def _small(student):
    """Return a student with few parts, which says as much about its file."""
    if student is None:
        return LogisticRegression(max_iter=1000)
    few = {"RandomForestClassifier": "n_estimators", "HistGradientBoostingClassifier": "max_iter"}
    parts = (few | {"VotingStudent": "n_estimators"}).get(type(student).__name__)
    return student.set_params(**{parts: 3}) if parts else student


def _unanimous(classes=("no", "yes")):
    return ReleasedLabels(np.arange(10), np.ones(10, dtype=int), classes, 50)


def others():
    """Yield a student of every other kind that converts."""
    X, labels = released(2)
    y = labels.label_values
    makers = {
        "ridge": RidgeClassifier(),
        "sgd": SGDClassifier(random_state=0),
        "tree, 3 deep": DecisionTreeClassifier(max_depth=3, random_state=0),
        "extra tree": ExtraTreeClassifier(random_state=0),
        "voting": VotingStudent(n_estimators=5, random_state=0),
        "voting of lines": VotingStudent(LogisticRegression(), n_estimators=3, random_state=0),
        "calibrated": CalibratedClassifierCV(LogisticRegression(), cv=2),
        "network": MLPClassifier((3,), max_iter=5, random_state=0),
        "tree behind a scaler": make_pipeline(
            StandardScaler(), DecisionTreeClassifier(random_state=0)
        ),
        "numbered classes": NumberedClassesClassifier(
            make_pipeline(StandardScaler(), LogisticRegression())
        ),
    }
    for name, student in makers.items():
        yield name, student.fit(X[:100], y), X
    yield "truth values", LogisticRegression().fit(X, X[:, 0] > 0), X
    for n_classes in (2, 3):
        X, counts = released(n_classes, counts=True)
        yield f"graph counts {n_classes}", fit_student(GraphCountsClassifier(), X, counts), X
    for n_columns, hypotheses in (
        (1, Thresholds("either")),
        (1, Intervals()),
        (4, DecisionStumps(4)),
        (1, FiniteClass([DecisionTreeClassifier().fit(POINTS[:, :1], POINTS[:, 1] > 0)])),
    ):
        X, labels = released(2, n_columns=n_columns)
        few = ReleasedLabels(labels.queries[:12], labels.labels[:12], labels.classes, 50)
        yield type(hypotheses).__name__, fit_student(HypothesisStudent(hypotheses), X, few), X
    for n_classes in (2, 3):
        yield f"moments {n_classes}", *moments(n_classes)
        yield f"moments of numbers alone {n_classes}", *moments(n_classes, texts=False)
        yield f"record votes {n_classes}", record_votes(n_classes), POINTS
    yield "record votes, landmarks", record_votes(2, KernelBasis(n_landmarks=20)), POINTS
    for scaled in (True, False):
        yield f"landmarks {scaled}", landmarks(scaled=scaled), POINTS
    yield "ranked landmarks", landmarks(ranked=True), POINTS
    yield "modes", modes(), POINTS
    yield from of_tables()


def of_tables():
    """Yield students of numbers, and of several labels."""
    named = [teacher_by_name(name, 0) for name in REGRESSORS]
    others = (
        ExtraTreesRegressor(),
        LinearRegression(),
        HistGradientBoostingRegressor(max_iter=3, loss="absolute_error"),
    )
    for place, regressor in enumerate([*named, *others]):
        seeded = {"random_state": 0} if "random_state" in regressor.get_params() else {}
        few = {"n_estimators": 3} if "n_estimators" in regressor.get_params() else {}
        fitted = regressor.set_params(**seeded, **few).fit(POINTS, POINTS[:, 0])
        yield f"number {place}", NumberStudent(fitted, (-1.0, 1.0)), POINTS
    learners = [LogisticRegression(), DecisionTreeClassifier(max_depth=2, random_state=0)]
    fitted = [one.fit(POINTS, (POINTS[:, 1] > 0).astype(int)) for one in learners]
    constant = fit_student(LogisticRegression(), POINTS, _unanimous((0, 1)))
    yield "labels", LabelsStudent([*fitted, constant], ["a", "b", "c"]), POINTS
    fitted = [RidgeClassifier().fit(POINTS, (POINTS[:, 1] > 0).astype(int))]
    yield "labels alone", LabelsStudent(fitted, ["a"]), POINTS
    model, table = moments(3)
    yield (
        "moments of labels",
        MomentsStudent(model.basis, model.weights, labels=["a", "b", "c"]),
        table,
    )
    weights = model.weights[:, :1] // 64
    yield ("moments of a number", MomentsStudent(model.basis, weights, bounds=(-3.0, 40.5)), table)


def record_votes(n_classes, basis=None):
    """Return a student of votes that records cast at their nearest points."""
    votes = np.random.default_rng(4).normal(size=(len(POINTS), n_classes)) * 3
    votes[np.arange(len(POINTS)), np.argmax(POINTS[:, :n_classes], axis=1)] += 40
    return RecordVotesStudent(basis).fit(
        POINTS, votes, sigma=3.0, votes_per_record=2, classes=["no", "yes", "maybe"][:n_classes]
    )


def landmarks(*, scaled=True, ranked=False):
    """Return a model of weights in a basis of landmarks."""
    basis = KernelBasis(n_landmarks=20, scaled=scaled, ranked=ranked).fit(POINTS)
    weights = np.random.default_rng(3).integers(-(2**18), 2**18, (basis.n_directions_ + 1, 1))
    return MomentsStudent(basis, weights, [4, 5])


def modes():
    """Return a model of weights in a basis of a graph."""
    basis = GraphBasis(n_modes=12).fit(POINTS)
    weights = np.random.default_rng(3).integers(-(2**18), 2**18, (basis.n_directions_ + 1, 3))
    return MomentsStudent(basis, weights, ["a", "b", "c"])


def moments(n_classes, texts=True):
    """Return a model of weights in a basis with columns of every kind, and its public points."""
    columns = [*POINTS.T, np.where(POINTS[:, 0] > -0.5, 0.0, POINTS[:, 1]), np.arange(150) % 3 - 1]
    table = np.column_stack(columns).astype(object if texts else float)
    table[:20, 0], table[10:40, 5] = np.nan, np.nan
    if texts:
        table = np.column_stack(
            [table, np.array(["north", "south", None], object)[np.arange(150) % 3]]
        )
    basis = TableBasis(n_bins=6).fit(table)
    shape = (basis.n_directions_ + 1, 1 if n_classes == 2 else n_classes)
    weights = np.random.default_rng(2).integers(-(2**18), 2**18, shape)
    return MomentsStudent(basis, weights, ("no", "yes", "maybe")[:n_classes]), table


@cache
def every():
    """Return each fitted student and its points, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: (student, points) for name, student, points in (*named(), *others())}


def leave_rubbish(seed):
    """Fill the memory with rubbish that follows from a seed, and free most of it."""
    coins = random.Random(seed)
    kept = [bytes([coins.randrange(256)]) * coins.randrange(1, 4000) for _ in range(20_000)]
    arrays = [np.full(coins.randrange(1, 900), coins.random()) for _ in range(5_000)]
    globals()["_never_freed"] = kept[:: coins.randrange(2, 9)], arrays[:: coins.randrange(2, 9)]


def digests():
    """Return name and digest of every file."""
    return [
        f"{name} {hashlib.sha256(converted_student(one).content).hexdigest()}"
        for name, (one, _) in every().items()
    ]
