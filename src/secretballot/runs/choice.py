"""What a choice is made from: saved students and classes of hypotheses, by name."""

import json
import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from secretballot.core.ledger import Ledger
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError, ParameterError
from secretballot.hypotheses import HypothesisClass, hypotheses_by_name
from secretballot.learners.selection.semi_private import SemiPrivateClassifier
from secretballot.publishing.job import SavedStudent
from secretballot.report.certificate.fields import read_certificate
from secretballot.report.student.load import load_student
from secretballot.runs.folder import file_digest
from secretballot.runs.progress import Watch

_DIGITS = 12  # of a candidate's digest in its name: enough to tell files apart


def saved_students(paths: Sequence[Path]) -> list[tuple[str, Any]]:
    """Return the saved students, each named by its file or folder and the beginning of its
    digest."""
    # The digest ties the name on the certificate to this very file.
    digests = [file_digest(path) for path in paths]
    if len(set(digests)) < len(digests):
        raise ParameterError("Two of the candidates are the same file; name each once.")
    names = _names_of_files(paths)
    return [
        (f"{name} {digest[:_DIGITS]}", load_student(path))
        for name, path, digest in zip(names, paths, digests, strict=True)
    ]


def _names_of_files(paths: Sequence[Path]) -> list[str]:
    """Return how people call files: by their own names, or by the folders that tell them apart.

    Of `a/release/student.onnx` and `b/release/student.onnx` these are a and b.
    """
    stems = [path.stem for path in paths]
    if len(set(stems)) == len(stems):
        return stems
    folders = [Path(os.path.abspath(path)).parent.parts for path in paths]
    for level in range(1, max(map(len, folders)) + 1):
        # the root of a drive is no name
        named = [parts[-level] if level < len(parts) else "" for parts in folders]
        if "" not in named and len(set(named)) == len(named):
            return named
    return stems


def schema_beside(candidates: Sequence[Path]) -> Path | None:
    """Return the schema that the saved students were released with, by which they read columns.

    Raises
    ------
    DataError
        If they were released with different ones.
    """
    beside = [path.parent / "schema.json" for path in candidates]
    found = [path for path in beside if path.is_file()]
    if found and (len(found) < len(beside) or len({file_digest(path) for path in found}) > 1):
        raise DataError(
            "The candidates were released with different columns, or some without a schema.json"
            " beside them; choose among students of one schema, or name it with --schema."
        )
    return found[0] if found else None


def note_other_accounts(candidates: Sequence[Path], ledger: Ledger, watch: Watch) -> None:
    """Say so where a student was released under another account: its price is not part of this."""
    own = (ledger.dataset, ledger.unit, ledger.relation, ledger.budget.to_json())
    for path in candidates:
        certificate = path.parent / "certificate.json"
        if not certificate.is_file():
            continue
        paid = read_certificate(certificate).get("composition", {})
        if tuple(paid.get(term) for term in ("dataset", "unit", "relation", "budget")) != own:
            watch.note(
                f"{path} was released under another account; if it is about the same people, its"
                " price adds to this one and the certificate does not say so. Give both the same"
                " --ledger and --dataset.",
                private=False,
            )


def chosen_words(public: Mapping[str, Any], schema: Schema, classes: Sequence[Any]) -> str:
    """Return the name of the chosen candidate; of a hypothesis, a cut in words, any other as JSON.

    Numbers are those of the encoded column.
    """
    if "chosen" in public:
        return str(public["chosen"])
    hypothesis = public["hypothesis"]
    if "direction" not in hypothesis:
        return json.dumps(hypothesis)
    column = schema.feature_names[hypothesis.get("feature", 0)]
    sign = ">=" if hypothesis["direction"] == "up" else "<"
    return (
        f"{classes[1]} where {column} {sign} {hypothesis['threshold']} (encoded), else {classes[0]}"
    )


def class_by_name(name: str, n_features: int) -> HypothesisClass:
    """Return the class of that name on so many columns."""
    if name != "stumps" and n_features != 1:
        raise DataError(
            f"The public file makes {n_features} feature columns, and {name} need exactly one; drop"
            " the others with --drop, or use --hypotheses stumps."
        )
    return hypotheses_by_name(name, n_features)


def chosen_file(paths: Sequence[Path], model: SemiPrivateClassifier) -> SavedStudent:
    """Return the file of the chosen candidate, as it was when it was chosen."""
    path = paths[model.choice_.values.item()]
    content = path.read_bytes()
    if not model.certificate_["public"]["chosen"].endswith(sha256(content).hexdigest()[:_DIGITS]):
        raise DataError(
            f"The file {str(path)!r} was changed while the run was at work; put it back, and"
            " repeat."
        )
    return SavedStudent(content)
