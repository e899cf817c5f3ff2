"""Public pseudo-random numbers by SHA-256, the same on every machine and with every version."""

import hashlib
import math
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


def number_of(*names: object) -> int:
    """Return 64 bits that follow from the names alone."""
    text = ":".join(str(name) for name in names)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


class Dice:
    """A stream of draws that follows from its name alone."""

    def __init__(self, *names: object) -> None:
        self._names, self._drawn = names, 0

    def uniform(self) -> float:
        self._drawn += 1
        return (number_of(*self._names, self._drawn) >> 11) / 2**53

    def integer(self, low: int, high: int) -> int:
        return low + math.floor(self.uniform() * (high - low + 1))

    def pick(self, values: Sequence[T]) -> T:
        return values[self.integer(0, len(values) - 1)]

    def log_uniform(self, low: float, high: float) -> float:
        """Draw with three digits, so that no last bit of a logarithm decides."""
        return float(f"{low * (high / low) ** self.uniform():.3g}")

    def log_integer(self, low: int, high: int) -> int:
        return min(high, math.floor(self.log_uniform(low, high + 1)))
