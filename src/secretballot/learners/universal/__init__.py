"""The universal labeler: voting first, then one hypothesis for all further points."""
