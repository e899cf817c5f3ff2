"""Students (public side): from released values and public points to a model that may be published."""

from secretballot.students.fitting import default_student, fit_student, learns_from_counts
from secretballot.students.graph_counts import GraphCountsClassifier
from secretballot.students.noisy_counts import NoisyCountsClassifier

__all__ = ["GraphCountsClassifier", "NoisyCountsClassifier", "default_student", "fit_student", "learns_from_counts"]
