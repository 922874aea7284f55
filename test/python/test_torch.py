# SPDX-License-Identifier: Apache-2.0
"""mtc.torch: modules of PyTorch and of transformers against PyTorch itself."""

import copy
import itertools
import pathlib
import textwrap

import numpy as np
import pytest
import torch
import torch_models as models
from torch import nn
from torch.nn import functional

import mtc
import mtc.torch

torch.set_num_threads(1)


def sgd(parameters):
    # Not of Adam's kind: the biases of an attention's keys have no gradients but rounding errors, which those divide by
    # their own size.
    return torch.optim.SGD(parameters, 0.05, momentum=0.9, weight_decay=1e-3)


def compiled(make, optimizer=sgd, **options):
    """The step of a module, the module, and its twin that PyTorch trains."""
    module, example, loss = models.build(make)
    twin = copy.deepcopy(module)
    chosen, twin_optimizer = optimizer(module.parameters()), optimizer(twin.parameters())
    step = mtc.torch.compile(module, example, loss=loss, optimizer=chosen, devices="cpu:1", verbose=0, **options)
    return step, (module, chosen), (twin, twin_optimizer), example, loss


def train(module, optimizer, loss, batches):
    """A few steps in PyTorch; their losses."""
    module.train()
    losses = []
    for batch in batches:
        optimizer.zero_grad()
        value = models.loss_of(module, batch, loss)
        value.backward()
        optimizer.step()
        losses.append(float(value.detach()))
    return losses


def are_alike(mine, theirs, bound):
    """Whether the states of two modules agree."""
    state = theirs.state_dict()
    return all(float((tensor - state[name]).abs().max()) <= bound * (float(state[name].abs().max()) + 1e-3)
               for name, tensor in mine.state_dict().items())


def changed(module, seed):
    """A copy of a module whose weights differ by as little as roundings make: a share of up to 2^-20."""
    module, generator = copy.deepcopy(module), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in module.parameters():
            weight.mul_(1 + 2.0 ** -20 * (2 * torch.rand(weight.shape, generator=generator) - 1))
    return module


@pytest.mark.parametrize("make", models.OWN + models.HF, ids=lambda make: make.__name__)
def test_training_is_that_of_pytorch(make):
    """The check passes; four steps have PyTorch's losses; PyTorch goes on from the weights and the state.

    A rounding decides on which side of 0 an argument of a ReLU lies that is nearly 0. With six samples in a batch, each
    side then leads to losses of its own: ResNet-18's third loss changes by up to 5 % if PyTorch begins with weights
    that differ by 2^-20. So where MTC does not follow PyTorch's run, it has to follow one of a few runs from such
    weights, in all of its losses and to the state at the end, within the same bounds.
    """
    step, (module, optimizer), (twin, _), example, loss = compiled(make)
    batches = [models.other(example, i) for i in range(6)]
    found = [step.train_on_batch(batch)["loss"] for batch in batches[:4]]
    step.to_module()
    found += train(module, optimizer, loss, batches[4:])
    runs = []

    def follows(theirs):
        expected = train(theirs, sgd(theirs.parameters()), loss, batches)
        runs.append(expected)
        return (np.allclose(found[:4], expected[:4], rtol=2e-4, atol=2e-5) and
                np.allclose(found[4:], expected[4:], rtol=5e-4, atol=5e-5) and are_alike(module, theirs, 5e-3))

    assert any(follows(changed(twin, seed) if seed else copy.deepcopy(twin)) for seed in range(9)), (found, runs)


@pytest.mark.parametrize("make", [models.cnn, models.gpt, models.recurrent], ids=lambda make: make.__name__)
def test_same_bits_on_any_number_of_devices(make):
    module, example, loss = models.build(make)
    found = []
    for devices in ("cpu:1", "cpu:2", "cpu:3"):
        step = mtc.torch.compile(module, example, loss=loss, optimizer="adam", devices=devices, verbose=0,
                                 check=devices == "cpu:1")
        step.train_on_batch(example)
        short = {k: v[:5] for k, v in example.items()} if isinstance(example, dict) else tuple(v[:5] for v in example)
        step.train_on_batch(short)
        found.append({name: value.tobytes() for name, value in step.session.variables.items()})
        step.close()
    assert found[0] == found[1] == found[2]


OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.1, weight_decay=0.01),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True),
    "adam": lambda p: torch.optim.Adam(p, 1e-2, eps=1e-2, weight_decay=0.01),
    "amsgrad": lambda p: torch.optim.Adam(p, 1e-2, eps=1e-3, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(
        [{"params": (q := list(p))[::2], "weight_decay": 0.1}, {"params": q[1::2], "weight_decay": 0.0}], 1e-2),
    "adamax": lambda p: torch.optim.Adamax(p, 1e-2),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-3, eps=1e-2, momentum=0.5),
    "centered": lambda p: torch.optim.RMSprop(p, 1e-3, eps=1e-2, centered=True),
    "adagrad": lambda p: torch.optim.Adagrad(p, 1e-2, eps=1e-2),
    "adadelta": lambda p: torch.optim.Adadelta(p, 1.0),
}


@pytest.mark.parametrize("make", [models.mlp, models.resnet18, models.gpt, models.recurrent],
                         ids=lambda make: make.__name__)
@pytest.mark.parametrize("optimizer", ["momentum", "adam"])
def test_going_on_in_pytorch(make, optimizer):
    """With the weights and the optimizer's state of MTC, two epochs in PyTorch are two more epochs in MTC."""
    module, example, loss = models.build(make)
    theirs = OPTIMIZERS[optimizer](module.parameters())
    step = mtc.torch.compile(module, example, loss=loss, optimizer=theirs, devices="cpu:1", check=False, verbose=0)
    batches = [models.other(example, i) for i in range(3)]
    for batch in batches:
        step.train_on_batch(batch)
    step.to_module()
    here = [step.train_on_batch(batch)["loss"] for batch in 2 * batches]
    there = train(module, theirs, loss, 2 * batches)
    assert np.allclose(here, there, rtol=1e-5, atol=1e-6)
    trained_there = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    step.to_module()
    for name, tensor in module.state_dict().items():
        if tensor.is_floating_point():  # batches of both are counted
            scale = max(float(tensor.abs().max()), 0.1)
            assert float((tensor - trained_there[name]).abs().max()) <= 1e-5 * scale, name
    step.close()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers(name):
    """Steps before, in MTC with another learning rate on the way, and after: all as in PyTorch."""
    module, example, loss = models.build(models.mlp)
    optimizer = OPTIMIZERS[name](module.parameters())
    train(module, optimizer, loss, [models.other(example, 10)])  # it has a state
    twin = copy.deepcopy(module)
    twin_optimizer = OPTIMIZERS[name](twin.parameters())
    twin_optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    step = mtc.torch.compile(module, example, loss=loss, optimizer=optimizer, devices="cpu:1", verbose=0,
                             check=name == "sgd")
    for i in range(4):
        batch = models.other(example, i)
        if i == 2:
            for o in (optimizer, twin_optimizer):
                for group in o.param_groups:
                    group["lr"] *= 0.5
        expected = train(twin, twin_optimizer, loss, [batch])[0]
        assert step.train_on_batch(batch)["loss"] == pytest.approx(expected, rel=1e-4)
    step.to_module()
    batch = models.other(example, 5)
    expected = train(twin, twin_optimizer, loss, [batch])
    assert train(module, optimizer, loss, [batch]) == pytest.approx(expected, rel=1e-4)
    assert are_alike(module, twin, 1e-3)


def test_fit_schedules_and_evaluates():
    step, (module, optimizer), (twin, twin_optimizer), example, loss = compiled(
        models.mlp, lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), check=False)
    make = lambda o: torch.optim.lr_scheduler.StepLR(o, 1, 0.5)  # noqa: E731
    batches = [models.other(example, i) for i in range(3)]
    history = step.fit(batches, epochs=3, scheduler=make(optimizer), validation=[example], verbose=0)
    scheduler = make(twin_optimizer)
    for epoch in range(3):
        expected = np.mean(train(twin, twin_optimizer, loss, batches))
        scheduler.step()
        assert history["loss"][epoch] == pytest.approx(expected, rel=1e-4)
    assert are_alike(module, twin, 1e-3)
    module.eval()
    assert history["val_loss"][-1] == pytest.approx(float(models.loss_of(module, example, loss).detach()), rel=1e-4)
    assert torch.allclose(step.predict(example[0]), module(example[0]).detach(), atol=1e-5)


def test_batch_statistics():
    """PyTorch's running variance is unbiased; evaluation uses it; steps are counted."""
    step, (module, _), (twin, twin_optimizer), example, loss = compiled(models.cnn, check=False)
    train(twin, twin_optimizer, loss, [example] * 3)
    for _ in range(3):
        step.train_on_batch(example)
    state = step.state_dict()
    assert torch.allclose(state["1.running_var"], twin[1].running_var, rtol=1e-4)
    assert torch.allclose(step.predict(example[0]), twin.eval()(example[0]).detach(), atol=1e-3)
    step.to_module()
    assert int(module[1].num_batches_tracked) == 3


def sign(*shape):
    return torch.randint(0, 2, shape) * 2.0 - 1


# Losses that PyTorch takes apart for MTC: (outputs, labels, the loss of both).
@pytest.mark.parametrize("outputs, labels, loss", [
    (8, sign(6), lambda y, t: functional.cosine_embedding_loss(y[:, :4], y[:, 4:], t, margin=0.1)),
    (9, torch.zeros(6), lambda y, _: functional.triplet_margin_loss(y[:, :3], y[:, 3:6], y[:, 6:], swap=True)),
    (2, sign(6), lambda y, t: functional.margin_ranking_loss(y[:, 0], y[:, 1], t, margin=0.2)),
    (1, sign(6, 1), functional.soft_margin_loss),
    (1, sign(6, 1), functional.hinge_embedding_loss),
    (1, torch.randint(0, 5, (6, 1)).float(), lambda y, t: functional.poisson_nll_loss(y, t, full=True)),
], ids=["cosine_embedding", "triplet_margin", "margin_ranking", "soft_margin", "hinge_embedding", "poisson_nll"])
def test_losses_that_are_taken_apart(outputs, labels, loss):
    module, x = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, outputs)), torch.randn(6, 4)
    step = mtc.torch.compile(module, (x, labels), loss=loss, optimizer="sgd", verbose=0, devices="cpu:1")
    wanted = float(loss(module(x), labels))
    assert step.train_on_batch((x, labels))["loss"] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize("kind, options, steps", [
    (nn.GRU, {"bias": False}, 300), (nn.LSTM, {"num_layers": 2, "bidirectional": True}, 9),
    (nn.RNN, {"num_layers": 2, "dropout": 0.5}, 9), (nn.LSTM, {"proj_size": 2}, 9)])
def test_recurrent_layers(kind, options, steps):
    """Each layer and direction is one operation of the trace. The memory is that of all states, a few times."""
    class Last(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = kind(3, 4, batch_first=True, **options)

        def forward(self, x):
            return self.cell(x)[0][:, -1, :2]

    module, x, y = Last(), torch.randn(8, steps, 3), torch.randn(8, 2)
    before = torch._VF.lstm
    step = mtc.torch.compile(module, (x, y), loss=functional.mse_loss, optimizer="sgd", verbose=0, devices="cpu:1",
                             check=steps < 300)
    assert torch._VF.lstm is before and step.plan.memory() < 4 << 20
    if "dropout" not in options:
        wanted = float(functional.mse_loss(module(x), y))
        assert step.train_on_batch((x, y))["loss"] == pytest.approx(wanted, rel=1e-5)


def test_a_packed_sequence():
    """It is refused with the way out, which has the same loss."""
    class Last(nn.Module):
        def __init__(self, packed):
            super().__init__()
            self.cell, self.packed = nn.GRU(3, 4, batch_first=True), packed

        def forward(self, x, lengths):
            if self.packed:
                x = nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
                return self.cell(x)[1][0]
            return self.cell(x)[0].gather(1, (lengths - 1)[:, None, None].expand(-1, 1, 4))[:, 0]

    lengths = torch.tensor([5, 3, 2, 5, 1, 4])
    example = ((torch.randn(6, 5, 3), lengths), torch.randn(6, 4))
    packed, padded = Last(True), Last(False)
    padded.load_state_dict(packed.state_dict())
    options = {"loss": functional.mse_loss, "optimizer": "sgd", "verbose": 0}
    with pytest.raises(mtc.ModelError, match="pack_padded_sequence.*last step by torch.gather"):
        mtc.torch.compile(packed, example, **options)
    step = mtc.torch.compile(padded, example, **options)
    wanted = float(functional.mse_loss(packed(*example[0]), example[1]))
    assert step.train_on_batch(example)["loss"] == pytest.approx(wanted, rel=1e-5)


class Lines(nn.Module):
    """A function of a linear layer's results."""

    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(4, 6), function

    def forward(self, x):
        return self.function(self.layer(x))


def routed(z):
    """A mixture of experts: each line goes to the two experts with the largest weights."""
    gates, experts = z.softmax(-1).topk(2)
    return (gates * torch.tanh(z).gather(-1, experts)).sum(-1, keepdim=True)


@pytest.mark.parametrize("function", [
    routed,
    lambda z: z.topk(2, largest=False)[0],
    lambda z: torch.sort(z, descending=True)[0][:, :3],
    lambda z: z.reshape(-1, 2, 3).sort(dim=1, stable=True)[0],
    lambda z: torch.argsort(z, -1) * z,
    lambda z: z + (z.round() - z).detach(),
    lambda z: torch.cat([z * 2, z[:, 6:]], 1),
    lambda z: functional.interpolate(z.reshape(-1, 2, 3, 1), (5, 4), mode="bilinear").flatten(1),
    lambda z: functional.interpolate(z.reshape(-1, 1, 3, 2), scale_factor=2.5, mode="bicubic").flatten(1),
    lambda z: functional.interpolate(z.reshape(-1, 1, 6), 4, mode="linear", align_corners=True).flatten(1),
    lambda z: z * torch.ceil(3 * z) + torch.frac(z) * torch.trunc(4 * z),
    lambda z: z[:, [-2]] * z[:, [1, -1, -6]] + z.reshape(-1, 2, 3)[:, [0, -1, -2], [-1, -3, 1]],
    lambda z: z[:, torch.tensor([[0, -1], [2, -3]])].flatten(1) * z.new_tensor([1., 2., 4.])[[-1, 0, 1, -3]],
    lambda z: z[..., -1:] * z[:, -4:-2],
    lambda z: functional.normalize(z.reshape(-1, 2, 3) * z.new_tensor([[1.], [0.]]), dim=-1).flatten(1),
    lambda z: (z.reshape(-1, 2, 3) * z.new_tensor([[1.], [0.]])).std(-1) + z.norm(dim=-1, keepdim=True),
    lambda z: functional.fold(z.reshape(-1, 6, 1) * z.new_tensor([[1., 2., 3., 4.]]), (3, 2), (2, 3), 1, 1,
                              (2, 1)).flatten(1),
    lambda z: functional.fold(torch.tanh(z).reshape(-1, 6, 1).repeat(1, 2, 4), (6, 4), (2, 3), (2, 1), (0, 1),
                              (3, 2)).flatten(1),
], ids=["experts", "smallest", "sort", "stable", "argsort", "straight-through", "empty", "bilinear", "bicubic",
        "linear", "whole", "from-the-end", "table-from-the-end", "slices", "zero-norm",
        "zero-deviation", "fold", "fold-with-steps"])
def test_functions(function, capsys):
    torch.manual_seed(4)
    module, x = Lines(function), torch.randn(6, 4)
    mtc.torch.compile(module, (x, torch.zeros_like(module(x))), loss=functional.mse_loss, optimizer="sgd",
                      devices="cpu:1")
    assert "the loss, 2 gradients" in capsys.readouterr().err


class Positions(nn.Module):
    """Images with an encoding of their places, which is projected once for all of them, as in XCiT."""

    def __init__(self):
        super().__init__()
        self.project, self.layer = nn.Conv2d(5, 4, 1), nn.Conv2d(3, 4, 3, padding=1)
        self.register_buffer("places", torch.randn(1, 5, 6, 6))

    def forward(self, x):
        return torch.tanh(self.layer(x) + self.project(self.places)).mean((2, 3))


def test_a_convolution_of_one_image_for_all_samples(capsys):
    torch.manual_seed(4)
    mtc.torch.compile(Positions(), (torch.randn(4, 3, 6, 6), torch.randint(0, 4, (4,))),
                      loss=functional.cross_entropy, optimizer="sgd", devices="cpu:1")
    assert "the loss, 4 gradients" in capsys.readouterr().err


class Bag(nn.Module):
    def __init__(self, weighted=False, **options):
        super().__init__()
        self.rows, self.out = nn.EmbeddingBag(20, 6, **options), nn.Linear(6, 3)
        self.weighted = weighted

    def forward(self, ids):
        return self.out(self.rows(ids, per_sample_weights=ids / 7 if self.weighted else None))


@pytest.mark.parametrize("options", [{"mode": "sum"}, {"mode": "mean"}, {"mode": "max"},
                                     {"mode": "sum", "weighted": True}, {"mode": "mean", "padding_idx": 1}])
def test_embedding_bag(options, capsys):
    torch.manual_seed(4)
    ids = torch.randint(0, 6, (6, 4))
    ids[2] = 1  # of padding alone
    mtc.torch.compile(Bag(**options), (ids, torch.randint(0, 3, (6,))), loss=functional.cross_entropy,
                      optimizer="sgd", devices="cpu:1")
    assert "the loss, 3 gradients" in capsys.readouterr().err


class ScoresAndLoss(nn.Module):
    """Returns its scores, and its loss where it gets targets."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 3)

    def forward(self, x, targets=None):
        scores = self.layer(x)
        return scores, None if targets is None else functional.cross_entropy(scores, targets)


def test_the_loss_is_the_number_in_a_tuple():
    module, batch = ScoresAndLoss(), (torch.randn(6, 4), torch.randint(0, 3, (6,)))
    step = mtc.torch.compile(module, batch, optimizer="sgd", verbose=0, devices="cpu:1")
    wanted = float(module(*batch)[1])
    assert step.train_on_batch(batch)["loss"] == pytest.approx(wanted, rel=1e-5)
    np.testing.assert_allclose(step.predict(batch), step.to_module()(*batch)[0].detach(), rtol=1e-5, atol=1e-6)


def test_tied_weights_are_one_variable():
    step, (module, _), _, example, _ = compiled(models.gpt, check=False)
    names = [v.name for v in step.plan.variables]
    assert "tokens.weight" in names and "head.weight" not in names
    step.train_on_batch(example)
    state = step.state_dict()
    assert torch.equal(state["tokens.weight"], state["head.weight"])
    assert set(state) == set(module.state_dict())
    step.to_module()
    assert module.head.weight is module.tokens.weight


def test_dropout_trains_and_evaluation_has_none():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(8, 64), nn.Dropout(0.5), nn.Linear(64, 1))
    example = (torch.randn(16, 8), torch.randn(16, 1))
    step = mtc.torch.compile(module, example, loss=functional.mse_loss, optimizer="sgd,learning_rate=0", verbose=0)
    losses = {step.train_on_batch(example)["loss"] for _ in range(3)}
    assert len(losses) == 3
    assert step.test_on_batch(example)["loss"] == pytest.approx(
        float(functional.mse_loss(module.eval()(example[0]), example[1]).detach()), rel=1e-4)


def test_detached_values_have_no_gradient():
    class Detached(nn.Module):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)

        def forward(self, x):
            y = self.a(x)
            return y * y.detach()

    example = (torch.randn(6, 4), torch.randn(6, 4))
    mtc.torch.compile(Detached(), example, loss=functional.mse_loss, verbose=0)  # it is checked


class Refused(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)

    def forward(self, x):
        y = torch.linalg.matrix_exp(self.a(x)[:, :, None] * x[:, None])
        z = torch.special.i0(x)
        return y.sum(2) + z


def test_what_is_refused_is_listed_with_its_lines():
    example = (torch.randn(6, 4), torch.randn(6, 4))
    with pytest.raises(mtc.ModelError) as error:
        mtc.torch.compile(Refused(), example, loss=functional.mse_loss)
    text = str(error.value)
    assert "2 operations" in text and "linalg_matrix_exp" in text and "i0: " in text
    assert text.count("test_torch.py:") == 2 and "torch.special.i0(x)" in text


def test_the_example_of_the_page(tmp_path, monkeypatch):
    """The first block of docs/pytorch.md."""
    page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "pytorch.md").read_text()
    lines = page.partition("    import torch\n")[2].splitlines()
    block = list(itertools.takewhile(lambda line: line.startswith("    ") or not line, lines))
    monkeypatch.chdir(tmp_path)
    names = {}
    exec("import torch\n" + textwrap.dedent("\n".join(block)), names)
    assert len(names["history"]["loss"]) == 2 and (tmp_path / "model.pt").exists()


def test_other_errors_have_a_reason():
    module, example, loss = models.build(models.mlp)
    with pytest.raises(mtc.DataError, match="example"):
        mtc.torch.compile(module, example[0], loss=loss)
    with pytest.raises(mtc.DataError, match="returns its loss"):
        mtc.torch.compile(module, {"input": example[0]})
    with pytest.raises(mtc.DataError, match="loss= that returns a number, found none"):
        mtc.torch.compile(ScoresAndLoss(), (torch.randn(6, 4), torch.randn(6, 4)), loss=lambda output, _: output[1])

    class Frozen(nn.Sequential):
        def forward(self, x):
            with torch.no_grad():
                x = self[0](x)
            return self[2](x)

    mtc.torch.compile(Frozen(*module), example, loss=loss, verbose=0).close()  # it is checked
