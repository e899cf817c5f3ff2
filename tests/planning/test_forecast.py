"""Forecasts of votes and simulated runs: against exact chances, streams of the mechanisms
themselves, and real runs on fresh records."""

import numpy as np
import pytest
from scipy.special import ndtr
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression

from ensembles import ensemble_of
from noisy_plans import confident, noisy, priced
from samples import synthetic_two_class
from secretballot.accounting import PrivacyBudget
from secretballot.core.losses import discrete_gaussian_pmf
from secretballot.exceptions import DataError
from secretballot.named_learners import teacher_by_name
from secretballot.planning import Setting
from secretballot.planning.stand_in import (
    SeededNoise,
    StandInModel,
    VoteSample,
    drawn_votes,
    forecast,
    simulated_run,
    vote_accuracy,
)
from secretballot.students import NoisyCountsClassifier
from sessions import told_labels

BUDGET = PrivacyBudget(1.0, 1e-5)


def sample_votes(n_points, n_teachers, n_classes, seed=0):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(n_classes, 0.7), size=n_points)
    counts = rng.multinomial(n_teachers, shares).astype(np.int64)
    truth = np.array([rng.choice(n_classes, p=p) for p in shares])
    return VoteSample(n_teachers, counts, truth)


@pytest.mark.parametrize(("n_teachers", "sigma"), [(10, 0.3), (11, 25.0)])
def test_labels_of_two_classes_are_right_as_often_as_the_definition_says(n_teachers, sigma):
    sample = sample_votes(500, n_teachers, 2)
    reach, pmf = discrete_gaussian_pmf(sigma)
    noise = np.arange(-reach, reach + 1)
    one = np.array([pmf[2 * (v + noise) >= n_teachers].sum() for v in sample.counts[:, 1]])
    exact = np.where(sample.truth == 1, one, 1 - one).mean()
    found = forecast(sample, noisy(sigma, 70, budget=BUDGET, n_teachers=n_teachers))
    assert found.label_accuracy == pytest.approx(exact, abs=4 * 0.5 / np.sqrt(10_000))
    assert found.answered == 70
    assert found.vote_accuracy == vote_accuracy(sample)


@pytest.mark.parametrize("release", ["labels", "counts"])
def test_information_lies_between_that_of_a_guess_and_that_of_the_truth(release):
    truth = np.arange(300) % 3
    sample = VoteSample(60, 60 * np.eye(3, dtype=np.int64)[truth], truth)
    told = [
        forecast(
            sample, noisy(scale, 50, n_classes=3, release=release, budget=BUDGET, n_teachers=60)
        ).information
        for scale in (0.3, 60.0, 1e6)
    ]
    assert told[0] == pytest.approx(50, rel=1e-3)
    assert 5 < told[1] < 40
    assert told[2] < 0.1


def test_confident_answers_are_forecast_like_they_come():
    sample = sample_votes(600, 60, 3)
    terms = priced(confident(50, 9.0, 8.0, 150), 600, 60, 3, BUDGET)
    outlook = forecast(sample, terms)
    noise, given, right = SeededNoise(np.random.default_rng(2)), [], []
    for seed in range(60):
        order = np.random.default_rng(seed).permutation(600)
        labels = told_labels(terms, sample.counts[order], noise)
        answered = labels >= 0
        given.append(int(answered.sum()))
        right.append(float((labels == sample.truth[order])[answered].mean()))
    assert outlook.answered == pytest.approx(np.mean(given), abs=12)
    assert outlook.label_accuracy == pytest.approx(np.mean(right), abs=0.04)


K = 100


def simulated(n_points=400, student=None):
    """Points with votes of 90 of 100 teachers for the true class."""
    data = synthetic_two_class(n_points + 1000, n_features=3, bayes_error=0.1, seed=0)
    truth, rest = data.y[:n_points], data.X[n_points:]
    for_one = np.where(truth == 1, 90, 10)
    sample = VoteSample(K, np.stack([K - for_one, for_one], axis=1), truth)
    scored = rest, data.y[n_points:]
    about = {"n_public": 10_000, "student": student}
    return lambda *run: simulated_run(data.X[:n_points], sample, scored, *run, **about).student


def gaussian(sigma, n, release="labels"):
    return noisy(sigma, n, release=release, budget=BUDGET, n_teachers=K)


@pytest.mark.parametrize("release", ["labels", "counts"])
def test_little_noise_teaches_and_much_noise_does_not(release):
    setting, world = Setting(K, "gaussian", release, 300), simulated()
    good, bad = (
        [world(setting, gaussian(sigma, 300, release), seed) for seed in range(4)]
        for sigma in (5.0, 1e5)
    )
    assert min(good) > 0.87
    assert abs(np.mean(bad) - 0.5) < 0.25
    assert np.mean(bad) < np.mean(good) - 0.1


def test_the_given_student_is_used():
    setting = Setting(K, "gaussian", "labels", 50)
    constant, other = (
        simulated(student=DummyClassifier(strategy="constant", constant=one)) for one in (1, 0)
    )
    scores = [one(setting, gaussian(1, 50), 0) for one in (constant, other)]
    assert sum(scores) == pytest.approx(1.0)
    with pytest.raises(DataError, match="release counts"):
        simulated(student=NoisyCountsClassifier())(setting, gaussian(1, 50), 0)


@pytest.mark.parametrize("strategy", ["margin", "cluster"])
def test_walks_learn(strategy):
    setting = Setting(K, "gaussian", "labels", 30, strategy=strategy)
    assert simulated(200)(setting, gaussian(5.0, 30), 0) > 0.8


POINTS = 20_000


def law(seed, centre=0.8, spread=0.9):
    """True class and share of right votes of many points, Phi of a normal law."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 2, POINTS), ndtr(centre + spread * rng.normal(size=POINTS)), rng


def two_sided(right, truth):
    return np.where(
        (truth == 1)[:, None], np.stack([1 - right, right], 1), np.stack([right, 1 - right], 1)
    )


def summary(votes, truth):
    share = votes[np.arange(len(truth)), truth] / votes.sum(axis=1)
    margin = np.abs(2 * share - 1)
    return np.array([(share > 0.5).mean(), share.mean(), margin.mean(), margin.std()])


@pytest.mark.parametrize(("n_counted", "K"), [(10, 401), (100, 51)])
def test_votes_of_more_or_fewer_teachers_have_the_right_margins(n_counted, K):
    truth, right, rng = law(0)
    real = summary(rng.multinomial(K, two_sided(right, truth)), truth)
    counts = rng.multinomial(n_counted, two_sided(right, truth))
    drawn = drawn_votes(K, counts, truth, rng)
    assert (drawn.sum(axis=1) == K).all()
    assert summary(drawn, truth) == pytest.approx(real, abs=0.012)


@pytest.mark.parametrize("law", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("scale", [0.6, 7.3])
def test_seeded_draws_follow_the_stated_law(law, scale):
    drawn, x = (
        getattr(SeededNoise(np.random.default_rng(0)), law)(scale, 100_000),
        np.arange(-90, 91),
    )
    assert drawn.dtype == np.int64
    weights = np.exp(-np.abs(x) / scale if law == "discrete_laplace" else -((x / scale) ** 2) / 2)
    found = np.array([(drawn == one).mean() for one in x])
    # the one law at the larger scale differs from the other by 0.014
    assert np.abs(found - weights / weights.sum()).max() < 0.006


def test_seeded_uniform_integers_cover_their_range_evenly():
    drawn = SeededNoise(np.random.default_rng(5)).uniform_integers(3, 80_000)
    assert np.bincount(drawn) == pytest.approx(np.full(8, 10_000), rel=0.05)


LOGISTIC = teacher_by_name("logistic")


def two_classes(n, seed, n_features=20):
    data = synthetic_two_class(n, n_features=n_features, bayes_error=0.15, seed=seed)
    return data.X, data.y


def model(n=800, seed=0, n_features=4, **settings):
    X, y = two_classes(n, 100 + seed, n_features)
    given = {"n_classes": 2, "teacher": LOGISTIC, "n_public": 500, "seed": seed, **settings}
    return StandInModel(X, y, **given)


def figures(counts, truth, terms):
    """Vote accuracy, share of right votes, mean margin over K, spread of it, accuracy of
    released labels."""
    n_teachers = int(counts[0].sum())
    ordered = np.sort(counts, axis=1)
    margin = (ordered[:, -1] - ordered[:, -2]) / n_teachers
    asked = slice(terms.shape.n_queries)
    noise = SeededNoise(np.random.default_rng(0))
    labels = told_labels(terms, counts[asked], noise)
    right = counts[np.arange(len(truth)), truth] / n_teachers
    exact = (counts.argmax(axis=1) == truth).mean()
    return [exact, right.mean(), margin.mean(), margin.std(), (labels == truth[asked]).mean()]


N_TEACHERS, N_RECORDS, N_FEATURES = 50, 5000, 30
LABELS = noisy(10.0, 400, budget=BUDGET, n_teachers=N_TEACHERS)


def test_votes_and_students_are_those_of_runs_on_fresh_records():
    real, students = [], []
    for run in range(3):
        X, y = two_classes(N_RECORDS + 3000, run, N_FEATURES)
        shards = np.random.default_rng(1000 + run).integers(0, N_TEACHERS, N_RECORDS)
        fitted = ensemble_of(
            LOGISTIC, X[:N_RECORDS], y[:N_RECORDS], shards, n_teachers=N_TEACHERS, n_classes=2
        )
        X, y = X[N_RECORDS:], y[N_RECORDS:]
        counts = fitted.vote_counts(X)._unseal()[0]
        real.append(figures(counts, y, LABELS))
        labels = told_labels(LABELS, counts[:400], SeededNoise(np.random.default_rng(run)))
        student = LogisticRegression(max_iter=1000).fit(X[:400], labels)
        students.append(student.score(X[400:], y[400:]))
    forecast, simulated = [], []
    setting = Setting(N_TEACHERS, "gaussian", "labels", 400)
    for seed in range(3):
        stand_in = model(1200, seed, N_FEATURES)
        for fold in range(4):
            sample = stand_in.votes(N_TEACHERS, N_RECORDS, fold)
            forecast.append(figures(sample.counts, sample.truth, LABELS))
            simulated.append(stand_in.simulate(setting, LABELS, N_RECORDS, fold).student)
    assert np.mean(forecast, axis=0) == pytest.approx(np.mean(real, axis=0), abs=0.02)
    assert np.mean(simulated) == pytest.approx(np.mean(students), abs=0.02)


def test_folds_score_on_rows_that_no_teacher_and_no_student_saw():
    stand_in = model(403, n_folds=6)
    parts = [stand_in._fold(fold) for fold in range(6)]
    for stock, test in parts:
        assert len(np.intersect1d(stock, test)) == 0
        assert len(stock) + len(test) == 403
    scored = np.concatenate([test for _, test in parts[:4]])
    assert len(np.unique(scored)) == len(scored) == 400
    assert set(parts[4][1]) != set(parts[0][1])
