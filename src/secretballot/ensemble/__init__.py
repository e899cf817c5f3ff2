"""The private side: partition units, train teachers, count their votes.

It knows no noise, no price, no student.
"""

from secretballot.core.partition import KeyedHashPartition, PositionPartition
from secretballot.ensemble.teachers import Progress, TeacherEnsemble
from secretballot.ensemble.vote_tables import LabelVotes, NumberVotes
from secretballot.ensemble.votes import VoteCounts
from secretballot.named_learners import teacher_by_name

__all__ = [
    "KeyedHashPartition",
    "LabelVotes",
    "NumberVotes",
    "PositionPartition",
    "Progress",
    "TeacherEnsemble",
    "VoteCounts",
    "teacher_by_name",
]
