"""Exact integer noise from the operating system's entropy: the only room that reads entropy.

Noise is drawn by OpenDP's samplers of the discrete Laplace and the discrete Gaussian law (Canonne, Kamath,
Steinke 2020, arXiv:2004.00010), which decide every bit by exact rational arithmetic. Nothing here can be
seeded; a test that needs a fixed stream injects a `NoiseSource` of its own.
"""

import functools
import importlib.metadata
import os
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from secretballot._validation import check_count, check_positive
from secretballot.exceptions import ParameterError

__all__ = ["MAX_SCALE", "ExactNoise", "IntArray", "NoiseSource", "check_scale", "entropy_bytes"]

IntArray = NDArray[np.int64]

# Noise of this scale leaves the 62-bit range, where sums with counts could wrap, with probability below
# exp(-2^22).
MAX_SCALE = 2.0**40
_CHUNK = 1 << 14  # draws per call: about a tenth of a second, so an interrupt is answered soon
_MAX_THREADS = 4

_Sampler = Callable[[int], IntArray]


class NoiseSource(Protocol):
    """Draws of integer noise, independent of each other and of everything drawn before.

    Attributes
    ----------
    exact : bool
        Whether the drawn law is the stated one, bit for bit.
    description : str
        One line for the certificate.
    """

    @property
    def exact(self) -> bool: ...

    @property
    def description(self) -> str: ...

    def discrete_laplace(self, scale: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-|x| / scale)."""
        ...

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-x^2 / (2 sigma^2))."""
        ...


@functools.lru_cache(maxsize=64)
def _measurement(law: str, scale: float) -> Any:
    """Return OpenDP's measurement that adds noise of `law` to a vector of 64-bit integers."""
    import opendp.prelude as dp  # takes a second beside scikit-learn, so only who draws pays for it

    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T="i64"))
    if law == "laplace":
        return dp.m.make_laplace(domain, dp.l1_distance(T="i64"), scale=scale)
    return dp.m.make_gaussian(domain, dp.l2_distance(T="f64"), scale=scale)


def _sampler(law: str, scale: float) -> _Sampler:
    measurement = _measurement(law, scale)

    def draw(size: int) -> IntArray:
        # a vector of another length must fail here rather than be broadcast as one draw used many times
        return np.array(measurement([0] * size), dtype=np.int64).reshape(size)

    return draw


class ExactNoise:
    """Draw exact discrete noise, in a few threads and in bounded memory beside the result.

    The object holds no state: no seed, no position in a stream. It pickles and copies freely, and whatever a
    KeyboardInterrupt stops is discarded.
    """

    @property
    def exact(self) -> bool:
        """Whether the drawn law is the stated one, bit for bit."""
        return True

    @property
    def description(self) -> str:
        """One line for the certificate."""
        version = importlib.metadata.version("opendp")
        return (
            f"discrete Laplace and discrete Gaussian by exact rational arithmetic, OpenDP {version}, "
            "cryptographic generator seeded by the operating system"
        )

    def discrete_laplace(self, scale: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-|x| / scale).

        Parameters
        ----------
        scale : float
            Positive, at most `MAX_SCALE`.
        size : int
            At least 0.

        Returns
        -------
        ndarray of int64, shape (size,)

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        """
        return _draw("laplace", check_scale("scale", scale), check_count("size", size, minimum=0))

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-x^2 / (2 sigma^2)).

        Parameters
        ----------
        sigma : float
            Positive, at most `MAX_SCALE`.
        size : int
            At least 0.

        Returns
        -------
        ndarray of int64, shape (size,)

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        """
        return _draw("gaussian", check_scale("sigma", sigma), check_count("size", size, minimum=0))


def entropy_bytes(n: int) -> bytes:
    """Return `n` bytes of the operating system's entropy, for keys and identifiers.

    Raises
    ------
    ParameterError
        If `n` is not a whole number of at least 1.
    """
    return secrets.token_bytes(check_count("n", n))


def check_scale(name: str, value: object) -> float:
    """Return a noise scale as a float: positive and at most `MAX_SCALE`, or raise `ParameterError`."""
    scale = check_positive(name, value)
    if not scale <= MAX_SCALE:
        raise ParameterError(f"{name} is {scale!r}; it must be at most 2^40, as larger noise does not fit 64-bit sums.")
    return scale


def _draw(law: str, scale: float, size: int) -> IntArray:
    sampler = _sampler(law, scale)
    if size <= _CHUNK:
        return sampler(size)
    return _draw_in_threads(sampler, size)


def _draw_in_threads(sampler: _Sampler, size: int) -> IntArray:
    """Fill `size` draws chunk by chunk; OpenDP releases the interpreter lock while it draws."""
    result = np.empty(size, dtype=np.int64)
    starts = iter(range(0, size, _CHUNK))
    stop = threading.Event()
    lock = threading.Lock()

    def fill() -> None:
        while not stop.is_set():
            with lock:
                start = next(starts, None)
            if start is None:
                return
            end = min(start + _CHUNK, size)
            result[start:end] = sampler(end - start)

    workers = min(_MAX_THREADS, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers, thread_name_prefix="secretballot-noise") as pool:
        try:
            for future in [pool.submit(fill) for _ in range(workers)]:
                future.result()
        finally:
            stop.set()
    return result
