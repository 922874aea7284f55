# SPDX-License-Identifier: Apache-2.0
"""All that this package takes of private modules of JAX and Keras, which have no public way to the same.

Tested with jax 0.10.2 and keras 3.15.1. A version that has moved one of them fails here, with an ImportError or
AttributeError that names it; `_versions` warns of newer ones before.
"""

from __future__ import annotations

import importlib
from typing import Any, Iterator


def jax_user_frames(traceback: Any) -> Iterator[Any]:
    """Frames of a traceback of an equation, innermost first, without JAX's own."""
    frames: Iterator[Any] = importlib.import_module("jax._src.source_info_util").user_frames(traceback)
    return frames


def keras_output_spec(function: Any, inputs: Any) -> Any:
    """The outputs of a symbolic call, which leaves no trace in the layers, as `model(keras.Input(...))` does."""
    return importlib.import_module("keras.src.backend").compute_output_spec(function, inputs)


def keras_tensorflow() -> Any:
    """Keras' own module that imports TensorFlow when an attribute of it is read; None: this Keras has none."""
    return getattr(importlib.import_module("keras.src.utils.module_utils"), "tensorflow", None)


def keras_jax(module: str) -> Any:
    """A module of Keras' JAX back end, whose functions its ops call."""
    return importlib.import_module(f"keras.src.backend.jax.{module}")


def keras_random() -> Any:
    """The module of Keras' TensorFlow back end whose functions draw random numbers."""
    return importlib.import_module("keras.src.backend.tensorflow.random")


def keras_generator() -> Any:
    """What Keras draws from where a caller gives no seed."""
    return importlib.import_module("keras.src.random.seed_generator").global_seed_generator()
