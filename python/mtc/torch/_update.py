# SPDX-License-Identifier: Apache-2.0
"""An optimizer of PyTorch as the update of a plan.

Its state is variables of the plan, and so are the expressions of hyper-parameters that the trace reads: before each
step they get the values that PyTorch has.
"""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any, Callable, Mapping, Optional, Sequence

import numpy as np

from mtc._errors import ModelError
from mtc._tensors import Array
from mtc._trace import Graph, Value, layout, reals, reductions
from mtc._trace import elementwise as e
from mtc._trace.doubles import Double, Doubles
from mtc._trace.values import elements
from mtc.torch import _nodes
from mtc.torch._entries import PRESENT, Entry, kind_of
from mtc.torch._framework import torch
from mtc.torch._holders import Holders, Key, Whole, found_at, rebuilt
from mtc.torch._scalars import Tree, evaluate, names_in
from mtc.torch._trace import Path, Tracer, Unit
from mtc.torch._update_nodes import PREFIX, UpdateNodes
from mtc.torch._watch import Groups

RATE = "lr"
LONGEST = 60  # characters of a name that is a formula
_BINARY = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}
_UNARY = {"neg": "neg", "sqrt": "sqrt", "abs": "abs", "exp": "exp", "log": "log"}
_DOUBLE = {**_BINARY, **_UNARY}
_VECTORS = {"_linalg_eigh", "_linalg_svd", "linalg_svd"}
LOW = "low"
_SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "pow": "^"}

Values = dict[str, Array]
Order = Mapping[str, tuple[int, ...]]  # for each axis of a parameter's variable the axis of the parameter


@dataclasses.dataclass
class Slot:
    """A variable of the optimizer's state.

    Attributes:
        name: of the variable.
        entry: what it starts with.
        order: for each axis of the variable the axis of the tensor.
        keys: of what PyTorch has in it: of several parameters, where all have the same number.
    """

    name: str
    entry: Entry
    order: tuple[int, ...]
    keys: list[Key]


def checked(optimizer: Any) -> Any:
    """The optimizer, if it is one whose step needs nothing but gradients."""
    if not isinstance(optimizer, torch.optim.Optimizer):
        raise ModelError("expected an optimizer of torch.optim.Optimizer, or the name of MTC's, found "
                         f"{type(optimizer).__module__}.{kind_of(optimizer)}")
    for each in Holders(optimizer).optimizers:
        _check_step(each)
    return optimizer


def _check_step(optimizer: Any) -> None:
    step = inspect.signature(type(optimizer).step).parameters
    if "closure" in step and step["closure"].default is inspect.Parameter.empty:
        raise ModelError(f"expected an optimizer that takes a step by its gradients, found {kind_of(optimizer)}, which "
                         "evaluates the loss again in a step")


class Update:
    """The update of an optimizer of PyTorch.

    Attributes:
        source: the optimizer.
        prefix: of the names of its variables.
        names: parameter -> name, of those that are trained; `parameters`: the other way.
        slots: of its state.
        expressions: those of hyper-parameters that are variables, by name.
        has_vectors: whether it computes eigenvectors or singular vectors, whose signs are free.
    """

    prefix = PREFIX

    def __init__(self, optimizer: Any, names: Mapping[Any, str], clip_norm: Optional[float] = None,
                 clip_value: Optional[float] = None) -> None:
        """`names`: of the parameters that are trained."""
        self.source = optimizer
        self.kind = kind_of(optimizer)
        self.names = dict(names)
        self.parameters = {name: parameter for parameter, name in names.items()}
        self.clipping = (clip_norm, clip_value)
        self._real = reals.real()
        self._tracer = Tracer(optimizer, names)
        self.holders = self._tracer.holders
        self.groups: Groups
        self.slots: dict[str, Slot] = {}
        self.expressions: dict[str, Tree] = {}
        self.has_vectors = False
        self._values: dict[str, float] = {}

    # The plan

    def add_to(self, graph: Graph, order: Order) -> None:
        """Adds the update to a graph that has the parameters as variables."""
        try:
            self._add(graph, order, False)
        except ModelError:
            if not self._tracer.has_variant():
                raise
            self._add(graph, order, True)

    def _add(self, graph: Graph, order: Order, capturable: bool) -> None:
        units = self._tracer.trace(capturable)
        self.has_vectors = any(_nodes.name_of(node.target) in _VECTORS for unit in units
                               for path in (*unit.paths, *unit.first) for node in path.graph.graph.nodes)
        self.groups = Groups(self.holders, self.names, self._tracer.recorder, self._tracer.memory.states)
        for shared in (True, False):
            graph.state.clear()
            made = _Builder(self, graph, order, shared).build(units, self._tracer.recorder.trees)
            if made is not None:
                self.slots, self.expressions, assigned = made
                for name, value in assigned:
                    graph.assign(name, value)
                return

    # The state

    def start(self) -> Values:
        """The variables of the state, as the optimizer is now."""
        values: Values = {}
        for slot in self.slots.values():
            found = [self._now(key, slot.entry) for key in slot.keys]
            if any(not np.array_equal(other, found[0]) for other in found[1:]):
                raise ModelError(f"{self.kind}: expected one {slot.keys[0].name} for all parameters, found several, as "
                                 "when parameters join later: call mtc.torch.compile again")
            whole = np.broadcast_to(found[0], slot.entry.shape)
            values[slot.name] = np.array(np.transpose(whole, slot.order), order="C").astype(
                "i4" if _is_int(slot.entry.dtype) else self._real)
        self._values = {}
        return {**values, **self.follow()}

    def _now(self, key: Key, entry: Entry) -> Array:
        """What PyTorch has now of what is remembered."""
        if key.path == _STARTED:
            own = [k for k, e in self._tracer.memory.entries.items()
                   if k.owner == key.owner and not e.late or e.late and isinstance(k.owner, int)]
            return np.asarray(int(bool(own) and all(
                self.holders.get(k, self.parameters) is not None for k in own)))
        value = self.holders.get(key.top if key.path[-1] == PRESENT else key, self.parameters)
        if key.path[-1] == PRESENT:
            return np.asarray(int(value is not None))
        if isinstance(value, torch.Tensor):
            return np.asarray(value.detach().cpu().double().numpy())
        if value is not None:
            return np.asarray(value)
        if entry.start is None:
            return np.asarray(self.parameters[key.owner].detach().cpu().double().numpy())
        return np.asarray(entry.start)

    def follow(self) -> Values:
        """The variables of hyper-parameters that have changed since this was called last.

        Raises:
            ModelError: something else has changed, which is a part of the trace.
        """
        hypers = self.groups.hypers()
        if hypers is None and self._values:
            return {}
        hypers = hypers or self.groups.current()
        found = {name: evaluate(tree, hypers) for name, tree in self.expressions.items()}
        changed = {name: np.asarray(value, self._real) for name, value in found.items()
                   if self._values.get(name) != value}
        self._values = found
        return changed

    def draws(self) -> bool:
        """Whether the state begins with random numbers, which may depend on the rates of now."""
        return self._tracer.memory.draws

    def changes(self, group: int, key: str) -> bool:
        """Whether a step changes what a group has for a key."""
        return (group, key) in self._tracer.memory.states

    def follow_rate(self, session: Any) -> None:
        """Gives a session the hyper-parameters of now."""
        self.groups.check_state()
        for name, value in self.follow().items():
            session.variables[name] = value
        self.source._opt_called = True  # else schedulers warn that the optimizer has made no step

    def give_back(self, read: Callable[[str], Array], steps: int) -> None:
        """Sets the state of PyTorch's optimizer from the variables of a session, which `read` gives by name."""
        if not steps:
            return
        found: dict[Key, Any] = {}
        for slot in self.slots.values():
            array = read(slot.name)
            array = np.transpose(array, [slot.order.index(i) for i in range(len(slot.order))])
            for key in slot.keys:
                if slot.entry.number:
                    found[key] = int(array) if _is_int(slot.entry.dtype) else float(array)
                elif key.path != _STARTED:
                    made = torch.from_numpy(np.array(array)).to(slot.entry.dtype)
                    found[key] = made.reshape(slot.entry.shape)
        absent = {key.top for key, value in found.items() if key.path[-1] == PRESENT and not value}
        structures = self._tracer.memory.structures
        for top in dict.fromkeys([*(key.top for key in found), *structures]):
            if top not in absent and top.path != _STARTED:
                made = rebuilt(structures.get(top), found_at(found, top.owner, top.holder), top.path)
                self.holders.put(top, made, self.parameters)


_STARTED = ("(has a state)",)  # of a parameter whose first update is another one


def _is_int(dtype: Any) -> bool:
    return not dtype.is_floating_point


class _Builder:
    """Puts the update into a graph.

    `shared`: one variable for numbers, such as the count of steps, that all parameters have alike.
    """

    def __init__(self, update: Update, graph: Graph, order: Order, shared: bool) -> None:
        self.update = update
        self.graph = graph
        self.order = order
        self.shared = shared
        self.slots: dict[str, Slot] = {}
        self.values: dict[str, Value] = {}  # of slots and expressions
        self.results: dict[str, Value] = {}  # of slots
        self.expressions: dict[str, Tree] = {}
        self.numbers: dict[Tree, Value] = {}
        self.doubles = Doubles(graph)
        self._precise: dict[Tree, Double] = {}

    def build(self, units: Sequence[Unit], trees: Mapping[Tree, int]) -> Any:
        """(slots, expressions, what is assigned); None where numbers that were shared are not alike."""
        table = list(trees)
        gradients = self._gradients()
        assigned: list[tuple[str, Value]] = []
        for unit in units:
            for names in zip(*unit.alike):
                renamed = dict(zip(unit.parameters, names))
                try:
                    parameters = self._build_unit(unit, renamed, gradients, table)
                except _NotAlike:
                    return None
                assigned += [(name, self._stored(value, name)) for name, value in parameters.items()]
        for name, value in self.results.items():
            slot = self.slots[name]
            if value.shape != slot.entry.shape:
                value = self._reshaped(value, slot)
            assigned.append((name, e.cast(layout.transpose(value, slot.order), self.values[name].dtype)))
        return self.slots, self.expressions, assigned

    def _reshaped(self, value: Value, slot: Slot) -> Value:
        """A state in the shape that it began with, as a number that was an array of one element."""
        if elements(value.shape) != elements(slot.entry.shape):
            raise ModelError(f"{self.update.kind}: expected a state of one shape in all steps, found "
                             f"{slot.keys[0].name} of {list(slot.entry.shape)}, and then of {list(value.shape)}")
        return layout.reshape(value, slot.entry.shape)

    def _stored(self, value: Value, name: str) -> Value:
        return layout.transpose(value, self.order[name])

    def _logical(self, value: Value, order: Sequence[int]) -> Value:
        return layout.transpose(value, [list(order).index(i) for i in range(len(order))])

    def _gradients(self) -> dict[str, Value]:
        """Those of all parameters, clipped as torch.nn.utils.clip_grad_norm_ and clip_grad_value_ do."""
        found = {name: self._logical(self.graph.gradient(self.graph.variables[name]), self.order[name])
                 for name in self.update.names.values()}
        norm, bound = self.update.clipping
        if bound is not None:
            found = {name: e.binary("minimum", e.binary("maximum", g, -bound), bound) for name, g in found.items()}
        if norm is not None and found:
            total: Optional[Value] = None
            for g in found.values():
                square = reductions.reduce("sum", e.unary("square", g), range(g.rank))
                total = square if total is None else e.binary("add", total, square)
            assert total is not None
            factor = e.binary("div", norm, e.binary("add", e.unary("sqrt", total), 1e-6))
            factor = e.binary("minimum", factor, 1.0)
            found = {name: e.binary("mul", g, factor) for name, g in found.items()}
        return found

    def _build_unit(self, unit: Unit, renamed: Mapping[str, str], gradients: Mapping[str, Value],
                    table: Sequence[Tree]) -> dict[str, Value]:
        names = list(renamed.values())
        keys = [key._replace(owner=renamed[key.owner]) if isinstance(key.owner, str) else key for key in unit.entries]
        entries = [self.update._tracer.memory.entries[key] for key in keys]
        slots = [self._slot(key, entry) for key, entry in zip(keys, entries)]
        given = [*(self._logical(self.graph.variables[n], self.order[n]) for n in names),
                 *(gradients[n] for n in names),
                 *(self._logical(self.values[slot.name], slot.order) for slot in slots)]
        results = self._converted(unit.paths, given, table)
        if unit.first:
            firsts = self._converted(unit.first, given, table)
            started = self._slot(Key(names[0], _STARTED), Entry((), torch.int64, True, 0))
            self.results[started.name] = self.graph.constant(1, "i32")
            test = e.compare("ne", self.values[started.name], 0)
            results = [e.select(test, a, e.cast(b, a.dtype)) for a, b in zip(results, firsts)]
        for slot, value, tensor in zip(slots, results[len(names):], given[2 * len(names):]):
            if value is tensor:
                continue
            known = self.results.setdefault(slot.name, value)
            # A number of a group, which no gradient changes, is the same in each unit.
            if known is not value and isinstance(slot.keys[0].owner, str):
                raise _NotAlike
        return {name: value for name, value, old in zip(names, results, given) if value is not old}

    def _slot(self, key: Key, entry: Entry) -> Slot:
        """The variable of what is remembered."""
        owner = key.owner.value if isinstance(key.owner, Whole) else (
            f"group{key.owner}" if isinstance(key.owner, int) else key.owner)
        place = self.update.holders.path_of(key.holder) + key.name
        number = entry.shape == () and isinstance(entry.start, (int, float, np.ndarray)) and not entry.of_gradient
        if self.shared and number and isinstance(key.owner, str) and key.path != _STARTED:
            name = f"{PREFIX}/{place}"
        else:
            name = f"{PREFIX}/{owner}/{place}"
        found = self.slots.get(name)
        if found is not None:
            if key not in found.keys:
                if self.update._now(found.keys[0], found.entry) != self.update._now(key, entry):
                    raise _NotAlike
                found.keys.append(key)
            return found
        order: tuple[int, ...] = tuple(range(len(entry.shape)))
        if isinstance(key.owner, str) and len(self.order[key.owner]) == len(order):
            order = self.order[key.owner]
        made = self.slots[name] = Slot(name, entry, order, [key])
        self.values[name] = self.graph.slot(name, tuple(entry.shape[i] for i in order),
                                            "i32" if _is_int(entry.dtype) else "f32")
        return made

    def _converted(self, paths: Sequence[Path], given: Sequence[Value], table: Sequence[Tree]) -> list[Value]:
        """The new parameters and entries."""
        made = [UpdateNodes(self.graph, self.update.kind, self.doubles, lambda i: self.precise(table[i])).results(
            path.graph, given) for path in paths]
        return self._selected([path.decisions for path in paths], made, 0)

    def _selected(self, decisions: Sequence[Sequence[bool]], made: Sequence[list[Value]],
                  depth: int) -> list[Value]:
        """The results of the way that the conditions say, of ways that are the same up to a depth."""
        if len(decisions) == 1:
            return made[0][:len(made[0]) - len(decisions[0])]
        condition = made[0][len(made[0]) - len(decisions[0]) + depth]
        sides = []
        for way in (True, False):
            chosen = [i for i, d in enumerate(decisions) if d[depth] == way]
            sides.append(self._selected([decisions[i] for i in chosen], [made[i] for i in chosen], depth + 1))
        return [a if a is b else e.select(condition, a, e.cast(b, a.dtype)) for a, b in zip(*sides)]

    # Expressions of hyper-parameters

    def number(self, tree: Tree) -> Value:
        """The value of an expression. Where it has the learning rate it is computed in the plan, which `mtrun` may
        give another one."""
        found = self.numbers.get(tree)
        if found is None:
            found = self.numbers[tree] = self._number(tree)
        return found

    def precise(self, tree: Tree) -> Double:
        """The value of an expression in float64: what f32 leaves of it is another variable, where it is read."""
        found = self._precise.get(tree)
        if found is None and reals.double():
            found = self._precise[tree] = Double(self.number(tree), None)
        if found is None:
            parts = [self.precise(part) for part in tree[1:]] if self._rates(tree) and isinstance(tree, tuple) else []
            op = _DOUBLE.get(tree[0]) if isinstance(tree, tuple) else None
            made = self.doubles.apply(op, *parts) if parts and op is not None else None
            found = self._precise[tree] = made or Double(self.number(tree), None if self._rates(tree) else (
                lambda: self.number((LOW, tree))))
        return found

    def _rates(self, tree: Tree) -> set[str]:
        return {name for name in names_in(tree) if name.rpartition("/")[2] == RATE}

    def _number(self, tree: Tree) -> Value:
        if isinstance(tree, (int, float)):
            return self.graph.constant(reals.real()(tree))
        rates = self._rates(tree)
        if rates and isinstance(tree, tuple):
            if tree[0] in _BINARY:
                return e.binary(_BINARY[tree[0]], self.number(tree[1]), self.number(tree[2]))
            if tree[0] in _UNARY:
                return e.unary(_UNARY[tree[0]], self.number(tree[1]))
        if not names_in(tree):
            return self.graph.constant(reals.real()(evaluate(tree, {})))
        name = f"{PREFIX}/{_formula(tree)}"
        if len(name) > LONGEST:
            name = f"{PREFIX}/number{len(self.expressions)}"
        words = "frozen"
        if isinstance(tree, str) and tree in rates and len(self.update.groups.used) == 1:
            name, words = f"{PREFIX}/learning_rate", "frozen role(learning_rate)"
        self.expressions[name] = tree
        return self.graph.slot(name, (), "f32", words)


class _NotAlike(Exception):
    """Numbers that were to share a variable differ."""


def _formula(tree: Tree) -> str:
    if isinstance(tree, tuple):
        parts = [_formula(part) for part in tree[1:]]
        if tree[0] in _SIGNS:
            return f"({f' {_SIGNS[tree[0]]} '.join(parts)})"
        return f"{tree[0]}({', '.join(parts)})"
    return tree if isinstance(tree, str) else f"{tree:g}"
