# SPDX-License-Identifier: Apache-2.0
"""A step of a loss function of JAX in float64, and how far the interpreter of MTC is from it."""

import jax
import numpy as np
from interpreter import MOMENTUM, Step, errors

from mtc._trace.values import Batch
from mtc.jax import _reference
from mtc.jax._optimizers import Optimizer
from mtc.jax._program import finish_text, trace
from mtc.jax._reader import Keys


def in_double(array):
    array = np.asarray(array)
    return array.astype("f8") if array.dtype.kind == "f" else array


def step_of_jax(program, params, state, batch, bits):
    """A step of a program, all of whose arrays are float64, inside `jax.enable_x64`. `bits`: the random ones."""

    def values(params, state, batch, key):
        loss, new, _ = program.call(params, state, batch, key, True)
        return [loss, *(new or [])]

    key = jax.eval_shape(lambda: jax.random.key(0)) if program.key else None
    closed = jax.make_jaxpr(values)(params, state, batch, key)

    def loss(params):
        keys = [Keys((program.key,))] if program.key else []
        loss, *new = _reference.replay(closed.jaxpr, closed.consts, [*params, *state, *batch, *keys], bits)
        return loss, new

    run = jax.value_and_grad(loss, has_aux=True)
    if not program.key:  # JAX compiles one program sooner than each operation
        run = jax.jit(run, compiler_options={"xla_backend_optimization_level": "0",
                                             "xla_llvm_disable_expensive_passes": True})
    (value, new), gradients = run(params)
    assert value.dtype == np.float64 and all(g.dtype == np.float64 for g in gradients)
    return Step(float(value), dict(zip(program.params.names, map(np.asarray, gradients))),
                dict(zip(program.state.names, map(np.asarray, new))) if program.state else {})


def errors_in_float64(program, double, path):
    """Of the loss, of all gradients and of the state after a step, by their names.

    Args:
        program: a `Program`, whose text the interpreter runs.
        double: gives a context that has the same program with float64 in place of float32.
        path: of a file to write and remove.
    """
    fixed = []
    traced = trace(program, "check", Optimizer("sgd", 1.0), fixed=fixed)
    text = finish_text(traced, Optimizer("sgd", 1.0, {"momentum": MOMENTUM}))
    state = program.state.arrays if program.state else []
    bits, numbers = _reference.numbers_of(fixed, len(program.batch.arrays[0]))
    inputs = dict(zip(program.batch.names, program.batch.arrays))
    variables = dict(zip(program.params.names, program.params.arrays))
    variables.update(zip(program.state.names if program.state else [], state))
    for name, _, shape in fixed:  # those that are the same for all samples are variables
        (inputs if shape and isinstance(shape[0], Batch) else variables)[name] = numbers[name]
    # The upper 23 bits decide, as in float32.
    bits = {key: (drawn >> 9).astype("u8") << 41 for key, drawn in bits.items()}
    with jax.enable_x64(True), double() as twin:
        arrays = [[in_double(a) for a in part] for part in (program.params.arrays, state, program.batch.arrays)]
        expected = step_of_jax(twin, *arrays, bits)
    return errors(path, text, inputs.items(), variables.items(), expected)
