"""Which public point to ask next. Sees public points and released labels only."""
