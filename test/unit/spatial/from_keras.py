#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes keras.txt: what Keras' operations give on the JAX back end, in double. For maintainers.

    pip install jax keras && python from_keras.py > keras.txt

A line: CASE WHAT NUMBERS. y is the result on x and w, dx and dw are the gradients of sum(y * dy). Element i of x, w and
dy is ((i * k) % 11 - 5) / 4 with k = 7, 3 and 5.
"""
import os

os.environ.update(KERAS_BACKEND="jax", JAX_PLATFORMS="cpu")
import jax
import numpy as np
from keras import ops

jax.config.update("jax_enable_x64", True)


def numbers(shape, k):
    return ((np.arange(np.prod(shape)) * k % 11 - 5) / 4).reshape(shape)


def show(case, function, **operands):
    y, back = jax.vjp(lambda *values: function(*values), *operands.values())
    gradients = back(jax.numpy.asarray(numbers(y.shape, 5)))
    for what, value in zip(["y", *("d" + name for name in operands)], [y, *gradients]):
        print(case, what, *(f"{v:.12g}" for v in np.asarray(value).ravel()))


def main():
    x = numbers((2, 5, 4, 2), 7)
    for case, shape, options in (("conv_same", (3, 3, 2, 2), dict(strides=2, padding="same")),
                                 ("conv_dilated", (2, 2, 2, 3), dict(dilation_rate=2)),
                                 ("conv_groups", (2, 3, 1, 4), dict(padding="same"))):
        show(case, lambda a, b: ops.conv(a, b, data_format="channels_last", **options), x=x, w=numbers(shape, 3))
    show("conv1d", lambda a, b: ops.conv(a, b, strides=2, padding="same", data_format="channels_last"),
         x=numbers((2, 5, 3), 7), w=numbers((4, 3, 2), 3))
    show("depthwise", lambda a, b: ops.depthwise_conv(a, b, strides=2, padding="same", data_format="channels_last"),
         x=x, w=numbers((3, 2, 2, 2), 3))
    for padding in ("same", "valid"):
        show("transpose_" + padding,
             lambda a, b: ops.conv_transpose(a, b, strides=2, padding=padding, data_format="channels_last"),
             x=x, w=numbers((3, 3, 3, 2), 3))
        for name, pool in (("max_", ops.max_pool), ("average_", ops.average_pool)):
            show(name + padding, lambda a: pool(a, (3, 2), (2, 2), padding, data_format="channels_last"), x=x)
    ids = np.array([[1, 0], [3, 1]])
    show("take", lambda t: ops.take(t, ids, axis=0), w=numbers((4, 3), 3))
    show("zero_padding", lambda a: ops.pad(a, ((0, 0), (1, 0), (0, 2), (0, 0))), x=x)
    show("cropping", lambda a: a[:, 1:4:2, 1:], x=x)
    show("flip", lambda a: ops.flip(a, axis=2), x=x)
    show("concatenate", lambda a: ops.concatenate([a, a[:, :, :, :1]], axis=3), x=x)


main()
