"""What a pickled learner keeps: its settings and what was released, and nothing of the place
where it was fitted; the same bytes for the same values.

A pickle writes two equal strings once or twice, depending on whether they are one object; it copies
the padding of structured arrays, which is what the memory held before; it writes down how often a
search tree was asked, and the global generator's state. All of it may depend on private records
that the same process has worked on.
"""

import copy
import io
import pickle
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from secretballot._seeded import own_global_states

_SEARCH_TREES = ("KDTree", "KDTree32", "KDTree64", "BallTree", "BallTree32", "BallTree64")
# In the state of a search tree: how much it has been asked so far, which depends on the points that
# were predicted.
_COUNTERS = slice(7, 11)


class LearnerState:
    """State of an estimator that learns by releases, in a canonical form.

    A pickle keeps parameters, released values, certificate and student. A `ledger` stays a handle:
    the path of the account and its name. What is restored has the same values; objects that were
    one in two places become two. Copies within the process are made as ever.
    """

    def __reduce_ex__(self, protocol: Any) -> tuple[Callable[[bytes], Any], tuple[bytes]]:
        with own_global_states(0):  # a learner without a seed may keep the global generator
            return _restored_value, (_canonical_pickle((type(self), self.__getstate__())),)

    def __copy__(self) -> Self:
        return self._with_attributes(vars(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._with_attributes(copy.deepcopy(vars(self), memo))

    def _with_attributes(self, attributes: dict[str, Any]) -> Self:
        other = type(self).__new__(type(self))
        other.__dict__.update(attributes)
        return other


def _restored_value(content: bytes) -> Any:
    kind, state = pickle.loads(content)
    one = kind.__new__(kind)
    if hasattr(one, "__setstate__"):
        one.__setstate__(state)
    else:
        one.__dict__.update(state)
    return one


class _CanonicalPickler(pickle.Pickler):
    """Writes every value where it is, without looking at which of them are one object."""

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray) and obj.dtype.names is not None:
            return _without_padding(obj).__reduce_ex__(pickle.HIGHEST_PROTOCOL)
        if type(obj).__name__ in _SEARCH_TREES:
            make, arguments, state = obj.__reduce__()
            items = list(state)
            items[_COUNTERS] = [0] * len(items[_COUNTERS])
            return make, arguments, tuple(items)
        return NotImplemented


def _canonical_pickle(value: Any) -> bytes:
    buffer = io.BytesIO()
    pickler = _CanonicalPickler(buffer, protocol=pickle.HIGHEST_PROTOCOL)
    pickler.fast = True  # no memory of what was written before
    pickler.dump(value)
    return buffer.getvalue()


def _without_padding(array: NDArray[Any]) -> NDArray[Any]:
    """Return a structured array whose padding is zero, any other as it is.

    The result has the shape of `array`.
    """
    if array.dtype.names is None:
        return array
    clean = np.zeros(array.shape, array.dtype)
    for name in array.dtype.names:
        clean[name] = _without_padding(array[name])
    return clean
