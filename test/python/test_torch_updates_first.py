# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: optimizers whose first step is another one, that branch for each parameter, that compute in bfloat16."""

import numpy as np
import pytest
import torch
from test_torch_optimizers import are_alike, batches, compiled, net, torch_steps
from torch import nn

import mtc
import mtc.torch

BOUND = 2e-6


class Plain(torch.optim.Optimizer):
    """A loop over parameters, each with an `update`."""

    more = {}

    def __init__(self, params, lr=0.05):
        super().__init__(params, {"lr": lr, "eps": 1e-8, **self.more})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    self.update(p, p.grad, group, self.state[p])


class Scaled(Plain):
    """Begins by changing the parameter, and remembers a scale of it."""

    def update(self, p, g, group, state):
        if not state:
            if p.ndim > 1:
                p.sub_(p.mean(dim=1, keepdim=True))
            state["scale"] = p.abs().mean()
            if state["scale"] == 0.0:
                state["scale"] = torch.tensor(0.01)
        p.add_(g * state["scale"], alpha=-group["lr"])


class New(Plain):
    """Steps at once where there is no state, and limits a step by the one before after that."""

    def update(self, p, g, group, state):
        new = "last" not in state
        if new:
            state["last"] = torch.zeros((), dtype=g.dtype)
        size = g.norm()
        factor = 1.0 if new else (1.01 * state["last"] / size).clamp(max=1.0)
        state["last"].copy_(size * factor)
        p.sub_(group["lr"] * factor * g)


class Trusted(Plain):
    """Branches on a norm of each parameter, by tensors with one axis of one element too."""

    def update(self, p, g, group, state):
        weight, size = torch._foreach_norm([p, g])
        if weight.reshape(1) > 0:
            if size > 0:
                g = g * (weight / size)
        p.add_(g, alpha=-group["lr"])


class Global(Plain):
    """Branches on a norm of each parameter, and clips the norm of all of them."""

    @torch.no_grad()
    def step(self, closure=None):
        group = self.param_groups[0]
        total = torch.stack([p.grad.square().sum() for p in group["params"]]).sum().sqrt()
        factor = (10.0 / total).clamp(max=1.0)
        for p in group["params"]:
            g = p.grad * factor
            p.add_(g if g.norm() > 1 else 2 * g, alpha=-group["lr"])


class Similar(Plain):
    """PyTorch's functions that take an epsilon as a number."""

    more = {"fill": 0.5}

    def update(self, p, g, group, state):
        alike = torch.cosine_similarity(p.reshape(1, -1), g.reshape(1, -1), dim=1, eps=group["eps"])
        p.add_(torch.nan_to_num(g / alike.abs().clamp(min=0.1), nan=group["fill"]), alpha=-group["lr"])


class Short(Plain):
    """Computes in bfloat16, and remembers an average in it."""

    def update(self, p, g, group, state):
        if not state:
            state["average"] = torch.zeros_like(p, dtype=torch.bfloat16)
        state["average"].lerp_(g.bfloat16(), 0.5)
        p.add_((state["average"] * 1.1).float(), alpha=-group["lr"])


class Sized(Plain):
    """A state that begins with a whole number and becomes a tensor."""

    def update(self, p, g, group, state):
        if not state:
            state["size"] = 0
        state["size"] = (p.square().mean() + state["size"]).sqrt()
        p.sub_(group["lr"] * state["size"] * g)


class Late(Plain):
    """Makes a state in the third step."""

    def update(self, p, g, group, state):
        state["count"] = state.get("count", 0) + 1
        if state["count"] % 3 == 0:
            slow = state.setdefault("slow", p.clone())
            p.lerp_(slow, 0.5)
            slow.copy_(p)
        p.add_(g, alpha=-group["lr"])


class Nested(Plain):
    """Lists, tuples and dicts in the state, which the first step fills."""

    def update(self, p, g, group, state):
        if not state:
            state["averages"] = {beta: torch.zeros_like(p) for beta in (0.5, 0.9)}
            state["axes"] = []
        if not state["axes"]:
            state["axes"] = [{"size": n, "sum": torch.zeros(n)} for n in p.shape]
        for beta, average in state["averages"].items():
            average.lerp_(g, 1 - beta)
            p.add_(average, alpha=-group["lr"])
        for i, axis in enumerate(state["axes"]):
            axis["sum"] += g.abs().sum([j for j in range(g.ndim) if j != i])
            p.mul_(1 - 1e-3 * axis["sum"].mean() / axis["size"])


class Keyed(Plain):
    """A count in the state, under a key that is no parameter, one among the attributes, and a tensor there."""

    def __init__(self, params, lr=0.05):
        super().__init__(params, lr)
        self.steps, self.total = 0, torch.zeros(())

    @torch.no_grad()
    def step(self, closure=None):
        self.state["count"] = self.state.get("count") or 0
        self.state["count"] += 1
        self.steps += 1
        if self.steps >= 3:
            self.steps = 0
        for p in self.param_groups[0]["params"]:
            self.total += p.grad.square().sum()
            p.sub_(p.grad / (self.state["count"] + self.steps + self.total))


class Grown(Plain):
    """A distance that the third step begins to enlarge, a number of Python made of a tensor, and None before it."""

    more = {"distance": 1e-2, "largest": None}

    @torch.no_grad()
    def step(self, closure=None):
        group = self.param_groups[0]
        group["count"] = group.get("count", 0) + 1
        size = torch.stack([p.grad.square().sum() for p in group["params"]]).sum().sqrt()
        if group["count"] > 2:
            group["distance"] = max(group["distance"], min(float(size), 1.5 * group["distance"]))
        for p in group["params"]:
            p.sub_(group["distance"] * p.grad)
            if group["count"] > 1:
                p.mul_(1 - 1e-3 / group["largest"])
        group["largest"] = 1.0 + float(size)


class Picked(Plain):
    """Elements of a mask."""

    def update(self, p, g, group, state):
        mask = g.abs() > 0.1
        if mask.sum() > 0:
            g[mask] = g[mask].sign() * torch.sqrt(g[mask].abs() * 0.1)
        g[g < -0.2] = -0.2
        p.sub_(group["lr"] * g)


class Wrapper(torch.optim.Optimizer):
    """Calls another optimizer, and draws near to slow weights, which its constructor makes, at each third step."""

    def __init__(self, inner):
        self.inner = inner
        super().__init__(inner.param_groups, {})
        self.param_groups = inner.param_groups
        for group in inner.param_groups:
            group["turn"] = 0
            for p in group["params"]:
                self.state[p]["slow"] = p.detach().clone()

    @torch.no_grad()
    def step(self, closure=None):
        self.inner.step()
        for group in self.param_groups:
            group["turn"] = (group["turn"] + 1) % 3
            if group["turn"] == 0:
                slow = [self.state[p]["slow"] for p in group["params"]]
                torch._foreach_lerp_(group["params"], slow, 0.5)
                torch._foreach_copy_(slow, group["params"])


class Mode(Plain):
    """A word in the group that the third step changes."""

    more = {"mode": "fast"}

    def update(self, p, g, group, state):
        state["count"] = state.get("count", 0) + 1
        if state["count"] > 2:
            group["mode"] = "slow"
        p.sub_(group["lr"] * g * (0.1 if group["mode"] == "slow" else 1.0))


class Growing(Plain):
    """A list that every step makes longer."""

    def update(self, p, g, group, state):
        state["all"] = [*state.get("all", []), g.clone()]
        p.sub_(group["lr"] * sum(state["all"]))


class Again(torch.optim.Optimizer):
    """Calls an optimizer that evaluates the loss again."""

    def __init__(self, params):
        super().__init__(params, {})
        self.inner = torch.optim.LBFGS(self.param_groups[0]["params"])

    def step(self, closure=None):
        self.inner.step(closure)


class Noisy(Plain):
    """Starts from random numbers, those that PyTorch would draw next."""

    def update(self, p, g, group, state):
        if not state:
            state["noise"] = torch.empty_like(p).normal_(std=0.1)
        p.sub_(state["noise"] * g)


class Dithered(Plain):
    """Draws random numbers in each step."""

    def update(self, p, g, group, state):
        p.sub_(group["lr"] * g * torch.rand_like(p))


def lookahead(params):
    return Wrapper(torch.optim.AdamW(params, 0.05))


def twice(params):
    return Wrapper(Wrapper(torch.optim.SGD(params, 0.05, momentum=0.9)))


@pytest.mark.parametrize("made", [Scaled, New, Trusted, Similar, Sized, Late, Nested, Keyed, Grown, Picked, Noisy,
                                  lookahead, twice])
def test_updates_are_those_of_pytorch(made):
    module, twin = net(), net()
    optimizer, theirs = made(list(module.parameters())), made(list(twin.parameters()))
    step = mtc.torch.compile(module, batches(1)[0], loss=nn.functional.mse_loss, optimizer=optimizer, verbose=0)
    for batch in batches(6):
        step.train_on_batch(batch)
    step.to_module()
    torch_steps(twin, theirs, batches(6))
    assert are_alike(module, twin, BOUND)
    for mine, other in zip(module.parameters(), twin.parameters()):
        for value, wanted in zip(tensors_of(optimizer.state[mine]), tensors_of(theirs.state[other]), strict=True):
            np.testing.assert_allclose(np.asarray(value), np.asarray(wanted), rtol=1e-5, atol=1e-7)
    torch_steps(module, optimizer, batches(2))  # PyTorch goes on from the state
    torch_steps(twin, theirs, batches(2))
    assert are_alike(module, twin, 2 * BOUND)


def test_a_wrapper_has_the_same_bits_on_any_number_of_devices():
    found = set()
    for devices in ("cpu:1", "cpu:3"):
        module = net()
        step = mtc.torch.compile(module, batches(1, 16)[0], loss=nn.functional.mse_loss, check=False, verbose=0,
                                 optimizer=lookahead(list(module.parameters())), devices=devices)
        for batch in [*batches(4, 16), *batches(1, 7)]:
            step.train_on_batch(batch)
        found.add(b"".join(np.asarray(v).tobytes() for v in step.session.variables.values()))
    assert len(found) == 1


def tensors_of(state):
    return [value for value in torch.utils._pytree.tree_leaves(state) if isinstance(value, (torch.Tensor, float, int))]


def deep():
    torch.manual_seed(4)
    return nn.Sequential(*(layer for _ in range(5) for layer in (nn.Linear(6, 6), nn.Tanh())))


def test_each_parameter_may_branch_by_itself():
    """Ten parameters, two branches each."""
    module, twin = deep(), deep()
    for m in (module, twin):
        nn.init.zeros_(m[4].bias)
    optimizer, theirs = Trusted(module.parameters()), Trusted(twin.parameters())
    data = [(torch.randn(8, 6), torch.randn(8, 6)) for _ in range(4)]
    step = mtc.torch.compile(module, data[0], loss=nn.functional.mse_loss, optimizer=optimizer, verbose=0)
    for batch in data:
        step.train_on_batch(batch)
    torch_steps(twin, theirs, data)
    assert are_alike(step.to_module(), twin, BOUND)


def test_branches_on_parameters_that_depend_on_each_other_are_refused():
    module = deep()
    with pytest.raises(mtc.ModelError, match="Global: .*more than 6 branches"):
        mtc.torch.compile(module, (torch.randn(8, 6), torch.randn(8, 6)), loss=nn.functional.mse_loss,
                          optimizer=Global(module.parameters()), verbose=0)


def test_a_step_in_bfloat16_is_computed_in_float32_and_passes_the_check():
    module, twin = net(), net()
    step = mtc.torch.compile(module, batches(1)[0], loss=nn.functional.mse_loss,
                             optimizer=Short(module.parameters()), verbose=0)
    theirs = Short(twin.parameters())
    for batch in batches(4):
        step.train_on_batch(batch)
    torch_steps(twin, theirs, batches(4))
    assert are_alike(step.to_module(), twin, 1e-2)


@pytest.mark.parametrize("made, words", [
    (Dithered, "random numbers in an update"),
    (Mode, "expected a step that changes numbers and tensors alone, found that it changes mode, str"),
    (Growing, "expected a state of one structure in all steps, found all of 0.weight, which grows"),
    (Again, "found LBFGS, which evaluates the loss again in a step")])
def test_optimizers_that_are_refused(made, words):
    module = net()
    with pytest.raises(mtc.ModelError, match=words):
        compiled(module, made(list(module.parameters())))
