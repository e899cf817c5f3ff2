"""A budget: the promise of a release as a limit."""

from dataclasses import dataclass
from typing import Any

from secretballot._validation import check_delta, check_positive


@dataclass(frozen=True)
class PrivacyBudget:
    """An (epsilon, delta) differential-privacy promise, as a limit.

    Parameters
    ----------
    epsilon : float
        Bound on the privacy loss, in nats; positive and finite.
    delta : float
        Probability mass that may exceed the bound; at least 0 and less than 1.

    Raises
    ------
    ParameterError
        If either is out of range or nan.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(epsilon=1.0, delta=1e-6)
    >>> budget.to_json()
    {'epsilon': 1.0, 'delta': 1e-06}
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_positive("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check_delta("delta", self.delta))

    def to_json(self) -> dict[str, Any]:
        """Return the two numbers under their names."""
        return {"epsilon": self.epsilon, "delta": self.delta}
