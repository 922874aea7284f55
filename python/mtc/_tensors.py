# SPDX-License-Identifier: Apache-2.0
"""Tensors: what a plan says of them, and the caller's arrays as the libraries take them."""

from __future__ import annotations

import ctypes
import dataclasses
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from mtc import _structs
from mtc._errors import DataError

Array = npt.NDArray[Any]

# Numbers of mt_dtype. BF16 is inside plans only.
_NUMBERS = {np.dtype(name): number for number, name in
            [(0, "float32"), (1, "int32"), (2, "bool"), (3, "int64"), (4, "float64"), (5, "uint8"), (7, "float16")]}
_BY_NUMBER = {number: dtype for dtype, number in _NUMBERS.items()}
_WIDER = {"int8": "int32", "int16": "int32", "uint16": "int32", "uint32": "int64", "uint64": "int64",
          "bfloat16": "float32", "longdouble": "float64", "float128": "float64"}

INPUT, TARGET, SAMPLE_WEIGHT, OUTPUT = range(4)
DENSE = -1  # MTRUN_DENSE
KINDS = ("trainable", "non_trainable", "optimizer")


@dataclasses.dataclass(frozen=True)
class TensorInfo:
    """A tensor of a plan.

    Attributes:
        name: its name.
        dtype: type of its elements, as NumPy calls it.
        shape: sizes of the axes. -1 is the batch axis, which is the first.
        role: 0 input, 1 target, 2 sample weight, 3 output; of variables 0.
        optional: a sample weight that may be left out, which stands for ones.
        kind: of variables "trainable", "non_trainable" or "optimizer".
        limit: integers are below it; -1: there is no such limit.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    role: int = INPUT
    optional: bool = False
    kind: str = ""
    limit: int = -1

    def __str__(self) -> str:
        return f"{self.name} {self.dtype} [{', '.join('?' if n < 0 else str(n) for n in self.shape)}]"


def tensor_of(info: _structs.TensorInfo) -> TensorInfo:
    """What the library says of a tensor."""
    shape = tuple(int(info.shape[i]) for i in range(info.rank))
    dtype = _BY_NUMBER[info.dtype].name if info.dtype in _BY_NUMBER else "bfloat16"
    return TensorInfo(info.name.decode(), dtype, shape, info.role, bool(info.optional), KINDS[info.kind], info.limit)


def as_array(value: Any, name: str) -> Array:
    """`value` as a NumPy array of a type that the libraries know, without a copy where that is possible.

    Takes what NumPy takes, and tensors of PyTorch, TensorFlow and JAX, and data frames.
    """
    if isinstance(value, np.ma.MaskedArray):
        hidden = int(np.sum(np.ma.getmaskarray(value)))
        if hidden:
            raise DataError(f'expected an array without a mask for "{name}", found one of {value.size} elements whose '
                            f"mask hides {hidden}: fill them, or weigh their samples with 0")
        value = value.data
    if not isinstance(value, np.ndarray):
        value = _converted(value, name)
    if value.dtype.kind in "OUSMmcV" and value.dtype.name not in _WIDER:
        advice = ("give its real and imaginary parts as two" if value.dtype.kind == "c" else
                  "strings and objects have to be encoded before")
        raise DataError(f'expected numbers for "{name}", found an array of {value.dtype}: {advice}')
    wider = _WIDER.get(value.dtype.name)
    if wider == "int64" and value.dtype.name == "uint64" and value.size and int(value.max()) > np.iinfo("int64").max:
        raise DataError(f'expected integers below 2^63 for "{name}", found {int(value.max())}')
    if wider is None and not value.dtype.isnative:
        wider = value.dtype.newbyteorder("=").str
    array: Array = value.astype(wider) if wider is not None else value
    return array


def _converted(value: Any, name: str) -> Array:
    """What is no array of NumPy yet."""
    if hasattr(value, "toarray") and hasattr(value, "nnz"):  # of SciPy
        raise DataError(f'expected a dense array for "{name}", found a sparse {type(value).__name__}: toarray() makes '
                        "it one")
    if hasattr(value, "detach") and hasattr(value, "cpu"):  # PyTorch
        value = value.detach().cpu()
        if getattr(value, "is_sparse", False) or "sparse" in str(getattr(value, "layout", "")):
            raise DataError(f'expected a dense array for "{name}", found a sparse tensor: to_dense() makes it one')
        value = value.float() if str(value.dtype) == "torch.bfloat16" else value
    try:
        array: Array = np.asarray(value)
    except (ValueError, TypeError) as error:
        raise DataError(f'expected an array for "{name}", found {_describe(value)}: {error}') from None
    return array


def _describe(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        lengths = sorted({len(item) for item in value if hasattr(item, "__len__")})
        return f"a list of lists of {' and '.join(map(str, lengths[:3]))} items" if len(lengths) > 1 else "a list"
    return type(value).__name__


def samples(value: Any, name: str) -> Array:
    """An array whose first axis counts samples, dense within a sample, and of samples that do not overlap."""
    array = as_array(value, name)
    if array.ndim == 0:
        raise DataError(f'expected an axis of samples for "{name}", found the number {array}')
    bytes_of_one = array.nbytes // max(len(array), 1)
    # A view that shows one sample many times, as NumPy's broadcast_to makes, has a stride of 0.
    if len(array) and (array.strides[0] < bytes_of_one or not array[0].flags.c_contiguous):
        array = np.ascontiguousarray(array)
    return array


def number_of(dtype: np.dtype[Any]) -> int:
    """The number of mt_dtype."""
    return _NUMBERS[dtype]


def address(array: Array) -> ctypes.c_void_p:
    """Where the elements are."""
    return ctypes.c_void_p(array.ctypes.data)


def make_fields(arrays: dict[str, Array]) -> tuple[Any, list[Any]]:
    """mtrun_field of each array of samples, and what must live as long as they."""
    fields = (_structs.Field * max(len(arrays), 1))()
    kept: list[Any] = [arrays]
    for field, (name, array) in zip(fields, arrays.items()):
        shape = (ctypes.c_int64 * max(array.ndim - 1, 1))(*array.shape[1:])
        text = name.encode()
        kept += [shape, text]
        field.name = text
        field.dtype = number_of(array.dtype)
        field.rank = array.ndim - 1
        field.shape = shape
        field.data = array.ctypes.data
        field.stride = array.strides[0] if len(array) > 1 else DENSE
    return fields, kept


def as_entry(value: Any, info: TensorInfo, rows: Optional[int] = None) -> Array:
    """`value` as a step call takes it: dense, of the entry's type and shape, [rows, ...]."""
    array = as_array(value, info.name)
    shape = info.shape[1:]
    size = int(np.prod(shape)) if shape else 1
    found = f"{array.dtype} {list(array.shape)}"
    if array.ndim == 0 or array.size != len(array) * size:
        raise DataError(f"expected {info}, found {found}")
    if rows is not None and len(array) != rows:
        raise DataError(f'expected {rows} samples of "{info.name}", found {len(array)}')
    return np.ascontiguousarray(as_type(array, info).reshape((len(array), *shape)))


def as_type(array: Array, info: TensorInfo) -> Array:
    """The same numbers in the type of an entry or variable; DataError where they are none of it."""
    dtype = np.dtype(info.dtype)
    if array.dtype == dtype or dtype.kind not in "iub":
        return array.astype(dtype, copy=False)
    with np.errstate(invalid="ignore"):
        made = array.astype(dtype)
    if array.dtype.kind in "iuf" and dtype.kind in "iu" and not np.array_equal(made, array):
        wrong = array.reshape(-1)[np.flatnonzero((made != array).reshape(-1))[0]]
        if array.dtype.kind == "f":
            raise DataError(f"expected {info}, found {array.dtype} {list(array.shape)} with values that are not "
                            f"whole or do not fit, such as {wrong}")
        limits = np.iinfo(dtype)
        raise DataError(f"expected {info}, found {array.dtype} {list(array.shape)} with {wrong}, which is not within "
                        f"{limits.min} to {limits.max}")
    if array.dtype.kind == "f" and not np.array_equal(made, array):
        raise DataError(f"expected {info}, found {array.dtype} {list(array.shape)} with values that are neither 0 "
                        "nor 1")
    return made


def stored(array: Any, doubles: bool = False) -> Array:
    """An array as a variable of a plan has it: float32, or int32 for numbers of other kinds.

    `doubles`: of a plan of precision f64, whose numbers of float64 are stored as they are.
    """
    array = np.asarray(array)
    if doubles and array.dtype == np.float64:
        return np.asarray(array, np.float64)
    return np.asarray(array, np.int32 if array.dtype.kind in "biu" else np.float32)
