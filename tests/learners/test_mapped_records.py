"""Records that are mapped block by block give the same sums, and few coordinates are held."""

import copy
import pickle
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from secretballot.bases import KernelBasis, TableBasis
from secretballot.bases.integer_model import IntegerModel, with_constant
from secretballot.core.types import Guarantee
from secretballot.learners import moment_vectors as vectors
from secretballot.learners import moments as estimators
from secretballot.learners import table as tables
from secretballot.learners.moment_stages import MomentTarget
from secretballot.learners.moment_vectors import Residuals
from secretballot.learners.table import Table, private_table
from tiny_sums import records_of, sum_of

N = 300
CLASSES = MomentTarget.of_classes([0, 1, 2])
RNG = np.random.default_rng(0)
NUMBERS = RNG.normal(size=(N, 3))
POOL = RNG.normal(size=(150, 3))


def frame_of(numbers):
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


def sums_of(basis, pool, rows, classes, units=None):
    table, points = private_table(rows, classes, pool, CLASSES, units, None)
    unit = "record" if units is None else "user"
    about = Guarantee.model_validate({"unit": unit, "relation": "add-remove"})
    task = SimpleNamespace(
        table=table, guarantee=about, refuse_points=lambda: table.refuse_points(points)
    )
    mapping = estimators._Mapping(basis.fit(points), CLASSES, False, {})
    with table.parts() as parts:
        return estimators.record_sums(task, mapping, parts)


@pytest.mark.parametrize("by_person", [False, True])
@pytest.mark.parametrize("name", TABLES)
def test_the_sums_are_those_of_the_whole_table_to_the_last_bit(name, by_person, monkeypatch):
    basis, pool, rows = TABLES[name]
    classes = RNG.integers(0, 3, N)
    persons = RNG.integers(0, 70, N) if by_person else None
    sums = [sums_of(basis, pool, rows, classes, persons) for _ in range(2)]
    whole, covered = with_constant(basis.integers(rows)), basis.covered(rows)
    assert not covered.all()
    monkeypatch.setattr(estimators, "_BLOCK_ENTRIES", 7 * whole.shape[1])
    weights = RNG.normal(0, 3, (whole.shape[1], 3))
    stage = Residuals(IntegerModel.of(weights), 1024, 3_000_000, 1000, 1)
    marks = (~covered).astype(np.int64)[:, None]
    wanted = sum_of(records_of(whole, classes, persons, marks), stage)
    assert wanted.any()
    for most_kept, summed in zip((0, 2**29), sums, strict=True):
        monkeypatch.setattr(Table, "most_kept", most_kept)
        for _ in range(2):
            assert (summed(stage)._unseal()[0] == wanted).all()


@pytest.mark.parametrize("most_kept", [0, 2**29])
def test_what_is_in_memory_is_bounded_by_blocks(most_kept, monkeypatch):
    monkeypatch.setattr(Table, "most_kept", most_kept)
    for module in (estimators, vectors):
        monkeypatch.setattr(module, "_BLOCK_ENTRIES", 2**14)
    monkeypatch.setattr(tables, "_PART_CELLS", 2**12)
    rows, basis = RNG.normal(size=(20_000, 3)), TableBasis()
    sums = sums_of(basis, RNG.normal(size=(500, 3)), rows, np.zeros(len(rows), dtype=np.int64))
    monkeypatch.setattr(Table, "refuse_points", lambda *_: None)
    stage = Residuals(
        IntegerModel.of(np.zeros((basis.n_directions_ + 1, 1))), 1024, 3_000_000, 1, 1
    )
    numbers = len(rows) * (basis.n_directions_ + 1)
    tracemalloc.start()
    sums(stage)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # a fraction of a byte for each coordinate, and four for those that are kept
    assert peak / numbers < (4 if most_kept else 0) + 1.5


def test_a_table_shows_nothing():
    table, _ = private_table(NUMBERS, np.zeros(N, int), POOL, CLASSES, None, None)
    assert repr(table) == "Table(unit='record', records=<private>)"
    with table.parts() as parts:
        assert repr(next(parts())()) == "Block(<private>)"
    for look in (len, iter, list, np.asarray, pickle.dumps, copy.deepcopy, float):
        with pytest.raises(TypeError, match="a private table is not shown"):
            look(table)


@pytest.mark.parametrize("most", [1, 7, 1000])
def test_parts_bring_every_record_once_and_all_of_a_unit_in_one(most, monkeypatch):
    units = RNG.integers(0, 40, N)
    table, _ = private_table(NUMBERS, np.arange(N) % 3, POOL, CLASSES, units, "person")
    monkeypatch.setattr(tables, "_PART_CELLS", 3 * most)
    with table.parts() as parts:
        blocks = [pickle.loads(pickle.dumps(load))() for load in parts()]
    assert max(len(one.rows) for one in blocks) < most + np.bincount(units).max()
    own = [set(one.units.tolist()) for one in blocks]
    assert sum(map(len, own)) == len(set.union(*own))
    assert len(own) == {1: len(set(units.tolist())), 1000: 1}.get(most, len(own))
    rows, persons = np.concatenate([one.rows for one in blocks]), [one.units for one in blocks]
    places = [int(np.flatnonzero((row == NUMBERS).all(axis=1))[0]) for row in rows]
    assert sorted(places) == list(range(N))
    assert (np.concatenate([one.targets for one in blocks]) == np.array(places) % 3).all()
    numbers = np.concatenate(persons)
    assert (np.diff(numbers) >= 0).all()
    assert len(set(zip(numbers, units[places], strict=True))) == len(set(units.tolist()))
    chosen = np.concatenate([one.rows for one in table.one_of_each_unit(most)])
    assert len(chosen) == len(set(units.tolist()))
