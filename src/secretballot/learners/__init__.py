"""Estimators with the face of scikit-learn, by family. They compose the rooms below and draw no
noise."""

from typing import TYPE_CHECKING, Any

from secretballot._lazy import load_name

if TYPE_CHECKING:
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

_HOMES = {
    "ActivePATEClassifier": "pate.active",
    "AgnosticLabeler": "labelers.agnostic",
    "LabelPrivateClassifier": "pate.label_private",
    "LabelingSession": "labelers.session",
    "PATEClassifier": "pate.classifier",
    "PATEMultiLabelClassifier": "pate.multi_label",
    "PATERegressor": "pate.regressor",
    "RecordMomentsClassifier": "moments.estimators",
    "RecordMomentsRegressor": "moments.estimators",
    "RecordVotesClassifier": "record_votes.classifier",
    "SemiPrivateClassifier": "selection.semi_private",
    "StabilityLabeler": "labelers.stability",
    "TrainedTeachers": "training.trained",
    "UniversalLabeler": "universal.labeler",
    "ask_actively": "online.asked_session",
    "choose_candidate": "selection.candidates",
    "hold_out": "selection.hold_out",
    "label_actively": "pate.active",
    "relabel": "labelers.relabel",
    "train_teachers": "training.trained",
}
_ROOMS: tuple[str, ...] = ()

__all__ = [
    "ActivePATEClassifier",
    "AgnosticLabeler",
    "LabelPrivateClassifier",
    "LabelingSession",
    "PATEClassifier",
    "PATEMultiLabelClassifier",
    "PATERegressor",
    "RecordMomentsClassifier",
    "RecordMomentsRegressor",
    "RecordVotesClassifier",
    "SemiPrivateClassifier",
    "StabilityLabeler",
    "TrainedTeachers",
    "UniversalLabeler",
    "ask_actively",
    "choose_candidate",
    "hold_out",
    "label_actively",
    "relabel",
    "train_teachers",
]


def __getattr__(name: str) -> Any:
    return load_name(__name__, name, _HOMES, _ROOMS)


def __dir__() -> list[str]:
    return sorted({*__all__, *_ROOMS})
