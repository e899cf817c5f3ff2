"""What every aggregator promises: a recipe that answers a fixed number of queries from vote
counts."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from secretballot.accounting import Event, PrivacyBudget, epsilon_upper
from secretballot.core.mechanisms import Mechanism
from secretballot.exceptions import Parameter, ParameterError


class Aggregator(ABC):
    """Base of all aggregators. Parameters are public numbers, fixed before the votes are looked at.

    Attributes
    ----------
    name : str
        Name in `describe`.
    n_queries : int
        Most queries that one release answers.
    n_classes : int
        Number of classes.
    release : str
        "labels" or "counts": what `answer` lets out.
    budget : PrivacyBudget
        Price of one release; the door prices `events` again before it draws.

    Examples
    --------
    >>> budget = sb.PrivacyBudget(1.0, 1e-6)
    >>> aggregator = sb.SparseVectorAggregator.calibrate(budget, 10, max_unstable=2)
    >>> isinstance(aggregator, sb.aggregation.Aggregator)
    True
    >>> sb.aggregation.aggregator_from_description(aggregator.describe()) == aggregator
    True
    """

    name: ClassVar[str]
    n_queries: int
    n_classes: int
    release: str
    budget: PrivacyBudget

    @property
    @abstractmethod
    def sigma_of_counts(self) -> float | None:
        """Scale of the noise on released counts, in votes; None where labels alone are released."""

    @abstractmethod
    def core_mechanism(self, n_teachers: int) -> Mechanism:
        """Return the mechanism of the core that draws the same answers, at the same price."""

    @property
    def public(self) -> dict[str, Any]:
        """Public settings beside the mechanism, as a certificate has them."""
        return {"method": "votes"}

    @abstractmethod
    def events(self, n_teachers: int) -> tuple[Event, ...]:
        """Return what one release of `n_queries` queries is to the accountant."""

    @abstractmethod
    def describe(self) -> dict[str, Any]:
        """Return the parameters as a JSON object from which `aggregator_from_description`
        rebuilds it."""

    @abstractmethod
    def check_useful(self, n_teachers: int) -> None:
        """Raise or warn, from public parameters alone, if the answers would be (nearly)
        worthless."""

    @classmethod
    @abstractmethod
    def from_description(cls, description: Mapping[str, Any]) -> "Aggregator":
        """Rebuild the aggregator that `describe` describes."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Aggregator) and self.describe() == other.describe()

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        settings = ", ".join(
            f"{key}={value!r}" for key, value in self.describe().items() if key != "name"
        )
        return f"{type(self).__name__}({settings})"


def budget_or_price(
    budget: PrivacyBudget | None, delta: float | None, events: Sequence[Event]
) -> PrivacyBudget:
    """Return `budget`, or the least epsilon at which `events` keep `delta`.

    Raises
    ------
    ParameterError
        If not exactly one of `budget` and `delta` is given.
    """
    if budget is not None and not isinstance(budget, PrivacyBudget):
        # such as a diagnosis of what votes seem to cost
        raise ParameterError(
            Parameter("budget"),
            f" is a {type(budget).__name__}; give a PrivacyBudget, fixed without looking at the"
            " votes. What depends on votes is no promise: give ",
            Parameter("delta"),
            " instead, and the noise is priced for any votes.",
        )
    if budget is not None and delta is None:
        return budget
    if budget is None and delta is not None:
        return PrivacyBudget(epsilon_upper(events, delta), delta)
    raise ParameterError("Give either the budget of the release or the delta at which to price it.")


def check_fields(
    description: Mapping[str, Any], name: str, fields: Sequence[str]
) -> dict[str, Any]:
    """Return the fields of a description without its name, the budget rebuilt.

    Raises
    ------
    ParameterError
        If the name is another one, or a field is missing or unknown.
    """
    given = dict(description)
    if given.pop("name", None) != name or set(given) != set(fields):
        wanted = ", ".join(fields)
        raise ParameterError(
            f"The description must have the name {name!r} and the fields {wanted}."
        )
    budget = given["budget"]
    if not isinstance(budget, Mapping) or set(budget) != {"epsilon", "delta"}:
        raise ParameterError(
            "The description's budget must hold epsilon and delta and nothing else."
        )
    given["budget"] = PrivacyBudget(budget["epsilon"], budget["delta"])
    return given
