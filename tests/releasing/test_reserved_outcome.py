"""A choice that is paid for now and drawn later: one price, one outcome, whoever asks and
whatever fails between."""

from pathlib import Path
from typing import Any

import pytest

import secretballot as sb
from secretballot.core import releasing
from secretballot.core.ledger import Ledger
from secretballot.core.private import Scores
from secretballot.core.releasing import AnswerStream
from secretballot.core.types import Guarantee
from secretballot.releasing import reserve_choice
from secretballot.teachers.votes import guarantee_of

POINTS = b'{"points": [[0.5]]}'


def account(folder: Path, relation: str = "replace-one") -> Ledger:
    budget = sb.PrivacyBudget(1.0, 0.0)
    return Ledger(folder / "ledger.sqlite", dataset="registry", budget=budget, relation=relation)


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
    assert (ledger.spent().epsilon, drawn(bought)) == (0.5, [])
    assert ledger.history()[0].state == "reserved"
    answers = bought.answer(scores([0, 10_000, 0]), [POINTS])
    assert (answers.values.tolist(), answers.left) == ([[1]], 0)
    again = reserved(account(tmp_path))
    # other scores and points no longer matter
    assert not again.answer(scores([10_000, 0]), [b"other"]).given.any()
    assert drawn(again) == drawn(bought) == [(POINTS, 1)]
    bought.close()
    assert (ledger.spent().epsilon, len(ledger.history())) == (0.5, 1)
    assert ledger.history()[0].state == "committed"
    assert bought.released().account.spent_after == (0.5, 0.0)


@pytest.mark.parametrize(("relation", "moved"), [("replace-one", 2), ("add-remove", 1)])
def test_it_draws_at_the_scale_of_its_relation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, relation: Any, moved: int
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
    ledger = account(tmp_path, relation)
    ranges = Scores.of_ranges([3, 4], [1, 2], Guarantee(unit="record", relation=relation))
    one = reserved(ledger, 0.25, "one").answer(scores([3, 4], relation), [POINTS])
    two = reserved(ledger, 0.25, "two").answer(ranges, [POINTS])
    assert (one.values.item(), two.values.item()) == (1, 2)
    assert seen == pytest.approx([moved / 0.25] * 2, rel=1e-9)
    assert min(seen) * 0.25 >= moved
