# SPDX-License-Identifier: Apache-2.0
"""What a step picks by a mask, `x[mask]`, computes element by element, and puts back by the same mask.

A plan has no tensors of as many elements as a mask is true for. It computes all elements, and `where` takes those of
the mask.
"""

from __future__ import annotations

import operator
from typing import Any, Callable, Mapping, Sequence

from mtc._trace import Refused
from mtc.torch._framework import torch

_UNARY = {"abs", "sign", "sqrt", "rsqrt", "square", "neg", "exp", "log", "tanh", "reciprocal", "clone"}
_BINARY = {"add", "sub", "mul", "div", "true_divide", "pow", "maximum", "minimum"}


class Masked:
    """The elements of a tensor for which a mask is true."""

    def __init__(self, whole: Any, mask: Any) -> None:
        self.whole, self.mask = whole, mask

    @classmethod
    def __torch_function__(cls, function: Any, _types: Any, args: Sequence[Any] = (),
                           kwargs: Any = None) -> Any:
        return apply(function.__name__, function, args, kwargs or {})

    def __neg__(self) -> Any:
        return apply("neg", operator.neg, (self,), {})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        function = getattr(torch.Tensor, name)
        return lambda *args, **kwargs: apply(name, function, (self, *args), kwargs)


def apply(name: str, function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A function of elements that were picked by one mask, and of numbers."""
    masked = [a for a in args if isinstance(a, Masked)]
    alike = all(m.mask is masked[0].mask for m in masked) and all(
        isinstance(a, (Masked, float, int)) or isinstance(a, torch.Tensor) and a.numel() == 1 for a in args)
    if not alike or kwargs or name not in _UNARY | _BINARY:
        raise Refused(f"{name}: as many elements as a mask is true for, which the data says: use torch.where")
    return Masked(function(*(a.whole if isinstance(a, Masked) else a for a in args)), masked[0].mask)


def add_operators(owner: type, own_apply: Callable[..., Any], names: Sequence[str], reflected: bool) -> None:
    """Gives a class Python's operators of these names, each a call of `own_apply` as of `apply`."""
    def method_of(name: str, turn: bool) -> Any:
        plain = getattr(operator, name)

        def method(self: Any, other: Any) -> Any:
            def function(a: Any, b: Any) -> Any:
                return plain(b, a) if turn else plain(a, b)
            return own_apply({"truediv": "div"}.get(name, name), function, (self, other), {})
        return method

    for name in names:
        setattr(owner, f"__{name}__", method_of(name, False))
        if reflected:
            setattr(owner, f"__r{name}__", method_of(name, True))


ARITHMETIC = ("add", "sub", "mul", "truediv", "pow")
add_operators(Masked, apply, ARITHMETIC, True)


def picked(tensor: Any, index: Any) -> Any:
    """`tensor[index]` of a mask of all its elements; None for another index."""
    is_mask = isinstance(index, torch.Tensor) and index.dtype == torch.bool and index.ndim
    return Masked(tensor, index) if is_mask and index.shape == tensor.shape else None


def put(tensor: Any, index: Any, value: Any) -> bool:
    """`tensor[index] = value` of a mask of all its elements; False for another index."""
    if picked(tensor, index) is None:
        return False
    if isinstance(value, Masked):
        if value.mask is not index:
            raise Refused("elements of one mask in the place of those of another: use torch.where")
        value = value.whole
    elif isinstance(value, torch.Tensor) and value.numel() != 1:
        return False
    tensor.copy_(torch.where(index, value, tensor))
    return True
