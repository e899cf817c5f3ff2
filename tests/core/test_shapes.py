import itertools
import math
from typing import Any

import pytest

from secretballot.core.errors import ParameterError
from secretballot.core.types import LARGEST, Guarantee, Sample, SumShape, VoteShape

RECORD, USER = (Guarantee(unit=unit, relation="add-remove") for unit in ("record", "user"))
REPLACED, LABEL = (Guarantee(unit=unit, relation="replace-one") for unit in ("record", "label"))
TEACHERS: dict[str, Any] = {
    "guarantee": RECORD,
    "n_queries": 10,
    "n_classes": 3,
    "n_teachers": 5,
    "moved": 10,
}
SAMPLE: dict[str, Any] = {
    "sampled": 2,
    "out_of": 3,
    "relabel_epsilon": 1.0,
    "request": "one",
    "serial": "a",
}


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Guarantee, {"unit": "label", "relation": "add-remove"}),
        (Sample, SAMPLE | {"relabel_epsilon": math.nan}),
        (VoteShape, TEACHERS | {"n_queries": True}),
        (VoteShape, TEACHERS | {"n_teachers": 10**12 + 1}),
        (VoteShape, TEACHERS | {"weights": 1}),
        (SumShape, {"guarantee": RECORD, "coordinates": 1, "squared_sensitivity": LARGEST + 1}),
    ],
)
def test_shapes_refuse_what_no_container_has(kind: Any, fields: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        kind(**fields)


def test_two_counts_of_one_row_move_where_a_teacher_chooses_among_more_than_two() -> None:
    shape = VoteShape(**TEACHERS)
    assert shape.shifts == 20
    assert VoteShape(**TEACHERS | {"n_classes": 2}).shifts == 10
    assert VoteShape(**TEACHERS | {"n_teachers": None, "moved": 4, "spare_rows": 2}).shifts == 4
    assert shape.first(4) == VoteShape(**TEACHERS | {"n_queries": 4, "moved": 4})
    # all rows that move may be among the first ones
    assert VoteShape(**TEACHERS | {"moved": 3}).first(5).moved == 3


def test_promises_add_only_where_that_is_proved() -> None:
    every = [RECORD, USER, REPLACED, LABEL, Guarantee(unit="user", relation="replace-one")]
    added = {
        (every.index(one), every.index(account), by)
        for one, account, by in itertools.product(every, every, (False, True))
        if one != account and one.adds_to(account, by_teachers=by)
    }
    assert added == {(1, 0, True), (2, 3, False), (2, 3, True)}
