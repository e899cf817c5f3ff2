"""How much to ask, set by one paid number about the votes instead of by an assumption."""

import math
import warnings
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
from secretballot.core.exponential import least_quotient
from secretballot.core.ledger import Ledger
from secretballot.core.mechanisms import Mechanism, teachers_of
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
    noise_of,
    noisy_terms,
)
from secretballot.learners.training.account import refuse_beyond, rest_of
from secretballot.releasing import estimate_stability

# Share of the pool that may be less stable than the released number says. Gaussian voting is
# planned for the typical point. The sparse vector pays only where nearly all points are stable, so
# that is what is asked about.
FRACTIONS = dict.fromkeys(("auto", "labels", "counts", "vote-table", "laplace"), 0.5)
FRACTIONS["sparse-vector"] = 0.1
BETA = 0.05  # failure probability of what is read off the number


@dataclass(frozen=True)
class EstimatedSize:
    """What a fit does with an estimate: pay, read it, set up the mechanism with what is left.

    Made by `of_fit`.

    Attributes
    ----------
    epsilon : float
        Price of the estimate.
    budget : PrivacyBudget
        For the estimate and the answers together.
    mechanism : str
        One of `FRACTIONS`.
    release : {"labels", "counts"}
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
    release: str
    pool: VoteShape

    @classmethod
    def of_fit(
        cls, model: Any, pool: VoteShape, ledger: Ledger, request: str | None
    ) -> "EstimatedSize":
        """Return what a `PATEClassifier` does with an estimate, before it spends or trains.

        Parameters
        ----------
        model, pool
            As for `of_settings`.
        ledger : Ledger
            What is to pay.
        request : str or None
            Key of the fit.

        Raises
        ------
        ParameterError
            As for `of_settings`.
        BudgetError
            If the ledger would pay for the estimate and not for the answers.
        """
        estimated = cls.of_settings(model, pool)
        need = estimated.budget
        # an estimate that was paid for before is not paid for again
        if request is not None and ledger.entry(cls.request_of(request)) is not None:
            need = estimated.rest
        refuse_beyond(ledger, need, request)
        return estimated

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
            If the estimate would leave nothing, or the mechanism needs none, or even the smallest
            mechanism that may come of it answers nothing.
        """
        # Refusals of settings come first, then what the estimate could show, then the ledger, which
        # must pay for both: an estimate without answers is money thrown away.
        what, price, budget = Parameter("n_queries"), model.estimate_epsilon, model._budget
        sets = " pays for an estimate that sets how much is asked, and "
        if isinstance(model.mechanism, Mechanism):
            raise ParameterError(what, sets, "a mechanism is given; leave out one of the two.")
        name, own = named("mechanism", model.mechanism, OF_CLASSES)
        set_already = [one for one in ("max_abstentions", "max_answers") if one in own]
        if set_already or name not in FRACTIONS:
            by = Parameter(set_already[0]) if set_already else f"the {name} mechanism"
            raise ParameterError(what, sets, by, " sets it, too; leave out one of the two.")
        counts = gives_counts(model.mechanism, counts=model._counts)
        if counts and not model.in_rounds:
            all_of_them = "noisy counts of all public points are released; leave it out, or use "
            raise ParameterError(what, sets, all_of_them, Argument("mechanism", "labels"), ".")
        if not price < budget.epsilon:
            raise ParameterError(
                what,
                f" pays {price:g} of epsilon {budget.epsilon:g} for an estimate; leave something"
                " for answers.",
            )
        estimated = cls(price, budget, name, "counts" if counts else "labels", pool)
        smallest = estimated.smallest()
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

    def pay(self, counts: Votes, ledger: Ledger, request: str | None) -> Released:
        """Release the estimate from the votes on the whole pool.

        Raises
        ------
        ParameterError, BudgetError, LedgerError
            As for `secretballot.estimate_stability`.
        """
        return estimate_stability(
            counts,
            ledger,
            fraction=FRACTIONS[self.mechanism],
            epsilon=self.epsilon,
            request=None if request is None else self.request_of(request),
            purpose="how stable the votes on the public pool are, to set how much is asked",
        )

    def smallest(self) -> Terms:
        """Return the smallest terms that may come of it: one query, or one abstention."""
        return self._terms_of_size(1)

    def without_number(self) -> Terms:
        """Return the terms that a number leads to that shows nothing."""
        return self._terms_of_size(self._size_without_number)

    def terms_by(self, estimate: Released) -> Terms:
        """Return the terms that the released number leads to, for the rest of the budget."""
        return self._terms_of_size(self.size_by(estimate.values.item()))

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
        stream = self.mechanism == "sparse-vector"
        instead = "one abstention is reserved" if stream else "a margin of 0.6 K is assumed"
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
        stream = self.mechanism == "sparse-vector"
        return 1 if stream else choose_label_queries(self.rest, self.pool, noise=self._noise)

    def _size_shown_by(self, seen: int) -> int:
        if self.mechanism == "sparse-vector":
            return self._abstentions_shown_by(seen)
        distance = seen - self._noise_slack
        if distance < 1:
            return 0
        # ceil(margin / 2) - 1 >= d means margin >= 2 d + 1
        return choose_label_queries(self.rest, self.pool, 2 * distance + 1, noise=self._noise)

    @property
    def _noise(self) -> str:
        return noise_of(self.mechanism)

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
            return seen > event.threshold + slack.total

        return last_that_holds(holds, min(MAX_UNSTABLE, enough))

    def _terms_of_size(self, size: int) -> Terms:
        if self.mechanism == "sparse-vector":
            # here the size is a number of abstentions, elsewhere one of queries
            stream = sparse_vector(self.rest, self.pool.n_queries, max_abstentions=size)
            return Terms(stream, self.pool, self.rest)
        return noisy_terms(self._noise, self.rest, self.pool.first(size), self.release)
