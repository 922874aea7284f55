# SPDX-License-Identifier: Apache-2.0
"""Numbers and texts of the caller's, before ctypes cuts what does not fit a field of C."""

from __future__ import annotations

import ctypes
from typing import Any, Optional

from mtc._errors import DataError

_INTEGERS = {kind: (-(1 << 8 * ctypes.sizeof(kind) - 1), (1 << 8 * ctypes.sizeof(kind) - 1) - 1)
             for kind in (ctypes.c_int, ctypes.c_int32, ctypes.c_int64)}
LARGEST = 2**63 - 1


def integer(name: str, value: Any, least: int, most: int = LARGEST) -> int:
    """An integer of `least` to `most`.

    Raises:
        TypeError: it is none.
        DataError: it is out of this range.
    """
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"expected {name} to be an integer, found {value!r}")
    number = int(value.__index__())
    if not least <= number <= most:
        wanted = f"at least {least}" if most == LARGEST else f"{least} to {most}"
        raise DataError(f"expected {name} of {wanted}, found {number}")
    return number


def optional(name: str, value: Any, least: int) -> Optional[int]:
    """An integer of at least `least`, or None."""
    return None if value is None else integer(name, value, least)


def fits(name: str, kind: Any, value: Any) -> None:
    """Checks what is to go into a field or an argument of this type of C.

    Raises:
        DataError: it would be cut: a text at a zero byte, an integer to its last bits.
    """
    if kind is ctypes.c_char_p and isinstance(value, bytes) and b"\0" in value:
        raise DataError(f"expected {name} without a zero byte, found {value.decode(errors='replace')!r}")
    limits = _INTEGERS.get(kind)
    if limits is not None and isinstance(value, int) and not limits[0] <= value <= limits[1]:
        raise DataError(f"expected {name} of {limits[0]} to {limits[1]}, found {value}")
