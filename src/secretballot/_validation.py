"""Guards, written so that nan fails: a comparison with nan is false, hence ``if not x > 0``."""

import numbers
import os
from collections.abc import Sequence
from typing import Literal, get_args

from secretballot.core.errors import LARGEST_INTEGER as LARGEST_INTEGER
from secretballot.core.errors import LONGEST_LINE as LONGEST_LINE
from secretballot.core.errors import LONGEST_SHOWN as LONGEST_SHOWN
from secretballot.core.errors import LONGEST_WORDS as LONGEST_WORDS
from secretballot.core.errors import Argument, Parameter, ParameterError, with_article
from secretballot.core.errors import check_choice as check_choice
from secretballot.core.errors import check_count as check_count
from secretballot.core.errors import check_delta as check_delta
from secretballot.core.errors import check_finite as check_finite
from secretballot.core.errors import check_positive as check_positive
from secretballot.core.errors import check_probability as check_probability
from secretballot.core.errors import name_part as name_part
from secretballot.core.errors import plain_line as plain_line
from secretballot.core.errors import shown as shown
from secretballot.core.errors import shown_kind as shown_kind
from secretballot.core.errors import without_controls as without_controls

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

MOST_CLASSES_SHOWN = 20
LONGEST_NAME = 200  # characters of a name


def shown_classes(values: Sequence[object]) -> str:
    """Return how a message names classes: as they are where they are few and plain.

    Private labels are many.
    """
    plain = all(value is None or isinstance(value, str | bool | numbers.Number) for value in values)
    if not plain or len(values) > MOST_CLASSES_SHOWN:
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
