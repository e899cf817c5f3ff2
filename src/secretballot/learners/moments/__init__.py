"""Every record its own teacher: one noisy sum over records, in a basis that public points fix."""

from secretballot.learners.moments.classifier import RecordMomentsClassifier
from secretballot.learners.moments.label_private import LabelPrivateMomentsClassifier
from secretballot.learners.moments.multi_label import RecordMomentsMultiLabelClassifier
from secretballot.learners.moments.regressor import RecordMomentsRegressor

__all__ = [
    "LabelPrivateMomentsClassifier",
    "RecordMomentsClassifier",
    "RecordMomentsMultiLabelClassifier",
    "RecordMomentsRegressor",
]
