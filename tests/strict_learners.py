"""Learners as strict as some that people bring: each refuses something that others take."""

import numpy as np
from sklearn.linear_model import LogisticRegression


class NumbersAlone(LogisticRegression):
    """Takes the classes 0, 1, ... alone, and all of them, as XGBoost does."""

    def __init__(self):
        super().__init__(max_iter=1000)

    def fit(self, X, y, sample_weight=None):
        found = np.unique(np.asarray(y))
        if not np.array_equal(found, np.arange(len(found))):
            raise ValueError(f"Expected: {list(range(len(found)))}, got {found.tolist()}")
        super().fit(X, y, sample_weight)
        return self


class ForgetsNames(LogisticRegression):
    """Takes any classes, and answers with their numbers, as a column."""

    def predict(self, X):
        return np.searchsorted(self.classes_, super().predict(X)).reshape(-1, 1).astype(float)


class Contrary(LogisticRegression):
    """Answers with the other class, which no converter knows."""

    def predict(self, X):
        return self.classes_[1 - np.searchsorted(self.classes_, super().predict(X))]


class NeverLearns(LogisticRegression):
    """Cannot be fitted at all."""

    def fit(self, X, y, sample_weight=None):
        raise RuntimeError("no heart for it. And a second sentence")


class LearnsAndNeverPredicts(LogisticRegression):
    """Can be fitted, and ends the program where it is asked."""

    def predict(self, X):
        raise SystemExit


class WantsCompany(LogisticRegression):
    """Needs more than a hundred points."""

    def fit(self, X, y, sample_weight=None):
        if len(y) <= 100:
            raise ValueError(f"{len(y)} points are too few")
        super().fit(X, y, sample_weight)
        return self
