"""Recorded prices of all lists, and how far today's prices have moved from them.

A price is compared on one side: never below what the list can tell (`golden.truth`), and at most
the tolerance above the recorded one. One that fell is a finding too, until a section of the proofs
explains it.
"""

import functools
import math
import os
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

from golden.adapters import delta_at, prices_of
from golden.lists import FEW, LISTS, a_list, digest_of_lists
from golden.moved import LAST_DIGITS, Moved
from golden.truth import least_of

RECORDED = Path(__file__).parent / "prices.csv"
USUAL, MOST = 1.002, 1.01  # of the recorded price, on 99 lists of 100 and on all
MORE = 1e-4  # of epsilon, which is no more anywhere
NEGLIGIBLE = 1e-15  # delta; below it nothing is promised
SLACK = 1e-12  # for sums of floats in the enumerations


@dataclass(frozen=True)
class Row:
    """Prices of one list, and what they are at least."""

    delta: float
    epsilon: float
    least_delta: float
    least_epsilon: float


@functools.cache  # the digest is of ten thousand lists
def recorded() -> list[Row]:
    """Return the recorded prices, one row a list.

    Raises
    ------
    ValueError
        If the file belongs to other lists.
    """
    digest, *rows = RECORDED.read_text().splitlines()
    if digest != digest_of_lists():
        raise ValueError("The lists are not those that prices.csv was recorded for.")
    return [Row(*map(float, row.split(","))) for row in rows]


def write(rows: Iterable[Row]) -> None:
    """Replace the recorded prices."""
    lines = [
        f"{r.delta:.9g},{r.epsilon:.9g},{r.least_delta:.6g},{r.least_epsilon:.6g}" for r in rows
    ]
    RECORDED.write_text("\n".join([digest_of_lists(), *lines]) + "\n")


def moved(number: int, row: Row, delta: float, epsilon: float) -> list[Moved]:
    """Return how the prices of one list differ from the recorded ones."""
    listed = a_list(number)
    dearer = max(delta, NEGLIGIBLE) > MOST * max(row.delta, NEGLIGIBLE)
    if dearer and delta_at(listed, listed["epsilon"] + MORE) <= row.delta:
        dearer = False
    much = epsilon > max(MOST * row.epsilon, row.epsilon + MORE)
    kinds = "+".join(event["kind"] for event in listed["events"])
    name = f"list {number} ({kinds})"
    return [
        *_one(f"{name} delta", row.delta, delta, row.least_delta, NEGLIGIBLE, dearer),
        *_one(f"{name} epsilon", row.epsilon, epsilon, row.least_epsilon, 1e-9, much),
    ]


def _one(
    entry: str, old: float, new: float, least: float, floor: float, dearer: bool
) -> list[Moved]:
    usual, fell = USUAL * max(old, floor), (1 - LAST_DIGITS) * old - floor * LAST_DIGITS
    if not new >= least * (1 - 1e-5) - SLACK:
        return [Moved(entry, old, new, "below")]
    if new < fell and max(old, new) > floor:
        return [Moved(entry, old, new, "fell")]
    if dearer:
        return [Moved(entry, old, new, "dearer")]
    return [Moved(entry, old, new, "above")] if new > usual else []


def all_moved(numbers: range) -> list[Moved]:
    """Return what moved among the lists of these numbers, priced now."""
    return _moved_of(numbers, _spread(_prices, numbers))


def rows_moved(rows: list[Row]) -> list[Moved]:
    """Return what moved between the recorded rows and all new ones."""
    return _moved_of(range(LISTS), [(row.delta, row.epsilon) for row in rows])


def _moved_of(numbers: range, new: list[tuple[float, float]]) -> list[Moved]:
    """Return what moved; what is beyond the usual tolerance alone is left out where it is one list
    of a hundred at most, as it may be."""
    rows, found = recorded(), []
    for number, (delta, epsilon) in zip(numbers, new, strict=True):
        found += moved(number, rows[number], delta, epsilon)
    above = [one for one in found if one.finding in ("above", "dearer")]
    few_enough = len(above) <= max(1, len(numbers) // 50)  # two prices a list
    return [one for one in found if not (few_enough and one.finding == "above")]


def new_rows() -> list[Row]:
    """Return rows of all lists as the library prices them."""
    return [Row(*row) for row in _spread(_row, range(LISTS))]


def _prices(number: int) -> tuple[float, float]:
    return prices_of(a_list(number))


def _row(number: int) -> tuple[float, ...]:
    listed = a_list(number)
    return *prices_of(listed), *least_of(listed)


def _spread(work, numbers: range):
    if len(numbers) <= FEW:
        return list(map(work, numbers))
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        return list(pool.map(work, numbers, chunksize=20))


def is_fine(rows: list[Row]) -> bool:
    """Return whether no recorded price is below what its list can tell."""
    return all(
        row.delta >= row.least_delta * (1 - 1e-5) - SLACK
        and (math.isinf(row.epsilon) or row.epsilon >= row.least_epsilon * (1 - 1e-5) - SLACK)
        for row in rows
    )
