"""Certificates: how they are built, what their fields and events mean, and how they are
verified."""
