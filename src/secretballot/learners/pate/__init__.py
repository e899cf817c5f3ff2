"""PATE classifiers: passive, active in rounds, and for private labels of public points."""
