"""Releases of votes that records cast for themselves: no teachers, and how many is private."""

from collections.abc import Mapping
from typing import Any

RECORD_VOTES = "record-votes"
RECORD_VOTES_ASSUMPTIONS = (
    (
        "Of each unit one record votes, at most once at each public point and at no more of them"
        " than the shape says."
    ),
    (
        "Where a record votes depends on that record and on public values alone; no other record"
        " has a say in it."
    ),
)
#: Of a release that also counts records which the public points do not cover: the share that chance
#: explains. Their noisy votes, of all their cells together, are the one released value.
EXPECTED_UNCOVERED = "expected_uncovered"
#: The counts before the noise are at most this, by rule: how many records there were is private.
LARGEST_COUNT = 10**12


def is_by_record(certificate: Mapping[str, Any]) -> bool:
    """Return whether the release is one of votes that records cast for themselves."""
    return bool(certificate["public"]["method"] == RECORD_VOTES)
