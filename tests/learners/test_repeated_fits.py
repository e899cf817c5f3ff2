"""Every fit spends: a second one of the same records is told to the curator, in one process."""

import json
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier

import secretballot as sb
from secretballot.exceptions import RepeatedFitWarning
from secretballot.learners.training import repeated_fits

pytestmark = pytest.mark.filterwarnings(
    "error::secretballot.exceptions.RepeatedFitWarning",
    "ignore:Scoring failed",
)
RNG = np.random.default_rng(0)
X, X_PUBLIC = RNG.normal(size=(1200, 3)), RNG.normal(size=(150, 3))
Y = (X[:, 0] > 0).astype(int)
BUDGET = sb.PrivacyBudget(epsilon=1.0, delta=1e-5)
LABEL = {"unit": "label", "neighbours": "replace-one"}

FITS: dict[str, Any] = {
    "pate": lambda X, y, **more: sb.PATEClassifier(n_teachers=20, budget=BUDGET, **more).fit(
        X, y, X_public=X_PUBLIC, classes=[0, 1]
    ),
    "active": lambda X, y, **more: sb.ActivePATEClassifier(
        n_teachers=20, n_queries=20, budget=BUDGET, **more
    ).fit(X, y, X_public=X_PUBLIC, classes=[0, 1]),
    "label-private": lambda X, y, **more: sb.LabelPrivateClassifier(
        n_teachers=20, dropped=0.0, budget=BUDGET, **more
    ).fit(X, y, classes=[0, 1]),
    "moments": lambda X, y, **more: sb.RecordMomentsClassifier(budget=BUDGET, **more).fit(
        X, y, X_public=X_PUBLIC, classes=[0, 1]
    ),
    "number": lambda X, y, **more: sb.RecordMomentsRegressor((0, 1), budget=BUDGET, **more).fit(
        X, y, X_public=X_PUBLIC
    ),
    "labels": lambda X, y, **more: sb.RecordMomentsMultiLabelClassifier(budget=BUDGET, **more).fit(
        X, np.column_stack([y, 1 - y]), X_public=X_PUBLIC, labels=["a", "b"]
    ),
    "label-private moments": lambda X, y, **more: sb.LabelPrivateMomentsClassifier(
        budget=BUDGET, **more
    ).fit(X, y, classes=[0, 1]),
    "record votes": lambda X, y, **more: sb.RecordVotesClassifier(budget=BUDGET, **more).fit(
        X, y, X_public=X_PUBLIC, classes=[0, 1]
    ),
    "semi-private": lambda X, y, **more: sb.SemiPrivateClassifier(budget=BUDGET, **more).fit(
        X, y, X_public=X_PUBLIC, classes=[0, 1]
    ),
    "stability": lambda X, y, **more: sb.StabilityLabeler(
        budget=sb.PrivacyBudget(4.0, 1e-5), n_queries=5, n_teachers=100, max_unstable=1, **more
    ).fit(X, y, X_public=X_PUBLIC, classes=[0, 1]),
    "agnostic": lambda X, y, **more: sb.AgnosticLabeler(
        sb.hypotheses.DecisionStumps(3),
        budget=sb.PrivacyBudget(4.0, 1e-5),
        n_queries=2,
        alpha=0.9,
        beta=0.9,
        n_teachers=60,
        **more,
    ).fit(X, y, classes=[0, 1]),
    "universal": lambda X, y, **more: sb.UniversalLabeler(
        sb.hypotheses.DecisionStumps(3), budget=BUDGET, **more
    ).fit(X, y, classes=[0, 1], public_points_known=X_PUBLIC[:20]),
}


def account_of() -> sb.Ledger:
    return sb.Ledger.in_memory(dataset="this fit alone", budget=BUDGET)


@pytest.fixture(autouse=True)
def nothing_remembered() -> None:
    repeated_fits._remembered.clear()


@pytest.mark.parametrize("name", list(FITS))
def test_a_second_fit_of_the_same_records_is_told_before_it_spends(name: str) -> None:
    FITS[name](X, Y)
    with pytest.raises(RepeatedFitWarning, match="fitted before") as caught:  # as an error
        FITS[name](X, Y)
    assert not any(letter.isdigit() for letter in str(caught.value))
    assert len(repeated_fits._remembered) == 1  # the second one was stopped, and spent nothing


@pytest.mark.parametrize("name", list(FITS))
def test_fits_of_one_ledger_are_added_up_and_pass(name: str) -> None:
    terms = LABEL if name.startswith("label-private") else {}
    ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(20.0, 1e-2), **terms)
    FITS[name](X, Y, ledger=ledger)
    spent = ledger.spent().epsilon
    again = {"request": "second"} if name in ("stability", "agnostic", "universal") else {}
    FITS[name](X, Y, ledger=ledger, **again)
    assert ledger.spent().epsilon > spent
    other = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(20.0, 1e-2), **terms)
    with pytest.raises(RepeatedFitWarning):
        FITS[name](X, Y, ledger=other)
    assert other.history() == []


def test_other_learners_and_parts_of_the_records_are_told_too() -> None:
    FITS["pate"](X[:600], Y[:600])
    FITS["moments"](X[600:], Y[600:])  # other people: nothing adds up
    for rows in (slice(0, 300), slice(500, 1100), slice(None, None, -1)):
        with pytest.raises(RepeatedFitWarning):
            FITS["moments"](X[rows], Y[rows])
    with pytest.raises(RepeatedFitWarning):  # another target of the same people
        FITS["moments"](X, (X[:, 1] > 0).astype(int))


def test_what_was_refused_or_stopped_is_no_fit() -> None:
    with pytest.raises(sb.ParameterError):
        sb.PATEClassifier(n_teachers=20, budget=BUDGET, aggregator="median").fit(
            X, Y, X_public=X_PUBLIC, classes=[0, 1]
        )
    FITS["pate"](X, Y)


def test_cross_validation_and_searches_are_told_at_the_first_fit() -> None:
    model = sb.RecordMomentsClassifier(budget=BUDGET)
    given = {"X_public": X_PUBLIC, "classes": [0, 1]}
    with pytest.warns(RepeatedFitWarning) as told:
        scores = cross_val_score(model, X, Y, cv=3, params=given)
    assert np.mean(scores) > 0.7
    assert "cross-validation or a search" in str(told[0].message)
    assert len(told) == 3
    repeated_fits._remembered.clear()
    search = GridSearchCV(model, {"n_stages": [1, 2]}, cv=2)
    with pytest.warns(RepeatedFitWarning) as told:
        search.fit(X, Y, **given)
    assert len(told) == 5  # 2 settings, 2 folds, and the best one on all of them
    assert {str(one.message)[:8] for one in told} == {"This fit", "Some of "}


def test_a_search_in_one_ledger_is_stopped_by_it() -> None:
    ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(2.5, 1e-3))
    model = sb.RecordMomentsClassifier(budget=BUDGET, ledger=ledger)
    with pytest.raises(sb.BudgetError):
        cross_val_score(
            model, X, Y, cv=3, params={"X_public": X_PUBLIC, "classes": [0, 1]}, error_score="raise"
        )
    assert ledger.spent().epsilon == 2.0


def test_clones_and_ensembles_of_the_estimator_are_told() -> None:
    model = sb.RecordMomentsClassifier(budget=BUDGET)
    model.fit(X, Y, X_public=X_PUBLIC, classes=[0, 1])
    with pytest.raises(RepeatedFitWarning):
        clone(model).fit(X, Y, X_public=X_PUBLIC, classes=[0, 1])

    class WithPool(sb.RecordMomentsClassifier):
        def fit(self, X: Any, y: Any) -> Any:  # type: ignore[override]
            return super().fit(X, y, X_public=X_PUBLIC, classes=[0, 1])

    for ensemble, labels in (
        (BaggingClassifier(WithPool(budget=BUDGET), n_estimators=2, random_state=0), Y),
        (OneVsRestClassifier(WithPool(budget=BUDGET)), np.arange(len(X)) % 3),
    ):
        repeated_fits._remembered.clear()
        with pytest.raises(RepeatedFitWarning):
            ensemble.fit(X, labels)


def test_nothing_of_it_is_in_what_is_kept_or_shown() -> None:
    model = FITS["moments"](X, Y)
    with pytest.warns(RepeatedFitWarning):
        second = FITS["moments"](X, Y)
    assert set(vars(model)) == set(vars(second))
    assert second.certificate_.keys() == model.certificate_.keys()
    (first, _) = repeated_fits._remembered
    for written in (json.dumps(second.certificate_), repr(second), repr(first)):
        assert str(first.digests.whole) not in written
    assert str(int(first.digests.kept[0])).encode() not in pickle.dumps(second)


def test_what_is_remembered_is_bounded() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RepeatedFitWarning)
        for number in range(repeated_fits.MOST_REMEMBERED + 3):
            noted = repeated_fits.noted_fit(X + number, X_PUBLIC, account_of(), alone=True)
            noted.paid()
    assert len(repeated_fits._remembered) == repeated_fits.MOST_REMEMBERED


def test_an_order_of_release_and_warning_does_not_touch_generators() -> None:
    before = np.random.get_state()[1].tolist()  # noqa: NPY002
    repeated_fits.noted_fit(X, X_PUBLIC, account_of(), alone=True).paid()
    assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
