"""Students of noisy counts, of teachers and of records."""

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from secretballot import _points
from secretballot.bases import TableBasis
from secretballot.students import (
    GraphCountsClassifier,
    NoisyCountsClassifier,
    RecordVotesStudent,
    noisy_counts,
)

K = 250


def linear_votes(rng, n=2000, d=8, sigma=150.0):
    """Votes whose mean share is a known linear function, seen through noise."""
    X = rng.standard_normal((n, d))
    weights = np.linspace(0.05, 0.0, d)
    shares = np.clip(0.5 + X @ weights, 0, 1)
    counts = np.rint(K * shares + sigma * rng.standard_normal(n)).astype(int)
    return X, weights, shares, counts


def test_beats_the_arg_max_of_the_same_counts():
    X, _, shares, counts = linear_votes(np.random.default_rng(1))
    truth = shares > 0.5
    student = NoisyCountsClassifier(random_state=0).fit(X, counts, n_teachers=K, sigma=150.0)
    hard = LogisticRegression().fit(X, counts > K / 2)
    from_counts = (student.predict(X) == truth).mean()
    from_labels = (hard.predict(X) == truth).mean()
    assert from_counts > 0.85
    assert from_counts > from_labels - 0.005  # arg max costs little under heavy noise, never gains
    bounded = np.clip(counts / K, 0, 1)  # and the shares are right where labels only rank
    assert (
        np.abs(student.predict_shares(X)[:, 1] - shares).mean()
        < np.abs(bounded - shares).mean() / 5
    )


def test_evidence_is_the_marginal_likelihood(monkeypatch):
    # with a known prior variance the evidence of the grid point equals the density of the targets,
    # up to constants
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((12, 3))
    targets = rows @ np.array([[1.0], [0.5], [-0.5]]) + 0.3 * rng.standard_normal((12, 1))
    monkeypatch.setattr(noisy_counts, "_BLOCK_NUMBERS", 15)  # five rows at a time
    moments = noisy_counts.Moments.of(rows, np.copy, targets)
    fit = noisy_counts._fit_by_evidence(moments, 0.09)
    centring = np.eye(12) - 1 / 12
    basis = np.linalg.svd(centring)[0][:, :11]  # the flat intercept leaves eleven contrasts
    mean_square = np.trace(centring @ rows @ rows.T @ centring) / 12
    covariance = fit.signal / mean_square * rows @ rows.T + (0.09 + fit.misfit) * np.eye(12)
    density = multivariate_normal(np.zeros(11), basis.T @ covariance @ basis).logpdf(
        basis.T @ targets[:, 0]
    )
    assert fit.log_evidence == pytest.approx(density + 5.5 * np.log(2 * np.pi), abs=1e-9)
    prior = fit.signal / mean_square * np.eye(3)
    gain = prior @ (centring @ rows).T @ np.linalg.pinv(centring @ covariance @ centring)
    np.testing.assert_allclose(fit.coef, gain @ targets, atol=1e-9)


def test_a_rotated_kernel_sees_rings_of_three_classes():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((3000, 2))
    truth = np.digitize((X**2).sum(axis=1), [0.8, 2.2])
    counts = np.rint(np.eye(3)[truth] * 150 + 30 + 100 * rng.standard_normal((3000, 3)))
    student = NoisyCountsClassifier(random_state=0).fit(
        X, counts, n_teachers=K, sigma=100.0, classes=["a", "b", "c"]
    )
    assert len(student.model_.landmarks)
    assert (student.predict(X) == np.array(["a", "b", "c"])[truth]).mean() > 0.85
    proba = student.predict_proba(X)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0)
    assert proba.min() >= 0
    assert (student.classes_[proba.argmax(axis=1)] == student.predict(X)).all()


def test_sparse_and_dense_points_teach_the_same():
    rng = np.random.default_rng(8)
    X = (rng.random((400, 30)) < 0.1).astype(float)
    counts = np.rint(125 + 80 * X[:, 0] - 60 * X[:, 1] + 20 * rng.standard_normal(400))
    shares = []
    for points in (X, sparse.csr_matrix(X)):
        student = NoisyCountsClassifier(random_state=0).fit(
            points, counts, n_teachers=K, sigma=20.0
        )
        shares.append(student.predict_shares(points))
    np.testing.assert_allclose(*shares)


COUNTS = NoisyCountsClassifier(random_state=0)


@pytest.mark.parametrize(
    ("student", "X", "counts", "sigma"),
    [
        (COUNTS, np.zeros((50, 3)), np.full(50, 10), 3.0),  # constant columns
        (COUNTS, np.arange(150.0).reshape(50, 3), np.full(50, 200), 3.0),  # all counts equal
        (GraphCountsClassifier(3), np.arange(150.0).reshape(50, 3), np.full(50, 200), 3.0),
        # noise drowns all
        (COUNTS, np.arange(150.0).reshape(50, 3), np.arange(50), 1e12),
        (GraphCountsClassifier(3), np.arange(150.0).reshape(50, 3), np.arange(50), 1e12),
        (COUNTS, np.array([[0.0, 1.0], [2.0, 5.0], [1.0, 1.0]]), np.array([1, 0, 250]), 1.0),
        (GraphCountsClassifier(3), np.arange(36.0).reshape(12, 3), 20 * np.arange(12), 1.0),
    ],
)
def test_poor_releases_still_give_a_student(student, X, counts, sigma):
    fitted = clone(student).fit(X, counts, n_teachers=K, sigma=sigma)
    assert np.isfinite(fitted.predict_shares(X)).all()
    assert fitted.predict(X).shape == (len(X),)
    if len(set(counts.tolist())) == 1:
        assert set(fitted.predict(X)) == {int(counts[0] > K / 2)}


def two_moons(rng, n):
    side = rng.integers(0, 2, n)
    angle = np.pi * rng.random(n)
    X = np.column_stack(
        [np.cos(angle) + side, np.where(side, 0.4 - np.sin(angle), np.sin(angle) - 0.1)]
    )
    return X + 0.08 * rng.standard_normal((n, 2)), side


def test_the_pool_shape_beats_a_kernel_where_few_points_are_asked():
    rng = np.random.default_rng(0)
    X, side = two_moons(rng, 1200)
    asked = np.arange(120)
    counts = np.rint(K * (0.2 + 0.6 * side[asked]) + 200 * rng.standard_normal(120))
    about = {"n_teachers": K, "sigma": 200.0, "pool": X[:1000]}
    graph, kernel = (
        (student.fit(X[asked], counts, **about).predict(X[1000:]) == side[1000:]).mean()
        for student in (GraphCountsClassifier(), NoisyCountsClassifier(random_state=0))
    )
    assert graph > 0.95
    assert graph >= kernel


def test_far_points_and_doubled_points_have_a_place():
    X = np.repeat(np.random.default_rng(4).standard_normal((20, 2)), 3, axis=0)
    student = GraphCountsClassifier(4).fit(X, np.arange(60), n_teachers=K, sigma=5.0)
    assert np.isfinite(student.predict_shares(np.vstack([X, [[1e6, 1e6]]]))).all()


def voted(records, classes, points):
    """Return the counts that records cast, of five votes each, without noise."""
    fitted = TableBasis(whitening=0.0).fit(points)
    places = _points.NearestPoints(fitted.integers(points), 5).of(fitted.integers(records))
    counts = np.zeros((len(points), 2))
    np.add.at(counts, (places, classes[:, None]), 1)
    return counts


def test_points_in_a_crowd_do_not_pass_for_a_class():
    # the first class is as rare everywhere, and the crowd is on one side
    rng = np.random.default_rng(0)
    records = np.concatenate([rng.normal(-1, 0.3, (18_000, 1)), rng.normal(1, 1.0, (2000, 1))])
    classes = (rng.random(20_000) < 0.3).astype(int)
    points = rng.normal(0, 1.3, (400, 1))
    counts = voted(records, classes, points)
    assert counts.sum(axis=1).max() > 20 * np.median(counts.sum(axis=1))
    student = RecordVotesStudent().fit(points, counts, sigma=3.0, votes_per_record=5)
    chances = student.predict_proba(np.linspace(-1.5, 1.5, 7)[:, None])
    assert np.abs(chances[:, 1] - 0.3).max() < 0.08
    assert (student.predict(points) == 0).mean() > 0.98


def test_probabilities_are_those_of_the_records():
    rng = np.random.default_rng(1)
    records, points = rng.uniform(-2, 2, (40_000, 1)), rng.uniform(-2, 2, (500, 1))
    chance = 1 / (1 + np.exp(-2 * records[:, 0]))
    counts = voted(records, (rng.random(40_000) < chance).astype(int), points)
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
