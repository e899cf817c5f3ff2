"""How fast a key may ask: a bucket of tokens, filled by a clock that never jumps."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

__all__ = ["Rates"]

_MOST_KEYS = 10_000


class Rates:
    """Admit so many requests a second of each key, and a burst at once.

    Parameters
    ----------
    per_second : float
    burst : int
    clock : callable, optional
        Seconds that only go forward; another one is for tests.
    """

    def __init__(
        self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_of(self, key: str) -> float:
        """Take a token of a key; return 0, or in how many seconds there will be one."""
        with self._lock:
            now = self._clock()
            tokens, then = self._buckets.get(key, (float(self._burst), now))
            tokens = min(self._burst, tokens + (now - then) * self._per_second)
            if tokens < 1:
                return (1 - tokens) / self._per_second
            self._buckets[key] = (tokens - 1, now)
            self._buckets.move_to_end(key)
            if len(self._buckets) > _MOST_KEYS:
                self._buckets.popitem(last=False)
            return 0.0
