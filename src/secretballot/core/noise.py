"""Exact integer noise from the operating system's entropy: the only module that reads entropy.

Noise is drawn by OpenDP's samplers of the discrete Laplace and the discrete Gaussian distribution
(Canonne, Kamath, Steinke 2020, arXiv:2004.00010), which decide every bit by exact rational
arithmetic; a choice with exponential weights is drawn by intervals of integers, narrowed until
they decide it. Nothing here can be seeded; a test that needs a fixed stream injects a `Noise`
of its own.

Not every release of OpenDP drew what it should, so none is trusted unseen: `ready_sampler` refuses
versions that are known to be wrong and checks the others by drawing. Nothing is drawn for a release
before that.
"""

import functools
import importlib.metadata
import os
import secrets
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from typing import Any

import numpy as np

from secretballot.core.errors import SamplerError, check_count, check_positive, shown, wrong
from secretballot.core.exponential import drawn_flip, drawn_index, drawn_range
from secretballot.core.sampler import draws_wrong_noise, first_failure
from secretballot.core.types import IntArray, Noise

# Noise of this scale leaves the 62-bit range, where sums with counts could wrap, with probability
# below exp(-2^22).
_MAX_SCALE = 2.0**40
_CHUNK = 1 << 14  # draws per call: about a tenth of a second, so an interrupt is answered soon
_MAX_THREADS = 4
# finding a version takes a millisecond, as long as a small release
_version = functools.cache(importlib.metadata.version)


@functools.cache  # an error is not kept: the next call tries again
def ready_sampler() -> None:
    """Load the sampler and check it, once in a process.

    Do this before anything is paid: the version is read and compared with the list of wrong ones,
    the package is loaded, and the check draws from it. After that nothing is left to be loaded when
    noise is drawn.

    Raises
    ------
    SamplerError
        If OpenDP is missing or broken, has a version that is known to draw wrong noise, or fails
        the check.
    """
    version, cause = "none", None
    try:
        version = importlib.metadata.version("opendp")
        known = draws_wrong_noise(version)
        fault = "it is known to" if known else first_failure(_draw_noise, _CHUNK)
    except Exception as error:  # whatever a broken or a missing installation raises
        cause, fault = error, f"it cannot be loaded or does not draw: {type(error).__name__}"
    if fault is not None:
        raise SamplerError(
            f"OpenDP, version {shown(version)}, draws no right noise on this machine ({fault});"
            " install a right version, as pip install --force-reinstall 'opendp>=0.14.2,<0.17'"
            " does. Nothing was drawn for a release."
        ) from cause


@functools.lru_cache(maxsize=64)
def _noise_measurement(distribution: str, scale: float) -> Any:
    """Return OpenDP's measurement that adds noise of `distribution` to a vector of 64-bit
    integers."""
    # only who draws pays for the library; its prelude would bring scikit-learn too, in a second
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    if distribution == "laplace":
        return measurements.make_laplace(domain, metrics.l1_distance(T="i64"), scale=scale)
    return measurements.make_gaussian(domain, metrics.l2_distance(T="f64"), scale=scale)


class ExactNoise(Noise):
    """Draw exact discrete noise, in a few threads.

    The object holds no state: no seed, no position in a stream. It pickles and copies freely, and
    whatever a KeyboardInterrupt stops is discarded.
    """

    #: Whether the drawn distribution is the stated one, bit for bit.
    exact = True

    @property
    def description(self) -> str:
        """One line for the certificate."""
        return (
            "discrete Laplace and discrete Gaussian by exact rational arithmetic, OpenDP"
            f" {_version('opendp')}; exponential choices by intervals of integers, narrowed until"
            " decided; cryptographic generator seeded by the operating system"
        )

    def discrete_laplace(self, scale: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-|x| / scale).

        Parameters
        ----------
        scale : float
            Positive, at most `_MAX_SCALE`.
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
        return _draw_ready("laplace", _check_scale("scale", scale), size)

    def discrete_gaussian(self, sigma: float, size: int) -> IntArray:
        """Draw `size` integers with P(x) proportional to exp(-x^2 / (2 sigma^2)).

        Parameters
        ----------
        sigma : float
            Positive, at most `_MAX_SCALE`.
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
        return _draw_ready("gaussian", _check_scale("sigma", sigma), size)

    def uniform_integers(self, bits: int, size: int) -> IntArray:
        """Draw `size` integers, uniform on 0, ..., 2^bits - 1.

        Parameters
        ----------
        bits : int
            From 1 to 62.
        size : int
            At least 0.

        Returns
        -------
        ndarray of int64, shape (size,)
            Each made of fair bits of the operating system, eight bytes for each.

        Raises
        ------
        ParameterError
            If a parameter is out of its range.
        """
        if not 1 <= bits <= 62:
            raise wrong("bits", bits, "from 1 to 62, so that sums stay inside 64 bits")
        # the upper bits of each eight bytes
        drawn = np.frombuffer(secrets.token_bytes(8 * size), dtype="<u8")
        return (drawn >> np.uint64(64 - bits)).astype(np.int64)

    def exponential_index(self, scores: IntArray, scale: float) -> int:
        """Draw an index i with probability proportional to exp(scores[i] / scale).

        Parameters
        ----------
        scores : ndarray of int64, shape (n_candidates,)
            At most 2^40 in size.
        scale : float
            Positive, at most `_MAX_SCALE`; taken as the binary fraction it is.

        Returns
        -------
        int
            An index into `scores`.

        Raises
        ------
        ParameterError
            If `scale` is out of its range.

        Notes
        -----
        The distribution is exact. Let C(0) <= C(1) <= ... be the running sums of the weights of all
        distinct scores, W their total, and U a uniform real in [0, 1) whose binary digits are fair
        bits of the operating system. The score chosen is the g with C(g - 1) <= U W < C(g), which
        has probability weight(g) / W. U is known to b digits, the sums between integers that
        `exponential` proves; g is returned only if every U and all sums within these bounds
        give it, and otherwise more digits of U are drawn after those there are and the bounds are
        narrowed. So whenever it is decided, the result is the one that U determines; and as U W
        meets no C(g) with probability 1, it is decided in the end. Candidates of one score are
        drawn uniformly, an integer below their number.

        Time and memory grow with the sort of the candidates and one product of some hundred bits
        per distinct score within about 100 scales of the best.
        """
        return drawn_index(_gaps(scores), Fraction(_check_scale("scale", scale)), secrets.randbits)

    def flipped_index(self, scores: IntArray, scale: float) -> int:
        """Draw an index by permute-and-flip: of the candidates in random order, the first whose
        coin of chance exp((score - highest score) / scale) shows heads.

        Parameters, result and errors are those of `exponential_index`; the expected score is never
        lower.

        Notes
        -----
        Coins do not depend on the order, so the first head is uniform among all heads: every coin
        is flipped, and one of the heads is drawn. The distribution is exact: a coin is a uniform
        real, of which more digits are drawn until bounds of integers decide it.

        Source: McKenna, Sheldon 2020, arXiv:2010.12603, Algorithm 1.
        """
        return drawn_flip(_gaps(scores), Fraction(_check_scale("scale", scale)), secrets.randbits)

    def exponential_range(
        self, starts: IntArray, ends: IntArray, scale: float
    ) -> tuple[int, int] | None:
        """Draw a range of places from i to j >= i, or none, without listing them.

        Parameters
        ----------
        starts, ends : ndarray of int64, shape (m,)
            The range from place i to place j has the score starts[i] - ends[j]; no range has the
            score 0. At most 2^40 in size.
        scale : float
            Positive, at most `_MAX_SCALE`; taken as the binary fraction it is.

        Returns
        -------
        (int, int) or None
            First and last place, with probability proportional to exp(score / scale); None for no
            range.

        Raises
        ------
        ParameterError
            If `scale` is out of its range.

        Notes
        -----
        The distribution is exact. The outcomes are put into groups: no range, and the ranges that
        end at place 0, 1, ... The group is the one in which a uniform real falls, decided between
        the bounds that `range_bounds` proves and with more digits where it is open, as in
        `exponential_index`. Given the last place j, the weights of the ranges are proportional to
        exp(starts[i] / scale) for i <= j, so that the first place is one `exponential_index` among
        them, with bits of its own. The product of the two probabilities is the weight over the
        total.

        Time and memory: O(m), of numbers of some hundred bits.
        """
        return drawn_range(starts, ends, Fraction(_check_scale("scale", scale)), secrets.randbits)


def _gaps(scores: IntArray) -> IntArray:
    # of anything but integers this fails
    return np.asarray(np.subtract(scores.max(), scores, dtype=np.int64, casting="same_kind"))


def entropy_bytes(n: int) -> bytes:
    """Return `n` bytes of the operating system's entropy, for keys and identifiers.

    Raises
    ------
    ParameterError
        If `n` is not an integer of at least 1.
    """
    return secrets.token_bytes(check_count("n", n))


def _check_scale(name: str, value: object) -> float:
    """Return a noise scale as a float: positive and at most `_MAX_SCALE`.

    Raises
    ------
    ParameterError
        If it is no such number.
    """
    scale = check_positive(name, value)
    if not scale <= _MAX_SCALE:
        raise wrong(name, scale, "at most 2^40, as larger noise does not fit 64-bit sums")
    return scale


def _draw_ready(distribution: str, scale: float, size: int) -> IntArray:
    ready_sampler()
    return _draw_noise(distribution, scale, size)


def _draw_noise(distribution: str, scale: float, size: int) -> IntArray:
    measurement = _noise_measurement(distribution, scale)

    def draw(length: int) -> IntArray:
        # a vector of another length must fail here rather than be broadcast as one draw used many
        # times
        return np.array(measurement([0] * length), dtype=np.int64).reshape(length)

    if size <= _CHUNK:
        return draw(size)
    lengths = [min(_CHUNK, size - start) for start in range(0, size, _CHUNK)]
    workers = min(_MAX_THREADS, os.cpu_count() or 1)
    # OpenDP releases the interpreter lock while it draws
    with ThreadPoolExecutor(workers, thread_name_prefix="secretballot-noise") as pool:
        # after an error or an interrupt `map` lets go of the draws that nobody will use
        return np.concatenate(list(pool.map(draw, lengths)))
