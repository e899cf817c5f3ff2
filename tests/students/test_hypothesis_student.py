"""HypothesisStudent: the best of a class by the definition, published like every other."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import secretballot as sb
from secretballot.hypotheses import DecisionStumps, FiniteClass, Intervals, Thresholds
from secretballot.students import HypothesisStudent

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
def test_follows_the_conventions_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(("hypotheses", "points"), CLASSES, ids=lambda value: type(value).__name__)
def test_no_labelling_of_the_class_makes_fewer_mistakes(hypotheses, points):
    weights = np.random.default_rng(2).integers(0, 5, 60).astype(float)
    student = HypothesisStudent(hypotheses).fit(points, NOISY, sample_weight=weights)
    wrong = weights @ (student.predict(points) != NOISY)
    with pytest.raises(sb.DataError, match="zero for every point"):
        HypothesisStudent(hypotheses).fit(points, NOISY, sample_weight=np.zeros(60))
    searched = DecisionStumps(2) if hypotheses is None else hypotheses
    assert wrong == min(
        weights @ (other.predict(points) != NOISY) for other in searched.dichotomies(points)
    )
    constant = HypothesisStudent(hypotheses).fit(points, np.full(60, "yes"))
    assert constant.classes_.tolist() == ["yes"]
    assert set(constant.predict(10 * points)) == {"yes"}
