"""Golden references: 300 prices, every method in process, every verb. See `make golden`.

Here every run has noise; that without any, half of the prices and runs of which a cheaper case
stays are for slow tests and `make golden`.
"""

import pytest

from golden import prices, recorded
from golden.__main__ import refusals
from golden.lists import FEW
from golden.moved import INTEGERS, Moved
from golden.runs import RUNS, is_possible, recorded_run
from golden.verbs import recorded_verbs


def slow_if(slow: bool) -> tuple[pytest.MarkDecorator, ...]:
    return (pytest.mark.slow,) if slow else ()


@pytest.fixture(autouse=True)
def _both_verifiers() -> None:
    """Leave certificates to the runs of `verify` among the verbs: here values are compared."""


@pytest.fixture(scope="module")
def known_runs() -> recorded.Values:
    return recorded.read("runs")


def test_recorded_prices_are_above_what_their_lists_can_tell() -> None:
    assert prices.is_fine(prices.recorded())


@pytest.mark.parametrize(
    "start", [pytest.param(n, marks=slow_if(n >= FEW // 2)) for n in range(0, FEW, 50)]
)
def test_prices_are_those_recorded(start: int) -> None:
    numbers = range(start, start + 50)
    found = list(prices.moved(numbers, prices.priced(numbers)))
    assert not found, recorded.table(found)


DEAR = ("psq three classes confident", "agnostic labeler, intervals", "labels by votes, as sets")


@pytest.mark.parametrize("noise", ["hashed", pytest.param("zero", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [pytest.param(name, marks=slow_if(name in DEAR)) for name in RUNS])
def test_runs_are_those_recorded(name: str, noise: str, known_runs: recorded.Values) -> None:
    if not is_possible(name):
        pytest.skip("reference data is not there")
    entry = f"{name}, noise {noise}"
    found = list(recorded.moved(known_runs, {entry: recorded_run(name, noise)}))
    assert not found, recorded.table(found)


def test_verbs_mean_what_is_recorded() -> None:
    found = list(recorded.moved(recorded.read("verbs"), recorded_verbs(long=False)))
    assert not found, recorded.table(found)


@pytest.mark.parametrize(
    ("moved", "given", "sentence"),
    [
        (Moved("list 3 (counts) delta", 2e-6, 1e-6, "fell"), {}, "--proof"),
        (Moved("list 3 (counts) delta", 2e-6, 1e-6, "fell"), {"proof": "prices.md, 3"}, None),
        (Moved("list 3 (counts) delta", 2e-6, 1e-9, "below"), {"proof": "prices.md, 3"}, "below"),
        (Moved("moments, noise zero: opened", 1, 2, INTEGERS), {}, "--replaces moments"),
        (Moved("moments, noise zero: opened", 1, 2, INTEGERS), {"replaces": ["pate"]}, "moments"),
        (Moved("moments, noise zero: opened", 1, 2, INTEGERS), {"replaces": ["moments"]}, None),
        (Moved("moments, noise zero: values[0]", [0.1], [0.2], "moved"), {}, None),
    ],
)
def test_what_must_not_be_recorded_is_refused(moved, given, sentence) -> None:
    refused = refusals([moved], **{"replaces": [], "proof": "", **given})
    assert [sentence in one for one in refused] == ([] if sentence is None else [True])
