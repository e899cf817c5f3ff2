"""Planning from files, by `plan` and in Python: words for a person, plans on disk, the runs that
plans supply, and bad input in one sentence."""

import json
import re
import shlex
from dataclasses import replace

import pytest

from made_plans import COUNTS, plan_for
from patients import invoke
from secretballot._validation import named
from secretballot.exceptions import DataError, ParameterError
from secretballot.learners.pate_mechanisms import _OF_CLASSES, _noise_of
from secretballot.planning.plan_model import Setting
from secretballot.runs import plan as plan_run
from secretballot.runs.plan import _plan_toml, run_plan
from secretballot.runs.questions import Watch
from secretballot.runs.spec import RunSpec, Sources
from secretballot.runs.tables import RunInputs

SETTINGS = (
    COUNTS,
    Setting(20, "gaussian", "labels", 40, strategy="margin"),
    Setting(30, "sparse-vector", "labels", 50, max_abstentions=2),
)
PUBLIC_NUMBERS = {"n_records": 600, "public": "50", "epsilon": 4.0, "delta": 1e-5}


def spec_of(folder, plan):
    """Return the settings that a run reads of a plan."""
    (folder / "plan.toml").write_text(_plan_toml(plan))
    return RunSpec.read(folder / "plan.toml")


@pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda setting: setting.mechanism + setting.strategy
)
def test_a_plan_is_the_settings_of_its_run(tmp_path, setting):
    made = plan_for(setting)
    spec = spec_of(tmp_path, made)
    assert spec.identity().items() >= made.settings().items()
    assert (spec.method.name, spec.method.random_state) == ("pate", 0)
    assert spec.forecast is not None
    assert spec.forecast["student_accuracy"] == (0.5, 0.4, 0.6)
    name, own = named("mechanism", made.settings()["mechanism"], _OF_CLASSES)
    assert _noise_of(name) == setting.mechanism or name == setting.mechanism
    assert own.get("max_abstentions") == setting.max_abstentions


@pytest.mark.parametrize(
    ("there", "place", "message"),
    [
        ("x", "x", "exists; give a new folder"),
        ("vault/run.lock", "vault/plans/first", "lies in the vault"),
        ("release/certificate.json", "release/plan", "or in a release"),
    ],
)
def test_a_folder_of_others_is_refused_before_anything_is_weighed(
    tmp_path, there, place, message, monkeypatch
):
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).touch()
    monkeypatch.setattr(plan_run, "plan_votes", None)
    folder = tmp_path / place
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(DataError, match=message):
        run_plan(Sources(fields=PUBLIC_NUMBERS | {"classes": "2"}), out=folder)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.fixture
def asked(monkeypatch):
    """Put a recorder in the place of the planner."""
    calls = []

    def make(task, X, y, *, progress, **settings):
        calls.append({**vars(task), **settings, "rows": (X, y)})
        progress(1, 2)
        return replace(plan_for(), task=task)

    monkeypatch.setattr(plan_run, "plan_votes", make)
    # tables of a few rows, on which nothing can be tried
    monkeypatch.setattr(plan_run, "checked_stand_in", lambda like, n_classes: (*like, n_classes))
    monkeypatch.setattr(plan_run, "forecast_moments", lambda *_, **__: None)
    return calls


TABLE = "person,age,ward,ill\n1,20,a,yes\n2,30,b,no\n3,45,a,no\n4,?,b,yes\n"


@pytest.mark.parametrize("with_schema", [False, True])
def test_a_stand_in_is_encoded_as_the_run_to_come_encodes(asked, tmp_path, with_schema):
    fields = {"target": "ill", "drop": "person"}
    if with_schema:
        fields["schema"] = tmp_path / "schema.json"
        fields["schema"].write_text(
            json.dumps(
                {"columns": {"age": "numeric", "ward": ["a", "b", "c"]}, "classes": ["no", "yes"]}
            )
        )
    for name in ("like.csv", "private.csv"):
        (tmp_path / name).write_text(TABLE)
    (tmp_path / "public.csv").write_text(
        "\n".join(line.rsplit(",", 1)[0] for line in TABLE.splitlines())
    )
    run_plan(Sources(fields=PUBLIC_NUMBERS | fields), like=tmp_path / "like.csv")
    X, index = asked[0]["rows"]
    places = {name: tmp_path / f"{name}.csv" for name in ("private", "public")}
    spec = RunSpec.read(**fields, **places, classes="no,yes", epsilon=4, delta=1e-5)
    inputs = RunInputs(spec, Watch())
    assert (inputs.private.rows == X).all()
    assert index.tolist() == inputs.private.targets.tolist() == [1, 0, 0, 1]
    assert asked[0]["n_classes"] == 2


def test_a_plan_keeps_what_was_given_of_the_run_to_come(asked, tmp_path):
    """The command that a plan prints names two tables and the plan alone."""
    for name in ("like.csv", "public.csv"):
        (tmp_path / name).write_text(TABLE)
    given = {"target": "ill", "drop": "person", "title": "Stays", "public": tmp_path / "public.csv"}
    sources = Sources(fields=PUBLIC_NUMBERS | given)
    run_plan(sources, like=tmp_path / "like.csv", out=tmp_path / "plan")
    spec = RunSpec.read(tmp_path / "plan" / "plan.toml", private="p.csv", public="q.csv")
    assert (spec.data.target, spec.data.drop, spec.about.title) == (("ill",), ("person",), "Stays")
    with pytest.raises(ParameterError, match=r"target is 'age' and the plan has 'ill'"):
        RunSpec.read(tmp_path / "plan" / "plan.toml", target="age")


def plan(*words):
    return invoke("plan", "120", "--n-records", "600", "--epsilon", "4", "--delta", "1e-5", *words)


LIKE = ("--like", "like.csv", "--target", "ill")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "like.csv").write_text(TABLE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_person_gets_words(asked, folder):
    result = plan(*LIKE, "--out", "p")
    assert result.exit_code == 0, result.stderr
    assert "recommended  pate: accuracy 0.500 (0.400 to 0.600)" in result.stdout
    assert "assumed      The stand-in is public" in result.stdout
    _, _, command = result.stdout.partition("next         ")
    words = shlex.split("secretballot learn PRIVATE PUBLIC --config p/plan.toml")
    assert shlex.split(command.replace("\\\n", "")) == words
    assert result.stderr == ""  # no progress bar where there is no terminal
    names = {path.name for path in (folder / "p").iterdir()}
    assert names >= {"plan.toml", "plan.json", "frontier.svg", "frontier.png"}


@pytest.mark.usefixtures("folder")
def test_options_reach_the_planner(asked):
    more = (*LIKE, "--teacher", "knn")
    seed = ("--set", "random_state=3")
    assert plan(*more, "--student", "tree", *seed).exit_code == 0
    assert plan(*more).exit_code == 0
    first, second = asked
    sizes = ("n_records", "n_public", "n_classes", "epsilon", "delta")
    assert tuple(first[name] for name in sizes) == (600, 120, 2, 4, 1e-5)
    assert (first["teacher"], first["student"], first["seed"]) == ("knn", "tree", 3)
    assert second["teacher"] == "knn"


BAD = {
    "epsilon nan": (("--classes", "2", "--epsilon", "nan"), "--epsilon is nan"),
    "table without target": (("--like", "like.csv"), "--target is missing; name the column"),
    "interactive": (
        (*LIKE, "--set", "mechanism=interactive"),
        "mechanism is given, and a forecast finds it itself; leave it out, or leave --like out",
    ),
    "teachers": ((*LIKE, "--n-teachers", "9"), "--n-teachers is given, and a forecast finds it"),
    "a number": (
        ("--like", "like.csv", "--target", "age", "--bounds", "0,9"),
        "--target is a number, and a forecast is for one of classes; leave it out, or leave --like",
    ),
    "a choice": (
        (*LIKE, "--delta", "0", "--set", "hypotheses=stumps"),
        "--method is semi-private, and a forecast compares record-moments and pate; leave it",
    ),
    "nothing to write": (
        ("--classes", "2", "--out", "plan"),
        "--out is given, and without a public table or a forecast nothing is written; leave it out",
    ),
    "a folder in use": (("--classes", "2", "--out", "."), "exists; give a new folder"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_sentence(asked, folder, words, message):
    result = plan(*words, "--json")
    assert result.exit_code == 2, result.output
    sentence = result.stderr.strip()
    assert "\n" not in sentence
    assert re.search(message, sentence)
    assert json.loads(result.stdout)["error"] == sentence.removeprefix("secretballot: ")
    assert not asked
    assert [path.name for path in folder.iterdir()] == ["like.csv"]
