"""Recipes that answer a stream of queries from vote counts: what is drawn, what it costs, what
comes out."""

from collections.abc import Mapping
from typing import Any

from secretballot.aggregation.abstention_table import AbstentionTableAggregator
from secretballot.aggregation.base import Aggregator, Answers
from secretballot.aggregation.confident import ConfidentAggregator, InteractiveAggregator
from secretballot.aggregation.noisy_voting import NoisyVoting
from secretballot.aggregation.sparse_vector import SparseVectorAggregator
from secretballot.exceptions import ParameterError

__all__ = [
    "AGGREGATOR_CLASSES",
    "AbstentionTableAggregator",
    "Aggregator",
    "Answers",
    "ConfidentAggregator",
    "InteractiveAggregator",
    "NoisyVoting",
    "SparseVectorAggregator",
    "aggregator_from_description",
]

AGGREGATOR_CLASSES: tuple[type[Aggregator], ...] = (
    NoisyVoting,
    ConfidentAggregator,
    InteractiveAggregator,
    SparseVectorAggregator,
    AbstentionTableAggregator,
)


def aggregator_from_description(description: Mapping[str, Any]) -> Aggregator:
    """Rebuild an aggregator from the object that `Aggregator.describe` made.

    Raises
    ------
    ParameterError
        If the name is unknown, or a field is missing, unknown or out of its range.
    """
    for kind in AGGREGATOR_CLASSES:
        if description.get("name") == kind.name:
            return kind.from_description(description)
    known = ", ".join(kind.name for kind in AGGREGATOR_CLASSES)
    raise ParameterError(
        f"Aggregator {description.get('name')!r} is unknown; the known ones are {known}."
    )
