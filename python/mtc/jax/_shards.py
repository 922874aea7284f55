# SPDX-License-Identifier: Apache-2.0
"""`shard_map` over a mesh of one device, whose function is that of all samples: a sum over its axes has one term."""

from __future__ import annotations

import math
from typing import Any, Sequence

from mtc._trace import Refused, Value
from mtc.jax._reader import Reader, rule

OF_SEVERAL = ("shard_map over {count} devices: its function is one of a part of the batch. MTC divides the batch "
              "itself: leave shard_map, psum and pmean out, or give it a mesh of one device")


@rule("shard_map")
def _shard_map(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    count = math.prod(equation.params["mesh"].shape.values())
    if count != 1:
        raise Refused(OF_SEVERAL.format(count=count))
    return r.read_open(equation.params["jaxpr"], [], inputs)


@rule("pvary", "psum", "psum_invariant", "pmax", "pmin")
def _of_one_device(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    return list(inputs)


@rule("axis_index")
def _axis_index(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return r.graph.constant(0, "i32")
