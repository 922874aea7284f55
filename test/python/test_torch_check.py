# SPDX-License-Identifier: Apache-2.0
"""The check of mtc.torch: what it finds, and what it allows."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import mtc
import mtc.torch


def checked(module, arrays, ours):
    """What the check says of such a result for a module that returns its loss."""
    from mtc.torch import _check, _export

    step = _export.TracedStep(module, None, _export.Example({"x": arrays[0]}, module, None))
    return _check.run("net", step, arrays, step.parameters_by_name(), ours(_check, step), 1e-4)


class Threshold(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.shift = nn.Parameter(torch.full((1,), 2.0**-24 - 1))

    def forward(self, x):
        return {"loss": (functional.relu(x * self.scale + self.shift) - 1).square().mean()}


def test_check_allows_what_roundings_change():
    """The argument of this ReLU is 2^-24: after a rounding it may be 0, and then all gradients are."""
    zero = np.zeros(1, "f4")
    said = checked(Threshold(), [torch.ones(4, 1)],
                   lambda check, _step: check.Result(1.0, {"scale": zero, "shift": zero}, {}))
    assert "but for 2 that differ as much from roundings" in said


def test_check_finds_a_wrong_gradient():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.Linear(5, 7), nn.ReLU(), nn.Linear(7, 1))

        def forward(self, x):
            return {"loss": self.layers(x).square().mean()}

    def wrong(check, step):
        result = check.reference(step, arrays, step.parameters_by_name(), double=False)
        result.gradients["layers.0.weight"] *= 1.001
        return result

    torch.manual_seed(3)
    arrays = [torch.randn(6, 5)]
    with pytest.raises(mtc.ModelError, match="found 1 of 5 tensors that differ by more:\n  the gradient of layers.0.w"):
        checked(Net(), arrays, wrong)
