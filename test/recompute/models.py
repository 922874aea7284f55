# SPDX-License-Identifier: Apache-2.0
"""models.py resnet20|cnn: prints a model for MNIST's images whose activations are most of its memory."""
import sys

lines, names = [], {"variable": 0, "value": 0}


def value(text, shape):
    names["value"] += 1
    lines.append(f"  %v{names['value']} = {text}")
    return f"%v{names['value']}", shape


def variable(init, shape, frozen=""):
    names["variable"] += 1
    kind = "x".join(map(str, shape)) + "xf32"
    lines.append(f'  %w{names["variable"]} = mt.variable "w{names["variable"]}" init({init}){frozen} : tensor<{kind}>')
    return f"%w{names['variable']}", f"tensor<{kind}>"


def tensor(shape):
    return "tensor<" + "x".join(map(str, ("?", *shape))) + "xf32>"


def conv(x, filters, size=3, stride=1):
    (name, (height, width, channels)), out = x, None
    kernel, kind = variable("he_normal", (size, size, channels, filters))
    pad = size // 2
    out = ((height - 1) // stride + 1, (width - 1) // stride + 1, filters)
    return value(f"mt.conv2d {name}, {kernel} strides = [{stride}, {stride}] padding = [{pad}, {pad}, {pad}, {pad}] : "
                 f"{tensor(x[1])}, {kind}", out)


def unary(op, x):
    return value(f"mt.{op} {x[0]} : {tensor(x[1])}", x[1])


def normalise(x):
    given = [variable(init, x[1][-1:], frozen) for init, frozen in
             (("ones", ""), ("zeros", ""), ("zeros", " frozen"), ("ones", " frozen"))]
    return value(f"mt.batch_normalization {x[0]}, {', '.join(n for n, _ in given)} : {tensor(x[1])}, "
                 f"{', '.join(k for _, k in given)}", x[1])


def add(a, b):
    return value(f"mt.add {a[0]}, {b[0]} : {tensor(a[1])}, {tensor(b[1])}", a[1])


def block(x, filters, stride):
    y = unary("relu", normalise(conv(x, filters, 3, stride)))
    y = normalise(conv(y, filters))
    short = x if stride == 1 and x[1][-1] == filters else normalise(conv(x, filters, 1, stride))
    return unary("relu", add(y, short))


def resnet20(x):
    x = unary("relu", normalise(conv(x, 16)))
    for filters, stride in ((16, 1), (32, 2), (64, 2)):
        for i in range(3):
            x = block(x, filters, stride if i == 0 else 1)
    return x


def cnn(x):
    for stride in (1, 1, 1, 2, 1, 1):
        x = unary("relu", conv(x, 16, 3, stride))
        x = value(f'mt.dropout {x[0]} "d{names["value"]}" rate = 0.1 : {tensor(x[1])}', x[1])
    return x


image = ("%image", (28, 28, 1))
out = {"resnet20": resnet20, "cnn": cnn}[sys.argv[1]](image)
channels = out[1][-1]
pooled = value(f"mt.reduce sum, {out[0]} over [1, 2] : {tensor(out[1])}", (channels,))
kernel, kind = variable("glorot_uniform", (channels, 10))
logits = value(f"mt.matmul {pooled[0]}, {kernel} : {tensor(pooled[1])}, {kind}", (10,))
print(f"mt.model @{sys.argv[1]} {{")
print('  %image = mt.input "image" : tensor<?x28x28x1xf32>\n  %label = mt.target "label" : tensor<?xi32>')
print("\n".join(lines))
print(f"  %loss = mt.sparse_categorical_crossentropy {logits[0]}, %label from_logits : tensor<?x10xf32>, tensor<?xi32>")
print('  mt.loss "loss", %loss : tensor<?xf32>\n  mt.sgd <{learning_rate = 1.0e-4 : f32, momentum = 0.9 : f32}>\n}')
