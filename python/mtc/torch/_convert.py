# SPDX-License-Identifier: Apache-2.0
"""From an exported graph to a graph of `mt`: each ATen operation by its function of `_handlers`."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from mtc._errors import DataError, ModelError
from mtc._trace import BATCH, Batch, Graph, Refused, Value, layout, losses, reductions
from mtc._trace import elementwise as e
from mtc._trace.complex_numbers import Complex
from mtc._trace.graph import Problem
from mtc._trace.values import Shape
from mtc.torch import _known, _nodes, _tracing, _types
from mtc.torch._export import Exported
from mtc.torch._framework import torch
from mtc.torch._handlers import COMPLEX, FILLS, HANDLERS, IGNORED, OF_LINES, OF_NUMBERS, OF_SHAPE
from mtc.torch._known import Known
from mtc.torch._nodes import dtype_of, shape_of, size_of
from mtc.torch._subgraphs import LOOPS, Subgraph

_NUMBERS = {"truediv": "div", "mul": "mul", "add": "add", "sub": "sub", "pow": "pow"}  # operations of Python on them
POINT = "argument"  # of a derivative, in whole steps
_UNREAD = ("no loss or prediction depends on its batch normalization: use its result, or take the layer out of the "
           "module")
_CHANGED = "the step changes it: update it in Python between steps, or take it out of the module"


@dataclasses.dataclass(frozen=True)
class State:
    """A buffer that the step changes."""

    name: str


class _Failed:
    """The result of an operation that was refused."""



@dataclasses.dataclass
class Model:
    """The graph that was made, and what of the module is where in it.

    Attributes:
        graph: of `mt`.
        loss: a scalar.
        outputs: by name.
        stored: parameter -> for each axis of its variable the axis of the parameter.
        statistics: buffer that the step changes -> its variable, and the variable's share of the buffer.
        constants: names of the buffers that became constants.
        counters: buffers that count the steps.
    """

    graph: Graph
    loss: Value
    outputs: dict[str, Value]
    stored: dict[str, tuple[int, ...]]
    statistics: dict[str, tuple[str, float]]
    constants: set[str]
    counters: Sequence[str] = ()


class Converter:
    """Walks the nodes of an export.

    Attributes:
        has_evaluation: whether the model has programs that evaluate and predict.
        differentiated: whether gradients are taken of what it makes.
        graph: of `mt`.
        batch_size: of the plan.
        random: False: without dropout.
        tensors: name -> tensor, of parameters and buffers.
        examples: name -> tensor, of the caller's arrays.
        statistics: as of `Model`.
        constants: as of `Model`.
    """

    has_evaluation = True
    differentiated = True

    def __init__(self, exported: Exported, name: str, tensors: Mapping[str, Any], examples: Mapping[str, Any],
                 batch_size: int, undecayed: set[str], random: bool = True) -> None:
        self.exported = exported
        self.graph = Graph(name, self._refused)
        self.tensors = tensors
        self.examples = examples
        self.batch_size = batch_size
        self.random = random
        self.statistics: dict[str, tuple[str, float]] = {}
        self._node: Any = None  # that is converted now
        self.constants: set[str] = set()
        self._undecayed = undecayed
        self._values: dict[Any, Any] = {}
        self._problems: list[tuple[str, str, str]] = []
        self._orders = _nodes.stored_orders(exported)  # of all convolutions, needed or not
        self._stored: dict[str, tuple[int, ...]] = {}  # of the parameters that are variables
        self._streams = 0
        self._changing = self._changed_nodes()
        self._buffers: dict[str, Value] = {}  # that the step changes and that are no statistics of a normalisation
        self._slots: dict[str, Value] = {}  # the variables of parameters, as they are stored
        self.points: dict[int, tuple[Value, Shape, tuple[int, ...]]] = {}  # by which derivatives are taken
        self._differentiated = _nodes.differentiated(exported.nodes)

    def convert(self) -> Model:
        """The model.

        Raises:
            ModelError: with a line for each operation that is refused.
        """
        exported = self.exported
        wanted = _nodes.needed([exported.loss, *exported.outputs.values(), *self._changing])
        inputs = _nodes.needed(list(exported.outputs.values())) or wanted  # what only the loss reads is a target
        self._convert_nodes(wanted, inputs)
        outputs = {name: self._values[node] for name, node in exported.outputs.items()}
        return Model(self.graph, self._with_all(self.value(self._values[exported.loss])),
                     {name: v for name, v in outputs.items() if isinstance(v, Value) and v.shape[0] == BATCH},
                     self._stored, self.statistics, self.constants, [n for n in exported.changed if self._counts(n)])

    def _convert_nodes(self, wanted: set[Any], inputs: set[Any]) -> None:
        """Converts the nodes that are wanted; placeholders that are not among `inputs` are targets."""
        for node in self.exported.nodes:
            if node not in wanted:
                continue
            self._node = node
            try:
                made = (self._place(node, node in inputs) if node.op == "placeholder"
                        else self._attribute(node) if node.op == "get_attr" else self._convert_node(node))
                made = self._changed(made, self._changing[node]) if node in self._changing else made
                is_point = node in self._differentiated and id(made) not in self.points
                self._values[node] = self.point(node, made) if is_point else made
            except (DataError, ModelError):
                raise
            except Exception as error:  # noqa: BLE001 - of a handler, which has not foreseen these arguments
                reason = _tracing.with_way_out(str(error)) if isinstance(error, Refused) else (
                    f"an error in MTC, which it has not foreseen here: {type(error).__name__}: {error}")
                self._problems.append((_nodes.name_of(node.target), reason, _nodes.where(node)))
                self._values[node] = _Failed()
        self._refuse_changed()
        if self._problems:
            raise ModelError(self._report())

    def _with_all(self, loss: Value) -> Value:
        """The loss with 0 times each parameter to which it has no gradient, such as those behind `floor`.

        PyTorch's gradient to them is 0, with which their decay and their momentum go on.
        """
        for name in self.graph.without_gradient([loss]):
            value = self.graph.variables[name]
            finite = e.select(e.compare("lt", e.unary("abs", value), np.inf), value, e.as_value(value, 0.0))
            total = reductions.reduce("sum", finite * 0.0, range(len(value.shape)))
            loss = loss + total
        return loss

    def _refuse_changed(self) -> None:
        """Problems for the buffers that the step changes and that no operation has taken."""
        for name, node in self.exported.changed.items():
            failed = any(isinstance(self._values.get(n), _Failed) for n in _nodes.needed([node]))
            if name not in self.statistics and not self._counts(name) and not failed:
                reason = _UNREAD if self._is_statistic(name) else _CHANGED
                self._problems.append((f"the buffer {name}", reason, _nodes.where(node)))

    # Buffers that the step changes

    def _counts(self, name: str) -> bool:
        """Whether a buffer is the number of batches of a normalisation, which follows from the number of steps."""
        layer, _, last = name.rpartition(".")
        mean = f"{layer}.running_mean".lstrip(".")
        return last == "num_batches_tracked" and mean in self.exported.changed and self._is_statistic(mean)

    def _is_statistic(self, name: str) -> bool:
        """Whether one batch normalisation of the samples alone reads and changes a buffer."""
        new = self.exported.changed[name]
        readers = [user for node in self.exported.nodes if self.exported.state.get(node.name) == name
                   for user in node.users]
        return (new.target is operator.getitem and readers == [new.args[0]] and len(new.users) == 1
                and "batch_norm" in _nodes.name_of(new.args[0].target)
                and isinstance(shape_of(new.args[0].args[0].meta["val"])[0], Batch))

    def _changed_nodes(self) -> dict[Any, list[str]]:
        """Nodes of the new values of buffers, with the buffers, but for statistics and numbers of batches."""
        found: dict[Any, list[str]] = {}
        for name, node in self.exported.changed.items():
            if not self._counts(name) and not self._is_statistic(name):
                found.setdefault(node, []).append(name)
        return found

    def _buffer(self, name: str) -> Value:
        """The buffer as a variable, before the step."""
        if name not in self._buffers:
            tensor = self.tensors[name]
            dtype = dtype_of(tensor.dtype)
            if dtype not in ("f32", "i32"):
                raise Refused(f"it reads the buffer {name} of {tensor.dtype}, which the step changes")
            self._buffers[name] = self.graph.variable(name, tuple(tensor.shape), dtype=dtype, frozen=True)
        return self._buffers[name]

    def _changed(self, new: Any, names: Sequence[str]) -> Any:
        """The new value of buffers, as what comes after it reads it: in evaluation mode they keep the value that they
        have."""
        if isinstance(new, _Failed):
            return new
        for name in names:
            before = self._buffer(name)
            new = self.value(new)
            new = self.graph.stop_gradient(new) if before.dtype == "f32" else e.cast(new, before.dtype)
            self.statistics[name] = (name, 1.0)
            self.graph.assign(name, new)
        return losses.while_training(new, before)

    # What functions of operations use

    def value(self, given: Any, like: Optional[Value] = None) -> Value:
        """An argument of an operation as a value: what PyTorch knows, a number, or a number of samples.

        A number has the type of `like`, if that is a float, or if both are integers.
        """
        if isinstance(given, Value):
            return given
        if isinstance(given, Known):
            return _known.lift(self.graph, given)
        if isinstance(given, Batch):
            return self.graph.count(given)
        if isinstance(given, (bool, int, float)):
            dtype = "f32" if like is not None and like.dtype == "f32" else None
            return self.graph.constant(np.asarray(given), dtype)
        raise Refused(f"an argument that is {type(given).__name__}")

    def point(self, node: Any, given: Any) -> Any:
        """The value of a node as a point by which a derivative is taken, stored as it is."""
        if isinstance(given, _Failed):
            return given
        stops = _nodes.name_of(node.target) == "detach"  # what a state is before it
        name = self.exported.parameters.get((_nodes.before_points(node) if stops else node).name)
        stored_as = self.value(given) if name is None else self._slots[name]
        if stops:
            stored_as = self.graph.stop_gradient(stored_as)
        axes = tuple(range(len(stored_as.shape)))
        if name is not None:
            axes = tuple(self._stored[name].index(i) for i in axes)
        shape = stored_as.shape
        apart = [m for n in shape for m in ((BATCH, n.times) if isinstance(n, Batch) and n != BATCH else (n,))]
        point = self.graph.argument(layout.reshape(stored_as, tuple(apart)))  # of axes that are the batch alone
        made = layout.transpose(layout.reshape(point, shape), axes)
        self.points[id(made)] = point, shape, axes
        return made

    def argument(self, given: Any) -> Any:
        """The operand of the operation that is converted as another point."""
        return self.point(self._node.args[0], given)

    def are_shared_points(self) -> list[bool]:
        """Of each point of the derivative that is converted, whether another derivative is by it."""
        return [sum(_nodes.name_of(user.target) == "derivative" and place in user.args[1] for user in place.users) > 1
                for place in self._node.args[1]]

    def name(self) -> str:
        """The name of the operation that is converted."""
        return _nodes.name_of(self._node.target)

    def shape(self) -> Shape:
        """The logical shape of its result, or of the first of several."""
        return shape_of(self._result())

    def shapes(self) -> list[Shape]:
        """Those of all its results."""
        return [shape_of(t) for t in self._node.meta["val"]]

    def dtype(self) -> str:
        """The type of the elements of its result."""
        return dtype_of(self._result().dtype)

    def is_complex(self) -> bool:
        """Whether its result, or the first of several, has complex numbers."""
        result = self._result()
        return isinstance(result, torch.Tensor) and result.is_complex()

    def is_half(self) -> bool:
        """Whether its result has complex numbers of 16 bits."""
        return bool(getattr(self._result(), "dtype", None) == torch.complex32)

    def _result(self) -> Any:
        traced = self._node.meta["val"]
        return traced[0] if isinstance(traced, (tuple, list)) else traced

    def is_contiguous(self) -> bool:
        """Whether the first operand's elements lie in memory in the order of its axes."""
        return bool(self._node.args[0].meta["val"].is_contiguous())

    def layer(self) -> str:
        """The path of the layer of the operation that is converted."""
        return _nodes.layer_of(self._node)

    def stream(self) -> str:
        """A name for the random numbers of the operation, unlike any before."""
        self._streams += 1
        return f"{self.layer() or self._node.name}.{self._streams}"

    # Nodes

    def _place(self, node: Any, is_input: bool) -> Any:
        exported, key = self.exported, node.name
        given = node.meta.get("val")
        if isinstance(given, torch.Tensor) and given.is_complex() and not (key in exported.buffers
                                                                           or key in exported.constants):
            raise Refused("an array or a parameter of complex numbers: keep pairs of real numbers, as view_as_real "
                          "gives them, and make complex ones of these by view_as_complex")
        if key in exported.arrays:
            return self.graph.input(exported.arrays[key], shape_of(node.meta["val"]), dtype_of(node.meta["val"].dtype),
                                    "input" if is_input else "target")
        if key in exported.parameters:
            return self._variable(exported.parameters[key])
        if key in exported.state:
            name = exported.state[key]
            return State(name) if self._is_statistic(name) else self._buffer(name)
        if key not in exported.buffers and key not in exported.constants:
            raise Refused("an object that is no tensor, such as a torch.Generator: take it out of forward, and give "
                          "seed= to compile for random numbers")
        if key in exported.buffers:
            self.constants.add(exported.buffers[key])
        tensor = self.tensors[exported.buffers[key]] if key in exported.buffers else exported.constants[key]
        given = tensor.detach().cpu()
        return Known(given, tuple(tensor.shape), given)

    def _variable(self, name: str) -> Value:
        tensor = self.tensors[name]
        if tensor.dtype not in (torch.float32, torch.float64):
            raise Refused(f"{name}: expected a parameter of float32, found one of {tensor.dtype}: call float() of the "
                          "module, and train in 16 bits by precision= of compile")
        if tensor.numel() == 0:  # a plan has no variables without elements, and this one has nothing to train
            return self.graph.constant(np.zeros(tuple(tensor.shape), np.float32))
        order = self._stored.setdefault(name, self._orders.get(name, tuple(range(tensor.ndim))))
        if name not in self._slots:
            self._slots[name] = self.graph.variable(name, tuple(tensor.shape[i] for i in order),
                                                    frozen=not tensor.requires_grad,
                                                    no_weight_decay=name in self._undecayed)
        made = self._slots[name]
        return layout.transpose(made, [order.index(i) for i in range(len(order))])

    def _convert_node(self, node: Any) -> Any:
        name = _nodes.name_of(node.target)
        positional, keywords = torch.fx.node.map_arg((list(node.args), dict(node.kwargs)), self._values.__getitem__)
        flat = _known.flatten([positional, list(keywords.values())])
        if name in IGNORED:
            return None
        if any(isinstance(a, _Failed) for a in flat):
            return _Failed()
        if any(isinstance(a, Subgraph) for a in flat) and name not in LOOPS:
            raise Refused("MTC has nothing for it")
        if node.target is operator.getitem:
            found = positional[0][positional[1]]
            if found is None:
                raise Refused(f"result {positional[1]} of {_nodes.name_of(node.args[0].target)}")
            return found
        if isinstance(node.meta.get("val"), (int, float, torch.SymInt)):
            return size_of(node.meta["val"])
        if isinstance(node.meta.get("val"), torch.SymFloat):
            with self.graph.at(self.layer(), _nodes.where(node), name):
                return self._of_samples(name, positional)
        if isinstance(node.meta.get("val"), torch.Tensor) and _nodes.is_empty(node.meta["val"]):
            shape = shape_of(node.meta["val"])  # no elements, as the rest behind a rotary embedding of all
            return Known(torch.empty([_known.plain(n) for n in shape]), shape,
                         torch.empty([_known.plain(n, self.batch_size) for n in shape]))
        if name in FILLS and isinstance(positional[-1], (Batch, Value)):
            number = self._of_samples("sym_float", positional[-1:])
            return layout.broadcast(e.cast(number, self.dtype()), self.shape())
        counts = name in OF_NUMBERS and any(isinstance(a, Batch) for a in flat)  # with the number of samples
        counts |= name in OF_LINES and _known.is_over_samples(flat, node.meta.get("val"))
        random = _nodes.is_random(node.target)
        own = random or counts or name == POINT or name in LOOPS  # is converted whatever its operands are
        known = not (own or any(isinstance(a, (Value, Complex, State)) for a in flat))
        if known or name in OF_SHAPE:
            return _known.computed(node, positional, keywords, self.batch_size)
        if name not in HANDLERS:
            raise Refused("MTC has nothing for it")
        with self.graph.at(self.layer(), _nodes.where(node), name):
            arguments = _nodes.bound(node.target, positional, keywords)
            if self.is_complex() or any(isinstance(a, Complex) for a in flat):
                return COMPLEX[0](self, list(arguments))
            made = HANDLERS[name](self, *arguments)
        return _types.in_type(made, name, node.meta.get("val"))

    def _attribute(self, node: Any) -> Any:
        """A function that is an operand of an operation, or a constant of one."""
        held = getattr(node.graph.owning_module, node.target)
        return Known(held.detach().cpu(), tuple(held.shape)) if isinstance(held, torch.Tensor) else Subgraph(held)

    def results(self, step: Subgraph, given: Sequence[Any]) -> list[Any]:
        """The results of a function of the graph."""
        return self._results(step, given, lambda node: True)

    def known_results(self, step: Subgraph, given: Sequence[Any]) -> list[Any]:
        """The results of a function as far as PyTorch knows them; None in place of the others."""
        given = [a if isinstance(a, Known) else None for a in given]
        return self._results(step, given, lambda node: all(
            self._values[n] is not None for n in node.all_input_nodes) and not _nodes.is_random(node.target))

    def _results(self, step: Subgraph, given: Sequence[Any], wanted: Callable[[Any], bool]) -> list[Any]:
        outside = self._node
        self._values.update(zip(step.placeholders, given))
        for node in step.nodes:
            self._node = node
            self._values[node] = None if not wanted(node) else (
                self._attribute(node) if node.op == "get_attr" else self._convert_node(node))
        self._node = outside
        return [self._values[r] if isinstance(r, torch.fx.Node) else r for r in step.results]

    def _of_samples(self, name: str, operands: Sequence[Any]) -> Value:
        """A number that Python makes of the number of samples, such as 1.0 / x.shape[0]."""
        values = [self.graph.count(a) if isinstance(a, Batch) else a for a in operands]
        if name == "sym_float":
            return values[0]
        if name == "neg":
            return -values[0]
        if name not in _NUMBERS:
            raise Refused("a number made of the number of samples: make a tensor of it, torch.tensor(x.shape[0])")
        return e.binary(_NUMBERS[name], *values)

    def _refused(self, problems: Sequence[Problem]) -> str:
        """The report of what the compiler refuses."""
        self._problems = [(origin.operation, _tracing.with_way_out(reason), origin.line)
                          for origin, reason, _ in problems]
        return self._report()

    def _report(self) -> str:
        """A line for each operation, with the caller's file and line."""
        lines: dict[tuple[str, str], list[str]] = {}
        for name, reason, where in self._problems:
            lines.setdefault((name, reason), []).append(where)
        listed = ["  " + ": ".join(filter(None, (wheres[0], name, reason)))
                  + (f" ({len(wheres)} times)" if len(wheres) > 1 else "") for (name, reason), wheres in lines.items()]
        return "\n".join([f"{self.graph.name}: {len(self._problems)} operations cannot be taken:", *listed])
