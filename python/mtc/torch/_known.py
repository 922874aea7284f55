# SPDX-License-Identifier: Apache-2.0
"""What PyTorch computes during the conversion, since it depends on no array and no parameter."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Sequence

import numpy as np

from mtc._trace import BATCH, Batch, Graph, Refused, Value, layout, moves
from mtc._trace.complex_numbers import Complex
from mtc._trace.values import Shape
from mtc.torch._framework import real_dtype, torch
from mtc.torch._nodes import dtype_of, shape_of

SAMPLES = 3  # of the batch with which PyTorch computes


@dataclasses.dataclass(frozen=True)
class Known:
    """What PyTorch computed, since it depends on no array and no parameter. Its batch is one of SAMPLES."""

    tensor: Any
    shape: Shape


def lift(graph: Graph, known: Known) -> Value:
    """A tensor that PyTorch computed, as a value. Along the batch its elements must be equal."""
    array = known.tensor.numpy() if known.tensor.dtype != torch.bfloat16 else known.tensor.float().numpy()
    if known.shape.count(BATCH) == 1 and array.size == SAMPLES and np.array_equal(array.ravel(), range(SAMPLES)):
        return layout.reshape(moves.iota(graph, (BATCH,), 0, dtype_of(known.tensor.dtype)), known.shape)
    split: list[Any] = []  # the shape with the batch as an axis of its own
    for size in known.shape:
        if not isinstance(size, Batch):
            split.append(size)
            continue
        at = len(split)
        lead = array.shape[:at]
        for sizes in ([SAMPLES, size.times], [size.times, SAMPLES]):
            divided = array.reshape(*lead, *sizes, *array.shape[at + 1:])
            place = at + sizes.index(SAMPLES) if size.times != SAMPLES else at
            first = divided.take([0], axis=place)
            if np.array_equal(np.broadcast_to(first, divided.shape), divided):
                array = first
                split += [BATCH if i == place else n for i, n in enumerate(sizes, at)]
                break
        else:
            raise Refused("a constant that is another one for each sample of a batch")
    value = layout.broadcast(graph.constant(array), tuple(split))
    return layout.reshape(value, known.shape)


def plain(given: Any) -> Any:
    """An operand with a batch of SAMPLES."""
    if isinstance(given, Batch):
        return SAMPLES * given.times
    if isinstance(given, Value):  # of which only the shape counts
        kind = {"f32": real_dtype(), "i32": torch.int64, "i1": torch.bool}[given.dtype]
        return torch.empty([plain(n) for n in given.shape], dtype=kind)
    if isinstance(given, Complex):
        return torch.empty([plain(n) for n in given.shape], dtype=torch.complex64)
    return given.tensor if isinstance(given, Known) else given


def is_over_samples(given: Sequence[Any], traced: Any) -> bool:
    """Whether a tensor that PyTorch knows has the samples, and the result has not: their number would be in it."""
    results = [t for t in (traced if isinstance(traced, (tuple, list)) else [traced]) if isinstance(t, torch.Tensor)]
    has = any(isinstance(a, Known) and any(isinstance(n, Batch) for n in a.shape) for a in given)
    return has and not any(isinstance(n, Batch) for t in results for n in shape_of(t))


def computed(node: Any, positional: Any, keywords: Any) -> Any:
    """What PyTorch makes of it, with a batch of SAMPLES."""
    with torch.no_grad():
        results = node.target(*_mapped(plain, positional), **_mapped(plain, keywords))
    traced = node.meta["val"]
    if isinstance(results, (tuple, list)):
        return [Known(r, shape_of(t)) for r, t in zip(results, traced)]
    return Known(results, shape_of(traced))


def _mapped(function: Callable[[Any], Any], given: Any) -> Any:
    if isinstance(given, (list, tuple)):
        return type(given)(_mapped(function, g) for g in given)
    if isinstance(given, dict):
        return {key: _mapped(function, value) for key, value in given.items()}
    return function(given)


def flatten(given: Any) -> list[Any]:
    return [a for g in given for a in flatten(g)] if isinstance(given, (list, tuple)) else [given]


def product(sizes: Sequence[Any]) -> int:
    """Of static sizes."""
    return math.prod(int(n) for n in sizes)
