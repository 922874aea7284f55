# SPDX-License-Identifier: Apache-2.0
"""mtc.jax.step: whole steps, with their gradients and updates in them, against JAX."""

import subprocess
import sys

import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import mtc
import mtc.jax

STEPS = 20
_random = np.random.default_rng(0)


def numbers(*shape):
    return (_random.standard_normal(shape) * 0.5).astype("f4")


def mlp(p, x):
    return jnp.tanh(x @ p["w1"] + p["b1"]) @ p["w2"] + p["b2"]


def weights(inputs, hidden, outputs):
    return {"w1": numbers(inputs, hidden), "b1": np.zeros(hidden, "f4"), "w2": numbers(hidden, outputs),
            "b2": np.zeros(outputs, "f4")}


def squared(p, batch):
    return jnp.mean((mlp(p, batch["x"]) - batch["y"]) ** 2)


def pairs():
    return {"x": numbers(8, 4), "y": numbers(8, 3)}


def averaged():
    """A moving average, clipping, a norm as a metric."""
    optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.adamw(optax.linear_schedule(0.0, 1e-2, 5)))

    def train_step(state, batch):
        params, inner, average = state
        loss, gradient = jax.value_and_grad(squared)(params, batch)
        updates, inner = optimizer.update(gradient, inner, params)
        params = optax.apply_updates(params, updates)
        average = jax.tree.map(lambda a, b: 0.9 * a + 0.1 * b, average, params)
        return (params, inner, average), {"loss": loss, "norm": optax.global_norm(gradient)}

    params = weights(4, 8, 3)
    return train_step, (params, optimizer.init(params), params), pairs()


def gan():
    """Two losses and updates; the second reads what the first has updated; a penalty on gradients of each sample."""
    first, second = optax.adam(1e-2), optax.adam(2e-2)

    def entropy(logits, label):
        return jnp.mean(optax.sigmoid_binary_cross_entropy(logits, label * jnp.ones_like(logits)))

    def train_step(state, batch):
        d, g = state["d"], state["g"]

        def of_critic(d):
            slope = jax.vmap(jax.grad(lambda x: mlp(d, x[None])[0, 0]))(batch["x"])
            return (entropy(mlp(d, batch["x"])[:, 0], 1.0) + entropy(mlp(d, mlp(g, batch["z"]))[:, 0], 0.0)
                    + 0.1 * jnp.mean(jnp.sum(slope ** 2, -1)))

        d_loss, gradient = jax.value_and_grad(of_critic)(d)
        updates, inner_d = first.update(gradient, state["inner_d"])
        d = optax.apply_updates(d, updates)
        g_loss, gradient = jax.value_and_grad(lambda g: entropy(mlp(d, mlp(g, batch["z"]))[:, 0], 1.0))(g)
        updates, inner_g = second.update(gradient, state["inner_g"])
        return ({"d": d, "g": optax.apply_updates(g, updates), "inner_d": inner_d, "inner_g": inner_g},
                {"d_loss": d_loss, "g_loss": g_loss})

    d, g = weights(4, 8, 1), weights(2, 8, 4)
    return (train_step, {"d": d, "g": g, "inner_d": first.init(d), "inner_g": second.init(g)},
            {"x": numbers(8, 4), "z": numbers(8, 2)})


def q_learning():
    """A target network, ids, an integer in the state, a step that is taken now and then."""
    def train_step(state, batch):
        def loss(p):
            chosen = jnp.take_along_axis(mlp(p, batch["s"]), batch["a"][:, None], 1)[:, 0]
            best = jax.lax.stop_gradient(mlp(state["target"], batch["next"]).max(-1))
            return jnp.mean(optax.huber_loss(chosen, batch["r"] + 0.9 * best))

        value, gradient = jax.value_and_grad(loss)(state["p"])
        p = jax.tree.map(lambda a, b: a - 0.05 * b, state["p"], gradient)
        count = state["count"] + 1
        target = jax.tree.map(lambda a, b: jnp.where(count % 4 == 0, a, b), p, state["target"])
        return {"p": p, "target": target, "count": count, "even": count % 2 == 0}, value

    p = weights(4, 8, 3)
    return (train_step, {"p": p, "target": p, "count": np.int32(0), "even": np.bool_(True)},
            {"s": numbers(8, 4), "a": _random.integers(0, 3, 8).astype("i4"), "r": numbers(8), "next": numbers(8, 4)})


def meta():
    """A gradient through a gradient."""
    def train_step(p, batch):
        def outer(p):
            inner = jax.grad(lambda q: jnp.mean((mlp(q, batch["x"]) - batch["y"]) ** 2))(p)
            q = jax.tree.map(lambda a, g: a - 0.1 * g, p, inner)
            return jnp.mean((mlp(q, batch["x2"]) - batch["y2"]) ** 2)

        loss, gradient = jax.value_and_grad(outer)(p)
        return jax.tree.map(lambda a, g: a - 0.05 * g, p, gradient), {"loss": loss}

    return train_step, weights(4, 8, 3), {**pairs(), "x2": numbers(8, 4), "y2": numbers(8, 3)}


def muon():
    optimizer = optax.contrib.muon(1e-2)

    def train_step(state, batch):
        loss, gradient = jax.value_and_grad(lambda p: squared(p, batch))(state[0])
        updates, inner = optimizer.update(gradient, state[1], state[0])
        return (optax.apply_updates(state[0], updates), inner), {"loss": loss}

    params = weights(4, 8, 3)
    return train_step, (params, optimizer.init(params)), pairs()


made_before = jax.value_and_grad(squared)


def written_out():
    """The function that differentiates was made before the trace: its backward pass is traced."""
    def train_step(p, batch):
        loss, gradient = made_before(p, batch)
        return jax.tree.map(lambda a, g: a - 0.05 * g, p, gradient), {"loss": loss}

    return train_step, weights(4, 8, 3), pairs()


def recurrent():
    def cell(p, carried, x):
        h, m = carried
        i, f, g, o = jnp.split(x @ p["wx"] + h @ p["wh"] + p["b"], 4, -1)
        m = jax.nn.sigmoid(f) * m + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(m), m), None

    def train_step(p, batch):
        def loss(p):
            zeros = jnp.zeros((batch["x"].shape[0], 6))
            (h, _), _ = jax.lax.scan(lambda c, x: cell(p, c, x), (zeros, zeros), jnp.swapaxes(batch["x"], 0, 1))
            return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(h @ p["o"], batch["y"]))

        value, gradient = jax.value_and_grad(loss)(p)
        return jax.tree.map(lambda a, g: a - 0.1 * g, p, gradient), {"loss": value}

    p = {"wx": numbers(3, 24), "wh": numbers(6, 24), "b": np.zeros(24, "f4"), "o": numbers(6, 4)}
    return train_step, p, {"x": numbers(8, 5, 3), "y": _random.integers(0, 4, 8).astype("i4")}


def proximal():
    """PPO's update: advantages that the batch normalizes, a clipped ratio, the value's loss and the entropy."""
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adam(3e-3, eps=1e-5))

    def loss_of(p, batch):
        logits, values = mlp(p["actor"], batch["s"]), mlp(p["critic"], batch["s"])[:, 0]
        chances = jax.nn.log_softmax(logits)
        ratio = jnp.exp(jnp.take_along_axis(chances, batch["a"][:, None], 1)[:, 0] - batch["before"])
        better = (batch["gain"] - batch["gain"].mean()) / (batch["gain"].std() + 1e-8)
        policy = -jnp.minimum(ratio * better, jnp.clip(ratio, 0.8, 1.2) * better).mean()
        entropy = -(jnp.exp(chances) * chances).sum(-1).mean()
        return policy + 0.5 * jnp.mean((values - batch["return"]) ** 2) - 0.01 * entropy, entropy

    def train_step(state, batch):
        p, inner = state
        (loss, entropy), gradient = jax.value_and_grad(loss_of, has_aux=True)(p, batch)
        updates, inner = optimizer.update(gradient, inner, p)
        return (optax.apply_updates(p, updates), inner), {"loss": loss, "entropy": entropy}

    p = {"actor": weights(4, 8, 3), "critic": weights(4, 8, 1)}
    return train_step, (p, optimizer.init(p)), {
        "s": numbers(8, 4), "a": _random.integers(0, 3, 8).astype("i4"), "before": numbers(8) - 1, "gain": numbers(8),
        "return": numbers(8)}


def actor_critic():
    """Two losses with a shared advantage, through which no gradient goes, and two rates."""
    first, second = optax.adam(1e-2), optax.rmsprop(2e-2)

    def train_step(state, batch):
        actor, critic, a, c = state
        target = batch["r"] + 0.9 * mlp(critic, batch["next"])[:, 0]

        def of_critic(p):
            gain = jax.lax.stop_gradient(target) - mlp(p, batch["s"])[:, 0]
            return jnp.mean(gain ** 2), gain

        def of_actor(p):
            chances = jax.nn.log_softmax(mlp(p, batch["s"]))
            return -jnp.mean(jnp.take_along_axis(chances, batch["a"][:, None], 1)[:, 0] * jax.lax.stop_gradient(gain))

        (error, gain), up = jax.value_and_grad(of_critic, has_aux=True)(critic)
        loss, down = jax.value_and_grad(of_actor)(actor)
        more, c = second.update(up, c, critic)
        less, a = first.update(down, a, actor)
        return ((optax.apply_updates(actor, less), optax.apply_updates(critic, more), a, c),
                {"loss": loss, "error": error})

    actor, critic = weights(4, 8, 3), weights(4, 8, 1)
    return train_step, (actor, critic, first.init(actor), second.init(critic)), {
        "s": numbers(8, 4), "a": _random.integers(0, 3, 8).astype("i4"), "r": numbers(8), "next": numbers(8, 4)}


def distilled():
    """A teacher that stays as it is, softened scores, and labels."""
    optimizer = optax.sgd(0.1, momentum=0.9)

    def train_step(state, batch):
        p, teacher, inner = state
        soft = jax.nn.softmax(mlp(teacher, batch["x"]) / 2)

        def loss_of(p):
            logits = mlp(p, batch["x"])
            hard = optax.softmax_cross_entropy_with_integer_labels(logits, batch["y"]).mean()
            return 0.5 * hard - 2 * jnp.mean(jnp.sum(soft * jax.nn.log_softmax(logits / 2), -1))

        loss, gradient = jax.value_and_grad(loss_of)(p)
        updates, inner = optimizer.update(gradient, inner, p)
        return (optax.apply_updates(p, updates), teacher, inner), {"loss": loss}

    p = weights(4, 8, 3)
    return train_step, (p, weights(4, 16, 3), optimizer.init(p)), {
        "x": numbers(8, 4), "y": _random.integers(0, 3, 8).astype("i4")}


def clipped():
    """A gradient that its author clips, maxima of the edges of each sample's graph, and a count in uint32."""
    @jax.custom_vjp
    def limited(x):
        return x

    limited.defvjp(lambda x: (x, None), lambda _, g: (jnp.clip(g, -0.01, 0.01),))

    def of_graph(p, nodes, ends):
        messages = jnp.tanh(nodes[ends] @ p["w1"])
        return limited(jnp.maximum(jax.ops.segment_max(messages, ends, 6), -2.0).sum(0) @ p["w2"])

    def train_step(state, batch):
        p, count, key = state
        noise = jax.random.normal(jax.random.fold_in(key, count), batch["y"].shape)

        def loss_fn(p):
            return jnp.mean((jax.vmap(of_graph, (None, 0, 0))(p, batch["x"], batch["ends"]) - batch["y"] - noise) ** 2)

        loss, gradient = jax.value_and_grad(loss_fn)(p)
        return (jax.tree.map(lambda a, g: a - 0.1 * g, p, gradient), count + 1, key), {"loss": loss}

    ends = np.random.default_rng(2).integers(0, 5, (8, 9)).astype("i4")  # no edge ends at node 5
    state = ({"w1": numbers(4, 5), "w2": numbers(5, 2)}, np.zeros((), np.uint32), jax.random.key(4))
    return train_step, state, {"x": numbers(8, 6, 4), "ends": ends, "y": numbers(8, 2)}


CASES = {f.__name__: f for f in (averaged, gan, q_learning, meta, muon, written_out, recurrent, proximal, actor_critic,
                                 distilled, clipped)}


def part(batch, rows):
    return jax.tree.map(lambda a: a[:rows], batch)


def host(tree):
    return jax.tree.map(lambda a: np.asarray(jax.random.key_data(a) if jnp.issubdtype(a.dtype, jax.dtypes.prng_key)
                                             else a), tree)


def train_on_devices(function, state, batch, steps, agree, between=lambda devices, count, step, now: now):
    """Trains on 1, 2, 3 and 8 devices, with a short batch every fifth step, and on one of them by JAX too.

    `agree` compares the metrics of both; `between` gives the state to go on with. The state agrees at the end, and its
    bits are the same on any number of devices.
    """
    wanted, reference, found = state, jax.jit(function), set()
    for devices in ("cpu:1", "cpu:2", "cpu:3", "cpu:8"):
        with mtc.jax.step(function, state, batch, devices=devices, verbose=0, check=devices == "cpu:1") as step:
            now = state
            for count in range(steps):
                given = part(batch, 5) if count % 5 == 4 else batch
                now, metrics = step(now, given)
                if devices == "cpu:1":
                    wanted, shown = reference(wanted, given)
                    agree(metrics, shown)
                now = between(devices, count, step, now)
            found.add(b"".join(np.asarray(v).tobytes() for v in step.session.variables.values()))
            if devices == "cpu:1":
                jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), host(now), host(wanted))
    assert len(found) == 1


@pytest.mark.parametrize("name", CASES)
def test_steps_are_those_of_jax_on_any_number_of_devices(name, tmp_path):
    """Short batches too; and a run that stops and goes on has the same bits."""
    function, state, batch = CASES[name]()

    def agree(mine, theirs):
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5), mine, theirs)

    def stop(devices, count, step, now):
        if devices != "cpu:2" or count != 11:
            return now
        step.save(tmp_path / "state.safetensors")
        step(now, batch)
        return step.load(tmp_path / "state.safetensors")

    train_on_devices(function, state, batch, STEPS, agree, stop)


def test_the_state_stays_on_the_devices():
    function, state, batch = CASES["averaged"]()
    with mtc.jax.step(function, state, batch, verbose=0, check=False) as step:
        first, _ = step(state, batch)
        kept = np.asarray(first[0]["w1"])
        second, _ = step(first, batch)
        assert not np.array_equal(np.asarray(second[0]["w1"]), kept)
        assert np.array_equal(np.asarray(first[0]["w1"]), kept)  # was read before
        for use in (lambda: np.asarray(first[0]["w2"]), lambda: step(first, batch)):
            with pytest.raises(mtc.DataError, match="expected a state of the last call"):
                use()
        changed = jax.tree.map(np.asarray, second)
        changed[0]["b2"][:] = 3
        third, _ = step(changed, batch)
        assert np.asarray(third[0]["b2"]).min() > 2.5
        assert float(jnp.sum(jnp.asarray(third[0]["b1"]) * 0 + 1)) == 8
        with pytest.raises(mtc.DataError, match="expected a state of the structure"):
            step(third[:2], batch)
        with pytest.raises(mtc.DataError, match="expected a batch of the structure"):
            step(third, {"x": batch["x"]})


def test_predictions_and_jitted_functions():
    function, p, batch = CASES["written_out"]()
    with mtc.jax.step(jax.jit(function), p, batch, predict=lambda p, b: mlp(p, b["x"]), verbose=0) as step:
        now, _ = step(p, batch)
        found = step.predict({"x": numbers(3, 4), "y": None})
        assert found.shape == (3, 3)
        np.testing.assert_allclose(step.predict(batch), mlp(jax.tree.map(np.asarray, now), batch["x"]), atol=1e-5)


def moves(change):
    def train_step(p, batch):
        loss, gradient = jax.value_and_grad(lambda p: jnp.mean(change(batch["x"] @ p["w"])))(p)
        return jax.tree.map(lambda a, g: a - g, p, gradient), {"loss": loss}
    return train_step, {"w": numbers(4, 3)}, {"x": numbers(8, 4)}


REFUSED = {
    "roll": moves(lambda y: y * jnp.roll(y, 1, 0)), "sort": moves(lambda y: jnp.sort(y, 0)[:2].sum(0)),
    "reversal": moves(lambda y: y * y[::-1]), "one sample": moves(lambda y: y * y[0]),
    "part": moves(lambda y: y[2:5]), "a product of samples": moves(lambda y: jnp.sort(y @ y.T, 0)),
    "order": moves(lambda y: y[jnp.argsort(y[:, 0])]), "flip": moves(lambda y: y * jnp.flip(y, 0)),
    "running sum": moves(lambda y: jnp.cumsum(y, 0)), "largest": moves(lambda y: jax.lax.top_k(y.T, 2)[0]),
    "differences": moves(lambda y: y[1:] - y[:-1]), "halves": moves(lambda y: y.reshape(2, -1, 3).swapaxes(0, 1) ** 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_moves_samples_is_refused(name):
    with pytest.raises(mtc.ModelError, match=r"test_jax_steps.py:\d+"):
        mtc.jax.step(*REFUSED[name], verbose=0, check=False)


def returning(value):
    return lambda p, batch: value(p, batch)


@pytest.mark.parametrize("function, state, words", [
    (returning(lambda p, b: p), {"w": np.ones(4, "f4")}, r"expected a function that gives \(state, metrics\)"),
    (returning(lambda p, b: (p, b["x"].mean())), {"w": np.ones(4, "f4")}, "expected a step that changes its state"),
    (returning(lambda p, b: ({"w": p["w"][:2]}, 0.0)), {"w": np.ones(4, "f4")},
     r"test_jax_steps.py:\d+: .*w: expected a new state of float32 \[4\], found float32 \[2\]"),
    (returning(lambda p, b: ({"w": p["w"], "cache": b["x"]}, 0.0)), {"w": np.ones(4, "f4"), "cache": numbers(8, 4)},
     r"test_jax_steps.py:\d+: .*cache: expected .*, found float32 \[b, 4\]; it has the samples of a batch"),
    (returning(lambda p, b: ([p["w"]], 0.0)), {"w": np.ones(4, "f4")}, "a new state of the structure"),
    (returning(lambda p, b: ({"w": p["w"] + b["x"].sum()}, b["x"])), {"w": np.ones(4, "f4")},
     "metrics that are numbers"),
    (returning(lambda p, b: ({"w": p["w"] + 1}, 0.0)), {"w": np.ones(4, "f2")}, "state/w: expected a state of float32"),
    (returning(lambda p, b: ({"w": jax.grad(lambda w: (b["x"] @ w).max())(p["w"])}, 0.0)), {"w": np.ones(4, "f4")},
     r"\A[^\n]*reduce_max: a maximum over the batch[^\n]*\Z"),  # and no second line about the gradient
], ids=["state alone", "unchanged", "shape", "cache", "structure", "metrics", "float16", "within a gradient"])
def test_functions_that_are_refused(function, state, words):
    with pytest.raises(mtc.ModelError, match=words):
        mtc.jax.step(function, state, {"x": numbers(8, 4)}, verbose=0, check=False)


def test_a_step_that_counts_in_python_is_refused():
    calls = []

    def train_step(p, batch):
        calls.append(len(calls))
        return {"w": p["w"] - batch["x"].mean(0) * len(calls)}, {"loss": jnp.float32(0) * batch["x"].mean()}
    with pytest.raises(mtc.ModelError, match=r"test_jax_steps.py:\d+: train_step: expected a step that computes"):
        mtc.jax.step(train_step, {"w": np.ones(4, "f4")}, {"x": numbers(8, 4)}, verbose=0)


@pytest.mark.parametrize("call", ["io_callback", "debug.callback", "debug.print"])
def test_calls_of_python_are_refused(call):
    def train_step(p, batch):
        loss = batch["x"].mean()
        if call == "io_callback":
            jax.experimental.io_callback(lambda _: None, None, loss)
        elif call == "debug.print":
            jax.debug.print("{}", loss)
        else:
            jax.debug.callback(lambda _: None, loss)
        return {"w": p["w"] - loss}, {"loss": loss}
    with pytest.raises(mtc.ModelError, match=r"test_jax_steps.py:\d+:\d+: .*a call of Python during the step"):
        mtc.jax.step(train_step, {"w": np.ones(4, "f4")}, {"x": numbers(8, 4)}, verbose=0, check=False)


def test_a_fault_is_found(monkeypatch):
    from mtc.jax import _whole
    right = _whole.Graph.assign
    monkeypatch.setattr(_whole.Graph, "assign", lambda self, name, value: right(
        self, name, _whole.e.binary("mul", value, 1.01) if name.endswith("b2") else value))
    with pytest.raises(mtc.ModelError, match="the step differs from JAX: after [12] of 2 steps"):
        mtc.jax.step(*CASES["written_out"](), verbose=0)


SCRIPT = """
import sys
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

rng = np.random.default_rng(0)
mesh = Mesh(np.array(jax.devices()[:1]), axis_names=("batch",))
split, replicated = NamedSharding(mesh, P("batch")), NamedSharding(mesh, P())
params = jax.device_put({"w": rng.standard_normal((4, 3)).astype("f4")}, replicated)
gradients = jax.value_and_grad(lambda p, x, y: jnp.mean((x @ p["w"] - y) ** 2))

@jax.jit
def train_step(p, x, y):
    loss, gradient = gradients(p, x, y)
    return loss, jax.tree.map(lambda a, g: a - 0.1 * g, p, gradient)

@jax.jit
def moving(p, x):
    return jnp.sum(jnp.sort(x @ p["w"], 0)[:3]), p

for rows in (8, 8, 8, 3):
    x, y = rng.standard_normal((rows, 4)).astype("f4"), rng.standard_normal((rows, 3)).astype("f4")
    loss, params = train_step(params, jax.device_put(x, split), y)
    value, _ = moving(params, jax.device_put(x, split))
    print(f"{float(loss):.4f} {float(value):.4f} {sys.argv[1:]}")
print(f"{float(jnp.sum(jnp.asarray(params['w']))):.4f} {np.asarray(params['w']).sum():.4f}")
"""


def test_a_script_runs_with_its_steps_in_plans(tmp_path):
    """What is sharded over the batch runs through MTC from the second call on; the rest stays on JAX."""
    path = tmp_path / "train.py"
    path.write_text(SCRIPT)
    plain, ours = (subprocess.run([sys.executable, *words, path, "--epochs", "3"], capture_output=True, text=True,
                                  check=True) for words in ([], ["-m", "mtc.jax", "--devices", "cpu:2"]))
    assert ours.stdout == plain.stdout
    lines = ours.stderr.splitlines()
    assert "mtc.jax: train_step: 3 calls through MTC on cpu:2, the first 1 by JAX" in lines
    assert any(line.startswith("mtc.jax: moving: 4 calls by JAX: ") and "train.py:" in line for line in lines)
    missing = subprocess.run([sys.executable, "-m", "mtc.jax", tmp_path / "none.py"], capture_output=True, text=True)
    assert missing.returncode == 2 and "no such file" in missing.stderr
