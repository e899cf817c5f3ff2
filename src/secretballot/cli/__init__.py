"""The command line: it translates words into calls and results into sentences, and computes
nothing."""

from secretballot.cli.app import app, main

__all__ = ["app", "main"]
