"""Labels from a table of chances in fits and sessions."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from secretballot.accounting import table_labels, teacher_shape
from secretballot.accounting.recipes import right_chance
from secretballot.exceptions import ParameterError
from secretballot.learners.training.targets import Target

BUDGET = sb.PrivacyBudget(2.0, 1e-5)
K = 100


def points(n: int, seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-1, 1, (n, 2))


X, POOL = points(6000, 0), points(300, 1)
Y = (X[:, 0] > 0.1).astype(int)


def account(place: Path | None = None) -> sb.Ledger:
    whole = sb.PrivacyBudget(50.0, 0.1)
    if place is None:
        return sb.Ledger.in_memory(dataset="registry", budget=whole)
    return sb.Ledger(place, dataset="registry", budget=whole, composition="renyi")


def votes(ones: Any) -> sb.Votes:
    counts = np.asarray(ones)
    return sb.votes_of_counts(np.column_stack([K - counts, counts]), classes=["no", "yes"])


def test_a_fit_asks_as_many_queries_as_leave_the_usual_margin_right() -> None:
    model = sb.PATEClassifier(n_teachers=K, **BUDGET.to_json(), mechanism="vote-table")
    terms = model.planned_terms(Target.of_classes([0, 1]), 10_000)
    assert 60 < terms.shape.n_queries < 10_000
    assert right_chance(terms.mechanism, 0.6 * K, terms.shape) == pytest.approx(0.95, abs=0.01)


def test_a_session_gives_the_same_label_again_and_returns_what_it_did_not_use(
    tmp_path: Path,
) -> None:
    teachers = sb.train_teachers("tree", X[:2000], Y[:2000], classes=[0, 1], n_teachers=K)
    terms = table_labels(BUDGET, teachers.shape(20))
    ledger = account(tmp_path / "one.sqlite")
    session = sb.LabelingSession(teachers, terms, ledger, BUDGET, n_queries=20, request="labels")
    first = [session.ask(point).label for point in POOL[:5]]
    assert [session.ask(point).label for point in POOL[:5]] == first
    assert session.used == 5
    assert (
        sum(label == int(point[0] > 0.1) for label, point in zip(first, POOL[:5], strict=True)) >= 3
    )
    whole = ledger.spent().epsilon
    released = session.close(POOL)
    assert len(released.queries) == 5
    assert sb.verify_certificate(released.certificate).ok
    assert ledger.spent().epsilon < 0.8 * whole


def test_a_table_for_other_teachers_costs_nothing() -> None:
    ledger = account()
    # a table for an odd number has no row for an even vote
    table = table_labels(BUDGET, teacher_shape(3, 2, K + 1))
    with pytest.raises((ParameterError, sb.BudgetError)):
        sb.release(votes([10, 90, 50]), table, ledger, BUDGET)
    assert ledger.spent().epsilon == 0
