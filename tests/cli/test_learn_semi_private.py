"""`secretballot learn` by choice: candidates or a class in, one model out, with its certificate."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

from patients import invoke
from secretballot.report.student_export import student_bytes
from secretballot.report.student_load import load_student


@pytest.fixture
def world(tmp_path):
    """Write a private and a public file on one column, and two students, of which the second is
    right."""
    rng = np.random.default_rng(0)
    x = rng.random(400)
    pd.DataFrame({"x": x, "ill": np.where(x > 0.6, "yes", "no")}).to_csv(
        tmp_path / "private.csv", index=False
    )
    pd.DataFrame({"x": rng.random(120)}).to_csv(tmp_path / "public.csv", index=False)
    grid = np.linspace(-3, 3, 200)[:, None]  # columns are scaled by the public file
    for name, cut in (("low", -1.0), ("high", 0.3)):
        student = LogisticRegression(C=100.0).fit(grid, np.where(grid[:, 0] > cut, "yes", "no"))
        (tmp_path / f"{name}.onnx").write_bytes(student_bytes(student))
    return tmp_path


def choose(world, *more):
    files = [str(world / "private.csv"), str(world / "public.csv")]
    words = ["learn", *files, "--target", "ill", "--classes", "no,yes"]
    words += ["--out", str(world / "out"), "--total", "20,1e-2", "--set", "exclude=report"]
    return invoke(*words, "--epsilon", "2", *more)


def labelled_points(world):
    """Return a file of labelled points, none of them private."""
    path, x = world / "labelled.csv", np.random.default_rng(1).random(400)
    pd.DataFrame({"x": x, "ill": np.where(x > 0.6, "yes", "no")}).to_csv(path, index=False)
    return path


def test_the_right_one_of_two_students_is_chosen_and_released(world):
    """Students of one file name are called by their folders."""
    places = [world / f"{name} study" / "release" / "student.onnx" for name in ("low", "high")]
    for place in places:
        place.parent.mkdir(parents=True)
        (world / f"{place.parts[-3][:-6]}.onnx").rename(place)
    hypotheses = f"hypotheses={','.join(map(str, places))}"
    test = ("--evaluate", str(labelled_points(world)))
    result = choose(world, "--set", hypotheses, "--json", *test)
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert (document["method"], document["candidates"]) == ("semi-private", 2)
    assert (document["delta"], document["epsilon"]) == (0.0, 2.0)
    # the other one is wrong on 123 records more: drawn once in e^123 times
    assert re.fullmatch(r"high study [0-9a-f]{12}", document["chosen"])
    assert document["accuracy"] > 0.9
    certificate = Path(document["certificate"]).read_text()
    named = json.loads(certificate)["public"]["candidates"]
    assert [name[:-13] for name in named] == ["low study", "high study"]
    # no folder above the one that tells them apart is named
    assert world.name not in certificate
    assert invoke("verify", str(world / "out")).exit_code == 0
    student = load_student(world / "out" / "release" / "student.onnx")
    assert student.predict([[-3.0], [3.0]]).tolist() == ["no", "yes"]
    readme = (world / "out" / "release" / "README.txt").read_text()
    assert ("onnxruntime" in readme, "secretballot predict ." in readme) == (False, True)


def test_a_class_that_is_none_is_refused(world):
    result = choose(world, "--set", "hypotheses=trees")
    assert result.exit_code == 2
    assert "hypothesis or student 'trees' does not exist" in result.stderr


def test_a_class_is_chosen_from_on_the_public_points(world):
    settings = ["--set", "hypotheses=intervals", "--set", "n_cover=60"]
    result = choose(world, *settings, "--evaluate", str(labelled_points(world)))
    assert result.exit_code == 0, result.stderr
    # 40 mistakes: such a candidate, of some 2000, is drawn once in e^40 times
    accuracy = re.search(r"^accuracy +([01]\.\d+)", result.stdout, re.MULTILINE)
    assert accuracy is not None
    assert float(accuracy[1]) > 0.9
    assert "price      epsilon 2, delta 0 for each record" in result.stdout
    assert re.search(r"^chosen +yes where .*\bx\b", result.stdout, re.MULTILINE)
    assert invoke("verify", str(world / "out")).exit_code == 0
