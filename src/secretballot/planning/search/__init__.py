"""The search for the best setting of a task."""
