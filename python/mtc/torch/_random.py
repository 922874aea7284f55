# SPDX-License-Identifier: Apache-2.0
"""ATen operations that draw random numbers. In evaluation, and for the check, each has one value, which
`_reference` has too."""

from __future__ import annotations

from typing import Any, Callable

import numpy as np

from mtc._trace import Refused, Value, layout, losses
from mtc._trace import elementwise as e
from mtc.torch._convert import Converter
from mtc.torch._handlers import op
from mtc.torch._layers import kept


def _drawn(c: Converter, kind: str, made: Callable[[Value], Value], even: float) -> Value:
    """What is made of random numbers of this kind; without them this number."""
    if not c.random:
        return layout.broadcast(c.graph.constant(even, c.dtype()), c.shape())
    return made(c.graph.random(kind, c.shape(), c.stream()))


@op("bernoulli")
def bernoulli(c: Converter, value: Any, probability: Any = None, *_: Any) -> Value:
    """1 with a probability, else 0; the probability in evaluation, where a quotient by it is 1."""
    if not isinstance(probability, (int, float)):
        raise Refused("random numbers whose probability the data says")
    return kept(c, c.shape(), 1 - probability) * probability


@op("rand", "rand_like")
def rand(c: Converter, *_: Any) -> Value:
    return _drawn(c, "uniform", lambda v: v, 0.5)


@op("randn", "randn_like")
def randn(c: Converter, *_: Any) -> Value:
    return _drawn(c, "normal", lambda v: v, 0.0)


@op("uniform")
def uniform(c: Converter, _like: Any, low: float = 0.0, high: float = 1.0, *_: Any) -> Value:
    """From low to high."""
    return _drawn(c, "uniform", lambda v: v * (high - low) + low, (low + high) / 2)


@op("normal_functional", "normal")
def normal(c: Converter, mean: Any, deviation: Any = 1.0, last: Any = None, *_: Any) -> Value:
    """Of means and deviations, each of which may be a tensor."""
    if c.name() == "normal_functional":  # a tensor whose shape it has
        mean, deviation = deviation, 1.0 if last is None else last
    standard = _drawn(c, "normal", lambda v: v, 0.0)
    made = standard if deviation == 1.0 else standard * _operand(c, deviation)
    return layout.broadcast(made + _operand(c, mean), c.shape())


def _operand(c: Converter, given: Any) -> Any:
    """A number, or a tensor, which has no gradient."""
    return given if isinstance(given, (int, float)) else c.graph.stop_gradient(e.cast(c.value(given), "f32"))


@op("exponential")
def exponential(c: Converter, _like: Any, rate: float = 1.0, *_: Any) -> Value:
    """Never 0, whose logarithm Gumbel's distribution has."""
    least = float(np.finfo(np.float32).eps) / 2

    def made(v: Value) -> Value:
        found = -e.unary("log1p", -v)
        return e.binary("maximum", found, least) / rate

    return _drawn(c, "uniform", made, 1 / rate)


@op("randint", "randint_like")
def randint(c: Converter, *given: Any) -> Value:
    """Whole numbers from the lowest one, up to one below the other."""
    given = given[1:] if c.name() == "randint_like" else given
    low, high = given[:2] if isinstance(given[1], int) else (0, given[0])
    if not isinstance(low, int) or not isinstance(high, int):
        raise Refused("random numbers whose bounds the data says")
    if high - low > 1 << 24:
        raise Refused(f"random numbers out of {high - low}: expected at most 2^24 of them")

    def made(v: Value) -> Value:
        places = e.binary("minimum", e.unary("floor", v * float(high - low)), float(high - low - 1))
        whole = e.cast(places, "i32") + low if low else e.cast(places, "i32")
        whole.bounds = (low, high - 1)
        return e.cast(whole, c.dtype())

    return _drawn(c, "uniform", made, low)


@op("rrelu_with_noise_functional", "rrelu_with_noise")
def rrelu(c: Converter, value: Any, _noise: Any, low: float = 1 / 8, high: float = 1 / 3, training: bool = False,
          *_: Any) -> Any:
    x = c.value(value)
    slope = layout.broadcast(c.graph.constant((low + high) / 2, "f32"), tuple(x.shape))
    if training and c.random:
        drawn = c.graph.random("uniform", tuple(x.shape), c.stream())
        slope = losses.while_training(drawn * (high - low) + low, slope)
    made = e.select(e.compare("gt", x, 0.0), x, x * slope)
    return [made, None] if c.name().endswith("functional") else made


@op("randperm", "multinomial", "binomial", "_standard_gamma", "_sample_dirichlet", "cauchy", "geometric",
    "log_normal")
def other_random(c: Converter, *_: Any) -> Value:
    raise Refused("random numbers of this kind")
