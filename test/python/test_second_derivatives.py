# SPDX-License-Identifier: Apache-2.0
"""Losses that hold derivatives: mtc.jax and mtc.torch check each against the framework, and train it to one result."""

import equinox as eqx
import jax
import jax.numpy as jnp
import mtc.jax
import mtc.torch
import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.set_num_threads(1)
ROWS, SHORT = 16, 7
NUMBERS = np.random.default_rng(0)


def random(*shape, scale=0.5):
    return (NUMBERS.standard_normal(shape) * scale).astype("f4")


def dense(*sizes):
    return {f"{name}{i}": random(*shape) for i, (a, b) in enumerate(zip(sizes, sizes[1:]))
            for name, shape in (("w", (a, b)), ("b", (b,)))}


def mlp(p, x):
    count = len(p) // 2
    for i in range(count):
        x = x @ p[f"w{i}"] + p[f"b{i}"]
        x = jnp.tanh(x) if i < count - 1 else x
    return x


def pinn(p, batch):
    """u_t + u u_x = nu u_xx (Burgers), at random points."""
    def u(point):
        return mlp(p, point)[0]

    def residual(point):
        (ut, ux), uxx = jax.grad(u)(point), jax.hessian(u)(point)[1, 1]
        return ut + u(point) * ux - 0.1 * uxx

    return jnp.mean(jax.vmap(residual)(batch["x"]) ** 2) + jnp.mean((jax.vmap(u)(batch["x"]) - batch["y"]) ** 2)


def hamiltonian(p, batch):
    field = jax.vmap(jax.grad(lambda state: mlp(p, state)[0]))(batch["x"])
    return jnp.mean((field @ np.array([[0, -1], [1, 0]], "f4") - batch["v"]) ** 2)


def forces(p, batch):
    """Energies of pairs of atoms, and forces, which are their derivatives."""
    def energy(atoms):
        r = jnp.sum((atoms[:, None] - atoms[None]) ** 2, -1)[np.triu_indices(4, 1)] + 0.1
        return jnp.sum(mlp(p, jnp.exp(-r)[:, None]))

    found, pull = jax.vmap(jax.value_and_grad(energy))(batch["atoms"])
    return jnp.mean((found - batch["y"]) ** 2) + jnp.mean((pull + batch["f"]) ** 2)


def deep_operator(p, batch):
    """A branch of samples of a function and a trunk of a place, whose derivative by the place is given."""
    def value(place, row):
        return mlp(p["branch"], row) @ mlp(p["trunk"], place[None])

    made = jax.vmap(jax.value_and_grad(value))(batch["y"], batch["u"])
    return jnp.mean((made[0] - batch["v"]) ** 2 + (made[1] - 1) ** 2)


def meta(p, batch):
    """MAML: each sample is a task of 4 points; the loss is that after a step on two of them."""
    def task(x, y):
        def loss(q, s):
            return jnp.mean((mlp(q, x[s, None])[:, 0] - y[s]) ** 2)

        inner = jax.tree.map(lambda a, g: a - 0.1 * g, p, jax.grad(loss)(p, slice(0, 2)))
        return loss(inner, slice(2, 4))

    return jnp.mean(jax.vmap(task)(batch["u"], batch["f4"]))


def curvature(p, batch):
    """By forward over reverse: the norm of a Hessian times a vector, and of a whole Hessian."""
    def f(x):
        return jnp.sum(jax.nn.softplus(mlp(p, x)))

    def norm(x):
        product = jax.jvp(jax.grad(f), (x,), (jnp.ones_like(x),))[1]
        return jnp.sum(product ** 2) + jnp.sum(jax.jacfwd(jax.jacrev(f))(x) ** 2)

    return jnp.mean(jax.vmap(norm)(batch["x"]))


def smoothed(p, batch):
    """The gradient of a convolution, a normalization by the image, a softmax and a maximum."""
    def score(image):
        x = jax.lax.conv_general_dilated(image[None, :, :, None], p["kernel"], (1, 1), "SAME",
                                         dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jnp.tanh(x[:, ::2, ::2])
        x = (x - x.mean()) / jnp.sqrt(x.var() + 1e-3)
        return jnp.sum(jax.nn.softmax(x.reshape(-1)) * p["out"]) + jnp.max(x)

    return jnp.mean(jax.vmap(jax.grad(score))(batch["images"]) ** 2)


def attended(p, batch):
    def score(x):
        q, k, v = (x @ p[name] for name in "qkv")
        return jnp.sum(jax.nn.softmax(q @ k.T / 2) @ v)

    return jnp.mean(jax.vmap(jax.grad(score))(batch["sequence"]) ** 2)


def convolved(images, kernel, stride=1):
    return jax.lax.conv_general_dilated(images, kernel, (stride, stride), "SAME",
                                        dimension_numbers=("NHWC", "HWIO", "NHWC"))


def largest(x, size, stride, padding):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, size, size, 1), (1, stride, stride, 1), padding)


def sloped(score, name="images"):
    """The loss is the square of a score's gradient by its images or sequences."""
    return lambda p, batch: jnp.mean(jax.grad(lambda x: jnp.sum(score(p, x)))(batch[name]) ** 2)


def pooled(p, images):
    x = convolved(images[..., None], p["kernel"])
    mean = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    return (jnp.sum(jnp.tanh(largest(x, 2, 2, "VALID")) ** 2) + jnp.sum(jnp.tanh(largest(x, 3, 1, "SAME")) ** 2)
            + jnp.sum(jnp.tanh(largest(x, 3, 2, "SAME"))) + jnp.sum(jnp.tanh(mean) ** 2))


def normalized(p, images):
    x = convolved(jnp.tanh(convolved(images[..., None], p["kernel"])), p["next"], 2)
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return jnp.tanh((x - mean) * jax.lax.rsqrt(variance + 1e-3) * p["scale"]) ** 2


def lined(p, x):
    x = x @ p["q"]
    layer = (x - x.mean(-1, keepdims=True)) * jax.lax.rsqrt(x.var(-1, keepdims=True) + 1e-3)
    square = x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-3)
    return jnp.sum(jnp.tanh(layer) * p["v"][0]) + jnp.sum(jnp.tanh(square)) - jnp.sum(jax.nn.log_softmax(x)[..., 1])


def heads(p, x):
    q, k, v = ((x @ p[name]).reshape(*x.shape[:2], 2, 2) for name in "qkv")
    return jnp.tanh(jax.nn.dot_product_attention(q, k, v, is_causal=True))


def recurrent(p, x):
    def cell(state, row):
        state = jnp.tanh(state @ p["q"] + row @ p["k"])
        return state, state

    return jax.lax.scan(cell, jnp.zeros((x.shape[0], 4)), x.transpose(1, 0, 2))[1] ** 2


def third(p, batch):
    def first(x):
        return jnp.sum(jax.grad(lambda y: jnp.sum(mlp(p, y)))(x) ** 2)

    return jnp.mean(jax.vmap(lambda x: jax.jvp(jax.grad(first), (x,), (jnp.ones_like(x),))[1])(batch["x"]) ** 2)


def equation_of_operators(p, batch):
    """A DeepONet whose value s solves s'' + s = u, for a function u that is given at points."""
    def value(u, place):
        return mlp(p["branch"], u) @ mlp(p["trunk"], place[None])

    def residual(u, place):
        bend = jax.grad(jax.grad(value, 1), 1)(u, place)
        before = jnp.searchsorted(jnp.linspace(0, 1, 4), place, method="compare_all")
        return bend + value(u, place) - jnp.sum(jnp.where(jnp.arange(4) == before, u, 0))

    return jnp.mean(jax.vmap(residual)(batch["u"], jax.nn.sigmoid(batch["y"])) ** 2)


def sharpness(p, batch):
    """The loss at the weights of a step uphill, which depends on them through the gradient."""
    def loss(q):
        return jnp.mean((mlp(q, batch["x"])[:, 0] - batch["y"]) ** 2)

    slope = jax.grad(loss)(p)
    norm = jnp.sqrt(sum(jnp.sum(g ** 2) for g in jax.tree.leaves(slope)) + 1e-6)
    return loss(jax.tree.map(lambda a, g: a + 0.05 * g / norm, p, slope))


def fixed_point(p, batch):
    """z = tanh(w z + x) / 2, whose derivative solves a linear system."""
    def one(x):
        def miss(z):
            return z - 0.5 * jnp.tanh(p["q"] @ z + x)

        def solve(f, start):
            return jax.lax.fori_loop(0, 10, lambda i, z: z - f(z), start)

        return jax.lax.custom_root(miss, jnp.zeros(4), solve, lambda f, y: jnp.linalg.solve(jax.jacobian(f)(y), y))

    return jnp.mean(jax.vmap(one)(batch["u"]) ** 2)


def interpolated(p, batch):
    """A curve by points, next to a network: the lookup is a search."""
    def curve(s):
        return mlp(p["net"], s[None])[0] + jnp.interp(s, np.linspace(-1, 1, 7, dtype="f4"), p["knots"])

    return jnp.mean((jax.vmap(jax.grad(curve))(batch["y"]) - batch["x"][:, 0]) ** 2)


def solved(p, batch):
    """A motion along the gradient of a potential, in a loop of Equinox as diffrax has it, which checks the result."""
    def one(start):
        def step(carry):
            time, place = carry
            return time + 1, place - 0.1 * jax.grad(lambda q: mlp(p, q)[0])(place)

        _, end = eqx.internal.while_loop(lambda c: c[0] < 4, step, (0, start), max_steps=8, kind="checkpointed")
        return eqx.error_if(end, jnp.any(jnp.abs(end) > 1e6), "it is far away")

    return jnp.mean((jax.vmap(one)(batch["x"]) - batch["v"]) ** 2)


BATCH = {"x": random(ROWS, 2), "y": random(ROWS), "v": random(ROWS, 2), "atoms": random(ROWS, 4, 3),
         "f": random(ROWS, 4, 3), "u": random(ROWS, 4), "f4": random(ROWS, 4), "images": random(ROWS, 6, 6),
         "sequence": random(ROWS, 5, 4)}
JAX = {
    "pinn": (pinn, dense(2, 8, 8, 1), ("x", "y")), "hamiltonian": (hamiltonian, dense(2, 8, 1), ("x", "v")),
    "forces": (forces, dense(1, 8, 1), ("atoms", "y", "f")),
    "deep operator": (lambda p, b: deep_operator(p, {**b, "v": b["x"][:, 0]}),
                      {"branch": dense(4, 8, 6), "trunk": dense(1, 8, 6)}, ("u", "y", "x")),
    "meta": (meta, dense(1, 6, 1), ("u", "f4")), "curvature": (curvature, dense(2, 6, 3), ("x",)),
    "smoothed": (smoothed, {"kernel": random(3, 3, 1, 2), "out": random(18)}, ("images",)),
    "attended": (attended, {name: random(4, 4) for name in "qkv"}, ("sequence",)),
    "pooled": (sloped(pooled), {"kernel": random(3, 3, 1, 2)}, ("images",)),
    "normalized": (sloped(normalized), {"kernel": random(3, 3, 1, 2), "next": random(3, 3, 2, 2), "scale": random(2)},
                   ("images",)),
    "lined": (sloped(lined, "sequence"), {name: random(4, 4) for name in "qv"}, ("sequence",)),
    "heads": (sloped(heads, "sequence"), {name: random(4, 4) for name in "qkv"}, ("sequence",)),
    "recurrent": (sloped(recurrent, "sequence"), {name: random(4, 4) for name in "qk"}, ("sequence",)),
    "third": (third, dense(2, 6, 3), ("x",)),
    "equation of operators": (equation_of_operators, {"branch": dense(4, 8, 6), "trunk": dense(1, 8, 6)}, ("u", "y")),
    "interpolated": (interpolated, {"net": dense(1, 6, 1), "knots": random(7)}, ("x", "y")),
    "solved": (solved, dense(2, 6, 1), ("x", "v")),
    "sharpness": (sharpness, dense(2, 6, 1), ("x", "y")), "fixed point": (fixed_point, {"q": random(4, 4)}, ("u",)),
}


def one_result(step, batch):
    """Trains with whole and short batches on any number of devices, from the same variables."""
    found = set()
    for devices in ("cpu:1", "cpu:2", "cpu:3", "cpu:8"):
        with step.plan.session(devices) as session:
            for name, value in step.session.variables.items():
                session.variables[name] = value
            for rows in (ROWS, SHORT, ROWS):
                session.train_step({name: array[:rows] for name, array in batch.items()})
            found.add(b"".join(np.asarray(v).tobytes() for v in session.variables.values()))
    step.close()
    assert len(found) == 1


@pytest.mark.parametrize("name", JAX)
def test_jax(name):
    function, params, needed = JAX[name]
    batch = {key: BATCH[key] for key in needed}
    step = mtc.jax.compile(function, params, batch, optimizer=mtc.jax.sgd(0.01, momentum=0.9), batch_size=ROWS,
                           shards=8, verbose=0, devices="cpu:1")
    one_result(step, batch)


class Pinn(nn.Module):
    """u'' = -u, u(0) = 1: by torch.autograd.grad inside of forward."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x):
        x = x.requires_grad_()
        u = self.net(x)
        du, = torch.autograd.grad(u.sum(), x, create_graph=True)
        ddu, = torch.autograd.grad(du.sum(), x, create_graph=True)
        return ((ddu + u) ** 2).mean() + (self.net(torch.zeros(1, 1)) - 1).square().mean()


class Forces(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 8), nn.SiLU(), nn.Linear(8, 1))

    def forward(self, x):
        force = -torch.func.vmap(torch.func.grad(lambda atoms: self.net(atoms.flatten()).squeeze()))(x)
        return (force - x.sin()).square().mean()


class Jacobian(nn.Module):
    """A contractive autoencoder."""

    def __init__(self):
        super().__init__()
        self.code, self.back = nn.Linear(4, 3), nn.Linear(3, 4)

    def forward(self, x):
        code = torch.sigmoid(self.code(x))
        jacobian = torch.func.vmap(torch.func.jacrev(lambda row: torch.sigmoid(self.code(row))))(x)
        return (self.back(code) - x).square().mean() + 0.1 * jacobian.square().sum((1, 2)).mean()


class Laplacian(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 6), nn.Softplus(), nn.Linear(6, 1))

    def forward(self, x):
        def first(row):
            return torch.func.grad(lambda r: self.net(r).squeeze())(row)

        parts = [torch.func.vmap(torch.func.grad(lambda row, i=i: first(row)[i]))(x)[:, i] for i in range(2)]
        return (sum(parts) - x.sin().sum(1)).square().mean()


class Curved(nn.Module):
    """A whole Hessian, and the logarithm of a Jacobian's determinant."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 3))

    def forward(self, x):
        bends = torch.func.vmap(torch.func.hessian(lambda row: self.net(row).sum()))(x)
        volume = torch.linalg.slogdet(torch.func.vmap(torch.func.jacfwd(self.net))(x))[1]
        return bends.square().mean() + 0.1 * volume.tanh().mean()


class Meta(nn.Module):
    """MAML: the loss of two samples of a task after a step on the two others."""

    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1))

    def forward(self, x):
        parameters = dict(self.net.named_parameters())

        def loss(p, points):
            found = torch.func.functional_call(self.net, p, (points[:, None],))[:, 0]
            return (found - points.sin()).square().mean()

        def task(points):
            slope = torch.func.grad(loss)(parameters, points[:2])
            return loss({k: parameters[k] - 0.1 * slope[k] for k in parameters}, points[2:])

        return torch.func.vmap(task)(x).mean()


class Sloped(nn.Module):
    """The loss is the square of a score's gradient by its images or sequences, taken in both ways."""

    def __init__(self, score, functional):
        super().__init__()
        self.score, self.functional = score, functional
        self.conv, self.next = nn.Conv2d(1, 2, 3, padding=1), nn.Conv2d(2, 2, 3, stride=2, padding=1, groups=2)
        self.back, self.batch, self.group = nn.ConvTranspose2d(2, 2, 3, stride=2), nn.BatchNorm2d(2), nn.GroupNorm(1, 2)
        self.line, self.layer, self.square = nn.Linear(4, 4), nn.LayerNorm(4), nn.RMSNorm(4)
        self.heads, self.cell = nn.MultiheadAttention(4, 2, batch_first=True), nn.GRU(4, 4, batch_first=True)

    def forward(self, x):
        with sdpa_kernel(SDPBackend.MATH):  # the others have no second derivative in PyTorch
            if self.functional:
                slope = torch.func.grad(lambda x: self.score(self, x).sum())(x)
            else:
                x = x.requires_grad_()
                slope, = torch.autograd.grad(self.score(self, x).sum(), x, create_graph=True)
        return (slope ** 2).mean()


SCORES = {
    "pools": lambda m, x: F.max_pool2d(m.conv(x), 2).tanh() + F.avg_pool2d(m.conv(x), 2).tanh() + F.max_pool2d(
        m.conv(x), 3, 2, 1).tanh() + F.adaptive_max_pool2d(m.conv(x), 3),
    "convolutions": lambda m, x: m.back(m.next(m.conv(x).tanh()).tanh()).tanh(),
    "normalizations of images": lambda m, x: m.batch(m.conv(x)).tanh() + m.group(m.conv(x)).tanh(),
    "normalizations of lines": lambda m, x: m.layer(m.line(x)).tanh() + m.square(m.line(x)).tanh(),
    "softmax": lambda m, x: m.line(x).softmax(-1)[..., 0] + F.cross_entropy(
        m.line(x).flatten(0, 1), torch.zeros(x.shape[0] * 5, dtype=torch.long), reduction="sum"),
    "attention": lambda m, x: m.heads(x, x, x, need_weights=False)[0].tanh(),
    "masked attention": lambda m, x: F.scaled_dot_product_attention(
        *(t[:, None] for t in (m.line(x), x, m.line(x).tanh())), is_causal=True).tanh(),
    "recurrent": lambda m, x: m.cell(x)[0].tanh(),
    "lengths": lambda m, x: F.normalize(m.line(x), dim=-1).sum(-1) ** 2 + m.line(x).norm(dim=-1),
}
IMAGES = ("pools", "convolutions", "normalizations of images")


@pytest.mark.parametrize("functional", (False, True), ids=("autograd", "func"))
@pytest.mark.parametrize("name", SCORES)
def test_slopes(name, functional):
    if functional and "images" in name:
        pytest.skip("PyTorch refuses running statistics, which change in place, under torch.func.grad")
    torch.manual_seed(1)
    batch = {"x": torch.from_numpy(random(ROWS, *((1, 6, 6) if name in IMAGES else (5, 4))))}
    step = mtc.torch.compile(Sloped(SCORES[name], functional), batch, optimizer="sgd,learning_rate=0.01,momentum=0.9",
                             batch_size=ROWS, shards=8, verbose=0, devices="cpu:1")
    one_result(step, batch)


TORCH = {"pinn": (Pinn, (ROWS, 1)), "forces": (Forces, (ROWS, 2, 3)), "jacobian": (Jacobian, (ROWS, 4)),
         "laplacian": (Laplacian, (ROWS, 2)), "curved": (Curved, (ROWS, 3)), "meta": (Meta, (ROWS, 4))}


@pytest.mark.parametrize("name", TORCH)
def test_torch(name):
    torch.manual_seed(1)
    make, shape = TORCH[name]
    batch = {"x": torch.from_numpy(random(*shape))}
    step = mtc.torch.compile(make(), batch, optimizer="sgd,learning_rate=0.01,momentum=0.9", batch_size=ROWS, shards=8,
                             verbose=0, devices="cpu:1")
    one_result(step, batch)
