"""What a run of Gaussian labels lost by its votes, and how fast that changes with them: the
statistic that `door.vote_loss` publishes with noise."""

import math
from dataclasses import dataclass, field

import numpy as np
from scipy.ndimage import maximum_filter1d
from scipy.special import log_ndtr, ndtri_exp

from secretballot._typing import FloatArray, IntArray
from secretballot._validation import check_count, check_positive
from secretballot.aggregation.gaussian import GaussianAggregator
from secretballot.exceptions import Parameter, ParameterError
from secretballot.privacy.accounting.likely_outcome import likely_outcome_renyi
from secretballot.privacy.accounting.smooth_gaussian import LEAST_SCALE, LOG_STEP

__all__ = ["UNITS_PER_NAT", "VoteLoss"]

UNITS_PER_NAT = 2**20
PER_VOTE = 8  # positions of the grid of leads
MOST_TEACHERS = 20_000
MOST_ORDER = MOST_TEACHERS  # a clear vote helps up to about half its lead
LEAST_SIGMA = 4.0
_MARGIN = 2  # positions that rounding, and floats, may add to what two votes move
_FLOATS = 1e-6  # of a position


@dataclass(frozen=True)
class VoteLoss:
    """The Renyi divergence, at one order, that the votes of a run bound, with its smooth
    sensitivity.

    Parameters
    ----------
    aggregator : GaussianAggregator
        Of labels alone, with sigma of at least 4.
    n_teachers : int
        At most 20,000.
    order : float
        Above 1, at most 20,000; fixed beforehand.
    steps : int
        The scale moves by at most so many thousandths, in logarithms, when one unit changes; from
        2 to 1000.

    Raises
    ------
    ParameterError
        If a parameter is out of its range, or the aggregator is another one.

    Notes
    -----
    docs/explanation/prices.md, section 17. All of it is made of public numbers, but for what the
    methods are given.
    """

    aggregator: GaussianAggregator
    n_teachers: int
    order: float
    steps: int
    losses: IntArray = field(init=False, repr=False, compare=False)
    changes: IntArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        kind = self.aggregator
        if not isinstance(kind, GaussianAggregator) or kind.release != "labels":
            raise ParameterError(
                Parameter("aggregator"),
                " is not Gaussian voting for labels alone; what counts, thresholds or stops lose by"
                " the votes is not proved for a fixed order, so take a GaussianAggregator with"
                " release='labels'.",
            )
        if not kind.sigma >= LEAST_SIGMA:
            raise ParameterError(
                Parameter("sigma"), f" is {kind.sigma}; it must be at least {LEAST_SIGMA} votes."
            )
        if not check_count("n_teachers", self.n_teachers) <= MOST_TEACHERS:
            raise ParameterError(
                Parameter("n_teachers"),
                f" is {self.n_teachers}; at most {MOST_TEACHERS} are taken.",
            )
        order = check_positive("order", self.order)
        if not order > 1:
            raise ParameterError(
                Parameter("order"), f" is {order}; a Renyi divergence has an order above 1."
            )
        if not order <= MOST_ORDER:
            raise ParameterError(
                Parameter("order"),
                f" is {order:g}; beyond {MOST_ORDER} no votes lose less than any do, so take a"
                " smaller one.",
            )
        object.__setattr__(self, "order", order)
        if not 2 <= check_count("steps", self.steps) <= 1000:
            raise ParameterError(
                Parameter("steps"), f" is {self.steps}; it must lie between 2 and 1000."
            )
        object.__setattr__(self, "losses", self._loss_table())
        moved, padded = self.moved, self._padded_losses(self.moved)
        # losses fall with the lead, so the farthest ones differ most
        changes = np.maximum(padded[: -2 * moved] - self.losses, self.losses - padded[2 * moved :])
        object.__setattr__(self, "changes", changes)

    @property
    def moved(self) -> int:
        """Most positions that one changed vote moves a query's lead by."""
        return 2 * PER_VOTE + _MARGIN

    @property
    def _votes_per_lead(self) -> float:
        """Standard deviation of the noise on a lead."""
        sigma = self.aggregator.sigma
        return 2 * sigma if self.aggregator.n_classes == 2 else math.sqrt(2) * sigma

    @property
    def _lowest_position(self) -> int:
        return -4 * PER_VOTE

    def _loss_table(self) -> IntArray:
        """Return the loss at each position of the effective lead, in units, rounded up."""
        leads = np.arange(self._lowest_position, self.n_teachers * PER_VOTE + 1) / PER_VOTE
        log_q = math.log(self.aggregator.n_classes - 1) + log_ndtr(-leads / self._votes_per_lead)
        sigma = self.aggregator.sigma
        # of two classes one count moves, of more two: a / (2 sigma^2) and a / sigma^2
        effective = math.sqrt(2) * sigma if self.aggregator.n_classes == 2 else sigma
        bounds = likely_outcome_renyi(np.minimum(log_q + 1e-9, -1e-9), effective, self.order)
        units = np.ceil(bounds * UNITS_PER_NAT).astype(np.int64)
        # from above, and never rising with the lead
        return np.maximum.accumulate(units[::-1])[::-1]

    def _padded_losses(self, width: int) -> IntArray:
        return np.pad(self.losses, width, mode="edge")

    def positions(self, counts: IntArray) -> IntArray:
        """Return the position of each query's effective lead, shape (n_queries,); private.

        `counts` has shape (n_queries, n_classes). One changed vote moves each by at most `moved`.
        """
        ordered = np.sort(counts, axis=1)[:, ::-1].astype(np.float64)
        leads = ordered[:, :1] - ordered[:, 1:]
        # the discrete tail from x on lies under the continuous one from x - 1 on
        shift = 2.0 if self.aggregator.n_classes == 2 else 1.0
        log_tails = log_ndtr(-(leads - shift) / self._votes_per_lead)
        top = log_tails.max(axis=1, keepdims=True)
        log_mean = top[:, 0] + np.log(np.exp(log_tails - top).mean(axis=1))
        lead: FloatArray = -ndtri_exp(np.minimum(log_mean, -1e-12)) * self._votes_per_lead
        # downward: a smaller lead has a larger loss
        at = np.floor(lead * PER_VOTE - _FLOATS).astype(np.int64) - self._lowest_position
        return np.clip(at, 0, len(self.losses) - 1)

    def value(self, positions: IntArray) -> int:
        """Return the loss of the run at positions of shape (n_queries,), in units; private."""
        return int(self.losses[positions].sum())

    def log_sensitivity(self, positions: IntArray) -> float:
        """Return the logarithm of the smooth sensitivity at positions of shape (n_queries,), in
        units, -inf where nothing moves; private."""
        beta, best = (self.steps - 1) * LOG_STEP, -math.inf
        most = math.log(max(1, int(self.changes.max()) * len(positions)))
        distance = 0
        # so many changed votes reach every position, and more change nothing
        while most - beta * distance > best and distance <= self.n_teachers + 10:
            near = self.changes
            if distance:
                width = min(2 * distance * self.moved + 1, 2 * len(near) + 1)
                near = maximum_filter1d(near, width, mode="nearest")
            largest = int(near[positions].sum())
            if largest:
                best = max(best, math.log(largest) - beta * distance)
            distance += 1
        return best

    def scale_number(self, positions: IntArray, noise_ratio: float) -> int:
        """Return the number j of the noise's scale, noise_ratio e^(j / 1000) units; private.

        `positions` has shape (n_queries,). One changed vote moves it by at most `steps`.
        """
        least = self.least_scale_number(noise_ratio)
        smooth = self.log_sensitivity(positions)
        if smooth == -math.inf:
            return least
        return max(least, math.ceil(smooth / LOG_STEP + _FLOATS))

    def least_scale_number(self, noise_ratio: float) -> int:
        """Return the number below which no scale goes."""
        return math.ceil(math.log(LEAST_SCALE / noise_ratio) / LOG_STEP) + 1

    def largest_scale_number(self, noise_ratio: float, n_queries: int) -> int:
        """Return a number above which no votes' scale goes."""
        most = math.log(max(1, int(self.changes.max()) * n_queries))
        return max(self.least_scale_number(noise_ratio), math.ceil(most / LOG_STEP) + 2)
