"""Every record votes for itself, at the public points nearest to it."""
