# SPDX-License-Identifier: Apache-2.0
"""Rules of the primitives that compute element by element, reshape, reduce and multiply."""

from __future__ import annotations

import functools
from typing import Any, Callable, Sequence

import jax
import numpy as np

from mtc._trace import (
    BATCH,
    Batch,
    Refused,
    Value,
    integers,
    layout,
    linear,
    moves,
    products,
    reals,
    reductions,
    spatial,
)
from mtc._trace import elementwise as e
from mtc._trace.graph import dtype_of
from mtc.jax import _kinks
from mtc.jax._empty import EMPTY
from mtc.jax._reader import ACROSS, Reader, rounded, rule

LARGEST = float(np.finfo(np.float32).max)
_ROUND = {jax.lax.RoundingMethod.TO_NEAREST_EVEN: "round_nearest_even",
          jax.lax.RoundingMethod.AWAY_FROM_ZERO: "round_nearest_afz"}
# What makes the result of the values alone, and of the parameters.
OF_VALUES: dict[str, Callable[..., Any]] = {
    "logistic": lambda p, x: e.unary("sigmoid", x),
    "add": lambda p, a, b: a + b,
    "add_any": lambda p, a, b: a + b,
    "is_finite": lambda p, x: e.compare("le", e.unary("abs", x), LARGEST),
    "squeeze": lambda p, x: layout.squeeze(x, p["dimensions"]),
    "expand_dims": lambda p, x: layout.expand_dims(x, p["dimensions"]),
    "transpose": lambda p, x: layout.transpose(x, p["permutation"]),
    "rev": lambda p, x: moves.reverse(x, p["dimensions"]),
    "reduce_and": lambda p, x: reductions.reduce_logic(True, x, p["axes"]),
    "reduce_or": lambda p, x: reductions.reduce_logic(False, x, p["axes"]),
    "cumsum": lambda p, x: reductions.cumsum(x, p["axis"], p["reverse"]),
    "exp2": lambda p, x: e.unary("exp", x * float(np.log(2))),
    "round": lambda p, x: e.unary(_ROUND[p["rounding_method"]], x),
    "triangular_solve": lambda p, a, b: linear.solve_triangular(
        a, b, left=p["left_side"], lower=p["lower"], transposed=p["transpose_a"], unit=p["unit_diagonal"]),
    "lu_pivots_to_permutation": lambda p, x: linear.places_of(x, p["permutation_size"]),
    **{name: lambda p, x, op=name: e.unary(op, x) for name in (
        "exp", "log", "log1p", "expm1", "sqrt", "rsqrt", "tanh", "sin", "cos", "tan", "floor", "ceil", "sign", "neg",
        "square", "erf", "erfc", "erf_inv", "digamma")},
    **{name: lambda p, a, b, op=name: e.compare(op, a, b) for name in ("eq", "ne", "lt", "le", "gt", "ge")},
}


@rule(*OF_VALUES)
def _of_values(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    return OF_VALUES[equation.primitive.name](equation.params, *map(r.value, inputs))


@rule("abs")
def _abs(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    x = r.value(inputs[0])
    made = e.unary("abs", x)
    if not x.learned or x.dtype != "f32" or _kinks.whose() != "jax":
        return made
    exact = e.select(e.compare("ge", x, 0.0), x, -x)  # JAX's gradient is 1 at 0, that of mt.abs 0
    exact.info = ("abs", made)
    return exact


@rule("mul")
def _mul(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    """As XLA has it under jit: a product with booleans, cast to numbers and used as they are, is a select.

    So what is infinite where they are false is 0, in the gradient too, and not NaN.
    """
    a, b = r.value(inputs[0]), r.value(inputs[1])
    for x, mask in ((a, b), (b, a)):
        numbers = x.array is not None and bool(np.isfinite(x.array).all())
        if not numbers and mask in r.masks and mask.shape == r.out_shape(equation):
            return e.select(mask.operands[0], x, 0.0)
    return a * b


@rule("max", "min")
def _extreme(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return extremum("maximum" if equation.primitive.name == "max" else "minimum", *map(r.value, inputs))


def extremum(op: str, a: Value, b: Value) -> Value:
    """The larger or, with `minimum`, the smaller one."""
    if a.dtype == "i1":
        return a | b if op == "maximum" else a & b
    made = e.binary(op, a, b)
    if made.dtype != "f32":
        return made
    learned = (a.learned or b.learned) and made.op == op
    infinite = {abs(x.scalar) for x in (a, b) if x.scalar is not None} & {np.inf}
    if not learned or infinite or _kinks.whose() == "tensorflow":
        return made
    # JAX gives each of two equal numbers half of the gradient, and of a NaN none.
    half = (a + b) * 0.5
    tied = e.select(e.compare("eq", a, b), half, made)
    tied = e.select(e.compare("eq", made, made), tied, made.graph.stop_gradient(made))
    tied.info = ("tied", made)
    return tied


@rule("div")
def _div(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    a, b = r.value(inputs[0]), r.value(inputs[1])
    return integers.divide(a, b)[0] if a.dtype == "i32" else a / b


@rule("and", "xor", "not")
def logic(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    values = [r.value(i) for i in inputs]
    if any(v.dtype != "i1" for v in values):
        raise Refused("bits of integers")
    name = equation.primitive.name
    if name == "not":
        return ~values[0]
    if name == "xor":
        return e.compare("ne", *values)
    return e.logical_and(*values) if name == "and" else e.logical_or(*values)


@rule("select_n")
def _select(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    which, *cases = (r.value(i) for i in inputs)
    if which.rank > len(equation.invars[0].aval.shape):  # one for each sample: see the rule of unvmap_any
        which = layout.expand_dims(which, range(which.rank, max(case.rank for case in cases)))
    if len(cases) == 2:
        return e.select(e.cast(which, "i1"), cases[1], cases[0])
    made = cases[-1]
    for i in range(len(cases) - 2, -1, -1):
        made = e.select(e.compare("le", which, i), cases[i], made)
    return made


@rule("clamp")
def _clamp(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    """min(max(x, low), high). The gradient is that of x between the bounds, and of a bound that x is beyond."""
    low, x, high = (r.value(i) for i in inputs)
    made = e.binary("minimum", e.binary("maximum", x, low), high)
    if made.dtype != "f32" or not made.learned:
        return made
    inside = e.compare("gt", x, low) & e.compare("lt", x, high)
    made = e.select(inside, x, r.graph.stop_gradient(made))
    beyond_low = e.compare("gt", low, x) & e.compare("lt", low, high)
    for bound, beyond in ((low, beyond_low), (high, e.compare("lt", high, x))):
        if bound.learned:
            made = e.select(beyond, bound, made)
    return made


@rule("convert_element_type")
def _convert(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    if not isinstance(inputs[0], Value):
        return inputs[0]
    kind = np.dtype(equation.params["new_dtype"])
    value = inputs[0]
    if value.dtype == "f32" and kind.kind in "iu" and kind.itemsize < 4:  # XLA takes the nearest that there is
        limits = np.iinfo(kind)
        made = e.binary("minimum", e.binary("maximum", e.cast(value, "i32"), int(limits.min)), int(limits.max))
        return made
    if kind.kind != "b" and kind.kind not in "iu" and kind.name != reals.name():
        return rounded(value, kind.name)
    made = e.cast(value, dtype_of(kind))
    if value.dtype == "i1" and made.dtype == "f32" and made.op == "cast" and not layout.repeats(value):
        r.masks.add(made)
    return made


@rule("copy", "copy_p", "optimization_barrier", "sharding_constraint", "name", "device_put",
      "pvary", "layout_constraint", "mesh_cast", "reshard", "pcast")
def _same(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    return list(inputs)


@rule("reduce_precision")
def _reduce_precision(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value, bits = r.value(inputs[0]), (equation.params["exponent_bits"], equation.params["mantissa_bits"])
    if bits == ((11, 52) if reals.double() else (8, 23)):
        return value
    return rounded(value, f"{bits[0]} and {bits[1]} bits")


@rule("stop_gradient")
def _stop_gradient(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value = r.value(inputs[0])
    return value if r.solves else r.graph.stop_gradient(value)


@rule("dim_as_value")
def _dim_as_value(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    size = r.size(equation.params["dim"])
    return r.graph.count(size, "i32") if isinstance(size, Batch) else np.int32(size)


# Shapes


@rule("broadcast_in_dim")
def _broadcast(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return layout.broadcast(r.value(inputs[0]), r.out_shape(equation), equation.params["broadcast_dimensions"])


@rule("reshape")
def _reshape(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value, order = r.value(inputs[0]), equation.params["dimensions"]
    return layout.reshape(value if order is None else layout.transpose(value, order), r.out_shape(equation))


@rule("iota")
def _iota(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    return moves.iota(r.graph, r.out_shape(equation), equation.params["dimension"],
                      dtype_of(equation.params["dtype"]))


@rule("pad")
def _pad(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    fill = r.value(inputs[1]).scalar
    if fill is None:
        raise Refused("padding with a number that depends on the data")
    low, high, interior = (list(c) for c in zip(*equation.params["padding_config"]))
    return moves.pad(r.value(inputs[0]), fill, low, high, interior)


def _static(n: Any) -> int:
    if isinstance(n, Batch):
        raise Refused("a part of the samples of a batch")
    return int(n)


@rule("slice")
def _slice(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    p = equation.params
    value = r.value(inputs[0])
    limits = [None if r.size(n) == m and isinstance(m, Batch) else _static(r.size(n)) for n, m in
              zip(p["limit_indices"], value.shape)]
    return moves.slice_(value, p["start_indices"], limits, p["strides"] or [1] * len(limits))


@rule("split")
def _split(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Any]:
    value, axis = r.value(inputs[0]), equation.params["axis"]
    sizes = [r.size(n) for n in equation.params["sizes"]]
    if isinstance(value.shape[axis], Batch):
        return moves.split_batches(value, axis, sizes)
    ends = np.cumsum([0, *sizes])
    return [moves.part(value, axis, int(start), int(end)) if end > start else EMPTY
            for start, end in zip(ends, ends[1:])]


# Reductions and products


@rule("reduce_sum", "reduce_max", "reduce_min")
def _reduce(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value, axes = r.value(inputs[0]), equation.params["axes"]
    parts = r.parts.get(id(value))
    if parts is not None and equation.primitive.name == "reduce_sum" and len(axes) == value.rank:
        return functools.reduce(lambda a, b: a + b, parts)
    return reductions.reduce(equation.primitive.name[7:], value, axes) if axes else value


@rule("reduce_prod")
def _product(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value, axes = r.value(inputs[0]), equation.params["axes"]
    sizes = [value.shape[a] for a in axes]
    parts = r.parts.get(id(value))
    if parts is None and all(n == 1 for n in sizes):
        return layout.squeeze(value, axes)
    if parts is None or len(axes) != value.rank:
        if value.dtype == "i1" or not all(isinstance(n, int) for n in sizes):
            raise Refused(f"a product over the batch: {ACROSS}" if value.dtype != "i1" else "a product of booleans")
        return reductions.product(value, axes)
    return functools.reduce(lambda a, b: a * b, parts)


@rule("argmax", "argmin")
def _argmax(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    value = r.value(inputs[0])
    if value.dtype == "i1" or integers.exact_in_f32(value):
        value = e.cast(value, "f32")
    if equation.primitive.name == "argmin":  # the order of all integers: ~x, as there is no -x of the least one
        value = -value if value.dtype == "f32" else -1 - value
    return reductions.argmax(value, equation.params["axes"][0])


@rule("top_k")
def _top_k(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Value]:
    value, axis = r.value(inputs[0]), equation.params.get("axis", -1)
    places = reductions.sort([value], equation.params["k"], axis, largest=True)
    return [moves.take_along(value, places, axis), places]


@rule("approx_top_k")
def _approximate_top_k(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Value]:
    """Exact, as JAX computes it on CPUs."""
    value, p = r.value(inputs[0]), equation.params
    if not p["aggregate_to_topk"]:
        raise Refused("aggregate_to_topk=False")
    axis = p["reduction_dimension"]
    places = reductions.sort([value], p["k"], axis, largest=p["is_max_k"])
    return [moves.take_along(value, places, axis), places]


@rule("sort")
def _sort(r: Reader, equation: Any, inputs: Sequence[Any]) -> list[Value]:
    values, axis = [r.value(i) for i in inputs], equation.params["dimension"]
    places = reductions.sort(values[:equation.params["num_keys"]], None, axis)
    return [moves.take_along(value, places, axis) for value in values]


@rule("dot_general")
def _dot_general(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    contract, batch = equation.params["dimension_numbers"]
    made = products.dot_general(r.value(inputs[0]), r.value(inputs[1]), contract, batch)
    return e.cast(made, dtype_of(equation.outvars[0].aval.dtype))


@rule("conv_general_dilated")
def _convolution(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    p = equation.params
    numbers = p["dimension_numbers"]
    images = layout.transpose(r.value(inputs[0]), numbers.lhs_spec)
    kernel = layout.transpose(r.value(inputs[1]), numbers.rhs_spec)
    groups, sample_groups = r.size(p["feature_group_count"]), r.size(p["batch_group_count"])
    windows = p["window_strides"], p["padding"], p["rhs_dilation"], p["lhs_dilation"]
    if isinstance(groups, Batch) or isinstance(sample_groups, Batch):
        if sample_groups != 1:
            raise Refused("the gradient of each sample by the kernel of a convolution in groups")
        assert isinstance(groups, Batch)
        if kernel.shape[1] == 1 and images.shape[1] == groups == BATCH and images.shape[0] != 1:
            made = spatial.gradients_of_samples(images, kernel, *windows)
        else:
            made = spatial.convolution_of_samples(images, kernel, *windows, groups.times)
    else:
        made = spatial.convolution(images, kernel, *windows, groups, sample_groups)
    return layout.transpose(made, [numbers.out_spec.index(i) for i in range(made.rank)])


@rule("select_and_scatter_add")
def _maximum_gradient(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    p = equation.params
    if p["select_prim"].name != "ge":
        raise Refused(f"a gradient of windows that selects by {p['select_prim'].name}; ge is supported, of maxima")
    return spatial.maximum_gradient(r.value(inputs[0]), r.value(inputs[1]), p["window_dimensions"],
                                    p["window_strides"], p["padding"])


@rule("select_and_gather_add")
def _at_maximum(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    p = equation.params
    if p["select_prim"].name != "ge" or any(d != 1 for d in (*p["base_dilation"], *p["window_dilation"])):
        raise Refused("tangents of windows with a dilation, or that do not select by ge")
    return spatial.at_maximum(r.value(inputs[0]), r.value(inputs[1]), [int(n) for n in p["window_dimensions"]],
                              p["window_strides"], p["padding"])


@rule("reduce_window_max", "reduce_window_sum", "reduce_window_min")
def _window(r: Reader, equation: Any, inputs: Sequence[Any]) -> Value:
    p = equation.params
    kind = equation.primitive.name.rpartition("_")[2]
    return _windows_of(kind, r.value(inputs[0]), [r.size(n) for n in p["window_dimensions"]], p)


def _windows_of(kind: str, value: Value, window: Sequence[Any], p: Any) -> Value:
    """A sum, maximum or minimum of windows, with dilations of the windows and of the value."""
    spaces = [d - 1 for d in p["base_dilation"]]
    if any(spaces):
        if value.dtype != "f32" or kind == "min":
            raise Refused("windows with a dilation of the operand, of integers or minima")
        none = [0] * value.rank
        value = moves.pad(value, 0.0 if kind == "sum" else spatial.LOWEST, none, none, spaces)
    if kind == "min":
        made = spatial.window_reduce("max", -value, window, p["window_strides"], p["padding"], p["window_dilation"])
        return -made
    # A sum of what zeros are put between is the gradient of an average, which has none in its turn.
    return spatial.window_reduce(kind, value, window, p["window_strides"], p["padding"], p["window_dilation"],
                                 by_slices=any(spaces) and value.learned)


@rule("reduce_window")
def _general_window(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    p = equation.params
    kinds = {"add": "sum", "add_any": "sum", "max": "max", "min": "min"}
    equations = p["jaxpr"].eqns
    if len(equations) != 1 or equations[0].primitive.name not in kinds:
        raise Refused("windows of another function than the sum, the maximum and the minimum")
    return _windows_of(kinds[equations[0].primitive.name], r.value(inputs[0]), p["window_dimensions"], p)
