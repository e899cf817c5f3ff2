"""Tables of label sets and of numbers: definitions with injected noise, sensitivities by brute
force, the true delta of small worlds, wrong caps caught, guards."""

import itertools
import math

import numpy as np
import pytest

from made_events import class_event, counts_event, label_event, sums_event
from secretballot.aggregation import LabelSetVoting, NumberVoting
from secretballot.audit import ScriptedNoise
from secretballot.audit.distributions import Distribution, discrete_gaussian_distribution
from secretballot.audit.games import adaptive_delta, hockey_stick
from secretballot.core.private import Votes
from secretballot.ensemble import label_votes, number_votes
from secretballot.ensemble.vote_tables import as_set_numbers, capped, from_set_numbers
from secretballot.exceptions import DataError, ParameterError
from secretballot.privacy.accounting import (
    PrivacyBudget,
    delta_upper,
)

BUDGET = PrivacyBudget(1.0, 1e-6)
BALLOTS = [{}, {"most_named": 1}, {"most_named": 2}, {"ballot": "sets"}]


def all_sets(n_labels: int) -> np.ndarray:
    return np.array(list(itertools.product((0, 1), repeat=n_labels)))


def opened(votes: Votes) -> np.ndarray:
    return votes._unseal()[0]


def counts_of(sets: np.ndarray, labels: list[str], **terms: object) -> np.ndarray:
    return opened(label_votes(sets[None], labels, **terms))[:, 1]


@pytest.mark.parametrize("n_labels", [1, 2, 3, 4])
@pytest.mark.parametrize("terms", BALLOTS, ids=str)
def test_one_teacher_moves_as_many_counts_as_stated_by_one_each(
    n_labels: int, terms: dict[str, object]
) -> None:
    if terms.get("most_named", 1) > n_labels or (n_labels == 1 and "ballot" in terms):
        return
    labels, other = [f"l{j}" for j in range(n_labels)], np.ones((1, n_labels), dtype=int)
    most, stated = 0, 0
    for one, two in itertools.product(all_sets(n_labels), repeat=2):
        votes = [
            label_votes(np.vstack([own[None], other])[None], labels, **terms) for own in (one, two)
        ]
        moved = np.abs(opened(votes[0]) - opened(votes[1]))
        assert moved.max() <= 1
        # in a row that moves one vote leaves one class for another
        assert set(moved.sum(axis=1)) <= {0, 2}
        most, stated = max(most, int(moved.sum()) // 2), votes[0].shape.moved
    assert most == stated


def test_a_cap_keeps_the_surest_labels_and_reads_no_other_ballot() -> None:
    named = np.array([[True, True, True], [False, True, True], [False, False, False]])
    sure = np.array([[0.6, 0.9, 0.7], [0.99, 0.6, np.nan], [0.2, 0.1, 0.3]])
    assert capped(named, 1, sure).tolist() == [
        [False, True, False],
        [False, True, False],
        [False, False, False],
    ]
    assert capped(named, 2, None).tolist()[0] == [True, True, False]
    assert (capped(named, 3, sure) == named).all()


def test_sets_have_numbers_and_numbers_sets() -> None:
    sets = all_sets(4)
    assert (from_set_numbers(as_set_numbers(sets), 4) == sets).all()
    assert sorted(as_set_numbers(sets).tolist()) == list(range(16))


def test_answers_follow_the_definition_under_injected_noise() -> None:
    labels = ["a", "b", "c"]
    votes = np.array([[[1, 0, 1], [1, 0, 0], [1, 1, 1], [0, 0, 1]]])
    counts = opened(label_votes(votes, labels))
    assert counts.tolist() == [[1, 3], [3, 1], [1, 3]]
    terms = {"n_teachers": 4, "labels": labels, "delta": 1e-6}
    alone = LabelSetVoting(2.0, 1, **terms)
    # half of the teachers is enough
    assert alone.draw(counts, ScriptedNoise([-2, 1, -1])).tolist() == [[0, 1, 1]]
    noisy = LabelSetVoting(2.0, 1, release="counts", **terms)
    assert noisy.draw(counts, ScriptedNoise([-2, 1, -1])).tolist() == [[1, 2, 2]]
    sets = opened(label_votes(votes, labels, ballot="sets"))
    assert sets[0, [5, 1, 7, 4]].tolist() == [1, 1, 1, 1]
    best = LabelSetVoting(2.0, 1, ballot="sets", **terms)
    assert best.draw(sets, ScriptedNoise([0, 0, 0, 3, 0, 0, 0, 0])).tolist() == [[1, 1, 0]]
    means = NumberVoting(2.0, 1, n_teachers=3, target_range=(0.0, 1.0), n_positions=5, delta=1e-6)
    cast = number_votes(np.array([[0.0, 0.6, 7.0]]), (0.0, 1.0), n_positions=5)
    assert means.draw(opened(cast), ScriptedNoise([-3])).tolist() == [[3]]


@pytest.mark.parametrize("terms", BALLOTS, ids=str)
@pytest.mark.parametrize("release", ["labels", "counts"])
def test_events_and_calibrations(terms: dict[str, object], release: str) -> None:
    labels = ["a", "b", "c", "d", "e"]
    voting = LabelSetVoting.calibrate(
        BUDGET, 12, n_teachers=100, labels=labels, release=release, **terms
    )
    moved = {"{}": 5, "1": 2, "2": 4}.get(str(terms.get("most_named", "{}")), 0)
    moved = 2 if "ballot" in terms else moved
    alone = release == "labels" and "ballot" not in terms
    expected = (
        label_event(voting.sigma, 12 * moved, 100)
        if alone
        else counts_event(voting.sigma, 12 * moved)
    )
    if release == "labels" and "ballot" in terms:
        expected = class_event(voting.sigma, 12)
    assert voting.event == expected
    assert delta_upper([voting.event], 1.0) <= 1e-6
    less = LabelSetVoting(
        0.97 * voting.sigma,
        12,
        n_teachers=100,
        labels=labels,
        release=release,
        budget=BUDGET,
        **terms,
    )
    assert delta_upper([less.event], 1.0) > 1e-6


def values_of(noise: Distribution) -> np.ndarray:
    return noise.low + np.arange(len(noise.pmf))


def bit_laws(n_teachers: int, sigma: float) -> list[float]:
    """Return the chance of label 1 at each count."""
    noise = discrete_gaussian_distribution(sigma, 1e-13)
    return [
        float(noise.pmf[2 * (count + values_of(noise)) >= n_teachers].sum())
        for count in range(n_teachers + 1)
    ]


def law_of(counts: np.ndarray, chances: list[float]) -> np.ndarray:
    """Return the law of the labels of one query, over all sets."""
    one = np.array([chances[count] for count in counts])
    sets = all_sets(len(counts))
    return np.where(sets, one, 1 - one).prod(axis=1)


@pytest.mark.parametrize(("cap", "n_queries"), [(None, 1), (None, 2), (1, 2)])
def test_the_price_of_labels_alone_is_above_the_truth_of_all_small_worlds(
    cap: int | None, n_queries: int
) -> None:
    # three labels, three teachers; a query's worst pair of laws depends on nothing else
    labels, sigma, teachers = ["a", "b", "c"], 3.0, 3
    chances = bit_laws(teachers, sigma)
    steps = []
    others = [counts_of(rest, labels, most_named=cap) for rest in _pairs_of_ballots(3)]
    for rest in {tuple(one.tolist()) for one in others}:
        for one, two in itertools.product(all_sets(3), repeat=2):
            both = [counts_of(own[None], labels, most_named=cap) for own in (one, two)]
            here, there = (np.array(rest) + own for own in both)
            steps.append((law_of(here, chances), law_of(there, chances)))
    voting = LabelSetVoting(
        sigma, n_queries, n_teachers=teachers, labels=labels, most_named=cap, delta=1e-6
    )
    for epsilon in (0.3, 1.0):
        true = adaptive_delta(steps, n_queries, epsilon)
        price = delta_upper([voting.event], epsilon)
        assert 0.5 * price < true <= price
        if cap is not None:
            # a cap that counts one way, as of a teacher that comes or goes, promises too much
            assert true > delta_upper([label_event(sigma, cap * n_queries, 3)], epsilon)


def _pairs_of_ballots(n_labels: int) -> list[np.ndarray]:
    sets = all_sets(n_labels)
    return [np.array(pair) for pair in itertools.combinations_with_replacement(sets, 2)]


def test_the_price_of_sets_is_above_the_truth_and_one_shift_is_below_it() -> None:
    # two labels, one teacher of three changes its set; the noisy counts of two sets move
    sigma, noise = 2.0, discrete_gaussian_distribution(2.0, 1e-12)
    # the last cell is empty, so that both shifts stay on the list
    pmf = np.concatenate([[0.0], noise.pmf, [0.0]])
    p = np.outer(pmf, pmf).ravel()
    q = np.outer(np.roll(pmf, 1), np.roll(pmf, -1)).ravel()
    voting = LabelSetVoting(
        sigma, 1, n_teachers=3, labels=["a", "b"], ballot="sets", release="counts", delta=1e-6
    )
    for epsilon in (0.5, 1.0):
        true = hockey_stick(p, q, epsilon)
        assert true <= delta_upper([voting.event], epsilon) * (1 + 1e-6) + 1e-11
        assert true > delta_upper([counts_event(sigma, 1)], epsilon)


def test_means_are_moved_by_the_whole_grid_at_every_query() -> None:
    bounds, steps = (0.0, 1.0), 4
    low = number_votes(np.zeros((3, 2)), bounds, n_positions=steps + 1)
    high = number_votes(np.column_stack([np.ones(3), np.zeros(3)]), bounds, n_positions=steps + 1)
    here, there = (opened(votes) @ np.arange(steps + 1) for votes in (low, high))
    squared = int(((here - there) ** 2).sum())
    voting = NumberVoting.calibrate(
        BUDGET, 3, n_teachers=2, target_range=bounds, n_positions=steps + 1
    )
    assert voting.event == sums_event(voting.noise, squared, 3)
    # a single query as a single lattice sum: the price is at least its exact delta
    one = NumberVoting(6.0, 1, n_teachers=2, target_range=bounds, n_positions=2, delta=1e-6)
    assert delta_upper([one.event], 0.5) >= delta_upper([counts_event(6.0, 1)], 0.5) * 0.999


def test_numbers_are_put_on_the_grid_each_from_itself() -> None:
    votes = np.array([[0.0, 0.24, 0.26, 1.0, -3.0, math.inf, math.nan]])
    cast = number_votes(votes, (0.0, 1.0), n_positions=3)
    assert opened(cast).tolist() == [[3, 2, 2]]


def test_votes_that_are_none_are_refused_without_being_named() -> None:
    for votes in (np.full((1, 2, 2), 977), np.ones((1, 2)), np.ones((0, 2, 2)), np.ones((1, 2, 3))):
        with pytest.raises(DataError) as caught:
            label_votes(votes, ["a", "b"])
        assert "977" not in str(caught.value)
    with pytest.raises(DataError):
        number_votes(np.ones(3), (0.0, 1.0))
    with pytest.raises(DataError):
        number_votes(np.array([["977"]]), (0.0, 1.0))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"labels": ["a", "a"]}, "labels"),
        ({"labels": None}, "labels"),
        ({"ballot": "ranks"}, "ballot"),
        ({"most_named": 4}, "most_named"),
        ({"most_named": 1, "ballot": "sets"}, "most_named"),
        ({"labels": [str(j) for j in range(9)], "ballot": "sets"}, "sets"),
        ({"release": "votes"}, "release"),
        ({"n_queries": 0}, "n_queries"),
    ],
)
def test_bad_terms_of_labels_are_refused(settings: dict[str, object], words: str) -> None:
    terms = {"n_queries": 3, "n_teachers": 10, "labels": ["a", "b", "c"], **settings}
    with pytest.raises(ParameterError, match=words):
        LabelSetVoting.calibrate(BUDGET, **terms)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"target_range": (1.0, 0.0)}, "target_range"),
        ({"target_range": None}, "target_range"),
        ({"n_positions": 1}, "n_positions"),
        ({"statistic": "mode"}, "statistic"),
        ({"rank": 3}, "rank"),
        ({"rank": 11, "statistic": "quantile"}, "rank"),
    ],
)
def test_bad_terms_of_numbers_are_refused(settings: dict[str, object], words: str) -> None:
    terms = {"n_queries": 3, "n_teachers": 10, "target_range": (0.0, 1.0), **settings}
    with pytest.raises(ParameterError, match=words):
        NumberVoting.calibrate(BUDGET, **terms)
