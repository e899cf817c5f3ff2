"""The search for the best setting of a task: `settings`, their `evaluation`, `best_setting`."""
