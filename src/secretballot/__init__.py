"""Learn publishable models from private labels with any black-box learner.

The way of the data is the way of the folders. Private records are cut into shards (`ensemble.partition`); one teacher
per shard (`ensemble.teachers`) votes on public points (`ensemble.votes`); a recipe (`aggregation`) answers through the
one door (`door`); a student (`students`) learns from what comes out (`released`).

Names load on first use, so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from secretballot.aggregation import GaussianAggregator, SparseVectorAggregator
    from secretballot.door import PaidChoice, estimate_minority, estimate_stability, release
    from secretballot.ensemble.votes import VoteCounts
    from secretballot.exceptions import (
        BudgetError,
        CertificateError,
        DataError,
        LedgerError,
        ParameterError,
        ResourceError,
        SamplerError,
        SecretBallotError,
    )
    from secretballot.learners.active import ActivePATEClassifier, label_actively
    from secretballot.learners.agnostic import AgnosticLabeler
    from secretballot.learners.choice import choose_candidate
    from secretballot.learners.hold_out import hold_out
    from secretballot.learners.label_private import LabelPrivateClassifier
    from secretballot.learners.pate import PATEClassifier
    from secretballot.learners.plan_run import classifier_by_plan, read_plan
    from secretballot.learners.relabel import relabel
    from secretballot.learners.semi_private import SemiPrivateClassifier
    from secretballot.learners.session import LabelingSession
    from secretballot.learners.stability import StabilityLabeler
    from secretballot.learners.teaching import TrainedTeachers, train_teachers
    from secretballot.learners.universal import UniversalLabeler
    from secretballot.planning.plan import Plan
    from secretballot.planning.planner import plan
    from secretballot.privacy.accounting import PrivacyBudget
    from secretballot.privacy.ledger import Ledger
    from secretballot.released import ReleasedLabels
    from secretballot.report.verification import verify_certificate
    from secretballot.students import GraphCountsClassifier, HypothesisStudent, NoisyCountsClassifier, VotingStudent

_HOMES = {
    "ActivePATEClassifier": "learners.active",
    "AgnosticLabeler": "learners.agnostic",
    "BudgetError": "exceptions",
    "CertificateError": "exceptions",
    "DataError": "exceptions",
    "GaussianAggregator": "aggregation",
    "GraphCountsClassifier": "students",
    "HypothesisStudent": "students",
    "LabelPrivateClassifier": "learners.label_private",
    "LabelingSession": "learners.session",
    "Ledger": "privacy.ledger",
    "LedgerError": "exceptions",
    "NoisyCountsClassifier": "students",
    "PATEClassifier": "learners.pate",
    "PaidChoice": "door",
    "Plan": "planning.plan",
    "ParameterError": "exceptions",
    "PrivacyBudget": "privacy.accounting",
    "ReleasedLabels": "released",
    "ResourceError": "exceptions",
    "SamplerError": "exceptions",
    "SecretBallotError": "exceptions",
    "SemiPrivateClassifier": "learners.semi_private",
    "SparseVectorAggregator": "aggregation",
    "StabilityLabeler": "learners.stability",
    "TrainedTeachers": "learners.teaching",
    "UniversalLabeler": "learners.universal",
    "VoteCounts": "ensemble.votes",
    "VotingStudent": "students",
    "choose_candidate": "learners.choice",
    "classifier_by_plan": "learners.plan_run",
    "estimate_minority": "door",
    "estimate_stability": "door",
    "hold_out": "learners.hold_out",
    "label_actively": "learners.active",
    "plan": "planning.planner",
    "read_plan": "learners.plan_run",
    "relabel": "learners.relabel",
    "release": "door",
    "train_teachers": "learners.teaching",
    "verify_certificate": "report.verification",
}

# Rooms that are used by their own names, as in secretballot.queries.MarginSampling.
_ROOMS = ("audit", "hypotheses", "planning", "queries", "theory")

__all__ = [
    "ActivePATEClassifier",
    "AgnosticLabeler",
    "BudgetError",
    "CertificateError",
    "DataError",
    "GaussianAggregator",
    "GraphCountsClassifier",
    "HypothesisStudent",
    "LabelPrivateClassifier",
    "LabelingSession",
    "Ledger",
    "LedgerError",
    "NoisyCountsClassifier",
    "PATEClassifier",
    "PaidChoice",
    "ParameterError",
    "Plan",
    "PrivacyBudget",
    "ReleasedLabels",
    "ResourceError",
    "SamplerError",
    "SecretBallotError",
    "SemiPrivateClassifier",
    "SparseVectorAggregator",
    "StabilityLabeler",
    "TrainedTeachers",
    "UniversalLabeler",
    "VoteCounts",
    "VotingStudent",
    "__version__",
    "choose_candidate",
    "classifier_by_plan",
    "estimate_minority",
    "estimate_stability",
    "hold_out",
    "label_actively",
    "plan",
    "read_plan",
    "relabel",
    "release",
    "train_teachers",
    "verify_certificate",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return import_module(f"secretballot.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'secretballot' has no attribute {name!r}")
    value = getattr(import_module(f"secretballot.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
