"""The region of disagreement of any learner, found by fits that are forced to label a point the other way."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secretballot.exceptions import ParameterError
from secretballot.queries.fitting import PoolLearner
from secretballot.queries.labelled import LabelledRows
from secretballot.queries.regions import Region

__all__ = ["OracleRegion"]

BoolArray = NDArray[np.bool_]
FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

# Weights of a forced label, in units of the weight of all answers, from just enough to more than enough.
_FORCES = (0.03, 0.3, 3.0, 30.0)
# Models kept from one update to the next; each costs a prediction per point.
_KEPT = 40
_ROUNDING = 1e-9


@dataclass(frozen=True)
class _Member:
    """A fitted model, and how many weighted mistakes it makes on the answers."""

    model: Any
    mistakes: float


class OracleRegion(Region):
    """Region of the hypotheses that a learner can reach, by constrained fits.

    A point lies in the region if a model exists that labels it otherwise than the best one and makes at most `slack`
    more mistakes on the answers. The models are sought by fits to the answers plus the point with the other label, at
    growing weights until the label is obeyed. A model found once decides for free every point on which it differs from
    the best. Until answers of two classes are known, every point lies in the region.

    Parameters
    ----------
    learner : PoolLearner

    Raises
    ------
    ParameterError
        If the learner takes no sample weights, or does not obey them.
    """

    looks_ahead = False

    def __init__(self, learner: PoolLearner) -> None:
        self._learner = learner
        self._check_obedience()
        self._known = LabelledRows.none()
        self._best: _Member | None = None
        self._slack = 0.0
        self._others: list[_Member] = []  # within the slack of the best
        self._fits = self._unforced = 0

    def contains(self, rows: IntArray) -> BoolArray:
        """Decide by the models that are known, and fit for the points that they leave open."""
        inside = np.ones(len(rows), dtype=np.bool_)
        if self._best is None:
            return inside
        labels = self._learner.predict(self._best.model, rows)
        inside[:] = False
        for member in self._others:
            inside |= self._learner.predict(member.model, rows) != labels
        for place in range(len(rows)):
            if not inside[place]:
                member = self._forced(int(rows[place]), 1 - int(labels[place]))
                if member is not None:
                    self._others.append(member)
                    inside[place:] |= self._learner.predict(member.model, rows[place:]) != labels[place:]
        return inside

    def update(self, known: LabelledRows, slack: float) -> None:
        """Fit the best model to the answers, and keep of the others what is within the slack of it."""
        if known.n_classes < 2:
            return
        self._known, self._slack = known, slack
        earlier = self._others if self._best is None else [self._best, *self._others]
        members = [self._member(self._learner.fit(known.rows, known.labels, known.weights))]
        members.extend(self._member(member.model) for member in earlier)
        self._fits += 1
        best = min(members, key=lambda member: member.mistakes)  # among equals the new fit
        self._best = best
        within = [m for m in members if m is not best and m.mistakes <= self._limit]
        self._others = within[:_KEPT]

    def describe(self) -> dict[str, Any]:
        """Return the mistakes of the best model, in answers, and how many fits the region took.

        `unforced` counts the points whose other label no weight could force; they were left out of the region.
        """
        return {
            "learner": self._learner.name,
            "mistakes": None if self._best is None else self._best.mistakes,
            "fits": self._fits,
            "unforced": self._unforced,
        }

    @property
    def _limit(self) -> float:
        assert self._best is not None
        return self._best.mistakes + self._slack + _ROUNDING

    def _member(self, model: Any) -> _Member:
        known = self._known
        wrong = self._learner.predict(model, known.rows) != known.labels
        return _Member(model, float(known.weights[wrong].sum()))

    def _forced(self, row: int, label: int) -> _Member | None:
        """Return a model within the slack that gives the row this label, or None if none was found."""
        for force in _FORCES:
            model = self._constrained(self._known, row, label, force)
            self._fits += 1
            if int(self._learner.predict(model, np.array([row]))[0]) == label:
                member = self._member(model)
                return member if member.mistakes <= self._limit else None
        self._unforced += 1
        return None

    def _constrained(self, known: LabelledRows, row: int, label: int, force: float) -> Any:
        """Return a model fitted to the answers and to one more label, of `force` times the weight of all answers."""
        weight = force * max(1.0, float(known.weights.sum()))
        return self._learner.fit(
            np.append(known.rows, row), np.append(known.labels, label), np.append(known.weights, weight)
        )

    def _check_obedience(self) -> None:
        learner = self._learner
        reason = "takes no sample weights"
        if learner.takes_weights:
            learner.rehearse(lambda model, X: model.predict(X))
            if self._obeys():
                return
            reason = "does not follow its sample weights"
        raise ParameterError(
            f"the learner {learner.name} {reason}: a learner that cannot be constrained; "
            "give one that follows sample weights, such as LogisticRegression, or use margin sampling."
        )

    def _obeys(self) -> bool:
        """Return whether a heavy label on some point of the pool turns the model's mind."""
        rows = self._learner.rehearsal_rows()
        if len(rows) < 2:
            return True
        labels = np.arange(len(rows), dtype=np.int64) % 2
        known = LabelledRows(rows, labels, np.ones(len(rows)), rows)
        plain = self._learner.predict(self._learner.fit(rows, labels, known.weights), rows)
        for row, label in zip(rows[:3], 1 - plain[:3], strict=True):
            model = self._constrained(known, int(row), int(label), _FORCES[-1])
            if int(self._learner.predict(model, np.array([row]))[0]) == label:
                return True
        return False
