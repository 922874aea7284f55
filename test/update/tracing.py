# SPDX-License-Identifier: Apache-2.0
"""Formulas of updates, written once in Python: as text of mt ops, and on NumPy's float64."""
import numpy as np

NAMES = {"f4": "f32", "i4": "i32", "b1": "i1"}


def type_of(shape, kind):
    return "tensor<" + "".join(f"{size}x" for size in shape) + NAMES[kind] + ">"


class Traced:
    """A value of the text: Python's operators append ops."""

    def __init__(self, lines, name, shape, kind="f4"):
        self.lines, self.name, self.shape, self.kind = lines, name, tuple(shape), kind

    @property
    def type(self):
        return type_of(self.shape, self.kind)

    def make(self, text, shape, kind="f4"):
        made = Traced(self.lines, f"%u{len(self.lines)}", shape, kind)
        self.lines.append(f"{made.name} = mt.{text}")
        return made

    def constant(self, number):
        literal = str(int(number)) if self.kind == "i4" else f"{number:.9e}"
        return self.make(f"constant dense<{literal}> : {type_of((), self.kind)}", (), self.kind)

    def both(self, op, other, kind=None, swap=False):
        other = other if isinstance(other, Traced) else self.constant(other)
        left, right = (other, self) if swap else (self, other)
        shape = np.broadcast_shapes(left.shape, right.shape)
        return self.make(f"{op} {left.name}, {right.name} : {left.type}, {right.type}", shape, kind or self.kind)

    def one(self, op):
        return self.make(f"{op} {self.name} : {self.type}", self.shape)

    def __add__(self, other): return self.both("add", other)
    def __radd__(self, other): return self.both("add", other, swap=True)
    def __sub__(self, other): return self.both("sub", other)
    def __rsub__(self, other): return self.both("sub", other, swap=True)
    def __mul__(self, other): return self.both("mul", other)
    def __rmul__(self, other): return self.both("mul", other, swap=True)
    def __truediv__(self, other): return self.both("div", other)
    def __rtruediv__(self, other): return self.both("div", other, swap=True)
    def __rpow__(self, other): return self.both("pow", other, swap=True)
    def __eq__(self, other): return self.both("compare eq,", other, "b1")
    def __gt__(self, other): return self.both("compare gt,", other, "b1")

    def __matmul__(self, other):
        return self.make(f"matmul {self.name}, {other.name} : {self.type}, {other.type}",
                         (*self.shape[:-1], other.shape[-1]))

    def sqrt(self): return self.one("sqrt")

    def float(self):
        return self.make(f"cast {self.name} : {self.type} to {type_of(self.shape, 'f4')}", self.shape)

    def sum(self, axes=None):
        axes = list(range(len(self.shape))) if axes is None else axes
        rest = [size for axis, size in enumerate(self.shape) if axis not in axes]
        return self.make(f"reduce sum, {self.name} over {axes} : {self.type}", rest)

    def transpose(self):
        return self.make(f"transpose {self.name} by [1, 0] : {self.type}", self.shape[::-1])

    def reshape(self, shape):
        return self.make(f"reshape {self.name} : {self.type} to {type_of(shape, self.kind)}", shape, self.kind)

    def join(self, other):
        types = f"{self.type}, {other.type}"
        return self.make(f"concat {self.name}, {other.name} dim = 0 : {types}",
                         (self.shape[0] + other.shape[0], *self.shape[1:]))

    def where(self, yes, no):
        yes = yes if isinstance(yes, Traced) else no.constant(yes)
        no = no if isinstance(no, Traced) else yes.constant(no)
        return self.make(f"select {self.name}, {yes.name}, {no.name} : {self.type}, {yes.type}, {no.type}",
                         np.broadcast_shapes(self.shape, yes.shape, no.shape), yes.kind)

    def loop(self, steps, body):
        """The value after steps of a body, each of which reads the value of the step before."""
        name, before = f"%r{len(self.lines)}", Traced(self.lines, f"%s{len(self.lines)}", self.shape, self.kind)
        self.lines.append(f"{name} = mt.scan from({before.name} = {self.name} : {self.type}) steps = {steps} {{")
        after = body(before)
        self.lines.append(f"mt.yield {after.name} : {after.type} }}")
        return Traced(self.lines, name, self.shape, self.kind)

    def full(self, number, shape):
        return self.make(f"constant dense<{number:.9e}> : {type_of(shape, 'f4')}", shape)


class Computed(np.ndarray):
    """The same on arrays."""

    def sqrt(self): return np.sqrt(self).view(Computed)
    def float(self): return self.astype(np.float64).view(Computed)
    def sum(self, axes=None): return np.asarray(np.sum(np.asarray(self), tuple(axes) if axes else None)).view(Computed)
    def transpose(self): return np.asarray(self).T.view(Computed)
    def join(self, other): return np.concatenate([self, other]).view(Computed)
    def where(self, yes, no): return np.where(self, yes, no).view(Computed)
    def loop(self, steps, body):
        for _ in range(steps):
            self = body(self)
        return self
    def full(self, number, shape): return np.full(shape, float(number)).view(Computed)


def computed(value, kind="f4"):
    return np.asarray(value, np.int64 if kind == "i4" else np.float64).view(Computed)
