# SPDX-License-Identifier: Apache-2.0
"""Rules of the primitives that hold jaxprs, and of random numbers."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any, Optional, Sequence, Union

import jax
import numpy as np

from mtc._trace import BATCH, Batch, Refused, Value, layout, linear, losses, reductions
from mtc._trace import elementwise as e
from mtc._trace.complex_numbers import Complex
from mtc._trace.values import Shape
from mtc.jax import _named
from mtc.jax import _threefry as threefry
from mtc.jax._reader import UNKNOWN, Keys, Reader, is_concrete, is_key, rule
from mtc.jax._rules import logic
from mtc.jax._singular import SINGULAR


@rule("jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint")
def _inline(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    if equation.params.get("name") == "signbit":  # of -0.0 it is true in JAX; here it is not
        return [e.compare("lt", r.value(inputs[0]), 0)]
    if equation.params.get("name") == "_lu_solve" and _is_plain_solve(equation.params["jaxpr"].jaxpr):
        packed, places, right = (r.value(i) for i in inputs)
        if right.shape == packed.shape[:-1]:  # a vector for each matrix; else the vectors may be of vmap
            made = linear.solve_packed(packed, places, layout.expand_dims(right, (right.rank,)))
            return [layout.squeeze(made, (right.rank,))]
    metric = _named.object_of(equation.params.get("name"))
    if metric is not None:
        return losses.named_metric(r.graph, metric, [r.value(i) for i in inputs], len(equation.outvars))
    inner = equation.params.get("jaxpr") or equation.params["call_jaxpr"]
    if equation.params.get("name") == "_searchsorted_scan_impl":
        before, r.searches = r.searches, True
        try:
            return r.read(inner, inputs)
        finally:
            r.searches = before
    return r.read(inner, inputs) if hasattr(inner, "consts") else r.read_open(inner, [], inputs)


def _is_plain_solve(jaxpr: Any) -> bool:
    """Whether JAX' solution by an LU decomposition is of the matrix, and not of its transpose."""
    triangles = [eqn.params for eqn in jaxpr.eqns if eqn.primitive.name == "triangular_solve"]
    return bool(triangles) and triangles[0]["lower"] and not triangles[0]["transpose_a"]


@rule("custom_jvp_call")
def _custom_jvp(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    inner = equation.params["call_jaxpr"]
    name, _, place = str(inner.jaxpr.debug_info.func_src_info).partition(" at ")
    if not _is_learned(inputs) or any(i is UNKNOWN for i in inputs):
        return r.read(inner, inputs)
    if _is_relu(inner.jaxpr):
        return [e.unary("relu", r.value(inputs[0]))]
    if not place.startswith(_JAX) or name == "_custom_root":  # whose iterations may not have converged
        return _with_own_tangents(r, equation, inputs)
    if name in SINGULAR:
        return [SINGULAR[name](*map(r.value, inputs))]
    if name == "relu6":
        return [e.unary("relu6", r.value(inputs[0]))]
    if name == "log_ndtr":
        raise Refused("log_ndtr: its tails need a precise erfc, which MTC does not have; where |x| < 3, "
                      "jnp.log(jax.scipy.special.ndtr(x)) is precise enough")
    return r.read(inner, inputs)  # their rules are the gradients of what they compute


def _is_learned(inputs: Sequence[Any]) -> bool:
    """Whether a gradient goes through one of the inputs. None goes through integers and booleans."""
    return any(isinstance(i, Value) and i.learned and i.dtype == "f32" or isinstance(i, Complex) for i in inputs)


_JAX = str(pathlib.Path(jax.__file__).parent) + "/"


def _with_own_tangents(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    """The results of a custom_jvp function and, differentiated as it stands, the tangents of its rule.

    These are a linear function of the inputs' tangents. It is applied to `x - stop_gradient(x)`, which is zero, and
    added to the results.
    """
    return _with_rule(r, equation, inputs, jax.jvp)


def _with_rule(r: Reader, equation: Any, inputs: Sequence[Any], apply: Any) -> list[Any]:
    """The results of a function that has a rule, with what `apply` makes of the rule added to them.

    `apply` is called as `jax.jvp` is, with zeros that have a gradient as tangents. Integers have neither.
    """
    avals = [variable.aval for variable in equation.invars]
    learnable = [i for i, aval in enumerate(avals) if np.issubdtype(aval.dtype, np.floating)]
    bound = equation.primitive.get_bind_params(equation.params)
    functions, params = bound if isinstance(bound, tuple) else ((), bound)  # a pair in older versions

    def call(xs: Any, some: Any, floats: bool) -> list[Any]:
        given = {**dict(enumerate(xs)), **dict(zip(learnable, some))}
        made = equation.primitive.bind(*functions, *given.values(), **params)
        return [result for result, variable in zip(made, equation.outvars)
                if np.issubdtype(variable.aval.dtype, np.floating) == floats]

    def whole(*xs: Any) -> Any:
        fixed = [jax.lax.stop_gradient(xs[i]) for i in learnable]
        zeros = [xs[i] - x for i, x in zip(learnable, fixed)]
        results, tangents = apply(lambda *some: call(xs, some, True), fixed, zeros)
        return results, tangents, call(xs, fixed, False)

    closed, shapes = jax.make_jaxpr(whole, return_shape=True)(*avals)
    made = iter(r.read(closed, inputs))
    results, tangents, integers = ([next(made) for _ in part] for part in shapes)
    numbers = iter([_following(r, *pair) for pair in zip(results, tangents)])
    others = iter(integers)
    return [next(numbers if np.issubdtype(v.aval.dtype, np.floating) else others) for v in equation.outvars]


def _following(r: Reader, result: Any, tangent: Any) -> Any:
    if result is UNKNOWN or tangent is UNKNOWN:
        return UNKNOWN
    value, tangent = r.value(result), r.value(tangent)
    if not tangent.learned:
        return r.graph.stop_gradient(value)
    # It is no number where the rule has an infinite gradient, or one of an infinity: the result is one all the same.
    number = e.compare("eq", tangent, tangent)
    return e.select(number, value + tangent, value)


def _is_relu(jaxpr: Any) -> bool:
    """max(x, 0) with the gradient 0 at 0, as `jax.nn.relu` has it."""
    if len(jaxpr.eqns) != 1:
        return False
    equation = jaxpr.eqns[0]
    if equation.primitive.name in ("jit", "pjit"):
        return _is_relu(equation.params["jaxpr"].jaxpr)
    zeros = [getattr(a, "val", None) for a in equation.invars]
    return equation.primitive.name == "max" and any(z is not None and float(z) == 0 for z in zeros)


@rule("custom_vjp_call", "custom_vjp_call_jaxpr")
def _custom_vjp(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    inner = equation.params.get("call_jaxpr") or equation.params["fun_jaxpr"]
    if not _is_learned(inputs) or _is_checkpointed(inner.jaxpr):
        return r.read(inner, inputs)
    try:
        return _with_own_gradient(r, equation, inputs)
    except (NotImplementedError, AssertionError, RuntimeError):  # what JAX's transposition raises
        raise Refused("a gradient of the user's own (jax.custom_vjp) that is not linear in the gradient of the "
                      "result, such as a clipped one: call jax.grad yourself, in a step of mtc.jax.step") from None


def _is_checkpointed(jaxpr: Any) -> bool:
    """Whether it is a loop of Equinox, as diffrax has it, whose rule is the gradient of the loop in less memory."""
    loops = [e.params["cond_jaxpr"].jaxpr for e in jaxpr.eqns if e.primitive.name == "while"]
    return bool(loops) and all(_CHECKPOINTED in str(loop.debug_info.func_src_info) for loop in loops)


_CHECKPOINTED = str(pathlib.PurePath("equinox", "internal", "_loop", "checkpointed.py"))


def _with_own_gradient(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    """The results of a custom_vjp function and, differentiated as it stands, the gradients of its rule.

    The rule is a linear function from the gradients of the results to those of the inputs. Its transpose is applied to
    `x - stop_gradient(x)`, which is zero, and added to the results: the gradient of that sum is the rule.
    """
    def transposed(function: Any, fixed: Any, zeros: Any) -> Any:
        results, gradients_of = jax.vjp(function, *fixed)
        return results, jax.linear_transpose(gradients_of, results)(tuple(zeros))[0]

    return _with_rule(r, equation, inputs, transposed)


@rule("pure_callback", "io_callback", "debug_callback", "debug_print")
def _callback(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    raise Refused("a call of Python during the step: a plan runs without Python")


@rule("cond")
def _cond(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    index, *rest = inputs
    branches = equation.params["branches"]
    if is_concrete(index):
        return r.read(branches[min(max(int(index), 0), len(branches) - 1)], rest)
    made = [_errors(branch) or r.read(branch, rest) for branch in branches]
    which = r.value(index)
    results = []
    for column in zip(*made):
        others = [given for given in column if given is not None]
        column = tuple(others[-1] if given is None else given for given in column)
        keys = any(isinstance(given, threefry.Words) for given in column)
        values = [threefry.words_of(r, given).value if keys else r.value(given) for given in column]
        value = values[-1]
        for i in range(len(branches) - 2, -1, -1):
            chosen = e.compare("le", e.cast(which, "i32"), i)
            if chosen.rank:  # one for each sample: see the rule of unvmap_any
                rank = max(v.rank for v in values)
                chosen = layout.expand_dims(chosen, range(chosen.rank, rank))
            value = e.select(chosen, values[i], value)
        results.append(threefry.Words(value) if keys else value)
    return results


def _errors(branch: Any) -> Optional[list[Any]]:
    """In place of the results of a branch of Equinox that raises an error: numbers that are none, of which the loss is
    none either, so that the step ends with an error; None in place of integers. None: it is another branch."""
    jaxpr = branch.jaxpr
    if _ERRORS not in str(jaxpr.debug_info.func_src_info) or not any(
            e.primitive.name == "pure_callback" for e in jaxpr.eqns):
        return None
    found = [np.full((), np.nan, v.aval.dtype) if np.issubdtype(v.aval.dtype, np.floating) else None
             for v in jaxpr.outvars]
    return found if any(f is not None for f in found) else None


_ERRORS = str(pathlib.PurePath("equinox", "_errors.py"))


@rule("unvmap_any", "unvmap_all")
def _unvmapped(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    """Of Equinox: whether a condition holds for any or all samples, by which a loop or a branch is left out for all.
    Here each sample has its own loop and branch."""
    value = r.value(inputs[0])
    axes = [i for i, n in enumerate(value.shape) if n != BATCH]
    return reductions.reduce_logic(equation.primitive.name == "unvmap_all", value, axes) if axes else value


# Random numbers


@dataclasses.dataclass(frozen=True)
class Bits:
    """32 random bits of each element on their way to a number: `stage` says how far."""

    path: str
    shape: Shape
    stage: str = "bits"
    words: Optional[threefry.Words] = None  # the keys, where the numbers are JAX' own
    refusal = "random bits that do not become a number in the way of jax.random.uniform or randint"


def _keys(given: Any) -> Keys:
    if isinstance(given, Keys):
        return given
    if is_key(given):
        raise Refused("random numbers of a key that does not change: derive it from the argument `key`, or "
                      "in Keras from a SeedGenerator of the layer")
    raise Refused("a key made of data: derive it from the argument `key`")


@rule("random_wrap", "random_unwrap")
def _wrap(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    if not r.own_keys:
        return _keys(inputs[0])
    if (made := equation.params.get("impl")) is not None and threefry.KIND not in str(made):
        raise Refused(f"keys of {made}: MTC has jax.random.key(seed, impl=\"threefry2x32\")")
    return threefry.words_of(r, inputs[0])


@rule("random_split")
def _split(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    if r.own_keys:
        return threefry.split(r, threefry.words_of(r, inputs[0]), r.shape(equation.params["shape"]))
    return split_keys(equation, _keys(inputs[0]))


def split_keys(equation: Any, keys: Keys) -> Keys:
    """The keys of jax.random.split."""
    shape = tuple(equation.params["shape"])
    return Keys(tuple(f"{p}/{i}" for p in keys.paths for i in range(int(np.prod(shape)))), (*keys.shape, *shape))


@rule("random_fold_in")
def _fold_in(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    if r.own_keys:
        return threefry.fold_in(r, threefry.words_of(r, inputs[0]), inputs[1])
    if not is_concrete(inputs[1]):
        raise Refused("a key made of data")
    return fold_in_keys(_keys(inputs[0]), inputs[1])


def fold_in_keys(keys: Keys, data: Any) -> Keys:
    """The keys of jax.random.fold_in."""
    numbers = np.broadcast_to(data, keys.shape).reshape(-1)
    return Keys(tuple(f"{p}/f{int(d)}" for p, d in zip(keys.paths, numbers)), keys.shape)


@rule("random_bits")
def _bits(r: Reader, equation: Any, inputs: Sequence[Any]) -> Bits:
    if r.own_keys:
        if equation.params["bit_width"] != 32:
            raise Refused(f"random numbers of {equation.params['bit_width']} bits")
        return Bits("", r.shape(equation.params["shape"]), words=threefry.words_of(r, inputs[0]))
    keys = _keys(inputs[0])
    if equation.params["bit_width"] != 32 or len(keys.paths) != 1:
        raise Refused(f"random numbers of {equation.params['bit_width']} bits from {len(keys.paths)} keys")
    return Bits(keys.paths[0], r.shape(equation.params["shape"]))


def uniform(r: Reader, bits: Bits) -> Value:
    """Numbers in [0, 1): JAX' own, a stream of MTC's, or an input where JAX's are given."""
    if bits.words is not None:
        return threefry.uniform(r, bits.words, bits.shape)
    known = r.randoms.get(bits)
    if known is None:
        known = r.randoms[bits] = _fixed(r, bits) if r.fixed is not None else r.graph.random(
            "uniform", bits.shape, bits.path)
    return known


def _fixed(r: Reader, bits: Bits) -> Value:
    """Given numbers in place of random ones."""
    assert r.fixed is not None
    name = f"random/{len(r.fixed)}"
    r.fixed.append((name, bits.path, bits.shape))
    first, rest = (bits.shape or (1,))[0], bits.shape[1:]
    if not isinstance(first, Batch):
        if any(isinstance(n, Batch) for n in rest):
            raise Refused("random numbers whose first axis is not the samples, with check=True")
        return r.graph.variable(name, [int(n) for n in bits.shape], frozen=True)  # type: ignore[arg-type]
    inner = (first.times,) if first.times != 1 else ()
    return layout.reshape(r.graph.input(name, (BATCH, *inner, *rest), "f32"), bits.shape)


def move_keys(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    """What is made of keys and of random bits that are JAX' own; None of other operations."""
    if equation.primitive.name == "rem" and isinstance(inputs[0], Bits) and is_concrete(inputs[1]):
        bits, spans = inputs[0], np.unique(np.asarray(inputs[1]))
        if bits.words is None or bits.stage != "bits" or len(spans) != 1:
            raise Refused(Bits.refusal)
        return threefry.remainder(r, bits.words, bits.shape, int(spans[0]))
    return threefry.move(r, equation, inputs)


@rule("shift_right_logical", "or", "bitcast_convert_type")
def _number(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    name, bits = equation.primitive.name, inputs[0]
    if not isinstance(bits, Bits):
        if name == "or":
            return logic(r, equation, inputs)
        raise Refused("bits of numbers")
    other = int(np.asarray(inputs[1]).reshape(-1)[0]) if len(inputs) > 1 else 0
    if (name, bits.stage, other) == ("shift_right_logical", "bits", 9):
        return dataclasses.replace(bits, stage="mantissa")
    if (name, bits.stage, other) == ("or", "mantissa", 0x3F800000):
        return dataclasses.replace(bits, stage="float")
    if (name, bits.stage) == ("bitcast_convert_type", "float"):
        return dataclasses.replace(bits, stage="one more")
    raise Refused(Bits.refusal)


def less_one(r: Reader, inputs: Sequence[Any]) -> Union[Value, None]:
    """Random numbers in [1, 2) minus 1."""
    bits, one = inputs
    if not isinstance(bits, Bits):
        return None
    if bits.stage != "one more" or not is_concrete(one) or np.any(np.asarray(one) != 1):
        raise Refused(Bits.refusal)
    return uniform(r, bits)


@rule("sub")
def _sub(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    number = less_one(r, inputs)
    return number if number is not None else r.value(inputs[0]) - r.value(inputs[1])


@rule("random_seed")
def _seed(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    if r.own_keys:
        return threefry.seed(r, inputs[0])
    raise Refused("a key made of data")
