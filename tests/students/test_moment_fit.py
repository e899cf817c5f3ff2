"""The fitted model meets the released moments on the pool, as far as the noise lets it."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.linear_model import LogisticRegression

from secretballot.bases.integer_model import PROBABILITY_UNIT, IntegerLine, with_constant
from secretballot.bases.rotation import UNIT
from secretballot.students.moment_fit import MomentFit, ReleasedMoments
from secretballot.students.moment_links import Link, classes_link, labels_link, number_link

RESIDUAL_UNIT = 1024


def world(n_classes: int, n: int = 4000, d: int = 4) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return coordinates, true weights and classes that follow them."""
    rng = np.random.default_rng(0)
    points = with_constant(np.rint(rng.normal(0, 0.5, (n, d)) * UNIT).astype(np.int64))
    weights = rng.normal(0, 2, (d + 1, 1 if n_classes == 2 else n_classes))
    logits = points / UNIT @ weights
    if n_classes == 2:
        labels = (rng.random(n) < expit(logits[:, 0])).astype(int)
    else:
        shares = softmax(logits, axis=1).cumsum(axis=1)
        labels = (rng.random((n, 1)) > shares).sum(axis=1)
    return points, weights, np.minimum(labels, n_classes - 1)


def exact_sums(points: np.ndarray, labels: np.ndarray, fit: MomentFit) -> np.ndarray:
    n_classes = max(2, fit.weights.shape[1])
    residuals = np.eye(n_classes)[labels] - fit.model.probabilities(points) / PROBABILITY_UNIT
    residuals = residuals[:, 1:] if n_classes == 2 else residuals
    return np.rint(points.T @ residuals * RESIDUAL_UNIT).astype(np.int64)


def stage(fit: MomentFit, points: np.ndarray, labels: np.ndarray, sigma: float) -> MomentFit:
    sums = exact_sums(points, labels, fit)
    noise = np.random.default_rng(1).normal(0, sigma, sums.shape)
    released = ReleasedMoments(
        sums + np.rint(noise).astype(np.int64),
        sigma,
        RESIDUAL_UNIT,
        float(len(points)),
        np.ones(points.shape[1]),
    )
    return fit.after(released)


@pytest.mark.parametrize("n_classes", [2, 3, pytest.param(6, marks=pytest.mark.slow)])
def test_without_noise_the_model_is_found(n_classes: int) -> None:
    points, weights, labels = world(n_classes, n=20_000)
    fit = MomentFit.start(points, classes_link(n_classes))
    for _ in range(3):
        fit = stage(fit, points, labels, 1.0)
    truth = weights - weights.mean(axis=1, keepdims=True) if n_classes > 2 else weights
    found = fit.weights - fit.weights.mean(axis=1, keepdims=True) if n_classes > 2 else fit.weights
    assert np.abs(found - truth).max() < 0.25
    # and the moments on the pool are those of the records
    assert np.abs(exact_sums(points, labels, fit)).max() / (UNIT * RESIDUAL_UNIT * 20_000) < 0.01


@pytest.mark.parametrize("n_classes", [2, 5])
def test_noise_without_end_leaves_the_model_where_it_was(n_classes: int) -> None:
    points, _, labels = world(n_classes)
    start = MomentFit.start(points, classes_link(n_classes))
    after = stage(start, points, labels, 1e13)
    assert np.abs(after.weights).max() < 0.1
    assert (after.precision >= start.precision).all()


def test_later_stages_take_a_small_pool_to_the_model_of_the_records() -> None:
    # one stage meets the records' moments on a pool that is another sample; what the model still
    # changes later is little, so later stages end near the records' own likelihood
    records, _, labels = world(2, n=20_000, d=12)
    pool = records[np.random.default_rng(3).permutation(20_000)[:150]]
    phi = records / UNIT
    plain = LogisticRegression(C=1e4, max_iter=1000, fit_intercept=False).fit(phi, labels)

    def lost_likelihood(n_stages: int) -> float:
        fit = MomentFit.start(pool, classes_link(2))
        for _ in range(n_stages):
            sums = exact_sums(records, labels, fit)
            fit = fit.after(ReleasedMoments(sums, 1.0, RESIDUAL_UNIT, 20_000.0, np.ones(len(sums))))
        losses = [
            np.mean(np.logaddexp(0, logits) - labels * logits)
            for logits in (phi @ fit.weights[:, 0], phi @ plain.coef_[0])
        ]
        return float(losses[0] - losses[1])

    assert 0 < lost_likelihood(4) < 0.15 * lost_likelihood(1)


def test_columns_of_a_softmax_stay_level() -> None:
    # the exact sums over all classes are zero, so what noise adds to them is taken out
    points, _, labels = world(5)
    after = stage(MomentFit.start(points, classes_link(5)), points, labels, 1e8)
    assert np.abs(after.weights.sum(axis=1)).max() < 1e-2


def target_stage(
    fit: MomentFit, points: np.ndarray, targets: np.ndarray, sigma: float
) -> MomentFit:
    """Return the fit after a stage over targets between 0 and 1, with noise."""
    missed = targets - fit.model.predictions(points) / PROBABILITY_UNIT
    noise = np.random.default_rng(1).normal(0, sigma, (points.shape[1], targets.shape[1]))
    sums = np.rint(points.T @ missed * RESIDUAL_UNIT + noise).astype(np.int64)
    scales = np.ones(points.shape[1])
    return fit.after(ReleasedMoments(sums, sigma, RESIDUAL_UNIT, float(len(points)), scales))


def targets_of(points: np.ndarray, link: Link) -> tuple[np.ndarray, np.ndarray]:
    """Return true weights, and targets that follow them."""
    rng = np.random.default_rng(0)
    scale = 0.1 if link.model_of is IntegerLine else 2
    weights = rng.normal(0, scale, (points.shape[1], link.n_columns))
    linear = points / UNIT @ weights
    if link.model_of is IntegerLine:
        return weights, np.clip(0.5 + linear + rng.normal(0, 0.05, linear.shape), 0, 1)
    return weights, (rng.random(linear.shape) < expit(linear)).astype(float)


@pytest.mark.parametrize(
    ("link", "room"), [(number_link(), 0.01), (labels_link(1), 0.2), (labels_link(3), 0.2)]
)
def test_without_noise_the_model_of_numbers_and_labels_is_found(link: Link, room: float) -> None:
    points = world(2, n=40_000)[0]
    weights, targets = targets_of(points, link)
    fit = MomentFit.start(points, link)
    for _ in range(4):
        fit = target_stage(fit, points, targets, 1.0)
    assert np.abs(fit.weights - weights).max() < room
    drowned = target_stage(MomentFit.start(points, link), points, targets, 1e14)
    assert np.abs(drowned.weights).max() < 0.1


def test_a_line_is_penalised_least_squares_with_the_second_moments_of_the_pool() -> None:
    points = world(2)[0]
    _, targets = targets_of(points, number_link())
    start, sigma = MomentFit.start(points, number_link()), 1e8
    found = target_stage(start, points, targets, sigma).weights[:, 0]
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
def test_a_shortened_moment_is_told_from_what_is_predicted(link: Link) -> None:
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
