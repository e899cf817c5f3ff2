"""A student's file is a function of its values: no address, no leftover of memory, no order of a
hash table."""

import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import every_student
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier

from secretballot.exceptions import DataError
from secretballot.report.student.canonical import SCHEMA
from secretballot.report.student.export import TRUSTED_TYPES, dump_student, load_student

PAIR = np.dtype(
    {"names": ["number", "flag"], "formats": ["<i8", "u1"], "offsets": [0, 8], "itemsize": 16}
)


def fitted() -> LogisticRegression:
    return LogisticRegression().fit(every_student.POINTS, every_student.POINTS[:, 0] > 0)


def written(student: Any, path: Path) -> bytes:
    dump_student(student, path / "student.skops")
    return (path / "student.skops").read_bytes()


def test_two_processes_with_other_memories_write_the_same_bytes() -> None:
    runs = []
    for words, hashes, left in (((), "1", "85"), (("ballot",), "2", "170")):
        environment = os.environ | {"PYTHONHASHSEED": hashes, "MALLOC_PERTURB_": left}
        command = [sys.executable, every_student.__file__, *words]
        runs.append(subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True))
    first, second = (run.communicate(timeout=600)[0].splitlines() for run in runs)
    assert [run.returncode for run in runs] == [0, 0]
    assert first == second
    assert len(first) > 50


def test_every_student_comes_back_alike_and_every_trusted_type_is_among_them(
    tmp_path: Path,
) -> None:
    path, again, types = tmp_path / "student.skops", tmp_path / "again.skops", set()
    for name, student, points in every_student.every():
        assert dump_student(student, path) == (), name
        loaded = load_student(path)
        assert np.array_equal(loaded.predict(points), student.predict(points)), name
        if hasattr(student, "predict_proba"):
            assert np.array_equal(loaded.predict_proba(points), student.predict_proba(points)), name
        dump_student(loaded, again)
        assert path.read_bytes() == again.read_bytes(), name
        with zipfile.ZipFile(path) as file:
            types |= {
                f"{node['__module__']}.{node['__class__']}"
                for node in nodes(json.loads(file.read(SCHEMA)))
            }
    assert types >= set(TRUSTED_TYPES)


def test_what_padding_holds_stays_in_memory(tmp_path: Path) -> None:
    student = fitted()
    student.pairs_ = np.frombuffer(b"\xab" * 160, dtype=PAIR).copy()
    student.pairs_["number"], student.pairs_["flag"] = 1, 2
    assert b"\xab\xab\xab" not in written(student, tmp_path)
    assert np.array_equal(load_student(tmp_path / "student.skops").pairs_, student.pairs_)


def test_how_often_a_student_was_asked_is_not_told(tmp_path: Path) -> None:
    student = KNeighborsClassifier(algorithm="kd_tree").fit(
        every_student.POINTS, every_student.POINTS[:, 0] > 0
    )
    before = written(student, tmp_path)
    student.predict(every_student.POINTS)
    assert written(student, tmp_path) == before


def test_it_does_not_matter_which_equal_values_are_one_object(tmp_path: Path) -> None:
    one, other = fitted(), fitted()
    text, row = "".join(["a", "b"]), np.arange(9.0)
    one.notes_, one.rows_ = [text, text], [row, row]
    other.notes_, other.rows_ = ["".join(["a", "b"]), text], [row.copy(), row]
    assert written(one, tmp_path) == written(other, tmp_path)


def test_nothing_in_the_zip_file_tells_of_its_making(tmp_path: Path) -> None:
    content = written(fitted(), tmp_path)
    with zipfile.ZipFile(tmp_path / "student.skops") as file:
        about = file.infolist()
        schema = file.read(SCHEMA).decode()
    assert content.startswith(b"PK")
    assert {
        (one.date_time, one.compress_type, one.create_system, one.external_attr) for one in about
    } == {((1980, 1, 1, 0, 0, 0), zipfile.ZIP_STORED, 3, 0o600 << 16)}
    assert [one.filename for one in about] == [
        SCHEMA,
        *(f"{place}.npy" for place in range(len(about) - 1)),
    ]
    ids = [node["__id__"] for node in nodes(json.loads(schema))]
    assert ids == list(range(1, len(ids) + 1))


def nodes(part: Any) -> list[dict[str, Any]]:
    """Return all nodes of a schema, each before those inside it."""
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    own = [part] if isinstance(part, dict) and "__loader__" in part else []
    return own + [node for item in inside for node in nodes(item)]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (repr(object()), "memory address"),
        (np.array([repr(object())]), "memory address"),
        (np.ones(3, dtype=np.longdouble), "long doubles"),
        ({1: 2, "1": 3}, "equal as strings"),
    ],
    ids=["text", "texts", "long double", "keys"],
)
def test_what_has_no_canonical_form_is_refused(tmp_path: Path, value: Any, words: str) -> None:
    student = fitted()
    student.extra_ = value
    with pytest.raises(DataError, match=words):
        dump_student(student, tmp_path / "student.skops")
    assert not any(tmp_path.iterdir())


def test_an_address_kept_as_a_number_is_refused(tmp_path: Path) -> None:
    student = fitted()
    student.place_ = id(student.classes_)
    with pytest.raises(DataError, match="memory address"):
        dump_student(student, tmp_path / "student.skops")


def test_where_the_global_generator_stands_is_not_told(tmp_path: Path) -> None:
    student = MLPClassifier((2,), max_iter=300, tol=1.0).fit(
        every_student.POINTS, every_student.POINTS[:, 0] > 0
    )
    assert student._random_state is np.random.mtrand._rand
    before = written(student, tmp_path)
    np.random.rand()  # noqa: NPY002
    assert written(student, tmp_path) == before
