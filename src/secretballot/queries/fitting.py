"""Learners of a strategy: fitted to released labels, with weights, the same every time."""

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from secretballot._rows import take_rows
from secretballot._seeded import with_own_seeds
from secretballot._typing import FloatArray, IntArray
from secretballot.exceptions import DataError, Parameter, ParameterError
from secretballot.queries.base import PublicPool
from secretballot.queries.points import scaled_points

# Points of the pool, with dummy labels, on which a learner is tried before anything is asked.
_TRIAL_ROWS = 20
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class PoolLearner:
    """A scikit-learn classifier on the rows of one pool.

    Parameters
    ----------
    learner : scikit-learn classifier or None
        Cloned for every fit; open random states are set by the public seed. None stands for a
        logistic regression on scaled columns.
    pool : PublicPool
    default : scikit-learn classifier, optional
        What None stands for.

    Raises
    ------
    ParameterError
        If `learner` is no classifier.
    DataError
        If the pool has no points, or does not hold the numbers that the default learner needs.
    """

    def __init__(self, learner: Any, pool: PublicPool, default: Any = None) -> None:
        if not pool.n_points:
            raise DataError("the public pool has no points; give at least one.")
        if learner is None:
            learner = LogisticRegression(max_iter=1000) if default is None else default
            self.X = scaled_points(pool.X)
        elif not (hasattr(learner, "fit") and hasattr(learner, "predict")):
            raise ParameterError(
                Parameter("learner"),
                f" is a {type(learner).__name__}; give a scikit-learn classifier.",
            )
        else:
            self.X = pool.X
        self._template = with_own_seeds(clone(learner), pool.random_state)
        self._weight_name = _weight_name(self._template)
        self.n_points, self.n_classes = pool.n_points, len(pool.classes)

    @property
    def takes_weights(self) -> bool:
        """Whether a fit can weigh its points."""
        return self._weight_name is not None

    @property
    def is_frozen(self) -> bool:
        """Whether the learner was fitted beforehand, and learns nothing further."""
        return isinstance(self._template, FrozenEstimator)

    @property
    def name(self) -> str:
        """Name for messages."""
        return type(self._template).__name__

    def has(self, method: str) -> bool:
        """Return whether the learner has a method."""
        return hasattr(self._template, method)

    def fresh(self) -> Any:
        """Return an unfitted copy of the learner."""
        return clone(self._template)

    def fit(
        self, rows: IntArray, labels: IntArray, weights: FloatArray | None = None, model: Any = None
    ) -> Any:
        """Return a model fitted to rows of the pool, with weights where the learner takes them.

        Parameters
        ----------
        rows, labels : array of int, shape (n,)
        weights : array of shape (n,), optional
        model : unfitted or warm model, optional
            Fitted in place; by default a fresh copy.
        """
        model = self.fresh() if model is None else model
        given = {} if weights is None or self._weight_name is None else {self._weight_name: weights}
        with warnings.catch_warnings():
            # a rough fit serves to choose a question
            warnings.simplefilter("ignore", ConvergenceWarning)
            return model.fit(take_rows(self.X, rows), labels, **given)

    def predict(self, model: Any, rows: IntArray) -> IntArray:
        """Return the labels of rows of the pool, as positions among the classes, shape (n,)."""
        return np.asarray(model.predict(take_rows(self.X, rows)), dtype=np.int64)

    def trial_rows(self) -> IntArray:
        """Return some rows, spread over the pool, two for each class where there are as many."""
        size = min(self.n_points, max(_TRIAL_ROWS, 2 * self.n_classes))
        return np.linspace(0, self.n_points - 1, size).astype(np.int64)

    def try_fits(self, ask: Callable[[Any, Any], object]) -> None:
        """Fit to points of the pool with dummy labels, and ask the model about the whole pool.

        Raises
        ------
        DataError
            If the learner fails: better now than when labels have been paid for.
        """
        rows = self.trial_rows()
        if len(rows) < 2:
            return
        labels = np.arange(len(rows), dtype=np.int64) % self.n_classes
        try:
            ask(self.fit(rows, labels, np.ones(len(rows))), self.X)
        except Exception as failure:
            raise DataError(
                f"the learner {self.name} fails on the public points ({type(failure).__name__}:"
                f" {failure}); give one that takes them all, whichever it learnt from: encoders"
                " must ignore unknown categories."
            ) from failure


def describe_learner(learner: Any) -> str:
    """Return a learner in one line, without addresses, for certificate and report."""
    if learner is None:
        return "LogisticRegression on scaled columns"
    return _ADDRESS.sub("", " ".join(repr(learner).split()))


def _weight_name(learner: Any) -> str | None:
    """Return the name under which `fit` takes sample weights, or None."""
    if isinstance(learner, Pipeline):
        name, last = learner.steps[-1]
        inner = _weight_name(last)
        return None if inner is None else f"{name}__{inner}"
    return "sample_weight" if has_fit_parameter(learner, "sample_weight") else None
