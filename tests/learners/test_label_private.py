"""Public features. PATE: dropped labels are never looked at, kept ones reach one teacher, and the
promise is kept. Record moments: the labels alone are private; everything else is exact."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

import secretballot as sb
import secretballot_verify as second
from exact_games.distributions import discrete_gaussian_distribution
from exact_games.games import hockey_stick
from exact_games.worlds import ScriptedNoise
from noisy_plans import calibrated
from secretballot.core import releasing
from secretballot.exceptions import LedgerError, ParameterError
from secretballot.learners import table as tables
from secretballot.report.certificate_models import stated
from sessions import of_fit

BUDGET = sb.PrivacyBudget(1.0, 1e-6)
ALONE = {"classes": [0, 1], "public_features": True}
LABELS = {"unit": "label", "relation": "replace-one"}
QUICK = DecisionTreeClassifier(max_depth=1)  # a student where nobody asks what it has learnt


def _task(n, seed, classes=2):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, classes, n)
    X[np.arange(n), y] += 5
    return X, y


def _model(**settings):
    return sb.PATEClassifier(
        **{"n_teachers": 60, **BUDGET.to_json(), "random_state": 0, **settings}
    )


@pytest.mark.parametrize("dropped", [0.5, 0.0])
def test_learns_what_the_kept_labels_know(dropped):
    model = _model(n_teachers=75, epsilon=4.0, delta=1e-5)
    model.fit(*_task(1500, 0), **ALONE, dropped=dropped)
    assert model.score(*_task(1000, 1)) > 0.9
    certificate = model.certificate_
    for about in (certificate, certificate["composition"]):
        assert {name: about[name] for name in LABELS} == LABELS
    assert ("0.5 of the labels" in " ".join(certificate["assumptions"])) == (dropped == 0.5)
    assert "only the labels are private" in " ".join(certificate["not_protected"])
    assert sb.verify_certificate(certificate).ok


def test_only_points_without_labels_are_asked_and_they_are_rows_of_the_records(monkeypatch):
    X, y = _task(1001, 0)
    seen, made = [], tables.Shards

    def spy(*given):
        seen.append(given)
        return made(*given)

    monkeypatch.setattr(tables, "Shards", spy)
    model = _model(n_queries=100).fit(X, y, **ALONE)
    rows, index, shards, _ = seen[-1]
    places = {row.tobytes(): place for place, row in enumerate(X)}
    taught = np.array([places[row.tobytes()] for row in np.asarray(rows)])
    assert sorted([*taught, *model.unlabelled_]) == list(range(1001))
    assert len(model.unlabelled_) == 500
    assert np.array_equal(index, y[taught])
    assert np.array_equal(shards, np.arange(501) % 60)
    queries = model.released_.queries
    assert len(queries) == 100
    assert set(queries) <= set(model.unlabelled_)
    everything = _model().fit(X, y, **ALONE, dropped=0.0)
    assert len(seen[-1][0]) == 1001
    assert everything.released_.queries.tolist() == list(range(1001))


class _Watched:
    """Labels that cannot be looked at in the rows that were dropped."""

    def __init__(self, y, dropped):
        self.y, self.dropped = y, set(dropped.tolist())

    def __len__(self):
        return len(self.y)

    def __getitem__(self, row):
        assert row not in self.dropped, "a dropped label was looked at"
        return self.y[row]


def _others(y, dropped):
    """Yield labels that differ from `y` in the dropped rows alone, in every way that labels can
    differ."""
    gone = np.isin(np.arange(len(y)), dropped)
    yield np.where(gone, 1 - y, y)
    yield np.where(gone, 77, y)  # a class that nobody declared
    for strange in (None, "secret", 10**30, [1, 2]):
        mixed = [strange if left else label for left, label in zip(gone, y.tolist(), strict=True)]
        yield mixed
        yield pd.Series(mixed, dtype=object).to_numpy()
    yield pd.Series(np.where(gone, np.nan, y), index=np.arange(len(y))[::-1])
    yield _Watched(y, dropped)


@pytest.mark.usefixtures("nothing_drawn")
def test_no_dropped_label_has_any_influence():
    X, y = _task(160, 2)
    given = {"epsilon": 3.0, "delta": 1e-3, "mechanism": "counts", "n_queries": 40}

    def found(labels):
        model = _model(n_teachers=40, **given).fit(X, labels, **ALONE)
        told = model.released_.to_json()
        for fleeting in ("issued", "digest"):
            del told["certificate"][fleeting]
        return model, (told, model.predict_proba(X + 0.1).tolist())

    model, first = found(y)
    for other in _others(y, model.unlabelled_):
        assert found(other)[1] == first


@pytest.mark.usefixtures("unnoised")
def test_a_kept_label_changes_the_votes_of_one_teacher():
    X, y = _task(24, 4, 3)
    memory = KNeighborsClassifier(1)  # passes on whatever single label it was given
    settings = {"n_teachers": 4, "mechanism": "counts", "epsilon": 10.0, "delta": 1e-3}

    def votes(labels):
        model = _model(teacher=memory, student=QUICK, **settings)
        model.fit(X, labels, classes=[0, 1, 2], public_features=True)
        return model, model.released_.noisy_counts

    model, before = votes(y)
    assert (before.sum(axis=1) == 4).all()
    moved = 0
    for row in range(24):
        changed = y.copy()
        changed[row] = (y[row] + 1) % 3
        shift = votes(changed)[1] - before
        assert np.abs(shift).sum(axis=1).max() <= 2  # one vote, from one class to another
        if row in model.unlabelled_:
            assert not shift.any()
        moved += shift.any()
    assert moved > 7  # most of the twelve kept labels have a point near them


def _label_law(votes, K, noise):
    """Return the law of all labels released for two-class votes, by the definition."""
    ones = np.array([noise.pmf[2 * (v + noise.support) >= K].sum() for v in votes])
    patterns = np.array(list(itertools.product((0, 1), repeat=len(votes))))
    return np.prod(np.where(patterns == 1, ones, 1 - ones), axis=1)


def _count_law(votes, K, noise):
    """Return the law of all noisy counts, on a grid that holds those of every vote."""
    whole = np.ones(1)
    for v in votes:
        whole = np.multiply.outer(whole, np.pad(noise.pmf, (int(v), K - int(v)))).ravel()
    return whole


# so few records and teachers drown in the noise, as is said
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.usefixtures("unnoised")
@pytest.mark.parametrize("dropped", [0.5, 0.0])
def test_the_promise_holds_exactly_in_a_small_world(dropped):
    # every vote and every neighbour of several label vectors, each through the whole learner; then
    # the laws in full
    K, n, budget = 4, 16, sb.PrivacyBudget(0.8, 0.02)
    X = np.arange(float(n))[:, None]

    def votes(labels):
        settings = {"mechanism": "counts", "n_queries": 2, "n_teachers": K, **budget.to_json()}
        teacher = DecisionTreeClassifier(random_state=0)
        model = _model(teacher=teacher, student=QUICK, **settings)
        model.fit(X, labels, **ALONE, dropped=dropped)
        return np.asarray(model.released_.noisy_counts)

    def delta(law, sigma):
        noise = discrete_gaussian_distribution(sigma)
        laws = {
            raw: law(np.frombuffer(raw, dtype=np.int64), K, noise) for pair in pairs for raw in pair
        }
        return max(hockey_stick(laws[one], laws[two], budget.epsilon) for one, two in pairs)

    pairs = set()
    y = np.random.default_rng(0).integers(0, 2, n)
    before = votes(y).tobytes()
    for row in range(n):
        after = votes(np.where(np.arange(n) == row, 1 - y, y)).tobytes()
        pairs |= {(before, after), (after, before)}
    for release, law in (("labels", _label_law), ("counts", _count_law)):
        sigma = calibrated(budget, 2, n_teachers=K, release=release).mechanism.scale
        assert delta(law, sigma) <= budget.delta
        # the world is rich enough to catch too little noise
        assert delta(law, 0.7 * sigma) > budget.delta


def test_a_ledger_of_labels_takes_labels_and_replaced_records_and_nothing_else():
    X, y = _task(300, 5)
    ledger = sb.Ledger.in_memory(dataset="d", budget=sb.PrivacyBudget(2.0, 1e-5), **LABELS)
    price = sb.PrivacyBudget(0.5, 1e-6)
    model = _model(n_teachers=20, **price.to_json(), ledger=ledger).fit(X, y, **ALONE)
    records = {"n_teachers": 20, **price.to_json(), "random_state": 0, "ledger": ledger}
    about = {"X_public": X[:100] + 0.01, "classes": [0, 1]}
    replaced = sb.PATEClassifier(relation="replace-one", **records).fit(X, y, **about)
    assert ledger.spent().epsilon == 1.0
    for fitted, unit in ((model, "label"), (replaced, "record")):
        assert fitted.certificate_["unit"] == unit
        assert fitted.certificate_["composition"]["unit"] == "label"
        assert sb.verify_certificate(fitted.certificate_).ok
    with pytest.raises(sb.LedgerError, match="would promise neither"):
        sb.PATEClassifier(**records).fit(X, y, **about)
    for terms in ({"relation": "replace-one"}, {}, {"unit": "user"}):
        other = sb.Ledger.in_memory(dataset="d", budget=price, **terms)
        with pytest.raises(sb.LedgerError, match="would promise neither"):
            _model(**price.to_json(), n_teachers=20, ledger=other).fit(X, y, **ALONE)
        assert other.history() == []


@pytest.mark.parametrize(
    ("settings", "change", "word"),
    [
        ({}, {"dropped": 1.0}, "dropped is 1 of 300"),
        ({}, {"dropped": 0.001}, "drop at least one label"),
        ({"n_teachers": 151}, {}, "151; it must be at most n_records, 150, as every teacher needs"),
        ({"n_queries": 151}, {}, "n_queries is 151"),
        ({}, {"y": np.full(300, 7)}, "not among the declared classes"),
    ],
)
def test_nonsense_is_refused_before_anything_is_spent(settings, change, word):
    X, y = _task(300, 9)
    ledger = sb.Ledger.in_memory(dataset="d", budget=BUDGET, **LABELS)
    given = {"X": X, "y": y, **ALONE, **change}
    with pytest.raises(sb.SecretBallotError, match=word):
        _model(ledger=ledger, **settings).fit(**given)
    assert ledger.history() == []


MOMENTS = sb.PrivacyBudget(epsilon=1.0, delta=1e-5)


def plane(n=2000, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def second_look(document):
    second.certificate._check_mechanism(document)
    second.certificate._check_account(document)


def fitted(X, y, **settings):
    given = of_fit(settings)
    model = sb.RecordMomentsClassifier(**{**MOMENTS.to_json(), **settings})
    return model.fit(X, y, **ALONE, **given)


@pytest.mark.filterwarnings("ignore:delta is 0.1")
def test_without_noise_the_model_is_the_likelihood_of_the_records(monkeypatch):
    X, _ = plane(3000)
    rng = np.random.default_rng(2)
    y = (rng.random(3000) < 1 / (1 + np.exp(-1.5 * X[:, 0] + X[:, 1]))).astype(int)
    monkeypatch.setattr(releasing, "noise_source", lambda: ScriptedNoise([0] * 1000, exact=True))
    model = fitted(X, y, epsilon=50.0, delta=0.1)
    shares = model.predict_proba(X)[:, 1]
    coordinates = model.student_.basis.transform(X)
    plain = LogisticRegression(C=10, max_iter=2000).fit(coordinates, y)
    assert np.abs(shares - plain.predict_proba(coordinates)[:, 1]).mean() < 0.03


def test_a_replaced_label_moves_twice_the_bound_and_nothing_is_marked():
    document = fitted(*plane()).certificate_
    assert (document["unit"], document["relation"]) == ("label", "replace-one")
    assert any("only the labels are private" in line for line in document["not_protected"])
    assert any("in its place" in line for line in document["assumptions"])
    mechanism, event = stated(document), document["events"][0]
    assert event["squared_sensitivity"] == 4 * mechanism["bound"] ** 2
    assert (mechanism["marks"], mechanism["n_stages"]) == ([], 1)


def test_the_account_is_about_labels_and_a_student_may_learn_from_the_release():
    X, y = plane()
    terms = {"dataset": "clicks", "unit": "label", "relation": "replace-one"}
    ledger = sb.Ledger.in_memory(budget=MOMENTS, **terms)
    one, two = (fitted(X, y, ledger=ledger, request="a") for _ in range(2))
    assert one.certificate_ == two.certificate_
    assert ledger.releases() == 1
    with pytest.raises(ParameterError, match="begun with other"):
        fitted(X[:-1], y[:-1], ledger=ledger, request="a")
    records = sb.Ledger.in_memory(dataset="clicks", budget=MOMENTS, relation="replace-one")
    with pytest.raises(LedgerError):
        fitted(X, y, ledger=records)
    assert records.releases() == 0
    other = fitted(X, y, student=LogisticRegression())
    assert isinstance(other.student_, LogisticRegression)
    assert other.score(X, y) > 0.9
    weighted = fitted(X, y, class_weight={0: 1.0, 1: 9.0})
    assert sb.verify_certificate(weighted.certificate_).ok
    second_look(weighted.certificate_)
    assert weighted.predict(X).mean() > one.predict(X).mean()


def test_what_belongs_to_private_features_is_refused():
    X, y = plane(100)
    model = sb.RecordMomentsClassifier(**MOMENTS.to_json())
    given = {"X_public": np.zeros((5, 3)), "units": [1] * 100, "labels": ["a"]}
    for name, value in given.items():
        with pytest.raises(ParameterError, match=f"{name} does not go with"):
            model.fit(X, y, **ALONE, **{name: value})
