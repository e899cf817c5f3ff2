"""The region of disagreement of any learner, by fits that are forced to label a point otherwise."""

import math
from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Member:
    """A fitted model, and how many weighted mistakes it makes on the answers."""

    model: Any
    mistakes: float


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

    looks_ahead = False

    def __init__(self, fits: PoolLearner) -> None:
        self._fits = fits
        self._known = LabelledRows.none()
        self._best: _Member | None = None
        self._slack = 0.0
        self._others: list[_Member] = []  # within the slack of the best

    def contains(self, rows: IntArray) -> BoolArray:
        """Decide by the models that are known, and fit for the points that they leave open; shape
        (n_rows,)."""
        if self._best is None:
            return np.ones(len(rows), dtype=np.bool_)
        labels = self._fits.predict(self._best.model, rows)
        inside = np.zeros(len(rows), dtype=np.bool_)
        for member in self._others:
            inside |= self._fits.predict(member.model, rows) != labels
        for place, row in enumerate(rows.tolist()):
            found = None if inside[place] else self._member_saying(row, 1 - int(labels[place]))
            if found is not None:
                self._others.append(found)
                inside |= self._fits.predict(found.model, rows) != labels
        return inside

    def update(self, known: LabelledRows, slack: float) -> None:
        """Fit the best model to the answers, and keep of the others those within its slack."""
        if known.n_classes < 2:
            return
        self._known, self._slack = known, slack
        earlier = self._others if self._best is None else [self._best, *self._others]
        members = [
            *self._unforced_members(known),
            *(self._evaluated_member(member.model) for member in earlier),
        ]
        best = min(members, key=lambda member: member.mistakes)  # among equals the newest fit
        self._best = best
        within = [m for m in members if m is not best and m.mistakes <= self._most_mistakes]
        self._others = within[:_KEPT]

    def describe(self) -> dict[str, Any]:
        """Return the mistakes of the best model, in answers."""
        mistakes = None if self._best is None else self._best.mistakes
        return {"learner": self._fits.name, "mistakes": mistakes}

    def _unforced_members(self, known: LabelledRows) -> list[_Member]:
        """Return a fit to the answers, and refits without its mistakes."""
        # The learner minimises another loss, in which points it gets wrong pull it off others.
        members: list[_Member] = []
        kept = known
        while len(members) <= _REFITS and kept.n_classes == 2:
            members.append(self._evaluated_member(self._fits.fit_known(kept)))
            right = self._fits.predict(members[-1].model, known.rows) == known.labels
            if right.all():
                break
            kept = known.among(known.rows[right])
        return members

    @property
    def _most_mistakes(self) -> float:
        assert self._best is not None
        return self._best.mistakes + self._slack + _ROUNDING

    def _evaluated_member(self, model: Any) -> _Member:
        known = self._known
        wrong = self._fits.predict(model, known.rows) != known.labels
        return _Member(model, float(known.weights[wrong].sum()))

    def _member_saying(self, row: int, label: int) -> _Member | None:
        """Return a model within the slack that gives a row a label, None where none was found."""
        disobeyed = 0.0
        for obeyed in _FORCES:
            member = self._forced_member(row, label, obeyed)
            if member is not None:
                break
            disobeyed = obeyed
        else:
            return None
        # obeyed, but at too many mistakes: as little force as will do may still bring a model
        # within the slack
        for _ in range(_HALVINGS if disobeyed else 0):
            if member.mistakes <= self._most_mistakes:
                break
            force = math.sqrt(disobeyed * obeyed)
            weaker = self._forced_member(row, label, force)
            if weaker is None:
                disobeyed = force
            else:
                member, obeyed = weaker, force
        return member if member.mistakes <= self._most_mistakes else None

    def _forced_member(self, row: int, label: int, force: float) -> _Member | None:
        """Return the model of the answers and of that label of a row at that force, None where it
        does not obey."""
        # The force is in units of all answers together, so that it means the same early and late.
        weight = force * max(1.0, float(self._known.weights.sum()))
        model = self._fits.force(self._known, row, label, weight)
        obeys = int(self._fits.predict(model, np.array([row]))[0]) == label
        return self._evaluated_member(model) if obeys else None
