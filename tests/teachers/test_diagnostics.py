"""Diagnostics of votes against their definitions, and that nothing slips out of what they
return."""

import copy
import itertools
import json
import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from secretballot.exceptions import DataError, ParameterError
from secretballot.teachers.diagnostics.margins import (
    agreement,
    expected_margins,
    high_margin_shares,
    instability_distances,
    label_margins,
    unstable_shares,
    vote_margins,
)
from secretballot.teachers.diagnostics.sealed_result import Diagnosis
from secretballot.teachers.diagnostics.tsybakov import (
    estimated_regression,
    tsybakov_constant,
    tsybakov_fit,
)
from secretballot.teachers.diagnostics.votes import (
    diagnose_agreement,
    diagnose_expected_margins,
    diagnose_margins,
    diagnose_stability,
)
from secretballot.teachers.votes import votes_of_counts


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
    """As many moved votes as the distance says leave the label as it is, whatever the rule for
    ties."""
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


def test_margins_are_the_nearest_floats_to_their_fractions() -> None:
    """Sums of rounded shares fall below 0 where ensembles tie in all, and miss the levels that
    they stand at."""
    rng = np.random.default_rng(8)
    for k, r in itertools.product((10, 49, 50, 100, 250), (1, 2, 3, 5, 7)):
        ones = rng.integers(k + 1, size=(r, 200))
        # of these the middle ensemble may tie, and the others undo each other
        ones[:, :100] = k - ones[::-1, :100]
        ones[r // 2, :50] = r * k // 2 - np.delete(ones, r // 2, axis=0)[:, :50].sum(axis=0)
        ones = ones.clip(0, k)
        exact = [Fraction(abs(2 * int(total) - r * k), 2 * r * k) for total in ones.sum(axis=0)]
        counts = np.stack([k - ones, ones], axis=2)
        assert expected_margins(counts)[0].tolist() == [float(margin) for margin in exact]
        curve = diagnose_expected_margins(
            [votes_of_counts(table, ["no", "yes"]) for table in counts]
        ).values()
        shares = [
            sum(margin <= Fraction(step, 200) for margin in exact) / len(exact)
            for step in range(101)
        ]
        assert curve["shares"].tolist() == shares


def test_standard_errors_hold_where_the_truth_is_known() -> None:
    """Independent teachers that say 1 with a known chance: errors in units of the standard error
    have variance one."""
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
    assert [np.mean(margins <= level) for level in (0.0, 0.1, 0.2, 0.25)] == shares[1:5].tolist()
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
    assert unstable_shares(distances, needed).tolist() == [
        np.mean(distances < level) for level in needed
    ]


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


def sealed() -> Diagnosis:
    return diagnose_margins(votes_of_counts(np.array([[7771, 2], [3, 7770]]), ["no", "yes"]))


def test_a_diagnosis_shows_kind_and_sizes_alone() -> None:
    found = sealed()
    old_style = "%s" % found  # noqa: UP031
    for text in (repr(found), str(found), f"{found}", found._repr_html_(), old_style, str([found])):
        assert "NOT RELEASABLE" in text
        assert "776" not in text
        assert "777" not in text.replace("teachers=7773", "")
    assert repr(found).startswith("NOT RELEASABLE")
    assert found.values()["margins"].tolist() == [7769, 7767]
    text = found.to_private_json()
    assert text["releasable"] is False
    assert text["notice"].startswith("NOT RELEASABLE")
    assert json.loads(json.dumps(text))["values"]["margins"] == [7769, 7767]


@pytest.mark.parametrize(
    "way",
    [
        np.asarray,
        list,
        len,
        float,
        pickle.dumps,
        copy.copy,
        copy.deepcopy,
        lambda found: found.__getstate__(),
        lambda found: found["margins"],
        lambda found: 7769 in found,
        lambda found: vars(found),
        lambda found: json.dumps(found),
        lambda found: np.array([found], dtype=float),
    ],
)
def test_a_diagnosis_slips_out_by_no_ordinary_way(way) -> None:
    with pytest.raises(TypeError) as caught:
        way(sealed())
    assert "776" not in str(caught.value)


def test_what_a_diagnosis_gives_out_is_a_copy() -> None:
    found = sealed()
    found.values()["margins"][:] = 0
    found.sizes.clear()
    assert found.values()["margins"].tolist() == [7769, 7767]
    assert found.sizes["queries"] == 2


def test_sealed_diagnoses_hold_what_the_plain_functions_return() -> None:
    rng = np.random.default_rng(3)
    tables = [rng.multinomial(20, (0.6, 0.3, 0.1), size=30) for _ in range(3)]
    votes = [votes_of_counts(table) for table in tables]
    labels = rng.integers(0, 3, size=30)
    expected = diagnose_expected_margins(votes, confidence=0.9)
    margins, standard, resampling = expected_margins(np.stack(tables))
    assert expected.values()["margins"].tolist() == margins.tolist()
    assert expected.values()["standard_errors"].tolist() == standard.tolist()
    assert resampling is not None
    assert expected.values()["resampling_errors"].tolist() == resampling.tolist()
    shares, low, _ = high_margin_shares(margins, expected.values()["levels"], 0.9)
    assert expected.values()["shares"].tolist() == shares.tolist()
    assert expected.values()["low"].tolist() == low.tolist()
    assert expected.sizes == {"ensembles": 3, "queries": 30, "classes": 3, "teachers": 20}
    found = diagnose_agreement(votes[0], labels).values()
    assert (found["vote"], found["ties"], found["teacher"]) == agreement(tables[0], labels)
    stability = diagnose_stability(votes[0], {1: 3.0, 5: 7.5, 9: math.inf}).values()
    assert (
        stability["unstable"].tolist()
        == unstable_shares(instability_distances(tables[0]), [3, 7.5, np.inf]).tolist()
    )
    assert stability["max_unstable"].tolist() == [1, 5, 9]


@pytest.mark.parametrize("tau", [0.3, 0.5, 0.75])
def test_the_exponent_of_a_known_tail_is_found(tau: float) -> None:
    """P(|2 r - 1| <= t) = t^a with a = tau / (1 - tau)."""
    rng = np.random.default_rng(8)
    inside, widths = 0, []
    for seed in range(60):
        margins = rng.random(3000) ** ((1 - tau) / tau) / 2
        side = rng.choice([-1, 1], size=3000)
        fit = tsybakov_fit(0.5 + side * margins, replicates=150, random_state=seed)
        inside += fit.low <= tau <= fit.high
        widths.append(fit.tau)
        assert fit.n_tail == 300
    assert np.mean(widths) == pytest.approx(tau, abs=0.01)
    assert inside >= 51  # 57 expected of 60


def test_eta_is_that_of_the_distribution() -> None:
    """|2 r - 1| uniform: flips below t disagree on t and cost t^2 / 2: eta = sqrt 2, tau = 1/2."""
    rng = np.random.default_rng(12)
    etas = [tsybakov_fit(rng.random(5000), replicates=2).eta for _ in range(30)]
    assert np.median(etas) == pytest.approx(math.sqrt(2), abs=0.06)
    assert tsybakov_fit(np.append(rng.random(300), 0.5)).eta == 1.0  # tau is 0 there


def test_bounded_noise_has_tau_one() -> None:
    fit = tsybakov_fit(np.repeat([0.4, 0.6], 200))
    assert (fit.tau, fit.low, fit.high, fit.massart) == (1.0, 1.0, 1.0, pytest.approx(0.1))
    assert fit.eta == pytest.approx(5.0)  # one over twice the margin
    assert tsybakov_fit(np.full(400, 0.5)).tau == 0.0
    # one half, but for rounding
    assert tsybakov_fit(np.repeat(np.nextafter(0.5, [0, 1]), 200)).tau == 0.0


def test_a_rare_level_of_bounded_noise_sets_eta() -> None:
    """Flipping the hundredth at 0.1 disagrees on 0.01 for an excess error of 0.002."""
    fit = tsybakov_fit(np.repeat([0.6, 0.9], [20, 1980]))
    assert (fit.tau, fit.n_tail, fit.eta) == (1.0, 20, pytest.approx(5.0))


@pytest.mark.parametrize("share", [0.02, 0.05, 0.09])
def test_an_atom_of_clear_points_does_not_steepen_the_tail_below(share: float) -> None:
    """|r - 1/2| uniform up to 0.4 for a few, and 0.4 for all others, has tau 1/2, however few."""
    rng = np.random.default_rng(13)
    taus, inside = [], 0
    for seed in range(30):
        unclear = rng.random(2000) < share
        fit = tsybakov_fit(
            np.where(unclear, rng.uniform(0.1, 0.9, 2000), 0.9), replicates=150, random_state=seed
        )
        taus.append(fit.tau)
        inside += fit.low <= 0.5 <= fit.high
    assert np.mean(taus) == pytest.approx(0.5, abs=0.02)
    assert inside >= 25  # 28.5 expected of 30


def test_the_constant_is_the_least_that_holds_for_every_labelling() -> None:
    rng = np.random.default_rng(9)
    r = rng.random(9)
    best = r > 0.5
    for tau in (0.0, 0.3, 0.5, 1.0):
        needed = 1.0
        for labelling in itertools.product([False, True], repeat=9):
            differs = np.array(labelling) != best
            if differs.any():
                excess = np.mean(np.abs(2 * r - 1) * differs)
                needed = max(needed, np.mean(differs) / excess**tau)
        assert tsybakov_constant(r, tau) == pytest.approx(needed)
    assert tsybakov_constant([0.5, 0.9], 0.5) == math.inf
    assert tsybakov_constant([0.5, 0.9], 0.0) == 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: tsybakov_fit(np.linspace(0, 1, 199)),
        lambda: tsybakov_fit(np.full(300, 1.7771)),
        lambda: tsybakov_fit(np.full(300, np.nan)),
        lambda: tsybakov_fit(np.linspace(0, 1, 300), tail=1.0),
        lambda: tsybakov_fit(np.linspace(0, 1, 300), confidence=0.0),
        lambda: tsybakov_constant([0.1], 1.1),
        lambda: tsybakov_constant([0.1], math.nan),
        lambda: tsybakov_constant([], 0.5),
        lambda: estimated_regression(np.zeros((40, 1)), np.arange(40) % 3),
        lambda: estimated_regression(np.zeros((40, 1)), np.arange(40) // 35),
    ],
)
def test_a_regression_function_that_does_not_fit_is_refused(call) -> None:
    with pytest.raises((DataError, ParameterError)) as caught:
        call()
    assert "7771" not in str(caught.value)


def test_a_regression_function_is_estimated_where_it_was_not_seen() -> None:
    rng = np.random.default_rng(10)
    X = rng.standard_normal((1500, 2))
    truth = 1 / (1 + np.exp(-2 * X[:, 0]))
    y = (rng.random(1500) < truth).astype(int)
    estimated = estimated_regression(X, y)
    assert np.mean(np.abs(estimated - truth)) < 0.03
    noise = estimated_regression(rng.standard_normal((400, 40)), rng.integers(0, 2, size=400))
    assert np.abs(noise - 0.5).mean() < 0.15  # points that were seen would look certain
