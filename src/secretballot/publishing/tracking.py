"""A finished release in MLflow, where people keep their runs: parameters, prices, files, student.

Nothing is logged but what the release folder holds, and measurements that the caller says are
public.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from secretballot._validation import shown
from secretballot.exceptions import CertificateError, Parameter, ParameterError
from secretballot.report.certificate.fields import CERTIFICATE_FILE, read_certificate
from secretballot.report.certificate.plan_checks import total_price
from secretballot.report.certificate.verify import verify_certificate
from secretballot.report.extras import require_extra
from secretballot.report.metrics import Metrics
from secretballot.report.release.about_words import name_of_data, stated_purpose

__all__ = ["log_to_mlflow"]

_EXTRA = "mlflow"
_KINDS = {"tensor(double)": "double", "tensor(string)": "string"}
_LABEL_KINDS = {"tensor(string)": "string", "tensor(int64)": "long"}
#: The student in MLflow's form, as a file of its own: whoever loads it needs none of this package.
_MODEL_CODE = '''\
import json

import mlflow
import numpy as np
import onnxruntime
import pandas as pd


class Student(mlflow.pyfunc.PythonModel):
    """The student of a release: raw columns in, labels and probabilities out."""

    def load_context(self, context):
        self.session = onnxruntime.InferenceSession(context.artifacts["student"])
        said = self.session.get_modelmeta().custom_metadata_map["classes"]
        self.classes = json.loads(said)

    def predict(self, context, model_input, params=None):
        table = pd.DataFrame(model_input)
        cells = {one.name: self._cells(table, one) for one in self.session.get_inputs()}
        label, *probabilities = self.session.run(None, cells)
        answer = pd.DataFrame({"label": label}, index=table.index)
        if probabilities:
            for place, name in enumerate(self.classes):
                answer[f"probability[{name}]"] = probabilities[0][:, place].astype(float)
        return answer

    @staticmethod
    def _cells(table, column):
        if column.name not in table.columns:
            raise ValueError(f"The column {column.name!r} is missing.")
        values = table[column.name]
        if column.type == "tensor(string)":
            texts = values.where(values.notna(), "").astype(str).str.strip()
            return texts.to_numpy(dtype=object).reshape(-1, 1)
        return pd.to_numeric(values).to_numpy(dtype=np.float64).reshape(-1, 1)


mlflow.models.set_model(Student())
'''


def log_to_mlflow(
    release: str | Path,
    *,
    public_metrics: Metrics | None = None,
    run_name: str | None = None,
    model_name: str = "student",
) -> str:
    """Log a finished release as a run of MLflow, in the experiment and store that are set there.

    Parameters are what the certificate says of method and promise; metrics are the price, what the
    account has spent, and numbers of queries and answers. The folder becomes the artifact
    ``release``. A student that reads raw columns, `student.onnx`, becomes a model with a signature
    that names them, and needs onnxruntime, numpy and pandas alone.

    Parameters
    ----------
    release : path
        A release folder, or the folder of a finished run.
    public_metrics : Metrics, optional
        How good the student is on *public* labelled rows: with it you say that they are public.
    run_name : str, optional
        By default what the release calls the data.
    model_name : str
        Of the model.

    Returns
    -------
    str
        Id of the run in MLflow.

    Raises
    ------
    CertificateError
        If the release does not verify.
    ParameterError
        If `public_metrics` is something else.
    MissingExtraError
        If MLflow is not installed.

    Privacy
    -------
    Reads the release folder alone and spends nothing: what is logged is post-processing of what was
    released. That the metrics are public is the caller's word.

    Examples
    --------
    >>> sb.publishing.log_to_mlflow("study")  # doctest: +SKIP
    'b2c5...'
    """
    if public_metrics is not None and not isinstance(public_metrics, Metrics):
        raise ParameterError(
            Parameter("public_metrics"),
            f" is {shown(public_metrics)}; give what secretballot.report.metrics measured.",
        )
    mlflow = require_extra("mlflow", _EXTRA)
    require_extra("mlflow.pyfunc", _EXTRA)
    folder = _release_folder(Path(release))
    # before the run begins, so that no run is left of a release that does not verify
    verification = verify_certificate(folder)
    if not verification.ok:
        raise CertificateError(
            f"The release {shown(folder)} does not verify: {verification.failures[0].detail}"
        )
    certificate = read_certificate(folder / CERTIFICATE_FILE)
    with mlflow.start_run(run_name=run_name or name_of_data(certificate)) as run:
        mlflow.log_params(_logged_parameters(certificate))
        mlflow.log_metrics(_price_metrics(certificate) | _public_values(public_metrics))
        mlflow.log_artifacts(str(folder), "release")
        if (folder / "student.onnx").is_file():
            _log_model(mlflow, folder, model_name)
        return str(run.info.run_id)


def _release_folder(place: Path) -> Path:
    inside = place / "release"
    return inside if (inside / CERTIFICATE_FILE).is_file() else place


def _logged_parameters(certificate: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was set, as MLflow's parameters: texts and numbers of at most 500 characters."""
    epsilon, delta = total_price(certificate)
    released = certificate["released"]
    named = {
        "data": name_of_data(certificate),
        "dataset": certificate["composition"]["dataset"],
        "purpose": stated_purpose(certificate),
        "mechanism": certificate["mechanism"]["name"],
        "epsilon": epsilon,
        "delta": delta,
        "unit": certificate["unit"],
        "neighbours": certificate["neighbours"],
        "teachers": released["n_teachers"] or None,
        "classes": ", ".join(map(str, released["classes"])),
        "certificate_digest": certificate["digest"],
        "secretballot": certificate["price"]["library_version"],
        **certificate.get("about", {}),
    }
    return {key: str(value)[:500] for key, value in named.items() if value is not None}


def _price_metrics(certificate: Mapping[str, Any]) -> dict[str, float]:
    epsilon, delta = total_price(certificate)
    spent = certificate["composition"]["spent_after"]
    released = certificate["released"]
    return {
        "price_epsilon": epsilon,
        "price_delta": delta,
        "account_spent_epsilon": float(spent["epsilon"]),
        "account_spent_delta": float(spent["delta"]),
        "queries": float(released["queries"]),
        "answered": float(released["answered"]),
    }


def _public_values(metrics: Metrics | None) -> dict[str, float]:
    if metrics is None:
        return {}
    values = {
        "public_accuracy": metrics.accuracy,
        "public_accuracy_low": metrics.interval.low,
        "public_accuracy_high": metrics.interval.high,
        "public_balanced_accuracy": metrics.balanced_accuracy,
        "public_majority_accuracy": metrics.majority_accuracy,
        "public_auc": metrics.auc,
        "public_rows": float(metrics.rows),
    }
    return {name: value for name, value in values.items() if value is not None}


def _log_model(mlflow: Any, folder: Path, name: str) -> None:
    """Log the student as a model, if it reads raw columns under their names."""
    session = require_extra("onnxruntime", _EXTRA).InferenceSession(str(folder / "student.onnx"))
    signature = _column_signature(session)
    if signature is None:
        return
    with tempfile.TemporaryDirectory() as place:
        code = Path(place) / "student_of_release.py"
        code.write_text(_MODEL_CODE, encoding="utf-8")
        mlflow.pyfunc.log_model(
            name=name,
            python_model=str(code),
            artifacts={"student": str(folder / "student.onnx")},
            signature=signature,
            pip_requirements=["mlflow", "numpy", "onnxruntime", "pandas"],
        )


def _column_signature(session: Any) -> Any:
    """Return the columns that a student reads and writes; None if it reads encoded ones."""
    models = require_extra("mlflow.models", _EXTRA)
    types = require_extra("mlflow.types", _EXTRA)
    inputs, outputs = session.get_inputs(), session.get_outputs()
    of_raw_columns = all(one.type in _KINDS and list(one.shape[1:]) == [1] for one in inputs)
    if not of_raw_columns or outputs[0].type not in _LABEL_KINDS:
        return None
    columns = [types.ColSpec(_KINDS[one.type], one.name, required=False) for one in inputs]
    answers = [types.ColSpec(_LABEL_KINDS[outputs[0].type], "label")]
    if len(outputs) > 1:
        classes = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
        answers += [types.ColSpec("double", f"probability[{name}]") for name in classes]
    return models.ModelSignature(types.Schema(columns), types.Schema(answers))
