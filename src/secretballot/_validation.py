"""Guards, written so that nan fails: a comparison with nan is false, hence ``if not x > 0``."""

import numbers
import os
from collections.abc import Sequence
from typing import Literal, get_args

from secretballot.core.errors import COMPOSITIONS as COMPOSITIONS
from secretballot.core.errors import LONGEST_LINE as LONGEST_LINE
from secretballot.core.errors import LONGEST_NAME as LONGEST_NAME
from secretballot.core.errors import LONGEST_SHOWN as LONGEST_SHOWN
from secretballot.core.errors import LONGEST_WORDS as LONGEST_WORDS
from secretballot.core.errors import RELATIONS as RELATIONS
from secretballot.core.errors import UNITS as UNITS
from secretballot.core.errors import Composition as Composition
from secretballot.core.errors import ParameterError, with_article
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
from secretballot.core.errors import shown as shown
from secretballot.core.errors import without_controls as without_controls

LARGEST_INTEGER = 2**53
#: Of a public pool; a verifier keeps a bit for every row up to the last one.
MOST_ROWS = 25_000 * 2**16

# The words that settings may have, each list once: as a type, of which the command line makes its
# options, and as a tuple, which guards compare with.
ReleaseKind = Literal["labels", "counts"]
Abstentions = Literal["drop", "random", "majority"]
StrategyName = Literal["passive", "disagreement", "margin", "entropy", "committee", "cluster"]
VotesKind = Literal["votes", "counts"]
#: What a basis of record moments may be called.
BasisName = Literal["auto", "table", "kernel", "vectors", "images"]
HeaderLine = Literal["yes", "no"]
RecordChange = Literal["drop", "add", "add-missing", "replace"]

RELEASES: tuple[ReleaseKind, ...] = get_args(ReleaseKind)
ABSTENTIONS: tuple[Abstentions, ...] = get_args(Abstentions)
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
VOTES_KINDS: tuple[VotesKind, ...] = get_args(VotesKind)
BASES: tuple[BasisName, ...] = get_args(BasisName)
HEADER_LINES: tuple[HeaderLine, ...] = get_args(HeaderLine)
RECORD_CHANGES: tuple[RecordChange, ...] = get_args(RecordChange)
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
