# SPDX-License-Identifier: Apache-2.0
"""Numbers with about 45 bits, for what a framework computes in float64, such as 1 - beta^step: sums of two of f32.

The algorithms are those of Dekker and Knuth: the rounding of a sum or a product of f32 is itself a number of f32. What
is not finite, or so large that its halves are not, has the precision of f32.
"""

from __future__ import annotations

from typing import Any, Callable, Optional, Union

import numpy as np

from mtc._trace import elementwise as e
from mtc._trace.values import Value

_SPLIT = 4097.0  # 2^12 + 1
_HALVINGS = 4  # of the argument of e^x, for which a polynomial is exact enough below 0.1
_LARGEST = 1.6  # beyond it e^x has the precision of f32
COMPARED = ("eq", "ne", "lt", "le", "gt", "ge")


class Double:
    """A number.

    Attributes:
        hi: the number, rounded to f32.
        lo: the rest; None: 0. It is made when it is asked for.
    """

    def __init__(self, hi: Value, lo: Union[None, Value, Callable[[], Optional[Value]]] = None) -> None:
        self.hi = hi
        self._lo = lo

    @property
    def lo(self) -> Optional[Value]:
        if callable(self._lo):
            self._lo = self._lo()
        return self._lo


class Doubles:
    """Operations of such numbers, of which equal ones are made once."""

    def __init__(self, graph: Any) -> None:
        self._graph = graph
        self._made: dict[Any, Any] = {}

    def constant(self, number: float) -> Double:
        """A number that is known."""
        found = self._made.get(number)
        if found is None:
            hi = np.float32(number)
            lo = np.float32(number - float(hi)) if np.isfinite(hi) else np.float32(0)
            found = Double(self._graph.constant(hi), self._graph.constant(lo) if lo else None)
            self._made[number] = found
        return found

    def apply(self, op: str, *operands: Double) -> Optional[Double]:
        """An operation by its name; None for what there is no rule for."""
        if op not in OPERATIONS:
            return None
        key = (op, *(part for o in operands for part in (id(o.hi), id(o._lo))))
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = OPERATIONS[op](self, *operands), operands  # which are kept: their ids are the key
        return found[0]

    def compare(self, kind: str, a: Double, b: Double) -> Value:
        """As of `elementwise.compare`: by the rest where the numbers are equal in f32."""
        zero = self._graph.constant(np.float32(0))
        low = e.compare(kind, a.lo or zero, b.lo or zero)
        same = e.logical_and(e.compare("eq", a.hi, b.hi), e.compare("lt", e.unary("abs", a.hi), np.inf))
        return e.select(same, low, e.compare(kind, a.hi, b.hi))

    def select(self, condition: Value, a: Double, b: Double) -> Double:
        """As of `elementwise.select`."""
        lo = None
        if a.lo is not None or b.lo is not None:
            zero = self._graph.constant(np.float32(0))
            lo = e.select(condition, a.lo or zero, b.lo or zero)
        return Double(e.select(condition, a.hi, b.hi), lo)

    # The rules

    def _sum(self, a: Value, b: Value, rest: Optional[Value] = None) -> Double:
        """a + b + rest."""
        total = a + b
        other = total - a
        error = (a - (total - other)) + (b - other)
        return _normal(total, error if rest is None else error + rest)

    def _product(self, a: Value, b: Value, rest: Optional[Value] = None, large: bool = True) -> Double:
        """a * b + rest."""
        product = a * b
        (a1, a2), (b1, b2) = self._halves(a), self._halves(b)
        error = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
        return _normal(product, error if rest is None else error + rest, large)

    def _halves(self, a: Value) -> tuple[Value, Value]:
        """Two numbers of 12 bits whose sum it is."""
        key = "halves", id(a)
        if key not in self._made:
            large = a * _SPLIT
            first = large - (large - a)
            self._made[key] = first, a - first, a
        return self._made[key][:2]  # type: ignore[no-any-return]

    def add(self, a: Double, b: Double) -> Double:
        return self._sum(a.hi, b.hi, _plus(a.lo, b.lo))

    def sub(self, a: Double, b: Double) -> Double:
        return self.add(a, self.neg(b))

    def mul(self, a: Double, b: Double, large: bool = True) -> Double:
        rest = _plus(None if b.lo is None else a.hi * b.lo, None if a.lo is None else a.lo * b.hi)
        return self._product(a.hi, b.hi, rest, large)

    def div(self, a: Double, b: Double) -> Double:
        first = a.hi / b.hi
        left = self.sub(a, self.mul(b, Double(first)))
        second = left.hi / b.hi
        left = self.sub(left, self.mul(b, Double(second)))
        return _normal(first, second + left.hi / b.hi)

    def neg(self, a: Double) -> Double:
        return Double(-a.hi, None if a.lo is None else -a.lo)

    def abs(self, a: Double) -> Double:
        return self.select(e.compare("lt", a.hi, 0.0), self.neg(a), a)

    def sqrt(self, a: Double) -> Double:
        root = e.unary("sqrt", a.hi)
        left = self.sub(a, self._product(root, root))
        return _normal(root, left.hi / (root + root))

    def maximum(self, a: Double, b: Double) -> Double:
        return self.select(self.compare("ge", a, b), a, b)

    def minimum(self, a: Double, b: Double) -> Double:
        return self.select(self.compare("le", a, b), a, b)

    def expm1(self, x: Double) -> Double:
        """e^x - 1, by e^2x - 1 = (e^x - 1) (e^x - 1 + 2). Nothing is large here, or it is not selected."""
        scale = 2.0**-_HALVINGS
        r = Double(x.hi * scale, None if x.lo is None else x.lo * scale)
        # r + r^2 (1/2 + r (1/6 + r (1/24 + ...)))
        made = Double(e.polynomial(r.hi, [1 / 120, 1 / 720, 1 / 5040, 1 / 40320]))
        for factor in (1 / 24, 1 / 6, 1 / 2):
            made = _added(self.constant(factor), self.mul(made, r, False))
        made = _added(r, self.mul(self.mul(made, r, False), r, False))
        for _ in range(_HALVINGS):
            made = self.mul(made, _added(self.constant(2.0), made), False)
        small = e.compare("lt", e.unary("abs", x.hi), _LARGEST)
        return self.select(small, made, Double(e.unary("expm1", x.hi)))

    def exp(self, x: Double) -> Double:
        small = e.compare("lt", e.unary("abs", x.hi), _LARGEST)
        exact = self.apply("expm1", x)
        assert exact is not None
        return self.select(small, _added(self.constant(1.0), exact), Double(e.unary("exp", x.hi)))

    def log(self, a: Double) -> Double:
        """By a step of Newton's method."""
        near = e.unary("log", a.hi)
        other = self.exp(Double(-near))
        better = self.add(Double(near), self.sub(self.mul(a, other), self.constant(1.0)))
        small = e.compare("lt", e.unary("abs", near), _LARGEST)
        return self.select(small, better, Double(near))


def _plus(a: Optional[Value], b: Optional[Value]) -> Optional[Value]:
    return b if a is None else a if b is None else a + b


def _added(a: Double, b: Double) -> Double:
    """The sum of a number and a smaller one, where neither is large."""
    total = a.hi + b.hi
    return _normal(total, _plus(b.hi - (total - a.hi), _plus(a.lo, b.lo)), False)  # type: ignore[arg-type]


def _normal(hi: Value, lo: Value, large: bool = True) -> Double:
    """The sum of a number and a smaller one. `large`: the rest may be not finite, and is 0 then."""
    lo = e.select(e.compare("lt", e.unary("abs", lo), np.inf), lo, 0.0) if large else lo
    total = hi + lo
    return Double(total, lo - (total - hi))


OPERATIONS: dict[str, Callable[..., Double]] = {
    "add": Doubles.add, "sub": Doubles.sub, "mul": Doubles.mul, "div": Doubles.div, "neg": Doubles.neg,
    "abs": Doubles.abs, "sqrt": Doubles.sqrt, "maximum": Doubles.maximum, "minimum": Doubles.minimum,
    "exp": Doubles.exp, "expm1": Doubles.expm1, "log": Doubles.log}
