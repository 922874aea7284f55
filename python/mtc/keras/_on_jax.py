# SPDX-License-Identifier: Apache-2.0
"""The trace of a model of Keras' JAX back end."""

from __future__ import annotations

from typing import Any, Sequence, Union

from mtc import _compile
from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._tensors import TensorInfo
from mtc._trace import places
from mtc._trace.graph import Graph
from mtc._trace.values import Value
from mtc.jax import _check, _program
from mtc.jax._optimizers import Optimizer
from mtc.jax._update import Update
from mtc.jax._updates import of_short_form, of_update
from mtc.keras._example import Example
from mtc.keras._optimizer import OfKeras, again, has_form, optimizer_of, update_of
from mtc.keras._program import Traced
from mtc.keras._request import Result

TOLERANCES = {"float32": 1e-4}  # of the check, by the type that Keras computes in
LOOSE = 5e-2


def trace(model: Any, example: Example, rate: bool, drop: bool, paths: Sequence[str] = (),
          full: bool = False) -> Result:
    """Traces a model of Keras' JAX back end.

    `rate`: with its learning rate. `drop`: leaves out metrics that cannot be taken. `paths`: other names for its
    variables, in their order. `full`: the check takes all samples, and makes all batches.
    """
    traced = Traced(model, example, paths)
    traced.program.dropped = [] if drop else None
    optimizer: Union[Optimizer, Update] = Optimizer("sgd", 1e-3)
    if model.compiled:
        optimizer = optimizer_of(model, rate) if has_form(model) else update_of(model, traced.program.params)
    try:
        graph = _program.trace(traced.program, str(model.name), optimizer, traced.better)
        if graph.graph.assigned and model.compiled and isinstance(optimizer, Optimizer):
            optimizer = update_of(model, traced.program.params)
            graph = _program.trace(traced.program, str(model.name), optimizer, traced.better)
        elif not model.compiled:
            graph.graph.assigned.clear()  # it does not train
        text = _program.finish_text(graph, optimizer)
    except ModelError:
        raise
    except Exception as error:  # the user's code, or Keras'
        raise places.refusal(error, str(model.name)) from error
    finally:
        getattr(model, "_losses_override", []).clear()  # where a compute_loss raised, Keras would take its losses

    def check() -> str:
        if not traced.has_loss:
            return "not checked, as there are no targets"
        policy = getattr(getattr(model, "dtype_policy", None), "name", "float32")
        program = traced.program
        updates = None
        if isinstance(optimizer, Update):
            updates = of_update(optimizer, lambda params: again(model, params))
        elif model.compiled:
            updates = of_short_form(program, optimizer_of(model, True), lambda weights: OfKeras(
                model, program.params.names, weights))
        return _check.compare(program, program.batch.arrays, TOLERANCES.get(policy, LOOSE), _small_plan, full,
                              updates)

    return Result(text, traced.names, check, tuple(traced.program.dropped or ()), _variables_of(graph.graph))


def _variables_of(graph: Graph) -> list[TensorInfo]:
    def info(name: str, value: Value, kind: str) -> TensorInfo:
        return TensorInfo(name, value.dtype, tuple(size for size in value.shape if isinstance(size, int)), kind=kind)

    assigned = {name for name, _ in graph.assigned}
    kinds = {name: "trainable" if value.learned and name not in assigned else "non_trainable"
             for name, value in graph.variables.items()}
    return [*(info(name, value, kinds[name]) for name, value in graph.variables.items()),
            *(info(name, value, "optimizer") for name, value in graph.state.items())]


def _small_plan(text: str, rows: int) -> Plan:
    return Plan(_compile.plan_of_text(text, "check", {"batch": rows, "cpu": "native"}, 0))
