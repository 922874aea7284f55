# SPDX-License-Identifier: Apache-2.0
"""Ops of ONNX, each beside ONNX' own reference evaluator. A family of ops is one model with an output for each."""

import re

import mtc
import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

BATCH = 4


def f(*shape):
    return np.random.default_rng(len(shape) + sum(shape)).standard_normal(shape).astype("float32")


def i(*values):
    return np.array(values, "int64")


class Case:
    """One op: `inputs` are the data's sample shapes (tuples), or constants (arrays). With `ids` the last data are whole
    numbers from `low` to below it. Data that are `positive` are 0.1 or more, those of `small` between -1 and 1, others
    of functions of numbers from 1 on."""

    def __init__(self, op, *inputs, ids=None, low=0, outputs=1, positive=False, small=None, **attributes):
        self.op, self.inputs, self.ids, self.low, self.outputs = op, inputs, ids, low, outputs
        self.positive, self.small, self.attributes = positive, small, attributes

    def spread(self, x):
        x = abs(x) + 0.1 if self.positive else x
        return x if self.small is None else np.tanh(x) if self.small else x + 1


FAMILIES = {
    "unary": [Case(op, (3, 5)) for op in (
        "Relu Sigmoid Tanh Erf Exp Neg Abs Sign Sin Cos Floor Ceil Softplus Softsign Elu Selu Celu LeakyRelu "
        "HardSigmoid HardSwish Mish Gelu Identity ThresholdedRelu Softmax LogSoftmax").split()] + [
        Case(op, (3, 5), positive=True) for op in "Log Sqrt Reciprocal".split()] + [
        Case("Gelu", (3, 5), approximate="tanh"), Case("Softmax", (3, 5, 2), axis=1),
        Case("LogSoftmax", (3, 5), axis=1),
        Case("Elu", (3, 5), alpha=0.5), Case("HardSigmoid", (7,), alpha=0.3, beta=0.4),
        Case("LeakyRelu", (7,), alpha=0.3),
        Case("Clip", (7,), np.float32(-0.5), np.float32(0.25)), Case("Clip", (7,), np.float32(0), np.float32(6)),
        Case("PRelu", (3, 5), f(5))],
    "binary": [Case(op, (3, 5), (3, 5)) for op in "Add Sub Mul Max Min".split()] + [
        Case("Add", (3, 5), f(5)), Case("Sub", f(3, 1), (3, 5)), Case("Mul", (3, 1), f(1, 5)),
        Case("Div", (3, 5), f(3, 5) + 5), Case("Pow", (3, 5), np.float32(3)), Case("Pow", (3, 5), np.float32(-2)),
        Case("Pow", (3, 5), np.float32(0.5), positive=True), Case("Pow", (3, 5), np.float32(1.3), positive=True),
        Case("Sum", (3, 5), (3, 5), f(5)), Case("Mean", (3, 5), (3, 5), (3, 5)), Case("Max", (3, 5), (3, 5), f(5)),
        Case("Mod", (3, 5), f(5), fmod=1), Case("Mod", (3, 5), f(3, 1)), Case("Mod", (3, 5), (3, 5), fmod=1)],
    "products": [
        Case("MatMul", (3, 5), f(5, 4)), Case("MatMul", (2, 3, 5), (2, 5, 4)), Case("MatMul", (2, 3, 5), f(2, 5, 4)),
        Case("MatMul", f(6, 3), (3, 5)), Case("Gemm", (5,), f(5, 4), f(4)),
        Case("Gemm", (5,), f(4, 5), f(4), transB=1, alpha=0.5, beta=2.0), Case("MatMul", (2, 3, 5), f(5)),
        Case("Einsum", (3, 4, 5), f(5, 4, 6), equation="bijk,kjl->bil"),
        Case("Einsum", (3, 4), (3, 4), equation="bij,bkj->bik"), Case("Einsum", (3, 4), equation="bij->bji"),
        Case("Einsum", (3, 4), equation="bij->bi"), Case("DFT", (12, 1), onesided=1),
        Case("DFT", (12, 2), inverse=1), Case("DFT", (12, 1)), Case("DFT", (6, 3, 2), np.array(6), np.array(1)),
        Case("DFT", (4, 6, 1), np.array(8), np.array(2), onesided=1)],
    "windows": [
        Case("Conv", (3, 8, 9), f(6, 3, 3, 3), f(6), pads=[1, 1, 1, 1], strides=[2, 2]),
        Case("Conv", (4, 8, 9), f(6, 2, 3, 2), group=2),
        Case("Conv", (4, 8, 8), f(4, 1, 3, 3), group=4, dilations=[2, 2]),
        Case("Conv", (3, 11), f(5, 3, 4), f(5), pads=[2, 1], strides=[2]),
        Case("Conv", (3, 7, 7), f(5, 3, 2, 2), auto_pad="SAME_UPPER"),
        Case("Conv", (3, 7, 7), f(5, 3, 1, 1), pads=[2, 0, 0, 3]),
        Case("Conv", (3, 7, 7), f(5, 3, 2, 2), auto_pad="SAME_LOWER", strides=[2, 2]),
        Case("ConvTranspose", (3, 5, 5), f(3, 4, 3, 3), f(4), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]),
        Case("ConvTranspose", (4, 6), f(4, 3, 3), strides=[2]),
        Case("MaxPool", (3, 9, 8), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]),
        Case("MaxPool", (3, 9), kernel_shape=[2], strides=[2]),
        Case("MaxPool", (2, 8, 8), kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1),
        Case("AveragePool", (3, 8, 8), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
        Case("AveragePool", (3, 8, 8), kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
        Case("Conv", (2, 5, 6, 4), f(4, 2, 2, 3, 2), f(4), pads=[1, 0, 1, 0, 1, 0], strides=[1, 2, 1]),
        Case("Conv", (4, 5, 4, 3), f(4, 2, 2, 2, 2), group=2),
        Case("MaxPool", (2, 5, 6, 4), kernel_shape=[2, 3, 2], strides=[2, 1, 1], pads=[1, 0, 0, 0, 1, 0]),
        Case("MaxPool", (2, 9, 8), kernel_shape=[3, 2], dilations=[2, 3]),
        Case("MaxPool", (2, 10, 9), kernel_shape=[3, 2], dilations=[2, 3], strides=[2, 2], ceil_mode=1),
        Case("AveragePool", (2, 10, 9), kernel_shape=[3, 2], dilations=[2, 3], strides=[2, 3], ceil_mode=1),
        Case("AveragePool", (2, 9, 8), kernel_shape=[3, 2], dilations=[2, 3], pads=[1, 0, 2, 1]),
        Case("AveragePool", (2, 5, 6, 4), kernel_shape=[2, 3, 2], pads=[1, 0, 0, 0, 1, 0]),
        Case("GlobalAveragePool", (3, 4, 5)), Case("GlobalMaxPool", (3, 4, 5))],
    "normalization": [
        Case("BatchNormalization", (3, 4, 5), f(3), f(3), f(3), abs(f(3)) + 1, epsilon=1e-3),
        Case("LayerNormalization", (3, 8), f(8), f(8)),
        Case("LayerNormalization", (3, 8), f(3, 8), axis=1, epsilon=1e-2),
        Case("InstanceNormalization", (3, 4, 5), f(3), f(3)),
        Case("GroupNormalization", (6, 4, 5), f(6), f(6), num_groups=3)],
    "shapes": [
        Case("Reshape", (3, 4), i(0, 2, 6)), Case("Reshape", (3, 4), i(-1, 12)), Case("Flatten", (3, 4, 2)),
        Case("Transpose", (3, 4, 2), perm=[0, 3, 1, 2]), Case("Squeeze", (1, 4, 1), i(1, 3)),
        Case("Unsqueeze", (3,), i(1, -1)),
        Case("Expand", (1, 4), i(1, 3, 4)), Case("Tile", (2, 3), i(1, 2, 3)),
        Case("DepthToSpace", (8, 2, 3), blocksize=2), Case("DepthToSpace", (8, 2, 3), blocksize=2, mode="CRD"),
        Case("SpaceToDepth", (2, 4, 6), blocksize=2)],
    "parts": [
        Case("Concat", (2, 3), (4, 3), axis=1), Case("Concat", (2, 3), (2, 4), axis=-1),
        Case("Slice", (6, 5), i(1, 0), i(5, 4), i(1, 2), i(2, 3)), Case("Slice", (6, 5), i(-1), i(-100), i(1), i(-2)),
        Case("Slice", (6, 5), i(0), i(2**63 - 1), i(0)), Case("Split", (7,), i(3, 4), axis=1, outputs=2),
        Case("Split", (7, 2), axis=1, outputs=3, num_outputs=3), Case("Gather", (6, 3), i(1, -1, 0), axis=1),
        Case("Gather", (6, 3), np.array(2), axis=2), Case("Gather", (6, 3), np.array([[1, 2], [0, 1]]), axis=2),
        Case("Gather", f(7, 3), (4,), ids=7), Case("Gather", (6, 3), i(4), axis=1),
        Case("GatherND", f(7, 3), (4, 1), ids=7),
        Case("Pad", (3, 4), i(0, 1, 2, 0, 0, 1), np.float32(0.5)),
        *(Case("Pad", (3, 4), i(0, 2, 3, 0, 1, 0), mode=mode) for mode in ("reflect", "edge", "wrap")),
        Case("Trilu", (4, 5), np.array(1)), Case("Trilu", (4, 5), upper=0)],
    "reductions": [
        Case("ReduceSum", (3, 4, 5), i(1, 3)), Case("ReduceMean", (3, 4, 5), i(-1), keepdims=0),
        Case("ReduceMax", (3, 4), i(1)), Case("ReduceMin", (3, 4), i(2), keepdims=0),
        Case("ReduceL1", (3, 4), i(2)), Case("ReduceL2", (3, 4), i(1, 2)),
        Case("ReduceSumSquare", (3, 4), i(1)), Case("ReduceLogSumExp", (3, 4), i(2)),
        Case("ReduceLogSum", (3, 4), i(2), positive=True), Case("CumSum", (3, 4), np.array(2)),
        Case("CumSum", (3, 4), np.array(1), reverse=1), Case("CumSum", (3, 4), np.array(1), exclusive=1)],
    "resizing": [
        Case("Resize", (2, 3, 4), np.zeros(0, "float32"), np.array([1, 1, 2, 3], "float32"), mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
        Case("Resize", (2, 3, 4), np.zeros(0, "float32"), np.array([1, 1, 2, 2], "float32"), mode="linear"),
        Case("Resize", (2, 3, 4), np.zeros(0, "float32"), np.array([1, 1, 2, 2], "float32"), mode="linear",
             coordinate_transformation_mode="align_corners"),
        Case("Resize", (2, 6, 4), np.zeros(0, "float32"), np.array([1, 1, 0.5, 0.5], "float32"), mode="nearest")] + [
        Case("Resize", (2, 3, 4), np.zeros(0, "float32"), np.array([1, 1, 2, 2], "float32"), mode="nearest",
             nearest_mode=nearest) for nearest in ("ceil", "floor", "round_prefer_ceil", "round_prefer_floor")] + [
        Case("Resize", (2, 5, 4), np.zeros(0, "float32"), np.array([1, 1, *scales], "float32"), mode=mode, **more)
        for scales, mode, more in (
            ((2, 3), "cubic", {}), ((1.7, 0.6), "cubic", {"exclude_outside": 1, "cubic_coeff_a": -0.5}),
            ((0.6, 0.5), "linear", {"antialias": 1}), ((0.6, 0.5), "cubic", {"antialias": 1}),
            ((1.3, 0.8), "linear", {"coordinate_transformation_mode": "half_pixel_symmetric"}))] + [
        Case("Resize", (2, 5, 4), np.zeros(0, "float32"), np.zeros(0, "float32"), i(7, 9), mode="linear", axes=[2, 3],
             keep_aspect_ratio_policy=policy) for policy in ("stretch", "not_larger", "not_smaller")],
    "functions": [Case(op, (3, 5)) for op in "Tan Sinh Cosh Atan Asinh Round Hardmax".split()] + [
        Case(op, (40,), small=True) for op in "Asin Acos Atanh".split()] + [
        Case("Acosh", (3, 5), positive=True, small=False), Case("Shrink", (3, 5), bias=0.3, lambd=0.4),
        Case("Hardmax", (3, 5), axis=1), Case("Selu", (7,), alpha=1.5, gamma=0.7),
        Case("LpNormalization", (3, 5), axis=1, p=1, positive=True), Case("LpNormalization", (3, 5), p=2),
        Case("ReduceProd", (3, 5), i(2)), Case("ReduceProd", (3, 5), i(1, 2), keepdims=0),
        Case("ArgMin", (3, 5), axis=2), Case("ArgMax", (3, 5), axis=1, select_last_index=1),
        Case("LpPool", (3, 8, 8), kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 0]),
        Case("LpPool", (3, 8), kernel_shape=[3], p=3), Case("CenterCropPad", (5, 8), i(8, 5), axes=[1, 2]),
        Case("SpaceToDepth", (2, 4, 6), blocksize=2)],
    "losses": [
        Case(op, (6, *shape), (*shape,), *weights, ids=6, reduction="none", **more)
        for op in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss") for shape in ((), (3,), (2, 4))
        for weights, more in (((), {}), ((abs(f(6)),), {"ignore_index": 2}))],
    "attention": [Case("Attention", (4, 5, 8), (2, 6, 8), (2, 6, 8)), Case("Attention", (4, 5, 8), (4, 6, 8), (4, 6, 8),
                                                                         is_causal=1, softcap=2.0),
                  Case("Attention", (5, 12), (5, 12), (5, 12), q_num_heads=3, kv_num_heads=3, is_causal=1, scale=0.3),
                  Case("Attention", (4, 5, 8), (4, 5, 8), (4, 5, 8), f(5, 5) > 0),
                  Case("Attention", (4, 5, 8), (4, 5, 8), (4, 5, 8), f(4, 5, 5)),
                  Case("Attention", (4, 5, 8), (4, 5, 8), (4, 5, 8), np.array([[True] * 5] * 4 + [[False] * 5])),
                  Case("RotaryEmbedding", (4, 5, 8), f(7, 4), f(7, 4), (5,), ids=7),
                  Case("RotaryEmbedding", (4, 5, 8), f(7, 3), f(7, 3), (5,), ids=7, rotary_embedding_dim=6,
                       interleaved=1)],
    "products of places": [Case("CumProd", (3, 4), np.array(2)), Case("CumProd", (3, 5), np.array(1), reverse=1),
                           Case("CumProd", (3, 4), np.array(1), exclusive=1),
                           Case("CumProd", (3, 5), np.array(2), exclusive=1, reverse=1)],
    "opset 9": [Case("Clip", (7,), min=-0.5, max=0.25), Case("Pad", (3, 4), pads=[0, 1, 2, 0, 0, 1], value=0.5),
                Case("Slice", (6, 5), starts=[1, 0], ends=[5, 4], axes=[1, 2]),
                Case("Upsample", (2, 3, 4), np.array([1, 1, 2, 3], "float32"), mode="nearest"),
                Case("Unsqueeze", (3,), axes=[1]), Case("Squeeze", (1, 4), axes=[1]),
                Case("ReduceSum", (3, 4, 5), axes=[1, 3]), Case("Split", (7,), axis=1, split=[3, 4], outputs=2)],
}
OPSETS = {"attention": 24, "products of places": 26, "opset 9": 9}  # of others 21


# Ids of the data that count from the end, an op in each model: right, or refused where a step has them.
BELOW_0 = {f"{case.op} below 0": [case] for case in (
    Case("OneHot", (4,), np.array(7), np.array([0, 1], "float32"), ids=7, low=-7),
    Case("GatherElements", (6, 3), (1, 3), ids=6, low=-6, axis=1), Case("Gather", f(7, 3), (4,), ids=7, low=-7),
    Case("GatherND", f(7, 3), (4, 1), ids=7, low=-7))}
ALL = {**FAMILIES, **BELOW_0}


def model_of(cases, opset=21):
    """The model, and its data by input."""
    nodes, inputs, outputs, data, initializers = [], [], [], {}, [numpy_helper.from_array(f(1) * 0 + 1, "w.one")]
    for n, case in enumerate(cases):
        names = []
        for k, given in enumerate(case.inputs):
            name = f"c{n}_{k}"
            if not isinstance(given, tuple):
                initializers.append(numpy_helper.from_array(np.asarray(given), name))
            elif case.ids and not any(isinstance(later, tuple) for later in case.inputs[k + 1:]):
                inputs.append(helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", *given]))
                data[name] = np.random.default_rng(n).integers(case.low, case.ids, (BATCH, *given))
            else:
                inputs.append(helper.make_tensor_value_info(name + "_x", TensorProto.FLOAT, ["batch", *given]))
                x = np.random.default_rng(n + 50 * k).standard_normal((BATCH, *given)).astype("float32")
                data[name + "_x"] = case.spread(x)
                nodes.append(helper.make_node("Mul", [name + "_x", "w.one"], [name]))
            names.append(name)
        made = [f"y{n}_{k}" for k in range(case.outputs)]
        nodes.append(helper.make_node(case.op, names, made, name=f"case{n}", **case.attributes))
        for name in made:  # outputs are floats and have two axes or more
            shape = f"{name}_shape"
            initializers.append(numpy_helper.from_array(i(0, -1), shape))
            nodes.append(helper.make_node("Cast", [name], [name + "_float"], to=TensorProto.FLOAT))
            nodes.append(helper.make_node("Reshape", [name + "_float", shape], [name + "_out"]))
            outputs.append(helper.make_tensor_value_info(name + "_out", TensorProto.FLOAT, ["batch", None]))
    graph = helper.make_graph(nodes, "ops", inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), data


@pytest.mark.parametrize("family", list(ALL))
def test_ops(family, tmp_path):
    cases = ALL[family]
    model, data = model_of(cases, OPSETS.get(family, 21))
    path = tmp_path / "ops.onnx"
    onnx.save(model, path)
    plan = mtc.compile(path, batch_size=BATCH, loss="mse", optimizer="sgd")
    expected = dict(zip([o.name for o in model.graph.output], ReferenceEvaluator(model).run(None, data)))
    with mtc.Session(plan, "cpu:1") as session:
        try:
            found = session.predict(data)
        except mtc.DataError as error:
            assert family in BELOW_0 and re.search(r"row \d+ has -\d, expected 0 to ", str(error))
            return
    found = found if isinstance(found, dict) else {model.graph.output[0].name: found}
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        case = cases[int(name[1:].split("_")[0])]
        error = np.abs(found[name] - value).max() / max(1, np.abs(value).max())
        assert found[name].shape == value.shape and error <= 1e-5, f"{name} of {case.op} {case.attributes}: {error}"


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_before_opset_13_is_over_all_axes_from_one_on(op, tmp_path):
    """ONNX' evaluator takes the newest form of them."""
    model, data = model_of([Case(op, (3, 5))], 9)
    onnx.save(model, tmp_path / "ops.onnx")
    plan = mtc.compile(tmp_path / "ops.onnx", batch_size=BATCH, loss="mse", optimizer="sgd")
    (x,) = data.values()
    x = x.reshape(BATCH, -1).astype("f8")
    y = np.exp(x - x.max(1, keepdims=True))
    y /= y.sum(1, keepdims=True)
    expected = {"Softmax": y, "LogSoftmax": np.log(y)}[op]
    with mtc.Session(plan, "cpu:1") as session:
        np.testing.assert_allclose(session.predict(data), expected, rtol=1e-5)


def test_groups_before_opset_21_have_a_scale_each(tmp_path):
    model, data = model_of([Case("GroupNormalization", (6, 4), f(3), f(3) + 1, num_groups=3)], 18)
    onnx.save(model, tmp_path / "ops.onnx")
    plan = mtc.compile(tmp_path / "ops.onnx", batch_size=BATCH, loss="mse", optimizer="sgd")
    (x,) = data.values()
    parts = x.reshape(BATCH, 3, 8).astype("f8")
    parts = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
    expected = (parts * f(3)[:, None] + f(3)[:, None] + 1).reshape(BATCH, -1)
    with mtc.Session(plan, "cpu:1") as session:
        np.testing.assert_allclose(session.predict(data), expected, rtol=1e-4, atol=1e-5)


# Of constants: the op, its operands, its attributes.
CONSTANTS = {
    "remainders of infinities": ("Mod", [np.float32([5, -5, 3]), np.float32([np.inf, np.inf, -np.inf])], {"fmod": 1}),
    "int32 wraps around": ("Add", [np.int32([2**31 - 1, 1]), np.int32([1, 1])], {}),
    "int8 wraps around": ("Add", [np.int8([100, -100]), np.int8([100, -100])], {}),
    "uint8 wraps around": ("Sub", [np.uint8([3, 5]), np.uint8([4, 1])], {}),
    "the maximum of no booleans": ("ReduceMax", [np.zeros((0, 3), bool), i(0)], {"keepdims": 0}),
    "the minimum of no integers": ("ReduceMin", [np.zeros((0, 3), "int32"), i(0)], {"keepdims": 0}),
    "bits": ("BitwiseXor", [np.int8([5, -7, 100]), np.int8([3, 4, -128])], {}),
    "shifts": ("BitShift", [np.uint8([5, 255, 100]), np.uint8([1, 2, 9])], {"direction": "LEFT"}),
    "shifts to the right": ("BitShift", [np.uint32([5, 2**32 - 1, 9]), np.uint32([1, 31, 2])], {"direction": "RIGHT"}),
    "ids below 0": ("GatherElements", [f(3, 2), i(-1, 0, -3, 2).reshape(2, 2)], {"axis": 0}),
    "refused: int64 wraps around": ("Mul", [i(2**62, 3), i(4, 5)], {}),
}


@pytest.mark.parametrize("name", list(CONSTANTS))
def test_constants(name, tmp_path):
    op, operands, attributes = CONSTANTS[name]
    names = [f"c{k}" for k in range(len(operands))]
    nodes = [*(helper.make_node("Constant", [], [given], value=numpy_helper.from_array(array))
               for given, array in zip(names, operands)),
             helper.make_node(op, names, ["made"], **attributes),
             helper.make_node("Cast", ["made"], ["float"], to=TensorProto.FLOAT),
             helper.make_node("Reshape", ["float", "row"], ["known"]),
             helper.make_node("Mul", ["x", "w"], ["scaled"]), helper.make_node("Add", ["scaled", "known"], ["y"])]
    constants = [("row", i(1, -1)), ("w", np.float32([1]))]
    graph = helper.make_graph(nodes, "constants", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 1])],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", None])],
                              [numpy_helper.from_array(a, n) for n, a in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path = tmp_path / "constants.onnx"
    onnx.save(model, path)
    if name.startswith("refused"):
        with pytest.raises(mtc.ModelError, match="whole numbers of more than 53 bits"):
            mtc.compile(path, batch_size=BATCH, loss="mse", optimizer="sgd")
        return
    x = f(BATCH, 1)
    with np.errstate(over="ignore"):
        expected = ReferenceEvaluator(model).run(None, {"x": x})[0]
    with mtc.Session(mtc.compile(path, batch_size=BATCH, loss="mse", optimizer="sgd"), "cpu:1") as session:
        np.testing.assert_allclose(session.predict(x), expected, rtol=1e-6)


CELLS = {"LSTM": 4, "GRU": 3, "RNN": 1}


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("op", list(CELLS))
def test_recurrent(op, direction, tmp_path):
    """Beside PyTorch's layers of the same weights; ONNX' evaluator has no reverse ones."""
    steps, width, units, gates = 5, 3, 4, CELLS[op]
    ways = 2 if direction == "bidirectional" else 1
    torch.manual_seed(2)
    layer = getattr(torch.nn, op)(width, units, bidirectional=ways == 2)
    order = {"LSTM": [0, 3, 1, 2], "GRU": [1, 0, 2], "RNN": [0]}[op]  # PyTorch's gates in ONNX' order

    def packed(prefix):
        suffixes = ["_l0", "_l0_reverse"][:ways]
        parts = [getattr(layer, prefix + s).detach().numpy().reshape(gates, units, -1)[order] for s in suffixes]
        return np.stack(parts).reshape(ways, gates * units, -1)

    w, r = packed("weight_ih"), packed("weight_hh")
    b = np.concatenate([packed("bias_ih"), packed("bias_hh")], 1)[..., 0]
    attributes = {"linear_before_reset": 1} if op == "GRU" else {}
    nodes = [helper.make_node("Transpose", ["x"], ["steps"], perm=[1, 0, 2]),
             helper.make_node(op, ["steps", "w", "r", "b"], ["all"], hidden_size=units, direction=direction,
                              **attributes),
             helper.make_node("Transpose", ["all"], ["y"], perm=[2, 0, 1, 3])]
    tensors = [numpy_helper.from_array(a, n) for a, n in ((w, "w"), (r, "r"), (b, "b"))]
    graph = helper.make_graph(
        nodes, "rnn", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", steps, width])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", steps, ways, units])], tensors)
    path = tmp_path / "rnn.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    plan = mtc.compile(path, batch_size=BATCH, loss="mse", optimizer="sgd")
    x = np.random.default_rng(1).standard_normal((BATCH, steps, width)).astype("float32")
    flip = direction == "reverse"
    with torch.no_grad():
        y = layer(torch.from_numpy(np.ascontiguousarray(x[:, ::-1] if flip else x)).transpose(0, 1))[0].transpose(0, 1)
    expected = y.numpy()[:, ::-1 if flip else 1].reshape(BATCH, steps, ways, units)
    with mtc.Session(plan, "cpu:1") as session:
        assert np.abs(session.predict(x) - expected).max() <= 1e-5


def test_external_data(tmp_path):
    """Weights in a file beside the model."""
    w = f(5, 3)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 5])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 3])], [numpy_helper.from_array(w, "w")])
    path = tmp_path / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path,
              save_as_external_data=True, location="m.data", size_threshold=0)
    plan = mtc.compile(path, batch_size=BATCH, loss="mse", optimizer="sgd")
    with mtc.Session(plan, "cpu:1") as session:
        assert np.array_equal(session.variables["w"], w)


@pytest.mark.parametrize("batch", [BATCH, "b"])
@pytest.mark.parametrize("op", ["ReduceSum", "ReduceMean"])
def test_a_sum_over_a_batch_of_a_fixed_size_takes_that_size_alone(op, batch, tmp_path):
    """What it is divided by may follow from the size."""
    nodes = [helper.make_node(op, ["x"], ["sum"], axes=[0], keepdims=1) if op == "ReduceMean" else
             helper.make_node(op, ["x", "first"], ["sum"]), helper.make_node("Div", ["sum", "n"], ["mean"]),
             helper.make_node("Sub", ["x", "mean"], ["y"])]
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [batch, 3]) for name in "xy"]
    graph = helper.make_graph(nodes, "sums", values[:1], values[1:], [
        numpy_helper.from_array(i(0), "first"), numpy_helper.from_array(np.float32(BATCH), "n")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)]), tmp_path / "m.onnx")
    plan = mtc.compile(tmp_path / "m.onnx", batch_size=BATCH, loss="mse", optimizer="sgd")
    x = f(BATCH, 3)
    with mtc.Session(plan, "cpu:1") as session:
        total = x.sum(0) if op == "ReduceSum" else x.mean(0)
        np.testing.assert_allclose(session.predict({"x": x}), x - total / BATCH, rtol=1e-5, atol=1e-6)
        short = {"x": x[:3], "target": x[:3]}
        if op == "ReduceSum" and batch == BATCH:
            with pytest.raises(mtc.DataError, match="expected steps of 4 samples, .* found 3: leave out a short last"):
                session.eval_step(short)
        else:
            session.eval_step(short)
