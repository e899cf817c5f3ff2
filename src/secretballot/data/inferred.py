"""What a column is, decided by public cells alone, with the reason in words.

The person who runs it hears of every column that is no feature, and of every one that could as
well be something else.
"""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from secretballot._typing import BoolArray, FloatArray, IntArray, ObjectArray
from secretballot._validation import shown
from secretballot._written import time_seconds
from secretballot.data.cells import coded, is_missing, number_of, numbers_of, texts_of
from secretballot.data.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    DateColumn,
    IgnoredColumn,
    NumericColumn,
    VectorColumn,
)

#: A column holds numbers or dates where at least this share of its public cells
#: do; the others count as missing.
_SHARE = 0.95
#: Numbers also where this share of the cells do and the others are few words, such as "k.A.".
_SHARE_WITH_WORDS = 0.8
_MOST_WORDS_FOR_MISSING = 5
#: Categories kept per column, the most frequent ones; the rest fall into "other".
_MOST_CATEGORIES = 200
#: Share of the public cells in "other" from which on whoever runs the program should look.
_MANY_OTHERS = 0.1
#: With fewer different cells than this a column is no id, however few rows there are.
_FEWEST_OF_AN_ID = 20
_FEWEST_DIGITS_OF_A_ZIP = 4
_WORDS_OF_FREE_TEXT = 3
_SIGNS = " %€$£"
#: Styles of dates, the first one read in every style, and what is said of each.
_DATES = {
    "iso": "dates as in ISO 8601",
    "day-first": "dates that begin with the day",
    "month-first": "dates that begin with the month",
}

#: A column that is called an id, of whatever, is one where its cells have at least this many values
#: for each row; one that is called the id of a person has as many rows of each as there are.
_VALUES_OF_AN_ID = 1 / 20
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
_ID_NAME = re.compile(_ID.format(f"{_IDS_OF_SOMEBODY}|phone|row|rownum|index|key"))
_CODE_NAME = re.compile(
    r"(?:.*[\W_])?(?:zip|zip[\W_]?code|postal|post[\W_]?code|postal[\W_]?code|plz)"
)


class InferredColumn(NamedTuple):
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


def inferred_column(name: str, cells: "pd.Series[Any]") -> InferredColumn:
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
        return InferredColumn(IgnoredColumn(name=name, reason=reason), reason)
    codes, distinct = coded(texts[says])
    counts = np.bincount(codes, minlength=len(distinct))
    public = _Cells(name, cells, says, texts[says], distinct, counts)
    # what looks like one thing only comes first; numbers and categories take what is left
    for decide in (_as_boolean, _as_date, _as_code, _as_number):
        found = decide(public)
        if found is not None:
            return found
    return _as_texts(public)


def _as_vector(name: str, cells: "pd.Series[Any]") -> InferredColumn | None:
    column = VectorColumn.of_public(name, cells)
    if column is None:
        return None
    _, odd = column.compact(cells)
    share = 1 - odd.strange.size / (len(cells) - odd.missing)
    if share < _SHARE:
        return None
    return InferredColumn(column, f"{_of_cells(share)} are vectors of {column.width} numbers")


def _as_boolean(public: _Cells) -> InferredColumn | None:
    column = BooleanColumn(name=public.name)
    if not set(public.distinct) <= {*column.spellings}:
        return None
    return InferredColumn(column, "all public cells are truth values")


def _as_date(public: _Cells) -> InferredColumn | None:
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
    return InferredColumn(column, f"{_of_cells(best)} are {_DATES[style]}", doubt)


def _as_code(public: _Cells) -> InferredColumn | None:
    """Return categories, or an ignored column, of digits that are no number."""
    widths = public.digits
    if len(widths) == 1 and max(widths) > 1 and any(text[0] == "0" for text in public.distinct):
        why = (
            f"all public cells have {max(widths)} digits, some of them zeros at the beginning:"
            " codes, not numbers"
        )
    elif max(widths, default=0) >= _FEWEST_DIGITS_OF_A_ZIP and _is_named(public, _CODE_NAME):
        why = "all public cells are digits, and by its name the column is no number"
    else:
        return None
    found = _as_categories(public)
    if isinstance(found.column, IgnoredColumn):
        return _ignored(public, f"{why}; {found.reason}")
    reason = f'{why}, taken as categories; declare "numeric" or "ignored" if they are not'
    return InferredColumn(found.column, reason, doubt=True)


def _as_number(public: _Cells) -> InferredColumn | None:
    plain = np.isfinite(numbers_of(public.all))
    numbers = numbers_of(public.all, decimal_comma=True)
    read = np.isfinite(numbers)
    share, others = float(read[public.says].mean()), sorted(set(public.known[~read[public.says]]))
    few_words = share >= _SHARE_WITH_WORDS and len(others) <= _MOST_WORDS_FOR_MISSING
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
    return InferredColumn(column, reason, doubt=share < _SHARE)


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
    if values > _FEWEST_OF_AN_ID and (
        person or (_is_named(public, _ID_OF_SOMEBODY) and values > _VALUES_OF_AN_ID * rows)
    ):
        return f"{values} values in {rows} public rows, and by its name it is an id"
    return None


def _is_named(public: _Cells, pattern: re.Pattern[str]) -> bool:
    return any(map(pattern.fullmatch, (public.name, public.name.lower())))


def _ignored(public: _Cells, reason: str, *, identifier: bool = False) -> InferredColumn:
    column = IgnoredColumn(name=public.name, reason=reason)
    return InferredColumn(column, reason, doubt=True, identifier=identifier)


def _as_id(public: _Cells, why: str, otherwise: str) -> InferredColumn:
    reason = f'{why}; declare "{otherwise}" if it is no id'
    return _ignored(public, reason, identifier=True)


def _as_texts(public: _Cells) -> InferredColumn:
    """Return categories, or an ignored column of ids or of free text."""
    distinct, rows = len(public.distinct), len(public.known)
    words = np.array([len(text.split()) for text in public.distinct])
    wordy = int(words @ public.counts) >= _WORDS_OF_FREE_TEXT * rows
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
    return InferredColumn(found.column, reason, doubt=True)


def _is_amount(text: str) -> bool:
    """Return whether a text is a number beside a sign, or with commas between its thousands."""
    return math.isfinite(number_of(text.strip(_SIGNS).replace(",", "")))


def _as_categories(public: _Cells) -> InferredColumn:
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
        return InferredColumn(column, f"{distinct} different strings in {rows} public rows")
    others = 1 - float(counts[kept].sum() / counts.sum())
    reason = (
        f"{distinct} different strings in {rows} public rows; the {_MOST_CATEGORIES} most frequent"
        f' are kept, and {100 * others:.0f} % of the public cells are "other"'
    )
    return InferredColumn(column, reason, doubt=others > _MANY_OTHERS)


def _of_cells(share: float) -> str:
    return "all public cells" if share == 1 else f"{100 * share:.1f} % of the public cells"
