"""Record moments of classes, of several labels and of a number: useful, bounded, indifferent to odd
records, and certified."""

import functools
import pickle
import warnings
from contextlib import suppress
from decimal import Decimal
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import secretballot as sb
import secretballot_verify as second
from public_data import ADULT_CLASSES, ADULT_TARGET, adult
from reference_data import reference
from secretballot.bases import KernelBasis, TableBasis
from secretballot.bases.integer_model import (
    PROBABILITY_UNIT,
    IntegerLabels,
    IntegerModel,
    model_of_stages,
)
from secretballot.exceptions import DataError, ParameterError
from secretballot.learners.moment_stages import MomentTarget
from secretballot.report.certificate_models import stated
from secretballot.report.student_export import converted_student
from sessions import of_fit

BUDGET = sb.PrivacyBudget(epsilon=1.0, delta=1e-5)
NAMES = ["cough", "fever"]
RANGE = (-5.0, 5.0)
#: What is declared of each kind of target.
DECLARED = {
    "classes": {"classes": [0, 1]},
    "labels": {"labels": NAMES},
    "number": {"bounds": RANGE},
}
RELATIONS = ["add-remove", "replace-one"]


def table(kind="classes", n=3000, seed=0):
    """Return points and what is learnt of them."""
    X = np.random.default_rng(seed).normal(size=(n, 3))
    if kind == "number":
        return X, 1 + X[:, 0] - X[:, 1]
    if kind == "labels":
        return X, np.column_stack([X[:, 0] > 0, X[:, 1] > 0.5]).astype(int)
    return X, (X[:, 0] + X[:, 1] > 0).astype(int)


def fitted(X, y, X_public, kind="classes", **settings):
    given = DECLARED[kind] | of_fit(settings)
    for name in ("classes", "labels", "bounds"):
        if name in settings:
            given[name] = settings.pop(name)
    learner = sb.RecordMomentsRegressor if kind == "number" else sb.RecordMomentsClassifier
    return learner(**{**BUDGET.to_json(), **settings}).fit(X, y, X_public=X_public, **given)


def first_part(kind="classes", **settings):
    """Return the model of the first two thousand points, the others being public."""
    X, y = table(kind)
    return fitted(X[:2000], y[:2000], X[2000:], kind, **settings)


of_kind = functools.cache(first_part)


def test_a_pool_that_misses_part_of_the_world_is_told_and_does_not_ruin_the_model():
    rows = reference(adult).train
    order = np.random.default_rng(0).permutation(len(rows))
    private, pool, held_out = np.split(order, [12_000, 15_000])
    X, y = rows.drop(columns=ADULT_TARGET), np.asarray(rows[ADULT_TARGET])
    pool = pool[(X.iloc[pool].age > 45).to_numpy()]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fitted(X.iloc[private], y[private], X.iloc[pool], classes=list(ADULT_CLASSES))
    told = [str(one.message) for one in caught if "do not show" in str(one.message)]
    assert model.coverage_.is_poor
    assert told
    # six standard errors of the noise, and what a pool of another seed may leave out
    assert abs(model.coverage_.uncovered - 0.72) < 6 * model.coverage_.standard_error + 0.02
    # always naming one class is right for .76
    assert np.mean(model.predict(X.iloc[held_out]) == y[held_out]) > 0.79


@pytest.mark.parametrize(
    ("kind", "relation"),
    [*zip(DECLARED, [*RELATIONS, "add-remove"], strict=True), ("three classes", "replace-one")],
)
def test_both_verifiers_confirm_the_certificate(kind, relation):
    if kind == "three classes":
        X, y = table()
        told = np.array(["no", "yes", "maybe"])[y + (X[:, 2] > 1) * (2 - y)]
        named = {"classes": ["maybe", "no", "yes"], "relation": relation}
        document = fitted(X[:2000], told[:2000], X[2000:], **named).certificate_
    else:
        made = of_kind(kind) if relation == "add-remove" else first_part(kind, relation=relation)
        document = made.certificate_
    assert [one.detail for one in sb.verify_certificate(document).checks if not one.ok] == []
    assert "event" in second.certificate._check_mechanism(document)
    assert second._priced("price", document).verdict == second.CONFIRMED
    mechanism, replaced = stated(document), relation == "replace-one"
    factor = 4 if replaced else 1
    assert document["events"][0]["squared_sensitivity"] == factor * mechanism["bound"] ** 2
    if replaced:
        assert (mechanism["n_records"], mechanism["marks"]) == (2000, ["uncovered"])


@pytest.mark.parametrize("kind", DECLARED)
def test_the_student_follows_from_the_certificate_and_the_pool_and_travels(kind):
    X, y = table(kind)
    model = of_kind(kind)
    public, basis = model.certificate_["public"], TableBasis().fit(X[2000:])
    n_columns = len(NAMES) if kind == "labels" else 1
    stages = [np.array(one).reshape(-1, n_columns) for one in public["weights"]]
    weights, before, named = stages[-1], None, {"bounds": RANGE}
    if kind != "number":
        terms = public["covered_only"], basis.rows(X[2000:]), basis.levels_
        made = model_of_stages(IntegerLabels if kind == "labels" else IntegerModel, stages, *terms)
        weights, before = made.weights, made.before
        named = {"labels": NAMES} if kind == "labels" else {"classes": [0, 1]}
    again = sb.MomentsStudent(basis, weights, **named, before=before)
    assert (again.predict(X) == model.predict(X)).all()
    for back in (pickle.loads(pickle.dumps(model)), converted_student(model.student_)):
        assert (back.predict(X) == model.predict(X)).all()
    assert not hasattr(clone(model), "student_")
    shares = model.student_.column_shares(X[2000:])
    assert shares[2] < 0.1  # the third column says nothing
    assert shares.sum() == pytest.approx(1)
    if kind == "number":
        assert model.score(X, y) > 0.8
        return
    chances = model.predict_proba(X)
    assert (again.predict_proba(X) == chances).all()
    assert np.allclose(np.exp(model.predict_log_proba(X)), chances)
    if kind == "classes":
        assert model.released_.n_teachers == 0
        assert (model.released_.label_values == model.predict(X[2000:])).all()
        return
    assert model.predict(X).shape == chances.shape == y.shape
    assert (model.predict(X) == (chances > 0.5)).all()
    assert (model.predict(X) == y).mean() > 0.9
    assert model.score(X, y) == (model.predict(X) == y).all(axis=1).mean()
    assert model.labels_.tolist() == NAMES
    assert [one.tolist() for one in model.classes_] == [[0, 1], [0, 1]]


def test_the_number_of_records_is_released_with_noise():
    counted = stated(of_kind("classes").certificate_)
    found = np.mean([sums[-2] for sums in counted["values"]]) / counted["mark_weight"]
    assert found != 2000
    assert abs(found - 2000) < 6 * counted["sigma"] / counted["mark_weight"]


def test_one_odd_record_or_target_raises_nothing_and_warns_of_nothing():
    X, y = table(n=900)
    numbers = table("number", 900)[1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frame, odd = pd.DataFrame(X, columns=["a", "b", "c"]), numbers[:600].astype(object)
        frame.iloc[:5, 1] = np.nan, np.inf, -np.inf, 1e308, -1e-308
        fitted(frame[:600], y[:600], frame[600:])
        odd[:6] = np.nan, np.inf, -np.inf, 1e308, None, "many"
        fitted(X[:600], odd, X[600:], "number")


def test_numbers_are_read_one_by_one_by_fixed_rules():
    target, whole = MomentTarget.of_number((0, 10)), PROBABILITY_UNIT

    def units_of(y, n):
        return target.in_units(target.read(y, n))

    cells = [0, 10, 2.5, -3, 1e300, np.inf, -np.inf, True, np.int8(5), Decimal(5)]
    read = [0, whole, whole // 4, 0, whole, whole, 0, round(whole / 10), whole // 2, whole // 2]
    cells += ["5", b"2.5", "True", "-inf", 5 + 0j, 10**400]
    read += [whole // 2, whole // 4, round(whole / 10), 0, whole // 2, whole]
    # what is no number is absent
    cells += [np.nan, None, "five", "nan", 1j, pd.NA, Decimal("sNaN"), [5], pd.Timestamp(0)]
    read += [-1] * 9
    found = units_of(cells, len(cells)).ravel().tolist()
    assert found == read
    assert [units_of([cell], 1).item() for cell in cells] == found
    assert units_of(np.array(cells, dtype=object), len(cells)).ravel().tolist() == found
    assert units_of(pd.Series(cells, dtype=object), len(cells)).ravel().tolist() == found
    numbers = np.array([[1.0], [np.nan]])
    assert units_of(numbers, 2).shape == units_of(pd.DataFrame(numbers), 2).shape == (2, 1)
    for kind in ("M8[ns]", "M8[s]", "m8[ns]"):  # points in time are no targets
        times = np.array([1, 2], dtype=kind)
        for y in (times, pd.Series(times), list(times)):
            assert units_of(y, 2).ravel().tolist() == [-1, -1]


def from_file(cells):
    return pd.read_csv(StringIO("\n".join(["y", *map(str, cells), ""])))["y"]


@pytest.mark.parametrize("cells", [[1.25, 2.5, -3e-7], [1, 0, 2], [True, False], ["1", "2.5"]])
def test_one_odd_target_changes_no_other_however_it_is_stored(cells):
    # numpy and pandas make texts, complex numbers or objects of all targets because of one
    target = MomentTarget.of_number((0, 10))
    stores = (
        *(np.array, pd.Series, from_file, lambda given: pd.Series(given, dtype="category")),
        lambda given: pd.Series(given).convert_dtypes(),
    )
    for store in stores:
        alone = target.read(store(cells), len(cells)).ravel().tolist()
        assert alone[0] > 0
        for odd in ("unknown", None, 1j, True, "1e999", pd.NA, 10**400):
            # what pandas before 3.1 cannot store
            with suppress(OverflowError, TypeError, np.exceptions.ComplexWarning):
                beside = store([*cells, odd])
                found = target.read(beside, len(cells) + 1).ravel().tolist()
                assert found[:-1] == alone, odd


def test_a_table_of_labels_is_read_alike_in_every_form():
    target, (_, y) = MomentTarget.of_labels(NAMES), table("labels", 50)
    forms = [y, y.tolist(), y.astype(bool), y.astype(float), sparse.csr_matrix(y), [*y]]
    forms.append(pd.DataFrame(y, columns=NAMES))
    for form in forms:
        assert (target.in_units(target.read(form, 50)) == y * PROBABILITY_UNIT).all()


class Together(KernelBasis):
    """Of another hand: it may look at all rows that it is given."""


@pytest.mark.parametrize(
    ("kind", "settings", "error", "words"),
    [
        ("classes", {"epsilon": None}, ParameterError, "epsilon is missing"),
        ("classes", {"epsilon": 1.0, "delta": 0.0}, ParameterError, "delta is 0"),
        ("classes", {"n_stages": 0}, ParameterError, "n_stages"),
        ("classes", {"n_stages": 11}, ParameterError, "more than 10"),
        ("classes", {"relation": "replace-one", "units": [1] * 100}, ParameterError, "single rec"),
        ("classes", {"basis": LogisticRegression()}, ParameterError, "or one of secretballot.bas"),
        ("classes", {"basis": Together()}, ParameterError, "basis is"),
        ("classes", {"X_public": np.zeros((5, 3))}, DataError, "too few or all alike"),
        ("labels", {"labels": None}, ParameterError, "classes is missing"),
        ("labels", {"labels": ["a", "a"]}, ParameterError, "distinct names"),
        ("labels", {"labels": ["a", "b", "c"]}, DataError, "has 2 columns; give one for each"),
        ("labels", {"y": np.zeros((99, 2))}, DataError, "has 99 targets"),
        ("labels", {"y": np.full((100, 2), 2)}, DataError, "not among the declared"),
        ("labels", {"y": [[0, 1]] * 99 + [[0]]}, DataError, "no table"),
        ("labels", {"y": pd.DataFrame(np.zeros((100, 2)))}, DataError, "are not the labels"),
        ("labels", {"student": LogisticRegression()}, ParameterError, "student does not go with"),
        ("labels", {"class_weight": "balanced"}, ParameterError, "class_weight does not go with"),
        ("number", {"bounds": None}, ParameterError, "bounds is None"),
        ("number", {"bounds": (1, 2, 3)}, ParameterError, "give two public numbers"),
        ("number", {"bounds": (2, 1)}, ParameterError, "the smaller one first"),
        ("number", {"bounds": (-1e308, 1e308)}, ParameterError, "the smaller one first"),
        ("number", {"bounds": (0, np.inf)}, ParameterError, "bounds"),
        ("number", {"y": None}, DataError, "y is None"),
        ("number", {"y": np.zeros(99)}, DataError, "has 99 targets"),
        ("number", {"y": np.zeros((100, 2))}, DataError, "as one column"),
    ],
)
def test_bad_input_gets_a_sentence_and_spends_nothing(kind, settings, error, words):
    X, y = table(kind, 200)
    given = {"X_public": X[100:], "y": y[:100], **settings}
    told, pool = given.pop("y"), given.pop("X_public")
    ledger = sb.Ledger.in_memory(dataset="people", budget=BUDGET)
    with pytest.raises(error, match=words):
        fitted(X[:100], told, pool, kind, ledger=ledger, **given)
    assert ledger.releases() == 0
