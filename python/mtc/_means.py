# SPDX-License-Identifier: Apache-2.0
"""Means of what steps report."""

from __future__ import annotations

from typing import Any, Mapping

from mtc._session import Logs


class Means:
    """Means over samples, of values that are means over the samples of a batch.

    Attributes:
        samples: how many there were.
    """

    def __init__(self) -> None:
        self.samples = 0
        self._sums: Logs = {}

    def add(self, logs: Logs, arrays: Mapping[str, Any]) -> None:
        """The values of a batch, by its arrays [n, ...]."""
        samples = len(next(iter(arrays.values())))
        for name, value in logs.items():
            self._sums[name] = self._sums.get(name, 0.0) + value * samples
        self.samples += samples

    def values(self) -> Logs:
        """The means; none without samples."""
        return {name: total / max(self.samples, 1) for name, total in self._sums.items()}
