"""The door: check, price, reserve durably, draw exact noise, commit, return.

In that order, and nowhere else.

Left of here everything is secret, right of here everything is public. What is refused is refused
before anything is reserved; once reserved it is spent, whether or not an answer comes out.

`batch` releases the answers to queries that are known beforehand. `choice` draws a number or a
choice that something is set by. `purchase` is what all do before they may draw.
"""

from secretballot.door.batch import release, release_table
from secretballot.door.outcomes import choose_by_scores, estimate_stability

__all__ = [
    "choose_by_scores",
    "estimate_stability",
    "release",
    "release_table",
]
