"""Record moments of several labels: every label learnt, one bound and one price for all."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import secretballot as sb
from public_data import ADULT_CLASSES, ADULT_TARGET, adult
from reference_data import reference
from secretballot.bases import TableBasis
from secretballot.bases.integer_model import PROBABILITY_UNIT, IntegerLabels, model_of_stages
from secretballot.exceptions import DataError, ParameterError
from secretballot.learners.moments.stages import MomentTarget
from secretballot.report.certificate.build import certificate_digest
from secretballot.report.certificate.terms import stated
from secretballot.report.student.export import converted_student
from sessions import of_fit

BUDGET = sb.PrivacyBudget(epsilon=1.0, delta=1e-5)
NAMES = ["cough", "fever"]


def halves(n: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5]).astype(int)


def fitted(X: Any, y: Any, X_public: Any, labels: Any = NAMES, **settings: Any) -> Any:
    given = of_fit(settings)
    model = sb.RecordMomentsClassifier(**{**BUDGET.to_json(), **settings})
    return model.fit(X, y, X_public=X_public, labels=labels, **given)


@pytest.mark.slow
def test_every_label_of_a_real_table_is_learnt() -> None:
    table = reference(adult).train
    y = pd.DataFrame(
        {
            "rich": table[ADULT_TARGET] == ADULT_CLASSES[1],
            "married": table["marital-status"].astype(str) == "Married-civ-spouse",
            "man": table["sex"].astype(str) == "Male",
        }
    ).astype(int)
    X = table.drop(columns=[ADULT_TARGET, "marital-status", "sex", "relationship"])
    private, pool, held_out = np.split(
        np.random.default_rng(0).permutation(len(X)), [18_000, 21_000]
    )
    model = fitted(X.iloc[private], y.iloc[private], X.iloc[pool], list(y), epsilon=0.5, delta=1e-5)
    right = (model.predict(X.iloc[held_out]) == y.iloc[held_out].to_numpy()).mean(axis=0)
    # without privacy .840, .728, .747; the larger of both sides .757, .544, .666
    assert (right > [0.815, 0.695, 0.72]).all()
    shares = model.predict_proba(X.iloc[held_out])
    assert np.abs(shares.mean(axis=0) - y.iloc[held_out].to_numpy().mean(axis=0)).max() < 0.03
    drowned = fitted(
        X.iloc[private],
        y.iloc[private],
        X.iloc[pool],
        list(y),
        epsilon=0.005,
        delta=1e-5,
    )
    wrong = (drowned.predict(X.iloc[held_out]) == y.iloc[held_out].to_numpy()).mean(axis=0)
    assert (wrong < right).all()


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_the_verifier_confirms_the_certificate_and_finds_forgeries(relation: str) -> None:
    X, y = halves()
    document = fitted(X[:2000], y[:2000], X[2000:], relation=relation).certificate_
    assert [one.detail for one in sb.verify_certificate(document).checks if not one.ok] == []
    mechanism, public = stated(document), document["public"]
    assert mechanism["labels"] == NAMES
    factor = 4 if relation == "replace-one" else 1
    assert document["events"][0]["squared_sensitivity"] == factor * mechanism["bound"] ** 2
    for change in (
        {"labels": ["cough", "cough"]},
        {"labels": ["cough", "fever", "ache"]},
        {"labels": []},
        {"labels": [1, 2]},
        {"method": "record-moments-of-a-number"},
        {"bound": mechanism["bound"]},
        {"weights": mechanism["weights"][1:]},
    ):
        forged = {**document, "public": {**public, **change}}
        forged["digest"] = certificate_digest(forged)
        assert not sb.verify_certificate(forged).ok, change
    forged = {**document, "released": {**document["released"], "queries": 3, "answered": 3}}
    forged["digest"] = certificate_digest(forged)
    assert not sb.verify_certificate(forged).ok


def test_the_student_follows_from_the_certificate_and_the_pool_and_travels(tmp_path: Path) -> None:
    X, y = halves()
    model = fitted(X[:2000], y[:2000], X[2000:])
    public, basis = model.certificate_["public"], TableBasis().fit(X[2000:])
    stages = [np.array(one).reshape(-1, 2) for one in public["weights"]]
    terms = public["covered_only"], basis.rows(X[2000:]), basis.levels_
    made = model_of_stages(IntegerLabels, stages, *terms)
    again = sb.MomentsStudent(basis, made.weights, labels=NAMES, before=made.before)
    assert (again.predict(X) == model.predict(X)).all()
    assert model.predict(X).shape == model.predict_proba(X).shape == y.shape
    assert (model.predict(X) == (model.predict_proba(X) > 0.5)).all()
    assert (model.predict(X) == y).mean() > 0.9
    assert model.score(X, y) == (model.predict(X) == y).all(axis=1).mean()
    for back in (
        pickle.loads(pickle.dumps(model)),
        converted_student(model.student_),
    ):
        assert (back.predict(X) == model.predict(X)).all()
    assert not hasattr(clone(model), "student_")
    assert model.labels_.tolist() == NAMES
    assert [one.tolist() for one in model.classes_] == [[0, 1], [0, 1]]
    # the third column says nothing of either label
    assert model.student_.column_shares(X[2000:])[2] < 0.1
    assert sb.verify_certificate(sb.write_release(tmp_path / "release", model.released_).path).ok


def test_a_table_of_labels_is_read_alike_in_every_form() -> None:
    target, (_, y) = MomentTarget.of_labels(NAMES), halves(50)
    forms = [y, y.tolist(), y.astype(bool), y.astype(float), sparse.csr_matrix(y), [*y]]
    forms.append(pd.DataFrame(y, columns=NAMES))
    for form in forms:
        assert (target.in_units(target.read(form, 50)) == y * PROBABILITY_UNIT).all()


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"labels": None}, ParameterError, "classes is missing"),
        ({"labels": ["a", "a"]}, ParameterError, "distinct names"),
        ({"labels": ["a", "b", "c"]}, DataError, "has 2 columns; give one for each of the 3"),
        ({"y": np.zeros((99, 2))}, DataError, "has 99 targets"),
        ({"y": np.full((100, 2), 2)}, DataError, "not among the declared"),
        ({"y": [[0, 1]] * 99 + [[0]]}, DataError, "no table; expected a 2D array"),
        ({"y": pd.DataFrame(np.zeros((100, 2)))}, DataError, "are not the labels"),
        ({"student": LogisticRegression()}, ParameterError, "student does not go with labels"),
        ({"class_weight": "balanced"}, ParameterError, "class_weight does not go with labels"),
    ],
)
def test_bad_input_gets_a_sentence_and_spends_nothing(
    settings: dict[str, Any], error: Any, words: str
) -> None:
    X, y = halves(200)
    given = {"X_public": X[100:], "y": y[:100], "labels": NAMES, **settings}
    ledger = sb.Ledger.in_memory(dataset="people", budget=BUDGET)
    told, pool, labels = (given.pop(key) for key in ("y", "X_public", "labels"))
    with pytest.raises(error, match=words):
        fitted(X[:100], told, pool, labels, ledger=ledger, **given)
    assert ledger.releases() == 0
