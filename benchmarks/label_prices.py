"""How many labels fit a promise, and how long it takes to find the noise.

    python benchmarks/label_prices.py [labels] [times]

`labels`: with 250 teachers at (1, 1e-6), the noise is the one under which a vote of 200 to 50 is
wrong with the stated probability; how many labels fit at that noise, priced as the counts that they
are read off, as labels of more than two classes, and as labels of two. The noise of two classes
stands on one count, that of more on two. `times`: processor seconds of one calibration, in a
process of its own.
"""

import subprocess
import sys
from collections.abc import Callable

from scipy.special import ndtri

from secretballot.accounting import (
    BinaryLabels,
    ClassLabels,
    Counts,
    Event,
    GaussianChances,
    delta_upper,
)

EPSILON, DELTA, TEACHERS, VOTES = 1.0, 1e-6, 250, 200
ERRORS = (0.1, 0.05, 0.01, 0.001)
CALIBRATIONS = [
    (epsilon, delta, queries)
    for queries in (1_000, 5_000, 20_000)
    for epsilon, delta in ((0.1, 1e-6), (1.0, 1e-6), (1.0, 1e-5), (4.0, 1e-6))
]
TIMED = """
import sys, time
from secretballot import accounting
kind, epsilon, delta, queries, teachers = sys.argv[1:]
budget = accounting.PrivacyBudget(float(epsilon), float(delta))
start = time.process_time()
if kind == "two":
    known = None if teachers == "None" else int(teachers)
    sigma = accounting.calibrate_label_gaussian(budget, int(queries), known)
else:
    sigma = accounting.least_scale(
        budget, accounting.ClassLabels(sigma=1.0, queries=int(queries))
    )
print(f"{sigma:10.3f} votes {time.process_time() - start:7.2f} s")
"""


def most_labels(event: Callable[[int], Event]) -> int:
    """Return the largest number of labels whose event keeps the promise."""
    low, high = 1, 1024
    while low < high:
        middle = (low + high + 1) // 2
        if delta_upper([event(middle)], EPSILON) <= DELTA:
            low = middle
        else:
            high = middle - 1
    return low


def tell_labels() -> None:
    print("error of a vote of 200 to 50 | sigma | as counts | more classes | two classes")
    for error in ERRORS:
        # the noise of one count of two classes, which stands at 75 votes from the middle
        sigma = (VOTES - TEACHERS / 2) / -float(ndtri(error))
        # of more classes two counts stand 150 votes apart, each with noise of its own
        of_each = 2**0.5 * sigma

        def counts(n: int, sigma: float = sigma) -> Event:
            return Counts(sigma=sigma, shifts=n)

        def classes(n: int, sigma: float = of_each) -> Event:
            return ClassLabels(sigma=sigma, queries=n)

        def two(n: int, sigma: float = sigma) -> Event:
            return BinaryLabels(
                chances=GaussianChances(sigma=sigma, n_teachers=TEACHERS), queries=n
            )

        numbers = " | ".join(str(most_labels(one)) for one in (counts, classes, two))
        print(f"{100 * error:g} % | {sigma:.2f}, {of_each:.2f} | {numbers}", flush=True)


def tell_times() -> None:
    for epsilon, delta, queries in CALIBRATIONS:
        for kind, teachers in (("two", None), ("two", 250), ("more", None)):
            command = [sys.executable, "-c", TIMED, kind]
            numbers = [str(one) for one in (epsilon, delta, queries, teachers)]
            done = subprocess.run([*command, *numbers], capture_output=True, text=True, check=True)
            print(epsilon, delta, queries, kind, teachers, done.stdout.strip(), flush=True)


if __name__ == "__main__":
    asked = sys.argv[1:] or ["labels", "times"]
    if "labels" in asked:
        tell_labels()
    if "times" in asked:
        tell_times()
