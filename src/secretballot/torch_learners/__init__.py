"""PyTorch modules as classifiers, one shard at a time or many at once.

Torch itself is imported when the first of them learns, and never before.
"""
