"""What a record adds follows from that record and public values alone, exactly, and is bounded."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

from secretballot.bases.integer_model import (
    CONSTANT,
    LARGEST_COORDINATE,
    PROBABILITY_UNIT,
    IntegerLabels,
    IntegerLine,
    IntegerModel,
)
from secretballot.core.types import Guarantee
from secretballot.exceptions import DataError, ParameterError
from secretballot.learners import moment_vectors as vectors
from secretballot.learners.moment_vectors import Records, Residuals
from tiny_sums import records_of, sum_of

N = 40
LARGEST_BOUND, LARGEST_UNIT = math.isqrt(2**53), PROBABILITY_UNIT


def some_records(n_classes, seed=0, n=N, largest=40_000):
    rng = np.random.default_rng(seed)
    coordinates = rng.integers(-largest, largest + 1, (n, 5))
    coordinates[rng.random(n) < 0.2] *= 6  # some are much longer than the rest
    coordinates[0] = 0
    coordinates[1] = LARGEST_COORDINATE
    coordinates[:, -1] = CONSTANT
    return coordinates, rng.integers(0, n_classes, n)


def some_targets(n_columns, seed=0):
    """Return coordinates and targets, some of them at the ends, beyond, or missing."""
    rng = np.random.default_rng(seed)
    targets = rng.integers(0, PROBABILITY_UNIT + 1, (N, n_columns))
    targets[:4, 0] = 0, PROBABILITY_UNIT, -1, 10 * PROBABILITY_UNIT
    return some_records(2, seed)[0], targets


def asked(n_columns, bound=3_000_000, weight=0, kind=IntegerModel):
    """Return a stage; one column is for two classes."""
    weights = np.random.default_rng(0).normal(0, 3, (5, n_columns))
    return Residuals(kind.of(weights), 1024, bound, weight, 2 if weight else 0)


def records_at(rows, coordinates, targets, persons=None, *, marked):
    """Return some rows of coordinates, classes or targets and persons, with marks if wanted."""
    first = targets[rows].reshape(len(targets[rows]), -1)[:, 0]
    marks = np.column_stack([np.ones(len(first), int), first > 0]) if marked else None
    own = None if persons is None else persons[rows]
    return records_of(coordinates[rows], targets[rows], own, marks)


TARGET_MODELS = [(IntegerLine, 1), (IntegerLabels, 1), (IntegerLabels, 3)]


@pytest.mark.parametrize(
    ("kind", "n_columns"), [(IntegerModel, 1), (IntegerModel, 7), *TARGET_MODELS]
)
@pytest.mark.parametrize("weight", [0, 300_000])
@pytest.mark.parametrize("bound", [1, 50, 3_000_000, LARGEST_BOUND])
@pytest.mark.parametrize("by_person", [False, True])
def test_a_sum_is_that_of_its_units_alone_and_none_is_longer_than_the_bound(
    kind, n_columns, weight, bound, by_person
):
    classes = kind is IntegerModel
    table = some_records(max(2, n_columns)) if classes else some_targets(n_columns)
    units = np.arange(N)
    if by_person:
        units = np.random.default_rng(1).integers(0, 9, N)
        units[:12] = 3  # one has many
        table = (*table, units)
    weight = min(weight, bound // 4)
    stage, marked = asked(n_columns, bound, weight, kind), weight > 0
    alone = [
        sum_of(records_at(units == one, *table, marked=marked), stage) for one in np.unique(units)
    ]
    # all columns together, in exact integers
    longest = max(sum(int(entry) ** 2 for entry in vector) for vector in alone)
    assert longest <= bound**2
    # some are cut, and yet most of the bound is used
    assert bound < 1000 or bound == LARGEST_BOUND or longest > 0.98 * bound**2
    together = sum_of(records_at(slice(None), *table, marked=marked), stage)
    assert (together == np.sum(alone, axis=0)).all()


def test_a_person_with_very_many_long_records_stays_within_the_bound():
    n = 40_000
    coordinates = np.full((n, 5), LARGEST_COORDINATE)
    persons = np.zeros(n, dtype=np.int64)
    for bound in (7, 2_000_000, LARGEST_BOUND):
        stage = asked(1, bound=bound, weight=bound // 4 if bound > 7 else 0)
        records = records_at(slice(None), coordinates, np.zeros(n, int), persons, marked=bound > 7)
        vector = sum_of(records, stage)
        assert 0.9 * bound**2 - 50 * bound < sum(int(entry) ** 2 for entry in vector) <= bound**2


@pytest.mark.parametrize("by_person", [False, True])
def test_the_size_of_blocks_changes_nothing(monkeypatch, by_person):
    coordinates, classes = some_records(4, n=300)
    persons = np.random.default_rng(2).integers(0, 60, 300) if by_person else None
    marks = np.ones((300, 2), int)
    records, stage = records_of(coordinates, classes, persons, marks), asked(4, weight=1000)
    whole = sum_of(records, stage)
    for entries in (1, 50, 333, 1000):
        monkeypatch.setattr(vectors, "_BLOCK_ENTRIES", entries)
        assert (sum_of(records, stage) == whole).all()
        parts = [
            Records(*(one[k : k + 7] for one in records if one is not None))
            for k in range(0, 300, 7)
        ]
        unit = "user" if by_person else "record"
        about = Guarantee.model_validate({"unit": unit, "relation": "add-remove"})
        assert (vectors.vector_sums([parts], stage, about)._unseal()[0] == whole).all()


def test_the_finest_unit_keeps_the_bound():
    coordinates = np.array([[LARGEST_COORDINATE] * 40, [-LARGEST_COORDINATE] * 40, [3] * 40])
    for n_classes in (2, 40):
        model = IntegerModel.of(np.zeros((40, 1 if n_classes == 2 else n_classes)))
        stage = Residuals(model, unit=LARGEST_UNIT, bound=LARGEST_BOUND)
        for row in coordinates:
            records = records_of(row[None], np.array([1]))
            vector = [int(one) for one in sum_of(records, stage)]
            assert 0 < sum(one * one for one in vector) <= LARGEST_BOUND**2
    # squares of such residuals wrapped around, and a record of any length passed for short
    with pytest.raises(ParameterError, match="residual unit"):
        Residuals(model, unit=LARGEST_UNIT + 1, bound=1)


def test_every_mark_is_counted():
    coordinates, classes = some_records(2)
    marks = np.column_stack([np.ones(N, int), np.arange(N) < 7])
    stage = asked(1, weight=1000)
    total = sum_of(records_of(coordinates, classes, marks=marks), stage)
    assert len(total) == stage.n_coordinates == 7
    assert total[-2:].tolist() == [1000 * N, 1000 * 7]
    by_person = records_of(coordinates // 16, classes, np.arange(N) // 2, marks)
    # what a person has in two records counts twice, less where that is too long
    assert sum_of(by_person, asked(1, weight=1000, bound=LARGEST_BOUND))[-2:].tolist() == [
        1000 * N,
        1000 * 7,
    ]
    with pytest.raises(DataError, match="do not have the coordinates"):
        sum_of(records_of(coordinates, classes), stage)


def test_marked_records_are_left_out_where_that_is_asked():
    table = some_records(3)
    stage = Residuals(asked(3).model, 1024, 3_000_000, 1000, 2, without_marked=True)
    marked = table[1] > 0
    total = sum_of(records_at(slice(None), *table, marked=True), stage)
    rest = sum_of(records_at(~marked, *table, marked=True), stage)
    assert (total[:-2] == rest[:-2]).all()
    assert total[-2:].tolist() == [1000 * N, 1000 * marked.sum()]


def test_coordinates_that_are_too_large_are_cut():
    coordinates, classes = some_records(2)
    sums = []
    for beyond in (LARGEST_COORDINATE, LARGEST_COORDINATE + 7, np.iinfo(np.int64).max):
        coordinates[3, 2] = beyond
        sums.append(sum_of(records_of(coordinates, classes), asked(1)).tolist())
    assert sums[0] == sums[1] == sums[2]


@pytest.mark.parametrize(("kind", "n_columns"), [*TARGET_MODELS, (IntegerModel, 3)])
def test_vectors_are_coordinates_times_what_is_missed_of_the_targets(kind, n_columns):
    # far from the bound the vector is the product itself; compared with exact arithmetic
    coordinates, targets = some_targets(n_columns)
    coordinates = np.clip(coordinates, -3000, 3000)
    given = targets
    if kind is IntegerModel:
        given = np.arange(N) % n_columns
        targets = PROBABILITY_UNIT * np.eye(n_columns, dtype=np.int64)[given]
    stage = asked(n_columns, LARGEST_BOUND, kind=kind)
    total = sum_of(records_of(coordinates, given), stage).reshape(5, n_columns)
    predicted = stage.model.predictions(coordinates)
    exact = [[Fraction(0)] * n_columns for _ in range(5)]
    for row, told, said in zip(coordinates, targets, predicted, strict=True):
        for j, k in itertools.product(range(5), range(n_columns)):
            cut = min(int(told[k]), PROBABILITY_UNIT)
            missed = Fraction(cut - int(said[k]), PROBABILITY_UNIT) if cut >= 0 else 0
            exact[j][k] += int(row[j]) * 1024 * missed
    # half a unit of the residual, for each record
    room = np.abs(coordinates).sum(axis=0)[:, None] / 2
    assert (np.abs(total - np.array(exact, dtype=float)) <= room + 1).all()
