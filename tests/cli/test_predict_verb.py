"""`secretballot predict`: raw rows in, labels and probabilities out, as the package says them."""

import csv
import io
import shutil
from functools import partial

import pytest

from patients import invoke, rows, words_of_run, write_files
from secretballot.data import reading as tables
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.report.student.load import load_student
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


def test_a_release_of_frames_says_where_its_student_is_read(world, tmp_path):
    shutil.copytree(world / "run" / "release", tmp_path / "release")
    (tmp_path / "release" / "schema.json").unlink()
    refused = predict(tmp_path / "release", world / "new.csv")
    assert (refused.exit_code, "secretballot.load_student" in refused.stderr) == (2, True)
