# SPDX-License-Identifier: Apache-2.0
"""Whole training steps of JAX in files of StableHLO, beside JAX' own: with a batch of any size, or of a fixed one."""

import jax
import jax.numpy as jnp
import mtc
import numpy as np
import pytest
import stablehlo_text as texts
import step_files
from jax import export

N, STEPS = 8, 6
BATCH = export.symbolic_shape("b")[0]


def cross_entropy(logits, labels):
    logits = jax.nn.log_softmax(logits)
    return -jnp.mean(jnp.take_along_axis(logits, labels[..., None], -1))


def mlp(params, x):
    return jnp.tanh(x @ params["w"] + params["b"]) @ params["c"]


def cnn(params, x):
    x = jax.lax.conv_general_dilated(x, params["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    x = jax.nn.relu((x - x.mean((0, 1, 2))) / jnp.sqrt(x.var((0, 1, 2)) + 1e-3) * params["scale"])
    x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(x.shape[0], -1) @ params["head"]


def transformer(params, ids):
    x = params["table"][ids] + params["places"]
    scores = jnp.einsum("btd,bsd->bts", x @ params["q"], x @ params["k"])
    x = x + jax.nn.softmax(scores) @ (x @ params["v"])
    return x @ params["table"].T


def adam(loss):
    """A step with the update's formulas, a counter of int32 and an array that is no state."""
    def step(state, batch):
        value, gradients = jax.value_and_grad(lambda p: loss(p, *batch))(state["params"])
        n = state["n"] + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], gradients)
        v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, state["v"], gradients)
        params = jax.tree.map(lambda p, m, v: p - 0.01 * (m / (1 - 0.9 ** n)) / (jnp.sqrt(v / (1 - 0.999 ** n)) + 1e-3),
                              state["params"], m, v)
        norm = jnp.sqrt(sum(jnp.sum(g ** 2) for g in jax.tree.leaves(gradients)))
        return {"params": params, "m": m, "v": v, "n": n}, {"loss": value, "norm": norm}
    return step


def adversaries(state, batch):
    """Two losses: the second reads what the first updated."""
    x, z = batch

    def judge(d, samples):
        return jnp.tanh(samples @ d) @ jnp.ones((d.shape[1],))

    def first(d):
        return jnp.mean(jax.nn.softplus(-judge(d, x))) + jnp.mean(jax.nn.softplus(judge(d, z @ state["g"])))

    def second(g):
        return jnp.mean(jax.nn.softplus(-judge(d, z @ g)))

    a, gradient = jax.value_and_grad(first)(state["d"])
    d = state["d"] - 0.1 * gradient
    b, gradient = jax.value_and_grad(second)(state["g"])
    average = 0.9 * state["average"] + 0.1 * state["g"]
    return {"d": d, "g": state["g"] - 0.1 * gradient, "average": average}, {"loss": a, "other": b}


def numbers(*shape):
    return (0.5 * np.random.default_rng(sum(shape)).standard_normal(shape)).astype("float32")


def state_of(params):
    zeros = jax.tree.map(np.zeros_like, params)
    return {"params": params, "m": zeros, "v": zeros, "n": np.int32(0)}


# The batch has the size of other axes.
STEPS_OF = {
    "mlp": (adam(lambda p, x, y: cross_entropy(mlp(p, x), y)),
            state_of({"w": numbers(N, N), "b": numbers(N), "c": numbers(N, 3)}), [((N,), "f4"), ((), "i4")]),
    "cnn": (adam(lambda p, x, y: cross_entropy(cnn(p, x), y)),
            state_of({"k": numbers(3, 3, 2, N), "scale": np.ones(N, "f4"), "head": numbers(9 * N, 3)}),
            [((6, 6, 2), "f4"), ((), "i4")]),
    "transformer": (adam(lambda p, ids, labels: cross_entropy(transformer(p, ids), labels)),
                    state_of({"table": numbers(11, N), "places": numbers(5, N), **{n: numbers(N, N) for n in "qkv"}}),
                    [((5,), "i4"), ((5,), "i4")]),
    "adversaries": (adversaries, {"d": numbers(4, N), "g": numbers(3, 4), "average": np.zeros((3, 4), "f4")},
                    [((4,), "f4"), ((3,), "f4")]),
}


def batch_of(shapes, rows, seed):
    source = np.random.default_rng(seed)
    return tuple(source.integers(0, 3, (rows, *shape)).astype("i4") if dtype == "i4"
                 else source.standard_normal((rows, *shape)).astype("f4") for shape, dtype in shapes)


def written(name, tmp_path, rows, generic=True):
    """The step's file, and what its arguments are: --state and --split."""
    function, state, shapes = STEPS_OF[name]
    leaves, tree = jax.tree.flatten(state)
    specs = [jax.ShapeDtypeStruct(np.shape(a), np.asarray(a).dtype) for a in leaves]
    data = tuple(jax.ShapeDtypeStruct((rows, *shape), dtype) for shape, dtype in shapes)
    given = jax.tree.unflatten(tree, specs), data
    text = texts.generic(function, *given) if generic else export.export(jax.jit(function))(*given).mlir_module()
    path = tmp_path / "step.mlir"
    path.write_text(text)
    last = len(leaves) - 1
    split = ",".join(f"{last + 1 + i}=batch{i}" for i in range(len(shapes)))
    return path, {"state": f"0-{last}:0-{last}", "split": split}


def compiled(name, tmp_path, rows, generic=True):
    path, arguments = written(name, tmp_path, rows, generic)
    return mtc.compile(path, batch_size=N, step=True, **arguments)


def named(state):
    """The arrays of a state by the names of their variables."""
    paths = jax.tree_util.tree_flatten_with_path(state)[0]
    return {"/".join(["state", *(str(part.key) for part in path)]): value for path, value in paths}


@pytest.mark.parametrize("rows", [BATCH, N], ids=["any", "fixed"])
@pytest.mark.parametrize("name", list(STEPS_OF))
def test_steps(name, rows, tmp_path):
    function, state, shapes = STEPS_OF[name]
    plan = compiled(name, tmp_path, rows)
    whole = jax.jit(function)
    results = []
    for devices in ("cpu:1", "cpu:3"):
        now = state
        with mtc.Session(plan, devices) as session:
            for key, value in named(state).items():
                session.variables[key] = value
            for i in range(STEPS):
                batch = batch_of(shapes, 5 if i == STEPS - 1 and rows is BATCH else N, i)
                now, metrics = whole(now, batch)
                if i == STEPS - 1 and rows is not BATCH:  # its divisors are those of a whole batch
                    short = {f"batch{k}": array[:5] for k, array in enumerate(batch)}
                    with pytest.raises(mtc.DataError, match="expected steps of 8 samples.* found 5: leave out"):
                        session.train_step(short)
                logs = session.train_step({f"batch{k}": array for k, array in enumerate(batch)})
                for key, value in metrics.items():
                    assert abs(logs[key] - float(value)) <= 1e-5 * max(1, abs(float(value))), f"{key}, step {i}"
            for key, value in named(now).items():
                np.testing.assert_allclose(session.variables[key], value, rtol=1e-3, atol=1e-5, err_msg=key)
            results.append({key: session.variables[key].tobytes() for key in named(state)})
    assert results[0] == results[1]


def test_own_text(tmp_path):
    """StableHLO's own text is read as the generic form."""
    a, b = (compiled("cnn", tmp_path, N, generic) for generic in (True, False))
    assert a.variables == b.variables and a.graph() == b.graph()


@pytest.mark.parametrize("name", ["cnn", "adversaries"])
def test_on_the_command_line(name, tmp_path):
    """Exported, compiled and trained on a file of data, whose last batch is short: the losses are JAX'."""
    function, state, shapes = STEPS_OF[name]
    _, arguments = written(name, tmp_path, BATCH)
    data = batch_of(shapes, 2 * N + 5, 3)
    now, losses, whole = state, [], jax.jit(function)
    for _ in range(2):
        for start in range(0, 2 * N + 5, N):
            now, metrics = whole(now, tuple(array[start:start + N] for array in data))
            losses.append(float(metrics["loss"]))
    step_files.check(tmp_path, **arguments, weights=named(state), final=named(now), batch=N, losses=losses,
                     data={f"batch{i}": array for i, array in enumerate(data)})
