"""What a student's file may say, checked before any object is made of it.

skops asks whether the types in a file are trusted; not whether an object of a type may be made in
the way that the file says, how large it gets, nor whether a tree's children exist. Here every node
must be one of a few kinds, set up as skops itself would set it up, and every array must hold what
its header says.
"""

import io
import json
import re
import sys
import zipfile
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from secretballot._typing import BoolArray
from secretballot.report.student.canonical import SCHEMA

# bytes, of the file and of all that is in it, once for every place that refers to it
LARGEST_FILE = 1 << 28
# skops makes a list of its bytes, at eight bytes each
_LARGEST_BYTEARRAY = 1 << 26
# A forest of 500 trees takes 7 MB and 29,000 nodes; skops needs about 30 microseconds for each.
_LARGEST_SCHEMA = 1 << 25  # bytes
_MOST_NODES = 150_000
_DEEPEST = 120
_LARGEST_AXIS = 1 << 31
_MEMBER = re.compile(r"[A-Za-z0-9-]{1,64}\.(npy|npz|bin)")
_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,199}")
_KEY_TYPES = (
    "builtins.str",
    "builtins.int",
    "builtins.float",
    "builtins.bool",
    "numpy.int64",
    "numpy.float64",
    "numpy.str_",
)
# How many parts the state of a compiled class has, by module; its class takes them without
# counting.
_RESTORED = {
    "sklearn.neighbors._kd_tree": 13,
    "sklearn.neighbors._ball_tree": 13,
    "sklearn.metrics._dist_metrics": 3,
}
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}
_NODE = ("left_child", "right_child", "feature")
_LEAF = -1

Node = dict[str, Any]


class NotAStudentError(Exception):
    """A reason why a file is refused, in words that quote nothing of it."""


def checked_members(content: bytes) -> dict[str, bytes]:
    """Return the members of a zip file that holds a schema and arrays, within `LARGEST_FILE`.

    Raises
    ------
    NotAStudentError
        If it holds anything else, a member twice, or more.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        about = file.infolist()
        names = [one.filename for one in about]
        refuse_unless(len(set(names)) == len(names), "a member of it stands there twice")
        refuse_unless(SCHEMA in names, "it holds no schema")
        refuse_unless(
            all(name == SCHEMA or _MEMBER.fullmatch(name) for name in names),
            "it holds foreign members",
        )
        refuse_unless(
            not any(one.flag_bits & 1 or one.file_size > LARGEST_FILE for one in about),
            "a member is too large",
        )
        refuse_unless(sum(one.file_size for one in about) <= LARGEST_FILE, "it is too large")
        refuse_unless(file.getinfo(SCHEMA).file_size <= _LARGEST_SCHEMA, "its schema is too large")
        return {name: file.read(name) for name in names}


def object_types(members: dict[str, bytes], trusted: Collection[str]) -> set[str]:
    """Return the types of all objects that a file sets up, after checking all of its nodes.

    Parameters
    ----------
    members : dict of str to bytes
    trusted : collection of str
        Types that the reader vouches for, in whichever way they are made.

    Raises
    ------
    NotAStudentError
        If the schema is none that skops would have written, or an array or tree in it leads beyond
        itself.
    """
    schema = json.loads(members[SCHEMA])
    refuse_unless(isinstance(schema, dict), "its schema is no object")
    return _SchemaCheck(members, trusted).types_below(schema)


def refuse_unless(holds: Any, otherwise: str) -> None:
    """Raise `NotAStudentError` with the reason, unless something holds.

    Raises
    ------
    NotAStudentError
        If `holds` is false.
    """
    if not holds:
        raise NotAStudentError(otherwise)


class _SchemaCheck:
    """One pass over all nodes of a schema."""

    def __init__(self, members: dict[str, bytes], trusted: Collection[str]) -> None:
        self._members, self._trusted = members, trusted
        self._left = LARGEST_FILE
        self._checked: set[str] = set()

    def types_below(self, schema: Node) -> set[str]:
        # a list of what waits, and no recursion: a file may be nested deeper than Python's stack
        waiting, count, found = [(schema, 0)], 0, set[str]()
        while waiting:
            node, depth = waiting.pop()
            count += 1
            refuse_unless(
                count <= _MOST_NODES and depth <= _DEEPEST,
                "it has too many parts, or too deep ones",
            )
            name = _type_name(node)
            if node["__loader__"] == "ObjectNode":
                found.add(name)
            waiting += [(child, depth + 1) for child in self._checked_children(node, name)]
        return found

    def _checked_children(self, node: Node, name: str) -> list[Any]:
        loader = node["__loader__"]
        fits, children = _KINDS.get(loader, (_no_type, _no_children))
        if not fits(name):
            refuse_unless(
                name in self._trusted, "a part of it says that it is of another kind than it is"
            )
            return [
                part for part in _parts_in(node) if isinstance(part, dict) and "__loader__" in part
            ]
        if "file" in node:
            self._check_file(node["file"], loader)
        found = children(node)
        if loader == "TreeNode":
            _check_tree(node, self._members)
        return found

    def _check_file(self, file: object, loader: str) -> None:
        kind = {"NdArrayNode": "npy", "SparseMatrixNode": "npz"}.get(loader, "bin")
        refuse_unless(
            isinstance(file, str) and file in self._members and file.endswith(f".{kind}"),
            "a member is missing",
        )
        assert isinstance(file, str)
        content = self._members[file]
        refuse_unless(
            loader != "BytearrayNode" or len(content) <= _LARGEST_BYTEARRAY,
            "a part of it is too large",
        )
        # once for every place that refers to it, since each makes an array of its own
        self._left -= len(content)
        refuse_unless(self._left >= 0, "its parts together are too large")
        if file not in self._checked:
            self._checked.add(file)
            if kind == "npy":
                _check_npy(content)
            elif kind == "npz":
                _check_npz(content)


def _type_name(node: object) -> str:
    refuse_unless(isinstance(node, dict), "a part of it is no object")
    assert isinstance(node, dict)
    words = [node.get(key) for key in ("__loader__", "__module__", "__class__")]
    refuse_unless(
        all(isinstance(word, str) and _TYPE.fullmatch(word) for word in words),
        "a part of it has no type",
    )
    return f"{words[1]}.{words[2]}"


def _parts_in(node: Node) -> list[Any]:
    """Return what stands in a node, one level of lists and plain objects opened."""
    parts: list[Any] = []
    for value in node.values():
        if isinstance(value, dict):
            parts += value.values()
        elif isinstance(value, list):
            parts += value
        else:
            parts.append(value)
    return parts + list(node.values())


def _list_of(node: Node) -> list[Any]:
    content = node.get("content")
    refuse_unless(isinstance(content, list), "a list of it is none")
    return list(content or ())


def _dict_values(node: Node) -> list[Any]:
    content, types = node.get("content"), node.get("key_types")
    refuse_unless(isinstance(content, dict) and isinstance(types, dict), "a dict of it is none")
    assert isinstance(content, dict)
    assert isinstance(types, dict)
    refuse_unless(
        _type_name(types) == "builtins.list" and types["__loader__"] == "ListNode",
        "a dict of it has no keys",
    )
    keys = _list_of(types)
    fitting = len(keys) == len(content) and all(_type_name(key) in _KEY_TYPES for key in keys)
    refuse_unless(
        fitting and all(key["__loader__"] == "TypeNode" for key in keys),
        "a dict of it has odd keys",
    )
    return list(content.values())


def _no_children(node: Node) -> list[Any]:
    return []


def _content_child(node: Node) -> list[Any]:
    return [node.get("content")]


def _json_value(node: Node) -> list[Any]:
    content = node.get("content")
    refuse_unless(
        isinstance(content, str) and content.strip()[:1] not in ("[", "{"), "a value of it is none"
    )
    json.loads(str(content))
    return []


def _array_children(node: Node) -> list[Any]:
    if node.get("type") == "numpy":
        refuse_unless("file" in node, "an array of it has no content")
        return []
    refuse_unless(
        node.get("type") == "json" and "file" not in node, "an array of it is of no known kind"
    )
    return [*_list_of(node), node.get("shape")]


def _file_alone(node: Node) -> list[Any]:
    refuse_unless("file" in node, "a part of it has no content")
    return []


def _masked_array_parts(node: Node) -> list[Any]:
    return _named_parts(node, "data", "mask")


def _default_dict_parts(node: Node) -> list[Any]:
    main, factory = _named_parts(node, "main", "default_factory")
    plain = isinstance(main, dict) and main.get("__loader__") == "DictNode"
    made = isinstance(factory, dict) and factory.get("__loader__") == "TypeNode"
    refuse_unless(plain and made, "a dict of it is none")
    return [main, factory]


def _generator_parts(node: Node) -> list[Any]:
    parts = _named_parts(node, "bit_generator", "seed_seq")
    sizes = parts[1].get("content", {}) if isinstance(parts[1], dict) else {}
    size = sizes.get("pool_size") if isinstance(sizes, dict) else None
    refuse_unless(
        isinstance(size, dict) and size.get("content") in ("4", "8", "16"),
        "a generator of it is none",
    )
    return parts


def _named_parts(node: Node, *names: str) -> list[Any]:
    content = node.get("content")
    refuse_unless(
        isinstance(content, dict) and set(content) == set(names),
        "a part of it lacks some of its own",
    )
    assert isinstance(content, dict)
    return [content[name] for name in names]


def _checked_slice(node: Node) -> list[Any]:
    bounds = _named_parts(node, "start", "stop", "step")
    refuse_unless(
        all(bound is None or type(bound) is int for bound in bounds), "a slice of it is none"
    )
    return []


def _attributes_of(node: Node) -> list[Any]:
    """Return the attributes; a tuple that a compiled class restores itself from must be whole."""
    content = node.get("content")
    items = _RESTORED.get(node["__module__"])
    if items is not None:
        state = isinstance(content, dict) and content.get("__loader__") == "TupleNode"
        refuse_unless(
            state and len(_list_of(content or {})) == items,
            "the state of a search tree in it is not whole",
        )
    return [] if content is None else [content]


def _reduce_parts(node: Node) -> list[Any]:
    reduced = node.get("__reduce__")
    refuse_unless(
        isinstance(reduced, dict) and set(reduced) == {"args"}, "a part of it is made in an odd way"
    )
    assert isinstance(reduced, dict)
    return [reduced["args"], node.get("content")]


def _loss_parts(node: Node) -> list[Any]:
    """Return what makes a loss: at most one number, and no state, which nothing would check."""
    args, state = _reduce_parts(node)
    values = _list_of(args) if isinstance(args, dict) else []
    plain = all(
        isinstance(value, dict) and value.get("__loader__") in ("JsonNode", "NdArrayNode")
        for value in values
    )
    empty = isinstance(state, dict) and not state.get("content")
    refuse_unless(plain and len(values) <= 1 and empty, "a loss of it is made in an odd way")
    return [args, state]


def _one_of(*names: str) -> Callable[[str], bool]:
    return lambda name: name in names


def _is_loss(name: str) -> bool:
    module, _, kind = name.rpartition(".")
    if module == "_loss":  # what compiled losses call their module before scikit-learn 1.9
        own = getattr(sys.modules.get("sklearn._loss._loss"), kind, None)
        return getattr(own, "__module__", "") == module
    return module in ("sklearn._loss._loss", "sklearn.linear_model._sgd_fast")


def _any_type(name: str) -> bool:
    return True  # left to the list of trusted types


def _no_type(name: str) -> bool:
    return False


def _is_array(name: str) -> bool:
    module, _, kind = name.rpartition(".")
    found = getattr(np, kind, None) if module == "numpy" else None
    return isinstance(found, type) and (found is np.ndarray or issubclass(found, np.generic))


# Of every kind of node: which types it may make, and which nodes stand in it.
_KINDS: dict[str, tuple[Callable[[str], bool], Callable[[Node], list[Any]]]] = {
    "DictNode": (
        _one_of("builtins.dict", "collections.OrderedDict", "sklearn.utils._bunch.Bunch"),
        _dict_values,
    ),
    "ListNode": (_one_of("builtins.list"), _list_of),
    "TupleNode": (_one_of("builtins.tuple"), _list_of),
    "SetNode": (_one_of("builtins.set"), _list_of),
    "JsonNode": (_one_of("builtins.str"), _json_value),
    "NdArrayNode": (_is_array, _array_children),
    "MaskedArrayNode": (
        _one_of("numpy.ma.MaskedArray", "numpy.ma.core.MaskedArray"),
        _masked_array_parts,
    ),
    "SparseMatrixNode": (lambda name: name.startswith("scipy.sparse."), _file_alone),
    "DTypeNode": (_one_of("numpy.dtype"), _content_child),
    "TypeNode": (_any_type, _no_children),
    "FunctionNode": (_any_type, _no_children),
    "SliceNode": (_one_of("builtins.slice"), _checked_slice),
    "BytesNode": (_one_of("builtins.bytes"), _file_alone),
    # as which the models of XGBoost and LightGBM stand in a file; whether these may be made of it
    # is for the reader to say, by their types
    "BytearrayNode": (_one_of("builtins.bytearray"), _file_alone),
    "DefaultDictNode": (_one_of("collections.defaultdict"), _default_dict_parts),
    "RandomStateNode": (_one_of("numpy.random.mtrand.RandomState"), _content_child),
    "RandomGeneratorNode": (_one_of("numpy.random._generator.Generator"), _generator_parts),
    "ObjectNode": (lambda name: name != "sklearn.tree._tree.Tree", _attributes_of),
    "TreeNode": (_one_of("sklearn.tree._tree.Tree"), _reduce_parts),
    "LossNode": (_is_loss, _loss_parts),
}


def _check_npy(content: bytes) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and type of an array whose bytes are as many as they say."""
    # read by hand: numpy would reserve memory for the shape that a header claims
    stream = io.BytesIO(content)
    version = np.lib.format.read_magic(stream)
    refuse_unless(version in _HEADERS, "an array of it is of an unknown version")
    shape, _, dtype = _HEADERS[version](stream)
    refuse_unless(
        not dtype.hasobject and dtype.itemsize < _LARGEST_AXIS, "an array of it holds objects"
    )
    refuse_unless(
        all(0 <= axis < _LARGEST_AXIS for axis in shape) and len(shape) <= 32,
        "an array of it is too large",
    )
    entries = int(np.prod([*map(int, shape), 1], dtype=object))
    refuse_unless(entries <= LARGEST_FILE, "an array of it is too large")
    refuse_unless(
        entries * dtype.itemsize == len(content) - stream.tell(),
        "an array of it is not as long as it says",
    )
    return tuple(shape), dtype


def _check_npz(content: bytes) -> None:
    """Check a sparse matrix: what is in it, and that no index leads beyond its shape."""
    # members and sizes before scipy reads them, then its own check of every index
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        names = [one.filename for one in file.infolist()]
        known = {
            f"{name}.npy" for name in ("format", "shape", "data", "indices", "indptr", "row", "col")
        }
        refuse_unless(
            len(set(names)) == len(names) and set(names) <= known, "a sparse matrix of it is none"
        )
        refuse_unless(
            sum(one.file_size for one in file.infolist()) <= LARGEST_FILE,
            "a sparse matrix of it is too large",
        )
        for name in names:
            _check_npy(file.read(name))
    with np.load(io.BytesIO(content), allow_pickle=False) as parts:
        kind = parts["format"].item()
        refuse_unless(kind in (b"csr", b"csc", b"coo"), "a sparse matrix of it is of an odd format")
    matrix: Any = sparse.load_npz(io.BytesIO(content))
    if kind == b"coo":
        refuse_unless(_coo_inside(matrix), "a sparse matrix of it leads beyond its shape")
    else:
        matrix.check_format(full_check=True)


def _coo_inside(matrix: Any) -> bool:
    rows, columns = matrix.shape
    fits = len(matrix.row) == len(matrix.col) == len(matrix.data)
    return fits and bool(
        ((matrix.row >= 0) & (matrix.row < rows) & (matrix.col >= 0) & (matrix.col < columns)).all()
    )


def _check_tree(node: Node, members: dict[str, bytes]) -> None:
    """Check a decision tree: its class copies the arrays as they are, and follows them blindly."""
    # sizes first, then that children lead to later nodes only, then the columns that nodes ask
    args, state = _list_of(node["__reduce__"]["args"]), node["content"].get("content")
    refuse_unless(len(args) == 3 and isinstance(state, dict), "a tree of it is made in an odd way")
    refuse_unless(
        set(state) == {"max_depth", "node_count", "nodes", "values"}, "a tree of it is not whole"
    )
    n_features, n_outputs = _integer_or_minus_one(args[0]), _integer_or_minus_one(args[2])
    classes, nodes, values = (
        _loaded_array(part, members) for part in (args[1], state["nodes"], state["values"])
    )
    refuse_unless(
        0 < n_features < _LARGEST_AXIS and n_outputs == 1, "a tree of it has an odd shape"
    )
    refuse_unless(
        classes.dtype == np.intp and classes.shape == (1,) and 0 < classes[0] < 1 << 20,
        "a tree of it is odd",
    )
    refuse_unless(
        nodes.dtype.names is not None and set(_NODE) <= set(nodes.dtype.names or ()),
        "a tree of it has no nodes",
    )
    count = len(nodes) if nodes.ndim == 1 else 0
    refuse_unless(
        count > 0 and _integer_or_minus_one(state["node_count"]) == count,
        "a tree of it has another number of nodes",
    )
    refuse_unless(
        values.shape == (count, 1, int(classes[0])), "a tree of it has other values than nodes"
    )
    refuse_unless(
        0 <= _integer_or_minus_one(state["max_depth"]) <= count,
        "a tree of it is deeper than it is large",
    )
    check_branches(nodes["left_child"], nodes["right_child"], nodes["left_child"] == _LEAF)
    inner = nodes[nodes["left_child"] != _LEAF]
    refuse_unless(
        bool((nodes["right_child"][nodes["left_child"] == _LEAF] == _LEAF).all()),
        "a leaf of it has a child",
    )
    refuse_unless(
        bool(((inner["feature"] >= 0) & (inner["feature"] < n_features)).all()),
        "a tree of it asks no column",
    )


def check_branches(left: NDArray[Any], right: NDArray[Any], leaf: BoolArray) -> None:
    """Demand that every node but the first is the child of exactly one that stands before it.

    Raises
    ------
    NotAStudentError
        If one is not: the way down the tree might then never end, or leave the tree.

    Parameters
    ----------
    left, right : int arrays of shape (n_nodes,)
        Children of each node.
    leaf : bool array of shape (n_nodes,)
    """
    places = np.flatnonzero(~leaf)
    children = np.concatenate([left[places], right[places]]).astype(np.int64)
    later = children > np.concatenate([places, places])
    whole = np.array_equal(np.sort(children), np.arange(1, len(leaf)))
    refuse_unless(bool(later.all()) and whole, "a tree of it leads beyond itself, or in circles")


def _integer_or_minus_one(node: object) -> int:
    """Return the integer that a node stands for, -1 where it is none."""
    if not isinstance(node, dict) or node.get("__loader__") != "JsonNode":
        return -1
    content = node.get("content")
    return int(content) if isinstance(content, str) and re.fullmatch("[0-9]{1,18}", content) else -1


def _loaded_array(node: object, members: dict[str, bytes]) -> NDArray[Any]:
    refuse_unless(
        isinstance(node, dict) and node.get("__loader__") == "NdArrayNode",
        "a tree of it has no arrays",
    )
    assert isinstance(node, dict)
    file = node.get("file")
    refuse_unless(
        isinstance(file, str) and file in members and file.endswith(".npy"), "a member is missing"
    )
    _check_npy(members[str(file)])
    return np.asarray(np.load(io.BytesIO(members[str(file)]), allow_pickle=False))
