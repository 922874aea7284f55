# SPDX-License-Identifier: Apache-2.0
"""Compiling: a file or a text becomes a plan."""

from __future__ import annotations

import json
import os
import pathlib
import re
import struct
import sys
import tempfile
import threading
import time
import warnings
from typing import Any, Callable, Generic, Mapping, Optional, TypeVar, Union, cast

import numpy as np

from mtc import _cache, _library, _structs
from mtc._errors import Error, FileError, ModelError, ModelWarning
from mtc._options import encoded, in_python
from mtc._plan import Plan, take_result
from mtc._process import own_verbosity

Result = TypeVar("Result")


def compile_file(path: pathlib.Path, settings: dict[str, Any], verbose: Union[int, str], name: str = "",
                 strip: str = "") -> bytes:
    """The bytes of the plan of a file.

    `name`: what to call it while it takes long, in place of the file's name. `strip` is left out of messages.
    """
    shown = "" if own_verbosity(verbose) == 0 else f"{name or path.name}, batch {settings['batch']}"
    if not path.exists():
        raise FileError(f"cannot open {path}: No such file or directory")
    library = _library.compiler()
    messages: list[str] = []

    def log(_user: Optional[int], level: int, message: bytes) -> None:
        if level >= 1:
            text = message.decode(errors="replace")
            messages.append(text.replace(strip, "") if strip else text)

    options = _structs.sized(_structs.CompileOptions, log=_structs.LogCallback(log), **encoded(settings))

    def work() -> bytes:
        try:
            return take_result(library.mtc_compile_file, os.fsencode(path), options, invalid=ModelError, strip=strip)
        except Error as error:
            error.args = (in_python(str(error)),)
            raise

    data = _run_interruptibly(work, shown)
    for message in messages:
        warnings.warn(message, ModelWarning, stacklevel=2)
    return data


class _Background(Generic[Result]):
    """Work in a thread of its own, so that Ctrl-C ends the wait for it."""

    def __init__(self, work: Callable[[], Result]) -> None:
        self._outcome: list[Any] = []

        def run() -> None:
            try:
                self._outcome.append((True, work()))
            except BaseException as error:  # noqa: BLE001 - `result` raises it
                self._outcome.append((False, error))

        self._thread = threading.Thread(target=run, name="mtc compile", daemon=True)
        self._thread.start()

    def wait(self, seconds: Optional[float] = None) -> bool:
        """Whether the work is done."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def result(self) -> Result:
        """What the work gives. Raises what it raises."""
        self.wait()
        good, value = self._outcome[0]
        if not good:
            raise cast(BaseException, value)
        return cast(Result, value)


def _run_interruptibly(work: Callable[[], Result], shown: str) -> Result:
    """Runs `work` so that Ctrl-C ends the wait for it, and tells when it takes long."""
    updates = sys.stderr.isatty() or "ipykernel" in sys.modules  # one line that changes
    start, told = time.monotonic(), False
    running = _Background(work)
    try:
        while not running.wait(0.25 if told or shown else None):
            seconds = time.monotonic() - start
            if shown and seconds > 1 and (updates or not told):
                told = True
                line = f"mtc: compiling {shown}"
                print(f"\r{line}: {seconds:.0f} s" if updates else line, end="", file=sys.stderr, flush=True)
    finally:
        if told:
            print(f"\rmtc: compiled {shown} in {time.monotonic() - start:.1f} s" if updates else "", file=sys.stderr)
    return running.result()


def compile_saved(save: Callable[[str], None], name: str, settings: dict[str, Any],
                  verbose: Union[int, str]) -> bytes:
    """Saves a model to a temporary file and compiles that. Messages have no trace of the file's folder."""
    with tempfile.TemporaryDirectory(prefix="mtc-") as folder:
        path = pathlib.Path(folder) / f"{name}.keras"
        save(str(path))
        return compile_file(path, settings, verbose, name, strip=folder + "/")


def plan_of_text(text: str, name: str, settings: dict[str, Any], verbose: Union[int, str],
                 weights: Optional[Mapping[str, Any]] = None) -> bytes:
    """The bytes of the plan of `mt` text.

    `weights`: arrays that its variables start with, by name; the others start as they say.
    """
    with tempfile.TemporaryDirectory(prefix="mtc-") as folder:
        path = pathlib.Path(folder) / (re.sub(r"[^\w.-]", "_", name) + ".mlir")
        path.write_text(text, encoding="utf-8")
        if weights:
            file = path.with_name("weights.safetensors")
            file.write_bytes(_safetensors(weights))
            settings = {**settings, "weights": str(file)}
        return compile_file(path, settings, verbose, name, strip=folder + "/")


def _safetensors(arrays: Mapping[str, Any]) -> bytes:
    """Arrays of f32, i32 or i64 in the format of that name."""
    header, parts, offset = {}, [], 0
    for name, array in arrays.items():
        array = np.asarray(array)
        little = array.astype(array.dtype.newbyteorder("<"))
        data = np.ascontiguousarray(little).tobytes()
        header[name] = {"dtype": f"{array.dtype.kind.upper()}{8 * array.dtype.itemsize}", "shape": list(array.shape),
                        "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        parts.append(data)
    text = json.dumps(header).encode()
    return b"".join([struct.pack("<Q", len(text)), text, *parts])


def while_checking(make: Callable[[], Result], check: Callable[[], str], verbose: Union[int, str]) -> Result:
    """What `make` compiles, in a thread of its own, while `check` runs; then shows the line that `check` gives.

    Raises:
        ModelError: the check failed, or, where it passed, the model cannot be compiled.
    """
    made = _Background(make)
    try:
        line = check()
    except Exception:
        made.wait()  # the process may end now: not while the compiler works
        raise
    result = made.result()
    if own_verbosity(verbose) != 0:
        print(f"mtc: {line}", file=sys.stderr)
    return result


def cached(key: str, make: Callable[[], bytes], cache: bool) -> Plan:
    """The plan of this key, made where there is none."""
    plan = _cache.get(key) if cache else None
    if plan is None:
        data = make()
        plan = _cache.put(key, data) if cache else Plan(data)
    return plan
