# SPDX-License-Identifier: Apache-2.0
"""x[mask] of the samples, whose number of rows the data say, in modules and losses that torch.export traces.

A plan has no tensors of as many rows as a mask is true for. It computes all rows, and what they become in the end, a
sum or a mean, or x[mask] = y, takes those of the mask. Between operations the other rows are 0.5, at which hardly a
function is singular, so that none of them gives a gradient that is not a number.
"""

from __future__ import annotations

import linecache
import math
import operator
import sys
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

from mtc._errors import ModelError
from mtc._trace import Refused, places
from mtc.torch._framework import torch
from mtc.torch._masked import ARITHMETIC, add_operators

COUNT = "as many elements as a mask is true for, which the data says: use torch.where"
_ELEMENTWISE = {
    "abs", "add", "sub", "mul", "div", "true_divide", "rsub", "neg", "exp", "log", "log1p", "expm1", "sqrt", "rsqrt",
    "square", "pow", "reciprocal", "sigmoid", "tanh", "relu", "gelu", "silu", "softplus", "leaky_relu", "elu", "clamp",
    "clip", "sin", "cos", "erf", "float", "double", "long", "clone", "detach", "maximum", "minimum", "logsigmoid", "lt",
    "le", "gt", "ge", "eq", "ne"}
_OF_AN_AXIS = {"softmax", "log_softmax", "argmax", "sum", "mean", "amax", "amin", "squeeze", "norm"}
# Of the same tensors they make the same mask.
_PURE = {"__getitem__", "lt", "le", "gt", "ge", "eq", "ne", "__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__",
         "isnan", "isfinite", "isinf", "logical_and", "logical_or", "logical_not", "__and__", "__or__", "__invert__",
         "bool", "float", "long", "abs", "select", "squeeze", "unsqueeze", "view", "reshape", "flatten", "argmax",
         "any", "all"}
_LOSSES = {"mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits",
           "binary_cross_entropy", "cross_entropy", "nll_loss"}


class Selected:
    """Rows [n, ...] of which those count for which the mask [n] is true."""

    def __init__(self, rows: Any, mask: Any) -> None:
        other = torch.full((), 0.5 if rows.is_floating_point() else 0, dtype=rows.dtype)
        self.mask = mask
        self.place = ""  # of the caller's code that selects them
        self.rows = torch.where(_along(mask, rows), rows, other)

    @classmethod
    def __torch_function__(cls, function: Any, _types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        return _apply(function.__name__, function, args, kwargs or {})

    def __getattr__(self, name: str) -> Any:
        function = getattr(torch.Tensor, name, None)
        if name.startswith("__") or not callable(function):
            raise Refused(f"{name}: {COUNT}") if function is not None else AttributeError(name)
        return lambda *args, **kwargs: _apply(name, function, (self, *args), kwargs)

    def __neg__(self) -> Any:
        return _apply("neg", operator.neg, (self,), {})

    __hash__ = object.__hash__  # == is that of the elements

    def __len__(self) -> int:
        raise Refused(f"len: {COUNT}, or mask.sum() for their number")

    def count(self) -> Any:
        """How many elements there are."""
        each = 1
        for n in self.rows.shape[1:]:
            each = each * n
        return self.mask.sum() * each


def _along(mask: Any, rows: Any) -> Any:
    """A mask [n] for rows [n, ...]."""
    return mask.reshape(-1, *[1] * (rows.ndim - 1))


def _apply(name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A function of selected rows, each on its own, or of all of them."""
    selected = [a for a in args if isinstance(a, Selected)]
    mask = selected[0].mask if selected else None
    if mask is None or any(s.mask is not mask for s in selected) or any(
            isinstance(v, Selected) for v in kwargs.values()):
        raise Refused(f"{name}: tensors that are selected by different masks: write x[mask] and y[mask]")
    if name in ("numel", "nelement"):
        return selected[0].count()
    given = [a.rows if isinstance(a, Selected) else a for a in args]
    if name in _LOSSES:
        return _loss(name, function, given, dict(kwargs), mask)
    rank = selected[0].rows.ndim
    if name in ("sum", "mean") and _is_of_all(args[1:], kwargs, rank):
        total = torch.where(_along(mask, given[0]), given[0], torch.zeros((), dtype=given[0].dtype)).sum()
        return total if name == "sum" else _mean(total, selected[0].count())
    if name in _OF_AN_AXIS and len(selected) == 1 and not _has_rows(args[1:], kwargs, rank):
        return Selected(function(*given, **kwargs), mask)
    small = all(isinstance(a, Selected) or not isinstance(a, torch.Tensor) or a.ndim < rank for a in args)
    if name in _ELEMENTWISE and small:
        return Selected(function(*given, **kwargs), mask)
    if name == "linear" and isinstance(args[0], Selected) and len(selected) == 1:
        return Selected(function(*given, **kwargs), mask)
    raise Refused(f"{name}: {COUNT}")


def _axes(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Optional[list[int]]:
    """The axes that a function is given; None: none."""
    dims = kwargs.get("dim", args[0] if args else None)
    return None if dims is None else [dims] if isinstance(dims, int) else list(dims)


def _is_of_all(args: Sequence[Any], kwargs: Mapping[str, Any], rank: int) -> bool:
    axes = _axes(args, kwargs)
    return not axes or len({a % rank for a in axes}) == rank and not kwargs.get("keepdim")


def _has_rows(args: Sequence[Any], kwargs: Mapping[str, Any], rank: int) -> bool:
    """Whether an axis is that of the rows, or none is said."""
    axes = _axes(args, kwargs)
    return not axes or any(not isinstance(a, int) or a % rank == 0 for a in axes)


def _loss(name: str, function: Callable[..., Any], given: Sequence[Any], options: dict[str, Any], mask: Any) -> Any:
    """A loss, whose mean is that of the rows, without those whose label is to be ignored."""
    reduction = options.pop("reduction", "mean")
    if len(given) > 2 or options.get("weight") is not None or options.get("reduce") is not None or options.get(
            "size_average") is not None or given[0].ndim > 2 and name in ("cross_entropy", "nll_loss"):
        raise Refused(f"{name}: weights and axes of positions of rows that a mask selects: {COUNT}")
    made = Selected(function(*given, reduction="none", **options), mask)
    if reduction == "none":
        return made
    total = made.sum()
    if reduction == "sum":
        return total
    labels = given[1]
    if name in ("cross_entropy", "nll_loss") and not labels.is_floating_point():
        return _mean(total, (mask & (labels != options.get("ignore_index", -100))).sum())
    return _mean(total, made.count())


def _mean(total: Any, count: Any) -> Any:
    """NaN of no elements, without a gradient."""
    return torch.where(count > 0, total / count.clamp(min=1), torch.full((), math.nan, dtype=total.dtype))


add_operators(Selected, _apply, ARITHMETIC, True)
add_operators(Selected, _apply, ("lt", "le", "gt", "ge", "eq", "ne"), False)


def refuse_results(parts: Iterable[Any]) -> None:
    """ModelError for a module that returns selected rows."""
    for part in parts:
        if isinstance(part, Selected):
            raise ModelError(f"{part.place}a module that returns as many rows as a mask is true for, which the data "
                             "says: return all rows, and select them in the loss")


class Masks:
    """Which masks are the same: those that the same functions make of the same tensors."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}  # of functions with their operands
        self._seen: dict[int, tuple[Any, int, int]] = {}  # id -> tensor, its version and number
        self._flat: dict[Any, tuple[Any, Any]] = {}

    def see(self, function: Any, args: Sequence[Any], result: Any) -> None:
        """Notes what a function has made."""
        if getattr(function, "__name__", "") in _PURE and isinstance(result, torch.Tensor):
            key = (function, *(self._key(a) for a in args))
            self._seen[id(result)] = (result, result._version, self._numbers.setdefault(key, len(self._numbers)))

    def _key(self, given: Any) -> Any:
        if isinstance(given, (tuple, list, slice)):
            parts = (given.start, given.stop, given.step) if isinstance(given, slice) else given
            return type(given).__name__, *map(self._key, parts)
        if given is None or given is Ellipsis or isinstance(given, (int, float, str, torch.SymInt, torch.dtype)):
            return repr(given)
        if not isinstance(given, torch.Tensor):
            return object()  # it is no other
        tensor, version, number = self._seen.get(id(given), (None, -1, -1))
        if tensor is given and version == given._version:
            return number
        self._seen[id(given)] = (given, given._version, self._numbers.setdefault((id(given), given._version),
                                                                                  len(self._numbers)))
        return self._seen[id(given)][2]

    def flat(self, mask: Any) -> Any:
        """A mask as one axis, the same tensor for the same masks."""
        key = self._key(mask)
        if key not in self._flat:
            self._flat[key] = (mask, mask.flatten())
        return self._flat[key][1]

    def index(self, x: Any, mask: Any) -> Optional[Selected]:
        """x[mask]; None: it is another index."""
        if not is_of_samples(mask) or not isinstance(x, torch.Tensor) or x.ndim < mask.ndim:
            return None
        made = Selected(x.flatten(0, mask.ndim - 1), self.flat(mask))
        frame: Any = sys._getframe()
        while frame is not None and not places.is_users(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is not None:
            line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
            made.place = f"{frame.f_code.co_filename}:{frame.f_lineno}: {line}: "
        return made

    def put(self, x: Any, mask: Any, value: Any) -> None:
        """x[mask] = value"""
        if not is_of_samples(mask) or self.flat(mask) is not value.mask:
            raise Refused(f"x[mask] = y[other]: {COUNT}")
        there = mask.reshape(*mask.shape, *[1] * (x.ndim - mask.ndim))
        x.copy_(torch.where(there, value.rows.reshape(x.shape), x))


def is_of_samples(mask: Any) -> bool:
    """Whether it is a mask with an axis of the samples, whose number torch.export does not know."""
    return (isinstance(mask, torch.Tensor) and mask.dtype == torch.bool
            and any(isinstance(n, torch.SymInt) for n in mask.shape))
