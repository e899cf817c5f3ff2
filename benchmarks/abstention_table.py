"""Teachers that a table of abstentions and a sparse vector need, and what they answer.

First the number of teachers at which a lead of 0.6 K is answered with probability .999, for several
numbers T of abstentions. Then, for a stream in which one query in a hundred is at a tie and all
others lead by 0.6 K, how many of the clear ones are answered on average before the T-th abstention,
with the best T. Public numbers alone; a minute of one processor.

Run: python benchmarks/abstention_table.py
"""

import math
from collections.abc import Callable

from secretballot.accounting import (
    PrivacyBudget,
    calibrate_abstention_table,
    calibrate_sparse_vector,
    needed_distance,
)
from secretballot.core.events import Stream
from secretballot.exceptions import ParameterError

Calibrate = Callable[[PrivacyBudget, int], Stream]

KINDS: dict[str, Calibrate] = {
    "sparse vector": calibrate_sparse_vector,
    "table": calibrate_abstention_table,
}
STOPS = (1, 10, 50, 200, 1000)
TEACHERS = (250, 1000, 5000, 10_000)
LEAD = 0.6  # of the teachers
UNSTABLE = 0.01  # share of queries at a tie
MISSED = (0.5, 0.9, 0.99, 0.999, 0.9999)  # chances of an answer at which a number T is tried


def teachers_needed(event: Stream) -> int:
    """Return the number of teachers K at which a lead of `LEAD` K is answered with .999."""
    return math.ceil((needed_distance(event) + 1) / (LEAD / 2))


def largest_stop(kind: Calibrate, budget: PrivacyBudget, distance: int, chance: float) -> int:
    """Return the largest T at which a query at `distance` is answered with `chance`; 0 if none."""

    def holds(t: int) -> bool:
        try:
            return needed_distance(kind(budget, t), chance) <= distance
        except ParameterError:
            return False

    low, high = 0, 1
    while holds(high):
        low, high = high, 2 * high
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def stable_answers(kind: Calibrate, budget: PrivacyBudget, n_teachers: int) -> tuple[int, int]:
    """Return the clear queries that are answered before the stop, on average, with the best T."""
    distance = math.ceil(LEAD * n_teachers / 2) - 1
    best = (0, 0)
    for chance in MISSED:
        t = largest_stop(kind, budget, distance, chance)
        # an abstention comes of a tie, or of a clear query that is missed
        refused = UNSTABLE + (1 - UNSTABLE) * (1 - chance)
        best = max(best, (math.floor(t / refused * (1 - UNSTABLE) * chance), t))
    return best


def main() -> None:
    """Print both tables, at (1, 1e-6)."""
    budget = PrivacyBudget(1.0, 1e-6)
    print("teachers for a lead of 0.6 K, answered with .999 (distance):")
    for name, kind in KINDS.items():
        cells = [
            (teachers_needed(event), needed_distance(event))
            for event in (kind(budget, t) for t in STOPS)
        ]
        print(
            f"  {name:<14}",
            *(f"T={t}: {k:,} ({d:,.0f})" for t, (k, d) in zip(STOPS, cells, strict=True)),
        )
    print("clear queries answered, one query in a hundred at a tie (best T):")
    for n_teachers in TEACHERS:
        cells = [(name, *stable_answers(kind, budget, n_teachers)) for name, kind in KINDS.items()]
        print(f"  K={n_teachers:<7,}", *(f"{name}: {m:,} (T={t:,})" for name, m, t in cells))


if __name__ == "__main__":
    main()
