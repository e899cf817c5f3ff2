"""What a finished run of `learn` tells a diagnosis: its settings and its encoding."""

import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from secretballot._json_files import LARGEST_JSON, json_fields
from secretballot._naming import name_columns
from secretballot._typing import FloatArray, IntArray, ObjectArray
from secretballot._validation import check_count, check_path
from secretballot.datasets.schema import Schema
from secretballot.datasets.table_source import source_of
from secretballot.datasets.tables import (
    check_file,
    check_named,
    class_indices,
    is_local_file,
    read_table,
    unit_ids,
)
from secretballot.ensemble.diagnostics.kept_teachers import kept_teachers
from secretballot.ensemble.teachers import TeacherEnsemble
from secretballot.exceptions import CertificateError, DataError, ParameterError
from secretballot.learners.training.trained import FILE as TEACHERS
from secretballot.report.certificate.fields import read_certificate
from secretballot.runs.learn import VOTES
from secretballot.runs.progress import Watch
from secretballot.runs.table_match import TableCells, note_unreadable
from secretballot.runs.tables import table_digest
from secretballot.vault import read_secret

__all__ = ["LabelledRows", "Study"]

_NONE = type(None)
_SETTINGS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("neighbours", "private file", "target", "teacher"), (str,)),
    **dict.fromkeys(("delta", "epsilon"), (int, float)),
    "seed": (int,),
    "teachers": (int, _NONE),
    "unit": (str, _NONE),
    "classes": (list, _NONE),
}


@dataclass(frozen=True, repr=False)
class LabelledRows:
    """Encoded rows with their classes; private.

    Attributes
    ----------
    X : ndarray of float, shape (n, n_features)
    index : ndarray of int64, shape (n,)
        Class indices.
    units : ndarray of str objects, shape (n,), or None
    """

    X: FloatArray
    index: IntArray
    units: ObjectArray | None = None


@dataclass(frozen=True, repr=False)
class Study:
    """A finished run of learning; shows nothing, since its settings hold digests of private files.

    Attributes
    ----------
    vault : Path
    settings : dict
        What the run was asked to do, as its vault says.
    schema : Schema
        Of the columns, with the classes.
    classes : tuple
    n_teachers : int
    """

    vault: Path
    settings: dict[str, Any]
    schema: Schema
    classes: tuple[Any, ...]
    n_teachers: int

    @classmethod
    def read(cls, folder: str | Path, schema: Path | None = None) -> "Study":
        """Read the vault of a study, given by itself or by the folder that holds it.

        Parameters
        ----------
        folder : path
        schema : path, optional
            Schema of the run's release, where that no longer stands beside the vault.

        Raises
        ------
        DataError
            If it is no vault of a finished run of `learn`, or the schema and certificate of its
            release are not found.
        """
        # A finished release is required: what is chosen after a look into the vault depends on
        # private data, so the run whose votes they are must be over.
        check_path("The vault", folder)
        vault = Path(folder)
        if (vault / "vault" / "run.json").is_file():
            vault = vault / "vault"
        settings = _settings_of_run(vault)
        beside = Path(os.path.abspath(vault)).parent / "release"
        release = beside if schema is None else schema.parent
        if schema is None and not (release / "certificate.json").is_file():
            raise DataError(
                f"The vault {str(vault)!r} has no finished release beside it: what is chosen after"
                " a diagnosis depends on private data, so finish the run first, or name its"
                " release's schema.json if it was moved."
            )
        known = Schema.read(release / "schema.json" if schema is None else schema)
        if known.classes is None:
            raise DataError(
                "The schema names no classes; give the schema.json of the run's release."
            )
        return cls(
            vault, settings, known, known.classes, _n_teachers(release, settings, known.classes)
        )

    def teachers(self) -> TeacherEnsemble | None:
        """Return the teachers kept in the vault, None if some are missing or of other versions.

        A run in rounds names the ones that it goes on with in teachers.json; others leave one set.
        """
        about = self._about_teachers()
        if about is None:
            seed = self.settings["seed"]
            return kept_teachers(
                self.vault, len(self.classes), n_teachers=self.n_teachers, random_state=seed
            )
        serial, state = about
        shape = {"n_teachers": self.n_teachers, "n_classes": len(self.classes)}
        return TeacherEnsemble.kept(self.vault, serial, **shape, random_state=state)

    def _about_teachers(self) -> tuple[str, int] | None:
        content = read_secret(self.vault / TEACHERS, largest=LARGEST_JSON)
        if content is None:
            return None
        about = json_fields(content, {"serial": str, "random_state": int})
        if about is None:
            raise DataError(f"{self.vault / TEACHERS} is damaged; put the vault back as it was.")
        return about["serial"], about["random_state"]

    def public(self, path: Path, watch: Watch) -> FloatArray:
        """Return the rows of an unlabelled file, encoded as in the run, shape (n, n_features).

        Raises
        ------
        DataError
            If the file cannot be read or lacks a column.
        """
        _check_place(path, "public file")
        return self._encoded_rows(read_table(path, role="public file"), "public file", watch)

    def private(self, path: Path, watch: Watch) -> LabelledRows:
        """Return the private records of the run.

        Raises
        ------
        DataError
            If it is another file than the run learned from, or cannot be read.
        """
        _check_place(path, "private file")
        if table_digest(path) != self.settings["private file"]:
            raise DataError(
                f"The private file {str(path)!r} is not the one that this run learned from; give"
                " that file, unchanged."
            )
        return self.labelled(path, watch, role="private file", with_units=True)

    def labelled(
        self, path: Path, watch: Watch, *, role: str = "labelled file", with_units: bool = False
    ) -> LabelledRows:
        """Return the rows of a labelled file.

        Raises
        ------
        DataError
            If the file cannot be read, lacks a column, or has a label that is no class; no cell is
            named.
        """
        _check_place(path, role)
        frame = read_table(path, role=role)
        target, unit = self.settings["target"], self.settings["unit"]
        check_named(frame, target, "a file with the label column of the run", role=role)
        index = class_indices(frame, target, self.classes, role=role)
        units = unit_ids(frame, unit, role=role) if with_units and unit is not None else None
        return LabelledRows(self._encoded_rows(frame, role, watch), index, units)

    def _encoded_rows(self, frame: pd.DataFrame, role: str, watch: Watch) -> FloatArray:
        """Return a table encoded as in the run; cells that are no numbers count as missing."""
        missing = [name for name in self.schema.names if name not in frame.columns]
        if missing:
            raise DataError(
                f"The {role} lacks {name_columns(missing)} that the run learned from; add what is"
                " missing, under the names of the run's own files."
            )
        encoding = self.schema.encoding(frame, role=role)
        note_unreadable(self.schema, TableCells.of(frame, encoding), watch, role=role)
        return encoding.matrix


def _check_place(path: Path, role: str) -> None:
    """Refuse what cannot be a table before it is read: a file, or a folder of them."""
    if is_local_file(path):
        check_file(path, role=role)
    else:
        source_of(path, role=role)


def _settings_of_run(vault: Path) -> dict[str, Any]:
    """Return the description of the run of learning that the vault belongs to."""
    content = None
    with suppress(DataError):  # what cannot be read is no run's either
        content = read_secret(vault / "run.json", largest=LARGEST_JSON)
    stored = None if content is None else json_fields(content, {"description": dict})
    settings: dict[str, Any] = {} if stored is None else stored["description"]
    if settings.get("verb") == "learn" and settings.get("method", VOTES) != VOTES:
        raise DataError(
            f"{str(vault)!r} is of a run that has no teachers, so there is nothing to diagnose;"
            " name the vault of a run with --method votes."
        )
    if settings.get("bounds") or settings.get("labels"):
        raise DataError(
            f"{str(vault)!r} is of a run on a number or on several labels, which keeps no teachers,"
            " so there is nothing to diagnose; name the vault of a run on classes."
        )
    typed = all(
        name in settings and type(settings[name]) in kinds for name, kinds in _SETTINGS.items()
    )
    if settings.get("verb") != "learn" or not typed:
        raise DataError(
            f"{str(vault)!r} is no vault of a run of `learn`; name the vault that such a run wrote."
        )
    return settings


def _n_teachers(release: Path, settings: Mapping[str, Any], classes: tuple[Any, ...]) -> int:
    """Return the number of teachers by the certificate of the finished release, which must fit.

    Whoever looks before the release chooses by private data what it asks, so a schema from
    elsewhere is not enough.
    """
    path = release / "certificate.json"
    try:
        stated = dict(read_certificate(path))
        released = {name: stated["released"][name] for name in ("classes", "n_teachers")}
        # less, beside an estimate
        same = {name: stated[name] <= settings[name] for name in ("epsilon", "delta")}
        same["neighbours"] = stated["neighbours"] == settings["neighbours"]
        same["unit"] = stated["unit_column"] == settings["unit"]
        n_teachers = check_count("n_teachers", released["n_teachers"])
    except (CertificateError, ParameterError, LookupError, TypeError):
        raise DataError(
            f"There is no certificate of a finished release at {str(path)!r}: what is chosen after"
            " a diagnosis depends on private data, so finish the run first, and leave schema.json"
            " and certificate.json in one folder."
        ) from None
    same["classes"] = list(classes) == released["classes"] and settings["classes"] in (
        None,
        released["classes"],
    )
    same["teachers"] = settings["teachers"] in (None, n_teachers)
    other = sorted(name for name, agrees in same.items() if not agrees)
    if other:
        raise DataError(
            f"The release {str(release)!r} is of another run than the vault: it differs in"
            f" {', '.join(other)}; name the schema.json of the run's own release."
        )
    return n_teachers
