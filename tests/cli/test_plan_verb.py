"""`secretballot plan`: words for a person, settings for `learn --config`, and bad input in one
sentence."""

import json
import re
import shlex
from dataclasses import replace

import pytest

from made_plans import plan_for
from patients import invoke, write_files
from secretballot.planning.plan_model import Estimate, Setting
from secretballot.runs import plan as plan_run

SIZES = ("120", "--n-records", "600", "--epsilon", "4", "--delta", "1e-5")
SHARE = Estimate(0.8, 0.75, 0.85)
BEST = Setting(20, "gaussian", "counts", 100)


def plan(*words):
    return invoke("plan", *SIZES, *words)


@pytest.fixture
def asked(monkeypatch):
    """Put a quick planner in the place of the real one, and return what it is asked."""
    calls = []

    def make(task, X, y, *, progress, **settings):
        calls.append({**vars(task), **settings})
        progress(1, 2)
        return replace(plan_for(BEST, SHARE), task=task)

    monkeypatch.setattr(plan_run, "plan_votes", make)
    monkeypatch.setattr(plan_run, "forecast_moments", lambda *_, **__: None)
    return calls


def like(folder):
    """Return the options of a labelled table that is written into a folder."""
    write_files(folder, 600)
    return ("--like", str(folder / "test.csv"), "--target", "ill")


def test_a_person_gets_words(asked, tmp_path):
    result = plan(*like(tmp_path), "--out", str(tmp_path / "p"))
    assert result.exit_code == 0, result.stderr
    for part in (
        "recommended  pate: accuracy 0.800 (0.750 to 0.850)",
        "assumed      The stand-in is public",
    ):
        assert part in result.stdout
    config = tmp_path / "p" / "plan.toml"
    _, _, command = result.stdout.partition("next         ")
    assert shlex.split(command.replace("\\\n", "")) == shlex.split(
        f"secretballot learn PRIVATE PUBLIC --config {config}"
    )
    assert result.stderr == ""  # no progress bar where there is no terminal
    names = {path.name for path in (tmp_path / "p").iterdir()}
    assert names >= {"plan.toml", "plan.json", "frontier.svg", "frontier.png"}


def test_options_reach_the_planner(asked, tmp_path):
    more = (*like(tmp_path), "--teacher", "knn")
    seed = ("--set", "random_state=3")
    assert plan(*more, "--student", "tree", "--n-teachers", "9", *seed).exit_code == 0
    assert plan(*more).exit_code == 0
    first, second = asked
    sizes = ("n_records", "n_public", "n_classes", "epsilon", "delta")
    assert tuple(first[name] for name in sizes) == (600, 120, 2, 4, 1e-5)
    assert (first["teacher"], first["student"], first["seed"]) == ("knn", "tree", 3)
    assert first["n_teachers"] == 9
    assert (second["teacher"], second["n_teachers"]) == ("knn", None)


def test_a_run_by_a_plan_takes_its_classes(asked, tmp_path):
    """They are public, and read off a public table."""
    folder = tmp_path / "plan"
    made = plan(*like(tmp_path), "--out", str(folder))
    assert made.exit_code == 0, made.stderr
    words = f"learn {tmp_path}/private.csv {tmp_path}/public.csv --target ill --drop patient"
    asks = [*shlex.split(words), "--config", str(folder / "plan.toml"), "--confirm", "noise"]
    asks += ["--total", "4,1e-5"]
    result = invoke(*asks, "--out", str(tmp_path / "out"))
    assert result.exit_code == 0, result.stderr
    described = json.loads((tmp_path / "out" / "vault" / "run.json").read_text())["description"]
    assert described["classes"] == ["no", "yes"]
    certificate = json.loads((tmp_path / "out" / "release" / "certificate.json").read_text())
    assert certificate["released"]["classes"] == ["no", "yes"]


BAD = {
    "epsilon nan": (("--classes", "2", "--epsilon", "nan"), "--epsilon is nan"),
    "table without target": (("--like", "like.csv"), "--target is missing; name the column"),
    "interactive": (
        ("--like", "like.csv", "--target", "ill", "--set", "mechanism=interactive"),
        "mechanism is given, and a forecast finds it itself; leave it out, or leave --like out",
    ),
    "a number": (
        ("--like", "like.csv", "--target", "a", "--bounds", "0,9"),
        "--target is a number, and a forecast is for one of classes; leave it out, or leave --like",
    ),
    "a choice": (
        ("--like", "like.csv", "--target", "ill", "--delta", "0", "--set", "hypotheses=stumps"),
        "--method is semi-private, and a forecast compares record-moments and pate; leave it",
    ),
    "nothing to write": (
        ("--classes", "2", "--out", "plan"),
        "--out is given, and without a public table or a forecast nothing is written; leave it out",
    ),
    "a folder in use": (("--classes", "2", "--out", "."), "exists; give a new folder"),
}


@pytest.mark.parametrize(("words", "message"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_one_sentence(asked, tmp_path, monkeypatch, words, message):
    (tmp_path / "like.csv").write_text("a,ill\n1,yes\n")
    monkeypatch.chdir(tmp_path)
    result = plan(*words, "--json")
    assert result.exit_code == 2, result.output
    sentence = result.stderr.strip()
    assert "\n" not in sentence
    assert re.search(message, sentence)
    assert json.loads(result.stdout)["error"] == sentence.removeprefix("secretballot: ")
    assert not asked
    assert [path.name for path in tmp_path.iterdir()] == ["like.csv"]
