"""`secretballot predict`: raw rows in, labels and probabilities out, as the package says them; a
release in the hands of a stranger: what its README says works, without this package."""

import csv
import io
import re
import shutil
import subprocess
import sys
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from patients import document_of, invoke, rows, words_of_run, write_files
from secretballot.data import reading as tables
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.report.student_load import load_student
from secretballot.runs import use as predicting

HEAD = "age,ward,dose"


def lines(count, seed):
    text = rows(count, seed)[HEAD.split(",")].to_csv(index=False, header=False)
    return text.splitlines()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A finished run of moments, and the rows that a stranger has."""
    folder = write_files(tmp_path_factory.mktemp("world"), 2000)
    words = words_of_run(folder, "--out", str(folder / "run"), "--set", "exclude=report")
    result = invoke(*words)
    assert result.exit_code == 0, result.stderr
    (folder / "new.csv").write_text("\n".join([HEAD, *lines(200, 3)]) + "\n")
    return folder


def predict(student, table, *more):
    return invoke("predict", str(student), str(table), *more)


def expected(world, table):
    """Return labels and probabilities by the package itself."""
    release = world / "run" / "release"
    student = load_student(release / "student.onnx")
    X = Schema.read(release / "schema.json").encode(read_table(table))
    return student.predict(X).tolist(), student.predict_proba(X)


@pytest.mark.parametrize("place", ["run", "run/release", "run/release/student.onnx"])
def test_predictions_are_those_of_the_package(world, place):
    result = predict(world / place, world / "new.csv")
    assert (result.exit_code, result.stderr) == (0, "")
    told = list(csv.DictReader(io.StringIO(result.stdout)))
    labels, shares = expected(world, world / "new.csv")
    assert [row["label"] for row in told] == labels
    assert [int(row["row"]) for row in told] == list(range(200))
    found = [[float(row[f"probability[{name}]"]) for name in ("no", "yes")] for row in told]
    assert found == shares.tolist()  # to the last digit
    assert len(set(labels)) == 2


def test_a_table_longer_than_a_block_is_read_in_blocks(world, tmp_path, monkeypatch):
    (tmp_path / "long.csv").write_text("\n".join([HEAD, *lines(200, 3) * 10]) + "\n")
    whole = predict(world / "run", tmp_path / "long.csv").stdout
    monkeypatch.setattr(predicting, "table_blocks", partial(tables.table_blocks, rows=64))
    # as if the file were larger than the memory
    monkeypatch.setattr(tables, "memory_bytes", lambda: 1000)
    blocks = predict(world / "run", tmp_path / "long.csv")
    assert blocks.exit_code == 0, blocks.stderr
    assert blocks.stdout == whole
    assert whole.count("\n") == 2_001


def test_cells_that_the_student_cannot_use_are_counted(world, tmp_path):
    rows = ["40,north,5.0", "ancient,east,5.0", "?,west,5.0", ",,", "50,South,n/a"]
    (tmp_path / "odd.csv").write_text("\n".join([HEAD, *rows]) + "\n")
    result = predict(world / "run", tmp_path / "odd.csv")
    assert result.exit_code == 0
    assert (
        "'age' of the table: cells that are no numbers and count as missing: 1 (" in result.stderr
    )
    assert "'ward' of the table: cells that are none of the categories" in result.stderr
    assert 'and count as "other": 3 (' in result.stderr
    assert "dose" not in result.stderr
    for cell in ("ancient", "east", "west", "South"):
        assert cell not in result.stderr
    assert result.stdout.count("\n") == 6


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("age,ward\n40,north\n", "The table lacks column 'dose' of the schema"),
        (
            "age,ward,dose\n40,north,5 mg\n41,south,3 mg\n",
            "'dose' of the table does not fit: 100 % of its cells are no numbers",
        ),
        ("age,ward,dose\n40,north\n", "has a first line of 3 cells but another number in row 0"),
    ],
)
def test_a_table_that_does_not_fit_ends_in_one_sentence(world, tmp_path, content, words):
    (tmp_path / "t.csv").write_text(content)
    out = tmp_path / "said.csv"
    result = predict(world / "run", tmp_path / "t.csv", "--out", str(out))
    assert result.exit_code == 2
    assert words in result.stderr
    assert "--drop" not in result.stderr  # which the verb does not have
    assert len(result.stderr.splitlines()) == 1
    assert "mg" not in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_a_path_that_is_wrong_is_bad_input(world, tmp_path):
    none, taken = str(tmp_path / "none"), str(world / "new.csv" / "said.csv")
    ask = ("serve", "ask", "http://service", str(world / "new.csv"))
    for words, said in (
        (("predict", str(world / "run"), str(world / "new.csv"), "--out", taken), "cannot be used"),
        ((*ask, "--key-file", none), f"{none!r} cannot be used (No such file or directory)"),
        (("sign", str(tmp_path / "none"), "--key", "k.pem"), "give a release folder."),
        (("predict", str(tmp_path), str(world / "new.csv")), "give another release, as labels"),
    ):
        result = invoke(*words)
        assert (result.exit_code, said in result.stderr) == (2, True), result.stderr
    result = invoke("sign", str(tmp_path), "--key", "k.pem")
    assert (result.exit_code, "There is no certificate at " in result.stderr) == (4, True)


def test_an_earlier_file_stays_until_the_new_one_is_complete(world, tmp_path):
    out = tmp_path / "said.csv"
    assert predict(world / "run", world / "new.csv", "--out", str(out)).exit_code == 0
    before = out.read_bytes()
    body = [*lines(9000, 4), "40,north"]
    (tmp_path / "broken.csv").write_text("\n".join([HEAD, *body]) + "\n")
    for table, *more in ((world / "new.csv",), (tmp_path / "broken.csv", "--overwrite")):
        assert predict(world / "run", table, "--out", str(out), *more).exit_code == 2
        assert out.read_bytes() == before
    again = predict(world / "run", world / "new.csv", "--out", str(out), "--overwrite")
    assert again.exit_code == 0
    assert {path.name for path in tmp_path.iterdir()} == {"said.csv", "broken.csv"}
    # never the table itself
    before = (world / "new.csv").read_bytes()
    found = predict(world / "run", world / "new.csv", "--out", world / "new.csv", "--overwrite")
    assert (found.exit_code, "is the table that is read" in found.stderr) == (2, True)
    assert (world / "new.csv").read_bytes() == before


def test_a_release_of_frames_says_where_its_student_is_read(world, tmp_path):
    shutil.copytree(world / "run" / "release", tmp_path / "release")
    (tmp_path / "release" / "schema.json").unlink()
    refused = predict(tmp_path / "release", world / "new.csv")
    assert (refused.exit_code, "secretballot.load_student" in refused.stderr) == (2, True)


BLOCKED = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "secretballot":
            raise ImportError("this package is not installed here")
sys.meta_path.insert(0, Blocked())
"""


def quoted_lines(count, seed):
    rng = np.random.default_rng(seed)
    age, dose = rng.integers(20, 90, count), rng.normal(5, 2, count).round(2)
    ward = rng.choice(["north", "south", "3"], count)
    texts = [f'"{d}"'.replace(".", ",") for d in dose]
    return [f"{a},{w},{d}" for a, w, d in zip(age, ward, texts, strict=True)]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """A release of a table whose numbers have decimal commas, moved to where a stranger has it."""
    folder = tmp_path_factory.mktemp("plain")
    private = [f"{line},{'yes' if int(line[:2]) > 55 else 'no'}" for line in quoted_lines(2000, 1)]
    (folder / "private.csv").write_text("\n".join(["age,ward,dose,ill", *private]) + "\n")
    (folder / "public.csv").write_text("\n".join(["age,ward,dose", *quoted_lines(300, 2)]) + "\n")
    words = ["learn", str(folder / "private.csv"), str(folder / "public.csv"), "--target", "ill"]
    words += ["--classes", "no,yes", "--epsilon", "2", "--delta", "1e-5", "--total", "20,1e-2"]
    result = invoke(*words, "--set", "exclude=report", "--out", folder / "run")
    assert result.exit_code == 0, result.stderr
    (folder / "stranger").mkdir()
    shutil.copytree(folder / "run" / "release", folder / "stranger" / "release")
    rows = [*quoted_lines(500, 3), ",north,5.0", "40,east,", ", south,1e40", "?,north,n/a"]
    (folder / "stranger" / "new.csv").write_text("\n".join(["age,ward,dose", *rows]) + "\n")
    return folder / "stranger" / "release"


def lines_below(text, title):
    """Return the indented quoted_lines below a title of the README."""
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
