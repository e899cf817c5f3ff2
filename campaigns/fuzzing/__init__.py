"""Hostile inputs for every parser of the program; `python -m campaigns.fuzzing --help`.

Inputs are made by Hypothesis from genuine files: cells, fields, members and bytes are edited, so
that most inputs come far before they are refused. Every input is read in a child process with a
bound on memory and time.
"""
