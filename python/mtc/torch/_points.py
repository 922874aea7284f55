# SPDX-License-Identifier: Apache-2.0
"""The operations of derivatives in a trace, as `mt.argument` and `mt.derivative`."""

from __future__ import annotations

from typing import Any

from mtc._trace import Refused, Value, layout
from mtc.torch._convert import Converter
from mtc.torch._handlers import op


@op("argument")
def argument(c: Converter, x: Any, _: Any) -> Value:
    made: Value = c.argument(x)
    return made


@op("derivative")
def derivative(c: Converter, loss: Any, at: Any) -> list[Value]:
    if not isinstance(loss, Value):
        raise Refused("a derivative of what depends on no argument")
    points = [c.points[id(place)] for place in at]
    shared = [point for (point, *_), is_shared in zip(points, c.are_shared_points()) if is_shared]
    found = c.graph.derivatives(loss, [point for point, *_ in points], shared)
    return [layout.transpose(layout.reshape(made, shape), axes) for made, (_, shape, axes) in zip(found, points)]
