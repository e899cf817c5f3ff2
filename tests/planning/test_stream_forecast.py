"""A simulated stream against the theory's forecast and against streams drawn one query
at a time."""

import numpy as np
import pytest

from made_events import sparse_event
from secretballot.core.mechanisms import State
from secretballot.planning.simulation.seeded_noise import SeededNoise
from secretballot.planning.simulation.stream_forecast import expected_stream
from secretballot.theory import stream_forecast
from sessions import sparse

RNG = np.random.default_rng(0)
DISTANCES = RNG.integers(0, 40, size=300)
RIGHT = (RNG.random(300) < 0.5 + DISTANCES / 80).astype(float)


@pytest.mark.parametrize(("n_queries", "max_abstentions"), [(1, 1), (50, 1), (200, 7), (60, 90)])
def test_answers_are_those_of_the_theory(n_queries: int, max_abstentions: int) -> None:
    event = sparse_event(3.0, 5.0, 12, max_abstentions)
    values, counts = np.unique(DISTANCES, return_counts=True)
    told = stream_forecast(event, n_queries, values.tolist(), (counts / counts.sum()).tolist())
    law = expected_stream(event, n_queries, DISTANCES, RIGHT)
    assert law.answered == pytest.approx(told.answered, rel=1e-9)
    assert law.low <= law.answered <= law.high
    assert 0 <= law.right <= law.answered


def test_right_answers_are_those_of_drawn_streams() -> None:
    mechanism = sparse(4.0, 15, 6)
    event = mechanism.stream_event()
    rng = np.random.default_rng(5)
    noise, found = SeededNoise(rng), []
    for _ in range(1500):
        rows = rng.integers(300, size=40)
        passed, _ = mechanism._passed(DISTANCES[rows], noise, State())
        found.append((passed.sum(), (passed * RIGHT[rows[: len(passed)]]).sum()))
    drawn = np.array(found, dtype=float)
    law = expected_stream(event, 40, DISTANCES, RIGHT)
    error = 4 * drawn.std(axis=0) / np.sqrt(len(drawn))
    assert abs(law.answered - drawn[:, 0].mean()) < error[0]
    assert abs(law.right - drawn[:, 1].mean()) < error[1]
    for beyond in (drawn[:, 0] < law.low, drawn[:, 0] > law.high):
        assert beyond.mean() < 0.05 + 0.02
    for inside in (drawn[:, 0] <= law.low + 1, drawn[:, 0] >= law.high - 1):
        assert inside.mean() > 0.05 - 0.02
