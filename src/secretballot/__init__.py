"""Learn publishable models from private labels with any black-box learner.

The way of the data is the way of the folders. Private records are cut into shards
(`core.partition`); one teacher per shard (`ensemble.teachers`) votes on public points
(`ensemble.votes`); a recipe (`aggregation`) answers through the one door (`door`); a student
(`students`) learns from what comes out (`released`).

Rooms are used by their own names, without an import of their own:

- `sb.learners`: estimators; `sb.students.fit_student`: another student from the same labels;
- `sb.planning.plan_text`: the text of a `plan`; `sb.theory.sample_sizes`: how many records the
  theorems ask for;
- `sb.write_release`, `sb.load_student`: a release on disk, and its student read back;
- `sb.accounting`, `sb.aggregation`, `sb.door`, `sb.ensemble`, `sb.queries`, `sb.hypotheses`,
  `sb.datasets`, `sb.audit`, `sb.report`, `sb.runs`: the parts that the estimators are made of.

Names load on first use, so that importing the package costs nothing.
"""

from typing import TYPE_CHECKING, Any

from secretballot._lazy import load_name

if TYPE_CHECKING:
    from secretballot import (
        accounting as accounting,
    )
    from secretballot import (
        aggregation as aggregation,
    )
    from secretballot import (
        audit as audit,
    )
    from secretballot import (
        datasets as datasets,
    )
    from secretballot import (
        ensemble as ensemble,
    )
    from secretballot import (
        exceptions as exceptions,
    )
    from secretballot import (
        hypotheses as hypotheses,
    )
    from secretballot import (
        learners as learners,
    )
    from secretballot import (
        planning as planning,
    )
    from secretballot import (
        publishing as publishing,
    )
    from secretballot import (
        queries as queries,
    )
    from secretballot import (
        report as report,
    )
    from secretballot import (
        runs as runs,
    )
    from secretballot import (
        service as service,
    )
    from secretballot import (
        students as students,
    )
    from secretballot import (
        theory as theory,
    )
    from secretballot.accounting import PrivacyBudget
    from secretballot.aggregation import (
        AbstentionTableAggregator,
        ConfidentAggregator,
        InteractiveAggregator,
        SparseVectorAggregator,
    )
    from secretballot.core.ledger import Ledger
    from secretballot.core.private import Votes
    from secretballot.core.releasing import Released
    from secretballot.door import estimate_stability, release
    from secretballot.ensemble.votes import (
        read_votes,
        votes_of_counts,
        votes_of_teachers,
        write_votes,
    )
    from secretballot.exceptions import (
        BudgetError,
        CertificateError,
        DataError,
        LedgerError,
        ParameterError,
        ResourceError,
        SamplerError,
        SecretBallotError,
        ServiceError,
    )
    from secretballot.learners.labelers.agnostic import AgnosticLabeler
    from secretballot.learners.labelers.relabel import relabel
    from secretballot.learners.labelers.session import LabelingSession
    from secretballot.learners.labelers.stability import StabilityLabeler
    from secretballot.learners.moments.estimators import (
        RecordMomentsClassifier,
        RecordMomentsRegressor,
    )
    from secretballot.learners.online.asked_session import ask_actively
    from secretballot.learners.pate.active import ActivePATEClassifier, label_actively
    from secretballot.learners.pate.classifier import PATEClassifier
    from secretballot.learners.pate.label_private import LabelPrivateClassifier
    from secretballot.learners.pate.multi_label import PATEMultiLabelClassifier
    from secretballot.learners.pate.regressor import PATERegressor
    from secretballot.learners.record_votes.classifier import RecordVotesClassifier
    from secretballot.learners.selection.candidates import choose_candidate
    from secretballot.learners.selection.hold_out import hold_out
    from secretballot.learners.selection.semi_private import SemiPrivateClassifier
    from secretballot.learners.training.trained import TrainedTeachers, train_teachers
    from secretballot.learners.universal.labeler import UniversalLabeler
    from secretballot.planning.plan.model import Plan
    from secretballot.publishing.release import write_release
    from secretballot.publishing.signing import new_signing_key, sign_release
    from secretballot.released import ReleasedLabels
    from secretballot.report.certificate.verify import verify_certificate
    from secretballot.report.student.export import load_student
    from secretballot.runs.plan import classifier_by_plan, plan
    from secretballot.runs.plan_files import read_plan
    from secretballot.runs.stored_records import store_table
    from secretballot.service.remote import RemoteSession, connect
    from secretballot.students import (
        GraphCountsClassifier,
        HypothesisStudent,
        MomentsStudent,
        NoisyCountsClassifier,
        RecordVotesStudent,
        VotingStudent,
        fit_student,
    )
    from secretballot.torch_learners.classifier import TorchClassifier

_HOMES = {
    "ActivePATEClassifier": "learners.pate.active",
    "AgnosticLabeler": "learners.labelers.agnostic",
    "BudgetError": "exceptions",
    "CertificateError": "exceptions",
    "AbstentionTableAggregator": "aggregation",
    "ConfidentAggregator": "aggregation",
    "DataError": "exceptions",
    "GraphCountsClassifier": "students",
    "HypothesisStudent": "students",
    "InteractiveAggregator": "aggregation",
    "LabelPrivateClassifier": "learners.pate.label_private",
    "LabelingSession": "learners.labelers.session",
    "Ledger": "core.ledger",
    "LedgerError": "exceptions",
    "MomentsStudent": "students",
    "NoisyCountsClassifier": "students",
    "PATEClassifier": "learners.pate.classifier",
    "PATEMultiLabelClassifier": "learners.pate.multi_label",
    "PATERegressor": "learners.pate.regressor",
    "Released": "core.releasing",
    "Plan": "planning.plan.model",
    "ParameterError": "exceptions",
    "PrivacyBudget": "accounting",
    "RecordMomentsClassifier": "learners.moments.estimators",
    "RecordMomentsRegressor": "learners.moments.estimators",
    "RecordVotesClassifier": "learners.record_votes.classifier",
    "RecordVotesStudent": "students",
    "ReleasedLabels": "released",
    "ResourceError": "exceptions",
    "SamplerError": "exceptions",
    "RemoteSession": "service.remote",
    "SecretBallotError": "exceptions",
    "SemiPrivateClassifier": "learners.selection.semi_private",
    "ServiceError": "exceptions",
    "SparseVectorAggregator": "aggregation",
    "StabilityLabeler": "learners.labelers.stability",
    "TorchClassifier": "torch_learners.classifier",
    "TrainedTeachers": "learners.training.trained",
    "UniversalLabeler": "learners.universal.labeler",
    "Votes": "core.private",
    "read_votes": "ensemble.votes",
    "votes_of_counts": "ensemble.votes",
    "votes_of_teachers": "ensemble.votes",
    "write_votes": "ensemble.votes",
    "VotingStudent": "students",
    "ask_actively": "learners.online.asked_session",
    "choose_candidate": "learners.selection.candidates",
    "classifier_by_plan": "runs.plan",
    "connect": "service.remote",
    "estimate_stability": "door",
    "fit_student": "students",
    "hold_out": "learners.selection.hold_out",
    "label_actively": "learners.pate.active",
    "new_signing_key": "publishing.signing",
    "sign_release": "publishing.signing",
    "load_student": "report.student.export",
    "plan": "runs.plan",
    "read_plan": "runs.plan_files",
    "relabel": "learners.labelers.relabel",
    "release": "door",
    "train_teachers": "learners.training.trained",
    "store_table": "runs.stored_records",
    "verify_certificate": "report.certificate.verify",
    "write_release": "publishing.release",
}

# Rooms that are used by their own names, as in secretballot.queries.MarginSampling.
_ROOMS = (
    "accounting",
    "aggregation",
    "audit",
    "bases",
    "core",
    "datasets",
    "door",
    "ensemble",
    "exceptions",
    "hypotheses",
    "learners",
    "planning",
    "publishing",
    "queries",
    "released",
    "report",
    "runs",
    "service",
    "students",
    "theory",
)

__all__ = [
    "AbstentionTableAggregator",
    "ActivePATEClassifier",
    "AgnosticLabeler",
    "BudgetError",
    "CertificateError",
    "ConfidentAggregator",
    "DataError",
    "GraphCountsClassifier",
    "HypothesisStudent",
    "InteractiveAggregator",
    "LabelPrivateClassifier",
    "LabelingSession",
    "Ledger",
    "LedgerError",
    "MomentsStudent",
    "NoisyCountsClassifier",
    "PATEClassifier",
    "PATEMultiLabelClassifier",
    "PATERegressor",
    "ParameterError",
    "Plan",
    "PrivacyBudget",
    "RecordMomentsClassifier",
    "RecordMomentsRegressor",
    "RecordVotesClassifier",
    "RecordVotesStudent",
    "Released",
    "ReleasedLabels",
    "RemoteSession",
    "ResourceError",
    "SamplerError",
    "SecretBallotError",
    "SemiPrivateClassifier",
    "ServiceError",
    "SparseVectorAggregator",
    "StabilityLabeler",
    "TorchClassifier",
    "TrainedTeachers",
    "UniversalLabeler",
    "Votes",
    "VotingStudent",
    "__version__",
    "ask_actively",
    "choose_candidate",
    "classifier_by_plan",
    "connect",
    "estimate_stability",
    "fit_student",
    "hold_out",
    "label_actively",
    "load_student",
    "new_signing_key",
    "plan",
    "read_plan",
    "read_votes",
    "relabel",
    "release",
    "sign_release",
    "store_table",
    "train_teachers",
    "verify_certificate",
    "votes_of_counts",
    "votes_of_teachers",
    "write_release",
    "write_votes",
]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    return load_name(__name__, name, _HOMES, _ROOMS)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
