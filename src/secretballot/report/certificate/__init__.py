"""Certificates: how they are built, what fields and events mean, and how they are verified."""
