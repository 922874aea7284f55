# SPDX-License-Identifier: Apache-2.0
"""Whole steps whose backward pass JAX wrote: convolutions, pools, normalization by the batch, lookups."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from plans import kernels

import mtc
import mtc.jax

STEPS = 20
LAST, FIRST = ("NHWC", "HWIO", "NHWC"), ("NCHW", "OIHW", "NCHW")
_random = np.random.default_rng(0)


def numbers(*shape, scale=0.3):
    return (_random.standard_normal(shape) * scale).astype("f4")


def labels(count, *shape):
    return _random.integers(0, count, shape).astype("i4")


def convolved(x, kernel, strides=1, padding="SAME", axes=LAST, **others):
    return lax.conv_general_dilated(x, kernel, (strides,) * (len(axes[0]) - 2), padding, dimension_numbers=axes,
                                    **others)


def pooled(x, kind, window, strides, padding="VALID"):
    start, of = (-jnp.inf, lax.max) if kind == "max" else (0.0, lax.add)
    return lax.reduce_window(x, start, of, (1, *window, 1), (1, *strides, 1), padding)


def entropy(logits, label):
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), label[:, None], 1))


def convnet(p, batch):
    x = jax.nn.relu(convolved(batch["x"], p["same"]) + p["b1"])
    x = pooled(x, "max", (2, 2), (2, 2))
    x = jax.nn.relu(convolved(x, p["valid"], 2, "VALID") + p["b2"])
    x = jax.nn.relu(convolved(x, p["point"]) + p["b3"])
    x = jax.nn.relu(convolved(x, p["depth"], feature_group_count=12))
    x = pooled(x, "sum", (2, 2), (2, 2)) / 4
    return entropy(x.reshape(x.shape[0], -1) @ p["dense"] + p["b4"], batch["y"])


def of_convnet():
    p = {"same": numbers(3, 3, 1, 8), "b1": numbers(8), "valid": numbers(3, 3, 8, 12), "b2": numbers(12),
         "point": numbers(1, 1, 12, 12), "b3": numbers(12), "depth": numbers(3, 3, 1, 12),
         "dense": numbers(12, 5), "b4": numbers(5)}
    return convnet, p, {"x": numbers(8, 12, 12, 1, scale=1), "y": labels(5, 8)}


def forms(p, batch):
    """Every way to write a convolution, between one that gives it a gradient to its images and a sum of squares."""
    x = jnp.tanh(convolved(batch["x"], p["first"]))
    first = jnp.transpose(x, (0, 3, 1, 2))
    line = x[:, 0]
    made = {
        "strides": convolved(x, p["strides"], 2, ((1, 0), (0, 2))), "far": convolved(x, p["far"], 1, ((4, 5), (5, 4))),
        "cut": convolved(x, p["cut"], 2, ((-1, 0), (0, -2))), "sparse": convolved(x, p["sparse"], 3),
        "dilated": convolved(x, p["dilated"], 2, rhs_dilation=(2, 1)),
        "groups": convolved(x, p["groups"], 2, feature_group_count=2),
        "many": convolved(x, p["many"], feature_group_count=4), "point": convolved(x, p["point"], 2),
        "transposed": lax.conv_transpose(x, p["transposed"], (2, 2), "SAME"),
        "both": convolved(x, p["both"], 2, ((1, 2), (2, 1)), lhs_dilation=(2, 1), rhs_dilation=(1, 2)),
        "first order": convolved(first, p["oihw"], 2, "VALID", FIRST),
        "one axis": convolved(line, p["line"], 2, "SAME", ("NWC", "WIO", "NWC")),
        "max": pooled(x, "max", (3, 3), (2, 2), "SAME"), "overlap": pooled(x, "max", (3, 2), (1, 1)),
        "far max": pooled(x, "max", (3, 3), (1, 2), ((0, 0), (2, 1), (2, 2), (0, 0))),
        "sums": pooled(x, "sum", (3, 3), (2, 2), "SAME"), "apart": pooled(x, "sum", (2, 2), (3, 3)),
    }
    return sum(jnp.mean((y - 1) ** 2) for y in made.values())


def of_forms():
    p = {"first": numbers(3, 3, 2, 4), "strides": numbers(3, 2, 4, 5), "far": numbers(3, 2, 4, 5),
         "cut": numbers(3, 2, 4, 5), "sparse": numbers(2, 2, 4, 3), "dilated": numbers(3, 3, 4, 5),
         "groups": numbers(3, 3, 2, 6), "many": numbers(3, 3, 1, 8), "point": numbers(1, 1, 4, 3),
         "transposed": numbers(3, 3, 4, 3), "both": numbers(3, 2, 4, 3), "oihw": numbers(5, 4, 3, 3),
         "line": numbers(3, 4, 3)}
    return forms, p, {"x": numbers(8, 9, 10, 2, scale=1)}


def normalized(p, batch):
    """Batch normalization as its formula."""
    x = convolved(batch["x"], p["kernel"])
    mean, square = jnp.mean(x, (0, 1, 2)), jnp.mean(jnp.square(x), (0, 1, 2))
    x = (x - mean) * lax.rsqrt(square - mean * mean + 1e-3) * p["scale"] + p["centre"]
    return jnp.mean((jnp.mean(jax.nn.relu(x), (1, 2)) - batch["y"]) ** 2)


def of_normalized():
    p = {"kernel": numbers(3, 3, 2, 4), "scale": np.ones(4, "f4"), "centre": np.zeros(4, "f4")}
    return normalized, p, {"x": numbers(8, 6, 6, 2, scale=1), "y": numbers(8, 4)}


def penalized(p, batch):
    """The gradient of each sample's output by its image, by `jax.vjp` in `jax.vmap`, is a part of the loss."""
    def critic(x):
        return jnp.sum(jnp.tanh(convolved(jnp.tanh(convolved(x[None], p["first"], 2)), p["second"], 1, "VALID")))

    def slope(x):
        value, back = jax.vjp(critic, x)
        return back(jnp.ones_like(value))[0]

    slopes = jax.vmap(slope)(batch["x"])
    return jnp.mean((jnp.sqrt(jnp.sum(slopes ** 2, (1, 2, 3)) + 1e-6) - 1) ** 2)


def of_penalized():
    return penalized, {"first": numbers(3, 3, 2, 4), "second": numbers(2, 2, 4, 3)}, {"x": numbers(8, 6, 6, 2)}


def adapted(p, batch):
    """A gradient through a gradient, of a convolution and pools."""
    def inner(p):
        x = jnp.tanh(convolved(batch["x"], p["kernel"]))
        x = pooled(x, "max", (3, 3), (2, 2), "SAME") + pooled(x, "sum", (2, 2), (2, 2)) / 4
        return jnp.mean((jnp.mean(x, (1, 2)) @ p["w"] - batch["y"]) ** 2)

    return inner(jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(inner)(p)))


def of_adapted():
    return (adapted, {"kernel": numbers(3, 3, 2, 4), "w": numbers(4, 3)},
            {"x": numbers(8, 6, 6, 2, scale=1), "y": numbers(8, 3)})


def looked_up(p, batch):
    """Rows of a table, and elements of each sample."""
    x = jnp.tanh(p["table"][batch["ids"]]).mean(1) @ p["w"]
    return entropy(x, batch["y"]) + jnp.mean(jnp.take_along_axis(x, batch["three"], 1) ** 2) + jnp.mean(
        x[jnp.arange(x.shape[0]), batch["y"]])


def of_looked_up():
    return (looked_up, {"table": numbers(11, 4), "w": numbers(4, 7)},
            {"ids": labels(11, 8, 5), "y": labels(7, 8), "three": labels(7, 8, 3)})


def of_private():
    """The gradient of each sample, made shorter: inside of the step, where `jax.grad` would be MTC's own."""
    def loss(p, x, y):
        x = jnp.tanh(convolved(x[None], p["kernel"], 2) + p["b"])
        return jnp.sum((jnp.mean(x, (0, 1, 2)) - y) ** 2)

    def gradients(p, batch):
        value, each = jax.vmap(jax.value_and_grad(loss), (None, 0, 0))(p, batch["x"], batch["y"])
        norm = jnp.sqrt(sum(jnp.sum(g ** 2, range(1, g.ndim)) for g in jax.tree.leaves(each)))
        short = jnp.minimum(1, 0.3 / norm)
        return jnp.mean(value), jax.tree.map(lambda g: jnp.mean(jax.vmap(jnp.multiply)(g, short), 0), each)

    return (gradients, {"kernel": numbers(3, 3, 2, 4), "b": numbers(4)},
            {"x": numbers(8, 7, 6, 2, scale=1), "y": numbers(8, 4)})


CASES = {f.__name__[3:]: f for f in (of_convnet, of_forms, of_normalized, of_penalized, of_adapted, of_looked_up,
                                     of_private)}


def step_of(gradients, rate=0.05):
    def train_step(state, batch):
        p, momentum = state
        loss, gradient = gradients(p, batch)
        momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, gradient)
        return (jax.tree.map(lambda a, m: a - rate * m, p, momentum), momentum), {"loss": loss}

    return train_step


def start(p):
    return p, jax.tree.map(np.zeros_like, p)


@pytest.mark.parametrize("name", CASES)
def test_backward_passes_of_jax_on_any_number_of_devices(name):
    """20 steps, with short batches."""
    loss, p, batch = CASES[name]()
    gradients = loss if name == "private" else jax.value_and_grad(loss)
    function = step_of(gradients, 0.01 if name == "penalized" else 0.05)
    reference, wanted, found = jax.jit(function), start(p), set()
    for devices in ("cpu:1", "cpu:2", "cpu:3", "cpu:8") if name in ("convnet", "normalized") else ("cpu:1", "cpu:3"):
        with mtc.jax.step(function, start(p), batch, devices=devices, verbose=0, check=devices == "cpu:1") as step:
            now = start(p)
            for count in range(STEPS):
                given = jax.tree.map(lambda a: a[:5], batch) if count % 5 == 4 else batch
                now, metrics = step(now, given)
                if devices == "cpu:1":
                    wanted, shown = reference(wanted, given)
                    np.testing.assert_allclose(metrics["loss"], shown["loss"], rtol=1e-5, atol=1e-6)
            found.add(b"".join(np.asarray(v).tobytes() for v in step.session.variables.values()))
            if devices == "cpu:1":
                jax.tree.map(lambda a, b: np.testing.assert_allclose(np.asarray(a), b, atol=1e-5), now[0], wanted[0])
    assert len(found) == 1


def steepness(p, batch):
    """The gradient of each sample's maxima by its image is a part of the loss."""
    slopes = jax.vmap(jax.grad(lambda x: jnp.sum(pooled(jnp.tanh(convolved(x[None], p["kernel"])), "max", (2, 2),
                                                        (2, 2)) @ p["w"])))(batch["x"])
    return jnp.mean(jnp.sum(slopes ** 2, (1, 2, 3)))


@pytest.mark.parametrize("loss", [adapted, steepness])
def test_gradients_through_gradients_of_maxima_in_the_step(loss):
    """There `jax.value_and_grad` would be MTC's, which differentiates maxima of windows once."""
    _, p, batch = of_adapted()
    function = step_of(lambda p, batch: jax.value_and_grad(loss)(p, batch))
    wanted, _ = jax.jit(step_of(jax.value_and_grad(loss)))(start(p), batch)
    with mtc.jax.step(function, start(p), batch, devices="cpu:2", verbose=0) as step:
        now, _ = step(start(p), batch)
        jax.tree.map(lambda a, b: np.testing.assert_allclose(np.asarray(a), b, atol=1e-5), now, wanted)


def test_they_become_the_kernels_that_mtc_makes():
    """A backward pass that was traced, and one that MTC makes of `jax.value_and_grad` in the step."""
    loss, p, batch = of_convnet()

    def plan(gradients):
        with mtc.jax.step(step_of(gradients), start(p), batch, verbose=0, check=False, cpu="native") as step:
            return step.plan, step.text

    traced, text = plan(jax.value_and_grad(loss))
    made, other = plan(lambda *given: jax.value_and_grad(loss)(*given))
    assert "mt.derivative" not in text and "mt.derivative" in other
    for op in ("conv2d_input_gradient", "conv2d_kernel_gradient", "pool_gradient max", "pool_gradient sum"):
        assert f"mt.{op}" in text
    assert "mt.reverse" not in text and "interior" not in text
    assert kernels(traced) == kernels(made)
    assert [traced.memory(n) for n in (1, 2, 8)] == [made.memory(n) for n in (1, 2, 8)]


@pytest.mark.parametrize("change, words", [
    (lambda p, x: jnp.sum(convolved(x, x, 1, "VALID", ("NHWC", "OHWI", "NHWC"))) + jnp.sum(p),
     "which mixes samples; a sum over the samples has them as the second axis of both"),
    (lambda p, x: jnp.sum(jax.vmap(jax.grad(lambda p, x: jnp.sum(convolved(x[None], p[:, :, :1], feature_group_count=2)
                                                                 ** 2)), (None, 0))(p, x) ** 4),
     "the gradient of each sample by the kernel of a convolution in groups"),
], ids=["products of samples", "groups"])
def test_what_is_refused(change, words):
    def train_step(p, batch):
        loss, gradient = jax.value_and_grad(change)(p, batch["x"])
        return p - gradient, {"loss": loss}

    with pytest.raises(mtc.ModelError, match=rf"test_jax_gradients.py:\d+.*{words}"):
        mtc.jax.step(train_step, numbers(3, 3, 2, 4), {"x": numbers(8, 6, 6, 2)}, verbose=0, check=False)
