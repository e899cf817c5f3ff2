"""Attacks on the mechanisms, by enumeration and by statistics: what is promised must survive both.

Everything here runs on made-up votes. Small worlds are enumerated exactly: all neighbouring votes, every
value of the noise, every adaptive choice of queries; larger runs are tested against exact laws with honest
p-values.
"""

from secretballot.audit.games import Step, adaptive_delta, hockey_stick, shifted_delta
from secretballot.audit.laws import Law, discrete_gaussian_law, discrete_laplace_law, point_law
from secretballot.audit.statistics import delta_lower, frequency_p_value, outcomes_p_value, sample_p_value
from secretballot.audit.threshold_game import StreamQuery, ThresholdGame, stream_law, stream_queries
from secretballot.audit.worlds import ScriptedNoise, all_counts, neighbouring_counts, output_law

__all__ = [
    "Law",
    "ScriptedNoise",
    "Step",
    "StreamQuery",
    "ThresholdGame",
    "adaptive_delta",
    "all_counts",
    "delta_lower",
    "discrete_gaussian_law",
    "discrete_laplace_law",
    "frequency_p_value",
    "hockey_stick",
    "neighbouring_counts",
    "outcomes_p_value",
    "output_law",
    "point_law",
    "sample_p_value",
    "shifted_delta",
    "stream_law",
    "stream_queries",
]
