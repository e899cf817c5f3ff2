"""Hostile inputs for every parser of the program.

Most are genuine files of which cells, fields, members or bytes are edited, so that they come far
before they are refused. Input `4.17` of a parser is the same on every machine:
`python -m campaigns.fuzzing PARSER 4.17 FOLDER` reads it again and leaves its files there.
"""
