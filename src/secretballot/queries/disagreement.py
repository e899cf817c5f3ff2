"""Ask where hypotheses that are still in the running disagree."""

from typing import Any

from secretballot._validation import check_count, check_finite, check_positive, check_probability
from secretballot.exceptions import DataError, ParameterError
from secretballot.hypotheses.base import HypothesisClass
from secretballot.queries.base import PublicPool, QueryStrategy
from secretballot.queries.fitting import PoolLearner, describe_learner
from secretballot.queries.oracle import OracleRegion
from secretballot.queries.regions import ExactRegion, Region
from secretballot.queries.stream import MistakeSlack, StreamWalk

__all__ = ["DisagreementSampling"]


class DisagreementSampling(QueryStrategy):
    """Disagreement-based active learning (Liu et al. 2021, supplement, Algorithm 7; after Hanneke 2014).

    The pool is a stream, in its order. A point is asked if two hypotheses that are still in the running label it
    differently; after points 2, 4, 8, ... the hypotheses go that make more mistakes on the answers than the fewest plus
    a slack. With a class that can be searched exactly the walk is the printed one.

    Parameters
    ----------
    hypotheses : HypothesisClass
        Class whose version space is kept exactly.
    slack_constant : float, default 0.3
        Constant c of the slack, at least 0. The theorem's is far larger, and would ask everything.
    noise_rate : float, default 0.05
        Public guess of the error of the best hypothesis on the labels of the service, from 0 to 1/2; 0 says that some
        hypothesis agrees with every released label.
    disagreement_coefficient : float, default 2.0
        Public guess of theta, at least 1.
    vc_dimension : int, optional
        By default that of the class.
    failure_probability : float, default 0.05
        gamma: chance that the best hypothesis is lost, were the constant the theorem's.

    Raises
    ------
    ParameterError
        If a setting is out of its range.
    """

    def __init__(
        self,
        hypotheses: HypothesisClass | None = None,
        learner: Any = None,
        *,
        slack_constant: float = 0.3,
        noise_rate: float = 0.05,
        disagreement_coefficient: float = 2.0,
        vc_dimension: int | None = None,
        failure_probability: float = 0.05,
    ) -> None:
        self.hypotheses = hypotheses
        self.learner = learner
        self.slack_constant = check_finite("slack_constant", slack_constant)
        self.noise_rate = check_finite("noise_rate", noise_rate)
        self.disagreement_coefficient = check_positive("disagreement_coefficient", disagreement_coefficient)
        self.vc_dimension = None if vc_dimension is None else check_count("vc_dimension", vc_dimension)
        self.failure_probability = check_probability("failure_probability", failure_probability)
        if hypotheses is not None and learner is not None:
            raise ParameterError("hypotheses and learner are both given; give one of them.")
        if hypotheses is not None and not isinstance(hypotheses, HypothesisClass):
            raise ParameterError(
                f"hypotheses is a {type(hypotheses).__name__}; give a HypothesisClass, or a classifier as learner."
            )
        if not self.slack_constant >= 0:
            raise ParameterError(f"slack_constant is {slack_constant!r}; it must be at least 0.")
        if not 0 <= self.noise_rate <= 0.5:
            raise ParameterError(f"noise_rate is {noise_rate!r}; it must lie between 0 and 0.5.")
        if not self.disagreement_coefficient >= 1:
            raise ParameterError(f"disagreement_coefficient is {disagreement_coefficient!r}; it must be at least 1.")

    def start(self, pool: PublicPool) -> StreamWalk:
        """Return a walk along the pool.

        Raises
        ------
        DataError
            If there are more than two classes.
        """
        if len(pool.classes) != 2:
            raise DataError(
                f"disagreement sampling tells two classes apart, and there are {len(pool.classes)}; "
                "use margin sampling for more."
            )
        region, vc_dimension = self._region(pool)
        slack = MistakeSlack(
            self.slack_constant,
            self.noise_rate,
            self.disagreement_coefficient,
            vc_dimension if self.vc_dimension is None else self.vc_dimension,
            self.failure_probability,
        )
        return StreamWalk(pool, region, slack)

    def _region(self, pool: PublicPool) -> tuple[Region, int]:
        if self.hypotheses is not None:
            return ExactRegion(self.hypotheses, pool), self.hypotheses.vc_dimension
        learner = PoolLearner(self.learner, pool)
        return OracleRegion(learner), int(learner.X.shape[1]) + 1

    def describe(self) -> dict[str, Any]:
        """Return name and settings."""
        return {
            "name": "disagreement",
            "hypotheses": None if self.hypotheses is None else self.hypotheses.name,
            "learner": describe_learner(self.learner) if self.hypotheses is None else None,
            "slack_constant": self.slack_constant,
            "noise_rate": self.noise_rate,
            "disagreement_coefficient": self.disagreement_coefficient,
            "vc_dimension": self.vc_dimension,
            "failure_probability": self.failure_probability,
        }
