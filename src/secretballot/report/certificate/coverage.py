"""How far the public points cover the records, as noisy sums have counted it; public."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Coverage", "coverage_on"]

#: Share of the records that may be uncovered beyond what is expected.
LEAST_EXCESS = 0.03


@dataclass(frozen=True)
class Coverage:
    """How far public points cover the records; released with the sums.

    Attributes
    ----------
    uncovered : float
        Share of the records with a cell that the public points do not show, with noise.
    standard_error : float
        Of that share, by the noise.
    expected : float
        Share where records are like the public points, about.
    """

    uncovered: float
    standard_error: float
    expected: float

    @property
    def excess(self) -> float:
        """What is more than expected and more than noise makes, as a share; 0 if nothing is."""
        beyond = self.uncovered - self.expected
        return beyond if beyond > LEAST_EXCESS + 3 * self.standard_error else 0.0

    @property
    def is_poor(self) -> bool:
        """Whether more records are uncovered than chance and noise explain."""
        return self.excess > 0

    @property
    def warning(self) -> str:
        """What to say aloud where it is poor."""
        return (
            f"About {100 * self.uncovered:.0f} % of the records have values that the public points"
            f" do not show, where {100 * self.expected:.0f} % were to be expected: the model knows"
            " nothing of them. Give public points from all parts of the population. This was paid"
            " for and stands on the certificate."
        )


def coverage_on(mechanism: Mapping[str, Any]) -> tuple[Coverage, float, float]:
    """Return the coverage, the number of records, and the standard error of a count.

    Parameters
    ----------
    mechanism : mapping
        Of a certificate of noisy sums.
    """
    marks, sums = mechanism["marks"], mechanism["sums"]
    error = mechanism["sigma"] / mechanism["mark_weight"] / np.sqrt(len(sums))
    counted = {
        mark: float(np.mean([one[place - len(marks)] for one in sums])) / mechanism["mark_weight"]
        for place, mark in enumerate(marks)
    }
    stated = mechanism["n_records"]
    # fewer than the noise could hide are taken for as many as it could
    number = float(stated) if stated is not None else max(counted["records"], error, 1.0)
    share = min(max(counted["uncovered"] / number, 0.0), 1.0)
    return Coverage(share, error / number, mechanism["expected_uncovered"]), number, float(error)
