# SPDX-License-Identifier: Apache-2.0
"""The numbers that a trace computes with: float32, or float64 where the plan's precision is f64.

In the text of a trace both are written f32: the compiler makes f64 of it in a module of that precision, and constants
are written as they are.
"""

from __future__ import annotations

import contextlib
import contextvars
import functools
from typing import Any, Callable, Iterator, Optional, TypeVar, cast

import numpy as np

from mtc._errors import ModelError

_doubles: contextvars.ContextVar[bool] = contextvars.ContextVar("doubles", default=False)
Function = TypeVar("Function", bound=Callable[..., Any])
_NAMES = ("f64", "fp64", "float64", "double")


def is_double(precision: Optional[str]) -> bool:
    """Whether the `precision` of `mtc.compile` is f64."""
    return precision in _NAMES


@contextlib.contextmanager
def of(precision: Optional[str]) -> Iterator[None]:
    """Within it, traces compute with the numbers of this precision."""
    token = _doubles.set(is_double(precision))
    try:
        yield
    finally:
        _doubles.reset(token)


def chosen(function: Function) -> Function:
    """A function that compiles, whose traces compute with the numbers of its argument `precision`."""
    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with of(kwargs.get("precision")):
            return function(*args, **kwargs)
    return cast(Function, run)


def refuse(precision: Optional[str], what: str) -> None:
    """ModelError for a trace whose numbers are float32, and a plan of f64."""
    if is_double(precision):
        raise ModelError(f"expected a precision of float32 or 16 bits for {what}, found f64: write it for mtc.jax, or "
                         "for mtc.torch.compile, which trace in float64")


def double() -> bool:
    """Whether a trace computes with float64 now."""
    return _doubles.get()


def real() -> Any:
    """The type of NumPy that a trace computes with now."""
    return np.float64 if _doubles.get() else np.float32


def rounding() -> float:
    """By how much two factors that mean the same differ at most."""
    return 1e-13 if double() else 1e-6


def tolerance(given: float) -> float:
    """A check's tolerance for these numbers."""
    return min(given, 1e-8) if double() else given


def name() -> str:
    """The name of that type."""
    return str(np.dtype(real()).name)
