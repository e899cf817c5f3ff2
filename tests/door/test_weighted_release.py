"""Votes that count several times, at the door: each group's promise holds exactly in a small world,
and what is priced for single votes refuses them."""

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

import secretballot as sb
from secretballot.aggregation import (
    VotingGroup,
    WeightedGaussianAggregator,
    aggregator_from_description,
)
from secretballot.door import ReleaseStream
from secretballot.ensemble import WeightedVotes
from secretballot.exceptions import BudgetError, CertificateError, DataError, ParameterError
from secretballot.learners.pate.active import label_actively
from secretballot.privacy.accounting import PrivacyBudget
from secretballot.privacy.accounting.gaussian import discrete_gaussian_pmf

BUDGETS = {
    "strict": PrivacyBudget(0.3, 1e-2),
    "middle": PrivacyBudget(0.8, 1e-2),
    "open": PrivacyBudget(1.5, 2e-2),
}
TEACHERS = {"strict": 2, "middle": 2, "open": 1}
QUERIES = 3


def weighted(votes: Mapping[str, Any], weights: Mapping[str, int], classes: int) -> WeightedVotes:
    """Return the votes on one query, of teachers that vote for these classes."""
    counts = {
        name: sb.VoteCounts.from_counts([np.bincount(votes[name], minlength=classes).tolist()])
        for name in votes
    }
    return WeightedVotes.of_groups(counts, {name: weights[name] for name in votes})


def all_votes(classes: int) -> list[dict[str, list[int]]]:
    found = []
    for cast in itertools.product(range(classes), repeat=sum(TEACHERS.values())):
        left = iter(cast)
        found.append({name: [next(left) for _ in range(k)] for name, k in TEACHERS.items()})
    return found


def chance_of_one(aggregator: WeightedGaussianAggregator, votes: WeightedVotes) -> float:
    """Return the chance of label 1, by every noise that there is."""
    reach, chance = discrete_gaussian_pmf(aggregator.sigma)
    drawing = WeightedGaussianAggregator(
        aggregator.sigma,
        len(chance),
        [
            VotingGroup(one.name, weight, number, one.budget)
            for one, (_, number, weight) in zip(aggregator.groups, votes.voters, strict=True)
        ],
    )
    rows = np.tile(votes.open_at_the_door(), (len(chance), 1))
    noise = sb.audit.ScriptedNoise(np.arange(-reach, reach + 1))
    labels = drawing.answer(rows, votes.n_teachers, noise).labels
    return float(chance[labels == 1].sum())


def true_delta(pairs: set[tuple[float, float]], epsilon: float) -> float:
    """Largest hockey stick over all adaptive choices of `QUERIES` pairs."""

    @functools.cache
    def value(p: float, q: float, left: int) -> float:
        if left == 0:
            return max(0.0, p - math.exp(epsilon) * q)
        return max(
            value(p * a, q * b, left - 1) + value(p * (1 - a), q * (1 - b), left - 1)
            for a, b in pairs
        )

    return value(1.0, 1.0, QUERIES)


def delta_of_group(
    aggregator: WeightedGaussianAggregator, name: str, weights: Mapping[str, int]
) -> float:
    """Return the true delta, at its epsilon, of what one unit of a group changes: a vote."""
    chances: dict[str, float] = {}

    def of(votes: dict[str, list[int]]) -> float:
        cast = weighted(votes, weights, 2)
        key = str(cast.open_at_the_door().tolist())
        if key not in chances:
            chances[key] = chance_of_one(aggregator, cast)
        return chances[key]

    pairs = set()
    for votes in all_votes(2):
        other = {**votes, name: [1 - votes[name][0], *votes[name][1:]]}
        pairs.add((of(votes), of(other)))
    return true_delta(pairs, BUDGETS[name].epsilon)


@pytest.fixture(scope="module")
def labels() -> WeightedGaussianAggregator:
    return WeightedGaussianAggregator.calibrate(BUDGETS, TEACHERS, QUERIES)


def test_every_group_keeps_its_promise_exactly(labels: WeightedGaussianAggregator) -> None:
    weights = {group.name: group.weight for group in labels.groups}
    assert weights["strict"] < weights["middle"] < weights["open"] == 100
    for name, budget in BUDGETS.items():
        true = delta_of_group(labels, name, weights)
        assert true <= budget.delta
    # the promise is used, too: some votes come near it
    assert delta_of_group(labels, "open", weights) > 0.2 * BUDGETS["open"].delta


def test_a_group_whose_votes_are_not_weighted_breaks_its_promise(
    labels: WeightedGaussianAggregator,
) -> None:
    flat = dict.fromkeys(BUDGETS, 100)
    assert delta_of_group(labels, "strict", flat) > 3 * BUDGETS["strict"].delta


@pytest.mark.parametrize("classes", [2, 3])
def test_counts_keep_every_groups_promise_by_the_continuous_price(classes: int) -> None:
    aggregator = WeightedGaussianAggregator.calibrate(
        BUDGETS, TEACHERS, QUERIES, n_classes=classes, release="counts"
    )
    weights = {group.name: group.weight for group in aggregator.groups}
    votes = all_votes(classes)[0]
    for name, budget in BUDGETS.items():
        other = {**votes, name: [classes - 1, *votes[name][1:]]}
        moved = [weighted(one, weights, classes).open_at_the_door() for one in (votes, other)]
        shift = moved[1] - moved[0]
        squared = int(
            (shift[:, 1:] if classes == 2 else shift).astype(int).ravel()
            @ (shift[:, 1:] if classes == 2 else shift).ravel()
        )
        mu = math.sqrt(QUERIES * squared) / aggregator.sigma
        delta = sb.privacy.accounting.gaussian.gaussian_delta(budget.epsilon, mu)
        assert 0.8 * budget.delta < delta <= budget.delta


def test_labels_of_more_classes_cost_what_their_counts_do() -> None:
    found = {
        kind: WeightedGaussianAggregator.calibrate(
            BUDGETS, TEACHERS, QUERIES, n_classes=3, release=kind
        )
        for kind in ("labels", "counts")
    }
    assert found["labels"].events(found["labels"].total_votes) == found["counts"].events(
        found["counts"].total_votes
    )
    assert found["labels"].sigma_of_counts is None


# --- what fits together ---


def votes_of(aggregator: WeightedGaussianAggregator, n: int = 3) -> WeightedVotes:
    counts = {
        group.name: sb.VoteCounts.from_counts([[group.n_teachers, 0]] * n)
        for group in aggregator.groups
    }
    return WeightedVotes.of_groups(
        counts, {group.name: group.weight for group in aggregator.groups}
    )


def ledger() -> sb.Ledger:
    return sb.Ledger.in_memory(dataset="people", budget=PrivacyBudget(4.0, 0.1))


def test_a_release_of_weighted_votes_says_who_weighs_what(
    labels: WeightedGaussianAggregator,
) -> None:
    account = ledger()
    released = sb.release(votes_of(labels), labels, account)
    assert released.n_teachers == labels.total_votes
    assert sb.verify_certificate(released.certificate).ok
    assert f"{labels.total_votes} votes" in repr(released)
    assert released.certificate["mechanism"]["groups"] == [
        group.to_json() for group in labels.groups
    ]
    assert aggregator_from_description(labels.describe()) == labels
    spent = account.spent_by_group()
    assert {name: own.epsilon for name, own in spent.items()} == {
        name: own.epsilon for name, own in BUDGETS.items()
    }
    assert account.spent().epsilon == 1.5


def test_single_votes_and_weighted_ones_are_not_taken_for_each_other(
    labels: WeightedGaussianAggregator,
) -> None:
    votes, account = votes_of(labels), ledger()
    total = labels.total_votes
    single = sb.VoteCounts.from_counts([[total, 0]] * 3)
    plain = sb.GaussianAggregator.calibrate(PrivacyBudget(1.0, 1e-3), 3)
    with pytest.raises(ParameterError, match="Votes with weights are priced by"):
        sb.release(votes, plain, account)
    with pytest.raises(ParameterError, match="Votes with weights are priced by"):
        sb.release(single, labels, account)
    parts = {name: sb.VoteCounts.from_counts([[k, 0]] * 3) for name, k in TEACHERS.items()}
    weights = {group.name: group.weight for group in labels.groups}
    # heavier votes, and, of two groups with as many teachers, the votes of one as the other's
    swapped = weights | {"strict": weights["middle"], "middle": weights["strict"]}
    for wrong in (dict.fromkeys(TEACHERS, 100), swapped):
        other = WeightedVotes.of_groups(parts, wrong)
        with pytest.raises(ParameterError, match="teachers and votes of the groups"):
            sb.release(other, labels, account)
    with pytest.raises(ParameterError, match="released all at once"):
        ReleaseStream(labels, account, classes=[0, 1], n_teachers=total, request="r", teachers="t")
    with pytest.raises(ParameterError, match="votes with weights"):
        label_actively(
            votes,  # type: ignore[arg-type]
            np.zeros((3, 1)),
            plain,
            account,
            sb.queries.MarginSampling(),
        )
    stream = ReleaseStream(
        plain, account, classes=[0, 1], n_teachers=total, request="s", teachers="t"
    )
    with pytest.raises(ParameterError, match="votes with weights"):
        stream.answer(votes.take([0]), [b"q"])  # type: ignore[arg-type]
    assert stream.used == 0


def test_numbers_that_every_group_paid_for_are_refused_beside_groups(
    labels: WeightedGaussianAggregator,
) -> None:
    account = ledger()
    estimate = sb.estimate_stability(
        sb.VoteCounts.from_counts([[90, 10]]), account, fraction=0.5, epsilon=0.3
    )
    spent = account.spent()
    with pytest.raises(ParameterError, match="release with budget groups takes none"):
        sb.release(votes_of(labels), labels, account, choices=[estimate])
    assert account.spent() == spent


def test_a_ledger_refuses_a_group_that_costs_more_than_it_is_promised(
    labels: WeightedGaussianAggregator,
) -> None:
    first, *rest = labels.groups
    heavy = VotingGroup(first.name, 100, first.n_teachers, first.budget)
    cheat = WeightedGaussianAggregator(labels.sigma, QUERIES, [heavy, *rest])
    account = ledger()
    with pytest.raises(CertificateError, match="'strict' more than it is promised"):
        sb.release(votes_of(cheat), cheat, account)
    with pytest.raises(BudgetError, match="strict"):
        account.reserve(cheat.events(cheat.total_votes), cheat.budget, request="r", purpose="")
    assert account.spent().epsilon == 0


def test_votes_that_do_not_fit_are_refused_and_none_is_shown(
    labels: WeightedGaussianAggregator,
) -> None:
    one, two = sb.VoteCounts.from_counts([[3, 97]]), sb.VoteCounts.from_counts([[3, 7], [1, 9]])
    with pytest.raises(DataError, match="voted on other queries"):
        WeightedVotes.of_groups({"a": one, "b": two}, {"a": 1, "b": 1})
    with pytest.raises(DataError, match="give one weight for each group"):
        WeightedVotes.of_groups({"a": one}, {"a": 1, "b": 2})
    with pytest.raises(ParameterError, match="weights"):
        WeightedVotes.of_groups({"a": one}, {"a": 0})
    with pytest.raises(DataError, match="too many"):
        WeightedVotes.of_groups({"a": one}, {"a": 2**31})
    votes = WeightedVotes.of_groups({"a": one.under("user", "add-remove")}, {"a": 7})
    assert votes.declared == {"unit": "user", "neighbours": "add-remove"}
    assert "97" not in repr(votes)
    assert "679" not in repr(votes)
    with pytest.raises(TypeError):
        np.asarray(votes)
    with pytest.raises(ParameterError, match="votes in all"):
        labels.events(7)


@pytest.mark.parametrize(
    "changed",
    [
        {"groups": []},
        {"groups": "strict"},
        {"groups": [{"name": "a"}]},
        {"budget": {"epsilon": 1.0, "delta": 2e-2}},
        {"sigma": -1.0},
    ],
)
def test_a_description_that_is_none_is_refused(
    labels: WeightedGaussianAggregator, changed: dict[str, Any]
) -> None:
    with pytest.raises(ParameterError):
        aggregator_from_description(labels.describe() | changed)


def test_groups_that_cannot_be_are_refused() -> None:
    group = VotingGroup("a", 100, 5, PrivacyBudget(1.0, 1e-6))
    other = VotingGroup("b", 50, 5, PrivacyBudget(0.5, 1e-5))
    with pytest.raises(ParameterError, match="same delta"):
        WeightedGaussianAggregator(400.0, 3, [group, other])
    with pytest.raises(ParameterError, match="name one twice"):
        WeightedGaussianAggregator(400.0, 3, [group, group])
    with pytest.raises(ParameterError, match="VotingGroup"):
        WeightedGaussianAggregator(400.0, 3, ["a"])  # type: ignore[list-item]
    with pytest.raises(ParameterError, match="hundredth"):
        WeightedGaussianAggregator.calibrate(
            {"a": PrivacyBudget(3.0, 1e-5), "b": PrivacyBudget(1e-4, 1e-9)}, {"a": 5, "b": 5}, 30
        )
    with pytest.raises(ParameterError, match="other groups"):
        WeightedGaussianAggregator.calibrate({"a": PrivacyBudget(3.0, 1e-5)}, {"b": 5}, 30)
