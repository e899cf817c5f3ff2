import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from secretballot.released import ReleasedLabels
from secretballot.students import NoisyCountsClassifier, fit_student

POOL = np.random.default_rng(0).standard_normal((300, 3))
QUERIES = np.random.default_rng(1).permutation(300)[:120]


def released(labels=None, counts=False, **changes):
    """Answers along the first column of the pool, asked in a shuffled order."""
    labels = (POOL[QUERIES, 0] > 0).astype(int) if labels is None else labels
    fields = {"queries": QUERIES, "labels": labels, "classes": ("no", "yes"), "n_teachers": 100}
    if counts:
        fields |= {"sigma": 5.0, "noisy_counts": np.rint(50 + 30 * POOL[QUERIES, 0])}
        fields["noisy_counts"] = fields["noisy_counts"].astype(int)
    return ReleasedLabels(**(fields | changes))


class Recorder(LogisticRegression):
    """Remembers what it was given."""

    def fit(self, X, y):
        self.X_, self.y_ = X, y
        return super().fit(X, y)


@pytest.mark.parametrize("wrap", [pd.DataFrame, sparse.csc_matrix, lambda pool: pool.tolist()])
def test_any_pool_gives_the_same_student(wrap):
    plain = fit_student(LogisticRegression(), POOL, released())
    np.testing.assert_allclose(
        fit_student(LogisticRegression(), wrap(POOL), released()).coef_, plain.coef_
    )


def test_abstentions_are_dropped_tossed_or_given_to_the_majority():
    labels = (POOL[QUERIES, 0] > -0.5).astype(int)  # "yes" is the majority
    labels[:40] = -1
    dropped, majority, tossed = (
        fit_student(Recorder(), POOL, released(labels), abstentions=rule, random_state=0)
        for rule in ("drop", "majority", "random")
    )
    assert len(dropped.y_) == 80
    assert set(majority.y_[:40]) == {"yes"}
    assert set(tossed.y_[:40]) == {"yes", "no"}
    np.testing.assert_array_equal(tossed.y_[40:], dropped.y_)
    again = fit_student(Recorder(), POOL, released(labels), abstentions="random", random_state=0)
    np.testing.assert_array_equal(again.y_, tossed.y_)


def test_one_released_class_gives_a_constant_student():
    student = fit_student(LogisticRegression(), POOL, released(np.ones(120, dtype=int)))
    assert isinstance(student, DummyClassifier)
    assert set(student.predict(POOL)) == {"yes"}


def test_unanswered_counts_are_left_out():
    labels = np.repeat([-1, 0], [100, 20])
    long = released(labels, counts=True)
    last = {"queries": QUERIES[100:], "noisy_counts": long.noisy_counts[100:]}
    short = released(labels[100:], counts=True, **last)
    student = NoisyCountsClassifier(random_state=0)
    found = [fit_student(student, POOL, release).coef_ for release in (short, long)]
    np.testing.assert_array_equal(*found)


def test_counts_go_to_the_student_that_knows_their_noise_and_through_a_pipeline():
    plain = NoisyCountsClassifier(random_state=0)
    pipeline = make_pipeline(StandardScaler(), "passthrough", plain)
    for given in (plain, pipeline):
        student = fit_student(given, POOL, released(counts=True))
        assert student.classes_.tolist() == ["no", "yes"]
        mean = student.model_.mean if given is plain else student[0].mean_
        np.testing.assert_allclose(mean, POOL.mean(axis=0))  # of the whole pool
        assert ((student.predict(POOL) == "yes") == (POOL[:, 0] > 0)).mean() > 0.95


@pytest.mark.parametrize("release", [released(np.full(120, -1)), released([], queries=[])])
def test_a_release_without_answers_gives_a_constant_and_says_so(release):
    # the price is spent: a student that knows nothing is said aloud, not raised
    for rule in ("drop", "random", "majority"):
        with pytest.warns(UserWarning, match="no query was answered"):
            student = fit_student(LogisticRegression(), POOL, release, abstentions=rule)
        assert len(set(student.predict(POOL).tolist())) == 1
