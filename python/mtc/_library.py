# SPDX-License-Identifier: Apache-2.0
"""The shared libraries: where they are, and the types of their functions."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import os
import pathlib
import platform
import threading
from typing import Any, Iterator, Sequence

from mtc import _checks
from mtc import _structs as s
from mtc._errors import Error

# Symbols of the libraries that ours come with go before those of others in this process: TensorFlow shows an LLVM of
# its own to everybody.
_MODE = os.RTLD_NOW | os.RTLD_LOCAL | getattr(os, "RTLD_DEEPBIND", 0)
_LOCK = threading.Lock()
_PACKAGE = pathlib.Path(__file__).resolve().parent
_loaded: dict[str, ctypes.CDLL] = {}

_P = ctypes.c_void_p
_STR = ctypes.c_char_p
_I32 = ctypes.c_int32
_I64 = ctypes.c_int64
_OUT = ctypes.POINTER(ctypes.c_void_p)
_DOUBLES = ctypes.POINTER(ctypes.c_double)

# name: (result, arguments). A result of "status" is a mt_status *.
_STATUS = "status"
_Prototype = tuple[Any, Sequence[Any]]

_SHARED: dict[str, _Prototype] = {
    "mt_status_code": (ctypes.c_int, [_P]),
    "mt_status_message": (_STR, [_P]),
    "mt_status_free": (None, [_P]),
}
_RUNTIME: dict[str, _Prototype] = {
    **_SHARED,
    "mtrun_plan_load_memory": (_STATUS, [_STR, ctypes.c_size_t, _OUT]),
    "mtrun_plan_free": (None, [_P]),
    "mtrun_plan_model": (_STR, [_P]),
    "mtrun_plan_batch": (_I64, [_P]),
    "mtrun_plan_shards": (_I32, [_P]),
    "mtrun_plan_has_code": (ctypes.c_int, [_P, _STR]),
    "mtrun_plan_signature_count": (_I32, [_P, _STR]),
    "mtrun_plan_signature": (_STATUS, [_P, _STR, _I32, ctypes.POINTER(s.TensorInfo)]),
    "mtrun_plan_metric_count": (_I32, [_P, _STR]),
    "mtrun_plan_metric_name": (_STR, [_P, _STR, _I32]),
    "mtrun_plan_variable_count": (_I32, [_P]),
    "mtrun_plan_variable": (_STATUS, [_P, _I32, ctypes.POINTER(s.TensorInfo)]),
    "mtrun_session_create": (_STATUS, [_P, ctypes.POINTER(s.Options), _OUT]),
    "mtrun_session_free": (None, [_P]),
    "mtrun_session_init": (_STATUS, [_P, _I64]),
    "mtrun_session_get_info": (None, [_P, ctypes.POINTER(s.SessionInfo)]),
    "mtrun_train_step": (_STATUS, [_P, ctypes.POINTER(_P), _I64, ctypes.POINTER(s.Results)]),
    "mtrun_eval_step": (_STATUS, [_P, ctypes.POINTER(_P), _I64, ctypes.POINTER(s.Results)]),
    "mtrun_predict": (_STATUS, [_P, ctypes.POINTER(_P), _I64]),
    "mtrun_get_variable": (_STATUS, [_P, _STR, _P, ctypes.c_size_t]),
    "mtrun_set_variable": (_STATUS, [_P, _STR, _P, ctypes.c_size_t]),
    "mtrun_list_devices": (_STATUS, [s.LineCallback, _P]),
    "mtrun_default_devices": (_STATUS, [_P, _STR, ctypes.c_size_t]),
    "mtrun_list_libraries": (_STATUS, [s.LineCallback, _P]),
    "mtrun_save": (_STATUS, [_P, _STR]),
    "mtrun_load": (_STATUS, [_P, _STR]),
    "mtrun_dataset_open_arrays": (_STATUS, [_P, ctypes.POINTER(s.Field), _I32, _I64, _STR, _OUT]),
    "mtrun_dataset_open_source": (_STATUS, [_P, ctypes.POINTER(s.Source), _STR, _OUT]),
    "mtrun_dataset_size": (_I64, [_P]),
    "mtrun_dataset_free": (None, [_P]),
    "mtrun_dataset_notes": (None, [_P, s.LineCallback, _P]),
    "mtrun_fit": (_STATUS, [_P, _P, ctypes.POINTER(s.LoopOptions)]),
    "mtrun_plan_has_program": (ctypes.c_int, [_P, _STR]),
    "mtrun_plan_has_weights": (ctypes.c_int, [_P]),
    "mtrun_plan_metric_higher_is_better": (ctypes.c_int, [_P, _STR, _I32]),
    "mtrun_plan_sum_count": (_I64, [_P, _STR]),
    "mtrun_plan_metric_value": (ctypes.c_double, [_P, _STR, _I32, _DOUBLES, _DOUBLES]),
    "mtrun_plan_length_count": (_I32, [_P]),
    "mtrun_plan_length": (_I64, [_P, _I32]),
    "mtrun_session_length_steps": (_I64, [_P, _I32]),
    "mtrun_plan_token_count": (_I32, [_P]),
    "mtrun_plan_token": (_STR, [_P, _I32]),
    "mtrun_plan_graph": (_STATUS, [_P, _STR, s.NodeCallback, _P]),
    "mtrun_session_class_name": (_STR, [_P, _I64]),
    "mtrun_session_shards": (_I32, [_P, _I32]),
    "mtrun_check_save": (_STATUS, [_P, _STR]),
    "mtrun_load_matching": (_STATUS, [_P, _STR, ctypes.c_int, s.LineCallback, _P]),
    "mtrun_tune": (_STATUS, [_P, _STR, _I32, s.LineCallback, _P]),
    "mtrun_trace_start": (_STATUS, [_P, ctypes.POINTER(s.TraceOptions)]),
    "mtrun_trace_write": (_STATUS, [_P, _STR]),
    "mtrun_profile_get": (_STATUS, [_P, ctypes.POINTER(s.Profile)]),
    "mtrun_profile_get_entry": (_STATUS, [_P, _I32, ctypes.POINTER(s.ProfileEntry)]),
    "mtrun_data_form": (_STR, [_I32]),
    "mtrun_data_help": (_STR, [_I32]),
    "mtrun_data_describe": (_STATUS, [_STR, _I64, s.LineCallback, _P]),
    "mtrun_data_benchmark": (_STATUS, [_STR, _I64, ctypes.c_double, s.LineCallback, _P]),
    "mtrun_dataset_open": (_STATUS, [_P, _STR, _OUT]),
    "mtrun_dataset_split": (_STATUS, [_P, ctypes.c_double, _I64, _OUT, _OUT]),
    "mtrun_dataset_slice": (_STATUS, [_P, _I64, _I64, _OUT]),
    "mtrun_dataset_order": (None, [_P, _I64, _I64, _P]),
    "mtrun_predict_file": (_STATUS, [_P, _P, _I32, _STR]),
    "mtrun_benchmark": (_STATUS, [_P, _I64, _I64, _I64, ctypes.POINTER(s.Timing)]),
    "mtrun_version": (_STR, []),
    "mtrun_evaluate": (_STATUS, [_P, _P, ctypes.POINTER(s.LoopOptions), _DOUBLES]),
}
_COMPILER: dict[str, _Prototype] = {
    **_SHARED,
    "mtc_compile_file": (_STATUS, [_STR, ctypes.POINTER(s.CompileOptions), _OUT]),
    "mtc_result_data": (_P, [_P]),
    "mtc_result_size": (ctypes.c_size_t, [_P]),
    "mtc_result_free": (None, [_P]),
    "mtc_inspect": (_STATUS, [_STR, ctypes.c_size_t, ctypes.c_int, _OUT]),
    "mtc_import_file": (_STATUS, [_STR, ctypes.POINTER(s.CompileOptions), _OUT, _OUT]),
    "mtc_summary_file": (_STATUS, [_STR, ctypes.POINTER(s.CompileOptions), _OUT]),
    "mtc_stage_name": (_STR, [_I32]),
    "mtc_stage_help": (_STR, [_I32]),
    "mtc_inspect_gpus": (_STATUS, [_STR, ctypes.c_size_t, _STR, _OUT]),
    "mtc_inspect_devices": (_STATUS, [_STR, ctypes.c_size_t, _I32, ctypes.c_int, _OUT]),
    "mtc_inspect_with": (_STATUS, [_STR, ctypes.c_size_t, ctypes.POINTER(s.InspectOptions), _OUT]),
    "mtc_version": (_STR, []),
    "mtc_inspect_html": (_STATUS, [_STR, ctypes.c_size_t, _OUT]),
}


def candidates(name: str) -> Iterator[str]:
    """What to open for the library `name` ("mtrun"), the best first.

    First the folder lib/ of this package, then each folder of MTC_LIBRARY_PATH, then where the dynamic loader looks.
    """
    folders = [_PACKAGE / "lib"]
    folders += [pathlib.Path(f) for f in os.environ.get("MTC_LIBRARY_PATH", "").split(os.pathsep) if f]
    for folder in folders:
        for file in (f"lib{name}.so.0", f"lib{name}.so"):
            if (folder / file).exists():
                yield str(folder / file)
    yield f"lib{name}.so.0"
    yield f"lib{name}.so"


# Called at every step, with numbers of our own.
_UNCHECKED = {"mtrun_train_step", "mtrun_eval_step", "mtrun_predict"}


def _checked(name: str, function: Any, arguments: Sequence[Any]) -> Any:
    """The function, that refuses what ctypes would cut. Before a size stands no text, but bytes of any value."""
    kinds = [(i, kind) for i, (kind, after) in enumerate(zip(arguments, [*arguments[1:], None]))
             if kind in (_I32, _I64) or (kind is _STR and after is not ctypes.c_size_t)]
    if not kinds or name in _UNCHECKED:
        return function

    def call(*given: Any) -> Any:
        for i, kind in kinds:
            _checks.fits("a text" if kind is _STR else "a number", kind, given[i])
        return function(*given)

    return call


def _open(name: str, prototypes: dict[str, _Prototype]) -> ctypes.CDLL:
    with _LOCK:
        if name in _loaded:
            return _loaded[name]
        problems = []
        for path in candidates(name):
            try:
                library = ctypes.CDLL(path, mode=_MODE)
            except OSError as error:
                problems.append(str(error))
                continue
            for function, (result, arguments) in prototypes.items():
                try:
                    entry = getattr(library, function)
                except AttributeError:
                    raise Error(f"{path}: expected the function {function} of this version, found none") from None
                entry.argtypes = list(arguments)
                entry.restype = _P if result is _STATUS else result
                setattr(library, function, _checked(function, entry, arguments))
            _loaded[name] = library
            return library
    if name == "mtc" and _is_wheel():
        raise Error("expected the compiler, libmtc.so, found the wheel mtc-runtime alone, which runs plans: "
                    "pip install mtc adds it")
    raise Error(f"expected lib{name}.so in the package, in a folder of MTC_LIBRARY_PATH or where the loader looks, "
                f"found none: {problems[0]}")


def _is_wheel() -> bool:
    """Whether the package has the runtime in it, as the wheel mtc-runtime installs it."""
    return any((_PACKAGE / "lib").glob("libmtrun.so*"))


def runtime() -> ctypes.CDLL:
    """libmtrun, opened when it is first asked for."""
    return _loaded.get("mtrun") or _open("mtrun", _RUNTIME)


def compiler() -> ctypes.CDLL:
    """libmtc, opened when it is first asked for."""
    return _loaded.get("mtc") or _open("mtc", _COMPILER)


@functools.lru_cache(maxsize=1)
def processor() -> str:
    """What this machine's CPUs can do: a plan for "native" is for one that can do the same."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith(("flags", "Features")):
                return " ".join(sorted(line.partition(":")[2].split()))
    return platform.machine()


def compiler_identity() -> str:
    """Differs between builds of the compiler, and between kinds of CPU: the version of a cached plan."""
    return f"{_compiler_file()} {hashlib.blake2b(processor().encode(), digest_size=8).hexdigest()}"


def _compiler_file() -> str:
    compiler()
    for path in candidates("mtc"):
        if os.path.exists(path):
            stat = os.stat(path)
            return f"{os.path.realpath(path)} {stat.st_size} {stat.st_mtime_ns}"
    # Found by the loader: the file that is mapped into this process.
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")[2]
            if "/libmtc.so" in "/" + path:
                stat = os.stat("/" + path)
                return f"/{path} {stat.st_size} {stat.st_mtime_ns}"
    return "unknown"
