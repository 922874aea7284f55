# SPDX-License-Identifier: Apache-2.0
"""Rules of the primitives that take or give complex numbers."""

from __future__ import annotations

from typing import Any, Callable, Sequence

import numpy as np

from mtc._trace import Refused, Value, products
from mtc._trace import complex_numbers as cn
from mtc._trace import elementwise as e
from mtc._trace.complex_numbers import Complex
from mtc.jax._reader import OF_COMPLEX, RULES, Reader, Rule, is_concrete, rule

# They move numbers, or add them, so they do the same to both parts.
_OF_PARTS = {"broadcast_in_dim", "reshape", "transpose", "slice", "squeeze", "expand_dims", "concatenate", "pad", "rev",
             "dynamic_slice", "dynamic_update_slice", "gather", "select_n", "reduce_sum", "copy", "copy_p", "cumsum",
             "split", "scatter", "scatter-add"}


@rule(OF_COMPLEX)
def _apply(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    name = equation.primitive.name
    if name in _RULES:
        return _RULES[name](r, equation, inputs)
    if name not in _OF_PARTS:
        raise Refused(Complex.refusal)
    made, other = (RULES[name](r, equation, parts) for parts in zip(*map(_parts, inputs)))
    if isinstance(made, (list, tuple)):
        return [Complex(a, b) for a, b in zip(made, other)]
    return Complex(made, other)


def _parts(given: Any) -> tuple[Any, Any]:
    """The real and the imaginary part of an operand; one that is not complex, such as a place, for both."""
    if isinstance(given, Complex):
        return given.re, given.imaginary
    return (given.real, given.imag) if is_concrete(given) and np.iscomplexobj(given) else (given, given)


def _complex(r: Reader, given: Any) -> Complex:
    if isinstance(given, Complex):
        return given
    if is_concrete(given) and np.iscomplexobj(given):
        array = np.asarray(given)
        return Complex(*(r.graph.constant(np.ascontiguousarray(part), "f32") for part in (array.real, array.imag)))
    return Complex(r.value(given))


def _unary(function: Callable[[Complex], Any]) -> Rule:
    return lambda r, equation, inputs: function(_complex(r, inputs[0]))


def _binary(function: Callable[[Complex, Complex], Any]) -> Rule:
    return lambda r, equation, inputs: function(_complex(r, inputs[0]), _complex(r, inputs[1]))


def _dot_general(r: Reader, equation: Any, inputs: Sequence[Any]) -> Complex:
    contract, batch = equation.params["dimension_numbers"]
    return cn.bilinear(lambda a, b: products.dot_general(a, b, contract, batch), *(_complex(r, i) for i in inputs))


def _power(r: Reader, equation: Any, inputs: Sequence[Any]) -> Complex:
    x, exponent = _complex(r, inputs[0]), int(equation.params["y"])
    if not 1 <= exponent <= 8:
        raise Refused(f"complex numbers to the power {exponent}")
    made = x
    for _ in range(exponent - 1):
        made = cn.multiply(made, x)
    return made


def _convert(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    if not np.issubdtype(equation.params["new_dtype"], np.complexfloating):
        raise Refused("complex numbers cast to real ones: take their real part")
    if isinstance(inputs[0], Complex):
        return inputs[0]
    return Complex(e.cast(r.value(inputs[0]), "f32"))


def _fft(r: Reader, equation: Any, inputs: Sequence[Any]) -> Any:
    kind = equation.params["fft_type"]
    name = getattr(kind, "name", str(kind)).upper()
    real, inverse = "RFFT" in name, name.startswith("I")
    lengths = [r.size(n) for n in equation.params["fft_lengths"]]
    if not all(isinstance(n, int) for n in lengths):
        raise Refused("a Fourier transform over the samples")
    x: Any = r.value(inputs[0]) if real and not inverse else _complex(r, inputs[0])
    return cn.fourier(x, lengths, inverse, real)  # type: ignore[arg-type]


def _real(x: Complex) -> Value:
    return x.re


_RULES: dict[str, Rule] = {
    "fft": _fft, "real": _unary(_real), "imag": _unary(lambda x: x.imaginary), "conj": _unary(cn.conjugate),
    "complex": lambda r, equation, inputs: Complex(r.value(inputs[0]), r.value(inputs[1])),
    "neg": _unary(cn.negative), "abs": _unary(cn.absolute), "exp": _unary(cn.exponential), "mul": _binary(cn.multiply),
    "add": _binary(cn.add), "add_any": _binary(cn.add), "sub": _binary(lambda a, b: cn.add(a, cn.negative(b))),
    "div": _binary(cn.divide), "square": _unary(lambda x: cn.multiply(x, x)), "dot_general": _dot_general,
    "eq": _binary(cn.equal), "ne": _binary(lambda a, b: e.logical_not(cn.equal(a, b))), "sign": _unary(cn.sign),
    "integer_pow": _power, "convert_element_type": _convert,
}
