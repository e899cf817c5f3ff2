"""Whether sealed diagnostics of private votes support a setting: a study for the curator alone."""
