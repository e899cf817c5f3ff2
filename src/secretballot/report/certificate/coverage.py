"""How far the public points cover the records, as noisy sums have counted it; public."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import IntArray

#: What is counted beside the moments: the records, unless their number is public, and those with a
#: cell that the public points do not show.
RECORDS, UNCOVERED = "records", "uncovered"
#: What the counts of classes, which come first, take of the squared signal-to-noise ratio of all
#: sums of a release.
COUNTS_SHARE = 0.02


def counts_scale(n_stages: int) -> float:
    """Return the scale of the noise of the counts of classes over that of a stage."""
    return math.sqrt((1 - COUNTS_SHARE) / (COUNTS_SHARE * n_stages))


#: Share expected to be uncovered, above which uncovered records are not left out from the start.
MOST_EXPECTED = 0.25

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
            " for and is on the certificate."
        )


def coverage_on(terms: Mapping[str, Any]) -> tuple[Coverage, float, float] | None:
    """Return what the marks say, as `counted_by_marks`; None where the public points are the
    records' own.

    Parameters
    ----------
    terms : mapping
        What `stated` returns of a certificate of noisy sums.
    """
    if not terms["marks"]:
        return None
    return counted_by_marks(
        terms["values"],
        terms["marks"],
        terms["mark_weight"],
        terms["sigma"],
        terms["n_records"],
        terms["expected_uncovered"],
    )


def counted_by_marks(
    sums: Sequence[Any],
    marks: Sequence[str],
    mark_weight: int,
    sigma: float,
    n_records: float | None,
    expected: float,
) -> tuple[Coverage, float, float]:
    """Return the coverage, the number of records, and the standard error of a count.

    Parameters
    ----------
    sums : sequence of sequences of int
        Released; what each mark counts comes last, in the order of `marks`.
    marks : sequence of str
        Of `RECORDS` and `UNCOVERED`.
    mark_weight : int
        What a mark of one record adds.
    sigma : float
        Scale of the noise.
    n_records : float or None
        Where it is public; None where the sums count them.
    expected : float
        Share of uncovered records where they are like the public points.
    """
    error = sigma / mark_weight / math.sqrt(len(sums))
    counted = {
        mark: float(np.mean([one[place - len(marks)] for one in sums])) / mark_weight
        for place, mark in enumerate(marks)
    }
    # fewer than the noise could hide are taken for as many as it could
    number = float(n_records) if n_records is not None else max(counted[RECORDS], error, 1.0)
    share = min(max(counted[UNCOVERED] / number, 0.0), 1.0)
    return Coverage(share, error / number, expected), number, error


def coverage_by_votes(
    terms: Mapping[str, Any], noisy_counts: IntArray
) -> tuple[Coverage, float, float] | None:
    """Return what the counts of votes of records say; as `counted_by_marks`, but the error is that
    of the number of records. None where uncovered records were not distinguished.

    Parameters
    ----------
    terms : mapping
        What `stated` returns of a certificate of votes of records.
    noisy_counts : ndarray of int64, shape (n_points, n_classes)
        Released.
    """
    if "expected_uncovered" not in terms:
        return None
    k, sigma = terms["votes_per_record"], float(terms["sigma"])
    counts = np.asarray(noisy_counts)
    # every record casts k votes, here or in the cells of the uncovered ones
    error = sigma * math.sqrt(counts.size + k) / k
    uncovered = terms["values"][0][0] / k
    number = max(float(counts.sum()) / k + uncovered, error, 1.0)
    share = min(max(uncovered / number, 0.0), 1.0)
    of_share = math.hypot(sigma / math.sqrt(k), share * error) / number
    return Coverage(share, of_share, terms["expected_uncovered"]), number, error
