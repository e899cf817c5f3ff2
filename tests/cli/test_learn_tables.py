"""`secretballot learn` on a number and on several labels: what it writes, resumption, bad input."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner, Result

import secretballot as sb
import secretballot_verify as second
from secretballot.cli import app
from secretballot.core.ledger import Ledger
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.publishing.again import differing_files
from secretballot.publishing.job import NamedStudent

N_PUBLIC = 120


def rows(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, count)).round(3)
    return pd.DataFrame(
        {
            "patient": np.arange(count) // 2,
            "a": a,
            "b": b,
            "ward": rng.choice(["north", "south"], count),
            "dose": (20 + 6 * a - 3 * b + rng.normal(size=count)).round(2),
            "fever": np.where(a > 0, "yes", "no"),
            "cough": (b > 0.3).astype(int),
            "rash": a + b > 1,
        }
    )


FEATURES, LABELS = ["a", "b", "ward"], ["fever", "cough", "rash"]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    private, test = rows(2000, 1), rows(300, 2)
    private[["patient", *FEATURES, "dose"]].to_csv(tmp_path / "number.csv", index=False)
    private[["patient", *FEATURES, *LABELS]].to_csv(tmp_path / "labels.csv", index=False)
    rows(N_PUBLIC, 3)[FEATURES].to_csv(tmp_path / "public.csv", index=False)
    test.to_csv(tmp_path / "test.csv", index=False)
    return tmp_path


def words(folder: Path, kind: str, *more: str) -> list[str]:
    """Return a small, complete command; later options override earlier ones."""
    tables = [str(folder / f"{kind}.csv"), str(folder / "public.csv")]
    target = ["dose", "--bounds", "0,40"] if kind == "number" else [",".join(LABELS)]
    price = ["--epsilon", "4", "--delta", "1e-5", "--total", "20,1e-2", "--n-teachers", "60"]
    out = ["--out", str(folder / "out"), "--drop", "patient"]
    return ["learn", *tables, "--target", *target, *price, *out, *more]


def learn(folder: Path, kind: str, *more: str) -> Result:
    return CliRunner().invoke(app, words(folder, kind, *more))


def document_of(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


@pytest.mark.parametrize("kind", ["number", "labels"])
def test_a_run_is_whole_and_both_verifiers_confirm_it(files: Path, kind: str) -> None:
    found = document_of(learn(files, kind, "--evaluate", str(files / "test.csv"), "--json"))
    release = files / "out" / "release"
    assert {path.name for path in release.iterdir()} == {
        *("README.txt", "answers.csv", "certificate.json", "model-card.md", "report.html"),
        *("schema.json", "student.onnx"),
    }
    assert CliRunner().invoke(app, ["verify", str(files / "out")]).exit_code == 0
    assert second.exit_code(second.check_release(str(release))) == 0
    assert Ledger.open_existing(files / f"{kind}.csv.ledger").spent().epsilon == 4.0
    assert found["queries"] == len(pd.read_csv(release / "answers.csv")) == N_PUBLIC
    assert "measurement was released" in (release / "report.html").read_text()
    metrics = found["metrics"]
    assert metrics["beats_constant"]
    if kind == "number":
        # the noise of the target alone is 1, and its mean is off by 6.6
        assert metrics["root_mean_squared_error"] < 3 < metrics["constant_root_mean_squared_error"]
    else:
        assert metrics["exact"] > 0.7 > metrics["majority_exact"]
        assert all(metrics["labels"][name]["accuracy"] > 0.8 for name in LABELS)
    # what anybody predicts with the release is what was measured
    said = files / "said.csv"
    predict = ["predict", str(release), str(files / "test.csv"), "--out", str(said)]
    assert CliRunner().invoke(app, predict).exit_code == 0
    truth, predicted = pd.read_csv(files / "test.csv"), pd.read_csv(said)
    if kind == "number":
        error = np.sqrt(np.mean((predicted["prediction"] - truth["dose"]) ** 2))
        assert error == pytest.approx(metrics["root_mean_squared_error"])
    else:
        right = predicted["label[cough]"] == truth["cough"]
        assert right.mean() == pytest.approx(metrics["labels"]["cough"]["accuracy"])
        assert predicted["probability[rash]"].between(0, 1).all()


@pytest.mark.parametrize(
    ("kind", "more", "terms"),
    [
        (
            "number",
            ["--student", "tree:max_depth=2", "--set", "mechanism=quantile:rank=20"],
            {"kind": "vote-quantiles", "rank": 20},
        ),
        (
            "labels",
            ["--teacher", "tree", "--set", "mechanism=sets:release=labels"],
            {"ballot": "sets", "release": "labels"},
        ),
        (
            "labels",
            ["--unit", "patient", "--drop", "ward", "--set", "mechanism=auto:most_named=1"],
            {"most_named": 1, "unit_column": "patient"},
        ),
    ],
    ids=["quantile", "sets", "cap"],
)
def test_settings_reach_the_certificate(
    files: Path, kind: str, more: list[str], terms: dict[str, Any]
) -> None:
    result = learn(files, kind, *more, "--set", "exclude=report", "--confirm", "noise")
    assert result.exit_code == 0, result.stderr
    found = json.loads((files / "out/release/certificate.json").read_text())
    assert {**found, **found["mechanism"], **found["public"]}.items() >= terms.items()
    student = sb.load_student(files / "out" / "release" / "student.onnx")
    if "--student" in more:  # a tree of two levels
        assert len(np.unique(student.predict(pd.read_csv(files / "test.csv")))) <= 4


def test_what_a_dry_run_says_and_asks_is_what_the_run_does(files: Path) -> None:
    found = document_of(learn(files, "number", "--dry-run", "--json"))
    assert (found["queries"], found["teachers"], found["epsilon"]) == (N_PUBLIC, 60, 4.0)
    assert found["released"] == "noisy means of the votes at 120 public points"
    assert not (files / "out").exists()
    assert not (files / "number.csv.ledger").exists()
    quantile = ["--set", "n_queries=100", "--set", "mechanism=quantile"]
    few = learn(files, "number", "--dry-run", *quantile)
    assert "[--confirm noise]" in few.stdout
    assert "all teachers agree on is drawn with probability" in few.stdout
    several = learn(files, "labels", "--dry-run")
    assert "noisy counts of votes for labels, 3 of them, at 120 public points" in several.stdout


@pytest.mark.parametrize("kind", ["number", "labels"])
def test_an_interrupted_run_goes_on_to_the_same_bytes_and_pays_once(
    files: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("secretballot.runs.run.publish", interrupt)
        assert learn(files, kind, "--set", "exclude=report").exit_code == 130
    again = learn(files, kind, "--set", "exclude=report")
    assert again.exit_code == 0, again.stderr
    assert Ledger.open_existing(files / f"{kind}.csv.ledger").spent().epsilon == 4.0
    release = files / "out" / "release"
    schema, table = Schema.read(release / "schema.json"), read_table(files / "public.csv")
    X_public = schema.encode(table)
    assert differing_files(release, student=NamedStudent("auto"), X_public=X_public) == []
    finished = learn(files, kind, "--set", "exclude=report", "--json")
    assert document_of(finished)["queries"] == N_PUBLIC
    assert "finished already" in finished.stderr


def test_every_private_number_is_read_from_itself_alone(files: Path) -> None:
    """Odd targets leave their own records out, or are cut, and refuse nothing."""
    table = pd.read_csv(files / "number.csv", dtype=str)
    table.loc[:5, "dose"] = ["", "xyz", "inf", "-inf", "nan", "1e300"]
    table.to_csv(files / "number.csv", index=False)
    result = learn(files, "number", "--set", "exclude=report")
    assert result.exit_code == 0, result.stderr
    assert "curator only: Of the private targets 3 are no numbers" in result.stderr
    assert "xyz" not in result.stderr + result.stdout
    for path in (files / "out" / "release").iterdir():
        assert b"xyz" not in path.read_bytes()


def test_a_target_that_hardly_says_numbers_is_asked_about(files: Path) -> None:
    table = pd.read_csv(files / "number.csv")
    table.rename(columns={"dose": "ward", "ward": "dose"}).to_csv(files / "number.csv", index=False)
    table = pd.read_csv(files / "public.csv").rename(columns={"ward": "dose"})
    table.assign(ward=1.5).drop(columns="dose").to_csv(files / "public.csv", index=False)
    result = learn(files, "number")
    assert result.exit_code == 2
    assert "2,000 are no numbers" in result.stderr
    assert "[--confirm target]" in result.stderr
    assert not (files / "number.csv.ledger").exists()


def test_labels_are_read_by_their_spelling(files: Path) -> None:
    table = pd.read_csv(files / "labels.csv")
    for name in LABELS:
        table[name] = np.where(table[name].astype(str).isin(["yes", "1", "True"]), "ja", "nein")
    table.to_csv(files / "labels.csv", index=False)
    refused = learn(files, "labels")
    assert refused.exit_code == 2
    assert "2000 rows whose label in column 'fever'" in refused.stderr
    assert "nein" not in refused.stderr
    assert learn(files, "labels", "--classes", "nein,ja", "--set", "exclude=report").exit_code == 0


REFUSED = [
    ("number", ["--set", "mechanism=laplace"], "'laplace'; it must be one of auto, mean, quantile"),
    ("labels", ["--set", "mechanism=laplace"], "it must be one of auto, labels, counts, sets"),
    (
        "number",
        ["--set", "mechanism=mean:rank=3"],
        "mean has no setting 'rank'; it has n_positions",
    ),
    ("number", ["--set", "strategy=margin"], "goes with one target of classes, and the target is"),
    ("number", ["--set", "n_queries=estimate:epsilon=0.1"], "goes with one target of classes"),
    ("number", ["--classes", "0,1"], "the target is a number"),
    ("number", ["--bounds", "4,2"], "--bounds is 4 to 2; its first number must be below"),
    ("labels", ["--classes", "a,b,c"], "of several labels give two spellings"),
    ("labels", ["--target", "fever,fever"], "--target is 'fever,fever'; name each column once"),
    ("labels", ["--target", "fever,nothing"], "has no column 'nothing'"),
    ("number", ["--set", "relation=replace-one", "--unit", "patient"], "add-remove only"),
]


@pytest.mark.parametrize(("kind", "options", "sentence"), REFUSED, ids=lambda one: str(one)[:40])
def test_what_does_not_go_together_is_refused(
    files: Path, kind: str, options: list[str], sentence: str
) -> None:
    result = learn(files, kind, *options)
    assert result.exit_code == 2
    last = result.stderr.strip().splitlines()[-1]
    assert sentence in last
    assert not (files / f"{kind}.csv.ledger").exists()
    assert not (files / "out").exists()
