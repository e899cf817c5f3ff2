"""Whole plans from learning curves: what is recommended, that it is better, and what is refused."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import secretballot as sb
from secretballot.accounting.recipes import laplace_deviation
from secretballot.exceptions import ParameterError
from secretballot.planning.plan.model import Plan, Setting, Task
from secretballot.planning.plan.text import plan_text
from secretballot.planning.search import best_setting, settings
from secretballot.planning.search.best_setting import make_plan
from secretballot.planning.search.evaluation import Tried, best_of
from secretballot.planning.search.settings import terms_of
from secretballot.planning.simulation.curve import CurveModel
from secretballot.planning.simulation.seeded_noise import SeededNoise
from secretballot.planning.simulation.votes import RunOutcome
from sessions import told_labels

TASK = Task(20_000, 200, 2, 1.0, 1e-5)
CURVE = {50: 0.75, 400: 0.85}


@pytest.fixture(scope="module", autouse=True)
def few_stops() -> Iterator[None]:
    """Calibrate one stream, which no plan here recommends."""
    with pytest.MonkeyPatch.context() as quick:
        quick.setattr(settings, "STOPS", (10,))
        yield


@pytest.fixture(scope="module")
def model() -> CurveModel:
    return CurveModel(CURVE, n_classes=2)


@pytest.fixture(scope="module")
def made(model: CurveModel) -> Plan:
    with pytest.MonkeyPatch.context() as quick:
        quick.setattr(best_setting, "FRONTIER", (0.1, 1.0, 2.0))
        return make_plan(TASK, model, seed=7)


def test_the_recommended_setting_fits_the_task_and_keeps_the_budget(made: Plan) -> None:
    setting = made.recommended.setting
    assert setting.n_queries <= TASK.n_public
    assert setting.n_teachers <= TASK.n_records
    assert made.recommended.noise == terms_of(TASK, setting).mechanism.scale
    assert made.source == "curve"
    assert made.seed == 7


def test_candidates_stand_by_their_accuracy_and_the_recommended_one_is_as_good_as_the_best(
    made: Plan,
) -> None:
    values = [one.expected.student_accuracy.value for one in made.evaluated]
    assert values == sorted(values, reverse=True)
    assert made.recommended in made.evaluated
    assert values[0] - made.recommended.expected.student_accuracy.value <= 0.005
    assert made.recommended.expected.student_accuracy.value > made.constant_accuracy


def test_more_epsilon_promises_no_less(made: Plan) -> None:
    assert [point.epsilon for point in made.frontier] == [0.1, 1.0, 2.0]
    values = [
        point.candidate.expected.student_accuracy.value
        for point in made.frontier
        if point.candidate
    ]
    assert all(later >= earlier - 0.005 for earlier, later in pairwise(values))
    assert made.frontier[1].candidate == made.recommended
    assert values[-1] > values[0] + 0.01


@pytest.mark.usefixtures("recommended_alone")
def test_the_same_seed_recommends_the_same_before_other_budgets_are_tried(made: Plan) -> None:
    alone = make_plan(TASK, CurveModel(CURVE, n_classes=2), seed=7)
    assert alone.frontier == alone.improvements == ()
    assert replace(alone, frontier=made.frontier, improvements=made.improvements) == made


@pytest.mark.usefixtures("recommended_alone")
@pytest.mark.parametrize("n_classes", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_the_plan_comes_true_on_votes_from_its_own_world_and_beats_250_teachers(
    n_classes: int,
) -> None:
    world = CurveModel({50: 0.7, 400: 0.85}, n_classes=n_classes, seed=99)
    task = Task(40_000, 800, n_classes, 0.5, 1e-5)
    found = make_plan(
        task, CurveModel({50: 0.7, 400: 0.85}, n_classes=n_classes, seed=1)
    ).recommended
    planned, n_right = [], 0
    for release in ("labels", "counts"):
        naive = Setting(250, "gaussian", release, task.n_public)
        planned.append(world.simulate(naive, terms_of(task, naive), task.n_records, 0).student)
    ours = world.simulate(found.setting, terms_of(task, found.setting), task.n_records, 0).student
    assert ours >= max(planned) - 0.003
    assert ours > min(planned) + 0.02
    sample = world.votes(found.setting.n_teachers, task.n_records, 0)
    rng = np.random.default_rng(3)
    for _ in range(10):
        rows = rng.integers(len(sample.truth), size=found.setting.n_queries)
        plan = terms_of(task, found.setting)
        labels = told_labels(plan, sample.counts[rows], SeededNoise(rng))
        n_right += int((labels == sample.truth[rows]).sum())
    measured = n_right / (10 * found.expected.answered.value)
    assert measured == pytest.approx(found.expected.label_accuracy.value, abs=0.02)
    assert found.expected.label_accuracy.low <= measured <= found.expected.label_accuracy.high


@pytest.mark.usefixtures("recommended_alone")
@pytest.mark.slow
def test_an_impossible_task_says_which_epsilon_and_how_many_records_would_do() -> None:
    model = CurveModel({50: 0.6, 400: 0.65}, n_classes=2)
    task = Task(300, 60, 2, 0.02, 1e-6)
    with pytest.raises(ParameterError) as refused:
        make_plan(task, model)
    text = str(refused.value)
    assert "epsilon 0.02 with 300 records and 60 public points" in text
    epsilon = float(text.split("epsilon of about ")[1].split(" ")[0])
    records = int(text.split("or about ")[1].split(" ")[0].replace(",", ""))
    assert epsilon > 0.02
    assert records > 300
    make_plan(replace(task, epsilon=1.6 * epsilon), model)
    make_plan(replace(task, n_records=2 * records), model)
    with pytest.raises(ParameterError):
        make_plan(replace(task, epsilon=epsilon / 3), model)


def tried(values: list[float], **changes: object) -> Tried:
    plain = Setting(100, "gaussian", "labels", 200)
    runs = tuple(RunOutcome(value, 0.9, 0.9, 200.0) for value in values)
    return Tried(replace(plain, **changes), runs)


def test_of_those_as_good_as_the_best_the_plainest_wins() -> None:
    best = tried([0.9, 0.8, 0.85], n_queries=400)
    fewer = tried([0.8995, 0.7995, 0.8495], n_queries=100)
    active = tried([0.9002, 0.8002, 0.8502], n_queries=50, strategy="margin")
    worse = tried([0.88, 0.78, 0.83], n_queries=10)
    assert best_of([best, fewer, active, worse]) is fewer
    assert best_of([best, worse]) is best


def test_without_a_delta_laplace_voting_is_planned(model: CurveModel) -> None:
    plan = make_plan(replace(TASK, delta=0.0), model)
    assert plan.votes.setting.mechanism == "laplace"
    assert {one.setting.mechanism for one in plan.evaluated} == {"laplace"}
    noise = terms_of(plan.task, plan.votes.setting)
    assert noise.mechanism.noise == "laplace"
    assert plan.votes.noise == pytest.approx(laplace_deviation(noise.mechanism.scale))
    assert noise.budget.delta == 0


@pytest.mark.parametrize(
    ("name", "strategy"), [("confident", "passive"), ("interactive", "margin")]
)
def test_a_plan_of_a_threshold_is_turned_into_options(made: Plan, name: str, strategy: str) -> None:
    setting = Setting(100, name, "labels", 60, strategy=strategy, threshold=80, max_answers=20)
    best = replace(made.votes, setting=setting)
    plan = replace(made, recommended=best, evaluated=(best, *made.evaluated))
    kept = json.loads(json.dumps(plan.to_json()))
    assert kept["recommended"]["setting"]["threshold"] == 80
    of_run = plan.settings()
    assert of_run["mechanism"] == f"{name}:threshold=80,max_answers=20"
    assert of_run.get("strategy", "passive") == strategy
    assert f"{name} labels" in plan_text(plan)
    model = sb.classifier_by_plan(plan)
    assert model.mechanism == f"{name}:threshold=80,max_answers=20"
    assert model.strategy == strategy


@pytest.mark.parametrize("name", ["laplace", "vote-table", "abstention-table"])
def test_a_plan_for_a_mechanism_has_no_other(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(best_setting, "FRONTIER", (1.0, 2.0))
    monkeypatch.setattr(best_setting, "_improvements_of", lambda *_: ())
    task = replace(TASK, epsilon=4.0, n_public=60, mechanism=name)
    found = make_plan(task, CurveModel(CURVE, n_classes=2), n_teachers=900)
    tried_ones = [one.setting for one in found.evaluated]
    tried_ones += [one.candidate.setting for one in found.frontier if one.candidate is not None]
    assert {one.mechanism for one in tried_ones} == {name}
    kept = json.loads(json.dumps(found.to_json()))
    assert kept["task"]["mechanism"] == name
    assert found.method == "pate"
    assert "nothing else was planned, since the mechanism was given" in plan_text(found)
