"""What a campaign is made of."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

#: What was counted, and what is not as it must be.
Found = tuple[Mapping[str, float], list[str]]


@dataclass(frozen=True)
class Case:
    """A row of the table of a campaign.

    Attributes
    ----------
    work : callable
        ``work(amount, number, folder)`` does the block with that number, in a process of its own
        and in a folder of its own, and returns what it found.
    amount : int
        Inputs, kills or runs, in all.
    block : int
        How many of them are done in one process.
    """

    work: Callable[[int, int, Path], Found]
    amount: int
    block: int
