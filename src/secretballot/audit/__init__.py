"""Attacks on whole releases and on the mechanisms alone: what is promised must survive them.

Mechanisms are attacked on dummy votes: small worlds are enumerated exactly (all neighbouring votes,
every value of the noise, every adaptive choice of queries), larger runs are tested against exact
distributions. Whole commands are run many times in processes of their own, and what they release is
searched for whatever distinguishes neighbouring inputs.
"""

from secretballot.audit.bounds import (
    clopper_pearson,
    epsilon_from_guesses,
    epsilon_from_rates,
    group_privacy,
    guess_p_value,
)
from secretballot.audit.canaries import CanaryAudit, audit_canaries, canary_bound
from secretballot.audit.distributions import (
    Distribution,
    discrete_gaussian_distribution,
    discrete_laplace_distribution,
    point_distribution,
)
from secretballot.audit.games import Step, adaptive_delta, hockey_stick, shifted_delta
from secretballot.audit.mechanisms_audit import MechanismFinding, MechanismsAudit, audit_mechanisms
from secretballot.audit.release_audit import ReleaseAudit, audit_release
from secretballot.audit.statistics import (
    delta_lower,
    frequency_p_value,
    outcomes_p_value,
    sample_p_value,
)
from secretballot.audit.threshold_game import StreamQuery, ThresholdGame, stream_law, stream_queries
from secretballot.audit.worlds import (
    ScriptedNoise,
    all_counts,
    neighbouring_counts,
    output_distribution,
)

__all__ = [
    "CanaryAudit",
    "Distribution",
    "MechanismFinding",
    "MechanismsAudit",
    "ReleaseAudit",
    "ScriptedNoise",
    "Step",
    "StreamQuery",
    "ThresholdGame",
    "adaptive_delta",
    "all_counts",
    "audit_canaries",
    "audit_mechanisms",
    "audit_release",
    "canary_bound",
    "clopper_pearson",
    "delta_lower",
    "discrete_gaussian_distribution",
    "discrete_laplace_distribution",
    "epsilon_from_guesses",
    "epsilon_from_rates",
    "frequency_p_value",
    "group_privacy",
    "guess_p_value",
    "hockey_stick",
    "neighbouring_counts",
    "outcomes_p_value",
    "output_distribution",
    "point_distribution",
    "sample_p_value",
    "shifted_delta",
    "stream_law",
    "stream_queries",
]
