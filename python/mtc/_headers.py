# SPDX-License-Identifier: Apache-2.0
"""The C headers: fields of structs, and the options that the comments of fields describe (docs/contributing.md).

The build makes the options of the programs from the same descriptions (runtime/abi/option_rows).
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import pathlib
import re
import textwrap
from collections.abc import Collection
from typing import Any, Callable, Optional, TypeVar

_PACKAGE = pathlib.Path(__file__).resolve().parent
# In a wheel, and in the repository.
_FOLDERS = (_PACKAGE / "include", _PACKAGE.parents[1] / "runtime" / "abi")
PLAIN = {"int": ctypes.c_int, "int32_t": ctypes.c_int32, "int64_t": ctypes.c_int64, "double": ctypes.c_double,
         "size_t": ctypes.c_size_t, "mt_dtype": ctypes.c_int, "mtrun_role": ctypes.c_int,
         "mtrun_variable_kind": ctypes.c_int}

_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclasses.dataclass(frozen=True)
class Field:
    """A field of a struct."""

    name: str
    type: str  # of C, such as "const char *"; "": a function
    comment: str

    def ctype(self) -> Any:
        """The type of ctypes: one for a plain type, a text or a pointer to numbers or texts, else an address."""
        target, _, pointer = re.sub(r"\bconst\b|\s", "", self.type).partition("*")
        if not pointer and "*" not in self.type:
            return PLAIN.get(target, ctypes.c_void_p)
        if target == "char":
            return ctypes.POINTER(ctypes.c_char_p) if pointer else ctypes.c_char_p
        return ctypes.POINTER(PLAIN[target]) if target in PLAIN else ctypes.c_void_p


@functools.cache
def header(name: str) -> str:
    """The text of a header.

    Raises:
        ImportError: the package has lost its headers.
    """
    for folder in _FOLDERS:
        if (folder / name).is_file():
            return (folder / name).read_text(encoding="utf-8")
    raise ImportError(f"expected the header {name} of this version in {_FOLDERS[0]}, found none: install mtc again")


def version() -> str:
    """The version of MTC, as mt.h says."""
    return ".".join(re.findall(r"#define MT_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)", header("mt.h")))


def parts() -> list[str]:
    """The headers that mtrun.h is made of."""
    return re.findall(r'"(mtrun_\w+\.h)"', header("mtrun.h"))


@functools.cache
def fields(struct: str) -> list[Field]:
    """The fields of a struct of mtc.h or mtrun.h, in order."""
    found = re.search(rf"typedef struct {struct} {{(.*?)}} {struct};", "".join(map(header, ["mtc.h", *parts()])), re.S)
    assert found, struct
    body = re.sub(r",\s*/\*\*<.*?\*/", ",", found[1], flags=re.S)
    result = []
    for before, declaration, behind in re.findall(r"(?:/\*\*(?!<)(.*?)\*/)?\s*([^;/]+);(?:\s*/\*\*<(.*?)\*/)?", body,
                                                  re.S):
        words = " ".join(line.strip().lstrip("*").strip() for line in (before or behind).splitlines()).strip()
        if function := re.search(r"\(\*(\w+)\)", declaration):
            result.append(Field(function[1], "", words))
            continue
        first, *others = declaration.split(",")
        base = first.strip().removeprefix("const ").split(" ")[0]
        for each in (first, *(base + " " + other.strip() for other in others)):
            kind, name = re.fullmatch(r"(.*?)(\w+)", each.strip(), re.S).groups()  # type: ignore[union-attr]
            result.append(Field(name, kind.strip(), words))
    return result


@dataclasses.dataclass(frozen=True)
class Option:
    """An option as the comment of a field describes it.

    Attributes:
        field: the field.
        about: what the option is, and what stands for its absence: "Seed. 0: 1."
        flags: all names of the flag.
        value: what the help calls its value; "": it has none.
        standard: the default that the help shows; "": none.
        limits: the smallest and the largest number.
        group: of the help.
        without, after: an option that must not be there, one that must be.
        repeatable: each time it is given has an item.
        shared: mtrun takes it too, for a model in place of a plan.
    """

    field: Field
    about: str
    flags: str
    value: str
    standard: str
    limits: tuple[Optional[str], Optional[str]]
    group: str
    without: str
    after: str
    repeatable: bool
    shared: bool

    def words(self) -> list[str]:
        """All values, where these are a few words."""
        return self.value.split("|") if re.fullmatch(r"[a-z0-9_-]+(\|[a-z0-9_-]+)+", self.value) else []


def _option(field: Field) -> Optional[Option]:
    found = re.search(r"Flag: `(--[\w,-]+) ?([^`]*)`([^`]*?)\.(?= |$)", field.comment)
    if found is None:
        return None
    flags, value, rest = found.groups()
    value, _, standard = value.partition("=") if not value.startswith("[NAME=]") else (value, "", "")
    known = {"limits": (None, None), "in": "", "not with": "", "with": "", "repeatable": "", "also of mtrun": ""}
    given: dict[str, Any] = dict(known)
    for part in filter(None, rest.split(", ")):
        if limits := re.fullmatch(r"([\d.]+) (?:to (\d+)|or more)", part):
            given["limits"] = limits.groups()
            continue
        key = next((key for key in known if part == key or part.startswith(key + " ")), None)
        if key is None:
            raise ImportError(f"{field.name}: expected {', '.join(known)} or 1 to 2 behind its flag, found {part}")
        given[key] = part[len(key):].strip() or "yes"
    return Option(field, field.comment[:found.start()].strip(), flags, value, standard, given["limits"], given["in"],
                  given["not with"], given["with"], bool(given["repeatable"]), bool(given["also of mtrun"]))


@functools.cache
def options(struct: str) -> list[Option]:
    """The options of a struct, in the order of its fields."""
    return [option for option in map(_option, fields(struct)) if option]


def documented(struct: str, without: Collection[str]) -> Callable[[_Function], _Function]:
    """A decorator: the line `options:` of the docstring becomes one for each number and text that the struct has."""
    described = [field for field in fields(struct)
                 if field.name not in without and field.ctype() is not ctypes.c_void_p]

    def decorate(function: _Function) -> _Function:
        def lines(found: re.Match[str]) -> str:
            return "\n".join(textwrap.fill(f"{field.name}: {_in_python(field)}", 118, initial_indent=found[1],
                                           subsequent_indent=found[1] + "    ") for field in described)

        if function.__doc__:  # not with python -OO
            function.__doc__ = re.sub(r"^( +)options: .*$", lines, function.__doc__, count=1, flags=re.M)
        return function

    return decorate


def _in_python(field: Field) -> str:
    option = _option(field)
    text = (option.about if option else field.comment).replace("NULL", "None").removesuffix(" None: none.")
    text = text[0].lower() + text[1:] if text[1].islower() else text
    if text.startswith("1: "):
        text = f"True: {text[3:]}".replace(" 0: ", " False: ")
    return text.replace(".", ', or a text such as "8GiB".', 1) if option and option.value == "BYTES" else text
