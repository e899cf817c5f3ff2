"""Sums over records leave through the door alone: reserved, then drawn, stored, and resumed."""

import itertools
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_sums import true_delta

from secretballot.audit import ScriptedNoise
from secretballot.bases.integer_model import IntegerModel
from secretballot.bases.rotation import UNIT as UNIT_OF_COORDINATES
from secretballot.core.ledger import Ledger
from secretballot.core.noise import ExactNoise
from secretballot.door import purchase
from secretballot.door.vector_sums import StagedSums, release_sums
from secretballot.exceptions import BudgetError, LedgerError, ParameterError
from secretballot.learners.moments.start import released_start
from secretballot.privacy.accounting import PrivacyBudget, calibrate_vector_sum, delta_upper
from secretballot.privacy.mechanisms import NoisyVectorSum
from secretballot.records import Records, Residuals, private_records
from secretballot.released import ReleasedLabels
from secretballot.students.moment_links import ClassesLink

BUDGET = PrivacyBudget(1.0, 1e-5)
BOUND, UNIT = 3, 2
#: A coordinate of 2 is a logit of 4.
STEEP = 2**31


@pytest.fixture(autouse=True)
def _any_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let sums be sold that are smaller than any that a certificate states."""
    monkeypatch.setattr(purchase, "check_readable", lambda certificate: None)


def model_after(sums: Sequence[np.ndarray]) -> IntegerModel:
    """Return what the next stage predicts by: nothing at first, then by the sign of a sum."""
    weights = [0, 0] if not sums else [STEEP if sums[-1][0] > 0 else 0, STEEP]
    return IntegerModel(np.array(weights).reshape(2, 1))


def asked(
    sigma: float | None = None, n_stages: int = 2, budget: PrivacyBudget = BUDGET, **about: Any
) -> StagedSums:
    sigma = calibrate_vector_sum(budget, BOUND**2, 2, n_stages) if sigma is None else sigma
    mechanism = NoisyVectorSum(sigma, BOUND, 2, about.pop("replaced", False))
    terms = {
        "method": "record-moments",
        "residual_units": [UNIT] * n_stages,
        "mark_weight": 0,
        "marks": [],
        "expected_uncovered": 0.0,
        "n_records": 100,
        "basis": {"name": "none"},
        "basis_sha256": "0" * 64,
        **about,
    }
    return StagedSums(
        mechanism,
        n_stages,
        budget,
        terms,
        lambda sums: Residuals(model_after(sums), UNIT, BOUND),
        lambda sums: (
            {"weights": [[0, 0]] * len(sums), "covered_only": [False] * len(sums)},
            np.zeros(4, dtype=np.int64),
        ),
        ("no", "yes"),
        "0" * 64,
    )


def records_of(rows: Sequence[tuple[int, int, int]]) -> Records:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return private_records(table[:, :2], table[:, 2], 2)


ROWS = [(1, 0, 1), (-2, 1, 0), (2, 2, 1)]


def ledger_at(path: Path | None = None, **terms: Any) -> Ledger:
    given = {"dataset": "people", "budget": PrivacyBudget(3.0, 1e-4), **terms}
    return Ledger.in_memory(**given) if path is None else Ledger(path, **given)


# --- the guarantee ---


def staged(sign: int | None) -> Residuals:
    """Return what the first stage asks, or the second, by the sign of the first sum."""
    sums = [] if sign is None else [np.array([sign, 0])]
    return Residuals(model_after(sums), UNIT, BOUND)


def test_all_neighbours_of_a_tiny_world_stay_within_the_promise() -> None:
    epsilon, sigma = 1.0, 4.5
    promise = delta_upper([asked(sigma).event], epsilon)
    alphabet = [(a, b, label) for a in (-2, 0, 2) for b in (0, 2) for label in (0, 1)]
    worst = 0.0
    pairs = 0
    for own in alphabet:
        for others in ([], [alphabet[0]], [alphabet[3], alphabet[8]]):
            one, other = records_of([own, *others]), records_of(others)
            for pair in ((one, other), (other, one)):
                found = true_delta(*pair, staged, sigma, epsilon)
                assert found <= promise
                worst, pairs = max(worst, found), pairs + 1
    assert pairs == 72
    # and the promise is not far from the worst of them: the price is no idle bound
    assert worst > promise / 4


@pytest.mark.parametrize("labels", [[1, 1, 0, 0], [0, 1, 1, 1]])
def test_all_neighbours_stay_within_the_promise_where_a_release_is_the_start(
    labels: list[int],
) -> None:
    """The first stage asks for what a model of released labels misses; the price is the same."""
    pool = np.array([[2, 2], [2, 0], [-2, 2], [0, 2]]) * UNIT_OF_COORDINATES
    start = released_start(
        ReleasedLabels(
            range(4),
            labels,
            ("no", "yes"),
            0,
            certificate={"public": {"method": "none"}, "digest": "0" * 64},
        ),
        pool,
        ClassesLink(2),
    )
    assert start is not None
    weights = np.array(start.to_json()["weights"]).reshape(2, 1)
    begun = IntegerModel(weights * UNIT_OF_COORDINATES)  # these coordinates are whole numbers
    assert weights.any()

    def from_start(sign: int | None) -> Residuals:
        return Residuals(begun, UNIT, BOUND) if sign is None else staged(sign)

    epsilon, sigma = 1.0, 4.5
    promise = delta_upper([asked(sigma).event], epsilon)
    alphabet = [(a, b, label) for a in (-2, 0, 2) for b in (0, 2) for label in (0, 1)]
    found = [
        true_delta(*pair, from_start, sigma, epsilon)
        for own in alphabet
        for others in ([], [alphabet[3], alphabet[8]])
        for pair in itertools.permutations((records_of([own, *others]), records_of(others)))
    ]
    assert len(found) == 48
    assert promise / 10 < max(found) <= promise


def test_less_noise_than_stated_would_be_seen() -> None:
    epsilon, sigma = 1.0, 4.5
    promise = delta_upper([asked(sigma).event], epsilon)
    one, other = records_of([(-2, 2, 0)]), records_of([])
    assert true_delta(one, other, staged, 0.7 * sigma, epsilon) > promise


# --- the door ---


def test_a_release_is_the_exact_sums_plus_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purchase, "exact_noise", lambda: ScriptedNoise([5, -7, 1, 2], exact=True))
    ledger, records = ledger_at(), records_of(ROWS)
    released = release_sums(records, asked(), ledger, request="a", purpose="try")
    first = records.sums(Residuals(model_after([]), UNIT, BOUND))._unseal()[0] + np.array([5, -7])
    second = records.sums(Residuals(model_after([first]), UNIT, BOUND))._unseal()[0] + np.array(
        [1, 2]
    )
    assert released.certificate["released"]["values"] == [first.tolist(), second.tolist()]
    assert released.n_teachers == 0
    assert released.certificate["purpose"] == "try"
    entry = ledger.entry("a")
    assert entry is not None
    assert (entry.state, entry.parts, entry.queries) == ("committed", 2, 2)
    assert ledger.spent().epsilon == pytest.approx(1.0)


def test_a_known_request_gets_the_stored_answer_and_costs_nothing(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path / "l")
    one = release_sums(records_of(ROWS), asked(), ledger, request="a")
    again = release_sums(records_of(ROWS[:1]), asked(), ledger_at(tmp_path / "l"), request="a")
    assert again == one
    assert ledger.releases() == 1
    with pytest.raises(ParameterError, match="answered before"):
        release_sums(records_of(ROWS), asked(basis={"name": "other"}), ledger, request="a")


OTHER_QUESTIONS = [
    replace(asked(), classes=("yes", "no")),
    replace(asked(), points_sha256="1" * 64),
]


@pytest.mark.parametrize("other", OTHER_QUESTIONS, ids=["classes", "points"])
def test_a_stored_answer_about_other_classes_or_points_is_not_handed_out(other: StagedSums) -> None:
    ledger = ledger_at()
    release_sums(records_of(ROWS), asked(), ledger, request="a")
    with pytest.raises(ParameterError, match="answered before"):
        release_sums(records_of(ROWS), other, ledger, request="a")


def test_sums_by_user_are_refused_in_an_account_about_records() -> None:
    # one more record of a user, who stays, moves the sum by more than the bound
    stage = Residuals(IntegerModel.of(np.zeros((1, 1))), 2, 10_000, 1000, 2)
    rows, classes, marks = (
        np.array([[5000], [20_000]]),
        np.array([0, 1]),
        np.array([[0, 0], [1, 1]]),
    )
    one_user = np.zeros(2, dtype=np.int64)
    sums = [
        private_records(rows[:n], classes[:n], 2, one_user[:n], marks[:n]).sums(stage)._unseal()[0]
        for n in (1, 2)
    ]
    assert np.square(sums[1] - sums[0]).sum() > stage.bound**2

    table = np.array(ROWS)
    after = private_records(table[:, :2], table[:, 2], 2, np.array([0, 0, 1]))
    ledger = ledger_at()
    with pytest.raises(LedgerError, match="use a ledger about users"):
        release_sums(after, asked(), ledger, declaration={"unit": "user"})
    assert ledger.releases() == 0
    found = release_sums(after, asked(), ledger_at(unit="user"), declaration={"unit": "user"})
    assert found.certificate["composition"]["unit"] == "user"
    again = ledger_at(unit="user")
    declared = {"unit": "user", "unit_column": "patient"}
    release_sums(after, asked(), again, request="a", declaration=declared)
    with pytest.raises(ParameterError, match="answered before"):
        release_sums(after, asked(), again, request="a", declaration={"unit": "user"})


class InterruptedDrawError(Exception):
    pass


def test_an_interrupted_release_goes_on_after_its_last_stored_stage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, draws = ledger_at(tmp_path / "l"), itertools.count()

    class StopsAtTheSecond(ExactNoise):
        def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
            if next(draws) == 1:
                raise InterruptedDrawError
            return super().discrete_gaussian(sigma, size)

    monkeypatch.setattr(purchase, "exact_noise", StopsAtTheSecond)
    with pytest.raises(InterruptedDrawError):
        release_sums(records_of(ROWS), asked(), ledger, request="a")
    entry = ledger.entry("a")
    assert entry is not None
    assert (entry.state, entry.parts) == ("reserved", 1)
    with ledger.reading(entry.id) as page:
        stored = np.frombuffer(page.parts()[0][1], dtype="<i8")
    for other in OTHER_QUESTIONS:
        with pytest.raises(ParameterError, match="begun with other"):
            release_sums(records_of(ROWS), other, ledger, request="a")
    # other terms do not go on with it
    with pytest.raises(ParameterError, match="begun with other"):
        release_sums(records_of(ROWS), asked(basis={"name": "other"}), ledger, request="a")
    released = release_sums(records_of(ROWS), asked(), ledger_at(tmp_path / "l"), request="a")
    assert released.certificate["released"]["values"][0] == stored.tolist()
    assert ledger.spent().epsilon == pytest.approx(1.0)
    assert next(draws) == 3


@pytest.mark.parametrize("at", [2, 3])
def test_who_is_overtaken_by_another_process_gets_its_answer(tmp_path: Path, at: int) -> None:
    """The other one finishes the request while this one is between two stages, or about to end."""
    honest, calls, answers = asked(), itertools.count(1), []

    def overtaken() -> None:
        if next(calls) == at:
            other = ledger_at(tmp_path / "l")
            answers.append(release_sums(records_of(ROWS[:1]), honest, other, request="a"))

    def stage(sums: Sequence[np.ndarray]) -> Residuals:
        overtaken()
        return honest.stage(sums)

    def outcome(sums: Sequence[np.ndarray]) -> Any:
        overtaken()
        return honest.outcome(sums)

    slow = replace(honest, stage=stage) if at == 2 else replace(honest, outcome=outcome)
    calls = itertools.count(1 if at == 2 else 2)  # the first outcome is that of the room
    ledger = ledger_at(tmp_path / "l")
    assert release_sums(records_of(ROWS), slow, ledger, request="a") == answers[0]
    assert ledger.spent().epsilon == pytest.approx(1.0)


def test_nothing_is_drawn_that_was_not_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    def never() -> None:
        raise AssertionError("noise was asked for")

    class Silent(ExactNoise):
        def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
            raise AssertionError("noise was drawn")

    monkeypatch.setattr(purchase, "exact_noise", Silent)
    poor = ledger_at(budget=PrivacyBudget(0.5, 1e-4))
    with pytest.raises(BudgetError):
        release_sums(records_of(ROWS), asked(), poor)
    assert poor.releases() == 0
    with pytest.raises(BudgetError, match="calibrate it again"):
        release_sums(records_of(ROWS), asked(sigma=4.5), ledger_at())


def test_a_promise_about_something_else_is_refused_before_anything_is_spent() -> None:
    replaced = ledger_at(neighbours="replace-one")
    with pytest.raises(LedgerError):
        release_sums(records_of(ROWS), asked(), replaced)
    with pytest.raises(ParameterError, match="another relation"):
        release_sums(records_of(ROWS), asked(), replaced, declaration={"neighbours": "replace-one"})
    with pytest.raises(ParameterError, match="made for unit 'record'"):
        release_sums(
            records_of(ROWS), asked(), ledger_at(unit="user"), declaration={"unit": "user"}
        )
    assert replaced.releases() == 0


def test_a_stage_that_asks_for_more_than_was_paid_for_is_refused() -> None:
    honest = asked()
    longer = StagedSums(
        honest.mechanism,
        2,
        BUDGET,
        honest.about,
        lambda sums: Residuals(model_after(sums), UNIT, BOUND + 1),
        honest.outcome,
        honest.classes,
        honest.points_sha256,
    )
    ledger = ledger_at()
    with pytest.raises(ParameterError, match="were paid for"):
        release_sums(records_of(ROWS), longer, ledger, request="a")
    with ledger.reading(1) as page:
        assert page.count == 0


def test_a_request_of_another_kind_is_not_answered() -> None:
    ledger = ledger_at()
    ledger.reserve((asked(n_stages=3).event,), BUDGET, request="a", purpose="")
    with pytest.raises((ParameterError, BudgetError)):
        release_sums(records_of(ROWS), asked(), ledger, request="a")
    ledger = ledger_at()
    ledger.reserve((asked().event,), BUDGET, request="a", purpose="")
    ledger.forfeit(1, "gone")
    with pytest.raises(LedgerError, match="forfeited"):
        release_sums(records_of(ROWS), asked(), ledger, request="a")


def test_weights_and_labels_take_the_same_room_whatever_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the widest sums come to need not be wide itself."""

    def outcome(sums: Sequence[np.ndarray]) -> tuple[dict[str, Any], np.ndarray]:
        wide = sums[0][0] > 0
        weights = [[-(2**23) if wide else 0] * 300] * len(sums)
        fields = {"weights": weights, "covered_only": [not wide] * len(sums)}
        return fields, np.full(400, 11 if wide else 0)

    many = replace(asked(), outcome=outcome, classes=tuple(range(12)))
    sizes = set()
    for noise in ([-900, 0, 0, 0], [900, 0, 0, 0]):
        monkeypatch.setattr(
            purchase, "exact_noise", lambda noise=noise: ScriptedNoise(noise, exact=True)
        )
        ledger = ledger_at()
        release_sums(records_of(ROWS), many, ledger, request="a")
        stored = ledger.released("a")
        assert stored is not None
        sizes.add(len(stored))
    assert len(sizes) == 1


def test_what_is_stored_is_as_long_whatever_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = set()
    for noise in ([0, 0, 0, 0], [10**9, -(10**9), 10**6, 1]):
        monkeypatch.setattr(
            purchase, "exact_noise", lambda noise=noise: ScriptedNoise(noise, exact=True)
        )
        ledger = ledger_at()
        release_sums(records_of(ROWS), asked(), ledger, request="a")
        stored = ledger.released("a")
        assert stored is not None
        with ledger.reading(1) as page:
            parts = [(len(question), len(answer)) for question, answer in page.parts()]
        sizes.add((len(stored), tuple(parts)))
        assert json.loads(stored)["n_teachers"] == 0
    assert len(sizes) == 1
