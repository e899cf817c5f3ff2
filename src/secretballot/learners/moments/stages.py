"""The stages of record moments: what each asks, and what the released sums come to; all public."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.bases.rotation import UNIT
from secretballot.door.vector_sums import StagedSums
from secretballot.privacy.accounting import PrivacyBudget, calibrate_vector_sum
from secretballot.privacy.mechanisms import NoisyVectorSum
from secretballot.records import Residuals
from secretballot.students.moment_fit import MomentFit, ReleasedMoments

__all__ = ["NAME", "staged_sums"]

NAME = "record-moments"
#: Integers for 1.0 in a residual of the first stage.
RESIDUAL_UNIT = 2**10
#: Share of the pool whose coordinates are longer than the bound of the first stage.
CLIPPED = 0.37
#: Bound of later stages over that of the first: residuals have become smaller.
LATER_BOUND = 0.8
#: What each record adds to the coordinate that counts records, over the bound of the rest.
COUNT_SHARE = 0.1


@dataclass(frozen=True, eq=False)
class MomentStages:
    """Public terms of a release in stages.

    Attributes
    ----------
    pool : ndarray of int64, shape (n_public, n_coordinates)
        Coordinates of the public points, the constant's last.
    n_classes : int
    units : tuple of int
        Integers for 1.0 in a residual, of each stage; the bound in integers is the same in all.
    bound, count : int
        As for `Residuals`.
    n_records : int or None
        Public under replace-one; None where the sums count them.
    sigma : float
        Scale of the noise on each integer.
    """

    pool: IntArray
    n_classes: int
    units: tuple[int, ...]
    bound: int
    count: int
    n_records: int | None
    sigma: float

    def fit_after(self, sums: Sequence[IntArray]) -> MomentFit:
        """Return the model that follows from the sums of the first stages."""
        fit = MomentFit.start(self.pool, self.n_classes)
        for number, total in enumerate(sums):
            moments = total[:-1] if self.count else total
            fit = fit.after(
                ReleasedMoments(
                    moments.reshape(fit.weights.shape),
                    self.sigma,
                    self.units[number],
                    self._records_of(sums[: number + 1]),
                )
            )
        return fit

    def _records_of(self, sums: Sequence[IntArray]) -> float:
        """Return the number of records: public, or the mean of what the stages counted."""
        if not self.count:
            assert self.n_records is not None
            return float(self.n_records)
        counted = float(np.mean([total[-1] for total in sums])) / self.count
        # fewer than the noise could hide are taken for as many as it could
        return max(counted, self.sigma / self.count / math.sqrt(len(sums)), 1.0)

    def asked_after(self, sums: Sequence[IntArray]) -> Residuals:
        """Return what the next stage asks."""
        model = self.fit_after(sums).model
        return Residuals(model, self.units[len(sums)], self.bound, self.count)

    def outcome_of(self, sums: Sequence[IntArray]) -> tuple[dict[str, Any], IntArray]:
        """Return the weights after each stage, for the certificate, and the classes of the pool."""
        models = [self.fit_after(sums[: n + 1]).model for n in range(len(sums))]
        weights = [model.weights.ravel().tolist() for model in models]
        return {"weights": weights}, models[-1].labels(self.pool)


def staged_sums(
    pool: IntArray,
    classes: Sequence[Any],
    budget: PrivacyBudget,
    *,
    n_stages: int,
    n_records: int | None,
    neighbours: str,
    basis: Mapping[str, Any],
    points_sha256: str,
) -> StagedSums:
    """Return what the door is asked.

    Parameters
    ----------
    pool : ndarray of int64, shape (n_public, n_coordinates)
        Coordinates of the public points, the constant's last.
    classes : sequence
    budget : PrivacyBudget
    n_stages : int
    n_records : int or None
        Public number of records; None lets the sums count them.
    neighbours : {"add-remove", "replace-one"}
    basis : mapping
        Name and settings of the basis, for the certificate.
    points_sha256 : str
        Digest of the public points.
    """
    n_classes = len(classes)
    n_columns = 1 if n_classes == 2 else n_classes
    # The first stage predicts all classes alike, so every residual has this length.
    residual = 0.5 if n_classes == 2 else math.sqrt(1 - 1 / n_classes)
    longest = np.quantile(np.linalg.norm(pool / UNIT, axis=1), 1 - CLIPPED)
    rest = max(1, round(residual * longest * UNIT * RESIDUAL_UNIT))
    count = 0 if n_records is not None else max(1, round(COUNT_SHARE * rest))
    bound = math.isqrt(rest**2 + count**2)
    # later residuals in finer units: their bound is smaller, and the same in integers
    units = (RESIDUAL_UNIT, *[round(RESIDUAL_UNIT / LATER_BOUND)] * (n_stages - 1))
    coordinates = pool.shape[1] * n_columns + (count > 0)
    replaced = neighbours == "replace-one"
    squared = (4 if replaced else 1) * bound**2
    sigma = calibrate_vector_sum(budget, squared, coordinates, n_stages)
    stages = MomentStages(pool, n_classes, units, bound, count, n_records, sigma)
    mechanism = NoisyVectorSum(sigma, bound, coordinates, replaced)
    about = {
        "name": NAME,
        "n_stages": n_stages,
        "n_classes": n_classes,
        "sigma": sigma,
        "bound": bound,
        "coordinates": coordinates,
        "residual_units": list(units),
        "count": count,
        "n_records": n_records,
        "basis": dict(basis),
        "basis_sha256": hashlib.sha256(pool.astype("<i8").tobytes()).hexdigest(),
        "budget": budget.to_json(),
    }
    return StagedSums(
        mechanism,
        n_stages,
        budget,
        about,
        stages.asked_after,
        stages.outcome_of,
        tuple(classes),
        points_sha256,
    )
