"""Recorded prices of all lists, and how far today's prices have moved from them.

A price is compared on one side: never below what the list can tell, and at most the tolerance above
the recorded one. One that fell is a finding too, until a section of the proofs explains it. What a
list tells at least was enumerated once, from the chances of all outcomes of runs on neighbouring
votes; lists never change, so it stays as it is recorded.
"""

import functools
import math
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, replace
from multiprocessing import get_context
from pathlib import Path

from golden.adapters import delta_at, prices_of
from golden.lists import FEW, a_list, digest_of_lists
from golden.moved import DEAREST, LAST_DIGITS, Moved

RECORDED = Path(__file__).parent / "prices.csv"
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


def write(prices: list[tuple[float, float]]) -> None:
    """Replace the recorded prices of all lists."""
    rows = [
        replace(row, delta=d, epsilon=e) for row, (d, e) in zip(recorded(), prices, strict=True)
    ]
    lines = ["{:.9g},{:.9g},{:.6g},{:.6g}".format(*astuple(row)) for row in rows]
    RECORDED.write_text("\n".join([digest_of_lists(), *lines]) + "\n")


def priced(numbers: range) -> list[tuple[float, float]]:
    """Return the delta and the epsilon of the lists of these numbers as the library has them."""
    if len(numbers) <= FEW:
        return list(map(_prices, numbers))
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        return list(pool.map(_prices, numbers, chunksize=20))


def _prices(number: int) -> tuple[float, float]:
    return prices_of(a_list(number))


def moved(numbers: range, prices: list[tuple[float, float]]) -> Iterator[Moved]:
    """Yield how the prices of the lists of these numbers differ from the recorded ones."""
    for number, (delta, epsilon) in zip(numbers, prices, strict=True):
        listed, row = a_list(number), recorded()[number]
        dearer = max(delta, NEGLIGIBLE) > DEAREST * max(row.delta, NEGLIGIBLE)
        if dearer and delta_at(listed, listed["epsilon"] + MORE) <= row.delta:
            dearer = False
        much = epsilon > max(DEAREST * row.epsilon, row.epsilon + MORE)
        name = f"list {number} ({'+'.join(event['kind'] for event in listed['events'])})"
        yield from _one(f"{name} delta", row.delta, delta, row.least_delta, NEGLIGIBLE, dearer)
        yield from _one(f"{name} epsilon", row.epsilon, epsilon, row.least_epsilon, 1e-9, much)


def _one(
    entry: str, old: float, new: float, least: float, floor: float, dearer: bool
) -> Iterator[Moved]:
    fell = (1 - LAST_DIGITS) * old - floor * LAST_DIGITS
    if not _is_enough(new, least):
        yield Moved(entry, old, new, "below")
    elif new < fell and max(old, new) > floor:
        yield Moved(entry, old, new, "fell")
    elif dearer:
        yield Moved(entry, old, new, "dearer")


def _is_enough(price: float, least: float) -> bool:
    return price >= least * (1 - 1e-5) - SLACK


def is_fine(rows: list[Row]) -> bool:
    """Return whether no recorded price is below what its list can tell."""
    return all(
        _is_enough(row.delta, row.least_delta)
        and (math.isinf(row.epsilon) or _is_enough(row.epsilon, row.least_epsilon))
        for row in rows
    )
