"""The student of votes of records: shares where rows sum to nothing, crowds, and odd input."""

import numpy as np

from secretballot import _nearest_points
from secretballot.bases import TableBasis
from secretballot.students import RecordVotesStudent


def voted(records, classes, points, k, basis, n_classes=2):
    """Return the counts that records cast, without noise."""
    fitted = basis.fit(points)
    places = _nearest_points.NearestPoints(fitted.integers(points), k).of(fitted.integers(records))
    counts = np.zeros((len(points), n_classes))
    for row, label in zip(places, classes, strict=True):
        counts[row, label] += 1
    return counts


def test_points_in_a_crowd_do_not_pass_for_a_class():
    # the first class is as rare everywhere, and the crowd is on one side
    rng = np.random.default_rng(0)
    records = np.concatenate([rng.normal(-1, 0.3, (18_000, 1)), rng.normal(1, 1.0, (2000, 1))])
    classes = (rng.random(20_000) < 0.3).astype(int)
    points = rng.normal(0, 1.3, (400, 1))
    counts = voted(records, classes, points, 5, TableBasis(whitening=0.0))
    assert counts.sum(axis=1).max() > 20 * np.median(counts.sum(axis=1))
    student = RecordVotesStudent().fit(points, counts, sigma=3.0, votes_per_record=5)
    chances = student.predict_proba(np.linspace(-1.5, 1.5, 7)[:, None])
    assert np.abs(chances[:, 1] - 0.3).max() < 0.08
    assert (student.predict(points) == 0).mean() > 0.98


def test_probabilities_are_those_of_the_records():
    rng = np.random.default_rng(1)
    records, points = rng.uniform(-2, 2, (40_000, 1)), rng.uniform(-2, 2, (500, 1))
    chance = 1 / (1 + np.exp(-2 * records[:, 0]))
    counts = voted(
        records, (rng.random(40_000) < chance).astype(int), points, 5, TableBasis(whitening=0.0)
    )
    noisy = counts + rng.normal(0, 10.0, counts.shape)
    student = RecordVotesStudent().fit(points, noisy, sigma=10.0, votes_per_record=5)
    new = np.linspace(-1.8, 1.8, 19)[:, None]
    assert np.abs(student.predict_proba(new)[:, 1] - 1 / (1 + np.exp(-2 * new[:, 0]))).max() < 0.1


def test_counts_that_are_all_noise_or_nothing_give_probabilities_all_the_same():
    points = np.linspace(0, 1, 30)[:, None]
    for counts in (np.zeros((30, 2)), np.full((30, 2), -50), np.full((30, 2), 10**9)):
        student = RecordVotesStudent().fit(points, counts, sigma=20.0, votes_per_record=30)
        chances = student.predict_proba(points)
        assert np.isfinite(chances).all()
        assert np.allclose(chances.sum(axis=1), 1.0)
