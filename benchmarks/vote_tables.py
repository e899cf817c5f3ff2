"""How many labels fit a promise, by tables of chances and by Gaussian noise, and how long it takes
to find them.

    python benchmarks/vote_tables.py

All at (1, 1e-6) with 250 teachers. First the most labels such that a vote of 200 to 50 is wrong
with at most the stated probability: priced as the counts that they are read off, as labels of more
than two classes, as labels of two, and as a table. The noise of two classes is on one count, that
of more on two. Then processor seconds of a calibration and of the second verifier.
"""

import subprocess
import sys
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from scipy.special import ndtri

from secretballot.accounting import (
    BinaryLabels,
    ClassLabels,
    Counts,
    GaussianChances,
    PrivacyBudget,
    delta_upper,
    table_labels,
    teacher_shape,
)
from secretballot.accounting.recipes import right_chance

BUDGET, TEACHERS, VOTES = PrivacyBudget(1.0, 1e-6), 250, 200
ERRORS = (0.1, 0.05, 0.01, 0.001)
TIMED = """
import sys, time
import secretballot_verify
from secretballot.accounting import BinaryLabels, PrivacyBudget, calibrate_vote_table
start = time.process_time()
table = calibrate_vote_table(PrivacyBudget(1.0, 1e-6), int(sys.argv[1]), 250)
found = time.process_time() - start
start = time.process_time()
event = BinaryLabels(chances=table, queries=int(sys.argv[1]))
price = secretballot_verify.price_of(event.model_dump(mode="json"), 1.0, 1e-6)
said = "confirmed" if price.upper <= 1e-6 * (1 + secretballot_verify.ERROR) else "undecided"
print(f"{found:6.1f} s, {said} in {time.process_time() - start:6.1f} s")
"""


def most(fits: Callable[[int], bool]) -> int:
    """Return the largest number of labels that fits."""
    return bisect_left(range(1, 1025), True, key=lambda n: not fits(n))


def numbers_of_labels(error: float) -> list[int]:
    """Return how many labels fit, of every kind."""
    # the noise of one count of two classes, which is at 75 votes from the middle
    sigma = (VOTES - TEACHERS / 2) / -float(ndtri(error))
    chances = GaussianChances(sigma=sigma, n_teachers=TEACHERS)
    kinds: list[Callable[[int], Any]] = [
        lambda n: Counts(sigma=sigma, shifts=n),
        # of more classes two counts are 150 votes apart, each with noise of its own
        lambda n: ClassLabels(sigma=2**0.5 * sigma, queries=n),
        lambda n: BinaryLabels(chances=chances, queries=n),
    ]
    found = [
        most(lambda n, kind=kind: delta_upper([kind(n)], BUDGET.epsilon) <= BUDGET.delta)
        for kind in kinds
    ]

    def table_fits(n: int) -> bool:
        table, shape = (
            table_labels(BUDGET, teacher_shape(n, 2, TEACHERS)),
            teacher_shape(1, 2, TEACHERS),
        )
        return 1 - right_chance(table, 2 * VOTES - TEACHERS, shape) <= error

    return [*found, most(table_fits)]


def main() -> None:
    """Print both tables."""
    print("| error of that vote | counts | more classes | two classes | table |")
    print("|---|---|---|---|---|")
    for error in ERRORS:
        print(
            f"| {100 * error:g} % | {' | '.join(map(str, numbers_of_labels(error)))} |", flush=True
        )
    for queries in (20, 50, 118, 204, 321, 1000, 5000):
        command = [sys.executable, "-c", TIMED, str(queries)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(queries, done.stdout.strip(), flush=True)


if __name__ == "__main__":
    main()
