# SPDX-License-Identifier: Apache-2.0
"""The table of ATen operations: a function for each, which a Converter calls, and lists of what needs none."""

from __future__ import annotations

from typing import Any, Callable

Handler = Callable[..., Any]
HANDLERS: dict[str, Handler] = {}
# What adds elements up, or looks at all of them.
OF_LINES = {"sum", "mean", "prod", "any", "all", "max", "min", "amax", "amin", "norm", "linalg_vector_norm", "var",
            "std", "logsumexp", "count_nonzero", "dot", "mm", "mv", "matmul", "bmm"}
# What computes with a size that is an operand, where other operations have sizes as shapes and places.
OF_NUMBERS = {"eq", "ne", "lt", "le", "gt", "ge", "add", "sub", "mul", "div", "rsub"}
FILLS = {"full", "full_like", "new_full", "scalar_tensor"}
IGNORED = {"_assert_tensor_metadata", "_assert_scalar", "_assert_async", "sym_constrain_range",
           "sym_constrain_range_for_size"}
# They read the shape and the type of a tensor, and not its elements.
OF_SHAPE = {"new_empty", "new_zeros", "new_ones", "new_full", "zeros_like", "ones_like", "full_like", "empty_like"}


def op(*names: str) -> Callable[[Handler], Handler]:
    """Registers the function for ATen operations of these names, whatever their overload.

    It is called with the converter and the operation's arguments, in the order of its schema.
    """

    def register(function: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = function
        return function

    return register


COMPLEX: list[Handler] = []  # what converts an operation of complex numbers


def on_complex(function: Handler) -> Handler:
    """Registers the function for operations that take or give complex numbers.

    It is called with the converter and a list of the operation's arguments.
    """
    COMPLEX.append(function)
    return function


def is_known(name: str) -> bool:
    """Whether an operation has a handler, or needs none."""
    return name in HANDLERS or name in IGNORED or name in OF_SHAPE
