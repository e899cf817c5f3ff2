import pickle
import random
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_info

from engine_suite import Learner
from ensembles import ensemble_of
from secretballot.core.partition import KeyedHashPartition
from secretballot.exceptions import DataError, ParameterError
from secretballot.teachers import TeacherEnsemble
from secretballot.teachers import ensemble as ensemble_module

K, C = 7, 3
KEY = b"a key of 16 byte"
RNG = np.random.default_rng(0)
X_PUBLIC = RNG.normal(size=(40, 4))


def sample(n=140, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = (X[:, 0] + 0.5 * rng.normal(size=n) > 0).astype(int) + (X[:, 1] > 0.8)
    return X, y


def fitted(teacher, X, y, ids=None, **options):
    shards = KeyedHashPartition(K, KEY).assign(np.arange(len(y)) if ids is None else ids)
    return ensemble_of(teacher, X, y, shards, n_teachers=K, n_classes=C, **options)


def counts_of(ensemble, X=X_PUBLIC):
    return ensemble.vote_counts(X)._unseal()[0]


def votes_of(ensemble, X=X_PUBLIC):
    """Votes teacher by teacher, shape (n_queries, K): the ensemble with all but one teacher left
    out, K times."""
    columns, nobody = [], [None] * ensemble.n_teachers
    fixed = counts_of(TeacherEnsemble(nobody, ensemble.n_classes), X)
    for number, model in enumerate(ensemble._teachers):
        alone = TeacherEnsemble(nobody, ensemble.n_classes)
        alone._teachers[number] = model
        own = counts_of(alone, X) - fixed
        own[:, number % ensemble.n_classes] += 1
        columns.append(own.argmax(axis=1))
    return np.stack(columns, axis=1)


class CountsItsPart(Learner):
    """The worst learner of errata 4: its vote tells the size and the sum of its part."""

    def fit(self, X, y):
        self.vote_ = (len(y) + int(y.sum())) % C
        return self

    def predict(self, X):
        return np.full(len(X), self.vote_)


class WritesIntoItsInput(Learner):
    """Leaves a message for the next teacher in the public points."""

    def fit(self, X, y):
        self.shift_ = float(X.sum())
        return self

    def predict(self, X):
        votes = (X[:, 0] > 0).astype(int)
        X[:, 0] += self.shift_
        return votes


class DrawsFromTheGlobalState(Learner):
    """Draws as many numbers as it has records, so its successor's draws would tell them."""

    def fit(self, X, y):
        for _ in range(len(y)):
            self.vote_ = (np.random.randint(C) + random.randrange(C)) % C  # noqa: NPY002
        return self

    def predict(self, X):
        return np.random.randint(C, size=len(X))  # noqa: NPY002


class Fails(Learner):
    def __init__(self, how="raise"):
        self.how = how

    def fit(self, X, y):
        return self

    def predict(self, X):
        wrong = {
            "raise": lambda: 1 / 0,
            "short": lambda: np.zeros(len(X) - 1),
            "wide": lambda: np.zeros((len(X), 2)),
            "nan": lambda: np.full(len(X), np.nan),
            "fraction": lambda: np.full(len(X), 0.5),
            "unknown": lambda: np.full(len(X), C),
            "negative": lambda: np.full(len(X), -1),
            "text": lambda: np.full(len(X), "yes"),
            "none": lambda: None,
            "late": lambda: np.zeros(len(X)) if X[0, 0] == X_PUBLIC[0, 0] else np.full(len(X), 99),
        }
        return wrong[self.how]()


class Noisy(Learner):
    def fit(self, X, y):
        print("private 4711")
        print("private 4711", file=sys.stderr)
        warnings.warn("private 4711", stacklevel=1)
        np.log(np.zeros(1) - 1)
        return super().fit(X, y)


class SeesThreads(Learner):
    def fit(self, X, y):
        self.threads_ = max(pool["num_threads"] for pool in threadpool_info())
        return self

    def predict(self, X):
        return np.full(len(X), min(self.threads_, 2))


LEARNERS = [
    make_pipeline(StandardScaler(), LogisticRegression()),
    SGDClassifier(),
    RandomForestClassifier(n_estimators=3),
    CountsItsPart(),
    WritesIntoItsInput(),
    DrawsFromTheGlobalState(),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
@settings(max_examples=6, deadline=None)
@given(data=st.data())
def test_one_unit_changes_the_votes_of_at_most_one_teacher(learner, data):
    X, y = sample(n=60)
    ids = data.draw(st.lists(st.integers(0, 25), min_size=60, max_size=60).map(np.array))
    stays = ids != data.draw(st.sampled_from(ids.tolist()))
    before = fitted(learner, X, y, ids)
    after = fitted(learner, X[stays], y[stays], ids[stays])
    assert (votes_of(before) != votes_of(after)).any(axis=0).sum() <= 1
    moved = np.abs(counts_of(before) - counts_of(after)).sum(axis=1)
    assert moved.max() <= 2


def test_teacher_that_writes_into_the_public_points_leaves_them_alone():
    X, y = sample()
    points = X_PUBLIC.copy()
    counts = counts_of(fitted(WritesIntoItsInput(), X, y), points)
    np.testing.assert_array_equal(points, X_PUBLIC)
    np.testing.assert_array_equal(counts[:, 1], K * (points[:, 0] > 0))


def test_global_random_states_are_each_teacher_s_own_and_are_given_back():
    seen = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        before = random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
        ensemble = fitted(DrawsFromTheGlobalState(), *sample())
        seen.append((counts_of(ensemble), [model.vote_ for model in ensemble._teachers]))
        assert (random.getstate(), np.random.get_state()[1].tolist()) == before  # noqa: NPY002
    np.testing.assert_array_equal(seen[0][0], seen[1][0])
    assert seen[0][1] == seen[1][1]
    assert len(set(seen[0][1])) > 1


@pytest.mark.parametrize(
    "how",
    ["raise", "short", "wide", "nan", "fraction", "unknown", "negative", "text", "none", "late"],
)
def test_teacher_that_fails_to_predict_votes_its_fixed_class_on_every_point(how, monkeypatch):
    monkeypatch.setattr(ensemble_module, "_BLOCK_CELLS", 1)
    monkeypatch.setattr(ensemble_module, "_LEAST_ROWS", 16)
    counts = counts_of(fitted(Fails(how), *sample()))
    np.testing.assert_array_equal(
        counts, np.broadcast_to(np.bincount(np.arange(K) % C), counts.shape)
    )


def test_empty_and_one_class_shards_vote_their_fixed_class():
    X, _ = sample(n=6)
    shards = np.array([0, 0, 1, 1, 2, 2])
    ensemble = ensemble_of(
        Learner(), X, np.array([0, 1, 2, 2, 0, 2]), shards, n_teachers=5, n_classes=C
    )
    votes = votes_of(ensemble)
    np.testing.assert_array_equal(
        votes[:, [0, 2]], np.stack([(X_PUBLIC[:, 0] > 0).astype(int)] * 2, axis=1)
    )
    np.testing.assert_array_equal(votes[:, [1, 3, 4]], np.broadcast_to([1, 0, 1], (40, 3)))


def test_nothing_a_learner_says_escapes(capfd, caplog, recwarn):
    counts_of(fitted(Noisy(), *sample()))
    assert capfd.readouterr() == ("", "")
    assert not caplog.records
    assert not recwarn.list


def test_fits_use_one_thread():
    votes = votes_of(fitted(SeesThreads(), *sample()))
    assert (votes == 1).all()


def test_seeds_follow_the_teacher_number_and_the_random_state_alone():
    X, y = sample()
    learner = make_pipeline(StandardScaler(), RandomForestClassifier(n_estimators=2))
    one, again, other = (fitted(learner, X, y, random_state=state) for state in (0, 0, 1))
    short = fitted(learner, X[:100], y[:100])

    def seeds(ensemble):
        return [model[-1].random_state for model in ensemble._teachers]

    assert seeds(one) == seeds(again) == seeds(short)
    assert len(set(seeds(one))) == K
    assert not set(seeds(one)) & set(seeds(other))
    assert seeds(fitted(learner.set_params(randomforestclassifier__random_state=3), X, y)) != seeds(
        one
    )
    np.testing.assert_array_equal(counts_of(one), counts_of(again))


@pytest.mark.parametrize(
    "state", [np.random.RandomState(0), np.random.default_rng(0), -1, True, 1.5]
)
def test_shared_generators_are_refused(state):
    with pytest.raises(ParameterError, match="random_state"):
        fitted(RandomForestClassifier(random_state=state), *sample())


def _mixed_frame(X):
    return pd.DataFrame(X, columns=list("abcd")).assign(
        d=lambda frame: (frame["d"] > 0).astype(int)
    )


@pytest.mark.parametrize("convert", [sp.csr_matrix, _mixed_frame, np.float32])
def test_tables_of_every_kind_train_and_vote(convert):
    learner, (X, y) = DecisionTreeClassifier(), sample()
    direct = _mixed_frame(X).to_numpy() if convert is _mixed_frame else X
    points = _mixed_frame(X_PUBLIC).to_numpy() if convert is _mixed_frame else X_PUBLIC
    expected = counts_of(fitted(learner, direct, y), points)
    counts = counts_of(fitted(learner, convert(X), y), convert(X_PUBLIC))
    if convert is np.float32:
        assert np.abs(counts - expected).sum() <= 4  # single precision may move a split
    else:
        np.testing.assert_array_equal(counts, expected)


def test_settings_of_scikit_learn_reach_the_learners():
    X, y = sample()
    with sklearn.config_context(transform_output="pandas"):
        ensemble = fitted(make_pipeline(StandardScaler(), LogisticRegression()), pd.DataFrame(X), y)
        counts = counts_of(ensemble, pd.DataFrame(X_PUBLIC))
    plain = counts_of(fitted(make_pipeline(StandardScaler(), LogisticRegression()), X, y))
    np.testing.assert_array_equal(counts, plain)


def test_ensemble_names_classes_shows_its_shape_and_refuses_to_leave():
    ensemble = fitted(Learner(), *sample())
    assert ensemble.vote_counts(X_PUBLIC, classes=["a", "b", "c"]).classes == ("a", "b", "c")
    with pytest.raises(DataError, match="a row for each query"):
        ensemble.vote_counts(np.zeros((0, 4)))
    assert repr(ensemble) == "TeacherEnsemble(n_teachers=7, n_classes=3, teachers=<private>)"
    with pytest.raises(TypeError, match="refuse to be pickled"):
        pickle.dumps(ensemble)


@pytest.mark.parametrize(
    "options",
    [
        *({"n_jobs": 0}, {"n_jobs": 1.5}),
        *({"teacher": one} for one in (LogisticRegression, "logistic", StandardScaler())),
    ],
)
def test_settings_out_of_range_are_refused(options):
    X, y = sample()
    chosen = {"teacher": Learner(), "n_teachers": K, "n_classes": C, **options}
    with pytest.raises(ParameterError):
        ensemble_of(X=X, y=y, shards=np.zeros(140, dtype=int), **chosen)


class HowWide(Learner):
    """Learns how much memory a cell takes."""

    def fit(self, X, y):
        self.wide_ = X.dtype.itemsize > 40
        return super().fit(X[:, :0], y)

    def predict(self, X):
        return np.full(len(X), int(self.wide_))


def test_one_long_text_reaches_one_shard():
    y, shards = np.array([0, 1] * 4), np.repeat(np.arange(4), 2)
    asked = np.array([["ab"]], dtype=object)
    votes = [
        votes_of(
            ensemble_of(
                HowWide(), np.array([["ab"]] * 7 + [[last]]), y, shards, n_teachers=4, n_classes=2
            ),
            asked,
        )
        for last in ("ab", "a" * 50)
    ]
    assert np.array_equal(*votes)
