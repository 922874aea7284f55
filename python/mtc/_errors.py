# SPDX-License-Identifier: Apache-2.0
"""Exceptions, a class for each code of the libraries. Their text is what the tools print."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Optional

if TYPE_CHECKING:
    import ctypes


class Error(Exception):
    """Base of all exceptions of this package.

    Attributes:
        code: the number of `mt_code`, which is also the exit code of the tools; 0 where Python found the problem.
    """

    code = 0


class ModelError(Error, ValueError):
    """The model cannot be compiled. One line for each problem, with the layer's name."""

    code = 1


class DataError(Error, ValueError):
    """Data or an argument does not fit the plan: names, types, shapes, labels, values."""

    code = 1


class CorruptError(Error, ValueError):
    """A plan or a data file is damaged, or of another version."""

    code = 3


class OutOfMemoryError(Error, MemoryError):
    """More memory is needed than there is, or than `device_memory` allows."""

    code = 4


MemoryError_ = OutOfMemoryError  # its name in version 0.1


class DeviceError(Error, RuntimeError):
    """A device does not start, or the plan has no code for it."""

    code = 5


class FileError(Error, OSError):
    """A file could not be read or written."""

    code = 7


class NoDeviceError(DeviceError):
    """There is no such device: no driver, one that is too old, or no device of that number."""

    code = 8


class DeviceLost(Error, RuntimeError):
    """A device failed while it ran, or another process of the run was lost."""

    code = 9


class ClosedError(Error, RuntimeError):
    """A session was used after it was closed, in another process, or by two threads at once."""


class ModelWarning(UserWarning):
    """What the compiler warns of."""


class FallbackWarning(UserWarning):
    """A model or its data runs in Keras and not through MTC; the text says why."""


class VersionWarning(UserWarning):
    """A framework is newer than any that this package was tested with."""


_CLASSES: dict[int, type[Error]] = {
    1: DataError, 3: CorruptError, 4: OutOfMemoryError, 5: DeviceError, 6: DeviceLost, 7: FileError, 8: NoDeviceError,
    9: DeviceLost,
}


def check(library: ctypes.CDLL, status: Optional[int], invalid: type[Error] = DataError, strip: str = "",
          spell: Callable[[str], str] = str) -> None:
    """Raises the error of a status, and frees it; does nothing for NULL.

    `invalid` is the class for MT_INVALID. `strip` is left out of the message: the name of a temporary file. `spell`
    changes the message.
    """
    if not status:
        return
    code = library.mt_status_code(status)
    text = library.mt_status_message(status).decode(errors="replace")
    library.mt_status_free(status)
    if strip:
        text = text.replace(strip, "")
    kind = invalid if code == 1 else _CLASSES.get(code, Error)
    error = kind(spell(text))
    error.code = code
    raise error
