# SPDX-License-Identifier: Apache-2.0
"""A module and its loss as one graph of ATen operations, exported in training mode with a symbolic batch."""

from __future__ import annotations

import contextlib
import dataclasses
import operator
import types
import warnings
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence

from mtc._errors import DataError, ModelError
from mtc._trace import places
from mtc.torch import _autograd, _cells, _custom, _detached, _nodes, _tracing
from mtc.torch._example import Example
from mtc.torch._framework import pytree, torch


@dataclasses.dataclass(frozen=True)
class Exported:
    """A graph and what its placeholders and results are.

    Attributes:
        nodes: of the graph, in order.
        arrays: placeholder -> name of an array of the caller.
        parameters: placeholder -> name in the state_dict.
        buffers: placeholder -> name of a buffer that the step does not change, which is a constant.
        state: placeholder -> name of a buffer that the step changes.
        constants: placeholder -> tensor.
        changed: name of a buffer -> node of its new value.
        loss: node of the loss.
        outputs: name -> node, of the module's outputs beside the loss.
        program: of torch.export, which PyTorch can run.
        functions: classes of the caller's with a backward of their own.
    """

    nodes: tuple[Any, ...]
    arrays: Mapping[str, str]
    parameters: Mapping[str, str]
    buffers: Mapping[str, str]
    state: Mapping[str, str]
    constants: Mapping[str, Any]
    changed: Mapping[str, Any]
    loss: Any
    outputs: Mapping[str, Any]
    program: Any
    functions: tuple[str, ...] = ()


class TracedStep(torch.nn.Module):  # type: ignore[misc]
    """The module and its loss, as a function of the arrays in order."""

    def __init__(self, module: Any, loss: Optional[Callable[..., Any]], example: Example) -> None:
        super().__init__()
        self.module = module
        if isinstance(loss, torch.nn.Module):
            self.loss = loss
        self._call = _traceable(loss)
        self.example = example

    def parameters_by_name(self) -> dict[str, Any]:
        """Parameters by their first names in the state_dict."""
        return {_in_state_dict(name): p for name, p in self.named_parameters()}

    def tensors(self) -> dict[str, Any]:
        """Parameters and buffers by all their names."""
        named = [*self.named_parameters(remove_duplicate=False), *self.named_buffers(remove_duplicate=False)]
        return {_in_state_dict(name): t for name, t in named}

    def forward(self, *arrays: Any) -> Any:
        before = dict(self.named_buffers(remove_duplicate=False))
        plain = [a for a in arrays if not a.requires_grad]
        result = self.example.call(self.module, arrays, self._call)
        for array in plain:  # which a module may change to differentiate by them
            if array.requires_grad and array.is_leaf:
                array.requires_grad_(False)
        for name, new in list(self.named_buffers(remove_duplicate=False)):
            old = before.get(name, new)
            if old is not new:  # torch.export records changes of a tensor alone, not of an attribute
                if new.shape != old.shape or new.dtype != old.dtype:
                    raise ModelError(f"the buffer {_in_state_dict(name)}: expected a tensor of {list(old.shape)} and "
                                     f"{old.dtype}, as it is, found that forward assigns one of {list(new.shape)} and "
                                     f"{new.dtype}")
                with torch.no_grad():
                    old.copy_(new)
                owner, _, attribute = name.rpartition(".")
                setattr(self.get_submodule(owner), attribute, old)
        return result


def _traceable(loss: Optional[Callable[..., Any]]) -> Optional[Callable[..., Any]]:
    """The function, under the one name whose lines `torch.export` records."""
    if not isinstance(loss, types.FunctionType) or not places.is_users(loss.__code__.co_filename):
        return loss
    copy = types.FunctionType(loss.__code__.replace(co_name="forward"), loss.__globals__, loss.__name__,
                              loss.__defaults__, loss.__closure__)
    copy.__kwdefaults__ = loss.__kwdefaults__
    return copy


def _is_functional(program: Any) -> bool:
    """Whether no operation changes a tensor. To make a graph so, PyTorch traces it twice more."""
    for node in program.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if schema is not None and schema.name == "aten::detach_" and _is_constant(node.args[0]):
            continue  # changes no number
        if node.op == "get_attr" or (node.op == "call_function" and node.target not in _ON_SIZES and (
                schema is None or schema.is_mutable or schema.name in _CHANGE_BUFFERS)):
            return False
    return True


def _is_constant(node: Any) -> bool:
    return getattr(getattr(node.target, "_schema", None), "name", "") == "aten::lift_fresh_copy"


# Functions on tuples and sizes that a graph calls beside the operations of ATen.
_ON_SIZES = {operator.getitem, operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod}
# Running statistics, of which the schema says nothing.
_CHANGE_BUFFERS = {"aten::batch_norm", "aten::instance_norm"}

# How often the parts of an operation may have parts.
_DECOMPOSED = 4


def _is_of_tensors(result: Any) -> bool:
    return isinstance(result, torch.Tensor) or (isinstance(result, (tuple, list)) and any(map(_is_of_tensors, result)))


def _has_statistics(node: Any) -> bool:
    """Whether it is an instance normalisation that changes running statistics, of which its schema says nothing."""
    return _nodes.name_of(node.target) == "instance_norm" and node.args[3] is not None


def _decompositions(program: Any, is_known: Callable[[str], bool]) -> dict[Any, Any]:
    """PyTorch's decompositions of the operations on arrays and parameters that MTC has nothing for."""
    computed: set[Any] = set()  # what PyTorch computes of sizes alone is a constant
    unknown: set[Any] = set()
    for node in program.graph.nodes:
        if node.op == "placeholder" or (_is_of_tensors(node.meta.get("val"))
                                        and not computed.isdisjoint(node.all_input_nodes)):
            computed.add(node)
            packet = getattr(node.target, "overloadpacket", None)
            if packet is not None and (_has_statistics(node) or not is_known(packet.__name__)):
                unknown.add(node.target)
    if not unknown:
        return {}
    known = torch.export.default_decompositions()
    made = {target: known[target] for target in unknown if target in known}
    every = torch._decomp.decomposition_table
    for target in unknown - set(made):
        if target in every and not target._schema.is_mutable:
            made[target] = every[target]
        elif target.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd):
            made[target] = target.decompose  # that of eager mode, in terms of other operations
    return made


def export(step: TracedStep, is_known: Callable[[str], bool]) -> Exported:
    """The graph of a step in training mode, at the functional level.

    `is_known` tells by the name of an operation whether it stays.
    """
    example = step.example
    with training(step), _tracing.whole_experts(step):
        program, functions = program_of(step, example.tensors, is_known, type(step.module).__name__)
    firsts = {id(t): n for n, t in reversed(list(step.tensors().items()))}
    exported = _read(program, example, {n: firsts[id(t)] for n, t in step.tensors().items()})
    return dataclasses.replace(_with_listed(exported, step), functions=tuple(functions))


def _with_listed(exported: Exported, step: TracedStep) -> Exported:
    """With the parameters and buffers that the module reads from a list or dict of its own, which are constants to
    torch.export, under their names."""
    def place(tensor: Any) -> tuple[Any, ...]:
        return tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()

    names = {place(t): n for n, t in reversed(list(step.tensors().items())) if t.numel()}
    found = {key: names[place(t)] for key, t in exported.constants.items() if t.numel() and place(t) in names}
    learned, changed = step.parameters_by_name(), exported.changed
    return dataclasses.replace(
        exported, constants={key: t for key, t in exported.constants.items() if key not in found},
        parameters={**exported.parameters, **{key: n for key, n in found.items() if n in learned}},
        state={**exported.state, **{key: n for key, n in found.items() if n in changed}},
        buffers={**exported.buffers, **{key: n for key, n in found.items() if n not in learned and n not in changed}})


def program_of(module: Any, tensors: Sequence[Any], is_known: Callable[[str], bool],
               name: str) -> tuple[Any, list[str]]:
    """The program of a module of `*arrays`, each with the samples as its first axis, and the caller's classes whose
    backward is not in it."""
    batch = torch.export.Dim("batch", min=2)
    try:
        with warnings.catch_warnings(), _tracing.without_questions(), _custom.own_gradients() as functions:
            warnings.simplefilter("ignore")
            shapes = {"arrays": tuple({0: batch} for _ in tensors)}
            with _autograd.taken_whole(isinstance(module, TracedStep)), _cells.taken_whole():
                program = torch.export.export(module, tuple(tensors), strict=False, dynamic_shapes=shapes)
            _detached.stop_gradients(program)
            _detached.separate(program)
            if not _is_functional(program):
                program = program.run_decompositions({})
            for _ in range(_DECOMPOSED):
                table = _decompositions(program, is_known)
                if not table:
                    break
                program = program.run_decompositions(table)
    except (DataError, ModelError):
        raise
    except Exception as error:  # whatever tracing the caller's code raises
        raise _tracing.refusal(error, name) from error
    return program, functions


@contextlib.contextmanager
def modes_kept(module: Any) -> Iterator[None]:
    """With all parts of a module in training or evaluation mode afterwards as before."""
    modes = {m: m.training for m in module.modules()}
    try:
        yield
    finally:
        for m, mode in modes.items():
            m.training = mode


@contextlib.contextmanager
def training(module: Any) -> Iterator[None]:
    """In training mode, and afterwards as before. Parts in evaluation mode stay so in a module that is training."""
    with modes_kept(module):
        if not module.module.training:
            module.train()
        yield


def _read(program: Any, example: Example, firsts: Mapping[str, str]) -> Exported:
    kinds = torch.export.graph_signature
    nodes = tuple(program.graph.nodes)
    arrays: dict[str, str] = {}
    found: dict[Any, dict[str, str]] = {kinds.InputKind.PARAMETER: {}, kinds.InputKind.BUFFER: {}}
    constants: dict[str, Any] = {}
    for spec in program.graph_signature.input_specs:
        if spec.kind == kinds.InputKind.USER_INPUT:
            arrays[spec.arg.name] = example.names[len(arrays)]
        elif spec.kind in found:
            found[spec.kind][spec.arg.name] = firsts[_in_state_dict(spec.target)]
        elif spec.kind == kinds.InputKind.CONSTANT_TENSOR:
            constants[spec.arg.name] = program.constants[spec.target]
    for node in nodes:  # a check of PyTorch's own comes after an operation that is refused
        if _nodes.name_of(node.target) == "with_effects" and _nodes.name_of(node.args[1]) != "_linalg_check_errors":
            raise ModelError(f"{_nodes.where(node) or 'forward'}: {_nodes.name_of(node.args[1])}: an effect beside its "
                             "result")
    results = next(n for n in nodes if n.op == "output").args[0]
    changed: dict[str, Any] = {}
    given = []
    for spec, node in zip(program.graph_signature.output_specs, results):
        if spec.kind == kinds.OutputKind.BUFFER_MUTATION:
            changed[firsts[_in_state_dict(spec.target)]] = node
        elif spec.kind == kinds.OutputKind.USER_OUTPUT:
            given.append(node)
        elif spec.kind != kinds.OutputKind.TOKEN:  # of an effect
            raise ModelError(f"{_nodes.where(node) or 'forward'}: expected a step that changes no array of the "
                             f"caller's, found {arrays.get(spec.target, spec.target)} changed")
    _, outputs = pytree.tree_unflatten(given, program.call_spec.out_spec)
    buffers = found[kinds.InputKind.BUFFER]
    return Exported(nodes, arrays, found[kinds.InputKind.PARAMETER],
                    {k: v for k, v in buffers.items() if v not in changed},
                    {k: v for k, v in buffers.items() if v in changed}, constants, changed, given[0],
                    {name: _before_broadcast(node) for name, node in outputs.items()}, program)


def _before_broadcast(node: Any) -> Any:
    """The tensor itself, where broadcasting it together with others, as losses do, has left it as it is."""
    while node.op == "call_function" and node.target is operator.getitem:
        source, place = node.args
        if _nodes.name_of(source.target) != "broadcast_tensors":
            return node
        tensor = source.args[0][place]
        if tensor.meta["val"].shape != node.meta["val"].shape:
            return node
        node = tensor
    return node


def _in_state_dict(target: str) -> str:
    return target.removeprefix("module.")
