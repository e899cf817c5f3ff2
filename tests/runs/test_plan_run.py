"""Planning from files, plans on disk, and the runs and learners that plans supply."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from secretballot.runs.plan_agreement import check_settings
from sklearn.naive_bayes import GaussianNB

from secretballot.cli.settings import settings_of
from secretballot.exceptions import DataError, ParameterError
from secretballot.planning.plan.model import (
    Candidate,
    Estimate,
    Expected,
    FrontierPoint,
    Plan,
    Setting,
    Task,
)
from secretballot.runs import plan as plan_run
from secretballot.runs.plan import PlanRun, classifier_by_plan, run_by_plan, run_plan
from secretballot.runs.plan_files import read_plan, write_plan
from secretballot.runs.progress import Watch
from secretballot.runs.stand_in_table import StandInTable
from secretballot.runs.tables import RunTables, read_inputs

HALF = Estimate(0.5, 0.4, 0.6)
COUNTS = Setting(20, "gaussian", "counts", 50)
SETTINGS = (
    COUNTS,
    Setting(20, "gaussian", "labels", 40, strategy="margin"),
    Setting(30, "sparse-vector", "labels", 50, max_abstentions=2),
)


def plan_for(setting: Setting = COUNTS, **task: Any) -> Plan:
    """Return a plan that recommends a setting."""
    best = Candidate(setting, 10.0, Expected(Estimate(40, 30, 50), HALF, HALF, HALF))
    wanted = Task(
        **{"n_records": 600, "n_public": 50, "n_classes": 2, "epsilon": 4.0, "delta": 1e-5, **task}
    )
    return Plan(
        wanted, "guess", ("All is alike.",), best, (best,), 0.5, (FrontierPoint(4.0, best),), (), 0
    )


def tables(folder: Path) -> RunTables:
    return RunTables(folder / "private.csv", folder / "public.csv", "ill", ("no", "yes"))


# --- reading and writing ---


def test_a_plan_comes_back_from_its_folder(tmp_path: Path) -> None:
    made = plan_for(SETTINGS[2])
    files = write_plan(made, tmp_path / "deep" / "plan")
    names = {path.name for path in files}
    assert names == {"plan.json", "plan.txt"} | {
        f"{name}.{kind}"
        for name in ("frontier", "candidates", "teachers")
        for kind in ("svg", "png")
    }
    assert {path.name for path in (tmp_path / "deep" / "plan").iterdir()} == names
    assert read_plan(tmp_path / "deep" / "plan" / "plan.json") == made
    assert write_plan(made, tmp_path / "deep" / "plan") == files  # the same again is no harm


def test_another_plan_is_not_overwritten(tmp_path: Path) -> None:
    write_plan(plan_for(), tmp_path)
    before = (tmp_path / "plan.json").read_bytes()
    with pytest.raises(DataError, match=r"holds another plan; give a new one with --out\.$"):
        write_plan(plan_for(epsilon=2.0), tmp_path)
    assert (tmp_path / "plan.json").read_bytes() == before


def thesis(folder: Path) -> Path:
    (folder / "thesis.tex").write_text("years of work")
    return folder


def a_file(folder: Path) -> Path:
    (folder / "x").write_text("")
    return folder / "x"


def a_vault(folder: Path) -> Path:
    (folder / "vault").mkdir()
    (folder / "vault" / "run.lock").touch()
    return folder / "vault"


def in_a_release(folder: Path) -> Path:
    (folder / "release").mkdir()
    (folder / "release" / "certificate.json").touch()
    return folder / "release" / "plan"


def in_a_vault(folder: Path) -> Path:
    return a_vault(folder) / "plans" / "first"


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (thesis, "something else"),
        (a_file, "is a file"),
        (a_vault, "lies in the vault"),
        (in_a_vault, "stays secret"),
        (in_a_release, "lies in a release"),
    ],
)
def test_a_folder_of_others_is_refused_before_anything_is_weighed(
    tmp_path: Path, place: Callable[[Path], Path], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plan_run, "plan_votes", None)
    folder = place(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match=message):
        run_plan(PlanRun(600, 50, 4.0, 1e-5, classes=2, out=folder))
    with pytest.raises(DataError, match=message):
        write_plan(plan_for(), folder)
    assert sorted(tmp_path.rglob("*")) == before


def test_what_a_killed_command_left_is_swept_by_the_same_command(tmp_path: Path) -> None:
    (tmp_path / ".plan-abcd_123").mkdir()
    (tmp_path / ".plan-abcd_123" / "plan.txt").write_text("half")
    assert len(write_plan(plan_for(), tmp_path)) == len(list(tmp_path.iterdir()))


def spoilt(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    values = plan_for().to_json()
    change(values)
    path.write_text(json.dumps(values))


BAD_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "huge": (lambda path: (path.touch(), os.truncate(path, 1 << 40)), "more than any plan has"),
    "no JSON": (lambda path: path.write_text("plan: good"), "is no JSON text"),
    "deep": (lambda path: path.write_text("[" * 10**5), "is no JSON text"),
    "NaN": (
        lambda path: spoilt(path, lambda v: v.update(constant_accuracy=float("nan"))),
        "is no JSON text",
    ),
    "a field less": (
        lambda path: spoilt(path, lambda v: v["task"].pop("delta")),
        "exactly the fields",
    ),
    "recommended is not weighed": (
        lambda path: spoilt(path, lambda v: v.update(evaluated=[])),
        "not among those",
    ),
    "a strategy of nobody's": (
        lambda path: spoilt(path, lambda v: v["recommended"]["setting"].update(strategy="rm -rf")),
        "^[^:]*cannot be used: strategy is 'rm -rf'; it must be one of passive",
    ),
    "less than no answers": (
        lambda path: spoilt(
            path,
            lambda v: v["recommended"]["expected"].update(
                answered={"value": 7, "low": -6, "high": 8}
            ),
        ),
        "answered has the range -6 to 8; it must not be negative",
    ),
}


@pytest.mark.parametrize(("spoil", "message"), BAD_FILES.values(), ids=BAD_FILES.keys())
def test_a_file_that_is_no_plan_is_one_sentence(
    tmp_path: Path, spoil: Callable[[Path], object], message: str
) -> None:
    path = tmp_path / "plan.json"
    spoil(path)
    with pytest.raises(DataError, match=message) as caught:
        read_plan(path)
    assert str(caught.value).startswith(f"The plan {str(path)!r} ")
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("cannot be used") <= 1


# --- what a plan supplies ---


@pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda setting: setting.mechanism + setting.strategy
)
def test_a_run_by_a_plan_has_its_settings(tmp_path: Path, setting: Setting) -> None:
    plan = plan_for(setting)
    run = run_by_plan(plan, tables(tmp_path), tmp_path / "out", seed=3, teachers=setting.n_teachers)
    assert {name: getattr(run, name) for name in settings_of(plan)} == settings_of(plan)
    assert (run.epsilon, run.records, run.queries, run.seed) == (4.0, 600, setting.n_queries, 3)
    check_settings(plan, vars(run))


@pytest.mark.parametrize("name", [*settings_of(plan_for()), "estimate_epsilon"])
def test_every_setting_that_contradicts_is_named_with_both_values(
    tmp_path: Path, name: str
) -> None:
    plan = plan_for(SETTINGS[2])
    given: Any = {str: "tree", int: 7, float: 0.5, type(None): 0.5}[
        type(settings_of(plan).get(name))
    ]
    run = run_by_plan(plan, tables(tmp_path), tmp_path / "out", **{name: given})
    with pytest.raises(ParameterError, match=f"^{name} .*leave one of the two out\\.$") as caught:
        check_settings(plan, vars(run))
    if name in settings_of(plan):
        assert repr(given) in str(caught.value)
        planned = settings_of(plan)[name]
        assert ("none" if planned is None else repr(planned)) in str(caught.value)


def test_only_settings_tell_runs_apart(tmp_path: Path) -> None:
    """Another plan is another run where it changes a setting, and the same where it only expects
    otherwise."""
    for name in ("private.csv", "public.csv"):
        (tmp_path / name).write_text(f"a,ill\n1,{name}\n")

    def described(plan: Plan) -> dict[str, Any]:
        return run_by_plan(plan, tables(tmp_path), tmp_path / "out").description()

    plan = plan_for()
    assert described(replace(plan, seed=5, assumptions=())) == described(plan)
    for other in (
        plan_for(SETTINGS[1]),
        plan_for(epsilon=2.0),
        plan_for(n_records=599),
        plan_for(teacher="tree"),
    ):
        assert described(other) != described(plan)


def test_a_plan_alone_has_no_code_imported(tmp_path: Path) -> None:
    plan = plan_for(teacher="antigravity:fly")
    for make in (
        lambda: run_by_plan(plan, tables(tmp_path), tmp_path / "out"),
        lambda: classifier_by_plan(plan),
    ):
        with pytest.raises(
            ParameterError,
            match="'antigravity:fly' by the plan, and a plan alone must not have code",
        ):
            make()
    assert classifier_by_plan(plan, teacher=GaussianNB()).n_teachers == 20
    run = run_by_plan(plan, tables(tmp_path), tmp_path / "out", teacher="antigravity:fly")
    assert run.teacher == "antigravity:fly"


@pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda setting: setting.mechanism + setting.strategy
)
def test_a_learner_by_a_plan_learns_as_planned(setting: Setting) -> None:
    rng = np.random.default_rng(0)
    X, X_public = rng.normal(size=(600, 3)), rng.normal(size=(50, 3))
    plan = plan_for(
        setting, epsilon=20.0, student="logistic" if setting.release == "labels" else "auto"
    )
    model = classifier_by_plan(plan, random_state=1)
    assert model.in_rounds == (setting.strategy == "margin")
    model.fit(X, (X[:, 0] > 0).astype(int), X_public=X_public, classes=[0, 1])
    certificate = model.certificate_
    assert (certificate["epsilon"], certificate["delta"]) == (20.0, 1e-5)
    assert model.released_.n_teachers == setting.n_teachers
    assert len(model.released_.queries) <= setting.n_queries
    assert (model.released_.noisy_counts is not None) == (setting.release == "counts")


def test_a_learner_takes_no_setting_twice_and_none_unknown() -> None:
    with pytest.raises(ParameterError, match=r"^budget, n_teachers follows from the plan"):
        classifier_by_plan(plan_for(), n_teachers=3, budget=None)
    with pytest.raises(ParameterError, match="round_size is no parameter of PATEClassifier"):
        classifier_by_plan(plan_for(), round_size=3)
    with pytest.raises(ParameterError, match=r"^strategy follows from the plan"):
        classifier_by_plan(plan_for(SETTINGS[1]), strategy=None)
    with pytest.raises(ParameterError, match="plan is a dict of length 0"):
        classifier_by_plan({})  # type: ignore[arg-type]


# --- planning ---


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Put a recorder in the place of the planner."""
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def make(*words: Any, **settings: Any) -> Plan:
        calls.append((words, settings))
        made = plan_for()
        return replace(made, task=replace(made.task, n_classes=settings["n_classes"]))

    monkeypatch.setattr(plan_run, "plan_votes", make)
    # tables of a few rows, on which nothing can be tried
    monkeypatch.setattr(plan_run, "checked_stand_in", lambda like, n_classes: (*like, n_classes))
    monkeypatch.setattr(plan_run, "forecast_moments", lambda *_, **__: None)
    return calls


TABLE = "person,age,ward,ill\n1,20,a,yes\n2,30,b,no\n3,45,a,no\n4,?,b,yes\n"


def stand_in(folder: Path, text: str = TABLE, **settings: Any) -> StandInTable:
    (folder / "like.csv").write_text(text)
    return StandInTable(folder / "like.csv", **{"target": "ill", "drop": ("person",), **settings})


@pytest.mark.parametrize("with_schema", [False, True])
def test_a_stand_in_is_encoded_as_the_run_to_come_encodes(
    asked: list[Any], tmp_path: Path, with_schema: bool
) -> None:
    schema = None
    if with_schema:
        schema = tmp_path / "schema.json"
        schema.write_text(
            json.dumps(
                {"columns": {"age": "numeric", "ward": ["a", "b", "c"]}, "classes": ["no", "yes"]}
            )
        )
    run_plan(PlanRun(600, 50, 4.0, 1e-5, classes=None, like=stand_in(tmp_path, schema=schema)))
    X, index = asked[0][1]["like"]
    (tmp_path / "private.csv").write_text(TABLE)
    (tmp_path / "public.csv").write_text(
        "\n".join(line.rsplit(",", 1)[0] for line in TABLE.splitlines())
    )
    inputs = read_inputs(replace(tables(tmp_path), drop=("person",), schema=schema), Watch())
    assert (X == inputs.private.X).all()
    assert index.tolist() == inputs.private.targets.tolist() == [1, 0, 0, 1]
    assert asked[0][1]["n_classes"] == 2
