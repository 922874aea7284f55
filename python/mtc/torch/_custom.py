# SPDX-License-Identifier: Apache-2.0
"""Functions with a backward of the caller's own (torch.autograd.Function) in a trace, which records operations alone.

A backward is linear in what it is given. So a function is its forward without a gradient, plus a term that is 0 and has
the gradient: the transpose of the backward, applied to x - x, where the second x has no gradient. The transpose is a
derivative of the backward by what it is given, as in `jvp`.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Iterator

from mtc.torch import _derivative
from mtc.torch._framework import torch


class _Whole(Exception):
    """The function changes its inputs, which PyTorch's own context allows."""


class _Context:
    """What forward and backward share."""

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs
        self.saved_tensors: tuple[Any, ...] = ()
        self.without: list[Any] = []
        self.materializes = True

    def save_for_backward(self, *tensors: Any) -> None:
        self.saved_tensors = tensors

    def save_for_forward(self, *tensors: Any) -> None:
        """For jvp, which no trace takes of it."""

    def mark_non_differentiable(self, *tensors: Any) -> None:
        self.without += tensors

    def set_materialize_grads(self, value: bool) -> None:
        self.materializes = value

    def mark_dirty(self, *_: Any) -> None:
        raise _Whole


@contextlib.contextmanager
def own_gradients() -> Iterator[list[str]]:
    """Within it functions have their own backward. Gives the classes that are used, once the trace is done: a backward
    that is not linear, such as one that clips, is taken for what it is near 0, and a function that changes its inputs
    in place has the derivative of its forward."""
    found: list[str] = []
    before = {cls: vars(cls).get("forward") for cls in _classes(torch.autograd.Function)}
    forwards = {cls: cls.forward for cls in before}
    for cls, forward in forwards.items():
        cls.forward = staticmethod(functools.partial(_forward, cls, forward, found))
    try:
        yield found
    finally:
        for cls, own in before.items():
            if own is None:
                del cls.forward
            else:
                cls.forward = own


def _classes(base: Any) -> Iterator[Any]:
    """The subclasses that are not PyTorch's. `apply` may be bound before a trace; it calls `forward` of the class."""
    for cls in base.__subclasses__():
        if cls.__module__.partition(".")[0] != "torch":
            yield cls
        yield from _classes(cls)


def _forward(cls: Any, forward: Any, found: list[str], *args: Any) -> Any:
    """In the place of the class' own, which PyTorch calls with a context, or without one if it has `setup_context`."""
    alone = torch.autograd.function._is_setup_context_defined(cls.setup_context)
    given = args if alone else args[1:]
    if any(map(_is_differentiated, given)):
        found += [cls.__qualname__] * (cls.__qualname__ not in found)
        with contextlib.suppress(_Whole):
            return _applied(cls, forward, given, alone)
    return forward(*args)


def _is_differentiated(given: Any) -> bool:
    return isinstance(given, torch.Tensor) and given.requires_grad and given.is_floating_point()


def _applied(cls: Any, forward: Any, args: tuple[Any, ...], alone: bool) -> Any:
    context = _Context(tuple(map(_is_differentiated, args)))
    fixed = [a.detach() if isinstance(a, torch.Tensor) else a for a in args]
    made = forward(*fixed) if alone else forward(context, *fixed)
    if alone:
        cls.setup_context(context, tuple(fixed), made)
    results = list(made) if isinstance(made, tuple) else [made]
    has = [isinstance(r, torch.Tensor) and r.is_floating_point() and all(r is not o for o in context.without)
           for r in results]
    weights = _derivative.points_of([torch.zeros_like(r) for r, it_has in zip(results, has) if it_has])
    waiting = iter(weights)
    given = [next(waiting) if it_has else torch.zeros_like(r) if context.materializes and isinstance(r, torch.Tensor)
             else None for r, it_has in zip(results, has)]
    backward = getattr(cls.backward, "__wrapped__", cls.backward)  # of once_differentiable, which refuses a second one
    gradients = backward(context, *given)
    gradients = gradients if isinstance(gradients, tuple) else (gradients,)
    terms = [(gradient * (x - x.detach())).sum() for x, needs, gradient in
             zip(args, context.needs_input_grad, gradients) if needs and gradient is not None]
    results = [r.detach() if isinstance(r, torch.Tensor) else r for r in results]
    if terms and weights:
        slopes = iter(_derivative.derivative_op(sum(terms), weights))
        results = [_with_slope(r, next(slopes)) if it_has else r for r, it_has in zip(results, has)]
    return tuple(results) if isinstance(made, tuple) else results[0]


def _with_slope(result: Any, zero: Any) -> Any:
    """The result, also where the slope is infinite and `zero`, 0 times it, no number."""
    return result + torch.where(zero.detach() == 0, zero, 0.0)
