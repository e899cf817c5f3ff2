"""Choosing a candidate: exactly epsilon on tiny neighbouring hold-outs, whatever the candidates
do, and certified. The hold-out: one unit on one side, whoever else is there."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb
from flips import flip_law
from secretballot.core import mechanisms, releasing
from secretballot.core.exponential import least_quotient
from secretballot.core.noise import ExactNoise
from secretballot.learners import selection as room
from secretballot.learners import table as tables
from secretballot.report.certificate import choice_fields
from secretballot.students import fit_student

BUDGET = sb.PrivacyBudget(1.0, 1e-6)
EPSILON = 0.8


class Cut(BaseEstimator):
    """Answer 1 at or above a cut of the first column; row by row, unless told to misbehave."""

    def __init__(self, cut=0.0, trouble=""):
        self.cut, self.trouble = cut, trouble

    def predict(self, X):
        X = np.asarray(X)
        print("secret")
        np.log(np.zeros(1))
        strange = bool((X[:, 0] > 50).any())
        if self.trouble == "raises" and strange:
            raise RuntimeError("secret value seen")
        if self.trouble == "exits everywhere" or (self.trouble == "exits" and strange):
            raise SystemExit
        if self.trouble == "rubbish" and strange:
            return ["?"] * (len(X) + 1)
        if self.trouble == "centres":
            X = X - X.mean(axis=0)
        if self.trouble == "forgets":
            self.cut += 1
        return (X[:, 0] >= self.cut).astype(int)


def _ledger(**settings):
    return sb.Ledger.in_memory(dataset="d", budget=sb.PrivacyBudget(1e6, 1e-6), **settings)


def _choose(candidates, X, y, ledger=None, **settings):
    account = _ledger() if ledger is None else ledger
    return sb.choose_candidate(
        candidates, X, y, **{"classes": [0, 1], "epsilon": EPSILON, "ledger": account, **settings}
    )


@pytest.fixture
def law(monkeypatch):
    """Return a function to the exact law of the choice: the scores that are released from, and the
    mechanism."""
    seen = []

    class Spy(ExactNoise):
        def flipped_index(self, scores, scale):
            seen.append(flip_law(scores, scale))
            return 0

    monkeypatch.setattr(releasing, "noise_source", Spy)
    monkeypatch.setattr(room, "_refuse_unfit_candidate", lambda *_: None)

    def of(candidates, X, y, **settings):
        relation = settings.get("relation", "add-remove")
        unit = "user" if "units" in settings else "record"
        _choose(candidates, X, y, _ledger(relation=relation, unit=unit), **settings)
        return seen.pop()

    return of


CANDIDATES = [Cut(0.5), Cut(1.5), Cut(99)]
POINTS = np.array([[0.0], [1.0], [2.0], [3.0]])


def _loss(one, other):
    return float(np.abs(np.log(one / other)).max())


def test_removing_a_unit_of_many_records_loses_epsilon_and_no_more(law):
    units, losses, by_record = np.array(["a", "a", "a", "b"]), [], []
    for labels in itertools.product((0, 1), repeat=4):
        y = np.array(labels)
        whole, records = law(CANDIDATES, POINTS, y, units=units), law(CANDIDATES, POINTS, y)
        for stays in (units != "a", units != "b"):
            less = law(CANDIDATES, POINTS[stays], y[stays], units=units[stays])
            losses.append(_loss(whole, less))
            by_record.append(_loss(records, law(CANDIDATES, POINTS[stays], y[stays])))
    assert 0.5 * EPSILON < max(losses) <= EPSILON * (1 + 1e-9)
    # counting records in place of units loses more
    assert max(by_record) > 1.5 * EPSILON


def _worst_replaced(law):
    """Return the largest loss between hold-outs of two records that differ in the second."""
    records = np.array(list(itertools.product((0.0, 1.0, 2.0), (0, 1))))
    worst = 0.0
    for first in records[:2]:
        pairs = [np.array([first, second]) for second in records]
        laws = [law(CANDIDATES, p[:, :1], p[:, 1], relation="replace-one") for p in pairs]
        worst = max(worst, *(_loss(*both) for both in itertools.permutations(laws, 2)))
    return worst


def test_replacing_a_record_loses_epsilon_and_no_more(law, monkeypatch):
    assert 0.5 * EPSILON < _worst_replaced(law) <= EPSILON * (1 + 1e-9)
    # the half forgotten is caught
    monkeypatch.setattr(mechanisms, "least_quotient", lambda moved, loss: least_quotient(1, loss))
    assert _worst_replaced(law) > 1.3 * EPSILON


def test_a_record_that_upsets_a_candidate_counts_against_it_once(law, capsys, caplog):
    """Were it wrong everywhere, one strange record would move its score by all the others."""
    X, y = np.array([[0.0], [1.0], [2.0], [3.0], [60.0]]), np.array([0, 1, 1, 1, 1])
    for trouble in ("raises", "exits", "rubbish"):
        candidates = [Cut(0.5, trouble), Cut(99)]
        with_it, without = law(candidates, X, y), law(candidates, X[:4], y[:4])
        assert _loss(with_it, without) <= EPSILON
        assert with_it[0] > 0.8
    assert "secret" not in capsys.readouterr().out
    assert not caplog.records


@pytest.mark.parametrize(
    ("candidate", "words"),
    [
        (LogisticRegression(), "NotFittedError"),
        (Cut(0.0, "centres"), "otherwise alone than among others"),
        (Cut(-2.0, "forgets"), "otherwise alone than among others"),
        (LogisticRegression().fit(np.eye(4, 7), [0, 0, 1, 1]), "ValueError"),
        (DummyClassifier().fit(POINTS, [5, 5, 5, 5]), "one of the classes"),
        (DummyClassifier().fit(POINTS, [[0, 1]] * 4), "one of the classes"),
        (Cut(-9.0, "exits everywhere"), "would end the program"),
        (3, "two or more fitted classifiers"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_candidate_that_cannot_serve_is_refused_on_made_up_rows(candidate, words):
    ledger = _ledger()
    with pytest.raises(sb.ParameterError, match=words):
        _choose([("bad", candidate), ("good", Cut(1))], POINTS, [0, 1, 1, 1], ledger)
    assert ledger.history() == []


@pytest.mark.parametrize(
    "settings",
    [
        *({"candidates": one} for one in ([Cut(0)], [("a", Cut(0)), ("a", Cut(1))])),
        {"candidates": [(3, Cut(0)), ("a", Cut(1))]},
        *({"epsilon": one} for one in (0, float("nan"), 1e9)),
        *({"y": one} for one in ([0, 1, 1], [0, 1, 1, 2])),
        {"X": pd.DataFrame({"a": [0.0, 1, 2, 3]})},
        {"X_public": np.zeros((3, 2))},
        {"units": [1, 2, 3, None]},
        {"units": [1, 2, 3, 4], "relation": "replace-one"},
        {"relation": "replace-one"},
    ],
    ids=lambda settings: ",".join(settings),
)
def test_bad_input_is_one_sentence_and_nothing_is_spent(settings):
    given = {"candidates": [Cut(0), Cut(1)], "X": POINTS, "y": [0, 1, 1, 1], **settings}
    ledger = _ledger()
    with pytest.raises(sb.SecretBallotError) as caught:
        _choose(ledger=ledger, **given)
    assert ledger.history() == []
    assert "\n" not in str(caught.value)


def test_a_repeated_choice_is_free():
    ledger = _ledger()
    found = [_choose([Cut(0.5), Cut(1)], POINTS, [0, 1, 1, 1], ledger, request="one") for _ in "ab"]
    assert choice_fields(found[0].choice_) == choice_fields(found[1].choice_)
    assert len(ledger.history()) == 1


@pytest.fixture(scope="module")
def task():
    rng = np.random.default_rng(1)
    X, P = rng.normal(size=(3000, 3)), rng.normal(size=(200, 3))
    return {"X": X, "y": (X[:, 0] > 0).astype(int), "P": P}


def _fit(task, ledger, rows, **settings):
    given = {"n_teachers": 50, "epsilon": 0.4, "delta": 4e-7, "random_state": 0, **settings}
    model = sb.PATEClassifier(ledger=ledger, **given)
    return model.fit(task["X"][rows], task["y"][rows], X_public=task["P"], classes=[0, 1])


def test_the_certificate_counts_the_choice_and_what_candidates_cost(task):
    ledger = sb.Ledger.in_memory(dataset="d", budget=BUDGET)
    taught, held = sb.hold_out(3000, 0.1)
    fits = [(f"K={k}", _fit(task, ledger, taught, n_teachers=k)) for k in (50, 20)]
    about = {"epsilon": 0.2, "X_public": task["P"]}
    found = _choose(fits, task["X"][held], task["y"][held], ledger, **about)
    certificate = found.certificate_
    before = dict(fits)[certificate["public"]["chosen"]].certificate_
    assert sb.verify_certificate(certificate).ok
    assert [choice["epsilon"] for choice in certificate["choices"]] == [0.4, 0.4]
    assert (certificate["epsilon"], certificate["delta"]) == (0.2, 0.0)
    assert certificate["composition"]["spent_after"] == {"epsilon": 1.0, "delta": 8e-7}
    assert found.released_.labels.tolist() == found.predict(task["P"]).tolist()
    assert room._INDEPENDENT in certificate["assumptions"]
    assert "choices" not in before  # the candidate's own certificate stays as it was
    assert certificate["public"]["candidates"] == ["K=50", "K=20"]


def test_students_of_one_release_pay_for_it_once(task):
    ledger = sb.Ledger.in_memory(dataset="d", budget=BUDGET)
    taught, held = sb.hold_out(3000, 0.1)
    first = _fit(task, ledger, taught, epsilon=0.9, delta=1e-6)
    other = fit_student(DecisionTreeClassifier(max_depth=3), task["P"], first.released_)
    other.released_ = first.released_
    # made of nothing private, and wrong
    always = DummyClassifier(strategy="constant", constant=1).fit(task["P"], np.ones(200))
    candidates, X, y = [first, other, always], task["X"][held], task["y"][held]
    found = _choose(candidates, X, y, ledger, epsilon=0.1)
    certificate = found.certificate_
    assert [choice["epsilon"] for choice in certificate["choices"]] == [0.9]
    assert certificate["composition"]["spent_after"] == {"epsilon": 1.0, "delta": 1e-6}
    assert sb.verify_certificate(certificate).ok


def test_prices_of_other_accounts_and_units_are_refused_before_anything_is_spent(task):
    ledger, rows = sb.Ledger.in_memory(dataset="d", budget=BUDGET), np.arange(3000)
    model = _fit(task, ledger, rows)
    elsewhere = sb.Ledger.in_memory(dataset="another", budget=BUDGET)
    with pytest.raises(sb.ParameterError, match="the same ledger"):
        _choose([model, Cut(0)], task["X"][:50], task["y"][:50], elsewhere, epsilon=0.1)
    assert elsewhere.history() == []
    users = sb.PATEClassifier(n_teachers=20, epsilon=0.3, delta=1e-7, ledger=ledger)
    users.fit(task["X"], task["y"], X_public=task["P"], classes=[0, 1], units=rows // 2)
    with pytest.raises(sb.ParameterError, match="choose by the same unit"):
        _choose([users, Cut(0)], task["X"][:50], task["y"][:50], ledger, epsilon=0.1)
    assert len(ledger.history()) == 2


def test_the_sides_are_disjoint_and_together_everything():
    for settings in ({}, {"units": np.arange(5000) // 3}, {"relation": "replace-one"}):
        taught, held = sb.hold_out(5000, 0.2, **settings)
        assert np.array_equal(np.sort(np.concatenate([taught, held])), np.arange(5000))
        assert 850 < len(held) < 1150


def test_a_unit_stays_where_it_is_when_another_comes_or_goes(monkeypatch):
    monkeypatch.setattr(tables, "entropy_bytes", lambda size: bytes(range(size)))
    rng = np.random.default_rng(0)
    units = rng.integers(0, 300, 2000)
    side = np.zeros(2000, dtype=bool)
    side[sb.hold_out(2000, 0.3, units=units)[1]] = True
    assert all(len(set(side[units == unit].tolist())) == 1 for unit in np.unique(units))
    for gone in (units[0], units[1000]):
        stays = units != gone
        found = np.zeros(int(stays.sum()), dtype=bool)
        found[sb.hold_out(int(stays.sum()), 0.3, units=units[stays])[1]] = True
        assert np.array_equal(found, side[stays])


def test_records_without_ids_are_drawn_independently_and_anew():
    sides = np.zeros((200, 50))
    for row in sides:
        row[sb.hold_out(50, 0.5)[1]] = 1
    assert 0.42 < sides.mean() < 0.58
    assert sides.sum(axis=1).std() > 2  # the number held is binomial, not fixed: sd 3.5
    assert np.abs(np.corrcoef(sides.T) - np.eye(50)).max() < 0.5


def test_by_position_the_side_is_the_same_for_every_dataset_of_the_size():
    first, second = (sb.hold_out(10, 0.3, relation="replace-one") for _ in range(2))
    assert np.array_equal(first[1], second[1])
    assert first[1].tolist() == [3, 6, 9]
