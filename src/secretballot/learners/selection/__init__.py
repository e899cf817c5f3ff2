"""The semi-private learner and the private selection among candidates."""
