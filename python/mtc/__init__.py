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
    from mtc._api import compile as compile
    from mtc._api import compile_text as compile_text
    from mtc._dataset import Dataset as Dataset
    from mtc._dataset import benchmark_data as benchmark_data
    from mtc._dataset import data_sources as data_sources
    from mtc._dataset import describe_data as describe_data
    from mtc._dataset import save_columns as save_columns
    from mtc._describe import import_model as import_model
    from mtc._describe import lower as lower
    from mtc._describe import stages as stages
    from mtc._describe import summary as summary
    from mtc._describe import versions as versions
    from mtc._devices import devices as devices
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
    from mtc._errors import OutOfMemoryError as OutOfMemoryError
    from mtc._errors import VersionWarning as VersionWarning
    from mtc._loop import FitResult as FitResult
    from mtc._loop import Progress as Progress
    from mtc._plan import Node as Node
    from mtc._plan import Plan as Plan
    from mtc._plan import load as load
    from mtc._process import process as process
    from mtc._process import processes as processes
    from mtc._profile import Profile as Profile
    from mtc._profile import ProfileEntry as ProfileEntry
    from mtc._profile import StepResult as StepResult
    from mtc._profile import Timing as Timing
    from mtc._profile import Totals as Totals
    from mtc._session import Session as Session
    from mtc._tensors import TensorInfo as TensorInfo
    from mtc._variables import Variables as Variables
    from mtc.keras._evaluate import evaluate as evaluate
    from mtc.keras._evaluate import predict as predict
    from mtc.keras._fit import fit as fit

    __version__: str

# Of each module what it has.
_HOMES = {name: module for module, names in {
    "_api": ["compile", "compile_text"],
    "_dataset": ["Dataset", "benchmark_data", "data_sources", "describe_data", "save_columns"],
    "_describe": ["import_model", "lower", "stages", "summary", "versions"], "_devices": ["devices"],
    "_errors": ["ClosedError", "CorruptError", "DataError", "DeviceError", "DeviceLost", "Error", "FallbackWarning",
                "FileError", "MemoryError_", "ModelError", "ModelWarning", "NoDeviceError", "OutOfMemoryError",
                "VersionWarning"],
    "keras._evaluate": ["evaluate", "predict"], "keras._fit": ["fit"], "_loop": ["FitResult", "Progress"],
    "_plan": ["Node", "Plan", "load"], "_process": ["process", "processes"],
    "_profile": ["Profile", "ProfileEntry", "StepResult", "Timing", "Totals"],
    "_session": ["Session"], "_tensors": ["TensorInfo"], "_variables": ["Variables"],
}.items() for name in names}
_MOVED = {"_live": "mtc.keras._live"}  # scripts that compare single steps with Keras' import it from here
__all__ = [*sorted(_HOMES), "__version__"]  # noqa: PLE0604 - strings, which ruff cannot see


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.import_module("mtc._headers").version()
    if name in _MOVED:
        return importlib.import_module(_MOVED[name])
    if name not in _HOMES:
        raise AttributeError(f"module 'mtc' has no attribute '{name}'")
    value = getattr(importlib.import_module(f"mtc.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
