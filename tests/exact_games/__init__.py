"""Exact games on small worlds and tests of draws: a second opinion beside the core."""
