"""The student as a file: skops, which loads without running what it holds, and ONNX for other
languages.

A pickle may run any program when it is opened; a skops file names the types it needs, and loads
only those that its reader trusts. The list of trusted types here is short on purpose: linear
models, naive Bayes, pipelines and preprocessing need no list at all; trees, boosting and neighbours
need the types named below.
"""

import os
import stat
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import shorten
from typing import Any

import numpy as np

from secretballot._seeded import own_global_states
from secretballot._validation import plain_line
from secretballot.core.drafts import write_file
from secretballot.exceptions import DataError, SecretBallotError
from secretballot.report.extras import require_extra
from secretballot.report.student.canonical import canonical_student
from secretballot.report.student.checks import check_student, known_estimators
from secretballot.report.student.counts_graph import COUNTS_STUDENT, counts_graph
from secretballot.report.student.grammar import (
    LARGEST_FILE,
    NotAStudentError,
    checked_members,
    object_types,
)
from secretballot.report.student.moments_graph import (
    MOMENTS_STUDENT,
    RECORD_VOTES_STUDENT,
    moments_graph,
    record_votes_graph,
)
from secretballot.report.student.onnx_names import with_plain_names
from secretballot.report.student.other_learners import (
    NUMBERED_CLASSES,
    graph_versions,
    named_classes_graph,
)
from secretballot.report.student.raw_columns import RawRows, raw_columns_graph, refuse_texts

VOTING_STUDENT = "secretballot.students.voting.VotingStudent"

# Types that carry numbers and no code of a stranger's choosing: our own students, and
# scikit-learn's containers, trees, distances and optimisers.
TRUSTED_TYPES = (
    COUNTS_STUDENT,
    "secretballot.students.graph_counts.GraphCountsClassifier",
    VOTING_STUDENT,
    NUMBERED_CLASSES,
    "numpy.dtype",
    "secretballot.bases.columns.LevelColumn",
    "secretballot.bases.columns.NumberColumn",
    "secretballot.bases.graph.GraphBasis",
    "secretballot.bases.kernel.KernelBasis",
    "secretballot.bases.rotation.Rotation",
    "secretballot.bases.table.TableBasis",
    "secretballot.hypotheses.cuts.Cut",
    "secretballot.hypotheses.finite.FiniteClass",
    "secretballot.hypotheses.finite.Member",
    "secretballot.hypotheses.interval_spaces.Interval",
    "secretballot.hypotheses.intervals.Intervals",
    "secretballot.hypotheses.stumps.DecisionStumps",
    "secretballot.hypotheses.thresholds.Thresholds",
    "secretballot.students.hypothesis_student.HypothesisStudent",
    "secretballot.students.table_students.LabelsStudent",
    "secretballot.students.table_students.NumberStudent",
    MOMENTS_STUDENT,
    RECORD_VOTES_STUDENT,
    "sklearn._loss.link.HalfLogitLink",
    "sklearn._loss.link.IdentityLink",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn._loss.link.MultinomialLogit",
    "sklearn._loss.loss.ExponentialLoss",
    "sklearn._loss.loss.HalfBinomialLoss",
    "sklearn._loss.loss.HalfMultinomialLoss",
    "sklearn._loss.loss.HalfSquaredError",
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
_LARGEST_ERROR = 1e-5  # of a probability, where a converter computes in single precision
_MOST_TYPES_NAMED = 10  # in a message


def dump_student(student: Any, path: str | Path) -> tuple[str, ...]:
    """Write a fitted student to a skops file whose bytes follow from the student's values alone.

    Not from the process: no address, date, memory left over or order of a hash table. Objects that
    the student keeps in several places are written in each.

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
        If the student holds something that skops cannot write, or that has no canonical form.
    """
    content = _canonical_bytes(student)
    untrusted = _types_to_trust(content)
    if content != _canonical_bytes(_read_back(student, content, untrusted)):
        raise DataError(
            f"{type(student).__name__} is not the same once it was written and read; "
            "use plain arrays and scikit-learn estimators as its attributes."
        )
    write_file(Path(path), content)
    return tuple(untrusted)


def _canonical_bytes(student: Any) -> bytes:
    skops = require_extra("skops.io", "export")
    problem = ""
    try:
        # A learner without a seed may keep numpy's global generator: it is written as if it had
        # just been seeded.
        with own_global_states(0):
            return canonical_student(skops.dumps(student))
    except (SecretBallotError, MemoryError):  # what memory there is, is no property of the student
        raise
    # any student may be given, and skops passes on whatever its parts raise
    except Exception as error:
        problem = _one_line(error)
    raise DataError(
        f"{type(student).__name__} cannot be written by skops ({problem}); "
        "use plain arrays and scikit-learn estimators as its attributes."
    )


def _types_to_trust(content: bytes) -> list[str]:
    """Return the types that a reader will have to name."""
    skops = require_extra("skops.io", "export")
    return _untrusted_types(
        content, _object_types(content, skops.get_untrusted_types(data=content)), ()
    )


def _object_types(content: bytes, trusted: Sequence[str]) -> set[str]:
    problem = ""
    try:
        return object_types(checked_members(content), trusted)
    except NotAStudentError as error:
        problem = str(error)
    raise DataError(f"The student could be written, but nobody would read it again: {problem}.")


def _read_back(student: Any, content: bytes, trusted: Sequence[str]) -> Any:
    """Return the student that a reader finds in the file."""
    problem = ""
    try:
        return _checked_student(content, trusted)
    except NotAStudentError as error:
        problem = str(error)
    except MemoryError:
        raise
    except Exception as error:  # as in writing
        problem = _one_line(error)
    raise DataError(
        f"{type(student).__name__} could be written but not be read again ({problem}); "
        "define its classes in an installed module, and use plain arrays as attributes."
    )


def load_student(path: str | Path, *, trusted: Sequence[str] = ()) -> Any:
    """Load a student from a skops file; types that are not trusted and odd structures are refused.

    Whatever the file holds, it is refused in one sentence or gives a student whose predictions stay
    inside of its arrays: sizes are bounded, every node of the file is of a known kind, trees and
    searches lead nowhere but down, and indices stay inside. Types that cannot be checked so must be
    named in `trusted`. Parallel workers that the student asks for are left out, so that it predicts
    the same each time.

    Parameters
    ----------
    path : path
        ``student.skops`` of a release folder.
    trusted : sequence of str, optional
        Full names of further types that you trust, such as the class of a student of your own. They
        may do anything.

    Returns
    -------
    estimator
        The fitted student.

    Raises
    ------
    MissingExtraError
        If skops is not installed.
    DataError
        If the file cannot be read, is too large or not sound, or needs a type that is not trusted;
        the message names it.
    """
    require_extra("skops.io", "export")
    path, problem = Path(path), ""
    try:
        return _checked_student(_read_bounded(path), trusted)
    except _UntrustedError as error:
        needed = ", ".join(error.types[:_MOST_TYPES_NAMED])
        problem = (
            f"{path} needs types that are not trusted: {needed}; if you know them, "
            "name them in load_student(..., trusted=[...])."
        )
    except OSError as error:
        problem = f"{path} cannot be read: {error.strerror or error}."
    except NotAStudentError as error:
        problem = f"{path} is not a readable skops file that could be a student: {error}."
    except Exception as error:  # a damaged file can fail in any way inside skops
        problem = f"{path} is not a readable skops file ({type(error).__name__})."
    raise DataError(plain_line(problem))


class _UntrustedError(Exception):
    def __init__(self, types: Sequence[str]) -> None:
        super().__init__(types)
        self.types = types


def _read_bounded(path: Path) -> bytes:
    """Return the content of a regular file within the bound."""
    with open(os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            raise NotAStudentError("it is no regular file")
        if about.st_size > LARGEST_FILE:
            raise NotAStudentError("it is too large")
        return file.read(LARGEST_FILE + 1)[:LARGEST_FILE]


def _checked_student(content: bytes, trusted: Sequence[str]) -> Any:
    """Return the student in a file, checked before and after its objects are made."""
    skops = require_extra("skops.io", "export")
    # three gates, in this order: the file's structure before any object exists, its types before
    # they are made, and the objects before they are handed out
    members = checked_members(content)
    types = object_types(members, trusted)
    # as it would have been written here: without numbers by which one part could stand for another
    # that was checked
    clean = canonical_student(content, from_memory=False)
    refused = _untrusted_types(clean, types, trusted)
    if refused:
        raise _UntrustedError(refused)
    student = skops.loads(clean, trusted=[*TRUSTED_TYPES, *trusted])
    check_student(student)
    return student


def _untrusted_types(content: bytes, types: Collection[str], trusted: Sequence[str]) -> list[str]:
    """Return the types in a file that neither skops nor the lists know.

    Of objects, which may restore themselves as they like, all that are not in the lists.
    """
    skops = require_extra("skops.io", "export")
    needed = {*types, *skops.get_untrusted_types(data=content)}
    return sorted(needed - {*TRUSTED_TYPES, *trusted} - (known_estimators() & set(types)))


def _one_line(error: Exception) -> str:
    text = shorten(str(error), 200, placeholder=" ...").rstrip(".")
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def dump_onnx(student: Any, path: str | Path, X_public: Any) -> None:
    """Write a fitted student to an ONNX file, after checking that it predicts as the student does.

    Its bytes, too, are a function of the student's values alone.

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
        raise DataError(
            "ONNX needs the public points as one numeric array; convert the frame first."
        )
    points = points.astype(np.float32)
    with _conversion_failures(student):
        model = _onnx_bytes(student, points)
        found = _outputs_of(runtime, model, {"X": points})[0]
        wanted = np.asarray(student.predict(points))
    _refuse_other_labels(found, wanted)
    write_file(Path(path), model)


def dump_raw_onnx(student: Any, path: str | Path, schema: Mapping[str, Any], rows: RawRows) -> None:
    """Write a fitted student to an ONNX file that reads the raw columns of a table.

    Parameters
    ----------
    student : fitted estimator
        As in `dump_student`.
    path : path
        File to write.
    schema : mapping
        Complete, as `Schema.to_json` writes it.
    rows : RawRows
        With ``X`` of shape (n_rows, n_features). The file must give the student's own labels and
        probabilities on them.

    Raises
    ------
    MissingExtraError
        If skl2onnx or onnxruntime is not installed.
    DataError
        If a column holds free text, the student does not convert, or the converted one predicts
        otherwise.
    """
    require_extra("skl2onnx", "onnx")
    runtime = require_extra("onnxruntime", "onnx")
    refuse_texts(schema)
    classes = np.asarray(student.classes_).tolist()
    with _conversion_failures(student):
        inner = _onnx_bytes(student, rows.X.astype(np.float32))
        model = raw_columns_graph(
            inner, schema, classes, projected=_full_name(student) == COUNTS_STUDENT
        )
        found = _outputs_of(runtime, model, rows.inputs(schema))
        wanted = np.asarray(student.predict(rows.X))
        shares = student.predict_proba(rows.X) if hasattr(student, "predict_proba") else None
    _refuse_other_labels(found[0], wanted)
    if shares is not None and len(found) > 1:
        apart = float(np.abs(np.asarray(found[1]) - np.asarray(shares)).max())
        if not apart <= _LARGEST_ERROR:
            raise DataError(
                f"Probabilities of the ONNX student differ from the student's by up to {apart:.2g}."
            )
    # last: a file appears only if it answers as the student does
    write_file(Path(path), model)


@contextmanager
def _conversion_failures(student: Any) -> Iterator[None]:
    """Say in one sentence what a converter, or the file that it made, failed with."""
    try:
        with own_global_states(0), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the converter, about its own future
            yield
    except MemoryError:
        raise
    except Exception as error:  # converters are many and raise what they like
        raise DataError(
            f"{type(student).__name__} does not convert to ONNX ({_one_line(error)})."
        ) from None


def _outputs_of(runtime: Any, model: bytes, inputs: Mapping[str, Any]) -> list[Any]:
    """Return what an ONNX model computes."""
    quiet = runtime.SessionOptions()
    quiet.log_severity_level = 3  # it would tell standard error of shapes it had to guess
    session = runtime.InferenceSession(model, quiet, providers=["CPUExecutionProvider"])
    outputs: list[Any] = session.run(None, inputs)
    return outputs


def _refuse_other_labels(found: Any, wanted: Any) -> None:
    different = int(np.count_nonzero(np.asarray(found).astype(str) != wanted.astype(str)))
    if different:
        raise DataError(
            f"The ONNX student differs from the student on {different} of {len(wanted)} public"
            " points."
        )


def _full_name(student: Any) -> str:
    return f"{type(student).__module__}.{type(student).__qualname__}"


def _onnx_bytes(student: Any, points: np.ndarray[Any, Any]) -> bytes:
    name = _full_name(student)
    if name == COUNTS_STUDENT:
        return counts_graph(student)
    if name == MOMENTS_STUDENT:
        return moments_graph(student)
    if name == RECORD_VOTES_STUDENT:
        return record_votes_graph(student)
    if name == NUMBERED_CLASSES:
        numbers = _onnx_bytes(student.classifier_, points)
        onnx = require_extra("onnx", "onnx")
        named = onnx.load_from_string(named_classes_graph(numbers, student.classes_.tolist()))
        return bytes(with_plain_names(named).SerializeToString(deterministic=True))
    if name == VOTING_STUDENT:
        student = student.as_adaboost()
    skl2onnx = require_extra("skl2onnx", "onnx")
    versions = graph_versions(student)
    # of the point, the converter reads width and type alone
    made = skl2onnx.to_onnx(student, points[:1], options={"zipmap": False}, target_opset=versions)
    model = with_plain_names(made)
    return bytes(model.SerializeToString(deterministic=True))
