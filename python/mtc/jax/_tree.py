# SPDX-License-Identifier: Apache-2.0
"""Pytrees whose arrays have names."""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import jax


@dataclasses.dataclass
class Tree:
    """A pytree: its arrays by name, and what it needs to be put together again."""

    names: list[str]
    arrays: list[Any]
    structure: Any
    others: list[Any]  # in the order of the tree: None for an array, else what is no array

    @staticmethod
    def of(tree: Any, prefix: str = "") -> Tree:
        """The arrays of a tree; numbers and functions stay as they are."""
        paths, structure = jax.tree_util.tree_flatten_with_path(tree)
        names, arrays, others = [], [], []
        for path, value in paths:
            is_array = hasattr(value, "shape") and hasattr(value, "dtype")
            others.append(None if is_array else value)
            if is_array:
                names.append("/".join(filter(None, [prefix, *map(_key, path)])) or "value")
                arrays.append(value)
        return Tree(names, arrays, structure, others)

    def build(self, arrays: Sequence[Any]) -> Any:
        """The tree with other arrays."""
        given = iter(arrays)
        return jax.tree_util.tree_unflatten(self.structure, [next(given) if o is None else o for o in self.others])


def _key(entry: Any) -> str:
    """The name of a step of a path: of `.value` none, which wraps a variable of Flax."""
    for attribute in ("key", "name", "idx"):
        if hasattr(entry, attribute):
            name = str(getattr(entry, attribute)).strip("'\"")
            return "" if attribute == "name" and name in ("value", "raw_value") else name
    return str(entry)
