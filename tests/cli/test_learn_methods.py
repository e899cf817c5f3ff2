"""`secretballot learn` by each method of tables: what it writes, resumption, and poor tables."""

import json

import numpy as np
import pandas as pd
import pytest

from patients import N_PRIVATE, certificate_in, document_of, invoke, words_of_run
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.account import AnswerPage

QUIET = ("--set", "exclude=report", "--json")


def learn(folder, *more, unit=False):
    """Run a small, complete command; later options override earlier ones."""
    return invoke(*words_of_run(folder, *more, unit=unit))


def test_persons_relation_records_and_ledger(files):
    more = ["--ledger", str(files / "l.sqlite"), "--dataset", "registry", "--set", "n_records=900"]
    document = document_of(learn(files, *more, "--json", "--set", "exclude=report", unit=True))
    assert document["method"] == "record-moments"
    certificate = certificate_in(files / "out")
    assert (certificate["unit"], certificate["unit_column"]) == ("user", "patient")
    assert certificate["public"]["n_records"] is None  # the sums count them
    assert certificate["composition"]["dataset"] == "registry"
    out = ["--out", str(files / "two"), "--set", "relation=replace-one", "--set", "exclude=report"]
    assert learn(files, *out).exit_code == 0
    second = certificate_in(files / "two")
    assert second["public"]["n_records"] == N_PRIVATE


@pytest.mark.parametrize("stage", [0, 2])
def test_a_run_that_was_interrupted_between_stages_pays_once(files, monkeypatch, stage):
    drawn = []
    add = AnswerPage.add

    def interrupted(self, answers):
        if len(drawn) == stage:
            raise KeyboardInterrupt
        drawn.append(answers[0][1])
        add(self, answers)

    with monkeypatch.context() as broken:
        broken.setattr(AnswerPage, "add", interrupted)
        assert learn(files).exit_code == 130
    ledger = Ledger.open_existing(files / "private.csv.ledger")
    assert ledger.spent().epsilon == 2.0
    document = document_of(learn(files, *QUIET))
    assert document["resumed"]
    sums = certificate_in(files / "out")["released"]["values"]
    # behind a mark and two numbers
    assert [np.frombuffer(one[32:], "<i8").tolist() for one in drawn] == sums[:stage]
    assert (ledger.spent().epsilon, len(ledger.history())) == (2.0, 1)


def test_a_run_hands_on_the_engine_that_is_named(files, monkeypatch):
    """What an engine does with it is tested in `test_learners_on_engines`."""
    asked = []

    def noted(engine, n_jobs):
        asked.append(engine)
        raise KeyboardInterrupt

    monkeypatch.setattr("secretballot.teachers.ensemble.workers_of", noted)
    words = ("--n-teachers", "40", "--set", "executor=dask://host:1")
    assert learn(files, *words).exit_code == 130
    assert asked == ["dask://host:1"]


def changed(files, name, change):
    table = pd.read_csv(files / name)
    change(table).to_csv(files / name, index=False)


def test_public_points_that_tell_nothing_are_refused_before_anything_is_paid(files):
    for change in (lambda t: t.assign(age=40, ward="north", dose=3.0), lambda t: t.head(3)):
        changed(files, "public.csv", change)
        result = learn(files, "--set", "accept_unseen=ward")
        assert result.exit_code == 2
        assert "all alike" in result.stderr
    assert not (files / "out").exists()


UNFIT = {
    "strict_learners:NeverLearns": ("trained on the public points", "no heart for it"),
    "strict_learners:Contrary": ("published", "leave the student out with --set exclude=student"),
    "sklearn.svm:SVC": ("published", "logistic regression, trees, forests, boosting"),
}


@pytest.mark.parametrize("name", UNFIT)
def test_a_student_that_cannot_learn_or_be_published_costs_nothing(files, name):
    of_votes = ("--n-teachers", "30", "--set", "n_queries=60") if "Contrary" in name else ()
    result = learn(files, *of_votes, "--student", name)
    assert result.exit_code == 2
    words = " ".join(result.stderr.split())
    assert f"--student cannot be {UNFIT[name][0]}" in words
    assert UNFIT[name][1] in words
    assert "Traceback" not in words
    assert not (files / "out" / "release").exists()
    account = files / "private.csv.ledger"
    assert not (account.exists() and Ledger.open_existing(account).history())


WORDS = ["pain", "fever", "cough", "rash", "since", "today", "knee", "no", "left", "right"]
SECRET = "zyxwvut"


def people(n, seed):
    rng = np.random.default_rng(seed)
    notes = [" ".join(rng.choice(WORDS, size=rng.integers(2, 7))) for _ in range(n)]
    ill = ["yes" if "pain" in note or "fever" in note else "no" for note in notes]
    return pd.DataFrame({"note": notes, "memo": notes[::-1], "ill": ill})


def test_free_text_is_learned_released_and_read_again(tmp_path):
    (tmp_path / "private").mkdir()
    private = people(900, 1)
    private.loc[[3, 4, 5], "note"] = [f"{SECRET} pain " * 50_000, None, SECRET]
    private.to_parquet(tmp_path / "private" / "a.parquet", index=False)
    people(120, 2).drop(columns="ill").to_csv(tmp_path / "public.csv", index=False)
    people(80, 3).to_csv(tmp_path / "new.csv", index=False)
    hashed = {"kind": "text", "encoding": "hashed", "width": 32}
    kinds = {"note": hashed, "memo": {"kind": "text", "width": 6}}
    (tmp_path / "schema.json").write_text(json.dumps({"columns": kinds}))
    tables = (tmp_path / "private", tmp_path / "public.csv", "--schema", tmp_path / "schema.json")
    price = ("--target", "ill", "--classes", "no,yes", "--epsilon", 10, "--delta", 1e-5)
    of_votes = ("--n-teachers", 15, "--ledger", "own", "--out", tmp_path / "out")
    result = invoke("learn", *tables, *price, *of_votes, "--set", "exclude=report")
    assert result.exit_code == 0, result.stderr
    assert SECRET not in result.stdout + result.stderr
    release = tmp_path / "out" / "release"
    assert not any(SECRET.encode() in path.read_bytes() for path in release.iterdir())
    columns = json.loads((release / "schema.json").read_text())["columns"]
    assert columns["note"] == hashed
    assert len(columns["memo"]["words"]) == 6
    assert "schema.json" in json.loads((release / "certificate.json").read_text())["files"]
    assert "student.onnx" in {path.name for path in release.iterdir()}
    assert "onnxruntime" not in (release / "README.txt").read_text()  # which cannot hash words
    assert invoke("verify", release / "certificate.json").exit_code == 0
    result = invoke("predict", release, tmp_path / "new.csv", "--out", tmp_path / "said.csv")
    assert result.exit_code == 0, result.stderr
    right = pd.read_csv(tmp_path / "said.csv")["label"] == pd.read_csv(tmp_path / "new.csv")["ill"]
    assert right.mean() > 0.6  # five runs: .74 to .79
