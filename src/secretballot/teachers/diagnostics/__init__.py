"""Exact statistics of private votes and teachers, sealed: they are not releasable."""
