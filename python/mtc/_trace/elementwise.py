# SPDX-License-Identifier: Apache-2.0
"""Element by element, with NumPy's broadcasting. Of constants alone the result is a constant."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence, Union

import numpy as np

from mtc._trace import patterns
from mtc._trace.layout import broadcast, repeats
from mtc._trace.values import Batch, Refused, Shape, Size, Value

Operand = Union[Value, float, int, bool]

_erf = np.vectorize(__import__("math").erf, otypes=[np.float64])

# mt's op: what it is of constants.
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square, "exp": np.exp, "log": np.log,
    "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "tanh": np.tanh,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "relu": lambda a: np.maximum(a, 0), "sin": np.sin, "cos": np.cos,
    "floor": np.floor, "erf": lambda a: _erf(a) if np.size(a) else a,
}
# Without a rule for constants: they stay operations.
UNARY_OPS = {"erf_inv", "relu6", "selu", "gelu", "gelu_tanh", "silu", "softplus", "softsign", "log_sigmoid",
             "hard_sigmoid", "hard_silu", "hard_tanh", "mish"}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "pow": np.power,
}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal,
}


_ABSORBED = {("maximum", -np.inf), ("minimum", np.inf)}


def as_value(like: Value, operand: Operand) -> Value:
    """A number as a constant of the type of another value."""
    return operand if isinstance(operand, Value) else like.graph.constant(np.asarray(operand), like.dtype)


def common_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape that all broadcast to."""
    rank = max(len(s) for s in shapes)
    result: list[Size] = []
    for column in zip(*((1,) * (rank - len(s)) + tuple(s) for s in shapes)):
        sizes = {n for n in column if n != 1} or {1}
        if len(sizes) > 1:
            raise Refused(f"expected sizes that broadcast, found {' and '.join(map(str, sizes))}")
        result.append(sizes.pop())
    return tuple(result)


def apply(op: str, values: Sequence[Value], dtype: str, fold: Optional[Callable[..., Any]] = None,
          attributes: str = "", kind: str = "") -> Value:
    """One operation of `mt` on values that broadcast. `fold`: what it is of constants."""
    shape = common_shape([v.shape for v in values])
    _check_pairs(op, values, shape)
    graph = values[0].graph
    if fold is not None and all(v.constant is not None for v in values):
        rank = len(shape)
        arrays = [v.constant for v in values if v.constant is not None]
        with np.errstate(all="ignore"):
            array = fold(*(a.reshape((*[1] * (rank - a.ndim), *a.shape)) for a in arrays))
        return graph.repeated(np.asarray(array), shape, dtype)
    small = [_small(v) for v in values]
    values = small if common_shape([v.shape for v in small]) == shape else values
    names = ", ".join(f"{{{i}}}" for i in range(len(values)))
    return graph.operation(op, values, f'graph.elementwise "{op}"({names}){attributes}', shape, dtype, kind=kind)


def _check_pairs(op: str, values: Sequence[Value], shape: Shape) -> None:
    """Refuses operands that have the batch as different axes."""
    if sum(isinstance(n, Batch) for n in shape) < 2:
        return
    found: set[int] = set()
    for v in values:
        own = [i + len(shape) - v.rank for i, n in enumerate(v.shape)
               if isinstance(n, Batch) and v.constant is None and i not in repeats(v)]
        if len(own) == 1:
            found.update(own)
    if len(found) > 1:
        raise Refused(f"{op} of every sample with every other one: two operands have the batch as different axes of "
                      f"{list(shape)}; give both as many axes")


def _small(value: Value) -> Value:
    """A constant without the axes in front, and only once along axes where all elements are equal: it broadcasts."""
    if value.constant is None:
        return value
    shape = value.constant.shape
    first = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return value.graph.repeated(value.constant.reshape(shape[first:]), shape[first:], value.dtype)


def unary(op: str, value: Value) -> Value:
    """mt's op on f32, such as "exp"; on i32 "neg", "abs", "sign" and "square"."""
    if op not in UNARY and op not in UNARY_OPS:
        raise Refused(f"mt has no {op}")
    if op == "neg" and value.op == "neg":
        return value.operands[0]
    if value.dtype != "f32":
        if op == "neg":
            return binary("sub", as_value(value, 0), value)
        if op in ("abs", "sign") and value.constant is None:
            negative = {"abs": unary("neg", value), "sign": as_value(value, -1)}[op]
            rest = value if op == "abs" else select(compare("gt", value, 0), as_value(value, 1), as_value(value, 0))
            return select(compare("lt", value, 0), negative, rest)
        if op == "square":
            return binary("mul", value, value)
        if value.constant is None:
            raise Refused(f"{op} of integers")
    if value.constant is not None and op in UNARY:
        return apply(op, (value,), value.dtype, UNARY[op])
    return value.graph.operation(op, (value,), f'graph.elementwise "{op}"({{0}})', value.shape, value.dtype)


def unary_with(op: str, value: Value, parameter: str, number: float) -> Value:
    """leaky_relu (negative_slope), elu (alpha), celu (alpha)."""
    text = f'graph.elementwise "{op}"({{0}}) {{{{{parameter} = {number:.9e} : f32}}}}'
    return value.graph.operation(op, (value,), text, value.shape, "f32")


def binary(op: str, a: Operand, b: Operand) -> Value:
    """"add", "sub", "mul", "div", "maximum", "minimum" or "pow" (a > 0)."""
    a, b = _pair(a, b)
    if a.dtype != b.dtype:
        raise Refused(f"expected operands of one type, found {a.dtype} and {b.dtype}")
    if a.dtype == "i1":
        raise Refused(f"{op} of booleans")
    if a.dtype == "i32" and op in ("div", "pow") and (a.constant is None or b.constant is None):
        raise Refused(f"{op} of integers")
    same = _same(op, a, b) or _whole(op, a, b)
    if same is not None:
        return same
    return apply(op, (a, b), a.dtype, BINARY[op])


def _pair(a: Operand, b: Operand) -> tuple[Value, Value]:
    if isinstance(a, Value):
        return a, as_value(a, b)
    assert isinstance(b, Value)
    return as_value(b, a), b


def _same(op: str, a: Value, b: Value) -> Optional[Value]:
    """What needs no operation: + 0, * 1, / 1; a number of samples times a factor."""
    if (op, a.scalar) in _ABSORBED or (op, b.scalar) in _ABSORBED:
        kept = b if (op, a.scalar) in _ABSORBED else a
        return broadcast(kept, common_shape([a.shape, b.shape]))
    neutral = {"add": 0, "sub": 0, "mul": 1, "div": 1}.get(op)
    shape = common_shape([a.shape, b.shape])
    if neutral is not None and b.scalar == neutral and a.shape == shape:
        return a
    if op in ("add", "mul") and a.scalar == neutral and b.shape == shape:
        return b
    if op == "mul" and not shape:
        for count, factor in ((a, b), (b, a)):
            number = factor.scalar
            if count.count and number is not None and number >= 1 and number == int(number):
                return a.graph.count(Batch(count.count * int(number)), a.dtype)
    return None


def _whole(op: str, a: Value, b: Value) -> Optional[Value]:
    """What this operation is the end of."""
    if a.constant is not None or b.constant is not None:
        return None
    if op == "div":
        found = patterns.softmax(a, b)
        return None if found is None else along("softmax", *found)
    if op == "sub":
        found = patterns.log_softmax(a, b)
        return along("log_softmax", *found) if found is not None else patterns.entropy_difference(a, b)
    if op == "add":
        terms = patterns.softplus(a, b)
        if terms is not None:
            p, q = terms
            return binary("add", unary("softplus", binary("sub", p, q)), q)
    return None


def along(op: str, value: Value, axis: int = -1) -> Value:
    """softmax or log_softmax along an axis."""
    axis %= value.rank
    if isinstance(value.shape[axis], Batch):
        raise Refused("an operation along the batch")
    return value.graph.operation(op, (value,), f'graph.along "{op}"({{0}}) dim = {axis}', value.shape, "f32", (axis,))


def compare(kind: str, a: Operand, b: Operand) -> Value:
    """"eq", "ne", "lt", "le", "gt" or "ge", as i1."""
    a, b = _pair(a, b)
    if a.count and b.scalar == 0:  # a step has one sample or more
        return broadcast(a.graph.constant(kind in ("gt", "ge", "ne")), common_shape([a.shape, b.shape]))
    if a.dtype == "i1":
        a, b = cast(a, "i32"), cast(b, "i32")
    return apply("compare", (a, b), "i1", COMPARE[kind], f" {{{{kind = #mt<compare_kind {kind}>}}}}", kind)


def select(condition: Value, a: Operand, b: Operand) -> Value:
    """a where the condition holds, else b."""
    a, b = _pair(a, b)
    if condition.scalar is not None:
        shape = common_shape([condition.shape, a.shape, b.shape])
        return broadcast(a if condition.scalar else b, shape)
    if condition.op == "compare" and b.op == "softplus" and condition.operands[0] is condition.operands[1]:
        return b  # of NaN, where it is not a number itself
    if a.dtype == "i1":
        return logical_or(logical_and(condition, a), logical_and(logical_not(condition), b))
    return apply("select", (condition, a, b), a.dtype, np.where)


def logical_and(a: Value, b: Value) -> Value:
    """Both."""
    for one, other in ((a, b), (b, a)):
        if one.scalar is not None and one.scalar:
            return broadcast(other, common_shape([a.shape, b.shape]))
    if {a.kind, b.kind} == {"eq", "lt"} and a.operands == b.operands:
        return broadcast(a.graph.constant(False), a.shape)
    return apply("and", (a, b), "i1", np.logical_and)


def logical_not(a: Value) -> Value:
    """The other."""
    return apply("not", (a,), "i1", np.logical_not)


def logical_or(a: Value, b: Value) -> Value:
    """One of them or both."""
    return logical_not(logical_and(logical_not(a), logical_not(b)))


def cast(value: Value, dtype: str) -> Value:
    """Elements of another type; of i1 whether they are not 0."""
    if value.dtype == dtype:
        return value
    if value.constant is not None:
        return value.graph.repeated(value.constant.astype({"f32": "f4", "i32": "i4", "i1": "?"}[dtype]), value.shape,
                                    dtype)
    if value.op == "cast" and value.dtype == "f32" and value.operands[0].dtype == dtype:
        return value.operands[0]  # there and back again
    if value.count and dtype == "f32":
        return broadcast(value.graph.count(Batch(value.count)), value.shape)
    if dtype == "f32" and isinstance(value.info, tuple) and value.info[0] == "rounded":
        return value.info[1]  # type: ignore[no-any-return]  # a sum of integers as a number
    if dtype == "i1":
        return compare("ne", value, 0)
    return value.graph.operation("cast", (value,), 'graph.elementwise "cast"({0})', value.shape, dtype)


def rounded(value: Value, dtype: str) -> Value:
    """Floats as "bf16" or "f16" holds them."""
    if value.op == f"round {dtype}":
        return value
    return value.graph.operation(f"round {dtype}", (value,), f"graph.round {{0}} to {dtype}", value.shape, "f32")


def integer_power(value: Value, exponent: int) -> Value:
    """Products and a quotient, which hold for negative numbers too."""
    if exponent < 0:
        return binary("div", as_value(value, 1.0), integer_power(value, -exponent))
    if exponent == 0:
        return broadcast(as_value(value, 1), value.shape)
    if exponent == 2:
        return unary("square", value)
    half = integer_power(value, exponent // 2) if exponent > 1 else value
    if exponent == 1:
        return value
    squared = unary("square", half)
    return binary("mul", squared, value) if exponent % 2 else squared


def ceil(value: Value) -> Value:
    """The next whole number that is not less."""
    return unary("neg", unary("floor", unary("neg", value)))


def truncate(value: Value) -> Value:
    """Without the part behind the point."""
    return binary("mul", unary("sign", value), unary("floor", unary("abs", value)))


def round_half_even(value: Value) -> Value:
    """The nearest whole number; of two that are as near, the even one. Exact, as value - floor(value) is."""
    below = unary("floor", value)
    rest = binary("sub", value, below)
    half = binary("mul", below, 0.5)
    odd = compare("ne", unary("floor", half), half)
    up = logical_or(compare("gt", rest, 0.5), logical_and(compare("eq", rest, 0.5), odd))
    return binary("add", below, cast(up, "f32"))


def round_half_away(value: Value) -> Value:
    """The nearest whole number; of two that are as near, the one away from 0."""
    size = unary("abs", value)
    below = unary("floor", size)
    up = compare("ge", binary("sub", size, below), 0.5)
    return binary("mul", unary("sign", value), binary("add", below, cast(up, "f32")))


def remainder(a: Value, b: Value) -> Value:
    """What is left of a after as many whole b as are in it, towards 0: it has the sign of a.

    It is that of C's fmod for fewer than 2^68 of them, and for any number of them where b is a power of 2.
    """
    exact = b.scalar is not None and bool(np.frexp(b.scalar)[0] in (0.5, -0.5))
    for scale in () if exact else (2.0**44, 2.0**22):
        a = _remainder(a, binary("mul", b, scale))
    return _remainder(a, b)


def _remainder(a: Value, b: Value) -> Value:
    """The product of b and their number n is taken away exactly, in two parts: for n up to 2^24. The gradient to b is
    -n."""
    whole = truncate(binary("div", a, b))
    product = binary("mul", whole, b)
    high, low = _halves(whole)
    top, rest = _halves(b)
    error = binary("sub", binary("mul", high, top), product)
    for x, y in ((high, rest), (low, top), (low, rest)):
        error = binary("add", error, binary("mul", x, y))
    left = binary("sub", binary("sub", a, product), error)
    size = unary("abs", b)
    sign = unary("sign", a)
    # The quotient is rounded, so n may be one too large or too small.
    signed = binary("mul", left, sign)
    step = select(compare("lt", signed, 0.0), size, select(compare("ge", signed, size), unary("neg", size), 0.0))
    left = binary("add", left, binary("mul", step, sign))
    return select(compare("lt", unary("abs", a), size), a, left)


def _halves(value: Value) -> tuple[Value, Value]:
    """Two numbers of 12 bits each whose sum the value is."""
    scaled = binary("mul", value, 4097.0)
    high = binary("sub", scaled, binary("sub", scaled, value))
    return high, binary("sub", value, high)
