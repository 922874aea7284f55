# SPDX-License-Identifier: Apache-2.0
"""Keys of random numbers as data of a step, with the numbers that `jax.random` makes of them.

JAX' generator is Threefry 2x32-20. A key is two words of 32 bits; element i of an array has the counter i, in the order
of its elements in memory ("partitionable", JAX' default), so that each element can be computed by itself.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Sequence

import jax
import numpy as np

from mtc._tensors import Array
from mtc._trace import Batch, Refused, Value, integers, layout, moves
from mtc._trace import elementwise as e
from mtc._trace.values import Shape, elements
from mtc.jax._reader import Reader, is_concrete, is_key

MOST_WHOLE = 46340  # whose square is below 2^31
KIND = "fry"  # of keys, in the names of their types


@dataclasses.dataclass(frozen=True)
class Words:
    """Keys, or what is on its way to a key: `value` has the words in i32, two along the last axis for each key."""

    value: Value
    refusal = "uint32 that is neither a key nor a count: cast it to int32 first"


def is_words(array: Any) -> bool:
    """Whether an array has keys, in the type for keys or as uint32, or counts in uint32, as Flax' nnx does."""
    return is_key(array) or getattr(array, "dtype", None) == np.uint32


def to_host(array: Any) -> Array:
    """Keys as a variable of the plan has them."""
    if problem := problem_of(array):
        raise Refused(problem)
    numbers = jax.random.key_data(array) if is_key(array) else array
    return np.asarray(numbers).view(np.int32)


def from_host(array: Array, like: Any) -> Any:
    """Keys in the type that the caller has."""
    numbers = np.asarray(array, np.int32).view(np.uint32)
    if not is_key(like):
        return numbers
    return jax.random.wrap_key_data(jax.numpy.asarray(numbers), impl=jax.random.key_impl(like))


def problem_of(array: Any) -> str:
    """Why MTC does not have the numbers of these keys; "" where it has them."""
    if is_key(array) and KIND not in str(array.dtype):
        return f"expected keys of jax.random.key(seed, impl=\"threefry2x32\"), found {array.dtype}"
    config: Any = jax.config
    if not config.jax_threefry_partitionable:
        return "expected jax_threefry_partitionable, found False: numbers depend on the size of the array"
    return ""


def words_of(r: Reader, given: Any) -> Words:
    """Keys, which may be constants of the function."""
    if isinstance(given, Words):
        return given
    if isinstance(given, np.ndarray) and given.dtype == np.uint32 or is_key(given):
        return Words(r.graph.constant(to_host(given), "i32"))
    raise Refused("a key made of data: make it of a key in the state")


def _made(kind: str, keys: Words, count: Value) -> Value:
    """The result of mt.threefry for each key and count: [keys..., counts...]."""
    shape = keys.value.shape[:-1]
    parts = [layout.reshape(moves.at(keys.value, -1, i), (*shape, *[1] * count.rank)) for i in range(2)]
    return e.apply("threefry", (*parts, count), "f32" if kind == "uniform" else "i32",
                   attributes=f" {{{{kind = #mt<threefry_result {kind}>}}}}", kind=kind)


def _counts(r: Reader, shape: Shape) -> Value:
    """The numbers of elements in memory."""
    if any(isinstance(n, Batch) for n in shape[1:]):
        raise Refused("random numbers whose first axis is not the samples: draw them with the samples first")
    total: Value = r.graph.constant(np.asarray(0, np.int32))
    for i in range(len(shape)):
        inner = elements(shape[i + 1:])
        if inner > 2**31 - 1:
            raise Refused(f"random numbers of the shape {list(shape)}, of more than 2^31 for a sample")
        total = total + moves.iota(r.graph, shape, i, "i32") * inner
    return total


def _keys_of(first: Value, second: Value) -> Words:
    return Words(moves.concat([layout.expand_dims(v, (v.rank,)) for v in (first, second)], first.rank))


def uniform(r: Reader, keys: Words, shape: Shape) -> Value:
    """Numbers in [0, 1): those that jax.random.uniform has."""
    return _made("uniform", keys, _counts(r, shape))


def remainder(r: Reader, keys: Words, shape: Shape, span: int) -> Value:
    """Random words modulo a number, as jax.random.randint has them.

    The digits of a word to the base 256 go in one after the other: all numbers are below 2^24, which f32 has exactly.
    """
    if not 0 < span <= MOST_WHOLE:
        raise Refused(f"whole random numbers of {span} values, where MTC has up to {MOST_WHOLE}: round "
                      "jax.random.uniform down")
    counts = _counts(r, shape)
    high = e.unary("floor", _made("uniform", keys, counts) * 65536.0)
    low = e.cast(_made("both", keys, counts) - e.cast(high, "i32") * 65536, "f32")
    found: Value = r.graph.constant(np.float32(0))
    for half in (high, low):
        first = e.unary("floor", half * 2.0**-8)
        for digit in (first, half - first * 256.0):
            number = found * 256.0 + digit
            times = e.unary("floor", number / float(span))
            found = number - times * float(span)
    whole = e.cast(found, "i32")
    whole.bounds = 0, span - 1
    return whole


def split(r: Reader, keys: Words, shape: Shape) -> Words:
    """The keys of jax.random.split."""
    counts = _counts(r, shape)
    return _keys_of(_made("first", keys, counts), _made("second", keys, counts))


def fold_in(r: Reader, keys: Words, data: Any) -> Words:
    """The keys of jax.random.fold_in."""
    if is_concrete(data):
        data = np.asarray(data).astype(np.int64).astype(np.uint32).view(np.int32)
    number = data.value if isinstance(data, Words) else r.value(data)
    if number.dtype != "i32" or keys.value.rank != 1 or number.rank:
        raise Refused("jax.random.fold_in of other data than a whole number")
    return _keys_of(_made("first", keys, number), _made("second", keys, number))


def seed(r: Reader, number: Any) -> Words:
    """The key of jax.random.key."""
    value = number.value if isinstance(number, Words) else r.value(number)
    if value.dtype != "i32":
        raise Refused("a key of another seed than whole numbers")
    return _keys_of(layout.broadcast(r.graph.constant(np.asarray(0, np.int32)), value.shape), value)


def move(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    """Keys that are moved, and arithmetic of their words. None of other operations."""
    if _to_word(equation, inputs):
        return Words(inputs[0])
    if equation.primitive.name == "convert_element_type" and isinstance(inputs[0], Words) and (
            equation.params["new_dtype"] == np.int32):
        return inputs[0].value  # the same 32 bits
    if equation.primitive.name not in MOVES or not any(isinstance(i, Words) for i in inputs):
        return None
    name, p, variable = equation.primitive.name, equation.params, equation.outvars[0]
    # In the type for keys the axis of words is not there.
    more: tuple[int, ...] = (2,) if "key<" in str(variable.aval.dtype) else ()
    parts = [_words_or_number(r, i, bool(more)) for i in inputs]
    value = parts[0]
    if name in ("add", "mul", "sub"):
        return Words(e.binary(name, *parts))
    if name == "concatenate":
        return Words(moves.concat(parts, p["dimension"]))
    if name == "slice":
        count = value.rank - len(more)
        ends: list[Any] = [*map(r.size, p["limit_indices"]), *[None] * len(more)]
        return Words(moves.slice_(value, [*p["start_indices"], *[0] * len(more)], ends,
                                  [*(p["strides"] or [1] * count), *[1] * len(more)]))
    if name == "squeeze":
        return Words(layout.squeeze(value, p["dimensions"]))
    if name == "transpose":
        return Words(layout.transpose(value, [*p["permutation"], *([len(p["permutation"])] if more else [])]))
    if name == "broadcast_in_dim":
        dims = [*p["broadcast_dimensions"], *([len(p["shape"])] if more else [])]
        return Words(layout.broadcast(value, (*r.shape(p["shape"]), *more), dims))
    if name == "reshape":
        return Words(layout.reshape(value, (*r.out_shape(equation), *more)))
    return inputs[0] if isinstance(inputs[0], Words) else Words(value)  # a copy


def _words_or_number(r: Reader, given: Any, is_key_type: bool) -> Value:
    if isinstance(given, Words) or is_key_type or is_concrete(given) and given.dtype == np.uint32:
        return words_of(r, given).value
    return r.value(given)


def _to_word(equation: Any, inputs: Sequence[Any]) -> bool:
    """Whether a whole number that may be negative becomes a word, as the data of jax.random.fold_in does."""
    return (equation.primitive.name == "convert_element_type" and equation.params["new_dtype"] == np.uint32
            and isinstance(inputs[0], Value) and inputs[0].dtype == "i32" and integers.bounds(inputs[0])[0] < 0)


MOVES = {"add", "mul", "sub", "concatenate", "slice", "squeeze", "transpose", "broadcast_in_dim", "reshape", "copy",
         "copy_p", "optimization_barrier"}
