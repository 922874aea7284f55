# SPDX-License-Identifier: Apache-2.0
"""Ops of ONNX that sort, look elements up and write elements, beside ONNX' own reference evaluator."""

import mtc
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

BATCH = 4
R = np.random.default_rng(0)


def floats(*shape):
    return R.standard_normal(shape).astype("f4")


def ids(limit, *shape, low=0):
    return R.integers(low, limit, shape)


X = floats(BATCH, 3, 8)
# op, data by input (the first axis is the batch), constants by input, number of outputs, attributes
CASES = {
    "largest": ("TopK", [X], [np.array([3])], 2, {}),
    "smallest": ("TopK", [X], [np.array([2])], 2, {"largest": 0, "axis": 1}),
    "equal": ("TopK", [np.round(X)], [np.array([8])], 2, {}),
    "long": ("TopK", [floats(BATCH, 100)], [np.array([5])], 2, {}),
    "whole lines": ("TopK", [floats(BATCH, 2, 70)], [np.array([70])], 2, {"largest": 0}),
    "several of a line": ("GatherElements", [X, ids(8, BATCH, 3, 5)], [], 1, {"axis": 2}),
    "of columns": ("GatherElements", [X, ids(3, BATCH, 4, 8)], [], 1, {"axis": 1}),
    "lists of a sample": ("GatherND", [X, np.stack([ids(3, BATCH, 6), ids(8, BATCH, 6)], -1)], [], 1,
                          {"batch_dims": 1}),
    "slices of a sample": ("GatherND", [X, ids(3, BATCH, 6, 1)], [], 1, {"batch_dims": 1}),
    **{f"scattered, {how}": ("ScatterElements", [X, ids(8, BATCH, 3, 5, low=-8), floats(BATCH, 3, 5)], [], 1,
                             {"axis": 2, "reduction": how}) for how in ("add", "mul", "max", "min")},
    "scattered": ("ScatterElements", [X, np.argsort(X, 2)[:, :, :5], floats(BATCH, 3, 5)], [], 1, {"axis": 2}),
    "scattered to columns": ("ScatterElements", [X, ids(3, BATCH, 1, 8), floats(BATCH, 1, 8)], [], 1, {"axis": 1}),
}


@pytest.mark.parametrize("name", list(CASES))
def test_places(name, tmp_path):
    op, data, constants, count, attributes = CASES[name]
    inputs = {f"x{k}": array for k, array in enumerate(data)}
    made = [f"y{k}" for k in range(count)]
    given = [*inputs, *(f"c{k}" for k in range(len(constants)))]
    nodes = [helper.make_node("Mul", ["x0", "one"], ["scaled"]),
             helper.make_node(op, ["scaled", *given[1:]], made, **attributes)]
    for y in made:
        nodes += [helper.make_node("Cast", [y], [y + "_float"], to=TensorProto.FLOAT),
                  helper.make_node("Reshape", [y + "_float", "row"], [y + "_out"])]
    known = [numpy_helper.from_array(np.float32([1]), "one"), numpy_helper.from_array(np.array([0, -1]), "row"),
             *(numpy_helper.from_array(array, f"c{k}") for k, array in enumerate(constants))]
    kinds = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), ["n", *a.shape[1:]])
             for n, a in inputs.items()]
    outputs = [helper.make_tensor_value_info(y + "_out", TensorProto.FLOAT, ["n", None]) for y in made]
    graph = helper.make_graph(nodes, "places", kinds, outputs, known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    expected = ReferenceEvaluator(model).run(None, inputs)
    plan = mtc.compile(tmp_path / "m.onnx", batch_size=BATCH, loss="mse", optimizer="sgd")
    with mtc.Session(plan, "cpu:2") as session:
        found = session.predict(inputs)
    found = list(found.values()) if isinstance(found, dict) else [found]
    for a, b in zip(found, expected):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_parts_of_a_weight_are_replaced(tmp_path):
    """ScatterND of what the model computes; the indices are known."""
    w, parts, places = floats(4, 5), floats(3), np.array([[0, 1], [3, 4], [1, 0]])
    nodes = [helper.make_node("Mul", ["w", "one"], ["scaled"]),
             helper.make_node("ScatterND", ["scaled", "places", "parts"], ["new"]),
             helper.make_node("MatMul", ["x", "new"], ["y"])]
    known = [numpy_helper.from_array(a, n) for n, a in (("w", w), ("one", np.float32([2])), ("places", places),
                                                        ("parts", parts))]
    graph = helper.make_graph(nodes, "parts", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 5])], known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.save(model, tmp_path / "m.onnx")
    x = floats(BATCH, 4)
    (expected,) = ReferenceEvaluator(model).run(None, {"x": x})
    plan = mtc.compile(tmp_path / "m.onnx", batch_size=BATCH, loss="mse", optimizer="sgd")
    with mtc.Session(plan, "cpu:1") as session:
        np.testing.assert_allclose(session.predict(x), expected, rtol=1e-5)
