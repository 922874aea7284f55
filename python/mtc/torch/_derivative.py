# SPDX-License-Identifier: Apache-2.0
"""`torch.func.grad` and `torch.func.grad_and_value` in a step that is traced whole: one operation, which the compiler
differentiates.

Derivatives within `torch.func.vmap` are PyTorch's own.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Callable, Iterator

from mtc._trace import Refused, Value, layout
from mtc.torch._convert import Converter, op
from mtc.torch._framework import pytree, torch

_transforms: Any = importlib.import_module("torch._functorch.eager_transforms")


def _argument(x: Any) -> Any:
    return x.clone()


def _derivatives(loss: Any, at: Any) -> Any:
    return [torch.empty_like(x) for x in at]


_argument.__annotations__ = {"x": torch.Tensor, "return": torch.Tensor}
_derivatives.__annotations__ = {"loss": torch.Tensor, "at": list[torch.Tensor], "return": list[torch.Tensor]}
# A point by which a derivative is taken; another one for each call.
argument_op: Any = torch.library.custom_op("mtc::argument", _argument, mutates_args=())
argument_op.register_fake(torch.empty_like)
# The derivatives of a number by points. PyTorch never computes them: they are in traces alone.
derivative_op: Any = torch.library.custom_op("mtc::derivative", _derivatives, mutates_args=())
derivative_op.register_fake(_derivatives)


@op("argument")
def argument(c: Converter, x: Any) -> Value:
    return c.point(x)


@op("derivative")
def derivative(c: Converter, loss: Any, at: Any) -> list[Value]:
    if not isinstance(loss, Value):
        raise Refused("a derivative of what depends on no argument")
    made = []
    for place in at:
        point, axes = c.points[id(place)]
        made.append(layout.transpose(c.graph.derivative(loss, point), axes))
    return made


def _is_plain(tensor: Any) -> bool:
    """Whether it is a tensor of the trace itself, and not one of one sample within `vmap`."""
    return isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float32 and \
        not torch._C._functorch.is_functorch_wrapped_tensor(tensor)


def _grad_and_value(function: Callable[..., Any], argnums: Any, has_aux: bool, args: Any, kwargs: Any) -> Any:
    """As PyTorch's function of this name, in a trace."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if any(not -len(args) <= n < len(args) for n in numbers):
        return _own(function, argnums, has_aux, args, kwargs)
    at = [n % len(args) for n in numbers]
    leaves, structure = pytree.tree_flatten([args[n] for n in at])
    if not leaves or not all(map(_is_plain, leaves)):
        return _own(function, argnums, has_aux, args, kwargs)
    points = [argument_op(x) for x in leaves]
    given = dict(zip(at, pytree.tree_unflatten(points, structure)))
    result = function(*(given.get(i, a) for i, a in enumerate(args)), **kwargs)
    loss, aux = result if has_aux else (result, None)
    if not isinstance(loss, torch.Tensor) or loss.ndim or not loss.dtype.is_floating_point:
        found = f"a tensor of shape {list(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise RuntimeError(f"expected a function that returns a number to differentiate, found {found}")
    gradients = tuple(pytree.tree_unflatten(derivative_op(loss, points), structure))
    chosen = gradients if isinstance(argnums, tuple) else gradients[0]
    return chosen, ((loss, aux) if has_aux else loss)


_own = _transforms.grad_and_value_impl


@contextlib.contextmanager
def taken_whole() -> Iterator[None]:
    """Within it, derivatives of `torch.func` are these."""
    _transforms.grad_and_value_impl = _grad_and_value
    try:
        yield
    finally:
        _transforms.grad_and_value_impl = _own
