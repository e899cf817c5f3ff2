"""No step depends on the global states that it finds, and none leaves them changed, on either
side of the release."""

import locale
import os
import random
import sys
import tempfile
import types
import warnings

import joblib
import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb
from ensembles import ensemble_of
from secretballot._seeded import own_global_states, public_seed, with_own_seeds
from secretballot.exceptions import ParameterError
from secretballot.hypotheses import FiniteClass
from secretballot.learners import pate
from secretballot.learners.selection import _refuse_unfit_candidate, private_scores
from secretballot.learners.session import check_teacher
from secretballot.queries import CheckedSelector, CommitteeSampling, MarginSampling, PublicPool
from secretballot.report.student_export import converted_student
from secretballot.students import fit_student
from secretballot.teachers.votes import guarantee_of

X = np.random.default_rng(0).normal(size=(120, 3))
Y = (X[:, 0] > 0).astype(int)
RELEASED = sb.ReleasedLabels(np.arange(60), Y[:60], (0, 1), 50)


class FakeTorch(types.ModuleType):
    """As much of torch as keeps a global generator."""

    def __init__(self):
        super().__init__("torch")
        self.state = 1
        self.cuda = types.SimpleNamespace(is_initialized=lambda: False)

    def manual_seed(self, seed):
        self.state = seed

    def get_rng_state(self):
        return self.state

    def set_rng_state(self, state):
        self.state = state

    def rand(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return self.state / 2**64


@pytest.fixture(autouse=True)
def torch(monkeypatch):
    fake = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", fake)
    return fake


class Restless(ClassifierMixin, BaseEstimator):
    """Draws from every global generator when it is fitted and when it predicts, and changes what
    it can reach."""

    def __init__(self, random_state=None):
        self.random_state = random_state

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.n_features_in_ = np.unique(y), np.shape(X)[1]
        self.coins_ = self._coins()
        return self

    def predict(self, X):
        chances = np.random.rand(len(X))  # noqa: NPY002
        return self.classes_[(chances + sum(self.coins_) > 2.0).astype(int) % len(self.classes_)]

    def predict_proba(self, X):
        first = np.random.rand(len(X))  # noqa: NPY002
        return np.column_stack(
            [first, *[(1 - first) / (len(self.classes_) - 1)] * (len(self.classes_) - 1)]
        )

    def _coins(self):
        warnings.simplefilter("ignore")
        np.seterr(all="raise")
        sklearn.set_config(assume_finite=True)
        os.environ["RESTLESS"] = "yes"
        os.chdir(tempfile.gettempdir())
        return [np.random.rand(), random.random(), sys.modules["torch"].rand()]  # noqa: NPY002


def states():
    """Return everything of the process that a step must leave alone."""
    parts = np.random.get_state()  # noqa: NPY002
    generator = [part.tolist() if isinstance(part, np.ndarray) else part for part in parts]
    surroundings = (dict(os.environ), os.getcwd(), locale.setlocale(locale.LC_ALL))
    settings = (list(warnings.filters), np.geterr(), sklearn.get_config())
    return generator, random.getstate(), sys.modules["torch"].state, surroundings, settings


def student():
    return fit_student(Restless(), X, RELEASED, random_state=5).coins_


def abstentions():
    unanswered = sb.ReleasedLabels(np.arange(60), np.where(X[:60, 1] > 1, -1, Y[:60]), (0, 1), 50)
    return fit_student(Restless(), X, unanswered, abstentions="random", random_state=5).coins_


def trial_fit():
    return check_teacher(Restless(), X, X, 2)[1]


def walk():
    strategy = MarginSampling(Restless(), spread=1)
    return _walked(strategy)


def committee():
    return _walked(CommitteeSampling(DecisionTreeClassifier(max_features=1)))


def _walked(strategy):
    selector = CheckedSelector(strategy, PublicPool(X, (0, 1), 30, 3))
    asked = []
    for _ in range(3):
        asked += selector.propose(10).tolist()
        selector.receive(sb.ReleasedLabels(np.array(asked), Y[asked], (0, 1), 50))
    return asked


def candidate():
    with own_global_states(0):
        model = Restless().fit(X, Y)
    with pytest.raises(ParameterError, match="otherwise alone"):
        _refuse_unfit_candidate("restless", model, X, [0, 1])
    return


def teachers():
    shards = np.arange(120) % 4
    ensemble = ensemble_of(Restless(), X, Y, shards, n_teachers=4, n_classes=2)
    return ensemble.vote_counts(X[:20], classes=[0, 1])._unseal()[0].tolist()


def scores():
    with own_global_states(0):
        hypotheses = FiniteClass([Restless().fit(X, Y), Restless().fit(X, Y)])
        dichotomies = hypotheses.dichotomies(X)
    private_scores(dichotomies, X, Y, guarantee_of("record", "add-remove"))


def file():
    with own_global_states(0):
        model = RandomForestClassifier(2).fit(X, Y)
    return converted_student(model).content


STEPS = [student, abstentions, trial_fit, walk, committee, candidate, teachers, scores, file]


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.__name__)
def test_a_step_neither_depends_on_global_states_nor_changes_them(step, torch):
    found = []
    with own_global_states(0):
        for poison in (1, 2):
            np.random.seed(poison)  # noqa: NPY002
            random.seed(poison)
            torch.manual_seed(poison)
            before = states()
            found.append(step())
            assert states() == before
    assert found[0] == found[1]


def test_a_step_that_imports_torch_leaves_it_as_if_just_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")
    with own_global_states(3):
        sys.modules["torch"] = imported = FakeTorch()
        imported.rand()
    after = imported.state
    with own_global_states(4):
        imported.rand()
    assert imported.state == after == 67280421310721


def test_no_seed_means_entropy_of_the_system_and_never_the_global_generator():
    np.random.seed(1)  # noqa: NPY002
    before = states()
    assert public_seed(None, "student") != public_seed(None, "student")
    assert states() == before


def test_seeds_follow_from_the_random_state_and_the_step():
    assert public_seed(7, "student") == public_seed(np.int64(7), "student")
    assert len({public_seed(7, "student"), public_seed(8, "student"), public_seed(7, "walk")}) == 3
    for given in (-1, True, "7", 7.0, np.random.default_rng(0)):
        with pytest.raises(ParameterError, match="random_state is"):
            public_seed(given, "student")


def test_only_open_random_states_are_set():
    pipeline = make_pipeline(DecisionTreeClassifier(), DecisionTreeClassifier(random_state=3))
    first, second = (step.random_state for _, step in with_own_seeds(clone(pipeline), 9).steps)
    assert isinstance(first, int)
    assert second == 3


def test_a_learner_that_would_start_workers_draws_where_it_was_seeded():
    shards = np.arange(120) % 4
    votes = []
    for _ in range(2):
        ensemble = ensemble_of(Parallel(), X, Y, shards, n_teachers=4, n_classes=2)
        votes.append(ensemble.vote_counts(X[:20], classes=[0, 1])._unseal()[0].tolist())
    assert votes[0] == votes[1]


def _toss():
    return float(np.random.rand())  # noqa: NPY002


class Parallel(Restless):
    """Draws its coins in workers of its own, and says nothing but what they show."""

    def predict(self, X):
        return (int(self.coins_[0] * 2**30) >> np.arange(len(X))) % 2

    def _coins(self):
        return list(joblib.Parallel(n_jobs=2)(joblib.delayed(_toss)() for _ in range(3)))


@pytest.mark.usefixtures("records_may_be_public")
def test_a_missing_value_in_one_private_record_leaves_the_student_alone(monkeypatch, tmp_path):
    """What is released is given, so that the two fits may differ by nothing but what was done
    with the record."""

    def given(_, votes, *__, **___):
        votes()  # teachers are trained, as in a release
        return RELEASED

    files = []
    for private in (X, np.where(np.arange(120)[:, None] == 7, np.nan, X)):
        np.random.seed(0)  # noqa: NPY002
        random.seed(0)
        monkeypatch.setattr(pate, "release_labels", given)
        teacher = make_pipeline(SimpleImputer(), Restless())
        model = sb.PATEClassifier(
            teacher,
            RandomForestClassifier(3),
            n_teachers=5,
            epsilon=20.0,
            delta=1e-6,
            n_queries=2,
            mechanism="labels",
            random_state=4,
        )
        model.fit(private, Y, X_public=X.copy(), classes=[0, 1])
        files.append(converted_student(model.student_).content + str(states()[:2]).encode())
    assert files[0] == files[1]
