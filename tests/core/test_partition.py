"""One unit touches one shard, whatever its id looks like."""

import io
from collections.abc import Callable
from decimal import Decimal
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from secretballot.core.partition import KeyedHashPartition, PositionPartition, canonical_id
from secretballot.exceptions import DataError, ParameterError

KEY = b"a key of 16 byte"
K = 5


class Record(NamedTuple):
    unit: object
    value: float


Rule = Callable[[list[Record]], np.ndarray]


def shards_touched(rule: Rule, before: list[Record], after: list[Record]) -> int:
    """Number of shards whose records, in their order, differ between two tables."""

    def contents(records: list[Record]) -> list[list[Record]]:
        shards = rule(records)
        return [
            [record for record, shard in zip(records, shards, strict=True) if shard == k]
            for k in range(K)
        ]

    return sum(one != other for one, other in zip(contents(before), contents(after), strict=True))


def keyed_hash(records):
    return KeyedHashPartition(K, KEY).assign([record.unit for record in records])


def keyed_hash_of_column(records):
    """The column as pandas types it, which depends on all rows."""
    return KeyedHashPartition(K, KEY).assign(pd.Series([record.unit for record in records]))


def keyed_hash_of_csv(records):
    text = pd.DataFrame({"id": [str(record.unit) for record in records]}).to_csv(index=False)
    return KeyedHashPartition(K, KEY).assign(pd.read_csv(io.StringIO(text))["id"])


def by_position(records):
    return PositionPartition(K, len(records)).assign()


spellings = st.one_of(
    st.integers(min_value=-(2**63), max_value=2**63 - 1),
    st.integers(0, 30),
    st.integers(0, 30).map(str),
    st.integers(0, 30).map(float),
    st.integers(0, 30).map(np.int32),
    st.text(alphabet="0129.eE+-A x", min_size=1, max_size=6).filter(lambda text: text.strip()),
)


def tables(units):
    return st.lists(st.builds(Record, units, st.floats(0, 1)), min_size=1, max_size=30)


@pytest.mark.parametrize("rule", [keyed_hash, keyed_hash_of_column, keyed_hash_of_csv])
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_adding_or_removing_a_unit_touches_at_most_one_shard(rule, data):
    before = data.draw(tables(spellings))
    unit = data.draw(st.sampled_from(before)).unit
    gone = canonical_id(unit)
    after = [record for record in before if canonical_id(record.unit) != gone]
    assume(after)
    try:
        touched = shards_touched(rule, before, after)
    except DataError:
        assume(False)  # one of the two tables is refused, so nothing of it is released
    assert touched <= 1


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_replacing_a_record_by_position_touches_at_most_one_shard(data):
    before = data.draw(tables(st.integers()).filter(lambda records: len(records) >= K))
    row = data.draw(st.integers(0, len(before) - 1))
    after = [*before[:row], Record(-1, before[row].value + 1), *before[row + 1 :]]
    assert shards_touched(by_position, before, after) == 1


def test_unsafe_rules_touch_many_shards_when_a_unit_is_removed():
    def sorted_chunks(records):
        places = np.argsort(np.argsort([record.value for record in records]))
        return places * K // len(records)

    def stratified(records):
        shards, high = np.empty(len(records), int), np.array([one.value > 0.5 for one in records])
        for rows in (np.flatnonzero(high), np.flatnonzero(~high)):
            shards[rows] = np.arange(len(rows)) % K
        return shards

    records = [Record(*one) for one in enumerate(np.random.default_rng(3).random(40).tolist())]
    for rule, most in ((sorted_chunks, K), (stratified, K), (keyed_hash, 1)):
        removed = [records[:row] + records[row + 1 :] for row in range(40)]
        assert max(shards_touched(rule, records, after) for after in removed) == most


@pytest.mark.parametrize(
    "spelling",
    [
        *(7, 7.0, "7", " 7 ", "007", "+7", "7.0", "7.", "70e-1", b"7"),
        *(np.int8(7), np.uint64(7), np.float32(7), np.float16(7), np.longdouble(7), np.str_("7")),
        *(Decimal(7), Decimal("7.00")),
    ],
)
def test_a_whole_number_is_one_id_however_it_is_written(spelling):
    assert canonical_id(spelling) == canonical_id(7) == b"i7"


def test_text_is_stripped_and_normalised_and_large_numbers_stay_apart():
    assert canonical_id(" Zo\u00e9 ") == canonical_id("Zoe\u0301")
    assert canonical_id("12e4567") == b"s12e4567"
    assert canonical_id("1.5") == b"s1.5"
    assert len({canonical_id(2**62 + step) for step in range(5)}) == 5
    for number in (2**53 - 1, 2**62 + 1, 10**40 - 1, 10**40, 2**4096 - 1):
        assert canonical_id(number) == canonical_id(str(number))
    # a float has digits of its own
    assert canonical_id(f"{2**53 - 1}.0") == canonical_id(2**53 - 1)
    assert canonical_id(f"{2**53}.0") == b"s%d.0" % 2**53
    assert canonical_id(np.float32(2**24 - 1)) == canonical_id(2**24 - 1)


@pytest.mark.parametrize(
    "unfit",
    [
        *(None, float("nan"), np.float32("nan"), "", "  ", "nan", "<NA>", pd.NA, pd.NaT),
        *(Decimal("nan"), True, np.True_, 1.5, float("inf"), 2.0**53, np.longdouble(2**53)),
        np.float32(2**24),
        *(Decimal("1.5"), Decimal("1E+9999"), 2**4096, [1], {"a": 1}, pd.Timestamp(0)),
    ],
)
def test_missing_and_unfit_ids_are_told_by_row_number_only(unfit):
    with pytest.raises(DataError, match=r"1 rows \(rows 2, counted from 0\) are missing") as caught:
        KeyedHashPartition(K, KEY).assign(["secret", 3, unfit, "secret"])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "column",
    [
        np.array([[1, 2]]),
        np.ma.array([1, 2], mask=[False, True]),
        np.array(["2020-01-01"], dtype="datetime64[D]"),
        np.array([True]),
        np.array([2**24], dtype=np.float32),  # as a float of Python it would be exact
        pd.Series(pd.to_datetime(["2020-01-01"])),
        *("abc", 5, np.array(1), [[1], [2]]),
    ],
)
def test_what_is_no_column_of_ids_is_refused(column):
    with pytest.raises(DataError):
        KeyedHashPartition(K, KEY).assign(column)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2, 3], dtype="Int64"),
        pd.Series(["1", "2", "3"], dtype="string"),
        pd.Series([1.0, 2.0, 3.0]),
        pd.Series(["1", "2", "3"], dtype="category"),
        *(np.array([1, 2, 3], dtype=np.uint8), np.array(["1", "2", "3"]), iter([1, 2, 3])),
    ],
)
def test_column_types_do_not_move_a_unit(column):
    np.testing.assert_array_equal(
        KeyedHashPartition(250, KEY).assign(column), KeyedHashPartition(250, KEY).assign([1, 2, 3])
    )


def test_a_shard_is_the_keyed_hash_of_an_id_modulo_the_number_of_teachers():
    key = KEY * 4
    hashed = blake2b(b"i7", key=key, digest_size=16, person=b"secretballot").digest()
    for n in (1, 7, 250, 2**32):
        assert KeyedHashPartition(n, key).assign([7]) == [int.from_bytes(hashed) % n]


def test_shards_are_even_on_average_and_move_with_the_key():
    ids = np.arange(40_000)
    shards = KeyedHashPartition(100, KEY).assign(ids)
    # 100 cells of mean 400: chi-square with 99 degrees of freedom, mean 99, standard deviation 14.
    assert np.sum((np.bincount(shards, minlength=100) - 400) ** 2 / 400) < 99 + 5 * 14
    assert np.mean(shards == KeyedHashPartition(100, KEY[::-1]).assign(ids)) < 0.02


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 65, "a key of 16 byte", None])
def test_unfit_key_is_refused_without_being_shown(key):
    with pytest.raises(ParameterError, match="16 to 64 bytes") as caught:
        KeyedHashPartition(K, key)
    assert "short" not in str(caught.value)


@pytest.mark.parametrize("n_teachers", [0, -1, 2.5, True, None, 2**32 + 1])
def test_number_of_teachers_must_be_whole_and_positive(n_teachers):
    with pytest.raises(ParameterError, match="n_teachers"):
        KeyedHashPartition(n_teachers, KEY)
    with pytest.raises(ParameterError, match="n_teachers"):
        PositionPartition(n_teachers, 10)


def test_position_rule_is_even_and_needs_a_record_per_teacher():
    assert np.bincount(PositionPartition(4, 10).assign()).tolist() == [3, 3, 2, 2]
    with pytest.raises(ParameterError, match="every teacher needs a record"):
        PositionPartition(11, 10)
