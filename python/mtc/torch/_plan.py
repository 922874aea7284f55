# SPDX-License-Identifier: Apache-2.0
"""The plan of a step, whose file starts with the step's weights."""

from __future__ import annotations

from typing import Any, Callable, Optional

from mtc._plan import Path, Plan, write_atomically


class StepPlan(Plan):
    """A plan whose file starts with the parameters, the buffers and the optimizer's state of a step, and has code for
    all CPUs of the architecture.

    The plan in memory has none of them, so that modules of the same code share what the cache keeps, and code for the
    CPU of this process alone, which halves the time to compile it.
    """

    _with_state: Optional[Callable[[], bytes]] = None  # bytes of the plan with what the step has now

    def save(self, path: Path) -> None:
        """Writes the plan file, which `mtrun` and `mtc.load` read. It starts with what the step has now: parameters,
        buffers, the optimizer's state and learning rate. It appears only when it is complete.
        """
        write_atomically(path, self._bytes())

    def _bytes(self) -> bytes:
        return self._data if self._with_state is None else self._with_state()

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan, (self._bytes(),)
