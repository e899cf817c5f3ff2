"""A release in the hands of a stranger: what its README says works, without this package."""

import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from patients import document_of, invoke, words_of_run
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.report.student.load import load_student

BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "secretballot":
            raise ImportError("this package is not installed here")
sys.meta_path.insert(0, Blocked())
"""


def lines(count, seed):
    rng = np.random.default_rng(seed)
    age, dose = rng.integers(20, 90, count), rng.normal(5, 2, count).round(2)
    ward = rng.choice(["north", "south", "3"], count)
    texts = [f'"{d}"'.replace(".", ",") for d in dose]
    return [f"{a},{w},{d}" for a, w, d in zip(age, ward, texts, strict=True)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A release of a table whose numbers have decimal commas, moved to where a stranger has it."""
    folder = tmp_path_factory.mktemp("plain")
    private = [f"{line},{'yes' if int(line[:2]) > 55 else 'no'}" for line in lines(2000, 1)]
    (folder / "private.csv").write_text("\n".join(["age,ward,dose,ill", *private]) + "\n")
    (folder / "public.csv").write_text("\n".join(["age,ward,dose", *lines(300, 2)]) + "\n")
    words = ["learn", str(folder / "private.csv"), str(folder / "public.csv"), "--target", "ill"]
    words += ["--classes", "no,yes", "--epsilon", "2", "--delta", "1e-5", "--total", "20,1e-2"]
    result = invoke(*words, "--set", "exclude=report", "--out", folder / "run")
    assert result.exit_code == 0, result.stderr
    (folder / "stranger").mkdir()
    shutil.copytree(folder / "run" / "release", folder / "stranger" / "release")
    rows = [*lines(500, 3), ",north,5.0", "40,east,", ", south,1e40", "?,north,n/a"]
    (folder / "stranger" / "new.csv").write_text("\n".join(["age,ward,dose", *rows]) + "\n")
    return folder / "stranger" / "release"


def lines_below(text, title):
    """Return the indented lines below a title of the README."""
    found = re.search(rf"^{re.escape(title)}.*\n((?:  .*\n)+)", text, re.MULTILINE)
    assert found is not None, text
    return textwrap.dedent(found[1])


def run_alone(code, folder):
    """Run Python in a process that cannot import this package, as a stranger in that folder."""
    result = subprocess.run(
        [sys.executable, "-c", f"{BLOCKED}\n{code}"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr


def test_the_lines_of_the_readme_give_the_packages_answers_without_the_package(plain):
    folder = plain
    text = (folder / "README.txt").read_text()
    code = lines_below(text, "The same in Python without this package")
    assert code.strip() in (folder / "model-card.md").read_text()
    saved = "label=answers['label'].astype(str), p=answers['probabilities']"
    run_alone(f"{code}\nnp.savez('../said.npz', {saved})", folder)
    said = np.load(folder.parent / "said.npz")
    X = Schema.read(folder / "schema.json").encode(read_table(folder.parent / "new.csv"))
    student = load_student(folder / "student.onnx")
    assert (said["label"] == student.predict(X)).all()
    assert (said["p"] == student.predict_proba(X)).all()  # to the last digit
    assert set(said["label"]) == {"no", "yes"}


def test_the_command_and_the_lines_for_this_package_work_as_they_stand(plain, monkeypatch):
    folder = plain
    monkeypatch.chdir(folder)
    text = (folder / "README.txt").read_text()
    command = lines_below(text, "Predict rows of a table").split()
    assert command[0] == "secretballot"
    assert invoke(*command[1:]).exit_code == 0
    names = {}
    exec(lines_below(text, "The same in Python with it"), names)
    labels = [row.split(",")[1] for row in Path("../predictions.csv").read_text().splitlines()]
    assert labels[1:] == names["student"].predict(pd.read_csv("../new.csv")).tolist()
    for options in ([], ["--independent"]):
        assert invoke("verify", ".", *options).exit_code == 0


def test_metrics_are_published_where_the_curator_says_so(files):
    test = ("--evaluate", files / "test.csv", "--set", "publish_metrics=true")
    document = document_of(invoke(*words_of_run(files, *test, "--json")))
    folder = files / "out" / "release"
    card, page = (folder / "model-card.md").read_text(), (folder / "report.html").read_text()
    for text in (card, page):
        found = re.search(r"Accuracy ([01]\.\d{4}) on 300 public labelled rows", text)
        assert found is not None
        assert float(found[1]) == pytest.approx(document["accuracy"], abs=5e-5)
    assert "no measurement was released" not in card
    assert "Recall by class: no " in card
    assert invoke("verify", folder, "--independent").exit_code == 0
