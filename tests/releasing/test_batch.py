"""A release as a whole: what it refuses, the order in which it works, and what stays spent when
something breaks."""

import os
import signal
from typing import Any

import numpy as np
import pytest

import secretballot as sb
import secretballot_verify as second
from secretballot.accounting import noisy_votes, sparse_vector, stable_value
from secretballot.core import releasing
from secretballot.core.mechanisms import NoisyVotes
from secretballot.core.noise import ExactNoise

BUDGET = sb.PrivacyBudget(1.0, 1e-6)


def votes(**made_for: str) -> sb.Votes:
    ones = np.arange(0, 251, 10)
    table = np.column_stack([250 - ones, ones])
    return sb.votes_of_counts(table, classes=["no", "yes"], **made_for)


@pytest.fixture(scope="module")
def counts() -> sb.Votes:
    return votes()


@pytest.fixture(scope="module")
def mechanism() -> NoisyVotes:
    return noisy_votes(BUDGET, votes().shape)


def test_a_release_is_accounted_and_the_same_request_gets_the_stored_answer_for_nothing(
    counts: sb.Votes, ledger: sb.Ledger, mechanism: NoisyVotes
) -> None:
    first = sb.release(counts, mechanism, ledger, BUDGET, request="monday", purpose="a test")
    assert first.queries.tolist() == list(range(26))
    assert set(first.labels.tolist()) <= {0, 1}
    assert first.noisy_counts is None
    assert sb.verify_certificate(first.certificate).ok
    (entry,) = ledger.history()
    assert (entry.state, entry.purpose) == ("committed", "a test")
    again = sb.release(counts, mechanism, ledger, BUDGET, request="monday", purpose="a test")
    assert first == again
    for other in ({"queries": [3, 4]}, {"points_sha256": "0" * 64}):
        with pytest.raises(sb.ParameterError, match="other terms"):
            sb.release(counts, mechanism, ledger, BUDGET, request="monday", **other)
    with pytest.raises(sb.ParameterError, match="other terms"):
        sb.release(counts, mechanism, ledger, sb.PrivacyBudget(1.0, 2e-6), request="monday")
    assert ledger.spent() == (1.0, 1e-6)


def test_asking_less_than_planned_costs_the_plan(
    counts: sb.Votes, ledger: sb.Ledger, mechanism: NoisyVotes
) -> None:
    # errata 5: a smaller epsilon at a stopping time that depends on answers is false; the plan's
    # price stands
    released = sb.release(counts, mechanism, ledger, BUDGET, queries=[0, 1, 2])
    assert released.certificate["epsilon"] == 1.0
    assert released.certificate["events"][0]["queries"] == 3
    assert ledger.spent().epsilon == 1.0


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        *(({"queries": [0, 0]}, "twice"), ({"queries": [26]}, "rows go from 0 to 25")),
        *(({"queries": [-1]}, "from 0"), ({"queries": []}, "one or more")),
        *(({"queries": [0.5]}, "integers"), ({"queries": [[0, 1]]}, "one or more")),
        ({"declaration": {"unit": "household"}}, "unit"),
        ({"declaration": {"colour": "red"}}, "colour"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_spent(
    counts: sb.Votes, ledger: sb.Ledger, mechanism: NoisyVotes, arguments: dict[str, Any], word: str
) -> None:
    with pytest.raises(sb.SecretBallotError, match=word):
        sb.release(counts, mechanism, ledger, BUDGET, **arguments)
    assert ledger.history() == []


USER, REPLACED, BOTH = (
    {"unit": "user"},
    {"relation": "replace-one"},
    {"unit": "user", "relation": "replace-one"},
)


@pytest.mark.parametrize(
    ("terms", "declaration", "adds"),
    [
        *((REPLACED, {}, False), (USER, {}, False), ({}, REPLACED, False), (REPLACED, BOTH, False)),
        *((BOTH, USER, False), ({}, {}, True), ({}, USER, True), (BOTH, BOTH, True)),
    ],
)
def test_a_certificate_says_what_the_ledger_promises_and_another_promise_is_refused(
    mechanism: NoisyVotes, terms: dict[str, str], declaration: dict[str, str], adds: bool
) -> None:
    ledger, made = sb.Ledger.in_memory(dataset="d", budget=BUDGET, **terms), votes(**declaration)

    def released() -> sb.ReleasedLabels:
        return sb.release(made, mechanism, ledger, BUDGET, declaration=declaration or None)

    if not adds:
        with pytest.raises(sb.LedgerError, match=r"does not add.*Nothing was spent"):
            released()
        assert ledger.history() == []
        return
    certificate = released().certificate
    said = (certificate["composition"]["unit"], certificate["composition"]["relation"])
    assert said == (ledger.unit, ledger.relation)
    assert sb.verify_certificate(certificate).ok


def test_what_is_no_mechanism_or_no_budget_or_answers_nothing_is_refused(
    counts: sb.Votes, ledger: sb.Ledger, mechanism: NoisyVotes
) -> None:
    for given in ((None, BUDGET), (mechanism, None), (mechanism, 1.0)):
        with pytest.raises(sb.ParameterError):
            sb.release(counts, given[0], ledger, given[1])  # type: ignore[arg-type]
    drowned = sparse_vector(BUDGET, 26, max_abstentions=50)
    with pytest.raises(sb.ParameterError, match="teachers"):
        sb.release(counts, drowned, ledger, BUDGET)
    assert ledger.history() == []


@pytest.mark.parametrize("name", ["labels", "counts", "laplace", "vote-table", "stable"])
def test_a_name_stands_for_the_least_noise_that_keeps_the_budget(
    name: str, counts: sb.Votes, ledger: sb.Ledger
) -> None:
    certificate = sb.release(counts, name, ledger, BUDGET).certificate
    assert sb.verify_certificate(certificate).ok
    assert 0.5 * BUDGET.delta < certificate["price"]["delta_recomputed"] <= BUDGET.delta
    with pytest.raises(sb.ParameterError, match="mechanism is 'median'"):
        sb.release(counts, "median", ledger, BUDGET)


def test_stable_pluralities_are_given_and_certified_by_both_programs(ledger: sb.Ledger) -> None:
    ones = np.array([250, 125, 0, 125])
    counts = sb.votes_of_counts(np.column_stack([250 - ones, ones]), classes=["no", "yes"])
    mechanism = stable_value(BUDGET, counts.shape)
    released = sb.release(counts, mechanism, ledger, BUDGET)
    assert released.labels.tolist() == [1, -1, 0, -1]
    assert sb.verify_certificate(released.certificate).ok
    (event,) = released.certificate["events"]
    assert event["kind"] == "stable-tests"
    own = second.price_of(event, BUDGET.epsilon)
    assert own.upper <= BUDGET.delta * (1 + second.ERROR)
    assert own.upper > 0.8 * BUDGET.delta


class _InterruptedNoise(ExactNoise):
    """Exact noise during which this process is asked to end."""

    number = signal.SIGINT

    def discrete_gaussian(self, sigma: float, size: int) -> Any:
        os.kill(os.getpid(), self.number)
        return super().discrete_gaussian(sigma, size)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_a_process_that_is_asked_to_end_during_the_draw_stores_the_answer_first(
    name: str,
    counts: sb.Votes,
    ledger: sb.Ledger,
    mechanism: NoisyVotes,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noise = _InterruptedNoise()
    noise.number = getattr(signal, name)
    monkeypatch.setattr(releasing, "noise_source", lambda: noise)
    child = os.fork()
    if not child:
        try:
            signal.signal(noise.number, signal.SIG_DFL)
            sb.release(counts, mechanism, ledger, BUDGET, request="one")
        finally:
            os._exit(0)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == noise.number
    assert [entry.state for entry in ledger.history()] == ["committed"]
    before = signal.signal(noise.number, signal.SIG_IGN)  # what is ignored stays so
    try:
        sb.release(counts, mechanism, sb.Ledger.in_memory(dataset="d", budget=BUDGET), BUDGET)
    finally:
        signal.signal(noise.number, before)
