"""Coordinates that are mapped block by block give the same sums, and few are held at a time."""

import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from secretballot.bases import KernelBasis, TableBasis
from secretballot.bases.integer_model import IntegerModel, with_constant
from secretballot.records import Residuals, mapped_rows, private_records, vector_sums

N = 300
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(N, 3))
POOL = RNG.normal(size=(150, 3))


def frame_of(numbers: np.ndarray) -> pd.DataFrame:
    frame = pd.DataFrame(numbers, columns=["a", "b", "c"])
    frame["level"] = np.where(numbers[:, 0] > 0.5, "high", "low")
    frame.loc[numbers[:, 1] > 1.5, "level"] = None
    return frame


TABLES = {
    "numbers": (TableBasis(), POOL, NUMBERS),
    "frame": (TableBasis(), frame_of(POOL), frame_of(NUMBERS)),
    "sparse": (TableBasis(), sp.csr_matrix(POOL), sp.csr_matrix(NUMBERS)),
    "kernel": (KernelBasis(n_landmarks=40), POOL, NUMBERS),
}


@pytest.mark.parametrize("by_person", [False, True])
@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("most_kept", [0, 2**29])
def test_the_sums_are_those_of_the_whole_table_to_the_last_bit(
    name: str, by_person: bool, most_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    basis, pool, table = TABLES[name]
    basis.fit(pool)
    whole = with_constant(basis.integers(table))
    monkeypatch.setattr(mapped_rows, "MOST_KEPT", most_kept)
    monkeypatch.setattr(mapped_rows, "_BLOCK_ENTRIES", 7 * whole.shape[1])
    found, covered = mapped_rows.mapped_rows(basis, table)
    assert isinstance(found, mapped_rows.MappedRows) == (most_kept == 0)
    assert (covered == basis.covered(table)).all()
    assert not covered.all()
    classes = RNG.integers(0, 3, N)
    persons = np.arange(N) // 4 if by_person else None
    weights = RNG.normal(0, 3, (whole.shape[1], 3))
    stage = Residuals(IntegerModel.of(weights), 1024, 3_000_000)
    sums = [
        private_records(rows, classes, 3, persons).sums(stage)._unseal()[0]
        for rows in (whole, found)
    ]
    assert (sums[0] == sums[1]).all()
    assert sums[0].any()


@pytest.mark.parametrize("most_kept", [0, 2**29])
def test_what_is_in_memory_is_bounded_by_blocks(
    most_kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mapped_rows, "MOST_KEPT", most_kept)
    for room in (mapped_rows, vector_sums):
        monkeypatch.setattr(room, "_BLOCK_ENTRIES", 2**14)
    table = RNG.normal(size=(20_000, 3))
    basis = TableBasis().fit(table[:500])
    stage = Residuals(IntegerModel.of(np.zeros((basis.n_directions_ + 1, 1))), 1024, 3_000_000)
    numbers = len(table) * (basis.n_directions_ + 1)
    tracemalloc.start()
    rows, _ = mapped_rows.mapped_rows(basis, table)
    private_records(rows, np.zeros(len(table), dtype=np.int64), 2).sums(stage)._unseal()[0]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # a fraction of a byte for each coordinate, and four for those that are kept
    assert peak / numbers < (4 if most_kept else 0) + 1.5


def test_mapped_rows_show_nothing() -> None:
    rows = mapped_rows.MappedRows(TableBasis().fit(POOL), NUMBERS)
    assert repr(rows) == "MappedRows(<private>)"
    assert len(rows) == N
    with pytest.raises(TypeError, match="refuse to"):
        np.asarray(rows)
    with pytest.raises(TypeError, match="refuse to"):
        list(rows)
