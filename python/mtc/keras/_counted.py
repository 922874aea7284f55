# SPDX-License-Identifier: Apache-2.0
"""Metrics of Keras that are functions of sums over all samples, such as areas under curves.

A trace cannot say what they are over several batches, but the compiler knows them by their classes, as it does in
files. So such a metric is one call in the trace, of a name, and its object goes into the text.
"""

from __future__ import annotations

import contextlib
import json
from typing import Any, Iterator, Optional, Sequence

import jax
import numpy as np

from mtc._trace import text
from mtc.jax import _named
from mtc.jax._program import Spec
from mtc.keras import _model

CLASSES = ("AUC", "BinaryIoU", "F1Score", "FBetaScore", "FalseNegatives", "FalsePositives", "IoU", "MeanIoU",
           "OneHotIoU", "OneHotMeanIoU", "Precision", "PrecisionAtRecall", "R2Score", "Recall", "RecallAtPrecision",
           "SensitivityAtSpecificity", "SpecificityAtSensitivity", "TrueNegatives", "TruePositives")
ROWS = 4  # of the arrays with which a result's shape is found


class Counted:
    """The metrics of a model that are named in a trace."""

    def __init__(self, model: Any) -> None:
        known = [getattr(_model.keras().metrics, name, None) for name in CLASSES]
        self._metrics = [m for outer in model.metrics for m in (outer, *getattr(outer, "metrics", []))
                         if type(m) in known]
        # By the id of a result of the last trace: the result, since another one could have the id of one that is gone,
        # and the numbers of which it is made.
        self._parts: dict[int, tuple[Any, Sequence[Any]]] = {}

    @contextlib.contextmanager
    def named(self) -> Iterator[None]:
        """While it lasts, these metrics are calls of a name."""
        made: dict[int, Any] = {}
        self._parts.clear()
        for metric in self._metrics:
            self._replace(metric, made)
        try:
            yield
        finally:
            for metric in self._metrics:
                for method in ("update_state", "result"):
                    metric.__dict__.pop(method, None)

    def parts(self, value: Any) -> Optional[Sequence[Any]]:
        """The numbers that a result is of; None: it is none of these metrics', or one number."""
        found = self._parts.get(id(value))
        return None if found is None else found[1]

    def _replace(self, metric: Any, made: dict[int, Any]) -> None:
        def update(y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
            arrays = [y_pred, y_true, *([] if sample_weight is None else [sample_weight])]
            arrays = [jax.lax.stop_gradient(jax.numpy.asarray(a)) for a in arrays]
            found = _call(metric, arrays)
            if found is None:
                type(metric).update_state(metric, y_true, y_pred, sample_weight)
                return
            numbers, shape = found
            made[id(metric)] = numbers[0] if shape == () else jax.numpy.stack(numbers)
            if shape != ():
                self._parts[id(made[id(metric)])] = made[id(metric)], numbers

        def result() -> Any:
            return made[id(metric)] if id(metric) in made else type(metric).result(metric)

        metric.__dict__["update_state"], metric.__dict__["result"] = update, result


def _call(metric: Any, arrays: Sequence[Any]) -> Any:
    """The numbers of the result, and its shape; None: MTC has no such metric."""
    def compute(*given: Any) -> Any:
        with _model.keras().StatelessScope():
            metric.reset_state()
            type(metric).update_state(metric, given[1], given[0], *given[2:])
            return type(metric).result(metric)

    specs = [Spec(tuple(n if isinstance(n, int) else ROWS for n in a.shape), a.dtype) for a in arrays]
    shape = None
    with contextlib.suppress(Exception):  # Keras' code, for what it cannot compute of these arrays
        shape = tuple(jax.eval_shape(compute, *specs).shape)
    if shape is None:
        return None
    config = json.dumps(_model.keras().saving.serialize_keras_object(metric), default=_plain)
    if len(shape) > 1 or not _takes(config, specs):
        return None
    count = int(np.prod(shape))

    def numbers(*given: Any) -> Any:
        if all(isinstance(n, int) for a in given for n in a.shape):
            return [jax.numpy.reshape(compute(*given), (count,))[i].astype("float32") for i in range(count)]
        # Of a symbolic batch nobody looks at what the call computes.
        return [jax.numpy.sum(given[0].astype("float32")) * 0 for _ in range(count)]

    return _named.call(numbers, config, arrays), shape


def _plain(value: Any) -> Any:
    return np.asarray(value).tolist()


_taken: dict[Any, bool] = {}


def _takes(config: str, specs: Sequence[Any]) -> bool:
    """Whether the compiler has the metric of such arrays."""
    key = config, tuple((s.shape, str(s.dtype)) for s in specs)
    if key not in _taken:
        types = ["tensor<?" + "".join(f"x{n}" for n in s.shape[1:]) + "x" + {"f": "f32", "b": "i1"}.get(
            np.dtype(s.dtype).kind, "i32") + ">" for s in specs]
        inputs = "\n".join(f'%{i} = mt.input "i{i}" : {t}' for i, t in enumerate(types))
        operands = ", ".join(f"%{i}" for i in range(len(types)))
        try:
            text.lowered(f"module attributes {{graph.version = {text.VERSION} : i32}} {{ mt.model @metric {{ {inputs}\n"
                         f'graph.metric "m" of {json.dumps(config)} {operands} : {", ".join(types)}\n'
                         '%x = mt.input "x" : tensor<?xf32>\nmt.loss "loss", %x : tensor<?xf32>\n'
                         "mt.sgd <{learning_rate = 0.1 : f32}> } }")
            _taken[key] = True
        except text.NotLowered:
            _taken[key] = False
    return _taken[key]
