"""Errors, guards and messages that all modules of the core share.

Guards are written so that nan fails: a comparison with nan is false, hence ``if not x > 0``.
Messages name what was given, what is allowed and what to do, and never a private value.
"""

import math
import numbers
import operator
import os
from collections.abc import Callable, Mapping, Sized
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar, get_args

_Word = TypeVar("_Word", bound=str)
#: Values by their names, as an object of JSON or keywords have them; and where they are only read.
#: Here, since this module is loaded without numpy.
Json = dict[str, Any]
JsonView = Mapping[str, Any]
Names = tuple[str, ...]

# a new ledger's default comes first
Unit = Literal["record", "user", "label"]
Relation = Literal["add-remove", "replace-one"]
Composition = Literal["basic", "renyi"]
UNITS: tuple[Unit, ...] = get_args(Unit)
RELATIONS: tuple[Relation, ...] = get_args(Relation)
COMPOSITIONS: tuple[Composition, ...] = get_args(Composition)

LONGEST_SHOWN = 60  # characters of a string in a message
_LONGEST_LINE = 500  # characters of a message
_LONGEST_NAME = 200  # characters of a name
LONGEST_WORDS = 200  # characters of what a message quotes of one value
_ELLIPSIS = " ... "


@dataclass(frozen=True)
class Parameter:
    """The name of a parameter, as a part of a message.

    Examples
    --------
    >>> from secretballot.exceptions import Parameter
    >>> print(Parameter("n_teachers"))
    n_teachers
    """

    name: str

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Argument:
    """A parameter with its value, as a part of a message.

    Examples
    --------
    >>> from secretballot.exceptions import Argument
    >>> print(Argument("release", "labels"))
    release='labels'
    """

    name: str
    value: str | int | float

    def __str__(self) -> str:
        return f"{self.name}={self.value!r}"


class SecretBallotError(Exception):
    """Base class of every error that the package raises on purpose.

    Parameters
    ----------
    *parts : str, Parameter or Argument
        The message, in parts that are joined as they are. Only a `Parameter` or `Argument` names a
        parameter; text never does, whatever was quoted in it.

    Attributes
    ----------
    parts : tuple of str, Parameter and Argument
    parameter : str or None
        Name of the parameter that is at fault.

    Examples
    --------
    >>> try:
    ...     sb.PrivacyBudget(0.0, 1e-6)
    ... except sb.SecretBallotError as error:
    ...     print(error)
    epsilon is 0.0; it must be a positive, finite number.
    """

    def __init__(self, *parts: str | Parameter | Argument) -> None:
        super().__init__("".join(map(str, parts)))
        self.parts = parts

    def __reduce__(self) -> tuple[object, ...]:
        # the default would rebuild the error, as it comes from a worker, of its sentence alone
        return type(self), self.parts, self.__dict__

    @property
    def parameter(self) -> str | None:
        """Name of the parameter that is at fault: the first that the message names, if any."""
        return next((part.name for part in self.parts if isinstance(part, Parameter)), None)


class ParameterError(SecretBallotError, ValueError):
    """A parameter is out of its range; `parameter` is its name, where the fault is one parameter's.

    Examples
    --------
    >>> try:
    ...     sb.PrivacyBudget(1.0, delta=2.0)
    ... except sb.ParameterError as error:
    ...     print(error.parameter)
    ...     print(error)
    delta
    delta is 2.0; it must be at least 0 and less than 1.
    """


class DataError(SecretBallotError, ValueError):
    """A table, file or array does not fit; the message names places, never private values.

    Examples
    --------
    >>> try:
    ...     sb.votes_of_counts([[3, 2], [4, 2]])
    ... except sb.DataError as error:
    ...     print(type(error).__name__)
    DataError
    """


class BudgetError(SecretBallotError):
    """The release would exceed the privacy budget; nothing was drawn.

    Examples
    --------
    >>> ledger = sb.Ledger.in_memory(dataset="people", budget=sb.PrivacyBudget(0.5, 0.0))
    >>> votes = sb.votes_of_counts([[3, 97]])
    >>> try:
    ...     sb.estimate_stability(votes, ledger, fraction=0.1, epsilon=1.0)
    ... except sb.BudgetError:
    ...     print(ledger.spent().epsilon)
    0.0
    """


class LedgerError(SecretBallotError):
    """The ledger cannot be opened, read or trusted.

    Examples
    --------
    >>> try:
    ...     sb.Ledger.open_existing("missing.ledger")
    ... except sb.LedgerError as error:
    ...     print(type(error).__name__)
    LedgerError
    """


class ResourceError(SecretBallotError):
    """Memory, files or processes ran out.

    The run ended, since all shards together may have caused it.

    Examples
    --------
    >>> issubclass(sb.ResourceError, sb.SecretBallotError)
    True
    """


class BrokenOffError(LedgerError):
    """The connection was lost, or storing failed, and it is certain that nothing was stored."""


class UnknownEndError(LedgerError):
    """Storing broke off at its end, so that nobody knows whether it was done."""

    @classmethod
    def of(cls, what: str) -> Self:
        """Return the error of what happened, given as the beginning of a sentence."""
        return cls(
            f"{what}; it is unknown whether that was stored, nothing was returned for it, and the"
            " same command or request is charged once when it is repeated."
        )


class SamplerError(SecretBallotError):
    """Exact noise cannot be drawn: OpenDP is missing, broken, or draws wrong noise.

    Nothing was drawn.

    Examples
    --------
    >>> issubclass(sb.SamplerError, sb.SecretBallotError)
    True
    """


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
        c if c.isprintable() or c in keep else c.encode("unicode_escape").decode("ascii")
        for c in text
    )


def plain_line(text: str, *, longest: int = _LONGEST_LINE) -> str:
    """Return text on one line, without control characters, and with its middle left out where it is
    too long.

    Messages begin with what was given and end with what to do, so both ends stay.
    """
    text = without_controls(text)
    if len(text) <= longest:
        return text
    end = (longest - len(_ELLIPSIS)) // 3
    return f"{text[: longest - len(_ELLIPSIS) - end]}{_ELLIPSIS}{text[-end:]}"


def shown(value: object) -> str:
    """Return how a message names something that was given.

    Numbers and short text as they are, the rest by its type.

    Anything may be given for anything, the private labels for a number of teachers too, so arrays,
    frames, lists and objects are shown by type and shape alone, and all of them on one line of at
    most `LONGEST_WORDS` characters.
    """
    return plain_line(_value_description(value), longest=LONGEST_WORDS)


def _value_description(value: object) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    kind = type(value).__name__
    item, shape = getattr(value, "item", None), getattr(value, "shape", None)
    if shape == () and callable(item):  # a number of numpy's
        value = item()
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if value is None or isinstance(value, str | bytes | bool | numbers.Number):
        with suppress(ValueError):  # Python does not write numbers of thousands of digits
            if len(text := repr(value)) <= LONGEST_SHOWN + 2:
                return text
    if isinstance(value, str | bytes):
        return f"{'a string' if kind == 'str' else 'bytes'} of {len(value)} characters"
    if isinstance(shape, tuple) and shape:
        return f"{with_article(kind)} of shape {shape}"
    if isinstance(value, Sized):
        return f"{with_article(kind)} of length {len(value)}"
    return with_article(kind)


def with_article(kind: str) -> str:
    return f"{'an' if kind[:1].lower() in 'aeio' else 'a'} {kind}"


def name_part(name: str) -> Parameter | str:
    """Return a name as the part of a message: of a parameter, unless it is words such as "A row"
    that name none."""
    return Parameter(name) if name.isidentifier() else name


def wrong(name: str, value: object, wanted: str) -> ParameterError:
    """Return the refusal of a value that must be something else; None is one that is missing."""
    found = "missing" if value is None else shown(value)
    return refusal(name, f" is {found}; it must be {wanted}.")


def refusal(name: str, *parts: str | Parameter | Argument) -> ParameterError:
    """Return the error of a parameter, whose name the parts of the message follow."""
    return ParameterError(name_part(name), *parts)


def _checked(name: str, value: object, wanted: str, holds: Callable[[float], bool]) -> float:
    """Return `value` as a float of which a condition holds, which must be false of nan."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise wrong(name, value, "a number")
    try:
        number = float(value)
    except OverflowError:
        raise wrong(name, value, "a number below 1e308") from None
    if not holds(number):
        raise wrong(name, value, wanted)
    return number


def check_positive(name: str, value: object) -> float:
    """Return `value` as a float if it is positive and finite, else raise `ParameterError`.

    Raises
    ------
    ParameterError
        If it is no number, not positive, infinite or nan.
    """
    return _checked(name, value, "a positive, finite number", lambda x: 0 < x < math.inf)


def check_finite(name: str, value: object) -> float:
    """Return `value` as a float if it is finite, else raise `ParameterError`.

    Raises
    ------
    ParameterError
        If it is no number, infinite or nan.
    """
    return _checked(name, value, "a finite number", math.isfinite)


def check_probability(name: str, value: object) -> float:
    """Return `value` as a float if it lies strictly between 0 and 1.

    Raises
    ------
    ParameterError
        If it is no number strictly between 0 and 1.
    """
    return _checked(name, value, "strictly between 0 and 1", lambda x: 0 < x < 1)


def check_delta(name: str, value: object) -> float:
    """Return `value` as a float if it is a delta: at least 0 and less than 1.

    Raises
    ------
    ParameterError
        If it is no number of at least 0 and less than 1.
    """
    return _checked(name, value, "at least 0 and less than 1", lambda x: 0 <= x < 1)


def check_count(name: str, value: object, *, minimum: int = 1) -> int:
    """Return `value` as an int if it is an integer of at least `minimum`.

    Raises
    ------
    ParameterError
        If it is no integer, or less than `minimum`.
    """
    number = minimum - 1
    with suppress(TypeError):  # any object may be offered; index refuses
        number = number if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    if not number >= minimum:
        raise wrong(name, value, f"an integer of at least {minimum}")
    return number


def check_choice(name: str, value: object, allowed: tuple[_Word, ...]) -> _Word:
    """Return `value` if it is one of the `allowed` words, else raise `ParameterError`.

    Raises
    ------
    ParameterError
        If it is another word, or no word.
    """
    if not isinstance(value, str) or value not in allowed:
        raise wrong(name, value, f"one of {', '.join(allowed)}")
    return allowed[allowed.index(value)]


def check_name(name: str, value: object, *, longest: int = _LONGEST_NAME) -> None:
    """Refuse anything but a name on one line: a string, not blank, of at most `longest` characters.

    Raises
    ------
    ParameterError
        If it is not such a name.
    """
    # control characters and newlines would break lists; half a surrogate cannot be written
    fits = isinstance(value, str) and value.strip() and value.isprintable()
    if not fits or len(str(value)) > longest:
        raise wrong(name, value, f"one plain line of text, of 1 to {longest} characters")


def check_relation(unit: str, relation: str) -> None:
    """Refuse a unit with a relation that it cannot have: a label is replaced, never removed.

    Raises
    ------
    ParameterError
        If the unit is a label and the relation is not replace-one.
    """
    if unit == "label" and relation != "replace-one":
        raise ParameterError(
            f"unit 'label' does not go with relation {relation!r}: the features are public,"
            " so labels change but do not come and go; use ",
            Argument("relation", "replace-one"),
            ".",
        )
