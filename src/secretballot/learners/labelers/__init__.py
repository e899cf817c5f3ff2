"""Classification-query release: labelers that are fitted once and answer public points as they
come."""
