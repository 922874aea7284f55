# SPDX-License-Identifier: Apache-2.0
"""Functions of JAX as StableHLO in the generic form, with a batch of any size."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import export
from jax.extend.mlir import ir

BATCH = export.symbolic_shape("b")[0]


def generic(function, *shapes):
    """The text. `shapes`: arguments; BATCH is the batch. For CPUs JAX calls LAPACK: such a function has `platforms`."""
    exported = export.export(jax.jit(function), platforms=getattr(function, "platforms", None))(*shapes)
    with jax.jit(lambda x: x).lower(0.0).compiler_ir("stablehlo").context:
        module = ir.Module.parse(exported.mlir_module())
        return module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)


def shaped(*shape, dtype="float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def mlp(params, x):
    x = jax.nn.gelu(x @ params["a"]["w"] + params["a"]["b"])
    return jax.nn.relu(x) @ params["c"]["w"] + params["c"]["b"]


def cnn(params, x):
    x = jax.lax.conv_general_dilated(x, params["conv"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.relu(x + params["bias"])
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    x = jax.lax.conv_general_dilated(x, params["depth"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"),
                                     feature_group_count=4)
    return jax.nn.log_softmax(x.reshape(x.shape[0], -1) @ params["head"])


def transformer(params, ids):
    x = params["tokens"][ids] + params["places"]
    b, t, d = x.shape
    mean = x.mean(-1, keepdims=True)
    y = (x - mean) / jnp.sqrt(((x - mean) ** 2).mean(-1, keepdims=True) + 1e-5) * params["scale"]
    q, k, v = ((y @ params[n]).reshape(b, t, 2, d // 2) for n in "qkv")
    scores = jnp.einsum("bthd,bshd->bhts", q, k) / 2
    scores = jnp.where(jnp.tril(jnp.ones((t, t), bool)), scores, -1e9)
    y = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v).reshape(b, t, d)
    return (x + y @ params["o"]) @ params["head"]


def lstm(params, x):
    """Unrolled."""
    h = c = jnp.zeros((x.shape[0], 6))
    for step in range(x.shape[1]):
        gates = x[:, step] @ params["w"] + h @ params["r"] + params["b"]
        i, f, g, o = jnp.split(gates, 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
    return h @ params["head"]


def scan(params, x):
    """An LSTM by lax.scan, whose outputs are read backwards by a second loop, which counts down."""
    def cell(carry, part):
        h, c = carry
        i, f, g, o = jnp.split(part @ params["w"] + h @ params["r"] + params["b"], 4, -1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zero = jnp.zeros((x.shape[0], 6))
    _, all_h = jax.lax.scan(cell, (zero, zero), jnp.swapaxes(x, 0, 1))
    last, means = jax.lax.scan(lambda h, part: (0.5 * h + part, h.mean(-1)), zero, all_h, reverse=True)
    return last @ params["head"] + jnp.swapaxes(means, 0, 1)[:, :2]


def branches(params, x):
    """A loop with branches by its counter, and a branch that the parameters decide."""
    x = jnp.asarray(x)

    def body(i, h):
        h = jax.lax.cond(i % 2 == 0, lambda v: jnp.tanh(v @ params["w"]), lambda v: v * 0.5, h)
        return jax.lax.dynamic_update_slice(h, jax.lax.dynamic_slice_in_dim(h, i, 1, 1) + 1.0, (0, i))

    h = jax.lax.fori_loop(0, 3, body, x)
    return jax.lax.cond(params["w"][0, 0] > 0, lambda v: v @ params["v"], lambda v: v @ params["u"] + 1.0, h)


def updates(params, x):
    """Parts that are replaced: of several axes, of all, twice, and beyond the end."""
    x = jnp.asarray(x)
    table = jax.lax.dynamic_update_slice(params["w"], params["v"], (2, 1))
    table = jax.lax.dynamic_update_slice(table, table[:1] * 2, (9, 0))
    y = x @ table
    z = jax.lax.dynamic_update_slice(y, y[:, :1] * 3, (0, 1))
    z = jax.lax.dynamic_update_slice(z, y[:, 1:3] - 1, (0, 1))
    return jax.lax.dynamic_update_slice(z, z * z, (0, 0)) + z


def autoencoder(params, x):
    return jnp.tanh(jax.nn.softplus(x @ params["in"])) @ params["out"]


def parts(params, x):
    """Slices, and numbers at places of which some lie outside."""
    x = jnp.asarray(x)
    picked = x[:, jnp.array([0, 9, -1, 2]), :]
    return jnp.concatenate([x[:, 1:3].reshape(x.shape[0], -1) @ params["w"], x[:, -1] @ params["v"],
                            picked[:, :, 0], jax.lax.dynamic_slice(params["v"], (1, 0), (2, 2)).sum() * x[:, 0]], 1)


def erf(params, x):
    return jax.lax.erf(x @ params["w"]) @ params["v"]


def functions(params, x):
    h = x @ params["w"]
    t = 0.7 * jnp.tanh(h)
    return (jnp.tan(t) + jnp.cbrt(2 + t) + jnp.arctan2(h, 1 + h @ params["v"]) + jnp.sinh(t) + jnp.cosh(h)
            + jnp.arcsin(t) + jnp.arccos(t) + jnp.arctan(h) + jnp.arcsinh(h) + jnp.arccosh(2 + t) + jnp.arctanh(t)
            + jnp.round(3 * h) + jax.lax.round(h) + jnp.prod(1 + 0.1 * x, axis=1, keepdims=True))


def linear(params, x):
    k = params["w"] @ params["w"].T + 2 * jnp.eye(6)
    factor = jnp.linalg.cholesky(k)
    solved = jax.scipy.linalg.solve_triangular(factor, x.T, lower=True).T
    each = jax.vmap(lambda row: jax.scipy.linalg.solve_triangular(factor.T, row))(x)
    return solved + each + jax.lax.linalg.triangular_solve(factor, x, lower=True, unit_diagonal=True)


linear.platforms = ["tpu"]


def words(params, x):
    """Bits of known integers, remainders of data, one of two booleans, minima of windows of a parameter."""
    known = jnp.arange(6) * 37 - 50
    bits = ((known ^ 21) + (known & 12) + (known | 3) + (known << 2) + (known >> 1) + ~known
            + jax.lax.shift_right_logical(known, 28) + jax.lax.population_count(known))
    h = x @ params["w"]
    rest = jax.lax.rem(h, jnp.broadcast_to(2 + params["v"], h.shape)) + jnp.where((h > 0) ^ (h > 0.5), h, 0)
    least = jax.lax.reduce_window(params["w"], jnp.inf, jax.lax.min, (2, 2), (2, 1), ((1, 1), (0, 1)))
    some = jax.lax.reduce(params["w"], np.float32(0.25), jax.lax.max, (0,))
    return rest + 0.01 * (x * bits.astype("float32")) @ params["w"] + least.sum(0) + some


def halves(params, x):
    """Rounded to 16 bits on the way."""
    x = jnp.asarray(x)
    small = (x @ params["w"]).astype("bfloat16").astype("float32")
    return small + (100 * x).astype("float16").astype("float32") @ params["v"]


def bytes_of(params, x):
    """Whole numbers of 8 bits wrap around; floats that are too large become the largest."""
    x = jnp.asarray(x)
    ids = (400 * x).astype("int32")
    wrapped = ids.astype("int8") * jnp.int8(3) - jnp.int8(100)
    return (wrapped.astype("float32") + (400 * x).astype("uint8").astype("float32")) @ params["w"] / 100


# name -> function, parameters, x
def searched(params, x):
    """Places in a sorted line, which are found in the total order: that of a NaN is behind all numbers."""
    places = jnp.searchsorted(jnp.array([-0.3, 0.0, 0.4]), jnp.where(x > 0.5, jnp.nan, x), method="compare_all")
    return x @ params["w"] + places


FORWARD = {
    "parts": (parts, {"w": shaped(6, 2), "v": shaped(3, 2)}, shaped(BATCH, 5, 3)),
    "linear": (linear, {"w": shaped(6, 6)}, shaped(BATCH, 6)),
    "functions": (functions, {"w": shaped(6, 4), "v": shaped(4, 4)}, shaped(BATCH, 6)),
    "erf": (erf, {"w": shaped(6, 4), "v": shaped(4, 3)}, shaped(BATCH, 6)),
    "words": (words, {"w": shaped(6, 4), "v": shaped(4)}, shaped(BATCH, 6)),
    "halves": (halves, {"w": shaped(6, 3), "v": shaped(6, 3)}, shaped(BATCH, 6)),
    "bytes": (bytes_of, {"w": shaped(6, 3)}, shaped(BATCH, 6)),
    "mlp": (mlp, {"a": {"w": shaped(6, 8), "b": shaped(8)}, "c": {"w": shaped(8, 3), "b": shaped(3)}},
            shaped(BATCH, 6)),
    "cnn": (cnn, {"conv": shaped(3, 3, 2, 4), "bias": shaped(4), "depth": shaped(3, 3, 1, 8), "head": shaped(72, 3)},
            shaped(BATCH, 6, 6, 2)),
    "transformer": (transformer, {"tokens": shaped(11, 8), "places": shaped(5, 8), "scale": shaped(8),
                                  **{n: shaped(8, 8) for n in "qkvo"}, "head": shaped(8, 11)},
                    shaped(BATCH, 5, dtype="int32")),
    "lstm": (lstm, {"w": shaped(3, 24), "r": shaped(6, 24), "b": shaped(24), "head": shaped(6, 2)},
             shaped(BATCH, 4, 3)),
    "scan": (scan, {"w": shaped(3, 24), "r": shaped(6, 24), "b": shaped(24), "head": shaped(6, 2)},
             shaped(BATCH, 4, 3)),
    "branches": (branches, {"w": shaped(6, 6), "v": shaped(6, 3), "u": shaped(6, 3)}, shaped(BATCH, 6)),
    "updates": (updates, {"w": shaped(6, 4), "v": shaped(2, 2)}, shaped(BATCH, 6)),
    "searched": (searched, {"w": shaped(6, 6)}, shaped(BATCH, 6)),
    "autoencoder": (autoencoder, {"in": shaped(6, 2), "out": shaped(2, 6)}, shaped(BATCH, 6)),
}


def classifier_loss(params, x, labels):
    logits = jax.nn.log_softmax(mlp(params, x))
    return -jnp.mean(jnp.take_along_axis(logits, labels[:, None], 1))


def square_loss(params, x, y):
    return 0.5 * jnp.mean((mlp(params, x) - y) ** 2) + 0.1 * jnp.mean(mlp(params, x) ** 2)


LOSSES = {
    "classifier": (classifier_loss, FORWARD["mlp"][1], (shaped(BATCH, 6), shaped(BATCH, dtype="int32"))),
    "square": (square_loss, FORWARD["mlp"][1], (shaped(BATCH, 6), shaped(BATCH, 3))),
}
