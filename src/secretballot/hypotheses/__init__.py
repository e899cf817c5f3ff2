"""Classes of hypotheses that can be searched exactly: learner, dichotomies, version spaces. Knows no private data."""
