# SPDX-License-Identifier: Apache-2.0
"""Whose gradient is taken where a function has a kink, as |x| at 0: JAX's, but for models of other back ends."""

from __future__ import annotations

from typing import Any, cast

import jax
from jax.interpreters import ad

_whose = "jax"


def whose() -> str:
    """A back end of Keras."""
    return _whose


def follow(backend: str) -> None:
    """From now on, in this process, gradients at kinks are those of this back end, JAX's own too.

    So a model of another back end that is traced on JAX trains as it does by file (`mtc compile --kinks`), and the
    check compares it with JAX by the same rule.
    """
    global _whose
    if backend == "jax":
        return
    _whose = backend
    whole, rules = cast(Any, jax), cast(Any, ad)
    whole.clear_caches()  # of functions that were differentiated before
    lax = whole.lax
    rules.defjvp(lax.abs_p, lambda g, x: g * lax.sign(x))
    if backend == "tensorflow":
        zero = jax.numpy.zeros_like
        for primitive, wins in ((lax.max_p, lax.ge), (lax.min_p, lax.le)):
            rules.defjvp2(primitive, lambda g, _, a, b, wins=wins: lax.select(wins(a, b), g, zero(g)),
                       lambda g, _, a, b, wins=wins: lax.select(wins(a, b), zero(g), g))
