"""Active queries: what is planned, asked, kept and given back, and what a strategy may never
see."""

from typing import Any

import numpy as np
import pytest

import secretballot as sb
from secretballot.learners.inputs import distinct_points
from secretballot.queries import PublicPool, QuerySelector, QueryStrategy
from secretballot.released import ReleasedLabels
from sessions import in_rounds

BUDGET = sb.PrivacyBudget(1.0, 1e-6)
BOUNDARY = 0.137


def points(n, seed):
    return np.random.default_rng(seed).uniform(-1, 1, (n, 2))


X = points(3000, 0)
Y = (X[:, 0] > BOUNDARY).astype(int)
POOL = points(400, 1)


class Listed(QueryStrategy):
    """Propose the rows it is told to, whatever comes back; remember what it saw."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.seen: list[Any] = []

    def start(self, pool):
        return _ListedSelector(self, pool)

    def describe(self):
        return {"name": "listed"}


class _ListedSelector(QuerySelector):
    def __init__(self, strategy, pool):
        self._strategy, self._left = strategy, list(strategy.rounds)
        strategy.seen.append(pool)

    def propose(self, n):
        return self._left.pop(0) if self._left else np.empty(0, dtype=np.int64)

    def receive(self, released):
        self._strategy.seen.append(released)


def learner(**settings):
    given = {
        "n_teachers": 50,
        **BUDGET.to_json(),
        "n_queries": 40,
        "mechanism": "labels",
        "random_state": 0,
    }
    return in_rounds(**{**given, **settings})


def fitted(model, pool=POOL, **given):
    if "ledger" in given:
        model.set_params(ledger=given.pop("ledger"))
    return model.fit(X, Y, X_public=pool, classes=[0, 1], **given)


def durable(folder, composition="basic", epsilon=1.0):
    budget = sb.PrivacyBudget(epsilon, 2e-6)
    ledger = sb.Ledger(
        folder / "ledger.sqlite", dataset="registry", budget=budget, composition=composition
    )
    return {"ledger": ledger, "vault": folder / "vault", "request": "fit"}


def test_the_strategy_sees_public_points_and_released_labels_alone():
    strategy = Listed([np.array([5, 3]), np.array([8])])
    model = fitted(learner(strategy=strategy, round_size=2))
    assert model.certificate_["plan"]["left"] == "forfeited"  # nobody could take it up
    assert sb.verify_certificate(model.certificate_).ok
    pool, *answers = strategy.seen
    assert type(pool) is PublicPool
    assert np.array_equal(pool.X, POOL)
    assert {type(item) for item in answers} == {ReleasedLabels}
    assert [item.queries.tolist() for item in answers] == [[5, 3], [5, 3, 8]]
    assert all(item.certificate == {} for item in answers)
    assert model.released_.queries.tolist() == [5, 3, 8]
    labels = model.released_.labels.tolist()
    assert [item.labels.tolist() for item in answers] == [labels[:2], labels]


def test_a_strategy_that_proposes_nonsense_is_refused_before_anything_is_spent(tmp_path):
    place = durable(tmp_path)
    with pytest.raises(sb.SecretBallotError, match="each row from 0 to 399 once"):
        fitted(learner(strategy=Listed([np.array([3, 3])]), round_size=2), **place)
    assert place["ledger"].history() == []


def test_equal_points_are_one_question():
    twice = np.vstack([POOL[:30], POOL[:30]])
    assert list(distinct_points(twice).values()) == list(range(30))
    model = fitted(
        learner(strategy=Listed([np.arange(30)]), round_size=30, n_queries=30), pool=twice
    )
    assert model.released_.queries.tolist() == list(range(30))


def test_what_is_left_stays_open_and_another_strategy_spends_it(tmp_path):
    place = durable(tmp_path)
    first = fitted(learner(strategy=Listed([np.arange(10)]), round_size=10), **place)
    assert first.certificate_["plan"]["left"] == "kept"
    assert sb.verify_certificate(first.certificate_).ok
    assert place["ledger"].history()[0].state == "reserved"
    assert place["ledger"].spent().epsilon == 1.0
    second = fitted(learner(), **place)
    assert second.certificate_["plan"]["used"] == 40
    assert second.certificate_["plan"]["rounds"][0] == 10
    assert second.released_.labels[:10].tolist() == first.released_.labels.tolist()
    assert sb.verify_certificate(second.certificate_).ok
    assert place["ledger"].history()[0].state == "committed"
    assert place["ledger"].spent().epsilon == 1.0
    assert fitted(learner(), **place).released_ == second.released_
    with pytest.raises(sb.ParameterError, match="by another strategy"):
        fitted(learner(strategy=Listed([np.arange(2)])), **place)


def test_an_interrupted_walk_goes_on_and_pays_once(tmp_path):
    place = durable(tmp_path)

    def stop(done, total):
        if total == 40 and done == 12:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fitted(learner(), progress=stop, **place)
    (entry,) = place["ledger"].history()
    assert (entry.state, entry.parts) == ("reserved", 12)

    def parts():
        with place["ledger"].reading(1) as page:
            return page.parts()

    stream = parts()
    assert fitted(learner(), **place).rounds_ == [2] * 20
    assert parts()[:12] == stream
    assert len(place["ledger"].history()) == 1


def test_a_stored_release_is_not_taken_for_other_public_points(tmp_path):
    place = durable(tmp_path)
    first = fitted(learner(), **place)
    assert fitted(learner(), **place).released_ == first.released_
    for kind, error, words in (
        (in_rounds, sb.DataError, "to other points"),
        (sb.PATEClassifier, sb.ParameterError, "other terms"),
    ):
        again = kind(n_teachers=50, **BUDGET.to_json(), mechanism="labels", n_queries=40)
        with pytest.raises(error, match=words):
            fitted(again, POOL + 1, **place)


# nothing may have been answered at all, which is said
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_sparse_vector_that_stopped_has_nothing_left(tmp_path):
    place = durable(tmp_path)
    hard = np.column_stack([np.full(60, BOUNDARY), np.linspace(-1, 1, 60)])
    model = learner(
        mechanism="sparse-vector:max_abstentions=1",
        n_teachers=150,
        strategy=sb.queries.PassiveSampling(),
    )
    fitted(model, np.vstack([hard, [[0.9, 0.0]]]), **place)
    plan = model.certificate_["plan"]
    assert plan["used"] < 40
    assert plan["left"] == "forfeited"
    assert sb.verify_certificate(model.certificate_).ok
    assert place["ledger"].history()[0].state == "committed"
