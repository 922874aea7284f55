# SPDX-License-Identifier: Apache-2.0
"""Metrics that a plan does not have: Keras computes them from the plan's predictions."""

from __future__ import annotations

import contextlib
from typing import Any, Mapping, Optional

from mtc._data import Arrays
from mtc._plan import Plan
from mtc._session import Logs, Session
from mtc._structure import Structure
from mtc.keras import _model


class LeftOut:
    """The compiled metrics of a model that its plan does not have.

    Attributes:
        names: as Keras calls them.
    """

    def __init__(self, model: Any, plan: Plan, structure: Structure) -> None:
        self.model, self.plan, self.structure = model, plan, structure
        self.names: list[str] = []
        if getattr(model, "_compile_metrics", None) is None or _model.own_methods(model, ("compute_metrics",)):
            return
        _model.build_metrics(model, plan)
        if not model._compile_metrics.built:
            return
        known = plan.metrics("eval_step")
        with contextlib.suppress(Exception):  # a metric of the caller's may have no result without data
            self.names = [name for name in model._compile_metrics.result()
                          if name not in known and not any(each.startswith(name + "/") for each in known)]

    def values(self, session: Session, data: Any, steps: Optional[int]) -> Logs:
        """Their values, as Keras gives them, over the first `steps` batches of arrays; None: over all.

        There are none of batches, which come once.
        """
        if not self.names or not isinstance(data, Arrays):
            return {}
        count = data.count if steps is None else min(steps * self.plan.batch_size, data.count)
        self.model.reset_metrics()
        for begin in range(0, count, self.plan.batch_size):
            part = {n: a[begin:min(begin + self.plan.batch_size, count)] for n, a in data.arrays.items()}
            predicted = session._predict(part)
            self.model.compute_metrics(None, self._of_outputs(part, self.structure.targets),
                                       _model.output_like(self.model, predicted, self.structure),
                                       self._of_outputs(part, self.structure.weights))
        found = self.model._compile_metrics.result()
        self.model.reset_metrics()
        arrays = {name: _model.keras().ops.convert_to_numpy(found[name]) for name in self.names}
        return {name: value if value.ndim else float(value) for name, value in arrays.items()}

    def _of_outputs(self, part: Mapping[str, Any], entries: tuple[str, ...]) -> Any:
        """Entries, in the structure of the outputs; None where there are none."""
        given = {t.name: part.get(name) for t, name in zip(self.plan.outputs, entries)}
        if all(value is None for value in given.values()):
            return None
        return _model.output_like(self.model, given, self.structure)
