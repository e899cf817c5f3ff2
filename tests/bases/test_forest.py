"""Trees on public points: the same anywhere, and each row's prediction by itself."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from secretballot.bases.forest import DEPTH, LEAST_POINTS, NO_SPLIT, Forest
from secretballot.bases.integer_model import (
    PROBABILITY_UNIT,
    STRETCH_UNIT,
    UNIT,
    IntegerLabels,
    IntegerModel,
    Smoothed,
)


def world(n=600, n_columns=2):
    """Return cells of public points, which are levels, and what is predicted of them."""
    at = np.arange(n)
    cells = np.column_stack([at * 37 % 1009, at % 7, at * at % 501, at // 2])
    levels = np.array([False, True, False, False])
    high = (cells[:, 0] > 500) ^ (cells[:, 1] == 3)
    share = np.where(high, 800_000, 100_000) + cells[:, 2]
    return cells, levels, np.column_stack([share, PROBABILITY_UNIT - share])[:, :n_columns]


def digest(forest):
    return hashlib.sha256(b"".join(one.astype("<i8").tobytes() for one in forest)).hexdigest()


def test_trees_are_the_same_in_every_process_and_with_every_version():
    # integers and a hash alone: whatever the libraries and the machine, these are the trees
    assert digest(Forest.grown(*world(), "stage 1")) == PINNED
    assert digest(Forest.grown(*world(), "stage 2")) != PINNED


PINNED = "d93a38c88891f3ae6cd9a4e7f3f5b56a861b293f40da7bedb1213bac7a80361f"


def test_every_row_is_predicted_by_itself():
    cells, levels, targets = world()
    forest = Forest.grown(cells, levels, targets, "stage 1")
    other = np.concatenate([cells[:50], [[-(2**18)] * 4, [2**18] * 4, [0, -1, 0, 0]]])
    together = forest.predictions(other)
    alone = np.concatenate([forest.predictions(row[None]) for row in other])
    assert np.array_equal(together, alone)
    assert np.array_equal(forest.predictions(other[::-1])[::-1], together)
    assert (together >= 0).all()
    assert (together <= PROBABILITY_UNIT).all()


def test_leaves_hold_the_means_of_their_points_and_trees_find_what_no_column_tells():
    cells, levels, targets = world(200)
    forest = Forest.grown(cells, levels, targets, "stage 1")
    missed = np.abs(forest.predictions(cells) - targets).mean()
    assert missed < 0.5 * np.abs(targets - targets.mean(axis=0)).mean()
    for tree in range(3):
        node = np.zeros(len(cells), dtype=int)
        for _ in range(DEPTH):
            place, threshold, level = (one[tree][node] for one in forest[:3])
            found = cells[np.arange(len(cells)), place]
            node = 2 * node + 2 - np.where(level, found == threshold, found <= threshold)
            _, sizes = np.unique(node, return_counts=True)
            assert sizes.min() >= LEAST_POINTS
        for leaf in np.unique(node):
            mean = targets[node == leaf].sum(axis=0) // np.sum(node == leaf)
            assert np.array_equal(forest.values[tree, leaf - (2**DEPTH - 1)], mean)


def test_too_few_points_are_no_reason_to_split():
    for n in (1, 2 * LEAST_POINTS - 1):
        cells, levels, targets = world(n)
        forest = Forest.grown(cells, levels, targets, "stage 1")
        assert (forest.thresholds == NO_SPLIT).all()
        assert forest.predictions(cells).shape == targets.shape


@pytest.mark.parametrize(
    ("kind", "n_columns"), [(IntegerModel, 1), (IntegerModel, 2), (IntegerLabels, 2)]
)
def test_a_correction_of_nothing_leaves_what_it_corrects(kind, n_columns):
    cells, levels, _ = world()
    rng = np.random.default_rng(0)
    rows = np.column_stack([rng.integers(-UNIT, UNIT, (len(cells), 3)), cells])
    weights = rng.integers(-(2**15), 2**15, (3, n_columns))
    before = Smoothed.of(kind(weights), rows, levels, 2)
    after = kind(np.zeros_like(weights), before)
    assert (after.logits(rows) == before.logits(rows)).all()
    # trees that know no more than a mean leave the model less sure, until it is stretched
    sure, plain = kind(weights).predictions(rows), replace(before, stretch=STRETCH_UNIT)
    errors = [
        np.square(kind(0 * weights, one).predictions(rows) - sure).mean() for one in (before, plain)
    ]
    assert before.stretch > STRETCH_UNIT
    assert errors[0] < errors[1]
