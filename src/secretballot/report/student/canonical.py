"""Canonical bytes of a student's file: the same values give the same bytes, in whichever process
they were made.

skops writes memory addresses (its ids of objects, and the names of its arrays), random names, and
the padding of structured arrays, which is whatever the memory held before. All of it depends on
what else the process did, and what else it did may have been about private records. Here the file
is rewritten from the values alone: every object stands where it belongs and is shared with no other
place, so that not even the identity of two equal strings matters.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from secretballot._public_state import SEARCH_TREE_COUNTERS, SEARCH_TREES, without_padding
from secretballot.exceptions import DataError

SCHEMA = "schema.json"
_ADDRESS = " at 0x"  # in every repr that Python makes of an object by itself
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the first date that a zip file can tell
_ADDRESS_KEPT = (
    "The student keeps a memory address, such as the id or the repr of an object, which a published"
    " file must not hold; keep values, and neither their places nor their representations."
)
# Where scikit-learn's text vectorizers keep the address of their stop words, to compare it with; no
# address is 0.
_KEPT_ADDRESS = "_stop_words_id"
# How many workers to predict with is a matter of the machine; with several, sums come in any order.
_WORKERS_PARAMETER = "n_jobs"
_NULL_NODE = {
    "__class__": "str",
    "__module__": "builtins",
    "__loader__": "JsonNode",
    "content": "null",
    "is_json": True,
}
_COMPRESSED = (b"csr", b"csc", b"bsr")


def canonical_student(content: bytes, *, from_memory: bool = True) -> bytes:
    """Return a skops file rewritten so that its bytes are a function of the values in it.

    Objects are numbered in order of appearance and shared nowhere; members are named in order,
    stored uncompressed and dated alike; keys of dicts and items of sets are sorted; padding is
    zero; counters of search trees start anew, and `n_jobs` is left out. Kept as values are the
    order of an array's memory (C or Fortran: sums round by it), signed zeros and NaN payloads.

    Parameters
    ----------
    content : bytes
        As `skops.io.dumps` made them, or checked before.
    from_memory : bool
        Whether skops just wrote the content, so that its numbers of objects are their addresses.

    Raises
    ------
    DataError
        If something in it has no canonical form, such as an object known by its address.
    """
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        members = {name: file.read(name) for name in file.namelist()}
    old = json.loads(members[SCHEMA])
    addresses = frozenset(_object_addresses(old) if from_memory else ())
    rewriting = _Rewriting(members, addresses)
    text = json.dumps(rewriting.node(old), indent=2)
    return zipped([(SCHEMA, text.encode()), *rewriting.written])


def zipped(members: Iterable[tuple[str, bytes]]) -> bytes:
    """Return a zip file of these members in this order: stored, dated 1980, alike everywhere."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as file:
        for name, content in members:
            about = zipfile.ZipInfo(name, _EPOCH)
            about.create_system, about.external_attr = 3, 0o600 << 16
            file.writestr(about, content)
    return buffer.getvalue()


class _Rewriting:
    """One pass through a schema: numbers its nodes, and collects its members by their new names."""

    def __init__(self, members: dict[str, bytes], addresses: frozenset[str]) -> None:
        self._members, self._object_addresses = members, addresses
        self._names: dict[str, str] = {}  # digest and kind of a member, and its new name
        self._count = 0
        self.written: list[tuple[str, bytes]] = []

    def node(self, old: dict[str, Any]) -> dict[str, Any]:
        """Return one node and all below it; equal members are written once.

        Raises
        ------
        DataError
            If the student keeps a memory address, or something without a canonical form.
        """
        self._count += 1
        number = self._count
        if old["__loader__"] == "JsonNode" and old["content"] in self._object_addresses:
            raise DataError(_ADDRESS_KEPT)
        new = {
            key: self._canonical_part(value)
            for key, value in self._in_canonical_order(old).items()
            if key != "__id__"
        }
        if "file" in old:
            new["file"] = self._member_name(old["file"])
        return new | {"__id__": number}

    def _canonical_part(self, part: Any) -> Any:
        if isinstance(part, list):
            return [self._canonical_part(item) for item in part]
        if isinstance(part, _KeysOfStudent):
            return {key: self._canonical_part(value) for key, value in part.items()}
        if isinstance(part, dict):
            return (
                self.node(part)
                if "__loader__" in part
                else {key: self._canonical_part(v) for key, v in part.items()}
            )
        if isinstance(part, str) and _ADDRESS in part:
            raise DataError(_ADDRESS_KEPT)
        return part

    def _in_canonical_order(self, node: dict[str, Any]) -> dict[str, Any]:
        """Return a node whose parts stand in the order that their values give."""
        loader, name = node["__loader__"], node["__class__"]
        if loader == "DictNode":
            return _sorted_dict(node)
        if loader == "SetNode":
            return self._sorted_items(node)
        if loader == "ConstructorFromReduceNode" and name == "frozenset":
            (items,) = node["content"]["content"]
            return node | {"content": node["content"] | {"content": [self._sorted_items(items)]}}
        if loader == "ObjectNode" and name in SEARCH_TREES:
            return node | {"content": _with_reset_counters(node["content"])}
        return node

    def _sorted_items(self, node: dict[str, Any]) -> dict[str, Any]:
        return node | {"content": sorted(node["content"], key=self._digest_of)}

    def _digest_of(self, item: dict[str, Any]) -> str:
        """Return a digest of an item's values, by which a set can be sorted."""
        alone = _Rewriting(self._members, self._object_addresses)
        text = json.dumps(alone.node(item))
        return hashlib.sha256(
            text.encode() + b"".join(content for _, content in alone.written)
        ).hexdigest()

    def _member_name(self, old: str) -> str:
        kind = old.rpartition(".")[2]
        content = _canonical_member(kind, self._members[old])
        key = f"{kind}:{hashlib.sha256(content).hexdigest()}"
        if key not in self._names:
            self._names[key] = f"{len(self._names)}.{kind}"
            self.written.append((self._names[key], content))
        return self._names[key]


class _KeysOfStudent(dict[str, Any]):
    """The content of a dict node: its keys are the student's, none of them speaks of the format."""


def _object_addresses(part: Any) -> Iterator[str]:
    """Yield the addresses of all objects in a schema, as JSON strings: skops uses them as ids."""
    if isinstance(part, dict):
        if isinstance(part.get("__id__"), int):
            yield str(part["__id__"])
        for value in part.values():
            yield from _object_addresses(value)
    elif isinstance(part, list):
        for item in part:
            yield from _object_addresses(item)


def _sorted_dict(node: dict[str, Any]) -> dict[str, Any]:
    """Return a dict node with sorted keys; only an OrderedDict means something by its order."""
    keys, types = list(node["content"]), node["key_types"]["content"]
    if len(keys) != len(types):
        raise DataError(
            "The student keeps a dict whose keys are equal as strings, such as 1 and '1'; rename"
            " one."
        )
    # sorted, since insertion order may tell of the run; only an OrderedDict means its order
    places = list(range(len(keys)))
    if node["__class__"] != "OrderedDict":
        places.sort(key=lambda place: (keys[place], types[place]["__class__"]))
    content = _KeysOfStudent((keys[place], node["content"][keys[place]]) for place in places)
    if _WORKERS_PARAMETER in content:
        content[_WORKERS_PARAMETER] = _NULL_NODE
    if _KEPT_ADDRESS in content:
        content[_KEPT_ADDRESS] = content[_KEPT_ADDRESS] | {"content": "0"}
    return node | {
        "content": content,
        "key_types": node["key_types"] | {"content": [types[place] for place in places]},
    }


def _with_reset_counters(state: dict[str, Any]) -> dict[str, Any]:
    """Return the state of a search tree that was not asked yet."""
    items = list(state["content"])
    items[SEARCH_TREE_COUNTERS] = [item | {"content": "0"} for item in items[SEARCH_TREE_COUNTERS]]
    return state | {"content": items}


def _canonical_member(kind: str, content: bytes) -> bytes:
    if kind == "npy":
        return _npy_bytes(np.load(io.BytesIO(content), allow_pickle=False))
    return _npz_bytes(content) if kind == "npz" else content


def _npz_bytes(content: bytes) -> bytes:
    """Return a sparse matrix without the entries beyond its end, which the memory held before."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        parts = {name: file[name] for name in file.files}
    form = parts["format"].item()
    if form in _COMPRESSED:
        end = int(parts["indptr"][-1])
        parts |= {name: parts[name][:end] for name in ("data", "indices")}
    elif form != b"coo":
        raise DataError(
            f"The student keeps a sparse matrix in {form.decode()} format; convert it to CSR."
        )
    return zipped((f"{name}.npy", _npy_bytes(parts[name])) for name in sorted(parts))


def _npy_bytes(array: NDArray[Any]) -> bytes:
    if array.dtype.char in "gG":
        raise DataError(
            "The student keeps long doubles, whose bytes are not all part of their value; use"
            " doubles."
        )
    if (
        array.dtype.kind in "US"
        and (np.strings.find(array, np.asarray(_ADDRESS, array.dtype.kind)) >= 0).any()
    ):
        raise DataError(_ADDRESS_KEPT)
    buffer = io.BytesIO()
    np.save(buffer, without_padding(array), allow_pickle=False)
    return buffer.getvalue()
