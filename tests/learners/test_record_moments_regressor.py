"""RecordMomentsRegressor: useful, bounded, indifferent to odd records, and certified."""

import pickle
import warnings
from contextlib import suppress
from decimal import Decimal
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Ridge

import secretballot as sb
from public_data import adult
from reference_data import reference
from secretballot.bases import TableBasis
from secretballot.bases.integer_model import PROBABILITY_UNIT
from secretballot.exceptions import DataError, ParameterError
from secretballot.learners.moments.stages import MomentTarget
from secretballot.report.certificate.terms import stated
from secretballot.report.student.export import converted_student
from sessions import of_fit

BUDGET = sb.PrivacyBudget(epsilon=1.0, delta=1e-5)
RANGE = (-5.0, 5.0)


def line(n: int = 3000, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, 1 + X[:, 0] - X[:, 1]


def fitted(X: Any, y: Any, X_public: Any, bounds: Any = RANGE, **settings: Any) -> Any:
    given = of_fit(settings)
    model = sb.RecordMomentsRegressor(**{**BUDGET.to_json(), **settings})
    return model.fit(X, y, X_public=X_public, bounds=bounds, **given)


@pytest.mark.slow
def test_on_a_real_table_it_comes_near_least_squares_without_privacy() -> None:
    table = reference(adult).train
    X, y = table.drop(columns="age"), table["age"].to_numpy(float)
    private, pool, held_out = np.split(
        np.random.default_rng(0).permutation(len(X)), [20_000, 26_000]
    )
    pool = pool[:3000]
    model = fitted(X.iloc[private], y[private], X.iloc[pool], (17, 90), epsilon=0.5, delta=1e-5)
    basis = TableBasis().fit(X.iloc[pool])
    plain = Ridge(alpha=1.0).fit(basis.transform(X.iloc[private]), y[private])
    best = plain.score(basis.transform(X.iloc[held_out]), y[held_out])
    found = model.score(X.iloc[held_out], y[held_out])
    assert best > 0.4
    assert best - 0.04 < found < best + 0.02
    # what the noise is for: at a hundredth of the budget far less is learnt
    drowned = fitted(X.iloc[private], y[private], X.iloc[pool], (17, 90), epsilon=0.005, delta=1e-5)
    assert drowned.score(X.iloc[held_out], y[held_out]) < 0.3


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_the_verifier_confirms_the_certificate_and_finds_forgeries(relation: str) -> None:
    X, y = line()
    document = fitted(X[:2000], y[:2000], X[2000:], relation=relation).certificate_
    checks = sb.verify_certificate(document).checks
    assert [check.detail for check in checks if not check.ok] == []
    mechanism, event = stated(document), document["events"][0]
    factor = 4 if relation == "replace-one" else 1
    assert event["squared_sensitivity"] == factor * mechanism["bound"] ** 2
    assert mechanism["bounds"] == [*RANGE]
    for change in (
        {"bounds": [5.0, -5.0]},
        {"bounds": [0.0]},
        {"weights": mechanism["weights"][:2]},
        {"n_classes": 2},
    ):
        forged = {**document, "public": {**document["public"], **change}}
        forged["digest"] = sb.report.certificate.build.certificate_digest(forged)
        assert not sb.verify_certificate(forged).ok, change
    sums = mechanism["values"][:2]
    for released in ({"queries": 3, "answered": 3}, {"classes": [0, 1]}, {"values": sums}):
        forged = {**document, "released": {**document["released"], **released}}
        forged["digest"] = sb.report.certificate.build.certificate_digest(forged)
        assert not sb.verify_certificate(forged).ok, released


def test_the_student_follows_from_the_certificate_and_the_pool_and_travels() -> None:
    X, y = line()
    model = fitted(X[:2000], y[:2000], X[2000:])
    weights = np.array(model.certificate_["public"]["weights"][-1]).reshape(-1, 1)
    again = sb.MomentsStudent(TableBasis().fit(X[2000:]), weights, bounds=RANGE)
    assert (again.predict(X) == model.predict(X)).all()
    assert model.score(X, y) > 0.8
    for back in (
        pickle.loads(pickle.dumps(model)),
        converted_student(model.student_),
    ):
        assert (back.predict(X) == model.predict(X)).all()
    assert not hasattr(clone(model), "student_")
    shares = model.student_.column_shares(X[2000:])
    assert shares[0] > 0.3 < shares[1]
    assert shares.sum() == pytest.approx(1)
    assert "np.float64" not in repr(model.student_.bounds)


def test_targets_are_read_one_by_one_by_fixed_rules() -> None:
    target, whole = MomentTarget.of_number((0, 10)), PROBABILITY_UNIT

    def units_of(y: Any, n: int) -> Any:
        return target.in_units(target.read(y, n))

    cells = [0, 10, 2.5, -3, 1e300, np.inf, -np.inf, True, np.int8(5), Decimal(5)]
    read = [0, whole, whole // 4, 0, whole, whole, 0, round(whole / 10), whole // 2, whole // 2]
    cells += ["5", b"2.5", "True", "-inf", 5 + 0j, 10**400, -(10**400)]
    read += [whole // 2, whole // 4, round(whole / 10), 0, whole // 2, whole, 0]
    # what is no number is absent
    cells += [np.nan, None, "five", "nan", 1j, pd.NA, Decimal("sNaN"), [5], pd.Timestamp(0)]
    read += [-1] * 9
    found = units_of(cells, len(cells)).ravel().tolist()
    assert found == read
    assert [units_of([cell], 1).item() for cell in cells] == found
    objects = np.array(cells, dtype=object)
    assert units_of(objects, len(cells)).ravel().tolist() == found
    assert units_of(pd.Series(cells, dtype=object), len(cells)).ravel().tolist() == found
    numbers = np.array([[1.0], [np.nan]])
    assert units_of(numbers, 2).shape == units_of(pd.DataFrame(numbers), 2).shape == (2, 1)


@pytest.mark.parametrize("odd", ["unknown", None, 1j, True, "", "1e999", pd.NA, 10**400])
@pytest.mark.parametrize("cells", [[1.25, 2.5, -3e-7], [1, 0, 2], [True, False], ["1", "2.5"]])
def test_one_odd_target_changes_no_other_however_it_is_stored(cells: Any, odd: Any) -> None:
    # numpy and pandas make texts, complex numbers or objects of all targets because of one
    target = MomentTarget.of_number((0, 10))
    ways = []
    for store in (
        np.array,
        pd.Series,
        lambda given: pd.Series(given, dtype="category"),
        lambda given: pd.Series(given).convert_dtypes(),
    ):
        with suppress(OverflowError, TypeError):  # what pandas before 3.1 cannot store
            ways.append((store(cells), store([*cells, odd])))
    files = ["\n".join(["y", *map(str, told), ""]) for told in (cells, [*cells, odd])]
    if str(odd):  # a reader of files skips an empty line
        read = [pd.read_csv(StringIO(file))["y"] for file in files]
        ways.append((read[0], read[1]))
    for without, with_one in ways:
        alone = target.read(without, len(cells)).ravel().tolist()
        assert target.read(with_one, len(cells) + 1).ravel().tolist()[:-1] == alone
        assert alone[0] > 0


def test_points_in_time_are_no_targets_whatever_their_type() -> None:
    target = MomentTarget.of_number((0, 1e18))
    for kind in ("M8[ns]", "M8[s]", "m8[ns]"):
        times = np.array([1, 2], dtype=kind)
        for y in (times, pd.Series(times), list(times)):
            assert target.in_units(target.read(y, 2)).ravel().tolist() == [-1, -1]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, None, "many"])
def test_one_odd_target_raises_nothing_and_warns_of_nothing(value: Any) -> None:
    X, y = line(900)
    odd = y[:600].astype(object)
    odd[7] = value
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(X[:600], odd, X[600:])
        fitted(X[:600], list(odd), X[600:])


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"bounds": None}, ParameterError, "bounds is missing"),
        ({"bounds": (1, 2, 3)}, ParameterError, "give two numbers"),
        ({"bounds": (2, 1)}, ParameterError, "below its second"),
        ({"bounds": (-1e308, 1e308)}, ParameterError, "below its second"),
        ({"bounds": (0, np.inf)}, ParameterError, "bounds"),
        ({"y": None}, DataError, "y is None"),
        ({"y": np.zeros(99)}, DataError, "has 99 targets"),
        ({"y": np.zeros((100, 2))}, DataError, "as one column"),
    ],
)
def test_bad_input_gets_a_sentence_and_spends_nothing(
    settings: dict[str, Any], error: Any, words: str
) -> None:
    X, y = line(200)
    given = {"X_public": X[100:], "y": y[:100], "bounds": RANGE, **settings}
    ledger = sb.Ledger.in_memory(dataset="people", budget=BUDGET)
    told, pool = given.pop("y"), given.pop("X_public")
    with pytest.raises(error, match=words):
        fitted(X[:100], told, pool, given.pop("bounds"), ledger=ledger, **given)
    assert ledger.releases() == 0
