"""A choice that is paid for now and drawn later: one price, one outcome, whoever asks and
whatever fails between."""

import math
from pathlib import Path
from typing import Any

import pytest

import secretballot as sb
from secretballot.core.ledger import Ledger
from secretballot.core.private import Scores
from secretballot.core.types import Guarantee
from secretballot.door import choose_by_scores, purchase, reserved_outcome
from secretballot.door.reserved_outcome import ReservedOutcome

ABOUT = {"points": [[0.5]], "rows": [0]}


def account(
    folder: Path | None = None, epsilon: float = 1.0, neighbours: str = "replace-one"
) -> Ledger:
    terms: dict[str, Any] = {
        "dataset": "registry",
        "budget": sb.PrivacyBudget(epsilon, 0.0),
        "neighbours": neighbours,
    }
    return (
        Ledger.in_memory(**terms) if folder is None else Ledger(folder / "ledger.sqlite", **terms)
    )


def reserved(ledger: Ledger, epsilon: float = 0.5, request: str = "later") -> ReservedOutcome:
    terms = {"unit": "record", "neighbours": ledger.neighbours, "purpose": "which one"}
    return ReservedOutcome(ledger, epsilon=epsilon, request=request, **terms)


def scores(values: list[int], neighbours: str = "replace-one") -> Scores:
    return Scores.of_candidates(values, Guarantee(unit="record", relation=neighbours))


def test_it_is_paid_before_it_is_drawn_and_drawn_once(tmp_path: Path):
    ledger = account(tmp_path)
    bought = reserved(ledger)
    assert (ledger.spent().epsilon, ledger.history()[0].state, bought.drawn()) == (
        0.5,
        "reserved",
        None,
    )
    choice, about = bought.draw(scores([0, 10_000, 0]), ABOUT)
    assert (choice.outcome, choice.epsilon, choice.delta, about) == (1, 0.5, 0.0, ABOUT)
    again = reserved(account(tmp_path))
    assert again.drawn() == (choice, about)
    # other scores and points no longer matter
    assert again.draw(scores([10_000, 0]), {}) == (choice, about)
    assert (ledger.spent().epsilon, len(ledger.history()), ledger.history()[0].state) == (
        0.5,
        1,
        "committed",
    )
    assert choice.composition["spent_after"]["epsilon"] == 0.5


@pytest.mark.parametrize(("neighbours", "moved"), [("replace-one", 2), ("add-remove", 1)])
def test_it_draws_at_the_scale_of_its_relation(
    monkeypatch: pytest.MonkeyPatch, neighbours: str, moved: int
):
    seen: list[float] = []

    class Noise:
        exact, description = True, "seen"

        def exponential_index(self, scores: Any, scale: float) -> int:
            seen.append(scale)
            return 1

        def exponential_range(self, starts: Any, ends: Any, scale: float) -> tuple[int, int]:
            seen.append(scale)
            return (0, 1)

    monkeypatch.setattr(purchase, "exact_noise", Noise)
    ledger = account(neighbours=neighbours)
    one, _ = reserved(ledger, 0.25, "one").draw(scores([3, 4], neighbours), ABOUT)
    two, _ = reserved(ledger, 0.25, "two").draw(
        Scores.of_ranges([3, 4], [1, 2], Guarantee(unit="record", relation=neighbours)), ABOUT
    )
    assert (one.outcome, two.outcome, two.public["n_candidates"]) == (1, 2, 4)
    assert seen == pytest.approx([moved / 0.25] * 2, rel=1e-9)
    assert min(seen) * 0.25 >= moved


def test_a_draw_that_fails_or_cannot_be_stored_is_not_given_and_the_next_one_is(
    monkeypatch: pytest.MonkeyPatch,
):
    ledger = account()
    bought = reserved(ledger)
    with monkeypatch.context() as patch:
        patch.setattr(reserved_outcome, "drawn_by", _interrupted)
        with pytest.raises(KeyboardInterrupt):
            bought.draw(scores([1, 2]), ABOUT)
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "commit", _full)
        with pytest.raises(sb.LedgerError, match="The disk is full"):
            bought.draw(scores([1, 2]), ABOUT)
    assert (bought.drawn(), ledger.history()[0].state) == (None, "reserved")
    assert bought.draw(scores([0, 10_000]), ABOUT)[0].outcome == 1
    assert ledger.spent().epsilon == 0.5


def _interrupted(*_: Any) -> int:
    raise KeyboardInterrupt


def _full(*_: Any, **__: Any) -> None:
    raise sb.LedgerError("The disk is full.")


def test_who_is_second_returns_what_the_first_has_committed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    one, two = reserved(account(tmp_path)), reserved(account(tmp_path))
    slow, real = scores([10_000, 0, 0]), reserved_outcome.drawn_by

    def overtaken(mechanism: Any, given: Scores, noise: Any) -> int:
        if given is slow:
            two.draw(scores([0, 0, 10_000]), {"who": "two"})
        return real(mechanism, given, noise)

    monkeypatch.setattr(reserved_outcome, "drawn_by", overtaken)
    choice, about = one.draw(slow, {"who": "one"})
    assert (choice.outcome, about) == (2, {"who": "two"})
    assert len(account(tmp_path).history()) == 1


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_no_price_is_refused(epsilon: float):
    with pytest.raises(sb.ParameterError, match="epsilon"):
        reserved(account(), epsilon)


def test_what_does_not_fit_is_refused_and_nothing_is_spent():
    ledger = account(epsilon=0.4)
    with pytest.raises(sb.BudgetError):
        reserved(ledger)
    with pytest.raises(sb.LedgerError, match="add-remove"):
        ReservedOutcome(
            ledger, epsilon=0.1, request="x", unit="record", neighbours="add-remove", purpose=""
        )
    assert ledger.history() == []


def test_a_key_that_paid_for_something_else_is_refused():
    ledger = account()
    bought = reserved(ledger)
    with pytest.raises(sb.ParameterError, match="reserved for something else"):
        reserved(ledger, 0.25)
    ledger.forfeit(bought.reservation, "For the test.")
    with pytest.raises(sb.LedgerError, match="was forfeited and stays spent"):
        reserved(ledger)


def test_scores_counted_for_another_relation_are_refused_before_the_draw():
    bought = reserved(account())
    with pytest.raises(sb.ParameterError, match=r"'add-remove'.*Nothing was drawn"):
        bought.draw(scores([1, 2], "add-remove"), ABOUT)
    with pytest.raises(sb.ParameterError, match="by user"):
        bought.draw(
            Scores.of_candidates([1, 2], Guarantee(unit="user", relation="replace-one")), ABOUT
        )
    assert bought.drawn() is None


def test_a_choice_by_user_does_not_add_to_a_promise_about_records() -> None:
    ledger = sb.Ledger.in_memory(dataset="d", budget=sb.PrivacyBudget(1.0, 1e-6), unit="record")
    with pytest.raises(sb.LedgerError, match="by user"):
        ReservedOutcome(
            ledger, epsilon=0.1, request="x", unit="user", neighbours="add-remove", purpose=""
        )
    by_user = Scores.of_candidates([2, 2], Guarantee(unit="user", relation="add-remove"))
    with pytest.raises(sb.LedgerError, match="by user"):
        choose_by_scores(by_user, ledger, epsilon=0.1, declaration={"unit": "user"})
    with pytest.raises(sb.ParameterError, match="made for unit 'user'"):
        choose_by_scores(by_user, ledger, epsilon=0.1)
    assert ledger.spent().epsilon == 0
