"""Public rows that are private rows are found, and those that are equal by chance are let pass."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from secretballot.learners.training import private_rows
from secretballot.learners.training.private_rows import PrivateRows, row_hashes

RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(2000, 3))
OTHERS = RNG.normal(size=(400, 3))
#: Cells of a table of categories: rows equal each other by chance.
FEW, SOME, MANY = (10, 0.5), (1000, 1.0), (200_000, 0.9)


def drawn(n, n_values, power, seed):
    """Return rows of two columns, some of them far more frequent than others."""
    chances = np.arange(1, n_values + 1) ** -power
    values = np.random.default_rng(seed).choice(n_values, n, p=chances / chances.sum())
    return np.column_stack([values % 7, values // 7]).astype(float)


def held(public, private, units=None):
    rows = PrivateRows([public])
    rows.add(private, units)
    return rows.hold(0)


@pytest.mark.parametrize("law", [FEW, SOME, MANY])
@pytest.mark.parametrize(("n", "m"), [(20_000, 2000), (300, 5000), (60, 50)])
def test_rows_that_are_equal_by_chance_pass(law, n, m):
    for seed in range(5):
        assert not held(drawn(m, *law, seed=2 * seed), drawn(n, *law, seed=2 * seed + 1))


def test_a_part_of_the_private_rows_is_found_and_rows_that_were_drawn_again():
    for n_private in (10, 100, 400):
        assert held(np.vstack([NUMBERS[5 : 5 + n_private], OTHERS[n_private:]]), NUMBERS)
    for public in (NUMBERS[::-1], NUMBERS[:5], NUMBERS[RNG.integers(0, 99, 900)]):
        assert held(public, NUMBERS)
    assert not held(OTHERS, NUMBERS)


def test_a_part_is_found_among_rows_that_are_equal_by_chance():
    private, public = drawn(20_000, *MANY, seed=1), drawn(2000, *MANY, seed=2)
    equal = len(set(map(tuple, public)) & set(map(tuple, private))) / len(public)
    assert 0.1 < equal < 0.9
    assert not held(public, private)
    assert held(np.vstack([public[:1500], private[:500]]), private)


def test_the_same_rows_are_found_where_chance_would_explain_each_of_them():
    private = drawn(2000, *FEW, seed=1)
    assert held(private[::-1], private)
    assert not held(private[:1000], private)


def test_a_doubled_private_table_explains_nothing():
    assert held(np.vstack([OTHERS[:300], NUMBERS[:100]]), np.vstack([NUMBERS, NUMBERS]))


def test_rows_of_one_unit_are_no_coincidence():
    private, units = np.repeat(NUMBERS[:200], 10, axis=0), np.repeat(np.arange(200), 10)
    public = np.vstack([OTHERS[:300], NUMBERS[:100]])
    assert held(public, private, units)
    assert not held(OTHERS, private, units)


@pytest.mark.parametrize("law", [FEW, SOME, MANY])
def test_blocks_and_a_sample_say_what_the_table_says(law, monkeypatch):
    private, public = drawn(20_000, *law, seed=1), drawn(2000, *law, seed=2)
    monkeypatch.setattr(private_rows, "MOST_SAMPLED", 3000)
    for table, found in ((public, False), (np.vstack([public, NUMBERS[:200, :2]]), True)):
        rows = PrivateRows([table])
        for part in np.array_split(np.vstack([private, NUMBERS[:, :2]]), 7):
            rows.add(part)
        assert rows.hold(0) == found
        assert len(rows._values) < 3000 + 4 * len(table) + 4


def test_frames_are_compared_by_cells_and_what_cannot_be_compared_passes():
    frame = pd.DataFrame({"age": NUMBERS[:, 0], "ward": RNG.choice(["north", "south"], 2000)})
    assert held(frame.iloc[:50], frame)
    assert not held(frame.iloc[:50].assign(ward="east"), frame)
    assert not PrivateRows([frame]).hold(0)
    assert not held(np.array([[[]]], dtype=object), NUMBERS)


FRAME = pd.DataFrame(
    {
        "count": RNG.integers(0, 10**6, 2000),
        "kind": pd.Categorical(RNG.choice(["a", "b"], 2000)),
        "name": [f"person {number}" for number in range(2000)],
    }
)


@pytest.mark.parametrize(
    "table",
    [
        NUMBERS,
        RNG.integers(0, 100, size=(2000, 5)),
        RNG.random((2000, 40)) < 0.5,
        np.array([[f"{a:.9f}", "x"] for a in NUMBERS[:, 0]], dtype=object),
        FRAME,
        sparse.csr_matrix(np.where(np.abs(NUMBERS) > 0.5, NUMBERS, 0)),
    ],
    ids=["doubles", "integers", "flags", "texts", "frame", "sparse"],
)
def test_rows_of_every_kind_are_known_again_in_any_order(table):
    some = RNG.permutation(2000)[:60]
    assert held(table.iloc[some] if hasattr(table, "iloc") else table[some], table)


def test_cells_that_differ_make_other_rows():
    for table in (np.eye(40), np.arange(1600.0).reshape(40, 40), 2.0 ** np.eye(40)):
        found = row_hashes(table)
        assert found is not None
        assert len(set(found)) == 40
    assert not held(NUMBERS[:, [1, 0, 2]], NUMBERS)
