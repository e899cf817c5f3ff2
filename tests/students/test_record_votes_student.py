"""The student of votes of records: shares where rows sum to nothing, crowds, and odd input."""

import pickle

import numpy as np
import pandas as pd
import pytest

from secretballot import _nearest_points
from secretballot.bases import TableBasis
from secretballot.exceptions import DataError, ParameterError
from secretballot.released import ReleasedLabels
from secretballot.students import RecordVotesStudent, default_student, fit_student
from secretballot.students.record_votes import _voted_points


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
    assert (student.predict(points) == 0).mean() > 0.99


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


def test_more_noise_is_trusted_less():
    points = np.linspace(-1, 1, 60)[:, None]
    counts = np.where(points > 0, [[5, 60]], [[60, 5]])
    sure, unsure = (
        RecordVotesStudent()
        .fit(points, counts, sigma=sigma, votes_per_record=3)
        .predict_proba([[0.9]])[0, 1]
        for sigma in (2.0, 500.0)
    )
    assert sure > 0.9
    assert 0.45 < unsure < 0.75


def test_every_point_votes_at_others_where_there_are_enough():
    coordinates = np.array([[0], [1], [10], [11]])
    assert _voted_points(coordinates, 1).toarray().tolist() == np.eye(4)[[1, 0, 3, 2]].tolist()
    assert _voted_points(coordinates, 4).toarray().sum() == 16


def test_tables_and_classes_of_any_kind():
    frame = pd.DataFrame({"ward": ["a", "b"] * 40, "age": np.arange(80.0)})
    counts = np.where((frame["ward"] == "a").to_numpy()[:, None], [[90, 5, 1]], [[2, 4, 80]])
    student = RecordVotesStudent().fit(
        frame, counts, sigma=4.0, votes_per_record=3, classes=["x", "y", "z"]
    )
    assert student.predict(frame.iloc[:2]).tolist() == ["x", "z"]
    again = pickle.loads(pickle.dumps(student))
    assert np.array_equal(again.predict_proba(frame), student.predict_proba(frame))
    odd = pd.DataFrame({"ward": [None, "c"], "age": [np.nan, np.inf]})
    assert np.isfinite(student.predict_proba(odd)).all()


def test_counts_that_are_all_noise_or_nothing_give_probabilities_all_the_same():
    points = np.linspace(0, 1, 30)[:, None]
    for counts in (np.zeros((30, 2)), np.full((30, 2), -50), np.full((30, 2), 10**9)):
        student = RecordVotesStudent().fit(points, counts, sigma=20.0, votes_per_record=30)
        chances = student.predict_proba(points)
        assert np.isfinite(chances).all()
        assert np.allclose(chances.sum(axis=1), 1.0)


def test_what_does_not_fit_is_refused():
    points = np.linspace(0, 1, 30)[:, None]
    counts = np.ones((30, 2))
    for wrong in (counts[:9], counts[:, 0], counts[:, :1], np.full((30, 2), np.nan)):
        with pytest.raises(DataError, match="noisy_counts"):
            RecordVotesStudent().fit(points, wrong, sigma=2.0, votes_per_record=3)
    for terms in ({"sigma": 0.0, "votes_per_record": 3}, {"sigma": 2.0, "votes_per_record": 31}):
        with pytest.raises(ParameterError):
            RecordVotesStudent().fit(points, counts, **terms)
    teachers = ReleasedLabels(np.arange(30), np.ones(30, int), (0, 1), 9, 2.0, np.arange(30))
    with pytest.raises(DataError, match="votes of records, and teachers voted"):
        fit_student(RecordVotesStudent(), points, teachers)
    assert not isinstance(default_student(teachers), RecordVotesStudent)
