"""Statistical audits: valid p-values, power against wrong noise, and a black-box attack that
finds what is broken."""

import numpy as np

from exact_games.distributions import discrete_gaussian_distribution
from exact_games.statistics import delta_lower
from exact_games.worlds import drawn_labels
from secretballot.core.mechanisms import NoisyVotes, State
from secretballot.core.noise import ExactNoise
from sessions import sparse

RNG = np.random.default_rng(20211013)


def test_the_attack_passes_a_sound_mechanism_and_catches_one_with_too_little_noise():
    runs, counts, neighbour = 20_000, [4, 5], [5, 4]
    law = discrete_gaussian_distribution(1.5)
    promised = float(law.at_least(0) - np.exp(0.2) * law.at_least(1))

    def outputs(sigma, row):
        release = drawn_labels(NoisyVotes(scale=sigma), 9)
        return release(np.tile(row, (runs, 1)), ExactNoise())

    assert delta_lower(outputs(1.5, counts), outputs(1.5, neighbour), 0.2) <= promised
    assert delta_lower(outputs(0.7 * 1.5, counts), outputs(0.7 * 1.5, neighbour), 0.2) > promised


def test_the_attack_catches_a_stream_that_does_not_stop():
    runs, here, there = 1000, np.tile([0, 3], 60), np.tile([1, 2], 60)
    promise, endless = sparse(2.0, 1, 1), sparse(2.0, 1, 120)
    epsilon = 1.5  # one "below": 1 / 2 + 2 / 2 nats, and delta 0

    def outputs(mechanism, values):
        sign = np.tile([-1, 1], 60)
        answers = (mechanism._passed(values, ExactNoise(), State())[0] for _ in range(runs))
        return np.array([sign[: len(above)] @ above > 14 for above in answers])

    assert delta_lower(outputs(promise, here), outputs(promise, there), epsilon) == 0
    assert delta_lower(outputs(endless, here), outputs(endless, there), epsilon) > 0.05
