# SPDX-License-Identifier: Apache-2.0
"""Element by element, with NumPy's broadcasting. Of constants alone the result is a constant."""

from __future__ import annotations

from typing import Any, Callable, Optional, Sequence

import numpy as np

from mtc._trace import patterns
from mtc._trace.layout import broadcast, repeats
from mtc._trace.text import number as typed_number
from mtc._trace.values import Batch, Operand, Refused, Shape, Size, Value, dtype_of_elements

_erf = np.vectorize(__import__("math").erf, otypes=[np.float64])

# mt's op: what it is of constants.
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "square": np.square, "exp": np.exp, "log": np.log,
    "log1p": np.log1p, "expm1": np.expm1, "sqrt": np.sqrt, "rsqrt": lambda a: 1 / np.sqrt(a), "tanh": np.tanh,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)), "relu": lambda a: np.maximum(a, 0), "sin": np.sin, "cos": np.cos,
    "floor": np.floor, "erf": lambda a: _erf(a) if np.size(a) else a, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil, "trunc": np.trunc, "round_nearest_even": np.rint,
    "round_nearest_afz": lambda a: np.copysign(np.floor(np.abs(a) + 0.5), a),
}
# Without a rule for constants: they stay operations.
UNARY_OPS = {"erf_inv", "relu6", "selu", "gelu", "gelu_tanh", "silu", "softplus", "softsign", "log_sigmoid",
             "hard_sigmoid", "hard_silu", "hard_tanh", "mish", "erfc", "lgamma",
             "digamma"}
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum,
    "minimum": np.minimum, "pow": np.power, "atan2": np.arctan2, "fmod": np.fmod,
}
_OF_FLOATS = ("div", "pow", "atan2", "fmod")
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
    """mt's op on f32, such as "exp", or a function that the compiler has a formula for, such as "tan"; on i32 "neg",
    "abs", "sign" and "square"."""
    if op not in UNARY and op not in UNARY_OPS:
        raise Refused(f"mt has no {op}")
    if op == "neg" and value.op == "neg":
        return value.operands[0]
    if value.dtype != "f32":
        if op == "neg":
            return 0 - value
        if op in ("abs", "sign") and value.constant is None:
            negative = {"abs": -value, "sign": as_value(value, -1)}[op]
            rest = value if op == "abs" else select(compare("gt", value, 0), as_value(value, 1), as_value(value, 0))
            return select(compare("lt", value, 0), negative, rest)
        if op == "square":
            return value * value
        if value.constant is None:
            raise Refused(f"{op} of integers")
    if value.constant is not None and op in UNARY:
        return apply(op, (value,), value.dtype, UNARY[op])
    return value.graph.operation(op, (value,), f'graph.elementwise "{op}"({{0}})', value.shape, value.dtype)


def unary_with(op: str, value: Value, parameter: str, number: float) -> Value:
    """leaky_relu (negative_slope), elu (alpha), celu (alpha)."""
    if not isinstance(number, (int, float)):
        raise Refused(f"{parameter} that is made of the number of samples: give a number")
    text = f'graph.elementwise "{op}"({{0}}) {{{{{parameter} = {typed_number(number)}}}}}'
    return value.graph.operation(op, (value,), text, value.shape, "f32")


def binary(op: str, a: Operand, b: Operand) -> Value:
    """"add", "sub", "mul", "div", "maximum", "minimum", "pow" (a > 0), "atan2" or "fmod"."""
    a, b = _pair(a, b)
    if a.dtype != b.dtype:
        raise Refused(f"expected operands of one type, found {a.dtype} and {b.dtype}")
    if a.dtype == "i1":
        raise Refused(f"{op} of booleans")
    if a.dtype == "i32" and op in _OF_FLOATS and (a.constant is None or b.constant is None):
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
            return unary("softplus", p - q) + q
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
        return condition & a | ~condition & b
    return apply("select", (condition, a, b), a.dtype, np.where)


def logical_and(a: Value, b: Value) -> Value:
    """Both."""
    for one, other in ((a, b), (b, a)):
        if one.scalar is not None:
            return broadcast(other if one.scalar else one, common_shape([a.shape, b.shape]))
    if {a.kind, b.kind} == {"eq", "lt"} and a.operands == b.operands:
        return broadcast(a.graph.constant(False), a.shape)
    return apply("and", (a, b), "i1", np.logical_and)


def logical_not(a: Value) -> Value:
    """The other."""
    return apply("not", (a,), "i1", np.logical_not)


def logical_or(a: Value, b: Value) -> Value:
    """One of them or both."""
    return ~(~a & ~b)


def cast(value: Value, dtype: str) -> Value:
    """Elements of another type; of i1 whether they are not 0."""
    if value.dtype == dtype:
        return value
    if value.constant is not None:
        return value.graph.repeated(value.constant.astype(dtype_of_elements(dtype)), value.shape,
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
        return 1.0 / integer_power(value, -exponent)
    if exponent == 0:
        return broadcast(as_value(value, 1), value.shape)
    if exponent == 2:
        return unary("square", value)
    half = integer_power(value, exponent // 2) if exponent > 1 else value
    if exponent == 1:
        return value
    squared = unary("square", half)
    return squared * value if exponent % 2 else squared


def below_zero(x: Value) -> Value:
    """Whether a number has the sign of negative ones: -0 too."""
    return compare("lt", x, 0.0) | compare("eq", 1.0 / x, -np.inf)


def polynomial(x: Value, factors: Sequence[float]) -> Value:
    """By Horner's rule; the factor of the lowest power comes first."""
    made = as_value(x, factors[-1])
    for factor in factors[-2::-1]:
        made = made * x + factor
    return made
