# SPDX-License-Identifier: Apache-2.0
"""The operations of an optimizer's trace. Numbers in float64 have twice the bits of f32 (`mtc._trace.doubles`)."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

from mtc._errors import ModelError
from mtc._trace import Graph, Refused, Value, layout, reals
from mtc._trace import elementwise as e
from mtc._trace.doubles import COMPARED, OPERATIONS, Double, Doubles
from mtc.torch import _nodes
from mtc.torch._convert import Converter
from mtc.torch._framework import aten, torch
from mtc.torch._types import HALVES

PREFIX = "optimizer"  # of the names of an update's variables
_MOVES = {"t", "transpose", "permute", "view", "reshape", "expand", "select", "slice", "unsqueeze", "squeeze"}


class UpdateNodes(Converter):
    """Converts the nodes of a trace of an optimizer."""

    differentiated = False

    def __init__(self, graph: Graph, kind: str, rules: Doubles,  # pylint: disable=W0231
                 number: Callable[[int], Double]) -> None:
        """`kind`: the name of the optimizer. `number`: the i-th of the table of numbers that the trace reads."""
        self.graph, self.batch_size = graph, 1  # an update has no samples
        self._kind = kind
        self._number = number
        self._rules = rules
        self._doubles: dict[Any, Double] = {}  # of nodes in float64 without axes
        self._values = {}
        self._streams = 0
        self._node = None
        self.random = True
        self._table: Any = None

    def results(self, module: Any, given: Sequence[Value]) -> list[Value]:
        """What the trace makes of these operands."""
        nodes = list(module.graph.nodes)
        places = [node for node in nodes if node.op == "placeholder"]
        *operands, self._table = places
        self._values.update(zip(operands, given))
        (output,) = [node for node in nodes if node.op == "output"]
        wanted = _nodes.needed(output.all_input_nodes)
        for node in nodes:
            if node.op in ("call_function", "get_attr") and node in wanted:
                self._node = node
                try:
                    self._values[node] = self._of(node, module)
                except Refused as problem:
                    raise ModelError(f"{self._kind}: {_nodes.name_of(node.target)}: {problem}") from None
        return [self.value(self._values[node]) for node in output.args[0]]

    def layer(self) -> str:
        return PREFIX

    def stream(self) -> str:
        raise Refused("random numbers in an update")

    def _of(self, node: Any, module: Any) -> Any:
        if node.op == "get_attr":
            return self._lift_constant(getattr(module, node.target))
        name = _nodes.name_of(node.target)
        if (found := self._in_doubles(name, node)) is not None:
            return found
        if name in ("_local_scalar_dense", "lift_fresh_copy", "clone", "detach", "alias"):
            return self._values[node.args[0]]
        if name == "copy":
            target, source = (self.value(self._values[argument]) for argument in node.args[:2])
            return layout.broadcast(e.cast(source, target.dtype), target.shape)
        if name in ("rsub", "sub") and (found := self._one_minus_exp(node, name)) is not None:
            return found
        if name in ("full", "full_like") and isinstance(fill := node.args[1], torch.fx.Node):
            return layout.broadcast(e.cast(self.value(self._values[fill]), _nodes.dtype_of(node.meta["val"].dtype)),
                                    _nodes.shape_of(node.meta["val"]))
        val = node.meta.get("val")
        if reals.double() and name == "add" and isinstance(val, torch.Tensor) and val.dtype == torch.float32 and (
                not val.ndim):
            with val.fake_mode:
                node.meta["val"] = val.double()  # the number of steps, which PyTorch counts in float32
        if not isinstance(val, torch.Tensor) or val.dtype not in HALVES:
            return self._convert_node(node)
        with val.fake_mode:
            node.meta["val"] = val.float()  # computed in float32, and rounded
        found = self.value(self._values[node.args[0]] if name == "_to_copy" else self._convert_node(node))
        return found if name in _MOVES else e.rounded(found, HALVES[val.dtype])

    def _in_doubles(self, name: str, node: Any) -> Optional[Value]:
        """What is a number in float64, or a comparison of two; None for other nodes, and without a rule."""
        val = node.meta.get("val")
        if reals.double():  # where all numbers are float64
            return self._number(int(node.args[2])).hi if name == "select" and node.args[0] is self._table else None
        if not isinstance(val, torch.Tensor) or val.ndim:
            return None
        operands = [a for a in node.args if isinstance(a, (int, float, torch.fx.Node))]
        if val.dtype == torch.bool and name in COMPARED and any(a in self._doubles for a in operands):
            return self._rules.compare(name, *map(self._double, operands))
        if val.dtype != torch.float64:
            return None
        if name == "select" and node.args[0] is self._table:
            made: Optional[Double] = self._number(int(node.args[2]))
        elif name in ("_to_copy", "clone", "detach", "alias", "lift_fresh_copy", "_local_scalar_dense"):
            made = self._double(node.args[0])
        elif name == "where":
            made = self._rules.select(self.value(self._values[operands[0]]), *map(self._double, operands[1:]))
        elif len(operands) != len(node.args) or node.kwargs:
            return None
        elif name == "rsub":
            made = self._rules.apply("sub", *map(self._double, operands[::-1]))
        elif name == "reciprocal":
            made = self._rules.apply("div", self._rules.constant(1.0), self._double(operands[0]))
        elif name == "pow":
            made = self._power(*operands)
        else:
            made = self._rules.apply(name, *map(self._double, operands)) if name in OPERATIONS else None
        if made is None:
            return None
        self._doubles[node] = made
        return made.hi

    def _power(self, base: Any, exponent: Any) -> Optional[Double]:
        """A root, or the power of a known whole number or of a known base."""
        if exponent in (1, 2, 3):
            factor = self._double(base)
            made: Optional[Double] = factor
            for _ in range(int(exponent) - 1):
                made = made and self._rules.apply("mul", made, factor)
            return made
        return self._rules.apply("sqrt", self._double(base)) if exponent == 0.5 else None

    def _double(self, operand: Any) -> Double:
        if isinstance(operand, (int, float)):
            return self._rules.constant(float(operand))
        return self._doubles.get(operand) or Double(e.cast(self.value(self._values[operand]), "f32"))

    def _lift_constant(self, tensor: Any) -> Value:
        return self.graph.constant(tensor.detach().cpu().double().numpy() if tensor.dtype.is_floating_point
                                   else tensor.detach().cpu().numpy())

    def _one_minus_exp(self, node: Any, name: str) -> Optional[Value]:
        """1 - e^x, which is exact for a small x as -expm1(x)."""
        one, power = node.args[:2] if name == "sub" else node.args[1::-1]
        if one != 1 or node.kwargs or not isinstance(power, torch.fx.Node) or power.target is not aten.exp.default:
            return None
        return e.unary("neg", e.unary("expm1", self.value(self._values[power.args[0]])))
