# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms and complex numbers in traces: neural operators train as in their framework, to one result."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mtc.jax
import mtc.torch

torch.set_num_threads(1)
ROWS, STEPS = 8, 20
NUMBERS = np.random.default_rng(0)


def random(*shape, scale=0.5):
    return (NUMBERS.standard_normal(shape) * scale).astype("f4")


def one_result(step, batch):
    """Trains on any number of devices, from the same variables, with a short batch among the others."""
    found = set()
    for devices in ("cpu:1", "cpu:2", "cpu:3"):
        with step.plan.session(devices) as session:
            for name, value in step.session.variables.items():
                session.variables[name] = value
            for rows in (ROWS, 5, ROWS):
                session.train_step({name: np.asarray(array)[:rows] for name, array in batch.items()})
            found.add(b"".join(np.asarray(v).tobytes() for v in session.variables.values()))
    assert len(found) == 1


class Spectral(nn.Module):
    """A convolution by the first frequencies along the last axes."""

    def __init__(self, channels, *kept):
        super().__init__()
        self.kept = kept
        self.weight = nn.Parameter(torch.randn(channels, channels, *kept, 2) / channels)

    def forward(self, x):
        axes = tuple(range(2, x.ndim))
        spectrum = torch.fft.rfftn(x, dim=axes, norm="forward")
        first = (slice(None), slice(None), *(slice(n) for n in self.kept))
        mixed = torch.zeros_like(spectrum)
        letters = "xy"[:len(axes)]
        mixed[first] = torch.einsum(f"bi{letters},io{letters}->bo{letters}", spectrum[first],
                                    torch.view_as_complex(self.weight))
        return torch.fft.irfftn(mixed, s=x.shape[2:], dim=axes, norm="forward")


class Operator(nn.Module):
    """A Fourier neural operator of functions on a line or on a plane."""

    def __init__(self, axes, *kept):
        super().__init__()
        conv = nn.Conv1d if axes == 1 else nn.Conv2d
        self.lift, self.project = conv(1, 4, 1), conv(4, 1, 1)
        self.spectral = nn.ModuleList(Spectral(4, *kept) for _ in range(2))
        self.skip = nn.ModuleList(conv(4, 4, 1) for _ in range(2))

    def forward(self, x, y):
        x = self.lift(x)
        for spectral, skip in zip(self.spectral, self.skip):
            x = F.gelu(spectral(x) + skip(x))
        return F.mse_loss(self.project(x), y)


@pytest.mark.parametrize("sizes, kept", [((40,), (6,)), ((8, 12), (4, 3))], ids=("line", "plane"))
def test_torch_operator(sizes, kept):
    torch.manual_seed(0)
    module = Operator(len(sizes), *kept)
    batch = {name: torch.from_numpy(random(ROWS, 1, *sizes)) for name in "xy"}
    own = torch.optim.Adam(module.parameters(), lr=1e-2)
    step = mtc.torch.compile(module, batch, optimizer=own, batch_size=ROWS, shards=4, verbose=0, devices="cpu:1")
    mine = [step.train_on_batch(batch)["loss"] for _ in range(STEPS)]
    losses = []
    for _ in range(STEPS):
        own.zero_grad()
        loss = module(**batch)
        loss.backward()
        own.step()
        losses.append(float(loss))
    np.testing.assert_allclose(mine, losses, rtol=2e-4)
    one_result(step, batch)
    step.close()


def operator(p, batch):
    x = batch["x"] @ p["lift"]
    for i in range(2):
        spectrum = jnp.fft.rfft(x, axis=1)
        weight = p[f"re{i}"] + 1j * p[f"im{i}"]
        kept = weight.shape[0]
        mixed = jnp.einsum("bki,kio->bko", spectrum[:, :kept], weight)
        mixed = jnp.pad(mixed, ((0, 0), (0, spectrum.shape[1] - kept), (0, 0)))
        x = jax.nn.gelu(jnp.fft.irfft(mixed, n=x.shape[1], axis=1) + x @ p[f"skip{i}"])
    return jnp.mean((x @ p["project"] - batch["y"]) ** 2)


def test_jax_operator():
    p = {"lift": random(1, 4), "project": random(4, 1)}
    for i in range(2):
        p |= {f"re{i}": random(5, 4, 4), f"im{i}": random(5, 4, 4), f"skip{i}": random(4, 4)}
    batch = {name: random(ROWS, 30, 1) for name in "xy"}
    step = mtc.jax.compile(operator, p, batch, optimizer=optax.adam(1e-2), batch_size=ROWS, shards=4, verbose=0,
                           devices="cpu:1")
    mine = [step.train_on_batch(batch)["loss"] for _ in range(STEPS)]
    optimizer = optax.adam(1e-2)
    state, losses = optimizer.init(p), []
    for _ in range(STEPS):
        loss, gradients = jax.value_and_grad(operator)(p, batch)
        updates, state = optimizer.update(gradients, state, p)
        p = optax.apply_updates(p, updates)
        losses.append(float(loss))
    np.testing.assert_allclose(mine, losses, rtol=2e-4)
    one_result(step, batch)
    step.close()


class Function(nn.Module):
    def __init__(self, function, *shape):
        super().__init__()
        self.function, self.w = function, nn.Parameter(torch.from_numpy(random(*shape)))

    def forward(self, x):
        return self.function(self.w, x)


def slope(w, x):
    """A derivative of a derivative through a transform."""
    made = torch.fft.rfft((x.requires_grad_() * w).tanh()).abs().square().sum()
    return torch.autograd.grad(made, x, create_graph=True)[0].square().mean()


FT = torch.fft
TORCH = {
    "radices": (lambda w, x: (FT.rfft(x * w).abs() * FT.rfft(w).real).mean(), (240,), (240,)),
    "odd": (lambda w, x: FT.irfft(FT.rfft(x * w), n=45).square().mean(), (45,), (45,)),
    "prime": (lambda w, x: FT.fft(x * w).imag.square().mean() + FT.rfft(x).real.mean() * w.mean(), (67,), (67,)),
    "plane": (lambda w, x: (FT.fft2(x * w, norm="ortho") + 1j).abs().square().mean(), (6, 10), (6, 10)),
    "inverse": (lambda w, x: (FT.ifft(x * w).imag ** 2 * 3 + FT.ifft(FT.fft(x)).real * w).mean(), (10,), (6, 10)),
    "other size": (lambda w, x: (FT.irfftn(FT.rfftn(x, dim=(1, 2), norm="forward") * torch.complex(w, w.flip(0)), s=(
        6, 9), dim=(1, 2)) ** 2).mean(), (6, 6), (6, 10)),
    "shifted": (lambda w, x: torch.view_as_real(FT.fftshift(FT.fft2(x), dim=(1,))[:, 1:4, :3] * torch.polar(
        w.abs(), w)).square().mean(), (3, 3), (6, 10)),
    "hermitian": (lambda w, x: FT.hfft(FT.ihfft(x * w)).square().mean(), (10,), (10,)),
    "short-time": (lambda w, x: torch.stft(x * w, 8, 4, return_complex=True, window=torch.hann_window(8)).abs().mean(),
                   (32,), (32,)),
    "slope": (slope, (10,), (10,)),
}


@pytest.mark.parametrize("name", TORCH)
def test_torch(name):
    function, shape, sizes = TORCH[name]
    mtc.torch.compile(Function(function, *shape), {"x": torch.from_numpy(random(ROWS, *sizes))}, batch_size=ROWS,
                      shards=4, verbose=0, devices="cpu:1").close()  # the check compares loss and gradients


JAX = {
    "radices": (lambda p, b: jnp.mean(jnp.abs(jnp.fft.rfft(b["x"] * p["w"])) * jnp.real(jnp.fft.rfft(p["w"]))), (240,),
                (240,)),
    "plane": (lambda p, b: jnp.mean(jnp.abs(jnp.fft.fft2(b["x"] * p["w"]) + 1j) ** 2), (6, 10), (6, 10)),
    "inverse": (lambda p, b: jnp.mean(jnp.fft.ifft(b["x"] * p["w"]).imag ** 2 + jnp.real(jnp.fft.ifft(jnp.fft.fft(
        b["x"]))) * p["w"]), (10,), (6, 10)),
    "other size": (lambda p, b: jnp.mean(jnp.fft.irfftn(jnp.fft.rfftn(b["x"], axes=(1, 2)) * (p["w"] + 0.5j), s=(
        6, 9), axes=(1, 2)) ** 2), (6, 6), (6, 10)),
    "slope": (lambda p, b: jnp.mean(jax.vmap(jax.grad(lambda x: jnp.sum(jnp.abs(jnp.fft.rfft(jnp.tanh(
        x * p["w"]))) ** 2)))(b["x"]) ** 2), (10,), (10,)),
}


@pytest.mark.parametrize("name", JAX)
def test_jax(name):
    function, shape, sizes = JAX[name]
    mtc.jax.compile(function, {"w": random(*shape)}, {"x": random(ROWS, *sizes)}, optimizer=mtc.jax.sgd(0.1),
                    batch_size=ROWS, shards=4, verbose=0, devices="cpu:1").close()


def test_refused():
    module = Function(lambda w, x: torch.view_as_real(torch.fft.fft(x * w).tan()).mean(), 8)
    with pytest.raises(mtc.ModelError, match="complex numbers"):
        mtc.torch.compile(module, {"x": torch.rand(ROWS, 8)}, verbose=0)
    with pytest.raises(mtc.ModelError, match="521, which has no factor from 2 to 32"):
        mtc.jax.compile(lambda p, b: jnp.mean(jnp.abs(jnp.fft.rfft(b["x"] * p["w"]))), {"w": random(521)},
                        {"x": random(ROWS, 521)}, optimizer=mtc.jax.sgd(0.1), verbose=0)
