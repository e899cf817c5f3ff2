"""The law of permute-and-flip, and choices that are scripted."""

import itertools

import numpy as np


def flip_law(scores, scale):
    """Return the chance of each candidate: it shows heads, and is drawn among all heads.

    One of 1 + N is the mean of t^N over t from 0 to 1, and the coins of the others are independent:
    a polynomial of t, which a rule of Gauss and Legendre integrates exactly.
    """
    given = np.asarray(scores)
    heads = np.exp((given - given.max()) / scale)[:, None]
    nodes, weights = np.polynomial.legendre.leggauss(len(given) // 2 + 1)
    coins = 1 - heads + heads * (nodes + 1) / 2
    return (heads * coins.prod(axis=0) / coins) @ weights / 2


class ScriptedChoice:
    """Answers a choice with a fixed outcome, and keeps what it was asked to weigh."""

    exact, description = True, "scripted"

    def __init__(self):
        self.outcome, self.law = 0, np.ones(1)

    def exponential_index(self, scores, scale):
        weights = np.exp((scores - scores.max()) / scale)
        self.law = weights / weights.sum()
        return self.outcome

    def flipped_index(self, scores, scale):
        self.law = flip_law(scores, scale)
        return self.outcome

    def exponential_range(self, starts, ends, scale):
        ranges = list(itertools.combinations_with_replacement(range(len(starts)), 2))
        drawn = self.exponential_index(
            np.array([0, *(int(starts[i] - ends[j]) for i, j in ranges)]), scale
        )
        return ranges[drawn - 1] if drawn else None

    def discrete_laplace(self, scale, size):
        return np.zeros(size, dtype=np.int64)
