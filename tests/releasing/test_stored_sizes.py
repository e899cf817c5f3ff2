"""What is stored of an outcome before it is released has a size that the outcome does not move."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from noisy_plans import confident, priced, released
from secretballot.accounting import sparse_vector, table_labels, table_of_abstentions, teacher_shape
from secretballot.accounting.recipes import Terms
from secretballot.core import releasing
from secretballot.core.mechanisms import Mechanism, NoisyVotes
from secretballot.core.private import Scores
from secretballot.core.types import Guarantee
from secretballot.releasing import choose_by_scores, reserve_choice

RECORD = Guarantee(unit="record", relation="add-remove")
BUDGET = sb.PrivacyBudget(4.0, 1e-5)


class _Noise:
    """Noise of one value everywhere."""

    exact, description = True, "one value"

    def __init__(self, value: int) -> None:
        self.value = value

    def discrete_laplace(self, scale: float, size: int) -> Any:
        return np.full(size, self.value, dtype=np.int64)

    discrete_gaussian = discrete_laplace

    def uniform_integers(self, bits: int, size: int) -> Any:
        return np.full(size, 0 if self.value >= 0 else 2**bits - 1, dtype=np.int64)

    def flipped_index(self, scores: Any, scale: float) -> int:
        return self.value


def terms(mechanism: Mechanism, n_classes: int = 2) -> Terms:
    return priced(mechanism, 30, 600, n_classes, BUDGET)


TERMS: dict[str, Callable[[], Terms]] = {
    "labels": lambda: terms(NoisyVotes(scale=40.0)),
    "counts": lambda: terms(NoisyVotes(scale=40.0, release="counts")),
    "histograms": lambda: terms(NoisyVotes(scale=60.0, release="counts"), 12),
    "laplace counts": lambda: terms(NoisyVotes(scale=40.0, release="counts", noise="laplace"), 12),
    "vote table": lambda: terms(table_labels(BUDGET, teacher_shape(30, 2, 600))),
    "confident": lambda: terms(confident(400, 60.0, 60.0, 20), 12),
    "table": lambda: terms(table_of_abstentions(BUDGET, 600, max_abstentions=8)),
    "sparse vector": lambda: terms(sparse_vector(BUDGET, 30, max_abstentions=8)),
}


@pytest.mark.parametrize("kind", TERMS)
def test_a_batch_is_stored_in_as_many_bytes_whatever_came_out(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid = TERMS[kind]()
    n_classes = paid.shape.n_classes
    sizes = set()
    for number, (winner, noise) in enumerate(
        [(0, 0), (n_classes - 1, 0), (n_classes - 1, -900), (0, 900)]
    ):
        votes = np.zeros((30, n_classes), dtype=np.int64)
        votes[:, winner] = 600
        names = list(range(n_classes))
        counts: Any = sb.votes_of_counts(votes, classes=names)
        ledger = sb.Ledger(tmp_path / f"{number}.sqlite", dataset="registry", budget=BUDGET)
        monkeypatch.setattr(releasing, "noise_source", lambda noise=noise: _Noise(noise))
        released(counts, paid, ledger, request="one")
        assert ledger.path is not None
        sizes.add(ledger.path.stat().st_size)
    assert len(sizes) == 1


def test_a_choice_is_stored_in_as_many_bytes_whatever_was_chosen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = Scores.of_candidates(np.zeros(10_001, dtype=np.int64), RECORD)
    counts = sb.votes_of_counts([[250, 0]], classes=["no", "yes"])
    sizes: list[set[Any]] = [set(), set(), set()]
    for outcome in (0, 10_000):
        noise = _Noise(outcome)
        monkeypatch.setattr(releasing, "noise_source", lambda noise=noise: noise)
        ledger = sb.Ledger(tmp_path / f"{outcome}.sqlite", dataset="registry", budget=BUDGET)
        terms: dict[str, Any] = {"guarantee": RECORD, "purpose": "which"}
        bought = reserve_choice(ledger, epsilon=0.5, request="reserved", **terms)
        choose_by_scores(lambda: scores, 10_001, ledger, epsilon=0.5, request="chosen")
        sb.estimate_stability(counts, ledger, fraction=0.5, epsilon=0.5, request="estimated")
        assert bought.answer(scores, [b"rows"]).values.item() == outcome
        for found, request in zip(sizes, ("reserved", "chosen", "estimated"), strict=True):
            with ledger.reading(ledger.entry(request).id) as page:
                parts = [(len(question), len(answer)) for question, answer in page.parts()]
            found.add((*parts, ledger.path.stat().st_size))
    assert [len(found) for found in sizes] == [1, 1, 1]
