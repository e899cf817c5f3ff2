"""What a bound returns: a figure, and whether it says anything."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RiskBound:
    """An upper bound on an error or excess error.

    Attributes
    ----------
    value : float
        The bound; not cut at 1, so that one sees by how much a vacuous bound misses.
    trivial : float
        What holds without any theorem: 1 for an excess error or a disagreement, 1/2 for the error
        of a classifier.

    Examples
    --------
    >>> sb.theory.RiskBound(1.3).vacuous
    True
    """

    value: float
    trivial: float = 1.0

    @property
    def vacuous(self) -> bool:
        """True if the bound says no more than what holds anyway."""
        return not self.value < self.trivial
