"""Ranges of validity: a theorem that is asked outside of them refuses, and says which they are."""

import math

from secretballot._validation import check_count as check_any_count
from secretballot._validation import (
    check_finite,
    check_instance,
    check_positive,
    check_probability,
    name_part,
)
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting import PrivacyBudget

__all__ = [
    "check_at_least",
    "check_budget",
    "check_count",
    "check_counts",
    "check_epsilon_below",
    "check_error",
    "check_share",
    "check_tau",
]

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


def check_budget(budget: PrivacyBudget, *, needs_delta: bool = True) -> tuple[float, float]:
    """Return epsilon and delta of a budget, of one with delta above 0 where a theorem needs it."""
    check_instance("budget", budget, PrivacyBudget, hint="give a PrivacyBudget(epsilon, delta)")
    return budget.epsilon, check_probability("delta", budget.delta) if needs_delta else budget.delta


def check_tau(tau: float) -> float:
    """Return the Tsybakov exponent if it lies in [0, 1], else raise `ParameterError`."""
    return check_share("tau", tau)


def check_share(name: str, value: float) -> float:
    """Return `value` if it lies in [0, 1], else raise `ParameterError`.

    Raises
    ------
    ParameterError
        If it does not.
    """
    number = check_finite(name, value)
    if not 0 <= number <= 1:
        raise ParameterError(name_part(name), f" is {value!r}; it must lie between 0 and 1.")
    return number


def check_error(name: str, value: float) -> float:
    """Return an error of a binary classifier if it lies in [0, 1/2), else raise.

    Raises
    ------
    ParameterError
        If it does not.
    """
    number = check_finite(name, value)
    if not 0 <= number < 0.5:
        raise ParameterError(
            name_part(name), f" is {value!r}; it must be at least 0 and less than 0.5."
        )
    return number


def check_epsilon_below(epsilon: float, limit: float, theorem: str) -> float:
    """Return epsilon if it lies in (0, limit], where a theorem holds, else raise.

    Raises
    ------
    ParameterError
        If it does not.
    """
    number = check_positive("epsilon", epsilon)
    if not number <= limit:
        raise ParameterError(
            Parameter("epsilon"),
            f" is {epsilon!r}; {theorem} holds for epsilon from 0 to {limit:g}.",
        )
    return number


def check_at_least(name: str, value: int, least: float, because: str) -> int:
    """Return a count if it is at least `least`, else raise `ParameterError` with the reason.

    Raises
    ------
    ParameterError
        If it does not.
    """
    number = check_count(name, value)
    if not number >= least:
        raise ParameterError(
            name_part(name), f" is {number}; {because} asks for at least {math.ceil(least)}."
        )
    return number


def check_counts(**given: int) -> tuple[int, ...]:
    """Return the given counts, in their order, if each is an integer of at least 1, else raise."""
    return tuple(check_count(name, value) for name, value in given.items())
