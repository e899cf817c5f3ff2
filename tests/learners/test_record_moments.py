"""RecordMomentsClassifier: useful, bounded, indifferent to odd records, and certified."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

import secretballot as sb
import secretballot_verify as second
from public_data import ADULT_CLASSES, ADULT_TARGET, adult
from reference_data import reference
from secretballot.bases.integer_model import IntegerModel, model_of_stages
from secretballot.exceptions import DataError, ParameterError
from secretballot.report.certificate.terms import stated
from sessions import of_fit

BUDGET = sb.PrivacyBudget(epsilon=1.0, delta=1e-5)


def plane(n: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def fitted(X: Any, y: Any, X_public: Any, classes: Any = (0, 1), **settings: Any) -> Any:
    given = of_fit(settings)
    model = sb.RecordMomentsClassifier(**{**BUDGET.to_json(), **settings})
    return model.fit(X, y, X_public=X_public, classes=list(classes), **given)


@pytest.mark.slow
def test_adult_at_small_epsilon_beats_what_voting_reached() -> None:
    data = reference(adult)
    table, other = (part.drop(columns=ADULT_TARGET) for part in (data.train, data.test))
    y, told = (np.asarray(part[ADULT_TARGET]) for part in (data.train, data.test))
    order = np.random.default_rng(0).permutation(len(other))[:6000]
    pool, held_out = order[:3000], order[3000:]
    model = fitted(table, y, other.iloc[pool], ADULT_CLASSES, epsilon=0.5, delta=1e-5)
    # 83.5 is the best that votes reached at this epsilon; 1.3 points are two standard errors
    assert np.mean(model.predict(other.iloc[held_out]) == told[held_out]) > 0.835
    shares = model.predict_proba(other.iloc[held_out])
    assert log_loss(told[held_out], shares, labels=list(ADULT_CLASSES)) < 0.38


def test_a_released_model_is_a_function_of_the_certificate_and_the_pool() -> None:
    X, y = plane()
    model = fitted(X[:2000], y[:2000], X[2000:])
    public = model.certificate_["public"]
    basis = sb.bases.TableBasis().fit(X[2000:])
    stages = [np.array(one).reshape(-1, 1) for one in public["weights"]]
    terms = public["covered_only"], basis.rows(X[2000:]), basis.levels_
    made = model_of_stages(IntegerModel, stages, *terms)
    again = sb.MomentsStudent(basis, made.weights, [0, 1], before=made.before)
    assert (again.predict_proba(X) == model.predict_proba(X)).all()
    assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert model.released_.n_teachers == 0
    assert (model.released_.label_values == model.predict(X[2000:])).all()


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_both_verifiers_confirm_the_certificate(relation: str) -> None:
    X, y = plane()
    labels = np.array(["no", "yes", "maybe"])[y + (X[:, 2] > 1) * (2 - y)]
    for classes, told in (((0, 1), y), (("maybe", "no", "yes"), labels)):
        model = fitted(X[:2000], told[:2000], X[2000:], classes, relation=relation)
        checks = sb.verify_certificate(model.certificate_).checks
        assert [check.detail for check in checks if not check.ok] == []
        assert "event" in second.certificate.check_mechanism(model.certificate_)
        assert second.priced("price", model.certificate_).verdict == second.CONFIRMED


@pytest.mark.parametrize("kind", ["classes", "labels", "number"])
def test_users_are_bounded_together_and_named(kind: str) -> None:
    X, y = plane()
    ledger = sb.Ledger.in_memory(dataset="people", budget=BUDGET, unit="user")
    given: dict[str, Any] = {"units": np.arange(2000) // 2, "unit_name": "patient"}
    model: Any = sb.RecordMomentsClassifier(
        epsilon=BUDGET.epsilon, delta=BUDGET.delta, ledger=ledger
    )
    if kind == "number":
        model = sb.RecordMomentsRegressor(epsilon=BUDGET.epsilon, delta=BUDGET.delta, ledger=ledger)
        given["bounds"] = (0, 1)
    elif kind == "labels":
        y, given["labels"] = y[:, None], ["high"]
    else:
        given["classes"] = [0, 1]
    model.fit(X[:2000], y[:2000], X_public=X[2000:], **given)
    assert (model.certificate_["unit"], model.certificate_["unit_column"]) == ("user", "patient")
    assert model.score(X, y) > (0.4 if kind == "number" else 0.85)


def test_replacing_a_record_has_twice_the_sensitivity_and_states_the_number() -> None:
    X, y = plane()
    model = fitted(X[:2000], y[:2000], X[2000:], relation="replace-one")
    mechanism = stated(model.certificate_)
    event = model.certificate_["events"][0]
    assert event["squared_sensitivity"] == 4 * mechanism["bound"] ** 2
    assert (mechanism["n_records"], mechanism["marks"]) == (2000, ["uncovered"])


def test_the_number_of_records_is_released_with_noise() -> None:
    X, y = plane(6000)
    counted = stated(fitted(X[:5000], y[:5000], X[5000:]).certificate_)
    found = np.mean([sums[-2] for sums in counted["values"]]) / counted["mark_weight"]
    assert found != 5000
    assert abs(found - 5000) < 6 * counted["sigma"] / counted["mark_weight"]


def test_one_odd_record_changes_no_other_and_raises_nothing() -> None:
    X, y = plane(1200)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    odd = [np.nan, np.inf, -np.inf, 1e308, -1e-308]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in odd:
            private = frame[:1000].copy()
            private.iloc[7, 1] = value
            fitted(private, y[:1000], frame[1000:])


def test_a_known_request_costs_nothing_and_goes_on(tmp_path: Path) -> None:
    X, y = plane()
    ledger = sb.Ledger(tmp_path / "ledger", dataset="people", budget=BUDGET)
    one, two = (fitted(X[:2000], y[:2000], X[2000:], ledger=ledger, request="a") for _ in range(2))
    assert one.certificate_ == two.certificate_
    assert (one.predict(X) == two.predict(X)).all()
    assert ledger.releases() == 1
    with pytest.raises(sb.BudgetError):
        fitted(X[:2000], y[:2000], X[2000:], ledger=ledger)
    with pytest.raises(ParameterError, match="begun with other"):
        fitted(X[:2000], y[:2000], X[1990:], ledger=ledger, request="a")


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"epsilon": None}, ParameterError, "epsilon is missing"),
        ({"epsilon": 1.0, "delta": 0.0}, ParameterError, "delta is 0"),
        ({"n_stages": 0}, ParameterError, "n_stages"),
        ({"n_stages": 11}, ParameterError, "more than 10"),
        ({"relation": "other"}, ParameterError, "relation"),
        ({"basis": LogisticRegression()}, ParameterError, "or one of secretballot.bases"),
        ({"relation": "replace-one", "units": [1] * 100}, ParameterError, "single records"),
        ({"X_public": None}, DataError, "X_public is missing"),
        ({"X_public": np.zeros((5, 3))}, DataError, "too few or all alike"),
        ({"X_public": np.zeros((5, 2))}, DataError, "must have the same"),
        ({"classes": None}, (ParameterError, DataError), "classes"),
        ({"y": np.full(100, 7)}, DataError, "y"),
    ],
)
def test_bad_input_gets_a_sentence_and_spends_nothing(
    settings: dict[str, Any], error: Any, words: str
) -> None:
    X, y = plane(200)
    given = {"X_public": X[100:], "classes": [0, 1], "units": None, "y": y[:100], **settings}
    fit = {key: given.pop(key) for key in ("X_public", "classes", "units", "y")}
    ledger = sb.Ledger.in_memory(dataset="people", budget=BUDGET)
    if settings.get("relation") == "replace-one":
        ledger = None
    model = sb.RecordMomentsClassifier(**{**BUDGET.to_json(), "ledger": ledger, **given})
    with pytest.raises(error, match=words):
        model.fit(X[:100], **fit)
    assert ledger is None or ledger.releases() == 0


def skewed_adult(kept: Any) -> tuple[Any, Any]:
    """Return the model of a pool of which some points alone are kept, and its accuracy."""
    data = reference(adult)
    table, y = data.train.drop(columns=ADULT_TARGET), np.asarray(data.train[ADULT_TARGET])
    order = np.random.default_rng(0).permutation(len(table))
    private, pool, held_out = np.split(order, [12_000, 17_000])
    pool = pool[kept(table.iloc[pool]).to_numpy()]
    model = sb.RecordMomentsClassifier(epsilon=1.0, delta=1e-5)
    model.fit(
        table.iloc[private], y[private], X_public=table.iloc[pool], classes=list(ADULT_CLASSES)
    )
    return model, np.mean(model.predict(table.iloc[held_out]) == y[held_out])


@pytest.mark.parametrize(
    ("kept", "uncovered", "least"),
    [
        pytest.param(lambda table: table.age > 45, 0.72, 0.79, id="over 45"),
        *(
            pytest.param(*one, marks=pytest.mark.slow)
            for one in (
                (lambda table: table.age > 0, 0.03, 0.84),
                (lambda table: table.sex == "Male", 0.36, 0.82),
            )
        ),
    ],
)
def test_a_pool_that_misses_part_of_the_world_is_told_and_does_not_ruin_the_model(
    kept: Any, uncovered: float, least: float
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model, accuracy = skewed_adult(kept)
    told = [str(one.message) for one in caught if "do not show" in str(one.message)]
    assert model.coverage_.is_poor == bool(told) == (uncovered > 0.1)
    # six standard errors of the noise, and what a pool of another seed may leave out
    assert abs(model.coverage_.uncovered - uncovered) < 6 * model.coverage_.standard_error + 0.02
    # always naming one class is right for .76
    assert accuracy > least
