# SPDX-License-Identifier: Apache-2.0
"""ATen operations of complex numbers, Fourier transforms among them."""

from __future__ import annotations

import math
from typing import Any, Callable

from mtc._trace import Refused, Value, layout
from mtc._trace import complex_numbers as cn
from mtc._trace import elementwise as e
from mtc._trace.complex_numbers import Complex
from mtc.torch._convert import Converter
from mtc.torch._framework import torch
from mtc.torch._handlers import HANDLERS, on_complex, op
from mtc.torch._known import Known

# They move numbers, or add them, so they do the same to both parts.
_OF_PARTS = {
    "_unsafe_view", "alias", "as_strided", "cat", "chunk", "clone", "constant_pad_nd", "contiguous", "copy",
    "cumsum", "detach", "diagonal", "expand", "expand_as", "fill", "flatten", "flip", "full_like",
    "index", "index_put", "index_select", "lift_fresh_copy", "mean", "movedim", "narrow", "new_zeros", "pad",
    "permute", "repeat", "reshape", "roll", "select", "select_scatter", "slice", "slice_scatter", "split",
    "split_with_sizes", "squeeze", "stack", "sum", "swapaxes", "t", "transpose", "tril", "triu", "unbind",
    "unflatten", "unsafe_view", "unsqueeze", "view", "where", "zeros_like"}
_PRODUCTS = {"bmm", "dot", "matmul", "mm", "mv"}


@on_complex
def apply(c: Converter, arguments: list[Any]) -> Any:
    """The result of an operation that takes or gives complex numbers."""
    name = c.name()
    if c.is_half():
        raise Refused("complex numbers of 16 bits, which MTC would not round: leave them in torch.complex64")
    if name in _RULES:
        return _RULES[name](c, *arguments)
    if name in _PRODUCTS:
        a, b, *_ = arguments
        return cn.bilinear(lambda x, y: HANDLERS[name](c, x, y), as_complex(c, a), as_complex(c, b))
    if name not in _OF_PARTS:
        raise Refused(Complex.refusal)
    real, imaginary = (HANDLERS[name](c, *(_part(c, a, i) for a in arguments)) for i in range(2))
    if isinstance(real, (list, tuple)):
        return [Complex(a, b) for a, b in zip(real, imaginary)]
    return Complex(real, imaginary)


def as_complex(c: Converter, given: Any) -> Complex:
    """An operand as complex numbers."""
    if isinstance(given, Complex):
        return given
    if isinstance(given, complex):
        return Complex(c.value(given.real), c.value(given.imag))
    if isinstance(given, Known) and given.tensor.is_complex():
        few: Any
        whole: Any
        few, whole = (t if t is None else torch.view_as_real(t.resolve_conj()) for t in (given.tensor, given.whole))
        parts = ((few[..., i], None if whole is None else whole[..., i]) for i in range(2))
        return Complex(*(c.value(Known(a, given.shape, b, given.varies)) for a, b in parts))
    return Complex(e.cast(c.value(given), "f32"))


def _part(c: Converter, given: Any, part: int) -> Any:
    """The real (0) or the imaginary part (1) of an argument, for an operation on parts."""
    if isinstance(given, (list, tuple)):
        return type(given)(_part(c, g, part) for g in given)
    if isinstance(given, complex):
        return (given.real, given.imag)[part]
    if isinstance(given, Complex) or (isinstance(given, Known) and given.tensor.is_complex()):
        made = as_complex(c, given)
        return made.imaginary if part else made.re
    if isinstance(given, Value) and given.dtype == "f32" and part:
        return cn.zeros(given)
    return given


def _einsum(c: Converter, equation: Any, operands: Any, *_: Any) -> Complex:
    given = [as_complex(c, x) for x in operands]
    if len(given) == 1:
        return cn.each(lambda x: HANDLERS["einsum"](c, equation, [x]), given[0])
    if len(given) != 2:
        raise Refused("an einsum of three operands or more of complex numbers: write it as several of two")
    return cn.bilinear(lambda a, b: HANDLERS["einsum"](c, equation, [a, b]), *given)


def _real(c: Converter, x: Any) -> Value:
    return as_complex(c, x).re


def _imaginary(c: Converter, x: Any) -> Value:
    return as_complex(c, x).imaginary


def _both(function: Callable[[Complex, Complex], Any]) -> Callable[..., Any]:
    return lambda c, a, b, *_: function(as_complex(c, a), as_complex(c, b))


def _one(function: Callable[[Complex], Any]) -> Callable[..., Any]:
    return lambda c, a, *_: function(as_complex(c, a))


def _sum(c: Converter, a: Any, b: Any, alpha: Any = 1) -> Complex:
    other = as_complex(c, b)
    factor = -alpha if c.name() == "sub" else alpha
    return cn.add(as_complex(c, a), other if factor == 1 else cn.multiply(other, as_complex(c, factor)))


def _cast(c: Converter, x: Any, *_: Any) -> Any:
    if not c.is_complex():
        raise Refused("complex numbers cast to real ones: take their real part")
    return as_complex(c, x)


def _scaling(normalization: int, lengths: list[int]) -> float:
    """By what PyTorch multiplies the sums of a transform."""
    count = math.prod(lengths)
    return {0: 1.0, 1: 1 / math.sqrt(count), 2: 1 / count}[int(normalization)]


def _axes_of(c: Converter, x: Any, dims: Any) -> tuple[list[int], list[int]]:
    """The axes of a transform, and their sizes."""
    axes = [int(d) % len(x.shape) for d in dims]
    sizes = [x.shape[a] for a in axes]
    if not all(isinstance(n, int) for n in sizes):
        raise Refused("a Fourier transform over the samples")
    return axes, sizes


def _real_to_complex(c: Converter, x: Any, dims: Any, normalization: Any, onesided: Any) -> Any:
    value: Any = e.cast(c.value(x), "f32")
    axes, sizes = _axes_of(c, value, dims)
    return cn.fourier_along(value if onesided else Complex(value), axes, sizes, False, bool(onesided),
                            _scaling(normalization, sizes))


def _complex_to_real(c: Converter, x: Any, dims: Any, normalization: Any, last: Any) -> Any:
    value = as_complex(c, x)
    axes, sizes = _axes_of(c, value, dims)
    if isinstance(last, bool) or not isinstance(last, int):
        raise Refused("a Fourier transform over the samples")
    lengths = [*sizes[:-1], last]
    return cn.fourier_along(value, axes, lengths, True, True, _scaling(normalization, lengths))


def _complex_to_complex(c: Converter, x: Any, dims: Any, normalization: Any, forward: Any) -> Any:
    value = as_complex(c, x)
    axes, sizes = _axes_of(c, value, dims)
    return cn.fourier_along(value, axes, sizes, not forward, False, _scaling(normalization, sizes))


_RULES: dict[str, Callable[..., Any]] = {
    "_fft_r2c": _real_to_complex, "_fft_c2r": _complex_to_real, "_fft_c2c": _complex_to_complex,
    "add": _sum, "sub": _sum, "mul": _both(cn.multiply), "div": _both(cn.divide), "neg": _one(cn.negative),
    "abs": _one(cn.absolute), "exp": _one(cn.exponential), "sgn": _one(cn.sign), "square": _one(
        lambda x: cn.multiply(x, x)), "_conj": _one(cn.conjugate), "_conj_physical": _one(cn.conjugate),
    "conj_physical": _one(cn.conjugate), "conj": _one(cn.conjugate), "resolve_conj": as_complex,
    "resolve_neg": as_complex, "real": _real, "imag": _imaginary, "view_as_real": _one(cn.paired),
    "einsum": _einsum, "view_as_complex": lambda c, x: cn.unpaired(c.value(x)), "to": _cast, "_to_copy": _cast,
    "type_as": _cast,
    "complex": lambda c, *parts: Complex(*(layout.broadcast(e.cast(c.value(p), "f32"), c.shape()) for p in parts)),
    "polar": lambda c, size, angle: Complex(e.binary("mul", c.value(size), e.unary("cos", c.value(angle))), e.binary(
        "mul", c.value(size), e.unary("sin", c.value(angle)))),
}


@op("_neg_view")
def _negative(c: Converter, x: Any) -> Value:
    return e.unary("neg", c.value(x))


def _of_reals(c: Converter, x: Any, *_: Any) -> Value:
    if c.name() not in ("real", "conj", "_conj", "resolve_conj", "resolve_neg"):
        raise Refused(Complex.refusal)
    return c.value(x)


for _name in {*_RULES, *_OF_PARTS, *_PRODUCTS} - set(HANDLERS):
    op(_name)(_of_reals)  # known, so that PyTorch does not divide them
