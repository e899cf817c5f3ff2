"""The region of disagreement of any learner, by fits that are forced to label a point otherwise:
one by one, or logistic ones together."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from secretballot._rows import take_rows
from secretballot._typing import BoolArray, FloatArray, IntArray
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


# Newton's method stops at steps below this, in units of a scaled column's coefficient, or after so
# many of them.
_STEP = 1e-4
_STEPS = 40


class LogisticFits:
    """What a `PoolLearner` does, by a logistic regression with an intercept, many fits at once.

    Each starts at the fit without a forced label. The objective is scikit-learn's, half the squared
    coefficients plus `C` times the weighted losses, solved by Newton's method with step halving. A
    model is its intercept and coefficients, of shape (n_features + 1,).

    Parameters
    ----------
    X : array or CSR matrix of shape (m, n_features)
        Scaled points.
    C : float
        Inverse strength of the penalty on coefficients.
    """

    name = "LogisticRegression"
    batch = 32

    def __init__(self, X: Any, C: float) -> None:
        self._X = X
        self._penalty = np.full(X.shape[1] + 1, 1 / C)
        self._penalty[0] = 1e-8  # the intercept is free; a trace keeps Newton's matrix regular

    def fit_known(self, known: LabelledRows) -> FloatArray:
        """As `PoolLearner.fit_known`."""
        start = np.zeros((1, len(self._penalty)))
        nothing = np.zeros(1)  # any row, forced by no weight
        theta: FloatArray = self._least(known, known.rows[:1], nothing, nothing, start)[0]
        return theta

    def force(
        self, known: LabelledRows, rows: IntArray, labels: IntArray, weights: FloatArray
    ) -> list[Any]:
        """As `PoolLearner.force`; all of shape (n,)."""
        start = np.repeat(self.fit_known(known)[None, :], len(rows), axis=0)
        return list(self._least(known, rows, labels, weights, start))

    def predict(self, model: Any, rows: IntArray) -> IntArray:
        """Return 1 where the linear form is positive, shape (n,)."""
        return np.asarray(self._with_intercept(rows) @ model > 0, dtype=np.int64)

    def _with_intercept(self, rows: IntArray) -> FloatArray:
        points = take_rows(self._X, rows)
        points = points.toarray() if hasattr(points, "toarray") else points
        return np.column_stack([np.ones(len(rows)), points])

    def _least(
        self,
        known: LabelledRows,
        rows: IntArray,
        labels: Any,
        weights: FloatArray,
        theta: FloatArray,
    ) -> FloatArray:
        """Return where all objectives are least, starting at `theta`, (n_fits, n_features + 1)."""
        # All fits take Newton's step together, since one call on stacked matrices costs hardly more
        # than one on a single one; a fit whose objective would rise halves its own step.
        Z, forced = self._with_intercept(known.rows), self._with_intercept(rows)
        signs = np.where(known.labels == 1, 1.0, -1.0)
        sign = np.where(labels == 1, 1.0, -1.0)

        def objective(theta: FloatArray) -> FloatArray:
            losses = np.logaddexp(0.0, -signs * (theta @ Z.T)) @ known.weights
            loss = weights * np.logaddexp(0.0, -sign * np.einsum("bd,bd->b", forced, theta))
            return np.asarray(losses + loss + 0.5 * theta**2 @ self._penalty)

        def newton_step(theta: FloatArray) -> FloatArray:
            wrong = expit(-signs * (theta @ Z.T))  # (n_fits, n)
            own = expit(-sign * np.einsum("bd,bd->b", forced, theta))
            gradient = (
                theta * self._penalty
                - (wrong * known.weights * signs) @ Z
                - (weights * own * sign)[:, None] * forced
            )
            curved = wrong * (1 - wrong) * known.weights
            hessian = np.stack([(Z * row[:, None]).T @ Z for row in curved])
            bent = (weights * own * (1 - own))[:, None, None]
            hessian += bent * forced[:, :, None] * forced[:, None, :]
            hessian += np.diag(self._penalty)
            return np.asarray(np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0])

        value = objective(theta)
        for _ in range(_STEPS):
            step, scale = newton_step(theta), np.ones(len(theta))
            for _ in range(_STEPS + 1):
                trial = theta - scale[:, None] * step
                reached = objective(trial)
                worse = reached > value + 1e-12 * np.abs(value)
                if not worse.any():
                    break
                scale[worse] /= 2
            theta = np.where(worse[:, None], theta, trial)
            value = np.where(worse, value, reached)
            if not (np.abs(scale[:, None] * step).max(axis=1) > _STEP).any():
                break
        return theta


ForcedFits = PoolLearner | LogisticFits


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
    fits : ForcedFits
    """

    looks_ahead = False

    def __init__(self, fits: ForcedFits) -> None:
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
        start = 0
        while len(undecided := start + np.flatnonzero(~inside[start:])[: self._fits.batch]):
            start = int(undecided[-1]) + 1
            for found in self._forced_members(rows[undecided], 1 - labels[undecided]):
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

    def _forced_members(self, rows: IntArray, labels: IntArray) -> list[_Member]:
        """Return the models within the slack that were found to give one of the rows its label."""
        found: list[_Member] = []
        # disobeyed, obeyed
        weakest, strongest = np.full(len(rows), _FORCES[0]), np.zeros(len(rows))
        open_ = np.arange(len(rows))
        for weight in _FORCES:
            obeyed, left = self._forced_at(rows, labels, np.full(len(rows), weight), open_, found)
            strongest[obeyed], weakest[left] = weight, weight
            open_ = left
        # obeyed, but at too many mistakes: as little force as will do may still bring a model
        # within the slack
        open_ = np.flatnonzero(strongest > _FORCES[0])
        for _ in range(_HALVINGS):
            force = np.sqrt(weakest * strongest)
            obeyed, left = self._forced_at(rows, labels, force, open_, found)
            strongest[obeyed], weakest[left] = force[obeyed], force[left]
            open_ = np.sort(np.concatenate([obeyed, left]))
        return found

    def _forced_at(
        self,
        rows: IntArray,
        labels: IntArray,
        force: FloatArray,
        places: IntArray,
        found: list[_Member],
    ) -> tuple[IntArray, IntArray]:
        """Return the places where a forced label was obeyed beyond the slack, and where it was not.

        Models within the slack go to `found`, and their places to neither.
        """
        # The force is in units of all answers together, so that it means the same early and late.
        if not len(places):
            return places, places
        weights = force[places] * max(1.0, float(self._known.weights.sum()))
        models = self._fits.force(self._known, rows[places], labels[places], weights)
        given = [
            int(self._fits.predict(model, rows[[place]])[0])
            for model, place in zip(models, places, strict=True)
        ]
        obeyed = np.array(given) == labels[places]
        members = [self._evaluated_member(model) for model in models]
        within = np.array([member.mistakes <= self._most_mistakes for member in members]) & obeyed
        found.extend(member for member, good in zip(members, within, strict=True) if good)
        return places[obeyed & ~within], places[~obeyed]
