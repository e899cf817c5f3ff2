"""The method that chooses: the best of saved students, or of a class of hypotheses by name."""

import os
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from secretballot._validation import HYPOTHESES, shown
from secretballot.core.ledger import Ledger
from secretballot.data.schema import Schema
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.learners.selection import SemiPrivateClassifier
from secretballot.learners.training.learner import Learner
from secretballot.publishing.work import ChosenHypothesis
from secretballot.report.certificate.fields import read_certificate
from secretballot.report.student.load import OnnxStudent, load_student
from secretballot.runs.folder import RunFolder, file_digest
from secretballot.runs.method import Fitted, Method, Quote, Sizes
from secretballot.runs.questions import Watch
from secretballot.runs.spec import RunSpec
from secretballot.runs.tables import LabelledTable, RunInputs

_DIGITS = 12  # of a candidate's digest in its name: enough to tell files apart


class Choice(Method):
    """The best of a class of hypotheses, or of saved students."""

    step = "Choosing"
    learners: ClassVar[Mapping[str, type[Learner]]] = {"class": SemiPrivateClassifier}

    def __init__(self, spec: RunSpec) -> None:
        names = spec.method.hypotheses  # type: ignore[union-attr]
        if not names:
            raise ParameterError(
                Parameter("hypotheses"),
                f" is missing; name {', '.join(HYPOTHESES)}, or student.onnx files to choose from.",
            )
        self.hypotheses = names[0] if len(names) == 1 and names[0] in HYPOTHESES else None
        self.candidates = () if self.hypotheses else tuple(map(Path, names))
        if self.candidates and spec.data.schema_file is None:
            beside = schema_beside(self.candidates)
            data = spec.data.model_copy(update={"schema_file": beside})
            spec = spec.model_copy(update={"data": data})
        super().__init__(spec)

    def description(self) -> dict[str, Any]:
        """Return what shapes the result beside the settings: the digests of the files."""
        chosen_from = self.hypotheses or [file_digest(path) for path in self.candidates]
        return {**super().description(), "hypotheses": chosen_from}

    def check(self) -> None:
        """Refuse settings that cannot be, before any table is read."""
        for path in self.candidates:
            if not path.exists():
                raise ParameterError(
                    Parameter("hypotheses"),
                    f" names {shown(str(path))}, which is no file; name one of"
                    f" {', '.join(HYPOTHESES)}, or student.onnx files to choose from.",
                )
        super().check()
        self._students = saved_students(self.candidates)

    def check_inputs(self, inputs: RunInputs, watch: Watch) -> None:
        """Refuse settings that do not go with the tables."""
        super().check_inputs(inputs, watch)
        if self.hypotheses is None:
            return
        if not isinstance(inputs.private, LabelledTable):
            raise DataError(
                "The private file is read from disk, block by block, since it is a folder, at a URL"
                " or too large for memory, and a class of hypotheses is chosen from in memory; give"
                " one smaller file, or saved students. Nothing was spent."
            )
        n_features = inputs.X_public.shape[1]
        if self.hypotheses != "stumps" and n_features != 1:
            raise DataError(
                f"The public file makes {n_features} feature columns, and {self.hypotheses} need"
                " exactly one; drop the others with --drop, or use --hypotheses stumps."
            )

    def quote(self, sizes: Sizes) -> Quote:
        """Return what a run on tables of these sizes would release, at which noise."""
        # a record that comes or goes moves all numbers of mistakes one way, a replaced one both
        sigma = (2 if self.spec.budget.relation == "replace-one" else 1) / self.price.epsilon
        among = self.hypotheses or f"{len(self.candidates)} candidates"
        return self.quoted(sigma, sizes, {"among": among})

    def fit(self, inputs: RunInputs, folder: RunFolder, ledger: Ledger, watch: Watch) -> Fitted:
        """Release, and return what came of it; the student is fitted elsewhere."""
        note_other_accounts(self.candidates, ledger, watch)
        return super().fit(inputs, folder, ledger, watch)

    def learner(self, inputs: RunInputs, ledger: Ledger) -> Learner:
        """Return the learner of these settings."""
        return self.learner_with(hypotheses=self._students or self.hypotheses, ledger=ledger)

    def source(self, model: Any) -> Any:
        """Return what the student is made by, of a learner that released."""
        if self.hypotheses is not None:
            return ChosenHypothesis(self.hypotheses)
        return chosen_file(self.candidates, model)


def saved_students(paths: Sequence[Path]) -> list[tuple[str, Any]]:
    """Return the saved students, each named by its file or folder and the beginning of its
    digest."""
    # The digest ties the name on the certificate to this very file.
    digests = [file_digest(path) for path in paths]
    if len(set(digests)) < len(digests):
        raise ParameterError("Two of the candidates are the same file; name each once.")
    return [
        (f"{_name_of(path)} {digest[:_DIGITS]}", load_student(path))
        for path, digest in zip(paths, digests, strict=True)
    ]


def _name_of(path: Path) -> str:
    """Return how people call a file: by its own name, or by the folder of its run."""
    run = Path(os.path.abspath(path)).parent.parent
    return run.name if path.parent.name == "release" else path.stem


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
    """Return the name of the chosen candidate; of a hypothesis, the cut or the interval, with six
    digits of the encoded column."""
    if "chosen" in public:
        return str(public["chosen"])
    hypothesis = public["hypothesis"]
    column = schema.feature_names[hypothesis.get("feature", 0)]
    ends = {
        name: f"{end:.6g}" if isinstance(end, int | float) else end
        for name, end in hypothesis.items()
    }
    if "direction" in hypothesis:
        sign = ">=" if hypothesis["direction"] == "up" else "<"
        where = f"{column} {sign} {ends['threshold']}"
    else:
        where = f"{ends['lower']} <= {column} <= {ends['upper']}"
    return f"{classes[1]} where {where} (encoded), else {classes[0]}"


def chosen_file(paths: Sequence[Path], model: SemiPrivateClassifier) -> OnnxStudent:
    """Return the chosen candidate, as it was when it was chosen."""
    path = paths[model.choice_.values.item()]
    content = path.read_bytes()
    if not model.certificate_["public"]["chosen"].endswith(sha256(content).hexdigest()[:_DIGITS]):
        raise DataError(
            f"The file {str(path)!r} was changed while the run was at work; put it back, and"
            " repeat."
        )
    return OnnxStudent(content)
