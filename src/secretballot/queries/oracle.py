"""The region of disagreement of any learner, by fits that are forced to label a point otherwise."""

import math
from typing import Any

import numpy as np

from secretballot._typing import BoolArray, IntArray
from secretballot.queries.base import LabelledRows
from secretballot.queries.uncertainty import PoolLearner

# Weights of a forced label, in units of the weight of all answers, from hardly any to more than
# enough.
_FORCES = (0.01, 0.1, 1.0, 10.0, 100.0)
# Then the weight is narrowed down by halving its logarithm so many times: just enough force costs
# the fewest mistakes.
_HALVINGS = 3
# Refits of the best model without what it gets wrong.
_REFITS = 3
# Models kept from one update to the next; each costs a prediction per point.
_KEPT = 40
_ROUNDING = 1e-9


class OracleRegion:
    """Region of the hypotheses that a learner can reach, by constrained fits.

    A point lies in the region if a model exists that labels it otherwise than the best one and
    makes at most `slack` more mistakes on the answers. The models are sought by fits to the answers
    plus the point with the other label, at growing weights until the label is obeyed, then with as
    little force as will do. Where the learner minimises another loss than mistakes, both searches
    are approximate. A model found once decides for free every point on which it differs from the
    best. Until answers of two classes are known, every point lies in the region.

    Parameters
    ----------
    fits : PoolLearner
    """

    def __init__(self, fits: PoolLearner) -> None:
        self._fits = fits
        self._known = LabelledRows.none()
        self._models: list[Any] = []  # the best one, then others within its slack
        self._most = 0.0  # mistakes, as far as they are weighed

    def contains(self, rows: IntArray) -> BoolArray:
        """Decide by the models that are known, and fit for the points that they leave open; shape
        (n_rows,)."""
        if not self._models:
            return np.ones(len(rows), dtype=np.bool_)
        labels, *others = (self._fits.predict(model, rows) for model in self._models)
        inside = np.zeros(len(rows), dtype=np.bool_)
        for said in others:
            inside |= said != labels
        for place, row in enumerate(rows.tolist()):
            found = None if inside[place] else self._model_saying(row, 1 - int(labels[place]))
            if found is not None:
                self._models.append(found)
                inside |= self._fits.predict(found, rows) != labels
        return inside

    def update(self, known: LabelledRows, slack: float) -> None:
        """Fit the best model to the answers, and keep of the others those within its slack."""
        if known.n_classes < 2:
            return
        self._known = known
        models = [*self._unforced_models(known), *self._models]
        mistakes = [self._mistakes(model) for model in models]
        best = int(np.argmin(mistakes))  # among equals the newest fit
        self._most = mistakes[best] + slack + _ROUNDING
        self._models = [models[best]]
        for place, model in enumerate(models):
            if place != best and mistakes[place] <= self._most and len(self._models) <= _KEPT:
                self._models.append(model)

    def describe(self) -> dict[str, Any]:
        """Return nothing: which hypotheses a learner reaches is not known."""
        return {}

    def _unforced_models(self, known: LabelledRows) -> list[Any]:
        """Return a fit to the answers, and refits without its mistakes."""
        # The learner minimises another loss, in which points it gets wrong pull it off others.
        models: list[Any] = []
        kept = known
        while len(models) <= _REFITS and kept.n_classes == 2:
            models.append(self._fits.fit_known(kept))
            right = self._fits.predict(models[-1], known.rows) == known.labels
            if right.all():
                break
            kept = known.among(known.rows[right])
        return models

    def _mistakes(self, model: Any) -> float:
        wrong = self._fits.predict(model, self._known.rows) != self._known.labels
        return float(self._known.weights[wrong].sum())

    def _model_saying(self, row: int, label: int) -> Any:
        """Return a model within the slack that gives a row a label, None where none was found."""
        disobeyed = 0.0
        for obeyed in _FORCES:
            model = self._forced_model(row, label, obeyed)
            if model is not None:
                break
            disobeyed = obeyed
        else:
            return None
        # obeyed, but at too many mistakes: as little force as will do may still bring a model
        # within the slack
        for _ in range(_HALVINGS if disobeyed else 0):
            if self._mistakes(model) <= self._most:
                break
            force = math.sqrt(disobeyed * obeyed)
            weaker = self._forced_model(row, label, force)
            if weaker is None:
                disobeyed = force
            else:
                model, obeyed = weaker, force
        return model if self._mistakes(model) <= self._most else None

    def _forced_model(self, row: int, label: int, force: float) -> Any:
        """Return the model of the answers and of that label of a row at that force, None where it
        does not obey."""
        # The force is in units of all answers together, so that it means the same early and late.
        known = self._known
        model = self._fits.fit(
            np.append(known.rows, row),
            np.append(known.labels, label),
            np.append(known.weights, force * max(1.0, float(known.weights.sum()))),
        )
        return model if int(self._fits.predict(model, np.array([row]))[0]) == label else None
