# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: what a caller and schedulers change between steps, what is saved, and when training stops."""

import copy
import pickle
import subprocess
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.optim import lr_scheduler as schedulers

import mtc
import mtc.torch

torch.set_num_threads(1)


def net():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))


def batches(count, rows=6):
    generator = torch.Generator().manual_seed(4)
    return [(torch.randn(rows, 4, generator=generator), torch.randn(rows, 3, generator=generator))
            for _ in range(count)]


def compiled(module, optimizer, loss=functional.mse_loss, check=False, **options):
    return mtc.torch.compile(module, batches(1)[0], loss=loss, optimizer=optimizer, check=check, verbose=0,
                             devices="cpu:1", **options)


def torch_steps(module, optimizer, data, clip=None, scheduler=None):
    for x, y in data:
        optimizer.zero_grad()
        functional.mse_loss(module(x), y).backward()
        if clip:
            clip(module.parameters())
        optimizer.step()
        if scheduler:
            scheduler.step()


def are_alike(mine, theirs, bound=2e-6):
    return all(torch.allclose(a, b, rtol=1e-5, atol=bound) for a, b in zip(mine.parameters(), theirs.parameters()))


# Schedulers and groups

SGD = lambda p: torch.optim.SGD(p, 0.05, momentum=0.9)  # noqa: E731
ADAMW = lambda p: torch.optim.AdamW(p, 0.01, weight_decay=0.1)  # noqa: E731
TAKEN = {
    "one cycle": lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=10, cycle_momentum=False),
    "cyclic": lambda o: schedulers.CyclicLR(o, 0.01, 0.1, 3, cycle_momentum=False),
    "from 0": lambda o: schedulers.LambdaLR(o, lambda n: min(n / 4, 1)),
    "cosine": lambda o: schedulers.CosineAnnealingLR(o, 5),
    "sequential": lambda o: schedulers.SequentialLR(
        o, [schedulers.ConstantLR(o, 0.1, 2), schedulers.ExponentialLR(o, 0.9)], [3]),
}


@pytest.mark.parametrize("name", TAKEN)
def test_schedulers_are_followed_without_a_warning(name):
    module, twin = net(), net()
    optimizer, theirs = SGD(module.parameters()), SGD(twin.parameters())
    step = compiled(module, optimizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # OneCycleLR looks at itself
        scheduler, twins = TAKEN[name](optimizer), TAKEN[name](theirs)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*lr_scheduler.step.. before.*")
        for batch in batches(4):
            step.train_on_batch(batch)
            scheduler.step()
    torch_steps(twin, theirs, batches(4), scheduler=twins)
    assert are_alike(step.to_module(), twin)


def two_groups(module, *rates):
    parts = [module[0], module[2]]
    return [{"params": part.parameters(), **({"lr": rate} if rate else {})}
            for part, rate in zip(parts, rates or (None, None))]


def test_a_group_of_frozen_parameters_may_have_any_rate():
    module, twin = net(), net()
    for m in (module, twin):
        m[0].requires_grad_(False)
    optimizer, theirs = (torch.optim.AdamW(two_groups(m, 1.0, 1e-2)) for m in (module, twin))
    compiled(module, optimizer).fit(batches(2), verbose=0)
    torch_steps(twin, theirs, batches(2))
    assert are_alike(module, twin)


def cleared(module, optimizer):
    optimizer.load_state_dict(optimizer.state_dict())


def assigned(module, _):
    module[2].weight = nn.Parameter(torch.zeros(3, 5))


def replaced(module, _):
    module[2] = nn.Linear(5, 3)


def clamped(module, _):
    with torch.no_grad():
        module[0].weight.clamp_(-0.1, 0.1)


def pointed(module, _):
    module[0].weight.data = torch.zeros(5, 4)


def grouped(_, optimizer):
    optimizer.add_param_group({"params": [nn.Parameter(torch.zeros(2))]})


def with_value(key, value):
    return lambda _, optimizer: optimizer.param_groups[0].update({key: value})


@pytest.mark.parametrize("change, words", [
    (with_value("momentum", 0.0), "expected momentum=0.9 in group 0 of SGD, on which a branch.* found 0.0"),
    (with_value("weight_decay", 0.5), "expected weight_decay=0 in group 0 of SGD, .* found 0.5"),
    (with_value("nesterov", True), "expected nesterov=False"),
    (with_value("maximize", True), "expected maximize=False"),
    (with_value("dampening", 0.5), "expected dampening=0"),
    (lambda m, _: m[0].bias.requires_grad_(False), "0.bias: expected requires_grad=True"),
    (lambda m, _: m.scale.fill_(3.0), "scale: .* a constant of the plan"),
    (lambda m, _: setattr(m, "factor", 3.0), "factor: expected 2.0"),
    (lambda m, _: m[3].eval(), "3: expected training=True"),
    (lambda m, _: m[0].register_forward_hook(lambda *a: a[2] * 2), "0: expected the hooks that it had.*found more"),
    (lambda m, _: m[0].register_full_backward_hook(lambda *a: None), "0: expected the hooks that it had"),
    (assigned, "2.weight: .* another Parameter assigned"), (replaced, "2: .* another Linear assigned"),
    (clamped, "0.weight: .* step.from_module"), (pointed, "0.weight: .* step.from_module"),
    (grouped, "expected the 1 parameter groups"), (cleared, "expected the state of SGD .* step.from_module"),
], ids=["momentum", "weight_decay", "nesterov", "maximize", "dampening", "requires_grad", "buffer", "number", "mode",
        "hook", "backward hook", "assigned", "replaced", "in place", "data", "group", "state"])
def test_a_change_after_compile_is_refused(change, words):
    class Scaled(nn.Sequential):
        def forward(self, x):
            return super().forward(x) * self.scale * self.factor

    module = Scaled(*net(), nn.Dropout(0.0))
    module.factor = 2.0
    module.register_buffer("scale", torch.tensor(1.0))
    optimizer = SGD(module.parameters())
    step = compiled(module, optimizer)
    data = batches(2)
    step.fit(data[:1], verbose=0)
    change(module, optimizer)
    before = copy.deepcopy(module.state_dict())
    for train in (lambda: step.train_on_batch(data[1]), lambda: step.fit(data, verbose=0)):
        with pytest.raises(mtc.ModelError, match=words):
            train()
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())


def test_a_change_that_is_copied_is_followed():
    module, twin = net(), net()
    optimizer, theirs = ADAMW(module.parameters()), ADAMW(twin.parameters())
    step = compiled(module, optimizer)
    data = batches(4)
    step.fit(data[:2], verbose=0)
    torch_steps(twin, theirs, data[:2])
    for m, o in ((module, optimizer), (twin, theirs)):
        clamped(m, o)
        o.load_state_dict(ADAMW(m.parameters()).state_dict())  # a state without slots or steps
    step.from_module()
    step.fit(data[2:], verbose=0)
    torch_steps(twin, theirs, data[2:])
    assert are_alike(module, twin)


def test_what_else_pytorch_would_call_is_refused():
    module = net()
    with pytest.raises(mtc.ModelError, match="expected a scheduler of the torch.optim optimizer"):
        compiled(module, "adam").fit(batches(1), scheduler=schedulers.StepLR(SGD(module.parameters()), 1))
    optimizer = SGD(module.parameters())
    optimizer.register_step_post_hook(lambda *_: None)
    with pytest.raises(mtc.ModelError, match="hooks around its step"):
        compiled(module, optimizer)
    module[0].weight.register_hook(lambda gradient: 2 * gradient)
    with pytest.raises(mtc.ModelError, match="0.weight: expected a parameter without hooks"):
        compiled(module, SGD(module.parameters()))


def test_parameters_that_join_an_optimizer_later():
    """Each has a number of steps of its own."""
    module, twin = net(), net()
    for m, made in ((module, False), (twin, True)):
        optimizer = torch.optim.Adam(m[0].parameters(), 0.01)
        torch_steps(m, optimizer, batches(2))
        optimizer.add_param_group({"params": m[2].parameters()})
        if made:
            torch_steps(m, optimizer, batches(3))
        else:
            compiled(m, optimizer).fit(batches(3), verbose=0)
    assert are_alike(module, twin)


# Saving

@pytest.mark.parametrize("when", ["compiled", "trained"])
def test_a_saved_plan_starts_with_the_state(when, mtrun, tmp_path):
    """Weights, running statistics, slots, steps and the rate: `mtrun` goes on with the bits of the step."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Tanh(), nn.Linear(5, 3))
    optimizer = ADAMW(module.parameters())
    torch_steps(module, optimizer, batches(3))
    optimizer.param_groups[0]["lr"] = 0.02
    step = compiled(module, optimizer)
    data = batches(5)
    if when == "trained":
        optimizer.param_groups[0]["lr"] = 0.03
        step.train_on_batch(data[4])
    step.plan.save(tmp_path / "a.mtp") if when == "compiled" else step.save(tmp_path / "a.mtp")
    names = {entry.role: entry.name for entry in step.plan.signature()}
    np.savez(tmp_path / "data.npz", **{names[role]: np.concatenate([b[i].numpy() for b in data[:4]])
                                       for i, role in enumerate(sorted(names))})
    subprocess.run([mtrun, "train", "a.mtp", "--data", "npz:data.npz", "--epochs", "1", "--no-shuffle", "--devices",
                    "cpu:2", "--save", "w.safetensors"], cwd=tmp_path, check=True, capture_output=True)
    other = pickle.loads(pickle.dumps(step.plan)).session("cpu:1")
    for x, y in data[:4]:
        step.train_on_batch((x, y))
        other.train_step(dict(zip([names[role] for role in sorted(names)], (x, y))))
    saved = mtc.load(tmp_path / "a.mtp").session("cpu:1")
    saved.load(tmp_path / "w.safetensors")
    assert "optimizer/step" in saved.variables and len(saved.variables) > 15
    for name, value in step.session.variables.items():
        assert np.array_equal(saved.variables[name], value), name
        assert np.array_equal(other.variables[name], value), name


# Clipping

DECAYED = {
    "sgd": lambda p: torch.optim.SGD(p, 0.5, weight_decay=0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.5, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adam": lambda p: torch.optim.Adam(p, 0.05, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 0.05, weight_decay=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(p, 0.05, weight_decay=0.1),
    "adadelta": lambda p: torch.optim.Adadelta(p, 0.5, weight_decay=0.1),
    "adamax": lambda p: torch.optim.Adamax(p, 0.05, weight_decay=0.1),
}


@pytest.mark.parametrize("clip", ["norm", "value"])
@pytest.mark.parametrize("name", DECAYED)
def test_gradients_are_clipped_before_they_decay(name, clip):
    module, twin = net(), net()
    optimizer, theirs = (DECAYED[name](m.parameters()) for m in (module, twin))
    data = [(x, 9 * y) for x, y in batches(4)]
    step = compiled(module, optimizer, **{f"clip_{clip}": 0.05})
    for batch in data:
        step.train_on_batch(batch)
    bound = {"norm": lambda p: nn.utils.clip_grad_norm_(p, 0.05), "value": lambda p: nn.utils.clip_grad_value_(p, 0.05)}
    torch_steps(twin, theirs, data, bound[clip])
    assert are_alike(step.to_module(), twin, 2e-5)


# Buffers

class Tracks(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.linear, self.kind = nn.Linear(4, 3), kind
        self.register_buffer("average", torch.zeros(3))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))

    def forward(self, x):
        y = self.linear(x)
        if self.kind == "counter":
            self.count += 1
        elif self.kind == "assigned":
            self.average = 0.9 * self.average + 0.1 * y.detach().mean(0)
        else:
            self.average.mul_(0.9).add_(0.1 * y.detach().mean(0))
        return y - self.average if self.kind == "read" else y


@pytest.mark.parametrize("kind, name", [("unread", "average"), ("assigned", "average"), ("read", "average"),
                                        ("counter", "count")])
def test_buffers_that_evaluation_changes_too(kind, name):
    """They are followed while it trains; a plan does not change them when it evaluates."""
    module, twin = Tracks(kind), Tracks(kind)
    twin.load_state_dict(module.state_dict())
    step, data = compiled(module, SGD(module.parameters()), check=True), batches(3)
    for batch in data:
        step.train_on_batch(batch)
    torch_steps(twin, SGD(twin.parameters()), data)
    assert are_alike(step.to_module(), twin, 2e-5)
    for mine, theirs in zip(module.buffers(), twin.buffers()):
        assert torch.allclose(mine, theirs, atol=1e-5)
    with pytest.raises(mtc.ModelError, match=f"{name} changes in evaluation mode too: change it under `if self.train"):
        step.test_on_batch(data[0])



# Predictions

LOSSES = {
    "mse_loss": functional.mse_loss, "MSELoss": nn.MSELoss(), "l1_loss": functional.l1_loss, "L1Loss": nn.L1Loss(),
    "huber_loss": functional.huber_loss, "HuberLoss": nn.HuberLoss(), "smooth_l1_loss": functional.smooth_l1_loss,
    "in place": lambda output, labels: output.sub_(labels).square().mean(),
    "squeezed": lambda output, labels: functional.mse_loss(output.unsqueeze(1).squeeze(1), labels),
    "of one": lambda output, labels: functional.mse_loss(output[:, 0], labels[:, 0]),
    "a double": lambda output, labels: functional.mse_loss(output.double(), labels.double()),
    "whole numbers": lambda output, labels: functional.mse_loss(output, labels.long().float()),
    "wider": lambda output, labels: functional.mse_loss(output[:, :1].expand(-1, 3), labels),
}


@pytest.mark.parametrize("name", LOSSES)
def test_predictions_need_no_labels(name):
    module = net()
    step = compiled(module, SGD(module.parameters()), LOSSES[name])
    x = batches(1)[0][0]
    assert torch.allclose(step.predict(x), module(x), atol=1e-6)
    assert torch.allclose(step.predict((x,)), module(x), atol=1e-6)


def test_predictions_of_a_module_with_a_loss_of_its_own():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net()

        def forward(self, x, labels, factor=2.0):
            output = self.net(x)
            return {"loss": functional.mse_loss(output, labels), "output": output}

    module, (x, y) = Model(), batches(1)[0]
    step = mtc.torch.compile(module, {"x": x, "labels": y}, optimizer="sgd", check=False, verbose=0, devices="cpu:1")
    for given in (x, {"x": x}, {"x": x, "labels": y}):
        assert torch.allclose(step.predict(given), module.net(x), atol=1e-6)
    with pytest.raises(mtc.DataError, match="found no x"):
        step.predict({"labels": y})


# What is not finite

def test_a_step_that_is_not_finite_ends_training():
    module = net()
    step = compiled(module, SGD(module.parameters()))
    (x, y), bad = batches(1)[0], batches(1)[0][0].clone()
    bad[0, 0] = float("nan")
    with pytest.raises(mtc.DataError, match=r"step 2: the loss is not a number; 4 variables|step 2: .*not finite: the "
                                            r"first are 0.weight, 0.bias"):
        step.fit([(x, y), (bad, y), (x, y)], verbose=0)
    assert all(torch.isfinite(p).all() for p in module.parameters())  # as before
    step.from_module()
    assert np.isnan(step.train_on_batch((bad, y), allow_nan=True)["loss"])
    with pytest.raises(mtc.DataError, match="not finite: the first are 0.weight"):
        step.train_on_batch((x, y))
    step.fit([(x, y)], verbose=0, allow_nan=True)
    assert torch.isnan(module[0].weight).any()


def test_a_loss_of_nothing_is_a_warning_once():
    """A mean over no label is not a number; the step changes nothing, and training goes on."""
    from mtc._finite import Finite

    class Session:
        variables = {"w": np.zeros(2, "f4"), "steps": np.asarray(3, "i4")}

    finite = Finite(Session())
    with pytest.warns(mtc.ModelWarning, match="step 1: .* nothing in this batch counts"):
        finite.after({"loss": float("nan")}, False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        finite.after({"loss": float("nan")}, False)
    with pytest.raises(mtc.DataError, match="step 3: the loss is infinite; all variables are finite"):
        finite.after({"loss": float("inf")}, False)
    Session.variables["w"][1] = np.inf
    with pytest.raises(mtc.DataError, match="after step 3: 1 variable is not finite: w"):
        finite.variables(False)
