"""Keywords that were renamed keep working under their old names, which no page mentions."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["takes_old_names"]

P = ParamSpec("P")
R = TypeVar("R")


def takes_old_names(**renamed: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator that also takes keywords under the names they had before.

    Parameters
    ----------
    **renamed : str
        Old name to new name.

    Raises
    ------
    TypeError
        When the function is called with a keyword under both names.
    """

    def decorated(function: Callable[P, R]) -> Callable[P, R]:
        # wraps keeps the signature, in which scikit-learn looks for the parameters of an estimator
        @wraps(function)
        def renaming(*args: P.args, **kwargs: P.kwargs) -> R:
            for old, new in renamed.items():
                if old in kwargs:
                    if new in kwargs:
                        raise TypeError(f"{old} is the old name of {new}; give one of the two.")
                    kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return renaming

    return decorated
