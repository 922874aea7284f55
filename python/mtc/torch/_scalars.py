# SPDX-License-Identifier: Apache-2.0
"""Numbers of an optimizer while its step is traced: hyper-parameters and counts of steps.

A hyper-parameter is *known*: its value before each step is PyTorch's. An expression of known numbers is kept as a tree,
which is evaluated in float64, as PyTorch does, before each step in which one of them has changed. A branch on known
numbers is taken, and becomes a guard: it must go the same way in later steps. What is computed from the state is not
known; it is a tensor of the trace, and a branch on it is refused.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union

import numpy as np

from mtc._trace import Refused
from mtc.torch import _masked
from mtc.torch._framework import torch

overrides: Any = __import__("torch.overrides", fromlist=["TorchFunctionMode"])

Tree = Union[float, str, tuple[Any, ...]]  # a number, the name of a hyper-parameter, or an operation and its operands
Hypers = Mapping[str, float]

MOST_BRANCHES = 6  # one after the other, on what a step computes

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "truediv": operator.truediv,
    "low": lambda a: a - float(np.float32(a)),  # what f32 leaves of it
    "floordiv": operator.floordiv, "mod": operator.mod, "pow": operator.pow, "neg": operator.neg, "abs": operator.abs,
    **{name: getattr(math, name) for name in ("sqrt", "exp", "log", "log2", "log10", "sin", "cos", "tan", "tanh",
                                              "expm1", "log1p", "floor", "ceil", "fabs")}}
_COMPARISONS: dict[str, Callable[[float, float], bool]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq, "ne": operator.ne}


def evaluate(tree: Tree, hypers: Hypers) -> float:
    """The value of an expression of known numbers."""
    if isinstance(tree, str):
        return float(hypers[tree])
    if isinstance(tree, tuple):
        return float(FUNCTIONS[tree[0]](*(evaluate(part, hypers) for part in tree[1:])))
    return float(tree)


def names_in(tree: Tree) -> set[str]:
    """The hyper-parameters that an expression reads."""
    if isinstance(tree, tuple):
        return set().union(*map(names_in, tree[1:]))
    return {tree} if isinstance(tree, str) else set()


class TooManyBranches(Refused):
    """More branches than are traced both ways."""


class Guard:
    """A comparison of known numbers that the trace has relied on."""

    def __init__(self, comparison: str, left: Tree, right: Tree, outcome: bool) -> None:
        self.comparison, self.left, self.right, self.outcome = comparison, left, right, outcome

    def holds(self, hypers: Hypers) -> bool:
        """Whether it has the outcome that it had in the trace."""
        values = evaluate(self.left, hypers), evaluate(self.right, hypers)
        return _COMPARISONS[self.comparison](*values) == self.outcome

    def names(self) -> set[str]:
        """The hyper-parameters that it reads."""
        return names_in(self.left) | names_in(self.right)


class Recorder:
    """What a trace has found out about known numbers.

    Attributes:
        guards: the branches that were taken.
        trees: expressions that the plan reads, each once.
        table: a tensor of the trace whose element i stands for trees[i].
    """

    def __init__(self, hypers: Hypers) -> None:
        self.hypers = hypers
        self.guards: dict[Any, Guard] = {}
        self.trees: dict[Tree, int] = {}
        self.table: Any = None
        self.decisions: list[bool] = []
        self.conditions: list[Any] = []
        self._outcomes: dict[Any, bool] = {}

    def paths(self) -> Iterator[None]:
        """Gives control once for each way through the branches of a trace, which `decisions` says afterwards."""
        self.decisions = []
        while True:
            self.conditions, self._outcomes = [], {}
            yield
            while self.decisions and not self.decisions[-1]:
                self.decisions.pop()
            if not self.decisions:
                return
            self.decisions[-1] = False

    def branch(self, condition: Any, key: Any = None) -> bool:
        """The way of a branch on a tensor. Branches of one key go the same way."""
        if key is not None and key in self._outcomes:
            return self._outcomes[key]
        count = len(self.conditions)
        if count == len(self.decisions):
            self.decisions.append(True)
        if count == MOST_BRANCHES:
            raise TooManyBranches(f"more than {MOST_BRANCHES} branches on what it computes in a step, such as a norm: "
                                  "use torch.where, torch.maximum or torch.minimum")
        self.conditions.append(condition)
        self._outcomes[key] = self.decisions[count]
        return self.decisions[count]

    def known(self, tree: Tree) -> Scalar:
        """A number of this expression."""
        made = Scalar(evaluate(tree, self.hypers))
        made.recorder, made.tree, made.tensor, made.key = self, tree, None, tree
        return made

    def unknown(self, tensor: Any, key: Any = None) -> Scalar:
        """A number that a tensor of the trace has. Numbers of one key are equal."""
        made = Scalar(math.nan)
        made.recorder, made.tree, made.tensor, made.key = self, None, tensor, key
        return made

    def read(self, tree: Tree) -> Any:
        """The tensor of an expression, in the trace."""
        index = self.trees.setdefault(tree, len(self.trees))
        if index >= len(self.table):
            raise Refused(f"more than {len(self.table)} numbers of the optimizer")
        return self.table[index]

    def compare(self, comparison: str, left: Tree, right: Tree) -> bool:
        """The outcome of a comparison, which becomes a guard."""
        outcome = _COMPARISONS[comparison](evaluate(left, self.hypers), evaluate(right, self.hypers))
        if names_in(left) or names_in(right):
            self.guards.setdefault((comparison, left, right), Guard(comparison, left, right, outcome))
        return outcome


def _as_tree(given: Any) -> Optional[Tree]:
    if isinstance(given, Scalar):
        return given.tree
    return float(given) if isinstance(given, (int, float)) else None


def _refuse_number() -> Any:
    raise Refused("a number of Python made of what it computes in a step, such as float(tensor) or an index: use "
                  "tensors, and torch.where")


class Scalar(float):
    """A number in a trace. Arithmetic with it is a part of the trace; of a known one, float(x) is its value."""

    recorder: Recorder
    tree: Optional[Tree]
    tensor: Any
    key: Any  # of what it is computed of; None: not known

    def as_tensor(self) -> Any:
        """A tensor of the trace, without axes."""
        return self.tensor if self.tree is None else self.recorder.read(self.tree)

    def _settled(self) -> float:
        """The value, on which the trace relies from now on."""
        if self.tree is None:
            _refuse_number()
        assert self.tree is not None
        value = evaluate(self.tree, self.recorder.hypers)
        self.recorder.compare("eq", self.tree, value)
        return value

    def __bool__(self) -> bool:
        if self.tree is not None:
            return self.recorder.compare("ne", self.tree, 0.0)
        return self.recorder.branch(self.tensor != 0, self.key and ("ne", self.key, 0.0))

    def __float__(self) -> float:
        return self._settled()

    def __int__(self) -> int:
        return int(self._settled())

    __trunc__ = __index__ = __int__

    def __round__(self, digits: Any = None) -> Any:
        return round(self._settled(), digits)

    def __floor__(self) -> int:
        return math.floor(self._settled())

    def __ceil__(self) -> int:
        return math.ceil(self._settled())

    def is_integer(self) -> bool:
        return self._settled().is_integer()

    def __hash__(self) -> int:
        return hash(self._settled())


def _power(base: Any, exponent: Any, recorder: Recorder) -> Any:
    """base^exponent. Of a known base it is e^(exponent log base): its difference from 1 is exact for a base near 1."""
    tree = _as_tree(base)
    if tree is not None and _as_tree(exponent) is None and recorder.compare("gt", tree, 0.0):
        return torch.exp(tensor_of(exponent) * recorder.read(("log", tree)))
    return torch.pow(tensor_of(base), tensor_of(exponent))


def tensor_of(given: Any) -> Any:
    """An operand of PyTorch."""
    return given.as_tensor() if isinstance(given, Scalar) else given


def compute(name: str, *operands: Any) -> Any:
    """An operation of Python or of `math`, with at least one number or tensor of a trace."""
    recorder = next((o.recorder for o in operands if isinstance(o, Scalar)), None)
    trees = [_as_tree(o) for o in operands]
    if recorder is not None and all(tree is not None for tree in trees):
        return recorder.known((name, *trees))
    if name == "pow" and recorder is not None:
        made = _power(operands[0], operands[1], recorder)
    else:
        names = {"fabs": "abs", "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder"}
        function = getattr(torch, names.get(name, name))
        made = function(*(torch.as_tensor(t) if i == 0 and not isinstance(t, torch.Tensor) else t
                          for i, t in enumerate(map(tensor_of, operands))))
    if recorder is None or any(isinstance(o, torch.Tensor) for o in operands):
        return made
    keys = [_key_of(o) for o in operands]
    return recorder.unknown(made, None if None in keys else (name, *keys))


def _key_of(given: Any) -> Any:
    return given.key if isinstance(given, Scalar) else float(given)


def _arithmetic(name: str, reflected: bool) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if not isinstance(other, (int, float, torch.Tensor)):
            return NotImplemented
        return compute(name, other, self) if reflected else compute(name, self, other)
    return method


def _comparison(name: str) -> Callable[[Any, Any], Any]:
    def method(self: Any, other: Any) -> Any:
        if isinstance(other, torch.Tensor):
            return getattr(torch, {"truediv": "div"}.get(name, name))(self.as_tensor(), other)
        if not isinstance(other, (int, float)):
            return NotImplemented
        trees = _as_tree(self), _as_tree(other)
        if trees[0] is None or trees[1] is None:
            keys = self.key, _key_of(other)
            return self.recorder.branch(getattr(torch, name)(self.as_tensor(), tensor_of(other)),
                                        (name, *keys) if None not in keys else None)
        return self.recorder.compare(name, *trees)
    return method


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    setattr(Scalar, f"__{_name}__", _arithmetic(_name, False))
    setattr(Scalar, f"__r{_name}__", _arithmetic(_name, True))
for _name in ("neg", "abs"):
    setattr(Scalar, f"__{_name}__", (lambda name: lambda self: compute(name, self))(_name))
for _name in _COMPARISONS:
    setattr(Scalar, f"__{_name}__", _comparison(_name))


_HALVES = (torch.bfloat16, torch.float16)
_PRODUCTS = {"addmm", "addmv", "addbmm", "baddbmm", "addr"}  # their factors are numbers, which a trace relies on


class Mode(overrides.TorchFunctionMode):  # type: ignore[misc]
    """Gives functions of PyTorch tensors for numbers of the trace, and numbers for what reads a tensor."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder

    def __torch_function__(self, function: Any, types: Any, args: Sequence[Any] = (),
                           kwargs: Optional[Mapping[str, Any]] = None) -> Any:
        keywords = dict(kwargs or {})
        tensor = torch.Tensor
        if function is tensor.item:
            return self._recorder.unknown(args[0].reshape(()))
        if function is tensor.__bool__:
            return self._recorder.branch(args[0].reshape(()) != 0)
        if function is tensor.__getitem__ and (found := _masked.picked(*args)) is not None:
            return found
        if function is tensor.__setitem__ and _masked.put(args[0], args[1], tensor_of(args[2])):
            return None
        if function is torch.cosine_similarity:
            return _cosine_similarity(*args, **keywords)
        if function in (tensor.__float__, tensor.__int__, tensor.__index__, tensor.tolist, torch.equal, torch.allclose):
            return _refuse_number()
        if keywords.get("out") is not None:
            out = keywords.pop("out")
            return out.copy_(function(*args, **keywords))
        if function in (torch.pow, tensor.__rpow__) and any(isinstance(a, Scalar) for a in args[:2]):
            base, exponent = args[:2] if function is torch.pow else args[1::-1]
            return compute("pow", base, exponent)
        if function in (torch.tensor, torch.as_tensor) and isinstance(args[0], Scalar):
            made = args[0].as_tensor()
            return made.to(keywords["dtype"]) if keywords.get("dtype") is not None else made
        name = getattr(function, "__name__", "")
        if name.startswith("_foreach_"):
            return self._for_each(name[len("_foreach_"):], types, args, keywords)
        if (made := self._with_factor(name, args, keywords)) is not None:
            return made
        if name.rstrip("_") in _PRODUCTS:
            keywords = {key: float(value) if isinstance(value, Scalar) else value for key, value in keywords.items()}
        numbers = [*args, *keywords.values()]
        plain, args, keywords = (args, keywords), _given(list(args)), _given(keywords)
        if function in (tensor.lerp, tensor.lerp_, torch.lerp):  # its weight has the type of the others
            args = [a.to(args[0].dtype) if isinstance(a, tensor) and a.ndim == 0 else a for a in args]
            keywords = {key: a.to(args[0].dtype) if isinstance(a, tensor) and a.ndim == 0 else a
                        for key, a in keywords.items()}
        try:
            return function(*args, **keywords)
        except (RuntimeError, TypeError) as error:
            if any(isinstance(a, Scalar) and a.tree is not None for a in numbers):
                # It takes no tensor in the place of a number, such as an epsilon: the trace relies on the number.
                return function(*(_settled(a) for a in plain[0]), **{k: _settled(a) for k, a in plain[1].items()})
            if "alias annotations" not in str(error) or not name.endswith("_") or name.endswith("__"):
                raise
            # An operation in place that PyTorch makes of others, such as square_.
            return args[0].copy_(getattr(tensor, name[:-1])(*args, **keywords))

    def _for_each(self, name: str, types: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
        """A function of lists of tensors, as one of tensors for each of them: not all have a decomposition."""
        first, *rest = args
        plain = name.rstrip("_")
        function = {"norm": torch.linalg.vector_norm, "copy": lambda _, source: source}.get(plain) or getattr(
            torch.Tensor, plain)
        made = []
        for i, tensor in enumerate(first):
            own = [a[i] if isinstance(a, (list, tuple)) else a for a in rest]
            more = {key: a[i] if isinstance(a, (list, tuple)) else a for key, a in keywords.items()}
            if plain in ("addcmul", "addcdiv") and len(own) == 3:
                more["value"] = own.pop()
            result = self.__torch_function__(function, types, (tensor, *own), more)
            made.append(tensor.copy_(result) if name.endswith("_") else result)
        return None if name.endswith("_") else tuple(made)

    def _with_factor(self, name: str, args: Sequence[Any], keywords: dict[str, Any]) -> Any:
        """A sum whose factor is a number of the trace, made of other operations; None for what is no such sum."""
        plain = name.rstrip("_")
        factor = keywords.get({"add": "alpha", "sub": "alpha", "addcmul": "value", "addcdiv": "value"}.get(plain, ""))
        if not isinstance(factor, (Scalar, torch.Tensor)):
            return None
        first, *rest = map(tensor_of, args)
        rest += [tensor_of(keywords[key]) for key in ("other", "tensor1", "tensor2") if key in keywords]
        if any(t.dtype in _HALVES for t in (first, *rest)):  # PyTorch computes it in float32, and rounds once
            dtype = first.dtype if name.endswith("_") else torch.result_type(first, rest[0])
            factor = tensor_of(factor)
            if dtype in _HALVES and plain in ("add", "sub"):  # whose factor PyTorch rounds too
                factor = factor.to(dtype).double()
            key = "alpha" if plain in ("add", "sub") else "value"
            made = self._with_factor(plain, [t.float() for t in (first, *rest)], {key: factor}).to(dtype)
            return first.copy_(made) if name.endswith("_") else made
        term = rest[0] if plain in ("add", "sub") else rest[0] * rest[1] if plain == "addcmul" else rest[0] / rest[1]
        term = tensor_of(factor) * term
        function = getattr(torch.Tensor, ("sub" if plain == "sub" else "add") + ("_" if name.endswith("_") else ""))
        return function(first, term)


def _cosine_similarity(a: Any, b: Any, dim: int = 1, eps: float = 1e-8) -> Any:
    """As PyTorch's, whose decomposition has operations in place."""
    least = float(eps)
    norms = [torch.maximum(torch.linalg.vector_norm(x, dim=dim, keepdim=True), torch.full((), least)) for x in (a, b)]
    return (a / norms[0] * (b / norms[1])).sum(dim)


def _settled(operand: Any) -> Any:
    return float(operand) if isinstance(operand, Scalar) else operand


def _given(operand: Any) -> Any:
    if isinstance(operand, Scalar):
        return operand.as_tensor()
    if isinstance(operand, (list, tuple)) and any(isinstance(o, (Scalar, list, tuple)) for o in operand):
        return type(operand)(map(_given, operand))
    return {key: _given(value) for key, value in operand.items()} if isinstance(operand, dict) else operand
