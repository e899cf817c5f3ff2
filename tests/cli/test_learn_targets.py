"""`secretballot learn` by record moments on a number and on several labels: what it writes, how
good it is, resumption, what it refuses."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from typer.testing import CliRunner, Result

import secretballot as sb
import secretballot_verify as second
from secretballot.cli import app
from secretballot.core.ledger import Ledger
from secretballot.data.reading import read_table
from secretballot.data.schema import Schema
from secretballot.publishing.again import differing_files, read_release
from secretballot.publishing.job import ReleasedWeights, ReleaseJob
from secretballot.publishing.moments import model_of_certificate

FEATURES, LABELS = ["a", "b", "ward"], ["fever", "cough", "rash"]


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


@pytest.fixture
def files(tmp_path: Path) -> Path:
    private = rows(2000, 1)
    private[["patient", *FEATURES, "dose"]].to_csv(tmp_path / "number.csv", index=False)
    private[["patient", *FEATURES, *LABELS]].to_csv(tmp_path / "labels.csv", index=False)
    rows(120, 3)[FEATURES].to_csv(tmp_path / "public.csv", index=False)
    rows(300, 2).to_csv(tmp_path / "test.csv", index=False)
    return tmp_path


def learn(folder: Path, kind: str, *more: str) -> Result:
    """Run a small, complete command; later options override earlier ones."""
    tables = [str(folder / f"{kind}.csv"), str(folder / "public.csv")]
    target = ["dose", "--bounds", "0,40"] if kind == "number" else [",".join(LABELS)]
    price = ["--epsilon", "2", "--delta", "1e-6", "--total", "20,1e-3"]
    out = ["--out", str(folder / "out"), "--drop", "patient"]
    words = ["learn", *tables, "--target", *target, *price, *out, *more]
    return CliRunner().invoke(app, words)


def document_of(result: Result) -> dict[str, Any]:
    assert result.exit_code == 0, result.stderr
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def public_points(folder: Path) -> Any:
    schema = Schema.read(folder / "out" / "release" / "schema.json")
    return schema.encode(read_table(folder / "public.csv"))


def cost(folder: Path, kind: str) -> float:
    return float(Ledger.open_existing(folder / f"{kind}.csv.ledger").spent().epsilon)


@pytest.mark.parametrize("kind", ["number", "labels"])
def test_a_run_is_whole_and_both_verifiers_confirm_it(files: Path, kind: str) -> None:
    test = str(files / "test.csv")
    found = document_of(learn(files, kind, "--evaluate", test, "--json"))
    release = files / "out" / "release"
    assert {path.name for path in release.iterdir()} == {
        *("README.txt", "certificate.json", "model-card.md", "report.html"),
        *("schema.json", "student.onnx"),
    }
    assert found["method"] == "record-moments"
    assert found["method_reason"] == "the default for tables"
    assert CliRunner().invoke(app, ["verify", str(files / "out"), "--independent"]).exit_code == 0
    assert cost(files, kind) == 2.0
    page, card, readme = (
        (release / name).read_text() for name in ("report.html", "model-card.md", "README.txt")
    )
    whole = page + card + readme
    for stray in ("labels.csv", "answers.csv", "majority", "its class", "<dt>Labelled</dt>"):
        assert stray not in whole
    metrics = found["metrics"]
    assert metrics["beats_constant"]
    if kind == "number":
        # the noise of the target alone is 1
        assert (
            metrics["root_mean_squared_error"] < 2 < 6 < metrics["constant_root_mean_squared_error"]
        )
        assert "A regressor that predicts a number from 0 to 40" in card
    else:
        assert metrics["exact"] > 0.8 > 0.4 > metrics["majority_exact"]
        assert "A classifier that predicts which of 3 labels apply: fever, cough, rash" in card
    # what anybody predicts with the release, and evaluates, is what was measured
    said = files / "said.csv"
    predict = ["predict", str(release), test, "--out", str(said)]
    assert CliRunner().invoke(app, predict).exit_code == 0
    truth, predicted = pd.read_csv(test), pd.read_csv(said)
    if kind == "number":
        error = np.sqrt(np.mean((predicted["prediction"] - truth["dose"]) ** 2))
        assert error == pytest.approx(metrics["root_mean_squared_error"])
    else:
        right = predicted["label[cough]"] == truth["cough"]
        assert right.mean() == pytest.approx(metrics["labels"]["cough"]["accuracy"])
        assert predicted["probability[rash]"].between(0, 1).all()
    target = "dose" if kind == "number" else ",".join(LABELS)
    words = ["evaluate", str(release), test, "--target", target, "--json"]
    (evaluated,) = document_of(CliRunner().invoke(app, words))["releases"]
    assert (evaluated["method"], evaluated["metrics"]) == ("record-moments", metrics)


@pytest.mark.parametrize("kind", ["number", "labels"])
def test_the_file_of_the_student_is_the_model_of_the_certificate(files: Path, kind: str) -> None:
    assert learn(files, kind, "--set", "exclude=report").exit_code == 0
    release, points = files / "out" / "release", public_points(files)
    model = model_of_certificate(ReleaseJob(read_release(release), ReleasedWeights(), points))
    table = read_table(files / "test.csv")[FEATURES]
    X = Schema.read(release / "schema.json").encode(table)
    student = sb.load_student(release / "student.onnx")
    assert np.allclose(student.predict(table), model.predict(X), atol=1e-5)
    if kind == "labels":
        assert student.labels == LABELS
        assert np.allclose(student.predict_proba(table), model.predict_proba(X), atol=1e-5)


def test_votes_of_teachers_stay_with_their_method_and_err_more(tmp_path: Path) -> None:
    table = load_diabetes(as_frame=True).frame
    places = np.split(np.random.default_rng(0).permutation(len(table)), [300, 370])
    for name, place in zip(("number", "public", "test"), places, strict=True):
        part = table.iloc[place].drop(columns=["target"] if name == "public" else [])
        part.rename(columns={"target": "dose"}).to_csv(tmp_path / f"{name}.csv", index=False)
    errors = {}
    for method, more in (("record-moments", []), ("pate", ["--n-teachers", "20"])):
        out = ["--out", str(tmp_path / method), "--set", "exclude=report", "--json"]
        out += ["--confirm", "noise"]
        range_ = ["--bounds", "25,346", "--drop", "", "--evaluate", str(tmp_path / "test.csv")]
        # a setting that teachers alone have names the method
        found = document_of(learn(tmp_path, "number", *more, *range_, *out))
        assert found["method"] == method
        assert (tmp_path / method / "release" / "answers.csv").exists() == (method == "pate")
        errors[method] = found["metrics"]["root_mean_squared_error"]
    constant = found["metrics"]["constant_root_mean_squared_error"]
    assert errors["record-moments"] < 0.95 * min(constant, errors["pate"])


def test_what_a_dry_run_says_is_what_the_run_does(files: Path) -> None:
    result = learn(files, "labels", "--dry-run")
    assert result.exit_code == 0, result.stderr
    assert "record-moments: 4 noisy sums over all records (the default for tables)" in result.stdout
    assert "times what one record can move" in result.stdout
    assert "forecast" not in result.stdout
    assert not (files / "out").exists()
    assert not (files / "labels.csv.ledger").exists()


@pytest.mark.parametrize("kind", ["number", "labels"])
def test_an_interrupted_run_goes_on_to_the_same_bytes_and_pays_once(
    files: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("secretballot.runs.run.publish", interrupt)
        assert learn(files, kind, "--set", "exclude=report").exit_code == 130
    assert cost(files, kind) == 2.0
    again = learn(files, kind, "--set", "exclude=report")
    assert again.exit_code == 0, again.stderr
    assert cost(files, kind) == 2.0
    points = public_points(files)
    release = files / "out" / "release"
    assert differing_files(release, student=ReleasedWeights(), X_public=points) == []
    finished = learn(files, kind, "--set", "exclude=report", "--json")
    assert document_of(finished)["answered"] == 0
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


@pytest.mark.parametrize(
    ("kind", "more", "promise"),
    [
        ("number", ["--unit", "patient", "--drop", "ward"], ("user", "add-remove", None)),
        ("labels", ["--set", "relation=replace-one"], ("record", "replace-one", 2000)),
    ],
)
def test_unit_and_relation_reach_the_certificate(
    files: Path, kind: str, more: list[str], promise: tuple[str, str, int | None]
) -> None:
    result = learn(files, kind, *more, "--set", "exclude=report")
    assert result.exit_code == 0, result.stderr
    release = files / "out" / "release"
    certificate = json.loads((release / "certificate.json").read_text())
    found = certificate["unit"], certificate["relation"], certificate["public"]["n_records"]
    assert found == promise
    assert second.exit_code(second.check_release(str(release))) == 0


PUBLISHED = "publish the model itself; leave it out, or use method pate"
REFUSED = [
    (
        "number",
        ["--student", "ridge"],
        f"--student is 'ridge', and record moments of a number {PUBLISHED}",
    ),
    ("labels", ["--student", "tree"], PUBLISHED),
    ("number", ["--class-weight", "balanced"], PUBLISHED),
    ("number", ["--bounds", "4,2"], "its first number must be below"),
    ("number", ["--delta", "0"], "--method pate --set mechanism=quantile"),
    ("labels", ["--target", "fever,nothing"], "has no column 'nothing'"),
    ("number", ["--method", "record-votes"], "use record-moments or pate"),
    ("number", ["--set", "relation=replace-one", "--unit", "patient"], "add-remove only"),
]


@pytest.mark.parametrize(("kind", "options", "sentence"), REFUSED, ids=lambda one: str(one)[:40])
def test_what_does_not_go_together_is_refused(
    files: Path, kind: str, options: list[str], sentence: str
) -> None:
    result = learn(files, kind, *options)
    assert result.exit_code == 2
    assert sentence in result.stderr.strip().splitlines()[-1]
    assert not (files / f"{kind}.csv.ledger").exists()
    assert not (files / "out").exists()


def test_a_table_that_is_read_block_by_block_is_refused_before_it_is_paid_for(files: Path) -> None:
    folder = files / "parts"
    folder.mkdir()
    pd.read_csv(files / "number.csv").to_parquet(folder / "part-0.parquet")
    words = [
        "learn",
        str(folder),
        str(files / "public.csv"),
        "--target",
        "dose",
        "--bounds",
        "0,40",
    ]
    more = ["--epsilon", "2", "--delta", "1e-6", "--total", "4,1e-5", "--drop", "patient"]
    result = CliRunner().invoke(app, [*words, *more, "--out", str(files / "out")])
    assert result.exit_code == 2
    assert "one local file that fits into memory" in result.stderr
    assert not list(files.glob("*.ledger"))
