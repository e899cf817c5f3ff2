"""The private side: partition units, train teachers, count their votes. It knows no noise, no price, no student."""

from secretballot.ensemble.partition import KeyedHashPartition, PositionPartition
from secretballot.ensemble.teacher_names import teacher_by_name
from secretballot.ensemble.teachers import Progress, TeacherEnsemble
from secretballot.ensemble.votes import VoteCounts

__all__ = [
    "KeyedHashPartition",
    "PositionPartition",
    "Progress",
    "TeacherEnsemble",
    "VoteCounts",
    "teacher_by_name",
]
