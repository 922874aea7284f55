# SPDX-License-Identifier: Apache-2.0
"""Complex numbers in a trace, as two values, and their Fourier transforms."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Callable, Optional, Sequence

from mtc._trace import elementwise as e
from mtc._trace import layout, moves
from mtc._trace.values import Shape, Value


@dataclasses.dataclass(frozen=True, eq=False)
class Complex:
    """Complex numbers.

    Attributes:
        re: the real parts.
        im: the imaginary parts, of the same shape; None: 0.
    """

    re: Value
    im: Optional[Value] = None

    refusal = "complex numbers, which it takes in no program here: compute with their real and imaginary parts"

    @property
    def shape(self) -> Shape:
        """The shape of both parts."""
        return self.re.shape

    @property
    def imaginary(self) -> Value:
        """The imaginary parts."""
        return zeros(self.re) if self.im is None else self.im


def zeros(like: Value) -> Value:
    """A value's shape of zeros."""
    return layout.broadcast(like.graph.constant(0.0), like.shape)


def each(function: Callable[[Value], Value], x: Complex) -> Complex:
    """What a function that moves or adds numbers makes of both parts."""
    return Complex(function(x.re), None if x.im is None else function(x.im))


def bilinear(function: Callable[[Any, Any], Value], a: Complex, b: Complex) -> Complex:
    """A product, made of a product of real numbers: four of them, or fewer where imaginary parts are 0."""
    re, im = function(a.re, b.re), None
    if a.im is not None and b.im is not None:
        re = e.binary("sub", re, function(a.im, b.im))
        im = e.binary("add", function(a.re, b.im), function(a.im, b.re))
    elif b.im is not None:
        im = function(a.re, b.im)
    elif a.im is not None:
        im = function(a.im, b.re)
    return Complex(re, im)


def multiply(a: Complex, b: Complex) -> Complex:
    """Element by element."""
    return bilinear(lambda x, y: e.binary("mul", x, y), a, b)


def add(a: Complex, b: Complex) -> Complex:
    """Element by element."""
    return Complex(e.binary("add", a.re, b.re), None if a.im is None and b.im is None else
                   e.binary("add", a.imaginary, b.imaginary))


def divide(a: Complex, b: Complex) -> Complex:
    """Element by element."""
    if b.im is None:
        return each(lambda x: e.binary("div", x, b.re), a)
    size = squared(b)
    return each(lambda x: e.binary("div", x, size), multiply(a, conjugate(b)))


def negative(a: Complex) -> Complex:
    """Element by element."""
    return each(lambda x: e.unary("neg", x), a)


def conjugate(a: Complex) -> Complex:
    """Element by element."""
    return Complex(a.re, None if a.im is None else e.unary("neg", a.im))


def squared(a: Complex) -> Value:
    """|a|^2"""
    size = e.binary("mul", a.re, a.re)
    return size if a.im is None else e.binary("add", size, e.binary("mul", a.im, a.im))


def absolute(a: Complex) -> Value:
    """|a|, whose gradient at 0 is 0."""
    size = squared(a)
    none = e.compare("eq", size, 0.0)
    return e.select(none, 0.0, e.unary("sqrt", e.select(none, 1.0, size)))


def equal(a: Complex, b: Complex) -> Value:
    """Element by element."""
    made = e.compare("eq", a.re, b.re)
    return made if a.im is None and b.im is None else e.logical_and(made, e.compare("eq", a.imaginary, b.imaginary))


def sign(a: Complex) -> Complex:
    """a / |a|, or 0"""
    size = absolute(a)
    return each(lambda x: e.binary("div", x, e.select(e.compare("eq", size, 0.0), 1.0, size)), a)


def exponential(a: Complex) -> Complex:
    """e^a"""
    size = e.unary("exp", a.re)
    if a.im is None:
        return Complex(size)
    return Complex(e.binary("mul", size, e.unary("cos", a.im)), e.binary("mul", size, e.unary("sin", a.im)))


def paired(a: Complex) -> Value:
    """[..., 2]: the parts along a last axis."""
    return moves.concat([layout.expand_dims(part, (a.re.rank,)) for part in (a.re, a.imaginary)], a.re.rank)


def unpaired(pairs: Value) -> Complex:
    """Of pairs along a last axis."""
    none = [0] * (pairs.rank - 1)
    parts = [moves.slice_(pairs, [*none, i], [*(None for _ in none), i + 1], [1] * pairs.rank) for i in range(2)]
    return Complex(*(layout.reshape(part, pairs.shape[:-1]) for part in parts))


def fourier(x: Any, lengths: Sequence[int], inverse: bool, real: bool) -> Any:
    """Transforms over the last axes, as `numpy.fft.fftn`, `ifftn`, `rfftn` and `irfftn`: numbers that are real before,
    or after the inverse one, are a `Value`, others are `Complex`."""
    given = x if real and not inverse else paired(x)
    shape = list(x.shape)
    if real:
        shape[-1] = lengths[-1] if inverse else lengths[-1] // 2 + 1
    words = ("inverse " if inverse else "") + ("real " if real else "")
    pair = () if real and inverse else (2,)
    made = given.graph.operation("fft", (given,), f"graph.fft {words}{{0}} lengths {list(lengths)}", (*shape, *pair),
                                 "f32")
    return made if real and inverse else unpaired(made)


def fourier_along(x: Any, axes: Sequence[int], lengths: Sequence[int], inverse: bool, real: bool,
                  scale: float = 1.0) -> Any:
    """The same over some axes, times a number, without the division of the inverse transform."""
    rank = len(x.shape)
    order = [i for i in range(rank) if i not in axes] + list(axes)
    back = [order.index(i) for i in range(rank)]
    factor = scale * (math.prod(lengths) if inverse else 1)

    def scaled(value: Value) -> Value:
        return value if factor == 1 else e.binary("mul", value, factor)

    moved = layout.transpose(x, order) if isinstance(x, Value) else each(lambda part: layout.transpose(part, order), x)
    made = fourier(moved, lengths, inverse, real)
    if isinstance(made, Value):
        return layout.transpose(scaled(made), back)
    return each(lambda part: layout.transpose(scaled(part), back), made)
