# SPDX-License-Identifier: Apache-2.0
"""What PyTorch computes during the conversion, since it depends on no array and no parameter."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Optional, Sequence

import numpy as np

from mtc._trace import BATCH, Batch, Graph, Refused, Value, layout, moves
from mtc._trace.complex_numbers import Complex
from mtc._trace.values import Shape
from mtc.torch._framework import real_dtype, torch
from mtc.torch._nodes import dtype_of, shape_of

SAMPLES = 3  # of the batch with which PyTorch computes
MOST = 1 << 23  # elements of a tensor that it computes for a whole batch, too


@dataclasses.dataclass(frozen=True)
class Known:
    """What PyTorch computed, since it depends on no array and no parameter.

    Attributes:
        tensor: with a batch of SAMPLES.
        shape: of any batch.
        whole: with the most samples that a batch may have; None: that has too many elements.
        varies: whether it, or what it is made of, is not the same for all samples.
    """

    tensor: Any
    shape: Shape
    whole: Any = None
    varies: bool = False

    def arrays(self) -> list[Any]:
        """The tensor of SAMPLES, and the whole one if it is known."""
        return [_array(t) for t in (self.tensor, self.whole) if t is not None]

    def samples(self, array: Any) -> int:
        """How many samples there are in one of the arrays, which has some."""
        size = next((array.shape[i] // n.times for i, n in enumerate(self.shape) if isinstance(n, Batch)), 1)
        return int(size)


def _array(tensor: Any) -> Any:
    return tensor.float().numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


def lift(graph: Graph, known: Known) -> Value:
    """A tensor that PyTorch computed, as a value: a constant, the numbers of the samples, or a table of them."""
    arrays = known.arrays()
    if known.shape.count(BATCH) == 1 and is_numbers(known):
        return layout.reshape(moves.iota(graph, (BATCH,), 0, dtype_of(known.tensor.dtype)), known.shape)
    found = [_of_all_samples(array, known.shape, known.samples(array)) for array in arrays]
    first = found[0]
    alike = first is not None and all(f is not None and np.array_equal(f[0], first[0], equal_nan=first[0].dtype.kind
                                      in "fc") and f[1] == first[1] for f in found)
    if first is not None and alike and (known.whole is not None or not known.varies):
        return layout.reshape(layout.broadcast(graph.constant(first[0]), first[1]), known.shape)
    return _table(graph, known)


def _of_all_samples(array: Any, shape: Shape, samples: int) -> Optional[tuple[Any, Shape]]:
    """An array whose elements are equal along the batch, with one of them there, and the shape with the batch as an
    axis of its own; None where they are not equal."""
    split: list[Any] = []
    for size in shape:
        if not isinstance(size, Batch):
            split.append(size)
            continue
        at = len(split)
        lead = array.shape[:at]
        for sizes in ([samples, size.times], [size.times, samples]):
            divided = array.reshape(*lead, *sizes, *array.shape[at + 1:])
            place = at + (sizes.index(samples) if size.times != samples else 0)
            first = divided.take([0], axis=place)
            if np.array_equal(np.broadcast_to(first, divided.shape), divided, equal_nan=divided.dtype.kind in "fc"):
                array = first
                split += [BATCH if i == place else n for i, n in enumerate(sizes, at)]
                break
        else:
            return None
    return array, tuple(split)


def _table(graph: Graph, known: Known) -> Value:
    """What is another one for each sample: a lookup by the number of the sample."""
    axes = [i for i, n in enumerate(known.shape) if isinstance(n, Batch)]
    if known.whole is None or len(axes) != 1:
        raise Refused("a constant that is another one for each sample of a batch")
    axis = axes[0]
    times = known.shape[axis].times  # type: ignore[union-attr]
    few, all_ = (np.moveaxis(array, axis, 0) for array in known.arrays())
    rest = few.shape[1:]
    for stacked in (False, True):
        a, b = (array.reshape(times, -1, *rest).swapaxes(0, 1) if stacked else array.reshape(-1, times, *rest)
                for array in (few, all_))
        if np.array_equal(a, b[:SAMPLES], equal_nan=a.dtype.kind in "fc"):
            break
    else:
        raise Refused("a constant of a sample that depends on how many samples there are")
    rows = moves.take(graph.constant(b), moves.iota(graph, (BATCH,), 0, "i32"))  # [BATCH, times, ...]
    rows = layout.move_axis(rows, 0, 1) if stacked else rows
    sizes = [n for i, n in enumerate(known.shape) if i != axis]
    return layout.move_axis(layout.reshape(rows, (Batch(times), *sizes)), 0, axis)


def is_numbers(known: Known, times: int = 1) -> bool:
    """Whether the elements are 0, 1, 2 ... along the batch, times a factor."""
    return known.whole is not None and all(
        array.size == known.samples(array) and np.array_equal(array.ravel(), times * np.arange(array.size))
        for array in known.arrays())


def of_each(known: Known) -> Optional[Any]:
    """What is the same for each sample, of a tensor whose first axis they are; None where it is not the same."""
    if not known.shape or known.shape[0] != BATCH or any(isinstance(n, Batch) for n in known.shape[1:]) or (
            known.varies and known.whole is None):
        return None
    first = known.arrays()[0][0]
    return first if all((array == first).all() for array in known.arrays()) else None


def within_samples(known: Any, size: Any) -> Optional[Any]:
    """Places in an axis that has a part for each sample, which stay in the part of the sample that they belong to:
    their places in this part. None for others."""
    if not isinstance(known, Known) or not isinstance(size, Batch) or not known.shape or known.whole is None or not (
            isinstance(known.shape[0], Batch)) or any(isinstance(n, Batch) for n in known.shape[1:]):
        return None
    own = []
    for array in known.arrays():
        parts = array.reshape(-1, known.shape[0].times, *array.shape[1:])
        starts = size.times * np.arange(len(parts))
        own.append(parts - starts.reshape(-1, *[1] * (parts.ndim - 1)))
    first = own[0][0]
    if not all((parts == first).all() for parts in own) or (first < 0).any() or (first >= size.times).any():
        return None
    return first


def plain(given: Any, samples: int = SAMPLES) -> Any:
    """An operand with a batch of SAMPLES, or with the most samples."""
    if isinstance(given, Batch):
        return samples * given.times
    if isinstance(given, Value):  # of which only the shape counts
        kind = {"f32": real_dtype(), "i32": torch.int64, "i1": torch.bool}[given.dtype]
        return torch.empty([plain(n, samples) for n in given.shape], dtype=kind)
    if isinstance(given, Complex):
        return torch.empty([plain(n, samples) for n in given.shape], dtype=torch.complex64)
    if isinstance(given, Known):
        return given.tensor if samples == SAMPLES else given.whole
    return given


def is_over_samples(given: Sequence[Any], traced: Any) -> bool:
    """Whether a tensor that PyTorch knows has the samples, and the result has not: their number would be in it."""
    results = [t for t in (traced if isinstance(traced, (tuple, list)) else [traced]) if isinstance(t, torch.Tensor)]
    has = any(isinstance(a, Known) and any(isinstance(n, Batch) for n in a.shape) for a in given)
    return has and not any(isinstance(n, Batch) for t in results for n in shape_of(t))


def computed(node: Any, positional: Any, keywords: Any, batch_size: int) -> Any:
    """What PyTorch makes of it, with a batch of SAMPLES and with the most samples, `batch_size`."""
    traced = node.meta["val"]
    given = list(flatten([positional, list(keywords.values())]))
    each = traced if isinstance(traced, (tuple, list)) else [traced]
    shapes = [shape_of(t) for t in each]
    known = [a for a in given if isinstance(a, Known)]
    many = max(batch_size, SAMPLES + 1)
    of_samples = any(isinstance(a, Batch) or isinstance(a, (Known, Value, Complex)) and any(
        isinstance(n, Batch) for n in a.shape) for a in given) or any(isinstance(n, Batch) for s in shapes for n in s)
    fits = all(math.prod(plain(n, many) for n in s) <= MOST for s in shapes) and all(a.whole is not None for a in known)
    with torch.no_grad():
        few = _called(node, positional, keywords, SAMPLES)
        whole = few
        if of_samples:
            whole = _called(node, positional, keywords, many) if fits else [None] * len(few)
    varies = any(a.varies for a in known)
    made = [Known(t, s, w, varies or _of_all_samples(_array(t), s, SAMPLES) is None)
            for t, s, w in zip(few, shapes, whole)]
    return made if isinstance(traced, (tuple, list)) else made[0]


def _called(node: Any, positional: Any, keywords: Any, samples: int) -> list[Any]:
    def chosen(given: Any) -> Any:
        return plain(given, samples)

    results = node.target(*_mapped(chosen, positional), **_mapped(chosen, keywords))
    return list(results) if isinstance(results, (tuple, list)) else [results]


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
