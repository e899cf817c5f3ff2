"""The student as a file: skops, which loads without running what it holds, and ONNX for other languages.

A pickle may run any program when it is opened; a skops file names the types it needs, and loads only those that
its reader trusts. The list of trusted types here is short on purpose: linear models, naive Bayes, pipelines and
preprocessing need no list at all; trees, boosting and neighbours need the types named below.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from secretballot.exceptions import DataError
from secretballot.report.counts_graph import COUNTS_STUDENT, counts_graph
from secretballot.report.extras import MissingExtraError, require_extra

__all__ = ["TRUSTED_TYPES", "dump_onnx", "dump_student", "load_student"]

VOTING_STUDENT = "secretballot.students.voting.VotingStudent"

# Types that carry numbers and no code of a stranger's choosing: our own students, and scikit-learn's containers,
# trees, distances and optimisers.
TRUSTED_TYPES = (
    COUNTS_STUDENT,
    "secretballot.students.graph_counts.GraphCountsClassifier",
    VOTING_STUDENT,
    "fractions.Fraction",
    "numpy.dtype",
    "secretballot.hypotheses.cuts.Cut",
    "secretballot.hypotheses.finite.FiniteClass",
    "secretballot.hypotheses.finite.Member",
    "secretballot.hypotheses.halfspaces.Halfspaces",
    "secretballot.hypotheses.interval_spaces.Interval",
    "secretballot.hypotheses.intervals.Intervals",
    "secretballot.hypotheses.planar_boxes.Rectangle",
    "secretballot.hypotheses.planar_lines.Halfspace",
    "secretballot.hypotheses.rectangles.Rectangles",
    "secretballot.hypotheses.stumps.DecisionStumps",
    "secretballot.hypotheses.thresholds.Thresholds",
    "secretballot.students.hypothesis_student.HypothesisStudent",
    "sklearn._loss.link.HalfLogitLink",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.link.MultinomialLogit",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn._loss.loss.HalfMultinomialLoss",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.binning._BinMapper",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.metrics._dist_metrics.MinkowskiDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
)
_PREVIEW_ROWS = 1000


def _untrusted(path: Path, trusted: Sequence[str]) -> list[str]:
    skops = require_extra("skops.io", "export")
    allowed = {*TRUSTED_TYPES, *trusted}
    return sorted(set(skops.get_untrusted_types(file=path)) - allowed)


def dump_student(student: Any, path: str | Path) -> tuple[str, ...]:
    """Write a fitted student to a skops file.

    Parameters
    ----------
    student : fitted estimator
        Trained on released labels and public points only; its file will be published.
    path : path
        File to write.

    Returns
    -------
    tuple of str
        Types in the file that `load_student` will not accept without being told; mostly none.

    Raises
    ------
    MissingExtraError
        If skops is not installed.
    DataError
        If the student holds something that skops cannot write.
    """
    skops, path = require_extra("skops.io", "export"), Path(path)
    try:
        skops.dump(student, path)
    except OSError:
        raise
    except Exception as error:  # any student may be given, and skops passes on whatever its parts raise
        raise DataError(
            f"{type(student).__name__} cannot be written by skops ({_one_line(error)}); "
            "use plain arrays and scikit-learn estimators as its attributes."
        ) from None
    return tuple(_untrusted(path, ()))


def load_student(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Load a student from a skops file, refusing every type that is not trusted.

    Parameters
    ----------
    path : path
        ``student.skops`` of a release folder.
    trusted : sequence of str, optional
        Full names of further types that you trust, such as the class of a student of your own.

    Returns
    -------
    estimator
        The fitted student.

    Raises
    ------
    MissingExtraError
        If skops is not installed.
    DataError
        If the file cannot be read, or needs a type that is not trusted; the message names it.
    """
    skops, path = require_extra("skops.io", "export"), Path(path)
    try:
        refused = _untrusted(path, trusted)
        if not refused:
            return skops.load(path, trusted=[*TRUSTED_TYPES, *trusted])
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}.") from None
    except MissingExtraError:
        raise
    except Exception as error:  # a damaged file can fail in any way inside skops
        raise DataError(f"{path} is not a readable skops file ({_one_line(error)}).") from None
    raise DataError(
        f"{path} needs types that are not trusted: {', '.join(refused)}; if you know them, "
        f"name them in load_student(..., trusted=[...])."
    )


def _one_line(error: Exception) -> str:
    text = shorten(str(error), 200, placeholder=" ...").rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def dump_onnx(student: Any, path: str | Path, X_public: Any) -> None:
    """Write a fitted student to an ONNX file, after checking that it predicts as the student does.

    Parameters
    ----------
    student : fitted estimator
        As in `dump_student`.
    path : path
        File to write.
    X_public : array of shape (n, n_features)
        Public points; the file must give the student's own labels on the first thousand of them.

    Raises
    ------
    MissingExtraError
        If skl2onnx or onnxruntime is not installed.
    DataError
        If the student does not convert, or the converted one predicts otherwise.
    """
    require_extra("skl2onnx", "onnx")
    runtime = require_extra("onnxruntime", "onnx")
    points = X_public[:_PREVIEW_ROWS]
    if not isinstance(points, np.ndarray) or points.ndim != 2 or points.dtype.kind not in "fiu":
        raise DataError("ONNX needs the public points as one numeric array; convert the frame first.")
    points = points.astype(np.float32)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the converter, about its own future
            model = _converted(student, points)
            quiet = runtime.SessionOptions()
            quiet.log_severity_level = 3  # it would tell standard error of shapes it had to guess
            session = runtime.InferenceSession(model, quiet, providers=["CPUExecutionProvider"])
            found = np.asarray(session.run(None, {session.get_inputs()[0].name: points})[0])
            wanted = np.asarray(student.predict(points))
    except Exception as error:  # converters are many and raise what they like
        raise DataError(f"{type(student).__name__} does not convert to ONNX ({_one_line(error)}).") from None
    different = int(np.count_nonzero(found.astype(str) != wanted.astype(str)))
    if different:
        raise DataError(f"The ONNX student differs from the student on {different} of {len(points)} public points.")
    Path(path).write_bytes(model)


def _converted(student: Any, points: np.ndarray[Any, Any]) -> bytes:
    name = f"{type(student).__module__}.{type(student).__qualname__}"
    if name == COUNTS_STUDENT:
        return counts_graph(student)
    if name == VOTING_STUDENT:
        student = student.as_adaboost()
    skl2onnx = require_extra("skl2onnx", "onnx")
    return bytes(skl2onnx.to_onnx(student, points[:1], options={"zipmap": False}).SerializeToString())
