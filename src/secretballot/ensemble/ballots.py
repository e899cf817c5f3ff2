"""Ask fitted teachers for their votes on public points, block by block, and count them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from secretballot._seeded import seed_of
from secretballot._typing import Classifier, CountArray, IntArray, Matrix
from secretballot.ensemble.rows import block_bounds, n_rows, row_block
from secretballot.ensemble.workers import end_with
from secretballot.foreign_code import isolated, one_thread, result_once_seeded


def fixed_vote(number: int, n_classes: int) -> int:
    """Return the class for which a teacher that could not be trained always votes.

    A rule that reads no data.
    """
    return number % n_classes


def predicted(model: Classifier, block: Matrix, n_classes: int) -> IntArray:
    """Return one teacher's votes on a block as class indices.

    Raises
    ------
    ValueError
        If the prediction is not one declared class per row.
    """
    return as_votes(model.predict(block), n_rows(block), n_classes)


def as_votes(predictions: Any, length: int, n_classes: int) -> IntArray:
    """Return a teacher's predictions as class indices, of shape (length,).

    Raises
    ------
    ValueError
        If the prediction is not one declared class per row.
    """
    votes = np.asarray(predictions)
    if votes.ndim == 2 and votes.shape[1] == 1:
        votes = votes[:, 0]
    if votes.shape != (length,) or votes.dtype.kind not in "biufO":
        raise ValueError("a prediction must be one class per row")
    # Through floats, which compare nan and fractions away; class indices are exact in them.
    numbers = votes.astype(np.float64)
    if not bool(((numbers >= 0) & (numbers < n_classes) & (numbers == np.floor(numbers))).all()):
        raise ValueError("a prediction must be a declared class")
    return numbers.astype(np.int64)


def count_ballots(
    teachers: Mapping[int, Classifier | None],
    X: Matrix,
    n_classes: int,
    block_rows: int,
    random_state: int,
    settings: Mapping[str, Any],
) -> CountArray:
    """Count the votes of some teachers on every row of `X`.

    Parameters
    ----------
    teachers : mapping of teacher number to fitted learner or None
        None, and any learner that fails on any block, votes its fixed class on every row.
    X : table of shape (n_queries, n_features)
    block_rows : int
        Rows given to a learner at once.
    random_state : int
        Public number from which the global random states are seeded while a learner predicts.
    settings : mapping
        scikit-learn's configuration while a learner predicts.

    Returns
    -------
    ndarray of shape (n_queries, n_classes), int32

    Raises
    ------
    ResourceError
        If the machine failed, and not a learner at its shard.
    """
    counts = np.zeros((n_rows(X), n_classes), dtype=np.int32)
    every_row = np.arange(n_rows(X))
    for number, model in teachers.items():
        # a teacher's randomness follows from its number, not from who was asked before it
        seed = seed_of(random_state, number, 1)
        votes = (
            None
            if model is None
            else _votes_on_all(model, X, n_classes, block_rows, seed, settings)
        )
        # a teacher that cannot vote still casts one vote, fixed by its number: how many failed is
        # private
        if votes is None:
            counts[:, fixed_vote(number, n_classes)] += 1
        else:
            counts[every_row, votes] += 1
    return counts


def count_in_worker(giver: int, *args: Any) -> tuple[int, CountArray]:
    """Count as `count_ballots` does, in a worker of the process `giver`.

    Return the number of teachers too.
    """
    end_with(giver)
    with one_thread():
        return len(args[0]), count_ballots(*args)


def _votes_on_all(
    model: Classifier,
    X: Matrix,
    n_classes: int,
    block_rows: int,
    seed: int,
    settings: Mapping[str, Any],
) -> npt.NDArray[Any] | None:
    votes = np.empty(n_rows(X), dtype=np.min_scalar_type(n_classes))

    def vote() -> npt.NDArray[Any]:
        with isolated(seed, settings):
            for start, stop in block_bounds(n_rows(X), block_rows):
                votes[start:stop] = predicted(model, row_block(X, start, stop), n_classes)
        return votes

    return result_once_seeded(vote)
