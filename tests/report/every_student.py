"""Every student that the program offers by name, and one for every trusted type; run, prints
digests of their files.

Run with a word, the process first fills its memory with rubbish of its own and frees it again.
"""

import hashlib
import random
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    ExtraTreesRegressor,
    GradientBoostingClassifier,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from secretballot.bases import GraphBasis, KernelBasis, TableBasis
from secretballot.hypotheses import DecisionStumps, FiniteClass, Intervals, Thresholds
from secretballot.named_learners import TEACHER_NAMES, regressor_by_name
from secretballot.released import ReleasedLabels
from secretballot.report.student.export import dump_onnx, dump_student
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
from secretballot.students.names import student_by_name

POINTS = np.random.default_rng(1).normal(size=(150, 4)).astype(np.float32).astype(float)
NAMES = ("auto", "boosted", *TEACHER_NAMES)


def released(
    n_classes: int, counts: bool = False, n_columns: int = 4
) -> tuple[np.ndarray, ReleasedLabels]:
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


def named() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield every student that a command line can name, fitted to what can be released."""
    for name in NAMES:
        for n_classes in (2, 3):
            X, labels = released(n_classes)
            yield (
                f"{name} {n_classes}",
                fit_student(_small(student_by_name(name)), X, labels, random_state=0),
                X,
            )
    for kernel in ("linear", "gaussian"):
        for n_classes in (2, 3):
            X, counts = released(n_classes, counts=True)
            student = NoisyCountsClassifier(kernel, n_landmarks=20, random_state=0)
            yield f"{kernel} counts {n_classes}", fit_student(student, X, counts), X
    yield "constant", fit_student(LogisticRegression(), POINTS, _unanimous()), POINTS


def _small(student: Any) -> Any:
    """Return a student with few parts, which says as much about its file."""
    if student is None:
        return LogisticRegression(max_iter=1000)
    few = {"RandomForestClassifier": "n_estimators", "HistGradientBoostingClassifier": "max_iter"}
    parts = (few | {"VotingStudent": "n_rounds"}).get(type(student).__name__)
    return student.set_params(**{parts: 3}) if parts else student


def _unanimous() -> ReleasedLabels:
    return ReleasedLabels(np.arange(10), np.ones(10, dtype=int), ("no", "yes"), 50)


def others() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield a student for every other type that a reader trusts."""
    X, labels = released(2)
    y = labels.label_values
    makers = {
        "ridge": RidgeClassifier(),
        "sgd": SGDClassifier(random_state=0),
        "tree, 3 deep": DecisionTreeClassifier(max_depth=3, random_state=0),
        "forest": RandomForestClassifier(4, max_depth=4, random_state=0),
        "gradient boosting": GradientBoostingClassifier(
            n_estimators=4, loss="exponential", random_state=0
        ),
        "adaboost": AdaBoostClassifier(n_estimators=4, random_state=0),
        "voting": VotingStudent(n_rounds=5, random_state=0),
        "committee": VotingClassifier(
            [("a", LogisticRegression()), ("b", DecisionTreeClassifier(random_state=0))]
        ),
        "calibrated": CalibratedClassifierCV(LogisticRegression(), cv=2),
        "process": GaussianProcessClassifier(
            ConstantKernel() * RBF(), optimizer=None, random_state=0
        ),
        "kd tree": KNeighborsClassifier(algorithm="kd_tree", metric="manhattan"),
        "ball tree": KNeighborsClassifier(algorithm="ball_tree", p=3),
        "adam": MLPClassifier((3,), max_iter=5, random_state=0),
        "sgd network": MLPClassifier((3,), max_iter=5, solver="sgd", random_state=0),
        "columns": make_pipeline(
            make_column_transformer(
                (OneHotEncoder(handle_unknown="ignore"), [0]), (SimpleImputer(), [1, 2])
            ),
            LogisticRegression(max_iter=1000),
        ),
        "numbered classes": NumberedClassesClassifier(
            make_pipeline(StandardScaler(), LogisticRegression())
        ),
        "function": make_pipeline(FunctionTransformer(np.tanh), LogisticRegression()),
        "weights by set": LogisticRegression(class_weight=dict.fromkeys({"no", "yes"}, 1.0)),
    }
    for name, student in makers.items():
        yield name, student.fit(X[:100], y), X
    X, counts = released(2, counts=True)
    yield "graph counts", fit_student(GraphCountsClassifier(), X, counts), X
    for n_columns, hypotheses in (
        (1, Thresholds("either")),
        (1, Intervals()),
        (4, DecisionStumps(4)),
        (
            1,
            FiniteClass(
                [
                    stump.fit(POINTS[:, :1], POINTS[:, 1] > 0)
                    for stump in (DecisionTreeClassifier(random_state=0),)
                ]
            ),
        ),
    ):
        X, labels = released(2, n_columns=n_columns)
        few = ReleasedLabels(labels.queries[:12], labels.labels[:12], labels.classes, 50)
        yield type(hypotheses).__name__, fit_student(HypothesisStudent(hypotheses), X, few), X
    for n_classes in (2, 3):
        yield f"moments {n_classes}", *moments(n_classes)
        yield f"record votes {n_classes}", record_votes(n_classes), POINTS
    for scaled in (True, False):
        yield f"landmarks {scaled}", landmarks(scaled=scaled), POINTS
    yield "ranked landmarks", landmarks(ranked=True), POINTS
    yield "modes", modes(), POINTS
    yield from of_tables()


def of_tables() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield students of numbers, and one of several labels."""
    regressors = [regressor_by_name(name) for name in ("ridge", "forest", "boosting", "knn")]
    for regressor in (*regressors, ExtraTreesRegressor()):
        seeded = {"random_state": 0} if "random_state" in regressor.get_params() else {}
        few = {"n_estimators": 3} if "n_estimators" in regressor.get_params() else {}
        fitted = regressor.set_params(**seeded, **few).fit(POINTS, POINTS[:, 0])
        yield f"number {regressor!r:.20}", NumberStudent(fitted, (-1.0, 1.0)), POINTS
    learners = [LogisticRegression(), DecisionTreeClassifier(max_depth=2, random_state=0)]
    fitted = [one.fit(POINTS, POINTS[:, 1] > 0) for one in learners]
    yield "labels", LabelsStudent(fitted, ["a", "b"]), POINTS


def record_votes(n_classes: int, basis: Any = None) -> RecordVotesStudent:
    """Return a student of votes that records cast at their nearest points."""
    votes = np.random.default_rng(4).normal(size=(len(POINTS), n_classes)) * 3
    votes[np.arange(len(POINTS)), np.argmax(POINTS[:, :n_classes], axis=1)] += 40
    return RecordVotesStudent(basis).fit(
        POINTS, votes, sigma=3.0, votes_per_record=2, classes=["no", "yes", "maybe"][:n_classes]
    )


def landmarks(*, scaled: bool = True, ranked: bool = False) -> MomentsStudent:
    """Return a model of weights in a basis of landmarks."""
    basis = KernelBasis(n_landmarks=20, scaled=scaled, ranked=ranked).fit(POINTS)
    weights = np.random.default_rng(3).integers(-(2**18), 2**18, (basis.n_directions_ + 1, 1))
    return MomentsStudent(basis, weights, [4, 5])


def modes() -> MomentsStudent:
    """Return a model of weights in a basis of a graph."""
    basis = GraphBasis(n_modes=12).fit(POINTS)
    weights = np.random.default_rng(3).integers(-(2**18), 2**18, (basis.n_directions_ + 1, 3))
    return MomentsStudent(basis, weights, ["a", "b", "c"])


def moments(n_classes: int, texts: bool = True) -> tuple[MomentsStudent, np.ndarray]:
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


def texts() -> tuple[Any, list[str]]:
    """Return a student of texts, whose vocabulary and stop words are kept in dicts and sets."""
    words = ["one two three", "two three four", "four five six", "six seven one"]
    student = make_pipeline(CountVectorizer(stop_words=["one", "five"]), LogisticRegression())
    return student.fit(words, [0, 0, 1, 1]), words


def with_sets() -> Any:
    """Return a student that keeps sets, whose order differs from process to process."""
    student = LogisticRegression().fit(POINTS, POINTS[:, 0] > 0)
    student.seen_ = {"a", "b", "c", "d", 5, (1, "x"), None}
    student.fixed_ = frozenset({"a", "b", "c", "d"})
    return student


def every() -> Iterator[tuple[str, Any, np.ndarray]]:
    """Yield name, fitted student and points."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from named()
        yield from others()


def _rubbish(word: str) -> None:
    coins = random.Random(word)
    kept = [bytes([coins.randrange(256)]) * coins.randrange(1, 4000) for _ in range(20_000)]
    arrays = [np.full(coins.randrange(1, 900), coins.random()) for _ in range(5_000)]
    globals()["_never_freed"] = kept[:: coins.randrange(2, 9)], arrays[:: coins.randrange(2, 9)]


def main(words: list[str]) -> None:
    """Print name and digest of every file."""
    for word in words:
        _rubbish(word)
    with tempfile.TemporaryDirectory() as folder:
        path, again = Path(folder) / "student.skops", Path(folder) / "student.onnx"
        for name, student, points in every():
            dump_student(student, path)
            print(name, "skops", hashlib.sha256(path.read_bytes()).hexdigest())
            if words and name in ("knn 2", "tree 2"):
                dump_onnx(student, again, points)  # numbers its names onward from here
            if name in ("knn 2", "tree 2", "logistic 3", "linear counts 2"):
                dump_onnx(student, again, points)
                print(name, "onnx", hashlib.sha256(again.read_bytes()).hexdigest())
        for name, student in (("texts", texts()[0]), ("sets", with_sets())):
            dump_student(student, path)
            print(name, "skops", hashlib.sha256(path.read_bytes()).hexdigest())


if __name__ == "__main__":
    main(sys.argv[1:])
