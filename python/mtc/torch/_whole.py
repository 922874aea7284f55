# SPDX-License-Identifier: Apache-2.0
"""Whole steps: a function (state, batch) -> (state, metrics) of `torch.func`, with its gradients and updates."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import numpy as np

from mtc import _compile, _options, _whole
from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._tensors import Array, stored
from mtc._trace import Graph, Refused, Value, layout, reals
from mtc._trace import elementwise as e
from mtc._trace import whole as shared
from mtc.torch import _nodes
from mtc.torch._convert import Converter
from mtc.torch._export import Exported, program_of
from mtc.torch._framework import pytree, torch
from mtc.torch._handlers import is_known
from mtc.torch._whole_check import compare

_NUMBERS = {int: torch.int64, float: torch.float32}


class DeviceArray(_whole.DeviceArray):
    """A tensor of a state that stays on the devices, until somebody reads it: as NumPy reads an array, or by any
    function and method of PyTorch.

    Once the step was called again its memory has other values: then it is a DataError to read it, if it was not read
    before, or to give it to the step.
    """

    def tensor(self) -> Any:
        """A tensor of PyTorch with a copy of the values."""
        return torch.tensor(np.asarray(self))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.tensor(), name)

    @classmethod
    def __torch_function__(cls, function: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        args, kwargs = pytree.tree_map(lambda a: a.tensor() if isinstance(a, cls) else a, (tuple(args), kwargs or {}))
        return function(*args, **kwargs)


@dataclasses.dataclass
class Tree:
    """A tree of PyTorch: its tensors by name, and what puts it together again."""

    names: list[str]
    arrays: list[Any]
    structure: Any
    others: list[Any]

    @staticmethod
    def of(tree: Any, prefix: str = "") -> Tree:
        """The tensors of a tree; numbers become tensors, and what is neither stays as it is."""
        paths, structure = pytree.tree_flatten_with_path(tree)
        names, arrays, others = [], [], []
        for path, value in paths:
            if type(value) in _NUMBERS:
                value = torch.tensor(value, dtype=_NUMBERS[type(value)])
            is_array = isinstance(value, torch.Tensor)
            others.append(None if is_array else value)
            if is_array:
                keys = [str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key)))) for key in path]
                names.append("/".join(filter(None, [prefix, *keys])) or "value")
                arrays.append(value.detach())
        return Tree(names, arrays, structure, others)

    def build(self, arrays: Sequence[Any]) -> Any:
        """The tree with other tensors."""
        given = iter(arrays)
        return pytree.tree_unflatten([next(given) if o is None else o for o in self.others], self.structure)


class WholeStep(_whole.WholeStep):
    """A compiled step. Call it as the function: state, metrics = step(state, batch).

    Attributes:
        plan: the `mtc.Plan`.
        session: the `mtc.Session`, whose variables are the tensors of the state.
        text: the model as `mt` text.
    """

    _framework = "torch"
    _traced: _Traced

    def _flatten(self, tree: Any) -> tuple[list[Any], Any]:
        values, structure = pytree.tree_flatten(tree)
        return [value.detach() if isinstance(value, torch.Tensor) else value for value in values], structure

    def _leaves_or_none(self, tree: Any) -> list[Any]:
        return list(pytree.tree_flatten(tree)[0])

    def _dtype(self, array: Any) -> Any:
        return torch.empty(0, dtype=array.dtype).numpy().dtype

    def _handle(self, name: str, like: Any) -> Any:
        return DeviceArray(self, name, like, self._calls)

    def _to_host(self, name: str, array: Any) -> Array:
        return _in_order(array, self._traced.orders[name])

    def _array(self, name: str, shape: tuple[int, ...], dtype: Any) -> Array:
        order = self._traced.orders[name]
        value = np.asarray(self.session.variables[name]).astype(dtype).reshape([shape[i] for i in order])
        return np.ascontiguousarray(np.transpose(value, np.argsort(order))) if order else value.reshape(shape)


def step(function: Callable[..., Any], state: Any, example_batch: Any, *, batch_size: int = 0,
         predict: Optional[Callable[..., Any]] = None, devices: Optional[str] = None, name: str = "",
         check: bool = True, verbose: Union[int, str] = "auto", **options: Any) -> WholeStep:
    """Compiles a whole training step of PyTorch.

    Args:
        function: function(state, batch) gives (state, metrics). It changes nothing in place that it does not give back:
            models run by `torch.func.functional_call`, gradients come from `torch.func.grad_and_value`. It is traced
            with any number of samples.
        state: a tree (dicts, lists, tuples) of tensors of float32, integers or bool, and of numbers, which training
            starts with: parameters, buffers, what the update remembers.
        example_batch: a tree of tensors [n, ...] of a few samples, which are split between the devices.
        batch_size: samples of a step, on all devices together. 0: those of the example.
        predict: predict(state, batch): tensors [n, ...] for `step.predict`.
        devices: as of `mtc.Session`.
        name: of the model; the function's name without it.
        check: compares what PyTorch and MTC make of the example in two steps, the state and the metrics.
        verbose: 0: silent.
        options: as of `mtc.compile`: target, precision, shards, mode, ...; seed: of dropout and other random
            numbers.

    Returns:
        A `WholeStep`: state, metrics = step(state, batch).

    Raises:
        ModelError: something cannot be taken, a line for each with the place in the code; or the check failed.
    """
    whole, batch = Tree.of(state), Tree.of(example_batch)
    batch.names = shared.batch_names(batch.names)
    title = name or getattr(function, "__name__", "step").strip("<>")
    reals.refuse(options.get("precision"), "a whole step of PyTorch")
    _check_trees(whole, batch)
    batch.arrays = [a if len(a) > 1 else torch.cat([a, a]) for a in batch.arrays]
    module = _Flat(function, predict, whole, batch)
    program, functions = program_of(module, batch.arrays, is_known, title)
    if functions:
        raise ModelError(f"{title}: expected derivatives that MTC takes, found a backward of the caller's own in "
                         f"{', '.join(functions)}, which a trace does not have")
    exported = _read(program, module, title)
    settings = _options.fields(batch_size or len(batch.arrays[0]), options)

    def made(fields: Mapping[str, Any], random: bool) -> tuple[Plan, str, _Traced]:
        graph, traced = _StepConverter(exported, title, whole, batch, int(fields["batch"]), random).step(module)
        text = graph.text()
        weights = {n: _in_order(t, traced.orders[n]) for n, t in zip(whole.names, whole.arrays) if n in graph.state}
        return Plan(_compile.plan_of_text(text, title, dict(fields), verbose if random else 0, weights),
                    any_label=True), text, traced

    def check_it() -> str:
        plan, text, traced = made(_options.for_check(len(batch.arrays[0]), options), False)
        with WholeStep(plan, text, traced, "cpu:1", processes=1) as own:
            return compare(own, function, whole, batch)

    plan, text, traced = _compile.while_checking(lambda: made(settings, True), check_it, verbose) if check else \
        made(settings, True)
    return WholeStep(plan, text, traced, devices)


def _check_trees(state: Tree, batch: Tree) -> None:
    taken = (torch.float32, torch.int32, torch.int64, torch.bool)
    wrong = [f"{name}: expected a state of float32, integers or bool, found {str(array.dtype).rpartition('.')[2]}"
             for name, array in zip(state.names, state.arrays) if array.dtype not in taken]
    if wrong:
        raise ModelError("\n".join(wrong))
    rows = {len(a) if a.ndim else None for a in batch.arrays}
    shared.check_rows(rows, "tensors")


def _in_order(array: Any, order: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(np.transpose(stored(array), order)) if order else stored(array)


@dataclasses.dataclass
class _Found:
    """Names of what a trace has found beside the state."""

    metrics: Tree = dataclasses.field(default_factory=lambda: Tree([], [], None, []))
    outputs: list[str] = dataclasses.field(default_factory=list)


class _Flat(torch.nn.Module):  # type: ignore[misc]
    """The function of arrays in order, with the state as buffers: what `torch.export` takes."""

    def __init__(self, function: Callable[..., Any], predict: Optional[Callable[..., Any]], state: Tree,
                 batch: Tree) -> None:
        super().__init__()
        self._call, self._predict, self._state, self._batch = function, predict, state, batch
        self.found = _Found()  # torch.export takes back what is assigned to a module
        for i, array in enumerate(state.arrays):
            self.register_buffer(f"state_{i}", array.clone())

    def name_of(self, buffer: str) -> str:
        """The name of a tensor of the state, from that of its buffer."""
        return self._state.names[int(buffer.removeprefix("state_"))]

    def forward(self, *arrays: Any) -> Any:
        state = self._state.build([getattr(self, f"state_{i}") for i in range(len(self._state.names))])
        batch = self._batch.build(arrays)
        predicted = Tree.of({} if self._predict is None else self._predict(state, batch))
        result = self._call(state, batch)
        place = shared.place_of(self._call, getattr(self._call, "__name__", "step").strip("<>"))
        if not isinstance(result, tuple) or len(result) != 2:
            found = "a tensor" if isinstance(result, torch.Tensor) else type(result).__name__
            raise ModelError(f"{place}: expected a function that gives (state, metrics), found {found}")
        new, metrics = Tree.of(result[0]), Tree.of(result[1])
        metrics.names = ["loss" if name == "value" else name for name in metrics.names]
        if new.structure != self._state.structure:
            raise ModelError(f"{place}: expected a new state of the structure of the given one, found another: "
                             f"{new.structure} in place of {self._state.structure}")
        for name, before, after in zip(self._state.names, self._state.arrays, new.arrays):
            shared.check_state(place, name, before, after)
        self.found.metrics = dataclasses.replace(metrics, arrays=[])
        self.found.outputs = shared.output_names(predicted.names)
        return [*new.arrays, *metrics.arrays, *predicted.arrays]


def _read(program: Any, module: _Flat, title: str) -> Exported:
    kinds = torch.export.graph_signature
    arrays: dict[str, str] = {}
    state: dict[str, str] = {}
    constants: dict[str, Any] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind == kinds.InputKind.USER_INPUT:
            arrays[spec.arg.name] = module._batch.names[len(arrays)]
        elif spec.kind == kinds.InputKind.BUFFER:
            state[spec.arg.name] = module.name_of(spec.target)
        elif spec.kind == kinds.InputKind.CONSTANT_TENSOR:
            constants[spec.arg.name] = program.constants[spec.target]
        else:
            raise ModelError(f"{title}: expected tensors of the state and of the batch, found {spec.target}")
    given = []
    for spec, node in zip(program.graph_signature.output_specs, next(
            n for n in program.graph.nodes if n.op == "output").args[0]):
        if spec.kind == kinds.OutputKind.USER_OUTPUT:
            given.append(node)
        elif spec.kind != kinds.OutputKind.BUFFER_MUTATION:  # the function gives the state that it changes in place
            raise ModelError(f"{_nodes.where(node)}: expected a step that changes nothing but its state, found "
                             f"{spec.target} changed")
    return Exported(tuple(program.graph.nodes), arrays, state, {}, {}, constants, {}, None,
                    dict(zip(map(str, range(len(given))), given)), program)


@dataclasses.dataclass
class _Traced(_whole.Traced):
    orders: dict[str, tuple[int, ...]]  # for each axis of a variable the axis of the tensor


class _StepConverter(Converter):
    """Walks the nodes of a step. The state is variables of the model."""

    has_evaluation = False

    def __init__(self, exported: Exported, name: str, state: Tree, batch: Tree, batch_size: int, random: bool) -> None:
        super().__init__(exported, name, dict(zip(state.names, state.arrays)), dict(zip(batch.names, batch.arrays)),
                         batch_size, set(), random)
        kernels = {tuple(self.tensors[n].shape): order for n, order in self._stored.items()}
        for n, tensor in self.tensors.items():  # averages of kernels are stored as the kernels are
            self._stored[n] = kernels.get(tuple(tensor.shape), tuple(range(tensor.ndim)))

    def step(self, module: _Flat) -> tuple[Graph, _Traced]:
        """The model."""
        names, metrics = list(self.tensors), module.found.metrics
        results = list(self.exported.outputs.values())
        nodes = [node for node in results if isinstance(node, torch.fx.Node)]
        predicted = results[len(names) + len(metrics.names):]
        wanted = _nodes.needed(nodes)
        self._convert_nodes(wanted, _nodes.needed(predicted) or wanted)
        made = [self._values[node] if isinstance(node, torch.fx.Node) else node for node in results]
        constant = {}
        try:
            for n, after in zip(names, made):
                self._assign(n, after)
            for n, after in zip(metrics.names, made[len(names):]):
                if not isinstance(after, Value):
                    constant[n] = getattr(after, "tensor", after)
                    continue
                shared.report(self.graph, n, after, "a tensor")
            for n, after in zip(module.found.outputs, made[len(names) + len(metrics.names):]):
                shared.predict(self.graph, n, self.value(after))
        except Refused as problem:
            raise ModelError(f"{self.graph.name}: {problem}") from None
        if not self.graph.assigned:
            raise ModelError(f"{self.graph.name}: expected a step that changes its state, found one that does not")
        return self.graph, _Traced(module._state, module._batch, metrics, constant, self._stored)

    def _assign(self, name: str, after: Any) -> None:
        if name not in self._slots:  # it is not read
            self._variable(name)
        slot = self._slots[name]
        value = e.cast(layout.transpose(self.value(after), self._stored[name]), slot.dtype)
        if value is not slot:
            self.graph.assign(name, value)

    def _variable(self, name: str) -> Value:
        tensor, order = self.tensors[name], self._stored[name]
        dtype = "f32" if tensor.dtype == torch.float32 else "i32"
        slot = self.graph.slot(name, [tensor.shape[i] for i in order], dtype, "" if dtype == "f32" else "frozen")
        self._slots[name] = slot
        made = layout.transpose(slot, [order.index(i) for i in range(len(order))])
        return e.compare("ne", made, 0) if tensor.dtype == torch.bool else made
