# SPDX-License-Identifier: Apache-2.0
"""`math`, `max`, `min` and `float` as an optimizer's code calls them, for numbers and tensors of a trace."""

from __future__ import annotations

import builtins
import contextlib
import math
from typing import Any, Callable, Iterator, Sequence

from mtc.torch._framework import torch
from mtc.torch._scalars import FUNCTIONS, Scalar, compute, tensor_of


def _extremum(name: str) -> Callable[..., Any]:
    plain = getattr(builtins, name)

    def function(*operands: Any, **keywords: Any) -> Any:
        values = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
        traced = [v for v in values if isinstance(v, torch.Tensor) or isinstance(v, Scalar) and v.tree is None]
        if keywords or not traced:
            return plain(*operands, **keywords)
        made = tensor_of(values[0])
        for value in values[1:]:
            made = getattr(torch, name + "imum")(*map(_at_least_tensor, (made, tensor_of(value))))
        recorder = next((v.recorder for v in values if isinstance(v, Scalar)), None)
        return made if recorder is None else recorder.unknown(made)
    return function


def _at_least_tensor(given: Any) -> Any:
    return given if isinstance(given, torch.Tensor) else torch.as_tensor(given, dtype=torch.float64)


def _of_math(name: str) -> Callable[..., Any]:
    plain = getattr(math, name)

    def function(*operands: Any) -> Any:
        if any(isinstance(o, (Scalar, torch.Tensor)) for o in operands):
            return compute(name, *(o.item() if isinstance(o, torch.Tensor) else o for o in operands))
        return plain(*operands)
    return function


class _Kind(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, builtins.float)


class _Float(builtins.float, metaclass=_Kind):
    """`float`, of which a number or tensor of a trace stays one."""

    def __new__(cls, *given: Any) -> Any:
        if given and isinstance(given[0], torch.Tensor):
            return given[0].item()
        return given[0] if given and isinstance(given[0], Scalar) else builtins.float(*given)


class _Math:
    """`math`, whose functions also take numbers of a trace."""

    def __getattr__(self, name: str) -> Any:
        return _of_math(name) if name in FUNCTIONS else getattr(math, name)


@contextlib.contextmanager
def traceable(scopes: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Within it, `math`, `max`, `min` and `float` of these modules' globals take numbers of a trace."""
    undo: list[tuple[dict[str, Any], str, Any]] = []
    missing = object()
    shims = {id(getattr(math, name)): _of_math(name) for name in FUNCTIONS if hasattr(math, name)}
    for scope in scopes:
        changes: dict[str, Any] = {"max": _extremum("max"), "min": _extremum("min"), "float": _Float}
        for key, value in scope.items():
            if value is math:
                changes[key] = _Math()
            elif id(value) in shims:
                changes[key] = shims[id(value)]
        for key, value in changes.items():
            undo.append((scope, key, scope.get(key, missing)))
            scope[key] = value
    try:
        yield
    finally:
        for scope, key, value in reversed(undo):
            if value is missing:
                del scope[key]
            else:
                scope[key] = value
