# SPDX-License-Identifier: Apache-2.0
"""MTC from Python: compiles Keras models ahead of time, and trains them to the same bits on any number of devices.

    import mtc
    history = mtc.fit(model, x, y, epochs=2, batch_size=64, validation_data=(xv, yv), devices="cpu:2")

NumPy and Keras are imported when they are first needed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtc._compile import compile as compile
    from mtc._errors import ClosedError as ClosedError
    from mtc._errors import CorruptError as CorruptError
    from mtc._errors import DataError as DataError
    from mtc._errors import DeviceError as DeviceError
    from mtc._errors import DeviceLost as DeviceLost
    from mtc._errors import Error as Error
    from mtc._errors import FallbackWarning as FallbackWarning
    from mtc._errors import FileError as FileError
    from mtc._errors import MemoryError_ as MemoryError_
    from mtc._errors import ModelError as ModelError
    from mtc._errors import ModelWarning as ModelWarning
    from mtc._errors import NoDeviceError as NoDeviceError
    from mtc._evaluate import evaluate as evaluate
    from mtc._evaluate import predict as predict
    from mtc._fit import fit as fit
    from mtc._plan import Plan as Plan
    from mtc._plan import load as load
    from mtc._session import Session as Session
    from mtc._session import Variables as Variables
    from mtc._tensors import TensorInfo as TensorInfo

__version__ = "0.1.0"

_HOMES = {
    "compile": "_compile", "evaluate": "_evaluate", "predict": "_evaluate", "fit": "_fit", "Plan": "_plan",
    "load": "_plan", "Session": "_session", "Variables": "_session", "TensorInfo": "_tensors",
    **dict.fromkeys(["ClosedError", "CorruptError", "DataError", "DeviceError", "DeviceLost", "Error",
                     "FallbackWarning", "FileError", "MemoryError_", "ModelError", "ModelWarning", "NoDeviceError"],
                    "_errors"),
}
__all__ = [*sorted(_HOMES), "__version__"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'mtc' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"mtc.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
