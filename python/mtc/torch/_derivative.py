# SPDX-License-Identifier: Apache-2.0
"""Derivatives in a trace, of `torch.func`: operations that the compiler differentiates. For autograd's see `_autograd`.

`grad`, `grad_and_value`, `vjp` and `jacrev` are `mtc::derivative` of a number by points, `mtc::argument`. `jvp`,
`jacfwd` and `hessian` are a derivative of a derivative, which is linear in what it is multiplied by. Within `vmap` over
the samples a derivative by an argument with the axis of samples has the part of each sample.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, Callable, Iterator, Sequence

from mtc.torch._framework import pytree, real_dtype, torch

_transforms: Any = importlib.import_module("torch._functorch.eager_transforms")
_vmap: Any = importlib.import_module("torch._functorch.vmap")
_functorch: Any = torch._C._functorch


def _argument(x: Any, of: Any) -> Any:
    return x.clone()


def _derivatives(loss: Any, at: Any) -> Any:
    raise RuntimeError("expected a trace, which alone has derivatives as operations, found numbers")


_argument.__annotations__ = {"x": torch.Tensor, "of": list[torch.Tensor], "return": torch.Tensor}
_derivatives.__annotations__ = {"loss": torch.Tensor, "at": list[torch.Tensor], "return": list[torch.Tensor]}
# A point by which a derivative is taken; another one for each call. Within `vmap` each element of a tensor of `of` has
# a point of its own.
argument_op: Any = torch.library.custom_op("mtc::argument", _argument, mutates_args=())
argument_op.register_fake(lambda x, of: torch.empty_like(x))
# The derivatives of a number by points. PyTorch never computes them: they are in traces alone.
derivative_op: Any = torch.library.custom_op("mtc::derivative", _derivatives, mutates_args=())
derivative_op.register_fake(lambda loss, at: [torch.empty_like(x) for x in at])


@argument_op.register_vmap  # type: ignore[untyped-decorator]
def _arguments_of_samples(info: Any, axes: Any, x: Any, of: Any) -> Any:
    each = x.unsqueeze(0).expand(info.batch_size, *x.shape) if axes[0] is None else x.movedim(axes[0], 0)
    return argument_op(each, [o for o, axis in zip(of, axes[1]) if axis is None]), 0


@derivative_op.register_vmap  # type: ignore[untyped-decorator]
def _derivatives_of_samples(info: Any, axes: Any, loss: Any, at: Any) -> Any:
    """Of several numbers: of their sum, where each has points of its own, else one after the other."""
    if axes[0] is None:
        return derivative_op(loss, at), [None] * len(at)
    if all(axis is not None for axis in axes[1]):
        moved = [x.movedim(axis, 0) for x, axis in zip(at, axes[1])]
        return derivative_op(loss.sum(), moved), [0] * len(at)
    if not isinstance(info.batch_size, int) or any(axis is not None for axis in axes[1]):
        raise RuntimeError("expected a number of derivatives that does not depend on the batch, found vmap over the "
                           "samples: take the derivative of one number for each sample")
    each = [derivative_op(loss[i], at) for i in range(info.batch_size)]
    return [torch.stack(found) for found in zip(*each)], [0] * len(at)


def is_differentiated(x: Any) -> bool:
    """Whether derivatives by it are taken."""
    return isinstance(x, torch.Tensor) and x.dtype in (torch.float32, real_dtype())


EXPECTED = "expected derivatives by tensors of float32, or of float64 with precision=\"f64\""
_samples: list[Any] = []  # of each `vmap` around, a tensor of one of its elements


def points_of(tensors: Sequence[Any]) -> list[Any]:
    """A point by which a derivative is taken for each of them."""
    return [argument_op(x, _samples) for x in tensors]


def _flat_vmap(function: Callable[..., Any], *given: Any, **keywords: Any) -> Any:
    """As PyTorch's function of this name. Within it `_samples` has a tensor of an element."""
    def counted(*args: Any, **kwargs: Any) -> Any:
        level = _functorch.maybe_current_level()
        element = next(x for x in pytree.tree_leaves(args) if isinstance(x, torch.Tensor)
                       and _functorch.is_batchedtensor(x) and _functorch.maybe_get_level(x) == level)
        _samples.append(element)
        try:
            return function(*args, **kwargs)
        finally:
            _samples.pop()

    return _own[3](counted, *given, **keywords)


def _within_vmap_alone() -> bool:
    """Whether all transformations around are `vmap`."""
    stack = _functorch.get_interpreter_stack() or []
    return all(inner.key() == _functorch.TransformType.Vmap for inner in stack)


def _grad_and_value(function: Callable[..., Any], argnums: Any, has_aux: bool, args: Any, kwargs: Any) -> Any:
    """As PyTorch's function of this name, in a trace."""
    numbers = argnums if isinstance(argnums, tuple) else (argnums,)
    if any(not -len(args) <= n < len(args) for n in numbers) or not _within_vmap_alone():
        return _own[0](function, argnums, has_aux, args, kwargs)
    at = [n % len(args) for n in numbers]
    values, structure = pytree.tree_flatten([args[n] for n in at])
    if not values or not all(map(is_differentiated, values)):
        return _own[0](function, argnums, has_aux, args, kwargs)
    points = points_of(values)
    given = dict(zip(at, pytree.tree_unflatten(points, structure)))
    result = function(*(given.get(i, a) for i, a in enumerate(args)), **kwargs)
    loss, aux = result if has_aux else (result, None)
    if not isinstance(loss, torch.Tensor) or loss.ndim or not loss.dtype.is_floating_point:
        found = f"a tensor of shape {list(loss.shape)}" if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise RuntimeError(f"expected a function that returns a number to differentiate, found {found}")
    gradients = tuple(pytree.tree_unflatten(derivative_op(loss, points), structure))
    chosen = gradients if isinstance(argnums, tuple) else gradients[0]
    return chosen, ((loss, aux) if has_aux else loss)


class _Linear:
    """A function at arguments, and its derivative there.

    Attributes:
        out: the function's results, a tree; `aux`: what else it returns.
    """

    def __init__(self, function: Callable[..., Any], args: Any, argnums: Any, has_aux: bool) -> None:
        chosen: Any = args if argnums is None else _transforms._slice_argnums(args, argnums, as_tuple=False)
        values, self._structure = pytree.tree_flatten(chosen)
        if not all(map(is_differentiated, values)):
            raise RuntimeError(EXPECTED)
        self._points = points_of(values)
        given = pytree.tree_unflatten(self._points, self._structure)
        if argnums is not None:
            given = _transforms._replace_args(args, given if isinstance(argnums, tuple) else (given,), argnums)
        result = function(*given)
        self.out: Any = result[0] if has_aux else result
        self.aux: Any = result[1] if has_aux else None

    def pull(self, cotangents: Any) -> list[Any]:
        """The derivatives of the results times these, by each point."""
        pairs = zip(pytree.tree_leaves(self.out), pytree.tree_leaves(cotangents))
        return list(derivative_op(sum((a * b).sum() for a, b in pairs), self._points))

    def of_points(self, made: Sequence[Any]) -> Any:
        """Values of the points in their structure."""
        return pytree.tree_unflatten(list(made), self._structure)


def _vjp(function: Callable[..., Any], *primals: Any, argnums: Any = None, has_aux: bool = False) -> Any:
    """As PyTorch's `vjp`, in a trace."""
    if not _within_vmap_alone():
        return _own[1](function, *primals, argnums=argnums, has_aux=has_aux)
    linear = _Linear(function, primals, argnums, has_aux)
    single = isinstance(linear.out, torch.Tensor)

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: Any = None) -> Any:
        return linear.of_points(linear.pull(cotangents[0] if single or len(cotangents) == 1 else cotangents))

    return (linear.out, pull, linear.aux) if has_aux else (linear.out, pull)


def _jvp(function: Callable[..., Any], primals: Any, tangents: Any, argnums: Any, *, strict: bool = False,
         has_aux: bool) -> Any:
    """As PyTorch's `jvp`, in a trace."""
    if not _within_vmap_alone():
        return _own[2](function, primals, tangents, argnums, strict=strict, has_aux=has_aux)
    linear = _Linear(function, primals, argnums, has_aux)
    results, structure = pytree.tree_flatten(linear.out)
    weights = points_of([torch.zeros_like(result) for result in results])
    pulled = linear.pull(weights)
    along = sum((a * b).sum() for a, b in zip(pulled, pytree.tree_leaves(tangents)))
    made = pytree.tree_unflatten(list(derivative_op(along, weights)), structure)
    return (linear.out, made, linear.aux) if has_aux else (linear.out, made)


_NEW = ((_transforms, "grad_and_value_impl", _grad_and_value), (_transforms, "_vjp_with_argnums", _vjp),
        (_transforms, "_jvp_with_argnums", _jvp), (_vmap, "_flat_vmap", _flat_vmap))
_own = [getattr(module, name) for module, name, _ in _NEW]


@contextlib.contextmanager
def taken_whole() -> Iterator[None]:
    """Within it, derivatives of `torch.func` are these."""
    for module, name, function in _NEW:
        setattr(module, name, function)
    try:
        yield
    finally:
        for (module, name, _), function in zip(_NEW, _own):
            setattr(module, name, function)
