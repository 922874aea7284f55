# SPDX-License-Identifier: Apache-2.0
"""A few samples of what a model is given, and the names of its entries."""

from __future__ import annotations

import dataclasses
import functools
import weakref
from typing import Any, Callable, Mapping, Sequence

import numpy as np

from mtc import _private
from mtc._errors import ModelError
from mtc._structure import Structure
from mtc._tensors import Array, samples
from mtc._trace import places
from mtc.keras import _model

ROWS = 4  # samples of an example


@dataclasses.dataclass(frozen=True)
class Example:
    """Inputs, targets and weights of a few samples: an array [n, ...] of float32, int32 or bool each, or a list, tuple
    or dict of them. None: there are none."""

    x: Any
    y: Any = None
    sample_weight: Any = None

    @staticmethod
    def of(x: Any, y: Any = None, sample_weight: Any = None, *, weighted: bool = False) -> Example:
        """The first samples of the caller's data. `weighted`: with weights, of 1 where there are none."""
        parts = [None if part is None else map_arrays(_first, part) for part in (x, y, sample_weight)]
        leaves = flat(parts[0])
        if not leaves:
            raise ModelError("expected inputs to trace the model with, found none")
        if parts[2] is not None:
            parts[2] = map_arrays(_of_samples, parts[2])
        if weighted and parts[2] is None:
            parts[2] = np.ones(len(leaves[0][1]), "f4")
        return Example(*parts)

    @staticmethod
    def of_model(model: Any, weighted: bool) -> Example:
        """Made up for a model that knows its inputs: random numbers, zeros for integers; no targets."""
        inputs = getattr(model, "_inputs_struct", None)
        if inputs is None and getattr(model, "inputs", None):
            inputs = model.inputs if len(model.inputs) > 1 else model.inputs[0]
        if inputs is None:
            raise ModelError(f"{model.name}: expected an example of the inputs of a subclassed model: "
                             "mtc.compile(model, example=(x, y))")

        def make(tensor: Any) -> Array:
            if None in tensor.shape[1:]:
                raise ModelError(f"{tensor.name}: expected sizes that are known, found {tensor.shape}: give an example")
            shape = (ROWS, *tensor.shape[1:])
            numbers = np.random.default_rng(0).standard_normal(shape) if "float" in tensor.dtype else np.zeros(shape)
            return numbers.astype(tensor.dtype)

        return Example.of(map_arrays(make, inputs), weighted=weighted)

    @staticmethod
    def like_last(model: Any, x: Any, y: Any = None, sample_weight: Any = None, *,
                  weighted: bool = False) -> Example:
        """The same; without targets those of the last data of the model, if its inputs were such."""
        made = Example.of(x, y, sample_weight, weighted=weighted)
        last = _last.get(model)
        if y is None and last is not None and shapes(last.x) == shapes(made.x):
            return last if not weighted else Example.of(last.x, last.y, last.sample_weight, weighted=weighted)
        if y is not None:
            _last[model] = made
        return made

    def with_targets(self, model: Any) -> Example:
        """With targets that are made up as Keras' losses have them: zeros for classes, else numbers in [0, 1)."""
        if self.y is not None or not model.compiled or model.loss is None:
            return self
        outputs = outputs_of(model, self.x)
        leaves = flat(outputs)
        losses = [loss for _, loss in flat(model.loss)] if isinstance(model.loss, (list, tuple, dict)) else (
            [model.loss] * len(leaves))
        made = []
        for (_, output), loss in zip(leaves, losses):
            shape = (ROWS, *output.shape[1:])
            name = loss if isinstance(loss, str) else type(loss).__name__
            if len(losses) != len(leaves) or (name == "function" and loss.__module__.split(".")[0] != "keras"):
                raise ModelError(f"{model.name}: expected an example of the targets of {name}: "
                                 "mtc.compile(model, example=(x, y))")
            sparse = "sparse" in name.lower()
            made.append(np.zeros(shape[:-1], "i4") if sparse else np.random.default_rng(1).random(shape, "f4"))
        return dataclasses.replace(self, y=rebuilt(outputs, made))

    def fitting(self, model: Any) -> Example:
        """With inputs of the types that a functional model says."""
        tensors = getattr(model, "inputs", None) or []
        leaves = flat(self.x)
        if len(tensors) != len(leaves):
            return self
        by_name = {tensor.name: tensor.dtype for tensor in tensors}
        fitted = [narrow(array.astype(by_name.get(key, tensor.dtype)))
                  for (key, array), tensor in zip(leaves, tensors)]  # both in Keras' order
        return dataclasses.replace(self, x=rebuilt(self.x, fitted))


_last: weakref.WeakKeyDictionary[Any, Example] = weakref.WeakKeyDictionary()  # with targets


def build(model: Any, x: Any) -> None:
    """Builds a model that does not know its input yet, as Keras' fit does, for any batch."""
    if not _model.is_model(model) or model.built or x is None:
        return
    if isinstance(model, _model.keras().Sequential) and hasattr(x, "shape"):
        try:
            model.build((None, *x.shape[1:]))
        except (ValueError, TypeError):
            pass  # check_model says it
        except Exception as error:  # the user's code, or Keras' account of it
            raise places.refusal(error, str(model.name)) from error
    else:
        outputs_of(model, x)


def outputs_of(model: Any, x: Any) -> Any:
    """The structure of the outputs of a symbolic call on such inputs, which builds a model, as Keras' fit does.

    Raises:
        ModelError: it cannot be called so.
    """
    keras = _model.keras()
    given = Example.of(x).fitting(model).x
    symbols = [keras.KerasTensor((None, *array.shape[1:]), array.dtype.name) for _, array in flat(given)]
    try:
        return _private.keras_output_spec(model, rebuilt(given, symbols))
    except Exception as error:  # the user's code
        raise places.refusal(error, model.name) from error


def shapes(value: Any) -> list[Any]:
    """Keys, shapes and types of the arrays of a structure."""
    return [(key, array.shape[1:], array.dtype) for key, array in flat(value)]


def _first(value: Any) -> Array:
    return narrow(samples(value[:ROWS] if hasattr(value, "__getitem__") else value, "example")[:ROWS])


def _of_samples(weights: Array) -> Array:
    """Weights [n] of weights [n] or [n, 1]; those of parts of a sample, such as its steps, as they are."""
    return weights.reshape(len(weights)) if weights.size == len(weights) else weights


def weighs_parts(sample_weight: Any) -> bool:
    """Whether weights are of parts of samples, [n, k], which a file cannot take."""
    return any(array.size != len(array) for _, array in flat(
        None if sample_weight is None else map_arrays(_first, sample_weight)))


def narrow(array: Array) -> Array:
    """As float32, int32 or bool."""
    kinds = {"f": "f4", "i": "i4", "u": "i4", "b": "?"}
    return np.ascontiguousarray(array, dtype=kinds.get(array.dtype.kind, "f4"))


def map_arrays(function: Callable[[Any], Any], value: Any) -> Any:
    """The structure with other arrays; a list of numbers is an array."""
    if isinstance(value, Mapping):
        return {key: map_arrays(function, inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)) and value and all(hasattr(v, "shape") or isinstance(v, Mapping) for v in value):
        return type(value)(map_arrays(function, inner) for inner in value)
    return function(value)


def flat(value: Any, path: str = "") -> list[tuple[str, Any]]:
    """The arrays of a structure with the keys to each, in Keras' order."""
    if value is None:
        return []
    if isinstance(value, Mapping):
        items: Sequence[tuple[Any, Any]] = [(key, value[key]) for key in sorted(value)]
    elif isinstance(value, (list, tuple)):
        items = list(enumerate(value))
    else:
        return [(path, value)]
    return [part for key, inner in items for part in flat(inner, f"{path}_{key}" if path else str(key))]


def rebuilt(like: Any, leaves: Sequence[Any]) -> Any:
    """A structure with other leaves, which are in the order of `flat`."""
    given = iter(leaves)

    def build(value: Any) -> Any:
        if value is None:
            return None
        if isinstance(value, Mapping):
            made = {key: build(value[key]) for key in sorted(value)}
            return {key: made[key] for key in value}
        if isinstance(value, (list, tuple)):
            return type(value)([build(inner) for inner in value])
        return next(given)

    return build(like)


@dataclasses.dataclass(frozen=True)
class Names:
    """The names of a plan's entries, each in the order of `flat`.

    Attributes:
        inputs, outputs, targets, weights: of what the model is called with and returns, and what its loss is given.
        keys: of inputs and outputs the keys in the caller's dicts, where there are some.
        like: the structure of the outputs.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    targets: tuple[str, ...]
    weights: tuple[str, ...]
    input_keys: tuple[str, ...]
    output_keys: tuple[str, ...]
    like: Any

    @staticmethod
    def of(model: Any, example: Example, outputs: Any) -> Names:
        """`outputs`: the structure that the model returns."""
        input_keys = tuple(key for key, _ in flat(example.x))
        output_keys = tuple(key for key, _ in flat(outputs))
        known = [t.name for t in getattr(model, "inputs", None) or []]
        inputs = _named(input_keys, known, "x")
        made = _named(output_keys, list(getattr(model, "output_names", None) or []), "output")
        targets = _of_outputs(example.y, output_keys, made, "target")
        weights = _of_outputs(example.sample_weight, output_keys, made, "sample_weight")
        every = [*inputs, *targets, *weights]
        twice = next((n for i, n in enumerate(every) if n in every[:i]), None)
        if twice is not None:
            raise ModelError(f"{model.name}: expected inputs and targets of different names, found two {twice}")
        return Names(inputs, made, targets, weights, input_keys, output_keys, rebuilt(outputs, [0] * len(made)))

    def structure(self, known: set[str]) -> Structure:
        """How the caller's data becomes that of a plan, whose entries are `known`."""
        keys = {key: name for key, name in zip(self.input_keys, self.inputs) if key}
        outputs = {key: name for key, name in zip(self.output_keys, self.outputs) if key}
        targets, weights = (tuple(n if n in known else "" for n in self._by_output(names, what)) for names, what in
                            ((self.targets, "target"), (self.weights, "sample_weight")))
        return Structure(tuple(n for n in self.inputs if n in known), keys, self.outputs, outputs, targets, weights,
                         functools.partial(rebuilt, self.like))

    def _by_output(self, names: tuple[str, ...], what: str) -> tuple[str, ...]:
        """The name for each output, "" for none, if that is what they are of."""
        wanted = tuple(f"{output}_{what}" for output in self.outputs)
        return wanted if names and set(names) <= set(wanted) else names


def _named(keys: Sequence[str], known: Sequence[str], single: str) -> tuple[str, ...]:
    """The model's own names; else the keys of a dict; else `single`, with a number where there are several."""
    if len(known) == len(keys) and len(set(known)) == len(known):
        return tuple(known)
    return tuple(single if not key else f"{single}_{key}" if key.split("_")[0].isdigit() else key for key in keys)


def _of_outputs(given: Any, output_keys: Sequence[str], outputs: Sequence[str], what: str) -> tuple[str, ...]:
    """Names of targets or weights: after their outputs where they are as many, or have their keys."""
    keys = [key for key, _ in flat(given)]
    if len(keys) == len(outputs):
        return (what,) if len(outputs) == 1 else tuple(f"{name}_{what}" for name in outputs)
    names = {**dict(zip(outputs, outputs)), **dict(zip(output_keys, outputs))}
    return tuple(what if not key else f"{names[key]}_{what}" if key in names else f"{what}_{key}" if key.isdigit() else
                 key for key in keys)
