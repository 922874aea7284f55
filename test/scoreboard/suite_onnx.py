# SPDX-License-Identifier: Apache-2.0
"""ONNX' node tests: predictions beside the expected outputs.

The models of these tests have all tensors as inputs, and no batch. A case is tried in these forms, which are the same
computation, until MTC takes one:

    recurrent  of RNN, GRU and LSTM the batch is the second axis: transposes stand around it
    data       inputs as long as the first one along their first axis are data, which is the batch; others are constants
    first      only the first input is data
    weights    there is one more input d; inputs of floats are variables, others constants; the outputs plus 0 * d
    frozen     the same, and the variables are frozen, for ops without a gradient
"""

import pathlib
import random
import tempfile
import warnings

import numpy as np

FLOATS = {"float32", "float64", "float16", "bfloat16"}
C = {}


def collected():
    if not C:
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        C.update({case.name: case for case in collect_testcases(None)})
    return C


def cases():
    names = sorted(collected())
    random.Random(2).shuffle(names)
    return names


class Unfit(Exception):
    """The form does not fit the case."""


def run(name):
    import mtc

    case = collected()[name]
    first = None
    for form in ("recurrent", "data", "first", "weights", "frozen"):
        if form == "frozen" and "differentiable path" not in (first or {}).get("message", ""):
            break
        try:
            result = judge(case, form)
        except Unfit as error:
            result = {"status": "na", "message": str(error)}
        except mtc.Error as error:
            result = {"status": "refused", "message": str(error)[:1500]}
        if result["status"] in ("right", "wrong"):
            random_numbers = result["status"] == "wrong" and name.startswith("test_training_dropout")
            return {**result, "status": "na"} if random_numbers else result
        if first is None or first["status"] == "na" or form == "weights" and result["status"] == "refused":
            first = result
    return first


def judge(case, form):
    inputs, expected = case.data_sets[0]
    found = predictions(case.model, inputs, form)
    problems = []
    halves = any(str(getattr(v, "dtype", "")) in ("float16", "bfloat16") for v in (*inputs, *expected))
    for k, (a, b) in enumerate(zip(found, expected)):
        b = np.asarray(b)
        if form == "recurrent":
            b = b.transpose((2, 0, 1, 3) if b.ndim == 4 else (1, 0, 2))
        a, b, whole = np.asarray(a, "f8").ravel(), b.astype("f8").ravel(), b.dtype.kind in "iub"
        sizes = np.abs(b[np.isfinite(b) & (b != 0)])
        share = 0 if whole else max(case.rtol or 1e-4, 2e-2 if halves else 0)
        floor = 0 if whole else (1e-2 if halves else 2e-5) * (np.median(sizes) if sizes.size else 1)
        b = b.astype("f4") if whole else b
        if a.size != b.size or not np.allclose(a, b, rtol=share, atol=floor, equal_nan=True):
            problems.append(f"output {k}: found {a[:6]}, expected {b[:6]}")
    return {"status": "wrong" if problems else "right", "message": "\n".join(problems)[:1500]}


def predictions(model, inputs, form):
    import mtc

    model, data, batch = rewritten(model, inputs, form)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "case.onnx"
        path.write_bytes(model.SerializeToString())
        names = [i.name for i in model.graph.initializer if i.name.startswith("w.") and i.name != "w.zero"]
        frozen = {"freeze": ",".join(names)} if form == "frozen" else {}
        plan = mtc.compile(path, batch_size=batch, loss="mse", optimizer="sgd", cpu="native", verbose=0, **frozen)
    given = {t.name: data[t.name].astype("f4") if str(data[t.name].dtype) in FLOATS else data[t.name]
             for t in plan.inputs}
    with mtc.Session(plan, "cpu:1") as session:
        found = session.predict(given)
    found = found if isinstance(found, dict) else {"o0": found}
    rows = 1 if form in ("weights", "frozen") else batch
    return [found[f"o{k}"][:rows] for k in range(len(model.graph.output))]


def rewritten(model, inputs, form):
    """The model in a form, its data by name, and the batch."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    model = onnx.ModelProto.FromString(model.SerializeToString())
    graph = model.graph
    named = {t.name for t in graph.initializer}
    given = dict(zip([i.name for i in graph.input if i.name not in named], inputs))
    given = {n: np.asarray(v) if isinstance(v, (np.generic, int, float)) else v for n, v in given.items()}
    if any(not isinstance(v, np.ndarray) or v.dtype.kind in "OSU" for v in given.values()):
        raise Unfit("an input that is no tensor of numbers")
    weights = form in ("weights", "frozen")
    floats = [n for n, v in given.items() if str(v.dtype) in FLOATS]
    data, batch = ({}, 2) if weights else data_of(graph, given, floats, form)
    del graph.input[:]
    for name, value in given.items():
        if name in data:
            kind = helper.np_dtype_to_tensor_dtype(value.dtype)
            graph.input.append(helper.make_tensor_value_info(name, kind, ["batch", *value.shape[1:]]))
            continue
        new = f"w.{name}" if weights and name in floats else name
        graph.initializer.append(numpy_helper.from_array(value, new))
        for node in graph.node:
            for k, read in enumerate(node.input):
                if read == name:
                    node.input[k] = new
    if weights:
        graph.input.append(helper.make_tensor_value_info("d", TensorProto.FLOAT, ["batch", 1]))
        data = {"d": np.ones((batch, 1), "f4")}
        graph.initializer.append(numpy_helper.from_array(np.float32(0), "w.zero"))
        graph.node.append(helper.make_node("Mul", ["d", "w.zero"], ["d_zero"]))
    outputs = list(graph.output)
    del graph.output[:]
    graph.initializer.append(numpy_helper.from_array(np.array([1 if weights else 0, -1], "i8"), "flat_shape"))
    for k, output in enumerate(outputs):
        if not output.type.HasField("tensor_type"):
            raise Unfit("an output that is no tensor")
        if not weights and not output.type.tensor_type.shape.dim:
            raise Unfit("a scalar output")
        graph.node.append(helper.make_node("Cast", [output.name], [f"o{k}_cast"], to=TensorProto.FLOAT))
        end = f"o{k}_flat" if weights else f"o{k}"
        graph.node.append(helper.make_node("Reshape", [f"o{k}_cast", "flat_shape"], [end]))
        if weights:
            graph.node.append(helper.make_node("Add", [end, "d_zero"], [f"o{k}"]))
        graph.output.append(helper.make_tensor_value_info(f"o{k}", TensorProto.FLOAT, ["batch", None]))
    return model, data, batch


def data_of(graph, given, floats, form):
    """Which inputs are data, and the batch."""
    from onnx import helper

    names = [n for n, v in given.items() if v.ndim]
    if not names:
        raise Unfit("no input with an axis")
    first = floats[0] if floats and given[floats[0]].ndim else names[0]
    if form == "recurrent":
        node = graph.node[0]
        if len(graph.node) != 1 or node.op_type not in ("RNN", "GRU", "LSTM") or any(
                a.name == "layout" and a.i for a in node.attribute):
            raise Unfit("not recurrent")
        given[first] = np.ascontiguousarray(given[first].transpose(1, 0, 2))
        node.input[0] = "x_in_time"
        ends = {o.name: len(o.type.tensor_type.shape.dim) for o in graph.output}
        for k, name in enumerate(node.output):
            if name in ends:
                node.output[k] = name + "_in_time"
        graph.node.insert(0, helper.make_node("Transpose", [first], ["x_in_time"], perm=[1, 0, 2]))
        for name, axes in ends.items():
            graph.node.append(helper.make_node("Transpose", [name + "_in_time"], [name],
                                               perm=[2, 0, 1, 3] if axes == 4 else [1, 0, 2]))
    batch = given[first].shape[0]
    if batch == 0:
        raise Unfit("no samples")
    if form in ("recurrent", "first"):
        return {first: given[first]}, batch
    data = {n: v for n, v in given.items() if v.ndim and v.shape[0] == batch and (
        str(v.dtype) in FLOATS or (v.dtype.kind in "ib" and v.ndim == given[first].ndim))}
    if first not in data:
        raise Unfit("no data")
    return data, batch
