# SPDX-License-Identifier: Apache-2.0
"""JAX: a loss function becomes a plan.

    import mtc.jax
    step = mtc.jax.compile(loss_fn, params, (x[:2], y[:2]), optimizer=mtc.jax.adam(1e-3), batch_size=64)
    step.fit((x, y), epochs=3)
    params = step.params

`mtc.jax.step` takes a whole training step in the same way, with its gradients and updates.

The function is traced by JAX; training needs neither JAX nor Python code of the model.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Union

import numpy as np

from mtc import _compile, _options
from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._trace import reals
from mtc._versions import warn_if_newer
from mtc.jax import _check
from mtc.jax._optax import is_optax, update_of
from mtc.jax._optimizers import Optimizer as Optimizer
from mtc.jax._optimizers import adagrad as adagrad
from mtc.jax._optimizers import adam as adam
from mtc.jax._optimizers import adamw as adamw
from mtc.jax._optimizers import lion as lion
from mtc.jax._optimizers import resolve
from mtc.jax._optimizers import rmsprop as rmsprop
from mtc.jax._optimizers import sgd as sgd
from mtc.jax._program import Program, finish_text, trace
from mtc.jax._step import Step as Step
from mtc.jax._updates import of_update
from mtc.jax._whole import DeviceArray as DeviceArray
from mtc.jax._whole import WholeStep as WholeStep
from mtc.jax._whole import step as step

warn_if_newer("jax")

__all__ = ["DeviceArray", "Optimizer", "Step", "WholeStep", "adagrad", "adam", "adamw", "compile", "lion", "rmsprop",
           "sgd", "step"]


@reals.chosen
def compile(loss_fn: Callable[..., Any], params: Any, example_batch: Any, *, optimizer: Any, batch_size: int = 32,
            state: Any = None, predict: Optional[Callable[..., Any]] = None, devices: Optional[str] = None,
            name: str = "", better: Optional[Mapping[str, str]] = None, check: Union[bool, str] = True,
            tolerance: float = 1e-4, verbose: Union[int, str] = "auto", **options: Any) -> Step:
    """Compiles a loss function of JAX, and binds the plan to devices.

    Args:
        loss_fn: loss_fn(params, batch), or loss_fn(params, state, batch) with a `state`; arguments named `key` (or
            `rng`) and `training` (or `train`) are given too. It returns the loss, a scalar; or (loss, metrics), a dict
            of scalars; with a state (loss, new_state) or (loss, (new_state, metrics)). It is traced with any number of
            samples: the loss and metrics are means or sums over them.
        params: a pytree of arrays, which training starts with. What is no array is kept as it is.
        example_batch: a pytree of arrays [n, ...] of a few samples, as `loss_fn` takes it.
        optimizer: one of optax, or any pair of functions `init` and `update` that JAX can trace; or one of this
            module, its name, or a dict of its name and arguments, where a learning rate may be a function of the step.
        batch_size: samples of a training step, on all devices together.
        state: a pytree of arrays that `loss_fn` changes and that are not trained, such as moving averages.
        predict: predict(params, batch), or predict(params, state, batch): arrays [n, ...] for `step.predict`. What it
            does not read of the batch is a target.
        devices: as of `mtc.Session`.
        name: of the model; the function's name without it.
        better: "higher" or "lower" for each metric; without it those with "acc" in their names are better higher.
        check: compares what JAX and MTC make of two samples of the example, and of batches that are made of them:
            losses, gradients, states, metrics and predictions, and three updates with those of optax. "full": of all
            samples. False: compares nothing.
        tolerance: of that comparison, relative to the norm of each gradient; at most 1e-8 with precision="f64".
        verbose: 0: silent.
        options: as of `mtc.compile`: target, precision, shards, seed, mode, ...

    Returns:
        A `Step`, whose `plan` is the plan.

    Raises:
        ModelError: something cannot be taken, a line for each with the place in the code; or the check failed.
    """
    real = reals.real()
    program = Program.of(loss_fn, params, state, example_batch, predict)
    update = update_of(optimizer, program.params) if is_optax(optimizer) else None
    chosen = update or resolve(optimizer)
    title = name or getattr(loss_fn, "__name__", "model").strip("<>")
    traced = trace(program, title, chosen, better)
    text = finish_text(traced, chosen)
    settings = _options.fields(batch_size, options)

    def make() -> Plan:
        weights = {name: np.asarray(array, real) for tree in (program.params, program.state) if tree is not None
                   for name, array in zip(tree.names, tree.arrays)}
        weights.update(update.weights() if update else {})
        return Plan(_compile.plan_of_text(text, title, settings, verbose, weights), any_label=True)

    def compare() -> str:
        if not all(isinstance(a, np.ndarray) or hasattr(a, "__array__") for a in program.batch.arrays):
            raise ModelError("expected an example batch of arrays for check=True, found shapes")
        arrays = [np.asarray(a) for a in program.batch.arrays]
        return _check.compare(program, arrays, reals.tolerance(tolerance), lambda t, rows: Plan(_compile.plan_of_text(
            t, "check", _options.for_check(rows, options), 0)), check == "full",
                              of_update(update, lambda tree: update_of(optimizer, tree)) if update else None)

    plan = _compile.while_checking(make, compare, verbose) if check else make()
    return Step(plan, program, devices, text, update)
