# SPDX-License-Identifier: Apache-2.0
"""Values of a trace: what an operation makes, in the shape that the framework gives it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, Union

import numpy as np
import numpy.typing as npt

from mtc._trace import reals

if TYPE_CHECKING:
    from mtc._trace.graph import Graph

Array = npt.NDArray[Any]


class Refused(Exception):
    """What MTC cannot do; the text says what."""


@dataclasses.dataclass(frozen=True)
class Batch:
    """A size that is a multiple of the number of samples."""

    times: int = 1

    def __mul__(self, factor: int) -> Batch:
        return Batch(self.times * factor)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return "b" if self.times == 1 else f"{self.times}*b"


BATCH = Batch()
Size = Union[int, Batch]
Shape = tuple[Size, ...]

VIEWS = ("reshape", "broadcast", "transpose")  # the same elements in another shape


def dtype_of_elements(dtype: str) -> Any:
    """The type of NumPy of "f32" (float64, where the trace computes with it), "i32" or "i1"."""
    return reals.real() if dtype == "f32" else {"i32": np.int32, "i1": np.bool_}[dtype]


def _of_two(op: str) -> Callable[[Value, Operand], Value]:
    return lambda a, b: a.graph.binary(op, a, b)


def _of_two_reflected(op: str) -> Callable[[Value, Operand], Value]:
    return lambda b, a: b.graph.binary(op, a, b)


@dataclasses.dataclass(eq=False)
class Value:
    """An operation and its result. The operators +, -, * and / are those of `elementwise.binary`, and of i1 &, | and ~
    are `logical_and`, `logical_or` and `logical_not`.

    Attributes:
        op: the name of the operation.
        text: the operation in MLIR, without result and types: {0} stands for the first operand. Where the operation is
            one of `mt`, {t0} and {t} stand for the types of the first operand and of the result.
        shape: of the result.
        dtype: "f32", "i32" or "i1".
        constant: the elements of a constant. The array has an axis for each of the shape, of size 1 where all elements
            along it are equal.
        tensor: whether the operation is one of `mt`, on tensors, and not one of `graph`.
        dims: axes that the operation is about: those that a reduction takes away, the order of a transposition, for
            each axis of a broadcast value its place in the result.
        kind: of a comparison.
        learned: whether the result depends on a trainable variable.
        count: not 0: the result is the number of samples, times this.
        bounds: the smallest and the largest value that integers may have, see `integers.bounds`.
        info: a note for the functions that look for patterns.
    """

    graph: Graph
    op: str
    operands: tuple[Value, ...]
    text: str
    shape: Shape
    dtype: str
    constant: Optional[Array] = None
    tensor: bool = False
    dims: tuple[int, ...] = ()
    kind: str = ""
    location: str = ""
    origin: int = -1
    learned: bool = False
    count: int = 0
    bounds: Optional[tuple[int, int]] = None
    info: Any = None

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def array(self) -> Optional[Array]:
        """A constant of a static shape, whole; None for other values."""
        if self.constant is None or has_batch(self.shape):
            return None
        return np.broadcast_to(self.constant, self.shape)  # type: ignore[arg-type]

    @property
    def scalar(self) -> Optional[float]:
        """The number that all elements of a constant are; None for other values."""
        return self.constant.item() if self.constant is not None and self.constant.size == 1 else None

    @property
    def source(self) -> Value:
        """The value that this one is in another shape."""
        value = self
        while value.op in VIEWS:
            value = value.operands[0]
        return value

    __array_ufunc__ = None  # NumPy's operands leave the operators to this class
    __add__, __radd__ = _of_two("add"), _of_two_reflected("add")
    __sub__, __rsub__ = _of_two("sub"), _of_two_reflected("sub")
    __mul__, __rmul__ = _of_two("mul"), _of_two_reflected("mul")
    __truediv__, __rtruediv__ = _of_two("div"), _of_two_reflected("div")

    def __neg__(self) -> Value:
        return self.graph.unary("neg", self)

    def __and__(self, other: Value) -> Value:
        return self.graph.logical_and(self, other)

    def __or__(self, other: Value) -> Value:
        return self.graph.logical_or(self, other)

    def __invert__(self) -> Value:
        return self.graph.logical_not(self)

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} of {self.op}>"


Operand = Union[Value, float, int, bool]


def has_batch(shape: Sequence[Size]) -> bool:
    """Whether a size is a multiple of the number of samples."""
    return any(isinstance(n, Batch) for n in shape)


def elements(shape: Sequence[Size]) -> int:
    """The number of elements of a sample, or of a value without a batch."""
    count = 1
    for n in shape:
        count *= n.times if isinstance(n, Batch) else n
    return count


def stored(shape: Sequence[Size]) -> tuple[Optional[int], ...]:
    """The shape of the tensor of `mt` that `graph.tensor` makes: None, the batch, is first, then come the others."""
    sizes: list[Optional[int]] = []
    for n in shape:
        if isinstance(n, Batch):
            sizes.insert(0, None)
            sizes += [n.times] if n.times != 1 else []
        else:
            sizes.append(n)
    return tuple(sizes)
