# SPDX-License-Identifier: Apache-2.0
"""Calls that the compiler knows by a name: in a jaxpr they are calls of `jax.jit`, whose name says what they are."""

from __future__ import annotations

import itertools
from typing import Any, Callable, Optional, Sequence

import jax

_PREFIX = "mtc_metric_"
_objects: dict[str, str] = {}
_names: dict[str, str] = {}
_numbers = itertools.count()


def call(function: Callable[..., Any], object_text: str, arrays: Sequence[Any]) -> list[Any]:
    """The numbers that a metric is, as one call. `object_text`: what the compiler knows it by."""
    name = _names.get(object_text)
    if name is None:
        name = _names[object_text] = f"{_PREFIX}{next(_numbers)}"
        _objects[name] = object_text
    function.__name__ = function.__qualname__ = name
    return list(jax.jit(function)(*arrays))


def object_of(name: Any) -> Optional[str]:
    """What a call of this name stands for; None: it is another function."""
    return _objects.get(str(name)) if str(name).startswith(_PREFIX) else None
