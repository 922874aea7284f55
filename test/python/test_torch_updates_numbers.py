# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: updates whose numbers need more than 24 bits, and updates by eigenvectors and singular vectors."""

import numpy as np
import pytest
import torch
from test_torch_optimizers import are_alike, batches, torch_steps
from test_torch_updates_first import Plain
from torch import nn

import mtc
import mtc.torch

STEPS = 12


def net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 4, bias=False), nn.Tanh(), nn.Linear(4, 3, bias=False))


class Pulled(Plain):
    """Its first step asks for the sign of what is 0 but for a rounding."""

    def update(self, p, g, group, state):
        if not state:
            state.update(step=0, mean=torch.zeros_like(p))
        state["step"] += 1
        state["mean"].lerp_(p, weight=1 - 0.999)
        p.add_(torch.sign(p - state["mean"] / (1 - 0.999 ** state["step"])) + g, alpha=-group["lr"])


class Rectified(Plain):
    """Has the small difference of two large numbers."""

    def update(self, p, g, group, state):
        if not state:
            state.update(step=0)
        state["step"] += 1
        power = 0.9995 ** state["step"]
        length = 3999 - 2 * state["step"] * power / (1 - power)
        p.sub_(group["lr"] * (length - state["step"]) * g)


class Rooted(Plain):
    """Divides by a root of the sum of all squares of gradients, as Shampoo does."""

    def update(self, p, g, group, state):
        if not state:
            state.update(sum=0.1 * torch.eye(p.shape[0]))
        state["sum"].add_(g @ g.T)
        u, s, v = torch.linalg.svd(state["sum"], full_matrices=False)
        p.sub_(group["lr"] * (u * s.pow(-0.25)) @ v @ g)


class Turned(Plain):
    """Remembers eigenvectors, in whose axes it scales gradients, as SOAP does."""

    def update(self, p, g, group, state):
        if not state:
            state.update(sum=torch.diag(torch.arange(1.0, p.shape[0] + 1)), axes=torch.eye(p.shape[0]),
                         square=torch.ones_like(p))
        turned = state["axes"].T @ g
        state["square"].lerp_(turned.square(), 0.1)
        p.sub_(group["lr"] * state["axes"] @ (turned / state["square"].sqrt()))
        state["sum"].add_(g @ g.T)
        state["axes"] = torch.linalg.eigh(state["sum"])[1]


@pytest.mark.parametrize("made", [Pulled, Rectified, Rooted, Turned])
def test_updates_are_those_of_pytorch(made):
    module, twin = net(), net()
    found = set()
    for devices in ("cpu:1", "cpu:3"):
        module = net()
        step = mtc.torch.compile(module, batches(1)[0], loss=nn.functional.mse_loss, devices=devices, verbose=0,
                                 optimizer=made(list(module.parameters())), check=devices == "cpu:1")
        for batch in batches(STEPS):
            step.train_on_batch(batch)
        found.add(b"".join(np.asarray(v).tobytes() for v in step.session.variables.values()))
        step.to_module()
    torch_steps(twin, made(list(twin.parameters())), batches(STEPS))
    assert are_alike(module, twin, 2e-5 if made is Turned else 2e-6) and len(found) == 1
