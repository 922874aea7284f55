# SPDX-License-Identifier: Apache-2.0
"""What JAX makes of a batch: the reference of the check."""

from __future__ import annotations

import contextlib
from typing import Any, Callable, Sequence

import jax
import numpy as np
from jax.extend import core

from mtc._errors import ModelError
from mtc._trace import guard, roundings
from mtc._trace.values import Batch, Shape
from mtc.jax import _control
from mtc.jax._program import Program
from mtc.jax._reader import ON_KEYS, Keys, on_keys

# For a single step JAX takes longer to compile a fast program, or each operation by itself.
_QUICKLY: Any = {"xla_backend_optimization_level": "0", "xla_llvm_disable_expensive_passes": True,
            "xla_disable_hlo_passes": "fusion"}


class Reference:
    """A loss function in JAX, for batches of one size or another.

    Args:
        program: the loss function.
        state: what its state begins with.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        self._compiled: dict[Any, Any] = {}

    def of(self, arrays: Sequence[Any], bits: dict[Any, Any], quickly: bool, double: bool = False,
           noise: int = 0) -> guard.Values:
        """What it makes of a batch.

        Args:
            arrays: the batch.
            bits: the random ones, by path and shape.
            quickly: as one program that is not optimized, and not operation by operation.
            double: in float64.
            noise: n > 0: with random changes to the weights and the batch, by a share of up to `roundings.change(n)`.
        """
        program, random = self.program, np.random.default_rng(noise)
        with jax.enable_x64(True) if double else contextlib.nullcontext():
            batch = [jax.numpy.asarray(_given(noisy(a, noise, random), double)) for a in arrays]
            params = [jax.numpy.asarray(_given(noisy(p, noise, random), double)) for p in program.params.arrays]
            state = [jax.numpy.asarray(_given(a, double)) for a in program.state.arrays] if program.state else []
            values = self._trained(params, state, batch, bits, quickly)
            values.update(self._evaluated(params, state, batch, bits, quickly))
        return values

    def _trained(self, params: Any, state: Any, batch: Any, bits: Any, quickly: bool) -> guard.Values:
        program = self.program

        def loss(params: Any, state: Any, batch: Any, key: Any) -> Any:
            value, new, metrics = program.call(params, state, batch, key, True)
            return value, (list(new or []), metrics)

        run = jax.value_and_grad(self._with_bits(loss, (params, state, batch), bits), has_aux=True)
        (value, (new, metrics)), gradients = self._run("training", run, (params, state, batch), quickly)
        values = {guard.LOSS: np.asarray(value)}
        values.update({_gradient(n): np.asarray(g) for n, g in zip(program.params.names, gradients)})
        if program.state is not None:
            values.update({guard.BUFFER + n: np.asarray(b) for n, b in zip(program.state.names, new)})
        values.update({_metric(n): np.asarray(m) for n, m in metrics.items()})
        return values

    def _evaluated(self, params: Any, state: Any, batch: Any, bits: Any, quickly: bool) -> guard.Values:
        program = self.program
        if program.training is None and program.predict is None:
            return {}

        def evaluation(params: Any, state: Any, batch: Any, key: Any) -> Any:
            loss: Any = None
            metrics: dict[str, Any] = {}
            if program.training is not None:
                loss, _, metrics = program.call(params, state, batch, key, False)
            outputs = program.predictions(params, state, batch, key) if program.predict is not None else {}
            return loss, metrics, outputs

        run = self._with_bits(evaluation, (params, state, batch), bits)
        loss, metrics, outputs = self._run("evaluation", run, (params, state, batch), quickly)
        values = {guard.PREDICTION + n: np.asarray(o) for n, o in outputs.items()}
        if loss is not None:
            values[guard.LOSS + guard.EVALUATED] = np.asarray(loss)
        values.update({_metric(n) + guard.EVALUATED: np.asarray(m) for n, m in metrics.items()})
        return values

    def _with_bits(self, function: Any, given: Any, bits: Any) -> Callable[..., Any]:
        """A function of parameters, state and batch, with the random bits that are given in place of a key."""
        if not self.program.key:
            return lambda *arguments: function(*arguments, None)
        closed, shape = jax.make_jaxpr(function, return_shape=True)(*given, jax.eval_shape(lambda: jax.random.key(0)))
        structure = jax.tree.structure(shape)

        def run(*arguments: Any) -> Any:
            keys = Keys((self.program.key or "",))
            leaves = replay(closed.jaxpr, closed.consts, [*jax.tree.leaves(arguments), keys], bits)
            return jax.tree.unflatten(structure, leaves)

        return run

    def _run(self, name: str, function: Any, given: Any, quickly: bool) -> Any:
        if not quickly:
            return function(*given)
        key = (name, *((a.shape, a.dtype) for a in jax.tree.leaves(given)))
        if key not in self._compiled:
            self._compiled[key] = jax.jit(function).lower(*given).compile(_QUICKLY)
        return self._compiled[key](*given)


def _gradient(name: str) -> str:
    return f'{guard.GRADIENT}"{name}"'


def _metric(name: str) -> str:
    return guard.METRIC + ("loss_metric" if name == "loss" else name)


def _given(array: Any, double: bool) -> Any:
    array = np.asarray(array)
    return array.astype("f8") if double and array.dtype.kind == "f" else array


def noisy(array: Any, noise: int, random: np.random.Generator) -> Any:
    """The floats of an array, each changed by a share of up to `roundings.change(noise)`."""
    array = np.asarray(array)
    if not noise or array.dtype.kind != "f":
        return array
    return (array * (1 + roundings.change(noise) * random.uniform(-1, 1, array.shape))).astype(array.dtype)


def numbers_of(fixed: list[tuple[str, str, Shape]], rows: int) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Random bits by the path of their key and shape, for JAX, and the numbers that they become, for MTC."""
    bits: dict[Any, Any] = {}
    numbers = {}
    for i, (name, path, shape) in enumerate(fixed):
        sizes = tuple(n.times * rows if isinstance(n, Batch) else n for n in shape)
        drawn = bits.setdefault((path, sizes), np.random.default_rng([7, i]).integers(0, 2**32, sizes, np.uint32))
        made = ((drawn >> 9).astype(np.float32) * np.float32(2**-23)).astype(np.float32)
        first = shape[0] if shape else 1
        if isinstance(first, Batch) and first.times != 1:
            made = made.reshape((rows, first.times, *sizes[1:]))
        numbers[name] = made
    return bits, numbers


def replay(jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any], bits: dict[Any, Any]) -> list[Any]:
    """The results of a jaxpr whose random bits are given."""
    values: dict[Any, Any] = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*consts, *arguments]))

    def find(atom: Any) -> Any:
        return atom.val if isinstance(atom, core.Literal) else values[atom]

    for equation in jaxpr.eqns:
        inputs = [find(a) for a in equation.invars]
        made = _replay_one(equation, inputs, bits)
        for variable, value in zip(equation.outvars, made):
            values[variable] = value
    return [find(a) for a in jaxpr.outvars]


def _replay_one(equation: Any, inputs: list[Any], bits: dict[Any, Any]) -> Sequence[Any]:
    name = equation.primitive.name
    if any(isinstance(i, Keys) for i in inputs):
        if name == "random_bits":
            return [jax.numpy.asarray(bits[inputs[0].paths[0], tuple(equation.params["shape"])])]
        if name == "random_split":
            return [_control.split_keys(equation, inputs[0])]
        if name == "random_fold_in":
            return [_control.fold_in_keys(inputs[0], np.asarray(inputs[1]))]
        if name in ON_KEYS:
            return [on_keys(equation, [inputs[0], *map(np.asarray, inputs[1:])])]
        inner = equation.params.get("jaxpr") or equation.params.get("call_jaxpr")
        if name in ("random_wrap", "random_unwrap"):
            return inputs
        if inner is None or name in ("scan", "while", "cond"):
            raise ModelError(f"check=True: expected random numbers outside of {name}: compile with check=False")
        return replay(inner.jaxpr, inner.consts, inputs, bits) if hasattr(inner, "consts") else replay(
            inner, [], inputs, bits)
    bound = equation.primitive.get_bind_params(equation.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # a pair in older versions
    # What a key is made with is a number, so what depends on no parameter is computed at once.
    fixed = not any(isinstance(i, jax.core.Tracer) for i in inputs)
    with jax.ensure_compile_time_eval() if fixed else contextlib.nullcontext():
        made = equation.primitive.bind(*functions, *inputs, **params)
    return made if equation.primitive.multiple_results else [made]
