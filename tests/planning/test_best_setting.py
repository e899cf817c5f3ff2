"""Whole plans of votes from a stand-in: what may be given, what is recommended, that it keeps the
budget, and plans for one mechanism."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import secretballot as sb
from quick_plans import quick_forecasts
from samples import synthetic_two_class
from secretballot.accounting.recipes import deviation
from secretballot.exceptions import DataError, ParameterError
from secretballot.planning import best_setting
from secretballot.planning.best_setting import Tried, best_of, plan_votes, terms_of
from secretballot.planning.plan_model import Setting, Task, plan_text
from secretballot.planning.stand_in import RunOutcome

TASK = Task(20_000, 200, 2, 1.0, 1e-5, teacher="naive-bayes")


def stand_in(n=400):
    sample = synthetic_two_class(n, n_features=4, bayes_error=0.1, seed=1)
    return sample.X, sample.y


def planned(task=TASK):
    return plan_votes(task, *stand_in(800), seed=7)


@pytest.fixture(scope="module", autouse=True)
def quick():
    with quick_forecasts():
        yield


@pytest.fixture
def recommended_alone(monkeypatch):
    """Leave out what a plan says of other budgets and sizes, which comes last and takes longest."""
    for part in ("_frontier_points", "_improvements_of"):
        monkeypatch.setattr(best_setting, part, lambda *_: ())


@pytest.fixture(scope="module")
def made():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(best_setting, "FRONTIER", (0.1, 1.0, 2.0))
        return planned()


def test_the_recommended_setting_fits_the_task_and_keeps_the_budget(made):
    setting = made.recommended.setting
    assert setting.n_queries <= TASK.n_public
    assert setting.n_teachers <= TASK.n_records
    assert made.recommended.noise == terms_of(TASK, setting).mechanism.scale
    assert made.seed == 7
    values = [one.student_accuracy.value for one in made.evaluated]
    assert values == sorted(values, reverse=True)
    assert made.recommended in made.evaluated
    assert values[0] - made.recommended.student_accuracy.value <= 0.005
    assert made.recommended.student_accuracy.value > made.constant_accuracy


def test_more_epsilon_promises_no_less(made):
    assert [epsilon for epsilon, _ in made.frontier] == [0.1, 1.0, 2.0]
    values = [one.value for _, one in made.frontier if one is not None]
    assert all(later >= earlier - 0.01 for earlier, later in pairwise(values))
    assert made.frontier[1][1] == made.recommended.student_accuracy
    assert values[-1] > values[0]


@pytest.mark.usefixtures("recommended_alone")
def test_the_same_seed_recommends_the_same_before_other_budgets_are_tried(made):
    alone = planned()
    assert alone.frontier == alone.improvements == ()
    assert replace(alone, frontier=made.frontier, improvements=made.improvements) == made


def tried(values, **changes):
    plain = Setting(100, "gaussian", "labels", 200)
    runs = tuple(RunOutcome(value, 200.0) for value in values)
    return Tried(replace(plain, **changes), runs)


def test_of_those_as_good_as_the_best_the_plainest_wins():
    best = tried([0.9, 0.8, 0.85], n_queries=400)
    fewer = tried([0.8995, 0.7995, 0.8495], n_queries=100)
    active = tried([0.9002, 0.8002, 0.8502], n_queries=50, strategy="margin")
    worse = tried([0.88, 0.78, 0.83], n_queries=10)
    assert best_of([best, fewer, active, worse]) is fewer
    assert best_of([best, worse]) is best


def test_a_plan_of_a_threshold_is_turned_into_options(made):
    setting = Setting(100, "confident", "labels", 60, threshold=80, max_answers=20)
    best = replace(made.recommended, setting=setting)
    plan = replace(made, recommended=best, evaluated=(best, *made.evaluated))
    assert plan.to_json()["recommended"]["setting"]["threshold"] == 80
    assert plan.settings()["mechanism"] == "confident:threshold=80,max_answers=20"
    assert "confident labels" in plan_text(plan)


@pytest.mark.usefixtures("recommended_alone")
def test_without_a_delta_there_is_laplace_voting_alone():
    found = planned(replace(TASK, epsilon=4.0, n_public=60, delta=0.0))
    assert {one.setting.mechanism for one in found.evaluated} == {"laplace"}
    assert found.method == "pate"
    assert "nothing else was planned, since delta is 0" in plan_text(found)
    noise = terms_of(found.task, found.recommended.setting)
    assert (noise.mechanism.noise, noise.budget.delta) == ("laplace", 0)
    assert found.recommended.noise == deviation(noise.mechanism)


BUDGET = sb.PrivacyBudget(1.0, 1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_records": 0}, "n_records"),
        ({"n_public": 0}, "n_public"),
        ({"n_classes": 1}, "n_classes"),
        ({"budget": (1.0, 1e-5)}, "budget"),
        ({"teacher": "oracle"}, "teacher"),
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
    budget = sb.PrivacyBudget(epsilon=0.01, delta=1e-6)
    with pytest.raises(ParameterError, match=said):
        sb.plan(100, 20, budget=budget, like=stand_in(), method="pate")
