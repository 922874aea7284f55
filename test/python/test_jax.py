# SPDX-License-Identifier: Apache-2.0
"""mtc.jax: loss functions of plain JAX. `compile` compares the loss and all gradients with JAX's own (check=True)."""

import pathlib
import re

import jax
import jax.numpy as jnp
import jax_models
import numpy as np
import pytest
from plans import kernels

import mtc
import mtc.jax
from mtc._trace import Graph


@pytest.mark.parametrize("model", jax_models.ALL, ids=lambda m: m.__name__)
def test_gradients_are_those_of_jax(model, capsys):
    m = model()
    step = mtc.jax.compile(m.loss, m.params, m.some(6), state=m.state, optimizer=mtc.jax.sgd(0.05), batch_size=16,
                           devices="cpu:1")
    assert "checked against JAX: loss" in capsys.readouterr().err
    before = step.evaluate(m.data)["loss"]
    losses = step.fit(m.data, epochs=3, verbose=0)["loss"]
    assert len(losses) == 3 and all(np.isfinite(losses))
    assert step.evaluate(m.data)["loss"] < before
    assert jax.tree.structure(step.params) == jax.tree.structure(m.params)


def by_hand(m, rate, batches):
    """Steps of gradient descent in JAX."""
    params = jax.tree.map(jnp.asarray, m.params)
    for batch in batches:
        gradients = jax.grad(lambda p: m.loss(p, batch)[0])(params)
        params = jax.tree.map(lambda p, g: p - rate * g, params, gradients)
    return params


def test_short_batches_and_devices():
    m = jax_models.mlp()
    batches = [m.some(16), m.some(16, 16), m.some(8, 32)]
    wanted = by_hand(m, 0.1, batches)
    found = []
    for devices in ("cpu:1", "cpu:2", "cpu:3"):
        step = mtc.jax.compile(m.loss, m.params, m.some(4), optimizer={"name": "sgd", "learning_rate": 0.1},
                               batch_size=16, devices=devices, check=devices == "cpu:1", verbose=0)
        for batch in batches:
            step.train_on_batch(batch)
        found.append(jax.tree.leaves(step.params))
    for mine, theirs in zip(found[0], jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-6)
    for others in found[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(found[0], others, strict=True))


def test_state_is_that_of_the_step():
    m = jax_models.resnet()
    step = mtc.jax.compile(m.loss, m.params, m.some(4), state=m.state, optimizer=mtc.jax.sgd(0.1), batch_size=16,
                           devices="cpu:1", check=False)
    for first, count in ((0, 16), (16, 8)):
        _, (wanted, _) = m.loss(step.params, step.state, m.some(count, first), True)
        step.train_on_batch(m.some(count, first))
        for name in wanted:
            np.testing.assert_allclose(step.state[name], wanted[name], rtol=1e-4, atol=1e-6)


def test_a_state_of_the_names_of_the_parameters():
    """A teacher, which the loss pulls the parameters to."""
    def loss(params, teacher, batch):
        pull = sum(jnp.sum((params[name] - teacher[name])**2) for name in params)
        return jnp.mean((batch[0] @ params["w"] + params["b"] - batch[1])**2) + 0.1 * pull, teacher

    x = np.random.default_rng(0).standard_normal((8, 3)).astype("f4")
    batch = x, x[:, :1] - x[:, 1:2]
    params = {"w": np.ones((3, 1), "f4"), "b": np.zeros(1, "f4")}
    teacher = {"w": np.zeros((3, 1), "f4"), "b": np.ones(1, "f4")}
    step = mtc.jax.compile(loss, params, batch, state=teacher, optimizer=mtc.jax.sgd(0.1), batch_size=8,
                           devices="cpu:1", verbose=0)
    (wanted, _), gradients = jax.value_and_grad(loss, has_aux=True)(params, teacher, batch)
    assert step.train_on_batch(batch)["loss"] == pytest.approx(float(wanted), rel=1e-5)
    for name in params:
        np.testing.assert_allclose(step.params[name], params[name] - 0.1 * gradients[name], rtol=1e-5)
        np.testing.assert_array_equal(step.state[name], teacher[name])


def test_predict_save_and_assign(tmp_path):
    m = jax_models.mlp()
    step = mtc.jax.compile(m.loss, m.params, m.some(4), optimizer="adam", batch_size=16, predict=m.predict,
                           devices="cpu:1", check=False)
    assert [t.name for t in step.plan.inputs] == ["x"] and [t.name for t in step.plan.targets] == ["y"]
    assert step.plan.metrics() == ("loss", "accuracy")
    np.testing.assert_allclose(step.predict((m.data[0], None)), m.predict(m.params, m.data), rtol=1e-4, atol=1e-5)
    with step.plan.session("cpu:1") as fresh:  # the plan starts with the parameters
        assert np.array_equal(fresh.variables["dense/kernel"], m.params["dense"]["kernel"])
    step.train_on_batch(m.some(16))
    assert not np.array_equal(step.params["out"]["kernel"], m.params["out"]["kernel"])
    step.save(tmp_path / "step.safetensors")
    trained = step.params
    step.params = m.params
    assert np.array_equal(step.params["out"]["kernel"], m.params["out"]["kernel"])
    step.load(tmp_path / "step.safetensors")
    assert np.array_equal(step.params["out"]["kernel"], trained["out"]["kernel"])
    with pytest.raises(mtc.DataError, match="expected a tree of the structure"):
        step.params = {"other": np.zeros(3)}


def test_schedule_decay_mask_and_batches():
    m = jax_models.mlp()

    def schedule(step):
        return 0.5 * 0.5**step

    optimizer = mtc.jax.adamw(schedule, weight_decay=0.1, mask=lambda p: jax.tree.map(lambda a: a.ndim > 1, p))
    step = mtc.jax.compile(m.loss, m.params, m.some(4), optimizer=optimizer, batch_size=16, devices="cpu:1",
                           check=False)
    assert 'mt.variable "dense/bias" init(zeros) no_weight_decay' in step.text
    assert 'mt.variable "dense/kernel" init(zeros) :' in step.text
    parts = [m.some(16), m.some(16, 16), m.some(8, 32)]
    history = step.fit(parts, epochs=1, verbose=0)
    assert set(history) == {"loss", "accuracy"}


def test_fit_goes_on_from_a_checkpoint(tmp_path, capsys):
    m = jax_models.mlp()

    def compiled():
        return mtc.jax.compile(m.loss, m.params, m.some(4), optimizer="adam", batch_size=16, devices="cpu:1",
                               check=False, verbose=0)

    with compiled() as whole, compiled() as first, compiled() as second:
        history = whole.fit(m.data, epochs=4, validation=m.some(16))
        assert capsys.readouterr().out.splitlines()[3].startswith("epoch 4/4 - loss: ")
        first.fit(m.data, epochs=2, validation=m.some(16), checkpoint=tmp_path, verbose=0)
        rest = second.fit(m.data, epochs=4, validation=m.some(16), checkpoint=tmp_path, resume="auto", verbose=0)
        assert {name: values[2:] for name, values in history.items()} == rest
        for mine, theirs in zip(jax.tree.leaves(second.params), jax.tree.leaves(whole.params), strict=True):
            assert np.array_equal(mine, theirs)
        # A validation by batches, which Python loops over, sees the same epochs.
        with compiled() as other:
            assert other.fit(m.data, epochs=2, validation=[m.some(16)], verbose=0)["loss"] == history["loss"][:2]
            with pytest.raises(mtc.DataError, match="expected arrays of all samples for checkpoints"):
                other.fit([m.some(16)], checkpoint=tmp_path)


@pytest.mark.parametrize("by", ["arrays", "batches", "step"])
def test_what_is_not_finite_ends_training(by):
    good, bad = (np.full((4, 2), value, "f4") for value in (1.0, np.nan))
    step = mtc.jax.compile(lambda p, b: ((b["x"] @ p["w"]) ** 2).mean(), {"w": np.ones((2, 1), "f4")}, {"x": good},
                           optimizer=mtc.jax.sgd(0.1), batch_size=4, devices="cpu:1", check=False)
    data = {"x": np.concatenate([good, bad])}
    train = {"arrays": lambda **o: step.fit(data, shuffle=False, verbose=0, **o),
             "batches": lambda **o: step.fit([{"x": good}, {"x": bad}], verbose=0, **o),
             "step": lambda **o: [step.train_on_batch({"x": x}, **o) for x in (good, bad)]}[by]
    with pytest.raises(mtc.DataError, match="finite"):
        train()
    train(allow_nan=True)
    assert np.isnan(step.params["w"]).all()


def test_a_long_loop():
    def loss(params, batch):
        _, all_h = jax.lax.scan(lambda h, _: (jnp.tanh(h @ params), h[:, 0]), batch, None, length=400)
        return all_h.mean()

    params, batch = np.float32([[0.9, 0.4], [-0.4, 0.9]]), np.float32([[1, 0], [0, 1], [1, 1]])
    step = mtc.jax.compile(loss, params, batch, optimizer=mtc.jax.sgd(0.1), devices="cpu:1", verbose=0)
    assert step.train_on_batch(batch)["loss"] == pytest.approx(float(loss(params, batch)), rel=1e-5)


def _sequence(params, batch, step, **options):
    return jax.lax.scan(step, batch["x"][:, 0], jnp.swapaxes(batch["x"], 0, 1), **options)


def _unread_counter(params, batch):
    return jax.lax.fori_loop(0, 6, lambda _, h: jnp.tanh(h @ params), batch["x"][:, 0]).mean()


def _read_counter(params, batch):
    return jax.lax.fori_loop(0, 5, lambda i, h: jnp.tanh(h @ params + batch["x"][:, i]), batch["x"][:, 0]).mean()


def _nested(params, batch):
    def step(h, x):
        return jax.lax.fori_loop(0, 3, lambda _, v: jnp.tanh(v @ params + x), h), h

    return _sequence(params, batch, step)[1].mean()


def _lookups(params, batch):
    """The first carry gets its gradient by the second step."""
    def step(carry, part):
        return (params[part[1]], jnp.tanh(carry[0] + part[0])), jax.nn.relu(carry[1])

    inputs = jnp.swapaxes(batch["x"], 0, 1), jnp.swapaxes(batch["ids"], 0, 1)
    return jax.lax.scan(step, (batch["x"][:, 0], batch["x"][:, 1]), inputs, reverse=True)[1].mean()


def _sum_of_samples(params, batch):
    start = batch["x"][:, 0], 0.0
    return jax.lax.scan(lambda c, x: ((jnp.tanh(c[0] @ params + x), c[1] + jnp.mean(c[0] ** 2)), None), start,
                        jnp.swapaxes(batch["x"], 0, 1))[0][1]


@pytest.mark.parametrize("loss, loops", [(_unread_counter, 1), (_nested, 2), (_lookups, 1), (_read_counter, 0),
                                         (_sum_of_samples, 0)], ids=lambda v: getattr(v, "__name__", None))
def test_a_loop_whose_steps_are_alike_is_one(loss, loops, monkeypatch):
    """Others are unrolled. The check compares the gradients with those of JAX."""
    texts, text = [], Graph.text
    monkeypatch.setattr(Graph, "text", lambda *given: texts.append(text(*given)) or texts[-1])
    rng = np.random.default_rng(0)
    params, batch = rng.standard_normal((4, 4)).astype("float32"), {
        "x": rng.standard_normal((6, 5, 4)).astype("float32"), "ids": rng.integers(0, 4, (6, 5)).astype("int32")}
    step = mtc.jax.compile(loss, params, batch, optimizer=mtc.jax.sgd(0.1), devices="cpu:1", verbose=0)
    wanted = float(loss(jnp.asarray(params), jax.tree.map(jnp.asarray, batch)))
    assert step.train_on_batch(batch)["loss"] == pytest.approx(wanted, rel=1e-5)
    assert texts[0].count("mt.scan") == loops


def refused(loss, params=np.eye(4, dtype="float32"), batch=np.ones((3, 4), "float32"), **options):
    with pytest.raises(mtc.ModelError) as found:
        mtc.jax.compile(loss, params, batch, optimizer=options.pop("optimizer", "sgd"), **options)
    return str(found.value)


def test_all_refusals_in_one_error():
    def loss(params, batch):
        h = jax.lax.bessel_i0e(batch @ params)
        jax.debug.print("{}", h.sum())
        return jax.lax.bessel_i1e(h).mean()

    lines = refused(loss).splitlines()
    first = loss.__code__.co_firstlineno
    assert [line.split(": ", 2)[:2] for line in lines] == [
        [f"{__file__}:{first + i}:{line.split(':')[2]}", name] for i, name, line in
        zip((1, 2, 3), ("bessel_i0e", "debug_print", "bessel_i1e"), lines)]


@pytest.mark.parametrize("function, text", [
    (lambda h, batch: jnp.sum(h @ h.T), "every sample with every other"),
    (lambda h, batch: h[0].sum(), "one sample of a batch|a part of the samples"),
    (lambda h, batch: jnp.mean(h[1:] * h[:-1]), "a part of the samples|samples in a part|no multiple"),
    (lambda h, batch: jax.lax.dynamic_slice_in_dim(h, 0, 2).mean(), "a part of the samples"),
    (lambda h, batch: jnp.max(h), "a maximum over the batch"),
    (lambda h, batch: jnp.concatenate([h, h]).reshape(-1, 2, 8).prod(1).mean(), "mixes samples"),
    (lambda h, batch: jnp.concatenate([h, jnp.ones((1, 8))]).mean(), "samples beside"),
    (lambda h, batch: h.reshape(-1, 8).mean(), "b|mixes samples"),
    (lambda h, batch: jnp.cumsum(h, 0).mean(), "a cumulative sum along the batch"),
    (lambda h, batch: jax.random.normal(jax.random.key(0), h.shape).mean() + h.mean(), "a key that does not change"),
    (lambda h, batch: jax.lax.fori_loop(0, 200000, lambda i, x: x * 0.9, h).mean(), "a loop of"),
    (lambda h, batch: jax.lax.while_loop(lambda x: x.sum() > 1, lambda x: x * 0.9, h).mean(),
     "depends on the data"),
    (lambda h, batch: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(h.shape, h.dtype), h).mean(), "a call of Python"),
    (lambda h, batch: h, "expected a scalar"),
])
def test_refused(function, text):
    try:
        found = refused(lambda params, batch: function(batch @ params, batch))
    except Exception as error:  # JAX itself refuses what cannot have any number of samples
        assert "InconclusiveDimensionOperation" in type(error).__name__ or "symbolic" in str(error), error
    else:
        assert re.search(text, found), found


@pytest.mark.parametrize("function", [jnp.round, jax.lax.round, jnp.ceil, jnp.trunc], ids=lambda f: f.__name__)
def test_whole_numbers(function):
    x = np.array([[-2.5, -1.5, -0.7, -0.5, -0.0, 0.49999997, 0.5, 0.7, 1.5, 2.5, 3.0, 4194305.5, 8388609]], np.float32)
    step = mtc.jax.compile(lambda w, x: jnp.mean((function(x) * w).sum(1)), np.zeros(x.shape[1:], np.float32), x,
                           optimizer="sgd", batch_size=1, devices="cpu:1", verbose=0)
    step.train_on_batch(x)
    np.testing.assert_array_equal(step.params / np.float32(-0.01), function(x[0]))


def routed(x, w):
    """A mixture of experts: each token goes to the two experts with the largest weights."""
    gates, experts = jax.lax.top_k(jax.nn.softmax(x @ w), 2)
    outputs = jnp.tanh(x @ w) * 3
    return (gates * jnp.take_along_axis(outputs, experts, -1)).sum(-1)


@pytest.mark.parametrize("function", [
    routed,
    lambda x, w: jax.lax.top_k(jnp.where(x @ w > 0, x @ w, -jnp.inf), 3)[1] * (x @ w)[:, :3],
    lambda x, w: jnp.sort(x @ w, axis=-1)[:, 2:4],
    lambda x, w: jnp.sort(jnp.reshape(x @ w, (-1, 2, 3)), axis=1, descending=True)[:, 0],
    lambda x, w: jnp.argsort(x @ w, axis=-1) * (x @ w),
    lambda x, w: jnp.median(x @ w, axis=-1),
    lambda x, w: jnp.partition(x @ w, 2, axis=-1)[:, 2],
], ids=["experts", "masked", "sort", "axis", "argsort", "median", "partition"])
def test_order(function, capsys):
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(8, 4)).astype(np.float32), rng.normal(size=(4, 6)).astype(np.float32)
    mtc.jax.compile(lambda w, x: jnp.mean(function(x, w) ** 2), w, x, optimizer="sgd", batch_size=8, devices="cpu:1")
    assert "checked against JAX" in capsys.readouterr().err


def own_gradient(forward, rule):
    function = jax.custom_vjp(forward)
    function.defvjp(lambda x, y: (forward(x, y), (x, y)), rule)
    return function


# The result and the gradients, each with a rule that is not the function's own derivative.
OWN_GRADIENTS = {
    "straight-through": (lambda x, y: jnp.round(x * 4) / 4 + 0 * y, lambda saved, g: (g, jnp.zeros_like(saved[1]))),
    "reversed": (lambda x, y: x + y, lambda saved, g: (-0.3 * g, g)),
    "surrogate of a step": (lambda x, y: jnp.where(x > 0, 1.0, 0.0) * y,
                            lambda saved, g: (g * saved[1] / (1 + jnp.abs(saved[0])) ** 2, g * (saved[0] > 0))),
    "other": (lambda x, y: jnp.tanh(x) * jnp.exp(y),
                lambda saved, g: (g * jnp.exp(saved[1]), 2 * g * jnp.tanh(saved[0]))),
}


@pytest.mark.parametrize("name", OWN_GRADIENTS)
def test_gradient_of_the_users_own(name, capsys):
    function = own_gradient(*OWN_GRADIENTS[name])

    def loss(params, batch):
        hidden = jnp.tanh(batch @ params["a"])
        return jnp.mean((jax.jit(function)(hidden, batch @ params["b"]) - 1) ** 2)

    rng = np.random.default_rng(3)
    params = {k: rng.normal(size=(4, 3)).astype(np.float32) for k in "ab"}
    mtc.jax.compile(loss, params, rng.normal(size=(8, 4)).astype(np.float32), optimizer="sgd", batch_size=8,
                    devices="cpu:1", verbose=1)
    assert "checked against JAX" in capsys.readouterr().err


@pytest.mark.parametrize("rule", [lambda g: jnp.clip(g, -1, 1), lambda g: g * g, lambda g: g / jnp.linalg.norm(g)])
def test_gradient_of_the_users_own_that_is_not_linear(rule):
    function = own_gradient(lambda x, y: x + y, lambda _, g: (rule(g), g))
    assert "not linear" in refused(lambda params, batch: function(batch @ params, batch @ params).mean())


def test_rules_with_constant_arrays(capsys):
    """`logaddexp` and `relu` have rules of their own, here on values and on arrays that are known."""
    known = np.arange(4, dtype="float32")

    def loss(params, batch):
        return jnp.mean(jnp.logaddexp(batch @ params, known) * jax.nn.relu(jnp.asarray(known) - 1))

    batch = np.random.default_rng(0).standard_normal((6, 5)).astype("float32")
    mtc.jax.compile(loss, np.ones((5, 4), "float32"), batch, optimizer="sgd", devices="cpu:1")
    assert "checked against JAX" in capsys.readouterr().err


def test_the_example_of_the_page(tmp_path, monkeypatch, capsys):
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "jax.md"
    lines = page.read_text(encoding="utf-8").partition("\n## ")[0].splitlines()
    monkeypatch.chdir(tmp_path)
    exec("\n".join(line[4:] for line in lines if line.startswith("    ") or not line), {})  # noqa: S102
    assert "epoch 5/5" in capsys.readouterr().out and (tmp_path / "classifier.mtp").exists()


def test_attention_is_one_op():
    m = jax_models.gpt()
    step = mtc.jax.compile(m.loss, m.params, m.some(4), optimizer="sgd", batch_size=8, devices="cpu:1", check=False,
                           verbose=0)
    assert kernels(step.plan)["attention"] == 2
    assert step.text.count("mt.sparse_categorical_crossentropy") == 1


def test_logits_of_all_tokens_but_the_last_are_not_stored():
    classes, tokens, batch = 8192, 64, 64
    rng = np.random.default_rng(0)
    params = {"table": rng.normal(size=(classes, 8)).astype("f4"), "head": rng.normal(size=(8, classes)).astype("f4")}

    def loss(params, batch):
        logits = jnp.take(params["table"], batch, axis=0) @ params["head"]
        logs = jax.nn.log_softmax(logits[:, :-1])
        return -jnp.take_along_axis(logs, batch[:, 1:, None], -1).mean()

    ids = rng.integers(0, classes, (2, tokens)).astype("i4")
    step = mtc.jax.compile(loss, params, ids, optimizer="sgd", batch_size=batch, verbose=0)
    assert step.plan.memory(devices=1) < 0.7 * batch * (tokens - 1) * classes * 4


def test_optimizers():
    with pytest.raises(mtc.ModelError, match="expected an optimizer of sgd, adam"):
        mtc.jax.compile(jax_models.mlp().loss, {}, (), optimizer="nonesuch")
    assert mtc.jax.sgd(0.1, 0.9, True).line("").format() == (
        "mt.sgd <{momentum = 9.000000000e-01 : f32, nesterov, rate_after_momentum, "
        "learning_rate = 1.000000000e-01 : f32}>")
