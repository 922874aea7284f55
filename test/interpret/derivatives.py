# SPDX-License-Identifier: Apache-2.0
# RUN: %python %s
"""Derivatives of derivatives: of each function below, a weighted sum of the derivatives by its parameters is
differentiated again, and compared with differences of the first derivatives."""
import random

from reference import run

random.seed(3)
SAMPLES, STEP = 3, 0.02

# Ops from %x (tensor<?x...>) and %w to %y, the shape of a sample of x, of w, and of y.
FUNCTIONS = {
    "product": ("%y = mt.matmul %x, %w : tensor<?x3xf32>, tensor<3x2xf32>", (3,), (3, 2), (2,)),
    "batched product": ("%y = mt.matmul %x, %w : tensor<?x4x3xf32>, tensor<3x2xf32>", (4, 3), (3, 2), (4, 2)),
    "tanh": ("""%a = mt.matmul %x, %w : tensor<?x3xf32>, tensor<3x2xf32>
    %y = mt.tanh %a : tensor<?x2xf32>""", (3,), (3, 2), (2,)),
    "gelu": ("""%a = mt.mul %x, %w : tensor<?x3xf32>, tensor<3xf32>
    %y = mt.gelu %a : tensor<?x3xf32>""", (3,), (3,), (3,)),
    "softplus, leaky ReLU": ("""%a = mt.mul %x, %w : tensor<?x3xf32>, tensor<3xf32>
    %b = mt.leaky_relu %a negative_slope = 0.2 : tensor<?x3xf32>
    %y = mt.softplus %b : tensor<?x3xf32>""", (3,), (3,), (3,)),
    "softmax": ("""%a = mt.mul %x, %w : tensor<?x3xf32>, tensor<3xf32>
    %y = mt.softmax %a : tensor<?x3xf32>""", (3,), (3,), (3,)),
    "logarithm of softmax": ("""%a = mt.mul %x, %w : tensor<?x3xf32>, tensor<3xf32>
    %y = mt.log_softmax %a : tensor<?x3xf32>""", (3,), (3,), (3,)),
    "layer normalisation": ("""%a = mt.mul %x, %w : tensor<?x4xf32>, tensor<4xf32>
    %y = mt.normalize %a over [1] epsilon = 0.01 : tensor<?x4xf32>""", (4,), (4,), (4,)),
    "batch statistics": ("""%a = mt.mul %x, %w : tensor<?x3xf32>, tensor<3xf32>
    %b = mt.square %a : tensor<?x3xf32>
    %c = mt.reduce sum, %b over [0] : tensor<?x3xf32>
    %d = mt.sqrt %c : tensor<3xf32>
    %y = mt.div %a, %d : tensor<?x3xf32>, tensor<3xf32>""", (3,), (3,), (3,)),
    "convolution": ("""%a = mt.conv2d %x, %w padding = [1, 1, 1, 1] : tensor<?x4x4x2xf32>, tensor<3x3x2x2xf32>
    %y = mt.sigmoid %a : tensor<?x4x4x2xf32>""", (4, 4, 2), (3, 3, 2, 2), (4, 4, 2)),
    "strided convolution": ("""%a = mt.conv2d %x, %w strides = [2, 2] : tensor<?x4x4x2xf32>, tensor<2x2x2x2xf32>
    %y = mt.tanh %a : tensor<?x2x2x2xf32>""", (4, 4, 2), (2, 2, 2, 2), (2, 2, 2)),
    "reshape, transpose, slice": ("""%a = mt.matmul %x, %w : tensor<?x3xf32>, tensor<3x4xf32>
    %b = mt.reshape %a : tensor<?x4xf32> to tensor<?x2x2xf32>
    %c = mt.transpose %b by [0, 2, 1] : tensor<?x2x2xf32>
    %d = mt.matmul %b, %c : tensor<?x2x2xf32>, tensor<?x2x2xf32>
    %y = mt.exp %d : tensor<?x2x2xf32>""", (3,), (3, 4), (2, 2)),
    "cross-entropy": ("""%a = mt.matmul %x, %w : tensor<?x3xf32>, tensor<3x4xf32>
    %z = mt.constant dense<[0.1, 0.2, 0.3, 0.4]> : tensor<4xf32>
    %t = mt.broadcast %z : tensor<4xf32> to tensor<?x4xf32>
    %l = mt.categorical_crossentropy %a, %t from_logits : tensor<?x4xf32>, tensor<?x4xf32>
    %y = mt.reshape %l : tensor<?xf32> to tensor<?x1xf32>""", (3,), (3, 4), (1,)),
}


def size(shape):
    count = 1
    for extent in shape:
        count *= extent
    return count


def tensor(shape, split=False):
    return "tensor<" + "".join(f"{extent}x" for extent in (["?"] if split else []) + list(shape)) + "f32>"


def total(name, shape, split):
    """Ops that sum all elements of %name to %name_sum."""
    lines, kind = [], tensor(shape, split)
    if shape:
        axes = list(range(split, len(shape) + split))
        lines.append(f"%{name}_each = mt.reduce sum, %{name} over {axes} : {kind}")
    if split:
        lines.append(f"%{name}_sum = mt.reduce sum, %{name}_each over [0] : tensor<?xf32>")
    return "\n    ".join(lines), f"%{name}_sum" if split else f"%{name}_each"


def model(ops, x, w, y):
    """s = sum(c dL/dw) + sum(e dL/dx) for L = sum(y^2 / 2 + y d); the derivatives of s by w become the value of w."""
    loss, loss_name = total("q", y, True)
    first, first_name = total("gc", w, False)
    second, second_name = total("he", x, True)
    return f"""mt.model @twice {{
  %input = mt.input "x" : {tensor(x, True)}
  %d = mt.input "d" : {tensor(y, True)}
  %e = mt.input "e" : {tensor(x, True)}
  %v = mt.variable "w" init(zeros) : {tensor(w)}
  %c = mt.variable "c" init(zeros) frozen : {tensor(w)}
  %i = mt.variable "iteration" init(zeros) frozen role(iteration) : tensor<i32>
  mt.update {{
    %n = mt.batch_size
    %half = mt.constant dense<0.5> : tensor<f32>
    %x = mt.argument %input : {tensor(x, True)}
    %w = mt.argument %v : {tensor(w)}
    {ops.replace("%d", "%dd").replace("%e ", "%ee ").replace("%c", "%cc")}
    %y2 = mt.mul %y, %half : {tensor(y, True)}, tensor<f32>
    %yd = mt.add %y2, %d : {tensor(y, True)}, {tensor(y, True)}
    %q = mt.mul %y, %yd : {tensor(y, True)}, {tensor(y, True)}
    {loss}
    %g = mt.derivative {loss_name} by %w : {tensor(w)}
    %h = mt.derivative {loss_name} by %x : {tensor(x, True)}
    %gc = mt.mul %g, %c : {tensor(w)}, {tensor(w)}
    %he = mt.mul %h, %e : {tensor(x, True)}, {tensor(x, True)}
    {first}
    {second}
    %s = mt.add {first_name}, {second_name} : tensor<f32>, tensor<f32>
    mt.result "s", %s, %n
    %k = mt.derivative %s by %w : {tensor(w)}
    mt.assign "w", %k : {tensor(w)}
  }}
}}
"""


def check(name, ops, x, w, y):
    text = model(ops, x, w, y)
    draw = lambda count: [random.gauss(0, 0.7) for _ in range(count)]
    start = draw(size(w))
    data = {("INPUT", "x"): draw(SAMPLES * size(x)), ("INPUT", "d"): draw(SAMPLES * size(y)),
            ("INPUT", "e"): draw(SAMPLES * size(x)), ("SET", "c"): draw(size(w))}

    def evaluate(values):
        tensors, results = run(text, ["train_step"], {**data, ("SET", "w"): values})
        return tensors["w"], results["s"][0]
    found, _ = evaluate(start)
    direction = draw(size(w))
    # Central differences of fourth order; mt-interpret prints six digits.
    values = [evaluate([a + steps * STEP * b for a, b in zip(start, direction)])[1] for steps in (-2, -1, 1, 2)]
    expected = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * STEP)
    value = sum(a * b for a, b in zip(found, direction))
    if not abs(value - expected) <= 2e-3 * max(1, abs(expected), *map(abs, values)):
        raise SystemExit(f"{name}: expected a derivative of {expected}, found {value}")


for function, (ops, x, w, y) in FUNCTIONS.items():
    check(function, ops, x, w, y)
