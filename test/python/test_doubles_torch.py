# SPDX-License-Identifier: Apache-2.0
"""Precision f64: modules of PyTorch in float64, to one result on any number of devices; and what is refused."""

import copy
import hashlib
import math

import mtc.torch
import numpy as np
import pytest
import torch
from mtc._errors import ModelError

ROWS, SHORT = 16, 7


class Equation(torch.nn.Module):
    """A residual with a derivative, and constants that float32 does not have."""

    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
        self.factor = torch.nn.Parameter(torch.tensor(0.1))

    def forward(self, x, y):
        x = x.detach().requires_grad_()
        u = self.net(x * 0.1)
        slope, = torch.autograd.grad(u.sum(), x, create_graph=True)
        residual = slope[:, 0] + math.pi * self.factor * u[:, 0] * slope[:, 1] - torch.sin(math.pi * x[:, 1])
        return (residual ** 2).mean() / 3 + torch.nn.functional.mse_loss(u[:, 0], y)


class Norms(torch.nn.Module):
    """Layers with statistics, pools and attention, whose numbers float32 does not have."""

    def __init__(self):
        super().__init__()
        self.conv, self.norm = torch.nn.Conv1d(1, 6, 3, padding=1, bias=False), torch.nn.BatchNorm1d(
            6, eps=1e-4 / 3, momentum=0.1 / 7)
        self.line, self.top = torch.nn.LayerNorm(6, eps=1e-4 / 7), torch.nn.Linear(6, 1)

    def forward(self, x, y):
        x = torch.nn.functional.leaky_relu(self.norm(self.conv(x[:, None].repeat(1, 1, 3))), 1 / 7)
        x = self.line(torch.nn.functional.avg_pool1d(x, 3, padding=1).transpose(1, 2))
        x = torch.nn.functional.scaled_dot_product_attention(torch.nn.functional.elu(x, 0.5 / 3), x, x, scale=1 / 3)
        return torch.nn.functional.smooth_l1_loss(self.top(x.mean(1))[:, 0], y)


OPTIMIZERS = {"adam": lambda p: torch.optim.Adam(p, lr=1e-3), "adamw": lambda p: torch.optim.AdamW(p, lr=1e-3 / 3),
              "sgd": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True)}


@pytest.mark.parametrize("kind,name", [(Equation, "adam"), (Equation, "sgd"), (Norms, "adamw")])
def test_module(kind, name):
    torch.manual_seed(0)
    mine = kind().double()
    theirs = copy.deepcopy(mine)
    x, y = torch.randn(ROWS, 2, dtype=torch.float64), torch.randn(ROWS, dtype=torch.float64)
    # A running variance is unbiased by the size of whole batches.
    short = SHORT if kind is Equation else ROWS
    batches = [{"x": x[:rows], "y": y[:rows]} for rows in (ROWS, short, ROWS, ROWS)]
    found = set()
    optimizer = OPTIMIZERS[name](mine.parameters())
    step = mtc.torch.compile(mine, batches[0], optimizer=optimizer, batch_size=ROWS, shards=8, precision="f64",
                             verbose=0, devices="cpu:1")
    start = {n: np.asarray(v) for n, v in step.session.variables.items()}
    for devices in ("cpu:1", "cpu:2", "cpu:3", "cpu:8"):
        with step.plan.session(devices) as session:
            for n, value in start.items():
                session.variables[n] = value
            for batch in batches:
                session.train_step({n: a.numpy() for n, a in batch.items()})
            found.add(hashlib.sha256(b"".join(
                np.asarray(session.variables[n]).tobytes() for n in sorted(session.variables))).hexdigest())
    assert len(found) == 1
    other = OPTIMIZERS[name](theirs.parameters())
    for batch in batches:
        logs = step.train_on_batch(batch)
        other.zero_grad()
        loss = theirs(**batch)
        loss.backward()
        other.step()
        assert logs["loss"] == pytest.approx(loss.item(), rel=1e-12)
    step.to_module()
    for (n, a), b in zip(mine.state_dict().items(), theirs.state_dict().values()):
        assert a.dtype == b.dtype
        assert (a - b).abs().max() <= 1e-12 * max(b.abs().max(), 1e-3), n
    for parameter, same in zip(mine.parameters(), theirs.parameters()):
        for key, value in other.state[same].items():
            if isinstance(value, torch.Tensor) and value.ndim:
                assert optimizer.state[parameter][key].dtype == torch.float64
                assert (optimizer.state[parameter][key] - value).abs().max() <= 1e-12 * value.abs().max()


class Linear(torch.nn.Module):
    def __init__(self, function=lambda x: x):
        super().__init__()
        self.layer, self.function = torch.nn.Linear(2, 1), function

    def forward(self, x):
        return self.function(self.layer(x)).mean()


@pytest.mark.parametrize("module,words", [
    (Linear(), r"expected parameters and buffers of float64 .* call module.double\(\)"),
    (Linear(lambda x: torch.tanh(x.float()).double()).double(), "torch.float32 amid float64, which MTC would not"),
    (Linear(torch.special.erfcx).double(), "erfc and erfcx in float64"),
    (Linear(torch.lgamma).double(), "lgamma in float64: compile with --precision f32"),
])
def test_refused(module, words):
    with pytest.raises(ModelError, match=words):
        mtc.torch.compile(module, {"x": torch.randn(4, 2, dtype=torch.float64)},
                          optimizer=torch.optim.SGD(module.parameters(), lr=0.1), precision="f64", verbose=0)


def test_refused_step():
    def step(state, batch):
        return {"w": state["w"] - 0.1 * (batch["x"] @ state["w"]).mean()}, {"loss": (batch["x"] @ state["w"]).mean()}

    with pytest.raises(ModelError, match="expected a precision of float32 or 16 bits for a whole step of PyTorch"):
        mtc.torch.step(step, {"w": torch.randn(2)}, {"x": torch.randn(4, 2)}, precision="f64", verbose=0)
