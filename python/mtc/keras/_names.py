# SPDX-License-Identifier: Apache-2.0
"""Losses and metrics by the names that Keras gives them."""

from __future__ import annotations

from typing import Any, Optional, Sequence

import numpy as np


class Names:
    """Names of a plan's losses and metrics, of which those of one metric, NAME/0, NAME/1 ..., are Keras' one NAME."""

    def __init__(self, names: Sequence[str]) -> None:
        self._parts: list[tuple[str, int, Optional[int]]] = []  # name, place, and of an array the place behind it
        at = 0
        while at < len(names):
            name, slash, number = names[at].rpartition("/")
            count = 0
            while slash and number == "0" and names[at + count:at + count + 1] == [f"{name}/{count}"]:
                count += 1
            self._parts.append((name, at, at + count) if count else (names[at], at, None))
            at += max(count, 1)

    def logs(self, values: Any) -> dict[str, Any]:
        """What callbacks get: a number each, or an array of float32."""
        return {name: values[at] if end is None else np.array([values[i] for i in range(at, end)], "float32")
                for name, at, end in self._parts}

    def of(self, logs: dict[str, Any]) -> dict[str, Any]:
        """The same of values by the plan's names, in its order."""
        return self.logs(list(logs.values()))
