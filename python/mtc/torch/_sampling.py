# SPDX-License-Identifier: Apache-2.0
"""Images at places that the data say: `grid_sample`."""

from __future__ import annotations

import itertools
import math
from typing import Any, Sequence

import numpy as np

from mtc._trace import Batch, Refused, Value, layout, moves
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter
from mtc.torch._handlers import op

_MODES = {0: "bilinear", 1: "nearest", 2: "bicubic"}
_PADDING = {0: "zeros", 1: "border", 2: "reflection"}


@op("grid_sampler", "grid_sampler_2d", "grid_sampler_3d")
def grid_sampler(c: Converter, images: Any, grid: Any, mode: int, padding: int, align: bool) -> Value:
    """[n, C, *sizes] at the places [n, *shape, axes] from -1 to 1, the last axis first."""
    x, places = c.value(images), c.value(grid)
    rank = x.rank - 2
    sizes = [int(n) for n in x.shape[2:]]  # type: ignore[arg-type]
    if math.prod(sizes) > 1 << 24:
        raise Refused("grid_sample of images of more than 2^24 pixels")
    rule, cubic = _PADDING[padding], _MODES[mode] == "bicubic"
    axes = [_elements(_part(places, rank - 1 - i), size, bool(align)) for i, size in enumerate(sizes)]
    if not cubic:
        axes = [_inside(place, size, rule, bool(align)) for place, size in zip(axes, sizes)]
    ways = [_neighbours(place, _MODES[mode]) for place in axes]
    if cubic:  # whose places are moved one by one
        ways = [[(_inside(place, size, rule, bool(align)), weight) for place, weight in way]
                for way, size in zip(ways, sizes)]
    lines = layout.reshape(layout.move_axis(x, 1, -1), (x.shape[0], math.prod(sizes), x.shape[1]))
    made = None
    for chosen in itertools.product(*ways):
        at = [place for place, _ in chosen]
        weight = chosen[0][1]
        for _, other in chosen[1:]:
            weight = e.binary("mul", weight, other)
        if padding == 0:
            for place, size in zip(at, sizes):
                weight = e.select(_within(place, size), weight, 0.0)
        term = e.binary("mul", _taken(lines, at, sizes), layout.expand_dims(weight, (weight.rank,)))
        made = term if made is None else e.binary("add", made, term)
    assert made is not None
    return layout.move_axis(made, -1, 1)


def _part(places: Value, index: int) -> Value:
    last = places.rank - 1
    return layout.reshape(moves.part(places, last, index, index + 1), places.shape[:-1])


def _elements(x: Value, size: int, align: bool) -> Value:
    """A place from -1 to 1 in elements of an axis."""
    scale, shift = ((size - 1) / 2, (size - 1) / 2) if align else (size / 2, (size - 1) / 2)
    return e.binary("add", e.binary("mul", x, scale), shift)


def _inside(made: Value, size: int, padding: str, align: bool) -> Value:
    """A place that is moved into the image, as the padding says."""
    if padding == "reflection":
        made = _reflected(made, 0.0, size - 1.0) if align else _reflected(made, -0.5, size - 0.5)
    return made if padding == "zeros" else _clipped(made, size - 1.0)


def _reflected(x: Value, low: float, high: float) -> Value:
    """Back and forth between two borders."""
    span = high - low
    if span == 0:
        return e.binary("mul", x, 0.0)
    distance = e.unary("abs", e.binary("sub", x, low))
    turns = e.unary("floor", e.binary("div", distance, span))
    rest = e.binary("sub", distance, e.binary("mul", turns, span))
    odd = e.compare("ne", e.binary("sub", turns, e.binary("mul", e.unary("floor", e.binary("mul", turns, 0.5)), 2.0)),
                    0.0)
    return e.select(odd, e.binary("sub", high, rest), e.binary("add", rest, low))


def _clipped(x: Value, high: float) -> Value:
    """From 0 to `high`; at both and beyond there is no gradient."""
    return e.select(e.compare("le", x, 0.0), 0.0, e.select(e.compare("ge", x, high), high, x))


def _neighbours(x: Value, mode: str) -> list[tuple[Value, Value]]:
    """Whole places along an axis, and how much each counts."""
    if mode == "nearest":
        return [(e.unary("round_nearest_even", x), e.as_value(x, 1.0))]
    first = x.graph.stop_gradient(e.unary("floor", x))
    rest = e.binary("sub", x, first)
    if mode == "bicubic":
        return [(e.binary("add", first, float(k)), _cubic(rest, k)) for k in range(-1, 3)]
    return [(first, e.binary("sub", 1.0, rest)), (e.binary("add", first, 1.0), rest)]


def _cubic(rest: Value, k: int) -> Value:
    """The weight of the k-th neighbour by Keys' kernel with the slope -3/4."""
    distance = rest - float(k) if k <= 0 else float(k) - rest
    if k in (0, 1):
        return (distance * 1.25 - 2.25) * distance * distance + 1.0
    return ((distance * -0.75 + 3.75) * distance - 6.0) * distance + 3.0


def _within(place: Value, size: int) -> Value:
    return e.logical_and(e.compare("ge", place, 0.0), e.compare("le", place, size - 1.0))


def _taken(lines: Value, at: Sequence[Value], sizes: Sequence[int]) -> Value:
    """The pixels at places, [n, *shape, C]; places that are outside are moved to a border."""
    flat: Any = None
    for place, size in zip(at, sizes):
        most = size - 1.0
        inside = e.select(e.compare("ge", place, 0.0), e.select(e.compare("le", place, most), place, most), 0.0)
        flat = inside if flat is None else e.binary("add", e.binary("mul", flat, float(size)), inside)
    ids = layout.reshape(e.cast(flat, "i32"), (flat.shape[0], math.prod(int(n) for n in flat.shape[1:])))
    if isinstance(lines.shape[0], Batch):
        return layout.reshape(moves.take(lines, ids, 1), (*flat.shape, lines.shape[-1]))
    count, pixels = (int(n) for n in lines.shape[:2])  # type: ignore[arg-type]
    firsts = lines.graph.constant((np.arange(count) * pixels).astype("i4")[:, None])
    table = layout.reshape(lines, (count * pixels, lines.shape[-1]))
    return layout.reshape(moves.take(table, e.binary("add", ids, firsts)), (*flat.shape, lines.shape[-1]))
