"""How much to ask, set by one paid number about the votes instead of by an assumption."""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from secretballot._naming import named
from secretballot.accounting import (
    PrivacyBudget,
    WeakSignalWarning,
    calibrate_sparse_vector,
    sparse_vector,
)
from secretballot.accounting.error_level import quantile_slack
from secretballot.accounting.recipes import Terms, check_useful
from secretballot.accounting.stream_recipes import largest_distance
from secretballot.core import releasing
from secretballot.core.exponential import least_quotient
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import teachers_of
from secretballot.core.private import Votes
from secretballot.core.releasing import Released
from secretballot.core.types import VoteShape
from secretballot.exceptions import Argument, Parameter, ParameterError
from secretballot.learners.pate.mechanisms import (
    MAX_UNSTABLE,
    OF_CLASSES,
    choose_label_queries,
    gives_counts,
    last_that_holds,
    noisy_terms,
)
from secretballot.learners.training.account import refuse_beyond, rest_of
from secretballot.releasing import estimate_stability

# Share of the pool that may be less stable than the released number says. Gaussian voting is
# planned for the typical point. The sparse vector pays only where nearly all points are stable, so
# that is what is asked about.
SPARSE = "sparse-vector"
FRACTIONS = {"auto": 0.5, "labels": 0.5, SPARSE: 0.1}
BETA = 0.05  # failure probability of what is read off the number


@dataclass(frozen=True)
class EstimatedSize:
    """What a fit does with an estimate: pay, read it, set up the mechanism with what is left.

    Attributes
    ----------
    epsilon : float
        Price of the estimate.
    budget : PrivacyBudget
        For the estimate and the answers together.
    mechanism : str
        One of `FRACTIONS`; of labels.
    pool : VoteShape
        Of the votes on all public points that may be asked.

    Privacy
    -------
    Unit : one record or user, which reaches one shard, hence one teacher.
    Relation : add or remove one unit, or replace it in place.
    Sensitivity : 1 vote for the estimate (`StabilityQuantile`); everything read off it is
        post-processing.
    Price : (epsilon, 0) for the estimate and (budget.epsilon - epsilon, budget.delta) for the
        answers; the noise of the answers is chosen in the light of the estimate, and the sum holds
        for such a choice too.
    Source : Bassily, Thakurta, Thakkar 2018, Remark 1, as differences 10 puts it right.
    Rounding : what is left for the answers is rounded down.
    """

    epsilon: float
    budget: PrivacyBudget
    mechanism: str
    pool: VoteShape

    @classmethod
    def of_settings(cls, model: Any, pool: VoteShape) -> "EstimatedSize":
        """Return what a `PATEClassifier` does with an estimate, by its settings alone.

        Parameters
        ----------
        model : PATEClassifier
            For its settings.
        pool : VoteShape

        Raises
        ------
        ParameterError
            If the estimate would leave nothing, or sets nothing that is open, or even the smallest
            mechanism that may come of it answers nothing.
        """
        asked, price, budget = model.mechanism, model.estimate_epsilon, model._budget
        by_name = isinstance(asked, str)
        name, own = named("mechanism", asked, OF_CLASSES) if by_name else ("", {})
        counts = by_name and gives_counts(asked, counts=model._counts)
        if name not in FRACTIONS or own or counts or model.strategy != "passive":
            raise ParameterError(
                Parameter("n_queries"),
                " pays for an estimate of how many labels are asked, or how many abstentions are"
                " reserved; use ",
                Argument("mechanism", "labels"),
                " or 'sparse-vector', with nothing else that sets it and no strategy; or leave the"
                " estimate out.",
            )
        if not price < budget.epsilon:
            raise ParameterError(
                Parameter("n_queries"),
                f" pays {price:g} of epsilon {budget.epsilon:g} for an estimate; leave something"
                " for answers.",
            )
        estimated = cls(price, budget, name, pool)
        smallest = estimated.terms(1)
        check_useful(smallest.mechanism, smallest.shape)
        estimated.check_reach()
        return estimated

    def check_reach(self) -> None:
        """Refuse an estimate that could not show anything, were all teachers of one mind.

        Raises
        ------
        ParameterError
            If its own noise is larger than any stability.
        """
        most = self._unanimous_stability
        if self._size_shown_by(most) < 1:
            raise ParameterError(
                f"An estimate at epsilon {self.epsilon:g} may be off by {self._noise_slack} votes,"
                f" and {teachers_of(self.pool)} teachers are stable by {most} at most, so it could"
                " show nothing; give it more of epsilon, or use more teachers."
            )

    @property
    def _unanimous_stability(self) -> int:
        """Stability of a unanimous vote."""
        return largest_distance(teachers_of(self.pool))

    @property
    def rest(self) -> PrivacyBudget:
        """What is left for the answers."""
        return PrivacyBudget(rest_of(self.budget.epsilon, self.epsilon), self.budget.delta)

    @staticmethod
    def request_of(request: str) -> str:
        """Return the key of the estimate in the ledger, under which it is not paid for twice."""
        return f"{request}/estimate"

    def pay(self, votes: Callable[[], Votes], ledger: Ledger, request: str | None) -> Released:
        """Release the estimate, or return what was released.

        Parameters
        ----------
        votes : callable
            Makes the votes on the whole pool, where nothing was released before.
        ledger : Ledger
        request : str or None
            Key of the fit.

        Raises
        ------
        ParameterError, BudgetError, LedgerError
            As for `secretballot.estimate_stability`; also if the ledger would pay for the estimate
            and not for the answers: an estimate without answers is money thrown away.
        """
        key = None if request is None else self.request_of(request)
        begun = key is not None and ledger.entry(key) is not None
        refuse_beyond(ledger, self.rest if begun else self.budget, request)
        paid = releasing.stored(ledger, str(key)) if begun else None
        fraction = FRACTIONS[self.mechanism]
        if paid is None:
            why = "how stable the votes on the public pool are, to set how much is asked"
            terms: dict[str, Any] = {"fraction": fraction, "epsilon": self.epsilon}
            return estimate_stability(votes(), ledger, **terms, request=key, purpose=why)
        made = getattr(paid.mechanism, "fraction", None), paid.budget.epsilon, paid.shape
        if made != (fraction, self.epsilon, self.pool):
            raise ParameterError(
                "The request was begun with other terms (",
                Parameter("n_queries"),
                "); go on with the same, or ask under another key. Nothing was spent.",
            )
        return paid

    def without_number(self) -> Terms:
        """Return the terms that a number leads to that shows nothing."""
        return self.terms(self._size_without_number)

    def size_by(self, released: int) -> int:
        """Return the number of queries, or of abstentions, that a released number leads to.

        Gaussian voting: as many as leave a vote of the margin that half of the points have, as far
        as the number shows, right 19 times in 20. Sparse vector: the largest T whose threshold,
        which grows with T, nine points in ten are shown to pass, and no larger than the whole pool
        can need. Both statements fail with probability `BETA` at most. A number that shows nothing,
        and was paid for, leads to what is done without one, with a warning: a margin of 0.6 K is
        assumed, or T is 1.
        """
        size = self._size_shown_by(
            min(released, self._unanimous_stability)
        )  # beyond a unanimous vote there is only noise
        if size >= 1:
            return size
        stops = self.mechanism == SPARSE
        instead = "one abstention is reserved" if stops else "a margin of 0.6 K is assumed"
        warnings.warn(
            f"The estimate of the stability is {released} votes of {teachers_of(self.pool)}"
            f" teachers, too little to go by, so {instead}; use more teachers, a larger epsilon, or"
            " the noisy counts.",
            WeakSignalWarning,
            stacklevel=2,
        )
        return self._size_without_number

    @property
    def _size_without_number(self) -> int:
        return 1 if self.mechanism == SPARSE else choose_label_queries(self.rest, self.pool)

    def _size_shown_by(self, seen: int) -> int:
        if self.mechanism == SPARSE:
            return self._abstentions_shown_by(seen)
        distance = seen - self._noise_slack
        if distance < 1:
            return 0
        # ceil(margin / 2) - 1 >= d means margin >= 2 d + 1
        return choose_label_queries(self.rest, self.pool, 2 * distance + 1)

    @property
    def _noise_slack(self) -> int:
        """Votes that the estimate's own noise exceeds with probability `BETA` at most."""
        scale = least_quotient(1, self.epsilon)
        return max(0, math.ceil(-scale * math.log(BETA * (1 + math.exp(-1 / scale)))) - 1)

    def _abstentions_shown_by(self, seen: int) -> int:
        enough = math.floor(FRACTIONS[self.mechanism] * self.pool.n_queries) + 1

        def holds(unstable: int) -> bool:
            try:
                event = calibrate_sparse_vector(self.rest, unstable)
            except ParameterError:  # so many abstentions cannot be had for this budget
                return False
            slack = quantile_slack(self.epsilon, event, self.pool.n_queries, BETA)
            return seen > event.threshold + sum(slack)

        return last_that_holds(holds, min(MAX_UNSTABLE, enough))

    def terms(self, size: int) -> Terms:
        """Return the terms of so many queries or, of a sparse vector, of so many abstentions, for
        the rest of the budget."""
        if self.mechanism == SPARSE:
            stream = sparse_vector(self.rest, self.pool.n_queries, max_abstentions=size)
            return Terms(stream, self.pool, self.rest)
        return noisy_terms("gaussian", self.rest, self.pool.first(size), "labels")
