# SPDX-License-Identifier: Apache-2.0
"""Types of PyTorch that `mt` computes in another one: 8 and 16 bits, of integers and of floats."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtc._trace import Refused, Value, reals
from mtc._trace import elementwise as e
from mtc.torch._framework import torch

# Integers of so many bits, and whether they have a sign. In PyTorch they wrap; in `mt` they are i32.
_NARROW = {torch.uint8: (8, False), torch.int8: (8, True), torch.uint16: (16, False), torch.int16: (16, True)}
_UNSIGNED = {torch.uint32, torch.uint64}
_WRAPS = {"add", "sub", "subtract", "rsub", "mul", "multiply", "neg", "abs", "square", "pow", "addcmul", "sum", "prod",
          "cumsum", "_to_copy", "to", "_to_dtype", "type_as", "copy", "fill", "lerp"}
_PRODUCTS = {"mul", "multiply", "square", "pow", "addcmul", "prod", "cumsum", "sum"}
HALVES = {torch.float16: "f16", torch.bfloat16: "bf16"}


def in_type(made: Any, op: str, traced: Any) -> Any:
    """What an operation has made, in the type that PyTorch computes it in: wrapped, or rounded."""
    if isinstance(made, (list, tuple)):
        return [in_type(m, op, t) for m, t in zip(made, traced)] if isinstance(traced, (list, tuple)) else made
    if not isinstance(made, Value) or not isinstance(traced, torch.Tensor):
        return made
    if traced.dtype in HALVES:
        raise Refused(f"{traced.dtype} amid float32, which MTC would not round: leave the values in float32, or train "
                      f'in 16 bits by precision="{HALVES[traced.dtype]}" of compile')
    if reals.double() and traced.dtype in (torch.float32, torch.complex64):
        return _rounded(made)
    if traced.dtype in _NARROW and op in _WRAPS and made.dtype == "i32":
        return _wrapped(made, op, *_NARROW[traced.dtype])
    if traced.dtype in _UNSIGNED and op in _WRAPS:
        raise Refused(f"arithmetic of {traced.dtype}: cast to torch.int32, or to torch.float32, first")
    return made


def _rounded(value: Value) -> Value:
    """A constant of float32 amid float64."""
    if value.constant is None:
        raise Refused("torch.float32 amid float64, which MTC would not round: compute in torch.float64")
    return value.graph.repeated(value.constant.astype(np.float32), value.shape, value.dtype)


def _wrapped(value: Value, op: str, bits: int, signed: bool) -> Value:
    """Modulo 2^bits. Sums and products of 8 bits, and sums of 16, are exact in f32, in which the remainder is taken."""
    if value.constant is not None:
        array = value.constant.astype(np.dtype(f"{'i' if signed else 'u'}{bits // 8}")).astype(np.int32)
        return value.graph.repeated(array, value.shape, "i32")
    if op in _PRODUCTS and (bits > 8 or op not in ("mul", "multiply", "square")):
        raise Refused(f"{op} of integers of {bits} bits, which wrap in PyTorch: cast to torch.int32, or to "
                      "torch.float32, first")
    count, low = 2 ** bits, -(2 ** (bits - 1)) if signed else 0
    x = e.cast(value, "f32") - float(low)
    turns = e.unary("floor", x * (1 / count))
    return e.cast(x - turns * float(count) + float(low), "i32")
