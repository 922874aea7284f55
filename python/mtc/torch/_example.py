# SPDX-License-Identifier: Apache-2.0
"""The caller's example of a batch: its structure, the names of its arrays, and how a module is called with them."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Mapping, Optional

from mtc._errors import DataError
from mtc.torch._framework import pytree, real_dtype, torch
from mtc.torch._selected import refuse_results


class Example:
    """The caller's example: its structure, and the names of its arrays.

    A dict holds keyword arguments of the module. A tuple (inputs, labels) holds its inputs, which are an array, a
    tuple or list of them or a dict, and what the loss compares with.
    """

    def __init__(self, example: Any, module: Any, loss: Optional[Callable[..., Any]]) -> None:
        self._with_loss = loss is not None
        if isinstance(example, Mapping):
            self._structure: Any = dict(example)
        elif isinstance(example, (tuple, list)) and len(example) == 2:
            self._structure = tuple(example)
        else:
            raise DataError("expected an example that is a dict of keyword arguments or a tuple (inputs, labels), "
                            f"found {_describe(example)}")
        if self._with_loss and isinstance(self._structure, dict):
            raise DataError("expected an example (inputs, labels) for a loss, found a dict")
        items, self._tree = pytree.tree_flatten(self._structure)
        self._places = [i for i, item in enumerate(items) if isinstance(item, torch.Tensor)]
        self._rest = [None if isinstance(item, torch.Tensor) else item for item in items]
        names = [_name(path, module) for path, _ in pytree.tree_flatten_with_path(self._structure)[0]]
        self.names = _distinct([names[i] for i in self._places])
        tensors = [items[i] for i in self._places]
        if not tensors:
            raise DataError("expected tensors in the example, found none")
        sizes = {tuple(t.shape[:1]) for t in tensors}
        if len(sizes) != 1 or () in sizes:
            found = ", ".join(f"{n} {list(t.shape)}" for n, t in zip(self.names, tensors))
            raise DataError(f"expected an example whose tensors have one axis of samples first, found {found}")
        # A copy of each: tensors that are the same object would be one placeholder. An export of one sample would be
        # for that size alone.
        self.tensors = [_at_least_two(_plain(t.detach().cpu())) for t in tensors]

    def rebuild(self, arrays: Any) -> Any:
        """The structure with other tensors."""
        items = list(self._rest)
        for place, array in zip(self._places, arrays):
            items[place] = array
        return pytree.tree_unflatten(items, self._tree)

    def call(self, module: Any, arrays: Any, loss: Optional[Callable[..., Any]]) -> tuple[Any, Any]:
        """The loss, and what is predicted of the module's output."""
        given = self.rebuild(arrays)
        if isinstance(given, dict):
            output = module(**given)
        elif loss is None:
            output = module(*_as_tuple(given[0]), *_as_tuple(given[1]))
        else:
            output = module(**given[0]) if isinstance(given[0], dict) else module(*_as_tuple(given[0]))
            # Copies: a loss may change an output in place.
            predicted = {name: o.clone() for name, o in _outputs_of(output, None).items()}
            value = loss(output, given[1])
            if not _is_number(value):
                raise DataError(f"expected a loss= that returns a number, found {_describe(value)}")
            return value, predicted
        value = _loss_of(output)
        return value, _outputs_of(output, value)

    def inputs(self, given: Any) -> dict[str, Any]:
        """Arrays of the module's inputs by name, from an array, several in order, or a dict of keyword arguments."""
        if isinstance(given, Mapping):
            return dict(given)
        items = list(given) if isinstance(given, (tuple, list)) else [given]
        structure = self._structure if isinstance(self._structure, dict) else self._structure[0]
        leaves = len(pytree.tree_flatten(structure)[0])
        if len(items) == leaves and len(self._places) < len(self._rest):  # what is no tensor is there too
            return {n: items[p] for n, p in zip(self.names, self._places) if p < leaves}
        return dict(zip(self.names, items))

    def bind(self, batch: Any) -> dict[str, Any]:
        """The arrays of a batch that is like the example, by name. What is no tensor in the example is passed over."""
        if isinstance(self._structure, dict) and isinstance(batch, Mapping):  # a loader may give more
            missing = [key for key in self._structure if key not in batch]
            if missing:
                raise DataError(f"expected batches with {', '.join(map(str, self._structure))}, "
                                f"found none of {', '.join(map(str, missing))}")
            batch = {key: batch[key] for key in self._structure}
        elif isinstance(self._structure, tuple) and isinstance(batch, list):
            batch = tuple(batch)
        items = pytree.tree_flatten(_like(batch, self._structure))[0]
        if len(items) != len(self._rest):
            raise DataError(f"expected batches like the example, of {', '.join(self.names)}; found {_describe(batch)}")
        return {name: items[place] for name, place in zip(self.names, self._places)}


def _loss_of(output: Any) -> Any:
    """The loss in what a module returns: an attribute or key `loss`, all of it, or the number in a tuple or dict."""
    parts = list(output.values() if isinstance(output, Mapping) else output) if isinstance(
        output, (Mapping, tuple, list)) else [output]
    numbers = [part for part in parts if _is_number(part)]
    if isinstance(output, Mapping) and "loss" in output:
        loss = output["loss"]
    elif hasattr(output, "loss"):
        loss = output.loss
    elif len(numbers) == 1 or (numbers and numbers[0] is parts[0]):
        loss = numbers[0]
    else:
        loss = output
    if not _is_number(loss):
        raise DataError(f"expected a module that returns its loss, a number, or loss=; found {_describe(loss)}")
    return loss


def _is_number(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim == 0


def _outputs_of(output: Any, loss: Any) -> dict[str, Any]:
    """The tensors with an axis of samples that a module returns beside its loss, by name."""
    refuse_results(output.values() if isinstance(output, Mapping) else output if isinstance(output, (tuple, list))
                   else [output])
    if isinstance(output, torch.Tensor):
        found = {"output": output}
    elif isinstance(output, Mapping):
        found = {str(k): v for k, v in output.items() if isinstance(v, torch.Tensor)}
    elif isinstance(output, (tuple, list)):
        found = {f"output_{i}": v for i, v in enumerate(output) if isinstance(v, torch.Tensor)}
    else:
        found = {}
    return {k: v for k, v in found.items() if v is not loss and v.ndim and v.dtype.is_floating_point}


def _name(path: Any, module: Any) -> str:
    """What an array of the example is called: by its key, or by the module's parameter."""
    keys = [str(getattr(k, "key", getattr(k, "idx", k))) for k in path]
    if not isinstance(path[0], pytree.SequenceKey):  # keyword arguments
        return ".".join(keys)
    if keys[0] == "1":
        return ".".join(["labels", *keys[1:]])
    if len(path) > 1 and not isinstance(path[1], pytree.SequenceKey):
        return ".".join(keys[1:])
    parameters = list(inspect.signature(module.forward).parameters)
    place = int(keys[1]) if len(keys) > 1 else 0
    return ".".join([parameters[place] if place < len(parameters) else f"input_{place}", *keys[2:]])


def _distinct(names: list[str]) -> list[str]:
    taken: set[str] = set()
    for i, name in enumerate(names):
        while names[i] in taken:
            names[i] += "_"
        taken.add(names[i])
        del name
    return names


def _like(batch: Any, structure: Any) -> Any:
    """Lists as the tuples, and tuples as the lists, that the example has."""
    if isinstance(structure, (tuple, list)) and isinstance(batch, (tuple, list)) and len(batch) == len(structure):
        return type(structure)(_like(b, s) for b, s in zip(batch, structure))
    if isinstance(structure, Mapping) and isinstance(batch, Mapping) and set(batch) >= set(structure):
        return {key: _like(batch[key], structure[key]) for key in structure}
    return batch


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _plain(tensor: Any) -> Any:
    """A tensor of a type that plans have: their numbers, or whole numbers and booleans as they are."""
    return tensor.to(real_dtype(), copy=True) if tensor.dtype.is_floating_point else tensor.clone()


def _at_least_two(tensor: Any) -> Any:
    return tensor if len(tensor) > 1 else torch.cat([tensor, tensor])


def _describe(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {list(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {len(value)}"
    return "none" if value is None else type(value).__name__
