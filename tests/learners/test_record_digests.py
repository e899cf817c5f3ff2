"""Hashes of rows: equal rows have equal ones, and no others."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from secretballot.learners.training.private_rows import row_hashes, rows_digest

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 3))
FRAME = pd.DataFrame(
    {
        "age": X[:, 0],
        "count": RNG.integers(0, 10**6, 4000),
        "town": RNG.choice(["north", "south"], 4000),
        "kind": pd.Categorical(RNG.choice(["a", "b"], 4000)),
        "name": [f"person {number}" for number in range(4000)],
    }
)
TABLES = {
    "doubles": X,
    "integers": RNG.integers(0, 100, size=(4000, 5)),
    "flags": RNG.random((4000, 40)) < 0.5,
    "texts": np.array([[f"{a:.9f}", "x"] for a in X[:, 0]], dtype=object),
    "frame": FRAME,
    "sparse": sparse.csr_matrix(np.where(np.abs(X) > 0.5, X, 0)),
}


def hashes(table: object) -> np.ndarray:
    found = row_hashes(table)
    assert found is not None
    return found


def rows(table: object, places: np.ndarray) -> object:
    return table.iloc[places] if hasattr(table, "iloc") else table[places]  # type: ignore[index]


@pytest.mark.parametrize("name", list(TABLES))
def test_rows_are_known_again_in_any_order_and_part(name: str) -> None:
    table = TABLES[name]
    whole, order = hashes(table), RNG.permutation(4000)
    assert (hashes(rows(table, order)) == whole[order]).all()
    assert (hashes(rows(table, order[:500])) == whole[order[:500]]).all()
    assert rows_digest(whole) == rows_digest(whole[order]) != rows_digest(whole[1:])


def test_cells_that_differ_make_other_rows() -> None:
    for table in (np.eye(40), np.arange(1600.0).reshape(40, 40), 2.0 ** np.eye(40)):
        assert len(set(hashes(table))) == 40
    moved = X.copy()
    moved[:, [0, 1]] = moved[:, [1, 0]]
    assert not np.isin(hashes(moved), hashes(X)).any()
    holes = X.copy()
    holes[::2, 0] = np.nan
    assert len(set(hashes(holes))) == 4000
