"""Every record its own teacher: one noisy sum over records, in a basis that public points fix."""
