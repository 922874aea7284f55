# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: optimizers are traced. Each of PyTorch's, groups of parameters, schedulers, and the test's own ones."""

import math
import warnings

import numpy as np
import pytest
import torch
from test_torch_optimizers import are_alike, batches, compiled, net, torch_steps
from torch import nn
from torch.optim import lr_scheduler as schedulers

import mtc
import mtc.torch

STEPS = 20
BOUND = 2e-6


def groups(module, **second):
    """The weights, and the biases with other hyper-parameters."""
    named = list(module.named_parameters())
    return [{"params": [p for n, p in named if n.endswith("weight")]},
            {"params": [p for n, p in named if n.endswith("bias")], **second}]


OPTIMIZERS = {
    "sgd": lambda m: torch.optim.SGD(groups(m, lr=0.01, momentum=0.5, weight_decay=0.2), 0.05, momentum=0.9,
                                     weight_decay=0.1),
    "dampening": lambda m: torch.optim.SGD(groups(m, lr=0.01), 0.05, momentum=0.9, dampening=0.3),
    "nesterov": lambda m: torch.optim.SGD(groups(m, lr=0.01), 0.05, momentum=0.9, nesterov=True, maximize=True),
    "adam": lambda m: torch.optim.Adam(groups(m, betas=(0.8, 0.99)), 0.01, weight_decay=0.1, amsgrad=True),
    "adamw": lambda m: torch.optim.AdamW(groups(m, weight_decay=0.0, lr=0.03), 0.01, weight_decay=0.1),
    "nadam": lambda m: torch.optim.NAdam(groups(m, lr=0.03), 0.01, weight_decay=0.1),
    "radam": lambda m: torch.optim.RAdam(groups(m, lr=0.03), 0.01, weight_decay=0.1, decoupled_weight_decay=True),
    "adamax": lambda m: torch.optim.Adamax(groups(m, lr=0.03), 0.01, weight_decay=0.1),
    "adagrad": lambda m: torch.optim.Adagrad(groups(m, lr=0.03), 0.05, lr_decay=0.1, initial_accumulator_value=0.1),
    "adadelta": lambda m: torch.optim.Adadelta(groups(m, rho=0.5), 0.5, weight_decay=0.1),
    "rmsprop": lambda m: torch.optim.RMSprop(groups(m, lr=0.003), 0.01, momentum=0.9, centered=True),
    "asgd": lambda m: torch.optim.ASGD(groups(m, lr=0.03), 0.01, t0=5),
    "rprop": lambda m: torch.optim.Rprop(groups(m, lr=0.003), 0.01),
    "adafactor": lambda m: torch.optim.Adafactor(groups(m, lr=0.03), 0.05, weight_decay=0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_updates_are_those_of_pytorch(name):
    module, twin = net(), net()
    optimizer, theirs = OPTIMIZERS[name](module), OPTIMIZERS[name](twin)
    step = compiled(module, optimizer)
    data = batches(STEPS)
    for batch in data[:-2]:
        step.train_on_batch(batch)
    step.to_module()
    torch_steps(twin, theirs, data[:-2])
    assert are_alike(module, twin, BOUND)
    for mine, other in zip(optimizer.state.values(), theirs.state.values(), strict=True):
        for key, value in other.items():
            if value is not None:
                np.testing.assert_allclose(np.asarray(mine[key]), np.asarray(value), rtol=2e-4, atol=2e-6, err_msg=key)
    torch_steps(module, optimizer, data[-2:])  # PyTorch goes on from the state
    torch_steps(twin, theirs, data[-2:])
    assert are_alike(module, twin, 2 * BOUND)
    step.from_module()  # and MTC from PyTorch's
    step.train_on_batch(data[0])
    torch_steps(twin, theirs, data[:1])
    assert are_alike(step.to_module(), twin, 2 * BOUND)


def matrices(width=5):
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, width, bias=False), nn.Tanh(), nn.Linear(width, 3, bias=False))


@pytest.mark.parametrize("given", [{}, {"ns_steps": 6}, {"adjust_lr_fn": "spectral_unclamped"}, {"nesterov": False}])
def test_what_muon_computes_in_bf16_is_rounded_as_in_pytorch(given):
    module, twin = matrices(), matrices()
    step = compiled(module, torch.optim.Muon(module.parameters(), lr=0.01, **given))
    for batch in batches(STEPS):
        step.train_on_batch(batch)
    torch_steps(twin, torch.optim.Muon(twin.parameters(), lr=0.01, **given), batches(STEPS))
    assert are_alike(step.to_module(), twin, BOUND)


class Halves(torch.optim.Optimizer):
    """Its momentum has 16 bits."""

    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                if not state:
                    state["momentum"] = torch.zeros_like(p, dtype=torch.bfloat16)
                state["momentum"].mul_(0.9).add_(p.grad.bfloat16(), alpha=group["lr"])
                p.sub_(state["momentum"].float().tanh())


def test_a_state_of_16_bits_is_rounded_in_each_step():
    module, twin = matrices(128), matrices(128)  # the rest of a vector of elements is rounded twice in PyTorch
    step = compiled(module, Halves(module.parameters(), 0.1))
    for batch in batches(STEPS):
        step.train_on_batch(batch)
    torch_steps(twin, Halves(twin.parameters(), 0.1), batches(STEPS))
    assert are_alike(step.to_module(), twin, BOUND)


@pytest.mark.parametrize("name", ["adamw", "adafactor", "sgd"])
def test_bits_do_not_depend_on_devices(name):
    found = set()
    for devices in ("cpu:1", "cpu:2", "cpu:3", "cpu:8", "cpu:1x2"):
        module = net()
        step = mtc.torch.compile(module, batches(1, 16)[0], loss=nn.functional.mse_loss, check=False, verbose=0,
                                 optimizer=OPTIMIZERS[name](module), devices=devices, clip_norm=0.1)
        for batch in [*batches(3, 16), *batches(1, 7)]:
            step.train_on_batch(batch)
        found.add(b"".join(np.asarray(v).tobytes() for v in step.session.variables.values()))
    assert len(found) == 1


SCHEDULERS = {
    "one cycle": lambda o: schedulers.OneCycleLR(o, [0.1, 0.02], total_steps=STEPS + 1),
    "cyclic": lambda o: schedulers.CyclicLR(o, 0.01, 0.1, 3),
    "rates": lambda o: schedulers.LambdaLR(o, [lambda n: 1.0, lambda n: 0.9 ** n]),
    "warm up": lambda o: schedulers.LambdaLR(o, lambda n: min(n / 5, 1)),
    "plateau": lambda o: schedulers.StepLR(o, 3, 0.5),
}


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("kind", ["sgd", "adamw"])
@pytest.mark.parametrize("early", [True, False], ids=["before compile", "after compile"])
def test_schedulers_change_each_group(name, kind, early):
    """The momentum and the betas too."""
    module, twin = net(), net()
    optimizer, theirs = OPTIMIZERS[kind](module), OPTIMIZERS[kind](twin)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scheduler = SCHEDULERS[name](optimizer) if early else None
        step = compiled(module, optimizer)
        scheduler, twins = scheduler or SCHEDULERS[name](optimizer), SCHEDULERS[name](theirs)
        for batch in batches(STEPS):
            step.train_on_batch(batch)
            scheduler.step()
        torch_steps(twin, theirs, batches(STEPS), scheduler=twins)
    assert are_alike(step.to_module(), twin, BOUND)


def test_a_number_that_a_caller_changes_is_followed_where_no_branch_depends_on_it():
    module, twin = net(), net()
    optimizer, theirs = OPTIMIZERS["adamw"](module), OPTIMIZERS["adamw"](twin)
    step = compiled(module, optimizer)
    data = batches(6)
    for count, batch in enumerate(data):
        for each in (optimizer, theirs):
            each.param_groups[0].update(weight_decay=0.1 / (1 + count), betas=(0.9, 0.999 - 0.01 * count))
        step.train_on_batch(batch)
        torch_steps(twin, theirs, [batch])
    assert are_alike(step.to_module(), twin, BOUND)
    optimizer.param_groups[0]["weight_decay"] = 0.0  # then PyTorch does not decay at all
    with pytest.raises(mtc.ModelError, match="expected weight_decay=0.1 in group 0 of AdamW, on which a branch"):
        step.train_on_batch(data[0])


class Invented(torch.optim.Optimizer):
    """Of this test alone: a norm of each row, a count in the group, a branch on it, and math on numbers."""

    def __init__(self, params, lr=0.01, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            group["count"] = group.get("count", 0) + 1
            bias = math.sqrt(1 - group["beta"] ** group["count"])
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["slow"] = p.clone()
                    state["average"] = torch.zeros_like(p)
                state["average"].mul_(group["beta"]).add_(p.grad, alpha=1 - group["beta"])
                size = p.grad.norm() if p.ndim == 1 else p.grad.norm(dim=1, keepdim=True)
                p.addcdiv_(state["average"], size + 0.1, value=-group["lr"] / bias)
                if group["count"] % 3 == 0:
                    state["slow"].lerp_(p, 0.5)
                    p.copy_(state["slow"])


def test_an_optimizer_of_the_users_own():
    module, twin = net(), net()
    optimizer, theirs = (Invented(groups(m, lr=0.03)) for m in (module, twin))
    step = mtc.torch.compile(module, batches(1)[0], loss=nn.functional.mse_loss, optimizer=optimizer, verbose=0)
    for batch in batches(8):
        step.train_on_batch(batch)
    torch_steps(twin, theirs, batches(8))
    assert are_alike(step.to_module(), twin, BOUND)
    assert [g["count"] for g in optimizer.param_groups] == [8, 8]


class Reads(torch.optim.Optimizer):
    """Makes a number of what a step computes."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    @torch.no_grad()
    def step(self, closure=None):
        for p in self.param_groups[0]["params"]:
            p.sub_(p.grad * int(float(p.grad.abs().max())))


class Twice(torch.optim.Optimizer):
    """Evaluates the loss again."""

    def __init__(self, params):
        super().__init__(params, {"lr": 0.1})

    def step(self, closure):
        return closure()


@pytest.mark.parametrize("make, words", [
    (torch.optim.LBFGS, "evaluates the loss again"), (torch.optim.SparseAdam, "SparseAdam: .*dense gradients"),
    (Reads, r"test_torch_updates.py:\d+: Reads: .*a number of Python made of what it computes"),
    (Twice, "Twice, which evaluates the loss again"), (lambda p: object(), "expected an optimizer of torch.optim"),
], ids=["lbfgs", "sparse", "number", "closure", "object"])
def test_optimizers_that_are_refused(make, words):
    module = net()
    with pytest.raises(mtc.ModelError, match=words):
        compiled(module, make(list(module.parameters())))


def test_parameters_outside_of_the_optimizer_stay():
    module, twin = net(), net()
    optimizer, theirs = (torch.optim.AdamW(m[2].parameters(), 0.01) for m in (module, twin))
    step = compiled(module, optimizer)
    for batch in batches(4):
        step.train_on_batch(batch)
    torch_steps(twin, theirs, batches(4))
    assert are_alike(step.to_module(), twin)
    assert torch.equal(module[0].weight, net()[0].weight)


def test_a_fault_in_an_update_is_found(monkeypatch):
    """A planted one: the second expression of hyper-parameters is another one."""
    from mtc.torch import _update
    right = _update.evaluate
    monkeypatch.setattr(_update, "evaluate", lambda tree, hypers: right(tree, hypers) * (
        1.01 if tree == "group0/betas.1" else 1))
    module = net()
    with pytest.raises(mtc.ModelError, match="what AdamW of PyTorch makes of the same gradients"):
        mtc.torch.compile(module, batches(1)[0], loss=nn.functional.mse_loss, optimizer=OPTIMIZERS["adamw"](module),
                          verbose=0)
