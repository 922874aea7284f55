# SPDX-License-Identifier: Apache-2.0
"""Values without elements, such as the half of an array of one element in jax.lax.associative_scan.

No graph has values without elements, and nothing computes them: `needed` leaves their equations out. An operation that
reads one and whose result has elements has a result that follows without it, by `without`.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence

import numpy as np
from jax.extend import core

from mtc._trace import layout


class Empty:
    """In place of a value without elements."""

    refusal = "a value without elements"


EMPTY = Empty()
_READERS = ("concatenate", "pad", "dot_general", "dynamic_update_slice")
_SUMS = {"reduce_sum": 0, "reduce_or": False, "reduce_prod": 1, "reduce_and": True}


def is_empty(atom: Any) -> bool:
    """Whether a variable of a jaxpr has no elements."""
    return any(isinstance(n, int) and n == 0 for n in getattr(atom.aval, "shape", ()))


def of(atom: Any) -> Any:
    """What stands for a variable without elements: an array where its shape is known, so that arrays stay arrays."""
    shape, dtype = atom.aval.shape, atom.aval.dtype
    if all(isinstance(n, int) for n in shape) and isinstance(dtype, np.dtype):
        return np.zeros(shape, dtype)
    return EMPTY


def needed(jaxpr: Any) -> list[Any]:
    """The equations that results with elements depend on, and those with effects, in order."""
    found: list[Any] = []
    wanted = {v for v in jaxpr.outvars if not isinstance(v, core.Literal) and not is_empty(v)}
    for equation in reversed(jaxpr.eqns):
        if equation.effects or not wanted.isdisjoint(equation.outvars):
            found.append(equation)
            wanted.update(v for v in equation.invars if not isinstance(v, core.Literal) and not is_empty(v))
    return found[::-1]


def without(r: Any, rules: Mapping[str, Any], equation: Any, inputs: Sequence[Any]) -> Optional[Any]:
    """The result of an operation of which an operand has no elements; None where its own rule has it."""
    name = equation.primitive.name
    empty = [is_empty(v) for v in equation.invars]
    if not any(empty) or name not in _READERS and name not in _SUMS and not name.startswith("scatter"):
        return None
    if name == "concatenate":
        left = [value for value, gone in zip(inputs, empty) if not gone]
        return left[0] if len(left) == 1 else rules[name](r, equation, left)
    if name == "dynamic_update_slice" or name.startswith("scatter"):
        return inputs[0]
    fill = inputs[1] if name == "pad" else np.asarray(_SUMS.get(name, 0), equation.outvars[0].aval.dtype)
    return layout.broadcast(r.value(fill), r.out_shape(equation), ())
