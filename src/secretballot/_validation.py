"""Guards, written so that nan fails: a comparison with nan is false, hence ``if not x > 0``."""

import math
import numbers
import operator

from secretballot.exceptions import ParameterError

__all__ = [
    "check_choice",
    "check_count",
    "check_delta",
    "check_finite",
    "check_positive",
    "check_probability",
    "check_relation",
]


def _as_float(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ParameterError(f"{name} is {value!r}; it must be a number.")
    return float(value)


def check_positive(name: str, value: object) -> float:
    """Return `value` as a float if it is positive and finite, else raise `ParameterError`."""
    number = _as_float(name, value)
    if not (number > 0 and math.isfinite(number)):
        raise ParameterError(f"{name} is {value!r}; it must be a positive, finite number.")
    return number


def check_finite(name: str, value: object) -> float:
    """Return `value` as a float if it is finite, else raise `ParameterError`."""
    number = _as_float(name, value)
    if not math.isfinite(number):
        raise ParameterError(f"{name} is {value!r}; it must be a finite number.")
    return number


def check_probability(name: str, value: object) -> float:
    """Return `value` as a float if it lies strictly between 0 and 1, else raise `ParameterError`."""
    number = _as_float(name, value)
    if not 0 < number < 1:
        raise ParameterError(f"{name} is {value!r}; it must lie strictly between 0 and 1.")
    return number


def check_delta(name: str, value: object) -> float:
    """Return `value` as a float if it is a delta: at least 0 and less than 1, else raise `ParameterError`."""
    number = _as_float(name, value)
    if not 0 <= number < 1:
        raise ParameterError(f"{name} is {value!r}; it must be at least 0 and less than 1.")
    return number


def check_count(name: str, value: object, *, minimum: int = 1) -> int:
    """Return `value` as an int if it is a whole number of at least `minimum`, else raise `ParameterError`."""
    try:
        if isinstance(value, bool):
            raise TypeError
        number = operator.index(value)  # type: ignore[arg-type]  # any object may be offered; index refuses
    except TypeError:
        raise ParameterError(f"{name} is {value!r}; it must be a whole number of at least {minimum}.") from None
    if not number >= minimum:
        raise ParameterError(f"{name} is {value!r}; it must be a whole number of at least {minimum}.")
    return number


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return `value` if it is one of the `allowed` words, else raise `ParameterError`."""
    if not isinstance(value, str) or value not in allowed:
        raise ParameterError(f"{name} is {value!r}; it must be one of {', '.join(allowed)}.")
    return value


def check_relation(unit: str, neighbours: str) -> None:
    """Refuse a unit with a relation that it cannot have, with `ParameterError`: a label is replaced, never removed."""
    if unit == "label" and neighbours != "replace-one":
        raise ParameterError(
            f"unit 'label' does not go with neighbours {neighbours!r}: the features are public, so labels change but "
            "do not come and go; use neighbours='replace-one'."
        )
