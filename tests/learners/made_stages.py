"""Stages of record moments on a pool, and sums as they could have been released."""

import numpy as np

from secretballot.accounting import PrivacyBudget
from secretballot.core.types import Guarantee
from secretballot.learners.moment_stages import MomentStages, MomentTarget

BUDGET = PrivacyBudget(1.0, 1e-5)
RECORD = Guarantee(unit="record", relation="add-remove")


def stages_of(pool, n_stages=3, *, classes=(0, 1), budget=BUDGET, about=RECORD, **more):
    """Return stages for records of some classes, none of them expected to be uncovered."""
    given = {"n_records": None, "expected_uncovered": 0.0, **more}
    target = MomentTarget.of_classes(classes)
    return MomentStages.of_records(pool, target, budget, about, n_stages=n_stages, **given)


def sums_of(stages, n, uncovered, seed):
    """Return a sum of large numbers, whose marks say that so many records are uncovered."""
    total = np.random.default_rng(seed).integers(-(10**9), 10**9, stages.shape.coordinates)
    total[-2:] = stages.mark_weight * n, stages.mark_weight * int(n * uncovered)
    return total
