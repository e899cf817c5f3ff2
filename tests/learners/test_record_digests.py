"""Digests of records: the same rows are known again in any order and part, and no others."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from secretballot.learners.training.record_digests import MOST_KEPT, RecordDigests, record_digests

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


def digests(table: object) -> RecordDigests:
    found = record_digests(table)
    assert found is not None
    return found


def rows(table: object, places: np.ndarray) -> object:
    return table.iloc[places] if hasattr(table, "iloc") else table[places]  # type: ignore[index]


@pytest.mark.parametrize("name", list(TABLES))
def test_rows_are_known_again_in_any_order_and_part(name: str) -> None:
    table = TABLES[name]
    whole = digests(table)
    turned = digests(rows(table, RNG.permutation(4000)))
    assert whole.same_rows(turned)
    assert whole.shared(turned) == 1
    part = digests(rows(table, RNG.permutation(4000)[:500]))
    assert not whole.same_rows(part)
    assert whole.shared(part) > 0.95
    halves = [digests(rows(table, place)) for place in np.split(np.arange(4000), 2)]
    assert halves[0].shared(halves[1]) < 0.05
    folds = [digests(rows(table, np.delete(np.arange(4000), place))) for place in (range(1000),)]
    assert folds[0].shared(whole) > 0.95


def test_the_share_is_estimated_from_what_is_kept() -> None:
    many = RNG.normal(size=(200_000, 2))
    first, second = digests(many[:120_000]), digests(many[90_000:])
    assert len(first.kept) == MOST_KEPT < first.n_single
    assert abs(first.shared(second) - 30_000 / 110_000) < 0.03
    assert digests(many[:1000]).shared(digests(many)) == 1.0
    assert digests(RNG.normal(size=(1000, 2))).shared(digests(many)) == 0.0


def test_a_small_world_is_compared_as_a_whole() -> None:
    cells = RNG.integers(0, 2, size=(2000, 3))
    one, other = digests(cells), digests(RNG.integers(0, 2, size=(2000, 3)))
    assert one.n_single == 0
    assert one.shared(other) == 0
    assert not one.same_rows(other)
    assert one.same_rows(digests(cells[::-1]))


def test_cells_that_differ_make_other_rows() -> None:
    for table in (np.eye(40), np.arange(1600.0).reshape(40, 40), 2.0 ** np.eye(40)):
        assert digests(table).n_single == 40
    moved = X.copy()
    moved[:, [0, 1]] = moved[:, [1, 0]]
    assert digests(moved).shared(digests(X)) == 0
    holes = X.copy()
    holes[::2, 0] = np.nan
    assert digests(holes).n_single == 4000


def test_what_cannot_be_hashed_is_not_told() -> None:
    cells = np.empty((30, 1), dtype=object)
    cells[:, 0] = [{"secret": number} for number in range(30)]
    record_digests(cells)  # whatever pandas makes of it, nothing is raised

    class Odd:
        shape = (3, 1)

        @property
        def dtype(self) -> object:
            raise RuntimeError("a private cell")

    assert record_digests(Odd()) is None


def test_hashes_are_shown_by_no_repr() -> None:
    assert str(digests(X).whole) not in repr(digests(X))
