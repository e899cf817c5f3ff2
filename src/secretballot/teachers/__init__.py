"""The private side: partition units, train teachers, count their votes.

It knows no noise, no price, no student.
"""

from secretballot.teachers.ensemble import TeacherEnsemble
from secretballot.teachers.votes import label_votes, number_votes

__all__ = ["TeacherEnsemble", "label_votes", "number_votes"]
