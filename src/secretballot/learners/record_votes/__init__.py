"""Every record votes for itself, at the public points nearest to it."""

from secretballot.learners.record_votes.classifier import RecordVotesClassifier, default_votes

__all__ = ["RecordVotesClassifier", "default_votes"]
