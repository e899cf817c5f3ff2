"""Ranges of validity: a theorem that is asked outside of them refuses, and says which they are."""

from secretballot._validation import check_count as check_any_count
from secretballot._validation import (
    check_finite,
    name_part,
)
from secretballot.exceptions import ParameterError

_LARGEST = 10**18  # beyond any data set, and every formula here still has floats for it


def check_count(name: str, value: int, *, minimum: int = 1) -> int:
    """Return `value` as an int if it is an integer from `minimum` to 1e18, else raise.

    Raises
    ------
    ParameterError
        If it is not.
    """
    number = check_any_count(name, value, minimum=minimum)
    if not number <= _LARGEST:
        raise ParameterError(
            name_part(name),
            " is larger than 1e18, for which nothing here is meant; give a smaller number.",
        )
    return number


def check_share(name: str, value: float, *, below: float | None = None) -> float:
    """Return `value` if it lies in [0, 1], or in [0, below), else raise `ParameterError`.

    Raises
    ------
    ParameterError
        If it does not.
    """
    number = check_finite(name, value)
    if not 0 <= number <= 1 or (below is not None and not number < below):
        words = "lie between 0 and 1" if below is None else f"be at least 0 and less than {below}"
        raise ParameterError(name_part(name), f" is {value!r}; it must {words}.")
    return number
