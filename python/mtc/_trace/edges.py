# SPDX-License-Identifier: Apache-2.0
"""Batches that the check makes of an example: the values at which a gradient, a mask or a lookup goes another way.

They have what training meets sooner or later, and what a few samples seldom have: a row of zeros, the first and the
last row of a table, masks that take all or nothing, labels that do not count, large numbers, a short batch.
"""

from __future__ import annotations

import dataclasses
from typing import Callable, Optional

import numpy as np

from mtc._tensors import Array

Arrays = dict[str, Array]


@dataclasses.dataclass(frozen=True)
class Entry:
    """What is known of an array of the batch.

    Attributes:
        target: only the loss reads it.
        limit: whole numbers are below it; -1: nothing is known.
        ignored: the label that the loss passes over.
        mask: it may say which samples or labels count.
    """

    target: bool = False
    limit: int = -1
    ignored: Optional[int] = None
    mask: bool = False


@dataclasses.dataclass(frozen=True)
class Case:
    """A batch. `short`: of fewer samples than the others."""

    name: str
    arrays: Arrays
    short: bool = False


def cases(arrays: Arrays, entries: dict[str, Entry]) -> list[Case]:
    """The batches that can be made of an example's arrays, [n, ...] each with n > 1: each value is like one that the
    example or the plan shows to be legal."""
    first = {name: np.array(array) for name, array in arrays.items()}
    made = [
        _changed("a row of zeros", first, entries, _zeros),
        _changed("whole numbers and masks at their ends", first, entries, _ends),
        _changed("a sample whose labels are ignored", first, entries, _ignored),
        _changed("all labels ignored", first, entries, lambda a, e, n: _ignored(a, e, n, len(a))),
        _changed("inputs times 100", first, entries, _hundredfold),
        Case("a short batch", {name: array[:1] for name, array in first.items()}, True)]
    return [case for case in made if case is not None]


Change = Callable[[Array, Entry, str], Optional[Array]]  # None: stays as it is


def _changed(name: str, arrays: Arrays, entries: dict[str, Entry], change: Change) -> Optional[Case]:
    """The case; None where nothing changes."""
    made = {key: change(array.copy(), entries.get(key, Entry()), key) for key, array in arrays.items()}
    if all(array is None for array in made.values()):
        return None
    return Case(name, {key: arrays[key] if array is None else array for key, array in made.items()})


def _zeros(array: Array, entry: Entry, _name: str) -> Optional[Array]:
    if array.dtype.kind != "f" or entry.target or entry.mask:
        return None
    array[0] = 0
    return array


def _hundredfold(array: Array, entry: Entry, _name: str) -> Optional[Array]:
    return array * array.dtype.type(100) if array.dtype.kind == "f" and not (
        entry.target or entry.mask) else None


def _ends(array: Array, entry: Entry, _name: str) -> Optional[Array]:
    if array.dtype.kind == "b":
        array[0], array[1] = False, True
        return array
    if array.dtype.kind not in "iu" or not array.size:
        return None
    known = array[array != entry.ignored] if entry.ignored is not None else array
    if not known.size:
        return None
    least, largest = (0, entry.limit - 1) if entry.limit > 0 else (known.min(), known.max())
    array[0], array[1] = least, largest
    return array


def _ignored(array: Array, entry: Entry, _name: str, count: int = 1) -> Optional[Array]:
    if entry.mask:
        array[:count] = 0
        return array
    if entry.ignored is None or array.dtype.kind not in "iu":
        return None
    array[:count] = entry.ignored
    return array
