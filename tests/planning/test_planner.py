"""The planner's entry point: what may be given, and plans from a stand-in."""

import numpy as np
import pytest

import secretballot as sb
from quick_plans import quick_forecasts
from samples import synthetic_two_class
from secretballot.accounting import PrivacyBudget
from secretballot.exceptions import DataError, ParameterError

BUDGET = PrivacyBudget(1.0, 1e-5)


def stand_in(n=400):
    sample = synthetic_two_class(n, n_features=4, bayes_error=0.1, seed=1)
    return sample.X, sample.y


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_records": 0}, "n_records"),
        ({"n_public": 0}, "n_public"),
        ({"n_classes": 1}, "n_classes"),
        ({"budget": (1.0, 1e-5)}, "budget"),
        ({"teacher": "oracle"}, "teacher"),
        ({"n_teachers": 5000}, "give 17 to 400"),
        ({"like": stand_in()[0]}, "pair"),
    ],
)
def test_bad_settings_are_refused_in_a_sentence(changes, message):
    usual = {"n_records": 2000, "n_public": 100, "budget": BUDGET, "like": stand_in()}
    with pytest.raises(ParameterError, match=message):
        sb.plan(**usual | changes)


def test_bad_stand_ins_are_refused_in_a_sentence():
    X, y = stand_in()
    for like, message in (
        ((X[:99], y[:99]), "at least 100"),
        ((X, y[:-1]), "one class for each row"),
        ((X, y[:, None]), "one class for each row"),
        ((X, np.zeros(400, dtype=int)), "one class only"),
        ((X, np.where(y == 0, np.nan, 1.0)), "missing"),
        ((X, np.array([0, "one"] * 200, dtype=object)), "several kinds"),
    ):
        with pytest.raises(DataError, match=message):
            sb.plan(2000, 100, budget=BUDGET, like=like)
    with pytest.raises(ParameterError, match="3 classes and n_classes is 2"):
        sb.plan(2000, 100, budget=BUDGET, like=(X, y + (X[:, 0] > 0)), n_classes=2)
    with pytest.raises(ParameterError, match="indices from 0 to 2"):
        sb.plan(2000, 100, budget=BUDGET, like=(X, np.array(["no", "yes"])[y]), n_classes=3)


def test_votes_that_cannot_do_the_task_are_refused_in_a_sentence():
    said = "epsilon 0.01 with 100 records and 20 public points leads by votes to no student"
    budget = PrivacyBudget(epsilon=0.01, delta=1e-6)
    with quick_forecasts(), pytest.raises(ParameterError, match=said):
        sb.plan(100, 20, budget=budget, like=stand_in(), n_teachers=10)
