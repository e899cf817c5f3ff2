import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from ensembles import ensemble_of
from noisy_plans import noisy
from samples import synthetic_two_class
from secretballot.accounting import PrivacyBudget
from secretballot.named_learners import teacher_by_name
from secretballot.planning import Setting
from secretballot.planning.stand_in import StandInModel
from secretballot.planning.votes_forecast import SeededNoise
from sessions import told_labels

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
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


K, N_RECORDS, N_FEATURES = 50, 5000, 30
LABELS = noisy(K / 5, 400, budget=BUDGET, n_teachers=K)


def test_votes_and_students_are_those_of_runs_on_fresh_records():
    real, students = [], []
    for run in range(3):
        X, y = two_classes(N_RECORDS + 3000, run, N_FEATURES)
        shards = np.random.default_rng(1000 + run).integers(0, K, N_RECORDS)
        fitted = ensemble_of(
            LOGISTIC, X[:N_RECORDS], y[:N_RECORDS], shards, n_teachers=K, n_classes=2
        )
        X, y = X[N_RECORDS:], y[N_RECORDS:]
        counts = fitted.vote_counts(X)._unseal()[0]
        real.append(figures(counts, y, LABELS))
        labels = told_labels(LABELS, counts[:400], SeededNoise(np.random.default_rng(run)))
        student = LogisticRegression(max_iter=1000).fit(X[:400], labels)
        students.append(student.score(X[400:], y[400:]))
    forecast, simulated = [], []
    setting = Setting(K, "gaussian", "labels", 400)
    for seed in range(3):
        stand_in = model(1200, seed, N_FEATURES)
        for fold in range(4):
            sample = stand_in.votes(K, N_RECORDS, fold)
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
