"""Levels that are numbers are found all at once, and just as one by one."""

import numpy as np
import pandas as pd
import pytest

from secretballot.bases.columns import LevelColumn, fitted_column

LEVELS = [
    (),
    (None,),
    (1.0,),
    (0.0, 1.0, None),
    (3.0, -2.5, float("inf"), 1.0),
    ("1.0", "a", 2.0, None, 0.0),
    (9007199254740992.0, 0.1, 18446744073709551615.0),
]
CELLS = (
    np.array([0.0, -0.0, 1.0, 1.5, 0.1, 2.0, 3.0, -2.5, np.nan, np.inf, -np.inf, 5e-324]),
    np.array([0.0, 1.0, 0.1, np.nan, 2.0, -2.5, np.inf], dtype=np.float32),
    np.array([0, 1, 2, 3, -1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)]),
    np.array([0, 1, 2, 127, -128], dtype=np.int8),
    np.array([0, 1, 2**64 - 1, 2**53 + 1], dtype=np.uint64),
    np.array([True, False]),
    np.array([], dtype=np.float64),
)


@pytest.mark.parametrize("cells", CELLS, ids=lambda cells: str(cells.dtype))
def test_all_at_once_is_as_one_by_one(cells):
    # an array of objects is read cell by cell
    one_by_one = pd.Series(cells.tolist(), dtype=object)
    for levels in LEVELS:
        reader = LevelColumn(levels, 0.0).reader()
        found, wanted = reader(pd.Series(cells)), reader(one_by_one)
        assert np.array_equal(found.places, wanted.places)
        assert np.array_equal(found.covered, wanted.covered)


def test_levels_of_numbers_are_counted_as_those_of_objects():
    cells = [0.0, -0.0, 1.0, np.nan, 0.0, 1.0, 2.0] * 8 + [5.0] * 7
    fitted = fitted_column(pd.Series(cells), 16)
    assert isinstance(fitted, LevelColumn)
    assert fitted == fitted_column(pd.Series(cells, dtype=object), 16)
    assert fitted.levels == (None, 0.0, 1.0, 2.0)
    assert [type(level) for level in fitted.levels[1:]] == [float] * 3
