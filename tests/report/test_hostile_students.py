"""No file makes a reader crash, hang, or take much memory: it is refused in a sentence, or it
predicts."""

import io
import json
import os
import random
import resource
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import every_student
import numpy as np
import pytest
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

from secretballot.bases import TableBasis
from secretballot.exceptions import DataError
from secretballot.report.student import grammar
from secretballot.report.student.canonical import SCHEMA, zipped
from secretballot.report.student.export import dump_student, load_student
from secretballot.students import MomentsStudent, NumberedClassesClassifier

X = every_student.POINTS
Y = (X[:, 0] + X[:, 1] ** 2 > 1).astype(int)
Members = dict[str, bytes]


def members(student: Any, folder: Path) -> Members:
    path = folder / "student.skops"
    dump_student(student, path)
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def refused(parts: Members | bytes, folder: Path, words: str) -> None:
    path = folder / "student.skops"
    path.write_bytes(parts if isinstance(parts, bytes) else zipped(parts.items()))
    with pytest.raises(DataError, match=words) as caught:
        load_student(path)
    assert len(str(caught.value)) < 500


def nodes(part: Any) -> Iterator[dict[str, Any]]:
    if isinstance(part, dict):
        if "__loader__" in part:
            yield part
        for value in part.values():
            yield from nodes(value)
    elif isinstance(part, list):
        for item in part:
            yield from nodes(item)


def arrays(parts: Members) -> Iterator[tuple[str, np.ndarray]]:
    for name in parts:
        if name.endswith(".npy"):
            yield name, np.load(io.BytesIO(parts[name]))


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def edited(parts: Members, field: str, place: int, value: Any) -> Members:
    """Return the members with one field of every structured array changed at one place."""
    new = dict(parts)
    for name, array in arrays(parts):
        if array.dtype.names and field in array.dtype.names:
            array[field][place] = value
            new[name] = npy(array)
    assert new != parts
    return new


TREES = {
    "tree": DecisionTreeClassifier(max_depth=4, random_state=0),
    "forest": RandomForestClassifier(3, max_depth=4, random_state=0),
    "boosting": GradientBoostingClassifier(n_estimators=3, random_state=0),
}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("left_child", 10**6),
        ("left_child", 0),
        ("left_child", -5),
        ("right_child", 1),
        ("feature", 9),
        ("feature", -3),
    ],
)
@pytest.mark.parametrize("name", TREES)
def test_a_tree_that_leads_elsewhere_is_refused(
    tmp_path: Path, name: str, field: str, value: int
) -> None:
    parts = members(TREES[name].fit(X, Y), tmp_path)
    refused(edited(parts, field, 0, value), tmp_path, "tree of it|leaf of it")


@pytest.mark.parametrize(
    ("field", "value"), [("left", 10**6), ("right", 0), ("feature_idx", 77), ("feature_idx", -1)]
)
def test_boosted_histograms_that_lead_elsewhere_are_refused(
    tmp_path: Path, field: str, value: int
) -> None:
    parts = members(
        HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=5).fit(X, Y), tmp_path
    )
    refused(edited(parts, field, 0, value), tmp_path, "tree of it")


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
@pytest.mark.parametrize(
    ("field", "value"), [("idx_end", 10**6), ("idx_start", -7), ("is_leaf", 0)]
)
def test_search_trees_that_lead_elsewhere_are_refused(
    tmp_path: Path, algorithm: str, field: str, value: int
) -> None:
    parts = members(KNeighborsClassifier(algorithm=algorithm, leaf_size=10).fit(X, Y), tmp_path)
    refused(edited(parts, field, -1, value), tmp_path, "search tree")


def test_neighbours_that_are_not_there_are_refused(tmp_path: Path) -> None:
    parts = members(KNeighborsClassifier(algorithm="kd_tree", leaf_size=10).fit(X, Y), tmp_path)
    for name, array in arrays(parts):
        if array.dtype == np.int64 and array.shape == (len(X),):
            array[3] = 10**7
            refused(parts | {name: npy(array)}, tmp_path, "search tree|labels of no class")


def changed(parts: Members, change: Callable[[Any], None]) -> Members:
    schema = json.loads(parts[SCHEMA])
    change(schema)
    return parts | {SCHEMA: json.dumps(schema).encode()}


def values(schema: Any, key: str) -> Iterator[dict[str, Any]]:
    """Yield the nodes of all attributes of a name."""
    for node in nodes(schema):
        if node["__loader__"] == "DictNode" and key in node["content"]:
            yield node["content"][key]


@pytest.mark.parametrize(
    ("key", "content"),
    [
        ("node_count", "900000"),
        ("max_depth", "-1"),
        ("n_features_in_", "2"),
        ("n_features_in_", "40"),
        ("n_outputs_", "2"),
    ],
)
def test_a_tree_of_other_sizes_is_refused(tmp_path: Path, key: str, content: str) -> None:
    parts = members(DecisionTreeClassifier(max_depth=3).fit(X, Y), tmp_path)

    def change(schema: Any) -> None:
        for node in values(schema, key):
            node["content"] = content

    refused(changed(parts, change), tmp_path, "tree of it")


@pytest.mark.parametrize(
    ("module", "name", "loader"),
    [("numpy", "tanh", "FunctionNode"), ("builtins", "str", "TypeNode")],
)
def test_an_attribute_that_hides_a_method_is_refused(
    tmp_path: Path, module: str, name: str, loader: str
) -> None:
    parts = members(LogisticRegression().fit(X, Y), tmp_path)

    def change(schema: Any) -> None:
        attributes = schema["content"]
        attributes["content"]["predict"] = {
            "__class__": name,
            "__module__": module,
            "__loader__": loader,
        }
        attributes["key_types"]["content"].append(attributes["key_types"]["content"][0])

    # functions of numpy before 2.2 do not tell their module, so that nobody trusts them in the
    # first place
    refused(changed(parts, change), tmp_path, "hides a method|not trusted: numpy.tanh")


@pytest.mark.parametrize(
    "kind", ["ListNode", "LossNode", "ConstructorFromReduceNode", "TupleNode", "DictNode"]
)
def test_a_type_is_made_in_its_own_way_alone(tmp_path: Path, kind: str) -> None:
    parts = members(DecisionTreeClassifier(max_depth=3).fit(X, Y), tmp_path)

    def change(schema: Any) -> None:
        for node in nodes(schema):
            if node["__class__"] == "Tree":
                node["__loader__"] = kind

    refused(changed(parts, change), tmp_path, "not a readable skops file")


def test_what_is_not_checked_must_be_named(tmp_path: Path) -> None:
    path = tmp_path / "student.skops"
    student = SVC().fit(X, Y)
    needs = dump_student(student, path)
    assert needs == ("sklearn.svm._classes.SVC",)
    with pytest.raises(DataError, match=r"types that are not trusted: sklearn\.svm"):
        load_student(path)
    assert np.array_equal(load_student(path, trusted=needs).predict(X), student.predict(X))


def test_a_tree_alone_is_no_student(tmp_path: Path) -> None:
    parts = members(DecisionTreeClassifier(max_depth=3).fit(X, Y), tmp_path)
    schema = json.loads(parts[SCHEMA])
    (tree,) = (node for node in nodes(schema) if node["__class__"] == "Tree")
    tree |= {key: schema[key] for key in ("protocol", "_skops_version")}
    refused(parts | {SCHEMA: json.dumps(tree).encode()}, tmp_path, "where none belongs")


def emptied(node: dict[str, Any]) -> None:
    node["content"].clear()


def shortened(node: dict[str, Any]) -> None:
    node["content"].pop()


def numbered(number: str) -> Callable[[dict[str, Any]], None]:
    return lambda node: node.update(content=number)


STUDENTS: dict[str, Callable[[], Any]] = {
    "table": lambda: every_student.moments(3)[0],
    "landmarks": lambda: every_student.landmarks(ranked=True),
    "graph": every_student.modes,
}


@pytest.mark.parametrize(
    ("student", "key", "change", "words"),
    [
        ("table", "_columns", shortened, "other columns"),
        ("table", "n_features_in_", numbered("3"), "other columns"),
        ("table", "levels", emptied, "other features"),
        ("table", "n_inputs_", numbered("5"), "other features"),
        ("table", "n_directions_", numbered("2"), "another shape|other weights"),
        ("table", "n_directions_", numbered("-1"), "another shape|other weights"),
        ("table", "shift", numbered("0"), "rotation of its basis is odd"),
        ("table", "shift", numbered("64"), "rotation of its basis is odd"),
        ("table", "largest_input", numbered("0"), "rotation of its basis is odd"),
        ("table", "missing", numbered("7"), "column of its basis is odd"),
        ("table", "spike", numbered("NaN"), "column of its basis is odd"),
        ("table", "spike", numbered('"x"'), "column of its basis is odd"),
        ("table", "classes", shortened, "other weights"),
        ("table", "classes", emptied, "no classes"),
        ("table", "classes", lambda node: numbered("NaN")(node["content"][0]), "no classes"),
        ("landmarks", "n_features_in_", numbered("3"), "landmarks of its basis"),
        ("landmarks", "n_directions_", numbered("3"), "another shape|other weights"),
        ("landmarks", "_median", numbered("0"), "no distances"),
        ("landmarks", "_farthest", numbered("-1"), "no distances"),
        ("landmarks", "shift", numbered("99"), "rotation of its basis is odd"),
        ("landmarks", "ranked", numbered("false"), "no ranks"),
        ("graph", "n_features_in_", numbered("3"), "public points of its basis"),
        ("graph", "n_directions_", numbered("3"), "other values than its points|other weights"),
        ("graph", "n_nearest", numbered("100000"), "fewer points than neighbours"),
        ("graph", "n_nearest", numbered("0"), "fewer points than neighbours"),
        ("graph", "_farthest", numbered("-1"), "other values than its points"),
    ],
)
def test_a_student_of_other_sizes_is_refused(
    tmp_path: Path,
    student: str,
    key: str,
    change: Callable[[dict[str, Any]], None],
    words: str,
) -> None:
    parts = members(STUDENTS[student](), tmp_path)

    def forge(schema: Any) -> None:
        for node in values(schema, key):
            change(node)

    refused(changed(parts, forge), tmp_path, words)


FORGED: dict[str, tuple[Callable[[np.ndarray], np.ndarray], str]] = {
    "edges": (lambda array: array[::-1], "odd bins"),
    "sorted_values": (lambda array: array[:0], "odd bins"),
    "weights": (lambda array: array[:-1], "another shape|other weights"),
    "offset": (lambda array: array.astype(float), "another shape"),
}


@pytest.mark.parametrize("key", FORGED)
def test_a_moments_student_with_other_arrays_is_refused(tmp_path: Path, key: str) -> None:
    parts = members(every_student.moments(2)[0], tmp_path)
    change, words = FORGED[key]
    named = {node["file"] for node in values(json.loads(parts[SCHEMA]), key)}
    forged = {name: npy(change(array)) for name, array in arrays(parts) if name in named}
    refused(parts | forged, tmp_path, words)


def test_a_student_of_ranks_that_do_not_ascend_is_refused(tmp_path: Path) -> None:
    parts = members(every_student.landmarks(ranked=True), tmp_path)
    n_public = len(every_student.POINTS)
    names = [name for name, array in arrays(parts) if array.shape == (n_public,)]
    for name in names:
        for odd in (np.full(n_public, np.nan), np.arange(n_public, 0.0, -1)):
            refused(parts | {name: npy(odd)}, tmp_path, "no ranks")
    assert names


@pytest.mark.parametrize("entry", [2**62, -(2**62)])
def test_a_moments_student_with_weights_beyond_bounds_is_refused(
    tmp_path: Path, entry: int
) -> None:
    student, _ = every_student.moments(2)
    parts = members(student, tmp_path)
    for name, array in arrays(parts):
        if array.shape == student.weights.shape:
            array[0, 0] = entry
            refused(parts | {name: npy(array)}, tmp_path, "other weights")


def twice(parts: Members) -> bytes:
    buffer = io.BytesIO(zipped(parts.items()))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(buffer, "a") as file:
        file.writestr(SCHEMA, parts[SCHEMA])
    return buffer.getvalue()


def bomb(parts: Members) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in parts.items():
            file.writestr(name, content)
        with file.open("99.npy", "w") as member:
            for _ in range(300):
                member.write(bytes(1 << 20))
    return buffer.getvalue()


def repeated(parts: Members) -> Members:
    """Return a small file that refers to one large array again and again."""
    schema = json.loads(parts[SCHEMA])
    node = next(node for node in nodes(schema) if node["__loader__"] == "NdArrayNode") | {
        "file": "99.npy"
    }
    schema["content"]["content"]["many_"] = {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "content": [node] * 50,
    }
    schema["content"]["key_types"]["content"].append(schema["content"]["key_types"]["content"][0])
    return parts | {SCHEMA: json.dumps(schema).encode(), "99.npy": npy(np.zeros(1 << 20))}


def deep(parts: Members) -> Members:
    return parts | {SCHEMA: b'{"content":' * 100_000 + b"1" + b"}" * 100_000}


def promising(parts: Members) -> Members:
    """Return arrays whose headers promise more than there is."""
    new = dict(parts)
    for name, _ in arrays(parts):
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 40,)}
        )
        new[name] = header.getvalue()
    return new


BOMBS: list[tuple[Callable[[Members], Members | bytes], str]] = [
    (twice, "twice"),
    (bomb, "too large"),
    (repeated, "too large"),
    (deep, "not a readable"),
    (promising, "too large"),
    (lambda parts: parts | {"../evil.npy": b""}, "foreign"),
    (lambda parts: parts | {"/etc/evil": b""}, "foreign"),
    (lambda parts: {name: parts[name] for name in parts if name == SCHEMA}, "missing"),
    (lambda parts: {name: parts[name] for name in parts if name != SCHEMA}, "no schema"),
]


@pytest.mark.parametrize(("make", "words"), BOMBS)
def test_files_that_are_too_large_or_odd_are_refused(
    tmp_path: Path, make: Callable[[Members], Members | bytes], words: str
) -> None:
    parts = members(LogisticRegression().fit(X, Y), tmp_path)
    refused(make(parts), tmp_path, words)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "student.skops")
    with pytest.raises(DataError, match="no regular file"):
        load_student(tmp_path / "student.skops")


def mutated(parts: Members, coins: random.Random) -> Members:
    """Return members with some numbers, names or kinds replaced by others, each still well
    formed."""
    new, schema = dict(parts), json.loads(parts[SCHEMA])
    for _ in range(coins.randint(1, 3)):
        if coins.random() < 0.5:
            _mutate_array(new, coins)
        else:
            _mutate_node(coins.choice(list(nodes(schema))), schema, coins)
    return new | {SCHEMA: json.dumps(schema).encode()}


NUMBERS = (-1, 0, 1, 2, 3, 7, 100, -100, 2**31, 2**40, -(2**40), 2**62)


def _mutate_array(parts: Members, coins: random.Random) -> None:
    name, array = coins.choice(list(arrays(parts)))
    array = np.atleast_1d(array)
    kind = coins.random()
    if kind < 0.2:
        array = array[: coins.randrange(len(array) + 1)]
    elif kind < 0.3:
        array = np.concatenate([array, array])
    elif array.size:
        part = array[coins.choice(array.dtype.names)] if array.dtype.names else array
        place = coins.randrange(part.size)
        with np.errstate(all="ignore"):
            if part.dtype.kind in "iub":
                part.flat[place] = np.array(coins.choice(NUMBERS)).astype(part.dtype)
            elif part.dtype.kind == "f":
                part.flat[place] = coins.choice([np.nan, np.inf, -np.inf, 1e300, 0.0, -3.0])
    parts[name] = npy(array)


def _mutate_node(node: dict[str, Any], schema: Any, coins: random.Random) -> None:
    others = list(nodes(schema))
    kind = coins.random()
    if node["__loader__"] == "JsonNode" and kind < 0.7:
        node["content"] = coins.choice(
            [str(coins.choice(NUMBERS)), "null", "true", "NaN", '"x"', "1e308"]
        )
    elif "file" in node and kind < 0.7:
        node["file"] = coins.choice([other["file"] for other in others if "file" in other])
    elif isinstance(node.get("content"), list) and node["content"] and kind < 0.7:
        node["content"].pop(coins.randrange(len(node["content"])))
    elif kind < 0.85:
        node["__id__"] = coins.choice(others)["__id__"]
    else:
        donor = json.loads(json.dumps(coins.choice(others)))
        if donor is not schema:
            node.clear()
            node.update(donor)


def attack(student: Any, seed: int, times: int, folder: Path) -> tuple[int, int]:
    """Return how many of the mutated files were refused, and how many predicted something."""
    parts, coins, counts = members(student, folder), random.Random(seed), [0, 0]
    path = folder / "student.skops"
    for _ in range(times):
        path.write_bytes(zipped(mutated(parts, coins).items()))
        try:
            loaded = load_student(path)
        except DataError:
            counts[0] += 1
            continue
        counts[1] += 1
        for points in (X, X.astype(np.float32), X[:1]):
            try:
                with np.errstate(all="ignore"):
                    first, second = loaded.predict(points), loaded.predict(points)
            except Exception:  # whatever numpy says of shapes and types
                break
            assert np.array_equal(first, second)
    return counts[0], counts[1]


def victims() -> dict[str, Any]:
    """Return the students whose predictions run compiled code, and one whose do not."""
    found = {name: student.fit(X, Y) for name, student in TREES.items()}
    found["histograms"] = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=5).fit(X, Y)
    for algorithm in ("kd_tree", "ball_tree", "brute"):
        found[algorithm] = KNeighborsClassifier(3, algorithm=algorithm, leaf_size=10).fit(X, Y)
    found["three classes"] = GradientBoostingClassifier(n_estimators=2, random_state=0).fit(
        X, np.arange(len(X)) % 3
    )
    found["logistic"] = LogisticRegression().fit(X, Y)
    basis = TableBasis(n_bins=4).fit(X)
    found["landmarks"] = every_student.landmarks()
    found["modes"] = every_student.modes()
    found["moments"] = MomentsStudent(basis, np.ones((basis.n_directions_ + 1, 1), int), [0, 1])
    found["record votes"] = every_student.record_votes(2)
    return found


def main(seed: int, times: int, folder: Path) -> None:
    """Attack every victim in this process, within 2 GB."""
    import warnings

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    for name, student in victims().items():
        print(name, *attack(student, seed, times, folder), flush=True)


@pytest.mark.parametrize("times", [4, pytest.param(25, marks=pytest.mark.slow)])
def test_mutated_students_are_refused_or_predict_but_never_crash(
    tmp_path: Path, times: int
) -> None:
    command = [sys.executable, __file__, "1", str(times), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(done.stdout.splitlines()) == len(victims())


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))


def in_a_settings_dict(parts: Members, key: str, node: dict[str, Any]) -> Members:
    """Return a file whose student keeps one more node among its attributes."""
    schema = json.loads(parts["schema.json"])
    schema["content"]["content"][key] = node
    schema["content"]["key_types"]["content"].append(
        {"__class__": "str", "__module__": "builtins", "__loader__": "TypeNode", "__id__": 99}
    )
    return parts | {"schema.json": json.dumps(schema).encode()}


def node_of(loader: str, module: str, name: str, **more: Any) -> dict[str, Any]:
    return {"__class__": name, "__module__": module, "__loader__": loader, "__id__": 98, **more}


def test_bytes_and_dicts_with_defaults_are_bounded_and_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = members(LogisticRegression().fit(X, Y), tmp_path)
    some = node_of("BytearrayNode", "builtins", "bytearray", file="9.bin")
    whole = in_a_settings_dict(parts, "kept", some) | {"9.bin": b"x" * 2000}
    (tmp_path / "student.skops").write_bytes(zipped(whole.items()))
    assert load_student(tmp_path / "student.skops").kept == bytearray(b"x" * 2000)
    monkeypatch.setattr(grammar, "_LARGEST_BYTEARRAY", 1999)
    refused(whole, tmp_path, "too large")
    alias = node_of("BytearrayNode", "os", "bytearray", file="9.bin")
    refused(in_a_settings_dict(parts, "kept", alias) | {"9.bin": b"x"}, tmp_path, "another kind")
    empty = node_of(
        "DictNode",
        "builtins",
        "dict",
        content={},
        key_types=node_of("ListNode", "builtins", "list", content=[]),
    )
    makers = {
        "odd": {"main": empty},
        "called": {"main": empty, "default_factory": node_of("FunctionNode", "os", "system")},
        "none": {
            "main": node_of("JsonNode", "builtins", "str", content="1"),
            "default_factory": node_of("TypeNode", "builtins", "dict"),
        },
    }
    for content in makers.values():
        one = node_of("DefaultDictNode", "collections", "defaultdict", content=content)
        refused(in_a_settings_dict(parts, "kept", one), tmp_path, "a dict of it|lacks some")
    named = {"main": empty, "default_factory": node_of("TypeNode", "subprocess", "Popen")}
    one = node_of("DefaultDictNode", "collections", "defaultdict", content=named)
    refused(in_a_settings_dict(parts, "kept", one), tmp_path, "not trusted: subprocess.Popen")


def test_numbers_of_classes_stay_among_the_classes(tmp_path: Path) -> None:
    student = NumberedClassesClassifier(LogisticRegression()).fit(X, np.where(Y, "yes", "no"))
    parts = members(student, tmp_path)
    for name, array in arrays(parts):
        if array.dtype.kind == "U":
            refused(parts | {name: npy(array.reshape(1, -1))}, tmp_path, "classes are no list")
            (tmp_path / "student.skops").write_bytes(
                zipped((parts | {name: npy(array[:1])}).items())
            )
            short = load_student(tmp_path / "student.skops")
            with pytest.raises(DataError, match="no number of a class"):
                short.predict(X)
