"""Tables on disk: what is read is what was written, or nothing; one file for each shard."""

import itertools
import json
import pickle
import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from secretballot.core.partition import KeyedHashPartition, shards_of_digests
from secretballot.data import stored as stored_table
from secretballot.data.stored import (
    About,
    StoredTable,
    TableWriter,
    dealt_shards,
    forget_shards,
    forget_table,
)
from secretballot.exceptions import DataError
from secretballot.teachers.ensemble import Shards

N, K = 500, 7
KEY = bytes(range(32))


class TwoColumns:
    """A number and a category of three, as a schema has them."""

    compact_type = np.dtype([("0", np.float64), ("1", np.uint8)])
    feature_names = ("a", "b=x", "b=y", "b=z")

    def widen(self, rows):
        return np.column_stack([rows["0"], np.eye(3)[rows["1"]]])


def cells(n=N):
    rng = np.random.default_rng(1)
    rows = np.empty(n, dtype=TwoColumns.compact_type)
    rows["0"], rows["1"] = rng.normal(size=n), rng.integers(0, 3, n)
    return rows


CLASSES = np.random.default_rng(2).integers(0, 2, N)
UNITS = KeyedHashPartition(1, KEY).digests([f"p{i % 90}" for i in range(N)])


def stored(vault, *, unit=None, serial="s"):
    writer = TableWriter(vault, TwoColumns(), ("no", "yes"), unit)
    for start in range(0, N, 64):
        part = slice(start, start + 64)
        writer.add(cells()[part], CLASSES[part], None if unit is None else UNITS[part])
    return writer.finish(about(serial))


def about(serial):
    return About(identity="identity", serial=serial, n_units=90, columns=("a", "b"))


def by_place(units, first, count):
    return np.arange(first, first + count) % K


def found(vault, identity="identity"):
    return StoredTable.found(vault, TwoColumns(), ("no", "yes"), None, identity)


def all_files(folder):
    return (path for path in folder.rglob("*") if path.is_file())


def test_rows_are_read_as_they_were_written(tmp_path):
    table = stored(tmp_path, unit="person")
    blocks = [
        b for rows in table.stored_rows(33) for b in [stored_table.block_of(rows, table.cells)]
    ]
    assert len(blocks) == -(-N // 33)
    X = np.concatenate([block.X for block in blocks])
    assert X.tobytes() == TwoColumns().widen(cells()).tobytes()
    assert np.concatenate([block.classes for block in blocks]).tolist() == CLASSES.tolist()
    assert (np.concatenate([block.units for block in blocks]) == UNITS).all()
    assert sum(len(block.X) for block in table.blocks()) == N
    assert (table.count_rows(), table.n_columns, table.unit) == (N, 4, "user")


def test_files_are_closed_to_others_and_the_table_shows_nothing(tmp_path):
    table = stored(tmp_path / "vault")
    shards = dealt_shards(table, tmp_path / "vault", K, by_place, rule="place", serial="d")
    assert shards.n_teachers == K
    for path in all_files(tmp_path / "vault"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    for folder in ("vault", "vault/table", "vault/shards"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700
    assert str(N) not in repr(table) + repr(shards)
    for refused in (pickle.dumps, np.asarray, list, len):
        with pytest.raises(TypeError, match="a stored table is not shown"):
            refused(table)


def test_a_table_is_found_again_only_whole_and_of_the_same_file(tmp_path):
    assert found(tmp_path) is None
    table = stored(tmp_path, serial="one")
    again = found(tmp_path)
    assert again is not None
    assert again.serial == table.serial == "one"
    assert (again.count_rows(), again.count_units(), again.columns) == (N, 90, ("a", "b"))
    assert found(tmp_path, "another") is None
    rows = tmp_path / "table" / "000000.rows"
    content = rows.read_bytes()
    for other in (content[:-1], content + b"x", b""):
        rows.write_bytes(other)
        assert found(tmp_path) is None
        with pytest.raises(DataError, match="is not whole"):
            list(table.blocks())
    rows.write_bytes(content)
    (tmp_path / "table" / "about.json").write_text("[]")
    assert found(tmp_path) is None
    forget_table(tmp_path)
    assert not (tmp_path / "table").exists()


def test_a_table_is_not_read_where_another_one_was_stored(tmp_path):
    first = stored(tmp_path, serial="one")
    other = stored(tmp_path, serial="two")  # of as many rows
    with pytest.raises(DataError, match="others were stored in their place"):
        list(first.blocks())
    assert sum(len(block.X) for block in other.blocks()) == N
    writer = TableWriter(tmp_path, TwoColumns(), ("no", "yes"), None)
    writer.add(cells(), CLASSES, None)
    assert found(tmp_path) is None  # it is there once it is finished
    with (tmp_path / "table" / "000000.rows").open("ab") as file:
        file.write(bytes(first.row_type.itemsize))
    with pytest.raises(DataError, match="Something else has written to"):
        writer.finish(about("three"))


def test_a_link_in_the_place_of_a_table_goes_and_not_what_it_leads_to(tmp_path):
    (tmp_path / "vault").mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "about.json").write_text("mine")
    for name in ("table", "shards"):
        (tmp_path / "vault" / name).symlink_to(tmp_path / "elsewhere")
    dealt_shards(stored(tmp_path / "vault"), tmp_path / "vault", K, by_place, rule="r", serial="d")
    forget_table(tmp_path / "vault")
    forget_shards(tmp_path / "vault")
    assert [path.name for path in all_files(tmp_path / "elsewhere")] == ["about.json"]
    assert not [*(tmp_path / "vault").iterdir()]


def test_what_a_fit_that_was_killed_left_goes_with_the_table(tmp_path):
    table = stored(tmp_path)
    for name in ("persons-x", "shards-y"):
        (tmp_path / name / "shards").mkdir(parents=True)
        (tmp_path / name / "shards" / "000000.rows").write_text("private")
    table.remove()
    assert not [*tmp_path.iterdir()]


def test_nothing_goes_on_while_shards_cannot_be_removed(tmp_path, monkeypatch):
    dealt_shards(stored(tmp_path), tmp_path, K, by_place, rule="place", serial="d")

    def refuse(*args, **more):
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", refuse)
        patch.setattr("shutil.rmtree", lambda *args, **more: None)
        with pytest.raises(DataError, match="nothing may be released while they are there"):
            forget_shards(tmp_path)
    forget_shards(tmp_path)
    assert not (tmp_path / "shards").exists()


def test_a_full_disk_ends_in_one_sentence(tmp_path, monkeypatch):
    writer = TableWriter(tmp_path, TwoColumns(), ("no", "yes"), None)

    def full(*args, **more):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(stored_table.os, "fdopen", full)
    with pytest.raises(DataError, match=r"cannot be written \(No space left on device\); free"):
        writer.add(cells(), CLASSES, None)


def test_rows_are_never_written_through_a_link(tmp_path):
    writer = TableWriter(tmp_path / "vault", TwoColumns(), ("no", "yes"), None)
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "vault" / "table" / "000000.rows").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DataError, match="cannot be written"):
        writer.add(cells(), CLASSES, None)
    assert (tmp_path / "elsewhere").read_text() == ""


@pytest.mark.parametrize("at_once", [10, N])
def test_shards_on_disk_are_those_in_memory(tmp_path, at_once, monkeypatch):
    table = stored(tmp_path, unit="person")
    monkeypatch.setattr("secretballot.data.stored._DEALT_BYTES", at_once * table.row_type.itemsize)

    def by_unit(units, first, count):
        return shards_of_digests(units, 200)

    on_disk = dealt_shards(table, tmp_path, 200, by_unit, rule="user", serial="d")
    numbers = KeyedHashPartition(200, KEY).assign([f"p{i % 90}" for i in range(N)])
    in_memory = Shards(TwoColumns().widen(cells()), CLASSES, numbers, 200)
    assert 0 in on_disk.sizes  # some shards are empty, and have no file
    travelled = pickle.loads(pickle.dumps(on_disk))
    for number in range(200):
        for source in (on_disk, travelled):
            (X, y), (X_known, y_known) = source.part(number), in_memory.part(number)
            assert X.tobytes() == X_known.tobytes()
            assert y.tolist() == y_known.tolist()


def test_shards_are_taken_up_again_only_if_they_are_the_same(tmp_path):
    table = stored(tmp_path)

    def deal(serial, *, k=K, rule="place", of=table):
        return dealt_shards(of, tmp_path, k, by_place, rule=rule, serial=serial).serial

    assert deal("one") == "one"
    assert deal("two") == "one"
    assert deal("three", rule="record") == "three"
    assert deal("four", rule="record", k=K + 1) == "four"
    assert deal("five", rule="record", k=K + 1, of=stored(tmp_path, serial="t")) == "five"
    place = tmp_path / "shards" / "about.json"
    fields = json.loads(place.read_text())
    for sizes in ([-1] * (K + 1), ["1"] * (K + 1), [1]):
        place.write_text(json.dumps({**fields, "sizes": sizes}))
        again = stored(tmp_path, serial="t")
        assert deal("six", rule="record", k=K + 1, of=again) == "six"
        forget_shards(tmp_path)
        assert not (tmp_path / "shards").exists()
        deal("five", rule="record", k=K + 1, of=again)


def test_a_shard_that_is_not_whole_is_no_vote(tmp_path):
    shards = dealt_shards(stored(tmp_path), tmp_path, K, by_place, rule="place", serial="d")
    path = tmp_path / "shards" / "000003.rows"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"000003\.rows is not whole"):
        shards.part(3)
    path.unlink()
    with pytest.raises(DataError, match=r"000003\.rows is not whole"):
        shards.part(3)


def test_a_shard_that_is_sent_is_the_one_on_disk(tmp_path):
    shards = dealt_shards(stored(tmp_path), tmp_path, K, by_place, rule="place", serial="d")
    for number, send in itertools.product(range(K), (False, True)):
        load = pickle.loads(pickle.dumps(shards.loader(number, send=send)))
        for found, wanted in zip(load(), shards.part(number), strict=True):
            assert found.tobytes() == wanted.tobytes()
    elsewhere = replace(shards, folder=tmp_path / "elsewhere")
    with pytest.raises(DataError, match=f"The rows in {elsewhere.folder} are not seen"):
        elsewhere.part(0)


@pytest.mark.parametrize("n_shards", [1, 7, 250, 10_007, 2**32])
def test_the_shard_of_a_hash_is_its_remainder(n_shards):
    expected = [(int(high) << 64 | int(low)) % n_shards for high, low in UNITS]
    assert shards_of_digests(UNITS, n_shards).tolist() == expected
    ids = [f"p{i % 90}" for i in range(N)]
    assert KeyedHashPartition(n_shards, KEY).assign(ids).tolist() == expected
