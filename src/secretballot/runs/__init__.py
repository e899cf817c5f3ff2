"""Whole jobs, from files to folders: what the command line calls. They compose the modules below
and draw no noise."""
