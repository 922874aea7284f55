# SPDX-License-Identifier: Apache-2.0
"""Values of a trace: a logical shape over a stored tensor."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, NamedTuple, Optional, Union

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mtc._trace.graph import Graph

Array = npt.NDArray[Any]
Stored = tuple[Optional[int], ...]  # sizes of a stored tensor; None: the batch, which is the first


class Refused(Exception):
    """What `mt` cannot do; the text says what."""


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

DTYPES: dict[str, Any] = {"f32": np.float32, "i32": np.int32, "i1": np.bool_}


class Axis(NamedTuple):
    """A part of a logical axis.

    `place` is its axis of the stored tensor; None: the elements along it are equal, and stored once. The batch is an
    axis of its own, of size `BATCH`. Only an axis that is not stored may have the size `Batch(k)`: how the batch lies
    in it is then open. Stored tensors have no axes of size 1.
    """

    size: Size
    place: Optional[int] = None


@dataclasses.dataclass(eq=False)
class Node:
    """An operation of the text, and the tensor that it makes.

    `template` is its text without the result, in which {0} is the first operand, {t0} its type, and {t} the type of
    the result.
    """

    op: str
    operands: tuple[Node, ...]
    template: str
    shape: Stored
    dtype: str
    constant: Optional[Array] = None
    location: str = ""
    count: int = 0  # not 0: so many times the number of samples
    learned: bool = False  # depends on a trainable variable
    number: int = -1
    info: Any = None  # of what makes it, for those that look for patterns
    bounds: Optional[tuple[int, int]] = None  # of integers: the least and the largest value, see `integers.bounds`

    @property
    def split(self) -> bool:
        """Whether its first axis is the batch."""
        return bool(self.shape) and self.shape[0] is None

    @property
    def elements(self) -> int:
        """Elements of a sample, or of the whole."""
        return math.prod(n for n in self.shape if n is not None)

    @property
    def type(self) -> str:
        """The text of its type."""
        return "tensor<" + "".join(f"{'?' if n is None else n}x" for n in self.shape) + self.dtype + ">"


@dataclasses.dataclass(frozen=True, eq=False)
class Value:
    """A value of the trace. `axes` has a tuple of parts for each logical axis, row major."""

    graph: Graph
    node: Node
    axes: tuple[tuple[Axis, ...], ...]

    @property
    def dtype(self) -> str:
        """\"f32", "i32" or "i1"."""
        return self.node.dtype

    @property
    def shape(self) -> Shape:
        """The logical shape."""
        return tuple(size_of(parts) for parts in self.axes)

    @property
    def flat(self) -> tuple[Axis, ...]:
        """The parts of all axes."""
        return tuple(part for parts in self.axes for part in parts)

    @property
    def constant(self) -> Optional[Array]:
        """The stored elements of a constant; None for other values."""
        return self.node.constant

    @property
    def array(self) -> Optional[Array]:
        """A constant of a static shape, in its logical shape; None for other values."""
        if self.node.constant is None or any(isinstance(n, Batch) for n in self.shape):
            return None
        flat = self.flat
        kept = [a.place for a in flat if a.place is not None]
        array = np.transpose(self.node.constant, kept)
        array = array.reshape([a.size if a.place is not None else 1 for a in flat])  # type: ignore[misc]
        return np.broadcast_to(array, self.shape)  # type: ignore[arg-type]

    @property
    def scalar(self) -> Optional[float]:
        """The number that all elements of a constant are; None for other values."""
        return self.node.constant.item() if self.node.constant is not None and not self.node.shape else None

    def __repr__(self) -> str:
        return f"<{self.dtype}{list(self.shape)} of {self.node.op}>"


def size_of(parts: tuple[Axis, ...]) -> Size:
    """The size of a logical axis."""
    total: Size = 1
    for part in parts:
        total = part.size * int(total) if isinstance(part.size, Batch) else total * part.size  # type: ignore[arg-type]
    return total


def batch_of(flat: tuple[Axis, ...]) -> Optional[int]:
    """Which part the batch is in; None where there is none."""
    return next((i for i, part in enumerate(flat) if isinstance(part.size, Batch)), None)
