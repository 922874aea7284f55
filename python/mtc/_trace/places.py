# SPDX-License-Identifier: Apache-2.0
"""Where in the user's code an error of a framework comes from."""

from __future__ import annotations

import linecache
import pathlib
import sysconfig
import traceback
from typing import Iterator, Optional

from mtc._errors import ModelError

_PACKAGE = str(pathlib.Path(__file__).resolve().parents[1])
_PYTHON = sysconfig.get_path("stdlib")


def refusal(error: Exception, name: str = "") -> ModelError:
    """An error of one line for what a framework raised while it traced the user's code.

    With the file, the line and the code of the user, if they are in a traceback; else with `name`, of the model.
    """
    for cause in reversed(list(causes(error))):
        place = place_of(cause)
        if place:
            return ModelError(f"{place}: {_reason(cause)}")
    return ModelError(f"{name}: {_reason(error)}" if name else _reason(error))


def place_of(error: BaseException) -> str:
    """File, line and code of the innermost frame that is the user's; empty if there is none."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if is_users(f.filename)]
    if not frames:
        return ""
    last = frames[-1]
    return f"{last.filename}:{last.lineno}: {linecache.getline(last.filename, last.lineno or 0).strip()}"


def is_users(file: str) -> bool:
    """Whether a file is neither Python's, nor this package's, nor of an installed package."""
    parts = pathlib.PurePath(file).parts
    return not ("site-packages" in parts or "dist-packages" in parts or file.startswith((_PACKAGE, _PYTHON, "<")))


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error, what it comes from, and so on."""
    found: Optional[BaseException] = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


def _reason(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
