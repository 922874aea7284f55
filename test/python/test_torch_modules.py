# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: modules as users write them, each compared with PyTorch by the check."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import mtc
import mtc.torch

torch.set_num_threads(1)


def compare(module, batch, **options):
    """A step of the module, which the check has compared with PyTorch."""
    optimizer = torch.optim.SGD([p for p in module.parameters() if p.requires_grad], 0.1)
    return mtc.torch.compile(module, batch, optimizer=optimizer, verbose=0, devices="cpu:1", **options)


class Of(nn.Module):
    """A loss of a function of two layers' results."""

    def __init__(self, function):
        super().__init__()
        self.a, self.b, self.function = nn.Linear(6, 5), nn.Linear(6, 5), function

    def forward(self, x):
        return torch.tanh(self.function(torch.tanh(self.a(x)), self.b(x))).square().mean()


def detached_and_added(a, b):
    y = a.detach()
    y += b
    return y


def without_gradients_and_written(a, b):
    with torch.no_grad():
        y = a * 2
    y[:, 1:3] = b[:, 1:3]
    return y.view(-1, 5).mul_(b)


@pytest.mark.parametrize("function", [detached_and_added, without_gradients_and_written])
def test_what_is_written_to_a_detached_tensor_has_its_gradient(function):
    torch.manual_seed(1)
    compare(Of(function), {"x": torch.randn(4, 6)}).close()


class Listed(nn.Module):
    """Reads its parameters from a list, as pykan does."""

    def __init__(self, learned):
        super().__init__()
        self.layer = nn.Linear(3, 4)
        self.scale = nn.Parameter(torch.rand(4) + 0.5, requires_grad=learned)
        self.register_buffer("shift", torch.rand(4))
        self.parts = [self.scale, self.shift]

    def forward(self, x):
        return (self.layer(x) * self.parts[0] + self.parts[1] + self.scale).square().mean()


@pytest.mark.parametrize("learned", [True, False])
def test_parameters_in_a_list_are_variables(learned):
    torch.manual_seed(1)
    module, batch = Listed(learned), {"x": torch.randn(4, 3)}
    step = compare(module, batch)
    assert "scale" in [variable.name for variable in step.plan.variables]
    with torch.no_grad():
        module.scale.mul_(2)
        wanted = float(module(**batch))
    step.from_module()
    assert step.train_on_batch(batch)["loss"] == pytest.approx(wanted, rel=1e-5)
    step.close()


class Aligned(nn.Module):
    """Its log probabilities are no log_softmax, behind which alone PyTorch's gradient is the derivative."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 5)

    def forward(self, x, labels, steps):
        return F.ctc_loss(-self.layer(x).abs().transpose(0, 1), labels, steps, torch.full_like(steps, 2))


def test_ctc_loss_of_other_numbers_than_log_probabilities():
    torch.manual_seed(1)
    batch = {"x": torch.randn(4, 7, 3), "labels": torch.randint(1, 5, (4, 2)), "steps": torch.tensor([7, 6, 5, 4])}
    compare(Aligned(), batch).close()
