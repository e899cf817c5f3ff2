"""What a model of released moments says of itself: which columns carry it."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier, is_regressor

from secretballot.bases import KernelBasis, TableBasis
from secretballot.bases.integer_model import with_constant
from secretballot.exceptions import DataError
from secretballot.students import MomentsStudent

RNG = np.random.default_rng(0)
POOL = pd.DataFrame(
    {"a": RNG.normal(size=400), "b": RNG.choice(["x", "y", "z"], 400), "c": RNG.integers(0, 5, 400)}
)
BASIS = TableBasis(whitening=0.0).fit(POOL)


def student_of(weights, classes):
    whole = np.rint(2**16 * weights).astype(np.int64)
    return MomentsStudent(BASIS, np.vstack([whole, whole[:1]]), classes)


def logits_of(student, table):
    """Return the logits of rows; of three classes, around their mean."""
    logits = with_constant(BASIS.integers(table)) @ student.weights
    return logits - (logits.mean(axis=1, keepdims=True) if logits.shape[1] > 1 else 0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_shares_are_those_of_the_logits(n_classes):
    weights = RNG.normal(size=(BASIS.n_directions_, 1 if n_classes == 2 else 3))
    student = student_of(weights, ["no", "yes", "maybe"][:n_classes])
    shares = student.column_shares(POOL)
    assert shares.sum() == pytest.approx(1.0)
    logits = logits_of(student, POOL)
    total = np.sum(np.var(logits, axis=0))
    for place, name in enumerate(POOL.columns):
        # what a column adds by itself: rows that differ in that column alone
        alone = POOL.copy()
        for other in POOL.columns.difference([name]):
            alone[other] = POOL[other].iloc[0]
        own = logits_of(student, alone)
        parts = [np.cov(own[:, k], logits[:, k], bias=True)[0, 1] for k in range(own.shape[1])]
        assert shares[place] == pytest.approx(np.sum(parts) / total, abs=2e-3)


def test_a_model_that_says_the_same_of_all_points_is_carried_by_none():
    student = student_of(np.zeros((BASIS.n_directions_, 1)), ["no", "yes"])
    assert student.column_shares(POOL).tolist() == [0.0, 0.0, 0.0]


def test_a_basis_that_mixes_columns_has_no_shares():
    basis = KernelBasis(n_landmarks=20).fit(POOL[["a", "c"]])
    weights = np.ones((basis.n_directions_ + 1, 1), dtype=np.int64)
    with pytest.raises(DataError, match="mixes all columns"):
        MomentsStudent(basis, weights, ["no", "yes"]).column_shares(POOL[["a", "c"]])


def test_the_target_says_what_kind_of_learner_it_is():
    weights = np.ones((BASIS.n_directions_ + 1, 2), dtype=np.int64) * 2**12
    classes = MomentsStudent(BASIS, weights[:, :1], ["no", "yes"])
    labels = MomentsStudent(BASIS, weights, labels=["old", "tall"])
    number = MomentsStudent(BASIS, weights[:, :1], bounds=(0.0, 40.0))
    assert [is_classifier(one) for one in (classes, labels, number)] == [True, True, False]
    assert is_regressor(number)
    assert not hasattr(number, "predict_proba")
    assert labels.predict_proba(POOL)[:, 1] == pytest.approx(classes.predict_proba(POOL)[:, 1])
    assert (labels.predict(POOL) == (labels.predict_proba(POOL) > 0.5)).all()
    found = number.predict(POOL)
    assert ((found >= 0) & (found <= 40)).all()
    assert number.score(POOL, found) == classes.score(POOL, classes.predict(POOL)) == 1.0
