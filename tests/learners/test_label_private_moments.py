"""Record moments of public features: the labels alone are private; everything else is exact."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import secretballot as sb
import secretballot_verify as second
from exact_games.worlds import ScriptedNoise
from secretballot.core import releasing
from secretballot.exceptions import LedgerError, ParameterError
from secretballot.report.certificate.models import stated
from sessions import of_fit

BUDGET = sb.PrivacyBudget(epsilon=1.0, delta=1e-5)


def plane(n=2000, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def second_look(document):
    second.certificate.check_mechanism(document)
    second.certificate.check_account(document)


def fitted(X, y, classes=(0, 1), **settings):
    given = of_fit(settings)
    model = sb.RecordMomentsClassifier(**{**BUDGET.to_json(), **settings})
    return model.fit(X, y, classes=list(classes), public_features=True, **given)


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
    ledger = sb.Ledger.in_memory(budget=BUDGET, **terms)
    one, two = (fitted(X, y, ledger=ledger, request="a") for _ in range(2))
    assert one.certificate_ == two.certificate_
    assert ledger.releases() == 1
    with pytest.raises(ParameterError, match="begun with other"):
        fitted(X[:-1], y[:-1], ledger=ledger, request="a")
    records = sb.Ledger.in_memory(dataset="clicks", budget=BUDGET, relation="replace-one")
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
    model = sb.RecordMomentsClassifier(**BUDGET.to_json())
    given = {"X_public": np.zeros((5, 3)), "units": [1] * 100, "labels": ["a"]}
    for name, value in given.items():
        with pytest.raises(ParameterError, match=f"{name} does not go with"):
            model.fit(X, y, classes=[0, 1], public_features=True, **{name: value})
