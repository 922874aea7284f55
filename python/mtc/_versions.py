# SPDX-License-Identifier: Apache-2.0
"""The versions of frameworks that tests ran with; docs/python.md has them all."""

from __future__ import annotations

import functools
import importlib
import re
import warnings

from mtc._errors import VersionWarning

# The newest of each, without the parts that do not change interfaces.
NEWEST = {"keras": (3, 15), "jax": (0, 10), "torch": (2, 15)}


@functools.cache
def warn_if_newer(name: str) -> None:
    """Warns, once, of a framework that is newer than any that tests ran with."""
    version = str(getattr(importlib.import_module(name), "__version__", ""))
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if found > NEWEST[name]:
        newest = ".".join(map(str, NEWEST[name]))
        warnings.warn(f"{name} {version} is newer than {newest}, the newest that mtc was tested with", VersionWarning,
                      stacklevel=3)
