"""The one seam of golden runs: partition key, secret samples and noise are fixed, and what is
opened, reserved and drawn is written down.

Noise is zero, or a small integer that follows from the number of the release and the coordinate
alone: neither another batching nor another name moves anything. All that knows the library's
present modules stands in `_patches`.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from golden.dice import number_of
from secretballot._typing import IntArray

RUN = "golden run"
SPREAD = 7  # noise of a run that has some goes from -3 to 3


class Trace:
    """What one run opened and paid, release by release; releases are numbered as they are
    reserved."""

    def __init__(self) -> None:
        self.prices: list[tuple[float, float]] = []
        self._opened: dict[int, list[IntArray]] = {}
        self._inside = False

    @property
    def release(self) -> int:
        return len(self.prices)

    def reserved(self, delta: float, epsilon: float) -> None:
        self.prices.append((epsilon, delta))

    def watch(self, opening: Callable[..., Any]) -> Callable[..., Any]:
        """Return a method that opens private integers, and writes them down."""

        def opened(sealed: Any, *args: Any) -> Any:
            if self._inside:  # a whole that is made of parts is written down once
                return opening(sealed, *args)
            self._inside = True
            try:
                found = opening(sealed, *args)
            finally:
                self._inside = False
            for one in found[:1] if hasattr(sealed, "classes") else found:  # not predictions
                self._opened.setdefault(self.release, []).append(np.array(one))
            return found

        return opened

    def opened(self) -> list[dict[str, Any]]:
        """Return for each release what was opened: its digest, its sum, and the first twenty
        rows."""
        return [
            whole([row for part in parts for row in (part if part.ndim > 1 else [part])])
            for _, parts in sorted(self._opened.items())
        ]


def whole(rows: list[Any]) -> dict[str, Any]:
    """Return a digest of rows of integers, their sum, and the first twenty in full."""
    listed = [np.atleast_1d(np.asarray(row, dtype=np.int64)) for row in rows]
    text = ";".join(",".join(map(str, row.tolist())) for row in listed)
    return {
        "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
        "rows": len(listed),
        "sum": int(sum(int(row.sum()) for row in listed)),
        "first": [row[:20].tolist() for row in listed[:20]],
    }


class GoldenNoise:
    """Stand for the library's noise, without entropy."""

    exact, description = True, "none, for a golden run"

    def __init__(self, trace: Trace, hashed: bool) -> None:
        self._trace, self._hashed = trace, hashed
        self._drawn: dict[tuple[Any, ...], int] = {}
        self._scales: dict[int, list[tuple[Any, ...]]] = {}

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        return self._numbers("gaussian", sigma, size)

    def discrete_laplace(self, scale: float, size: int) -> IntArray:
        return self._numbers("laplace", scale, size)

    def uniform_integers(self, bits: int, size: int) -> IntArray:
        if not self._hashed:
            return np.full(size, 2 ** (bits - 1), dtype=np.int64)
        words = self._words("uniform", bits, size)
        return np.array([word % 2**bits for word in words], dtype=np.int64)

    def exponential_index(self, scores: IntArray, scale: float) -> int:
        return int(np.argmax(np.asarray(scores) + self._numbers("choice", scale, len(scores))))

    #: A law of its own, and the same seam: the index that is best under the numbers of the seam.
    flipped_index = exponential_index

    def exponential_range(
        self, starts: IntArray, ends: IntArray, scale: float
    ) -> tuple[int, int] | None:
        n = len(starts)
        first = np.asarray(starts) + self._numbers("starts", scale, n)
        gained = first[:, None] - np.asarray(ends)[None, :]
        gained[np.tril_indices(n, -1)] = gained.min() - 1  # the first place is not after the last
        place = int(gained.argmax())
        return divmod(place, n) if gained.flat[place] > 0 else None

    def _numbers(self, kind: str, scale: float, size: int) -> IntArray:
        if not self._hashed:
            return np.zeros(size, dtype=np.int64)
        words = self._words(kind, scale, size)
        return np.array([word % SPREAD - SPREAD // 2 for word in words], dtype=np.int64)

    def _words(self, kind: str, scale: float, size: int) -> list[int]:
        """Return the words of the next coordinates of a release, those of each scale apart."""
        release = self._trace.release
        scales = self._scales.setdefault(release, [])
        if (kind, scale) not in scales:
            scales.append((kind, scale))
        role = release, scales.index((kind, scale))  # which scale it is, not how large
        start = self._drawn.get(role, 0)
        self._drawn[role] = start + size
        return [number_of(RUN, *role, place) for place in range(start, start + size)]


def fixed_bytes(size: int) -> bytes:
    """Return bytes that follow from their number alone, for partition keys and secret samples."""
    blocks = (hashlib.sha256(f"{RUN}:{i}".encode()).digest() for i in range(-(-size // 32)))
    return b"".join(blocks)[:size]


@contextmanager
def golden(noise: str) -> Iterator[Trace]:
    """Run what follows with noise that is "zero" or "hashed", and trace it."""
    trace = Trace()
    with pytest.MonkeyPatch.context() as patch:
        _patches(patch, trace, GoldenNoise(trace, hashed=noise == "hashed"))
        yield trace


def _patches(patch: pytest.MonkeyPatch, trace: Trace, noise: GoldenNoise) -> None:
    from secretballot.accounting import delta_upper
    from secretballot.core import private, releasing
    from secretballot.core.ledger import Ledger
    from secretballot.learners import labelers, table

    for module, name in ((releasing, "noise_source"), (labelers, "noise_source")):
        patch.setattr(module, name, lambda: noise)
    for module in (table, labelers):
        patch.setattr(module, "entropy_bytes", fixed_bytes)
    for kind in (private.Votes, private.RecordSums, private.Scores):
        patch.setattr(kind, "_unseal", trace.watch(private.Sealed._unseal))
    reserve = Ledger.reserve

    def reserved(ledger: Ledger, events: Any, price: Any, **more: Any) -> int:
        number = reserve(ledger, events, price, **more)
        trace.reserved(delta_upper(events, price.epsilon), price.epsilon)
        return number

    patch.setattr(Ledger, "reserve", reserved)
