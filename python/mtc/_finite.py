# SPDX-License-Identifier: Apache-2.0
"""The end of a training whose loss or variables are not finite, for loops over single steps.

`mtc.fit` runs the loop of the library, which has the same rule.
"""

from __future__ import annotations

import math
import warnings
from typing import Mapping

import numpy as np

from mtc._errors import DataError, ModelWarning
from mtc._session import Session

_NAMED = 3  # variables in a message
_GOES_ON = "allow_nan=True goes on"


class Finite:
    """Looks at the steps of a session.

    Attributes:
        steps: that it has looked at.
        stopped: whether a step was not finite.
    """

    def __init__(self, session: Session) -> None:
        self.steps = 0
        self.stopped = False
        self._session = session
        self._warned = False

    def after(self, logs: Mapping[str, float], allow_nan: bool) -> None:
        """After a training step that gave `logs`.

        A loss without anything to be a mean of, such as one whose labels are all ignored, is not a number, and has
        gradients of 0: that is a warning, once.

        Raises:
            DataError: the loss is not finite, and this is not the reason.
        """
        self.steps += 1
        loss = logs.get("loss", 0.0)
        if allow_nan or math.isfinite(loss):
            return
        found = self._not_finite()
        if not found and math.isnan(loss):
            if not self._warned:
                self._warned = True
                warnings.warn(f"step {self.steps}: the loss is not a number, and all variables are finite: nothing in "
                              "this batch counts, as with labels that are all ignored; training goes on", ModelWarning,
                              stacklevel=3)
            return
        self.stopped = True
        what = "not a number" if math.isnan(loss) else "infinite" if loss > 0 else "minus infinity"
        raise DataError(f"step {self.steps}: the loss is {what}; {_named(found)}; {_GOES_ON}")

    def variables(self, allow_nan: bool) -> None:
        """At the end of an epoch. DataError where a variable is not finite."""
        found = [] if allow_nan else self._not_finite()
        if found:
            self.stopped = True
            raise DataError(f"after step {self.steps}: {_named(found)}; {_GOES_ON}")

    def _not_finite(self) -> list[str]:
        return [name for name, array in self._session.variables.items()
                if array.dtype.kind == "f" and not np.isfinite(array).all()]


def _named(found: list[str]) -> str:
    if not found:
        return "all variables are finite"
    are = "variable is" if len(found) == 1 else "variables are"
    first = "" if len(found) <= _NAMED else "the first are "
    return f"{len(found)} {are} not finite: {first}{', '.join(found[:_NAMED])}"
