"""Kills, full disks, races, hung and lost connections.

What is checked after every blow is the same: nothing is spent twice for one answer, nothing is
answered that was not paid, the release is whole or absent, the same command goes on, and nothing is
left behind.
"""
