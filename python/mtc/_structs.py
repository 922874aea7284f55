# SPDX-License-Identifier: Apache-2.0
"""The structs and callbacks of mtc.h and mtrun.h for ctypes. Their fields are those of the headers."""

from __future__ import annotations

import ctypes
from ctypes import c_char_p, c_int, c_int64, c_void_p
from typing import Any, TypeVar

from mtc import _headers
from mtc._checks import fits

LogCallback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)
LineCallback = ctypes.CFUNCTYPE(None, c_void_p, c_char_p)


def _fields(struct: str, **types: Any) -> list[tuple[str, Any]]:
    """The fields of a struct; `types` has those that are no numbers or texts."""
    fields = [(f"{f.name}_" if f.name == "pass" else f.name, f.ctype()) for f in _headers.fields(struct)]
    return [(name, types.get(name, kind)) for name, kind in fields]


class TensorInfo(ctypes.Structure):
    """mtrun_tensor_info"""

    _fields_ = _fields("mtrun_tensor_info")


class CompileOptions(ctypes.Structure):
    """mtc_options"""

    _fields_ = _fields("mtc_options", log=LogCallback)


class InspectOptions(ctypes.Structure):
    """mtc_inspect_options"""

    _fields_ = _fields("mtc_inspect_options", against=c_char_p)


class Options(ctypes.Structure):
    """mtrun_options"""

    _fields_ = _fields("mtrun_options", log=LogCallback)


class Results(ctypes.Structure):
    """mtrun_results"""

    _fields_ = _fields("mtrun_results")


class SessionInfo(ctypes.Structure):
    """mtrun_session_info"""

    _fields_ = _fields("mtrun_session_info")


class Activity(ctypes.Structure):
    """mtrun_activity"""

    _fields_ = _fields("mtrun_activity")


class Field(ctypes.Structure):
    """mtrun_field"""

    _fields_ = _fields("mtrun_field")


class Request(ctypes.Structure):
    """mtrun_request"""

    _fields_ = _fields("mtrun_request", fields=ctypes.POINTER(c_void_p), message=c_void_p)


ReadCallback = ctypes.CFUNCTYPE(c_int64, c_void_p, ctypes.POINTER(Request))


class Source(ctypes.Structure):
    """mtrun_source"""

    _fields_ = _fields("mtrun_source", fields=ctypes.POINTER(Field), read=ReadCallback)


class Progress(ctypes.Structure):
    """mtrun_progress"""

    _fields_ = _fields("mtrun_progress")


ProgressCallback = ctypes.CFUNCTYPE(c_int, c_void_p, ctypes.POINTER(Progress))
StopCallback = ctypes.CFUNCTYPE(c_int, c_void_p)
EpochCallback = ctypes.CFUNCTYPE(c_int, c_void_p, c_int64)


class CheckpointOptions(ctypes.Structure):
    """mtrun_checkpoint_options"""

    _fields_ = _fields("mtrun_checkpoint_options")


class FitResult(ctypes.Structure):
    """mtrun_fit_result"""

    _fields_ = _fields("mtrun_fit_result")


class LoopOptions(ctypes.Structure):
    """mtrun_loop_options"""

    _fields_ = _fields("mtrun_loop_options", progress=ProgressCallback, checkpoint=ctypes.POINTER(CheckpointOptions),
                       stop=StopCallback, note=LineCallback, result=ctypes.POINTER(FitResult),
                       epoch_begin=EpochCallback)


class Node(ctypes.Structure):
    """mtrun_node"""

    _fields_ = _fields("mtrun_node")


NodeCallback = ctypes.CFUNCTYPE(None, c_void_p, ctypes.POINTER(Node))


class TraceOptions(ctypes.Structure):
    """mtrun_trace_options"""

    _fields_ = _fields("mtrun_trace_options")


class Profile(ctypes.Structure):
    """mtrun_profile"""

    _fields_ = _fields("mtrun_profile")


class ProfileEntry(ctypes.Structure):
    """mtrun_profile_entry"""

    _fields_ = _fields("mtrun_profile_entry")


class Timing(ctypes.Structure):
    """mtrun_timing"""

    _fields_ = _fields("mtrun_timing")


# What functions take the address of.
STRUCTS = {"mtrun_tensor_info": TensorInfo, "mtc_options": CompileOptions, "mtc_inspect_options": InspectOptions,
           "mtrun_options": Options, "mtrun_results": Results, "mtrun_session_info": SessionInfo, "mtrun_field": Field,
           "mtrun_activity": Activity,
           "mtrun_source": Source, "mtrun_loop_options": LoopOptions, "mtrun_trace_options": TraceOptions,
           "mtrun_profile": Profile, "mtrun_profile_entry": ProfileEntry, "mtrun_timing": Timing}

Options_ = TypeVar("Options_", bound=ctypes.Structure)


def sized(kind: type[Options_], **values: Any) -> Options_:
    """Options that are zero but for their size and `values`. DataError where a value does not fit its field."""
    for name, of, *_ in kind._fields_:
        if name in values and f"{name}_size" not in values:
            fits(name, of, values[name])
    options = kind(**values)
    options.struct_size = ctypes.sizeof(kind)
    return options
