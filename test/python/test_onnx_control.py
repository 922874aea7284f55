# SPDX-License-Identifier: Apache-2.0
"""If, Loop and Scan of ONNX, beside ONNX' own reference evaluator and NumPy."""

import subprocess

import mtc
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
R = np.random.default_rng(0)
W, U = (R.standard_normal(shape).astype("f4") * 0.5 for shape in ((4, 5), (5, 5)))
node, port = helper.make_node, helper.make_tensor_value_info


def constant(name, array):
    return node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(array)))


def scan(**attributes):
    """h = tanh(x w + h u) over the steps of x, with w and u from outside; the last h, and all of them."""
    body = helper.make_graph(
        [node("MatMul", ["xt", "w"], ["a"]), node("MatMul", ["h", "u"], ["b"]), node("Add", ["a", "b"], ["c"]),
         node("Tanh", ["c"], ["next"]), node("Identity", ["next"], ["out"])], "step",
        [port("h", FLOAT, None), port("xt", FLOAT, None)], [port("next", FLOAT, None), port("out", FLOAT, None)])
    return [constant("steps", np.array([1])), node("ReduceSum", ["x", "steps"], ["x0"], keepdims=0),
            node("MatMul", ["x0", "w"], ["x1"]), constant("zero", np.float32(0)), node("Mul", ["x1", "zero"], ["h0"]),
            node("Scan", ["h0", "x"], ["y", "all"], num_scan_inputs=1, scan_input_axes=[1], scan_output_axes=[1],
                 body=body, **attributes), node("Flatten", ["all"], ["z"])]


def loop(count):
    """y = tanh(y u) so many times, as long as the step is below 2; and the sums of all steps."""
    body = helper.make_graph(
        [node("MatMul", ["v", "u"], ["a"]), node("Tanh", ["a"], ["next"]), constant("two", np.int64(2)),
         node("Less", ["i", "two"], ["more"]), constant("axis", np.array([1])),
         node("ReduceSum", ["next", "axis"], ["part"], keepdims=0)], "step",
        [port("i", INT64, []), port("c", BOOL, []), port("v", FLOAT, None)],
        [port("more", BOOL, []), port("next", FLOAT, None), port("part", FLOAT, None)])
    return [constant("m", np.int64(count)), constant("yes", np.array(True)), node("ReduceMean", ["x"], ["x0"], axes=[1],
                                                                                 keepdims=0),
            node("MatMul", ["x0", "w"], ["v0"]), node("Loop", ["m", "yes", "v0"], ["y", "parts"], body=body),
            node("Transpose", ["parts"], ["z"])]


def gathering():
    """A step takes its part of x by the number of the step, which is a factor too."""
    body = helper.make_graph(
        [node("Gather", ["x", "i"], ["xt"], axis=1), node("MatMul", ["xt", "w"], ["a"]), node("Add", ["a", "v"], ["b"]),
         node("Cast", ["i"], ["f"], to=FLOAT), node("Mul", ["b", "f"], ["next"]), node("Identity", ["c"], ["more"]),
         constant("axis", np.array([1])), node("ReduceSum", ["next", "axis"], ["part"], keepdims=0)], "step",
        [port("i", INT64, []), port("c", BOOL, []), port("v", FLOAT, None)],
        [port("more", BOOL, []), port("next", FLOAT, None), port("part", FLOAT, None)])
    nodes = loop(3)
    nodes[4] = node("Loop", ["m", "yes", "v0"], ["y", "parts"], body=body)
    return nodes


def branch(size):
    """An If on the number of steps of x, as exporters write it."""
    then, other = (helper.make_graph([node("MatMul", ["x0", "w"], [f"{name}0"]), node(op, [f"{name}0"], [name])], name,
                                     [], [port(name, FLOAT, None)]) for name, op in (("t", "Tanh"), ("e", "Relu")))
    return [node("Shape", ["x"], ["shape"], start=1, end=2), constant("size", np.array([size])),
            node("Equal", ["shape", "size"], ["same"]), constant("none", np.array([0])),
            node("Squeeze", ["same", "none"], ["flag"]), node("ReduceMean", ["x"], ["x0"], axes=[1], keepdims=0),
            node("If", ["flag"], ["y"], then_branch=then, else_branch=other), node("Identity", ["y"], ["z"])]


def saved(nodes, path):
    graph = helper.make_graph(nodes, "g", [port("x", FLOAT, ["n", 3, 4])],
                              [port("y", FLOAT, ["n", 5]), port("z", FLOAT, ["n", None])],
                              [numpy_helper.from_array(W, "w"), numpy_helper.from_array(U, "u")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, path)
    return model


def scanned(x, backward):
    """The same of NumPy: ONNX' evaluator has no axes and directions."""
    h, steps = x.sum(1) @ W * 0, []
    for t in reversed(range(3)) if backward else range(3):
        h = np.tanh(x[:, t] @ W + h @ U)
        steps.append(h)
    return h, np.stack(steps[::-1] if backward else steps, 1).reshape(len(x), -1)


@pytest.mark.parametrize("name, nodes", [
    ("scan", scan()), ("scan backward", scan(scan_input_directions=[1], scan_output_directions=[1])),
    ("loop", loop(2)), ("loop by its number", gathering()), ("loop that ends itself", loop(9)), ("then", branch(3)),
    ("else", branch(7))])
def test_control(name, nodes, tmp_path):
    model = saved(nodes, tmp_path / "m.onnx")
    x = R.standard_normal((4, 3, 4)).astype("f4")
    made = scanned(x, "back" in name) if "scan" in name else ReferenceEvaluator(model).run(None, {"x": x})
    command = ["mtc", "import", tmp_path / "m.onnx", "--loss", "mse", "--optimizer", "sgd", "-o", "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert text.count("mt.scan") == ("scan" in name or "loop" in name)
    plan = mtc.compile(tmp_path / "m.onnx", batch_size=4, loss="mse", optimizer="sgd")
    with mtc.Session(plan, "cpu:2") as session:
        found = session.predict(x)
        for key, value in zip("yz", made):
            np.testing.assert_allclose(found[key], value, rtol=1e-5, atol=1e-6)


def test_what_the_data_decide_is_refused(tmp_path):
    nodes = branch(3)
    nodes[4:5] = [node("ReduceMax", ["x"], ["most"], keepdims=0), constant("one", np.float32(1)),
                  node("Greater", ["most", "one"], ["flag"])]
    saved(nodes, tmp_path / "m.onnx")
    with pytest.raises(mtc.ModelError, match="the data or the number of samples decides|over the samples"):
        mtc.compile(tmp_path / "m.onnx", batch_size=4, loss="mse", optimizer="sgd")
