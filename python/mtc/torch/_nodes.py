# SPDX-License-Identifier: Apache-2.0
"""What PyTorch's graph says of a node: sizes, types, arguments, the layer, the caller's line."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, Iterable, Mapping, Sequence

from mtc._trace import Batch, Refused
from mtc._trace.values import Shape
from mtc.torch._framework import torch

if TYPE_CHECKING:
    from mtc.torch._export import Exported

# Whose lines are not the caller's: PyTorch's, these, and of code that PyTorch has made.
_OWN = (os.path.dirname(torch.__file__), os.path.dirname(__file__), "<eval_with_key>")


def size_of(size: Any) -> Any:
    """A size of a trace: an integer, or a multiple of the batch."""
    if not isinstance(size, torch.SymInt):
        return size
    expression = size.node.expr
    if expression.is_number:
        return int(expression)
    if any(str(s).startswith(("u", "zuf")) for s in expression.free_symbols):
        raise Refused("a size or a place that a tensor says: give numbers")
    times, symbol = expression.as_coeff_Mul()
    if not symbol.is_Symbol or not times.is_Integer:
        raise Refused(f"a size of {expression}")
    return Batch(int(times))


def shape_of(tensor: Any) -> Shape:
    """The logical shape of a tensor of the trace."""
    return tuple(size_of(n) for n in tensor.shape)


def dtype_of(dtype: Any) -> str:
    """The element type of `mt` for one of PyTorch."""
    if dtype == torch.bool:
        return "i1"
    if dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16) or dtype.is_complex:
        return "f32"  # of complex numbers that of both parts
    return "i32"


def is_empty(tensor: torch.Tensor) -> bool:
    """Whether it has no elements. A size that depends on the data is not 0."""
    return any(isinstance(n, int) and n == 0 for n in tensor.shape)


def before_points(node: Any) -> Any:
    """The tensor that is a point of a derivative, such as the parameter in `torch.func.grad`, or in
    `p.detach().requires_grad_()`."""
    while node.op == "call_function" and name_of(node.target) in ("argument", "detach"):
        node = node.args[0]
    return node


def stored_orders(exported: Exported) -> dict[str, tuple[int, ...]]:
    """Kernels of convolutions are stored as `mt` reads them: [H, W, in, out]."""
    orders = {}
    for node in exported.nodes:
        if name_of(node.target) in ("conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d"):
            kernel = before_points(node.args[1])
            if kernel.name in exported.parameters:
                rank = kernel.meta["val"].ndim
                orders[exported.parameters[kernel.name]] = (*range(2, rank), 1, 0)
    return orders


def needed(results: Sequence[Any]) -> set[Any]:
    """The nodes that these depend on, with them."""
    found: set[Any] = set()
    waiting = list(results)
    while waiting:
        node = waiting.pop()
        if node not in found:
            found.add(node)
            waiting += node.all_input_nodes
    return found


def name_of(target: Any) -> str:
    """The name of an operation, without its overload."""
    if isinstance(target, torch._ops.OpOverload):
        return str(target._schema.name).rpartition("::")[2]
    return str(getattr(target, "__name__", target))


def calls(nodes: Iterable[Any], name: str) -> list[Any]:
    """The nodes that call operations with this in their names: parameters are nodes too, and may be named like one."""
    return [node for node in nodes if node.op == "call_function" and name in name_of(node.target)]


def is_random(target: Any) -> bool:
    """Whether an operation draws random numbers."""
    return isinstance(target, torch._ops.OpOverload) and torch.Tag.nondeterministic_seeded in target.tags


def bound(target: Any, positional: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """All arguments in the order of the schema, with their defaults."""
    if not isinstance(target, torch._ops.OpOverload):
        return [*positional, *keywords.values()]
    given = dict(zip([a.name for a in target._schema.arguments], positional), **keywords)
    return [given.get(a.name, a.default_value) for a in target._schema.arguments]


def layer_of(node: Any) -> str:
    """The path of the layer that a node is of; "" where it is of none."""
    stack = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values()]
    path = str(stack[-1]) if stack else ""
    path = path.removeprefix("L['self']").lstrip(".")
    return path.removeprefix("module").lstrip(".") if "[" not in path and "metadata_hook" not in path else ""


def where(node: Any) -> str:
    """The caller's line: the innermost one that is not PyTorch's own; else the layer; "" for what is of no layer."""
    frames = re.findall(r'File "([^"]+)", line (\d+), in [^\n]*(?:\n\s+([^\n]*))?', node.meta.get("stack_trace") or "")
    outside = [f for f in frames if not f[0].startswith(_OWN)] or [f for f in frames if not f[0].startswith("<")]
    if not outside:
        return layer_of(node)
    file, line, text = outside[-1]
    return f"{file}:{line}" + (f": {text.strip()}" if text else "")


def differentiated(nodes: Sequence[Any]) -> set[Any]:
    """The nodes by which `torch.autograd.grad` differentiates."""
    return {place for node in nodes if node.op == "call_function" and name_of(node.target) == "derivative"
            for place in node.args[1] if name_of(place.target) != "argument"}
