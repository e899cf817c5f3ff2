"""Labels from tables of chances beside labels under Gaussian noise, at one price.

    python benchmarks/vote_tables.py [labels] [orders] [margins] [adult] [times]

All at (1, 1e-6) with 250 teachers. `labels`: the most labels such that a vote of 200 to 50 is wrong
with at most the stated probability. `orders`: the same for tables made by a Renyi divergence of an
order a tenth smaller and larger than the calibration takes. `margins`: how often votes of several
margins are wrong, at one number of labels. `adult`: right labels of real votes (the votes of 250
teachers on Adult). `times`: processor seconds of a calibration and of the second verifier.
"""

import subprocess
import sys
from collections.abc import Callable

import numpy as np

from public_data import data_folder
from secretballot.accounting import (
    BinaryLabels,
    PrivacyBudget,
    TableChances,
    delta_upper,
    noisy_votes,
    table_labels,
    teacher_shape,
)
from secretballot.accounting.calibration import _order_of_table as order_of_table
from secretballot.accounting.recipes import right_chance
from secretballot.accounting.table_weights import table_weights
from secretballot.core.label_games import CHANCE_BITS
from secretballot.core.mechanisms import Mechanism, NoisyVotes, TableLabels

BUDGET, TEACHERS, MARGIN = PrivacyBudget(1.0, 1e-6), 250, 150
ERRORS = (0.1, 0.05, 0.01, 0.001)
MARGINS = (2, 10, 20, 40, 60, 80, 100, 150, 200)
ASKED = (50, 200)
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


def table(queries: int) -> TableLabels:
    return table_labels(BUDGET, teacher_shape(queries, 2, TEACHERS))


def noise(queries: int) -> NoisyVotes:
    return noisy_votes(BUDGET, teacher_shape(queries, 2, TEACHERS))


def right(mechanism: Mechanism, margin: int) -> float:
    return right_chance(mechanism, margin, teacher_shape(1, 2, TEACHERS))


def most_labels(calibrated: Callable[[int], Mechanism], error: float) -> int:
    """Return the largest number of labels that leaves the margin wrong at most so often."""
    low, high = 1, 512
    while low < high:
        middle = (low + high + 1) // 2
        if 1 - right(calibrated(middle), MARGIN) <= error:
            low = middle
        else:
            high = middle - 1
    return low


def tell_labels() -> None:
    print("error of a vote of 200 to 50 | Gaussian noise | table")
    for error in ERRORS:
        numbers = " | ".join(str(most_labels(one, error)) for one in (noise, table))
        print(f"{100 * error:g} % | {numbers}", flush=True)


def table_of_order(queries: int, order: float) -> BinaryLabels:
    """Return the table that differs between neighbours by the largest divergence of an order."""

    def made(divergence: float) -> BinaryLabels:
        return BinaryLabels(
            chances=TableChances(
                weights=table_weights(TEACHERS, order, divergence), n_teachers=TEACHERS
            ),
            queries=queries,
        )

    low, high = 0.1 / queries, 10.0 / queries
    while high / low > 1.0002:
        middle = (low * high) ** 0.5
        fits = delta_upper([made(middle)], BUDGET.epsilon) <= BUDGET.delta
        low, high = (middle, high) if fits else (low, middle)
    return made(low)


def tell_orders() -> None:
    print("error of a vote of 200 to 50 | an order .9 of the usual | the usual | 1.1")
    for error, usual in zip(ERRORS, (321, 205, 118, 79), strict=True):
        numbers = []
        for share in (0.9, 1.0, 1.1):
            order = share * order_of_table(BUDGET, usual, TEACHERS)
            low, high = int(0.96 * usual), int(1.04 * usual) + 1
            while low < high:
                middle = (low + high + 1) // 2
                event = table_of_order(middle, order)
                wrong = event.weights[min(MARGIN // 2, len(event.weights) - 1)] / 2**CHANCE_BITS
                low, high = (middle, high) if wrong <= error else (low, middle - 1)
            numbers.append(str(low))
        print(f"{100 * error:g} % | {' | '.join(numbers)}", flush=True)


def tell_margins() -> None:
    for queries in ASKED:
        print(f"{queries} labels: margin | wrong under Gaussian noise | wrong from a table")
        both = noise(queries), table(queries)
        for margin in MARGINS:
            wrong = " | ".join(f"{1 - right(one, margin):.3g}" for one in both)
            print(f"{margin} | {wrong}", flush=True)


def tell_adult() -> None:
    votes = np.load(data_folder() / "votes" / "adult_250_teachers.npy").astype(int)
    margins = np.abs(votes[:, 1] - votes[:, 0])
    counted = np.bincount(margins, minlength=TEACHERS + 1) / len(margins)
    print("labels | majority told by Gaussian noise | by a table")
    for queries in (25, 50, 100, 200, 400):
        shares = [
            sum(share * right(one, margin) for margin, share in enumerate(counted))
            for one in (noise(queries), table(queries))
        ]
        print(f"{queries} | {100 * shares[0]:.2f} % | {100 * shares[1]:.2f} %", flush=True)


def tell_times() -> None:
    for queries in (20, 50, 118, 204, 321, 1000, 5000):
        command = [sys.executable, "-c", TIMED, str(queries)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(queries, done.stdout.strip(), flush=True)


if __name__ == "__main__":
    asked = sys.argv[1:] or ["labels", "orders", "margins", "adult", "times"]
    if "labels" in asked:
        tell_labels()
    if "orders" in asked:
        tell_orders()
    if "margins" in asked:
        tell_margins()
    if "adult" in asked:
        tell_adult()
    if "times" in asked:
        tell_times()
