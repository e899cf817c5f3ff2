"""Releases by the exponential mechanism: labels of one chosen model, not of votes."""

from collections.abc import Mapping
from typing import Any

EXPONENTIAL = "exponential-choice"
EXPONENTIAL_ASSUMPTIONS = (
    (
        "The candidates and their order follow from public data, fixed random seeds and earlier"
        " releases, never from the private records that the choice was made by."
    ),
    "A candidate predicts each row from that row alone.",
)


def is_chosen(certificate: Mapping[str, Any]) -> bool:
    """Return whether the release is a choice among candidates, without teachers."""
    return bool(certificate["public"]["method"] == EXPONENTIAL)
