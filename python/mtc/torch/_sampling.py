# SPDX-License-Identifier: Apache-2.0
"""Images at places that the data say: `grid_sample`."""

from __future__ import annotations

from typing import Any

from mtc._trace import Refused, Value, layout, moves
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter, op

_MODES = {0: "bilinear", 1: "nearest"}
_PADDING = {0: "zeros", 1: "border", 2: "reflection"}


@op("grid_sampler", "grid_sampler_2d")
def grid_sampler(c: Converter, images: Any, grid: Any, mode: int, padding: int, align: bool) -> Value:
    """[n, C, H, W] at the places [n, h, w, 2] from -1 to 1, x first."""
    x, places = c.value(images), c.value(grid)
    if mode not in _MODES or x.rank != 4:
        raise Refused("grid_sample of three axes, or mode=\"bicubic\": use \"bilinear\" or \"nearest\" of images")
    sizes = [int(n) for n in x.shape[2:]]  # type: ignore[arg-type]
    axes = [_place(_part(places, 1 - i), size, _PADDING[padding], bool(align)) for i, size in enumerate(sizes)]
    lines = layout.reshape(layout.transpose(x, (0, 2, 3, 1)), (x.shape[0], sizes[0] * sizes[1], x.shape[1]))
    made = None
    for row, by_row in _neighbours(axes[0], _MODES[mode]):
        for column, by_column in _neighbours(axes[1], _MODES[mode]):
            weight = e.binary("mul", by_row, by_column)
            if padding == 0:
                weight = e.select(e.logical_and(_within(row, sizes[0]), _within(column, sizes[1])), weight, 0.0)
            term = e.binary("mul", _taken(lines, row, column, sizes), layout.expand_dims(weight, (3,)))
            made = term if made is None else e.binary("add", made, term)
    assert made is not None
    return layout.transpose(made, (0, 3, 1, 2))


def _part(places: Value, index: int) -> Value:
    made = moves.slice_(places, [0, 0, 0, index], [None, None, None, index + 1], [1] * 4)
    return layout.reshape(made, places.shape[:-1])


def _place(x: Value, size: int, padding: str, align: bool) -> Value:
    """A place from -1 to 1 in elements of an axis."""
    scale, shift = ((size - 1) / 2, (size - 1) / 2) if align else (size / 2, (size - 1) / 2)
    made = e.binary("add", e.binary("mul", x, scale), shift)
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
    return [(first, e.binary("sub", 1.0, rest)), (e.binary("add", first, 1.0), rest)]


def _within(place: Value, size: int) -> Value:
    return e.logical_and(e.compare("ge", place, 0.0), e.compare("le", place, size - 1.0))


def _taken(lines: Value, row: Value, column: Value, sizes: list[int]) -> Value:
    """The pixels at places, [n, h, w, C]; places that are outside are moved to a border."""
    def inside(place: Value, size: int) -> Value:
        most = size - 1.0
        return e.select(e.compare("ge", place, 0.0), e.select(e.compare("le", place, most), place, most), 0.0)

    flat = e.binary("add", e.binary("mul", inside(row, sizes[0]), float(sizes[1])), inside(column, sizes[1]))
    if sizes[0] * sizes[1] > 1 << 24:
        raise Refused("grid_sample of images of more than 2^24 pixels")
    ids = layout.reshape(e.cast(flat, "i32"), (flat.shape[0], int(flat.shape[1]) * int(flat.shape[2])))  # type: ignore
    made = moves.take(lines, ids, 1)
    return layout.reshape(made, (*flat.shape, lines.shape[-1]))
