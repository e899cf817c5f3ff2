"""A service that an institution runs: HTTP in front of sessions, and the clients that ask it.

It translates and never computes. Points come in and go to a `LabelingSession`; what that returns
goes out. Every answer is released as in Python: reserved, drawn, on the disk, then returned.
"""
