# SPDX-License-Identifier: Apache-2.0
"""One batch through JAX and through MTC: the loss and all gradients compared."""

from __future__ import annotations

import contextlib
from typing import Any, Sequence

import jax
import numpy as np
from jax._src import core

from mtc._errors import ModelError
from mtc._plan import Plan
from mtc._trace import differences, roundings
from mtc._trace.values import Batch, Shape
from mtc.jax import _control
from mtc.jax._optimizers import Optimizer
from mtc.jax._program import Program, finish_text, trace
from mtc.jax._reader import ON_KEYS, Keys, on_keys

Result = tuple[float, list[Any]]  # a loss and the gradients of the parameters
LOSS = "the loss"
MOMENTUM = 0.5  # so that the optimizer has slots; after the first step they hold minus the gradients


def compare(program: Program, arrays: Sequence[Any], tolerance: float, make: Any) -> str:
    """A line that says how good a program is. Raises a ModelError where the loss or a gradient differs.

    Args:
        program: the loss function.
        arrays: a batch.
        tolerance: of the norm of a difference of gradients, relative to the norm of the gradient, or to a hundredth of
            the largest norm if that is more. What roundings explain may be more (`mtc._trace.roundings`).
        make: compiles text into a plan.
    """
    fixed: list[tuple[str, str, Shape]] = []
    traced = trace(program, "check", Optimizer("sgd", 1.0), fixed=fixed)
    text = finish_text(traced, Optimizer("sgd", 1.0, {"momentum": MOMENTUM}))
    rows = len(arrays[0])
    bits, numbers = _numbers(fixed, rows)
    mine = _of_mtc(make(text, rows), program, arrays, numbers)
    errors = None
    try:
        theirs = _of_jax(program, arrays, bits, _run_once)
        errors = _errors(program, mine, theirs)
    except (ModelError, jax.errors.JaxRuntimeError):
        pass  # the operations one by one say what is wrong
    if errors is None or any(not error <= tolerance for error in errors.values()):
        # Not for something that is wrong in JAX with the settings of that program.
        theirs = _of_jax(program, arrays, bits, _run_eagerly)
        errors = _errors(program, mine, theirs)

    def again(noise: int) -> dict[str, float]:
        return _errors(program, _of_jax(program, arrays, bits, _run_eagerly, noise), theirs)

    wrong = roundings.unexplained(errors, tolerance, again)
    return _report(theirs[0], mine[0], errors, wrong, tolerance)


def _numbers(fixed: list[tuple[str, str, Shape]], rows: int) -> tuple[dict[Any, Any], dict[str, Any]]:
    """Random bits by the path of their key and shape, for JAX, and the numbers that they become, for MTC."""
    bits, numbers = {}, {}
    for i, (name, path, shape) in enumerate(fixed):
        sizes = tuple(n.times * rows if isinstance(n, Batch) else n for n in shape)
        drawn = np.random.default_rng([7, i]).integers(0, 2**32, sizes, np.uint32)
        bits[path, sizes] = drawn
        made = ((drawn >> 9).astype(np.float32) * np.float32(2**-23)).astype(np.float32)
        first = shape[0] if shape else 1
        if isinstance(first, Batch) and first.times != 1:
            made = made.reshape((rows, first.times, *sizes[1:]))
        numbers[name] = made
    return bits, numbers


def _of_jax(program: Program, arrays: Sequence[Any], bits: dict[Any, Any], run: Any, noise: int = 0) -> Result:
    """`noise`: n > 0: with random changes to the weights and the batch, by a share of up to `roundings.change(n)`."""
    state = [np.asarray(a) for a in program.state.arrays] if program.state else []

    def loss(params: Any, batch: Any, key: Any) -> Any:
        return program.call(params, state, batch, key, True)[0]

    random = np.random.default_rng(noise)
    given = [jax.numpy.asarray(_noisy(a, noise, random)) for a in arrays]
    params = [jax.numpy.asarray(_noisy(p, noise, random)) for p in program.params.arrays]
    key = program.key
    if not key:
        value, gradients = run(lambda p, b: loss(p, b, None), params, given)
    else:
        closed = jax.make_jaxpr(loss)(params, given, jax.eval_shape(lambda: jax.random.key(0)))
        value, gradients = run(
            lambda p, b: _replay(closed.jaxpr, closed.consts, [*p, *b, Keys((key,))], bits)[0], params, given)
    return float(value), [np.asarray(g) for g in gradients]


def _noisy(array: Any, noise: int, random: np.random.Generator) -> Any:
    array = np.asarray(array)
    if not noise or array.dtype.kind != "f":
        return array
    return (array * (1 + roundings.change(noise) * random.uniform(-1, 1, array.shape))).astype(array.dtype)


def _run_eagerly(loss: Any, params: list[Any], batch: list[Any]) -> Any:
    return jax.value_and_grad(loss)(params, batch)


def _run_once(loss: Any, params: list[Any], batch: list[Any]) -> Any:
    """As one program that is not optimized: for a single step JAX takes longer to compile a fast one, or each operation
    by itself."""
    return jax.jit(jax.value_and_grad(loss)).lower(params, batch).compile(
        {"xla_backend_optimization_level": "0", "xla_llvm_disable_expensive_passes": True,
         "xla_disable_hlo_passes": "fusion"})(params, batch)


def _replay(jaxpr: Any, consts: Sequence[Any], arguments: Sequence[Any], bits: dict[Any, Any]) -> list[Any]:
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
        return _replay(inner.jaxpr, inner.consts, inputs, bits) if hasattr(inner, "consts") else _replay(
            inner, [], inputs, bits)
    bound = equation.primitive.get_bind_params(equation.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # a pair in older versions
    # What a key is made with is a number, so what depends on no parameter is computed at once.
    fixed = not any(isinstance(i, core.Tracer) for i in inputs)
    with jax.ensure_compile_time_eval() if fixed else contextlib.nullcontext():
        made = equation.primitive.bind(*functions, *inputs, **params)
    return made if equation.primitive.multiple_results else [made]


def _of_mtc(plan: Plan, program: Program, arrays: Sequence[Any], numbers: dict[str, Any]) -> Result:
    batch = {n: np.asarray(a) for n, a in zip(program.batch.names, arrays)}
    with plan.session("cpu:1") as session:
        variables = session.variables
        for tree in filter(None, (program.params, program.state)):
            for name, array in zip(tree.names, tree.arrays):
                variables[name] = np.asarray(array, np.float32)
        for name, value in numbers.items():
            if name in variables:
                variables[name] = value
            else:
                batch[name] = value
        logs = session.train_step({t.name: batch[t.name] for t in plan.signature()})
        slots = [f"sgd/{n.replace('/', '_')}_momentum" for n in program.params.names]
        # A parameter that the loss does not depend on has no slot, and the gradient 0.
        return logs["loss"], [-variables[s] if s in variables else np.zeros(a.shape, np.float32)
                              for s, a in zip(slots, program.params.arrays)]


def _errors(program: Program, mine: Result, theirs: Result) -> dict[str, float]:
    """Of the loss and of the gradients, by what messages call them, relative to their norms."""
    norms = [differences.norm(g) for g in theirs[1]]
    least = 1e-2 * max(norms, default=0.0) + 1e-30
    errors = {LOSS: abs(theirs[0] - mine[0]) / max(abs(theirs[0]), 1e-6)}
    for name, a, b, norm in zip(program.params.names, mine[1], theirs[1], norms):
        errors[f'"{name}"'] = differences.norm_of_difference(a, b) / max(norm, least)
    return errors


def _report(theirs: float, mine: float, errors: dict[str, float], wrong: list[str], tolerance: float) -> str:
    names = sorted((n for n in errors if n != LOSS), key=lambda n: -(errors[n] if np.isfinite(errors[n]) else np.inf))
    worst = f"worst gradient {names[0]} {errors[names[0]]:.1e}" if names else "no gradients"
    text = f"loss {mine:.7g} (JAX {theirs:.7g}), {worst}, tolerance {tolerance:g}"
    if wrong:
        lines = [f"{n}: the gradient differs by {errors[n]:.1e} of its norm" for n in names if n in wrong]
        raise ModelError("\n".join([f"the model differs from JAX: {text}", *lines[:20]]))
    return f"checked against JAX: {text}{roundings.explained(errors, tolerance)}"
