"""Whatever is given for whatever argument, a theorem answers or refuses in one sentence; nothing
raw comes through."""

import inspect
import math
from typing import Any

import pytest

from secretballot import theory
from secretballot.exceptions import DataError, ParameterError
from secretballot.privacy.accounting import PrivacyBudget, SparseVectorEvent

GOOD: dict[str, Any] = {
    "agreement": 0.8,
    "algorithm": "gaussian",
    "alpha": 0.2,
    "best_error": 0.1,
    "approximation": 0.1,
    "beta": 0.04,
    "budget": PrivacyBudget(1.0, 1e-6),
    "cost_first": 1.0,
    "cost_rest": 2.0,
    "delta": 1e-6,
    "disagreement": 0.02,
    "distances": [0, 30],
    "epsilon": 0.5,
    "error": 0.1,
    "event": SparseVectorEvent(3.0, 5.0, 20, 2, True),
    "expected_margins": [0.1, 0.2],
    "inner_epsilon": 1.0,
    "log_candidates": 3.0,
    "max_unstable": 5,
    "mean_disagreement": 0.02,
    "mean_error": 0.1,
    "mistakes": 3,
    "n_points": 50,
    "n_public": 5000,
    "n_queries": 1500,
    "n_records": 10**6,
    "n_sampled": 1000,
    "n_teachers": 50,
    "nu": 0.1,
    "rate": 0.2,
    "rows": [],
    "setting": "realizable",
    "share": 0.1,
    "share_first": 0.5,
    "shares": [0.1, 0.9],
    "sigma": 10.0,
    "tau": 0.5,
    "teacher_error": 0.02,
    "theta": 2.0,
    "vc_dimension": 1,
}
BY_FUNCTION = {
    "label_accuracy": {"margin": 20},
    "rate": {"tau": None},
    "sample_complexity": {"tau": None},
}
NEITHER = ("a text", b"x", 1j, object(), {}, {"a": 1}, math.nan, 10**400)
FUNCTIONS = [name for name in theory.__all__ if inspect.isfunction(getattr(theory, name))]


def _good(name: str) -> dict[str, Any]:
    """Return arguments that the function takes."""
    own = {**GOOD, "margin": 0.2, **BY_FUNCTION.get(name, {})}
    parameters = inspect.signature(getattr(theory, name)).parameters.values()
    return {p.name: own[p.name] for p in parameters if p.default is inspect.Parameter.empty}


def _optional(name: str) -> dict[str, Any]:
    parameters = inspect.signature(getattr(theory, name)).parameters.values()
    return {p.name: p.default for p in parameters if p.default is not inspect.Parameter.empty}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nonsense_is_refused_in_one_sentence(name: str) -> None:
    function, good = getattr(theory, name), _good(name)
    for argument in (*good, *_optional(name)):
        free = good.get(argument, _optional(name).get(argument)) is None
        for wrong in NEITHER if free else (*NEITHER, None):
            if isinstance(wrong, dict) and argument == "rows":
                continue
            with pytest.raises((ParameterError, DataError)) as refusal:
                function(**{**good, argument: wrong})
            message = str(refusal.value)
            assert message.endswith("."), (argument, wrong)
            assert len(message.splitlines()) == 1, (argument, wrong)
            assert len(message) < 250, argument


def test_good_arguments_are_good() -> None:
    """Else the test above would see the refusal of something else."""
    for name in FUNCTIONS:
        if name not in (
            "agnostic_learner_sizes",
            "labeler_sizes",
            "learner_sizes",
            "rate_sizes",
            "sample_sizes",
        ):
            getattr(theory, name)(**_good(name))


def test_a_constant_of_nothing_is_refused_before_anything_is_counted() -> None:
    with pytest.raises(ParameterError, match="constant is 0"):
        theory.sample_sizes(0.1, 0.02, PrivacyBudget(1.0, 1e-6), 1, 5000, constant=0)
    with pytest.raises(ParameterError, match="constant is 0"):
        theory.semi_private_sizes(0.1, 0.02, 1.0, 1, constant=0)
