"""A secret random sample of private records, drawn from the operating system's entropy and never
kept as row numbers.

A smaller price is due to it only as long as nobody learns who was sampled, and only for the one
reservation that it was drawn for: once a release has told something of the sample, a second one on
the same sample is not amplified.
"""

import numpy as np
from numpy.typing import NDArray

from secretballot._typing import IntArray
from secretballot._validation import check_count
from secretballot.core.noise import entropy_bytes
from secretballot.exceptions import Parameter, ParameterError


def sample_in_random_order(n_records: int, n_sampled: int) -> IntArray:
    """Return rows drawn uniformly without replacement, in uniformly random order, shape
    (n_sampled,).

    The order matters: rows are dealt to teachers by their place in it. A sample in the order of the
    table would move many records to other teachers when one of them is exchanged for one further
    up, and nothing would be amplified.

    Raises
    ------
    ParameterError
        If a number is below 1, or more are drawn than there are.
    """
    if not check_count("n_sampled", n_sampled) <= check_count("n_records", n_records):
        raise ParameterError(
            Parameter("n_sampled"),
            f" is {n_sampled} of {n_records} records; it must be at most all of them.",
        )
    while True:
        keys = _random_words(n_records)
        order = np.argsort(keys)
        # distinct keys are in every order with the same probability; equal ones, once in 2^64 / n^2
        # draws, are redrawn
        if (np.diff(keys[order]) > 0).all():
            return order[:n_sampled].astype(np.int64)


def sample_independently(n_records: int, sampled: int, out_of: int) -> IntArray:
    """Return the rows taken, each by itself with probability sampled / out_of (less 2^-64 at most),
    in their order.

    Raises
    ------
    ParameterError
        If a number is below 1, or the probability above 1.
    """
    if not check_count("sampled", sampled) <= check_count("out_of", out_of):
        raise ParameterError(
            Parameter("sampled"), f" is {sampled} out of {out_of}; it must be at most all of them."
        )
    if sampled == out_of:
        return np.arange(n_records, dtype=np.int64)
    # a lower rate costs less, so rounding down keeps the price
    return np.flatnonzero(_random_words(n_records) < np.uint64(sampled * 2**64 // out_of)).astype(
        np.int64
    )


def _random_words(n: int) -> NDArray[np.uint64]:
    return np.frombuffer(entropy_bytes(8 * n), dtype=np.uint64)
