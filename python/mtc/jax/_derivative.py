# SPDX-License-Identifier: Apache-2.0
"""`jax.grad` and `jax.value_and_grad` in a step that is traced whole: one operation, which the compiler differentiates.

Derivatives by arrays of samples, within `vmap`, and by functions that were made before the trace are JAX's own: then
the trace has the backward pass, operation by operation.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator, Sequence

import jax
from jax.extend import core

from mtc._trace import Refused, Value
from mtc.jax._reader import UNKNOWN, Reader, rule

_value_and_grad = jax.value_and_grad
_grad = jax.grad
Spec: Any = jax.ShapeDtypeStruct

# Operands: the arrays to differentiate by, `count` of them, then others. Results: those of the jaxpr, of which the
# first is differentiated, and the derivatives.
derivative_p: Any = core.Primitive("mtc_derivative")
derivative_p.multiple_results = True


def _types(*operands: Any, jaxpr: Any, count: int) -> list[Any]:
    return [*jaxpr.out_avals, *operands[:count]]


derivative_p.def_abstract_eval(_types)


@rule("mtc_derivative")
def _derivative(reader: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    graph, count = reader.graph, equation.params["count"]
    arguments = [graph.argument(reader.value(value)) for value in inputs[:count]]
    made = reader.read(equation.params["jaxpr"], [*arguments, *inputs[count:]])
    loss = made[0]
    if loss is UNKNOWN:  # something in it was refused
        return [UNKNOWN] * len(equation.outvars)
    if not isinstance(loss, Value):
        raise Refused("a derivative of what depends on no argument")
    return [*made, *graph.derivatives(loss, arguments)]


_taken: list[bool] = []  # whether a step is being taken whole


def _is_plain(array: Any) -> bool:
    """Whether it is an array of the trace itself, without an axis of samples."""
    return type(array).__name__ == "DynamicJaxprTracer" and all(isinstance(n, int) for n in array.shape) and \
        jax.numpy.issubdtype(array.dtype, jax.numpy.float32)


def _is_of_samples(array: Any) -> bool:
    """Whether it is an array of one sample, within `vmap`."""
    return type(array).__name__ == "BatchTracer"


def _varies(array: Any) -> bool:
    """Whether it is an array of one device, within `shard_map`."""
    return bool(getattr(getattr(array, "aval", None), "vma", None))


_WINDOWS = ("reduce_window_max", "reduce_window")  # MTC differentiates maxima of windows once


def _inner(jaxpr: Any) -> Iterator[Any]:
    """All equations of a jaxpr and of those in it."""
    for equation in jaxpr.eqns:
        yield equation
        for value in equation.params.values():
            for part in value if isinstance(value, (tuple, list)) else (value,):
                part = getattr(part, "jaxpr", part)
                if hasattr(part, "eqns"):
                    yield from _inner(part)


def _is_not_twice(jaxpr: Any) -> bool:
    """Whether it has a derivative of maxima of windows, written out by JAX or as one operation."""
    def is_taken(equation: Any) -> bool:
        return equation.primitive is derivative_p and any(
            inside.primitive.name in _WINDOWS for inside in _inner(equation.params["jaxpr"].jaxpr))

    return any(equation.primitive.name == "select_and_scatter_add" or is_taken(equation)
               for equation in _inner(jaxpr))


def _is_linear(equation: Any) -> bool:
    """Whether the rule of a function of `jax.custom_vjp` is linear in the gradient of the result, as MTC's derivative
    needs it. A clipped gradient is not."""
    bound = equation.primitive.get_bind_params(equation.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    avals = [variable.aval for variable in equation.invars]
    floats = [i for i, aval in enumerate(avals) if jax.numpy.issubdtype(aval.dtype, jax.numpy.floating)]

    def transposed(*xs: Any) -> Any:
        def function(*some: Any) -> Any:
            given = {**dict(enumerate(xs)), **dict(zip(floats, some))}
            made = equation.primitive.bind(*functions, *given.values(), **params)
            return [m for m, v in zip(made, equation.outvars)
                    if jax.numpy.issubdtype(v.aval.dtype, jax.numpy.floating)]

        zeros = tuple(xs[i] for i in floats)
        results, gradients_of = jax.vjp(function, *zeros)
        return jax.linear_transpose(gradients_of, results)(zeros)

    try:
        jax.make_jaxpr(transposed)(*avals)
    except (NotImplementedError, AssertionError, RuntimeError):  # what JAX's transposition raises
        return False
    return True


def _has_own_rule(jaxpr: Any) -> bool:
    """Whether it has a gradient of the user's own that only JAX can take."""
    return any(equation.primitive.name.startswith("custom_vjp_call") and not _is_linear(equation)
               for equation in _inner(jaxpr))


def value_and_grad(fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, holomorphic: bool = False,
                   allow_int: bool = False, **others: Any) -> Callable[..., Any]:
    """As `jax.value_and_grad`."""
    whole = _value_and_grad(fun, argnums, has_aux, holomorphic, allow_int, **others)
    numbers = argnums if isinstance(argnums, (tuple, list)) else (argnums,)

    @functools.wraps(fun)
    def function(*args: Any, **kwargs: Any) -> Any:
        if not _taken or holomorphic or allow_int or any(not -len(args) <= n < len(args) for n in numbers):
            return whole(*args, **kwargs)
        at = [n % len(args) for n in numbers]
        leaves, structure = jax.tree.flatten([args[n] for n in at])
        if not leaves or not all(map(_is_plain, leaves)) or any(map(_varies, leaves)):
            return whole(*args, **kwargs)
        out: list[Any] = []

        def flat(*given: Any) -> Any:
            replaced = dict(zip(at, jax.tree.unflatten(structure, given)))
            result = fun(*(replaced.get(i, a) for i, a in enumerate(args)), **kwargs)
            loss, aux = result if has_aux else (result, None)
            rest, out_structure = jax.tree.flatten(aux)
            out[:] = [out_structure]
            return [loss, *rest]

        closed = jax.make_jaxpr(flat)(*(Spec(a.shape, a.dtype) for a in leaves))
        if closed.out_avals[0].shape != ():
            raise TypeError(f"Gradient only defined for scalar-output functions. Output had shape: "
                            f"{closed.out_avals[0].shape}.")
        operands, jaxpr = _with_constants_as_operands(closed, len(leaves))
        if any(_is_of_samples(operand) or _varies(operand) for operand in operands) or _is_not_twice(
                closed.jaxpr) or _has_own_rule(closed.jaxpr):
            return whole(*args, **kwargs)
        made = derivative_p.bind(*leaves, *operands, jaxpr=jaxpr, count=len(leaves))
        loss, rest, found = made[0], made[1:-len(leaves)], made[-len(leaves):]
        aux = jax.tree.unflatten(out[0], rest)
        gradients = tuple(jax.tree.unflatten(structure, found))
        chosen = gradients if isinstance(argnums, (tuple, list)) else gradients[0]
        return ((loss, aux) if has_aux else loss), chosen

    return function


def _with_constants_as_operands(closed: Any, count: int) -> tuple[list[Any], Any]:
    """What the function reads of the trace around it, as operands after the first ones."""
    jaxpr = closed.jaxpr
    made = jaxpr.replace(invars=[*jaxpr.invars[:count], *jaxpr.constvars], constvars=[],
                         debug_info=jaxpr.debug_info.with_unknown_names() if hasattr(
                             jaxpr.debug_info, "with_unknown_names") else jaxpr.debug_info)
    return list(closed.consts), core.ClosedJaxpr(made, [])


def grad(fun: Callable[..., Any], argnums: Any = 0, has_aux: bool = False, **others: Any) -> Callable[..., Any]:
    """As `jax.grad`."""
    both = value_and_grad(fun, argnums, has_aux, **others)

    @functools.wraps(fun)
    def function(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return function


@contextlib.contextmanager
def taken_whole(function: Callable[..., Any]) -> Iterator[None]:
    """Within it, `jax.grad` and `jax.value_and_grad`, and their names in the function's module, are these."""
    scopes = [vars(jax), getattr(function, "__globals__", {})]
    new = {_grad: grad, _value_and_grad: value_and_grad}
    undo = []
    _taken.append(True)
    for scope in scopes:
        for name, value in list(scope.items()):
            if value is _grad or value is _value_and_grad:
                undo.append((scope, name, value))
                scope[name] = new[value]
    try:
        yield
    finally:
        _taken.pop()
        for scope, name, value in undo:
            scope[name] = value


@contextlib.contextmanager
def installed() -> Iterator[None]:
    """Within it, `jax.grad` and `jax.value_and_grad` are these, which are JAX' own outside of traces of steps."""
    module: Any = jax
    module.grad, module.value_and_grad = grad, value_and_grad
    try:
        yield
    finally:
        module.grad, module.value_and_grad = _grad, _value_and_grad
