# SPDX-License-Identifier: Apache-2.0
"""The check of mtc.jax: three updates by the optimizer of optax."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from test_jax_check import PARAMS, compiled

import mtc
import mtc.jax
from mtc._trace import elementwise as e


def matrices(tree):
    return jax.tree.map(lambda array: array.ndim > 1, tree)


OPTIMIZERS = {
    "sgd": lambda: optax.sgd(optax.exponential_decay(0.1, 1, 0.5), momentum=0.9, nesterov=True),
    "adam": lambda: optax.chain(optax.clip_by_global_norm(0.01), optax.adam(1e-2)),
    "adamw": lambda: optax.adamw(optax.linear_schedule(0.0, 1e-2, 2), weight_decay=0.1, mask=matrices),
    "lion": lambda: optax.lion(1e-2, weight_decay=0.1, mask={"w": True, "b": False}),
    "rmsprop": lambda: optax.rmsprop(1e-2, centered=True),
    "adagrad": lambda: optax.adagrad(1e-2),
}
def with_bias(p, b):
    return jnp.mean(jnp.tanh(b["x"] @ p["w"] + p["b"]) ** 2)


def planted(monkeypatch, what):
    """Makes what a plan assigns to variables of this beginning wrong by a hundredth."""
    right = mtc.jax._update.Update.trace

    def trace(self, reader, variables, loss):
        right(self, reader, variables, loss)
        reader.graph.assigned = [(name, e.binary("mul", value, 1.01) if name.startswith(what) and value.dtype == "f32"
                                  else value) for name, value in reader.graph.assigned]

    monkeypatch.setattr(mtc.jax._update.Update, "trace", trace)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_updates_are_those_of_optax(name, capsys, monkeypatch):
    """And where a weight or the state is another one, the check says so."""
    params = {**PARAMS, "b": np.zeros(2, "f4")}
    compiled(with_bias, params, optimizer=OPTIMIZERS[name](), verbose=1).close()
    assert re.search("; 3 updates of .*scale.* are those of optax", capsys.readouterr().err)
    for what in ("w", "optimizer/"):
        with monkeypatch.context() as context:
            planted(context, what)
            with pytest.raises(mtc.ModelError, match="of optax makes of the same .*, found after [123]"):
                compiled(with_bias, params, optimizer=OPTIMIZERS[name]())


def test_updates_of_gradients_that_are_too_large_to_be_squared_are_compared(capsys):
    """Inputs times 100 make gradients of 1e20 here, whose squares are infinite in float32."""
    def loss(p, b):
        return jnp.mean(b["x"] @ p["w"]) * 1e18

    compiled(loss, optimizer=optax.adam(1e-3), verbose=1).close()
    assert "; 3 updates of scale_by_adam, scale are those of optax" in capsys.readouterr().err
