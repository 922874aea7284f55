# SPDX-License-Identifier: Apache-2.0
"""The options of a compilation: Python's arguments as fields of mtc_options, and in messages."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
from typing import Any, Mapping, Union

from mtc import _headers, _structs
from mtc._errors import ModelError

# Options of mtc_options that callers may set besides those that `compile` names.
OWN = ("struct_size", "batch", "shards", "fast", "target", "precision", "seed", "log", "log_user", "stop_after",
       "dump_stages", "print_ir_before", "print_ir_after", "timing")
_OPTIONS = {option.field.name: option for option in _headers.options("mtc_options") if option.field.name not in OWN}
_RENAMED = {"batch": "batch_size", "stop_after": "stage"}
_NAMED = {"precision", "seed", "shards", "target", *_RENAMED.values()}  # arguments of their own


def fields(batch_size: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of mtc_options that are not zero, of arguments of `mtc.compile`: target, precision, shards, seed, mode and
    its options."""
    options = dict(given)
    target, precision = options.pop("target", None), options.pop("precision", None)
    shards, seed, mode = options.pop("shards", 0), options.pop("seed", 0), options.pop("mode", "exact")
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


def for_check(batch_size: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a plan that is compared with the framework: for this CPU, with the seed and the mode of the caller."""
    return fields(batch_size, {**{n: v for n, v in given.items() if n in ("seed", "mode")}, "cpu": "native"})


def for_this_cpu(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a plan that is run in this process, which needs no code for other CPUs, unless they name some."""
    if "cpu" in settings or "cpu" not in settings.get("target", "cpu").split(","):
        return settings
    return {**settings, "cpu": "native"}


def identity(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings for the key of a plan: of files, their contents count, and not the names alone."""
    files = {}
    for name in ("class_names", "columns", "vocabulary", "weights"):
        if os.path.isfile(settings.get(name, "")):
            with open(settings[name], "rb") as file:
                files[name] = hashlib.blake2b(file.read()).hexdigest()
    return {**settings, "files": files} if files else dict(settings)


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


def in_python(message: str) -> str:
    """A message with arguments of `compile` in place of options: batch_norm="local" for --batch-norm local."""
    def spell(found: re.Match[str]) -> str:
        name, value = found[1].replace("-", "_"), found[2]
        name = _RENAMED.get(name, name)
        if name not in {*_OPTIONS, *_NAMED}:
            return found[0]
        if name in _OPTIONS and not _OPTIONS[name].value:
            return f"{name}=True" + (f" {value}" if value else "")
        if value and (re.search(r"[0-9,_]", value) or value in ("local", "adam", "auto")):
            return f"{name}={value}" if value.isdigit() else f'{name}="{value}"'
        return name + (f" {value}" if value else "")

    return re.sub(r"--([a-z]+(?:-[a-z]+)*)(?: ([\w,.=]*\w))?", spell, message)
