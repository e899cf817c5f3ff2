"""What is private leaves containers by one way, and no unit moves more than their shapes say."""

import ast
import copy
import itertools
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest

import secretballot
from secretballot.core.private import MOST, Private, RecordSums, Scores, Sealed, Votes
from secretballot.core.types import LARGEST, Guarantee, Sample, SumShape, VoteShape
from secretballot.exceptions import DataError, ParameterError

SECRET = 424242
RECORD, REPLACED = (
    Guarantee(unit="record", relation=relation) for relation in ("add-remove", "replace-one")
)
USER, LABEL = (
    Guarantee(unit="user", relation="add-remove"),
    Guarantee(unit="label", relation="replace-one"),
)
NONE = np.zeros((1, 0), dtype=int)
BOUND = 94_906_265  # whose square is hardly below 2^53


def products(*blocks: Any, bound: int = BOUND, guarantee: Guarantee = RECORD, n: int = 1) -> Any:
    return RecordSums.of_products([blocks], iter, bound, guarantee, coordinates=n)


def opened(held: Sealed) -> list[Any]:
    return held._unseal()[0].tolist()


TEACHERS: dict[str, Any] = {
    "guarantee": RECORD,
    "n_queries": 10,
    "n_classes": 3,
    "n_teachers": 5,
    "moved": 10,
}
SAMPLE = Sample(sampled=1, out_of=2, relabel_epsilon=1.0, request="one", serial="a")


HELD: list[Private] = [
    Votes.of_teachers([[SECRET, 1]], RECORD),
    Votes.of_records(
        [np.full((SECRET, 1), 2)], RECORD, n_queries=2, n_classes=2, votes_per_record=1
    ),
    products((np.array([[SECRET]]), np.array([[1]]), NONE)),
    Scores.of_candidates([SECRET, 0], RECORD),
    Scores.of_ranges([SECRET], [0], RECORD),
]
WAYS: list[Callable[[Any], Any]] = [
    *(np.asarray, np.array, list, len, float, iter, vars, lambda held: [*held]),
    *(copy.copy, copy.deepcopy, pickle.dumps, joblib.hash, pd.DataFrame, pd.Series),
    pd.api.interchange.from_dataframe,
    lambda held: np.add(held, 1),
    lambda held: np.sum([held]),
    lambda held: held[0],
    lambda held: SECRET in held,
    lambda held: held < SECRET,
    lambda held: held + 1,
    lambda held: held.__integers,
    lambda held: held.__getstate__(),
    lambda held: held.__dataframe__(),
]


@pytest.mark.filterwarnings("ignore:.*interchange.*")
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("held", HELD, ids=lambda held: type(held).__name__)
def test_no_way_leads_out_of_what_is_sealed(held: Private, way: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, AttributeError)) as refused:
        way(held)
    assert str(SECRET) not in str(refused.value)
    assert held
    # how many teachers there are is public
    assert str(SECRET) not in repr(held).replace(str(SECRET + 1), "")
    assert held == held
    assert hash(held) == hash(held)
    assert held.__sizeof__() == type(held).__basicsize__


def test_one_call_opens_a_container_and_stands_where_noise_is_added() -> None:
    root = Path(secretballot.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if any(name in path.read_text() for name in ("_unseal", "__integers"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute) and node.attr.endswith(("_unseal", "__integers"))
    }
    assert found == {
        "core/private.py",
        "core/releasing.py",
        # for the curator, into the vault
        "data/tally.py",
        # on public rows
        "planning/moments_forecast.py",
    }


@pytest.mark.parametrize(
    "counts",
    [
        [[1.0, 2.0]],
        [[np.nan, 1]],
        [[True, False]],
        [[1, 2], [1, 1]],
        [[-1, 3]],
        [[0, 0]],
        [[3]],
        [1, 2],
        np.zeros((0, 2), dtype=int),
        [[MOST + 1, 0]],
        # sums of these wrap to what other rows sum to
        np.array([[2**63, 2**63], [0, 0]], dtype=np.uint64),
        np.array([[2**62, 2**62, 2**62, 2**62 + 1], [0, 0, 0, 1]]),
    ],
)
def test_teachers_have_one_vote_in_each_row(counts: Any) -> None:
    with pytest.raises(DataError):
        Votes.of_teachers(counts, RECORD)


def test_counts_are_copied_in_one_type_and_order() -> None:
    given = np.asfortranarray(np.array([[3, 1], [2, 2]], dtype=np.uint8))
    votes = Votes.of_teachers(given, RECORD)
    given[:] = 0
    table = votes._unseal()[0]
    assert (table.tolist(), table.dtype) == ([[3, 1], [2, 2]], np.int64)
    assert table.flags.c_contiguous
    assert not any(one.flags.writeable for one in votes._unseal())


def test_predictions_and_samples_go_with_the_votes() -> None:
    votes = Votes.of_teachers([[3, 1], [2, 2]], RECORD, sample=SAMPLE)
    votes = votes.against([[9, -9], [1, 0]]).take([1, 0])
    assert votes._unseal()[1].tolist() == [[1, 0], [4, -4]]
    assert votes.shape.sample == SAMPLE
    with pytest.raises(DataError, match="predicted"):
        Votes.of_teachers([[3, 1]], RECORD).against([[0.5, 0.5]])
    with pytest.raises(ParameterError, match="classes"):
        Votes.of_teachers([[3, 1]], RECORD, classes=["one"])


@pytest.mark.parametrize(
    "cells", [[[0, 0]], [[0, 6]], [[-1, 0]], [[0]], [[0.0, 1.0]], np.array([[2**63, 0]], np.uint64)]
)
def test_a_record_votes_once_in_each_of_so_many_cells(cells: Any) -> None:
    with pytest.raises(DataError):
        Votes.of_records(
            [np.asarray(cells)], RECORD, n_queries=2, n_classes=2, votes_per_record=2, spare_rows=1
        )


@pytest.mark.parametrize("guarantee", [RECORD, REPLACED])
def test_no_record_moves_more_cells_than_the_shape_says(guarantee: Guarantee) -> None:
    ballots = list(itertools.combinations(range(6), 2))
    shape = {"n_queries": 2, "n_classes": 2, "votes_per_record": 2, "spare_rows": 1}
    worst = 0
    for own, other in itertools.product(ballots, ballots):
        worlds = [[[own, own]], [[other, own]] if guarantee == REPLACED else [[own]]]
        votes = [
            Votes.of_records([np.array(one) for one in world], guarantee, **shape)
            for world in worlds
        ]
        moved = np.abs(votes[0]._unseal()[0] - votes[1]._unseal()[0])
        assert moved.max() <= 1
        worst = max(worst, int(moved.sum()))
    assert worst == votes[0].shape.shifts


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8, np.int64, np.uint64])
def test_types_blocks_and_order_change_no_sum(kind: type[np.integer]) -> None:
    rng = np.random.default_rng(0)
    left, right, beside = (rng.integers(0, 100, (30, n)).astype(kind) for n in (3, 2, 1))
    whole = opened(products((left, right, beside), bound=9000, n=7))
    for size in (1, 7):
        blocks = [
            tuple(np.asfortranarray(one[at : at + size]) for one in (left, right, beside))
            for at in range(0, 30, size)
        ]
        assert opened(products(*blocks[::-1], bound=9000, n=7)) == whole
    exact = [int(a) * int(b) for a in left[0].tolist() for b in right[0].tolist()]
    fits = sum(one**2 for one in [*exact, int(beside[0, 0])]) <= 9000**2
    alone = opened(products((left[:1], right[:1], beside[:1]), bound=9000, n=7))
    assert alone == ([*exact, int(beside[0, 0])] if fits else [0] * 7)


@pytest.mark.parametrize(
    ("left", "right", "beside"),
    [
        ([BOUND, 1], [1], []),
        ([BOUND], [1, 1], []),
        ([BOUND], [1], [1]),
        ([1], [1], [BOUND]),
        ([BOUND + 1], [1], []),
        ([2**31], [2**33], []),  # the product wraps to 0
        ([2**32], [2**32], [1]),
        ([-(2**63)], [1], []),
        ([2**26] * 1024, [2**5], []),  # squares that add up to 2^62
        ([2**27] * 512, [2**27], []),  # and to 2^63
    ],
)
def test_no_vector_is_longer_than_the_bound(left: Any, right: Any, beside: Any) -> None:
    one = (np.array([part], dtype=np.int64).reshape(1, -1) for part in (left, right, beside))
    n = len(left) * len(right) + len(beside)
    assert not any(opened(products(tuple(one), n=n)))


@pytest.mark.parametrize(
    ("left", "right", "beside"),
    [
        ([BOUND], [-1], []),
        ([BOUND - 1], [0], [3]),
        ([1], [BOUND - 1], []),
        ([-BOUND], [1], []),
        ([0], [0], [BOUND]),
    ],
)
def test_vectors_up_to_the_bound_are_added_exactly(left: Any, right: Any, beside: Any) -> None:
    one = [np.array([part], dtype=np.int64).reshape(1, -1) for part in (left, right, beside)]
    vector = [a * b for a in left for b in right] + beside
    repeated = [np.repeat(part, 3, axis=0) for part in one]
    assert opened(products(tuple(repeated), n=len(vector))) == [3 * entry for entry in vector]


def test_the_shape_of_a_sum_says_how_far_it_moves() -> None:
    assert products(bound=5, guarantee=RECORD).shape.squared_sensitivity == 25
    assert products(bound=5, guarantee=REPLACED).shape.squared_sensitivity == 100
    with pytest.raises(ValueError, match="squared_sensitivity"):
        products(guarantee=REPLACED)
    long = np.full((1, 2048), 2**26)  # its squared norm is 2^63
    assert not any(opened(products((long, np.array([[1]]), NONE), bound=2**26, n=2048)))
    for odd in ([[1.0]], [[np.nan]], [1], [[1, 2]]):
        with pytest.raises(DataError):
            products((np.array(odd), np.array([[1]]), NONE))


@pytest.mark.parametrize("n_columns", [1, 3])
def test_no_label_moves_a_sum_by_more_than_is_stated(n_columns: int) -> None:
    rows, squared = np.array([[3, -4], [30, 40], [2**40, 1]]), 100 if n_columns == 1 else 200
    predicted = np.array([[1] * n_columns, [9] * n_columns, [0] * n_columns])
    sums, n_classes = [], max(2, n_columns)
    for labels in itertools.product(range(n_classes), repeat=3):
        blocks = [(rows, np.array(labels), predicted)]
        made = RecordSums.of_labels(blocks, 2, squared, coordinates=2 * n_columns)
        assert made.shape.guarantee.unit == "label"
        sums.append((labels, made._unseal()[0]))
        missed = 2 * (labels[0] == (np.arange(n_columns) if n_columns > 1 else 1)) - 1
        assert opened(made) == np.outer(rows[0], missed).ravel().tolist()
    moved = {
        int(np.square(one - other).sum())
        for (here, one), (there, other) in itertools.product(sums, sums)
        if sum(a != b for a, b in zip(here, there, strict=True)) == 1
    }
    assert moved == {0, squared}


def test_scores_never_wrap() -> None:
    for far in (2**63 - 1, -(2**63)):
        starts, ends = Scores.of_ranges([far], [-1 - far], RECORD)._unseal()
        assert abs(int(starts[0]) - int(ends[0])) <= LARGEST + 1
        assert abs(int(starts[0]) - int(ends[0])) == abs(int((starts - ends)[0]))
    assert Scores.of_candidates(np.array([2**64 - 1], np.uint64), RECORD)._unseal()[0][0] > 0
    assert Scores.of_ranges([3, 4], [3, 2], RECORD).n_candidates == 4
    for odd in ([], [0.5], [[1]], [np.nan]):
        with pytest.raises(DataError):
            Scores.of_candidates(odd, RECORD)
    with pytest.raises(DataError, match="one for each start"):
        Scores.of_ranges([1, 2], [1], RECORD)


class Trusting(np.ndarray):
    """An array that says yes to every comparison, and is never sorted."""

    def __ge__(self, other: object) -> Any:
        return np.ones(self.shape, dtype=np.bool_)

    __le__ = __lt__ = __gt__ = __eq__ = __ge__

    def sort(self, *_: object, **__: object) -> None:
        pass


def trusting(values: Any) -> Any:
    return np.array(values).view(Trusting)


def masked(values: Any) -> Any:
    return np.ma.MaskedArray(values, mask=True)


@pytest.mark.parametrize("as_given", [trusting, masked])
def test_arrays_with_rules_of_their_own_are_looked_at_as_plain_ones(
    as_given: Callable[[Any], Any],
) -> None:
    for counts in ([[-1, 3]], [[1, 2], [1, 1]]):
        with pytest.raises(DataError):
            Votes.of_teachers(as_given(counts), RECORD)
    for cells in ([[0, 0]], [[1, 0, 1]], [[0, 77]], [[-1, 0]]):
        with pytest.raises(DataError) as caught:
            Votes.of_records(
                [as_given(cells)], RECORD, n_queries=2, n_classes=2, votes_per_record=len(cells[0])
            )
        assert "77" not in str(caught.value)
    far = as_given([[6]]), np.array([[1]]), NONE
    assert opened(products(far, bound=5)) == [0]
    assert opened(products((np.array([[1]]), np.array([[0]]), as_given([[6]])), bound=5, n=2)) == [
        0,
        0,
    ]
    block = as_given([[6]]), np.array([1]), np.array([[0]])
    assert RecordSums.of_labels([block], 1, 25, coordinates=1)._unseal()[0].tolist() == [0]


class Much:
    """Equal to every label, by a million."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> Any:
        return 10**6


def test_labels_and_what_is_predicted_of_them_are_integers() -> None:
    # a fraction is rounded with the sum, which then moves by one more or less than the label
    for labels, predicted in (
        (np.array([Much()]), np.array([[0]])),
        (np.array([1.0]), np.array([[0]])),
        (np.array([1]), np.array([[0.3]])),
        (np.array([1]), np.array([[np.nan]])),
        (np.array([1]), np.array([[2**70]], dtype=object)),
    ):
        with pytest.raises(DataError):
            RecordSums.of_labels([(np.array([[1]]), labels, predicted)], 5, 25, coordinates=1)


@pytest.mark.parametrize(
    ("kind", "fields"),
    [
        (Guarantee, {"unit": "label", "relation": "add-remove"}),
        (Sample, dict(SAMPLE) | {"relabel_epsilon": math.nan}),
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
