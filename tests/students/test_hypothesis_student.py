"""HypothesisStudent: the best of a class by the definition, weighed by counts, published like
every other."""

from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import secretballot as sb
from secretballot.hypotheses import (
    DecisionStumps,
    FiniteClass,
    HypothesisClass,
    Intervals,
    Thresholds,
)
from secretballot.queries import DisagreementSampling
from secretballot.released import ReleasedLabels
from secretballot.students import HypothesisStudent, fit_student
from sessions import in_rounds

PLANE = np.random.default_rng(0).uniform(-1, 1, (60, 2))
LINE = PLANE[:, :1]
TRUTH = (PLANE[:, 0] + 0.2 * PLANE[:, 1] > 0.1).astype(int)
NOISY = np.where(np.random.default_rng(1).random(60) < 0.2, 1 - TRUTH, TRUTH)
CLASSES = [
    (Thresholds("either"), LINE),
    (Intervals(), LINE),
    (DecisionStumps(2), PLANE),
    (None, PLANE),
    (FiniteClass([LogisticRegression(C=C).fit(PLANE, NOISY) for C in (0.01, 1.0)]), PLANE),
]


# That check of scikit-learn 1.6 gives learners of two classes other labels with weights than
# without.
OLD = sklearn.__version__.startswith("1.6.")
WRONG = {"check_sample_weight_equivalence_on_dense_data": "it compares other labels"} if OLD else {}


@parametrize_with_checks([HypothesisStudent()], expected_failed_checks=lambda _: WRONG)
def test_follows_the_conventions_of_scikit_learn(estimator: Any, check: Any) -> None:
    check(estimator)


@pytest.mark.parametrize(("hypotheses", "points"), CLASSES, ids=lambda value: type(value).__name__)
def test_no_labelling_of_the_class_makes_fewer_mistakes(
    hypotheses: HypothesisClass | None, points: np.ndarray
) -> None:
    weights = np.random.default_rng(2).integers(0, 5, 60).astype(float)
    student = HypothesisStudent(hypotheses).fit(points, NOISY, sample_weight=weights)
    wrong = weights @ (student.predict(points) != NOISY)
    searched = DecisionStumps(2) if hypotheses is None else hypotheses
    assert wrong == min(
        weights @ (other.predict(points) != NOISY) for other in searched.dichotomies(points)
    )


@pytest.mark.parametrize(("hypotheses", "points"), CLASSES, ids=lambda value: type(value).__name__)
@pytest.mark.parametrize("only", ["no", "yes"])
def test_one_class_is_a_constant(
    hypotheses: HypothesisClass | None, points: np.ndarray, only: str
) -> None:
    student = HypothesisStudent(hypotheses).fit(points, np.full(60, only))
    assert student.classes_.tolist() == [only]
    assert set(student.predict(10 * points)) == {only}


def released(noisy_counts: np.ndarray | None, labels: np.ndarray, **changes: Any) -> ReleasedLabels:
    fields = {
        "queries": np.arange(len(labels))[::-1],
        "labels": labels,
        "classes": ("no", "yes"),
        "n_teachers": 100,
    }
    if noisy_counts is not None:
        fields |= {"noisy_counts": noisy_counts, "sigma": 10.0}
    return ReleasedLabels(**(fields | changes))


@pytest.mark.parametrize("columns", [1, 2])
@pytest.mark.parametrize(
    "wrap", [lambda student: student, lambda student: make_pipeline(StandardScaler(), student)]
)
def test_counts_say_how_much_a_mistake_matters(columns: int, wrap: Any) -> None:
    # two votes of 52 to 48 for class 1, below one of 5 to 95 against it
    line, counts = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([52, 52, 5, 95])
    given = counts[::-1] if columns == 1 else np.column_stack([100 - counts, counts])[::-1]
    labels = (counts >= 50).astype(int)[::-1]
    weighed = fit_student(wrap(HypothesisStudent(Thresholds())), line, released(given, labels))
    assert weighed.predict(line).tolist() == ["no", "no", "no", "yes"]
    plain = fit_student(wrap(HypothesisStudent(Thresholds())), line, released(None, labels))
    assert plain.predict(line).tolist() == ["yes"] * 4


def test_level_counts_everywhere_are_no_obstacle() -> None:
    level = released(np.full(4, 50), np.array([1, 1, 0, 0]))
    assert fit_student(HypothesisStudent(Thresholds()), LINE[:4], level).predict(LINE[:4]).size == 4
    with pytest.raises(sb.DataError, match="zero for every point"):
        HypothesisStudent().fit(PLANE, TRUTH, sample_weight=np.zeros(60))


def test_is_the_output_of_the_walk_that_asks_by_disagreement() -> None:
    rng = np.random.default_rng(3)
    X, X_public = rng.uniform(size=(4000, 1)), rng.uniform(size=(512, 1))
    model = in_rounds(
        HypothesisStudent(Thresholds()),
        HypothesisStudent(Thresholds()),
        strategy=DisagreementSampling(Thresholds(), noise_rate=0.0, slack_constant=0.5),
        n_teachers=100,
        n_queries=60,
        epsilon=8.0,
        delta=1e-5,
        random_state=0,
    )
    model.fit(X, (X[:, 0] >= 0.4).astype(int), X_public=X_public, classes=[0, 1])
    found = model.student_.hypothesis_.describe()
    assert found["threshold"] == pytest.approx(0.4, abs=0.03)
    assert not hasattr(model, "predict_proba")  # a hypothesis says nothing of chances
