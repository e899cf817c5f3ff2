"""No file makes a reader crash, hang, or take much memory: it is refused in a sentence, or it
predicts."""

import json
import os
import random
import resource
import subprocess
import sys

import every_student
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from secretballot.exceptions import DataError
from secretballot.report import student_load as load
from secretballot.report.student_export import converted_student
from secretballot.report.student_load import OnnxStudent, load_student

POINTS = every_student.POINTS


def content_of(name):
    return converted_student(every_student.every()[name][0]).content


FOREST, LINEAR = content_of("forest 2"), content_of("logistic 2")


def refused(content, change, words):
    model = onnx.load_from_string(content)
    change(model)
    with pytest.raises(DataError, match=words) as caught:
        OnnxStudent(model.SerializeToString())
    assert len(str(caught.value)) < 200


def forged_tree(name, place, value):
    """Return what puts a value into an attribute of the trees."""

    def change(model):
        for node in model.graph.node:
            for one in node.attribute if node.op_type == "TreeEnsembleRegressor" else ():
                if one.name == name and one.ints:
                    one.ints[place] = value
                elif one.name == name and one.strings:
                    one.strings[place] = value
                elif one.name == name and one.type == onnx.AttributeProto.INT:
                    one.i = value
                elif one.name == name:
                    array = numpy_helper.to_array(one.t)[:value]
                    one.t.CopyFrom(numpy_helper.from_array(array))

    return change


@pytest.mark.parametrize(
    ("name", "place", "value"),
    [
        ("nodes_truenodeids", 0, 10**6),
        ("nodes_truenodeids", 0, 0),
        ("nodes_truenodeids", 0, -5),
        ("nodes_truenodeids", 2, 1),
        ("nodes_truenodeids", 2, 2**32),
        ("nodes_featureids", 0, 9),
        ("nodes_featureids", 0, -3),
        ("nodes_treeids", 0, 7),
        ("nodes_nodeids", 1, 0),
        ("nodes_modes", 0, b"LEAF"),
        ("target_ids", 0, 3),
        ("target_treeids", 0, 99),
        ("n_targets", 0, 1),
        ("nodes_values_as_tensor", 0, 3),
        ("target_weights_as_tensor", 0, 3),
    ],
)
def test_a_tree_that_leads_elsewhere_is_refused(name, place, value):
    model = onnx.load_from_string(FOREST)
    forged_tree(name, place, value)(model)
    with pytest.raises(DataError):
        OnnxStudent(model.SerializeToString()).predict(POINTS)


@pytest.mark.parametrize(
    ("levels", "mode", "words"),
    [(600, b"BRANCH_LEQ", "too deep"), (2, b"B" * 10**6, "refuses|runtime")],
)
def test_deep_trees_and_long_words_in_them_are_refused_in_little_memory(levels, mode, words):
    model = onnx.load_from_string(FOREST)
    n = 2 * levels + 1  # each node has a leaf and the next one
    own, inner = np.arange(n), np.arange(n) % 2 == 0
    inner[-1] = False
    of_nodes = {"nodes_treeids": 0 * own, "nodes_nodeids": own, "nodes_featureids": 0 * own}
    of_nodes["nodes_truenodeids"] = np.where(inner, own + 1, 0)
    of_nodes["nodes_falsenodeids"] = np.where(inner, own + 2, 0)
    for node in model.graph.node:
        for one in node.attribute if node.op_type == "TreeEnsembleRegressor" else ():
            if one.name in of_nodes:
                one.ints[:] = of_nodes[one.name].tolist()
            elif one.name == "nodes_modes":
                one.strings[:] = [mode if here else b"LEAF" for here in inner]
    with pytest.raises(DataError, match=words):
        OnnxStudent(model.SerializeToString())


def with_node(kind, domain="", **attributes):
    def change(model):
        first = model.graph.input[0].name
        model.graph.node.append(
            helper.make_node(kind, [first], ["more"], domain=domain, **attributes)
        )

    return change


def in_another_file(model):
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="/etc/passwd")


def longer_than_it_is(model):
    model.graph.initializer[0].dims[:] = [10**9, 10**9]


def of_odd_type(model):
    model.graph.initializer[0].data_type = TensorProto.COMPLEX128


def too_large(model):
    """Add two small arrays whose sum is a large one."""
    for name, shape in (("row", (1, 10**5)), ("column", (10**5, 1))):
        model.graph.initializer.append(numpy_helper.from_array(np.zeros(shape), name))
    model.graph.node.append(helper.make_node("Add", ["row", "column"], ["more"]))


def rows_by_rows(model):
    """Add a product whose size is the square of the number of rows."""
    first = model.graph.input[0].name
    model.graph.node.append(helper.make_node("Transpose", [first], ["turned"]))
    model.graph.node.append(helper.make_node("MatMul", [first, "turned"], ["more"]))


def with_function(model):
    model.functions.add(name="f", domain="")


def with_domain(model):
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def with_metadata(key, value):
    def change(model):
        kept = {one.key: one.value for one in model.metadata_props} | {key: value}
        helper.set_model_props(model, kept)

    return change


def without_outputs(model):
    del model.graph.output[:]


def other_input(model):
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.INT8


def unknown_sizes(model):
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "m"


LOOP = helper.make_graph([], "body", [], [])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (with_node("Loop", body=LOOP), "uses the operator 'Loop'"),
        (with_node("If", then_branch=LOOP, else_branch=LOOP), "uses the operator 'If'"),
        (with_node("NonZero"), "uses the operator 'NonZero'"),
        (with_node("CDist", "com.microsoft"), "uses the operator 'CDist'"),
        (with_node("Abs", "com.somebody"), "uses the operator 'Abs'"),
        (with_node("Abs", body=LOOP), "attribute of it is of an odd kind"),
        (with_domain, "operators of others"),
        (with_function, "holds functions"),
        (in_another_file, "refers to another file"),
        (longer_than_it_is, "not as long as it says"),
        (of_odd_type, "not as long as it says"),
        (too_large, "a value of it is too large"),
        (rows_by_rows, "its shapes are not known"),
        (unknown_sizes, "an input of it is no table"),
        (other_input, "an input of it is no table"),
        (without_outputs, "other inputs or outputs"),
        (with_metadata("classes", "[[1], 2]"), "its metadata are none"),
        (with_metadata("classes", "{"), "its metadata are none"),
        (with_metadata("classes", "[" * 100_000), "its metadata are none"),
        (with_metadata("classes", "[]"), "it has no classes"),
        (with_metadata("encoded", '"nowhere"'), "no encoded columns of that name"),
    ],
)
def test_files_that_no_student_has_are_refused(change, words):
    refused(LINEAR, change, words)


def test_answers_that_are_no_class_are_refused_when_they_come():
    model = onnx.load_from_string(LINEAR)
    with_metadata("classes", '["a", "b"]')(model)
    with pytest.raises(DataError, match="answers something else than its classes"):
        OnnxStudent(model.SerializeToString()).predict(POINTS)


def test_what_is_no_file_or_too_large_is_refused(tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "student.onnx")
    with pytest.raises(DataError, match="no regular file"):
        load_student(tmp_path / "student.onnx")
    with pytest.raises(DataError, match="cannot be read"):
        load_student(tmp_path / "nothing.onnx")
    (tmp_path / "large.onnx").write_bytes(LINEAR)
    monkeypatch.setattr(load, "_LARGEST_FILE", 100)
    with pytest.raises(DataError, match="are read"):
        load_student(tmp_path / "large.onnx")


NUMBERS = (-1, 0, 1, 2, 3, 7, 100, -100, 2**31, 2**40, -(2**40), 2**62)


def mutated(content, coins):
    """Return a file with some numbers, names or bytes replaced by others."""
    if coins.random() < 0.2:
        raw = bytearray(content)
        for _ in range(coins.randint(1, 3)):
            raw[coins.randrange(len(raw))] = coins.randrange(256)
        return bytes(raw[: coins.choice([len(raw), coins.randrange(len(raw))])])
    model = onnx.load_from_string(content)
    for _ in range(coins.randint(1, 3)):
        node = coins.choice(model.graph.node)
        kind = coins.random()
        if kind < 0.4 and node.attribute:
            _mutate_attribute(coins.choice(node.attribute), coins)
        elif kind < 0.6:
            tensor = coins.choice(model.graph.initializer)
            tensor.dims[:] = [coins.choice(NUMBERS) for _ in tensor.dims]
        elif kind < 0.8 and node.input:
            others = ["nothing", *(name for one in model.graph.node for name in one.output)]
            node.input[coins.randrange(len(node.input))] = coins.choice(others)
        else:
            node.op_type = coins.choice(model.graph.node).op_type
    return bytes(model.SerializeToString())


def _mutate_attribute(attribute, coins):
    if attribute.ints:
        attribute.ints[coins.randrange(len(attribute.ints))] = coins.choice(NUMBERS)
    elif attribute.type == onnx.AttributeProto.INT:
        attribute.i = coins.choice(NUMBERS)
    elif attribute.type == onnx.AttributeProto.TENSOR:
        array = numpy_helper.to_array(attribute.t)
        attribute.t.CopyFrom(numpy_helper.from_array(array[: coins.randrange(len(array) + 1)]))


def attack(content, seed, times):
    """Return how many of the mutated files were refused, and how many predicted something."""
    coins, counts = random.Random(seed), [0, 0]
    for _ in range(times):
        try:
            loaded = OnnxStudent(mutated(content, coins))
            first, second = loaded.predict(POINTS), loaded.predict(POINTS)
        except DataError:
            counts[0] += 1
            continue
        counts[1] += 1
        assert np.array_equal(first, second, equal_nan=first.dtype.kind == "f")
    return counts[0], counts[1]


VICTIMS = ("forest 2", "boosting 3", "knn 2", "modes", "record votes 2", "boosted 3", "number 2")


def main(seed, times):
    """Print digests of all files; then attack every victim in this process, within 4 GB."""
    resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
    every_student.leave_rubbish(seed)
    content_of("logistic 2")  # a converter may number its names onward from here
    print(*every_student.digests(), sep="\n", flush=True)
    for name in VICTIMS:
        print(json.dumps([name, *attack(content_of(name), seed, times)]), flush=True)


@pytest.mark.parametrize("times", [8, pytest.param(300, marks=pytest.mark.slow)])
def test_another_process_writes_the_same_bytes_and_no_mutated_file_makes_it_crash(times):
    """One process for both, as its imports take seconds."""
    done = subprocess.run(
        [sys.executable, __file__, "1", str(times)],
        env=os.environ | {"PYTHONHASHSEED": "2", "MALLOC_PERTURB_": "170"},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    here, there = every_student.digests(), done.stdout.splitlines()
    assert there[: len(here)] == here
    assert len(there) == len(here) + len(VICTIMS)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
