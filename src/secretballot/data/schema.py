"""From a table to a matrix, by a rule that knows public data alone.

A `Schema` says for every column what it holds and has what its encoding needs: medians, scales,
categories and words, taken from the public table or declared by the user, never from private rows.
Each row is encoded by itself, so a private row touches no other row.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from secretballot._points import lie_in_groups
from secretballot._typing import AnyArray, FloatArray, Json, JsonView, Names, Place, Values
from secretballot._validation import shown
from secretballot.data.cells import OddCells, numbers_of
from secretballot.data.columns import (
    Column,
    FeatureColumn,
    IgnoredColumn,
    NumericColumn,
    declared_column,
)
from secretballot.data.frames import check_columns, frame_of
from secretballot.data.inferred import InferredColumn, inferred_column
from secretballot.exceptions import DataError

FORMAT = "secretballot/schema"
VERSION = 4
_ENTRIES_AT_ONCE = 2**20  # of an array, on the way to a sparse matrix


@dataclass(frozen=True)
class Encoding:
    """A table as a matrix, and the cells that are not what their column holds.

    Attributes
    ----------
    matrix : ndarray of float, shape (n_rows, n_features)
    odd : dict of str to OddCells
        For each column that becomes a feature, which cells say something that it has no place for,
        and how many say nothing.

    Examples
    --------
    >>> import pandas as pd
    >>> schema = sb.data.Schema.infer(pd.DataFrame({"ward": ["north", "south"]}))
    >>> encoding = schema.encoding(pd.DataFrame({"ward": ["north", "N", "N"]}))
    >>> encoding.odd["ward"].strange.tolist()
    [1, 2]
    """

    # the table may be private, so nothing of it is shown
    matrix: FloatArray = field(repr=False)
    odd: dict[str, OddCells] = field(repr=False)


@dataclass(frozen=True)
class Schema:
    """The columns of a table and their encoding, fixed by public knowledge.

    Parameters
    ----------
    columns : tuple of columns
        In the order in which they are encoded.
    classes : tuple or None
        Classes of the target, where the user's schema file declares them.
    source : str
        Where the columns were taken from, for messages.
    inferred : tuple of InferredColumn
        Of columns that were inferred, why each is what it is.
    target : tuple of str
        Columns that were learnt, where a release says so.

    Examples
    --------
    >>> import pandas as pd
    >>> public = pd.DataFrame({"seen": ["2020-02-28", "2020-03-02"], "dose": ["1.5", "2.5"]})
    >>> schema = sb.data.Schema.infer(public)
    >>> schema.feature_names
    ('seen', 'seen=month', 'seen=weekday', 'dose')
    >>> schema.encode(public)[:, 3].tolist()
    [-1.0, 1.0]
    """

    columns: tuple[Column, ...]
    classes: Values | None = None
    source: str = "the public file"
    inferred: tuple[InferredColumn, ...] = field(default=(), compare=False)
    target: Names = field(default=(), compare=False)

    @classmethod
    def infer(cls, public: Any, *, ignore: Sequence[str] = ()) -> "Schema":
        """Take column types, medians, scales and categories from a public table.

        Parameters
        ----------
        public : DataFrame, shape (n_rows, n_columns)
            Public rows, pandas or polars; cells may be typed or text.
        ignore : sequence of str
            Columns that are no features (target, unit), whether there or not.

        Raises
        ------
        DataError
            If no column is left that could be a feature.
        """
        frame, aside = frame_of(public, role="public table"), set(ignore)
        names = [name for name in frame.columns if name not in aside]
        found = tuple(inferred_column(name, frame[name]) for name in names)
        columns = _on_one_scale(tuple(one.column for one in found), frame)
        return cls(columns, inferred=found)._with_features()

    @classmethod
    def from_json(
        cls, declared: JsonView, *, public: Any = None, ignore: Sequence[str] = ()
    ) -> "Schema":
        """Build a schema from its JSON form.

        What the JSON leaves open is taken from the public table.

        Parameters
        ----------
        declared : mapping
            ``{"columns": {name: spec, ...}, "classes": [...]}``. A `spec` is "numeric",
            "categorical", "boolean", "date", "text", "vector", "ignored", a list of
            categories, or an object as `to_json` writes it; any part but `kind` may be left out.
        public : DataFrame, optional
            Public table for the parts left out.
        ignore : sequence of str
            Declared columns to leave out.

        Raises
        ------
        DataError
            If the JSON is no schema, or leaves open what no public table is there to say.
        """
        _check_header(declared)
        frame = None if public is None else frame_of(public, role="public table")
        columns = tuple(
            declared_column(name, spec, frame)
            for name, spec in declared["columns"].items()
            if name not in set(ignore)
        )
        classes = declared.get("classes")
        return cls(
            columns,
            None if classes is None else tuple(classes),
            "the schema",
            target=tuple(declared.get("target", ())),
        )._with_features()

    @classmethod
    def read(cls, path: Place, *, public: Any = None, ignore: Sequence[str] = ()) -> "Schema":
        """Read a schema file; see `from_json`.

        Raises
        ------
        DataError
            If the file cannot be read or is no schema.
        """
        declared: Any = None
        problem = ""
        try:
            declared = json.loads(Path(path).read_text(encoding="utf-8-sig"))
        except OSError as error:
            problem = f"cannot be read ({error.strerror})"
        # these carry the whole text, so nothing is raised in here
        except (ValueError, RecursionError):
            problem = "is no JSON text in UTF-8 of ordinary depth"
        if problem:
            raise DataError(f"The schema file {str(path)!r} {problem}.")
        return cls.from_json(declared, public=public, ignore=ignore)

    @property
    def features(self) -> tuple[FeatureColumn, ...]:
        """The columns that become features."""
        return tuple(column for column in self.columns if isinstance(column, FeatureColumn))

    @property
    def names(self) -> Names:
        """Their names."""
        return tuple(column.name for column in self.features)

    @property
    def ignored(self) -> dict[str, str]:
        """Names of the columns that are no features, with the reason."""
        return {
            column.name: column.reason
            for column in self.columns
            if isinstance(column, IgnoredColumn)
        }

    def strange(self, column: Column) -> str:
        """Return what cells are, or have, for which a column has no place."""
        return column.strange.format(holds=column.holds, source=self.source)

    @property
    def feature_names(self) -> Names:
        """Names of the columns of the encoded matrix."""
        return tuple(name for column in self.columns for name in column.feature_names)

    def encode(self, table: Any, *, role: str = "table") -> FloatArray:
        """Return a table as a matrix, shape (n_rows, n_features); see `encoding`."""
        return self.encoding(table, role=role).matrix

    def encode_sparse(self, table: Any, *, role: str = "table") -> Any:
        """Return the same as a CSR matrix of shape (n_rows, n_features), made without the array: a
        wide table of categories and words is mostly zeros.

        Raises
        ------
        DataError
            If a feature column is missing.
        """
        return self.widen_sparse(self.compact(self._with_columns(table, role))[0])

    def encoding(self, table: Any, *, role: str = "table") -> Encoding:
        """Encode a table row by row.

        Numbers and dates: public median where missing, centred and scaled; of
        dates the parts, too. Vectors: centred, and scaled by one number. Categories and truth
        values: one-hot, unseen and missing ones in "other". Free text: which words of a public
        vocabulary it has, or which places of a public hash. The width depends on the schema alone.
        Columns that the schema does not know are left out; `frames.check_columns` refuses them
        where that matters.

        A cell is encoded by its value, not by the type of its column. What pandas lost when the
        frame was made is beyond recall, and then one cell may have changed others: in a column of
        integers, a null or a fraction made integers beyond 2**53 round (declare the type,
        "Int64", or give them as text); numpy turns truth values beside numbers into 1 and 0; and
        where no other text is in the column pandas reads 005 as 5 (read a file with dtype=str).
        `reading.read_table` has no such loss.

        Parameters
        ----------
        table : DataFrame, shape (n_rows, n_columns)
            Pandas, polars or pyarrow.
        role : str
            What a message calls the table.

        Returns
        -------
        Encoding

        Raises
        ------
        DataError
            If a feature column is missing.
        """
        rows, odd = self.compact(self._with_columns(table, role))
        return Encoding(self.widen(rows), odd)

    @property
    def compact_type(self) -> np.dtype[Any]:
        """Type of a row before it is encoded, in as few bytes as its cells need."""
        return np.dtype([(str(at), one.compact_type) for at, one in enumerate(self.features)])

    def compact(self, frame: pd.DataFrame) -> tuple[AnyArray, dict[str, OddCells]]:
        """Return the rows of a frame with the columns of the schema, each in few bytes, and for
        every feature column which cells could not be read.

        What `widen` makes of them is what `encoding` returns, to the last bit.

        Parameters
        ----------
        frame : pandas.DataFrame, shape (n_rows, n_columns)

        Returns
        -------
        structured ndarray of shape (n_rows,), and dict
        """
        rows, odd = np.empty(len(frame), dtype=self.compact_type), {}
        for number, column in enumerate(self.features):
            rows[str(number)], odd[column.name] = column.compact(frame[column.name])
        return rows, odd

    def widen(self, rows: AnyArray) -> FloatArray:
        """Return what `compact` returned as an encoded matrix, shape (n_rows, n_features)."""
        matrix = np.empty((len(rows), len(self.feature_names)), dtype=np.float64)
        start = 0
        for number, column in enumerate(self.features):
            stop = start + len(column.feature_names)
            column.widen(rows[str(number)], matrix[:, start:stop])
            start = stop
        return matrix

    def widen_sparse(self, rows: AnyArray) -> Any:
        """Return what `widen` returns as a CSR matrix without its zeros, made block by block: the
        array of a wide table may not fit into memory.

        Parameters
        ----------
        rows : structured ndarray of shape (n_rows,)
            From `compact`.

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n_rows, n_features)
        """
        width = len(self.feature_names)
        step, blocks = max(1, _ENTRIES_AT_ONCE // width), [sparse.csr_matrix((0, width))]
        for start in range(0, len(rows), step):
            blocks.append(sparse.csr_matrix(self.widen(rows[start : start + step])))
        return sparse.vstack(blocks, format="csr")

    def to_json(self) -> Json:
        """Return the schema as JSON, complete: `from_json` needs no public table to read it."""
        columns = {column.name: column.to_json() for column in self.columns}
        return {
            "format": FORMAT,
            "version": VERSION,
            "columns": columns,
            **({} if self.classes is None else {"classes": list(self.classes)}),
            **({"target": list(self.target)} if self.target else {}),
        }

    def to_edit(self) -> Json:
        """Return the schema as JSON for a person: each column with the reason why it is what it
        is, which no program reads."""
        document = self.to_json()
        for one in self.inferred:
            document["columns"][one.column.name]["reason"] = one.reason
        return document

    def _with_features(self) -> "Schema":
        if not self.names:
            why = "".join(
                f"; {shown(name)}: {reason}" for name, reason in list(self.ignored.items())[:3]
            )
            raise DataError(
                f"{self.source.capitalize()} has no column that could be a feature{why}."
            )
        return self

    def _with_columns(self, table: Any, role: str) -> pd.DataFrame:
        """Return a table as a frame that has all columns which become features."""
        frame = frame_of(table, role=role)
        check_columns(frame, self.names, role=role, source=self.source, extra_allowed=True)
        return frame


def _on_one_scale(columns: tuple[Column, ...], public: pd.DataFrame) -> tuple[Column, ...]:
    """Return columns of numbers that are vectors in groups, such as pixels, with one scale, so that
    distances keep their proportions; and all others as they are."""
    features = [one for one in columns if not isinstance(one, IgnoredColumn)]
    numbers = [one for one in features if isinstance(one, NumericColumn)]
    cells = [numbers_of(public[one.name]) for one in numbers]
    if not numbers or len(numbers) < len(features) or not lie_in_groups(np.column_stack(cells)):
        return columns
    widest = {"scale": max(one.scale for one in numbers)}
    return tuple(one.model_copy(update=widest) if one in numbers else one for one in columns)


def _check_header(declared: object) -> None:
    if not isinstance(declared, Mapping) or not isinstance(declared.get("columns"), Mapping):
        raise DataError('A schema is a JSON object with "columns": {name: kind}; this one is not.')
    stated = declared.get("format", FORMAT), declared.get("version", VERSION)
    if stated != (FORMAT, VERSION):
        raise DataError(
            f"The schema has the format {shown(stated[0])} and version {shown(stated[1])}; this"
            f" program reads {FORMAT!r} of version {VERSION}, so use the program that wrote it."
        )
    classes, target = declared.get("classes", [0, 1]), declared.get("target", [])
    named = isinstance(target, list) and all(isinstance(name, str) for name in target)
    if not (named and isinstance(classes, list) and len(classes) >= 2):
        raise DataError(
            'A schema\'s "classes" are a list of two or more, its "target" of names; these are not.'
        )
