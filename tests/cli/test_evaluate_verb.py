"""`secretballot evaluate`: prices, guarantees and students of releases, side by side."""

import itertools
import json
import re
import shutil

import numpy as np
import pytest

import secretballot as sb
from patients import invoke
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import NoisyVotes
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError, ResourceError
from secretballot.learners import table
from secretballot.report.student_load import load_student
from secretballot_verify import Finding

N_TEST = 400


def lines(count, seed):
    """Return lines of age, ward, weight, ill."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 90, count)
    ward = rng.choice(["north", "south"], count)
    ill = age + rng.normal(0, 10, count) > 40
    weight = rng.normal(70, 10, count).round(2)
    told = np.where(ill, "yes", "no")
    return [",".join(map(str, row)) for row in zip(age, ward, weight, told, strict=True)]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """Two runs on one ledger: one by age and ward, one by the ward alone, which tells nothing."""
    folder = tmp_path_factory.mktemp("world")
    for name, count, seed in (("private", 2000, 1), ("public", 300, 2), ("test", N_TEST, 3)):
        text = "\n".join(["age,ward,weight,ill", *lines(count, seed)])
        (folder / f"{name}.csv").write_text(text + "\n")
    ledger = str(folder / "l.ledger")
    words = ["ledger", "create", ledger, "--dataset", "registry", "--total", "8,1e-4"]
    assert invoke(*words).exit_code == 0
    for name, epsilon, more in (("good", "2", ()), ("poor", "1", ("--drop", "age"))):
        words = ["learn", str(folder / "private.csv"), str(folder / "public.csv")]
        words += ["--target", "ill", "--classes", "no,yes", "--epsilon", epsilon]
        words += ["--delta", "1e-5", "--set", "exclude=report", "--ledger", ledger]
        words += ["--dataset", "registry", "--out", str(folder / name), *more]
        result = invoke(*words)
        assert result.exit_code == 0, result.stderr
    return folder


def evaluate(*words):
    return invoke("evaluate", *map(str, words))


def test_students_are_compared_on_the_same_rows(world):
    test = (world / "test.csv", "--target", "ill")
    result = evaluate(world / "good", world / "poor", *test, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    frame = read_table(world / "test.csv")
    right = []
    for name in ("good", "poor"):
        release = world / name / "release"
        X = Schema.read(release / "schema.json").encode(frame)
        right.append(load_student(release / "student.onnx").predict(X) == frame["ill"].to_numpy())
    found = [one["metrics"]["accuracy"] for one in document["releases"]]
    assert found == pytest.approx([one.mean() for one in right])
    first, other = document["releases"]
    assert (first["less_first"], other["release"]) == ({}, str(world / "poor"))
    difference = other["less_first"]
    assert difference["accuracy"]["difference"] == pytest.approx(found[1] - found[0])
    assert difference["accuracy"]["interval"]["high"] < 0  # far apart
    assert difference["balanced_accuracy"]["interval"]["high"] < 0
    text = evaluate(world / "good", world / "poor", *test).stdout
    assert re.match(r"B is no better than the majority: accuracy 0\.\d{4}, and 0\.\d{4} ", text)


def test_what_cannot_be_compared_ends_in_one_sentence(world, tmp_path):
    shutil.copytree(world / "poor" / "release", tmp_path / "forged")
    certificate = tmp_path / "forged" / "certificate.json"
    certificate.write_text(certificate.read_text().replace('"epsilon": 1.0', '"epsilon": 0.1'))
    (tmp_path / "empty").mkdir()
    good, test = world / "good", world / "test.csv"
    cases = [
        (2, "Name a release, or several, and last a public labelled table", (test,)),
        (2, "nothing' does not exist", (good, tmp_path / "nothing")),
        (4, "does not verify: file: ", (good, tmp_path / "empty", test)),
        (4, "does not verify: ", (good, tmp_path / "forged", test)),
        (2, "are of one class", (good, test, "--target", "ill,age")),
        (2, "has no column 'sick'", (good, good, test, "--target", "sick")),
    ]
    for code, words, given in cases:
        result = evaluate(*given)
        assert (result.exit_code, len(result.stderr.splitlines())) == (code, 1), result.stderr
        assert words in result.stderr


def test_the_release_says_what_was_learnt(world, tmp_path):
    good, test = world / "good", world / "test.csv"
    schema = json.loads((good / "release" / "schema.json").read_text())
    assert schema["target"] == ["ill"]
    assert evaluate(good, test).stdout == evaluate(good, test, "--target", "ill").stdout
    (tmp_path / "parts").mkdir()
    read_table(test).to_parquet(tmp_path / "parts" / "one.parquet")
    assert evaluate(good, tmp_path / "parts").stdout == evaluate(good, test).stdout
    (tmp_path / "schema.json").write_text(json.dumps({**schema, "target": "ill"}))
    with pytest.raises(DataError, match='its "target" of names'):
        Schema.read(tmp_path / "schema.json")


def test_rows_of_the_private_file_are_refused(world, tmp_path):
    """The whole file, and a part of it; what is said of honest rows is as before."""
    private = (world / "private.csv").read_text().splitlines()
    shutil.copy(world / "private.csv", tmp_path / "whole.csv")
    (tmp_path / "part.csv").write_text("\n".join(private[:300]) + "\n")
    (tmp_path / "link").symlink_to(world / "good" / "release")
    release = world / "good" / "release"
    named = (world / "good", release, release / "student.onnx", tmp_path / "link")
    for name, run in itertools.product(("whole", "part"), named):
        result = evaluate(run, tmp_path / f"{name}.csv")
        assert result.exit_code == 2
        assert "holds rows of the private file of" in result.stderr
        assert not result.stdout
    assert evaluate(world / "good", world / "test.csv").exit_code == 0


def test_a_private_file_that_went_is_said(world, tmp_path):
    shutil.copytree(world / "good", tmp_path / "run")
    settings = tmp_path / "run" / "vault" / "spec.toml"
    settings.write_text(settings.read_text().replace("private.csv", "gone.csv"))
    result = evaluate(tmp_path / "run", world / "test.csv")
    assert result.exit_code == 0, result.stderr
    assert "is not where it was, so its rows were not looked for" in result.stdout


@pytest.mark.parametrize("error", [MemoryError(), ResourceError("x.")], ids=str)
def test_no_figure_is_shown_where_private_rows_could_not_be_looked_for(world, monkeypatch, error):
    hashes, calls = table._row_hashes, []

    def failing(X):
        calls.append(X)
        if len(calls) == 2:
            raise error
        return hashes(X)

    with monkeypatch.context() as broken:
        broken.setattr(table, "_row_hashes", failing)
        result = evaluate(world / "good", world / "private.csv")
    assert (result.exit_code, result.stdout) == (7, "")
    settings = world / "good" / "vault" / "spec.toml"
    text = settings.read_text()
    try:
        settings.write_text("[data]\n")
        assert evaluate(world / "good", world / "private.csv").exit_code == 2
    finally:
        settings.write_text(text)


def test_a_run_is_repeated_from_its_vault(world, monkeypatch):
    settings = world / "good" / "vault" / "spec.toml"
    assert settings.stat().st_mode & 0o77 == 0
    monkeypatch.chdir(world / "poor")  # paths are absolute
    ledger = Ledger.open_existing(world / "l.ledger")
    paid = ledger.releases()
    again = invoke("learn", "--config", str(settings))
    assert again.exit_code == 0, again.stderr
    # the same run, which is finished; with another folder it is a new one
    assert ledger.releases() == paid
    new = ["learn", "--config", str(settings), "--out", str(world / "new")]
    assert invoke(*new).exit_code == 0
    assert ledger.releases() == paid + 1


@pytest.fixture
def folder(tmp_path):
    budget = sb.PrivacyBudget(1.0, 1e-6)
    ledger = sb.Ledger(tmp_path / "l", dataset="registry", budget=budget)
    votes = sb.votes_of_counts([[30, 70], [80, 20]])
    released = sb.release(votes, NoisyVotes(scale=30.0, release="counts"), ledger, budget)
    return sb.write_release(tmp_path / "release", released).path


def verify(path):
    result = invoke("verify", str(path), "--json")
    plain = invoke("verify", str(path))
    assert plain.exit_code == result.exit_code
    return result.exit_code, json.loads(result.stdout), plain.stdout


def test_a_true_certificate_verifies_from_file_release_or_run_and_alone(folder, tmp_path):
    for path in (folder / "certificate.json", folder, folder.parent):
        code, document, said = verify(path)
        assert (code, document["ok"]) == (0, True), said
        assert "The certificate verifies." in said
    (folder / "certificate.json").rename(tmp_path / "alone.json")
    code, document, said = verify(tmp_path / "alone.json")
    assert (code, len(document["unchecked"])) == (0, 1)
    assert "not looked at" in said


@pytest.mark.parametrize(
    ("verdict", "code", "words"), [("unsure", 5, "neither confirm nor"), ("FAILED", 4, "REFUSES")]
)
def test_the_second_opinion_decides_the_exit_code_where_the_first_agrees(
    folder, monkeypatch, verdict, code, words
):
    opinion = [Finding("files", "ok", "All."), Finding("price", verdict, "Hm.")]
    monkeypatch.setattr("secretballot.cli.verbs.each_finding", lambda *_: opinion)
    result = invoke("verify", str(folder), "--independent")
    assert result.exit_code == code
    assert words in result.stdout


def test_both_programs_look_at_the_same_certificate(folder):
    other = folder / "other.json"
    (folder / "certificate.json").rename(other)
    (folder / "certificate.json").write_bytes(other.read_bytes())
    result = invoke("verify", str(other), "--independent")
    assert result.exit_code == 2
    assert "checks release folders" in result.stderr


def test_a_folder_without_a_certificate_does_not_verify_by_either_program(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (["."], [".", "--independent"], [".", "--independent", "--json"]):
        result = invoke("verify", *words)
        assert (result.exit_code, result.stderr) == (4, "")
    document = json.loads(result.stdout)
    assert [finding["verdict"] for finding in document["independent"]] == ["FAILED"]
