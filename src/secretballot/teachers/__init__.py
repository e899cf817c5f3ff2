"""The private side: partition units, train teachers, count their votes.

It knows no noise, no price, no student.
"""

from secretballot.core.partition import KeyedHashPartition, PositionPartition
from secretballot.named_learners import teacher_by_name
from secretballot.teachers.ensemble import TeacherEnsemble
from secretballot.teachers.training import Progress
from secretballot.teachers.votes import label_votes, number_votes

__all__ = [
    "KeyedHashPartition",
    "PositionPartition",
    "Progress",
    "TeacherEnsemble",
    "label_votes",
    "number_votes",
    "teacher_by_name",
]
