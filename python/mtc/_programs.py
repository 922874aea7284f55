# SPDX-License-Identifier: Apache-2.0
"""The programs mtc and mtrun of the wheels. They lie in bin/ of the package, where they find their libraries."""

from __future__ import annotations

import os
import pathlib
import sys
from typing import NoReturn


def _run(name: str) -> NoReturn:
    program = pathlib.Path(__file__).resolve().parent / "bin" / name
    if not program.exists():
        wheel = "mtc" if name == "mtc" else "mtc-runtime"
        sys.exit(f"{name}: expected the program in {program.parent}, found none; pip install {wheel} brings it")
    os.execv(program, [name, *sys.argv[1:]])


def mtc() -> NoReturn:
    """`mtc ...`, the compiler."""
    _run("mtc")


def mtrun() -> NoReturn:
    """`mtrun ...`, which trains plans."""
    _run("mtrun")
