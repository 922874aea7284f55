# SPDX-License-Identifier: Apache-2.0
"""Sums by ids that depend on the data: samples that are added to rows of a table, and elements of each sample."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np

from mtc._trace import BATCH, Batch, Refused, Value, integers, layout, moves, products
from mtc._trace import elementwise as e
from mtc._trace.values import has_batch
from mtc.jax._places import CLIP, FILL, filled, is_sample, places

MOST = 256  # of so large integers the sums of 2^16 are exact in f32


def add(value: Value, indices: Value, updates: Value, numbers: Any, mode: Any,
        columns: Optional[Sequence[Value]]) -> Value:
    """`table.at[ids].add(x)`, and the gradients of lookups. `columns`: the single indices that the last axis has."""
    mode = mode if mode == CLIP else FILL
    axes, inserted = tuple(numbers.scatter_dims_to_operand_dims), tuple(numbers.inserted_window_dims)
    batching, theirs = list(numbers.operand_batching_dims), list(numbers.scatter_indices_batching_dims)
    elements = not numbers.update_window_dims and axes == inserted and has_batch(value.shape)
    if elements and len(axes) == 1 and sorted([*batching, *axes]) == list(range(value.rank)):
        ids = layout.squeeze(indices, (indices.rank - 1,))
        return _sum(value, _to_elements(value, ids, updates, axes[0], batching, theirs, mode))
    own = columns is not None and value.rank == 2 and value.shape[0] == BATCH and is_sample(columns[0])
    if own and columns is not None and elements and axes == (0, 1) and not batching and indices.shape[0] == BATCH:
        ids = layout.squeeze(columns[1], (columns[1].rank - 1,))
        return _sum(value, _to_elements(value, ids, updates, 1, [0], [0], mode))
    leading = indices.rank - 1
    rows = value.shape[0] if value.shape else 0
    if (inserted != (0,) or axes != (0,) or batching or indices.shape[-1] != 1 or not isinstance(rows, int)
            or tuple(numbers.update_window_dims) != tuple(range(leading, updates.rank))
            or updates.shape[leading:] != value.shape[1:]):
        raise Refused("an update at places that depend on the data, or at several")
    found = places(layout.squeeze(indices, (leading,)), rows, mode, checked=False)
    updates = filled(updates, found, 0, updates.rank - leading)
    if updates.dtype != "f32" and integers.largest(updates) > MOST:
        raise Refused("sums of large integers by ids: cast them to float32")
    return _sum(value, moves.scatter_rows(rows, found.ids, e.cast(updates, "f32")))


def _sum(value: Value, added: Value) -> Value:
    return e.cast(added, value.dtype) if value.scalar == 0 else value + e.cast(added, value.dtype)


def _to_elements(value: Value, ids: Value, updates: Value, axis: int, batching: Sequence[int], theirs: Sequence[int],
                 mode: Any) -> Value:
    """The gradient of `jnp.take_along_axis`: each line, along the axis, has sums at its own ids."""
    size = value.shape[axis]
    if isinstance(size, Batch):
        raise Refused("an update of samples by places that depend on the data")
    if updates.dtype != "f32" and integers.largest(updates) > MOST:
        raise Refused("sums of large integers by ids: cast them to float32")
    others = [i for i in range(ids.rank) if i not in theirs]
    ids, updates = (layout.transpose(v, [*theirs, *others]) for v in (ids, updates))
    found = places(ids, size, mode, checked=False)
    updates = e.cast(filled(updates, found, 0), "f32")
    lead = ids.shape[:len(theirs)]
    count = int(np.prod([int(n) for n in ids.shape[len(theirs):]]))  # type: ignore[arg-type]
    hot = moves.one_hot(layout.reshape(found.ids, (*lead, count)), size)
    updates = layout.reshape(updates, (*lead, count))
    kept = list(range(len(lead)))
    if count == 1:
        made = layout.squeeze(hot, (len(lead),)) * updates
    else:
        made = products.dot_general(hot, updates, ((len(lead),), (len(lead),)), (kept, kept))
    order = [*batching, axis]
    return layout.transpose(made, [order.index(i) for i in range(value.rank)])
