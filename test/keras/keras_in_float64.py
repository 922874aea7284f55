# SPDX-License-Identifier: Apache-2.0
"""Keras on PyTorch, made to compute in float64 what it computes on JAX. To be imported before Keras.

What PyTorch does in its own way, resizing and moving images, is linear in the image: its matrix is that of Keras on
JAX, one small program a size.
"""
import functools
import os

os.environ["KERAS_BACKEND"] = "torch"
import jax
import keras.src.backend.jax.image as jax_image
import numpy as np
import torch
from keras import ops
from keras.src.backend.common import dtypes
from keras.src.backend.torch import image as torch_image

jax.config.update("jax_enable_x64", True)
dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"  # else Keras rounds what many functions return


def moved_by(matrix, images, size):
    """Images [N, H, W, C] times a matrix from H * W to size."""
    n, h, w, c = images.shape
    return torch.einsum("nic,io->noc", images.reshape(n, h * w, c),
                        torch.from_numpy(matrix).to(images.dtype)).reshape(n, *size, c)


def basis(h, w, dtype):
    return np.eye(h * w, dtype=dtype).reshape(h * w, h, w, 1)


@functools.cache
def resizing_matrix(h, w, size, options):
    # Which pixel is nearest is decided in float32.
    pixels = basis(h, w, "float32" if ("interpolation", "nearest") in options else "float64")
    return np.array(jax_image.resize(pixels, size, **dict(options)), "float64").reshape(h * w, -1)


def resize(images, size, **options):
    if images.device.type == "meta":
        return images.new_empty((images.shape[0], *size, images.shape[3]))
    return moved_by(resizing_matrix(*images.shape[1:3], tuple(size), tuple(options.items())), images, size)


def affine_transform(images, transform, interpolation="bilinear", fill_mode="constant", fill_value=0, data_format=None):
    if images.device.type == "meta":
        return images
    each = ops.convert_to_numpy(transform)
    assert (each == each[0]).all(), "factors are ranges of one number"
    h, w = images.shape[1:3]
    pixels = basis(h, w, "float64")
    matrix = np.array(jax_image.affine_transform(pixels, np.repeat(each[:1].astype("float64"), len(pixels), 0),
                                                 interpolation, fill_mode, fill_value))
    return moved_by(matrix.reshape(h * w, -1), images, (h, w))


torch_image.resize, torch_image.affine_transform = resize, affine_transform


def contiguous(function):
    """PyTorch's convolutions in float64 take no other kernels."""
    return lambda x, kernel, *args, **kwargs: function(x.contiguous(), kernel.contiguous(), *args, **kwargs)


for name in ("conv1d", "conv2d", "conv_transpose2d"):
    setattr(torch.nn.functional, name, contiguous(getattr(torch.nn.functional, name)))
