# SPDX-License-Identifier: Apache-2.0
"""Whole steps of PyTorch: gradients by torch.func, updates by hand."""

import hashlib

import mtc.torch
import numpy as np
import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, vjp, vmap

F = nn.functional


def mlp(*sizes, last=None):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.Tanh()]
    return nn.Sequential(*layers[:-1], *([last] if last else []))


def weights(module):
    return {name: p.detach().clone() for name, p in module.named_parameters()}


def sgd(params, gradients, rate=0.05):
    return {name: p - rate * gradients[name] for name, p in params.items()}


def adam_state(params):
    return {"m": {n: torch.zeros_like(p) for n, p in params.items()},
            "v": {n: torch.zeros_like(p) for n, p in params.items()}, "t": 0}


def adam(params, gradients, state, rate=1e-2):
    t = state["t"] + 1
    m = {n: 0.9 * state["m"][n] + 0.1 * g for n, g in gradients.items()}
    v = {n: 0.99 * state["v"][n] + 0.01 * g * g for n, g in gradients.items()}
    new = {n: p - rate * (m[n] / (1 - 0.9 ** t)) / ((v[n] / (1 - 0.99 ** t)).sqrt() + 1e-8)
           for n, p in params.items()}
    return new, {"m": m, "v": v, "t": t}


def convnet_of():
    """Batch normalization whose running statistics are a part of the state, Adam, an average of the weights."""
    net = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Flatten(), nn.Linear(4 * 9, 5))
    params, buffers = weights(net), {n: b.clone() for n, b in net.named_buffers()}

    def step(state, batch):
        def loss_of(params):
            buffers = {n: b.clone() for n, b in state["buffers"].items()}
            out = functional_call(net, (params, buffers), (batch["image"],))
            right = (out.argmax(1) == batch["label"]).float().mean()
            return F.cross_entropy(out, batch["label"]), (buffers, right)
        gradients, (loss, (buffers, right)) = grad_and_value(loss_of, has_aux=True)(state["params"])
        params, opt = adam(state["params"], gradients, state["opt"])
        average = {n: 0.9 * a + 0.1 * params[n] for n, a in state["average"].items()}
        return ({"params": params, "buffers": buffers, "opt": opt, "average": average},
                {"loss": loss, "accuracy": right})
    return step, {"params": params, "buffers": buffers, "opt": adam_state(params), "average": params}, {
        "image": torch.randn(16, 1, 6, 6), "label": torch.randint(0, 5, (16,))}


def gan_of():
    """Two networks, a gradient penalty at data, two updates."""
    generator, critic = mlp(4, 8, 6), mlp(6, 8, 1)

    def step(state, batch):
        g, d = state
        real, noise, share = batch

        def critic_loss(d):
            fake = functional_call(generator, g, (noise,))
            between = share * real + (1 - share) * fake
            slope = grad(lambda x: functional_call(critic, d, (x,)).sum())(between)
            penalty = ((slope.square().sum(1) + 1e-6).sqrt() - 1).square().mean()
            return (functional_call(critic, d, (fake,)) - functional_call(critic, d, (real,))).mean() + penalty

        gradients, loss = grad_and_value(critic_loss)(d)
        d = sgd(d, gradients)
        gradients, other = grad_and_value(
            lambda g: -functional_call(critic, d, (functional_call(generator, g, (noise,)),)).mean())(g)
        return (sgd(g, gradients), d), {"loss": loss, "generator": other}
    return step, (weights(generator), weights(critic)), (torch.randn(16, 6), torch.randn(16, 4), torch.rand(16, 1))


def maml_of():
    """A derivative of a step along a derivative."""
    net = mlp(3, 8, 1)

    def step(state, batch):
        x, y = batch

        def loss_of(params, x, y):
            return (functional_call(net, params, (x,)) - y).square().mean()

        def outer(params):
            inner = sgd(params, grad(loss_of)(params, x[:, :3], y[:, :1]), 0.1)
            return loss_of(inner, x[:, 3:], y[:, 1:])
        gradients, loss = grad_and_value(outer)(state)
        return sgd(state, gradients), loss
    return step, weights(net), (torch.randn(16, 6), torch.randn(16, 2))


def dqn_of():
    """A target network that follows, a Huber loss of picked actions."""
    net = mlp(4, 8, 3)

    def step(state, batch):
        after = functional_call(net, state["target"], (batch["after"],)).max(1).values
        wanted = (batch["reward"] + 0.9 * (1 - batch["done"].float()) * after).detach()

        def loss_of(params):
            values = functional_call(net, params, (batch["before"],))
            return F.smooth_l1_loss(values.gather(1, batch["action"][:, None])[:, 0], wanted)
        gradients, loss = grad_and_value(loss_of)(state["params"])
        params = sgd(state["params"], gradients)
        target = {n: 0.95 * t + 0.05 * params[n] for n, t in state["target"].items()}
        return {"params": params, "target": target, "steps": state["steps"] + 1}, {"loss": loss}
    start = weights(net)
    return step, {"params": start, "target": start, "steps": 0}, {
        "before": torch.randn(16, 4), "after": torch.randn(16, 4), "action": torch.randint(0, 3, (16,)),
        "reward": torch.randn(16), "done": torch.rand(16) < 0.3}


def distillation_of():
    """A teacher that is a constant, clipping by the norm of all gradients."""
    teacher, student = mlp(5, 12, 4), mlp(5, 6, 4)

    def step(state, batch):
        with torch.no_grad():
            soft = F.softmax(teacher(batch["x"]) / 2, -1)

        def loss_of(params):
            out = functional_call(student, params, (batch["x"],))
            return F.cross_entropy(out, batch["y"]) + F.kl_div(F.log_softmax(out / 2, -1), soft, reduction="batchmean")
        gradients, loss = grad_and_value(loss_of)(state)
        norm = torch.stack([g.square().sum() for g in gradients.values()]).sum().sqrt()
        share = torch.clamp(0.5 / (norm + 1e-6), max=1.0)
        return sgd(state, {n: g * share for n, g in gradients.items()}), {"loss": loss, "norm": norm}
    for parameter in teacher.parameters():
        parameter.requires_grad_(False)
    return step, weights(student), {"x": torch.randn(16, 5), "y": torch.randint(0, 4, (16,))}


def each_sample_of():
    """Gradients of each sample, clipped by their norms."""
    net = mlp(3, 6, 1)

    def step(state, batch):
        gradients = vmap(grad(lambda p, x, y: (functional_call(net, p, (x,))[0] - y).square()), (None, 0, 0))(
            state, batch["x"], batch["y"])
        norm = sum(g.flatten(1).square().sum(1) for g in gradients.values()).sqrt()
        share = 1 / torch.clamp(norm, min=1.0)
        mean = {n: (g * share.reshape(-1, *[1] * (g.ndim - 1))).mean(0) for n, g in gradients.items()}
        return sgd(state, mean), {"norm": norm.mean()}
    return step, weights(net), {"x": torch.randn(16, 3), "y": torch.randn(16)}


def laplacian_of():
    """The residual of a differential equation: hessian and jacrev at each sample."""
    net = mlp(2, 6, 1)

    def step(state, batch):
        def residual(params, x):
            def u(x):
                return functional_call(net, params, (x,))[0]
            return torch.diagonal(hessian(u)(x)).sum() + jacrev(u)(x).sum()
        gradients, loss = grad_and_value(
            lambda p: (vmap(residual, (None, 0))(p, batch["x"]) - batch["y"]).square().mean())(state)
        return sgd(state, gradients, 1e-3), loss
    return step, weights(net), {"x": torch.randn(16, 2), "y": torch.randn(16)}


def along_of():
    """Derivatives along a direction: a product with the matrix of second derivatives, and one with a Jacobian."""
    net = mlp(3, 6, 2)

    def step(state, batch):
        def loss_of(params):
            out, pull = vjp(lambda x: functional_call(net, params, (x,)), batch["x"])
            _, push = jvp(lambda x: functional_call(net, params, (x,)), (batch["x"],), (batch["along"],))
            return (out - batch["y"]).square().mean() + pull(torch.ones_like(out))[0].square().mean() + push.mean()
        gradients, loss = grad_and_value(loss_of)(state)
        _, curved = jvp(grad(loss_of), (state,), (gradients,))
        return {n: p - 0.01 * gradients[n] + 0.001 * curved[n] for n, p in state.items()}, loss
    return step, weights(net), {"x": torch.randn(16, 3), "along": torch.randn(16, 3), "y": torch.randn(16, 2)}


STEPS = {f.__name__.removesuffix("_of"): f for f in (convnet_of, gan_of, maml_of, dqn_of, distillation_of,
                                                          each_sample_of, laplacian_of, along_of)}


def leaves(tree):
    return [np.asarray(leaf) for leaf in torch.utils._pytree.tree_leaves(tree)]


@pytest.mark.parametrize("name", STEPS)
def test_as_in_pytorch(name):
    torch.manual_seed(0)
    function, state, example = STEPS[name]()
    rows = torch.utils._pytree.tree_leaves(example)[0].shape[0]
    hashes = set()
    for devices in ("cpu:1", "cpu:3"):
        step = mtc.torch.step(function, state, example, devices=devices, check=devices == "cpu:1", verbose=0)
        mine, theirs = state, state
        for i in range(6):
            batch = torch.utils._pytree.tree_map(lambda a: a.roll(i, 0)[:rows - 5 * (i % 2)], example)
            mine, found = step(mine, batch)
            theirs, wanted = function(theirs, batch)
            for a, b in zip(leaves(found), leaves(wanted)):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)
        for a, b in zip(leaves(mine), leaves(theirs)):
            assert a.shape == b.shape and a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-5)
        hashes.add(hashlib.sha256(b"".join(a.tobytes() for a in leaves(mine))).hexdigest())
        step.close()
    assert len(hashes) == 1


def test_state_that_changes_in_place():
    def function(state, batch):
        gradients, loss = grad_and_value(lambda w: (batch @ w).square().mean())(state["w"])
        state["m"].mul_(0.9).add_(gradients)
        state["count"] += 1
        return {"w": state["w"] - 0.1 * state["m"], "m": state["m"], "count": state["count"]}, loss
    batch = torch.randn(8, 3)
    state = {"w": torch.ones(3), "m": torch.zeros(3), "count": torch.tensor(0)}
    with mtc.torch.step(function, state, batch, verbose=0) as step:
        mine, theirs = state, {n: a.clone() for n, a in state.items()}
        for _ in range(3):
            mine, _ = step(mine, batch)
            theirs, _ = function(theirs, batch)
        assert int(mine["count"]) == 3 and mine["count"].dtype == np.int64
        np.testing.assert_allclose(np.asarray(mine["m"]), theirs["m"].numpy(), rtol=1e-5)


def test_arrays_of_a_tuple_are_called_x_and_y():
    """As those of mtc.jax.step."""
    with mtc.torch.step(lambda s, b: ({"w": s["w"] + (b[0] * b[1]).mean(0)}, b[0].mean()), {"w": torch.ones(3)},
                        (torch.randn(4, 3), torch.randn(4, 3)), verbose=0) as step:
        assert {t.name for t in step.plan.signature()} >= {"x", "y"}


def test_statistics_that_are_no_state_are_refused():
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))

    def function(state, batch):
        gradients, loss = grad_and_value(lambda p: functional_call(net, p, (batch,)).square().mean())(state)
        return sgd(state, gradients), loss
    with pytest.raises(mtc.ModelError, match="it changes a tensor that is no part of its state"):
        mtc.torch.step(function, weights(net), torch.randn(8, 3), verbose=0)


def test_dropout_draws_numbers_of_mtc():
    net = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 1))

    def function(state, batch):
        gradients, loss = grad_and_value(lambda p: functional_call(net, p, (batch,)).square().mean())(state)
        return sgd(state, gradients), loss
    state, batch = weights(net), torch.randn(8, 4)
    losses = []
    for devices in ("cpu:1", "cpu:2"):
        with mtc.torch.step(function, state, batch, devices=devices, verbose=0) as step:
            after, first = step(state, batch)
            losses.append((first, step(after, batch)[1]))
            assert step(state, batch)[1] != first  # other numbers in each step
    assert losses[0] == losses[1]


def test_state_stays_on_the_devices(tmp_path):
    torch.manual_seed(0)
    function, state, example = dqn_of()
    step = mtc.torch.step(function, state, example, verbose=0, predict=lambda state, batch: functional_call(
        mlp(4, 8, 3), state["params"], (batch["before"],)))
    first, _ = step(state, example)
    kernel = first["params"]["0.weight"]
    assert isinstance(kernel, mtc.torch.DeviceArray) and kernel.shape == (8, 4) and int(first["steps"]) == 1
    assert torch.equal(torch.relu(kernel), kernel.tensor().relu()) and kernel.mean().ndim == 0
    step.save(tmp_path / "state.safetensors")
    second, metrics = step(first, example)
    with pytest.raises(mtc.DataError, match="expected a state of the last call, found an older one"):
        np.asarray(first["params"]["2.weight"])
    resumed, again = step(step.load(tmp_path / "state.safetensors"), example)
    assert again == metrics
    assert step.predict({**dict.fromkeys(example), "before": example["before"]}).shape == (16, 3)
    with pytest.raises(mtc.DataError, match="expected a batch of the structure"):
        step(resumed, {"before": example["before"]})
    with pytest.raises(mtc.DataError, match=r"params/0.weight: expected the shape \[8, 4\], found \[8, 5\]"):
        step({**state, "params": {**state["params"], "0.weight": torch.zeros(8, 5)}}, example)


def linear(state, batch, change=lambda x: x):
    gradients, loss = grad_and_value(lambda s: (change(batch["x"]) @ s["w"]).square().mean())({"w": state["w"]})
    return {**state, "w": state["w"] - gradients["w"]}, loss


@pytest.mark.parametrize("function, words", [
    (lambda s, b: linear(s, b, lambda x: x.roll(1, 0)), "roll"),
    (lambda s, b: linear(s, b, lambda x: x.flip(0)), "flip"),
    (lambda s, b: linear(s, b, lambda x: x.sort(0).values), "sort"),
    (lambda s, b: linear(s, b, lambda x: x @ x.T @ x), "sample"),
    (lambda s, b: linear(s, b, lambda x: x if float(x.sum()) > 0 else -x), "looks at the data"),
    (lambda s, b: linear(s, b)[1], "expected a function that gives .state, metrics., found a tensor"),
    (lambda s, b: ({"w": s["w"], "v": s["w"]}, 0.0), "expected a new state of the structure"),
    (lambda s, b: ({"w": s["w"].sum()}, 0.0),
     r"test_torch_steps.py:\d+: .*w: expected a new state of torch.float32 \[3\], found torch.float32"),
    (lambda s, b: ({"w": b["x"]}, 0.0), r"test_torch_steps.py:\d+: .*w: expected .*; it has the samples of a batch"),
    (lambda s, b: (s, b["x"].mean()), "expected a step that changes its state"),
    (lambda s, b: (linear(s, b)[0], b["x"].sum(1)), "expected metrics that are numbers, found a tensor"),
])
def test_refused(function, words):
    with pytest.raises(mtc.ModelError, match=words):
        mtc.torch.step(function, {"w": torch.ones(3)}, {"x": torch.randn(4, 3)}, verbose=0)


def test_a_step_that_counts_in_python_is_refused():
    calls = []

    def function(state, batch):
        calls.append(len(calls))
        return {"w": state["w"] - batch["x"].mean(0) * len(calls)}, batch["x"].mean()
    with pytest.raises(mtc.ModelError, match=r"test_torch_steps.py:\d+: function: expected a step that computes"):
        mtc.torch.step(function, {"w": torch.ones(3)}, {"x": torch.randn(4, 3)}, verbose=0)


def test_states_that_are_refused():
    with pytest.raises(mtc.ModelError, match="w: expected a state of float32, integers or bool, found float64"):
        mtc.torch.step(linear, {"w": torch.ones(3, dtype=torch.float64)}, {"x": torch.randn(4, 3)}, verbose=0)
    with pytest.raises(mtc.ModelError, match="expected tensors of one number of samples"):
        mtc.torch.step(linear, {"w": torch.ones(3)}, {"x": torch.randn(4, 3), "rate": torch.ones(())}, verbose=0)


def test_check_finds_a_planted_fault(monkeypatch):
    from mtc.torch import _whole
    right = _whole.Graph.assign
    monkeypatch.setattr(_whole.Graph, "assign", lambda self, name, value: right(
        self, name, _whole.e.binary("mul", value, 1.01)))
    with pytest.raises(mtc.ModelError, match="the step differs from PyTorch: after 1 of 2 steps 1 of 2 arrays"):
        mtc.torch.step(linear, {"w": torch.ones(3)}, {"x": torch.randn(4, 3)}, verbose=0)


# Derivatives as autograd takes them


def leaves_of(state):
    return {n: p.detach().requires_grad_() for n, p in state.items()}


def by_autograd_of():
    """torch.autograd.grad by the state."""
    net = mlp(3, 6, 1)

    def step(state, batch):
        params = leaves_of(state)
        loss = (functional_call(net, params, (batch["x"],)) - batch["y"]).square().mean()
        gradients = torch.autograd.grad(loss, list(params.values()))
        return {n: p - 0.1 * g for (n, p), g in zip(state.items(), gradients)}, {"loss": loss.detach()}
    return step, weights(net), {"x": torch.randn(16, 3), "y": torch.randn(16, 1)}


def backward_of():
    """zero_grad, backward and step of an optimizer that the step makes; two losses add up in `grad`."""
    net = mlp(3, 6, 1)

    def step(state, batch):
        params = {n: p.detach().clone().requires_grad_() for n, p in state.items()}
        optimizer = torch.optim.SGD(list(params.values()), 0.1)
        optimizer.zero_grad()
        out = functional_call(net, params, (batch["x"],))
        loss = (out - batch["y"]).square().mean()
        loss.backward(retain_graph=True)
        (0.1 * out.square().mean()).backward()
        optimizer.step()
        return {n: p.detach() for n, p in params.items()}, {"loss": loss.detach()}
    return step, weights(net), {"x": torch.randn(16, 3), "y": torch.randn(16, 1)}


def penalty_of():
    """A GAN whose gradient penalty is a derivative of a derivative at data that the generator made."""
    generator, critic = mlp(4, 8, 6), mlp(6, 8, 1)

    def step(state, batch):
        real, noise, share = batch
        g, d = leaves_of(state[0]), leaves_of(state[1])
        fake = functional_call(generator, g, (noise,))
        between = share * real + (1 - share) * fake
        out = functional_call(critic, d, (between,))
        slope, = torch.autograd.grad(out, between, torch.ones_like(out), create_graph=True)
        loss = (functional_call(critic, d, (fake.detach(),)) - functional_call(critic, d, (real,))).mean() + (
            (slope.square().sum(1) + 1e-6).sqrt() - 1).square().mean()
        gradients = torch.autograd.grad(loss, list(d.values()), retain_graph=True)
        other = -functional_call(critic, d, (fake,)).mean()
        theirs = torch.autograd.grad(other, list(g.values()))
        return (dict(zip(g, (p - 0.1 * x for p, x in zip(state[0].values(), theirs)))),
                dict(zip(d, (p - 0.1 * x for p, x in zip(state[1].values(), gradients))))), {
                    "loss": loss.detach(), "generator": other.detach()}
    return step, (weights(generator), weights(critic)), (torch.randn(16, 6), torch.randn(16, 4), torch.rand(16, 1))


def unused_of():
    """A parameter that the loss does not depend on."""
    def step(state, batch):
        params = leaves_of(state)
        loss = (batch @ params["a"]).square().mean()
        a, b = torch.autograd.grad(loss, [params["a"], params["b"]], allow_unused=True)
        return {"a": state["a"] - 0.1 * a, "b": state["b"] if b is None else state["b"] - 1}, {"loss": loss.detach()}
    return step, {"a": torch.ones(3), "b": torch.ones(2)}, torch.randn(16, 3)


AUTOGRAD = {f.__name__.removesuffix("_of"): f for f in (by_autograd_of, backward_of, penalty_of, unused_of)}


@pytest.mark.parametrize("name", AUTOGRAD)
def test_autograd_is_as_in_pytorch(name, monkeypatch):
    monkeypatch.setitem(STEPS, name, AUTOGRAD[name])
    test_as_in_pytorch(name)


def test_both_forms_of_a_derivative_are_the_same_kernels():
    net = nn.Sequential(nn.Conv2d(2, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))

    def loss_of(params, batch):
        return F.cross_entropy(functional_call(net, params, (batch[0],)), batch[1])

    def by_func(state, batch):
        gradients, loss = grad_and_value(loss_of)(state, batch)
        return sgd(state, gradients), loss

    def by_autograd(state, batch):
        params = leaves_of(state)
        loss = loss_of(params, batch)
        return sgd(state, dict(zip(params, torch.autograd.grad(loss, list(params.values()))))), loss.detach()
    kernels = []
    for function in (by_func, by_autograd):
        with mtc.torch.step(function, weights(net), (torch.randn(8, 2, 4, 4), torch.randint(0, 3, (8,))), verbose=0,
                            name="step", check=False) as step:
            text = step.plan.to_text()
            kernels.append(text[text.index("name "):])
    assert kernels[0] == kernels[1]


def test_derivatives_by_what_is_no_state_show_the_functional_form():
    net = mlp(3, 6, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def function(state, batch):
        optimizer.zero_grad()
        loss = net(batch).square().mean()
        loss.backward()
        optimizer.step()
        return {"w": state["w"] + 1}, loss.detach()
    with pytest.raises(mtc.ModelError, match=r"test_torch_steps.py:\d+: loss.backward\(\): .*the parameter of a module"
                                             ".*torch.func.grad_and_value"):
        mtc.torch.step(function, {"w": torch.ones(3)}, torch.randn(8, 3), verbose=0)


@pytest.mark.parametrize("at, words", [
    (lambda p: [p["a"], p["b"]], r"test_torch_steps.py:\d+: .*One of the differentiated Tensors appears to not have"),
    (lambda p: [p["a"] + 0], r"test_torch_steps.py:\d+: .*One of the differentiated Tensors appears to not have"),
])
def test_derivatives_that_pytorch_refuses(at, words):
    def function(state, batch):
        params = leaves_of(state)
        loss = (batch @ params["a"]).square().mean()
        gradients = torch.autograd.grad(loss, at(params))
        return {**state, "a": state["a"] - gradients[0]}, loss.detach()
    with pytest.raises(mtc.ModelError, match=words):
        mtc.torch.step(function, {"a": torch.ones(3), "b": torch.ones(2)}, torch.randn(8, 3), verbose=0)
