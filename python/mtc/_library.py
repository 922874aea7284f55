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
import re
import threading
from typing import Any, Iterator, Sequence

from mtc import _checks, _headers
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


def _type_of(text: str) -> Any:
    """The type of ctypes for one of C's headers."""
    if "(*" in text:
        return s.NodeCallback if "mtrun_node" in text else s.LineCallback
    base, pointers = re.sub(r"\bconst\b", "", text).split()[0], text.count("*")
    if pointers > 1:
        return ctypes.POINTER(_P)
    if pointers and base in s.STRUCTS:
        return ctypes.POINTER(s.STRUCTS[base])
    if pointers:
        return {"char": _STR, "double": ctypes.POINTER(ctypes.c_double)}.get(base, _P)
    return _headers.PLAIN.get(base, ctypes.c_int)


def _prototypes(*headers: str) -> dict[str, tuple[Any, list[Any]]]:
    """Of each function of these headers: what it returns, and its arguments."""
    found = {}
    for result, name, arguments in re.findall(r"MT_API ([\w ]+?\**)(\w+)\(([^;]*)\);",
                                              "".join(map(_headers.header, headers))):
        each = [] if arguments == "void" else re.split(r",(?![^(]*\))\s*", arguments)
        found[name] = (None if result == "void " else _type_of(result), [_type_of(argument) for argument in each])
    return found


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


def _open(name: str, *headers: str) -> ctypes.CDLL:
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
            for function, (result, arguments) in _prototypes("mt.h", *headers).items():
                try:
                    entry = getattr(library, function)
                except AttributeError:
                    raise Error(f"{path}: expected the function {function} of this version, found none") from None
                entry.argtypes = list(arguments)
                entry.restype = result
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
    return _loaded.get("mtrun") or _open("mtrun", "mtrun.h", *_headers.parts())


def compiler() -> ctypes.CDLL:
    """libmtc, opened when it is first asked for."""
    return _loaded.get("mtc") or _open("mtc", "mtc.h")


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
