"""A choice that is paid for now and drawn later: one price, one outcome, whoever asks and
whatever fails between."""

import math
from pathlib import Path
from typing import Any

import pytest

import secretballot as sb
from secretballot.core import releasing
from secretballot.core.ledger import Ledger
from secretballot.core.ledger.account import AnswerPage
from secretballot.core.mechanisms import ExponentialChoice
from secretballot.core.private import Scores
from secretballot.core.releasing import AnswerStream
from secretballot.core.types import Guarantee
from secretballot.releasing import reserve_choice
from secretballot.teachers.votes import guarantee_of

POINTS = b'{"points": [[0.5]]}'


def account(
    folder: Path | None = None, epsilon: float = 1.0, relation: str = "replace-one"
) -> Ledger:
    terms: dict[str, Any] = {
        "dataset": "registry",
        "budget": sb.PrivacyBudget(epsilon, 0.0),
        "relation": relation,
    }
    return (
        Ledger.in_memory(**terms) if folder is None else Ledger(folder / "ledger.sqlite", **terms)
    )


def reserved(ledger: Ledger, epsilon: float = 0.5, request: str = "later") -> AnswerStream:
    made = guarantee_of("record", ledger.relation)
    return reserve_choice(
        ledger, epsilon=epsilon, request=request, guarantee=made, purpose="which one"
    )


def scores(values: list[int], relation: Any = "replace-one") -> Scores:
    return Scores.of_candidates(values, Guarantee(unit="record", relation=relation))


def drawn(bought: AnswerStream) -> list[tuple[bytes, int]]:
    found = bought.released()
    return list(zip(found.questions, found.values[:, 0].tolist(), strict=True))


def test_it_is_paid_before_it_is_drawn_and_drawn_once(tmp_path: Path):
    ledger = account(tmp_path)
    bought = reserved(ledger)
    assert (ledger.spent().epsilon, ledger.history()[0].state, drawn(bought)) == (
        0.5,
        "reserved",
        [],
    )
    answers = bought.answer(scores([0, 10_000, 0]), [POINTS])
    assert (answers.values.tolist(), answers.left) == ([[1]], 0)
    again = reserved(account(tmp_path))
    # other scores and points no longer matter
    assert not again.answer(scores([10_000, 0]), [b"other"]).given.any()
    assert drawn(again) == drawn(bought) == [(POINTS, 1)]
    bought.close()
    assert (ledger.spent().epsilon, len(ledger.history()), ledger.history()[0].state) == (
        0.5,
        1,
        "committed",
    )
    assert bought.released().account.spent_after == (0.5, 0.0)


@pytest.mark.parametrize(("relation", "moved"), [("replace-one", 2), ("add-remove", 1)])
def test_it_draws_at_the_scale_of_its_relation(
    monkeypatch: pytest.MonkeyPatch, relation: Any, moved: int
):
    seen: list[float] = []

    class Noise:
        exact, description = True, "seen"

        def exponential_index(self, scores: Any, scale: float) -> int:
            seen.append(scale)
            return 1

        flipped_index = exponential_index

        def exponential_range(self, starts: Any, ends: Any, scale: float) -> tuple[int, int]:
            seen.append(scale)
            return (0, 1)

    monkeypatch.setattr(releasing, "noise_source", Noise)
    ledger = account(relation=relation)
    ranges = Scores.of_ranges([3, 4], [1, 2], Guarantee(unit="record", relation=relation))
    one = reserved(ledger, 0.25, "one").answer(scores([3, 4], relation), [POINTS])
    two = reserved(ledger, 0.25, "two").answer(ranges, [POINTS])
    assert (one.values.item(), two.values.item()) == (1, 2)
    assert seen == pytest.approx([moved / 0.25] * 2, rel=1e-9)
    assert min(seen) * 0.25 >= moved


def test_a_draw_that_cannot_be_stored_is_not_given_and_the_next_one_is(
    monkeypatch: pytest.MonkeyPatch,
):
    def full(*_: Any, **__: Any) -> None:
        raise sb.LedgerError("The disk is full.")

    ledger = account()
    bought = reserved(ledger)
    with monkeypatch.context() as patch:
        patch.setattr(AnswerPage, "add", full)
        with pytest.raises(sb.LedgerError, match="full"):
            bought.answer(scores([1, 2]), [POINTS])
    assert (drawn(bought), ledger.history()[0].state) == ([], "reserved")
    assert bought.answer(scores([0, 10_000]), [POINTS]).values.item() == 1
    assert ledger.spent().epsilon == 0.5


def test_a_draw_that_fails_ends_the_reservation(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any) -> int:
        raise MemoryError

    ledger = account()
    bought = reserved(ledger)
    with monkeypatch.context() as patch:
        patch.setattr(ExponentialChoice, "draw", broken)
        with pytest.raises(sb.LedgerError, match="stays spent"):
            bought.answer(scores([1, 2]), [POINTS])
    assert not bought.answer(scores([0, 10_000]), [POINTS]).given.any()
    assert ledger.history()[0].state == "forfeited"
    assert ledger.spent().epsilon == 0.5


def test_who_is_second_returns_what_the_first_has_committed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    one, two = reserved(account(tmp_path)), reserved(account(tmp_path))
    found, seen = AnswerStream._found, []

    def overtaken(self: AnswerStream, questions: Any) -> Any:
        before = found(self, questions)
        if self is one and not seen:
            seen.append(two.answer(scores([0, 0, 10_000]), [b"two"]).values.item())
        return before

    monkeypatch.setattr(AnswerStream, "_found", overtaken)
    assert not one.answer(scores([10_000, 0, 0]), [b"one"]).given.any()
    assert (drawn(one), seen) == ([(b"two", 2)], [2])
    assert len(account(tmp_path).history()) == 1


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_no_price_is_refused(epsilon: float):
    with pytest.raises(sb.ParameterError, match="epsilon"):
        reserved(account(), epsilon)


def test_what_does_not_fit_is_refused_and_nothing_is_spent():
    ledger, more = account(epsilon=0.4), {"epsilon": 0.1, "request": "x", "purpose": "which"}
    with pytest.raises(sb.BudgetError):
        reserved(ledger)
    with pytest.raises(sb.LedgerError, match="add-remove"):
        reserve_choice(ledger, guarantee=guarantee_of("record", "add-remove"), **more)
    assert ledger.history() == []


def test_a_key_that_paid_for_something_else_is_refused():
    ledger = account()
    bought = reserved(ledger)
    with pytest.raises(sb.ParameterError, match="begun with other"):
        reserved(ledger, 0.25)
    ledger.forfeit(bought.reservation, "For the test.")
    with pytest.raises(sb.LedgerError, match="was forfeited and stays spent"):
        reserved(ledger)


def test_scores_counted_for_another_relation_are_refused_before_the_draw():
    bought = reserved(account())
    by_user = Scores.of_candidates([1, 2], Guarantee(unit="user", relation="replace-one"))
    for given in (scores([1, 2], "add-remove"), by_user):
        with pytest.raises(sb.ParameterError, match="Nothing was answered"):
            bought.answer(given, [POINTS])
    assert drawn(bought) == []
