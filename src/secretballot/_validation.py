"""Guards, written so that nan fails: a comparison with nan is false, hence ``if not x > 0``; and
phrases that name rows and columns in messages, never a cell."""

import importlib
import numbers
import os
import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from types import ModuleType
from typing import Literal, get_args

from secretballot.core.errors import LONGEST_SHOWN, with_article
from secretballot.core.errors import RELATIONS as RELATIONS
from secretballot.core.errors import UNITS as UNITS
from secretballot.core.errors import Composition as Composition
from secretballot.core.errors import Json as Json
from secretballot.core.errors import JsonView as JsonView
from secretballot.core.errors import Names as Names
from secretballot.core.errors import Relation as Relation
from secretballot.core.errors import Unit as Unit
from secretballot.core.errors import check_choice as check_choice
from secretballot.core.errors import check_count as check_count
from secretballot.core.errors import check_delta as check_delta
from secretballot.core.errors import check_finite as check_finite
from secretballot.core.errors import check_name as check_name
from secretballot.core.errors import check_positive as check_positive
from secretballot.core.errors import check_probability as check_probability
from secretballot.core.errors import check_relation as check_relation
from secretballot.core.errors import name_part as name_part
from secretballot.core.errors import plain_line as plain_line
from secretballot.core.errors import refusal as refusal
from secretballot.core.errors import shown as shown
from secretballot.core.errors import without_controls as without_controls
from secretballot.exceptions import ParameterError, SecretBallotError

LARGEST_INTEGER = 2**53
#: Of a public pool; a verifier keeps a bit for every row up to the last one.
MOST_ROWS = 25_000 * 2**16

# The words that settings may have, each list once: as a type, of which the command line makes its
# options, and as a tuple, which guards compare with.
_ReleaseKind = Literal["labels", "counts"]
VotesKind = Literal["votes", "counts"]
#: What a basis of record moments may be called.
BasisName = Literal["auto", "table", "kernel", "vectors", "images"]
HeaderLine = Literal["yes", "no"]

RELEASES: tuple[_ReleaseKind, ...] = get_args(_ReleaseKind)
ABSTENTIONS = ("drop", "random", "majority")
VOTES_KINDS: tuple[VotesKind, ...] = get_args(VotesKind)
BASES: tuple[BasisName, ...] = get_args(BasisName)
HEADER_LINES: tuple[HeaderLine, ...] = get_args(HeaderLine)
HYPOTHESES = ("stumps", "thresholds", "intervals")
BALLOTS = ("labels", "sets")

_MOST_CLASSES_SHOWN = 20
FARTHEST = 40  # standard deviations and votes; noise lies beyond with chances below 1e-24


def shown_kind(value: object) -> str:
    """Return how a message names the type of something that was given, with its article."""
    name = type(value).__name__
    return with_article(name if name.isprintable() and len(name) <= LONGEST_SHOWN else "object")


def shown_classes(values: Sequence[object]) -> str:
    """Return how a message names classes: as they are where they are few and plain.

    Private labels are many.
    """
    plain = all(value is None or isinstance(value, str | bool | numbers.Number) for value in values)
    if not plain or len(values) > _MOST_CLASSES_SHOWN:
        return f"{with_article(type(values).__name__)} of {len(values)} values"
    return f"[{', '.join(shown(value) for value in values)}]"


def check_instance(
    name: str, value: object, kind: type | tuple[type, ...], *, hint: str = ""
) -> None:
    """Refuse anything but an instance of `kind`; `hint` says what to give instead.

    Raises
    ------
    ParameterError
        If it is of another type.
    """
    if not isinstance(value, kind):
        kinds = kind if isinstance(kind, tuple) else (kind,)
        wanted = " or ".join(one.__name__ for one in kinds)
        raise ParameterError(
            name_part(name), f" is {shown(value)}; {hint or f'give an instance of {wanted}'}."
        )


def check_path(name: str, value: object) -> None:
    """Refuse anything but the path of a file or folder with `ParameterError`.

    Raises
    ------
    ParameterError
        If it is none.
    """
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or not text or "\0" in text:
        raise ParameterError(
            name_part(name),
            f" is {shown(value)}; give the path of a file or folder, as a string or Path.",
        )


def shown_error(error: BaseException) -> str:
    """Return the kind of an error, and what it begins with: learners go on with paragraphs and
    addresses. Only of errors of public values."""
    first = next(iter(str(error).strip().splitlines()), "")[:200].rstrip(".:; ")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def kind_and_line(error: BaseException) -> str:
    """Return the kind of an error, and the innermost of our own lines in its traceback, if there is
    one; nothing that it says."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "secretballot" in f.filename]
    place = f" at {os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{place}"


#: Parts of a release that may be left out.
PARTS = ("report", "student")


class MissingExtraError(SecretBallotError, ImportError):
    """An optional package is not installed; the message says how to install it."""


def require_extra(module: str, extra: str) -> ModuleType:
    """Import an optional module.

    Raises
    ------
    MissingExtraError
        Naming the extra to install, if the module is not there.
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise _missing(module.partition(".")[0], extra) from None


def check_extra(package: str, extra: str, advice: str = "") -> None:
    """Refuse to go on where an optional package is not installed; it is not imported.

    Raises
    ------
    MissingExtraError
        Naming the extra to install.
    """
    if find_spec(package) is None:
        raise _missing(package, extra, advice)


def _missing(package: str, extra: str, advice: str = "") -> MissingExtraError:
    return MissingExtraError(
        f"{package} is not installed; install it with: pip install 'secretballot[{extra}]'.{advice}"
    )


#: Rows or columns a message names; it counts the rest.
NAMED_AT_MOST = 10
_INTEGER = re.compile(r"-?[0-9]{1,18}")
Setting = int | float | str


def name_rows(rows: Iterable[int], *, total: int | None = None) -> str:
    """Return a phrase that names rows, the first ten by number; of `total` where these are but the
    first of them."""
    numbers = sorted(int(row) for row in rows)
    total = len(numbers) if total is None else total
    listed = ", ".join(str(number) for number in numbers[:NAMED_AT_MOST])
    rest = total - NAMED_AT_MOST
    return f"{'row' if total == 1 else 'rows'} {listed}" + (f" and {rest} more" if rest > 0 else "")


def name_columns(names: Sequence[str]) -> str:
    """Return a phrase that names columns, the first ten by name."""
    listed = ", ".join(shown(name) for name in names[:NAMED_AT_MOST])
    rest = len(names) - NAMED_AT_MOST
    return f"{'column' if len(names) == 1 else 'columns'} {listed}" + (
        f" and {rest} more" if rest > 0 else ""
    )


def integers_or_words(names: Iterable[object]) -> tuple[str, ...] | tuple[int, ...]:
    """Return names of classes as text, or as integers where all of them are."""
    # "01" and 1 are two classes, so a number counts as one only in its usual form
    texts = [str(name) for name in names]
    if all(_INTEGER.fullmatch(text) and str(int(text)) == text for text in texts):
        return tuple(int(text) for text in texts)
    return tuple(texts)


def named(
    parameter: str, text: object, known: Mapping[str, Sequence[str]]
) -> tuple[str, dict[str, Setting]]:
    """Return the name and the settings of ``NAME`` or ``NAME:key=value,...``.

    Parameters
    ----------
    parameter : str
        What the text is given for.
    text : str
    known : mapping of str to sequence of str
        The names that there are, and the settings that each of them has.

    Raises
    ------
    ParameterError
        If it is not written so, or the name or a setting is none of these.
    """
    head, _, rest = text.partition(":") if isinstance(text, str) else (text, "", "")
    name = check_choice(parameter, head, tuple(known))
    has = known[name]
    settings: dict[str, Setting] = {}
    for pair in filter(None, rest.split(",")):
        key, equals, value = (part.strip() for part in pair.partition("="))
        if not (equals and key and value) or key in settings:
            raise ParameterError(
                name_part(parameter),
                f" is {shown(text)}; write NAME:key=value,key=value, each key once.",
            )
        if key not in has:
            raise ParameterError(
                name_part(parameter),
                f" is {shown(text)}, and {name} has no setting {shown(key)}; it has"
                f" {', '.join(has) or 'none'}.",
            )
        settings[key] = _number_or_word(value)
    return name, settings


def _number_or_word(text: str) -> Setting:
    if _INTEGER.fullmatch(text):
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text
