"""The door: check, price, reserve durably, draw exact noise, commit, return.

In that order, and nowhere else.

Left of here everything is secret, right of here everything is public. What is refused is refused
before anything is reserved; once reserved it is spent, whether or not an answer comes out.

`batch` releases the answers to queries that are known beforehand; `stream` reserves a number of
answers and gives them query by query. `choice` draws a number or a choice that something is set by.
`purchase` is what all do before they may draw.
"""

from secretballot.door.batch import release
from secretballot.door.outcomes import choose_by_scores, estimate_stability
from secretballot.door.stream import ReleaseStream, StreamAnswers
from secretballot.door.vote_tables import release_table

__all__ = [
    "ReleaseStream",
    "StreamAnswers",
    "choose_by_scores",
    "estimate_stability",
    "release",
    "release_table",
]
