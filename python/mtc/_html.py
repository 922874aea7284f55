# SPDX-License-Identifier: Apache-2.0
"""What notebooks show: a plan as a table, a history as curves. No scripts, no network."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Mapping, Sequence

if TYPE_CHECKING:
    from mtc._plan import Plan

_COLOURS = ("#2563eb", "#dc2626", "#059669", "#d97706", "#7c3aed", "#0891b2")
_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 420, 190, 48, 24, 10


def size_text(count: float) -> str:
    """Bytes for people."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "bytes" or count >= 100 else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"


def _row(cells: Sequence[object], tag: str = "td") -> str:
    return "<tr>" + "".join(f"<{tag} style='text-align:left'>{html.escape(str(c))}</{tag}>" for c in cells) + "</tr>"


def plan_table(plan: Plan) -> str:
    """The plan's signature, its variables by layer, and the memory of a device."""
    layers: dict[str, list[str]] = {}
    counts: dict[str, int] = {}
    for variable in plan.variables:
        if variable.kind == "optimizer" or "/" not in variable.name:
            continue
        layer, _, name = variable.name.rpartition("/")
        layers.setdefault(layer, []).append(f"{name} {list(variable.shape)}")
        counts[layer] = counts.get(layer, 0) + math.prod(variable.shape)
    rows = [_row(["layer", "variables", "numbers"], "th")]
    rows += [_row([layer, ", ".join(names), f"{counts[layer]:,}"]) for layer, names in layers.items()]
    devices = [1 << i for i in range(plan.shards.bit_length())]
    try:
        memory = ", ".join(f"{n}: {size_text(plan.memory(n))}" for n in devices)
    except Exception:  # noqa: BLE001 - the compiler, which describes plans, may not be installed
        memory = "known to mtc inspect"
    entries = ", ".join(str(t) for t in (*plan.inputs, *plan.targets, *plan.sample_weights))
    return (f"<div><b>{html.escape(plan.model)}</b>: batch {plan.batch_size}, {plan.shards} shards<br>"
            f"takes {html.escape(entries)}<br>"
            f"gives {html.escape(', '.join(str(t) for t in plan.outputs))}; "
            f"{html.escape(', '.join(plan.metrics()))}<br>"
            f"memory of a device, with so many devices: {memory}"
            f"<table>{''.join(rows)}</table></div>")


def history_curves(epochs: Sequence[int], history: Mapping[str, Sequence[float]]) -> str:
    """A picture for each metric, with the validation's curve in the same one."""
    pictures = []
    for name, values in history.items():
        if name.startswith("val_") and name[4:] in history:
            continue
        curves = {name: values}
        if f"val_{name}" in history:
            curves[f"val_{name}"] = history[f"val_{name}"]
        pictures.append(_picture(name, epochs, curves))
    return f"<div style='display:flex;flex-wrap:wrap;gap:8px'>{''.join(pictures)}</div>"


def _picture(title: str, epochs: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    finite = [v for values in curves.values() for v in values if math.isfinite(v)]
    if not finite:
        return f"<div>{html.escape(title)}: no finite values</div>"
    low, high = min(finite), max(finite)
    span = (high - low) or 1.0
    first, last = (min(epochs), max(epochs)) if epochs else (0, 0)

    def across(epoch: float) -> float:
        return _LEFT + (_WIDTH - _LEFT - 8) * ((epoch - first) / (last - first) if last > first else 0.5)

    def down(value: float) -> float:
        return _TOP + (_HEIGHT - _BOTTOM - _TOP) * (1 - (value - low) / span)

    parts = [f"<line x1='{_LEFT}' y1='{_HEIGHT - _BOTTOM}' x2='{_WIDTH - 8}' y2='{_HEIGHT - _BOTTOM}' stroke='#999'/>"]
    for value in (low, high):
        parts.append(f"<text x='{_LEFT - 4}' y='{down(value) + 4:.0f}' text-anchor='end'>{value:.4g}</text>")
    for epoch in sorted({first, last}):
        parts.append(f"<text x='{across(epoch):.0f}' y='{_HEIGHT - 8}' text-anchor='middle'>{epoch + 1}</text>")
    for i, (name, values) in enumerate(curves.items()):
        colour = _COLOURS[i % len(_COLOURS)]
        # Validation may have fewer epochs: the last value stands at the last epoch.
        places = list(epochs)[len(epochs) - len(values):] if len(values) <= len(epochs) else range(len(values))
        dots = [(across(e), down(v)) for e, v in zip(places, values) if math.isfinite(v)]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in dots)
        parts.append(f"<polyline points='{line}' fill='none' stroke='{colour}' stroke-width='1.5'/>")
        parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='2' fill='{colour}'/>" for x, y in dots]
        parts.append(f"<text x='{_LEFT + 8 + 110 * i}' y='{_TOP + 2}' fill='{colour}'>{html.escape(name)}</text>")
    return (f"<svg xmlns='http://www.w3.org/2000/svg' width='{_WIDTH}' height='{_HEIGHT}' role='img' "
            f"aria-label='{html.escape(title, quote=True)} by epoch' font-family='sans-serif' font-size='11'>"
            f"{''.join(parts)}</svg>")
