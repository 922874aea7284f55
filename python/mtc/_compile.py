# SPDX-License-Identifier: Apache-2.0
"""Compiling: a model's file, or a live Keras model, becomes a plan."""

from __future__ import annotations

import ctypes
import functools
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

from mtc import _cache, _headers, _library, _structs
from mtc._errors import Error, FileError, ModelError, ModelWarning
from mtc._plan import Plan, take_result

Result = TypeVar("Result")

# Options of mtc_options that callers may set besides those that `compile` names.
_OWN = ("struct_size", "batch", "shards", "fast", "target", "precision", "seed", "log", "log_user", "stop_after",
        "dump_stages", "print_ir_before", "print_ir_after", "timing")
_OPTIONS = {option.field.name: option for option in _headers.options("mtc_options") if option.field.name not in _OWN}


@_headers.documented("mtc_options", without=_OWN)
def compile(model: Any, *, batch_size: int = 32, target: Optional[str] = None, precision: Optional[str] = None,
            shards: int = 0, seed: int = 0, mode: str = "exact", verbose: Union[int, str] = "auto",
            cache: bool = True, by: Optional[str] = None, example: Any = None, check: Union[bool, str] = True,
            **options: Any) -> Plan:
    """Compiles a model into a plan.

    Args:
        model: a Keras model, compiled and built; or the path of a `.keras`, `.json`, `.onnx` or `.mlir` file. The
            plan of a Keras model starts with its weights and the state of its optimizer.
        batch_size: the global batch: samples of a training step, on all devices together.
        target: "cpu" (None), "cpu,cuda", "cuda:sm_90": for which devices.
        precision: "f32", "tf32", "bf16", "f16", or one of Keras' names. None: as the model's dtype policies say.
        shards: slices of the batch, a power of two, and the largest number of devices. 0: 8, or the largest power of
            two that is at most `batch_size`.
        seed: of the initial values and of random numbers; 0: 1.
        mode: "exact": the same bits on any number of devices. "fast": without that promise.
        verbose: 0: silent; else a line on standard error if it takes more than a second.
        cache: False: compiles again, and keeps nothing.
        by: "file": a Keras model is read as its file; "trace": it is traced on Keras' JAX back end; None: the file, and
            a trace where that is refused.
        example: x, (x, y) or (x, y, sample_weight), a few samples, for the trace of a model that does not know its
            inputs or targets.
        check: compares what Keras and MTC make of the example, and of batches that are made of it, while the plan of a
            trace is compiled. "full": of all of them, however long it takes. False: compares nothing.
        options: other fields of `mtc_options`.

    Returns:
        The plan, from the cache if the same was compiled before.

    Raises:
        ModelError: the model cannot be compiled; the text has a line for each problem.
        OutOfMemoryError: it fits on no number of devices with `device_memory`.
    """
    settings = _settings(batch_size, target, precision, shards, seed, mode, options)
    if isinstance(model, (str, os.PathLike)):
        path = pathlib.Path(model)
        # Files are compiled each time: what they refer to, such as weights, may have changed.
        return Plan(compile_file(path, settings, _name(path.name, settings, verbose)))
    from mtc.keras import _model
    from mtc.keras._compile import Request
    from mtc.keras._example import Example

    given = example if isinstance(example, tuple) else () if example is None else (example,)
    weighted = bool(settings.get("sample_weights"))
    if given:
        _model.build(model, given[0])
    _model.check_model(model, compiled=not settings.get("loss"))
    request = Request(functools.partial(Example.of, *given, weighted=weighted) if given else None, weighted, check)
    return _model.compile_live(model, settings, verbose, request, cache=cache, with_weights=True, by=by)[0]


def _settings(batch_size: int, target: Optional[str], precision: Optional[str], shards: int, seed: int, mode: str,
              options: dict[str, Any]) -> dict[str, Any]:
    """Fields of mtc_options that are not zero."""
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise TypeError(f"expected options of mtc.compile ({', '.join(sorted(_OPTIONS))}), found {', '.join(unknown)}")
    if mode not in ("exact", "fast"):
        raise ModelError(f"expected the mode exact or fast, found {mode}")
    for name, value in (("batch_size", batch_size), ("shards", shards), ("seed", seed)):
        if not hasattr(value, "__index__") or isinstance(value, bool):
            raise TypeError(f"expected {name} to be an integer, found {value!r}")
    if batch_size < 1:
        raise ModelError(f"expected batch_size of at least 1, found {batch_size}")
    settings = {"batch": int(batch_size), "shards": int(shards), "fast": int(mode == "fast"), "target": target,
                "precision": precision, "seed": int(seed), **options}
    return {name: _field(name, value) for name, value in settings.items() if value not in (None, 0, False)}


def for_this_cpu(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a plan that is run in this process, which needs no code for other CPUs, unless they name some."""
    if "cpu" in settings or "cpu" not in settings.get("target", "cpu").split(","):
        return settings
    return {**settings, "cpu": "native"}


def encoded(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings as the fields of the struct take them."""
    return {k: v.encode() if isinstance(v, str) else v for k, v in settings.items()}


def _field(name: str, value: Any) -> Union[str, int]:
    """The value of a field of mtc_options. ctypes would take an integer for the address of a text."""
    if name == "device_memory" and isinstance(value, str):
        return _bytes(value)
    if name == "lengths" and isinstance(value, (list, tuple)):
        return ",".join(str(length) for length in value)
    if any(field[:2] == (name, ctypes.c_char_p) for field in _structs.CompileOptions._fields_):
        if not isinstance(value, (str, os.PathLike)):
            raise TypeError(f"expected {name} to be a text, found {value!r}")
        return os.fspath(value)
    if not hasattr(value, "__index__"):
        raise TypeError(f"expected {name} to be an integer, found {value!r}")
    return int(value)


def _bytes(text: str) -> int:
    """"8GiB" or "800MB"."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT]i?)?B?", text, re.IGNORECASE)
    if found is None:
        raise ModelError(f"expected device_memory as a number of bytes or as 8GiB, found {text!r}")
    unit = (found[2] or "").upper()
    base = 1024 if unit.endswith("I") else 1000
    return int(float(found[1]) * base ** " KMGT".index(unit[:1] or " "))


def _name(what: str, settings: dict[str, Any], verbose: Union[int, str]) -> str:
    return "" if verbose == 0 else f"{what}, batch {settings['batch']}"


def compile_file(path: pathlib.Path, settings: dict[str, Any], shown: str, strip: str = "") -> bytes:
    """The bytes of the plan of a file.

    `shown`: what to call it while it takes long; "": silent. `strip` is left out of messages.
    """
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


def in_python(message: str) -> str:
    """A message with arguments of `compile` in place of options: batch_norm="local" for --batch-norm local."""
    def spell(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2]
        name = "batch_size" if name == "batch" else name
        if name not in _OPTIONS and name != "batch_size":
            return found[0]
        if name in _OPTIONS and not _OPTIONS[name].value:
            return f"{name}=True" + (f" {value}" if value else "")
        if value and (re.search(r"[0-9,_]", value) or value in ("local", "adam", "auto")):
            return f"{name}={value}" if value.isdigit() else f'{name}="{value}"'
        return name + (f" {value}" if value else "")

    return re.sub(r"--([a-z]+(?:-[a-z]+)*)(?: ([\w,.=]*\w))?", spell, message)


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
        return compile_file(path, settings, _name(name, settings, verbose), strip=folder + "/")


def compile_text(text: str, *, name: str = "model", weights: Optional[Mapping[str, Any]] = None, batch_size: int = 32,
                 target: Optional[str] = None, precision: Optional[str] = None, shards: int = 0, seed: int = 0,
                 mode: str = "exact", verbose: Union[int, str] = "auto", **options: Any) -> Plan:
    """Compiles a model that is written as `mt` text (docs/ir.md).

    Args:
        text: the text.
        name: what messages call it.
        weights: arrays that variables start with, by name; the others start as the text says.
        batch_size: this and the others as of `mtc.compile`.
    """
    settings = _settings(batch_size, target, precision, shards, seed, mode, options)
    return Plan(plan_of_text(text, name, settings, verbose, weights))


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
        return compile_file(path, settings, _name(name, settings, verbose), strip=folder + "/")


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
    if verbose != 0:
        print(f"mtc: {line}", file=sys.stderr)
    return result


def cached(key: str, make: Callable[[], bytes], cache: bool) -> Plan:
    """The plan of this key, made where there is none."""
    plan = _cache.get(key) if cache else None
    if plan is None:
        data = make()
        plan = _cache.put(key, data) if cache else Plan(data)
    return plan
