"""How far a run of record moments might have come out otherwise, by what it released alone.

The released model says how records of the public points would be labelled. Runs on such records,
with noise of the same scale, are tried in numbers that a seed draws: it is a computation on
released values, costs nothing, and may be shown to anybody.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from secretballot._typing import FloatArray, IntArray
from secretballot.core.types import Guarantee
from secretballot.foreign_code import one_thread
from secretballot.learners.moments.stages import MomentStages, MomentTarget
from secretballot.learners.moments.vectors import Records
from secretballot.released import ReleasedLabels
from secretballot.report.certificate.coverage import public_records
from secretballot.report.certificate.methods import CLASS_WEIGHTS
from secretballot.report.certificate.terms import stated
from secretballot.runs.moments_forecast import noisy_sums
from secretballot.students import MomentsStudent
from secretballot.teachers.rows import as_table, n_rows, take_rows

TURNS = 8
MOST_POOL = 5000
#: Released number of records above which other records make no difference worth trying.
MOST_RECORDS = 15_000
#: A released model is less sure of the classes than the truth is, so that what it says of a
#: difference is too little: by 2.0 in the median of seven settings on Adult and mushroom, of 300
#: to 10,000 records (docs/measurements.md).
UNSURE = 2.0


@dataclass(frozen=True)
class MomentsSpread:
    """How far a run might have come out otherwise.

    Attributes
    ----------
    deviation : float
        Standard deviation of the accuracy between such runs, as a share: by the released model's
        own probabilities, times `UNSURE`.
    changed : float
        Share of the public points that another run would label otherwise, on average.
    """

    deviation: float
    changed: float

    @property
    def words(self) -> str:
        """Both numbers in words."""
        return (
            f"such a run, repeated, would vary by about {100 * self.deviation:.1f} points of"
            f" accuracy, and label {100 * self.changed:.0f} % of the public points otherwise"
        )

    def to_json(self) -> dict[str, float]:
        """Return both numbers by their names."""
        return {"deviation": self.deviation, "changed": self.changed}


def moments_spread(
    model: MomentsStudent, released: ReleasedLabels, X_public: object, *, seed: int = 0
) -> MomentsSpread | None:
    """Return how far a run of record moments might have come out otherwise.

    None where so many records were counted that it makes no difference, where labels alone are
    private, where the stages started from an earlier release, or where decisions count classes by
    weights.

    Parameters
    ----------
    model : MomentsStudent
        That the released sums fix.
    released : ReleasedLabels
        With the certificate of the release.
    X_public : array, sparse matrix or frame of shape (n_public, n_features)
        The public points of the release; of more than five thousand, so many drawn by the seed.
    seed : int
        Of what is tried; it protects nothing.
    """
    terms, rng = stated(released.certificate), np.random.default_rng(seed)
    other = {"start", CLASS_WEIGHTS} & set(terms)
    if released.certificate["unit"] == "label" or other:
        return None
    rows = as_table(X_public)
    if n_rows(rows) > MOST_POOL:
        rows = take_rows(rows, np.sort(rng.choice(n_rows(rows), MOST_POOL, replace=False)))
    with one_thread():
        pool = model.basis.rows(rows)
        chances = model.predict_proba(rows)
        stages = MomentStages(
            pool,
            MomentTarget.of_classes(released.classes),
            tuple(terms["residual_units"]),
            terms["bound"],
            terms["mark_weight"],
            tuple(terms["marks"]),
            terms["expected_uncovered"],
            public_records(terms),
            terms["sigma"],
            Guarantee(**terms["guarantee"]),
            levels=model.basis.levels_,
        )
        # the released number, with its noise: all that is tried follows from the release
        n_records = max(1, round(stages.counted([np.array(one) for one in terms["values"]])[1]))
        if n_records > MOST_RECORDS:
            return None
        own = chances.argmax(axis=1)
        said = [_labels_of_run(stages, chances, n_records, rng) for _ in range(TURNS)]
    reached = [chances[np.arange(len(own)), labels].mean() for labels in said]
    changed = [np.mean(labels != own) for labels in said]
    return MomentsSpread(UNSURE * float(np.std(reached, ddof=1)), float(np.mean(changed)))


def _labels_of_run(
    stages: MomentStages, chances: FloatArray, n_records: int, rng: np.random.Generator
) -> IntArray:
    """Return the labels of the public points by a run on records drawn from the model."""
    rows = rng.integers(0, len(chances), n_records)
    drawn = (chances[rows].cumsum(axis=1) < rng.random((n_records, 1))).sum(axis=1)
    labels = np.minimum(drawn, chances.shape[1] - 1).astype(np.int64)
    # each counts once, and the public points cover all of them
    marks = np.zeros((n_records, len(stages.marks)), dtype=np.int64)
    marks[:, : len(stages.marks) - 1] = 1
    fresh = replace(stages, _known={})
    records = Records(stages.pool[rows], labels, marks)
    model: Any = fresh.after(noisy_sums(records, fresh, rng)).fit.model
    return np.asarray(model.labels(stages.pool))
