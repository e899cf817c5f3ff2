"""Count the votes of linear teachers by one matrix product per block, with the votes their own
`predict` would cast.

A stacked product sums in another order than a teacher does, so a decision value near zero may come
out with the other sign. Both orders are within a rounding bound of the true value; where a value
lies within that bound, the teacher is asked itself, on the same block, and its answer is taken.
This is no nicety: the order of a stacked sum depends on which other teachers are in the stack, and
no shard may decide a rounding of another's vote.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from secretballot._typing import BoolArray, Classifier, CountArray, FloatArray, IntArray, Matrix
from secretballot.foreign_code import result_of
from secretballot.teachers.rows import is_sparse, n_rows

# A decision that passed this magnitude on the way may have overflowed; the teacher is asked itself.
_HEADROOM = 1e-6
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
_MOST_CELLS_KEPT = 2**22  # weights that stay for the next question: 32 MiB


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


@dataclass(frozen=True)
class LinearForm:
    """A fitted teacher as `block @ weights.T + bias`, and what bounds the rounding error of that.

    Attributes
    ----------
    weights : ndarray of shape (k, n_features)
        k = 1 for two classes, else one row per class.
    bias : ndarray of shape (k,)
    norm, offset : ndarray of shape (k,)
        The error is at most (relative error) * (row norm * norm + offset).
    reach : float
        Largest factor by which a feature grows inside the teacher before it meets its weight.
    shift : float
        Norm of what the teacher subtracts from a row.
    classes : tuple of int
        Class index of each decision, two of them where k = 1.
    dtypes : tuple of dtype
        Floating types in which the teacher computes.
    """

    weights: FloatArray
    bias: FloatArray
    norm: FloatArray
    offset: FloatArray
    reach: float
    shift: float
    classes: tuple[int, ...]
    dtypes: tuple[np.dtype[Any], ...]


class LinearStack:
    """Linear teachers that see the same columns and the same classes, stacked.

    Use `gather`: it takes the teachers that are surely linear and leaves the rest.
    """

    def __init__(self, models: Mapping[int, Classifier], forms: Sequence[LinearForm]) -> None:
        self.models = dict(models)
        self._classes = forms[0].classes
        self._n_decisions = len(forms[0].bias)
        self._weights = np.concatenate([form.weights for form in forms]).T.copy()
        self._bias = np.concatenate([form.bias for form in forms])
        self._norm = np.array([form.norm for form in forms])
        self._offset = np.array([form.offset for form in forms])
        self._reach = np.array([[form.reach] for form in forms])
        self._shift = np.array([[form.shift] for form in forms])
        self._dtypes = {dtype for form in forms for dtype in form.dtypes}

    @classmethod
    def gather(
        cls,
        models: Mapping[int, Any],
        X: Any,
        n_classes: int,
        kept: "dict[Hashable, list[LinearStack]] | None" = None,
    ) -> list["LinearStack"]:
        """Return stacks of the linear teachers among `models`; none where `X` is not plain
        numbers, of shape (n_queries, n_features).

        Those of the last table of the same columns are found again in `kept`, which belongs to
        these models alone, where they are not large.
        """
        if not _is_plain(X):
            return []
        names = list(X.columns) if hasattr(X, "columns") else None
        key = (X.shape[1], None if names is None else tuple(names), is_sparse(X), n_classes)
        found = None if kept is None else kept.get(key)
        if found is not None:
            return found
        stacks = cls._gathered_stacks(models, X, names, n_classes)
        if kept is not None and sum(stack.cells for stack in stacks) <= _MOST_CELLS_KEPT:
            kept.clear()
            kept[key] = stacks
        return stacks

    @classmethod
    def _gathered_stacks(
        cls, models: Mapping[int, Any], X: Any, names: list[Any] | None, n_classes: int
    ) -> list["LinearStack"]:
        groups: dict[tuple[int, ...], dict[int, LinearForm]] = {}
        for number, model in models.items():
            # None too where a teacher's attributes are odd: its own predict says what it votes
            form = result_of(partial(_linear_form, model, X.shape[1], names, is_sparse(X)))
            if form is not None and min(form.classes) >= 0 and max(form.classes) < n_classes:
                groups.setdefault(form.classes, {})[number] = form
        return [
            cls({number: models[number] for number in forms}, list(forms.values()))
            for forms in groups.values()
        ]

    @property
    def cells(self) -> int:
        """Number of weights."""
        return int(self._weights.size)

    def count(self, block: Any, counts: CountArray) -> None:
        """Add the votes on one block to `counts`, an array of shape (rows, n_classes).

        Raises
        ------
        Exception
            What a teacher raises that had to be asked itself.
        """
        numbers = _as_numbers(block)
        with np.errstate(all="ignore"):
            scores = np.asarray(numbers @ self._weights) + self._bias
            votes, distance = self._votes_and_distances(scores)
            unsure = self._unsure_teachers(distance, numbers)
        self._add_votes(votes, ~unsure, counts)
        every_row = np.arange(len(counts))
        for place, model in enumerate(self.models.values()):
            if unsure[place]:
                counts[every_row, predicted(model, block.copy(), counts.shape[1])] += 1

    def _add_votes(self, votes: npt.NDArray[Any], sure: BoolArray, counts: CountArray) -> None:
        votes = votes if sure.all() else votes[:, sure]
        for place, index in enumerate(self._classes):
            counts[:, index] += np.count_nonzero(votes == place, axis=1)

    def _votes_and_distances(self, scores: FloatArray) -> tuple[npt.NDArray[Any], FloatArray]:
        """Return votes as places in the classes, and how far each is from another, shapes (rows,
        teachers)."""
        if self._n_decisions == 1:
            return scores > 0, np.abs(scores)
        scores = scores.reshape(len(scores), len(self.models), self._n_decisions)
        top = np.partition(scores, -2, axis=2)[:, :, -2:]
        # Two decisions err, so half their gap is compared with the error of one.
        return scores.argmax(axis=2), (top[:, :, 1] - top[:, :, 0]) / 2

    def _unsure_teachers(self, distance: FloatArray, numbers: Any) -> BoolArray:
        """Return for every teacher whether some vote of the block is within its rounding error
        of another."""
        row_norms = _row_norms(numbers)[:, None]
        width, dtypes = numbers.shape[1] + 10, {numbers.dtype, *self._dtypes}
        every = np.arange(len(self.models))
        # The longest row bounds all; only teachers that fail this are looked at row by row. Not
        # greater, rather than at most: a value that is not a number is unsure too.
        longest = self._error_bound(row_norms.max(axis=0, keepdims=True), every, width, dtypes)
        unsure = ~(distance.min(axis=0) > longest[0])
        doubtful = np.flatnonzero(unsure)
        bound = self._error_bound(row_norms, doubtful, width, dtypes)
        unsure[doubtful] = ~(distance[:, doubtful] > bound).all(axis=0)
        return np.asarray(unsure)

    def _error_bound(
        self,
        row_norms: FloatArray,
        teachers: npt.NDArray[np.intp],
        width: int,
        dtypes: set[np.dtype[Any]],
    ) -> FloatArray:
        """Return a bound on |stacked - teacher's own decision|, shape (rows, teachers).

        Infinite where unsure.

        With gamma = (n_features + a few) * eps, the standard bound of a dot product in any order is
        gamma * |x|.|w|, at most gamma * norm(x) * norm(w). Scaling first or folding the scale adds
        a few eps per term. Both sides err, and the factor 4 is generous.
        """
        floats = [np.finfo(dtype) for dtype in dtypes if dtype.kind == "f"]
        eps = max(float(info.eps) for info in floats)
        limit = min(float(info.max) for info in floats) * _HEADROOM
        smallest = max(float(info.tiny) for info in floats)
        bound = np.zeros((len(row_norms), len(teachers)))
        reach, shift = self._reach[teachers, 0], self._shift[teachers, 0]
        grown = (row_norms + shift) * reach
        for norm, offset in zip(self._norm[teachers].T, self._offset[teachers].T, strict=True):
            size = row_norms * norm + offset
            error = 4 * width * (eps * size + smallest * reach)
            np.maximum(bound, np.where((size < limit) & (grown < limit), error, np.inf), out=bound)
        return bound


def _linear_form(
    model: Any, width: int, names: list[Any] | None, is_sparse: bool
) -> LinearForm | None:
    """Return the linear form of a fitted teacher, or None where its votes are not surely those
    of one."""
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    steps = [model]
    # exact types only: a subclass may predict otherwise than its parent
    if type(model) is Pipeline:
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
    *scalers, linear = steps
    kind = type(linear)
    if kind.__name__ not in _LINEAR or not kind.__module__.startswith("sklearn."):
        return None
    if len(scalers) > 1 or any(type(step) is not StandardScaler for step in scalers):
        return None
    scaler = scalers[0] if scalers else None
    # centring would make sparse points dense: such a model answers, or fails, by itself
    if scaler is not None and is_sparse and scaler.with_mean:
        return None
    known = getattr(steps[0], "feature_names_in_", None)
    if names is not None and known is not None and list(known) != names:
        return None
    return _folded_form(linear, scaler, width)


def _folded_form(linear: Any, scaler: Any, width: int) -> LinearForm | None:
    weights = np.atleast_2d(linear.coef_)
    classes = np.asarray(linear.classes_)
    decisions = 1 if len(classes) == 2 else len(classes)
    if weights.shape != (decisions, width) or classes.dtype.kind not in "iu":
        return None
    bias = np.broadcast_to(np.asarray(linear.intercept_), (decisions,))
    mean = scaler.mean_ if scaler is not None and scaler.with_mean else None
    scale = None if scaler is None else scaler.scale_
    arrays = [array for array in (weights, bias, mean, scale) if array is not None]
    # with infinite or missing numbers the error bound says nothing, so the model votes by itself
    if not all(np.isfinite(array).all() for array in arrays):
        return None
    center = np.zeros(width) if mean is None else mean.astype(np.float64)
    folded = weights.astype(np.float64) / (1.0 if scale is None else scale)
    if not np.isfinite(folded).all():
        return None
    # norm, offset, reach and shift bound the rounding error: near a tie the model itself is asked
    return LinearForm(
        weights=folded,
        bias=bias - folded @ center,
        norm=np.linalg.norm(folded, axis=1),
        offset=np.abs(folded) @ np.abs(center) + np.abs(bias),
        reach=1.0 if scale is None else float(max(1.0, 1.0 / np.min(np.abs(scale)))),
        shift=float(np.linalg.norm(center)),
        classes=tuple(int(value) for value in classes),
        dtypes=tuple(array.dtype for array in arrays if array.dtype.kind == "f"),
    )


def _is_plain(X: Any) -> bool:
    """Return whether `X` is a table of plain machine numbers, the only kind whose arithmetic the
    bound covers."""
    if hasattr(X, "iloc"):
        return all(isinstance(dtype, np.dtype) and _is_covered(dtype) for dtype in X.dtypes)
    return X.ndim == 2 and _is_covered(X.dtype)


def _is_covered(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "biu" or dtype in (np.dtype(np.float64), np.dtype(np.float32))


def _as_numbers(block: Any) -> Any:
    if hasattr(block, "iloc"):
        return block.to_numpy(dtype=np.result_type(*block.dtypes))
    return block


def _row_norms(numbers: Any) -> FloatArray:
    if is_sparse(numbers):
        squares = numbers.astype(np.float64).multiply(numbers).sum(axis=1)
        return np.sqrt(np.asarray(squares, dtype=np.float64).ravel())
    wide = numbers.astype(np.float64, copy=False)
    norms: FloatArray = np.sqrt(np.einsum("ij,ij->i", wide, wide))
    return norms
