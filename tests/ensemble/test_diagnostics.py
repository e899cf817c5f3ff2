"""Diagnostics of votes against their definitions, and that nothing slips out of what they return."""

import itertools
import math

import numpy as np
import pytest

from secretballot.ensemble.diagnostics import (
    agreement,
    expected_margins,
    high_margin_shares,
    instability_distances,
    label_margins,
    unstable_shares,
    vote_margins,
)
from secretballot.exceptions import DataError, ParameterError
from secretballot.theory import high_margin_share


def all_counts(n_teachers: int, n_classes: int) -> np.ndarray:
    """Return every way to share some votes among classes."""
    ways = itertools.product(range(n_teachers + 1), repeat=n_classes)
    return np.array([way for way in ways if sum(way) == n_teachers])


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_margins_and_distances_are_those_of_the_definition(n_classes: int) -> None:
    for n_teachers in (1, 4, 5):
        counts = all_counts(n_teachers, n_classes)
        ranked = [sorted(row, reverse=True) for row in counts.tolist()]
        assert vote_margins(counts).tolist() == [row[0] - row[1] for row in ranked]
        expected = [max(0, math.ceil((row[0] - row[1]) / 2) - 1) for row in ranked]
        assert instability_distances(counts).tolist() == expected


def test_the_distance_never_overstates_how_many_votes_must_move() -> None:
    """As many moved votes as the distance says leave the label as it is, whatever the rule for ties."""
    counts = all_counts(7, 3)
    for row, distance in zip(counts, instability_distances(counts), strict=True):
        reachable = counts[np.abs(counts - row).sum(axis=1) <= 2 * distance]
        if distance:
            assert (vote_margins(reachable) > 0).all()
            assert (reachable.argmax(axis=1) == row.argmax()).all()


def test_margins_towards_a_label_are_those_of_the_definition() -> None:
    counts = all_counts(5, 3)
    for label in range(3):
        others = [max(row[c] for c in range(3) if c != label) for row in counts.tolist()]
        labels = np.full(len(counts), label)
        margins = counts[:, label] - others
        assert label_margins(counts, labels).tolist() == margins.tolist()
        vote, ties, teacher = agreement(counts, labels)
        assert vote == np.mean(margins > 0)
        assert ties == np.mean(margins == 0)
        assert teacher == pytest.approx(np.mean(counts[:, label] / 5))


def test_expected_margins_are_half_the_lead_of_the_mean_shares() -> None:
    rng = np.random.default_rng(0)
    counts = np.stack([rng.multinomial(9, (0.5, 0.3, 0.2), size=40) for _ in range(6)])
    margins, standard, resampling = expected_margins(counts)
    mean = counts.mean(axis=0) / 9
    ranked = np.sort(mean, axis=1)
    assert margins == pytest.approx((ranked[:, -1] - ranked[:, -2]) / 2)
    # one teacher's half vote is 1/2, -1/2 or 0 with the chances of the two classes
    for x in range(40):
        a, b = np.argsort(-mean[x], kind="stable")[:2]
        half = np.array([0.5, -0.5, 0.0])
        chances = np.array([mean[x, a], mean[x, b], 1 - mean[x, a] - mean[x, b]])
        variance = chances @ half**2 - (chances @ half) ** 2
        assert standard[x] == pytest.approx(math.sqrt(variance / 9))
        assert resampling is not None
        halves = (counts[:, x, a] - counts[:, x, b]) / 18
        assert resampling[x] == pytest.approx(np.std(halves, ddof=1) / math.sqrt(6))
    assert expected_margins(counts[:1])[2] is None


def test_standard_errors_hold_where_the_truth_is_known() -> None:
    """Independent teachers that say 1 with a known chance: errors in units of the standard error have variance one."""
    rng = np.random.default_rng(1)
    chance = rng.uniform(0.6, 0.95, size=4000)
    ones = rng.binomial(60, chance)
    margins, standard, _ = expected_margins(np.stack([60 - ones, ones], axis=1)[None])
    z = (margins - (chance - 0.5)) / np.maximum(standard, 1e-9)
    inside = np.mean(np.abs(z) <= 2)
    assert 0.92 < inside < 0.97


def test_the_curve_is_the_share_at_or_below_each_level() -> None:
    margins = np.array([0.0, 0.1, 0.1, 0.25, 0.5])
    levels = np.array([-0.1, 0.0, 0.1, 0.2, 0.25, 0.5])
    shares, low, high = high_margin_shares(margins, levels)
    assert shares.tolist() == [np.mean(margins <= level) for level in levels]
    assert [high_margin_share(margins, level) for level in (0.0, 0.1, 0.2, 0.25)] == shares[1:5].tolist()
    assert ((low <= shares) & (shares <= high)).all()
    assert (low.min(), high.max()) == (0.0, 1.0)


def test_the_band_holds_the_whole_curve_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(2)
    levels = np.linspace(0, 0.5, 201)
    held = 0
    for _ in range(400):
        _, low, high = high_margin_shares(rng.uniform(0, 0.5, size=200), levels, confidence=0.8)
        held += bool(((low <= 2 * levels) & (2 * levels <= high)).all())
    assert 0.76 < held / 400 < 0.92  # the inequality is nearly tight


def test_unstable_shares_count_what_falls_short() -> None:
    distances = np.array([0, 3, 3, 7, 10])
    needed = [0.0, 3.0, 3.2, 10.0, 10.5, math.inf]
    assert unstable_shares(distances, needed).tolist() == [np.mean(distances < level) for level in needed]


@pytest.mark.parametrize(
    "call",
    [
        lambda: vote_margins(np.array([[0.5, 0.5]])),
        lambda: vote_margins(np.array([3, 4])),
        lambda: vote_margins(np.array([[3], [4]])),
        lambda: vote_margins(np.array([[7771, -1]])),
        lambda: vote_margins(np.zeros((2, 2), dtype=int)),
        lambda: vote_margins(np.zeros((0, 2), dtype=int)),
        lambda: label_margins(np.array([[7771, 2]]), np.array([2])),
        lambda: label_margins(np.array([[7771, 2]]), np.array([0, 1])),
        lambda: label_margins(np.array([[7771, 2]]), np.array([0.0])),
        lambda: expected_margins(np.array([[7771, 2]])),
        lambda: expected_margins(np.array([[[7771, 2], [3, 4]]])),
        lambda: high_margin_shares([0.7771], [0.1]),
        lambda: high_margin_shares([math.nan], [0.1]),
        lambda: high_margin_shares([], [0.1]),
        lambda: high_margin_shares([0.1], [math.nan]),
        lambda: high_margin_shares([0.1], [0.1], confidence=1.0),
        lambda: unstable_shares([-1.0], [0.1]),
        lambda: unstable_shares([math.nan], [0.1]),
        lambda: unstable_shares([1.0], [math.nan]),
    ],
)
def test_what_does_not_fit_is_refused_without_a_value(call) -> None:
    with pytest.raises((DataError, ParameterError)) as caught:
        call()
    assert "777" not in str(caught.value)
