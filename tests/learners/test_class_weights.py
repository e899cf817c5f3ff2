"""Rare classes: decisions that count them for more, after the release and for no price."""

import contextlib

import numpy as np
import pytest
from made_stages import stages_of

import secretballot as sb
from secretballot.bases import TableBasis
from secretballot.bases.integer_model import (
    CONSTANT,
    PROBABILITY_UNIT,
    UNIT,
    WEIGHT_UNIT,
    IntegerModel,
)
from secretballot.exceptions import CertificateError, ParameterError
from secretballot.learners.moment_stages import weights_of_model
from secretballot.report.certificate_models import stated
from secretballot.report.verification import verify_certificate
from sessions import of_fit

BUDGET = sb.PrivacyBudget(2.0, 1e-5)


def rows(count, seed, n_classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(count, 3))
    logit = 2 * X[:, 0] - 5.0
    y = (rng.random(count) < 1 / (1 + np.exp(-logit))).astype(int)
    if n_classes == 3:
        y = np.where((y == 0) & (X[:, 1] > 0.5), 2, y)
    return X, y


def fitted(n_classes=2, seed=0, **settings):
    X, y = rows(6000, seed, n_classes)
    X_public, _ = rows(800, seed + 1)
    given = of_fit(settings)
    model = sb.RecordMomentsClassifier(**BUDGET.to_json(), **settings)
    return model.fit(X, y, X_public=X_public, classes=range(n_classes), **given)


@pytest.fixture(scope="module")
def plain():
    return fitted()


@pytest.fixture(scope="module")
def balanced():
    return fitted(class_weight="balanced")


def recall(model, cls=1, n_classes=2):
    X, y = rows(4000, 99, n_classes)
    return float(np.mean(model.predict(X)[y == cls] == cls))


# In eight fits, least, mean, deviation, most. Two classes: as it is none; by "auto" .74, .80, .03,
# .84; balanced .79, .82, .02, .87. Three classes, by "auto": .59, .65, .04, .71.
def test_a_rare_class_is_found_where_decisions_are_balanced(plain, balanced):
    assert recall(plain) < 0.2
    assert recall(balanced) > 0.6
    assert recall(fitted(3, class_weight="auto"), 1, 3) > 0.4


def test_the_sums_and_the_price_do_not_know_of_weights_and_a_stored_answer_keeps_its_own(plain):
    ledger = sb.Ledger.in_memory(dataset="d", budget=sb.PrivacyBudget(4.0, 1e-4))
    kept = {"ledger": ledger, "request": "r"}
    weighted = fitted(class_weight={0: 1, 1: 9.0}, **kept)
    with pytest.raises(ParameterError, match="begun with other"):
        fitted(class_weight={0: 1.0, 1: 3.0}, **kept)
    again = fitted(class_weight={0: 1.0, 1: 9.0}, **kept)
    assert again.certificate_["digest"] == weighted.certificate_["digest"]
    one, two = plain.certificate_, weighted.certificate_
    assert one["events"] == two["events"]
    assert (one["epsilon"], one["delta"]) == (two["epsilon"], two["delta"])
    assert ledger.spent().epsilon == pytest.approx(2.0)
    assert "class_weights" not in one["public"]
    assert two["public"]["class_weights"] == [1.0, 9.0]
    assert verify_certificate(two).ok
    assert set(one["public"]) | {"class_weights"} == set(two["public"])


@pytest.mark.parametrize("given", ["balanced", {0: 1.0, 1: 9.0}])
def test_weights_multiply_the_odds_of_the_model_that_the_sums_fix(given, balanced):
    """Undone on the certificate, the weights leave the model that meets the released sums."""
    model = balanced if given == "balanced" else fitted(class_weight=given)
    mechanism, (X_public, _) = stated(model.certificate_), rows(800, 1)
    basis = TableBasis.suited_to(X_public).fit(X_public)
    pool = basis.rows(X_public)
    about = {"levels": basis.levels_, "expected_uncovered": mechanism["expected_uncovered"]}
    stages = stages_of(pool, 4, budget=BUDGET, **about)
    sums = [np.array(one) for one in model.certificate_["released"]["values"]]
    plain = stages.after(sums).fit.model
    assert isinstance(plain, IntegerModel)
    predicted = plain.probabilities(pool).mean(axis=0) / PROBABILITY_UNIT
    kind = "balanced" if given == "balanced" else [1.0, 9.0]
    weights = weights_of_model(kind, predicted, noise=0.0)
    assert mechanism["class_weights"] == pytest.approx(weights)
    moved = np.array(mechanism["weights"][-1]) - plain.weights.ravel()
    assert not moved[:-1].any()
    added = moved[-1] / WEIGHT_UNIT * CONSTANT / UNIT
    assert added == pytest.approx(np.log(weights[1] / weights[0]), abs=1e-4)


def test_balanced_weights_follow_from_what_the_model_says_of_the_pool(balanced):
    for kind, rare, noise, weights in (
        ("balanced", 0.01, 0.0, [1 / 1.98, 50.0]),
        ("balanced", 0.0, 0.0, [0.5, 5000.0]),
        ("balanced", 0.01, 0.02, [1 / 1.98, 10.0]),
        # where a class is ten times as frequent
        ("auto", 0.11, 0.0, [1.0, 1.0]),
        ("auto", 0.09, 0.0, [1 / 1.82, 1 / 0.18]),
        # which noise does not explain
        ("auto", 0.09, 0.03, [1 / 1.82, 1 / 0.18]),
        ("auto", 0.09, 0.04, [1.0, 1.0]),
    ):
        found = weights_of_model(kind, np.array([1 - rare, rare]), noise)
        assert found == pytest.approx(weights)
    share = balanced.predict_proba(rows(800, 1)[0]).mean(axis=0)
    # .31 to .37 in eight fits, mean .33, deviation .02
    assert 0.2 < share[1] < 0.5


# In eight fits none by "auto", and .000 to .038 of the points where balanced, mean .017; before
# noise was considered, .37.
def test_a_class_that_no_record_has_takes_nothing_from_the_others():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(3300, 2)), (rng.random(3300) < 0.45).astype(int)
    for weight in ("auto", "balanced"):
        model = sb.RecordMomentsClassifier(epsilon=1.0, delta=1e-5, class_weight=weight)
        model.fit(X[300:], y[300:], X_public=X[:300], classes=range(3))
        assert np.mean(model.predict(X) == 2) < 0.1


def test_bad_settings_cost_nothing():
    ledger, each = sb.Ledger.in_memory(dataset="d", budget=BUDGET), "each of the 2 declared classes"
    for given, words in (
        ("even", "class_weight is 'even'"),
        *((one, each) for one in ({0: 1.0}, {0: 1.0, 5: 2.0}, [1, 2])),
        *(({0: 1.0, 1: one}, f"class_weight is {one}") for one in (0, float("nan"))),
    ):
        with pytest.raises(ParameterError, match=words):
            fitted(ledger=ledger, class_weight=given)
    assert not ledger.history()


def test_a_certificate_with_other_weights_is_refused(balanced):
    certificate = balanced.certificate_
    for weights in ([1.0], [1.0, -2.0], [1.0, 0.0], "balanced", [1.0, True, 2.0]):
        forged = {**certificate, "public": {**certificate["public"], "class_weights": weights}}
        with contextlib.suppress(CertificateError):
            assert not verify_certificate(forged).ok, weights
