# SPDX-License-Identifier: Apache-2.0
"""Functions of Keras' JAX back end with the gradients at kinks that those of another back end have."""

from __future__ import annotations

import functools
from typing import Any, Callable

import jax

from mtc._private import keras_jax
from mtc.jax import _kinks

np = jax.numpy


def _leaky_relu(x: Any, negative_slope: float = 0.2) -> Any:
    x = np.asarray(x)
    return np.where(x > 0, x, negative_slope * x)  # of JAX 0 is above the kink


def _hard_tanh(x: Any) -> Any:
    x = np.asarray(x)
    return jax.lax.clamp(np.asarray(-1, x.dtype), x, np.asarray(1, x.dtype))  # 0 at the bounds, where JAX's is 1


def _sparse_sigmoid(x: Any) -> Any:
    x = np.asarray(x)
    return np.where(x <= -1, 0.0, np.where(x >= 1, 1.0, 0.5 * (x + 1))).astype(x.dtype)  # half of JAX's at the bounds


def _selu(x: Any) -> Any:
    x = np.asarray(x)
    scale, alpha = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717
    return scale * np.where(x >= 0, x, alpha * np.expm1(np.where(x >= 0, 0.0, x)))  # of JAX 0 is below the kink


def _clip(x: Any, x_min: Any, x_max: Any) -> Any:
    """Its gradient is 1 at the bounds, where JAX's is 1/2."""
    x = np.asarray(x)
    if not np.issubdtype(x.dtype, np.floating):
        return np.clip(x.astype("int32") if x.dtype == bool else x, x_min, x_max)
    low, high = np.asarray(x_min, x.dtype), np.asarray(x_max, x.dtype)
    return np.where(x < low, low, np.where(x > high, high, x))


def _root(squares: Any) -> Any:
    """The square root, with the gradient 0 at 0, where JAX's is infinite."""
    return np.where(squares == 0, 0.0, np.sqrt(np.where(squares == 0, 1.0, squares))).astype(squares.dtype)


def _std(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return _root(keras_jax("numpy").var(x, axis=axis, keepdims=keepdims))


def _norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    one = axis is None and ord is None or isinstance(axis, int) or isinstance(axis, (list, tuple)) and len(axis) == 1
    x = np.asarray(x)
    if not one or ord not in (None, 2) or not np.issubdtype(x.dtype, np.floating):
        return _JAX["linalg.norm"](x, ord=ord, axis=axis, keepdims=keepdims)
    return _root(np.sum(x * x, axis=None if axis is None else axis if isinstance(axis, int) else axis[0],
                        keepdims=keepdims))


_FUNCTIONS: dict[str, dict[str, Callable[..., Any]]] = {
    "torch": {"nn.leaky_relu": _leaky_relu, "nn.hard_tanh": _hard_tanh, "nn.sparse_sigmoid": _sparse_sigmoid,
              "numpy.std": _std, "linalg.norm": _norm},
    "tensorflow": {"nn.leaky_relu": _leaky_relu, "nn.sparse_sigmoid": _sparse_sigmoid, "nn.selu": _selu,
                   "numpy.clip": _clip},
}
_JAX: dict[str, Any] = {}  # what was there before


def follow(backend: str) -> None:
    """From now on, in this process, gradients at kinks are those of this back end of Keras."""
    _kinks.follow(backend)
    for place, function in _FUNCTIONS.get(backend, {}).items():
        module, _, name = place.partition(".")
        _JAX[place] = getattr(keras_jax(module), name)
        setattr(keras_jax(module), name, functools.wraps(_JAX[place])(function))
