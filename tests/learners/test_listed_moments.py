"""Learners by record moments with the noise of a ledger's list: several of them, one price."""

import math

import numpy as np
import pytest

import secretballot as sb
from secretballot.exceptions import BudgetError, LedgerError, ParameterError
from secretballot.privacy.accounting import VectorSumEvent, delta_upper, listed_sums
from secretballot.report.certificate.verify import verify_certificate

BUDGET = sb.PrivacyBudget(1.0, 1e-6)
rng = np.random.default_rng(0)
X, X_PUBLIC = rng.normal(size=(300, 2)), rng.normal(size=(60, 2))
Y = (X[:, 0] > 0).astype(int)


def account(sums: int, **terms: str) -> sb.Ledger:
    return sb.Ledger.in_memory(
        dataset="people", budget=BUDGET, events=[listed_sums(BUDGET, sums)], **terms
    )


def drawn(model: object) -> VectorSumEvent:
    (event,) = model.certificate_["events"]
    return VectorSumEvent(
        *(event[name] for name in ("sigma", "squared_sensitivity", "coordinates", "count"))
    )


@pytest.mark.parametrize("neighbours", ["add-remove", "replace-one"])
def test_fits_share_the_list_and_all_together_cost_the_budget(neighbours: str) -> None:
    ledger = account(5, neighbours=neighbours)
    settings = {"neighbours": neighbours, "ledger": ledger}
    first = sb.RecordMomentsClassifier(n_stages=2, request="first", **settings)
    first.fit(X, Y, X_public=X_PUBLIC, classes=[0, 1])
    second = sb.RecordMomentsRegressor((-4.0, 4.0), n_stages=3, **settings)
    second.fit(X, X[:, 1], X_public=X_PUBLIC)
    events = [drawn(first), drawn(second)]
    # what was drawn costs as much as the list, which is all of the budget
    assert delta_upper(events, 1.0) == pytest.approx(1e-6, rel=1e-6)
    for model in (first, second):
        certificate = model.certificate_
        assert certificate["delta"] == 1e-6
        assert 0.4 < certificate["epsilon"] < 0.85
        assert verify_certificate(certificate).ok
    # a known request gets its answer, and nothing is left for another one
    again = sb.RecordMomentsClassifier(n_stages=2, request="first", **settings)
    again.fit(X, Y, X_public=X_PUBLIC, classes=[0, 1])
    assert again.certificate_ == first.certificate_
    with pytest.raises(BudgetError, match="left: nothing"):
        sb.RecordMomentsClassifier(n_stages=1, **settings).fit(
            X, Y, X_public=X_PUBLIC, classes=[0, 1]
        )


def test_private_labels_take_one_sum() -> None:
    ledger = account(2, unit="label", neighbours="replace-one")
    model = sb.LabelPrivateMomentsClassifier(ledger=ledger).fit(X, Y, classes=[0, 1])
    assert ledger.remaining_events()[0].count == 1
    assert verify_certificate(model.certificate_).ok
    noise = drawn(model).sigma / math.sqrt(drawn(model).squared_sensitivity)
    listed = ledger.listed_events()[0]
    assert noise == pytest.approx(listed.sigma / math.sqrt(listed.squared_sensitivity), rel=1e-9)


def test_a_budget_of_its_own_does_not_go_with_a_list() -> None:
    ledger = account(8)
    for model in (
        sb.RecordMomentsClassifier(budget=BUDGET, ledger=ledger),
        sb.RecordMomentsClassifier(budget=sb.PrivacyBudget(0.1, 1e-7), ledger=ledger),
    ):
        with pytest.raises(ParameterError, match="leave the budget out"):
            model.fit(X, Y, X_public=X_PUBLIC, classes=[0, 1])
    with pytest.raises(BudgetError, match="9 steps of 'vector-sum'"):
        sb.RecordMomentsClassifier(n_stages=9, ledger=ledger).fit(
            X, Y, X_public=X_PUBLIC, classes=[0, 1]
        )
    with pytest.raises(LedgerError, match="unit"):
        sb.RecordMomentsClassifier(neighbours="replace-one", ledger=ledger).fit(
            X, Y, X_public=X_PUBLIC, classes=[0, 1]
        )
    assert ledger.releases() == 0


def test_noise_that_follows_from_a_price_is_not_on_a_list() -> None:
    ledger = account(8)
    model = sb.RecordVotesClassifier(budget=sb.PrivacyBudget(0.5, 1e-7), ledger=ledger)
    with pytest.raises(BudgetError, match="cannot be taken off the list"):
        model.fit(X, Y, X_public=X_PUBLIC, classes=[0, 1])


def test_votes_of_teachers_take_labels_off_a_list() -> None:
    labels = sb.GaussianAggregator.calibrate(BUDGET, 40, n_teachers=20).events(20)
    ledger = sb.Ledger.in_memory(dataset="people", budget=BUDGET, events=labels)
    own = sb.GaussianAggregator.from_ledger(ledger, 30)
    model = sb.PATEClassifier(n_teachers=20, aggregator=own, budget=own.budget, ledger=ledger)
    others = np.random.default_rng(1).normal(size=(300, 2))
    model.fit_labels(others, (others[:, 0] > 0).astype(int), X_public=X_PUBLIC, classes=[0, 1])
    assert verify_certificate(model.certificate_).ok
    assert ledger.remaining_events()[0].queries == 10


@pytest.mark.parametrize("kind", [sb.PATEClassifier, sb.ActivePATEClassifier])
def test_labels_that_are_not_left_are_refused_before_anything_is_trained(kind: type) -> None:
    labels = sb.GaussianAggregator.calibrate(BUDGET, 40, n_teachers=20).events(20)
    ledger = sb.Ledger.in_memory(dataset="people", budget=BUDGET, events=labels)
    own = sb.GaussianAggregator.from_ledger(ledger, 30)
    ledger.reserve(own.events(20), own.budget, request="another", purpose="")
    trained: list[int] = []
    model = kind(
        n_teachers=20,
        aggregator=own,
        budget=own.budget,
        ledger=ledger,
        progress=lambda done, total: trained.append(done),
    )
    points = np.random.default_rng(2).normal(size=(300, 2))
    with pytest.raises(BudgetError, match="left: 10 labels of two classes"):
        model.fit_labels(points, (points[:, 0] > 0).astype(int), X_public=X_PUBLIC, classes=[0, 1])
    assert trained == []
