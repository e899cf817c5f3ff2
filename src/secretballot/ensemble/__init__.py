"""The private side: partition units, train teachers, count their votes.

It knows no noise, no price, no student.
"""

from secretballot.core.partition import KeyedHashPartition, PositionPartition
from secretballot.ensemble.teachers import Progress, TeacherEnsemble
from secretballot.ensemble.vote_tables import label_votes, number_votes
from secretballot.named_learners import teacher_by_name

__all__ = [
    "KeyedHashPartition",
    "PositionPartition",
    "Progress",
    "TeacherEnsemble",
    "label_votes",
    "number_votes",
    "teacher_by_name",
]
