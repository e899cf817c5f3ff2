"""PATEClassifier of several labels and PATERegressor: what is learnt, one record one teacher,
requests, units, and what is refused before anything is spent."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import Ridge
from sklearn.naive_bayes import GaussianNB

import secretballot as sb
from secretballot.exceptions import DataError, ParameterError
from secretballot.teachers.ensemble import Shards
from secretballot.teachers.ensemble import ballots as ballots_of
from secretballot.teachers.ensemble import labels_of_shard as labels_of
from secretballot.teachers.ensemble import numbers_of_shard as numbers_of

BUDGET = sb.PrivacyBudget(4.0, 1e-5)
NAMES = ["ill", "old", "tall"]
RNG = np.random.default_rng(0)
X, X_PUBLIC, X_NEW = (RNG.normal(size=(n, 3)) for n in (1800, 120, 800))
CENTRES = np.array([0.0, 0.5, 1.0])
Y = (X > CENTRES).astype(int)
NUMBERS = 3 * X[:, 0] - X[:, 1]
TEACHERS = 60


def labels_model(**settings):
    given = {"n_teachers": TEACHERS, **BUDGET.to_json(), "teacher": GaussianNB(), **settings}
    return sb.PATEClassifier(**given)


def fit_labels(model, X=X, y=Y, X_public=X_PUBLIC, **more):
    return model.fit(X, y, X_public=X_public, labels=more.pop("labels", NAMES), **more)


def test_labels_and_numbers_are_learnt():
    model = fit_labels(labels_model(student=GaussianNB(), mechanism="auto:most_named=2"))
    right = (model.predict(X_NEW) == (X_NEW > CENTRES)).mean(axis=0)
    # always the more frequent side: .5, .69, .84, and .68 in the mean
    assert right.mean() > 0.8, right
    assert right[0] > 0.7, right
    shares = model.predict_proba(X_NEW)
    assert ((shares >= 0) & (shares <= 1)).all()
    assert model.labels_.tolist() == NAMES
    assert [one.tolist() for one in model.classes_] == [[0, 1]] * 3
    model = sb.PATERegressor(n_teachers=TEACHERS, epsilon=8.0, delta=1e-5)
    model.fit(X, NUMBERS, X_public=X_PUBLIC, bounds=(-8.0, 8.0))
    truth = 3 * X_NEW[:, 0] - X_NEW[:, 1]
    assert np.sqrt(((model.predict(X_NEW) - truth) ** 2).mean()) < 0.5 * truth.std()


SHARDS = np.arange(len(X)) % 20


def ballots(y, kept=slice(None)):
    """Return the ballots of all teachers of labels or of a number."""
    shards = Shards(X[kept], y[kept], SHARDS[kept], 20)
    if y.ndim == 2:
        return [named for named, _ in ballots_of(labels_of, GaussianNB(), shards, X_PUBLIC)]
    return list(ballots_of(numbers_of, Ridge(), shards, X_PUBLIC))


def test_one_record_reaches_one_teacher():
    changed, other = Y.copy(), NUMBERS.copy()
    changed[7], other[7] = 1 - changed[7], 1000.0
    for one, two in ((Y, changed), (NUMBERS, other)):
        pairs = zip(ballots(one), ballots(two), strict=True)
        assert [at for at, pair in enumerate(pairs) if not np.array_equal(*pair)] == [7]


def test_a_label_that_a_shard_lacks_is_not_named_there_and_one_it_has_throughout_is():
    y = np.column_stack([np.zeros(len(X)), np.ones(len(X)), Y[:, 0]]).astype(int)
    shards = np.zeros(len(X), dtype=int)
    (filled, _), (empty, _) = ballots_of(labels_of, GaussianNB(), Shards(X, y, shards, 2), X_PUBLIC)
    assert filled[:, 0].sum() == 0
    assert filled[:, 1].all()
    assert 0 < filled[:, 2].mean() < 1
    assert not empty.any()


class FailsOnSome(ClassifierMixin, BaseEstimator):
    """Fail at shards whose first value is negative, with that value in the message."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        if len(X) < 60 and X[0, 0] < 0:
            raise ValueError(f"private {X[0, 0]}")
        return self

    def predict(self, X):
        return np.ones(len(X), dtype=int)


def test_a_teacher_that_fails_at_its_shard_votes_by_a_fixed_rule_in_silence():
    shards, stays = np.arange(len(X)) % TEACHERS, X[:TEACHERS, 0] >= 0
    found = ballots_of(labels_of, FailsOnSome(), Shards(X, Y, shards, TEACHERS), X_PUBLIC)
    assert [one[:, 0].all() for one, _ in found] == stays.tolist()
    votes = ballots_of(numbers_of, FailsOnSome(), Shards(X, NUMBERS, shards, TEACHERS), X_PUBLIC)
    assert [not np.isnan(one).any() for one in votes] == stays.tolist()


def test_a_target_that_is_no_number_leaves_its_record_out_and_no_other():
    y = NUMBERS.copy()
    y[7] = np.nan
    without = ballots(y, np.delete(np.arange(len(X)), 7))
    assert all(map(np.array_equal, ballots(y), without))


def test_persons_are_protected_together():
    ids = np.arange(len(X)) // 3
    model = fit_labels(labels_model(), units=ids, unit_name="patient")
    assert (model.certificate_["unit"], model.certificate_["unit_column"]) == ("user", "patient")
    with pytest.raises(ParameterError, match="units"):
        fit_labels(labels_model(relation="replace-one"), units=ids)
    replaced = sb.PATERegressor(
        n_teachers=TEACHERS, **BUDGET.to_json(), relation="replace-one"
    ).fit(X, NUMBERS, X_public=X_PUBLIC, bounds=(-8.0, 8.0))
    assert replaced.certificate_["relation"] == "replace-one"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": ["a", "a", "b"]}, "labels"),
        ({"y": Y[:, :2]}, "columns"),
        ({"y": Y + 1}, "y"),
        ({"X_public": X}, "holds private records"),
        ({"mechanism": "ranks"}, "mechanism"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_is_refused_before_anything_is_spent(change, words):
    ledger = sb.Ledger.in_memory(dataset="x", budget=BUDGET)
    data = {key: change.pop(key) for key in ("labels", "y", "X_public") if key in change}
    with pytest.raises((DataError, ParameterError), match=words):
        fit_labels(labels_model(**{"ledger": ledger, **change}), **data)
    assert ledger.spent().epsilon == 0
