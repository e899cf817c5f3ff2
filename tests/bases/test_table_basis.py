"""A basis of public points: exact, a function of one row at a time and of public points alone."""

import datetime
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from secretballot.bases import TableBasis
from secretballot.bases.columns import BENDS, ONE, fitted_column
from secretballot.exceptions import DataError, ParameterError

RNG = np.random.default_rng(3)
N = 300
POOL = pd.DataFrame(
    {
        "age": RNG.integers(18, 90, N).astype(float),
        "gain": np.where(RNG.random(N) < 0.8, 0.0, RNG.exponential(1000, N)),
        "city": RNG.choice(["north", "south", "west"], N),
        "member": RNG.random(N) < 0.5,
        "score": np.where(RNG.random(N) < 0.1, np.nan, RNG.normal(size=N)),
    }
)
BASIS = TableBasis().fit(POOL)


def rows(count, seed=5):
    rng = np.random.default_rng(seed)
    return POOL.iloc[rng.integers(0, N, count)].reset_index(drop=True)


def test_a_row_is_mapped_alike_whatever_stands_around_it():
    table = rows(200)
    together = BASIS.integers(table)
    for chosen in (range(200), range(199, -1, -1), [7], [3, 3, 150], range(0, 200, 7)):
        assert np.array_equal(BASIS.integers(table.iloc[list(chosen)]), together[list(chosen)])


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(
    "categories",
    [
        pd.IntervalIndex.from_breaks([0, 18, 40, 65, 100], closed="left"),  # as pandas.cut makes
        pd.IntervalIndex.from_breaks([0, 0.5, 1, 2, 3]),
        pd.IntervalIndex.from_breaks(pd.date_range("2020", periods=5)),
        pd.Index([1, 2, 3, 4]),
        pd.Index([2**60, 2**60 + 1, 2**60 + 2, 2**60 + 3]),
        pd.Index([0.5, 1, 2, 3]),
        pd.array([1, 2, 3, 4], dtype="Int64"),
        pd.date_range("2020", periods=4, tz="CET"),
        pd.period_range("2020", periods=4, freq="M"),
        pd.timedelta_range("1h", periods=4),
        pd.Index(["a", "b", "c", "d"]),
    ],
    ids=lambda known: str(known.dtype) if hasattr(known, "dtype") else None,
)
def test_a_missing_category_changes_no_other_row(categories, missing):
    # of integer intervals, one missing cell makes pandas give all others with fractional ends
    codes = np.arange(60) % 4
    pool = pd.DataFrame({"c": pd.Categorical.from_codes(codes, categories), "k": codes % 3})
    pool.loc[pool.index < 10 * missing, "c"] = None
    basis = TableBasis().fit(pool)
    table = pool.iloc[10:40].reset_index(drop=True)
    odd = table.copy()
    odd.loc[7, "c"] = None
    others = np.flatnonzero(np.arange(len(table)) != 7)
    assert (basis.integers(odd)[others] == basis.integers(table)[others]).all()
    assert basis.covered(table).all()
    assert (basis.covered(odd) == ((np.arange(len(odd)) != 7) | missing)).all()
    alone = np.vstack([basis.integers(odd.iloc[[row]]) for row in range(len(odd))])
    assert (basis.integers(odd) == alone).all()


CELLS = [
    *(None, np.nan, np.inf, -np.inf, 1e300, -1e300, 10**400, True, "north", "x", b"x", 3 + 1j),
    *(pd.NA, pd.NaT, datetime.date(2020, 1, 1), [1], (), {"a": 1}, Fraction(1, 3), object()),
]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(CELLS), min_size=5, max_size=5), st.integers(0, 40))
def test_one_odd_record_moves_no_other(cells, place):
    table = rows(40).astype(object)
    odd = pd.concat([table.iloc[:place], rows(1).astype(object), table.iloc[place:]])
    odd = odd.reset_index(drop=True)
    for name, cell in zip(odd.columns, cells, strict=True):
        odd.at[place, name] = cell
    found = BASIS.integers(odd)
    assert np.array_equal(np.delete(found, place, axis=0), BASIS.integers(table))
    assert np.abs(found).max() < 2**24


ALIKE = {
    "lengths of time": [datetime.timedelta(days=day, hours=5) for day in range(3)],
    "days of numpy": [np.datetime64(f"2020-01-0{day}") for day in (1, 2, 3)],
    "moments": [datetime.datetime(2020, 1, day, microsecond=7) for day in (1, 2, 3)],
    "days": [datetime.date(2020, 1, day) for day in (1, 2, 3)],
    "periods": [pd.Period(f"2020-0{month}") for month in (1, 2, 3)],
    "intervals": [pd.Interval(0, end) for end in (1, 2, 3)],
    "texts": ["north", "south", "west"],
}
ODD = ["odd", None, 7, pd.NaT, "\ud800", np.datetime64("9999-01-01"), datetime.timedelta(1)]


@pytest.mark.parametrize("name", ALIKE)
def test_one_odd_cell_does_not_change_how_a_column_of_objects_is_read(name):
    table = [[ALIKE[name][i % 3], "ab"[i // 3 % 2]] for i in range(60)]
    for form in (list, lambda rows: np.array(rows, dtype=object)):
        basis = TableBasis().fit(form(table))
        for odd in ODD:
            beside = form([*table, [odd, "a"]])
            assert np.array_equal(basis.integers(beside)[:60], basis.integers(form(table)))
            assert basis.covered(beside)[:60].all()


def test_the_integers_are_those_of_exact_arithmetic():
    table = rows(6)
    inputs, rotation = BASIS._integer_inputs(table).toarray(), BASIS._rotation
    for row, found in zip(inputs.tolist(), BASIS.integers(table).tolist(), strict=True):
        for direction in range(0, BASIS.n_directions_, 5):
            weights = rotation.weights[:, direction].tolist()
            exact = sum(a * b for a, b in zip(row, weights, strict=True))
            exact -= int(rotation.offset[direction])
            assert found[direction] == (exact + (1 << (rotation.shift - 1))) >> rotation.shift


def test_public_points_are_centred_uncorrelated_and_of_length_one():
    mapped = BASIS.transform(POOL)
    assert np.abs(mapped.mean(axis=0)).max() < 1e-3
    assert np.mean(np.sum(mapped**2, axis=1)) == pytest.approx(1.0, abs=1e-3)
    second = mapped.T @ mapped / N
    assert np.abs(second - np.diag(np.diag(second))).max() < 1e-3
    assert np.all(np.diff(np.diag(second)) < 1e-3)  # the longest axis comes first


@pytest.mark.parametrize("n_values", [13, 400])
def test_bins_and_ranks_count_the_values_of_the_pool(n_values):
    rng = np.random.default_rng(n_values)
    pool = rng.choice(np.sort(rng.normal(size=n_values)), 500)
    column = fitted_column(pd.Series(pool), 16)
    cells = np.concatenate([pool, rng.normal(size=200), [-1e9, 1e9, pool.min(), pool.max()]])
    found, values = column.reader()(pd.Series(cells)), column.sorted_values
    assert len(found.places) == len(found.ranks) == len(cells)
    assert np.array_equal(found.codes, found.ranks)
    for cell, place, rank, covered in zip(cells, *found[:3], strict=True):
        below, upto = int(np.sum(values < cell)), int(np.sum(values <= cell))
        assert rank == (below + upto) * ONE // len(values) - ONE
        assert place == np.sum(column.edges <= cell)
        assert covered == (values.min() <= cell <= values.max())
    assert np.array_equal(BENDS, BENDS[::-1])  # whichever end is nearer
    assert [BENDS[0], BENDS[ONE // 2], BENDS[ONE]] == [ONE, 98, 0]  # a third of -log(1 - 1/4)


def test_a_heap_beside_a_spike_is_a_bin_of_its_own():
    # 110 and 111 are as many, so neither is a heap; seven are too few; 97 is the median
    cells = [*np.zeros(400), *range(200), *[50] * 6, *[70, 90, 110, 111] * 20]
    for n_bins, edges in ((2, [70, 71, 90, 91, 97]), (1, [])):
        assert fitted_column(pd.Series(cells), n_bins).edges.tolist() == edges


def test_containers_of_the_same_numbers_are_mapped_alike():
    numbers = POOL[["age", "gain", "score"]]
    expected = TableBasis().fit(numbers).integers(numbers)
    plain = numbers.to_numpy()
    for other in (plain.tolist(), [tuple(row) for row in plain], np.asfortranarray(plain)):
        assert np.array_equal(TableBasis().fit(other).integers(other), expected)
    whole = np.nan_to_num(plain)
    sparse = TableBasis().fit(sp.csr_matrix(whole)).integers(sp.csc_array(whole))
    assert np.array_equal(sparse, TableBasis().fit(whole).integers(whole))


@pytest.mark.parametrize(
    ("settings_given", "table", "error", "words"),
    [
        ({"n_bins": 0}, POOL, ParameterError, "n_bins"),
        ({"n_directions": 0}, POOL, ParameterError, "n_directions"),
        ({"whitening": 1.5}, POOL, ParameterError, "whitening is 1.5"),
        ({"whitening": float("nan")}, POOL, ParameterError, "whitening"),
        ({}, np.ones((50, 3)), DataError, "all alike"),
        ({}, [["a", "b"]], DataError, "few or all alike"),
        ({}, np.ones(5), DataError, "shape"),
        ({}, np.empty((0, 3)), DataError, "no rows"),
    ],
)
def test_bad_input_gets_a_sentence(settings_given, table, error, words):
    with pytest.raises(error, match=words):
        TableBasis(**settings_given).fit(table)
