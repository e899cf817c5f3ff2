"""Names inside an ONNX graph, numbered by where they appear.

Converters number them by what else they converted before, which is nobody's business.
"""

from collections.abc import Callable, Iterator
from typing import Any


def with_plain_names(model: Any) -> Any:
    """Return an ONNX model, changed in place, whose inner names follow from its graph alone.

    Names of the graph's inputs and outputs stay: readers use them. Those of values, nodes,
    constants and graphs inside become v0, v1, ... in order of appearance.

    Parameters
    ----------
    model : onnx.ModelProto
    """
    graph = model.graph
    names: dict[str, str] = {
        name: name for name in ("", *(value.name for value in (*graph.input, *graph.output)))
    }

    def renamed(name: str) -> str:
        if name not in names:
            names[name] = next(free)
        return names[name]

    kept = set(names)
    free = (name for number in range(1 << 40) if (name := f"v{number}") not in kept)
    for one in _all_graphs(graph):
        _rename_in_graph(one, renamed)
    versions = sorted((one.domain, one.version) for one in model.opset_import)  # a set, before
    for place, (domain, version) in zip(model.opset_import, versions, strict=True):
        place.domain, place.version = domain, version
    return model


def rename_values(model: Any, renamed: Callable[[str], str]) -> None:
    """Give every value of an ONNX model another name, those of its inputs and outputs too.

    Parameters
    ----------
    model : onnx.ModelProto
        Changed in place.
    renamed : callable
        The new name by the old one, which may be "".
    """
    for one in _all_graphs(model.graph):
        _rename_in_graph(one, renamed)


def _all_graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and all graphs inside its nodes, outer ones first."""
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            for inner in (*((attribute.g,) if attribute.HasField("g") else ()), *attribute.graphs):
                yield from _all_graphs(inner)


def _rename_in_graph(graph: Any, renamed: Callable[[str], str]) -> None:
    for value in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        value.name = renamed(value.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = renamed(sparse.values.name)
    for place, node in enumerate(graph.node):
        node.name = f"{node.op_type}_{place}"
        node.input[:] = [renamed(name) for name in node.input]
        node.output[:] = [renamed(name) for name in node.output]
    graph.name = "student"
