# SPDX-License-Identifier: Apache-2.0
"""Writes small ONNX models, without the package onnx: make.py NAME FILE. Each is a function of this file."""
import math
import struct
import sys

FLOAT, INT64 = 1, 7


def varint(number):
    number &= 2**64 - 1
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def field(number, value):
    """A field of a message: an integer, a float, or what has a length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def values(count, scale=0.5):
    """Numbers that look random, always the same."""
    return [scale * math.sin(1 + 7.0 * i) for i in range(count)]


def tensor(name, dims, numbers=None, kind=FLOAT, external=None):
    count = math.prod(dims)
    numbers = values(count) if numbers is None else numbers
    text = b"".join(field(1, n) for n in dims) + field(2, kind) + field(8, name)
    if external:
        pairs = b"".join(field(13, field(1, key) + field(2, value)) for key, value in external.items())
        return text + pairs + field(14, 1)
    return text + field(9, struct.pack(f"<{len(numbers)}{'f' if kind == FLOAT else 'q'}", *numbers))


def port(name, dims, kind=FLOAT):
    """An input or an output; texts are sizes that are open."""
    shape = b"".join(field(1, field(2, n) if isinstance(n, str) else field(1, n)) for n in dims)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, shape)))


def attribute(name, value):
    text = field(1, name)
    if isinstance(value, float):
        return text + field(2, value) + field(20, 1)
    if isinstance(value, int):
        return text + field(3, value) + field(20, 2)
    if isinstance(value, str):
        return text + field(4, value) + field(20, 3)
    if isinstance(value, bytes):
        return text + field(5, value) + field(20, 4)
    return text + b"".join(field(8, n) for n in value) + field(20, 7)


def node(op, inputs, outputs, name=None, domain="", **attributes):
    """A node; "-" is an operand or a result that it does not have."""
    text = b"".join(field(1, i.strip("-")) for i in inputs.split())
    text += b"".join(field(2, o.strip("-")) for o in outputs.split())
    text += field(3, f"/{outputs.split()[0]}/{op}" if name is None else name) + field(4, op)
    text += b"".join(field(5, attribute(key, value)) for key, value in attributes.items())
    return text + (field(7, domain) if domain else b"")


def model(nodes, inputs, outputs, initializers=(), opset=17, name="net"):
    graph = b"".join(field(1, n) for n in nodes) + field(2, name) + b"".join(field(5, t) for t in initializers)
    graph += b"".join(field(11, p) for p in inputs) + b"".join(field(12, p) for p in outputs)
    return field(1, 8) + field(2, "make.py") + field(7, graph) + field(8, field(1, "") + field(2, opset))


# Models


def mlp():
    nodes = [node("Gemm", "x fc1.weight fc1.bias", "h", transB=1), node("Relu", "h", "a"),
             node("MatMul", "a fc2.weight", "p"), node("Add", "p fc2.bias", "y")]
    tensors = [tensor("fc1.weight", [6, 4]), tensor("fc1.bias", [6]), tensor("fc2.weight", [6, 3]),
               tensor("fc2.bias", [3])]
    return model(nodes, [port("x", ["batch", 4])], [port("y", ["batch", 3])], tensors)


def cnn():
    nodes = [node("Conv", "x conv.weight conv.bias", "c", pads=[1, 1, 1, 1]),
             node("BatchNormalization", "c bn.weight bn.bias bn.mean bn.var", "n", momentum=0.75),
             node("Relu", "n", "r"), node("MaxPool", "r", "m", kernel_shape=[2, 2], strides=[2, 2]),
             node("Flatten", "m", "f"), node("Gemm", "f fc.weight fc.bias", "y", transB=1)]
    tensors = [tensor("conv.weight", [5, 2, 3, 3]), tensor("conv.bias", [5]), tensor("bn.weight", [5], [1.0] * 5),
               tensor("bn.bias", [5]), tensor("bn.mean", [5]), tensor("bn.var", [5], [1.0] * 5),
               tensor("fc.weight", [3, 45]), tensor("fc.bias", [3])]
    return model(nodes, [port("x", ["batch", 2, 6, 6])], [port("y", ["batch", 3])], tensors)


def chain():
    """A reshape whose shape nodes compute from the shape of the input."""
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "b", axis=0), node("Unsqueeze", "b zeros", "b1"),
             node("Constant", "", "rest", value=tensor("", [1], [-1], INT64)), node("Concat", "b1 rest", "to", axis=0),
             node("Reshape", "x to", "r"), node("MatMul", "r w", "y")]
    tensors = [tensor("zero", [], [0], INT64), tensor("zeros", [1], [0], INT64), tensor("w", [6, 2])]
    return model(nodes, [port("x", ["batch", 2, 3])], [port("y", ["batch", 2])], tensors)


def repeated():
    """A mask of positions that are repeated for each sample, by ops that are computed when the file is read."""
    nodes = [node("Shape", "x", "s"), node("Slice", "s zero one", "b"), node("Concat", "b three", "to", axis=0),
             node("Expand", "places to", "p"), node("Expand", "index to", "i"),
             node("GatherElements", "p i", "g", axis=1), node("Unsqueeze", "p two", "u"),
             node("GatherND", "table u", "t"), node("ScatterND", "zeros at parts", "w"),
             node("Add", "g t", "a"), node("Add", "a w", "c"), node("Cast", "c", "f", to=FLOAT),
             node("Mul", "x f", "m"), node("MatMul", "m w.weight", "y")]
    tensors = [tensor("zero", [1], [0], INT64), tensor("one", [1], [1], INT64), tensor("two", [1], [2], INT64),
               tensor("three", [1], [3], INT64), tensor("places", [1, 3], [2, 0, 1], INT64),
               tensor("index", [1, 3], [1, 1, 0], INT64), tensor("table", [3], [10, 20, 30], INT64),
               tensor("zeros", [3], [0, 0, 0], INT64), tensor("at", [1, 1], [1], INT64),
               tensor("parts", [1], [100], INT64), tensor("w.weight", [3, 2])]
    return model(nodes, [port("x", ["batch", 3])], [port("y", ["batch", 2])], tensors)


def sample_rows():
    """As exporters write PyTorch's as_strided: every sample's own numbers, by their places in all of them."""
    nodes = [node("Reshape", "x line", "l"), node("Shape", "x", "s"), node("Gather", "s zero", "b", axis=0),
             node("Range", "zero b one", "r"), node("Mul", "r four", "f"), node("Unsqueeze", "f axis", "u"),
             node("Add", "u order", "i"), node("Gather", "l i", "g", axis=0), node("MatMul", "g w", "y")]
    tensors = [tensor("line", [1], [-1], INT64), tensor("zero", [], [0], INT64), tensor("one", [], [1], INT64),
               tensor("four", [], [4], INT64), tensor("axis", [1], [1], INT64),
               tensor("order", [1, 3], [3, 0, 1], INT64), tensor("w", [3, 2])]
    return model(nodes, [port("x", ["batch", 4])], [port("y", ["batch", 2])], tensors)


def other_rows():
    """Numbers of other samples."""
    nodes = [node("Reshape", "x line", "l"), node("Shape", "x", "s"), node("Gather", "s zero", "b", axis=0),
             node("Range", "zero b one", "r"), node("Unsqueeze", "r axis", "u"), node("Add", "u order", "i"),
             node("Gather", "l i", "g", axis=0), node("MatMul", "g w", "y")]
    tensors = [tensor("line", [1], [-1], INT64), tensor("zero", [], [0], INT64), tensor("one", [], [1], INT64),
               tensor("axis", [1], [1], INT64), tensor("order", [1, 3], [3, 0, 1], INT64), tensor("w", [3, 2])]
    return model(nodes, [port("x", ["batch", 4])], [port("y", ["batch", 2])], tensors)


def few_samples():
    """True of three samples, and not of five: a mask by the place in the batch is computed by the model."""
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "b", axis=0), node("Range", "zero b one", "r"),
             node("Less", "r four", "l"), node("Cast", "l", "f", to=FLOAT), node("Unsqueeze", "f axis", "u"),
             node("Mul", "x u", "m"), node("MatMul", "m w", "y")]
    tensors = [tensor("zero", [], [0], INT64), tensor("one", [], [1], INT64), tensor("four", [], [4], INT64),
               tensor("axis", [1], [1], INT64), tensor("w", [3, 2])]
    return model(nodes, [port("x", ["batch", 3])], [port("y", ["batch", 2])], tensors)


def half_batch():
    """A number that two and three samples have in common."""
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "b", axis=0), node("Div", "b four", "q"),
             node("Cast", "q", "f", to=FLOAT), node("Mul", "x f", "m"), node("MatMul", "m w", "y")]
    tensors = [tensor("zero", [], [0], INT64), tensor("four", [], [4], INT64), tensor("w", [3, 2])]
    return model(nodes, [port("x", ["batch", 3])], [port("y", ["batch", 2])], tensors)


def other_columns():
    """Numbers by the sample's place, from what is repeated for each: equal for three samples alone."""
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "b", axis=0), node("Slice", "s start one1", "b1"),
             node("Concat", "b1 five", "to", axis=0), node("Expand", "row to", "p"), node("Range", "zero b one", "r"),
             node("Unsqueeze", "r axis", "u"), node("Concat", "u u", "i", axis=1), node("GatherND", "p i", "g"),
             node("Cast", "g", "f", to=FLOAT), node("Unsqueeze", "f axis", "h"), node("Mul", "x h", "m"),
             node("MatMul", "m w", "y")]
    tensors = [tensor("zero", [], [0], INT64), tensor("one", [], [1], INT64), tensor("start", [1], [0], INT64),
               tensor("one1", [1], [1], INT64), tensor("five", [1], [5], INT64), tensor("axis", [1], [1], INT64),
               tensor("row", [1, 5], [7, 7, 7, 8, 9], INT64), tensor("w", [3, 2])]
    return model(nodes, [port("x", ["batch", 3])], [port("y", ["batch", 2])], tensors)


def fixed():
    """A file with a batch of 1: its reshape says 1."""
    nodes = [node("Reshape", "x to", "r"), node("MatMul", "r w", "y")]
    return model(nodes, [port("x", [1, 2, 3])], [port("y", [1, 2])],
                 [tensor("to", [2], [1, 6], INT64), tensor("w", [6, 2])])


def lookup():
    nodes = [node("Gather", "embed.weight ids", "e"), node("ReduceMean", "e", "m", axes=[1], keepdims=0),
             node("MatMul", "m head.weight", "y")]
    return model(nodes, [port("ids", ["batch", 5], INT64)], [port("y", ["batch", 4])],
                 [tensor("embed.weight", [10, 8]), tensor("head.weight", [8, 4])])


def shared():
    nodes = [node("LayerNormalization", "x one zero", "a"), node("LayerNormalization", "a one zero", "b"),
             node("MatMul", "b w", "y")]
    return model(nodes, [port("x", ["batch", 4])], [port("y", ["batch", 2])],
                 [tensor("one", [4], [1.0] * 4), tensor("zero", [4], [0.0] * 4), tensor("w", [4, 2])])


def masks():
    """A causal mask of each kind that exporters write, and a bias and a table before a softmax, which are none."""
    low = [0.0, -1e9, 0.0, 0.0]
    nodes = [node("MatMul", "x w", "s"), node("Add", "s mask", "a"), node("Add", "a mask4", "c"),
             node("Add", "c maskinf", "d"), node("Add", "d bias", "e"), node("Add", "e zeros", "f"),
             node("Add", "f table", "g"), node("Softmax", "g", "y")]
    tensors = [tensor("w", [4, 4]), tensor("mask", [1, 4], low), tensor("mask4", [4], [0.0, -1e4, 0.0, 0.0]),
               tensor("maskinf", [4], [0.0, -math.inf, 0.0, 0.0]), tensor("bias", [4], [0.0, -1e4, 0.0, -5.0]),
               tensor("zeros", [4], [0.0] * 4), tensor("table", [1, 4])]
    return model(nodes, [port("x", ["batch", 4])], [port("y", ["batch", 4])], tensors)


def image():
    """Sizes of any number."""
    nodes = [node("GlobalAveragePool", "x", "p"), node("Flatten", "p", "f"), node("MatMul", "f w", "y")]
    return model(nodes, [port("x", ["batch", 3, "height", "width"])], [port("y", ["batch", 2])], [tensor("w", [3, 2])])


# Models that are refused


def _line(*nodes, tensors=(), inputs=None, **options):
    """x [batch, 4] to y, and a weight w [4, 4]."""
    return model(nodes, inputs or [port("x", ["batch", 4])], [port("y", ["batch", 4])],
                 [tensor("w", [4, 4]), *tensors], **options)


def unsupported():
    return _line(node("NonZero", "x", "a", name="first"), node("Dot", "a w", "b", name="own", domain="my.ops"),
                 node("NonZero", "b", "y", name=""), node("TopK", "x", "dead", name="unused"))


def refused():
    """Two faults, and what depends on one of them."""
    return _line(node("Transpose", "x", "t"), node("MatMul", "x t", "a"), node("MatMul", "a w", "b"),
                 node("Softmax", "x", "c", axis=3), node("Add", "b c", "y"))


def mixes():
    return _line(node("ReduceMax", "x", "m", axes=[0]), node("Sub", "x m", "s"), node("MatMul", "s w", "y"))


def wide_bound():
    """A bound of 2^40 for numbers of 32 bits."""
    nodes = [node("Cast", "x", "i", to=6), node("Clip", "i - far", "c"), node("Cast", "c", "f", to=FLOAT),
             node("MatMul", "f w", "y")]
    return _line(*nodes, tensors=[tensor("far", [], [1 << 40], INT64)])


def order():
    return _line(node("Relu", "a", "y"), node("MatMul", "y w", "a"))


def twice():
    return _line(node("Relu", "x", "a"), node("MatMul", "x w", "a"), node("Relu", "a", "y"))


def attribute_unknown():
    return _line(node("Relu", "x", "a", sharpness=2), node("MatMul", "a w", "y"))


def data_dependent():
    return _line(node("Cast", "x", "i", to=7), node("Reshape", "x i", "r"), node("MatMul", "r w", "y"))


def old():
    return _line(node("MatMul", "x w", "y"), opset=6)


def text_not_utf8():
    return _line(node("MatMul", "x w", "y")).replace(b"/y/MatMul", b"/\xff/MatMul")


def short():
    return _line(node("MatMul", "x w", "y"), tensors=[tensor("v", [8], [1.0] * 7)])


def huge():
    return _line(node("MatMul", "x w", "y"), tensors=[tensor("v", [2**31, 2**31, 2**31], [])])


def negative():
    return _line(node("MatMul", "x w", "y"), tensors=[tensor("v", [-1], [])])


def big_constant():
    return _line(node("ConstantOfShape", "n", "k"), node("ReduceSum", "k", "s", keepdims=0), node("Mul", "x s", "y"),
                 tensors=[tensor("n", [3], [4096, 4096, 4096], INT64)])


def outside():
    return _line(node("MatMul", "x v", "y"),
                 tensors=[tensor("v", [4, 4], external={"location": "../secret", "length": "64"})])


def absolute():
    return _line(node("MatMul", "x v", "y"), tensors=[tensor("v", [4, 4], external={"location": "/etc/passwd"})])


def beyond():
    return _line(node("MatMul", "x v", "y"),
                 tensors=[tensor("v", [4, 4], external={"location": "data", "offset": "40", "length": "64"})])


def overlapping():
    return _line(node("MatMul", "x v", "a"), node("MatMul", "a u", "y"),
                 tensors=[tensor(n, [4, 4], external={"location": "data", "offset": "0"}) for n in "uv"])


def beside():
    return _line(node("MatMul", "x v", "y"), tensors=[tensor("v", [4, 4], external={"location": "data"})])


def truncated():
    return mlp()[:-40]


def mod_one():
    return _line(node("Cast", "x", "i", to=INT64), node("Mod", "i two", "m"), node("Cast", "m", "f", to=FLOAT),
                 node("MatMul", "f w", "y"), tensors=[tensor("two", [], [2], INT64)])


def number_lookup():
    return _line(node("ReduceSum", "w", "number", keepdims=0), node("GatherND", "number places", "g"),
                 node("Add", "x g", "a"), node("MatMul", "a w", "y"), tensors=[tensor("places", [1, 1], [0], INT64)])


def escapes():
    return _line(node("Gelu", "x", "a", approximate="\x1b[31mRED\x1b]0;owned\x07\x9b"),
                 node("MatMul", "a w", "y"), opset=20)


def many_parts():
    """200 lists of 10000 parts each, of which none is read."""
    nodes = [node("Expand", "x to", "long")]
    nodes += [node("SplitToSequence", "long one", f"s{i}", axis=1) for i in range(200)]
    nodes += [node("SequenceAt", f"s{i} zero", f"p{i}") for i in range(200)]
    nodes += [node("Sum", " ".join(f"p{i}" for i in range(200)), "sum"), node("Mul", "x sum", "y")]
    return model(nodes, [port("x", ["batch", 1])], [port("y", ["batch", 1])],
                 [tensor("to", [2], [1, 10000], INT64), tensor("one", [], [1], INT64), tensor("zero", [], [0], INT64)])


def nameless():
    """The first result of the LSTM is not used, and has no name."""
    return _line(node("LSTM", "x w w", "- last", name=""), node("MatMul", "last w", "y"))


def other_domain():
    return model([node("Adam", "x", "y", domain="ai.onnx.preview.training")], [port("x", ["batch", 4])],
                 [port("y", ["batch", 4])]).replace(field(8, field(1, "") + field(2, 17)),
                                                    field(8, field(1, "ai.onnx.preview.training") + field(2, 1)))


def cast_fp8():
    return _line(node("Cast", "x", "c", to=17), node("MatMul", "c w", "y"))


def corners():
    return model([node("Resize", "x empty scales", "y", mode="linear", coordinate_transformation_mode="align_corners")],
                 [port("x", ["batch", 1, 4, 4])], [port("y", ["batch", 1, 2, 2])],
                 [tensor("empty", [0], []), tensor("scales", [4], [1.0, 1.0, 0.6, 0.6])])


def recursive():
    """Graphs in attributes of nodes in graphs, deeper than any reader goes."""
    graph = b""
    for _ in range(500):
        graph = field(1, field(5, field(1, "body") + field(6, graph)))
    return field(1, 8) + field(7, graph)


if __name__ == "__main__":
    with open(sys.argv[2], "wb") as f:
        f.write(globals()[sys.argv[1]]())
