"""Record moments in a plan: forecast on a stand-in, recommended in words, and carried out."""

import contextlib
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import secretballot as sb
from quick_plans import quick_forecasts
from secretballot.cli import app
from secretballot.exceptions import ParameterError
from secretballot.planning import moments_forecast
from secretballot.planning.moments_forecast import forecast_moments
from secretballot.planning.plan_model import Task, plan_text
from secretballot.runs.plan import _plan_toml

BUDGET = sb.PrivacyBudget(1.0, 1e-5)


def rows(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    score = X[:, 0] + X[:, 1] - 0.5 * X[:, 2] + 0.6 * rng.normal(size=n)
    return X, (score > 0).astype(np.int64)


def test_the_noise_is_that_of_all_records_and_drawn_by_the_seed(monkeypatch):
    """Fewer records drown in the same noise, and a stand-in of one size says so."""
    for name, value in {"FRONTIER": (1.0,), "_HERE": 0, "_HALVED": (0,), "_TURNS": 2}.items():
        monkeypatch.setattr(moments_forecast, name, value)
    X, y = rows(250, 0)
    few, many, same = (
        forecast_moments(Task(n, 500, 2, 0.03, 1e-5), X, y) for n in (600, 60_000, 600)
    )
    assert few.student_accuracy.value + 0.1 < many.student_accuracy.value
    assert few == same  # a plan is the same each time


@pytest.fixture(scope="module")
def made():
    # of the built-in teachers the quickest
    with quick_forecasts():
        return sb.plan(5000, 200, budget=BUDGET, like=rows(600, 0), teacher="naive-bayes")


def test_a_plan_with_a_stand_in_compares_the_methods(made):
    assert (made.task.n_classes, made.task.student, made.moments is not None) == (2, "auto", True)
    assert 0.7 < made.recommended.student_accuracy.value < 0.9  # at best 0.87
    assert made.method == "record-moments"
    assert made.student_accuracy == made.moments.student_accuracy
    text = plan_text(made)
    assert f"recommended  record-moments: accuracy {made.student_accuracy.value:.3f}" in text
    assert re.search(r"instead      pate: accuracy [01]\.\d+", text)
    assert made.settings()["method"] == "record-moments"
    assert "n_teachers" not in made.settings()


def test_a_plan_of_moments_is_carried_out(tmp_path, made):
    for name, n, seed in (("private", 4800, 3), ("public", 200, 4), ("test", 500, 5)):
        X, y = rows(n, seed)
        table = pd.DataFrame(X, columns=list("abcd"))
        if name != "public":
            table["ill"] = np.where(y, "yes", "no")
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    (tmp_path / "plan.toml").write_text(_plan_toml(made))
    words = "learn private.csv public.csv --target ill --classes no,yes --config plan.toml"
    words += " --ledger own --out out --evaluate test.csv"
    with contextlib.chdir(tmp_path):
        result = CliRunner().invoke(app, [*words.split(), "--json"])
        again = CliRunner().invoke(app, words.split())
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["method"] == "record-moments"
    assert (document["epsilon"], document["delta"]) == (1.0, 1e-5)
    _, low, high = document["forecast"]["student_accuracy"]
    assert low - 0.02 < document["accuracy"] < high + 0.02
    assert "finished already" in again.stderr
    assert "forecast   student accuracy 0." in again.stdout


def test_a_plan_with_weights_of_classes_has_no_votes_and_hands_them_on(tmp_path):
    X, _ = rows(600, 0)
    rare = (X[:, 0] > 1.8).astype(np.int64)
    with quick_forecasts():
        made = sb.plan(4000, 200, budget=BUDGET, like=(X, rare), class_weight="balanced")
    assert (made.method, made.recommended, made.evaluated) == ("record-moments", None, ())
    assert made.settings()["class_weight"] == "balanced"
    assert made.student_accuracy is not None
    plain = replace(made, task=replace(made.task, class_weight=None))
    assert "beware       The rarest class of the stand-in has" in plan_text(plain)
    assert "would be worthless" not in plan_text(plain)
    few = replace(plain, task=replace(plain.task, epsilon=0.01))
    told = " ".join(plan_text(few).split())
    assert "noise hides fewer than 10000: the release may be worthless" in told
    with pytest.raises(ParameterError, match="class_weight is about record-moments"):
        sb.plan(4000, 200, budget=BUDGET, like=(X, rare), method="pate", class_weight="balanced")
