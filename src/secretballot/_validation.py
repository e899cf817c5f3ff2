"""Guards, written so that nan fails: a comparison with nan is false, hence ``if not x > 0``."""

import math
import numbers
import operator
import os
from collections.abc import Sequence, Sized
from typing import Any, Literal, TypeVar, get_args

from secretballot.exceptions import Argument, Parameter, ParameterError

#: Largest integer, in size, that is stated or released: beyond it programs read JSON differently.
LARGEST_INTEGER = 2**53
#: Of a public pool; a verifier keeps a bit for every row up to the last one.
MOST_ROWS = 25_000 * 2**16

# The words that settings may have, each list once: as a type, of which the command line makes its
# options, and as a tuple, which guards compare with. A new ledger's default stands first.
Unit = Literal["record", "user", "label"]
Neighbours = Literal["add-remove", "replace-one"]
Composition = Literal["basic", "renyi"]
AggregatorName = Literal[
    "gaussian",
    "vote-table",
    "sparse-vector",
    "abstention-table",
    "laplace",
    "confident",
    "interactive",
]
ReleaseKind = Literal["labels", "counts"]
Abstentions = Literal["drop", "random", "majority"]
StrategyName = Literal[
    "passive", "disagreement", "margin", "entropy", "committee", "k-center", "cluster"
]
HypothesesName = Literal["stumps", "thresholds", "intervals"]
VotesKind = Literal["votes", "counts"]
HeaderLine = Literal["yes", "no"]
RecordChange = Literal["drop", "add", "add-missing", "replace"]
LearnMethod = Literal["auto", "moments", "votes", "record-votes"]
AnswerStatistic = Literal["mean", "quantile"]
LabelBallot = Literal["labels", "sets"]

UNITS: tuple[Unit, ...] = get_args(Unit)
NEIGHBOURS: tuple[Neighbours, ...] = get_args(Neighbours)
COMPOSITIONS: tuple[Composition, ...] = get_args(Composition)
AGGREGATORS: tuple[AggregatorName, ...] = get_args(AggregatorName)
RELEASES: tuple[ReleaseKind, ...] = get_args(ReleaseKind)
ABSTENTIONS: tuple[Abstentions, ...] = get_args(Abstentions)
STRATEGIES: tuple[StrategyName, ...] = get_args(StrategyName)
HYPOTHESES: tuple[HypothesesName, ...] = get_args(HypothesesName)
VOTES_KINDS: tuple[VotesKind, ...] = get_args(VotesKind)
HEADER_LINES: tuple[HeaderLine, ...] = get_args(HeaderLine)
RECORD_CHANGES: tuple[RecordChange, ...] = get_args(RecordChange)
LEARN_METHODS: tuple[LearnMethod, ...] = get_args(LearnMethod)
STATISTICS: tuple[AnswerStatistic, ...] = get_args(AnswerStatistic)
BALLOTS: tuple[LabelBallot, ...] = get_args(LabelBallot)

Word = TypeVar("Word", bound=str)

LONGEST_SHOWN = 60  # characters of a string in a message
MOST_CLASSES_SHOWN = 20
LONGEST_NAME = 200  # characters of a name
LONGEST_LINE = 500  # characters of a message
LONGEST_WORDS = 200  # characters of what a message says of one thing that was given
_ELLIPSIS = " ... "


def without_controls(text: str, *, keep: str = "") -> str:
    """Return text with its control characters written out (``\\x1b``), which could move a cursor or
    forge a line.

    Parameters
    ----------
    text : str
    keep : str
        Characters that stay as they are.
    """
    if text.isprintable():
        return text
    return "".join(
        (
            character
            if character.isprintable() or character in keep
            else character.encode("unicode_escape").decode("ascii")
        )
        for character in text
    )


def plain_line(text: str, *, longest: int = LONGEST_LINE) -> str:
    """Return text on one line, without control characters, and with its middle left out where it is
    too long.

    Messages begin with what was given and end with what to do, so both ends stay.
    """
    if len(text) > 2 * longest:
        text = f"{text[:longest]}{text[-longest:]}"  # bounds the work; the middle goes below
    text = without_controls(text)
    if len(text) <= longest:
        return text
    end = (longest - len(_ELLIPSIS)) // 3
    return f"{text[: longest - len(_ELLIPSIS) - end]}{_ELLIPSIS}{text[-end:]}"


def shown(value: object) -> str:
    """Return how a message names something that was given.

    Numbers and short text as they are, the rest by its type.

    Anything may be given for anything, the private labels for a number of teachers too, so arrays,
    frames, lists and objects are told by type and shape alone, and all of them on one line of at
    most `LONGEST_WORDS` characters.
    """
    return plain_line(_value_description(value), longest=LONGEST_WORDS)


def _value_description(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    item = getattr(value, "item", None)
    if getattr(value, "shape", None) == () and callable(item):  # a number of numpy's
        value = item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, str | bytes | bool | numbers.Number):
        return _short_repr(value)
    shape = getattr(value, "shape", None)
    if isinstance(shape, tuple):
        return f"{_with_article(kind)} of shape {shape}"
    if isinstance(value, Sized):
        return f"{_with_article(kind)} of length {len(value)}"
    return _with_article(kind)


def shown_kind(value: object) -> str:
    """Return how a message names the type of something that was given, with its article."""
    name = type(value).__name__
    return _with_article(name if name.isprintable() and len(name) <= LONGEST_SHOWN else "object")


def shown_classes(values: Sequence[object]) -> str:
    """Return how a message names classes: as they are where they are few and plain.

    Private labels are many.
    """
    plain = all(value is None or isinstance(value, str | bool | numbers.Number) for value in values)
    if not plain or len(values) > MOST_CLASSES_SHOWN:
        return f"{_with_article(type(values).__name__)} of {len(values)} values"
    return f"[{', '.join(shown(value) for value in values)}]"


def _short_repr(value: Any) -> str:
    if isinstance(value, str | bytes) and len(value) > LONGEST_SHOWN:
        return (
            f"a string of {len(value)} characters"
            if isinstance(value, str)
            else f"{len(value)} bytes"
        )
    if isinstance(value, int) and value.bit_length() > 256:
        # Python does not even write the longest ones
        return f"an integer of {value.bit_length()} bits"
    try:
        return repr(value)
    except ValueError:  # Python does not write a fraction of thousands of digits either
        return _with_article(type(value).__name__)


def _with_article(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeio' else 'a'} {kind}"


def name_part(name: str) -> Parameter | str:
    """Return a name as the part of a message: of a parameter, unless it is words such as "A row"
    that name none."""
    return Parameter(name) if name.isidentifier() else name


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


def check_name(name: str, value: object, *, longest: int = LONGEST_NAME) -> None:
    """Refuse anything but a name on one line: a string, not blank, of at most `longest` characters.

    Raises
    ------
    ParameterError
        If it is not such a name.
    """
    if not isinstance(value, str):
        raise ParameterError(name_part(name), f" is {shown(value)}; it must be a string.")
    if not value.strip():
        raise ParameterError(name_part(name), " is empty; give at least one character.")
    if len(value) > longest:
        raise ParameterError(
            name_part(name), f" has {len(value)} characters; give at most {longest}."
        )
    # control characters and newlines would break lists; half a surrogate cannot be written
    if not value.isprintable():
        raise ParameterError(
            name_part(name),
            " has newlines, control characters or lone surrogates in it; give one plain line.",
        )


def _as_float(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ParameterError(name_part(name), f" is {shown(value)}; it must be a number.")
    try:
        return float(value)
    except OverflowError:
        raise ParameterError(
            name_part(name), f" is {shown(value)}; it must be a number below 1e308."
        ) from None


def check_positive(name: str, value: object) -> float:
    """Return `value` as a float if it is positive and finite, else raise `ParameterError`.

    Raises
    ------
    ParameterError
        If it is no number, not positive, infinite or nan.
    """
    number = _as_float(name, value)
    if not (number > 0 and math.isfinite(number)):
        raise ParameterError(
            name_part(name), f" is {shown(value)}; it must be a positive, finite number."
        )
    return number


def check_finite(name: str, value: object) -> float:
    """Return `value` as a float if it is finite, else raise `ParameterError`.

    Raises
    ------
    ParameterError
        If it is no number, infinite or nan.
    """
    number = _as_float(name, value)
    if not math.isfinite(number):
        raise ParameterError(name_part(name), f" is {shown(value)}; it must be a finite number.")
    return number


def check_probability(name: str, value: object) -> float:
    """Return `value` as a float if it lies strictly between 0 and 1.

    Raises
    ------
    ParameterError
        If it is no number strictly between 0 and 1.
    """
    number = _as_float(name, value)
    if not 0 < number < 1:
        raise ParameterError(
            name_part(name), f" is {shown(value)}; it must lie strictly between 0 and 1."
        )
    return number


def check_positive_rate(value: object, n_classes: int | None = None) -> float:
    """Return a publicly stated share of the second of two classes.

    Raises
    ------
    ParameterError
        If it is no number strictly between 0 and 1, or there are more classes than two.
    """
    rate = check_probability("positive_rate", value)
    if n_classes not in (None, 2):
        raise ParameterError(
            Parameter("positive_rate"),
            f" is about the second of two classes, and there are {n_classes}; give weights with ",
            Parameter("class_weight"),
            ".",
        )
    return rate


def check_delta(name: str, value: object) -> float:
    """Return `value` as a float if it is a delta: at least 0 and less than 1.

    Raises
    ------
    ParameterError
        If it is no number of at least 0 and less than 1.
    """
    number = _as_float(name, value)
    if not 0 <= number < 1:
        raise ParameterError(
            name_part(name), f" is {shown(value)}; it must be at least 0 and less than 1."
        )
    return number


def check_count(name: str, value: object, *, minimum: int = 1) -> int:
    """Return `value` as an int if it is an integer of at least `minimum`.

    Raises
    ------
    ParameterError
        If it is no integer, or less than `minimum`.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        # any object may be offered; index refuses
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ParameterError(
            name_part(name), f" is {shown(value)}; it must be an integer of at least {minimum}."
        ) from None
    if not number >= minimum:
        raise ParameterError(
            name_part(name), f" is {shown(value)}; it must be an integer of at least {minimum}."
        )
    return number


def check_choice(name: str, value: object, allowed: tuple[Word, ...]) -> Word:
    """Return `value` if it is one of the `allowed` words, else raise `ParameterError`.

    Raises
    ------
    ParameterError
        If it is another word, or no word.
    """
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(
            name_part(name), f" is {shown(value)}; it must be one of {', '.join(allowed)}."
        )
    return allowed[allowed.index(value)]


def check_relation(unit: str, neighbours: str) -> None:
    """Refuse a unit with a relation that it cannot have: a label is replaced, never removed.

    Raises
    ------
    ParameterError
        If the unit is a label and the relation is not replace-one.
    """
    if unit == "label" and neighbours != "replace-one":
        raise ParameterError(
            f"unit 'label' does not go with neighbours {neighbours!r}: the features are public,"
            " so labels change but do not come and go; use ",
            Argument("neighbours", "replace-one"),
            ".",
        )
