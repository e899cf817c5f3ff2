"""From a table to a matrix, by a rule that knows public data alone; and what each column is, by
public cells alone, with the reason in words.

A `Schema` says for every column what it holds and has what its encoding needs: medians, scales,
categories and words, taken from the public table or declared by the user, never from private rows.
Each row is encoded by itself, so a private row touches no other row. The person who runs it hears
of every column that is no feature, and of every one that could as well be something else.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import sparse

from secretballot._points import lie_in_groups
from secretballot._typing import (
    AnyArray,
    BoolArray,
    FloatArray,
    IntArray,
    Json,
    JsonView,
    Names,
    ObjectArray,
    Place,
    Values,
)
from secretballot._validation import shown
from secretballot._written import time_seconds
from secretballot.data.cells import OddCells, coded, is_missing, number_of, numbers_of, texts_of
from secretballot.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    DateColumn,
    FeatureColumn,
    IgnoredColumn,
    NumericColumn,
    VectorColumn,
    declared_column,
)
from secretballot.data.frames import check_columns, frame_of
from secretballot.exceptions import DataError

#: A column holds numbers or dates where at least this share of its public cells
#: do; the others count as missing.
_SHARE = 0.95
#: Categories kept per column, the most frequent ones; the rest fall into "other".
_MOST_CATEGORIES = 200
#: With fewer different cells than this a column is no id, however few rows there are.
_FEWEST_OF_AN_ID = 20
#: Styles of dates, the first one read in every style, and what is said of each.
_DATES = {
    "iso": "dates as in ISO 8601",
    "day-first": "dates that begin with the day",
    "month-first": "dates that begin with the month",
    "day-name": "dates such as 12 Jan 2017",
    "name-day": "dates such as Jan 12, 2017",
}

_ID = r"(?:.*[\W_])?(?:{})(?:[\W_]?(?:no|nr|num|number))?|.*[a-z](?:Id|ID)"
_IDS_OF_SOMEBODY = "u?u?id|guid|ssn|iban|msisdn|mrn"
_ID_OF_SOMEBODY = re.compile(_ID.format(_IDS_OF_SOMEBODY))
_PERSONS = (
    "patient|person|participant|subject|respondent|member|customer|client|user|employee|student|pupil"
    "|patienten|probanden|personen|kunden|versicherten"
)
_ID_OF_A_PERSON = re.compile(
    rf"{_IDS_OF_SOMEBODY}|pid|{_PERSONS}|subj[\W_]?id"
    rf"|(?:.*[\W_])?(?:{_PERSONS})[\W_]?(?:id|no|nr|num|number|nummer|key|code)"
)
_NUMBERS_OF_ROWS = r"row|rownum|rownames|unnamed: 0|lfd[\W_]*nr\W?|n[or]\.?|obs|case|index"
_ID_NAME = re.compile(_ID.format(f"{_IDS_OF_SOMEBODY}|{_NUMBERS_OF_ROWS}|phone|key"))
_CODE_NAME = re.compile(
    r"(?:.*[\W_])?(?:zip|zip[\W_]?code|postal|post[\W_]?code|postal[\W_]?code|plz)"
)


class _InferredColumn(NamedTuple):
    """What a column was taken for.

    Attributes
    ----------
    column : Column
    reason : str
        Why, of public cells alone.
    doubt : bool
        Whether it may as well be something else, so that whoever runs the program should look.
    identifier : bool
        Whether it is taken for the id of a row or of a unit.
    """

    column: Column
    reason: str
    doubt: bool = False
    identifier: bool = False


class _Cells(NamedTuple):
    """Public cells of a column.

    Attributes
    ----------
    name : str
    all : Series
    says : ndarray of bool
        Which of them say something.
    known : ndarray of str objects
        Texts of these.
    distinct : list of str
        The different ones of these.
    counts : ndarray of int64
        How often each of them comes.
    """

    name: str
    all: "pd.Series[Any]"
    says: BoolArray
    known: ObjectArray
    distinct: list[str]
    counts: IntArray

    @property
    def digits(self) -> set[int]:
        """How many digits the cells have, nothing where some are no digits alone."""
        digits = all(text.isascii() and text.isdigit() for text in self.distinct)
        return set(map(len, self.distinct)) if digits else set()

    def share_of_dates(self, style: str) -> float:
        """Return the share of the cells that are dates in a style, as `share` does."""
        return self.share(lambda text: time_seconds(text, style) is not None)

    def share(self, reads: Callable[[str], bool]) -> float:
        """Return the share of the cells that something reads, 0 where it is below the least that
        makes a column of it."""
        total = int(self.counts.sum())
        unread, most = 0, (1 - _SHARE) * total
        for text, count in zip(self.distinct, self.counts.tolist(), strict=True):
            if not reads(text):
                unread += count
                if unread > most:  # most columns are something else, and long ones take long
                    return 0.0
        return 1 - unread / total


def _inferred_column(name: str, cells: "pd.Series[Any]") -> _InferredColumn:
    """Decide by public cells what a column is.

    Parameters
    ----------
    name : str
        Name of the column.
    cells : pandas.Series, shape (n_rows,)
        Public cells.
    """
    # before anything is made a text: a vector is a long one
    found = _as_vector(name, cells)
    if found is not None:
        return found
    texts = texts_of(cells)
    says = ~np.array([is_missing(text) for text in texts], dtype=bool)
    if not says.any():
        reason = "no public row has a value in it"
        return _InferredColumn(IgnoredColumn(name=name, reason=reason), reason)
    codes, distinct = coded(texts[says])
    counts = np.bincount(codes, minlength=len(distinct))
    public = _Cells(name, cells, says, texts[says], distinct, counts)
    # what looks like one thing only comes first; numbers and categories take what is left
    for decide in (_as_boolean, _as_date, _as_code, _as_number):
        found = decide(public)
        if found is not None:
            return found
    return _as_texts(public)


def _as_vector(name: str, cells: "pd.Series[Any]") -> _InferredColumn | None:
    column = VectorColumn.of_public(name, cells)
    if column is None:
        return None
    _, odd = column.compact(cells)
    share = 1 - odd.strange.size / (len(cells) - odd.missing)
    if share < _SHARE:
        return None
    return _InferredColumn(column, f"{_of_cells(share)} are vectors of {column.width} numbers")


def _as_boolean(public: _Cells) -> _InferredColumn | None:
    column = BooleanColumn(name=public.name)
    if not set(public.distinct) <= {*column.spellings}:
        return None
    return _InferredColumn(column, "all public cells are truth values")


def _as_date(public: _Cells) -> _InferredColumn | None:
    """Return a column of dates, ignored where day and month cannot be distinguished."""
    shares = {"iso": public.share_of_dates("iso")}
    if shares["iso"] < 1:  # which is read in every style, so no other could be better
        shares |= {style: public.share_of_dates(style) for style in _DATES if style != "iso"}
    best = max(shares.values())
    if best < _SHARE:
        return None
    styles = [style for style, share in shares.items() if share == best]
    style, with_dots = styles[0], all("." in text for text in public.distinct)
    if style != "iso" and len(styles) > 1 and not with_dots:
        reason = (
            "dates of which no public one shows whether the day or the month comes first; declare"
            ' {"kind": "date", "format": "day-first"} or "month-first"'
        )
        return _ignored(public, reason)
    column = DateColumn.of_public(public.name, public.all, format=style)
    assert column is not None  # nearly all cells were read just now
    doubt = style != "iso" and len(styles) > 1
    return _InferredColumn(column, f"{_of_cells(best)} are {_DATES[style]}", doubt)


def _as_code(public: _Cells) -> _InferredColumn | None:
    """Return categories, or an ignored column, of digits that are no number."""
    widths = public.digits
    if len(widths) == 1 and max(widths) > 1 and any(text[0] == "0" for text in public.distinct):
        why = (
            f"all public cells have {max(widths)} digits, some of them zeros at the beginning:"
            " codes, not numbers"
        )
    elif max(widths, default=0) >= 4 and _is_named(public, _CODE_NAME):
        why = "all public cells are digits, and by its name the column is no number"
    else:
        return None
    found = _as_categories(public)
    if isinstance(found.column, IgnoredColumn):
        return _ignored(public, f"{why}; {found.reason}")
    reason = f'{why}, taken as categories; declare "numeric" or "ignored" if they are not'
    return _InferredColumn(found.column, reason, doubt=True)


def _as_number(public: _Cells) -> _InferredColumn | None:
    plain = np.isfinite(numbers_of(public.all))
    numbers = numbers_of(public.all, decimal_comma=True)
    read = np.isfinite(numbers)
    share, others = float(read[public.says].mean()), sorted(set(public.known[~read[public.says]]))
    # Numbers also where this share of the cells do and the others are few words, such as
    # "k.A.".
    few_words = share >= 0.8 and len(others) <= 5
    if not read.any() or not (share >= _SHARE or few_words):
        return None
    with_commas = bool((read & ~plain).any())
    why = _why_commas_are_unclear(public) if with_commas else None
    if why is not None:
        return _ignored(public, why)
    why = None if with_commas else _why_an_id(public, numbers[read])
    if why is not None:
        return _as_id(public, why, "numeric")
    reason = f"{_of_cells(share)} are numbers"
    reason += ", with a decimal comma" if with_commas else ""
    if share < _SHARE:
        reason += f"; {', '.join(map(shown, others))} count as missing"
    decimal = "," if with_commas else "."
    column = NumericColumn.of_public(public.name, public.all, decimal=decimal)
    assert column is not None  # a cell was read just now
    return _InferredColumn(column, reason, doubt=share < _SHARE)


def _why_commas_are_unclear(public: _Cells) -> str | None:
    """Return why commas may part thousands, None where they part decimals."""
    tails = {len(text.rpartition(",")[2]) for text in public.distinct if "," in text}
    if tails != {3}:
        return None
    return (
        "three digits follow every comma, which may part thousands or decimals; declare"
        ' {"kind": "numeric", "decimal": ","}, or write the numbers without thousands'
    )


def _why_an_id(public: _Cells, numbers: FloatArray) -> str | None:
    """Return why numbers are the id of their row, None where they are not."""
    distinct = len(public.distinct) == len(public.known) >= _FEWEST_OF_AN_ID
    if (numbers != np.floor(numbers)).any():
        return None
    if not distinct:
        return _why_an_id_by_name(public)
    if (np.diff(numbers) == 1).all():
        return "public cells count the rows, as an id does"
    if _is_named(public, _ID_NAME) or _is_named(public, _ID_OF_A_PERSON):
        return "every public row has an integer of its own, and by its name it is an id"
    return None


def _why_an_id_by_name(public: _Cells) -> str | None:
    """Return why cells that may repeat are ids, None where they are not."""
    values, rows = len(public.distinct), len(public.known)
    person = _is_named(public, _ID_OF_A_PERSON)
    # A column that is called an id, of whatever, is one where its cells have at least this many
    # values for each row; one that is called the id of a person has as many rows of each as
    # there are.
    if values > _FEWEST_OF_AN_ID and (
        person or (_is_named(public, _ID_OF_SOMEBODY) and values > rows / 20)
    ):
        return f"{values} values in {rows} public rows, and by its name it is an id"
    return None


def _is_named(public: _Cells, pattern: re.Pattern[str]) -> bool:
    return any(map(pattern.fullmatch, (public.name, public.name.lower())))


def _ignored(public: _Cells, reason: str, *, identifier: bool = False) -> _InferredColumn:
    column = IgnoredColumn(name=public.name, reason=reason)
    return _InferredColumn(column, reason, doubt=True, identifier=identifier)


def _as_id(public: _Cells, why: str, otherwise: str) -> _InferredColumn:
    return _ignored(public, f'{why}; declare "{otherwise}" if it is no id', identifier=True)


def _as_texts(public: _Cells) -> _InferredColumn:
    """Return categories, or an ignored column of ids or of free text."""
    distinct, rows = len(public.distinct), len(public.known)
    words = np.array([len(text.split()) for text in public.distinct])
    wordy = int(words @ public.counts) >= 3 * rows
    rare = distinct > _FEWEST_OF_AN_ID and distinct > rows / 2
    if wordy and (rare or distinct > _MOST_CATEGORIES):
        reason = (
            f"{distinct} different strings of several words in {rows} public rows: free text;"
            ' declare "text" to encode its most frequent words, or "ignored"'
        )
        return _ignored(public, reason)
    found = _as_categories(public)
    if not public.share(_is_amount):
        return found
    reason = "its cells are numbers with a sign, such as %, or parted thousands; write them plainly"
    if isinstance(found.column, IgnoredColumn):
        return _ignored(public, reason)
    return _InferredColumn(found.column, reason, doubt=True)


def _is_amount(text: str) -> bool:
    """Return whether a text is a number beside a sign, or with commas between its thousands."""
    return math.isfinite(number_of(text.strip(" %€$£").replace(",", "")))


def _as_categories(public: _Cells) -> _InferredColumn:
    distinct, rows = len(public.distinct), len(public.known)
    if distinct > _FEWEST_OF_AN_ID and distinct > rows / 2:
        reason = (
            f"{distinct} different strings in {rows} public rows: an id or free text; declare"
            ' "categorical" or "text" if it is not'
        )
        return _ignored(public, reason, identifier=True)
    why = _why_an_id_by_name(public)
    if why is not None:
        return _as_id(public, why, "categorical")
    texts, counts = public.distinct, public.counts
    # the most frequent first, ties by their text: the order of rows decides nothing
    order = sorted(range(distinct), key=lambda place: (-counts[place], texts[place]))
    kept = order[:_MOST_CATEGORIES]
    column = CategoricalColumn(
        name=public.name, categories=tuple(sorted(texts[place] for place in kept))
    )
    if distinct <= _MOST_CATEGORIES:
        return _InferredColumn(column, f"{distinct} different strings in {rows} public rows")
    others = 1 - float(counts[kept].sum() / counts.sum())
    reason = (
        f"{distinct} different strings in {rows} public rows; the {_MOST_CATEGORIES} most frequent"
        f' are kept, and {100 * others:.0f} % of the public cells are "other"'
    )
    # from a tenth in "other" on, whoever runs the program should look
    return _InferredColumn(column, reason, doubt=others > 0.1)


def _of_cells(share: float) -> str:
    return "all public cells" if share == 1 else f"{100 * share:.1f} % of the public cells"


_FORMAT = "secretballot/schema"
_VERSION = 4


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
    inferred : tuple of _InferredColumn
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
    inferred: tuple[_InferredColumn, ...] = field(default=(), compare=False)
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
        found = tuple(_inferred_column(name, frame[name]) for name in names)
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
    def decimal_commas(self) -> tuple[str, ...]:
        """Names of the columns whose texts may have a decimal comma."""
        return tuple(one.name for one in self.features if getattr(one, "decimal", "") == ",")

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
        # so many entries of an array at once
        step, blocks = max(1, 2**20 // width), [sparse.csr_matrix((0, width))]
        for start in range(0, len(rows), step):
            blocks.append(sparse.csr_matrix(self.widen(rows[start : start + step])))
        return sparse.vstack(blocks, format="csr")

    def to_json(self) -> Json:
        """Return the schema as JSON, complete: `from_json` needs no public table to read it."""
        columns = {column.name: column.to_json() for column in self.columns}
        return {
            "format": _FORMAT,
            "version": _VERSION,
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
    stated = declared.get("format", _FORMAT), declared.get("version", _VERSION)
    if stated != (_FORMAT, _VERSION):
        raise DataError(
            f"The schema has the format {shown(stated[0])} and version {shown(stated[1])}; this"
            f" program reads {_FORMAT!r} of version {_VERSION}, so use the program that wrote it."
        )
    classes, target = declared.get("classes", [0, 1]), declared.get("target", [])
    named = isinstance(target, list) and all(isinstance(name, str) for name in target)
    if not (named and isinstance(classes, list) and len(classes) >= 2):
        raise DataError(
            'A schema\'s "classes" are a list of two or more, its "target" of names; these are not.'
        )
