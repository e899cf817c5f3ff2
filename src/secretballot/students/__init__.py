"""Students (public side): from released values and public points to a publishable model."""

from secretballot.students.fitting import default_student, fit_student, learns_from_counts
from secretballot.students.graph_counts import GraphCountsClassifier
from secretballot.students.hypothesis_student import HypothesisStudent
from secretballot.students.moments_student import MomentsStudent
from secretballot.students.noisy_counts import NoisyCountsClassifier
from secretballot.students.numbered_classes import NumberedClassesClassifier
from secretballot.students.record_votes import RecordVotesStudent
from secretballot.students.table_students import LabelsStudent, NumberStudent, fit_table_student
from secretballot.students.voting import VotingStudent

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
