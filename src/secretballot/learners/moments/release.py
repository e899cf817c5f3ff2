"""Noisy sums over records, stage by stage: what is asked, released and certified."""

import hashlib
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from secretballot._typing import IntArray
from secretballot.accounting import PrivacyBudget
from secretballot.bases.integer_model import LARGEST_WEIGHT
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import Terms
from secretballot.core.private import RecordSums
from secretballot.core.releasing import Released, release
from secretballot.core.types import LARGEST
from secretballot.learners.moments.stages import MomentStages
from secretballot.learners.moments.vectors import LARGEST_SCALE, Residuals
from secretballot.released import ReleasedLabels, ReleasedSums
from secretballot.releasing import check_readable
from secretballot.report.certificate.build import certificate_of, describe_released
from secretballot.report.certificate.models import CLASS_WEIGHTS, class_value


def release_moments(
    sums: Callable[[Residuals], RecordSums],
    stages: MomentStages,
    ledger: Ledger,
    budget: PrivacyBudget,
    *,
    basis: Mapping[str, Any],
    points_sha256: str,
    request: str | None,
    purpose: str,
    declaration: Mapping[str, object],
) -> ReleasedLabels | ReleasedSums:
    """Release the noisy sums of all stages, and what follows from them.

    Parameters
    ----------
    sums : callable
        Returns the sum of what a stage asks of every record; called once all that can be refused by
        public numbers was.
    stages : MomentStages
    ledger, budget, purpose
        As for `secretballot.core.releasing.release`.
    basis : mapping
        Name and settings of the basis, for the certificate.
    points_sha256 : str
        Digest of the public points.
    request : str or None
        A new key by default.
    declaration : mapping
        As for `certificate_of`.

    Returns
    -------
    ReleasedLabels or ReleasedSums
        Labels of the public points by the last model, where there are classes, with the
        certificate, which holds the sums.

    Raises
    ------
    ParameterError, BudgetError, LedgerError, SamplerError
        As for `secretballot.core.releasing.release`.

    Privacy
    -------
    Unit, relation, sensitivity : of `stages.shape`, in each stage, whatever earlier ones released.
    Price : one `VectorSum` over all stages, adaptively composed.
    """
    classes = stages.target.classes
    public = _public_of(stages, basis)
    asked = {
        "classes": [class_value(value) for value in classes],
        "points_sha256": points_sha256,
        "declaration": dict(declaration),
    }

    def certified(
        done: Released, outcome: Mapping[str, Any], labels: IntArray
    ) -> ReleasedLabels | ReleasedSums:
        rows = np.arange(len(labels))
        # no teachers vote: the labels are those of one model
        described = describe_released(rows, labels, classes, 0, points_sha256=points_sha256)
        certificate = certificate_of(
            replace(done, public=public),
            described | {"values": done.values.tolist()},
            follows=outcome,
            declaration=declaration,
        )
        if not classes:
            return ReleasedSums(certificate)
        return ReleasedLabels(rows, labels, classes, 0, certificate=certificate)

    def check(planned: Released) -> None:
        widest = replace(planned, values=planned.values - LARGEST)
        labels = np.zeros(len(stages.pool) if classes else 0, dtype=np.int64)
        check_readable(certified(widest, _widest_outcome(stages), labels).certificate)

    done = release(
        Terms(stages.mechanism, stages.shape, budget, public | {"asked": asked}, purpose),
        lambda before: sums(stages.asked_after([rows[0] for rows in before])),
        ledger,
        request=uuid.uuid4().hex if request is None else request,
        check=check,
    )
    return certified(done, *stages.outcome_of(list(done.values)))


def _public_of(stages: MomentStages, basis: Mapping[str, Any]) -> dict[str, Any]:
    """Return the public settings, as JSON values."""
    weights = stages.class_weights
    return {
        "method": stages.target.name,
        **stages.target.about,
        "residual_units": list(stages.units),
        "mark_weight": stages.mark_weight,
        "marks": list(stages.marks),
        "expected_uncovered": stages.expected_uncovered,
        "n_records": stages.n_records,
        "basis": dict(basis),
        # of one byte order, so that every machine finds the same digest
        "basis_sha256": hashlib.sha256(stages.pool.astype("<i8").tobytes()).hexdigest(),
        **({} if stages.start is None else {"start": stages.start.to_json()}),
        # what they come to follows from the sums
        **({} if weights is None else {CLASS_WEIGHTS: weights}),
    }


def _widest_outcome(stages: MomentStages) -> dict[str, Any]:
    """Return what sums come to, as long as any."""
    n_stages, width = len(stages.units), stages.shape.coordinates - len(stages.marks)
    widest: dict[str, Any] = {
        "weights": [[-LARGEST_WEIGHT] * width] * n_stages,
        "covered_only": [False] * n_stages,
        "scales": [[LARGEST_SCALE] * stages.n_coordinates] * n_stages,
    }
    if stages.class_weights is not None:
        widest[CLASS_WEIGHTS] = [sys.float_info.min] * len(stages.target.classes)
    return widest
