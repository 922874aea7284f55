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


class Signs(torch.autograd.Function):
    """With a gradient of straight-through estimators, of two inputs and of a constant."""

    @staticmethod
    def forward(x, scale, name):
        return torch.sign(x) * scale, x.argmax(-1)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs[:2])
        ctx.mark_non_differentiable(output[1])

    @staticmethod
    def backward(ctx, gradient, _):
        x, scale = ctx.saved_tensors
        return gradient * (x.abs() <= 1) * scale, (gradient * x).sum(0), None


class Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        x, weight = ctx.saved_tensors
        return gradient @ weight.T, 3 * x.T @ gradient if ctx.needs_input_grad[1] else None


signs = Signs.apply  # before any trace


class Quantized(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.scale = nn.Linear(6, 5), nn.Parameter(torch.rand(5) + 0.5)
        self.weight = nn.Parameter(torch.randn(5, 4))

    def forward(self, x):
        signed, place = signs(self.layer(x), self.scale, "a name")
        return (Product.apply(signed, self.weight) * (1 + place)[:, None]).square().mean()


def test_functions_with_a_backward_of_their_own():
    torch.manual_seed(1)
    compare(Quantized(), {"x": torch.randn(4, 6)}).close()


class Averaged(nn.Module):
    """All kinds of normalisation with running statistics."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv1d(3, 4, 3)
        self.first = nn.BatchNorm1d(4, momentum=None)
        self.second = nn.InstanceNorm1d(4, affine=True, track_running_stats=True)
        self.third = nn.BatchNorm1d(2)

    def forward(self, x):
        one = self.third(self.layer.weight[:, :2])  # whose first axis is not the samples
        return self.second(self.first(self.layer(x))).tanh().square().mean() + (one * self.layer.weight[:, 1:]).mean()


def test_running_statistics():
    torch.manual_seed(1)
    module, batch = Averaged(), {"x": torch.randn(4, 3, 7)}
    other = Averaged()
    other.load_state_dict(module.state_dict())
    optimizer = torch.optim.SGD(other.parameters(), 0.1)
    step = compare(module, batch)
    for _ in range(3):
        optimizer.zero_grad()
        loss = other(**batch)
        loss.backward()
        optimizer.step()
        assert step.train_on_batch(batch)["loss"] == pytest.approx(float(loss.detach()), rel=1e-5)
    step.to_module()
    for name, tensor in other.state_dict().items():
        assert torch.allclose(tensor.float(), module.state_dict()[name].float(), rtol=1e-4, atol=1e-5), name


class Sampled(nn.Module):
    def __init__(self, rank, **options):
        super().__init__()
        self.scale, self.options = nn.Parameter(torch.rand(rank) + 0.4), options

    def forward(self, x):
        places = torch.tanh(x[:, :len(self.scale)].movedim(1, -1) * self.scale) * 1.3
        return nn.functional.grid_sample(x, places, align_corners=False, **self.options).square().mean()


@pytest.mark.parametrize(("rank", "options"), [
    (3, {}), (3, {"mode": "nearest", "padding_mode": "border"}), (2, {"mode": "bicubic"}),
    (2, {"mode": "bicubic", "padding_mode": "reflection"})], ids=str)
def test_images_at_places(rank, options):
    torch.manual_seed(1)
    compare(Sampled(rank, **options), {"x": torch.randn(4, 3, *[4, 3, 5][:rank])}).close()


FUNCTIONS = {
    "polygamma": lambda a, b: torch.special.polygamma(2, a * 9.1) + torch.special.polygamma(1, b.exp() * 3),
    "nanmedian": lambda a, b: torch.where(a > 0.2, torch.nan, b).nanmedian(1, keepdim=True)[0],
    "covariance": lambda a, b: a + torch.cov(a.T).mean() * torch.corrcoef(b.T)[0],
    "scatter": lambda a, b: a.scatter(1, b.topk(3).indices, b[:, :3]),
    "last of equal places": lambda a, b: a.scatter(1, b[:, 1:].abs().long().clamp(max=3), b[:, 1:]),
    "interleaved": lambda a, b: (a * b).repeat_interleave(2) + (b + a).repeat_interleave(2),
    "number of samples": lambda a, b: a * b.new_ones(b.shape[0]).sum() / torch.full((a.shape[0], 2), 2.0).norm(),
    "stacks": lambda a, b: torch.hstack([a, b]) * torch.column_stack([b, a]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name):
    torch.manual_seed(1)
    compare(Of(FUNCTIONS[name]), {"x": torch.randn(4, 6)}).close()


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.lines = nn.LSTM(3, 4, 2, proj_size=2, bidirectional=True, batch_first=True)
        self.mixed = nn.Bilinear(4, 3, 5)
        self.norm = torch.nn.utils.parametrizations.weight_norm(nn.Linear(5, 4), dim=None)  # a parameter of no axis

    def forward(self, x):
        return self.norm(self.mixed(self.lines(x)[0], x)).tanh().square().mean()


def test_layers():
    torch.manual_seed(1)
    compare(Fused(), {"x": torch.randn(4, 5, 3)}).close()


class Extended(nn.Module):
    """A weight of two parts, one of which has no elements, as MobileBERT's head where both sizes are equal."""

    def __init__(self):
        super().__init__()
        self.part, self.rest = nn.Parameter(torch.randn(6, 5)), nn.Parameter(torch.zeros(0, 5))

    def forward(self, x):
        return torch.tanh(x @ torch.cat([self.part, self.rest])).square().mean()


def test_a_parameter_without_elements():
    module = Extended()
    step = compare(module, {"x": torch.randn(4, 6)})
    before = module.part.detach().clone()
    step.train_on_batch({"x": torch.randn(4, 6)})
    step.to_module()
    assert not torch.equal(before, module.part) and module.rest.shape == (0, 5)
