"""Students (public side): from released values and public points to a publishable model."""

from secretballot.students.fitting import (
    NumberedClassesClassifier,
    default_student,
    fit_student,
    learns_from_counts,
)
from secretballot.students.hypothesis_students import HypothesisStudent, VotingStudent
from secretballot.students.noisy_counts import GraphCountsClassifier, NoisyCountsClassifier
from secretballot.students.record_votes import RecordVotesStudent
from secretballot.students.table_students import (
    LabelsStudent,
    MomentsStudent,
    NumberStudent,
    fit_table_student,
)

__all__ = [
    "GraphCountsClassifier",
    "HypothesisStudent",
    "LabelsStudent",
    "MomentsStudent",
    "NoisyCountsClassifier",
    "NumberStudent",
    "NumberedClassesClassifier",
    "RecordVotesStudent",
    "VotingStudent",
    "default_student",
    "fit_student",
    "fit_table_student",
    "learns_from_counts",
]
