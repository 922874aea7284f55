# SPDX-License-Identifier: Apache-2.0
"""A step of a Keras model in float64, on JAX, and how far the interpreter of MTC is from it."""

import contextlib
import types
from unittest import mock

import keras
import numpy as np
from jax._src.nn import functions
from jax_float64 import errors_in_float64
from keras.src.backend.common import dtypes
from mtc.keras import _example
from mtc.keras._program import Traced


@contextlib.contextmanager
def float64():
    """Keras makes float64 of what is float32 otherwise. On JAX a table has 32 bits for it, and the softmax of
    jax.nn.dot_product_attention is always float32."""
    narrow = _example.narrow
    numpy = types.SimpleNamespace(**{**vars(np), "float32": np.float64})

    def keep(array):
        return np.asarray(array, "f8") if array.dtype.kind == "f" else narrow(array)

    with mock.patch.dict(dtypes.BIT64_TO_BIT32_DTYPE, {"float64": "float64"}), \
            mock.patch.object(functions, "np", numpy), mock.patch.object(_example, "narrow", keep):
        keras.config.set_floatx("float64")
        try:
            yield
        finally:
            keras.config.set_floatx("float32")


def errors(make, path):
    """Of the loss, of all gradients and of the state after a step of the first samples, by their names.

    Args:
        make: a function that clears Keras' session and returns a compiled model, its inputs, targets and weights of
            samples; a loss computes in the type that Keras has when it is made.
        path: of a file to write and remove.
    """
    def program():
        model, *data = make()
        return Traced(model, _example.Example.of(*data)).program

    @contextlib.contextmanager
    def double():
        with float64():
            yield program()

    return errors_in_float64(program(), double, path)
