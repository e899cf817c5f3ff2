"""RecordVotesClassifier: the promise on all neighbours of a tiny world, no record's votes moved by
another, users, bad input, and what it learns of real tables."""

import itertools
import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from test_one_record_one_teacher import (
    ALL,
    NUMBERS,
    WHOLE,
    made,
    refuse_quotes,
    some_of,
    with_cells,
)

import secretballot as sb
from exact_games.distributions import discrete_gaussian_distribution
from exact_games.games import hockey_stick
from secretballot.accounting import noisy_votes
from secretballot.bases.integer_basis import IntegerBasis
from secretballot.learners import table as tables
from secretballot.learners.record_votes import default_votes
from secretballot.report.certificate_models import stated
from secretballot.teachers.votes import guarantee_of, record_votes_shape
from sessions import of_fit

# records in worlds of some dozen points, where there are no others to be public
pytestmark = pytest.mark.usefixtures("records_may_be_public")
BUDGET = sb.PrivacyBudget(1.0, 1e-5)


class Cells(IntegerBasis):
    """Coordinates that are the cells themselves, cut to integers; made of nothing."""

    # passes for a basis of the package, as it maps every row by itself
    __module__ = "secretballot.bases.cells"
    uncovered_share_ = 1.0

    def fit(self, X, y=None):
        self.n_directions_ = np.shape(X)[1]
        return self

    def _parts(self, X):
        rows = np.nan_to_num(np.asarray(X, dtype=np.float64)).astype(np.int64)
        yield rows, np.ones(len(rows), dtype=np.bool_), rows[:, :0]

    def describe(self):
        return {"name": "cells"}


def fitted(X, y, X_public, *, with_student=True, **settings):
    given = {**BUDGET.to_json(), "basis": Cells()} | settings
    fit = of_fit(given)
    if "classes" in given:
        fit["classes"] = given.pop("classes")
    model = sb.RecordVotesClassifier(**given)
    learn = model.fit if with_student else model.fit_labels
    return learn(X, y, X_public=X_public, **({"classes": [0, 1]} | fit))


def counts(*args, **settings):
    """Return the counts; the student, which is made of them, is left out."""
    found = fitted(*args, with_student=False, **settings).released_.noisy_counts
    assert found is not None
    return found


def counts_apart(*args, **settings):
    """Return the counts, and the votes of uncovered records; of a basis that tells none, 0."""
    released = fitted(*args, with_student=False, **settings).released_
    return released.noisy_counts, released.certificate["released"].get("values", [[0]])[0][0]


POINTS = np.array([[0], [2], [3]])
RECORDS = [(place, label) for place in (-1, 1, 3) for label in (0, 1)]


def true_counts(records, k, relation):
    X = np.array([[place] for place, _ in records])
    y = [label for _, label in records]
    return counts(X, y, POINTS, votes_per_record=k, relation=relation).astype(int)


def exact_delta(moved, sigma, epsilon):
    """Return the delta of a table that moves so, by listing the noise of every cell that moves."""
    law = discrete_gaussian_distribution(sigma, 1e-13)
    p, q = np.ones(1), np.ones(1)
    for step in moved[moved != 0]:
        padded = np.concatenate([np.zeros(abs(step)), law.pmf, np.zeros(abs(step))])
        p = np.multiply.outer(p, padded).ravel()
        q = np.multiply.outer(q, np.roll(padded, step)).ravel()
    return hockey_stick(p, q, epsilon)


@pytest.mark.parametrize(
    ("relation", "k"), [("add-remove", 1), ("add-remove", 2), ("replace-one", 1)]
)
def test_no_neighbours_of_a_tiny_world_tell_more_than_was_promised(relation, k, unnoised):
    budget, moves = sb.PrivacyBudget(1.5, 0.02), {}
    shape = record_votes_shape(3, 2, k, guarantee_of("record", relation))
    sigma = noisy_votes(budget, shape, release="counts").scale
    for other in RECORDS:
        tables = [true_counts((other, record), k, relation) for record in RECORDS]
        if relation == "add-remove":
            pairs = itertools.product(tables, [true_counts((other,), k, relation)])
        else:
            pairs = itertools.product(tables, repeat=2)
        moves |= {(here - there).tobytes(): here - there for here, there in pairs}
    both = [side for moved in moves.values() for side in (moved, -moved)]
    worst = max(exact_delta(side, sigma, budget.epsilon) for side in both)
    assert worst <= budget.delta * (1 + 1e-9)
    # all of the budget is used by some neighbours, so that less noise is caught
    assert worst > 0.99 * budget.delta
    assert max(exact_delta(side, 0.9 * sigma, budget.epsilon) for side in both) > budget.delta


# what other tables are made of is read as by teachers, who meet all kinds
@WHOLE
@pytest.mark.parametrize(
    "name", ["list", "object array", "array", "frame", "nullable frame", "categories", "coo"]
)
def test_a_record_of_any_kind_moves_no_other_record_s_votes(name, whole, unnoised):
    rows = [list(row) for row in NUMBERS]
    # categories of the public table are below 2^53
    public = made(ALL[name], [[min(cell, 99.0) for cell in row] for row in rows])
    others = made(ALL[name], rows[1:])
    y = [row % 2 for row in range(len(rows))]
    settings = {"basis": None, "votes_per_record": 2}
    alone = counts(others, y[1:], public, **settings)
    refused = 0
    cells = some_of(with_cells(rows[0], 3), whole=whole, turn=[*ALL].index(name))
    for new in [*cells, [], [1.0], [1.0] * 4]:
        table = made(ALL[name], [new, *rows[1:]])
        try:
            found = None if table is None else counts(table, y, public, **settings)
        except sb.SecretBallotError as error:
            refuse_quotes(error)
            refused += 1
            continue
        if found is not None:  # one vote at two points, or none
            came = found - alone
            assert (came.min(), came.max() <= 1, came.sum() in (0, 2)) == (0, True, True), new
    assert refused < 60


class Doubtful(Cells):
    """An odd record takes it aback."""

    __module__ = "secretballot.bases.cells"
    uncovered_share_ = 0.01

    def _parts(self, X):
        for rows, _, cells in super()._parts(X):
            if (rows > 4000).any():
                raise ValueError("a cell is 4711")
            yield rows, rows[:, 0] != 5, cells


# as many uncovered ones as there are is worth a warning, once it is released
@pytest.mark.filterwarnings("ignore:About .* % of the records have values")
def test_a_record_that_the_basis_cannot_map_moves_no_other_without_a_word(unnoised, capsys):
    X, y, pool = np.arange(12.0)[:, None], np.arange(12) % 2, np.arange(6.0, 18)[:, None]
    odd = X.copy()
    odd[3] = 4711
    rest = np.delete(np.arange(12), 3)
    settings = {"basis": Doubtful(), "votes_per_record": 2}
    found, uncovered = counts_apart(odd, y, pool, **settings)
    others, others_uncovered = counts_apart(X[rest], y[rest], pool, **settings)
    assert np.array_equal(found, others)
    # what cannot be mapped votes for nothing
    assert uncovered == others_uncovered == 2
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("container", [list, pd.DataFrame])
def test_texts_and_missing_cells_have_a_fixed_rule(container, unnoised):
    rows = [[f"t{row % 3}", "x" if row % 2 else "y"] for row in range(40)]
    pool = container(rows)
    settings = {"basis": None, "votes_per_record": 2}
    others, apart = counts_apart(container(rows[1:]), [0] * 39, pool, **settings)
    assert apart == 0
    for cell in (None, float("nan"), "never seen", "", "\0"):
        new = container([[cell, "x"], *rows[1:]])
        found, apart = counts_apart(new, [1, *[0] * 39], pool, **settings)
        assert np.array_equal(found, others)  # a text that the public points do not show
        assert apart == 2


def test_of_each_user_one_record_votes_and_no_other_user_has_a_say(unnoised, monkeypatch):
    monkeypatch.setattr(tables, "entropy_bytes", lambda size: bytes(range(size)))
    rng = np.random.default_rng(0)
    X, y, pool = rng.integers(0, 30, (60, 1)), rng.integers(0, 2, 60), np.arange(30)[:, None]
    units = rng.integers(0, 9, 60)
    whole = counts(X, y, pool, votes_per_record=3, units=units)
    assert whole.sum() == 3 * 9
    for user in range(9):
        stays = units != user
        left = counts(X[stays], y[stays], pool, votes_per_record=3, units=units[stays])
        came = whole - left
        assert (came.min(), came.max(), came.sum()) == (0, 1, 3)


def test_only_some_points_take_votes():
    X, y = np.arange(100)[:, None], np.arange(100) // 50
    model = fitted(X, y, X.copy(), n_queries=60, random_state=3)
    assert len(model.released_.queries) == 60
    assert model.votes_per_record_ == default_votes(60) == 5
    assert [default_votes(n) for n in (1, 20, 400, 8141)] == [1, 2, 5, 81]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"votes_per_record": 0}, "votes_per_record is 0"),
        ({"votes_per_record": 101}, "votes_per_record is 101, and 100 public points take votes"),
        ({"n_queries": 0}, "n_queries is 0"),
        ({"epsilon": 1.0, "delta": 0.0}, "delta"),
        ({"basis": Cells}, "basis is a"),
    ],
)
def test_settings_out_of_range_are_refused_before_anything_is_paid(settings, words):
    ledger = sb.Ledger.in_memory(dataset="registry", budget=BUDGET)
    X = np.arange(100)[:, None]
    with pytest.raises(sb.ParameterError, match=words):
        fitted(X, np.arange(100) % 2, X.copy(), ledger=ledger, **settings)
    assert not ledger.history()


def test_a_repeated_request_gets_the_stored_bytes_and_another_question_is_refused(tmp_path):
    ledger = sb.Ledger(tmp_path / "ledger.sqlite", dataset="registry", budget=BUDGET)
    X, y = np.arange(50)[:, None], np.arange(50) // 25
    settings = {"ledger": ledger, "request": "first", "votes_per_record": 2}
    first, again = fitted(X, y, X.copy(), **settings), fitted(X, y[::-1], X.copy(), **settings)
    assert first.released_ == again.released_
    assert ledger.spent().epsilon == pytest.approx(1.0)
    more = {"votes_per_record": 3}, {"classes": [1, 0]}, {"n_queries": 40}, {"epsilon": 0.5}
    for points, changes in ((X + 1, {}), *((X.copy(), one) for one in more)):
        with pytest.raises(sb.ParameterError, match="begun with other terms"):
            fitted(X, y, points, **settings | changes)


def test_it_clones_and_pickles_without_a_private_number():
    rng = np.random.default_rng(0)
    X, pool = rng.normal(size=(4711, 2)), rng.normal(size=(100, 2))
    model = fitted(X, X[:, 0] > 0, pool, basis=None, classes=[False, True])
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(pool).tolist() == model.predict(pool).tolist()
    assert clone(model).epsilon == model.epsilon
    shown = {key: value for key, value in vars(model).items() if key.endswith("_")}
    assert not any(isinstance(value, int) and value in (4711, 9422) for value in shown.values())
    assert "4711" not in json.dumps(stated(model.certificate_))


@pytest.mark.parametrize(
    "student",
    ["auto", RandomForestClassifier(n_estimators=30, random_state=0)],
    ids=lambda student: type(student).__name__,
)
def test_students_learn_from_votes_whose_rows_sum_to_nothing(student):
    rng = np.random.default_rng(0)
    X, pool, new = (rng.normal(size=(n, 2)) for n in (20_000, 400, 1000))
    pool[:300, 0] += 1.5  # most points where the records are not
    side = lambda rows: (rows[:, 0] + rows[:, 1] > 0).astype(int)  # noqa: E731
    model = fitted(X, side(X), pool, basis=None, student=student)
    assert (model.predict(new) == side(new)).mean() > 0.9
    shares = model.predict_proba(new)
    assert shares.shape == (1000, 2)
    assert np.allclose(shares.sum(axis=1), 1.0)
