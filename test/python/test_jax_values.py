# SPDX-License-Identifier: Apache-2.0
"""mtc.jax: what an operation is where it is easily something else, as JAX has it: the value and the gradient.

All functions of a table are one plan. Each reads the batch, whose floats are multiplied by a parameter of its own.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mtc
import mtc.jax

RNG = np.random.default_rng(1)
X = RNG.standard_normal((5, 6)).astype("f4")
X[0, 1] = X[0, 3]
BATCH = {
    "x": X,
    "ids": np.array([0, 1, 5, 2, 3], "i4"),
    "below": np.array([[-1], [0], [-6], [5], [2]], "i4"),
    "table": np.array([3, 0, 1, 4, 9], "i4"),
    "big": np.array([[2**30, -5, 7], [2**31 - 1, 1, -(2**31)], [2**24 + 1, 3, -(2**24) - 3], [1, 2, 3],
                     [-7, 7, 0]], "i4"),
    "u8": np.array([[1, 255], [128, 3], [0, 127], [200, 100], [5, 6]], "u1"),
}
ROWS = np.arange(1, 13, dtype="f4").reshape(4, 3)


def rows(x):
    """A table that has a gradient."""
    return x["one"] * ROWS


INDICES = {
    "below 0": lambda b: rows(b)[b["table"] - 1],
    "a sum in a where": lambda b: jnp.take(rows(b), jnp.where(b["ids"] > 2, b["ids"] + 1, b["ids"]), axis=0,
                                           mode="clip"),
    "fill": lambda b: jnp.take(rows(b), b["table"] - 1, axis=0, fill_value=2),
    "nan": lambda b: jnp.take(rows(b), b["table"] * 2, axis=0)[:, 0],
    "integers": lambda b: jnp.take(np.array([2**30 + 1, 5]), b["table"] - 2, fill_value=7),
    "get": lambda b: rows(b).at[b["ids"] + 2].get(mode="fill", fill_value=0),
    "constants": lambda b: b["x"].at[:, jnp.array([0, 9, -7, 2])].get(mode="fill", fill_value=5.0),
    "one constant": lambda b: jnp.take(b["x"], np.array([9]), axis=1, fill_value=3),
    "pairs": lambda b: b["x"].reshape(-1, 2, 3)[:, jnp.array([0, 1]), jnp.array([2, -1])],
    "pairs of data": lambda b: rows(b)[b["ids"] - 3, b["below"][:, 0] // 2],
    "along": lambda b: jnp.take_along_axis(b["x"], b["below"] * 2, 1),
    "along by clip": lambda b: jnp.take_along_axis(b["x"], b["below"] + 3, 1, mode="clip"),
    "along an infinity": lambda b: jnp.take_along_axis(jnp.where(b["x"] > 0, b["x"], -jnp.inf), b["ids"][:, None], 1),
    "each its own": lambda b: b["x"][jnp.arange(b["x"].shape[0]), b["below"][:, 0]],
    "several of its own": lambda b: b["x"][jnp.arange(b["x"].shape[0])[:, None], b["below"] - np.arange(3)],
    "added to its own": lambda b: b["x"].at[jnp.arange(b["x"].shape[0])[:, None], b["below"] - np.arange(3) % 2].add(
        b["x"][:, :3]),
    "each by two": lambda b: b["x"].reshape(-1, 2, 3)[jnp.arange(b["x"].shape[0]), b["ids"] % 2, -b["ids"] % 3],
    "entropy of computed labels": lambda b: -jnp.take_along_axis(jax.nn.log_softmax(b["x"]), b["below"] * 2, 1),
    "slices of its own": lambda b: jax.vmap(lambda t, i: t[:, i])(b["x"].reshape(-1, 2, 3, 1), b["below"] % 3),
    "segments": lambda b: b["x"] * jax.ops.segment_sum(b["x"], b["table"], 4)[:1, :1],
    "a table": lambda b: b["x"][:, :1] * jnp.zeros((4, 6)).at[b["table"] - 1].add(b["x"])[3:],
    "counts": lambda b: b["x"] + jnp.zeros(6, "int32").at[b["table"]].add(1),
    "set": lambda b: b["x"].at[:, jnp.array([0, 9, 2, 2])].set(jnp.arange(4.0)),
    "set out of range": lambda b: jax.vmap(lambda r: r.at[np.array([7])].set(9.0))(b["x"]),
    "add": lambda b: b["x"].at[:, jnp.array([0, 9, 2, 2])].add(b["x"][:, :4]),
    "max": lambda b: b["x"].at[:, jnp.array([1, 0, 9])].max(0.1),
}
PLACES = {  # of each sample: a picture of 2 x 3, its row and its column
    "several": lambda x, i, j: x[i, j], "many": lambda x, i, j: x[jnp.stack([i, 1 - i]), j + jnp.array([[0], [1]])],
    "around an axis": lambda x, i, j: jnp.stack([x, -x], -1)[i, :, -i],
    "labels of each row": lambda x, i, j: jax.nn.log_softmax(x)[jnp.arange(2), jnp.stack([j % 3, i])],
    "below 0": lambda x, i, j: x[-i, j], "out of range": lambda x, i, j: x.at[i, j].get(mode="fill", fill_value=7.0),
    "clipped": lambda x, i, j: x.at[2 * i, j].get(mode="clip"),
    "a part": lambda x, i, j: jax.lax.dynamic_slice(x, (i, j), (1, 2)),
    "a part along all": lambda x, i, j: jax.lax.dynamic_slice_in_dim(x, j - 1, 2, 1),
    "a part replaced": lambda x, i, j: jax.lax.dynamic_update_slice(x, 2 * x[:1, :2], (i, j)),
    "set": lambda x, i, j: x.at[i, j].set(3.0), "set a row": lambda x, i, j: x.at[i].set(x[0] * 2),
    "add": lambda x, i, j: x.at[jnp.stack([i, i]), j].add(x[0, :2]),
    "add a column": lambda x, i, j: x.at[:, j].add(x[:, 0]),
    "segments": lambda x, i, j: jax.ops.segment_sum(x, jnp.stack([i, j % 2]), 2),
    "maximum": lambda x, i, j: jax.ops.segment_max(x, jnp.stack([i, j]), 3),
    "minimum of parts": lambda x, i, j: x.at[:, jnp.stack([j, j])].min(x[:, :2] - 0.5),
    "of a table": lambda x, i, j: x[:, 0] * jnp.arange(8.0).reshape(2, 2, 2)[i, :, j % 2],
}


def at_places(of_sample):
    """The function of each sample."""
    return lambda b: jax.vmap(of_sample)(b["x"].reshape(-1, 2, 3), b["ids"] % 2, b["below"][:, 0] % 4)


INTEGERS = {
    "sum": lambda b: jnp.sum(b["big"], 1), "max": lambda b: jnp.max(b["big"], 1) - 2**30,
    "min": lambda b: jnp.min(b["big"], 1) + 2**24, "of all": lambda b: jnp.sum(b["big"]) + b["ids"],
    "over samples": lambda b: jnp.sum(b["big"], 0)[None] + b["ids"][:, None],
    "cumsum": lambda b: jnp.cumsum(b["big"], 1), "product": lambda b: b["big"] @ jnp.array([3, 5, 7]),
    "pad": lambda b: jax.lax.pad(b["big"], np.int32(2**24 + 1), [(0, 0, 0), (1, -1, 1)]),
    "argmax": lambda b: jnp.argmax(b["big"], 1), "argmin": lambda b: jnp.argmin(b["big"], 1),
    "sort": lambda b: jnp.sort(b["big"], 1), "cube": lambda b: b["big"] ** 3,
    "divided": lambda b: b["big"] // 7, "divided by less": lambda b: b["big"] // -3, "rest": lambda b: b["big"] % 7,
    "by data": lambda b: b["big"] // (b["ids"][:, None] - 2), "small": lambda b: b["ids"] % 3,
    "fmod": lambda b: jax.lax.rem(b["big"], b["big"] * 0 + b["ids"][:, None] - 2),
    "maximum": lambda b: 1.0 / jnp.maximum(jnp.argmax(b["x"] > 1, 1), 1), "clip": lambda b: jnp.clip(b["ids"], 1, 3),
    "image": lambda b: b["u8"] - 128, "squares": lambda b: b["u8"] * b["u8"], "sum of u8": lambda b: b["u8"].sum(1),
    "negative": lambda b: -b["u8"], "i8": lambda b: b["u8"].astype("int8") + 1,
    "saturated": lambda b: (b["x"] * 300).astype("uint8"), "i16": lambda b: (b["u8"].astype("int16") * 300) * 300,
    "xor": lambda b: (b["x"] > 0) ^ (b["below"] > 0), "equal": lambda b: (b["x"] > 0) == (b["x"] > 0.5),
    "less": lambda b: (b["x"] > 0) < (b["x"] < 0.5), "logical": lambda b: jnp.logical_xor(b["x"], b["x"] > 1),
    "nonzero": lambda b: jnp.count_nonzero(b["x"] > 0, axis=1),
}
INF = np.inf
NUMBERS = {
    "modulo": lambda b: b["x"] % 0.7, "of many": lambda b: jnp.remainder(b["x"] * 1000, -0.3),
    "divmod": lambda b: divmod(b["x"], 0.3)[0] * 10 + divmod(b["x"], 0.3)[1],
    "rem": lambda b: jax.lax.rem(b["x"], b["x"] * 0 + b["x"][:, :1] + 0.01),
    "clamp": lambda b: jax.lax.clamp(np.float32(X[0, 0]), b["x"], b["x"] * 0 + X[1, 1]),
    "crossed": lambda b: jax.lax.clamp(0.5, b["x"], -0.5),
    "learned bounds": lambda b: jax.lax.clamp(b["one"] * 0.1 + 0 * b["x"], b["x"], b["one"] * 0.7 + 0 * b["x"]),
    "argmax of one": lambda b: jnp.argmax(b["x"][:, :1], 1),
    "order F": lambda b: jax.vmap(lambda r: r.reshape(2, 3).ravel(order="F"))(b["x"]),
    "dimensions": lambda b: jax.vmap(lambda r: jax.lax.reshape(r.reshape(2, 3), (6,), (1, 0)))(b["x"]),
    "cumsum of an infinity": lambda b: jnp.exp(jnp.cumsum(jnp.where(b["x"] > 1, -INF, b["x"]), 1)),
    "cumsum": lambda b: jax.lax.cumsum(b["x"], 1, reverse=True), "cumprod": lambda b: jnp.cumprod(b["x"], 1),
    "cummax": lambda b: jax.lax.cummax(jax.nn.relu(b["x"]), 1),
    "cumlogsumexp": lambda b: jax.lax.cumlogsumexp(b["x"], 1, reverse=True),
    "unstack": lambda b: jax.vmap(jax.grad(lambda r: (jnp.stack([r[0] * r[1], r[2]]) ** 2).sum()))(b["x"]),
    "sort": lambda b: jnp.sort(jnp.where(b["x"] > 1, INF, jnp.where(b["x"] < -1, 3.4e38, b["x"])), 1)[:, :2],
    "top": lambda b: jax.lax.top_k(jnp.where(b["x"] > 1, INF, b["x"]), 3)[1],
    "two keys": lambda b: jax.lax.sort((jnp.round(b["x"]), b["x"]), dimension=1, num_keys=2)[1],
    "top of many": lambda b: jax.lax.top_k((b["x"][:, :, None] * np.arange(1, 12, dtype="f4")).reshape(-1, 66), 3)[0],
}




def own_kernels(x):
    """Each sample convolves its image with its own kernel."""
    return jax.vmap(lambda row: jax.lax.conv_general_dilated(
        row.reshape(1, 1, 2, 3), row[:4].reshape(1, 1, 2, 2), (1, 1), ((1, 0), (0, 1))))(x)


def windows(b, reduce, start, window, pads, **more):
    pads = pads if isinstance(pads, str) else [(0, 0), (0, 0), *pads, (0, 0)]
    return jax.lax.reduce_window(b["x"].reshape(-1, 1, 2, 3, 1), start, reduce, (1, 1, *window, 1), (1,) * 5, pads,
                                 **more)


def spectral(*parts):
    """What does not depend on the signs of vectors."""
    return jnp.concatenate([part.ravel() if part.ndim == 1 else jnp.square(part).ravel() for part in parts])


TAPS = np.linspace(-1, 1, 16, dtype="f4").reshape(2, 1, 2, 2, 2)
WINDOWS = {
    "own kernels": lambda b: own_kernels(b["x"]),
    "three axes": lambda b: jax.lax.conv_general_dilated(b["x"].reshape(-1, 1, 1, 2, 3), TAPS, (1, 1, 2), "SAME"),
    "images of a parameter": lambda b: b["x"][:, :1] * jax.lax.conv_general_dilated(
        rows(b).reshape(1, 1, 4, 3), TAPS[:, :, 0], (2, 1), "VALID").sum(),
    "several images": lambda b: jax.vmap(lambda row: jax.lax.conv_general_dilated(
        row.reshape(2, 1, 3, 1), TAPS[:, :, 0, :, :1], (1, 1), "SAME"))(b["x"]),
    "maxima": lambda b: windows(b, jax.lax.max, -np.inf, (2, 2), [(0, 0), (1, 0)]),
    "minima": lambda b: windows(b, jax.lax.min, np.inf, (1, 2), "SAME"),
    "dilated": lambda b: windows(b, jax.lax.add, 0.0, (2, 2), [(1, 1), (1, 1)], window_dilation=(1, 1, 1, 2, 1)),
    "spread": lambda b: windows(b, jax.lax.add, 0.0, (2, 2), "VALID", base_dilation=(1, 1, 2, 2, 1)),
    "sums of a parameter": lambda b: b["x"][:, :1] * jax.lax.reduce_window(
        rows(b), 0.0, jax.lax.add, (2, 2), (1, 1), "VALID").sum(),
    "cholesky": lambda b: jax.scipy.linalg.solve_triangular(
        jnp.linalg.cholesky(rows(b)[:3].T @ rows(b)[:3] * 0.01 + np.eye(3, dtype="f4")), b["x"][:, :3].T, lower=True).T,
    "factor": lambda b: jax.vmap(lambda row: jnp.tril(jax.scipy.linalg.cholesky(
        row.reshape(2, 3)[:, :2] * 0.1 + 2 * np.eye(2, dtype="f4"), lower=True)).ravel())(b["x"]),
    "an own solver": lambda b: jax.vmap(lambda row: jax.lax.custom_linear_solve(
        lambda x: (row[:4].reshape(2, 2) * 0.1 + 2 * np.eye(2, dtype="f4")) @ x, row[4:],
        lambda multiply, y: jax.lax.stop_gradient(jnp.linalg.solve(jax.jacobian(multiply)(y), y)),
        lambda multiply, y: jax.lax.stop_gradient(jnp.linalg.solve(jax.jacobian(multiply)(y), y))))(b["x"]),
    "solved": lambda b: jax.vmap(lambda row: jnp.linalg.solve(
        row[:4].reshape(2, 2)[::-1] + np.array([[0, 3], [2, 1]], "f4"), row[4:]))(b["x"]),
    "solved together": lambda b: jax.vmap(lambda row: jnp.linalg.solve(
        row[:4].reshape(2, 2)[::-1] + np.array([[0, 3], [2, 1]], "f4"), row.reshape(2, 3)))(b["x"]),
    "inverse": lambda b: b["x"][:, :1] * jnp.linalg.inv(rows(b)[:3] + np.diag([9.0, -7, 1]).astype("f4")[::-1]).ravel(),
    "qr": lambda b: b["x"][:, :1] * jnp.linalg.qr(rows(b) + 20 * np.eye(4, 3, dtype="f4"))[0].ravel(),
    "eigenvectors": lambda b: jax.vmap(lambda row: spectral(*jnp.linalg.eigh(
        row[:4].reshape(2, 2) + np.diag([5.0, -5]).astype("f4"))))(b["x"]),
    "eigenvalues": lambda b: jax.vmap(lambda row: jnp.linalg.eigvalsh(row[:4].reshape(2, 2)))(b["x"]),
    "singular values": lambda b: jax.vmap(lambda row: jnp.linalg.svd(row.reshape(2, 3), compute_uv=False))(b["x"]),
    "sorted": lambda b: jnp.sort((b["x"][:, :, None] * np.linspace(-1, 1, 21, dtype="f4")).reshape(-1, 126)),
    "rolled axis of one": lambda b: jnp.roll(b["x"][:, None], 1, 1)[:, 0],
    "edges": lambda b: jnp.pad(b["x"], ((0, 0), (1, 2)), mode="edge"),
    "wrapped": lambda b: jnp.pad(b["x"], ((0, 0), (0, 2)), mode="wrap"),
    "scan of one": lambda b: jax.lax.associative_scan(jnp.multiply, b["x"][:, :1], axis=1),
    "a part of none": lambda b: jnp.concatenate(jnp.split(b["x"], [0, 2, 2, 6], axis=1)[::-1], 1),
    "sum of none": lambda b: b["x"] + jnp.sum(b["x"][:, 3:3], 1, keepdims=True) + b["x"][:, 1:1] @ rows(b)[:0, :1],
    "a map": lambda b: jax.lax.map(lambda parts: jnp.tanh(parts[0]) * parts[1], (b["x"], b["x"][:, 0])),
    "a total": lambda b: b["x"] * jax.lax.scan(lambda c, row: (c + jnp.sin(row), None), jnp.zeros(6), b["x"])[0],
    "all samples": lambda b: b["x"] * jnp.where(jnp.all(b["x"] < 9) & jnp.any(b["x"] > 0), 2.0, 3.0),
    "its own triangle": lambda b: jax.vmap(lambda row: jax.scipy.linalg.solve_triangular(
        row[:4].reshape(2, 2) + 3 * np.eye(2, dtype="f4"), row[4:], trans=1))(b["x"]),
}


OF_SAMPLES = {name: at_places(function) for name, function in PLACES.items()}


@pytest.mark.parametrize("table", [INDICES, INTEGERS, NUMBERS, WINDOWS, OF_SAMPLES],
                         ids=["indices", "integers", "numbers", "windows", "places"])
def test_as_in_jax(table):
    params = {name: np.float32(1) for name in table}

    def predict(params, batch):
        def scaled(name):
            return {"one": params[name], **{n: a * params[name] if n == "x" else a for n, a in batch.items()}}
        return {name: jnp.asarray(function(scaled(name))) for name, function in table.items()}

    arrays = jax.tree.map(jnp.asarray, BATCH)
    start = jax.tree.map(jnp.asarray, params)
    wanted = predict(start, arrays)
    weights = {name: RNG.uniform(0.5, 1.5, a.shape[1:]).astype("f4") for name, a in wanted.items()}

    def loss(params, batch):
        return sum(jnp.mean(jnp.nan_to_num(a.astype("float32"), posinf=0, neginf=0) * weights[name])
                   for name, a in predict(params, batch).items())

    gradients = jax.grad(loss)(start, arrays)
    with mtc.jax.compile(loss, params, BATCH, optimizer=mtc.jax.sgd(1.0), predict=predict, batch_size=5, check=False,
                         devices="cpu:1", verbose=0) as step:
        found = step.predict(BATCH)
        for name, value in wanted.items():
            np.testing.assert_allclose(found[name], value, rtol=3e-6, atol=1e-6, err_msg=name)
        step.train_on_batch(BATCH)
        for name, gradient in gradients.items():
            np.testing.assert_allclose(1 - step.params[name], gradient, rtol=1e-4, atol=3e-5, err_msg=name)


SINGULAR = np.array([[0, 0, 0, 0], [1, 1, 1, 1], [-1, 0, 1, 0], [0, 2, 0, 0.5], [3, -3, 2, 2]], "f4")
AT_SINGULAR_POINTS = {
    "norm": lambda x: jnp.linalg.norm(x, axis=1), "norm1": lambda x: jnp.linalg.norm(x, ord=1, axis=1),
    "largest": lambda x: jnp.linalg.norm(x, ord=INF, axis=1), "std": lambda x: jnp.std(x, 1),
    "var": lambda x: jnp.var(x, 1), "sqrt": jnp.sqrt, "rsqrt": jax.lax.rsqrt, "log": jnp.log,
    "reciprocal": lambda x: 1 / x,
    "log1p": lambda x: jnp.log1p(-x), "power 1.5": lambda x: x**1.5, "square": lambda x: x**2.0, "cube": lambda x: x**3,
    "exponent": lambda x: jnp.power(jnp.abs(x[:, :2]), jnp.abs(x[:, 2:]) + 0.5), "base 0": lambda x: 0.0 ** jnp.abs(x),
    "base 2": lambda x: 2.0**x, "logsumexp": lambda x: jax.nn.logsumexp(x, 1),
    "logsumexp of -inf": lambda x: jax.nn.logsumexp(jnp.where(x > 0, x, -INF), 1),
    "softmax": lambda x: jax.nn.softmax(x, 1), "log_softmax": lambda x: jax.nn.log_softmax(x, 1),
    "logaddexp": lambda x: jnp.logaddexp(x[:, :2], x[:, 2:]),
    "logaddexp2": lambda x: jnp.logaddexp2(x[:, :2], x[:, 2:]),
    "hypot": lambda x: jnp.hypot(x[:, :2], x[:, 2:]), "abs": jnp.abs, "sign": lambda x: jnp.sign(x) * x,
    "max": lambda x: jnp.max(x, 1), "min": lambda x: jnp.min(x, 1),
    "maximum": lambda x: jnp.maximum(x[:, :2], x[:, 2:]),
    "clip": lambda x: jnp.clip(x, 0, 1), "clamp": lambda x: jax.lax.clamp(0.0, x, 1.0), "sinc": jnp.sinc,
    "guarded": lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0), "heaviside": lambda x: jnp.heaviside(x, 0.5) * x,
    "distance": lambda x: jnp.sqrt(jnp.sum((x[:, :2] - x[:, 2:]) ** 2, 1)), "nanmean": lambda x: jnp.nanmean(x, 1),
    "normalize": lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True), "sort": lambda x: jnp.sort(x, 1),
    "standardize": lambda x: jax.nn.standardize(x, 1), "cummax": lambda x: jax.lax.cummax(x, 1),
    "cumlogsumexp": lambda x: jax.lax.cumlogsumexp(x, 1), "top": lambda x: jax.lax.top_k(x, 2)[0],
    **{name: getattr(jax.nn, name) for name in (
        "relu", "relu6", "leaky_relu", "elu", "celu", "selu", "gelu", "silu", "hard_sigmoid", "hard_tanh", "softplus",
        "soft_sign", "log_sigmoid", "squareplus", "mish", "sparse_plus", "sparse_sigmoid")},
}


def test_gradients_at_singular_points():
    """Each is JAX' own, infinite and NaN too."""
    def each(params):
        return {name: f(params[name]) for name, f in AT_SINGULAR_POINTS.items()}

    def loss(params, batch):
        return 0 * jnp.mean(batch) + sum(jnp.sum(a * np.arange(1, a[0].size + 1, dtype="f4").reshape(a[0].shape))
                                         for a in each(params).values())

    params, batch = {name: SINGULAR for name in AT_SINGULAR_POINTS}, np.ones(1, "f4")
    wanted = jax.grad(loss)(params, batch)
    with mtc.jax.compile(loss, params, batch, optimizer=mtc.jax.sgd(1.0, momentum=0.5), batch_size=1, check=False,
                         devices="cpu:1", verbose=0) as step:
        step.train_on_batch(batch, allow_nan=True)
        for name, gradient in wanted.items():
            slot = f"sgd/{name}_momentum"  # none: nothing depends on the parameter
            found = step.session.variables[slot] if slot in step.session.variables else np.zeros_like(SINGULAR)
            np.testing.assert_allclose(found, gradient, rtol=2e-4, atol=1e-5, err_msg=name)


FULL = np.array([[1, 2, -1, 0.5], [0.5, -3, 2, 1], [2, 1, 1.5, -1], [0, 1, 1, 2]], "f4")
SPECIAL = {"identity": np.eye(4), "upper": np.triu(FULL), "lower": np.tril(FULL), "permuted": np.eye(4)[[1, 2, 3, 0]],
           "zeros": np.zeros((4, 4)), "hollow": FULL * [0, 1, 1, 1], "equal rows": FULL[[0, 1, 2, 2]],
           "equal columns": FULL[:, [0, 0, 2, 3]], "two equal pairs": FULL[:, [0, 0, 2, 2]]}
LINEAR = {
    "qr": jnp.linalg.qr, "qr of tall ones": lambda w: jnp.linalg.qr(w[:, :2]),
    "qr of wide ones": lambda w: jnp.linalg.qr(w[:2]), "lu": lambda w: jax.scipy.linalg.lu(w)[1:],
    "lu of tall ones": lambda w: jax.lax.linalg.lu(w[:, :3])[:1], "det": lambda w: [jnp.linalg.det(w)],
    "det of 3": lambda w: [jnp.linalg.det(w[:3, :3])], "det of 1": lambda w: [jnp.linalg.det(w[:1, :1])],
    "cholesky": lambda w: [jnp.nan_to_num(jnp.linalg.cholesky(w @ w.T), nan=7.0)],
}


@pytest.mark.parametrize("name", LINEAR)
def test_special_matrices(name):
    """Their decompositions have LAPACK's signs and zeros; a gradient is that of JAX where that is finite."""
    decided = {n: w for n, w in SPECIAL.items() if not (  # of others rounding decides
        "equal" in n and name.startswith(("qr", "cholesky")) or n == "hollow" and name == "cholesky")}
    params = {n: np.asarray(w, "f4") for n, w in decided.items()}

    def loss(params, batch):
        parts = [part for w in params.values() for part in LINEAR[name](w)]
        return jnp.mean(batch) * sum(jnp.sum(part * np.linspace(1, 2, part.size, dtype="f4").reshape(part.shape))
                                     for part in parts)

    value, wanted = jax.value_and_grad(loss)(params, np.ones(2, "f4"))
    with mtc.jax.compile(loss, params, np.ones(2, "f4"), optimizer=mtc.jax.sgd(1.0, momentum=0.5), batch_size=2,
                         check=False, devices="cpu:1", verbose=0) as step:
        assert step.train_on_batch(np.ones(2, "f4"), allow_nan=True)["loss"] == pytest.approx(float(value), rel=1e-5)
        for n, gradient in wanted.items():
            found = step.session.variables[f"sgd/{n}_momentum"]
            assert np.isfinite(found).all() == np.isfinite(gradient).all(), n
            assert not np.isfinite(gradient).all() or np.allclose(found, gradient, rtol=1e-3, atol=1e-4), n


def test_ids_of_data_are_checked():
    params = {"table": np.ones((4, 3), "f4")}
    x = {"ids": np.array([0, 3], "i4")}
    with mtc.jax.compile(lambda p, b: jnp.take(p["table"], b["ids"], axis=0).mean(), params, x, optimizer="sgd",
                         batch_size=2, devices="cpu:1", verbose=0) as step:
        assert "select" not in step.text  # neither a wrap nor a limit is computed
        for wrong in (-1, 4):
            with pytest.raises(mtc.DataError, match="expected 0 to 3"):
                step.train_on_batch({"ids": np.array([0, wrong], "i4")})


@pytest.mark.parametrize("function, text", [
    (lambda p, b: (b @ p).astype("bfloat16").mean(), "numbers of bfloat16: MTC computes in float32"),
    (lambda p, b: (b @ p).astype("float16").mean(), "numbers of float16"),
    (lambda p, b: jax.lax.reduce_precision(b @ p, 5, 10).mean(), "numbers of 5 and 10 bits"),
    (lambda p, b: (b @ p).astype("float8_e4m3fn").astype("float32").mean(), "numbers of float8_e4m3fn"),
    (lambda p, b: ((b @ p).argmax(1).astype("uint32") - 1).astype("float32").mean() + p.sum(), "uint32 that may be"),
    (lambda p, b: jax.scipy.special.log_ndtr(b @ p).mean(), "log_ndtr: its tails need a precise erfc"),
    (lambda p, b: (b @ p).sum() / len(b), r"write x\.shape\[0\]"),
    (lambda p, b: (b @ p).sum() / int(b.shape[0]), r"use x\.shape\[0\] as it is"),
    (lambda p, b: jnp.sum((b @ p) @ (b @ p).T), "docs/jax.md#contrastive-losses"),
    (lambda p, b: jnp.max(b @ p), "docs/jax.md#contrastive-losses"),
    (lambda p, b: jax.lax.while_loop(lambda c: c[0].sum() < 9, lambda c: (c[0] * 2, c[1]), (b @ p, 0))[0].mean(),
     r"bound it by a counter in its condition, such as \(i < 20\)"),
])
def test_refused(function, text):
    with pytest.raises(mtc.ModelError, match=text):
        mtc.jax.compile(function, np.eye(4, dtype="f4"), np.ones((3, 4), "f4"), optimizer="sgd", check=False)


def root(a):
    """By Newton's method, to the last bit that it changes or for 12 steps."""
    def goes_on(carry):
        x, i = carry
        return (i < 12) & (jnp.abs(x * x - a) > 1e-3)

    return jax.lax.while_loop(goes_on, lambda carry: ((carry[0] + a / carry[0]) / 2, carry[1] + 1),
                              (jnp.ones_like(a), 0))


def all_roots(w, x):
    found, steps = jax.vmap(root)(jnp.exp(x @ w[:, 0]))
    return jnp.mean(jax.lax.stop_gradient(found + steps) * jnp.sum(w))


def until_large(w, x):
    """The samples together; behind the end e^c would be infinite."""
    found, steps = jax.lax.while_loop(lambda c: (c[1] < 9) & (jnp.mean(c[0]) < 20), lambda c: (jnp.exp(c[0]), c[1] + 1),
                                      (jnp.abs(x) + 1, 0))
    return jnp.mean(found @ w) + steps * jnp.sum(w ** 2)


@pytest.mark.parametrize("function", (all_roots, until_large))
def test_loops_that_the_data_end(function):
    mtc.jax.compile(function, np.eye(6, 2, dtype="f4") * 0.3, X, optimizer="sgd", batch_size=5, devices="cpu:1",
                    verbose=0).close()  # the check compares with JAX


def test_parameters_of_other_types():
    with pytest.raises(mtc.ModelError, match="value: expected a parameter of float32, found float16"):
        mtc.jax.compile(lambda p, b: (b @ p).mean(), np.eye(4, dtype="f2"), np.ones((3, 4), "f4"), optimizer="sgd")


def test_parameters_that_are_only_rounded():
    """Their gradient is 0."""
    params = {"steps": np.float32(2.4), "sign": np.float32(-2), "w": np.ones(4, "f4")}
    x = np.ones((3, 4), "f4")
    with mtc.jax.compile(lambda p, b: (jnp.round(p["steps"]) * jnp.sign(p["sign"]) * (b @ p["w"])).mean() + jnp.trunc(
            p["steps"]), params, x, optimizer="sgd", batch_size=3, devices="cpu:1", verbose=0) as step:
        step.train_on_batch(x)
        assert step.params["steps"] == params["steps"] and step.params["w"][0] == pytest.approx(1.02)
