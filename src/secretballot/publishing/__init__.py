"""Make what is published in a process of its own, from released values and public inputs alone."""
