"""Count the votes of fitted teachers on public points: linear ones stacked, the others one by
one."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from secretballot._seeded import seed_of
from secretballot._typing import Classifier, CountArray, FloatArray, IntArray, Matrix
from secretballot.foreign_code import isolated, one_thread, result_of
from secretballot.teachers.executors import Workers
from secretballot.teachers.rows import block_bounds, is_sparse, n_rows, row_block
from secretballot.teachers.training import alone, pay_processes

_LINEAR = frozenset(
    [
        "LogisticRegression",
        "LogisticRegressionCV",
        "LinearSVC",
        "RidgeClassifier",
        "RidgeClassifierCV",
        "SGDClassifier",
    ]
)
_DOUBLE = np.finfo(np.float64)
# A decision that passed this magnitude on the way may have overflowed; the teacher is asked itself.
_LARGEST = 1e-6 * float(_DOUBLE.max)


def predicted(model: Classifier, block: Matrix, n_classes: int) -> IntArray:
    """Return one teacher's votes on a block as class indices, of shape (n_rows,).

    Raises
    ------
    ValueError
        If the prediction is not one declared class per row.
    """
    votes = np.asarray(model.predict(block))
    if votes.ndim == 2 and votes.shape[1] == 1:
        votes = votes[:, 0]
    if votes.shape != (n_rows(block),) or votes.dtype.kind not in "biufO":
        raise ValueError("a prediction must be one class per row")
    # Through floats, which compare nan and fractions away; class indices are exact in them.
    numbers = votes.astype(np.float64)
    if not bool(((numbers >= 0) & (numbers < n_classes) & (numbers == np.floor(numbers))).all()):
        raise ValueError("a prediction must be a declared class")
    return numbers.astype(np.int64)


class LinearForm(NamedTuple):
    """A fitted teacher as `block @ weights.T + bias`.

    Attributes
    ----------
    weights : ndarray of shape (k, n_features)
        k = 1 for two classes, else one row per class.
    bias : ndarray of shape (k,)
    classes : tuple of int
        Class index of each decision, two of them where k = 1.
    """

    weights: FloatArray
    bias: FloatArray
    classes: tuple[int, ...]


class LinearStack:
    """Linear teachers that see the same columns and the same classes, stacked: their votes are
    counted by one matrix product per block, as their own `predict` would cast them.

    A stacked product sums in another order than a teacher does, so a decision value near zero may
    come out with the other sign. Both orders are within a rounding bound of the true value; where
    a value lies within that bound, the teacher is asked itself, on the same block, and its answer
    is taken. This is no nicety: the order of a stacked sum depends on which other teachers are in
    the stack, and no shard may decide a rounding of another's vote.

    Use `gather`: it takes the teachers that are surely linear and leaves the rest.
    """

    def __init__(self, models: Mapping[int, Classifier], forms: Sequence[LinearForm]) -> None:
        self.models = dict(models)
        self._classes = forms[0].classes
        self._n_decisions = len(forms[0].bias)
        self._weights = np.concatenate([form.weights for form in forms]).T.copy()
        self._bias = np.concatenate([form.bias for form in forms])
        with np.errstate(over="ignore"):
            self._norm = np.array([np.linalg.norm(form.weights, axis=1).max() for form in forms])
        self._offset = np.array([np.abs(form.bias).max() for form in forms])

    @classmethod
    def gather(
        cls, models: Mapping[int, Any], X: Any, n_classes: int, kept: dict[int, list["LinearStack"]]
    ) -> list["LinearStack"]:
        """Return stacks of the linear teachers among `models`; none where `X`, of shape (n_queries,
        n_features), is no array or sparse matrix of doubles, whose arithmetic the bound covers.

        Those of the last table of as many columns are found in `kept`, which belongs to these
        models alone.
        """
        if hasattr(X, "iloc") or X.ndim != 2 or X.dtype != np.float64:
            return []
        if X.shape[1] not in kept:
            kept[X.shape[1]] = cls._gathered_stacks(models, X.shape[1], n_classes)
        return kept[X.shape[1]]

    @classmethod
    def _gathered_stacks(
        cls, models: Mapping[int, Any], width: int, n_classes: int
    ) -> list["LinearStack"]:
        groups: dict[tuple[int, ...], dict[int, LinearForm]] = {}
        for number, model in models.items():
            # None too where a teacher's attributes are odd: its own predict says what it votes
            form = result_of(partial(_linear_form, model, width))
            if form is not None and min(form.classes) >= 0 and max(form.classes) < n_classes:
                groups.setdefault(form.classes, {})[number] = form
        return [
            cls({number: models[number] for number in forms}, list(forms.values()))
            for forms in groups.values()
        ]

    def count(self, block: Any, counts: CountArray, poll: "Poll") -> None:
        """Add the votes on one block of a poll to `counts`, an array of shape (rows, n_classes).

        Raises
        ------
        Exception
            What a teacher raises that had to be asked itself.
        """
        with np.errstate(all="ignore"):
            scores = np.asarray(block @ self._weights) + self._bias
            votes, distance = self._votes_and_distances(scores)
            # greater, rather than not less: a value that is not a number is unsure too
            bound = self._error_bound(_row_norms(block), block.shape[1])
            sure = np.asarray((distance > bound).all(axis=0))
        for place, index in enumerate(self._classes):
            counts[:, index] += np.count_nonzero(votes[:, sure] == place, axis=1)
        if sure.all():
            return
        every_row, models = np.arange(len(counts)), list(self.models.values())
        # around the teachers alone: it takes longer than the product for one row
        with one_thread(), isolated(seed_of(poll.random_state), poll.settings):
            for teacher in np.flatnonzero(~sure).tolist():
                counts[every_row, predicted(models[teacher], block.copy(), counts.shape[1])] += 1

    def _votes_and_distances(self, scores: FloatArray) -> tuple[npt.NDArray[Any], FloatArray]:
        """Return votes as places in the classes, and how far each is from another, shapes (rows,
        teachers)."""
        if self._n_decisions == 1:
            return scores > 0, np.abs(scores)
        scores = scores.reshape(len(scores), len(self.models), self._n_decisions)
        top = np.partition(scores, -2, axis=2)[:, :, -2:]
        # Two decisions err, so half their gap is compared with the error of one.
        return scores.argmax(axis=2), (top[:, :, 1] - top[:, :, 0]) / 2

    def _error_bound(self, row_norms: FloatArray, width: int) -> FloatArray:
        """Return a bound on |stacked - teacher's own decision|, shape (rows, teachers).

        Infinite where unsure.

        With gamma = (n_features + a few) * eps, the standard bound of a dot product in any order is
        gamma * |x|.|w|, at most gamma * norm(x) * norm(w). Both sides err, and the factor 4 is
        generous.
        """
        size = row_norms[:, None] * self._norm + self._offset
        error = 4 * (width + 10) * (float(_DOUBLE.eps) * size + float(_DOUBLE.tiny))
        grown = np.maximum(size, row_norms[:, None])
        return np.where(grown < _LARGEST, error, np.inf)


def _linear_form(model: Any, width: int) -> LinearForm | None:
    """Return the linear form of a fitted teacher, or None where its votes are not surely those
    of one."""
    # exact types only: a subclass may predict otherwise than its parent
    kind = type(model)
    if kind.__name__ not in _LINEAR or not kind.__module__.startswith("sklearn."):
        return None
    weights, classes = np.atleast_2d(model.coef_), np.asarray(model.classes_)
    decisions = 1 if len(classes) == 2 else len(classes)
    if weights.shape != (decisions, width) or classes.dtype.kind not in "iu":
        return None
    bias = np.broadcast_to(np.asarray(model.intercept_, dtype=np.float64), (decisions,))
    # with infinite or missing numbers the error bound says nothing, so the model votes by itself
    if weights.dtype != np.float64 or not (np.isfinite(weights).all() and np.isfinite(bias).all()):
        return None
    return LinearForm(weights, bias, tuple(int(value) for value in classes))


def _row_norms(block: Any) -> FloatArray:
    squares = block.multiply(block).sum(axis=1) if is_sparse(block) else (block * block).sum(axis=1)
    return np.sqrt(np.asarray(squares, dtype=np.float64).ravel())


class Poll(NamedTuple):
    """What teachers are asked; public.

    Attributes
    ----------
    X : table of shape (n_queries, n_features)
    n_classes : int
    block_rows : int
        Rows given to a learner at once.
    random_state : int
        From which the global random states are seeded while a learner predicts.
    settings : mapping
        scikit-learn's configuration while a learner predicts.
    """

    X: Any
    n_classes: int
    block_rows: int
    random_state: int
    settings: Mapping[str, Any]

    def no_votes(self) -> CountArray:
        """Return counts of 0, of shape (n_queries, n_classes)."""
        return np.zeros((n_rows(self.X), self.n_classes), dtype=np.int32)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield copies of consecutive rows, and their places."""
        for start, stop in block_bounds(n_rows(self.X), self.block_rows):
            yield slice(start, stop), row_block(self.X, start, stop)


def fixed_vote(number: int, n_classes: int) -> int:
    """Return the class for which a teacher that could not be trained always votes.

    A rule that reads no data.
    """
    return number % n_classes


def count_ballots(teachers: Mapping[int, Classifier | None], poll: Poll) -> CountArray:
    """Count the votes of some teachers, asked one by one.

    Parameters
    ----------
    teachers : mapping of teacher number to fitted learner or None
        None, and any learner that fails on any block, votes its fixed class on every row.
    poll : Poll

    Returns
    -------
    ndarray of shape (n_queries, n_classes), int32

    Raises
    ------
    ResourceError
        If the machine failed, and not a learner at its shard.
    """
    counts, every_row = poll.no_votes(), np.arange(n_rows(poll.X))
    for number, model in teachers.items():
        # a teacher's randomness follows from its number, not from who was asked before it
        work, seed = partial(_votes_on_all, model, poll), seed_of(poll.random_state, number, 1)
        votes = None if model is None else alone(work, seed, poll.settings)
        # a teacher that cannot vote still casts one vote, fixed by its number: how many failed is
        # private
        counts[every_row, fixed_vote(number, poll.n_classes) if votes is None else votes] += 1
    return counts


def _votes_on_all(model: Any, poll: Poll) -> npt.NDArray[Any]:
    votes = np.empty(n_rows(poll.X), dtype=np.min_scalar_type(poll.n_classes))
    for rows, block in poll.blocks():
        votes[rows] = predicted(model, block, poll.n_classes)
    return votes


def counted_votes(
    teachers: Mapping[int, Any],
    poll: Poll,
    *,
    workers: Workers | None,
    kept: dict[int, list[LinearStack]],
) -> CountArray:
    """Return the counts of some teachers' votes on all rows of a table.

    Parameters
    ----------
    teachers : mapping of teacher number to fitted learner or None
        None votes its fixed class.
    poll : Poll
    workers : Workers, optional
        Of those that are asked one by one the first are asked here and timed; the others there, if
        that repays sending them.
    kept : dict
        Stacks of these teachers, by the number of columns: what one table's count leaves for the
        next.

    Returns
    -------
    ndarray of shape (n_queries, n_classes), int32

    Raises
    ------
    ResourceError
        If the machine failed.
    """
    # linear teachers first; what they leave is asked one by one
    rest, counts = dict(teachers), poll.no_votes()
    for stack in LinearStack.gather(rest, poll.X, poll.n_classes, kept):
        counted = _stack_counts(stack, poll)
        if counted is not None:
            counts += counted
            rest = {number: model for number, model in rest.items() if number not in stack.models}
    if not rest:
        return counts
    with one_thread():
        return sum(_counted_apart(rest, poll, workers), counts)


def _counted_apart(
    teachers: dict[int, Any], poll: Poll, workers: Workers | None
) -> Iterator[CountArray]:
    """Yield the counts of some teachers after others, each asked by its own `predict`."""
    started, numbers = time.monotonic(), list(teachers)
    for done, number in enumerate(numbers):
        if workers is not None and pay_processes(started, done, len(numbers)):
            rest = numbers[done:]
            # one group for each worker, so that the points are sent once to each
            dealt = [rest[first :: workers.n_slots] for first in range(workers.n_slots)]
            tasks = (({n: teachers[n] for n in group},) for group in dealt if group)
            with closing(workers.results(count_ballots, tasks, poll)) as finished:
                yield from finished
            return
        yield count_ballots({number: teachers[number]}, poll)


def _stack_counts(stack: LinearStack, poll: Poll) -> CountArray | None:
    """Return the votes of linear teachers, or None if one of them fails and all must be asked one
    by one."""
    counts = poll.no_votes()

    def count() -> CountArray:
        for rows, block in poll.blocks():
            stack.count(block, counts[rows], poll)
        return counts

    return result_of(count)
