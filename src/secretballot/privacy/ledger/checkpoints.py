"""Checkpoints: what all rows of a ledger before one of them come to, so that a new reader need not
read them all.

A checkpoint is a row of the chain like any other, written every thousand rows. Its sums are exact,
but the divergences in them are those of the program that priced them, so it names that program:
another one prices anew.
"""

import functools
import hashlib
import json
import math
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import erfcx, ndtr

from secretballot.privacy import accounting
from secretballot.privacy.accounting import Filter, Totals

__all__ = ["EVERY", "Checkpoint", "priced_by"]

EVERY = 1000  # rows from one checkpoint to the next, or a few more


@dataclass(frozen=True)
class Checkpoint:
    """What the rows before a checkpoint come to.

    Attributes
    ----------
    reservations, parts, closings : int
        How many there are.
    totals : Totals
        Sums over all reservations.
    open_parts : mapping of int to int
        How many parts each open reservation has, where it has any.
    priced_by : str
        The program that priced them.
    """

    reservations: int
    parts: int
    closings: int
    totals: Totals
    open_parts: Mapping[int, int]
    priced_by: str

    @property
    def counts(self) -> tuple[object, ...]:
        """All that does not depend on a program's prices."""
        return self.reservations, self.parts, self.closings, dict(self.open_parts)

    def to_row(self) -> tuple[int, int, int, str, str, str]:
        """Return the columns of its row but the last."""
        totals = json.dumps([self.totals.grants, str(self.totals.loss), str(self.totals.failure)])
        open_parts = json.dumps(sorted(self.open_parts.items()))
        return self.reservations, self.parts, self.closings, totals, open_parts, self.priced_by

    @classmethod
    def of_row(cls, columns: Sequence[Any]) -> "Checkpoint | None":
        """Return what a row says, None where no program of ours can have written it."""
        reservations, parts, closings, totals, open_parts, program = columns[:6]
        try:
            grants, loss, failure = json.loads(totals)
            sums = Totals(int(grants), Fraction(loss), Fraction(failure))
            given = {int(reservation): int(count) for reservation, count in json.loads(open_parts)}
        except (ValueError, TypeError, ArithmeticError, RecursionError):
            return None
        sound = sums.loss >= 0 and sums.failure >= 0
        if sums.grants != reservations or not sound:
            return None
        return cls(reservations, parts, closings, sums, given, program)


def priced_by(rule: Filter) -> str:
    """Return what names the program whose prices are in the sums of a filter.

    None where it adds up decimals.
    """
    return "decimals" if rule.order is None else _pricing_program()


@functools.cache
def _pricing_program() -> str:
    """Return a digest of all that may move the last digit of a price.

    Our own sources, and what computes them.

    The C library and the processor have no version to ask for, so their functions are tried out.
    """
    sources = sorted(Path(str(accounting.__file__)).parent.glob("*.py"))
    # nothing distinguishes two programs: then none takes over another one's sums
    if not sources:
        return f"unknown since {time.time_ns()}"
    digest = hashlib.sha256()
    for source in sources:
        digest.update(hashlib.sha256(source.read_bytes()).digest())
    versions = [metadata.version(name) for name in ("numpy", "scipy")]
    digest.update(json.dumps([*versions, platform.python_version(), platform.machine()]).encode())
    digest.update(_last_digits())
    return digest.hexdigest()


def _last_digits() -> bytes:
    """Return what the functions in prices make of some hundred numbers, here and now, to the
    last digit."""
    some = np.geomspace(1e-6, 30.0, 600)
    of_arrays = [
        np.exp(some),
        np.expm1(-some),
        np.log(some),
        np.log1p(some),
        np.sinh(some),
        ndtr(-some),
        erfcx(some),
    ]
    of_numbers = [
        [f(x) for x in some.tolist()]
        for f in (math.exp, math.expm1, math.log, math.log1p, math.sinh)
    ]
    return np.array([*of_arrays, *of_numbers]).tobytes()
