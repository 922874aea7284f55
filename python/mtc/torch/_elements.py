# SPDX-License-Identifier: Apache-2.0
"""ATen operations element by element, casts and comparisons."""

from __future__ import annotations

import math
from typing import Any, Optional

from mtc._trace import Refused, Value, gradients, integers, layout
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter
from mtc.torch._handlers import op

UNARY = {
    "relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "exp": "exp", "log": "log", "log1p": "log1p",
    "expm1": "expm1", "sqrt": "sqrt", "rsqrt": "rsqrt", "abs": "abs", "neg": "neg", "sign": "sign", "sin": "sin",
    "sgn": "sign", "cos": "cos", "floor": "floor", "erf": "erf", "erfinv": "erf_inv", "special_erfinv": "erf_inv",
    "silu": "silu", "log_sigmoid": "log_sigmoid", "hardsigmoid": "hard_sigmoid", "hardswish": "hard_silu",
    "mish": "mish", "selu": "selu", "relu6": "relu6", "square": "square", "special_expm1": "expm1",
    "special_erf": "erf", "softsign": "softsign", "tan": "tan", "atanh": "atanh", "arctanh": "atanh", "ceil": "ceil",
    "trunc": "trunc", "fix": "trunc"}
MOST_FACTORS = 64  # of a power that is made of products
COMPARE = ("eq", "ne", "lt", "le", "gt", "ge")


@op(*UNARY)
def unary(c: Converter, value: Any, *_: Any) -> Value:
    x = as_result(c, value)
    made = e.unary(UNARY[c.name()], x)
    if UNARY[c.name()] == "sign" and x.dtype == "f32":  # PyTorch's is 0 of a NaN, which goes through mt.sign
        return e.select(e.compare("eq", x, x), made, e.as_value(x, 0.0))
    return made


def as_result(c: Converter, value: Any) -> Value:
    """An operand in the type of the result."""
    made = c.value(value)
    if made.dtype == "i1" and c.dtype() == "i32":
        return e.cast(made, "i32")
    return e.cast(made, c.dtype())


@op("frac", "round")
def whole(c: Converter, value: Any, decimals: int = 0) -> Value:
    x = as_result(c, value)
    if decimals:
        ten = float(10 ** abs(decimals))
        to, back = ("mul", "div") if decimals > 0 else ("div", "mul")
        return e.binary(back, e.unary("round_nearest_even", e.binary(to, x, ten)), ten)
    if c.name() == "frac":
        return x - e.unary("trunc", x)
    return e.unary("round_nearest_even", x)


@op("mul", "multiply")
def multiply(c: Converter, a: Any, b: Any, *_: Any) -> Value:
    if c.dtype() == "i1":
        return c.value(a) & c.value(b)
    return as_result(c, a) * as_result(c, b)


@op("maximum", "minimum", "fmax", "fmin")
def extremum(c: Converter, a: Any, b: Any) -> Value:
    """`fmax` and `fmin` give the other one for what is not a number."""
    left, right = as_result(c, a), as_result(c, b)
    made = gradients.extremum({"fmax": "maximum", "fmin": "minimum"}.get(c.name(), c.name()), left, right)
    if c.name() in ("maximum", "minimum"):
        return made
    return e.select(e.compare("ne", left, left), right, e.select(e.compare("ne", right, right), left, made))


@op("add", "sub", "subtract")
def add(c: Converter, a: Any, b: Any, alpha: Any = 1) -> Value:
    right = as_result(c, b) if alpha == 1 else as_result(c, b) * alpha
    return e.binary("add" if c.name() == "add" else "sub", as_result(c, a), right)


@op("rsub")
def rsub(c: Converter, a: Any, b: Any, alpha: Any = 1) -> Value:
    left = as_result(c, a) if alpha == 1 else as_result(c, a) * alpha
    return as_result(c, b) - left


@op("addcmul", "addcdiv")
def add_product(c: Converter, start: Any, a: Any, b: Any, factor: Any = 1) -> Value:
    made = e.binary("mul" if c.name() == "addcmul" else "div", as_result(c, a), as_result(c, b))
    return as_result(c, start) + (made if factor == 1 else made * factor)


@op("lerp")
def lerp(c: Converter, a: Any, b: Any, share: Any) -> Value:
    start, end = as_result(c, a), as_result(c, b)
    return start + (end - start) * as_result(c, share)


@op("div", "divide", "true_divide")
def div(c: Converter, a: Any, b: Any, rounding: Optional[str] = None) -> Value:
    if rounding is not None:
        return rounded_quotient(c, a, b, rounding)
    return as_result(c, a) / as_result(c, b)


@op("floor_divide")
def floor_divide(c: Converter, a: Any, b: Any) -> Value:
    return rounded_quotient(c, a, b, "floor")


def rounded_quotient(c: Converter, a: Any, b: Any, rounding: str) -> Value:
    """The quotient without its part behind the point, or the next whole number below it.

    PyTorch's is that of the exact quotient: 1 // 0.1 is 9, where 1 / 0.1 is rounded to 10.
    """
    left, right = numbers(c, a, b)
    if left.dtype == "i32":
        quotient, rest = integers.divide(left, right)
        if rounding == "trunc":
            return quotient
        return quotient - e.cast(of_divisor(rest, right)[1], "i32")
    left, right = c.graph.stop_gradient(left), c.graph.stop_gradient(right)
    made = left / right
    if rounding == "trunc":
        return e.unary("trunc", made)
    if right.scalar is not None and right.scalar and math.frexp(right.scalar)[0] in (0.5, -0.5):
        return e.unary("floor", made)  # a power of 2, by which a quotient is exact
    rest, _ = of_divisor(e.binary("fmod", left, right), right)
    exact = e.unary("round_nearest_even", (left - rest) / right)
    special = e.compare("eq", right, 0.0)
    return e.select(special, made, exact)


def numbers(c: Converter, a: Any, b: Any) -> tuple[Value, Value]:
    """Two operands of f32, or of i32, in one type."""
    if c.dtype() == "f32":
        return as_result(c, a), as_result(c, b)
    return promoted(c, a, b)


def of_divisor(rest: Value, divisor: Value) -> tuple[Value, Value]:
    """A remainder with the sign of the divisor, and where it had another one."""
    zero = e.as_value(rest, 0)
    other = e.compare("ne", e.compare("lt", rest, zero), e.compare("lt", divisor, zero))
    other = e.compare("ne", rest, zero) & other
    return rest + e.select(other, divisor, e.as_value(divisor, 0)), other


@op("pow")
def power(c: Converter, base: Any, exponent: Any) -> Value:
    if isinstance(exponent, (int, float)):
        value = as_result(c, base)
        if math.isfinite(exponent) and exponent == int(exponent) and abs(exponent) <= MOST_FACTORS:
            return e.integer_power(value, int(exponent))
        if abs(exponent) == 0.5:
            return e.unary("sqrt" if exponent > 0 else "rsqrt", value)
    elif isinstance(base, (int, float)) and base > 0:
        return e.unary("exp", as_result(c, exponent) * math.log(base))
    return gradients.power(as_result(c, base), as_result(c, exponent))


@op("log2", "log10", "exp2", "special_exp2")
def other_base(c: Converter, value: Any) -> Value:
    """Powers and logarithms of 2 and 10, by those of e."""
    x = as_result(c, value)
    if c.name().endswith("exp2"):
        return e.unary("exp", x * math.log(2))
    return e.unary("log", x) * (1 / math.log(int(c.name()[3:])))


@op("sinc", "special_sinc")
def sinc(c: Converter, value: Any) -> Value:
    """1 at 0, without a gradient there."""
    x = as_result(c, value)
    zero = e.compare("eq", x, 0.0)
    angle = e.select(zero, e.as_value(x, 1.0), x) * math.pi
    return e.select(zero, e.as_value(x, 1.0), e.unary("sin", angle) / angle)


@op("xlogy", "special_xlogy", "special_xlog1py")
def product_with_log(c: Converter, factor: Any, value: Any) -> Value:
    """x log(y): where x is 0 and the logarithm is none, 0 without a gradient to x, and x / y, 0 / 0 too, to y."""
    x, y = as_result(c, factor), as_result(c, value)
    kind, lowest = ("log1p", -1.0) if c.name().endswith("1py") else ("log", 0.0)
    zero = e.compare("eq", x, 0.0)
    none = zero & e.compare("le", y, lowest)
    made = x * e.unary(kind, e.select(none, e.as_value(y, 1.0), y))
    made = e.select(none, e.as_value(made, 0.0), made)
    if not y.learned:
        return made
    pole = zero & e.compare("eq", y, lowest)
    return e.select(pole, gradients.zero_without_slope(pole, y, e.as_value(y, 1.0)), made)


@op("special_entr")
def entropy(c: Converter, value: Any) -> Value:
    """-x log(x), whose slope at 0 is infinite, and -inf below."""
    x = as_result(c, value)
    zero, below, one = e.compare("eq", x, 0.0), e.compare("lt", x, 0.0), e.as_value(x, 1.0)
    inside = e.select(e.compare("le", x, 0.0), one, x)
    made = -(inside * e.unary("log", inside))
    made = e.select(zero, e.unary("sqrt", e.select(zero, x, one)), made)
    return e.select(below, gradients.zero_without_slope(below, x, one) - math.inf, made)


@op("isnan", "isinf")
def is_special(c: Converter, value: Any) -> Value:
    x = e.cast(c.value(value), "f32")
    return e.compare("ne", x, x) if c.name() == "isnan" else e.compare("eq", e.unary("abs", x), math.inf)


@op("reciprocal")
def reciprocal(c: Converter, value: Any) -> Value:
    return 1.0 / as_result(c, value)


@op("gelu")
def gelu(c: Converter, value: Any, approximate: str = "none") -> Value:
    return e.unary("gelu_tanh" if approximate == "tanh" else "gelu", c.value(value))


@op("softplus")
def softplus(c: Converter, value: Any, beta: float = 1, threshold: float = 20) -> Value:
    """Above the threshold it is x. From 20 on that is softplus(x) too, but for a rounding."""
    x = c.value(value)
    scaled = x if beta == 1 else x * beta
    made = e.unary("softplus", scaled)
    made = made if beta == 1 else made / beta
    return made if threshold >= 20 else e.select(e.compare("gt", scaled, threshold), x, made)


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
    return e.select(e.compare("gt", x, 0.0), x, x * a)


@op("hardtanh", "clamp", "clamp_min", "clamp_max", "clip")
def clamp(c: Converter, value: Any, *bounds: Any) -> Value:
    low, high = {"clamp_min": (*bounds, None), "clamp_max": (None, *bounds)}.get(c.name(), (*bounds, None, None)[:2])
    given = [b if b is None or isinstance(b, (int, float)) else as_result(c, b) for b in (low, high)]
    made = gradients.clamp(as_result(c, value), *given)
    return layout.broadcast(made, c.shape())


@op(*COMPARE)
def compare(c: Converter, a: Any, b: Any) -> Value:
    left, right = promoted(c, a, b)
    return e.compare(c.name(), left, right)


def promoted(c: Converter, a: Any, b: Any) -> tuple[Value, Value]:
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
    return e.select(e.cast(c.value(condition), "i1"), as_result(c, a), as_result(c, b))


@op("masked_fill")
def masked_fill(c: Converter, value: Any, mask: Any, fill: Any) -> Value:
    made = e.select(c.value(mask), as_result(c, fill), as_result(c, value))
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
