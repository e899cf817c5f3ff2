"""Kills, full disks and races; `python -m campaigns.torture --help`.

What is checked after every blow is the same: nothing is spent twice for one answer, nothing is
answered that was not paid, the release is whole or absent, the same command goes on, and nothing is
left behind.
"""
