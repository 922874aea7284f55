# SPDX-License-Identifier: Apache-2.0
"""ATen operations element by element, casts, comparisons, and reductions."""

from __future__ import annotations

import math
from typing import Any, Optional

import numpy as np

from mtc._trace import Batch, Refused, Value, layout, moves, reductions
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter, op, product

UNARY = {
    "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "exp": "exp", "log": "log", "log1p": "log1p",
    "expm1": "expm1", "sqrt": "sqrt", "rsqrt": "rsqrt", "abs": "abs", "neg": "neg", "sign": "sign", "sin": "sin",
    "cos": "cos", "floor": "floor", "erf": "erf", "erfinv": "erf_inv", "special_erfinv": "erf_inv", "silu": "silu",
    "log_sigmoid": "log_sigmoid", "hardsigmoid": "hard_sigmoid", "hardswish": "hard_silu", "mish": "mish",
    "selu": "selu", "relu6": "relu6", "square": "square", "special_expm1": "expm1", "special_erf": "erf",
    "softsign": "softsign"}
ARITHMETIC = {"mul": "mul", "maximum": "maximum", "minimum": "minimum", "multiply": "mul"}
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


@op(*UNARY)
def unary(c: Converter, value: Any, *_: Any) -> Value:
    return e.unary(UNARY[c.name()], _as(c, value))


def _as(c: Converter, value: Any) -> Value:
    """An operand in the type of the result."""
    made = c.value(value)
    if made.dtype == "i1" and c.dtype() == "i32":
        return e.cast(made, "i32")
    return e.cast(made, c.dtype())


@op("ceil", "trunc", "fix", "frac", "round")
def whole(c: Converter, value: Any, decimals: int = 0) -> Value:
    if decimals:
        raise Refused(f"a rounding to {decimals} decimals: expected whole numbers")
    x = _as(c, value)
    if c.name() == "frac":
        return e.binary("sub", x, e.truncate(x))
    return {"ceil": e.ceil, "round": e.round_half_even}.get(c.name(), e.truncate)(x)


@op(*ARITHMETIC)
def arithmetic(c: Converter, a: Any, b: Any, *_: Any) -> Value:
    if c.dtype() == "i1":
        return e.logical_and(c.value(a), c.value(b))
    return e.binary(ARITHMETIC[c.name()], _as(c, a), _as(c, b))


@op("add", "sub", "subtract")
def add(c: Converter, a: Any, b: Any, alpha: Any = 1) -> Value:
    right = _as(c, b) if alpha == 1 else e.binary("mul", _as(c, b), alpha)
    return e.binary("add" if c.name() == "add" else "sub", _as(c, a), right)


@op("rsub")
def rsub(c: Converter, a: Any, b: Any, alpha: Any = 1) -> Value:
    left = _as(c, a) if alpha == 1 else e.binary("mul", _as(c, a), alpha)
    return e.binary("sub", _as(c, b), left)


@op("addcmul", "addcdiv")
def add_product(c: Converter, start: Any, a: Any, b: Any, factor: Any = 1) -> Value:
    made = e.binary("mul" if c.name() == "addcmul" else "div", _as(c, a), _as(c, b))
    return e.binary("add", _as(c, start), made if factor == 1 else e.binary("mul", made, factor))


@op("lerp")
def lerp(c: Converter, a: Any, b: Any, share: Any) -> Value:
    return e.binary("add", _as(c, a), e.binary("mul", e.binary("sub", _as(c, b), _as(c, a)), _as(c, share)))


@op("div", "divide", "true_divide")
def div(c: Converter, a: Any, b: Any, rounding: Optional[str] = None) -> Value:
    if rounding is not None and c.dtype() == "f32":
        made = e.binary("div", _as(c, a), _as(c, b))
        return e.unary("floor", made) if rounding == "floor" else e.truncate(made)
    if rounding is not None:
        raise Refused(f"a division that rounds ({rounding})")
    return e.binary("div", _as(c, a), _as(c, b))


@op("pow")
def power(c: Converter, base: Any, exponent: Any) -> Value:
    if isinstance(exponent, (int, float)):
        value = _as(c, base)
        if exponent == int(exponent) and abs(exponent) <= 16:
            return e.integer_power(value, int(exponent))
        if abs(exponent) == 0.5:
            return e.unary("sqrt" if exponent > 0 else "rsqrt", value)
    elif isinstance(base, (int, float)) and base > 0:
        return e.unary("exp", e.binary("mul", _as(c, exponent), math.log(base)))
    return e.binary("pow", _as(c, base), _as(c, exponent))


@op("reciprocal")
def reciprocal(c: Converter, value: Any) -> Value:
    return e.binary("div", 1.0, _as(c, value))


@op("gelu")
def gelu(c: Converter, value: Any, approximate: str = "none") -> Value:
    return e.unary("gelu_tanh" if approximate == "tanh" else "gelu", c.value(value))


@op("softplus")
def softplus(c: Converter, value: Any, beta: float = 1, threshold: float = 20) -> Value:
    x = c.value(value)
    return e.unary("softplus", x) if beta == 1 else \
        e.binary("div", e.unary("softplus", e.binary("mul", x, beta)), beta)


@op("elu")
def elu(c: Converter, value: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Value:
    if (scale, input_scale) == (1, 1):
        return e.unary_with("elu", c.value(value), "alpha", alpha)
    if input_scale == 1 and abs(alpha - 1.6732632423543772) < 1e-9:
        return e.unary("selu", c.value(value))
    raise Refused("elu with a scale")


@op("celu")
def celu(c: Converter, value: Any, alpha: float = 1) -> Value:
    return e.unary_with("celu", c.value(value), "alpha", alpha)


@op("leaky_relu")
def leaky_relu(c: Converter, value: Any, slope: float = 0.01) -> Value:
    return e.unary_with("leaky_relu", c.value(value), "negative_slope", slope)


@op("prelu", "_prelu_kernel")
def prelu(c: Converter, value: Any, slope: Any) -> Value:
    x, a = c.value(value), c.value(slope)
    if len(a.shape) == 1 and len(x.shape) > 2:
        a = layout.reshape(a, (a.shape[0], *[1] * (len(x.shape) - 2)))
    return e.select(e.compare("gt", x, 0.0), x, e.binary("mul", x, a))


@op("hardtanh", "clamp", "clamp_min", "clamp_max", "clip")
def clamp(c: Converter, value: Any, *bounds: Any) -> Value:
    low, high = {"clamp_min": (*bounds, None), "clamp_max": (None, *bounds)}.get(c.name(), (*bounds, None, None)[:2])
    x = _as(c, value)
    x = x if low is None else e.binary("maximum", x, _as(c, low))
    return x if high is None else e.binary("minimum", x, _as(c, high))


@op(*COMPARE)
def compare(c: Converter, a: Any, b: Any) -> Value:
    left, right = _promoted(c, a, b)
    return e.compare(c.name(), left, right)


def _promoted(c: Converter, a: Any, b: Any) -> tuple[Value, Value]:
    """Both in one type."""
    left, right = c.value(a), c.value(b)
    kinds = {left.dtype, right.dtype}
    dtype = next(d for d in ("f32", "i32", "i1") if d in kinds)
    dtype = "i32" if dtype == "i1" else dtype
    return e.cast(left, dtype), e.cast(right, dtype)


@op("logical_and", "bitwise_and", "__and__", "__iand__")
def logical_and(c: Converter, a: Any, b: Any) -> Value:
    return e.logical_and(*_booleans(c, a, b))


@op("logical_or", "bitwise_or", "__or__", "__ior__")
def logical_or(c: Converter, a: Any, b: Any) -> Value:
    return e.logical_or(*_booleans(c, a, b))


@op("logical_xor", "bitwise_xor", "__xor__")
def logical_xor(c: Converter, a: Any, b: Any) -> Value:
    left, right = _booleans(c, a, b)
    return e.compare("ne", e.cast(left, "i32"), e.cast(right, "i32"))


@op("logical_not", "bitwise_not")
def logical_not(c: Converter, a: Any) -> Value:
    return e.logical_not(*_booleans(c, a))


def _booleans(c: Converter, *values: Any) -> list[Value]:
    made = [c.value(v) for v in values]
    if c.name().strip("_").endswith(("and", "or", "not")) and "logical" not in c.name() and c.dtype() != "i1":
        raise Refused("bits of integers")
    return [e.cast(v, "i1") for v in made]


@op("where")
def where(c: Converter, condition: Any, a: Any, b: Any) -> Value:
    return e.select(e.cast(c.value(condition), "i1"), _as(c, a), _as(c, b))


@op("masked_fill")
def masked_fill(c: Converter, value: Any, mask: Any, fill: Any) -> Value:
    made = e.select(c.value(mask), _as(c, fill), _as(c, value))
    return layout.broadcast(made, c.shape())


@op("_to_copy", "to", "type_as", "_to_dtype")
def to(c: Converter, value: Any, *_: Any) -> Value:
    return e.cast(c.value(value), c.dtype())


@op("clone", "contiguous", "alias", "lift_fresh_copy", "lift_fresh", "view_of", "positive", "real")
def same(c: Converter, value: Any, *_: Any) -> Value:
    return c.value(value)


@op("detach")
def detach(c: Converter, value: Any) -> Value:
    return c.graph.stop_gradient(c.value(value))


# Reductions


def _axes(value: Value, dims: Any) -> list[int]:
    rank = len(value.shape)
    if dims is None or (isinstance(dims, (list, tuple)) and not dims):
        return list(range(rank))
    return [d % rank for d in (dims if isinstance(dims, (list, tuple)) else [dims])] if rank else []


def _kept(c: Converter, value: Value) -> Value:
    return layout.reshape(value, c.shape())


@op("sum")
def sum_(c: Converter, value: Any, dims: Any = None, keepdim: Any = False, *_: Any) -> Value:
    x = _as(c, value)
    return _kept(c, reductions.reduce("sum", x, _axes(x, dims)))


@op("mean")
def mean(c: Converter, value: Any, dims: Any = None, keepdim: Any = False, *_: Any) -> Value:
    x = _as(c, value)
    return _kept(c, reductions.mean(x, _axes(x, dims if isinstance(dims, (list, tuple, int)) else None)))


@op("amax", "amin")
def extreme(c: Converter, value: Any, dims: Any = None, keepdim: bool = False) -> Value:
    x = c.value(value)
    return _kept(c, reductions.reduce(c.name()[1:], x, _axes(x, dims)))


@op("max", "min")
def extreme_and_place(c: Converter, value: Any, dim: Any = None, keepdim: bool = False) -> Any:
    x = c.value(value)
    if isinstance(dim, Value):
        return e.binary("maximum" if c.name() == "max" else "minimum", *_promoted(c, value, dim))
    found = reductions.reduce(c.name(), x, _axes(x, dim))
    if dim is None:
        return found
    place = reductions.argmax(x if c.name() == "max" else e.unary("neg", x), dim)
    return [layout.expand_dims(v, (dim % len(x.shape),)) for v in (found, place)] if keepdim else [found, place]


@op("argmax")
def argmax(c: Converter, value: Any, dim: Any = None, keepdim: bool = False) -> Value:
    x = c.value(value)
    if dim is None:
        raise Refused("argmax over all samples")
    return _kept(c, reductions.argmax(x, dim))


@op("topk")
def topk(c: Converter, value: Any, count: int, dim: int = -1, largest: bool = True, in_order: bool = True) -> Any:
    x = c.value(value)
    return reductions.top_k([x, moves.indices(x, dim)], count, dim, smallest=not largest)


@op("sort", "argsort")
def sort(c: Converter, value: Any, *options: Any) -> Any:
    dim, descending = options[-2:]  # after `stable`, which it always is
    x = c.value(value)
    found = reductions.top_k([x, moves.indices(x, dim)], None, dim, smallest=not descending)
    return found[1] if c.name() == "argsort" else found


@op("any", "all")
def logic(c: Converter, value: Any, dims: Any = None, keepdim: bool = False) -> Value:
    x = e.cast(c.value(value), "i1")
    return _kept(c, reductions.reduce_logic(c.name() == "all", x, _axes(x, dims)))


@op("var", "std", "var_mean", "std_mean")
def variance(c: Converter, value: Any, dims: Any = None, correction: Any = 1, keepdim: Any = False) -> Any:
    x = c.value(value)
    axes = _axes(x, dims if isinstance(dims, (list, tuple, int)) and not isinstance(dims, bool) else None)
    correction = 1 if correction is None or correction is True else correction
    middle = reductions.mean(x, axes)
    spread = e.unary("square", e.binary("sub", x, _expanded(middle, axes, x)))
    sizes = [x.shape[i] for i in axes]
    batches = [n for n in sizes if isinstance(n, Batch)]
    static = product([n for n in sizes if not isinstance(n, Batch)])
    total = reductions.reduce("sum", spread, axes)
    count = x.graph.count(batches[0] * static) if batches else x.graph.constant(np.float32(static))
    made = e.binary("div", total, e.binary("sub", count, float(correction)) if correction else count)
    made = _root(made) if c.name().startswith("std") else made
    shaped = [_expanded(v, axes, x) if keepdim else v for v in (made, middle)]
    return shaped if c.name().endswith("mean") else shaped[0]


def _expanded(value: Value, axes: list[int], like: Value) -> Value:
    return layout.expand_dims(value, sorted(axes)) if len(value.shape) != len(like.shape) else value


@op("softmax", "_softmax", "log_softmax", "_log_softmax", "special_softmax", "special_log_softmax")
def softmax(c: Converter, value: Any, dim: int, *_: Any) -> Value:
    return reductions.softmax(e.cast(c.value(value), "f32"), dim, log="log" in c.name())


@op("logsumexp", "special_logsumexp")
def logsumexp(c: Converter, value: Any, dims: Any, keepdim: bool = False) -> Value:
    x = c.value(value)
    axes = _axes(x, dims)
    most = reductions.reduce("max", x, axes)
    total = reductions.reduce("sum", e.unary("exp", e.binary("sub", x, _expanded(most, axes, x))), axes)
    return _kept(c, e.binary("add", e.unary("log", total), most))


@op("cumsum")
def cumsum(c: Converter, value: Any, dim: int, *_: Any) -> Value:
    return reductions.cumsum(_as(c, value), dim)


@op("norm", "linalg_vector_norm")
def norm(c: Converter, value: Any, order: Any = 2, dims: Any = None, keepdim: bool = False, *_: Any) -> Value:
    x = c.value(value)
    if order not in (None, 2, 2.0):
        raise Refused(f"a norm of order {order}")
    return _kept(c, _root(reductions.reduce("sum", e.unary("square", x), _axes(x, dims))))


def _root(value: Value) -> Value:
    """The square root with the gradient 0 at 0, which PyTorch's norms and deviations have there."""
    zero = e.compare("eq", value, 0.0)
    one, nothing = e.as_value(value, 1.0), e.as_value(value, 0.0)
    return e.select(zero, nothing, e.unary("sqrt", e.select(zero, one, value)))


@op("one_hot")
def one_hot(c: Converter, value: Any, depth: int = -1) -> Value:
    if depth < 0:
        raise Refused("a one_hot of as many classes as the data has: give num_classes")
    return moves.one_hot(c.value(value), depth, c.dtype())
