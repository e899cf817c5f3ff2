"""A model of released moments: which columns carry it, and that its fit meets the moments as far as
the noise lets it."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax
from sklearn.base import is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression

from secretballot.bases import KernelBasis, TableBasis
from secretballot.bases.integer_model import (
    PROBABILITY_UNIT,
    UNIT,
    IntegerLine,
    IntegerModel,
    with_constant,
)
from secretballot.exceptions import DataError
from secretballot.students import MomentsStudent
from secretballot.students.moment_fit import (
    MomentFit,
    ReleasedMoments,
    classes_link,
    labels_link,
    number_link,
)

RNG = np.random.default_rng(0)
POOL = pd.DataFrame(
    {"a": RNG.normal(size=400), "b": RNG.choice(["x", "y", "z"], 400), "c": RNG.integers(0, 5, 400)}
)
BASIS = TableBasis(whitening=0.0).fit(POOL)


def student_of(weights, classes):
    whole = np.rint(2**16 * weights).astype(np.int64)
    return MomentsStudent(BASIS, np.vstack([whole, whole[:1]]), classes)


def logits_of(student, table):
    """Return the logits of rows; of three classes, around their mean."""
    logits = with_constant(BASIS.integers(table)) @ student.weights
    return logits - (logits.mean(axis=1, keepdims=True) if logits.shape[1] > 1 else 0)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_shares_are_those_of_the_logits(n_classes):
    weights = RNG.normal(size=(BASIS.n_directions_, 1 if n_classes == 2 else 3))
    student = student_of(weights, ["no", "yes", "maybe"][:n_classes])
    shares = student.column_shares(POOL)
    assert shares.sum() == pytest.approx(1.0)
    logits = logits_of(student, POOL)
    total = np.sum(np.var(logits, axis=0))
    for place, name in enumerate(POOL.columns):
        # what a column adds by itself: rows that differ in that column alone
        alone = POOL.copy()
        for other in POOL.columns.difference([name]):
            alone[other] = POOL[other].iloc[0]
        own = logits_of(student, alone)
        parts = [np.cov(own[:, k], logits[:, k], bias=True)[0, 1] for k in range(own.shape[1])]
        assert shares[place] == pytest.approx(np.sum(parts) / total, abs=2e-3)


def test_a_model_that_says_the_same_of_all_points_is_carried_by_none():
    student = student_of(np.zeros((BASIS.n_directions_, 1)), ["no", "yes"])
    assert student.column_shares(POOL).tolist() == [0.0, 0.0, 0.0]


def test_a_basis_that_mixes_columns_has_no_shares():
    basis = KernelBasis(n_landmarks=20).fit(POOL[["a", "c"]])
    weights = np.ones((basis.n_directions_ + 1, 1), dtype=np.int64)
    with pytest.raises(DataError, match="mixes all columns"):
        MomentsStudent(basis, weights, ["no", "yes"]).column_shares(POOL[["a", "c"]])


def test_the_target_says_what_kind_of_learner_it_is():
    weights = np.ones((BASIS.n_directions_ + 1, 2), dtype=np.int64) * 2**12
    classes = MomentsStudent(BASIS, weights[:, :1], ["no", "yes"])
    labels = MomentsStudent(BASIS, weights, labels=["old", "tall"])
    number = MomentsStudent(BASIS, weights[:, :1], bounds=(0.0, 40.0))
    assert [is_classifier(one) for one in (classes, labels, number)] == [True, True, False]
    assert is_regressor(number)
    assert not hasattr(number, "predict_proba")
    assert labels.predict_proba(POOL)[:, 1] == pytest.approx(classes.predict_proba(POOL)[:, 1])
    assert (labels.predict(POOL) == (labels.predict_proba(POOL) > 0.5)).all()
    found = number.predict(POOL)
    assert ((found >= 0) & (found <= 40)).all()
    assert number.score(POOL, found) == classes.score(POOL, classes.predict(POOL)) == 1.0


RESIDUAL_UNIT = 1024


def points_of(n, d=4):
    rng = np.random.default_rng(0)
    return with_constant(np.rint(rng.normal(0, 0.5, (n, d)) * UNIT).astype(np.int64))


def targets_of(points, link):
    """Return true weights, and targets between 0 and 1 that follow them: of classes the columns
    that a model predicts."""
    rng = np.random.default_rng(0)
    scale = 0.1 if link.model_of is IntegerLine else 2
    weights = rng.normal(0, scale, (points.shape[1], link.n_columns))
    linear = points / UNIT @ weights
    if link.model_of is IntegerLine:
        return weights, np.clip(0.5 + linear + rng.normal(0, 0.05, linear.shape), 0, 1)
    if link.model_of is IntegerModel and link.n_columns > 1:
        shares = softmax(linear, axis=1).cumsum(axis=1)
        labels = (rng.random((len(points), 1)) > shares).sum(axis=1)
        return weights, np.eye(link.n_columns)[np.minimum(labels, link.n_columns - 1)]
    return weights, (rng.random(linear.shape) < expit(linear)).astype(float)


def exact_sums(points, targets, fit):
    missed = targets - fit.model.predictions(points) / PROBABILITY_UNIT
    return np.rint(points.T @ missed * RESIDUAL_UNIT).astype(np.int64)


def stage(fit, points, targets, sigma):
    """Return the fit after a stage with noise."""
    sums = exact_sums(points, targets, fit)
    noise = np.rint(np.random.default_rng(1).normal(0, sigma, sums.shape)).astype(np.int64)
    scales, n = np.ones(points.shape[1]), float(len(points))
    return fit.after(ReleasedMoments(sums + noise, sigma, RESIDUAL_UNIT, n, scales, fit.predicted))


@pytest.mark.parametrize(
    ("link", "n", "room"),
    [
        *((classes_link(2), 20_000, 0.25), (classes_link(3), 8_000, 0.35)),
        *((number_link(), 40_000, 0.01), (labels_link(3), 15_000, 0.3)),
    ],
)
def test_without_noise_the_model_is_found_and_noise_without_end_leaves_it_where_it_was(
    link, n, room
):
    points = points_of(n)
    weights, targets = targets_of(points, link)
    fit = start = MomentFit.start(points, link)
    for _ in range(4):
        fit = stage(fit, points, targets, 1.0)
    found = fit.weights
    if (
        link.model_of is IntegerModel and link.n_columns > 1
    ):  # what is the same for all classes means nothing
        found, weights = (one - one.mean(axis=1, keepdims=True) for one in (found, weights))
    assert np.abs(found - weights).max() < room
    # and the moments on the pool are those of the records
    assert np.abs(exact_sums(points, targets, fit)).max() / (UNIT * RESIDUAL_UNIT * n) < 0.01
    drowned = stage(start, points, targets, 1e14)
    assert np.abs(drowned.weights).max() < 0.1
    assert (drowned.precision >= start.precision).all()


def test_later_stages_take_a_small_pool_to_the_model_of_the_records():
    # one stage meets the records' moments on a pool that is another sample; what the model still
    # changes later is little, so later stages end near the records' own likelihood
    records = points_of(20_000, d=12)
    labels = targets_of(records, labels_link(1))[1]
    pool = records[np.random.default_rng(3).permutation(20_000)[:150]]
    phi = records / UNIT
    plain = LogisticRegression(C=1e4, max_iter=1000, fit_intercept=False).fit(phi, labels[:, 0])

    def lost_likelihood(n_stages):
        fit = MomentFit.start(pool, classes_link(2))
        for _ in range(n_stages):
            sums = exact_sums(records, labels, fit)
            own = np.ones(len(sums)), fit.predicted
            fit = fit.after(ReleasedMoments(sums, 1.0, RESIDUAL_UNIT, 20_000.0, *own))
        losses = [
            np.mean(np.logaddexp(0, logits) - labels[:, 0] * logits)
            for logits in (phi @ fit.weights[:, 0], phi @ plain.coef_[0])
        ]
        return float(losses[0] - losses[1])

    assert 0 < lost_likelihood(4) < 0.15 * lost_likelihood(1)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 16])
def test_weights_of_more_than_four_classes_are_held_less(n_classes):
    points, link = points_of(200), classes_link(n_classes)
    held = MomentFit.start(points, link).precision[:-1]
    # labels that alone are private are asked for once
    own = MomentFit.start(points, link, np.ones(200)).precision[:-1]
    assert held * max(1, np.log(n_classes) / np.log(4)) == pytest.approx(own)


def test_columns_of_a_softmax_stay_level():
    # the exact sums over all classes are zero, so what noise adds to them is taken out
    points, link = points_of(4000), classes_link(5)
    after = stage(MomentFit.start(points, link), points, targets_of(points, link)[1], 1e8)
    assert np.abs(after.weights.sum(axis=1)).max() < 1e-2


def test_a_line_is_penalised_least_squares_with_the_second_moments_of_the_pool():
    points = points_of(4000)
    _, targets = targets_of(points, number_link())
    start, sigma = MomentFit.start(points, number_link()), 1e8
    found = stage(start, points, targets, sigma).weights[:, 0]
    # the same terms, written out once more
    phi, n = points / UNIT, len(points)
    scale = UNIT * RESIDUAL_UNIT * n
    noise = np.random.default_rng(1).normal(0, sigma, (phi.shape[1], 1))[:, 0]
    second = phi.T @ phi / n
    moments = phi.T @ (targets[:, 0] - 0.5) / n + noise / scale
    # the assumed change first, then twice that of the line that was found
    changes = np.full(n, 0.25 * 0.02)
    for _ in range(3):
        uncertain = (sigma / scale) ** 2 + (phi**2).T @ (0.02 + changes) / n**2
        penalty = uncertain * start.precision / np.diag(second)
        w = np.linalg.solve(second + np.diag(penalty), moments)
        changes = (phi @ w) ** 2
    assert np.allclose(found, w, atol=1e-4 * np.abs(w).max())


@pytest.mark.parametrize("link", [classes_link(2), labels_link(1), classes_link(4)])
def test_a_shortened_moment_is_told_from_what_is_predicted(link):
    rng = np.random.default_rng(0)
    k = link.n_columns
    whole = rng.dirichlet(np.ones(max(2, k)), (2, 50))
    before, now = whole[..., -k:]
    lengths = rng.uniform(0.5, 3, 50)
    for bound in (0.3, 1.0, 1e9):
        counts, known = link.answers(before, lengths, bound)
        # of more classes what is shortened answers to small changes alone
        for shares in [whole[0]] if k > 1 and bound < 1e9 else whole:
            moment = np.zeros(before.shape)
            for place, share in enumerate(shares.T):
                missed = np.eye(max(2, k))[place, -k:] - before
                longest = lengths * np.linalg.norm(missed, axis=1)
                moment += (share * np.minimum(1, bound / longest))[:, None] * missed
            assert counts * shares[:, -k:] - known == pytest.approx(moment, abs=1e-9)
        assert (counts > 0).all()
        assert (counts <= 1).all()
    assert link.answers(now, lengths, 1e9)[0] == pytest.approx(1)
