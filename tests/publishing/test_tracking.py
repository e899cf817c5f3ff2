"""A finished release in MLflow: what is logged, what is not, and a student that others can use."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import secretballot as sb
from secretballot.cli import app
from secretballot.datasets.schema import Schema
from secretballot.exceptions import CertificateError, ParameterError
from secretballot.publishing import log_to_mlflow
from secretballot.report.extras import MissingExtraError
from secretballot.report.metrics import metrics_of_student

# MLflow and what it brings warn of each other
pytestmark = pytest.mark.filterwarnings("ignore")


def table(count: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = pd.DataFrame({"age": rng.integers(20, 90, count), "ward": rng.choice(["n", "s"], count)})
    rows["ill"] = np.where(rows["age"] + 9 * (rows["ward"] == "n") > 55, "yes", "no")
    return rows


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    table(600, 1).to_csv(folder / "private.csv", index=False)
    table(150, 2).drop(columns="ill").to_csv(folder / "public.csv", index=False)
    words = ["learn", str(folder / "private.csv"), str(folder / "public.csv"), "--target", "ill"]
    price = ["--classes", "no,yes", "--epsilon", "2", "--delta", "1e-5", "--own-ledger"]
    about = ["--title", "Stays", "--purpose", "To plan beds", "--controller", "The trust"]
    result = CliRunner().invoke(app, [*words, *price, *about, "--out", str(folder / "out")])
    assert result.exit_code == 0, result.stderr
    return folder / "out"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Any]:
    mlflow = pytest.importorskip("mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'runs.db'}")
    mlflow.create_experiment("study", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("study")
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(before)


def test_a_release_is_logged_with_its_promise_price_and_files(
    study: Path, client: Any, tmp_path: Path
) -> None:
    run = client.get_run(log_to_mlflow(study))
    assert run.info.run_name == "Stays"
    parameters, metrics = run.data.params, run.data.metrics
    for name, value in {
        "data": "Stays",
        "purpose": "To plan beds",
        "controller": "The trust",
        "mechanism": "record-moments",
        "epsilon": "2.0",
        "unit": "record",
        "neighbours": "add-remove",
        "classes": "no, yes",
    }.items():
        assert parameters[name] == value
    assert metrics["price_epsilon"] == metrics["account_spent_epsilon"] == 2.0
    assert metrics["queries"] == metrics["answered"] == 150
    # nothing was measured on public rows, so nothing is said of how good it is
    assert not [name for name in metrics if name.startswith("public_")]
    copied = Path(client.download_artifacts(run.info.run_id, "release", str(tmp_path)))
    assert {path.name for path in copied.iterdir()} == {
        path.name for path in (study / "release").iterdir()
    }
    assert sb.verify_certificate(copied).ok
    # what is secret lies beside the release, and stays there
    assert not list(tmp_path.rglob("vault")) + list(tmp_path.rglob("run.json"))


def test_what_was_measured_on_public_rows_is_logged_when_it_is_given(
    study: Path, client: Any
) -> None:
    student = sb.load_student(study / "release" / "student.skops")
    schema = Schema.read(study / "release" / "schema.json")
    test = table(200, 3)
    index = (test["ill"] == "yes").to_numpy().astype(int)
    X = schema.encode(test.drop(columns="ill"))
    measured = metrics_of_student(student, X, index, ["no", "yes"])
    metrics = client.get_run(log_to_mlflow(study, public_metrics=measured)).data.metrics
    assert metrics["public_accuracy"] == measured.accuracy > 0.8
    assert metrics["public_majority_accuracy"] == measured.majority_accuracy
    assert metrics["public_rows"] == 200


def test_the_student_is_a_model_with_a_signature_that_needs_none_of_this_package(
    study: Path, client: Any, tmp_path: Path
) -> None:
    import mlflow

    run_id = log_to_mlflow(study / "release", model_name="stays")
    (model,) = mlflow.search_logged_models(output_format="list", filter_string="name = 'stays'")
    assert model.source_run_id == run_id
    signature = mlflow.models.get_model_info(model.model_uri).signature
    assert signature.inputs.input_dict()["age"].type.name == "double"
    assert signature.inputs.input_dict()["ward"].type.name == "string"
    assert signature.outputs.input_names() == ["label", "probability[no]", "probability[yes]"]
    rows = table(50, 4).drop(columns="ill").astype({"age": float})
    rows.loc[3, "age"], rows.loc[4, "ward"] = np.nan, None
    said = mlflow.pyfunc.load_model(model.model_uri).predict(rows)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    ours = CliRunner().invoke(app, ["predict", str(study), str(tmp_path / "rows.csv")])
    own = pd.read_csv(pd.io.common.StringIO(ours.stdout))
    assert said["label"].tolist() == own["label"].tolist()
    assert np.allclose(said["probability[yes]"], own["probability[yes]"], atol=1e-5)
    # where secretballot cannot be imported
    rows.to_json(tmp_path / "rows.json", orient="records")
    code = (
        "import sys, json; sys.path += {path!r}; sys.modules['secretballot'] = None\n"
        "import mlflow, pandas as pd\n"
        "mlflow.set_tracking_uri({uri!r})\n"
        "model = mlflow.pyfunc.load_model({model!r})\n"
        "print(json.dumps(model.predict(pd.read_json({rows!r}))['label'].tolist()))\n"
    ).format(
        path=[place for place in sys.path if place],
        uri=mlflow.get_tracking_uri(),
        model=model.model_uri,
        rows=str(tmp_path / "rows.json"),
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert json.loads(run.stdout.splitlines()[-1]) == own["label"].tolist()


def test_a_release_that_does_not_verify_is_not_logged(
    study: Path, client: Any, tmp_path: Path
) -> None:
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in (study / "release").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    (copy / "labels.csv").write_text("query,label,abstained\n")
    with pytest.raises(CertificateError, match="does not verify"):
        log_to_mlflow(copy)
    experiment = client.get_experiment_by_name("study")
    assert client.search_runs([experiment.experiment_id]) == []


def test_metrics_are_ours_or_none(study: Path) -> None:
    with pytest.raises(ParameterError, match="public_metrics is a dict"):
        log_to_mlflow(study, public_metrics={"accuracy": 1.0})  # type: ignore[arg-type]


def test_without_mlflow_the_extra_is_named(study: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'secretballot\[mlflow\]'"):
        log_to_mlflow(study)
