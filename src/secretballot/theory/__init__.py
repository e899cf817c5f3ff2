"""Bounds of the papers as functions of public numbers: Table 1, and voting in numbers.

Citations: LZCW = Liu, Zhu, Chaudhuri, Wang 2021; BTT = Bassily, Thakurta, Thakkar 2018. "Item 9" is
that of `docs/explanation/differences.md`. A bound that says nothing has `vacuous` set.
"""

from secretballot.theory.rates import (
    ALGORITHMS,
    SETTINGS,
    Rate,
    RiskBound,
    SampleComplexity,
    rate,
    render_rates,
    sample_complexity,
)
from secretballot.theory.voting import (
    FAILING_CLASS,
    StreamForecast,
    VotingExample,
    expected_label_accuracy,
    label_accuracy,
    stream_forecast,
    voting_fails,
    voting_wins,
    voting_wins_bound,
)

__all__ = [
    "ALGORITHMS",
    "FAILING_CLASS",
    "SETTINGS",
    "Rate",
    "RiskBound",
    "SampleComplexity",
    "StreamForecast",
    "VotingExample",
    "expected_label_accuracy",
    "label_accuracy",
    "rate",
    "render_rates",
    "sample_complexity",
    "stream_forecast",
    "voting_fails",
    "voting_wins",
    "voting_wins_bound",
]
